/* throw_tables.c - the table of a report about exits in pairs: a throw and its catch. */
#include "topics/report_view.h"

enum { HAS_LOST = 1 };

void
view_add_throws(const struct view *view)
{
    static const struct table_column columns[] = {
        {"lost_ns", "lost", COLUMN_DURATION, SUMMED(throw_row, lost_ns), .value_if = HAS_LOST},
        {"count", "count", COLUMN_COUNT, SUMMED(throw_row, count)},
        {"share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("count")},
        {"thrown_at", "thrown at", COLUMN_TEXT, NAMED(throw_row, thrown_at)},
        {"caught_at", "caught at", COLUMN_TEXT, NAMED(throw_row, caught_at)},
    };
    struct throws *throws = &view->report->throws;
    const struct throw_row sum = throws_sort(throws, view->report->pool);
    char all[NUMBER_TEXT];
    struct fxt_string title =
        document_text(view->document, "Jumps out of blocks: %s, two exits each", with_commas(all, sum.count));
    /* Empty if no block jumps out, or one exit in K is recorded. */
    view_table(&(struct table_def){.view = view, .id = "throws", .rows = &throws->rows, COLUMNS_OF(columns),
                                   .title = view_title(view, title, throws->uncounted, "places"), .whole = sum.count,
                                   .given = sum.lost_ns > 0 ? HAS_LOST : 0});
}
