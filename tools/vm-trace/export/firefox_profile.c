/* firefox_profile.c - see firefox_profile.h */
#define _GNU_SOURCE /* open_memstream */
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "fxt/read_files.h"
#include "export/firefox_profile.h"

enum {
    TWO_SAMPLES_NS = 10 * 1000,
    DEPTH_MAX = 512, /* of durations in one another, as in Perfetto */
};

static const char *const state_names[FIREFOX_CATEGORIES] = {
    [FIREFOX_RUNNING] = "running",
    [FIREFOX_WAITING] = "waiting for the GVL",
    [FIREFOX_BLOCKED] = "blocked",
    [FIREFOX_GC] = "in GC",
};

/* --- reading -------------------------------------------------------------------------------------- */

static struct firefox_thread *
profiled(struct firefox_profile *firefox, uint32_t thread)
{
    while (thread >= firefox->thread_count) {
        make_room_within(firefox->budget, firefox->threads, firefox->thread_count, firefox->thread_capacity);
        firefox->threads[firefox->thread_count++] = (struct firefox_thread){0};
    }
    return &firefox->threads[thread];
}

static bool
is_frame(uint32_t name)
{
    return name >= STRING_FRAME_0 && name <= STRING_FRAME_REST;
}

#define ARG_PREFIX "arg_"

struct fxt_string
firefox_arg_name(const struct pool *pool, uint32_t name)
{
    struct fxt_string text = pool_string(pool, name);
    size_t bytes = text.len + sizeof ARG_PREFIX;
    char *prefixed = xrealloc(NULL, bytes, 1);
    memcpy(prefixed, ARG_PREFIX, sizeof ARG_PREFIX - 1);
    memcpy(prefixed + sizeof ARG_PREFIX - 1, text.ptr, text.len);
    return (struct fxt_string){.ptr = prefixed, .len = (uint32_t)(bytes - 1)};
}

/* Returns the arguments that are no frames as members of a JSON object, for json_members. */
static uint32_t
args_of(struct firefox_profile *firefox, uint32_t schema, const struct fxt_event *event)
{
    rewind(firefox->args);
    struct json json = json_members_to(firefox->args);
    bool any = false;
    for (unsigned i = 0; i < event->arg_count; i++) {
        uint32_t name = pool_id(firefox->pool, event->args[i].name);
        if (is_frame(name)) continue;
        const uint32_t key[2] = {schema, name};
        if (row_table_get(&firefox->fields, key) == NULL) continue;
        any = true;
        struct fxt_string member = firefox_arg_name(firefox->pool, name);
        json_text(json_key_text(&json, member), pool_string(firefox->pool, arg_text(firefox->pool, &event->args[i])));
        free((char *)member.ptr);
    }
    if (!any) return STRING_NONE;
    long length = ftell(firefox->args);
    fflush(firefox->args);
    return length <= 0 ? STRING_NONE : pool_intern(firefox->pool, firefox->args_text, (size_t)length);
}

static uint32_t
schema_of(struct firefox_profile *firefox, const struct fxt_event *event)
{
    const uint32_t key[1] = {pool_id(firefox->pool, event->category)};
    const struct firefox_schema *schema = row_table_get(&firefox->schemas, key);
    if (schema == NULL) return FIREFOX_SCHEMAS_MAX - 1;
    return (uint32_t)(schema - (struct firefox_schema *)firefox->schemas.rows);
}

static void
add_record(struct firefox_profile *firefox, uint32_t thread, const struct fxt_event *event)
{
    struct firefox_record record = {
        .ts_ns = event->ts_ns,
        .end_ns = event->type == FXT_EVENT_DURATION_COMPLETE ? event->end_ns : event->ts_ns,
        .offset = event->offset,
        .type = event->type,
        .schema = schema_of(firefox, event),
        .name = pool_id(firefox->pool, event->name),
        .innermost = event_text(firefox->pool, event, STRING_FRAME_0),
        .outer_stack = firefox_event_stack(&firefox->stacks, FIREFOX_NO_STACK, event, 1),
        .weight = event_uint(event, STRING_WEIGHT, 1),
    };
    uint64_t lost_ns = event_uint(event, STRING_LOST_NS, 0);
    if (firefox->wanted == FIREFOX_SAMPLES_LOST && __builtin_mul_overflow(lost_ns, record.weight, &record.weight))
        record.weight = lost_ns;
    record.args = args_of(firefox, record.schema, event);
    struct firefox_thread *to = profiled(firefox, thread);
    make_room_within(firefox->budget, to->records, to->record_count, to->record_capacity);
    to->records[to->record_count++] = record;
}

