/* diff.c - see diff.h */
#define _GNU_SOURCE /* qsort_r */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff.h"
#include "analysis/label.h"
#include "base/portable.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"

/* --- names that are the same in every run ---------------------------------------------------------- */

struct text {
    char *bytes;
    size_t len;
    size_t capacity;
};

static void
add_bytes(struct text *text, const char *bytes, size_t len)
{
    if (len == 0) return; /* there may be no buffer yet */
    if (text->capacity - text->len < len) {
        text->capacity = 2 * (text->len + len);
        text->bytes = xrealloc(text->bytes, text->capacity, 1);
    }
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
}

static uint32_t
intern_text(const struct diff *diff, struct text *text)
{
    struct pool *pool = diff->report->pool;
    uint32_t id = text->len == 0 ? STRING_NONE
                                 : pool_without_addresses(pool, pool_intern(pool, text->bytes, text->len));
    free(text->bytes);
    return id;
}

/* Replaces the first matching prefix, also in `(eval at PATH:LINE)`. */
static void
add_path(const struct diff *diff, struct text *text, struct fxt_string path)
{
    static const char eval[] = "(eval at ";
    if (path.len > sizeof eval && memcmp(path.ptr, eval, sizeof eval - 1) == 0) {
        add_bytes(text, eval, sizeof eval - 1);
        path.ptr += sizeof eval - 1;
        path.len -= (uint32_t)sizeof eval - 1;
    }
    for (uint32_t i = 0; i < diff->map->count; i++) {
        size_t bytes = diff->map->list[i].from_bytes;
        if (path.len < bytes || memcmp(path.ptr, diff->map->list[i].from, bytes) != 0) continue;
        add_bytes(text, diff->map->list[i].to, strlen(diff->map->list[i].to));
        path.ptr += bytes;
        path.len -= (uint32_t)bytes;
        break;
    }
    add_bytes(text, path.ptr, path.len);
}

/* The `Owner#method (path)` of a label, and its line. */
static uint32_t
stable_method(struct diff *diff, uint32_t label, uint32_t *line_out)
{
    struct label_parts parts = label_parts(pool_string(diff->report->pool, label));
    *line_out = parts.line > 0 ? (uint32_t)parts.line : 0;
    uint32_t stable = map_get(&diff->stable_texts, label);
    if (stable != MAP_NONE) return stable;
    struct text text = {0};
    add_bytes(&text, parts.method.ptr, parts.method.len);
    if (parts.path.len > 0) {
        add_bytes(&text, " (", 2);
        add_path(diff, &text, parts.path);
        add_bytes(&text, ")", 1);
    }
    stable = intern_text(diff, &text);
    map_set(&diff->stable_texts, label, stable);
    return stable;
}

uint32_t
diff_method(struct diff *diff, uint32_t label)
{
    uint32_t line;
    return stable_method(diff, label, &line);
}

/* --- counting ------------------------------------------------------------------------------------------ */

void
diff_table_add(const struct diff *diff, struct diff_table *table, const uint32_t key[4], uint32_t run, double count,
               double variance)
{
    const struct diff_row *row = row_table_get(&table->rows, key);
    if (row == NULL) return; /* more than EXIT_ROWS_MAX: the report has a line about that */
    struct diff_cell *cell =
        row_table_get(&table->cells, (const uint32_t[DIFF_CELL_KEYS]){row_table_number(&table->rows, row), run});
    if (cell == NULL) return;
    cell->count += count;
    cell->variance += variance;
}

/* While runs are added up: tables of one row, and by run what the estimated lost time is made of. */
struct all_exits {
    struct diff_table counts, lost;
    double *lost_variance, *lost_events;
};

/* An event of weight w was recorded with a probability of 1/w, so the variance of the sum of n
 * such weights is about n w (w - 1). Exact hits have no variance, nor have events that were all
 * recorded. */
