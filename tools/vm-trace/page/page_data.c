/* page_data.c - see page_data.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "page/page_data.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "fxt/read_files.h"

/* --- events ----------------------------------------------------------------------------------- */

static void
add_exit(struct page_data *data, const struct fxt_event *event)
{
    const struct page_exit exit = page_exits_event(&data->exits, data->pool, event);
    struct series_key key = {.subject = SERIES_ROW, .a = exit.row};
    data->timed |= exit.timed;
    page_series_add(&data->series, key, event->ts_ns, exit.weight);
    if (exit.lost_ns > 0) {
        key.subject = SERIES_ROW_LOST;
        page_series_add_length(&data->series, key, event->ts_ns, exit.weighted_ns, exit.lost_ns);
    }
    profile_event(&data->profile, event);
}

static void
add_loss(struct page_data *data, const struct fxt_event *event)
{
    uint32_t id = event_text(data->pool, event, STRING_REASON);
    unsigned i = 0;
    while (i < data->loss_count && data->losses[i].reason != id) i++;
    if (i == PAGE_LOSSES_MAX) i--; /* with too many reasons, the last row collects the rest */
    if (i == data->loss_count) data->losses[data->loss_count++] = (struct page_loss){.reason = id};
    data->losses[i].events += event_uint(event, STRING_LOST, 0);
}

static void
add_setting(void *context, uint32_t name, uint32_t value)
{
    struct page_data *data = context;
    if (data->setting_count == PAGE_SETTINGS_MAX) return;
    data->settings[data->setting_count++] = (struct page_setting){name, value};
}

static void
add_trace_event(struct page_data *data, const struct fxt_event *event)
{
    switch (event->name.id) {
      case STRING_SETTINGS:
        data->has_settings = true;
        data->summarized = false;
        shown_origin_settings(&data->origin, event);
        /* fall through */
      case STRING_MORE_SETTINGS:
        time_samples_settings(&data->samples, event);
        for (unsigned i = 0; i < event->arg_count; i++)
            add_setting(data, pool_id(data->pool, event->args[i].name), arg_text(data->pool, &event->args[i]));
        break;
      case STRING_JIT: /* the program turned one on after the settings were written */
        for (unsigned i = 0; i < data->setting_count; i++) {
            if (data->settings[i].name == STRING_JIT)
                data->settings[i].value = event_text(data->pool, event, STRING_JIT);
        }
        break;
      case STRING_HOST: shown_origin_host(&data->origin, data->pool, event, add_setting, data); break;
      case STRING_CUT: data->cut = true; break;
      case STRING_SITE: data->timed |= page_exits_site(&data->exits, data->pool, event); break;
      case STRING_LOSS: add_loss(data, event); break;
      case STRING_SUMMARY:
        data->summarized = true;
        data->lost += event_uint(event, STRING_LOST, 0);
        data->exact_exits += event_uint(event, STRING_EXITS, 0); /* of all exits */
        break;
    }
}

/* iseq: the compiled ISEQ; STRING_NONE: other work of the compiler. */
static void
add_duration(struct page_data *data, uint32_t category, bool outermost, uint32_t iseq, int64_t begin_ns, int64_t end_ns)
{
    if (category == STRING_COMPILE && outermost) {
        if (iseq != STRING_NONE) {
            data->compiles++;
            data->compile_ns += (uint64_t)(end_ns - begin_ns);
        }
        const struct interval time = {begin_ns, end_ns};
        page_series_add_time(&data->series, (struct series_key){.subject = SERIES_COMPILING}, time);
    }
    else if (category == STRING_INVALIDATION && outermost) { /* invalidations of single versions are within it */
        data->invalidations++;
        page_series_add(&data->series, (struct series_key){.subject = SERIES_INVALIDATION}, begin_ns, 1);
    }
}

static void
on_pair(void *context, const struct duration_edge *begin, const struct duration_edge *end)
{
    if (begin == NULL || end == NULL) return;
    add_duration(context, begin->category, begin->outermost, end->iseq, begin->ts_ns, end->ts_ns);
}

static void
on_piece(void *context, const struct track_piece *piece)
{
    struct page_data *data = context;
    const struct track_thread *thread = track_thread(&data->over_time.tracks, piece->thread);
    const struct interval held = {piece->from_ns, piece->to_ns};
    if (piece->state == THREAD_RUNNING || piece->state == THREAD_IN_GC)
        kernel_sums_held(&data->kernel, thread->process, thread->tid, held);
}