static void
note_time(struct firefox_profile *firefox, int64_t from_ns, int64_t to_ns)
{
    if (from_ns < firefox->first_ns) firefox->first_ns = from_ns;
    if (to_ns > firefox->last_ns) firefox->last_ns = to_ns;
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct firefox_profile *firefox = context;
    bool complete = event->type == FXT_EVENT_DURATION_COMPLETE;
    note_time(firefox, event->ts_ns, complete ? event->end_ns : event->ts_ns);
    uint32_t thread = thread_tracks_event(&firefox->tracks, event);
    uint32_t category = event->category.id;
    if (category == STRING_TRACE) { /* about the trace, not of the program */
        if (event->name.id != STRING_SETTINGS || firefox->command != STRING_NONE) return;
        firefox->command = event_text(firefox->pool, event, STRING_COMMAND);
        firefox->ruby = event_text(firefox->pool, event, STRING_RUBY);
        return;
    }
    switch (event->type) {
      case FXT_EVENT_INSTANT:
      case FXT_EVENT_DURATION_BEGIN:
      case FXT_EVENT_DURATION_END:
      case FXT_EVENT_DURATION_COMPLETE: add_record(firefox, thread, event); return;
      case FXT_EVENT_COUNTER:
        profiled(firefox, thread)->counts = true;
        firefox->left_out +=
            !firefox_counters_add(&firefox->counters, track_thread(&firefox->tracks, thread)->process, event);
        return;
      default: firefox->left_out++;
    }
}

static void
on_object(void *context, const struct fxt_object *object)
{
    struct firefox_profile *firefox = context;
    uint32_t process = thread_tracks_process(&firefox->tracks, object->recording, object->pid);
    threads_name(&firefox->names, firefox->pool, process, object);
    thread_tracks_object(&firefox->tracks, object);
}

static void
on_sched(void *context, const struct fxt_sched *sched)
{
    struct firefox_profile *firefox = context;
    if (thread_tracks_sched(&firefox->tracks, sched)) note_time(firefox, sched->ts_ns, sched->ts_ns);
}

static void
on_chunk(void *context, uint32_t id, struct fxt_string name, uint64_t offset)
{
    struct firefox_profile *firefox = context;
    (void)id, (void)name;
    thread_tracks_chunk(&firefox->tracks, offset);
}

static void
on_piece(void *context, const struct track_piece *piece)
{
    struct firefox_profile *firefox = context;
    struct firefox_thread *to = profiled(firefox, piece->thread);
    make_room_within(firefox->budget, to->pieces, to->piece_count, to->piece_capacity);
    to->pieces[to->piece_count++] = *piece;
    firefox->states = true;
}

/* --- pairing --------------------------------------------------------------------------------------- */

