/* diff_stream_tables.c - the differences between what threads, the garbage collector and allocations did on
 * two sides. See diff_tables.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "render/diff_tables.h"

enum { NAMES_MOST = 3 };

/* What a table shows. */
static const struct kind {
    const char *id, *title;
    const char *counts[SIDES]; /* titles */
    const char *names[NAMES_MOST];
    const char *stream;
} kinds[DIFF_STREAMS] = {
    [DIFF_EXECUTION] = {"states", "Where the time went", {NULL, NULL}, {"state", NULL, NULL}, "states"},
    [DIFF_STATES] = {"thread_states", "Threads by state", {NULL, NULL}, {"thread", "state", NULL}, "threads"},
    [DIFF_BLOCKED] = {"blocked", "Blocked in", {"n A", "n B"}, {"name", "class", NULL}, "threads"},
    [DIFF_CPUS] = {"cpu", "Threads and CPUs", {NULL, NULL}, {"thread", "state", NULL}, "sched"},
    [DIFF_SYSCALLS] = {"syscalls", "System calls", {"calls A", "calls B"}, {"syscall", NULL, NULL}, "syscalls"},
    [DIFF_CALLS] = {"calls", "Own time by method", {"calls A", "calls B"}, {"method", NULL, NULL}, "calls"},
    [DIFF_SAMPLES] = {"samples", "Sampled time by method and state", {NULL, NULL}, {"method", "state", NULL},
                      "samples"},
    [DIFF_GC] = {"gc", "Garbage collections", {"GCs A", "GCs B"}, {"kind", "reason", "major_by"}, "gc"},
    [DIFF_CLASSES] = {"allocations", "Allocated bytes by class", {NULL, NULL}, {"class", NULL, NULL}, "allocations"},
};

/* Titles of names whose id is not one for people. */
static const char *
title_of(const char *id)
{
    if (strcmp(id, "name") == 0) return "blocked in";
    if (strcmp(id, "syscall") == 0) return "system call";
    return strcmp(id, "major_by") == 0 ? "major by" : id;
}

enum {
    CHANGE, BEFORE, AFTER, DELTA, OF_ALL, BEFORE_TOO, AFTER_TOO, BEFORE_LOW, BEFORE_HIGH, AFTER_LOW, AFTER_HIGH,
    BEFORE_COUNT, AFTER_COUNT, NAMES, CELLS = NAMES + NAMES_MOST
};

/* In the unit that --normalize did not choose: people see both if the runs took different times. */
static const double *
in_other_unit(const struct diff *diff, const struct diff_row *row)
{
    return diff->unit == PER_SECOND ? row->per_run : row->per_second;
}

/* --- how long the runs took ----------------------------------------------------------------------- */

static double
mean_seconds(const struct diff *diff, unsigned side)
{
    double sum = 0;
    for (uint32_t i = 0; i < diff->run_count; i++) sum += diff->runs[i].side == side ? diff->runs[i].seconds : 0;
    return sum / diff->side_runs[side];
}

/* Whether the sides took times that differ by more than a twentieth. */
static bool
lengths_differ(const struct diff *diff)
{
    double a = mean_seconds(diff, 0), b = mean_seconds(diff, 1);
    return fmax(a, b) > 1.05 * fmin(a, b);
}

static void
add_lengths(const struct diff *diff, struct document *document)
{
    char before[NUMBER_TEXT], after[NUMBER_TEXT];
    double seconds[SIDES] = {mean_seconds(diff, 0), mean_seconds(diff, 1)};
    static const struct column columns[] = {{"a_ns", NULL, COLUMN_DURATION}, {"b_ns", NULL, COLUMN_DURATION}};
    struct table *table = document_table(document, "time_spans", text_of("Time spans"), COLUMNS(columns));
    table->data = true;
    struct cell *cells = table_row(table);
    for (unsigned side = 0; side < SIDES; side++) cells[side] = cell_number((uint64_t)(seconds[side] * 1e9 + 0.5));
    document_line(document, "time span",
                  document_text(document, "%s -> %s%s%s%s", duration_text(before, (uint64_t)(seconds[0] * 1e9 + 0.5)),
                                duration_text(after, (uint64_t)(seconds[1] * 1e9 + 0.5)),
                                lengths_differ(diff) ? "; A and B below are " : "",
                                lengths_differ(diff) ? diff_unit_text(diff->unit) : "",
                                !lengths_differ(diff)          ? ""
                                : diff->unit == PER_SECOND ? ", A/run and B/run of a whole run"
                                                           : ", A/s and B/s per second"));
}

