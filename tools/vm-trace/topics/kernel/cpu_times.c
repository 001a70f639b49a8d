/* cpu_times.c - see cpu_times.h */
#include "topics/kernel/cpu_times.h"
#include "topics/kernel/cpu_tracks.h"
#include "analysis/event_args.h"
#include "fxt/known_strings.h"

enum { WITH_GVL, WITHOUT_CPU };

void
cpu_times_init(struct cpu_times *times)
{
    *times = (struct cpu_times){.window = {INT64_MIN, INT64_MAX}};
    row_table_init(&times->threads, sizeof(struct cpu_thread), CPU_THREAD_KEYS, CPU_THREADS_MAX);
    row_table_init(&times->others, sizeof(struct cpu_other), CPU_OTHER_KEYS, CPU_OTHERS_MAX);
    overlaps_init(&times->held);
}

void
cpu_times_free(struct cpu_times *times)
{
    row_table_free(&times->threads);
    row_list_free(&times->current);
    row_table_free(&times->others);
    overlaps_free(&times->held);
}

void
cpu_times_set_window(struct cpu_times *times, struct interval window)
{
    times->window = times->held.window = window;
}

static struct cpu_thread *
thread_of(struct cpu_times *times, uint32_t process, uint32_t track, uint32_t tid)
{
    const uint32_t key[CPU_THREAD_KEYS] = {process, tid};
    uint32_t known = times->threads.count;
    struct cpu_thread *thread = row_table_get(&times->threads, key);
    if (thread != NULL && times->threads.count > known) {
        thread->cpu = NO_CPU;
        thread->known_ns = INT64_MIN;
        thread->track = track;
    }
    return thread;
}

static void
add_run(struct cpu_thread *thread, const struct cpu_slice *slice, uint64_t ns)
{
    thread->migrations += slice->migrated;
    thread->runs++;
    thread->cpu_ns += ns;
}

static void
add_wait(struct cpu_times *times, struct cpu_thread *thread, const struct cpu_slice *slice, uint64_t ns)
{
    *(slice->why == STRING_PREEMPTED ? &thread->preempted_ns : &thread->woken_ns) += ns;
    thread->waits++;
    if (ns > thread->longest_wait_ns) thread->longest_wait_ns = ns;
    if (slice->other == STRING_NONE) return;
    const uint32_t key[CPU_OTHER_KEYS] = {thread->process, thread->tid, slice->other};
    struct cpu_other *row = row_table_get(&times->others, key);
    if (row == NULL) {
        times->uncounted++;
        return;
    }
    row->waits++;
    row->total_ns += ns;
}

/* From the end of the last slice to this one the thread had no CPU; nor in this one, if it waits in it. */
static void
note_known(struct cpu_times *times, struct cpu_thread *thread, bool waits, bool held, struct interval slice)
{
    const uint32_t key[OVERLAPS_KEYS] = {thread->process, thread->tid};
    bool goes_on = thread->known_ns != INT64_MIN && thread->known_ns <= slice.from_ns; /* else it is older */
    const struct interval without = {goes_on ? thread->known_ns : slice.from_ns,
                                     waits ? slice.to_ns : slice.from_ns};
    if (held) overlaps_add(&times->held, key, WITHOUT_CPU, without);
    if (thread->known_ns == INT64_MIN) row_list_add(&times->current, row_table_number(&times->threads, thread));
    thread->known_ns = slice.to_ns;
}

void
cpu_times_event(struct cpu_times *times, struct pool *pool, uint32_t process, uint32_t track, bool held,
                const struct fxt_event *event)
{
    if (event->type != FXT_EVENT_DURATION_COMPLETE || !cpu_track_p(event->tid)) return;
    struct cpu_thread *thread = thread_of(times, process, track, cpu_track_native_tid(event->tid));
    if (thread == NULL) {
        times->uncounted++;
        return;
    }
    uint32_t cpu = (uint32_t)event_uint(event, STRING_CPU, NO_CPU);
    struct cpu_slice slice = {.time = {event->ts_ns, event->end_ns}, .waits = event->name.id == STRING_RUNNABLE};
    if (slice.waits) {
        slice.why = event_text(pool, event, STRING_WHY);
        slice.other = event_text(pool, event, STRING_OTHER);
    }
    else slice.migrated = thread->cpu != NO_CPU && thread->cpu != cpu;
    uint64_t ns = interval_common_ns(times->window, slice.time);
    if (interval_touches(times->window, slice.time)) {
        if (slice.waits) add_wait(times, thread, &slice, ns);
        else add_run(thread, &slice, ns);
        if (times->slice != NULL) times->slice(times->context, thread, &slice);
    }
    if (!slice.waits) thread->cpu = cpu;
    note_known(times, thread, slice.waits, held, slice.time);
}

void
cpu_times_held(struct cpu_times *times, uint32_t process, uint32_t tid, struct interval interval)
{
    const uint32_t key[OVERLAPS_KEYS] = {process, tid};
    overlaps_add(&times->held, key, WITH_GVL, interval);
}

void
cpu_times_file_end(struct cpu_times *times)
{
    overlaps_finish(&times->held);
    for (uint32_t i = 0; i < times->current.count; i++)
        ((struct cpu_thread *)row_table_at(&times->threads, times->current.rows[i]))->known_ns = INT64_MIN;
    times->current.count = 0;
}

const uint64_t *
cpu_times_held_ns(struct cpu_times *times, const struct cpu_thread *thread)
{
    const uint32_t key[OVERLAPS_KEYS] = {thread->process, thread->tid};
    return overlaps_ns(&times->held, key);
}

/* Threads that waited longest first. */
static int
compare_threads(const void *left, const void *right, void *context)
{
    const struct cpu_thread *a = left, *b = right;
    (void)context;
    if (cpu_wait_ns(a) != cpu_wait_ns(b)) return cpu_wait_ns(a) > cpu_wait_ns(b) ? -1 : 1;
    if (a->cpu_ns != b->cpu_ns) return a->cpu_ns > b->cpu_ns ? -1 : 1;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    return (a->tid > b->tid) - (a->tid < b->tid);
}

static int
compare_others(const void *left, const void *right, void *context)
{
    const struct cpu_other *a = left, *b = right;
    const struct pool *pool = context;
    if (a->total_ns != b->total_ns) return a->total_ns > b->total_ns ? -1 : 1;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->tid != b->tid) return a->tid < b->tid ? -1 : 1;
    return fxt_string_compare(pool_string(pool, a->other), pool_string(pool, b->other));
}

void
cpu_times_sort(struct cpu_times *times, struct pool *pool)
{
    row_table_sort(&times->threads, compare_threads, NULL);
    row_table_sort(&times->others, compare_others, pool);
}

const struct cpu_thread *
cpu_other_thread(struct cpu_times *times, const struct cpu_other *other)
{
    const uint32_t key[CPU_THREAD_KEYS] = {other->process, other->tid};
    return row_table_find(&times->threads, key);
}