static int
compare_records(const void *left, const void *right)
{
    const struct firefox_record *a = left, *b = right;
    if (a->ts_ns != b->ts_ns) return a->ts_ns < b->ts_ns ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static int
compare_pieces(const void *left, const void *right)
{
    const struct track_piece *a = left, *b = right;
    return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

static void
sort(void *rows, uint32_t count, size_t bytes, int (*compare)(const void *, const void *))
{
    if (count > 1) qsort(rows, count, bytes, compare);
}

/* Joins what the begin and the end of a duration say. */
static void
join(struct firefox_profile *firefox, struct firefox_record *begin, const struct firefox_record *end)
{
    begin->type = FXT_EVENT_DURATION_COMPLETE;
    begin->end_ns = end->ts_ns;
    if (begin->outer_stack == FIREFOX_NO_STACK) begin->outer_stack = end->outer_stack;
    if (begin->innermost == STRING_NONE) begin->innermost = end->innermost;
    if (end->args == STRING_NONE) return;
    struct fxt_string a = pool_string(firefox->pool, begin->args), b = pool_string(firefox->pool, end->args);
    char *both = xrealloc(NULL, (size_t)a.len + b.len + 1, 1);
    memcpy(both, a.ptr, a.len);
    memcpy(both + a.len, b.ptr, b.len);
    begin->args = pool_intern(firefox->pool, both, (size_t)a.len + b.len);
    free(both);
}

/* Sorts the records of a thread, and makes one of each duration. What never ends lasts to the end of the
 * trace; an end without a begin is dropped, as by all other readers. */
static void
pair_records(struct firefox_profile *firefox, struct firefox_thread *thread)
{
    sort(thread->records, thread->record_count, sizeof *thread->records, compare_records);
    uint32_t open[DEPTH_MAX], depth = 0, too_deep = 0, kept = 0;
    for (uint32_t i = 0; i < thread->record_count; i++) {
        struct firefox_record *record = &thread->records[i];
        if (record->type == FXT_EVENT_DURATION_END) {
            if (too_deep > 0) too_deep--;
            else if (depth > 0) join(firefox, &thread->records[open[--depth]], record);
            continue;
        }
        if (record->type == FXT_EVENT_DURATION_BEGIN) {
            if (depth == DEPTH_MAX) {
                too_deep++;
                continue;
            }
            open[depth++] = kept;
            record->end_ns = firefox->last_ns;
        }
        thread->records[kept++] = *record;
    }
    thread->record_count = kept;
}

uint32_t
firefox_schema_category(const struct firefox_profile *firefox, uint32_t schema)
{
    return ((const struct firefox_schema *)row_table_at(&firefox->schemas, schema))->category;
}

static enum firefox_category
category_of(enum thread_state state)
{
    switch (state) {
      case THREAD_WAITING: return FIREFOX_WAITING;
      case THREAD_BLOCKED: return FIREFOX_BLOCKED;
      case THREAD_IN_GC: return FIREFOX_GC;
      default: return FIREFOX_RUNNING;
    }
}

uint32_t
firefox_record_stack(struct firefox_profile *firefox, const struct firefox_record *record)
{
    if (record->innermost == STRING_NONE) return record->outer_stack;
    return firefox_stack(&firefox->stacks, record->outer_stack, record->innermost, FIREFOX_INHERIT);
}

static uint32_t
thread_name(const struct firefox_profile *firefox, uint32_t thread)
{
    return thread == NO_TRACK ? STRING_NONE : track_thread(&firefox->tracks, thread)->name;
}

static void
add_sample(struct firefox_thread *thread, int64_t ts_ns, uint64_t ns, uint32_t stack)
{
    make_room(thread->samples, thread->sample_count, thread->sample_capacity);
    thread->samples[thread->sample_count++] = (struct firefox_sample){ts_ns, ns, stack};
}

/* The profiler draws a sample from halfway to the one before to halfway to the next. So a time that is
 * long enough to be seen has two, at its ends, which share it. */
static void
add_time(struct firefox_thread *thread, int64_t from_ns, uint64_t ns, uint32_t stack)
{
    if (ns < TWO_SAMPLES_NS) {
        add_sample(thread, from_ns + (int64_t)(ns / 2), ns, stack);
        return;
    }
    add_sample(thread, from_ns, ns / 2, stack);
    add_sample(thread, from_ns + (int64_t)ns - 1, ns - ns / 2, stack);
}

static void
add_state(struct firefox_profile *firefox, struct firefox_thread *thread, int64_t from_ns, uint64_t ns,
          enum firefox_category category, const struct firefox_record *record)
{
    if (ns == 0) return;
    uint32_t stack = firefox_stack(&firefox->stacks, FIREFOX_NO_STACK, firefox->state_frames[category], category);
    if (record != NULL) {
        uint32_t below = firefox_record_stack(firefox, record);
        if (below == FIREFOX_NO_STACK)
            below = firefox_stack(&firefox->stacks, FIREFOX_NO_STACK, record->name, FIREFOX_INHERIT);
        stack = firefox_stack_below(&firefox->stacks, stack, below);
    }
    add_time(thread, from_ns, ns, stack);
}

/* Makes samples of the states. The stack is where the thread blocked, or where its time slice ended. */
static void
sample_states(struct firefox_profile *firefox, struct firefox_thread *thread)
{
    sort(thread->pieces, thread->piece_count, sizeof *thread->pieces, compare_pieces);
    uint32_t at = 0;
    for (uint32_t i = 0; i < thread->piece_count; i++) {
        const struct track_piece *piece = &thread->pieces[i];
        const struct firefox_record *found = NULL;
        while (at < thread->record_count && thread->records[at].ts_ns < piece->from_ns) at++;
        for (uint32_t r = at; r < thread->record_count && thread->records[r].ts_ns < piece->to_ns; r++) {
            struct firefox_record *record = &thread->records[r];
            uint32_t category = firefox_schema_category(firefox, record->schema);
            if (piece->state != (category == STRING_BLOCKED     ? THREAD_BLOCKED
                                 : category == STRING_PREEMPTED ? THREAD_WAITING
                                                                : THREAD_UNKNOWN))
                continue;
            if (piece->state == THREAD_BLOCKED) record->woken_by = thread_name(firefox, piece->waker);
            found = record;
            break;
        }
        uint64_t ns = (uint64_t)(piece->to_ns - piece->from_ns) - piece->gc_ns;
        add_state(firefox, thread, piece->from_ns, piece->gc_ns, FIREFOX_GC, NULL);
        add_state(firefox, thread, piece->from_ns + (int64_t)piece->gc_ns, ns, category_of(piece->state), found);
    }
}

static bool
exit_wanted(const struct firefox_profile *firefox, uint32_t category)
{
    if (firefox->wanted == FIREFOX_SAMPLES_FALLBACKS) return category == STRING_FALLBACK;
    return category == STRING_SIDE_EXIT || category == STRING_RECOMPILE_EXIT;
}

/* Makes samples of the exits, which are no markers then. */
static void
sample_exits(struct firefox_profile *firefox, struct firefox_thread *thread)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < thread->record_count; i++) {
        const struct firefox_record *record = &thread->records[i];
        uint32_t category = firefox_schema_category(firefox, record->schema);
        if (record->type != FXT_EVENT_INSTANT || !exit_wanted(firefox, category)) {
            thread->records[kept++] = *record;
            continue;
        }
        struct firefox_sample sample = {record->ts_ns, record->weight, firefox_record_stack(firefox, record)};
        if (firefox->with_reasons) {
            uint32_t reason = pool_without_addresses(firefox->pool, record->name);
            sample.stack = firefox_stack(&firefox->stacks, sample.stack, reason, FIREFOX_EXIT);
        }
        make_room(thread->samples, thread->sample_count, thread->sample_capacity);
        thread->samples[thread->sample_count++] = sample;
    }
    thread->record_count = kept;
}

