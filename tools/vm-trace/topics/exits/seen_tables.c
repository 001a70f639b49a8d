/* seen_tables.c - the table of a report about what guards expected and what they met. */
#include "topics/exits/seen_table.h"
#include "topics/report_view.h"

void
view_add_seen(const struct view *view)
{
    static const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, SUMMED(seen_row, weighted)},
        {"share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("count")},
        {"reason", "expected", COLUMN_TEXT, NAMED(seen_row, reason)},
        {"seen", "seen", COLUMN_TEXT, NAMED(seen_row, seen)},
        {"most", NULL, COLUMN_COUNT, MEMBER(seen_row, most)}, /* of `count`, at the method */
        {"method", "most of it at", COLUMN_TEXT, NAMED(seen_row, location)},
    };
    const struct seen_table *seen = &view->report->seen;
    if (seen->rows.count == 0) return; /* no guard failed, or the trace is of an older module */
    uint64_t sum;
    struct row_table rows = seen_by_reason(seen, view->report->pool, &sum);
    char all[NUMBER_TEXT];
    struct fxt_string title =
        document_text(view->document, "Expected and seen by guards: %s exits", with_commas(all, sum));
    view_table(&(struct table_def){.view = view, .id = "seen", .rows = &rows, COLUMNS_OF(columns), .whole = sum,
                                   .title = view_title(view, title, seen->uncounted, "classes"), .shown_empty = true});
    row_table_free(&rows);
}
