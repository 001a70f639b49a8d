/* syscalls.c - see syscalls.h */
#include "analysis/event_args.h"
#include "topics/kernel/syscalls.h"
#include "fxt/known_strings.h"

void
syscalls_init(struct syscalls *syscalls)
{
    *syscalls = (struct syscalls){.window = {INT64_MIN, INT64_MAX}};
    row_table_init(&syscalls->sums, sizeof(struct syscall_sum), SYSCALL_SUM_KEYS, SYSCALL_ROWS_MAX);
    row_table_init(&syscalls->errors, sizeof(struct syscall_error), SYSCALL_ERROR_KEYS, SYSCALL_ROWS_MAX);
}

void
syscalls_free(struct syscalls *syscalls)
{
    row_table_free(&syscalls->sums);
    row_table_free(&syscalls->errors);
}

void
syscall_totals_add(struct syscall_totals *totals, const struct syscall_totals *other)
{
    totals->calls += other->calls;
    totals->total_ns += other->total_ns;
    totals->errors += other->errors;
    totals->open += other->open;
    if (other->max_ns > totals->max_ns) totals->max_ns = other->max_ns;
}

static void
add_error(struct syscalls *syscalls, uint32_t name, uint32_t error)
{
    const uint32_t key[SYSCALL_ERROR_KEYS] = {name, error};
    struct syscall_error *row = row_table_get(&syscalls->errors, key);
    if (row != NULL) row->count++;
    else syscalls->uncounted++;
}

void
syscalls_event(struct syscalls *syscalls, struct pool *pool, uint32_t thread, const struct fxt_event *event)
{
    const struct interval call = {event->ts_ns, event->end_ns};
    if (event->type != FXT_EVENT_DURATION_COMPLETE || !interval_touches(syscalls->window, call)) return;
    uint32_t name = pool_id(pool, event->name), error = event_text(pool, event, STRING_ERRNO);
    uint64_t ns = interval_common_ns(syscalls->window, call);
    const uint32_t key[SYSCALL_SUM_KEYS] = {thread, name};
    struct syscall_sum *sum = row_table_get(&syscalls->sums, key);
    if (sum == NULL) {
        syscalls->uncounted++;
        return;
    }
    const struct syscall_totals totals = {
        .calls = 1, .total_ns = ns, .max_ns = ns, .errors = error != STRING_NONE,
        .open = fxt_event_arg(event, STRING_ENDED) != NULL};
    syscall_totals_add(&sum->totals, &totals);
    if (error != STRING_NONE) add_error(syscalls, name, error);
}

int
syscall_totals_compare(const struct syscall_totals *a, const struct syscall_totals *b)
{
    if (a->total_ns != b->total_ns) return a->total_ns > b->total_ns ? -1 : 1;
    return (a->calls < b->calls) - (a->calls > b->calls);
}

static int
compare_names(const void *left, const void *right, void *context)
{
    const struct syscall_sum *a = left, *b = right;
    int order = syscall_totals_compare(&a->totals, &b->totals);
    return order != 0 ? order : pool_compare(context, a->name, b->name);
}

struct row_table
syscalls_by_name(const struct syscalls *syscalls, struct pool *pool)
{
    struct row_table rows;
    row_table_init(&rows, sizeof(struct syscall_sum), SYSCALL_SUM_KEYS, SYSCALL_ROWS_MAX);
    for (uint32_t i = 0; i < syscalls->sums.count; i++) {
        const struct syscall_sum *sum = row_table_at(&syscalls->sums, i);
        const uint32_t key[SYSCALL_SUM_KEYS] = {0, sum->name};
        struct syscall_sum *row = row_table_get(&rows, key); /* not more than there are sums */
        syscall_totals_add(&row->totals, &sum->totals);
    }
    row_table_sort(&rows, compare_names, pool);
    return rows;
}

const struct syscall_error *
syscalls_main_error(const struct syscalls *syscalls, uint32_t name)
{
    const struct syscall_error *most = NULL;
    for (uint32_t i = 0; i < syscalls->errors.count; i++) {
        const struct syscall_error *error = row_table_at(&syscalls->errors, i);
        if (error->name == name && (most == NULL || error->count > most->count)) most = error;
    }
    return most;
}
