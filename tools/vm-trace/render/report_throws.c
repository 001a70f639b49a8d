/* report_throws.c - the table of a report about exits in pairs: a throw and its catch. */
#include "render/report_view.h"

enum { LOST, COUNT, SHARE, THROWN, CAUGHT, CELLS };

static void
put_sum(struct cell *cells, const struct throw_row *row, const struct throw_row *sum)
{
    if (sum->lost_ns > 0) cells[LOST] = cell_number(row->lost_ns);
    cells[COUNT] = cell_number(row->count);
    cells[SHARE] = cell_share(row->count, sum->count);
}

void
view_add_throws(const struct view *view)
{
    static const struct column columns[CELLS] = {
        [LOST] = {"lost_ns", "lost", COLUMN_DURATION},
        [COUNT] = {"count", "count", COLUMN_COUNT},
        [SHARE] = {"share", "share", COLUMN_SHARE},
        [THROWN] = {"thrown_at", "thrown at", COLUMN_TEXT},
        [CAUGHT] = {"caught_at", "caught at", COLUMN_TEXT},
    };
    struct throws *throws = &view->report->throws;
    struct throw_row sum = throws_sort(throws, view->report->pool), rest = {0};
    char all[NUMBER_TEXT];
    struct fxt_string title =
        document_text(view->document, "Jumps out of blocks: %s, two exits each", with_commas(all, sum.count));
    struct table *table = document_table(view->document, "throws",
                                         view_title(view, title, throws->uncounted, "places"), COLUMNS(columns));
    table->data = throws->rows.count == 0; /* no block jumps out, or one exit in K is recorded */
    for (uint32_t i = 0; i < throws->rows.count; i++) {
        const struct throw_row *row = row_table_at(&throws->rows, i);
        if (i >= view->top) {
            rest.count += row->count;
            rest.lost_ns += row->lost_ns;
            continue;
        }
        struct cell *cells = table_row(table);
        put_sum(cells, row, &sum);
        cells[THROWN] = cell_text(view_name(view, row->thrown_at));
        cells[CAUGHT] = cell_text(view_name(view, row->caught_at));
    }
    if (throws->rows.count <= view->top) return;
    table->more_rows = throws->rows.count - view->top;
    put_sum(table_row(table), &rest, &sum);
}
