/* syscall_methods.c - see syscall_methods.h */
#include "topics/kernel/syscall_methods.h"

bool
syscall_method_wanted(struct glob *glob, const struct pool *pool, uint32_t caller)
{
    return glob->pattern == NULL || (caller != STRING_NONE && glob_matches(glob, pool, caller));
}

/* Keeps the names with the most calls; of two with as many, the first one in the alphabet. */
static void
add_name(const struct pool *pool, struct syscall_method *method, struct named_count named)
{
    for (unsigned i = 0; i < SYSCALL_NAMES_MOST; i++) {
        struct named_count *other = &method->most[i];
        bool before = named.calls > other->calls ||
                      (named.calls == other->calls && pool_compare(pool, named.name, other->name) < 0);
        if (!before) continue;
        struct named_count moved = *other;
        *other = named;
        named = moved;
    }
}

static int
compare_methods(const void *left, const void *right, void *context)
{
    const struct syscall_method *a = left, *b = right;
    if (a->total_ns != b->total_ns) return a->total_ns > b->total_ns ? -1 : 1;
    if (a->calls != b->calls) return a->calls > b->calls ? -1 : 1;
    return pool_compare(context, a->caller, b->caller);
}

struct row_table
syscall_methods_group(const struct syscall_callers *callers, struct pool *pool, struct glob *glob)
{
    struct row_table rows;
    row_table_init(&rows, sizeof(struct syscall_method), 1, CALLER_ROWS_MAX);
    for (uint32_t i = 0; i < callers->rows.count; i++) {
        const struct syscall_caller *caller = row_table_at(&callers->rows, i);
        if (!syscall_method_wanted(glob, pool, caller->caller)) continue;
        struct syscall_method *method = row_table_get(&rows, &caller->caller); /* not more than there are callers */
        const struct named_count named = {caller->name, caller->calls};
        method->names++;
        method->calls += caller->calls;
        method->total_ns += caller->total_ns;
        add_name(pool, method, named);
    }
    row_table_sort(&rows, compare_methods, pool);
    return rows;
}
