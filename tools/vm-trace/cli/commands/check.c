/* check.c - `vm-trace check`: reports everything that is wrong with a file, each fault with its
 * offset. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/duration_pairs.h"
#include "check/schema_check.h"
#include "check/state_check.h"
#include "base/escape.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "fxt/event_keys.h"
#include "fxt/known_strings.h"

enum { ASYNC_MAX = 1024 * 1024 };

static struct check_rules rules;

/* Async events with one key: begins minus ends. They may come in any order, because their
 * threads differ. */
struct async {
    int64_t open;
    uint64_t last_end_offset;
    uint64_t id;
};

struct check {
    struct reader *reader;
    struct duration_pairs *pairs;
    struct schema_check *schema;
    struct state_check states;
    struct map async_of_key;
    struct async *asyncs;
    uint32_t async_count;
    uint32_t async_capacity;
};

static struct async *
async_of(struct check *check, const struct fxt_event *event)
{
    uint64_t key = async_key(reader_pool(check->reader), event);
    uint32_t index = map_get(&check->async_of_key, key);
    if (index != MAP_NONE) return &check->asyncs[index];
    if (check->async_count == ASYNC_MAX) return NULL;
    make_room(check->asyncs, check->async_count, check->async_capacity);
    map_set(&check->async_of_key, key, check->async_count);
    check->asyncs[check->async_count] = (struct async){.id = event->id};
    return &check->asyncs[check->async_count++];
}

static void
check_event(void *context, const struct fxt_event *event)
{
    struct check *check = context;
    schema_check_event(check->schema, event);
    struct async *async;
    switch (event->type) {
      case FXT_EVENT_DURATION_BEGIN:
      case FXT_EVENT_DURATION_END:
        duration_pairs_add(check->pairs, reader_pool(check->reader), event, event->process,
                           state_check_row(&check->states, event->process, event->tid), true);
        break;
      case FXT_EVENT_ASYNC_BEGIN:
        async = async_of(check, event);
        if (async != NULL) async->open++;
        break;
      case FXT_EVENT_ASYNC_END:
        async = async_of(check, event);
        if (async == NULL) break;
        async->open--;
        async->last_end_offset = event->offset;
        break;
      default:
        break;
    }
}

static void
check_object(void *context, const struct fxt_object *object)
{
    struct check *check = context;
    duration_pairs_object(check->pairs, object);
}

static void
check_blob(void *context, const struct fxt_blob *blob)
{
    struct check *check = context;
    schema_check_blob(check->schema, blob);
}

static void
check_sched(void *context, const struct fxt_sched *sched)
{
    struct check *check = context;
    duration_pairs_sched(check->pairs, sched);
}

static bool
check_change(void *context, const struct fxt_sched *sched, const struct sched_change_of *change,
             struct duration_edge *edge)
{
    struct check *check = context;
    edge->process = reader_process(check->reader, sched->recording, change->pid);
    edge->row = state_check_row(&check->states, edge->process, change->tid);
    return true;
}

/* The program may be in these when the trace ends. */
static bool
may_stay_open(uint32_t category)
{
    return category == STRING_MARKER || category == STRING_BLOCKED || category == STRING_GC;
}

static void
check_chunk(void *context, uint32_t provider, struct fxt_string name, uint64_t offset)
{
    struct check *check = context;
    (void)provider, (void)name, (void)offset;
    schema_check_chunk(check->schema);
}

static void
check_pair(void *context, const struct duration_edge *begin, const struct duration_edge *end)
{
    struct check *check = context;
    if (schema_check_gaps(check->schema)) return; /* a begin or an end may be missing */
    if (begin != NULL) state_check_pair(&check->states, begin, end);
    if (end == NULL && may_stay_open(begin->category)) return;
    struct pool *pool = reader_pool(check->reader);
    char began[100], ended[100];
    if (end == NULL) {
        escape_into(began, sizeof began, pool_string(pool, begin->name));
        if (schema_check_ended(check->schema)) {
            reader_fault(check->reader, FXT_FAULT_SCHEMA, begin->offset,
                         "duration %s never ends, though the trace has its summary", began);
        }
        else {
            reader_fault(check->reader, FXT_FAULT_BEGIN_WITHOUT_END, begin->offset, "duration %s never ends", began);
        }
        return;
    }
    escape_into(ended, sizeof ended, pool_string(pool, end->name));
    if (begin == NULL) {
        reader_fault(check->reader, FXT_FAULT_END_WITHOUT_BEGIN, end->offset,
                     "end of duration %s, but none is open on its thread", ended);
        return;
    }
    bool named = pool_string(pool, end->name).len > 0; /* an end need not repeat the name */
    if (named && (begin->name != end->name || begin->category != end->category)) {
        reader_fault(check->reader, FXT_FAULT_WRONG_END, end->offset,
                     "end of duration %s, but %s is the innermost (offset %" PRIu64 ")", ended,
                     escape_into(began, sizeof began, pool_string(pool, begin->name)), begin->offset);
    }
}

