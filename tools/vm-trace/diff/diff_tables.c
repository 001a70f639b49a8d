/* diff_tables.c - see diff_tables.h */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "diff/diff_tables.h"

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

struct cell
diff_value_cell(enum diff_values values, double value)
{
    if (values == DIFF_TIMES) return cell_number((uint64_t)(value + 0.5));
    return cell_amount(values == DIFF_BYTES ? round(value) : value);
}

/* What may be below 0. */
static struct cell
signed_cell(enum diff_values values, double value)
{
    return values == DIFF_TIMES ? cell_time((int64_t)llround(value)) : diff_value_cell(values, value);
}

struct cell
diff_row_cell(const struct diff_row *row, unsigned own, enum diff_values values, double all_before)
{
    const struct diff_count *before = &row->counts[0], *after = &row->counts[1];
    switch (own) {
      case DIFF_CHANGE: return diff_verdict_cell(row);
      case DIFF_BEFORE: return diff_value_cell(values, before->value);
      case DIFF_AFTER: return diff_value_cell(values, after->value);
      case DIFF_DELTA: return signed_cell(values, diff_delta(row));
      case DIFF_OF_ALL: return cell_change(diff_delta(row) / all_before);
      case DIFF_BEFORE_LOW: return signed_cell(values, before->low);
      case DIFF_BEFORE_HIGH: return signed_cell(values, before->high);
      case DIFF_AFTER_LOW: return signed_cell(values, after->low);
      case DIFF_AFTER_HIGH: return signed_cell(values, after->high);
      default: return (struct cell){0};
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

/* The names of rows, after the values. */
enum { LOCATION = DIFF_CELLS };
#define METHOD_COLUMN {"method", "method", COLUMN_TEXT, NAMED(diff_row, method)}
#define REASON_COLUMN {"reason", "reason", COLUMN_TEXT, NAMED(diff_row, reason)}
#define SITE_COLUMNS                                                                                                   \
    REASON_COLUMN, {"insn", "instruction", COLUMN_TEXT, NAMED(diff_row, insn)},                                        \
    {"place", "place", COLUMN_TEXT, OWN_CELL(LOCATION)}
#define AMOUNT_COLUMNS DIFF_VALUE_COLUMNS(COLUMN_AMOUNT, COLUMN_DELTA, "delta"), DIFF_SPREAD_COLUMNS(COLUMN_AMOUNT)
#define TIME_COLUMNS                                                                                                   \
    DIFF_VALUE_COLUMNS(COLUMN_DURATION, COLUMN_TIME_DELTA, "delta"), DIFF_SPREAD_COLUMNS(COLUMN_TIME_DELTA)

static const struct table_column
    total[] = {AMOUNT_COLUMNS},
    methods[] = {AMOUNT_COLUMNS, METHOD_COLUMN},   reasons[] = {AMOUNT_COLUMNS, REASON_COLUMN},
    sites[] = {AMOUNT_COLUMNS, SITE_COLUMNS},      lost_methods[] = {TIME_COLUMNS, METHOD_COLUMN},
    lost_reasons[] = {TIME_COLUMNS, REASON_COLUMN}, lost_sites[] = {TIME_COLUMNS, SITE_COLUMNS};

/* What cells are made of. */
struct diff_view {
    const struct diff *diff;
    const struct diff_row *total; /* of the table */
};

static struct cell
row_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct diff_view *context = def->context;
    if (own == LOCATION) return cell_text(location_text(context->diff, def->view->document, row));
    return diff_row_cell(row, own, context->total == &context->diff->lost_total ? DIFF_TIMES : DIFF_AMOUNTS,
                         context->total->counts[0].value);
}

static void
merge_rows(void *rest, const void *row)
{
    for (unsigned side = 0; side < SIDES; side++)
        ((struct diff_row *)rest)->counts[side].value += ((const struct diff_row *)row)->counts[side].value;
}

static void
add_table(const struct view *view, const struct diff *diff, const struct diff_table *table, struct table_def def,
          const char *title)
{
    bool lost = table == &diff->lost_methods || table == &diff->lost_reasons || table == &diff->lost_sites;
    const struct diff_view context = {diff, lost ? &diff->lost_total : &diff->total};
    char changed[NUMBER_TEXT], within[NUMBER_TEXT];
    struct row_table rows = table->rows;
    def.view = view;
    def.title = document_text(view->document, "%s: %s changed", title, with_commas(changed, table->changed));
    if (table->within > 0) {
        def.title = document_text(view->document, "%s, %s within the spread of the %s", def.title.ptr,
                                  with_commas(within, table->within), diff->by_mean ? "processes" : "runs");
    }
    def.rows = &rows;
    def.order = table->order;
    def.order_count = table->changed;
    def.cell = row_cell;
    def.merge = merge_rows;
    def.context = &context;
    def.shown_empty = true;
    view_table(&def);
}
#define ADD_TABLE(view, diff, name, id_, title)                                                                        \
    add_table(view, diff, &(diff)->name, (struct table_def){.id = (id_), COLUMNS_OF(name)}, title)

/* For programs; people read it in the head. */
static void
add_total(const struct view *view, const struct diff *diff)
{
    struct row_table rows = ROWS_OF(&diff->total, 1);
    view_table(&(struct table_def){.view = view, .id = "total", .title = text_of("Total"), .rows = &rows,
                                   COLUMNS_OF(total), .cell = row_cell,
                                   .context = &(const struct diff_view){diff, &diff->total}, .data = true});
}

static struct cell
map_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct path_prefix *prefix = row;
    return cell_text(document_text(def->view->document, "%.*s", (int)prefix->from_bytes, prefix->from));
}

