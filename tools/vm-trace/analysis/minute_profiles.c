/* minute_profiles.c - see minute_profiles.h */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/call_stacks.h"
#include "analysis/minute_profiles.h"
#include "analysis/report_data.h"
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
    int64_t start_ns;                   /* of its first event */
};

struct minute_profiles *
minute_profiles_new(size_t memory_bytes, uint64_t max_faults)
{
    struct minute_profiles *profiles = xcalloc(1, sizeof *profiles);
    *profiles = (struct minute_profiles){
        .reader = reader_new(memory_bytes), .memory_bytes = memory_bytes, .max_faults = max_faults};
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

/* --- a minute of a trace --------------------------------------------------------------------------------- */

struct window {
    int64_t from_ns, to_ns; /* of the trace's clock, without to_ns */
    struct profile profiles[MINUTE_VALUES];
    struct call_stacks calls;
};

static void
on_event(void *context, const struct fxt_event *event)
{
    struct window *window = context;
    call_stacks_event(&window->calls, event); /* cuts calls at the window itself */
    if (event->ts_ns < window->from_ns || event->ts_ns >= window->to_ns) return;
    /* The sums of sites, which make lost time exact, are those of the whole trace: recorded exits count. */
    if (event->category.id == STRING_TRACE) return;
    for (enum minute_value value = MINUTE_EXITS; value <= MINUTE_ALLOCATED; value++)
        profile_event(&window->profiles[value], event);
}

static void
on_object(void *context, const struct fxt_object *object)
{
    struct window *window = context;
    profile_object(&window->profiles[MINUTE_OWN_TIME], object);
}

/* What the stacks of events have. */
static void
read_stacks(struct window *window, struct reader *reader, const char *file)
{
    const struct fxt_visitor visitor = {.context = window, .event = on_event, .object = on_object};
    call_stacks_init(&window->calls, &window->profiles[MINUTE_OWN_TIME]);
    window->calls.nesting.from_ns = window->from_ns;
    window->calls.nesting.to_ns = window->to_ns;
    reader_read(reader, file, &visitor); /* its faults are known */
    call_stacks_file_end(&window->calls);
    call_stacks_free(&window->calls);
}

/* Reads one minute, and merges it with that of other traces. */
static void
read_minute(const struct minute_trace *trace, int64_t minute)
{
    struct window window = {.from_ns = minute * MINUTE_NS - trace->boot_ns};
    window.to_ns = window.from_ns + MINUTE_NS;
    const struct report_filter filter = {.since_ns = window.from_ns - trace->start_ns,
                                         .until_ns = window.to_ns - trace->start_ns};
    struct report *report = report_new(trace->profiles->memory_bytes, &filter);
    for (unsigned i = 0; i < MINUTE_VALUES; i++) profile_init(&window.profiles[i], report->reader, kinds[i], true);
    report->blocked_stacks = &window.profiles[MINUTE_BLOCKED];
    report->silent = true;
    char *files[] = {trace->file};
    report_read_all(report, 0, 1, files);
    read_stacks(&window, report->reader, trace->file);
    struct minute_profile *row = NULL;
    for (unsigned i = 0; i < MINUTE_VALUES; i++) {
        profile_finish(&window.profiles[i]);
        if (window.profiles[i].events == 0 && window.profiles[i].count == 0) continue;
        if (row == NULL) row = row_of(trace, minute);
        if (row != NULL) profile_merge(&row->values[i], &window.profiles[i]);
    }
    for (unsigned i = 0; i < MINUTE_VALUES; i++) profile_free(&window.profiles[i]);
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
    trace->start_ns = report->start_ns;
    trace->boot_ns = trace_host_boot_ns(host, stat_of, file->last_ns);
    int64_t first = (trace->boot_ns + file->first_ns) / MINUTE_NS, last = (trace->boot_ns + file->last_ns) / MINUTE_NS;
    if (first < 0 || last - first >= MINUTES_OF_A_TRACE_MAX) {
        file_message(trace->file, "is longer than a day, or has no time of day: cut it first (vm-trace cut)");
        return STATUS_FAULTS;
    }
    for (int64_t minute = first; minute <= last; minute++) read_minute(trace, minute);
    return STATUS_FINE;
}

enum status
minute_profiles_read(struct minute_profiles *profiles, char *file)
{
    const struct report_filter all = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
    struct minute_trace trace = {.profiles = profiles, .file = file};
    struct stat stat_of;
    if (stat(file, &stat_of) != 0) {
        file_message(file, strerror(errno));
        return STATUS_CANNOT_READ;
    }
    struct report *report = report_new(profiles->memory_bytes, &all);
    enum status status = report_read_all(report, profiles->max_faults, 1, &file);
    fxt_parts_copy(&profiles->parts, reader_parts(report->reader));
    if (status < STATUS_USAGE) status = worse(status, read_minutes(&trace, report, &stat_of));
    report_free(report);
    return status;
}
