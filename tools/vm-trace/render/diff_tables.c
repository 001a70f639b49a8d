/* diff_tables.c - see diff_tables.h */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "render/diff_tables.h"

static const char *const verdict_names[] = {
    [UNCHANGED] = "unchanged", [WITHIN_SPREAD] = "within spread", [NEW] = "new", [GONE] = "gone", [GREW] = "grew",
    [SHRANK] = "shrank"};
static const char *const unit_names[] = {[PER_RUN] = "per run", [PER_SECOND] = "per second", [IN_ALL] = "in all files"};

const char *
diff_verdict_text(enum verdict verdict)
{
    return verdict_names[verdict];
}

const char *
diff_unit_text(enum diff_unit unit)
{
    return unit_names[unit];
}

static bool
worse_by(const struct diff_row *row)
{
    return row->verdict == NEW || row->verdict == GREW;
}

struct cell
diff_verdict_cell(const struct diff_row *row)
{
    struct cell cell = cell_text(text_of(verdict_names[row->verdict]));
    if (diff_called(row->verdict)) cell.style = worse_by(row) ? STYLE_WORSE : STYLE_BETTER;
    return cell;
}

/* "A", or "3 runs: A, B, C". */
static struct fxt_string
file_names(const struct diff *diff, struct document *document, unsigned side)
{
    enum { SHOWN = 3 };
    const struct report_file *files = diff->report->files + (side == 0 ? 0 : diff->side_runs[0]);
    uint32_t count = diff->side_runs[side];
    if (diff->side_names[side] != NULL)
        return document_text(document, "%s: %" PRIu32 " process%s", diff->side_names[side], count,
                             count == 1 ? "" : "es");
    if (count == 1) return text_of(files[0].name);
    if (count == 2) return document_text(document, "2 runs: %s, %s", files[0].name, files[1].name);
    if (count == SHOWN)
        return document_text(document, "3 runs: %s, %s, %s", files[0].name, files[1].name, files[2].name);
    return document_text(document, "%" PRIu32 " runs: %s, %s, ..., %s", count, files[0].name, files[1].name,
                         files[count - 1].name);
}

/* The unit of the counts, and whether all are exact. */
static struct fxt_string
how_counted(const struct diff *diff, struct document *document)
{
    uint32_t estimated = 0;
    for (uint32_t i = 0; i < diff->run_count; i++) estimated += diff->runs[i].estimate > 0;
    const char *what = diff->fallbacks ? "fallbacks" : "exits";
    const char *mean =
        diff->by_mean ? ", mean of the processes; changes exceed two standard errors of both"
        : diff->unit != IN_ALL && (diff->side_runs[0] > 1 || diff->side_runs[1] > 1) ? ", mean of the runs" : "";
    if (estimated == 0) return document_text(document, "%s %s%s; exact", what, unit_names[diff->unit], mean);
    return document_text(document, "%s %s%s; estimated, with a margin, in %" PRIu32 " of %" PRIu32 " files", what,
                         unit_names[diff->unit], mean, estimated, diff->run_count);
}

static struct fxt_string
total_text(const struct diff *diff, struct document *document)
{
    char before[NUMBER_TEXT], after[NUMBER_TEXT], delta[NUMBER_TEXT], change[NUMBER_TEXT] = "";
    const struct diff_row *total = &diff->total;
    if (total->counts[0].value > 0) {
        snprintf(change, sizeof change, ", %+.1f%%", 100 * diff_delta(total) / total->counts[0].value);
    }
    return document_text(document, "%s -> %s: %s (%s%s)", amount_text(before, total->counts[0].value),
                         amount_text(after, total->counts[1].value), verdict_names[total->verdict],
                         delta_text(delta, diff_delta(total)), change);
}

/* The time that exits lost, if all runs know it. */
static struct fxt_string
lost_text(const struct diff *diff, struct document *document)
{
    char before[NUMBER_TEXT], after[NUMBER_TEXT], change[NUMBER_TEXT] = "";
    const struct diff_row *lost = &diff->lost_total;
    const double a = lost->counts[0].value, b = lost->counts[1].value;
    if (a > 0) snprintf(change, sizeof change, ", %+.1f%%", 100 * diff_delta(lost) / a);
    return document_text(document, "%s -> %s: %s%s", duration_text(before, (uint64_t)(a + 0.5)),
                         duration_text(after, (uint64_t)(b + 0.5)), verdict_names[lost->verdict], change);
}