/* Folders that are treated as one by default, which people and programs must be able to see. */
static void
add_found_maps(const struct view *view, const struct diff *diff)
{
    static const struct table_column columns[] = {
        {"from", "A", COLUMN_TEXT, OWN_CELL(0)},
        {"to", "B", COLUMN_TEXT, MEMBER(path_prefix, to)},
        {"methods", "methods", COLUMN_COUNT, MEMBER(path_prefix, witnesses)},
    };
    const struct path_map *map = diff->map;
    if (map->count == 0 || map->list[0].witnesses == 0) return; /* all are of one kind */
    struct row_table rows = ROWS_OF(map->list, map->count);
    view_table(&(struct table_def){.view = &(const struct view){diff->report, view->document, UINT64_MAX},
                                   .id = "found_maps", .title = text_of("Folders treated as one"), .rows = &rows,
                                   COLUMNS_OF(columns), .cell = map_cell, .data = true});
    for (uint32_t i = 0; i < map->count; i++) {
        char number[NUMBER_TEXT];
        document_line(view->document, i == 0 ? "treated as one" : "",
                      document_text(view->document,
                                    "%.*s and %s: they share %s methods; --no-map compares the paths as they are",
                                    (int)map->list[i].from_bytes, map->list[i].from, map->list[i].to,
                                    with_commas(number, map->list[i].witnesses)));
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
    const struct view view = {diff->report, document, top};
    document->title = document_text(document, "%s compared", diff->fallbacks ? "Fallbacks" : "Exits");
    document_line(document, "A", file_names(diff, document, 0));
    document_line(document, "B", file_names(diff, document, 1));
    add_choice(diff, document);
    if (diff->timed) document_line(document, "lost by exits", lost_text(diff, document));
    document_line(document, "counted", how_counted(diff, document));
    document_line(document, "in all", total_text(diff, document));
    add_found_maps(&view, diff);
    add_total(&view, diff);
    if (diff->timed) {
        ADD_TABLE(&view, diff, lost_methods, "lost_by_method", "Lost time by method");
        ADD_TABLE(&view, diff, lost_reasons, "lost_by_reason", "Lost time by reason");
        ADD_TABLE(&view, diff, lost_sites, "lost_by_site", "Lost time by site");
    }
    ADD_TABLE(&view, diff, methods, "methods", "By method");
    ADD_TABLE(&view, diff, reasons, "reasons", "By reason");
    ADD_TABLE(&view, diff, sites, "sites", "By site");
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

/* What a comment says of a sum. */
struct comment_row {
    const char *name;
    const struct diff_row *row;
    struct fxt_string before, after;
    const struct limit_result *result; /* NULL: there is no limit */
};

enum { LIMIT = DIFF_CELLS };

static struct cell
comment_cell(const struct table_def *def, unsigned own, const void *from)
{
    const struct comment_row *row = from;
    if (own != LIMIT) return diff_row_cell(row->row, own, DIFF_AMOUNTS, row->row->counts[0].value);
    if (row->result == NULL) return (struct cell){0};
    return cell_text(text_of(row->result->message[0] == '\0' ? "met" : "exceeded"));
}

static void
add_comment_sums(const struct view *view, const struct diff *diff, const struct diff_streams *streams,
                 const struct limit_result *results, uint32_t result_count)
{
    static const struct table_column columns[] = {
        {"sum", "", COLUMN_TEXT, MEMBER(comment_row, name)},
        {"a", "A", COLUMN_TEXT, MEMBER(comment_row, before)},
        {"b", "B", COLUMN_TEXT, MEMBER(comment_row, after)},
        {"change", "", COLUMN_TEXT, OWN_CELL(DIFF_CHANGE)},
        {"of_a", "of A", COLUMN_CHANGE, OWN_CELL(DIFF_OF_ALL)},
        {"limit", "limit", COLUMN_TEXT, OWN_CELL(LIMIT)},
    };
    struct comment_row list[DIFF_SUMS + 1];
    uint32_t count = 0;
    char before[NUMBER_TEXT], after[NUMBER_TEXT];
    for (unsigned i = 0; i <= DIFF_SUMS; i++) {
        const bool exits = i == 0;
        const enum diff_sum sum = i - 1;
        if (!exits && !streams->summed[sum]) continue;
        const struct diff_row *row = exits ? &diff->total : &streams->sums[sum];
        const double a = row->counts[0].value, b = row->counts[1].value;
        list[count++] = (struct comment_row){
            .name = !exits ? diff_sum_names[sum] : diff->fallbacks ? "fallbacks" : "exits", .row = row,
            .before = document_text(view->document, "%s",
                                    exits ? amount_text(before, a) : diff_sum_text(before, sum, a)),
            .after = document_text(view->document, "%s", exits ? amount_text(after, b) : diff_sum_text(after, sum, b)),
            .result = result_named(results, result_count, exits ? "exits" : diff_sum_names[sum])};
    }
    struct row_table rows = ROWS_OF(list, count);
    view_table(&(struct table_def){.view = &(const struct view){diff->report, view->document, DIFF_SUMS + 1},
                                   .id = "sums", .title = text_of("Sums"), .rows = &rows, COLUMNS_OF(columns),
                                   .cell = comment_cell});
}

void
diff_comment_document(const struct diff *diff, const struct diff_streams *streams, const struct limit_result *results,
                      uint32_t result_count, struct document *document)
{
    enum { ROWS = 5 }; /* with all tables fewer than 60 lines */
    const struct view view = {diff->report, document, ROWS};
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
    add_comment_sums(&view, diff, streams, results, result_count);
    if (diff->timed && diff->lost_methods.changed > 0)
        ADD_TABLE(&view, diff, lost_methods, "lost_by_method", "Lost time by method");
    if (diff->methods.changed > 0) ADD_TABLE(&view, diff, methods, "methods", "Exits by method");
    if (diff->sites.changed > 0) ADD_TABLE(&view, diff, sites, "sites", "Exits by site");
}