static void
add_exits(struct diff *diff, struct all_exits *all, const struct exit_row *exit_row)
{
    const struct report_process *process = report_process(diff->report, exit_row->process);
    uint32_t run = process->file, line;
    double count = (double)exit_row->count, variance = 0;
    if (!process->exact && exit_row->records > 0) {
        double weight = (double)exit_row->weighted / (double)exit_row->records;
        variance = (double)exit_row->records * weight * (weight - 1);
        if (weight > 1 && weight > diff->runs[run].estimate) diff->runs[run].estimate = weight;
    }
    uint32_t reason = exit_row->reason;
    uint32_t method = stable_method(diff, exit_row->location, &line);
    int64_t index; /* a change of the code above moves it */
    struct fxt_string name = insn_without_index(pool_string(diff->report->pool, exit_row->insn), &index);
    uint32_t insn = index == NO_INSN_INDEX ? exit_row->insn : pool_intern(diff->report->pool, name.ptr, name.len);
    const uint32_t keys[][4] = {{0}, {reason}, {0, method}, {reason, method, insn, line}};
    struct diff_table *counts[] = {&all->counts, &diff->reasons, &diff->methods, &diff->sites};
    struct diff_table *lost[] = {&all->lost, &diff->lost_reasons, &diff->lost_methods, &diff->lost_sites};
    double lost_ns = (double)exit_row->lost_ns, lost_variance = process->exact ? 0 : exit_row->lost_variance;
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
        diff_table_add(diff, counts[i], keys[i], run, count, variance);
        if (diff->timed && lost_ns > 0) diff_table_add(diff, lost[i], keys[i], run, lost_ns, lost_variance);
    }
    if (process->exact || exit_row->lost.count == 0) return;
    all->lost_variance[run] += exit_row->lost_variance;
    all->lost_events[run] += (double)exit_row->lost.count;
}

/* Whether each run has the stream `states`. */
static bool
all_timed(const struct diff *diff)
{
    uint32_t timed = 0;
    bool *seen = xcalloc(diff->run_count, sizeof *seen);
    for (uint32_t i = 0; i < diff->report->processes.count; i++) {
        const struct report_process *process = report_process(diff->report, i);
        if (!process->timed || seen[process->file]) continue;
        seen[process->file] = true;
        timed++;
    }
    free(seen);
    return timed == diff->run_count && !diff->fallbacks;
}

/* Finds the sampling rate of runs whose counts are estimates. */
static void
find_rates(struct diff *diff)
{
    const struct report *report = diff->report;
    for (uint32_t i = 0; i < report->setting_count; i++) {
        const struct report_setting *setting = &report->settings[i];
        const struct report_process *process = report_process(report, setting->process);
        if (process->exact || setting->name != (uint32_t)(diff->fallbacks ? STRING_FALLBACK_RATE : STRING_EXIT_RATE))
            continue;
        double rate = strtod(pool_string(report->pool, setting->value).ptr, NULL);
        if (rate > 1) diff->runs[process->file].estimate = rate;
    }
}

/* --- sites that moved ---------------------------------------------------------------------------------- */

static int
by_key(const void *left, const void *right, void *rows)
{
    const struct diff_row *a = (const struct diff_row *)rows + *(const uint32_t *)left;
    const struct diff_row *b = (const struct diff_row *)rows + *(const uint32_t *)right;
    return memcmp(a, b, offsetof(struct diff_row, line)) != 0 ? memcmp(a, b, offsetof(struct diff_row, line))
                                                              : (a->line > b->line) - (a->line < b->line);
}

/* By row: whether a run of the side has it. */
static bool *
rows_of_side(const struct diff *diff, const struct diff_table *table, unsigned side)
{
    bool *has = xcalloc(table->rows.count + 1, sizeof *has);
    for (uint32_t i = 0; i < table->cells.count; i++) {
        const struct diff_cell *cell = row_table_at(&table->cells, i);
        has[cell->row] |= diff->runs[cell->run].side == side && cell->count > 0;
    }
    return has;
}

/* Moves what the second side has of a row to another one; moved: by row. */
static void
move_second_side(const struct diff *diff, struct diff_table *table, const uint32_t *moved)
{
    struct diff_row *rows = table->rows.rows;
    for (uint32_t i = 0; i < table->rows.count; i++) {
        if (moved[i] != i) rows[moved[i]].line_after = rows[i].line;
    }
    for (uint32_t i = 0; i < table->cells.count; i++) {
        struct diff_cell *cell = row_table_at(&table->cells, i);
        if (diff->runs[cell->run].side == 1) cell->row = moved[cell->row];
    }
}

/* Lines move when a file is edited. If a method has equally many lines with the same instruction
 * and reason on both sides, they are matched in order. */
