/* minute_profiles.c - see minute_profiles.h */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "topics/calls/call_stacks.h"
#include "export/minute_profiles.h"
#include "report/report_chosen.h"
#include "base/message.h"

enum { ROWS_MAX = 1024 * 1024 };
#define MINUTE_NS INT64_C(60000000000)

static const enum profile_kind kinds[MINUTE_VALUES] = {
    [MINUTE_EXITS] = PROFILE_EXITS, [MINUTE_LOST] = PROFILE_LOST, [MINUTE_ALLOCATED] = PROFILE_ALLOCATIONS,
    [MINUTE_BLOCKED] = PROFILE_BLOCKED, [MINUTE_OWN_TIME] = PROFILE_CALLS,
};

/* What is known of a trace after its first reading. */
struct minute_trace {
    struct minute_profiles *profiles;
    char *file;
    struct fxt_string service, version; /* of the report's pool */
    int64_t boot_ns;                    /* Unix time at 0 of its clock */
    int64_t first, last;                /* minutes */
    struct reader *reader;
    struct trace_filter filter;         /* of the third reading */
    struct profile blocked;             /* stacks of all minutes, of the second reading */
    struct call_stacks names;           /* what those of all minutes share */
    struct window **windows;            /* by minute, from `first` on; NULL: nothing happened in it so far */
    uint32_t *path;                     /* reused: nodes, from the innermost one */
    uint32_t path_capacity;
};

struct minute_profiles *
minute_profiles_new(const struct trace_choice *choice, size_t memory_bytes, uint64_t max_faults)
{
    struct minute_profiles *profiles = xcalloc(1, sizeof *profiles);
    *profiles = (struct minute_profiles){
        .reader = reader_new(memory_bytes), .choice = choice, .memory_bytes = memory_bytes, .max_faults = max_faults};
    row_table_init(&profiles->rows, sizeof(struct minute_profile), MINUTE_KEYS, ROWS_MAX);
    return profiles;
}

void
minute_profiles_free(struct minute_profiles *profiles)
{
    for (uint32_t i = 0; i < profiles->rows.count; i++) {
        struct minute_profile *row = row_table_at(&profiles->rows, i);
        for (unsigned value = 0; value < MINUTE_VALUES; value++) profile_free(&row->values[value]);
        free(row->values);
    }
    row_table_free(&profiles->rows);
    fxt_parts_free(&profiles->parts);
    reader_free(profiles->reader);
    free(profiles);
}

bool
minute_profiles_complete(const struct minute_profiles *profiles)
{
    return reader_counts(profiles->reader)->faults[FXT_FAULT_OUT_OF_BUDGET] == 0;
}

/* NULL: there are too many. */
static struct minute_profile *
row_of(const struct minute_trace *trace, int64_t minute)
{
    struct minute_profiles *profiles = trace->profiles;
    struct pool *pool = reader_pool(profiles->reader);
    const uint32_t key[MINUTE_KEYS] = {pool_intern(pool, trace->service.ptr, trace->service.len),
                                       pool_intern(pool, trace->version.ptr, trace->version.len), (uint32_t)minute};
    struct minute_profile *row = row_table_get(&profiles->rows, key);
    if (row == NULL || row->values != NULL) return row;
    row->values = xcalloc(MINUTE_VALUES, sizeof *row->values);
    for (unsigned i = 0; i < MINUTE_VALUES; i++) profile_init(&row->values[i], profiles->reader, kinds[i], true);
    return row;
}

/* --- the minutes of a trace -------------------------------------------------------------------------------- */

struct window {
    struct profile profiles[MINUTE_VALUES];
    struct map blocked_nodes; /* node of the trace's `blocked` -> that of the profile */
    struct call_stacks calls;
};

static int64_t
minute_of(const struct minute_trace *trace, int64_t ts_ns)
{
    int64_t ns = time_sum(trace->boot_ns, ts_ns);
    return ns / MINUTE_NS - (ns % MINUTE_NS < 0);
}

/* The minutes of a time that are among those of the trace: *first_out > *last_out if there are none. */
static void
minutes_of(const struct minute_trace *trace, int64_t from_ns, int64_t to_ns, int64_t *first_out, int64_t *last_out)
{
    *first_out = minute_of(trace, from_ns);
    *last_out = minute_of(trace, to_ns);
    if (*first_out < trace->first) *first_out = trace->first;
    if (*last_out > trace->last) *last_out = trace->last;
}

