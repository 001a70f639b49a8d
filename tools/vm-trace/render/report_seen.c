/* report_seen.c - the table of a report about what guards expected and what they met. */
#include "analysis/seen_table.h"
#include "render/report_view.h"

enum { COUNT, SHARE, REASON, SEEN, MOST, METHOD, CELLS };

void
view_add_seen(const struct view *view)
{
    static const struct column columns[CELLS] = {
        [COUNT] = {"count", "count", COLUMN_COUNT},
        [SHARE] = {"share", "share", COLUMN_SHARE},
        [REASON] = {"reason", "expected", COLUMN_TEXT},
        [SEEN] = {"seen", "seen", COLUMN_TEXT},
        [MOST] = {"most", NULL, COLUMN_COUNT}, /* of `count`, at the method */
        [METHOD] = {"method", "most of it at", COLUMN_TEXT},
    };
    const struct seen_table *seen = &view->report->seen;
    if (seen->rows.count == 0) return; /* no guard failed, or the trace is of an older module */
    uint64_t sum;
    struct row_table rows = seen_by_reason(seen, view->report->pool, &sum);
    char all[NUMBER_TEXT];
    struct fxt_string title =
        document_text(view->document, "Expected and seen by guards: %s exits", with_commas(all, sum));
    struct table *table = document_table(view->document, "seen", view_title(view, title, seen->uncounted, "classes"),
                                         COLUMNS(columns));
    uint64_t rest = 0;
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct seen_row *row = row_table_at(&rows, i);
        if (i >= view->top) {
            rest += row->weighted;
            continue;
        }
        struct cell *cells = table_row(table);
        cells[COUNT] = cell_number(row->weighted);
        cells[SHARE] = cell_share(row->weighted, sum);
        cells[REASON] = cell_text(view_name(view, row->reason));
        cells[SEEN] = cell_text(view_name(view, row->seen));
        cells[MOST] = cell_number(row->most);
        cells[METHOD] = cell_text(view_name(view, row->location));
    }
    if (rows.count > view->top) {
        table->more_rows = rows.count - view->top;
        struct cell *cells = table_row(table);
        cells[COUNT] = cell_number(rest);
        cells[SHARE] = cell_share(rest, sum);
    }
    row_table_free(&rows);
}
