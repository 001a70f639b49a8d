#ifndef FIREFOX_STACKS_H
#define FIREFOX_STACKS_H
/* firefox_stacks.h - the tables of the Firefox Profiler's format that all threads share: strings,
 * functions, frames, stacks.
 *
 * Memory is charged to the reader's budget.
 */
#include <stdio.h>

#include "analysis/frame_owner.h"
#include "analysis/frames.h"
#include "base/json.h"
#include "base/map.h"
#include "base/row_table.h"
#include "fxt/reader.h"

/* The profile's categories; each has a color in the profiler. FIREFOX_INHERIT: that of the caller. */
enum firefox_category {
    FIREFOX_OTHER,
    FIREFOX_RUNNING,
    FIREFOX_WAITING,
    FIREFOX_BLOCKED,
    FIREFOX_GC,
    FIREFOX_EXIT,
    FIREFOX_COMPILE,
    FIREFOX_MARKER,
    FIREFOX_COMPILED,
    FIREFOX_INTERPRETED,
    FIREFOX_NO_CPU,
    FIREFOX_WITHOUT_GVL,
    FIREFOX_CATEGORIES,
    FIREFOX_INHERIT = FIREFOX_CATEGORIES,
};

enum { FIREFOX_NO_STACK = UINT32_MAX };

/* Rows of the tables. A row begins with its key. */
struct firefox_string {
    uint32_t text; /* of the pool */
};

struct firefox_source {
    uint32_t name; /* number of a string */
};

struct firefox_func {
    uint32_t name, source; /* numbers of a string and of a source; the latter may be NO_SOURCE */
};

struct firefox_frame {
    uint32_t text, category; /* a label of the pool, an enum firefox_category */
    uint32_t func;
    int64_t line; /* 0: none */
};

/* A stack is a frame with the stack that called it, or FIREFOX_NO_STACK. */
struct firefox_stack {
    uint32_t caller;
    uint32_t frame;
};

struct firefox_stacks {
    struct pool *pool;
    struct budget *budget;
    struct frame_owners *app_only; /* frames of others are left out; NULL: all are in */
    struct row_table strings, sources, funcs, frames, stacks;
    struct map stack_of_rest, stack_below; /* stacks by a caller and another text or stack */
    struct frames rest;
};

void firefox_stacks_init(struct firefox_stacks *stacks, struct reader *reader);
void firefox_stacks_free(struct firefox_stacks *stacks);
/* Returns the number of a string of the pool in the profile's list. */
uint32_t firefox_string(struct firefox_stacks *stacks, uint32_t text);
/* Returns the stack of a frame called by `caller`. `text` is a label of the pool; with a category, it is
 * shown as it is. */
uint32_t firefox_stack(struct firefox_stacks *stacks, uint32_t caller, uint32_t text, enum firefox_category category);
/* Returns the stack of an event's frames from `first` (0: the innermost) on, called by `caller`. */
uint32_t firefox_event_stack(struct firefox_stacks *stacks, uint32_t caller, const struct fxt_event *event,
                             unsigned first);
/* Returns `stack` with another stack below its outermost frame. */
uint32_t firefox_stack_below(struct firefox_stacks *stacks, uint32_t root, uint32_t stack);
/* Writes the member `shared`. No string may be added any more. */
void firefox_put_shared(struct json *json, const struct firefox_stacks *stacks);

void firefox_put_nulls(struct json *json, const char *name, uint32_t count);
/* A table of the format without rows. */
void firefox_put_empty_table(struct json *json, const char *name, unsigned column_count, const char *const *columns);

/* A column of a table of the format: an array with one value for each row `i`, by a function of it. */
#define FIREFOX_COLUMN(to, name, count, ...) \
    do { \
        struct json *column_ = (to); \
        json_array(json_key(column_, (name))); \
        for (uint32_t i = 0; i < (count); i++) __VA_ARGS__; \
        json_end(column_); \
    } while (0)

#endif