static void
match_moved_lines(struct diff *diff, struct diff_table *table)
{
    uint32_t count = table->rows.count;
    struct diff_row *rows = table->rows.rows;
    uint32_t *order = xcalloc(count + 1, sizeof *order), *before = xcalloc(count + 1, sizeof *before);
    uint32_t *after = xcalloc(count + 1, sizeof *after), *moved = xcalloc(count + 1, sizeof *moved);
    bool *has_before = rows_of_side(diff, table, 0), *has_after = rows_of_side(diff, table, 1);
    for (uint32_t i = 0; i < count; i++) {
        order[i] = moved[i] = i;
        rows[i].line_after = rows[i].line;
    }
    qsort_r(order, count, sizeof *order, by_key, rows);
    for (uint32_t at = 0, end; at < count; at = end) {
        uint32_t befores = 0, afters = 0;
        for (end = at; end < count && memcmp(&rows[order[at]], &rows[order[end]], offsetof(struct diff_row, line)) == 0;
             end++) {
            if (has_before[order[end]]) before[befores++] = order[end];
            if (has_after[order[end]]) after[afters++] = order[end];
        }
        for (uint32_t i = 0; befores == afters && i < afters; i++) moved[after[i]] = before[i];
    }
    move_second_side(diff, table, moved);
    free(order);
    free(before);
    free(after);
    free(moved);
    free(has_before);
    free(has_after);
}

/* --- comparing -------------------------------------------------------------------------------------------- */

/* What was never sampled may still have happened: the margin allows one event more. */
static double
variance_of(const struct diff_table *table, uint32_t run, double variance)
{
    return table->unseen != NULL && table->unseen[run] > 0 ? variance + table->unseen[run] : 0;
}

/* Runs that lack a row have 0 of it, with a margin. So that a row takes as long as it has cells: */
struct absence {
    double *margins;         /* by run */
    double variances[SIDES]; /* sums, in the unit */
    uint32_t *order;         /* runs of the first side, and then of the second: those with the largest margins first */
    uint32_t *present;       /* by run: number + 1 of the last row that it had */
};

static int
by_margin(const void *left, const void *right, void *margins)
{
    double a = ((const double *)margins)[*(const uint32_t *)left];
    double b = ((const double *)margins)[*(const uint32_t *)right];
    return (a < b) - (a > b);
}

static struct absence
absence_of(const struct diff *diff, const struct diff_table *table)
{
    struct absence absence = {.margins = xcalloc(diff->run_count, sizeof *absence.margins),
                              .order = xcalloc(diff->run_count, sizeof *absence.order),
                              .present = xcalloc(diff->run_count, sizeof *absence.present)};
    for (uint32_t run = 0; run < diff->run_count; run++) {
        double scale = diff->runs[run].scale, variance = variance_of(table, run, 0);
        absence.margins[run] = 2 * sqrt(variance) * scale;
        absence.variances[diff->runs[run].side] += variance * scale * scale;
        absence.order[run] = run;
    }
    uint32_t first = diff->side_runs[0];
    qsort_r(absence.order, first, sizeof *absence.order, by_margin, absence.margins);
    qsort_r(absence.order + first, diff->run_count - first, sizeof *absence.order, by_margin, absence.margins);
    return absence;
}

static void
absence_free(struct absence *absence)
{
    free(absence->margins);
    free(absence->order);
    free(absence->present);
}

/* A row while it is measured: its cells, in the order of the runs. */
struct measured {
    struct diff_row *row;
    uint32_t number;
    const struct diff_cell *cells;
    uint32_t count;
    uint32_t present[SIDES]; /* runs */
};

/* Two standard errors around the mean of each side: of the spread between its runs, and of their margins. */
static void
measure_means(const struct diff *diff, const struct diff_table *table, const struct absence *absence,
              const struct measured *measured)
{
    double squares[SIDES] = {0}, margins[SIDES] = {0}, means[SIDES], absent[SIDES];
    for (unsigned side = 0; side < SIDES; side++) {
        means[side] = measured->row->counts[side].value / (diff->unit == IN_ALL ? diff->side_runs[side] : 1);
        absent[side] = absence->variances[side];
    }
    for (uint32_t i = 0; i < measured->count; i++) {
        const struct diff_cell *cell = &measured->cells[i];
        const struct diff_run *its = &diff->runs[cell->run];
        double off = cell->count * its->scale - means[its->side], scale = its->scale * its->scale;
        squares[its->side] += off * off;
        margins[its->side] += variance_of(table, cell->run, cell->variance) * scale;
        absent[its->side] -= variance_of(table, cell->run, 0) * scale;
    }
    for (unsigned side = 0; side < SIDES; side++) {
        struct diff_count *count = &measured->row->counts[side];
        double n = diff->side_runs[side], factor = diff->unit == IN_ALL ? n : 1;
        uint32_t lacking = diff->side_runs[side] - measured->present[side];
        if (n < 2) continue; /* one run has no spread: its margin stays */
        squares[side] += lacking * means[side] * means[side];
        if (lacking > 0 && absent[side] > 0) margins[side] += absent[side];
        double error = sqrt(squares[side] / (n - 1) / n + margins[side] / (n * n)) * factor;
        count->low = count->value - 2 * error;
        count->high = count->value + 2 * error;
    }
}