struct open_call {
    int64_t end_ns;
    uint32_t stack;
    bool counts;
};

/* Makes samples of each part of a call's own time. Calls are no markers then. Outer calls come first. */
static void
sample_calls(struct firefox_profile *firefox, struct firefox_thread *thread)
{
    struct open_call *open = NULL;
    uint32_t depth = 0, capacity = 0, kept = 0;
    int64_t now_ns = INT64_MIN; /* up to here there are samples */
    for (uint32_t i = 0; i <= thread->record_count; i++) {
        const struct firefox_record *record = i < thread->record_count ? &thread->records[i] : NULL;
        if (record != NULL && firefox_schema_category(firefox, record->schema) != STRING_CALL) {
            thread->records[kept++] = *record;
            continue;
        }
        while (depth > 0 && (record == NULL || open[depth - 1].end_ns <= record->ts_ns)) {
            const struct open_call *last = &open[--depth];
            if (last->end_ns > now_ns && last->counts)
                add_time(thread, now_ns, (uint64_t)(last->end_ns - now_ns), last->stack);
            if (last->end_ns > now_ns) now_ns = last->end_ns;
        }
        if (record == NULL) break;
        uint32_t caller = depth > 0 ? open[depth - 1].stack : FIREFOX_NO_STACK;
        if (depth > 0 && record->ts_ns > now_ns && open[depth - 1].counts)
            add_time(thread, now_ns, (uint64_t)(record->ts_ns - now_ns), caller);
        if (record->ts_ns > now_ns) now_ns = record->ts_ns;
        make_room_within(firefox->budget, open, depth, capacity);
        open[depth++] = (struct open_call){
            record->end_ns, firefox_stack(&firefox->stacks, caller, record->name, FIREFOX_INHERIT),
            trace_filter_picks(&firefox->filter, STRING_NONE, record->name)};
    }
    free(open);
    thread->record_count = kept;
}

