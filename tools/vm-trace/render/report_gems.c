/* report_gems.c - the table of a report by gem: what the code of each gem, of the standard library, of Ruby and
 * of the application cost. The innermost frame counts. */
#include "analysis/frame_owner.h"
#include "render/report_tables.h"
#include "render/report_view.h"

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
merge(struct gem_row *into, const struct gem_row *from)
{
    into->lost_ns += from->lost_ns;
    into->exits += from->exits;
    into->fallbacks += from->fallbacks;
    into->ran_ns += from->ran_ns;
    into->waited_ns += from->waited_ns;
    into->own_ns += from->own_ns;
    into->calls += from->calls;
    into->bytes += from->bytes;
    into->samples += from->samples;
}

/* By what was recorded: time first. */
static int
compare_gems(const void *left, const void *right, void *context)
{
    const struct gem_row *a = left, *b = right;
    const uint64_t a_cost[] = {a->ran_ns, call_own_ns(a->own_ns), a->lost_ns, a->exits, a->bytes, a->fallbacks};
    const uint64_t b_cost[] = {b->ran_ns, call_own_ns(b->own_ns), b->lost_ns, b->exits, b->bytes, b->fallbacks};
    for (unsigned i = 0; i < sizeof a_cost / sizeof a_cost[0]; i++) {
        if (a_cost[i] != b_cost[i]) return a_cost[i] > b_cost[i] ? -1 : 1;
    }
    return fxt_string_compare(pool_string(context, a->owner), pool_string(context, b->owner));
}

enum {
    G_RAN, G_RAN_SHARE, G_WAITED, G_OWN, G_OWN_SHARE, G_CALLS, G_LOST, G_LOST_SHARE, G_EXITS, G_EXITS_SHARE, G_FALLBACKS,
    G_BYTES, G_BYTES_SHARE, G_GEM, GEM_CELLS
};

static void
put_row(struct cell *cells, const struct gem_row *row, const struct gem_row *sum)
{
    cells[G_RAN] = cell_number(row->ran_ns);
    cells[G_RAN_SHARE] = cell_share(row->ran_ns, sum->ran_ns);
    cells[G_WAITED] = cell_number(row->waited_ns);
    cells[G_OWN] = cell_number(call_own_ns(row->own_ns));
    cells[G_OWN_SHARE] = cell_share(call_own_ns(row->own_ns), call_own_ns(sum->own_ns));
    cells[G_CALLS] = cell_number(row->calls);
    cells[G_LOST] = cell_number(row->lost_ns);
    cells[G_LOST_SHARE] = cell_share(row->lost_ns, sum->lost_ns);
    cells[G_EXITS] = cell_number(row->exits);
    cells[G_EXITS_SHARE] = cell_share(row->exits, sum->exits);
    cells[G_FALLBACKS] = cell_number(row->fallbacks);
    cells[G_BYTES] = cell_number(row->bytes);
    cells[G_BYTES_SHARE] = cell_share(row->bytes, sum->bytes);
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
    row_table_sort(&rows, compare_gems, report->pool);
    struct gem_row sum = {0}, rest = {0};
    for (uint32_t i = 0; i < rows.count; i++) merge(&sum, row_table_at(&rows, i));
    bool sampled = sum.ran_ns + sum.waited_ns > 0, called = sum.calls > 0;
    bool timed = sampled || called; /* then people need the space of the shares of other things */
    const struct column columns[GEM_CELLS] = {
        [G_RAN] = {"ran_ns", sampled ? "ran" : NULL, COLUMN_DURATION},
        [G_RAN_SHARE] = {"ran_share", sampled ? "share" : NULL, COLUMN_SHARE},
        [G_WAITED] = {"waited_ns", sampled && sum.waited_ns > 0 ? "waited" : NULL, COLUMN_DURATION},
        [G_OWN] = {"own_ns", called ? "own" : NULL, COLUMN_DURATION},
        [G_OWN_SHARE] = {"own_share", called && !sampled ? "share" : NULL, COLUMN_SHARE},
        [G_CALLS] = {"calls", called ? "calls" : NULL, COLUMN_COUNT},
        [G_LOST] = {"lost_ns", sum.lost_ns > 0 ? "lost" : NULL, COLUMN_DURATION},
        [G_LOST_SHARE] = {"lost_share", sum.lost_ns > 0 && !timed ? "of lost" : NULL, COLUMN_SHARE},
        [G_EXITS] = {"exits", sum.exits > 0 ? "exits" : NULL, COLUMN_COUNT},
        [G_EXITS_SHARE] = {"exits_share", sum.exits > 0 && !timed && sum.lost_ns == 0 ? "share" : NULL, COLUMN_SHARE},
        [G_FALLBACKS] = {"fallbacks", sum.fallbacks > 0 ? "fallbacks" : NULL, COLUMN_COUNT},
        [G_BYTES] = {"bytes", sum.bytes > 0 ? "bytes allocated" : NULL, COLUMN_COUNT},
        [G_BYTES_SHARE] = {"bytes_share", sum.bytes > 0 && !timed ? "share" : NULL, COLUMN_SHARE},
        [G_GEM] = {"gem", "gem", COLUMN_TEXT},
    };
    char number[NUMBER_TEXT];
    const struct fxt_string title =
        document_text(document, "By gem, of the innermost frame: %s", with_commas(number, rows.count));
    struct table *table = document_table(document, "gems", title, columns, GEM_CELLS);
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct gem_row *row = row_table_at(&rows, i);
        if (i >= top) {
            merge(&rest, row);
            continue;
        }
        struct cell *cells = table_row(table);
        put_row(cells, row, &sum);
        cells[G_GEM] = cell_text(pool_string(report->pool, row->owner));
    }
    if (rows.count > top) {
        table->more_rows = rows.count - top;
        put_row(table_row(table), &rest, &sum);
    }
    if (rows.count == 0) document_line(document, "gems", text_of("the trace has no exits, calls, samples or allocations"));
    row_table_free(&rows);
}