static void
widen(struct diff_count *count, double low, double high, bool *begun)
{
    if (!*begun || low < count->low) count->low = low;
    if (!*begun || high > count->high) count->high = high;
    *begun = true;
}

static void
measure(const struct diff *diff, const struct diff_table *table, struct absence *absence, struct measured *measured)
{
    struct diff_row *row = measured->row;
    bool begun[SIDES] = {false};
    for (uint32_t i = 0; i < measured->count; i++) {
        const struct diff_cell *cell = &measured->cells[i];
        const struct diff_run *its = &diff->runs[cell->run];
        double value = cell->count * its->scale;
        double margin = 2 * sqrt(variance_of(table, cell->run, cell->variance)) * its->scale;
        row->counts[its->side].value += value;
        row->per_run[its->side] += cell->count / diff->side_runs[its->side];
        if (its->seconds > 0) row->per_second[its->side] += cell->count / its->seconds / diff->side_runs[its->side];
        widen(&row->counts[its->side], value - margin, value + margin, &begun[its->side]);
        absence->present[cell->run] = measured->number + 1;
        measured->present[its->side]++;
    }
    for (unsigned side = 0; side < SIDES; side++) {
        const uint32_t *runs = absence->order + (side == 0 ? 0 : diff->side_runs[0]);
        if (measured->present[side] == diff->side_runs[side]) continue;
        while (absence->present[*runs] == measured->number + 1) runs++;
        widen(&row->counts[side], 0 - absence->margins[*runs], absence->margins[*runs], &begun[side]);
    }
    for (unsigned side = 0; side < SIDES && diff->unit != IN_ALL; side++)
        row->counts[side].value /= diff->side_runs[side];
    if (diff->by_mean) measure_means(diff, table, absence, measured);
}

static enum verdict
verdict_of(const struct diff_row *row)
{
    const struct diff_count *before = &row->counts[0], *after = &row->counts[1];
    if (after->low > before->high) return before->value == 0 ? NEW : GREW;
    if (after->high < before->low) return after->value == 0 ? GONE : SHRANK;
    bool same = before->value == after->value && before->low == after->low && before->high == after->high;
    return same ? UNCHANGED : WITHIN_SPREAD;
}

struct order {
    const struct diff_row *rows;
    const struct pool *pool;
};

static int
by_difference(const void *left, const void *right, void *context)
{
    const struct order *order = context;
    const struct diff_row *a = order->rows + *(const uint32_t *)left, *b = order->rows + *(const uint32_t *)right;
    double a_size = fabs(diff_delta(a)), b_size = fabs(diff_delta(b));
    if (a_size != b_size) return a_size > b_size ? -1 : 1;
    const uint32_t a_texts[] = {a->method, a->reason, a->insn}, b_texts[] = {b->method, b->reason, b->insn};
    for (unsigned i = 0; i < 3; i++) {
        int texts = fxt_string_compare(pool_string(order->pool, a_texts[i]), pool_string(order->pool, b_texts[i]));
        if (texts != 0) return texts;
    }
    return (a->line > b->line) - (a->line < b->line);
}

/* By row and run. */
static int
compare_cells(const void *left, const void *right, void *context)
{
    const struct diff_cell *a = left, *b = right;
    (void)context;
    return a->row != b->row ? (a->row > b->row) - (a->row < b->row) : (a->run > b->run) - (a->run < b->run);
}

void
diff_table_compare(const struct diff *diff, struct diff_table *table)
{
    struct diff_row *rows = table->rows.rows;
    struct absence absence = absence_of(diff, table);
    row_table_sort(&table->cells, compare_cells, NULL);
    const struct diff_cell *cells = table->cells.rows;
    table->order = xcalloc(table->rows.count + 1, sizeof *table->order);
    for (uint32_t i = 0, at = 0, end; i < table->rows.count; i++, at = end) {
        for (end = at; end < table->cells.count && cells[end].row == i;) end++;
        struct measured measured = {.row = &rows[i], .number = i, .cells = cells + at, .count = end - at};
        measure(diff, table, &absence, &measured);
        rows[i].verdict = verdict_of(&rows[i]);
        if (rows[i].verdict == WITHIN_SPREAD) table->within++;
        else if (rows[i].verdict != UNCHANGED) table->order[table->changed++] = i;
    }
    absence_free(&absence);
    struct order order = {rows, diff->report->pool};
    qsort_r(table->order, table->changed, sizeof *table->order, by_difference, &order);
}

