#ifndef CALL_NESTING_H
#define CALL_NESTING_H
/* call_nesting.h - finds the caller of each call. Calls are written when they return, so callees come
 * before their caller.
 *
 *      call_nesting_init -> call_nesting_add for each call -> call_nesting_finish -> call_nesting_free
 *
 * Each track has a list of the calls that have no caller yet. Its memory does not grow with the number of
 * calls: if it becomes long, its oldest ones are folded, so that one entry has all calls of a name in some
 * stretch of time. A caller that begins within such a stretch gets all of it, or nothing. That needs a
 * caller of more than CALL_LIST_HALF calls, and a stretch is a small part of these.
 *
 * Chunks of a track may be in another order than time. If a call ended before the last one, those after it
 * are set aside until the file has caught up with them. What is then found to be inside of a call that
 * returned before belongs to the outermost such call: its callees may be the real caller.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/row_table.h"
#include "fxt/reader.h"

enum { CALL_LIST_HALF = 32 * 1024, CALL_TRACKS_MAX = 256 * 1024 };

/* A call, or several of one name that were folded. */
struct call {
    int64_t begin_ns, end_ns;
    uint64_t total_ns; /* within the window */
    int64_t own_ns;    /* without its callees; below 0 only where calls were folded */
    uint64_t calls;
    uint64_t left_out, left_out_ns; /* calls inside that are not recorded */
    uint32_t name; /* a number of the pool */
    uint32_t data; /* the visitor's */
    bool began, ended; /* it was open when the trace began, when it ended */
};

/* Adds times. A damaged file may have any: sums of such wrap around. */
static inline void
call_add_ns(int64_t *sum_ns, int64_t ns)
{
    *sum_ns = (int64_t)((uint64_t)*sum_ns + (uint64_t)ns);
}

struct call_nesting_visitor {
    void *context;
    /* The caller's own_ns is not known yet. */
    void (*callee)(void *context, uint32_t track, struct call *caller, const struct call *callee);
    /* All its callees are known. */
    void (*returned)(void *context, uint32_t track, struct call *call);
    /* Likewise, but the caller has returned: its own_ns was too large by the time of the callee. */
    void (*late_callee)(void *context, uint32_t track, struct call *caller, const struct call *callee);
    /* It has no caller. */
    void (*outermost)(void *context, uint32_t track, const struct call *call);
    /* The fiber did not run: this is no call of the others, and no own time of its caller. Or NULL. */
    void (*suspended)(void *context, uint32_t track, const struct call *call);
    /* Calls of the same name become one entry, `into`; or NULL. */
    void (*fold)(void *context, struct call *into, const struct call *from);
};

struct call_track {
    uint32_t track; /* the key: a number of the caller's */
    struct call *list; /* have no caller yet; in the order of their times */
    uint32_t count, capacity;
    uint32_t folded; /* the first ones of the list: they were folded */
    uint32_t limit; /* of the list, before the next ones are folded */
    int64_t last_ns; /* end of the last call */
    struct call *later; /* set aside: the end of the list, while older calls are read */
    uint32_t later_count, later_capacity;
    bool late;        /* some may be set aside */
    int64_t later_ns; /* end of the last one of these */
    uint32_t joins;
};

struct call_nesting {
    struct call_nesting_visitor visitor;
    int64_t from_ns, to_ns; /* the window: only what lies in it counts */
    struct row_table tracks; /* of struct call_track */
    uint32_t *folded_at; /* by name, while a list is folded */
    uint32_t names;
    bool sorted; /* calls come in any order, and are kept until the end: for files of a limited size */
    struct kept_call {
        uint32_t track;
        struct call call;
    } *kept;
    uint32_t kept_count, kept_capacity;
    uint64_t late;      /* calls that are not counted, because the calls of their track are in no order */
    uint64_t uncounted; /* calls of too many tracks */
};

/* The window is the visitor's to set, before the first call. */
void call_nesting_init(struct call_nesting *nesting, const struct call_nesting_visitor *visitor);
void call_nesting_free(struct call_nesting *nesting);
/* Adds a call with its name, times, marks, and what it left out. */
void call_nesting_add(struct call_nesting *nesting, uint32_t track, const struct call *call);
/* An event trace/settings: the chunks of a file that keeps its newest events are in no order. */
void call_nesting_settings(struct call_nesting *nesting, const struct fxt_event *event);
/* An event of the category call. */
void call_nesting_event(struct call_nesting *nesting, uint32_t track, struct pool *pool,
                        const struct fxt_event *event);
/* After the last call of a file. */
void call_nesting_finish(struct call_nesting *nesting);

#endif
