/* lasting_exits.c - see lasting_exits.h
 *
 * A place has a row for each version of its code, and for each kind of exit; here these are one.
 */
#include "topics/exits/lasting_exits.h"

#include <string.h>

enum { KEYS = 1, PARTS = 4 };

static struct row_table
places_of(const struct report *report)
{
    struct row_table places;
    row_table_init(&places, sizeof(struct exit_row), EXIT_ROW_KEYS, EXIT_ROWS_MAX);
    for (uint32_t i = 0; i < report->exits.rows.count; i++) {
        const struct exit_row *row = row_table_at(&report->exits.rows, i);
        if (row->category == STRING_FALLBACK || row->count == 0) continue;
        const uint32_t key[EXIT_ROW_KEYS] = {0, 0, row->reason, row->location, row->insn, 0, 0, row->callee};
        struct exit_row *place = row_table_get(&places, key);
        if (place != NULL) exit_row_merge(place, row);
    }
    return places;
}

/* Whether the last quarter of the trace has at least half of the exits that a steady pace would give it. */
static bool
goes_on(const struct report *report, const struct exit_row *place)
{
    float rate[PARTS];
    if (place->records == 0 || report->last_ns <= report->first_ns) return false;
    exit_row_rate(&report->exits, place, report->first_ns, report->last_ns, PARTS, rate);
    return (double)rate[PARTS - 1] >= (double)place->weighted / PARTS / 2;
}

struct row_table
lasting_exits_of(const struct report *report)
{
    struct row_table rows, places = places_of(report);
    row_table_init(&rows, sizeof(struct lasting_exits), KEYS, EXIT_ROWS_MAX);
    for (uint32_t i = 0; i < places.count; i++) {
        const struct exit_row *place = row_table_at(&places, i);
        struct lasting_exits *row = row_table_get(&rows, &place->reason);
        if (row == NULL) continue;
        row->count += place->count;
        if (place->count <= row->at_place) continue;
        row->at_place = place->count;
        row->location = place->location, row->insn = place->insn, row->callee = place->callee;
        row->lasts = place->count >= LASTING_COUNT && goes_on(report, place);
    }
    for (uint32_t i = 0; i < rows.count; i++) {
        struct lasting_exits *row = row_table_at(&rows, i);
        if (row->at_place < row->count - row->at_place) row->lasts = false;
    }
    exit_rows_free(&places);
    return rows;
}

const struct lasting_exits *
lasting_exits_find(struct row_table *rows, uint32_t reason)
{
    return row_table_find(rows, &reason);
}