void
diff_table_init(struct diff_table *table)
{
    row_table_init(&table->rows, sizeof(struct diff_row), 4, EXIT_ROWS_MAX);
    row_table_init(&table->cells, sizeof(struct diff_cell), DIFF_CELL_KEYS, UINT32_MAX);
}

void
diff_table_free(struct diff_table *table)
{
    row_table_free(&table->rows);
    row_table_free(&table->cells);
    free(table->order);
}

void
diff_init(struct diff *diff, struct report *report, uint32_t first_side, const struct diff_settings *settings)
{
    *diff = (struct diff){.report = report, .unit = settings->unit, .fallbacks = settings->fallbacks,
                          .by_mean = settings->by_mean, .map = settings->map, .run_count = report->file_count};
    memcpy(diff->side_names, settings->side_names, sizeof diff->side_names);
    diff->side_runs[0] = first_side;
    diff->side_runs[1] = report->file_count - first_side;
    diff->runs = xcalloc(diff->run_count, sizeof *diff->runs);
    diff->unseen = xcalloc(diff->run_count, sizeof *diff->unseen);
    for (uint32_t i = 0; i < diff->run_count; i++) {
        const struct report_file *file = &report->files[i];
        double seconds = file->last_ns > file->first_ns ? (double)(file->last_ns - file->first_ns) / 1e9 : 0;
        diff->runs[i].side = i >= first_side;
        diff->runs[i].seconds = seconds;
        diff->runs[i].scale = diff->unit != PER_SECOND ? 1 : seconds > 0 ? 1 / seconds : 0;
    }
    find_rates(diff);
    diff->timed = all_timed(diff);
    diff->unseen_lost = xcalloc(diff->run_count, sizeof *diff->unseen_lost);
    struct all_exits all = {.lost_variance = xcalloc(diff->run_count, sizeof(double)),
                            .lost_events = xcalloc(diff->run_count, sizeof(double))};
    struct diff_table *counts[] = {&all.counts, &diff->reasons, &diff->methods, &diff->sites};
    struct diff_table *lost[] = {&all.lost, &diff->lost_reasons, &diff->lost_methods, &diff->lost_sites};
    enum { TABLES = sizeof counts / sizeof *counts };
    for (unsigned i = 0; i < TABLES; i++) {
        diff_table_init(counts[i]);
        diff_table_init(lost[i]);
        counts[i]->unseen = diff->unseen;
        lost[i]->unseen = diff->unseen_lost;
    }
    for (uint32_t i = 0; i < report->exits.rows.count; i++) {
        const struct exit_row *exit_row = row_table_at(&report->exits.rows, i);
        if ((exit_row->category == STRING_FALLBACK) == diff->fallbacks && exit_row->count > 0)
            add_exits(diff, &all, exit_row);
    }
    match_moved_lines(diff, &diff->sites);
    match_moved_lines(diff, &diff->lost_sites);
    for (uint32_t i = 0; i < diff->run_count; i++) {
        double rate = diff->runs[i].estimate;
        diff->unseen[i] = rate > 0 ? rate * (rate - 1) : 0;
        if (all.lost_events[i] > 0) diff->unseen_lost[i] = all.lost_variance[i] / all.lost_events[i];
    }
    for (unsigned i = 0; i < TABLES; i++) {
        diff_table_compare(diff, counts[i]);
        diff_table_compare(diff, lost[i]);
    }
    if (all.counts.rows.count > 0) diff->total = *(struct diff_row *)all.counts.rows.rows;
    if (all.lost.rows.count > 0) diff->lost_total = *(struct diff_row *)all.lost.rows.rows;
    diff_table_free(&all.counts);
    diff_table_free(&all.lost);
    free(all.lost_variance);
    free(all.lost_events);
}

void
diff_free(struct diff *diff)
{
    diff_table_free(&diff->reasons);
    diff_table_free(&diff->methods);
    diff_table_free(&diff->sites);
    diff_table_free(&diff->lost_reasons);
    diff_table_free(&diff->lost_methods);
    diff_table_free(&diff->lost_sites);
    free(diff->unseen_lost);
    free(diff->runs);
    free(diff->unseen);
    map_free(&diff->stable_texts);
}
