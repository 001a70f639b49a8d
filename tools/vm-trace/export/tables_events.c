/* tables_events.c - see tables_events.h */
#include <stdlib.h>

#include "analysis/event_args.h"
#include "fxt/counter_values.h"
#include "fxt/known_strings.h"
#include "export/event_json.h"
#include "export/tables_events.h"

static uint64_t
key_of(uint32_t recording, uint32_t pid)
{
    return (uint64_t)recording << 32 | pid;
}

static struct written_process *
process_of(const struct tables_events *events, uint32_t recording, uint32_t pid)
{
    uint32_t index = map_get(&events->by_pid, key_of(recording, pid));
    return index == MAP_NONE ? NULL : &events->processes[index];
}

static struct written_process *
process_of_thread(const struct tables_events *events, const struct track_thread *thread)
{
    const struct track_process *process = track_process(&events->tracks, thread->process);
    return process_of(events, process->recording, process->pid);
}

static struct rows *
begin_row(struct written_process *process, enum table_id table)
{
    struct rows *rows = &process->tables.rows[table];
    rows_begin(rows, text_of(process->tables.key));
    return rows;
}

static void
arguments(const struct tables_events *events, struct rows *rows, const struct fxt_event *event)
{
    char *text = NULL;
    size_t len = 0;
    if (events->with_arguments && event->arg_count > 0) {
        FILE *stream = xmemstream(&text, &len);
        struct json json = json_to(stream);
        json_event_args(&json, event);
        fclose(stream);
    }
    rows_text(rows, (struct fxt_string){.ptr = len > 0 ? text : "", .len = (uint32_t)len});
    free(text);
}

/* --- spans -------------------------------------------------------------------------------------------- */

struct span {
    uint32_t tid, category, name; /* strings of the pool */
    int64_t begin_ns, end_ns;
    bool open, outermost;
    uint32_t iseq, version, reason;
    uint64_t code_bytes;
};

/* All but the arguments. */
static struct rows *
begin_span(const struct tables_events *events, struct written_process *process, const struct span *span)
{
    struct pool *pool = events->pool;
    struct rows *rows = begin_row(process, TABLE_SPANS);
    uint32_t name = span->category == STRING_INVALIDATION ? pool_without_addresses(pool, span->name) : span->name;
    rows_moment(rows, span->begin_ns, process->tables.boot_ns);
    rows_integer(rows, span->end_ns > span->begin_ns ? time_difference(span->end_ns, span->begin_ns) : 0);
    rows_integer(rows, span->open);
    rows_integer(rows, span->tid);
    rows_text(rows, pool_string(pool, span->category));
    rows_text(rows, pool_string(pool, name));
    rows_integer(rows, span->outermost);
    rows_text(rows, pool_string(pool, span->iseq));
    rows_integer(rows, span->version);
    rows_count(rows, span->code_bytes);
    rows_text(rows, pool_string(pool, span->reason));
    return rows;
}

static void
on_pair(void *context, const struct duration_edge *begin, const struct duration_edge *end)
{
    struct tables_events *events = context;
    if (begin == NULL) return; /* the report says so */
    const struct track_thread *thread = track_thread(&events->tracks, begin->row);
    struct written_process *process = process_of_thread(events, thread);
    if (process == NULL) return;
    int64_t end_ns =
        end != NULL ? end->ts_ns : thread_states_end_ns(&events->tracks.states, begin->row, thread->process);
    struct span span = {.tid = thread->tid, .category = begin->category, .name = begin->name,
                        .begin_ns = begin->ts_ns, .end_ns = end_ns, .open = end == NULL,
                        .outermost = begin->outermost};
    if (end != NULL && begin->category == STRING_COMPILE && end->category == STRING_COMPILE) {
        span.iseq = end->iseq;
        span.version = end->version;
        span.code_bytes = end->code_bytes;
    }
    if (begin->category == STRING_GC) span.reason = begin->reason;
    struct rows *rows = begin_span(events, process, &span);
    rows_text(rows, text_of("")); /* the window of pairs keeps no arguments */
    rows_end(rows);
}

/* A duration in one record, which is not paired. Those of `call` and the like always nest, so which one is
 * outermost is known only in the engine. */
static void
write_complete(const struct tables_events *events, struct written_process *process, const struct fxt_event *event)
{
    struct duration_edge edge = duration_edge_of(events->pool, event);
    struct span span = {.tid = event->tid, .category = edge.category, .name = edge.name,
                        .begin_ns = event->ts_ns, .end_ns = event->end_ns};
    if (edge.category == STRING_COMPILE) {
        span.iseq = edge.iseq;
        span.version = edge.version;
        span.code_bytes = edge.code_bytes;
    }
    struct rows *rows = begin_span(events, process, &span);
    arguments(events, rows, event);
    rows_end(rows);
}

/* --- states ------------------------------------------------------------------------------------------- */

static void
on_piece(void *context, const struct track_piece *piece)
{
    static const char *const names[THREAD_STATE_COUNT] = {
        [THREAD_RUNNING] = "running", [THREAD_IN_GC] = "gc", [THREAD_WAITING] = "waiting",
        [THREAD_BLOCKED] = "blocked"};
    struct tables_events *events = context;
    const struct track_thread *thread = track_thread(&events->tracks, piece->thread);
    struct written_process *process = process_of_thread(events, thread);
    if (process == NULL || names[piece->state] == NULL) return;
    struct rows *rows = begin_row(process, TABLE_STATES);
    rows_moment(rows, piece->from_ns, process->tables.boot_ns);
    rows_integer(rows, time_difference(piece->to_ns, piece->from_ns));
    rows_integer(rows, thread->tid);
    rows_text(rows, text_of(names[piece->state]));
    rows_count(rows, piece->gc_ns);
    rows_text(rows, pool_string(events->pool, piece->name));
    rows_integer(rows, piece->waker != NO_TRACK ? track_thread(&events->tracks, piece->waker)->tid : 0);
    rows_end(rows);
}