/* Exits are counted whether or not their events were lost; what other streams record is not. */
static void
add_losses(const struct diff *diff, struct document *document)
{
    static const char *const sides[SIDES] = {"A", "B"};
    const struct report *report = diff->report;
    uint64_t lost[SIDES] = {0};
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        lost[diff->runs[process->file].side] += process->lost;
    }
    for (unsigned side = 0; side < SIDES; side++) {
        char number[NUMBER_TEXT];
        if (lost[side] == 0) continue;
        document_line(document, "lost",
                      document_text(document, "%s event%s of %s: what follows counts too little there",
                                    with_commas(number, lost[side]), lost[side] == 1 ? "" : "s", sides[side]));
    }
}

/* --- cells ---------------------------------------------------------------------------------------- */

static struct cell
cell_of(bool bytes, double value)
{
    return bytes ? cell_amount(round(value)) : cell_number((uint64_t)(value + 0.5));
}

static struct cell
delta_of(bool bytes, double value)
{
    return bytes ? cell_amount(round(value)) : cell_time((int64_t)llround(value));
}

static void
fill_row(const struct diff *diff, const struct diff_stream_table *from, const struct diff_row *row,
         const struct diff_row *count, struct cell *cells)
{
    const double *too = in_other_unit(diff, row);
    const struct diff_count *a = &row->counts[0], *b = &row->counts[1];
    cells[CHANGE] = diff_verdict_cell(row);
    cells[BEFORE] = cell_of(from->bytes, a->value);
    cells[AFTER] = cell_of(from->bytes, b->value);
    cells[DELTA] = delta_of(from->bytes, diff_delta(row));
    cells[OF_ALL] = cell_change(diff_delta(row) / from->all.counts[0].value);
    cells[BEFORE_TOO] = cell_of(from->bytes, too[0]);
    cells[AFTER_TOO] = cell_of(from->bytes, too[1]);
    cells[BEFORE_LOW] = delta_of(from->bytes, a->low);
    cells[BEFORE_HIGH] = delta_of(from->bytes, a->high);
    cells[AFTER_LOW] = delta_of(from->bytes, b->low);
    cells[AFTER_HIGH] = delta_of(from->bytes, b->high);
    for (unsigned side = 0; side < SIDES && count != NULL; side++)
        cells[BEFORE_COUNT + side] = cell_amount(count->counts[side].value);
}

static void
fill_columns(const struct diff *diff, const struct diff_stream_table *from, const struct kind *kind,
             struct column *columns, unsigned *count_out)
{
    const enum column_kind value = from->bytes ? COLUMN_AMOUNT : COLUMN_DURATION;
    const enum column_kind delta = from->bytes ? COLUMN_DELTA : COLUMN_TIME_DELTA;
    const enum column_kind spread = from->bytes ? COLUMN_AMOUNT : COLUMN_TIME_DELTA;
    const bool differ = lengths_differ(diff), seconds = diff->unit == PER_SECOND;
    columns[CHANGE] = (struct column){"change", "", COLUMN_TEXT};
    columns[BEFORE] = (struct column){"a", "A", value};
    columns[AFTER] = (struct column){"b", "B", value};
    const bool wide = differ && kind->counts[0] != NULL; /* people need the space for names */
    columns[DELTA] = (struct column){"delta", wide ? NULL : "delta", delta};
    columns[OF_ALL] = (struct column){"of_a", "of all A", COLUMN_CHANGE};
    columns[BEFORE_TOO] =
        (struct column){seconds ? "a_per_run" : "a_per_second", !differ ? NULL : seconds ? "A/run" : "A/s", value};
    columns[AFTER_TOO] =
        (struct column){seconds ? "b_per_run" : "b_per_second", !differ ? NULL : seconds ? "B/run" : "B/s", value};
    columns[BEFORE_LOW] = (struct column){"a_low", NULL, spread};
    columns[BEFORE_HIGH] = (struct column){"a_high", NULL, spread};
    columns[AFTER_LOW] = (struct column){"b_low", NULL, spread};
    columns[AFTER_HIGH] = (struct column){"b_high", NULL, spread};
    columns[BEFORE_COUNT] = (struct column){"a_count", kind->counts[0], COLUMN_AMOUNT};
    columns[AFTER_COUNT] = (struct column){"b_count", kind->counts[1], COLUMN_AMOUNT};
    *count_out = NAMES;
    for (unsigned i = 0; i < NAMES_MOST && kind->names[i] != NULL; i++)
        columns[(*count_out)++] = (struct column){kind->names[i], title_of(kind->names[i]), COLUMN_TEXT};
}