/* Calls, system calls and times on CPUs. */
static void
add_to_kernel(struct page_data *data, uint32_t number, const struct fxt_event *event)
{
    struct kernel_sums *kernel = &data->kernel;
    uint32_t process = track_thread(&data->over_time.tracks, number)->process;
    if (event->type == FXT_EVENT_INSTANT && event->category.id == STRING_TRACE)
        kernel_sums_trace(kernel, process, event);
    switch (event->category.id) {
      case STRING_CALL: kernel_sums_call(kernel, data->pool, process, number, event); break;
      case STRING_SYSCALL:
        kernel_sums_syscall(kernel, data->pool, process, number, false, event);
        page_series_syscall(&data->series, data->pool, event);
        break;
      case STRING_SCHED: kernel_sums_cpu(kernel, data->pool, process, number, event); break;
    }
}

static void
note_time(struct page_data *data, int64_t from_ns, int64_t to_ns)
{
    if (from_ns < data->first_ns) data->first_ns = from_ns;
    if (to_ns > data->last_ns) data->last_ns = to_ns;
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct page_data *data = context;
    data->events++;
    note_time(data, event->ts_ns, event->type == FXT_EVENT_DURATION_COMPLETE ? event->end_ns : event->ts_ns);
    uint32_t number = thread_tracks_event(&data->over_time.tracks, event);
    uint32_t process = track_thread(&data->over_time.tracks, number)->process;
    add_to_kernel(data, number, event);
    if (event->category.id == STRING_FIBER) page_threads_fiber(&data->over_time, number, event);
    data->timed |= page_execution_event(&data->execution, data->pool, process, event);
    bool is_call = call_slices_event(&data->calls, data->pool, data->over_time.tracks.file, process, event);
    version_history_event(&data->history, data->pool, 0, event);
    /* Their tracks are those of no thread. */
    if (event->category.id == STRING_EXECUTION || event->category.id == STRING_SCHED) return;
    uint32_t runs = event_text(data->pool, event, STRING_THREAD);
    struct thread *thread = runs != STRING_NONE ? threads_running(&data->threads, process, runs)
                                                : threads_get(&data->threads, process, event->tid);
    if (thread != NULL) thread->events++;
    if (is_call) return;

    switch (event->type) {
      case FXT_EVENT_DURATION_COMPLETE: {
        struct duration_edge edge = duration_edge_of(data->pool, event);
        add_duration(data, edge.category, true, edge.iseq, event->ts_ns, event->end_ns);
        return;
      }
      case FXT_EVENT_INSTANT: break;
      default: return;
    }
    switch (event->category.id) {
      case STRING_SIDE_EXIT:
      case STRING_RECOMPILE_EXIT:
      case STRING_FALLBACK: add_exit(data, event); break;
      case STRING_TRACE:
        add_trace_event(data, event);
        compiled_texts_event(&data->texts, data->pool, process, event);
        break;
    }
}

static void
on_object(void *context, const struct fxt_object *object)
{
    struct page_data *data = context;
    uint32_t process = thread_tracks_process(&data->over_time.tracks, object->recording, object->pid);
    threads_name(&data->threads, data->pool, process, object);
    thread_tracks_object(&data->over_time.tracks, object);
}

static void
on_sched(void *context, const struct fxt_sched *sched)
{
    struct page_data *data = context;
    if (thread_tracks_sched(&data->over_time.tracks, sched)) note_time(data, sched->ts_ns, sched->ts_ns);
}

static void
on_blob(void *context, const struct fxt_blob *blob)
{
    struct page_data *data = context;
    time_samples_blob(&data->samples, blob);
}

static void
on_chunk(void *context, uint32_t id, struct fxt_string name, uint64_t offset)
{
    struct page_data *data = context;
    (void)id, (void)name;
    thread_tracks_chunk(&data->over_time.tracks, offset);
}

/* --- all ------------------------------------------------------------------------------------------ */