static struct interval
bounds_of(const struct minute_trace *trace, int64_t minute)
{
    int64_t from_ns = minute * MINUTE_NS - trace->boot_ns;
    return (struct interval){from_ns, from_ns + MINUTE_NS};
}

/* The minute must be one of the trace. */
static struct window *
window_of(struct minute_trace *trace, int64_t minute)
{
    struct window **window = &trace->windows[minute - trace->first];
    if (*window != NULL) return *window;
    *window = xcalloc(1, sizeof **window);
    for (unsigned i = 0; i < MINUTE_VALUES; i++) profile_init(&(*window)->profiles[i], trace->reader, kinds[i], true);
    struct call_stacks *calls = &(*window)->calls;
    trace_filter_profile(&trace->filter, &(*window)->profiles[MINUTE_OWN_TIME]);
    call_stacks_init(calls, &(*window)->profiles[MINUTE_OWN_TIME], &trace->names);
    calls->nesting.from_ns = bounds_of(trace, minute).from_ns;
    calls->nesting.to_ns = bounds_of(trace, minute).to_ns;
    return *window;
}

static void
window_free(struct window *window)
{
    for (unsigned i = 0; i < MINUTE_VALUES; i++) profile_free(&window->profiles[i]);
    map_free(&window->blocked_nodes);
    call_stacks_free(&window->calls);
    free(window);
}

/* The node of a minute's profile for one of the trace's. */
static uint32_t
blocked_node(struct minute_trace *trace, struct window *window, uint32_t node)
{
    struct profile *profile = &window->profiles[MINUTE_BLOCKED];
    const struct profile_node *nodes = trace->blocked.nodes;
    uint32_t depth = 0, known;
    for (; node != 0 && (known = map_get(&window->blocked_nodes, node)) == MAP_NONE; node = nodes[node].parent) {
        make_room(trace->path, depth, trace->path_capacity);
        trace->path[depth++] = node;
    }
    uint32_t to = node == 0 ? 0 : known;
    while (depth > 0) {
        node = trace->path[--depth];
        to = profile_child(profile, to, nodes[node].text, nodes[node].reason);
        map_set(&window->blocked_nodes, node, to);
    }
    return to;
}

/* In each minute counts what lies in it. */
static void
on_blocked(void *context, uint32_t node, int64_t begin_ns, struct interval time)
{
    struct minute_trace *trace = context;
    int64_t begin = minute_of(trace, begin_ns), first, last;
    minutes_of(trace, begin_ns, time.to_ns, &first, &last);
    for (int64_t minute = first; minute <= last; minute++) {
        uint64_t ns = interval_common_ns(bounds_of(trace, minute), time);
        if (ns == 0 && minute != begin) continue;
        struct window *window = window_of(trace, minute);
        profile_add(&window->profiles[MINUTE_BLOCKED], blocked_node(trace, window, node), ns);
    }
}

/* How long a thread was blocked is known only with all of its states. */
static void
read_blocked(struct minute_trace *trace, struct report *report)
{
    report->blocked_stacks = &trace->blocked;
    report->blocked_added = on_blocked;
    report->blocked_context = trace;
    report->silent = true;
    char *files[] = {trace->file};
    report_read_all(report, 0, 1, files);
}

static void
on_call(struct minute_trace *trace, const struct fxt_event *event)
{
    int64_t first, last;
    if (event->type != FXT_EVENT_DURATION_COMPLETE) return;
    minutes_of(trace, event->ts_ns, event->end_ns, &first, &last);
    for (int64_t minute = first; minute <= last; minute++) {
        struct call_stacks *calls = &window_of(trace, minute)->calls;
        calls->nesting.sorted = trace->names.nesting.sorted;
        call_stacks_event(calls, event); /* cuts the call at the minute */
    }
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct minute_trace *trace = context;
    if (event->category.id == STRING_CALL) on_call(trace, event);
    /* The sums of sites, which make lost time exact, are those of the whole trace: recorded exits count. */
    if (event->category.id == STRING_TRACE) {
        call_stacks_event(&trace->names, event);
        return;
    }
    int64_t minute = minute_of(trace, event->ts_ns);
    if (event->type != FXT_EVENT_INSTANT || minute < trace->first || minute > trace->last) return;
    struct window *window = window_of(trace, minute);
    for (enum minute_value value = MINUTE_EXITS; value <= MINUTE_ALLOCATED; value++)
        profile_event(&window->profiles[value], event);
}

