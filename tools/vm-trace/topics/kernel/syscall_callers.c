/* syscall_callers.c - see syscall_callers.h */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "topics/kernel/syscall_callers.h"

enum { OVERLAPS_MAX = 64 /* calls that begin in a system call, and end after it: only if clocks differ */ };

void
syscall_callers_init(struct syscall_callers *callers)
{
    *callers = (struct syscall_callers){.window = {INT64_MIN, INT64_MAX}};
    row_table_init(&callers->rows, sizeof(struct syscall_caller), SYSCALL_CALLER_KEYS, CALLER_ROWS_MAX);
    row_table_init(&callers->tracks, sizeof(struct caller_track), 1, CALLER_TRACKS_MAX);
}

static void
free_tracks(struct syscall_callers *callers)
{
    for (uint32_t i = 0; i < callers->tracks.count; i++) {
        struct caller_track *track = row_table_at(&callers->tracks, i);
        free(track->calls.list);
        free(track->syscalls.list);
    }
    row_table_free(&callers->tracks);
}

void
syscall_callers_free(struct syscall_callers *callers)
{
    free_tracks(callers);
    row_table_free(&callers->rows);
    free(callers->open.list);
}

/* --- lists ---------------------------------------------------------------------------------------- */

/* By their ends; of two with the same end, the inner one first. */
static int
compare_timed(const void *left, const void *right)
{
    const struct interval a = ((const struct timed *)left)->time, b = ((const struct timed *)right)->time;
    if (a.to_ns != b.to_ns) return a.to_ns < b.to_ns ? -1 : 1;
    return (a.from_ns < b.from_ns) - (a.from_ns > b.from_ns);
}

static void
append(struct timed_list *list, const struct timed *timed)
{
    make_room(list->list, list->count, list->capacity);
    if (list->count > 0 && compare_timed(&list->list[list->count - 1], timed) > 0) list->mixed = true;
    list->list[list->count++] = *timed;
}

static void
put_in_order(struct timed_list *list)
{
    if (list->mixed) qsort(list->list, list->count, sizeof *list->list, compare_timed);
    list->mixed = false;
}

/* How many of a list end at this time or before. */
static uint32_t
count_until(const struct timed_list *list, int64_t to_ns)
{
    return rows_until(list->list, list->count, sizeof *list->list, offsetof(struct timed, time.to_ns), to_ns);
}

static void
drop_calls(struct timed_list *calls, uint32_t count)
{
    calls->count -= count;
    if (count > 0) memmove(calls->list, calls->list + count, calls->count * sizeof *calls->list);
}

static void
drop_found(struct timed_list *syscalls, uint32_t from, uint32_t to)
{
    uint32_t kept = from;
    for (uint32_t i = from; i < to; i++) {
        if (syscalls->list[i].name != STRING_NONE) syscalls->list[kept++] = syscalls->list[i];
    }
    if (kept < to) memmove(syscalls->list + kept, syscalls->list + to, (syscalls->count - to) * sizeof *syscalls->list);
    syscalls->count -= to - kept;
}

/* --- comparing --------------------------------------------------------------------------------------- */

static void
count_syscall(struct syscall_callers *callers, uint32_t caller, const struct timed *syscall)
{
    const uint32_t key[SYSCALL_CALLER_KEYS] = {caller, syscall->name};
    struct syscall_caller *row = row_table_get(&callers->rows, key);
    if (row == NULL) {
        callers->uncounted++;
        return;
    }
    row->calls++;
    row->total_ns += interval_common_ns(callers->window, syscall->time);
    if (callers->found != NULL) callers->found(callers->context, caller, syscall->name, syscall->time);
}

/* Removes calls that began when the slice had ended: they do not enclose it, nor anything before. */
static void
close_later(struct timed_list *open, const struct timed *timed)
{
    while (open->count > 0 && open->list[open->count - 1].time.from_ns >= timed->time.to_ns) open->count--;
}

