#ifndef SYSCALLS_H
#define SYSCALLS_H
/* syscalls.h - sums of the stream `syscalls`: of each system call in each thread, and of its errors. What lies
 * in the window counts.
 *
 * Memory grows with the number of threads, names and errors, not of calls.
 */
#include "base/interval.h"
#include "base/row_table.h"
#include "fxt/reader.h"

enum { SYSCALL_ROWS_MAX = 256 * 1024 };

struct syscall_totals {
    uint64_t calls;
    uint64_t total_ns, max_ns;
    uint64_t errors;
    uint64_t open; /* had not returned when the trace ended, or never did */
};

/* The calls of one name in one thread. */
struct syscall_sum {
    uint32_t thread; /* the key: a number of the caller's */
    uint32_t name;
    struct syscall_totals totals;
};
enum { SYSCALL_SUM_KEYS = 2 };

struct syscall_error {
    uint32_t name; /* the key */
    uint32_t error;
    uint64_t count;
};
enum { SYSCALL_ERROR_KEYS = 2 };

struct syscalls {
    struct interval window;  /* the caller may set it */
    struct row_table sums;   /* of struct syscall_sum */
    struct row_table errors; /* of struct syscall_error */
    uint64_t uncounted;      /* calls and errors without a row, because there are too many names or threads */
};

void syscalls_init(struct syscalls *syscalls);
void syscalls_free(struct syscalls *syscalls);
/* Takes an event of the category syscall. */
void syscalls_event(struct syscalls *syscalls, struct pool *pool, uint32_t thread, const struct fxt_event *event);
/* Adds up; the longest call is the longest of both. */
void syscall_totals_add(struct syscall_totals *totals, const struct syscall_totals *other);
/* Orders those that took longest first, then those with the most calls: <0, 0, >0. */
int syscall_totals_compare(const struct syscall_totals *a, const struct syscall_totals *b);
/* Calls of all threads by name, in that order: rows of struct syscall_sum with thread 0. The caller frees
 * them with row_table_free. */
struct row_table syscalls_by_name(const struct syscalls *syscalls, struct pool *pool);
/* Returns the most frequent error of a system call, or NULL. */
const struct syscall_error *syscalls_main_error(const struct syscalls *syscalls, uint32_t name);

#endif
