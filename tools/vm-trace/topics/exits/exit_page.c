/* exit_page.c - see exit_page.h */
#include <stdlib.h>

#include "analysis/event_args.h"
#include "analysis/label.h"
#include "base/xalloc.h"
#include "topics/exits/exit_page.h"

/* Starts a row that stands for itself and has no events yet. */
static void
begin_row(struct page_row *row)
{
    row->places = 1;
    row->first_ns = INT64_MAX;
    row->last_ns = INT64_MIN;
}

static void
add_to_row(struct page_row *row, uint64_t count, int64_t first_ns, int64_t last_ns)
{
    row->count += count;
    if (first_ns < row->first_ns) row->first_ns = first_ns;
    if (last_ns > row->last_ns) row->last_ns = last_ns;
}

static void
add_lost(struct page_row *row, uint64_t lost_ns, uint64_t max_ns)
{
    row->lost_ns += lost_ns;
    if (max_ns > row->lost_max_ns) row->lost_max_ns = max_ns;
}

void
page_exits_init(struct page_exits *exits)
{
    row_table_init(&exits->gathered, sizeof(struct page_row), PAGE_ROW_KEYS, PAGE_ROWS_MAX);
    row_table_init(&exits->sites, sizeof(struct page_site), PAGE_SITE_KEYS, PAGE_SITES_MAX);
    struct page_row *overflow = row_table_get(&exits->gathered, (const uint32_t[PAGE_ROW_KEYS]){0});
    begin_row(overflow);
    overflow->places = 0;
}

void
page_exits_free(struct page_exits *exits)
{
    row_table_free(&exits->gathered);
    row_table_free(&exits->sites);
    free(exits->rows);
    free(exits->shown_in);
}

struct page_exit
page_exits_event(struct page_exits *exits, struct pool *pool, const struct fxt_event *event)
{
    const struct page_row key = {
        .category = event->category.id, .reason = event_reason(pool, event),
        .frame = event_text(pool, event, STRING_FRAME_0), .insn = event_insn(pool, event),
        .outcome = event_text(pool, event, STRING_OUTCOME),
    };
    struct page_exit exit = {.weight = event_uint(event, STRING_WEIGHT, 1)};
    exit.timed = fxt_arg_uint(fxt_event_arg(event, STRING_LOST_NS), &exit.lost_ns);
    struct page_row *row = row_table_get(&exits->gathered, &key.category);
    if (row == NULL) row = row_table_at(&exits->gathered, PAGE_OVERFLOW_ROW);
    else if (row->places == 0) begin_row(row);
    add_to_row(row, exit.weight, event->ts_ns, event->ts_ns);
    exit.row = (uint32_t)(row - (struct page_row *)exits->gathered.rows);
    if (__builtin_mul_overflow(exit.lost_ns, exit.weight, &exit.weighted_ns)) exit.weighted_ns = exit.lost_ns;
    add_lost(row, exit.weighted_ns, exit.lost_ns);
    *(key.category == STRING_FALLBACK ? &exits->fallbacks : &exits->exits) += exit.weight;
    exits->recorded++;
    return exit;
}

bool
page_exits_site(struct page_exits *exits, struct pool *pool, const struct fxt_event *event)
{
    uint64_t lost_ns = event_uint(event, STRING_LOST_NS, 0), max_ns = event_uint(event, STRING_LOST_MAX_NS, 0);
    uint32_t location = event_text(pool, event, STRING_LOCATION);
    const uint32_t key[PAGE_SITE_KEYS] = {
        event_text(pool, event, STRING_KIND),
        event_reason(pool, event),
        event_insn(pool, event),
        label_path_and_line(pool, location),
    };
    struct page_site *site = lost_ns > 0 ? row_table_get(&exits->sites, key) : NULL;
    if (site == NULL) return false;
    site->location = location;
    site->lost_ns += lost_ns;
    if (max_ns > site->lost_max_ns) site->lost_max_ns = max_ns;
    return true;
}

struct ranked {
    uint32_t row;
    uint64_t lost_ns, count;
};

static int
by_cost(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->lost_ns != b->lost_ns) return a->lost_ns > b->lost_ns ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row); /* the row that was seen first comes first */
}

/* The row of exits->rows that sums up those of one reason. */
struct reason_sum {
    uint32_t category, reason; /* the key */
    uint32_t row;              /* its number + 1; 0: not yet added */
};

static uint32_t
add_row(struct page_exits *exits, const struct page_row *row)
{
    exits->rows[exits->row_count] = *row;
    return exits->row_count++;
}