/* The first columns of all tables. Programs get the spread, too. */
enum { CHANGE, BEFORE, AFTER, DELTA, OF_ALL, BEFORE_LOW, BEFORE_HIGH, AFTER_LOW, AFTER_HIGH, NAMES };

static const struct column all_columns[] = {
    [CHANGE] = {"change", "", COLUMN_TEXT},
    [BEFORE] = {"a", "A", COLUMN_AMOUNT},
    [AFTER] = {"b", "B", COLUMN_AMOUNT},
    [DELTA] = {"delta", "delta", COLUMN_DELTA},
    [OF_ALL] = {"of_a", "of all A", COLUMN_CHANGE},
    [BEFORE_LOW] = {"a_low", NULL, COLUMN_AMOUNT},
    [BEFORE_HIGH] = {"a_high", NULL, COLUMN_AMOUNT},
    [AFTER_LOW] = {"b_low", NULL, COLUMN_AMOUNT},
    [AFTER_HIGH] = {"b_high", NULL, COLUMN_AMOUNT},
};

static struct cell
cell_of(bool ns, double value)
{
    return ns ? cell_number((uint64_t)(value + 0.5)) : cell_amount(value);
}

static struct cell
signed_of(bool ns, double value)
{
    return ns ? cell_time((int64_t)llround(value)) : cell_amount(value);
}

/* `total`: of the table. ns: the values are times. */
static void
fill_row(const struct diff_row *total, const struct diff_row *row, bool ns, struct cell *cells)
{
    cells[CHANGE] = diff_verdict_cell(row);
    cells[BEFORE] = cell_of(ns, row->counts[0].value);
    cells[AFTER] = cell_of(ns, row->counts[1].value);
    cells[DELTA] = signed_of(ns, diff_delta(row));
    cells[OF_ALL] = cell_change(diff_delta(row) / total->counts[0].value);
    cells[BEFORE_LOW] = signed_of(ns, row->counts[0].low);
    cells[BEFORE_HIGH] = signed_of(ns, row->counts[0].high);
    cells[AFTER_LOW] = signed_of(ns, row->counts[1].low);
    cells[AFTER_HIGH] = signed_of(ns, row->counts[1].high);
}

/* The columns of amounts, or those of times. */
static void
fill_columns(struct column columns[NAMES], bool ns)
{
    memcpy(columns, all_columns, sizeof all_columns);
    for (unsigned i = 0; ns && i < NAMES; i++) {
        if (i == BEFORE || i == AFTER) columns[i].kind = COLUMN_DURATION;
        else if (i == DELTA || i >= BEFORE_LOW) columns[i].kind = COLUMN_TIME_DELTA;
    }
}

static struct fxt_string
name_of(const struct diff *diff, uint32_t id)
{
    return id == STRING_NONE ? text_of("(unknown)") : pool_string(diff->report->pool, id);
}

/* The line of an `Owner#method (path)`, or two lines if it moved. */
static struct fxt_string
location_text(const struct diff *diff, struct document *document, const struct diff_row *row)
{
    struct fxt_string method = name_of(diff, row->method);
    if (row->line == 0 || method.ptr[method.len - 1] != ')') return method;
    if (row->line == row->line_after)
        return document_text(document, "%.*s:%" PRIu32 ")", (int)method.len - 1, method.ptr, row->line);
    return document_text(document, "%.*s:%" PRIu32 " -> %" PRIu32 ")", (int)method.len - 1, method.ptr, row->line,
                         row->line_after);
}

enum { NAMES_MOST = 5 };

static void
name_row(const struct diff *diff, struct document *document, const struct diff_table *table, const struct diff_row *row,
         struct cell *names)
{
    if (table == &diff->reasons || table == &diff->lost_reasons) {
        names[0] = cell_text(name_of(diff, row->reason));
    }
    else if (table == &diff->methods || table == &diff->lost_methods) {
        names[0] = cell_text(name_of(diff, row->method));
    }
    else {
        names[0] = cell_text(name_of(diff, row->reason));
        names[1] = cell_text(name_of(diff, row->insn));
        names[2] = cell_text(location_text(diff, document, row));
    }
}