/* Hides a column of names that no row has, such as the class of what blocked. */
static void
hide_empty_names(const struct diff_table *table, struct column *columns, unsigned count)
{
    bool any[NAMES_MOST] = {true};
    for (uint32_t i = 0; i < table->changed; i++) {
        const struct diff_row *row = row_table_at(&table->rows, table->order[i]);
        any[1] |= row->method != STRING_NONE;
        any[2] |= row->insn != STRING_NONE;
    }
    for (unsigned i = NAMES; i < count; i++) {
        if (!any[i - NAMES]) columns[i].title = NULL;
    }
}

static void
add_sum(struct diff_row *sum, const struct diff_row *row)
{
    if (row == NULL) return;
    for (unsigned side = 0; side < SIDES; side++) {
        sum->counts[side].value += row->counts[side].value;
        sum->per_run[side] += row->per_run[side];
        sum->per_second[side] += row->per_second[side];
    }
}

static bool
names_of(const struct kind *kind, unsigned name, const char *id)
{
    return strcmp(kind->names[name], id) == 0;
}

static void
add_table(struct diff_streams *streams, enum diff_stream stream, const struct diff *diff, struct document *document,
          uint64_t top)
{
    struct diff_stream_table *from = &streams->tables[stream];
    const struct kind *kind = &kinds[stream];
    if (!from->recorded || from->sums.rows.count == 0) return;
    struct column columns[CELLS];
    unsigned column_count;
    fill_columns(diff, from, kind, columns, &column_count);
    hide_empty_names(&from->sums, columns, column_count);
    char changed[NUMBER_TEXT], within[NUMBER_TEXT];
    struct fxt_string title =
        document_text(document, "%s, %s: %s changed%s%s%s", kind->title, diff_unit_text(diff->unit),
                      with_commas(changed, from->sums.changed), from->sums.within > 0 ? ", " : "",
                      from->sums.within > 0 ? with_commas(within, from->sums.within) : "",
                      from->sums.within > 0 ? " within the spread of the runs" : "");
    struct table *table = document_table(document, kind->id, title, columns, column_count);
    struct diff_row rest = {0}, rest_count = {0};
    for (uint32_t i = 0; i < from->sums.changed; i++) {
        const struct diff_row *row = row_table_at(&from->sums.rows, from->sums.order[i]);
        const struct diff_row *count = from->counted ? diff_stream_count(from, row) : NULL;
        if (i >= top) {
            table->more_rows++;
            add_sum(&rest, row);
            add_sum(&rest_count, count);
            continue;
        }
        struct cell *cells = table_row(table);
        fill_row(diff, from, row, count, cells);
        const uint32_t names[NAMES_MOST] = {row->reason, row->method, row->insn};
        for (unsigned n = 0; NAMES + n < column_count; n++) {
            if (names[n] != STRING_NONE) cells[NAMES + n] = cell_text(pool_string(diff->report->pool, names[n]));
            else if (n == 0 || names_of(kind, n, "reason"))
                cells[NAMES + n] = cell_text(text_of(stream == DIFF_STATES || stream == DIFF_CPUS ? "(unnamed)" : "(unknown)"));
        }
    }
    if (table->more_rows == 0) return;
    struct cell *cells = table_row(table);
    fill_row(diff, from, &rest, from->counted ? &rest_count : NULL, cells);
    cells[CHANGE].present = false;
    for (unsigned i = BEFORE_LOW; i <= AFTER_HIGH; i++) cells[i].present = false;
}

