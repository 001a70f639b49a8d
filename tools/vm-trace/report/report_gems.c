/* report_gems.c - the table of a report by gem: what the code of each gem, of the standard library, of Ruby and
 * of the application cost. The innermost frame counts. */
#include "analysis/frame_owner.h"
#include "report/report_tables.h"
#include "topics/report_view.h"

struct gem_row {
    uint32_t owner; /* the key */
    uint64_t lost_ns, exits, fallbacks;
    uint64_t ran_ns, waited_ns; /* sampled */
    int64_t own_ns;             /* of calls */
    uint64_t calls;
    uint64_t bytes, samples;    /* allocated */
};
enum { GEM_KEYS = 1, GEMS_MAX = 64 * 1024 };

static struct gem_row *
row_of(struct report *report, struct row_table *rows, uint32_t label)
{
    uint32_t owner = frame_owner(&report->owners, label);
    return row_table_get(rows, &owner);
}

static void
add_exits(struct report *report, struct row_table *rows)
{
    for (uint32_t i = 0; i < report->exits.rows.count; i++) {
        const struct exit_row *exits = row_table_at(&report->exits.rows, i);
        struct gem_row *row = exits->count > 0 ? row_of(report, rows, exits->location) : NULL;
        if (row == NULL) continue;
        row->lost_ns += exits->lost_ns;
        *(exits->category == STRING_FALLBACK ? &row->fallbacks : &row->exits) += exits->count;
    }
}

static void
add_samples(struct report *report, struct row_table *rows)
{
    for (uint32_t i = 0; i < report->samples.places.count; i++) {
        const struct sample_place *place = row_table_at(&report->samples.places, i);
        struct gem_row *row = row_of(report, rows, place->label);
        if (row != NULL) *(time_sample_waits(place->state) ? &row->waited_ns : &row->ran_ns) += place->ns;
    }
}

static void
add_calls(struct report *report, struct row_table *rows)
{
    struct row_table methods = calls_group(&report->calls, false);
    for (uint32_t i = 0; i < methods.count; i++) {
        const struct call_row *call = row_table_at(&methods, i);
        bool wanted = glob_matches(&report->method_glob, report->pool, call->name);
        struct gem_row *row = wanted ? row_of(report, rows, call->name) : NULL;
        if (row == NULL) continue;
        row->calls += call->totals.calls;
        call_add_ns(&row->own_ns, call->totals.own_ns);
    }
    row_table_free(&methods);
}

static void
add_allocations(struct report *report, struct row_table *rows)
{
    for (uint32_t i = 0; i < report->allocations.sites.count; i++) {
        const struct allocation_row *site = row_table_at(&report->allocations.sites, i);
        struct gem_row *row = row_of(report, rows, site->frame);
        if (row == NULL) continue;
        row->bytes += site->all.bytes;
        row->samples += site->all.samples;
    }
}

static void
add_table(const struct view *view, struct row_table *rows)
{
    /* With times, people need the space of the shares of other things. */
    enum { SAMPLED = 1, CALLED = 2, NOT_SAMPLED = 4, UNTIMED = 8, NOT_LOST = 16 };
    static const struct table_column columns[] = {
        {"ran_ns", "ran", COLUMN_DURATION, SUMMED(gem_row, ran_ns), .people_if = SAMPLED},
        {"ran_share", "share", COLUMN_SHARE, SHARE_OF("ran_ns"), .people_if = SAMPLED},
        {"waited_ns", "waited", COLUMN_DURATION, SUMMED(gem_row, waited_ns), .unless_empty = true},
        {"own_ns", "own", COLUMN_DURATION, SUMMED(gem_row, own_ns), .people_if = CALLED},
        {"own_share", "share", COLUMN_SHARE, SHARE_OF("own_ns"), .people_if = CALLED | NOT_SAMPLED},
        {"calls", "calls", COLUMN_COUNT, SUMMED(gem_row, calls), .unless_empty = true},
        {"lost_ns", "lost", COLUMN_DURATION, SUMMED(gem_row, lost_ns), .unless_empty = true},
        {"lost_share", "of lost", COLUMN_SHARE, SHARE_OF("lost_ns"), .unless_empty = true, .people_if = UNTIMED},
        {"exits", "exits", COLUMN_COUNT, SUMMED(gem_row, exits), .unless_empty = true},
        {"exits_share", "share", COLUMN_SHARE, SHARE_OF("exits"), .unless_empty = true,
         .people_if = UNTIMED | NOT_LOST},
        {"fallbacks", "fallbacks", COLUMN_COUNT, SUMMED(gem_row, fallbacks), .unless_empty = true},
        {"bytes", "bytes allocated", COLUMN_COUNT, SUMMED(gem_row, bytes), .unless_empty = true},
        {"bytes_share", "share", COLUMN_SHARE, SHARE_OF("bytes"), .unless_empty = true, .people_if = UNTIMED},
        {"gem", "gem", COLUMN_TEXT, NAMED(gem_row, owner)},
    };
    struct table_def def = {.view = view, .id = "gems", .rows = rows, COLUMNS_OF(columns), .shown_empty = true,
                            /* by what was recorded: time first */
                            .sort = {"ran_ns", "own_ns", "lost_ns", "exits", "bytes", "fallbacks", "gem"}};
    bool sampled = view_table_sum(&def, "ran_ns") + view_table_sum(&def, "waited_ns") > 0;
    bool called = view_table_sum(&def, "calls") > 0, lost = view_table_sum(&def, "lost_ns") > 0;
    def.given = (sampled ? SAMPLED : NOT_SAMPLED) | (called ? CALLED : 0) | (sampled || called ? 0 : UNTIMED) |
                (lost ? 0 : NOT_LOST);
    char number[NUMBER_TEXT];
    def.title = document_text(view->document, "By gem, of the innermost frame: %s", with_commas(number, rows->count));
    view_table(&def);
}

void
report_gem_tables(struct report *report, struct document *document, uint64_t top)
{
    struct row_table rows;
    row_table_init(&rows, sizeof(struct gem_row), GEM_KEYS, GEMS_MAX);
    add_exits(report, &rows);
    add_samples(report, &rows);
    add_calls(report, &rows);
    add_allocations(report, &rows);
    add_table(&(const struct view){report, document, top}, &rows);
    if (rows.count == 0)
        document_line(document, "gems", text_of("the trace has no exits, calls, samples or allocations"));
    row_table_free(&rows);
}