/* --- samples of time --------------------------------------------------------------------------------- */

static uint32_t
stack_of_node(struct firefox_profile *firefox, uint32_t node)
{
    if (node == 0) return FIREFOX_NO_STACK;
    uint32_t stack = map_get(&firefox->stack_of_node, node);
    if (stack != MAP_NONE) return stack;
    const struct profile_node of = firefox->profile.nodes[node];
    stack = firefox_stack(&firefox->stacks, stack_of_node(firefox, of.parent), of.text, FIREFOX_INHERIT);
    map_set_within(firefox->budget, &firefox->stack_of_node, node, stack);
    return stack;
}

static void
on_time_sample(void *context, const struct time_sample *sample)
{
    static const enum firefox_category categories[TIME_SAMPLE_STATES] = {
        [TIME_SAMPLE_COMPILED] = FIREFOX_COMPILED, [TIME_SAMPLE_INTERPRETED] = FIREFOX_INTERPRETED,
        [TIME_SAMPLE_COMPILING] = FIREFOX_COMPILE, [TIME_SAMPLE_GC] = FIREFOX_GC,
        [TIME_SAMPLE_BLOCKED] = FIREFOX_BLOCKED, [TIME_SAMPLE_WAITING] = FIREFOX_WAITING,
        [TIME_SAMPLE_NO_CPU] = FIREFOX_NO_CPU, [TIME_SAMPLE_WITHOUT_GVL] = FIREFOX_WITHOUT_GVL};
    struct firefox_profile *firefox = context;
    note_time(firefox, sample->ts_ns, sample->ts_ns);
    uint32_t number = thread_tracks_of(&firefox->tracks, sample->recording, sample->pid, sample->tid);
    struct firefox_thread *thread = profiled(firefox, number);
    uint32_t stack = stack_of_node(firefox, sample->node);
    if (firefox->with_reasons) {
        const char *title = time_sample_titles[sample->state];
        uint32_t text = pool_intern(firefox->pool, title, strlen(title));
        stack = firefox_stack(&firefox->stacks, stack, text, categories[sample->state]);
    }
    make_room_within(firefox->budget, thread->samples, thread->sample_count, thread->sample_capacity);
    thread->samples[thread->sample_count++] = (struct firefox_sample){sample->ts_ns, sample->ns, stack};
}

static void
on_blob(void *context, const struct fxt_blob *blob)
{
    struct firefox_profile *firefox = context;
    time_samples_blob(&firefox->time_samples, blob);
}