static void
add_table(const struct diff *diff, struct document *document, const struct diff_table *table, const char *id,
          const char *title, const struct column *names, unsigned name_count, uint64_t top)
{
    struct column columns[NAMES + NAMES_MOST];
    bool ns = table == &diff->lost_methods || table == &diff->lost_reasons || table == &diff->lost_sites;
    const struct diff_row *total = ns ? &diff->lost_total : &diff->total;
    fill_columns(columns, ns);
    memcpy(columns + NAMES, names, name_count * sizeof *names);
    char changed[NUMBER_TEXT], within[NUMBER_TEXT];
    struct fxt_string text = document_text(document, "%s: %s changed", title, with_commas(changed, table->changed));
    if (table->within > 0) {
        text = document_text(document, "%s, %s within the spread of the %s", text.ptr,
                             with_commas(within, table->within), diff->by_mean ? "processes" : "runs");
    }
    struct table *shown = document_table(document, id, text, columns, NAMES + name_count);
    struct diff_row rest = {0};
    for (uint32_t i = 0; i < table->changed; i++) {
        const struct diff_row *row = row_table_at(&table->rows, table->order[i]);
        if (i < top) {
            struct cell *cells = table_row(shown);
            fill_row(total, row, ns, cells);
            name_row(diff, document, table, row, cells + NAMES);
            continue;
        }
        shown->more_rows++;
        for (unsigned side = 0; side < SIDES; side++) rest.counts[side].value += row->counts[side].value;
    }
    if (shown->more_rows == 0) return;
    struct cell *cells = table_row(shown);
    fill_row(total, &rest, ns, cells);
    cells[CHANGE].present = false;
    for (unsigned i = BEFORE_LOW; i <= AFTER_HIGH; i++) cells[i].present = false;
}

/* For programs; people read it in the head. */
static void
add_total(const struct diff *diff, struct document *document)
{
    struct table *table = document_table(document, "total", text_of("Total"), all_columns, NAMES);
    table->data = true;
    fill_row(&diff->total, &diff->total, false, table_row(table));
}

/* Folders that are treated as one by default, which people and programs must be able to see. */
static void
add_found_maps(const struct diff *diff, struct document *document)
{
    static const struct column columns[] = {
        {"from", "A", COLUMN_TEXT}, {"to", "B", COLUMN_TEXT}, {"methods", "methods", COLUMN_COUNT}};
    if (diff->map->count == 0 || diff->map->list[0].witnesses == 0) return; /* all are of one kind */
    struct table *table = document_table(document, "found_maps", text_of("Folders treated as one"), COLUMNS(columns));
    table->data = true;
    for (uint32_t i = 0; i < diff->map->count; i++) {
        char number[NUMBER_TEXT];
        struct fxt_string from =
            document_text(document, "%.*s", (int)diff->map->list[i].from_bytes, diff->map->list[i].from);
        struct cell *cells = table_row(table);
        cells[0] = cell_text(from);
        cells[1] = cell_text(text_of(diff->map->list[i].to));
        cells[2] = cell_number(diff->map->list[i].witnesses);
        document_line(
            document, i == 0 ? "treated as one" : "",
            document_text(document, "%s and %s: they share %s methods; --no-map compares the paths as they are",
                          from.ptr, diff->map->list[i].to, with_commas(number, diff->map->list[i].witnesses)));
    }
}

/* What of the runs is compared, if that is not all. */
static void
add_choice(const struct diff *diff, struct document *document)
{
    const char *chosen = reader_parts(diff->report->reader)->chosen;
    if (chosen != NULL) document_line(document, "compared", text_of(chosen));
}

void
diff_document(const struct diff *diff, struct document *document, uint64_t top)
{
    static const struct column method[] = {{"method", "method", COLUMN_TEXT}};
    static const struct column reason[] = {{"reason", "reason", COLUMN_TEXT}};
    static const struct column site[] = {
        {"reason", "reason", COLUMN_TEXT}, {"insn", "instruction", COLUMN_TEXT}, {"place", "place", COLUMN_TEXT}};
    document->title = document_text(document, "%s compared", diff->fallbacks ? "Fallbacks" : "Exits");
    document_line(document, "A", file_names(diff, document, 0));
    document_line(document, "B", file_names(diff, document, 1));
    add_choice(diff, document);
    if (diff->timed) document_line(document, "lost by exits", lost_text(diff, document));
    document_line(document, "counted", how_counted(diff, document));
    document_line(document, "in all", total_text(diff, document));
    add_found_maps(diff, document);
    add_total(diff, document);
    if (diff->timed) {
        add_table(diff, document, &diff->lost_methods, "lost_by_method", "Lost time by method", method, 1, top);
        add_table(diff, document, &diff->lost_reasons, "lost_by_reason", "Lost time by reason", reason, 1, top);
        add_table(diff, document, &diff->lost_sites, "lost_by_site", "Lost time by site", site, 3, top);
    }
    add_table(diff, document, &diff->methods, "methods", "By method", method, 1, top);
    add_table(diff, document, &diff->reasons, "reasons", "By reason", reason, 1, top);
    add_table(diff, document, &diff->sites, "sites", "By site", site, 3, top);
}