/* --- events and counters -------------------------------------------------------------------------------- */

static const char *
kind_of(enum fxt_event_type type)
{
    switch (type) {
      case FXT_EVENT_INSTANT: return "instant";
      case FXT_EVENT_ASYNC_BEGIN: return "async_begin";
      case FXT_EVENT_ASYNC_INSTANT: return "async_instant";
      case FXT_EVENT_ASYNC_END: return "async_end";
      case FXT_EVENT_FLOW_BEGIN: return "flow_begin";
      case FXT_EVENT_FLOW_STEP: return "flow_step";
      case FXT_EVENT_FLOW_END: return "flow_end";
      default: return NULL;
    }
}

static uint32_t
name_of(struct pool *pool, const struct fxt_event *event)
{
    switch (event->category.id) {
      case STRING_SIDE_EXIT:
      case STRING_RECOMPILE_EXIT:
      case STRING_FALLBACK:
      case STRING_ALLOCATION: return event_reason(pool, event);
      default: return pool_id(pool, event->name);
    }
}

static void
write_event(struct tables_events *events, struct written_process *process, const struct fxt_event *event)
{
    struct pool *pool = events->pool;
    int64_t frame = table_frame_id(&process->stacks, event_text(pool, event, STRING_FRAME_0));
    int64_t stack = table_stack_id(&process->stacks, event);
    struct rows *rows = begin_row(process, TABLE_EVENTS);
    rows_moment(rows, event->ts_ns, process->tables.boot_ns);
    rows_integer(rows, event->tid);
    rows_text(rows, text_of(kind_of(event->type)));
    rows_text(rows, event->category);
    rows_text(rows, pool_string(pool, name_of(pool, event)));
    rows_integer(rows, event->type == FXT_EVENT_INSTANT ? 0 : (int64_t)event->id);
    rows_text(rows, pool_string(pool, event_text(pool, event, STRING_THREAD)));
    rows_integer(rows, frame);
    rows_integer(rows, stack);
    rows_text(rows, pool_string(pool, event_text(pool, event, STRING_INSN)));
    rows_count(rows, event_uint(event, STRING_VERSION, 0));
    rows_count(rows, event_uint(event, STRING_WEIGHT, 1));
    rows_text(rows, pool_string(pool, event_text(pool, event, STRING_OUTCOME)));
    rows_count(rows, event_uint(event, STRING_LOST_NS, 0));
    arguments(events, rows, event);
    rows_end(rows);
}

static void
write_counters(const struct tables_events *events, struct written_process *process, const struct fxt_event *event)
{
    for (unsigned i = 0; i < event->arg_count; i++) {
        double value;
        if (!counter_value(&event->args[i], &value)) continue;
        struct rows *rows = begin_row(process, TABLE_COUNTERS);
        rows_moment(rows, event->ts_ns, process->tables.boot_ns);
        rows_text(rows, event->category);
        rows_text(rows, event->name);
        rows_text(rows, event->args[i].name);
        rows_integer(rows, (int64_t)event->id);
        rows_real(rows, value);
        rows_end(rows);
    }
    (void)events;
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct tables_events *events = context;
    thread_tracks_event(&events->tracks, event);
    struct written_process *process = process_of(events, event->recording, event->pid);
    if (process == NULL || event->category.id == STRING_TRACE) return; /* the report's sums have these */
    bool paired = event->category.id == STRING_GC || event->category.id == STRING_BLOCKED;
    if (event->type == FXT_EVENT_COUNTER) write_counters(events, process, event);
    else if (event->type == FXT_EVENT_DURATION_COMPLETE && !paired) write_complete(events, process, event);
    else if (kind_of(event->type) != NULL) write_event(events, process, event);
}

/* --- the file ------------------------------------------------------------------------------------------ */

static void
on_sched(void *context, const struct fxt_sched *sched)
{
    struct tables_events *events = context;
    thread_tracks_sched(&events->tracks, sched);
}

static void
on_object(void *context, const struct fxt_object *object)
{
    struct tables_events *events = context;
    thread_tracks_object(&events->tracks, object);
}

static void
on_chunk(void *context, uint32_t provider, struct fxt_string name, uint64_t offset)
{
    struct tables_events *events = context;
    (void)provider, (void)name;
    thread_tracks_chunk(&events->tracks, offset);
}

int
tables_write_events(struct tables_events *events, struct reader *reader, const char *file, uint32_t process_count)
{
    const struct thread_tracks_visitor tracks = {.context = events, .piece = on_piece, .pair = on_pair};
    const struct fxt_visitor all = {
        .context = events, .event = on_event, .object = on_object, .sched = on_sched, .chunk = on_chunk};
    events->pool = reader_pool(reader);
    events->by_pid = (struct map){0};
    for (uint32_t i = 0; i < process_count; i++) {
        const struct written_process *process = &events->processes[i];
        map_set(&events->by_pid, key_of(process->recording, process->pid), i);
    }
    thread_tracks_init(&events->tracks, events->pool, &tracks);
    thread_tracks_file_begin(&events->tracks);
    struct trace_filter filter;
    trace_filter_init(&filter, events->choice, reader);
    const struct fxt_visitor visitor = trace_filter_visitor(&filter, &all);
    int error = reader_read_again(reader, file, &visitor);
    trace_filter_file_end(&filter);
    trace_filter_free(&filter);
    thread_tracks_file_end(&events->tracks, reader_stopped(reader));
    thread_tracks_free(&events->tracks);
    map_free(&events->by_pid);
    return error;
}