static int
by_sample_time(const void *left, const void *right)
{
    const struct firefox_sample *a = left, *b = right;
    return (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

/* A wait is written when it has ended. */
static void
sort_samples(struct firefox_thread *thread)
{
    if (thread->sample_count > 1)
        qsort(thread->samples, thread->sample_count, sizeof *thread->samples, by_sample_time);
}

/* --- all ------------------------------------------------------------------------------------------- */

struct firefox_profile *
firefox_profile_new(size_t memory_bytes, const struct trace_choice *choice, enum firefox_samples samples,
                    bool with_reasons)
{
    struct firefox_profile *firefox = xcalloc(1, sizeof *firefox);
    struct reader *reader = reader_new(memory_bytes);
    *firefox = (struct firefox_profile){.reader = reader,
                                        .pool = reader_pool(reader),
                                        .budget = reader_budget(reader),
                                        .wanted = samples,
                                        .with_reasons = with_reasons,
                                        .first_ns = INT64_MAX,
                                        .last_ns = INT64_MIN};
    firefox->args = open_memstream(&firefox->args_text, &firefox->args_bytes);
    const struct thread_tracks_visitor pieces = {.context = firefox, .piece = on_piece};
    thread_tracks_init(&firefox->tracks, firefox->pool, &pieces);
    firefox_stacks_init(&firefox->stacks, reader);
    firefox_counters_init(&firefox->counters, reader);
    row_table_init(&firefox->schemas, sizeof(struct firefox_schema), 1, FIREFOX_SCHEMAS_MAX);
    row_table_init(&firefox->fields, sizeof(struct firefox_field), 2, FIREFOX_FIELDS_MAX);
    profile_init(&firefox->profile, reader, PROFILE_SAMPLES, false);
    frame_owners_init(&firefox->owners, firefox->pool);
    if (choice->app_only) firefox->stacks.app_only = firefox->profile.app_only = &firefox->owners;
    time_samples_init(&firefox->time_samples, reader, &firefox->profile);
    trace_filter_init(&firefox->filter, choice, reader);
    firefox->filter.sums = samples == FIREFOX_SAMPLES_CALLS;
    trace_filter_samples(&firefox->filter, &firefox->time_samples);
    firefox->time_samples.context = firefox;
    firefox->time_samples.added = on_time_sample;
    for (unsigned i = 0; i < FIREFOX_CATEGORIES; i++) {
        const char *name = state_names[i];
        if (name) firefox->state_frames[i] = pool_intern(firefox->pool, name, strlen(name));
    }
    return firefox;
}

void
firefox_profile_free(struct firefox_profile *firefox)
{
    for (uint32_t i = 0; i < firefox->thread_count; i++) {
        free(firefox->threads[i].records);
        free(firefox->threads[i].pieces);
        free(firefox->threads[i].samples);
    }
    free(firefox->threads);
    frame_owners_free(&firefox->owners);
    fclose(firefox->args);
    free(firefox->args_text);
    row_table_free(&firefox->schemas);
    row_table_free(&firefox->fields);
    threads_free(&firefox->names);
    firefox_stacks_free(&firefox->stacks);
    firefox_counters_free(&firefox->counters);
    thread_tracks_free(&firefox->tracks);
    trace_filter_free(&firefox->filter);
    time_samples_free(&firefox->time_samples);
    profile_free(&firefox->profile);
    map_free(&firefox->stack_of_node);
    reader_free(firefox->reader);
    free(firefox);
}

enum status
firefox_profile_read(struct firefox_profile *firefox, const char *file, uint64_t max_faults)
{
    struct fault_report faults = fault_report_new(file, max_faults);
    struct fxt_visitor all = {
        .context = firefox, .event = on_event, .object = on_object, .sched = on_sched, .chunk = on_chunk};
    bool samples = firefox->wanted == FIREFOX_SAMPLES_TIME || firefox->wanted == FIREFOX_SAMPLES_BEST;
    if (samples) all.blob = on_blob;
    struct fxt_visitor visitor = trace_filter_visitor(&firefox->filter, &all);
    thread_tracks_file_begin(&firefox->tracks);
    bool read = read_file(firefox->reader, file, &visitor, &faults);
    trace_filter_file_end(&firefox->filter);
    thread_tracks_file_end(&firefox->tracks, reader_stopped(firefox->reader));
    time_samples_file_end(&firefox->time_samples);
    return read ? fault_report_finish(&faults) : STATUS_CANNOT_READ;
}

void
firefox_profile_finish(struct firefox_profile *firefox)
{
    if (firefox->wanted == FIREFOX_SAMPLES_BEST)
        firefox->wanted = firefox->profile.events > 0 ? FIREFOX_SAMPLES_TIME : FIREFOX_SAMPLES_STATES;
    if (firefox->wanted == FIREFOX_SAMPLES_STATES && !firefox->states) firefox->wanted = FIREFOX_SAMPLES_EXITS;
    firefox->samples_time = firefox->wanted != FIREFOX_SAMPLES_EXITS && firefox->wanted != FIREFOX_SAMPLES_FALLBACKS;
    for (uint32_t i = 0; i < firefox->thread_count; i++) {
        struct firefox_thread *thread = &firefox->threads[i];
        pair_records(firefox, thread);
        switch (firefox->wanted) {
          case FIREFOX_SAMPLES_STATES: sample_states(firefox, thread); break;
          case FIREFOX_SAMPLES_TIME: sort_samples(thread); break;
          case FIREFOX_SAMPLES_CALLS: sample_calls(firefox, thread); break;
          default: sample_exits(firefox, thread); break;
        }
    }
    firefox_counters_finish(&firefox->counters);
}