/* Returns the row that sums up those of a reason; with too many reasons, the one for all others. */
static uint32_t
sum_row(struct page_exits *exits, struct row_table *sums, uint32_t *others, const struct page_row *row)
{
    const uint32_t key[2] = {row->category, row->reason};
    struct page_row sum = {.category = row->category, .reason = row->reason};
    struct reason_sum *reason = row_table_get(sums, key);
    uint32_t *number = reason != NULL ? &reason->row : others;
    if (reason == NULL) sum.category = sum.reason = STRING_NONE;
    begin_row(&sum);
    sum.places = 0;
    if (*number == 0) *number = add_row(exits, &sum) + 1;
    return *number - 1;
}

/* The row with the most exits that may be those of a site. */
struct row_of_site {
    uint32_t key[PAGE_SITE_KEYS];
    uint32_t row;
    uint64_t count;
};

static struct row_table
rows_by_site(const struct page_exits *exits, struct pool *pool)
{
    struct row_table matches;
    row_table_init(&matches, sizeof(struct row_of_site), PAGE_SITE_KEYS, PAGE_ROWS_MAX);
    for (uint32_t i = 0; i < exits->gathered.count; i++) {
        const struct page_row *row = row_table_at(&exits->gathered, i);
        if (i == PAGE_OVERFLOW_ROW) continue;
        const uint32_t key[PAGE_SITE_KEYS] = {row->category, row->reason, row->insn,
                                              label_path_and_line(pool, row->frame)};
        struct row_of_site *match = row_table_get(&matches, key);
        if (row->count > match->count) match->row = i, match->count = row->count;
    }
    return matches;
}

/* Where all sites are there, each row has their exact lost time. A place without a recorded exit
 * gets a row that counts none: it may have lost most. */
static void
take_lost_of_sites(struct page_exits *exits, struct pool *pool, struct trace_filter *filter, int64_t last_ns)
{
    struct row_table matches = rows_by_site(exits, pool);
    for (uint32_t i = 0; i < exits->gathered.count; i++) {
        struct page_row *row = row_table_at(&exits->gathered, i);
        row->lost_ns = 0;
    }
    for (uint32_t i = 0; i < exits->sites.count; i++) {
        const struct page_site *site = row_table_at(&exits->sites, i);
        const struct row_of_site *match = row_table_find(&matches, &site->category);
        const uint32_t key[PAGE_ROW_KEYS] = {site->category, site->reason, site->location, site->insn, 0};
        if (match == NULL && !trace_filter_picks(filter, site->reason, site->location)) continue;
        struct page_row *row = match != NULL ? row_table_at(&exits->gathered, match->row)
                                             : row_table_get(&exits->gathered, key);
        if (row == NULL) row = row_table_at(&exits->gathered, PAGE_OVERFLOW_ROW);
        if (row->places == 0) row->places = 1, row->first_ns = row->last_ns = last_ns;
        add_lost(row, site->lost_ns, site->lost_max_ns);
    }
    row_table_free(&matches);
}

/* Sums up the rows that are not shown, by reason; with too many reasons, the rest in one row. */
void
page_exits_finish(struct page_exits *exits, struct pool *pool, struct trace_filter *filter, bool exact, int64_t last_ns)
{
    exits->lost_exact = exact;
    if (exact) take_lost_of_sites(exits, pool, filter, last_ns);
    uint32_t count = exits->gathered.count;
    struct ranked *order = xrealloc(NULL, count, sizeof *order);
    for (uint32_t i = 0; i < count; i++) {
        const struct page_row *row = row_table_at(&exits->gathered, i);
        order[i] = (struct ranked){i, row->lost_ns, row->count};
    }
    qsort(order, count, sizeof *order, by_cost);

    exits->shown_in = xcalloc(count, sizeof *exits->shown_in);
    for (uint32_t i = 0; i < count; i++) exits->shown_in[i] = ROW_NONE;
    exits->rows = xcalloc(count, sizeof *exits->rows);
    struct row_table sums;
    row_table_init(&sums, sizeof(struct reason_sum), 2, PAGE_REASONS_SHOWN);
    uint32_t others = 0;
    size_t frame_bytes = 0;
    for (uint32_t i = 0; i < count && (order[i].count > 0 || order[i].lost_ns > 0); i++) {
        uint32_t from = order[i].row;
        const struct page_row *row = row_table_at(&exits->gathered, from);
        frame_bytes += pool_string(pool, row->frame).len;
        bool shown = i < PAGE_PLACES_LEAST || (i < PAGE_PLACES_SHOWN && frame_bytes <= PAGE_PLACES_BYTES);
        if (shown && from != PAGE_OVERFLOW_ROW) {
            exits->shown_in[from] = add_row(exits, row);
            continue;
        }
        uint32_t to = sum_row(exits, &sums, &others, row);
        add_to_row(&exits->rows[to], row->count, row->first_ns, row->last_ns);
        add_lost(&exits->rows[to], row->lost_ns, row->lost_max_ns);
        exits->rows[to].places += row->places;
        exits->shown_in[from] = to;
    }
    row_table_free(&sums);
    free(order);
}