void
page_data_init(struct page_data *data, size_t memory_bytes, const struct trace_choice *choice)
{
    *data = (struct page_data){.reader = reader_new(memory_bytes), .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    data->pool = reader_pool(data->reader);
    trace_filter_init(&data->filter, choice, data->reader);
    data->cut = data->filter.cuts;
    profile_init(&data->profile, data->reader, PROFILE_EXITS, true);
    profile_init(&data->sampled, data->reader, PROFILE_SAMPLES, true);
    time_samples_init(&data->samples, data->reader, &data->sampled);
    trace_filter_samples(&data->filter, &data->samples);
    data->filter.sums = true;
    page_threads_init(&data->over_time, data->pool, data, on_pair, on_piece);
    page_execution_init(&data->execution);
    kernel_sums_init(&data->kernel);
    page_series_init(&data->series);
    data->profile.context = data->samples.context = data->kernel.callers.context = &data->series;
    data->kernel.cpus.context = data->kernel.cpus.held.context = &data->series;
    data->profile.added = page_series_on_stack;
    data->samples.added = page_series_on_sample;
    data->kernel.callers.found = page_series_on_caller;
    data->kernel.cpus.slice = page_series_on_cpu;
    data->kernel.cpus.held.common = page_series_on_held;
    compiled_texts_init(&data->texts, reader_budget(data->reader));
    call_slices_init(&data->calls, reader_budget(data->reader));
    data->calls_shown_max = PAGE_CALLS_SHOWN;
    page_exits_init(&data->exits);
}

void
page_data_free(struct page_data *data)
{
    profile_free(&data->profile);
    time_samples_free(&data->samples);
    profile_free(&data->sampled);
    threads_free(&data->threads);
    page_threads_free(&data->over_time);
    page_series_free(&data->series);
    page_execution_free(&data->execution);
    call_slices_free(&data->calls);
    kernel_sums_free(&data->kernel);
    version_history_free(&data->history);
    compiled_texts_free(&data->texts);
    page_exits_free(&data->exits);
    trace_filter_free(&data->filter);
    reader_free(data->reader);
}

enum status
page_data_read(struct page_data *data, const char *file, uint64_t max_faults)
{
    struct fault_report faults = fault_report_new(file, max_faults);
    const struct fxt_visitor all = {
        .context = data, .event = on_event, .object = on_object, .sched = on_sched, .blob = on_blob, .chunk = on_chunk};
    struct fxt_visitor visitor = trace_filter_visitor(&data->filter, &all);
    enum status status = STATUS_CANNOT_READ;
    thread_tracks_file_begin(&data->over_time.tracks);
    if (read_file(data->reader, file, &visitor, &faults)) status = fault_report_finish(&faults);
    trace_filter_file_end(&data->filter);
    data->stopped |= reader_stopped(data->reader);
    thread_tracks_file_end(&data->over_time.tracks, reader_stopped(data->reader));
    kernel_sums_file_end(&data->kernel);
    execution_file_end(&data->execution.sums);
    time_samples_file_end(&data->samples);
    version_history_file_end(&data->history);
    return status;
}

static bool
call_picked(void *context, uint32_t name)
{
    struct page_data *data = context;
    return trace_filter_picks(&data->filter, STRING_NONE, name);
}

void
page_data_finish(struct page_data *data)
{
    bool exact = data->timed && data->summarized;
    page_exits_finish(&data->exits, data->pool, &data->filter, exact, data->last_ns);
    page_execution_finish(&data->execution);
    version_history_sort(&data->history);
    compiled_texts_sort(&data->texts);
    page_threads_finish(&data->over_time);
    if (data->filter.picks) data->exact_exits = data->exits.exits;
    call_slices_finish(&data->calls);
    if (data->filter.picks) call_slices_pick(&data->calls, data, call_picked);
    call_slices_keep_longest(&data->calls, data->calls_shown_max);
}

uint32_t *
page_data_annotate(struct page_data *data, struct annotation *annotation)
{
    uint32_t *reasons = xcalloc(data->exits.gathered.count, sizeof *reasons);
    annotation_begin(annotation, data->timed);
    for (uint32_t i = 0; i < data->exits.gathered.count; i++) {
        const struct page_row *row = row_table_at(&data->exits.gathered, i);
        const struct annotated_exits exits = {
            .category = row->category, .reason = row->reason, .location = row->frame, .insn = row->insn,
            .callee = STRING_NONE, .count = row->count, .lost_ns = row->lost_ns,
        };
        if (i != PAGE_OVERFLOW_ROW) reasons[i] = annotation_add(annotation, data->pool, &exits);
    }
    annotation_finish(annotation, data->pool);
    return reasons;
}

static uint32_t
string_of_other(struct pool *pool, const struct pool *other, uint32_t id)
{
    struct fxt_string text = pool_string(other, id);
    return id == STRING_NONE ? STRING_NONE : pool_intern(pool, text.ptr, text.len);
}

static void
take_strings(struct page_data *data, const struct page_data *before, struct profile *profile)
{
    for (uint32_t i = 1; i < profile->node_count; i++)
        profile->nodes[i].text = string_of_other(data->pool, before->pool, profile->nodes[i].text);
}

void
page_data_compare(struct page_data *data, struct page_data *before)
{
    take_strings(data, before, &before->profile);
    take_strings(data, before, &before->sampled);
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++)
        before->samples.states[state] = string_of_other(data->pool, before->pool, before->samples.states[state]);
    data->before = before;
}
