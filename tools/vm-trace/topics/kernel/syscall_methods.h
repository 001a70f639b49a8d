#ifndef SYSCALL_METHODS_H
#define SYSCALL_METHODS_H
/* syscall_methods.h - the methods that made system calls, each with those that it made most often. */
#include "analysis/glob.h"
#include "topics/kernel/syscall_callers.h"

enum { SYSCALL_NAMES_MOST = 3 };

struct syscall_method {
    uint32_t caller; /* the key; STRING_NONE: outside of recorded calls */
    uint32_t names;  /* of its system calls */
    uint64_t calls, total_ns;
    struct named_count {
        uint32_t name;
        uint64_t calls;
    } most[SYSCALL_NAMES_MOST]; /* by number of calls */
};

/* Whether the method passes the glob. All do if it has no pattern. */
bool syscall_method_wanted(struct glob *glob, const struct pool *pool, uint32_t caller);
/* Rows of struct syscall_method that pass the glob, those with the most time first. The caller frees them with
 * row_table_free. */
struct row_table syscall_methods_group(const struct syscall_callers *callers, struct pool *pool, struct glob *glob);

#endif