/* --- for a comment --------------------------------------------------------------------------------------------- */

static const struct limit_result *
result_named(const struct limit_result *results, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(results[i].name, name) == 0) return &results[i];
    }
    return NULL;
}

const char *
diff_sum_text(char text[NUMBER_TEXT], enum diff_sum sum, double value)
{
    if (sum == DIFF_COLLECTIONS) return amount_text(text, value);
    return (sum == DIFF_ALLOCATED ? bytes_text : duration_text)(text, (uint64_t)(value + 0.5));
}

static void
add_comment_row(struct document *document, struct table *table, const char *name, const struct diff_row *row,
                const char *before, const char *after, const struct limit_result *result)
{
    struct cell *cells = table_row(table);
    cells[0] = cell_text(text_of(name));
    cells[1] = cell_text(document_text(document, "%s", before));
    cells[2] = cell_text(document_text(document, "%s", after));
    cells[3] = diff_verdict_cell(row);
    cells[4] = cell_change(diff_delta(row) / row->counts[0].value);
    if (result != NULL) cells[5] = cell_text(text_of(result->message[0] == '\0' ? "met" : "exceeded"));
}

void
diff_comment_document(const struct diff *diff, const struct diff_streams *streams, const struct limit_result *results,
                      uint32_t result_count, struct document *document)
{
    static const struct column columns[] = {
        {"sum", "", COLUMN_TEXT},      {"a", "A", COLUMN_TEXT},           {"b", "B", COLUMN_TEXT},
        {"change", "", COLUMN_TEXT},   {"of_a", "of A", COLUMN_CHANGE},   {"limit", "limit", COLUMN_TEXT}};
    static const struct column method[] = {{"method", "method", COLUMN_TEXT}};
    static const struct column site[] = {
        {"reason", "reason", COLUMN_TEXT}, {"insn", "instruction", COLUMN_TEXT}, {"place", "place", COLUMN_TEXT}};
    enum { ROWS = 5 }; /* with all tables fewer than 60 lines */
    uint32_t exceeded = 0;
    for (uint32_t i = 0; i < result_count; i++) exceeded += results[i].message[0] != '\0';
    document->title = result_count == 0 ? text_of("vm-trace: no limit was given (--fail-over)")
                      : exceeded == 0 && document->partial != NULL
                          ? text_of("vm-trace: of what was read, all limits are met")
                      : exceeded == 0   ? text_of("vm-trace: all limits are met")
                                        : document_text(document, "vm-trace: %" PRIu32 " of %" PRIu32
                                                        " limits are exceeded", exceeded, result_count);
    document_line(document, "A", file_names(diff, document, 0));
    document_line(document, "B", file_names(diff, document, 1));
    add_choice(diff, document);
    struct table *table = document_table(document, "sums", text_of("Sums"), COLUMNS(columns));
    char before[NUMBER_TEXT], after[NUMBER_TEXT];
    const char *what = diff->fallbacks ? "fallbacks" : "exits";
    add_comment_row(document, table, what, &diff->total, amount_text(before, diff->total.counts[0].value),
                    amount_text(after, diff->total.counts[1].value), result_named(results, result_count, "exits"));
    for (unsigned sum = 0; sum < DIFF_SUMS; sum++) {
        if (!streams->summed[sum]) continue;
        const struct diff_row *row = &streams->sums[sum];
        add_comment_row(document, table, diff_sum_names[sum], row, diff_sum_text(before, sum, row->counts[0].value),
                        diff_sum_text(after, sum, row->counts[1].value),
                        result_named(results, result_count, diff_sum_names[sum]));
    }
    if (diff->timed && diff->lost_methods.changed > 0)
        add_table(diff, document, &diff->lost_methods, "lost_by_method", "Lost time by method", method, 1, ROWS);
    if (diff->methods.changed > 0)
        add_table(diff, document, &diff->methods, "methods", "Exits by method", method, 1, ROWS);
    if (diff->sites.changed > 0) add_table(diff, document, &diff->sites, "sites", "Exits by site", site, 3, ROWS);
}
