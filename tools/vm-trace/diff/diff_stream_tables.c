/* diff_stream_tables.c - the differences between what threads, the garbage collector and allocations did on
 * two sides. See diff_tables.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "diff/diff_tables.h"

enum { NAMES_MOST = 3 };

/* Titles of names whose id is not one for people. */
static const char *
title_of(const char *id)
{
    if (strcmp(id, "name") == 0) return "blocked in";
    if (strcmp(id, "syscall") == 0) return "system call";
    return strcmp(id, "major_by") == 0 ? "major by" : id;
}

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

/* How long a run of each side took. */
struct lengths {
    uint64_t a_ns, b_ns;
};

static void
add_lengths(const struct view *view, const struct diff *diff)
{
    static const struct table_column columns[] = {
        {"a_ns", NULL, COLUMN_DURATION, MEMBER(lengths, a_ns)},
        {"b_ns", NULL, COLUMN_DURATION, MEMBER(lengths, b_ns)},
    };
    char before[NUMBER_TEXT], after[NUMBER_TEXT];
    struct document *document = view->document;
    const struct lengths lengths = {(uint64_t)(mean_seconds(diff, 0) * 1e9 + 0.5),
                                    (uint64_t)(mean_seconds(diff, 1) * 1e9 + 0.5)};
    struct row_table rows = ROWS_OF(&lengths, 1);
    view_table(&(struct table_def){.view = view, .id = "time_spans", .title = text_of("Time spans"), .rows = &rows,
                                   COLUMNS_OF(columns), .data = true});
    document_line(document, "time span",
                  document_text(document, "%s -> %s%s%s%s", duration_text(before, lengths.a_ns),
                                duration_text(after, lengths.b_ns),
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

/* --- tables --------------------------------------------------------------------------------------- */

/* A row of a stream, with its count if the stream has any; or the sum of such. */
struct stream_row {
    struct diff_row row, count;
    bool counted;
};

/* What cells are made of. */
struct stream_view {
    const struct diff *diff;
    const struct diff_stream_table *from;
    const struct diff_stream_kind *kind;
};

enum { BEFORE_TOO = DIFF_CELLS, AFTER_TOO, BEFORE_COUNT, AFTER_COUNT, NAME };

/* Whatever identifies the row has a name; so has the reason of what else does. */
static struct cell
name_cell(const struct stream_view *context, unsigned n, const struct diff_row *row)
{
    const uint32_t names[NAMES_MOST] = {row->reason, row->method, row->insn};
    if (names[n] != STRING_NONE) return cell_text(pool_string(context->diff->report->pool, names[n]));
    if (n > 0 && n < NAMES_MOST && strcmp(context->kind->names[n], "reason") != 0) return (struct cell){0};
    return cell_text(text_of(strcmp(context->kind->names[0], "thread") == 0 ? "(unnamed)" : "(unknown)"));
}

static struct cell
stream_cell(const struct table_def *def, unsigned own, const void *from)
{
    const struct stream_row *row = from;
    const struct stream_view *context = def->context;
    const enum diff_values values = context->kind->amounts ? DIFF_BYTES : DIFF_TIMES;
    switch (own) {
      case BEFORE_TOO:
      case AFTER_TOO: return diff_value_cell(values, in_other_unit(context->diff, &row->row)[own - BEFORE_TOO]);
      case BEFORE_COUNT:
      case AFTER_COUNT:
        return row->counted ? cell_amount(row->count.counts[own - BEFORE_COUNT].value) : (struct cell){0};
      case NAME: return name_cell(context, 0, &row->row);
      case NAME + 1: return name_cell(context, 1, &row->row);
      case NAME + 2: return name_cell(context, 2, &row->row);
      default: return diff_row_cell(&row->row, own, values, context->from->all.counts[0].value);
    }
}

static void
add_sum(struct diff_row *sum, const struct diff_row *row)
{
    for (unsigned side = 0; side < SIDES; side++) {
        sum->counts[side].value += row->counts[side].value;
        sum->per_run[side] += row->per_run[side];
        sum->per_second[side] += row->per_second[side];
    }
}

static void
merge_rows(void *rest, const void *from)
{
    const struct stream_row *row = from;
    struct stream_row *sum = rest;
    add_sum(&sum->row, &row->row);
    add_sum(&sum->count, &row->count);
    sum->counted = true;
}

/* The rows that changed, which the caller frees. */
static struct stream_row *
changed_rows(struct diff_stream_table *from)
{
    struct stream_row *rows = xcalloc(from->sums.changed + 1, sizeof *rows);
    for (uint32_t i = 0; i < from->sums.changed; i++) {
        rows[i].row = *(const struct diff_row *)row_table_at(&from->sums.rows, from->sums.order[i]);
        const struct diff_row *count = diff_stream_count(from, &rows[i].row);
        rows[i].counted = count != NULL;
        if (count != NULL) rows[i].count = *count;
    }
    return rows;
}

/* Whether a row has the second or third name; such as the class of what blocked. */
static bool
any_named(const struct stream_row *rows, uint32_t count, unsigned n)
{
    bool any = n == 0;
    for (uint32_t i = 0; i < count && !any; i++) any = (n == 1 ? rows[i].row.method : rows[i].row.insn) != STRING_NONE;
    return any;
}

static void
add_table(struct diff_streams *streams, enum diff_stream stream, const struct diff *diff, const struct view *view)
{
    enum { COUNTED = 1, OTHER_UNIT = 2, VALUES = 13 };
    struct diff_stream_table *from = &streams->tables[stream];
    const struct diff_stream_kind *kind = &diff_stream_kinds[stream];
    if (!from->recorded || from->sums.rows.count == 0) return;
    const enum column_kind value = kind->amounts ? COLUMN_AMOUNT : COLUMN_DURATION;
    const enum column_kind delta = kind->amounts ? COLUMN_DELTA : COLUMN_TIME_DELTA;
    const enum column_kind spread = kind->amounts ? COLUMN_AMOUNT : COLUMN_TIME_DELTA;
    const bool differ = lengths_differ(diff), seconds = diff->unit == PER_SECOND;
    const bool wide = differ && kind->counts[0] != NULL; /* people need the space for names */
    struct table_column columns[VALUES + NAMES_MOST] = {
        DIFF_VALUE_COLUMNS(value, delta, wide ? NULL : "delta"),
        {seconds ? "a_per_run" : "a_per_second", seconds ? "A/run" : "A/s", value, OWN_SUM(BEFORE_TOO),
         .people_if = OTHER_UNIT},
        {seconds ? "b_per_run" : "b_per_second", seconds ? "B/run" : "B/s", value, OWN_SUM(AFTER_TOO),
         .people_if = OTHER_UNIT},
        DIFF_SPREAD_COLUMNS(spread),
        {"a_count", kind->counts[0], COLUMN_AMOUNT, OWN_SUM(BEFORE_COUNT), .value_if = COUNTED},
        {"b_count", kind->counts[1], COLUMN_AMOUNT, OWN_SUM(AFTER_COUNT), .value_if = COUNTED},
    };
    const uint32_t changed = from->sums.changed;
    struct stream_row *rows = changed_rows(from);
    unsigned count = VALUES;
    for (unsigned n = 0; n < NAMES_MOST && kind->names[n] != NULL; n++)
        columns[count++] = (struct table_column){kind->names[n],
                                                 any_named(rows, changed, n) ? title_of(kind->names[n]) : NULL,
                                                 COLUMN_TEXT, OWN_CELL(NAME + n)};
    char number[NUMBER_TEXT], within[NUMBER_TEXT];
    struct fxt_string title =
        document_text(view->document, "%s, %s: %s changed%s%s%s", kind->title, diff_unit_text(diff->unit),
                      with_commas(number, changed), from->sums.within > 0 ? ", " : "",
                      from->sums.within > 0 ? with_commas(within, from->sums.within) : "",
                      from->sums.within > 0 ? " within the spread of the runs" : "");
    struct row_table shown = ROWS_OF(rows, changed);
    view_table(&(struct table_def){.view = view, .id = kind->id, .title = title, .columns = columns,
                                   .column_count = count, .rows = &shown, .cell = stream_cell, .merge = merge_rows,
                                   .context = &(const struct stream_view){diff, from, kind},
                                   .given = (kind->counts[0] != NULL ? COUNTED : 0) | (differ ? OTHER_UNIT : 0),
                                   .shown_empty = true});
    free(rows);
}

/* --- sums ------------------------------------------------------------------------------------------- */

enum { SUM = DIFF_CELLS, UNIT };

static struct cell
sum_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct diff_streams *streams = def->context;
    const enum diff_sum sum = (enum diff_sum)((const struct diff_row *)row - streams->sums);
    if (own == SUM) return cell_text(text_of(diff_sum_names[sum]));
    if (own == UNIT) return cell_text(text_of(diff_sum_unit(sum)));
    return diff_row_cell(row, own, DIFF_AMOUNTS, 0);
}

static bool
summed(const struct table_def *def, const void *row)
{
    const struct diff_streams *streams = def->context;
    return streams->summed[(const struct diff_row *)row - streams->sums];
}

static void
add_sums(const struct view *view, const struct diff_streams *streams, const struct diff *diff)
{
    static const struct table_column columns[] = {
        {"sum", NULL, COLUMN_TEXT, OWN_CELL(SUM)},
        {"unit", NULL, COLUMN_TEXT, OWN_CELL(UNIT)},
        {"change", NULL, COLUMN_TEXT, OWN_CELL(DIFF_CHANGE)},
        {"a", NULL, COLUMN_AMOUNT, OWN_CELL(DIFF_BEFORE)},
        {"b", NULL, COLUMN_AMOUNT, OWN_CELL(DIFF_AFTER)},
        {"delta", NULL, COLUMN_DELTA, OWN_CELL(DIFF_DELTA)},
        DIFF_SPREAD_COLUMNS(COLUMN_AMOUNT),
    };
    struct document *document = view->document;
    struct row_table rows = ROWS_OF(streams->sums, DIFF_SUMS);
    view_table(&(struct table_def){.view = &(const struct view){diff->report, document, DIFF_SUMS}, .id = "sums",
                                   .title = text_of("Sums"), .rows = &rows, COLUMNS_OF(columns), .counts = summed,
                                   .cell = sum_cell, .context = streams, .data = true});
    for (unsigned i = 0; i < DIFF_SUMS; i++) {
        const struct diff_row *sum = &streams->sums[i];
        const struct diff_count *a = &sum->counts[0], *b = &sum->counts[1];
        const double *too = in_other_unit(diff, sum);
        if (!streams->summed[i]) continue;
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
                                    diff_stream_kinds[i].stream, table->lacks, diff->run_count,
                                    table->lacks == 1 ? "es" : ""));
        lacking = true;
    }
    if (!any) return;
    document->title = text_of("Runs compared");
    hide_exits(diff, document);
    const struct view view = {diff->report, document, top};
    add_lengths(&view, diff);
    add_losses(diff, document);
    add_sums(&view, streams, diff);
    for (unsigned i = 0; i < DIFF_STREAMS; i++) add_table(streams, i, diff, &view);
}