/* --- sums ------------------------------------------------------------------------------------------- */

static void
add_sums(const struct diff_streams *streams, const struct diff *diff, struct document *document)
{
    static const struct column columns[] = {
        {"sum", NULL, COLUMN_TEXT},     {"unit", NULL, COLUMN_TEXT},      {"change", NULL, COLUMN_TEXT},
        {"a", NULL, COLUMN_AMOUNT},     {"b", NULL, COLUMN_AMOUNT},       {"delta", NULL, COLUMN_DELTA},
        {"a_low", NULL, COLUMN_AMOUNT}, {"a_high", NULL, COLUMN_AMOUNT},  {"b_low", NULL, COLUMN_AMOUNT},
        {"b_high", NULL, COLUMN_AMOUNT},
    };
    struct table *table = document_table(document, "sums", text_of("Sums"), COLUMNS(columns));
    table->data = true;
    for (unsigned i = 0; i < DIFF_SUMS; i++) {
        const struct diff_row *sum = &streams->sums[i];
        const struct diff_count *a = &sum->counts[0], *b = &sum->counts[1];
        const double *too = in_other_unit(diff, sum);
        if (!streams->summed[i]) continue;
        struct cell *cells = table_row(table);
        cells[0] = cell_text(text_of(diff_sum_names[i]));
        cells[1] = cell_text(text_of(diff_sum_unit(i)));
        cells[2] = diff_verdict_cell(sum);
        const double numbers[] = {a->value, b->value, diff_delta(sum), a->low, a->high, b->low, b->high};
        for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++) cells[3 + n] = cell_amount(numbers[n]);

        if ((a->value == 0 && b->value == 0) || i == DIFF_LOST) continue; /* the head begins with lost time */
        char before[NUMBER_TEXT], after[NUMBER_TEXT], change[NUMBER_TEXT] = "", other[2 * NUMBER_TEXT + 16] = "";
        if (a->value > 0) snprintf(change, sizeof change, ", %+.1f%%", 100 * diff_delta(sum) / a->value);
        if (lengths_differ(diff)) {
            snprintf(other, sizeof other, "; %s -> %s %s", diff_sum_text(before, i, too[0]),
                     diff_sum_text(after, i, too[1]), diff_unit_text(diff->unit == PER_SECOND ? PER_RUN : PER_SECOND));
        }
        document_line(document, diff_sum_names[i],
                      document_text(document, "%s -> %s: %s%s%s", diff_sum_text(before, i, a->value),
                                    diff_sum_text(after, i, b->value), diff_verdict_text(sum->verdict), change,
                                    other));
    }
}

/* --- all ---------------------------------------------------------------------------------------------- */

/* Tables of exits, hidden from people if there are no exits but other streams. */
static void
hide_exits(const struct diff *diff, struct document *document)
{
    if (diff->total.counts[0].value + diff->total.counts[1].value > 0) return;
    for (uint32_t i = 0; i < document->table_count; i++) document->tables[i]->data = true;
}

void
diff_streams_document(struct diff_streams *streams, const struct diff *diff, struct document *document, uint64_t top)
{
    bool any = false, lacking = false;
    for (unsigned i = 0; i < DIFF_STREAMS; i++) {
        const struct diff_stream_table *table = &streams->tables[i];
        any |= table->recorded;
        if (table->lacks == 0 || i == DIFF_BLOCKED) continue; /* the same stream as the states */
        document_line(document, lacking ? "" : "not compared",
                      document_text(document, "%s: %" PRIu32 " of %" PRIu32 " files do%s not have this stream",
                                    kinds[i].stream, table->lacks, diff->run_count, table->lacks == 1 ? "es" : ""));
        lacking = true;
    }
    if (!any) return;
    document->title = text_of("Runs compared");
    hide_exits(diff, document);
    add_lengths(diff, document);
    add_losses(diff, document);
    add_sums(streams, diff, document);
    for (unsigned i = 0; i < DIFF_STREAMS; i++) add_table(streams, i, diff, document, top);
}