static void
check_too_deep(void *context, const struct duration_edge *begin)
{
    struct check *check = context;
    reader_fault(check->reader, FXT_FAULT_NESTED_TOO_DEEPLY, begin->offset,
                 "duration is nested more than %d deep: Perfetto drops it", PAIRS_DEPTH_MAX);
}

static void
check_too_many(void *context, const struct duration_edge *edge)
{
    struct check *check = context;
    reader_fault(check->reader, FXT_FAULT_TOO_MUCH_TO_CHECK, edge->offset,
                 "durations of more than %d threads: those of further threads are not checked", PAIRS_THREADS_MAX);
}

static void
check_asyncs(struct check *check)
{
    for (uint32_t i = 0; i < check->async_count; i++) {
        const struct async *async = &check->asyncs[i];
        if (async->open >= 0) continue; /* events may still be open when the program ends */
        reader_fault(check->reader, FXT_FAULT_END_WITHOUT_BEGIN, async->last_end_offset,
                     "end of async event %" PRIu64 ", which did not begin", async->id);
    }
}

static enum status
check_file(const struct options *options, const char *file)
{
    struct check check = {.reader = reader_new(options->memory_bytes)};
    struct duration_pair_visitor on_pair = {
        .context = &check,
        .pair = check_pair,
        .too_deep = check_too_deep,
        .too_many_threads = check_too_many,
        .change = check_change,
    };
    check.schema = schema_check_new(check.reader, &rules);
    state_check_init(&check.states, check.reader, check.schema);
    check.pairs = duration_pairs_new(&on_pair, &check.states.states);

    struct fault_report faults = fault_report_new(file, options->max_faults);
    struct fxt_visitor visitor = {
        .context = &check,
        .event = check_event,
        .object = check_object,
        .sched = check_sched,
        .blob = check_blob,
        .chunk = check_chunk,
    };
    enum status status = STATUS_CANNOT_READ;
    if (read_file(check.reader, file, &visitor, &faults)) {
        duration_pairs_file_end(check.pairs, false);
        if (!schema_check_gaps(check.schema)) check_asyncs(&check); /* otherwise a begin may be missing */
        schema_check_finish(check.schema);
        status = fault_report_finish(&faults);
    }
    if (status == STATUS_FINE) {
        const struct fxt_counts *counts = reader_counts(check.reader);
        print_file_name(stdout, file);
        printf(": ok: %" PRIu64 " records, %" PRIu64 " events, %" PRIu64 " chunks\n", counts->records, counts->events,
               counts->chunks);
    }

    state_check_free(&check.states);
    schema_check_free(check.schema);
    duration_pairs_free(check.pairs);
    map_free(&check.async_of_key);
    free(check.asyncs);
    reader_free(check.reader);
    return status;
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    if (!rules.strict && options_refused("unended", "is for --strict")) return STATUS_USAGE;
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++) status = worse(status, check_file(options, files[i]));
    return worse(status, finish_output());
}

static const struct cli_option check_options[] = {
    CLI_OPTION("strict", NULL, "a trace must be complete, and have nothing that the schema lacks", NULL, &rules.strict),
    CLI_OPTION("unended", NULL, "with --strict: the summary may be missing, as after a kill", NULL, &rules.unended),
    {"ractors", "N", "at most N ractors of each process exited; 1: only the main one", take_number, &rules.ractors,
     1, UINT32_MAX},
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_check = {
    .name = "check",
    .purpose = "report everything that is wrong with a trace",
    .arguments = "FILE...",
    .help =
        "Reads each trace from start to end and reports every fault as\n"
        "`vm-trace: FILE: offset N: reason` on standard error. A trace of CRuby's tracer is also\n"
        "checked against the schema of its events, and its counts of exits, sites and other\n"
        "events against each other. A trace without faults gets one line on standard output:\n"
        "`FILE: ok: N records, N events, N chunks`. Warnings (records that are legal but have no\n"
        "effect) do not change the exit status.\n"
        "\n"
        "A program that was killed leaves a trace without its end, and a part of a trace has none\n"
        "either: both are fine, except with --strict. So are events and arguments of known\n"
        "categories that the schema does not have, as a newer tracer may write them. How many of\n"
        "the sampled exits are recorded depends on how many ractors exited, since each counts by\n"
        "itself. Give their number with --ractors to have that checked, too.\n",
    .folders = true,
    .options = check_options,
    .run = run,
};
