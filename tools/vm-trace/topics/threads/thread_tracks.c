/* thread_tracks.c - see thread_tracks.h */
#include "analysis/event_args.h"
#include "analysis/origin.h"
#include "topics/threads/thread_tracks.h"
#include "fxt/known_strings.h"

/* --- processes and threads ------------------------------------------------------------------- */

/* With too many, the last row collects the rest. */
uint32_t
thread_tracks_process(struct thread_tracks *tracks, uint32_t recording, uint32_t pid)
{
    const uint32_t key[2] = {recording, pid};
    uint32_t known = tracks->processes.count;
    struct track_process *process = row_table_get(&tracks->processes, key);
    if (process == NULL) return TRACK_PROCESSES_MAX - 1;
    if (tracks->processes.count > known) process->last_ns = INT64_MIN, process->first_file = tracks->file;
    return (uint32_t)(process - (struct track_process *)tracks->processes.rows);
}

static uint32_t
thread_of(struct thread_tracks *tracks, uint32_t process, uint32_t tid)
{
    const uint32_t key[2] = {process, tid};
    struct track_thread *thread = row_table_get(&tracks->threads, key);
    return thread == NULL ? TRACK_THREADS_MAX - 1 : (uint32_t)(thread - (struct track_thread *)tracks->threads.rows);
}

void
thread_tracks_object(struct thread_tracks *tracks, const struct fxt_object *object)
{
    if (object->type == FXT_OBJECT_PROCESS) return;
    uint32_t thread = thread_tracks_of(tracks, object->recording, object->pid, object->tid);
    track_thread(tracks, thread)->name = pool_id(tracks->pool, object->name);
    duration_pairs_object(tracks->pairs, object);
}

void
thread_tracks_chunk(struct thread_tracks *tracks, uint64_t offset)
{
    duration_pairs_chunk(tracks->pairs, offset);
}

/* --- states ---------------------------------------------------------------------------------- */

static int64_t
process_last_ns(void *context, uint32_t number)
{
    return track_process(context, number)->last_ns;
}

static int64_t
thread_seen_ns(void *context, uint32_t number)
{
    return track_thread(context, number)->seen_ns;
}

static void
on_piece(void *context, const struct thread_times *times, enum thread_state state, int64_t from_ns, int64_t to_ns,
         uint64_t gc_ns)
{
    struct thread_tracks *tracks = context;
    struct track_thread *thread = track_thread(tracks, times->row);
    thread->has_states = true;
    thread->cpu = times->cpu;
    struct track_piece piece = {.thread = times->row,
                                .state = state,
                                .from_ns = from_ns,
                                .to_ns = to_ns,
                                .gc_ns = gc_ns,
                                .waker = NO_TRACK};
    if (state == THREAD_BLOCKED) {
        piece.waker = times->waker;
        /* The state began at since_ns; what an earlier piece of a spool has of it was passed then. */
        if (thread->blocks && thread->blocked_ns >= times->since_ns && thread->blocked_ns <= to_ns) {
            piece.name = thread->blocked_in;
            piece.class_name = thread->class_name;
            piece.name_ns = thread->blocked_ns > from_ns ? thread->blocked_ns : from_ns;
        }
        thread->blocks = false;
    }
    if (tracks->visitor.piece) tracks->visitor.piece(tracks->visitor.context, &piece);
}

static void
on_begun(void *context, const struct duration_edge *begin)
{
    struct thread_tracks *tracks = context;
    if (!begin->outermost || begin->category != STRING_BLOCKED) return;
    struct track_thread *thread = track_thread(tracks, begin->row);
    thread->blocks = true;
    thread->blocked_in = begin->name;
    thread->class_name = begin->class_name;
    thread->blocked_ns = begin->ts_ns;
}

static void
on_pair(void *context, const struct duration_edge *begin, const struct duration_edge *end)
{
    struct thread_tracks *tracks = context;
    if (tracks->visitor.pair) tracks->visitor.pair(tracks->visitor.context, begin, end);
}

/* --- records ----------------------------------------------------------------------------------- */

static void
note_process_time(struct track_process *process, int64_t ts_ns)
{
    if (ts_ns > process->last_ns) process->last_ns = ts_ns;
}