/* Merges a minute with that of other traces. */
static void
merge_minute(struct minute_trace *trace, int64_t minute, struct window *window)
{
    struct minute_profile *row = NULL;
    call_stacks_file_end(&window->calls);
    for (unsigned i = 0; i < MINUTE_VALUES; i++) {
        profile_finish(&window->profiles[i]);
        if (window->profiles[i].events == 0 && window->profiles[i].count == 0) continue;
        if (row == NULL) row = row_of(trace, minute);
        if (row != NULL) profile_merge(&row->values[i], &window->profiles[i]);
    }
}

static void
read_windows(struct minute_trace *trace)
{
    const struct fxt_visitor all = {.context = trace, .event = on_event};
    struct report *report = report_new_chosen(trace->profiles->memory_bytes, trace->profiles->choice);
    size_t minutes = (size_t)(trace->last - trace->first) + 1;
    trace->reader = report->reader;
    trace->windows = xcalloc(minutes, sizeof *trace->windows);
    profile_init(&trace->blocked, report->reader, PROFILE_BLOCKED, true);
    call_stacks_init(&trace->names, &trace->blocked, NULL);
    trace_filter_init(&trace->filter, trace->profiles->choice, report->reader);
    trace->filter.sums = true;
    read_blocked(trace, report); /* makes windows, which share these */
    const struct fxt_visitor visitor = trace_filter_visitor(&trace->filter, &all);
    reader_read_again(report->reader, trace->file, &visitor);
    trace_filter_file_end(&trace->filter);
    for (size_t i = 0; i < minutes; i++) {
        if (trace->windows[i] == NULL) continue;
        merge_minute(trace, trace->first + (int64_t)i, trace->windows[i]);
        window_free(trace->windows[i]);
    }
    trace_filter_free(&trace->filter);
    free(trace->windows);
    free(trace->path);
    call_stacks_free(&trace->names);
    profile_free(&trace->blocked);
    report_free(report);
}

/* --- a trace --------------------------------------------------------------------------------------------- */

/* The host of the first process that has one; processes of several services in one file count for it. */
static const struct trace_host *
host_of(const struct report *report)
{
    static const struct trace_host unknown;
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = row_table_at(&report->processes, i);
        if (process->host.known) return &process->host;
    }
    return &unknown;
}

static struct fxt_string
text_or_unknown(const struct report *report, uint32_t text)
{
    struct fxt_string known = pool_string(report->pool, text);
    return known.len > 0 ? known : text_of("unknown");
}

static enum status
read_minutes(struct minute_trace *trace, const struct report *report, const struct stat *stat_of)
{
    const struct report_file *file = &report->files[0];
    const struct trace_host *host = host_of(report);
    if (file->first_ns > file->last_ns) return STATUS_FINE;
    trace->service = text_or_unknown(report, host->origin.service);
    trace->version = text_or_unknown(report, host->origin.version);
    trace->boot_ns = trace_host_boot_ns(host, stat_of, file->last_ns);
    trace->first = minute_of(trace, file->first_ns);
    trace->last = minute_of(trace, file->last_ns);
    if (trace->first < 0 || trace->last - trace->first >= MINUTES_OF_A_TRACE_MAX) {
        file_message(trace->file, "is longer than a day, or has no time of day: cut it first (vm-trace cut)");
        return STATUS_FAULTS;
    }
    read_windows(trace);
    return STATUS_FINE;
}

enum status
minute_profiles_read(struct minute_profiles *profiles, char *file)
{
    struct minute_trace trace = {.profiles = profiles, .file = file};
    struct stat stat_of;
    if (stat(file, &stat_of) != 0) {
        file_message(file, strerror(errno));
        return STATUS_CANNOT_READ;
    }
    struct report *report = report_new_chosen(profiles->memory_bytes, profiles->choice);
    enum status status = report_read_all(report, profiles->max_faults, 1, &file);
    fxt_parts_copy(&profiles->parts, reader_parts(report->reader));
    status = worse(status, report_check_chosen("export", file, report));
    if (status < STATUS_USAGE) status = worse(status, read_minutes(&trace, report, &stat_of));
    report_free(report);
    return status;
}
