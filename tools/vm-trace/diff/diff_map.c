/* diff_map.c - finds folders that hold the same files on both sides, such as those of two versions
 * of a library.
 *
 * A method with exactly one path on each side is a witness. Without the folders and files that its
 * two paths have in common at the end, two prefixes remain. A pair of prefixes with enough
 * witnesses is one folder, unless one side has paths with both.
 */
#include <string.h>

#include "diff/diff.h"
#include "analysis/label.h"
#include "base/xalloc.h"

enum { LEAST_WITNESSES = 2, MAPS_MOST = 16 };

/* A path of a method, and the sides that have it, as bits. */
struct method_path {
    uint32_t method, path; /* the key */
    unsigned sides;
};

struct prefixes {
    uint32_t from, to; /* the key */
    uint32_t witnesses;
};

/* The path of a label; the empty string for an eval. */
static struct fxt_string
path_of(struct fxt_string label)
{
    static const char eval[] = "(eval at ";
    struct fxt_string path = label_parts(label).path;
    if (path.len >= sizeof eval && memcmp(path.ptr, eval, sizeof eval - 1) == 0) return (struct fxt_string){.ptr = ""};
    return path;
}

static void
add_path(struct row_table *all, struct report *report, uint32_t location, bool second)
{
    struct fxt_string label = pool_string(report->pool, location), path = path_of(label);
    struct fxt_string method = label_parts(label).method;
    if (path.len == 0 || method.len == 0) return;
    const uint32_t key[2] = {pool_intern(report->pool, method.ptr, method.len),
                             pool_intern(report->pool, path.ptr, path.len)};
    struct method_path *row = row_table_get(all, key);
    if (row != NULL) row->sides |= 1U << second;
}

static void
gather(struct row_table *all, struct report *report, uint32_t first_side, bool fallbacks)
{
    for (uint32_t i = 0; i < report->exits.rows.count; i++) {
        const struct exit_row *exit_row = row_table_at(&report->exits.rows, i);
        if ((exit_row->category == STRING_FALLBACK) != fallbacks || exit_row->count == 0) continue;
        add_path(all, report, exit_row->location, report_process(report, exit_row->process)->file >= first_side);
    }
    for (uint32_t i = 0; i < report->calls.sums.count; i++) {
        const struct call_sum *sum = row_table_at(&report->calls.sums, i);
        add_path(all, report, sum->name, sum->file >= first_side);
    }
}

static int
by_method(const void *left, const void *right, void *context)
{
    const struct method_path *a = left, *b = right;
    (void)context;
    if (a->method != b->method) return a->method < b->method ? -1 : 1;
    return a->sides != b->sides ? (a->sides < b->sides ? -1 : 1) : (a->path > b->path) - (a->path < b->path);
}

/* The lengths of two paths without their common end, in whole folders. Returns false if they
 * have no common end, or if nothing else is left. */
static bool
differing_folders(struct fxt_string a, struct fxt_string b, uint32_t *a_bytes_out, uint32_t *b_bytes_out)
{
    uint32_t common = 0, whole = 0; /* common bytes at the end; those from a slash on */
    while (common < a.len && common < b.len && a.ptr[a.len - common - 1] == b.ptr[b.len - common - 1]) {
        common++;
        if (a.ptr[a.len - common] == '/') whole = common;
    }
    if (whole <= 1 || whole == a.len || whole == b.len) return false;
    *a_bytes_out = a.len - whole + 1; /* the slash belongs to the folder */
    *b_bytes_out = b.len - whole + 1;
    return true;
}

static void
add_witness(struct row_table *found, struct pool *pool, uint32_t before, uint32_t after)
{
    struct fxt_string a = pool_string(pool, before), b = pool_string(pool, after);
    uint32_t a_bytes, b_bytes;
    if (!differing_folders(a, b, &a_bytes, &b_bytes)) return;
    const uint32_t key[2] = {pool_intern(pool, a.ptr, a_bytes), pool_intern(pool, b.ptr, b_bytes)};
    struct prefixes *row = row_table_get(found, key);
    if (row != NULL) row->witnesses++;
}

static bool
begins_with(struct fxt_string path, struct fxt_string prefix)
{
    return path.len >= prefix.len && memcmp(path.ptr, prefix.ptr, prefix.len) == 0;
}

/* Whether a side has paths with both prefixes: then they are two folders. */
static bool
distinct_folders(const struct row_table *all, const struct pool *pool, const struct prefixes *prefixes)
{
    struct fxt_string from = pool_string(pool, prefixes->from), to = pool_string(pool, prefixes->to);
    for (uint32_t i = 0; i < all->count; i++) {
        const struct method_path *row = row_table_at(all, i);
        struct fxt_string path = pool_string(pool, row->path);
        if ((row->sides & 2) != 0 && begins_with(path, from)) return true;
        if ((row->sides & 1) != 0 && begins_with(path, to)) return true;
    }
    return false;
}

static int
by_witnesses(const void *left, const void *right, void *context)
{
    const struct prefixes *a = left, *b = right;
    (void)context;
    if (a->witnesses != b->witnesses) return a->witnesses > b->witnesses ? -1 : 1;
    return a->from != b->from ? (a->from < b->from ? -1 : 1) : (a->to > b->to) - (a->to < b->to);
}

static void
add_to_map(struct path_map *map, const struct pool *pool, const struct prefixes *prefixes)
{
    struct fxt_string from = pool_string(pool, prefixes->from);
    make_room(map->list, map->count, map->capacity);
    map->list[map->count].from = from.ptr;
    map->list[map->count].from_bytes = from.len;
    map->list[map->count].witnesses = prefixes->witnesses;
    map->list[map->count++].to = pool_string(pool, prefixes->to).ptr;
}

void
diff_find_map(struct report *report, uint32_t first_side, bool fallbacks, struct path_map *map)
{
    struct row_table all, found;
    row_table_init(&all, sizeof(struct method_path), 2, EXIT_ROWS_MAX);
    row_table_init(&found, sizeof(struct prefixes), 2, EXIT_ROWS_MAX);
    gather(&all, report, first_side, fallbacks);
    row_table_sort(&all, by_method, NULL);
    for (uint32_t at = 0, end; at < all.count; at = end) {
        const struct method_path *first = row_table_at(&all, at);
        for (end = at + 1; end < all.count && ((struct method_path *)row_table_at(&all, end))->method == first->method;)
            end++;
        if (end - at != 2 || first[0].sides != 1 || first[1].sides != 2) continue; /* not a witness */
        add_witness(&found, report->pool, first[0].path, first[1].path);
    }
    row_table_sort(&found, by_witnesses, NULL);
    for (uint32_t i = 0; i < found.count && map->count < MAPS_MOST; i++) {
        const struct prefixes *prefixes = row_table_at(&found, i);
        if (prefixes->witnesses < LEAST_WITNESSES) break;
        if (!distinct_folders(&all, report->pool, prefixes)) add_to_map(map, report->pool, prefixes);
    }
    row_table_free(&all);
    row_table_free(&found);
}