/* The innermost open call around a system call, or NULL. */
static const struct timed *
caller_of(const struct timed_list *open, const struct timed *syscall)
{
    for (uint32_t i = open->count, tries = 0; i > 0 && tries < OVERLAPS_MAX; i--, tries++) {
        if (open->list[i - 1].time.from_ns <= syscall->time.from_ns) return &open->list[i - 1];
    }
    return NULL;
}

/* Compares what ended until this time, the latest first, and drops these calls. */
static void
compare_until(struct syscall_callers *callers, struct caller_track *track, int64_t to_ns)
{
    struct timed_list *calls = &track->calls, *syscalls = &track->syscalls, *open = &callers->open;
    put_in_order(calls);
    put_in_order(syscalls);
    uint32_t call_count = count_until(calls, to_ns), syscall_count = count_until(syscalls, to_ns);
    uint32_t call = call_count, at = syscall_count;
    open->count = 0;
    while (at > 0) {
        struct timed *syscall = &syscalls->list[at - 1];
        if (call > 0 && calls->list[call - 1].time.to_ns >= syscall->time.to_ns) {
            const struct timed *outer = &calls->list[--call];
            close_later(open, outer);
            make_room(open->list, open->count, open->capacity);
            open->list[open->count++] = *outer;
            continue;
        }
        close_later(open, syscall);
        if (call == 0 && open->count == 0) break; /* all others are older than these calls */
        at--;
        const struct timed *caller = caller_of(open, syscall);
        if (caller == NULL) continue;
        count_syscall(callers, caller->name, syscall);
        syscall->name = STRING_NONE;
    }
    drop_found(syscalls, at, syscall_count);
    drop_calls(calls, call_count);
}

/* --- all ----------------------------------------------------------------------------------------------- */

static struct caller_track *
track_of(struct syscall_callers *callers, uint32_t number)
{
    struct caller_track *track = row_table_get(&callers->tracks, &number);
    if (track != NULL && track->limit == 0) track->limit = 2 * CALLER_LIST_HALF;
    return track;
}

static struct timed
timed_of(struct pool *pool, const struct fxt_event *event)
{
    return (struct timed){.time = {event->ts_ns, event->end_ns}, .name = pool_id(pool, event->name)};
}

void
syscall_callers_call(struct syscall_callers *callers, struct pool *pool, uint32_t number,
                     const struct fxt_event *event, int64_t seen_ns)
{
    struct caller_track *track = track_of(callers, number);
    if (track == NULL || event->type != FXT_EVENT_DURATION_COMPLETE) return;
    const struct timed call = timed_of(pool, event);
    if (!interval_touches(callers->window, call.time)) return;
    append(&track->calls, &call);
    if (track->calls.count < track->limit || callers->any_order) return;
    put_in_order(&track->calls);
    int64_t older_ns = track->calls.list[track->calls.count / 2].time.to_ns;
    compare_until(callers, track, older_ns < seen_ns ? older_ns : seen_ns);
    if (track->calls.count > track->limit / 4 * 3) track->limit *= 2; /* the system calls come later in the file */
}

void
syscall_callers_syscall(struct syscall_callers *callers, struct pool *pool, uint32_t number,
                        const struct fxt_event *event)
{
    struct caller_track *track = track_of(callers, number);
    const struct timed syscall = timed_of(pool, event);
    if (event->type != FXT_EVENT_DURATION_COMPLETE || !interval_touches(callers->window, syscall.time)) return;
    if (track != NULL) append(&track->syscalls, &syscall);
    else callers->uncounted++;
}

void
syscall_callers_file_end(struct syscall_callers *callers)
{
    for (uint32_t i = 0; i < callers->tracks.count; i++) {
        struct caller_track *track = row_table_at(&callers->tracks, i);
        compare_until(callers, track, INT64_MAX);
        for (uint32_t at = 0; at < track->syscalls.count; at++)
            count_syscall(callers, STRING_NONE, &track->syscalls.list[at]);
    }
    free_tracks(callers);
    callers->any_order = false;
}