uint32_t
thread_tracks_of(struct thread_tracks *tracks, uint32_t recording, uint32_t pid, uint32_t tid)
{
    return thread_of(tracks, thread_tracks_process(tracks, recording, pid), tid);
}

uint32_t
thread_tracks_event(struct thread_tracks *tracks, const struct fxt_event *event)
{
    uint32_t process = thread_tracks_process(tracks, event->recording, event->pid);
    uint32_t thread = thread_of(tracks, process, event->tid);
    note_process_time(track_process(tracks, process), event->ts_ns);
    int64_t seen_ns = fxt_event_seen_ns(event);
    if (seen_ns > track_thread(tracks, thread)->seen_ns) track_thread(tracks, thread)->seen_ns = seen_ns;
    bool state = event->category.id == STRING_GC || event->category.id == STRING_BLOCKED;
    switch (event->type) {
      case FXT_EVENT_DURATION_COMPLETE:
        if (!state) return thread;
        break;
      case FXT_EVENT_DURATION_BEGIN:
      case FXT_EVENT_DURATION_END: break;
      case FXT_EVENT_INSTANT:
        if (event->category.id == STRING_TRACE && event->name.id == STRING_SETTINGS &&
            event_older_behind(tracks->pool, event))
            duration_pairs_keeps_newest(tracks->pairs, process);
        if (origin_event_p(event)) track_process(tracks, process)->host = event_text(tracks->pool, event, STRING_HOST);
        return thread;
      default: return thread;
    }
    duration_pairs_add(tracks->pairs, tracks->pool, event, process, thread, true);
    return thread;
}

/* The thread that woke another one: it belongs to the same process. */
static uint32_t
waker_of(struct thread_tracks *tracks, const struct fxt_sched *sched, uint32_t process)
{
    for (unsigned i = 0; i < sched->arg_count; i++) {
        const struct fxt_arg *arg = &sched->args[i];
        if (fxt_string_is(arg->name, "waker") && arg->type == FXT_ARG_KOID && arg->u64 != 0)
            return thread_of(tracks, process, (uint32_t)arg->u64);
    }
    return NO_TRACK;
}

static bool
on_change(void *context, const struct fxt_sched *sched, const struct sched_change_of *change,
          struct duration_edge *edge)
{
    struct thread_tracks *tracks = context;
    edge->process = thread_tracks_process(tracks, sched->recording, change->pid);
    edge->row = thread_of(tracks, edge->process, change->tid);
    note_process_time(track_process(tracks, edge->process), sched->ts_ns);
    if (edge->sched == SCHED_WOKEN) edge->waker = waker_of(tracks, sched, edge->process);
    return true;
}

bool
thread_tracks_sched(struct thread_tracks *tracks, const struct fxt_sched *sched)
{
    return duration_pairs_sched(tracks->pairs, sched);
}

/* --- all ------------------------------------------------------------------------------------------ */

void
thread_tracks_init(struct thread_tracks *tracks, struct pool *pool, const struct thread_tracks_visitor *visitor)
{
    *tracks = (struct thread_tracks){.visitor = *visitor, .pool = pool};
    row_table_init(&tracks->processes, sizeof(struct track_process), 2, TRACK_PROCESSES_MAX);
    row_table_init(&tracks->threads, sizeof(struct track_thread), 2, TRACK_THREADS_MAX);
    const struct thread_states_visitor states = {
        .context = tracks, .last_ns = process_last_ns, .seen_ns = thread_seen_ns, .piece = on_piece};
    thread_states_init(&tracks->states, &states);
}

void
thread_tracks_free(struct thread_tracks *tracks)
{
    row_table_free(&tracks->processes);
    row_table_free(&tracks->threads);
    thread_states_free(&tracks->states);
    duration_pairs_free(tracks->pairs);
}

void
thread_tracks_file_begin(struct thread_tracks *tracks)
{
    const struct duration_pair_visitor visitor = {
        .context = tracks, .pair = on_pair, .begun = on_begun, .change = on_change};
    tracks->pairs = duration_pairs_new(&visitor, &tracks->states);
}

void
thread_tracks_file_end(struct thread_tracks *tracks, bool stopped)
{
    duration_pairs_file_end(tracks->pairs, stopped);
    duration_pairs_free(tracks->pairs);
    tracks->pairs = NULL;
    tracks->file++;
}
