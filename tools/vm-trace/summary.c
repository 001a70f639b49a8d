/* summary.c - gathers what `vm-trace summary` prints: one pass, nothing kept of single events. */
#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "summary.h"
#include "words.h"
#include "xalloc.h"

static void
add(struct tally *tally, uint32_t a, uint32_t b, uint64_t count, uint64_t total_ns)
{
    const uint32_t key[TALLY_KEYS] = {a, b};
    tally_add(tally, key, 1, count, total_ns);
}

/* The number of a string argument; STRING_NONE when there is none. */
static uint32_t
string_arg(struct summary *summary, const struct fxt_event *event, uint32_t word)
{
    const struct fxt_arg *arg = fxt_event_arg(event, word);
    return arg == NULL || arg->type != FXT_ARG_STRING ? STRING_NONE : pool_id(reader_pool(summary->reader), arg->string);
}

static uint64_t
uint_arg(const struct fxt_event *event, uint32_t word, uint64_t missing)
{
    uint64_t value;
    return fxt_arg_uint(fxt_event_arg(event, word), &value) ? value : missing;
}

static void
add_exit(struct summary *summary, const struct fxt_event *event)
{
    struct pool *pool = reader_pool(summary->reader);
    uint64_t weight = uint_arg(event, WORD_WEIGHT, 1);
    uint32_t reason = pool_id(pool, event->name);
    if (weight != 1) summary->scaled = true;
    if (event->category.id == WORD_FALLBACK) {
        add(&summary->fallbacks, reason, 0, weight, 0);
        return;
    }
    add(&summary->reasons, event->category.id, reason, weight, 0);
    add(&summary->frames, string_arg(summary, event, WORD_FRAME_0), 0, weight, 0);
    if (event->category.id == WORD_RECOMPILE_EXIT) {
        add(&summary->outcomes, string_arg(summary, event, WORD_OUTCOME), 0, weight, 0);
    }
}

static void
add_settings(struct summary *summary, const struct fxt_event *event)
{
    for (unsigned i = 0; i < event->arg_count && summary->setting_count < SUMMARY_SETTINGS_MAX; i++) {
        const struct fxt_arg *arg = &event->args[i];
        struct setting setting = {.name = pool_id(reader_pool(summary->reader), arg->name), .type = arg->type};
        if (arg->type == FXT_ARG_STRING) setting.string = pool_id(reader_pool(summary->reader), arg->string);
        else if (arg->type == FXT_ARG_BOOL) setting.number = arg->boolean;
        else setting.number = arg->u64;
        summary->settings[summary->setting_count++] = setting;
    }
}

static void
add_site(struct summary *summary, const struct fxt_event *event)
{
    uint32_t kind = string_arg(summary, event, WORD_KIND);
    uint32_t reason = string_arg(summary, event, WORD_REASON);
    uint64_t hits = uint_arg(event, WORD_HITS, 0);
    const uint32_t key[TALLY_KEYS] = {
        kind,
        reason,
        string_arg(summary, event, WORD_LOCATION),
        string_arg(summary, event, WORD_INSN),
        (uint32_t)uint_arg(event, WORD_VERSION, 0),
    };
    tally_add(&summary->sites, key, 1, hits, 0);
    add(&summary->exact, kind, reason, hits, 0);
}

static void
add_trace_event(struct summary *summary, const struct fxt_event *event)
{
    switch (event->name.id) {
      case WORD_SETTINGS: add_settings(summary, event); break;
      case WORD_SITE: add_site(summary, event); break;
      case WORD_LOSS:
        add(&summary->losses, string_arg(summary, event, WORD_REASON), 0, uint_arg(event, WORD_LOST, 0), 0);
        break;
      case WORD_SUMMARY:
        summary->summarized = true;
        summary->lost += uint_arg(event, WORD_LOST, 0);
        break;
    }
}

static void
add_duration(struct summary *summary, uint32_t category, uint32_t name, bool outermost, uint64_t ns)
{
    switch (category) {
      case WORD_COMPILE:
        if (outermost) add(&summary->compiles, 0, 0, 1, ns); /* its name may be that of the method: one for each */
        else add(&summary->phases, name, 0, 1, ns);
        break;
      case WORD_INVALIDATION: add(&summary->invalidations, name, 0, 1, ns); break;
      default: add(&summary->durations, category, name, 1, ns);
    }
}

static void
add_span(void *context, const struct span_edge *begin, const struct span_edge *end)
{
    struct summary *summary = context;
    if (end == NULL) summary->unended++;
    if (begin == NULL || end == NULL) return;
    add_duration(summary, begin->category, begin->name, begin->outermost, (uint64_t)(end->ts_ns - begin->ts_ns));
}

void
summary_event(void *context, const struct fxt_event *event)
{
    struct summary *summary = context;
    struct pool *pool = reader_pool(summary->reader);
    if (event->ts_ns < summary->first_ns) summary->first_ns = event->ts_ns;
    if (event->ts_ns > summary->last_ns) summary->last_ns = event->ts_ns;
    struct thread *thread = threads_get(&summary->threads, event->pid, event->tid);
    if (thread != NULL) thread->events++;

    switch (event->type) {
      case FXT_EVENT_DURATION_BEGIN:
      case FXT_EVENT_DURATION_END:
        spans_add(summary->open_spans, pool, event);
        return;
      case FXT_EVENT_DURATION_COMPLETE:
        if (event->end_ns > summary->last_ns) summary->last_ns = event->end_ns;
        add_duration(summary, pool_id(pool, event->category), pool_id(pool, event->name), true,
                     (uint64_t)(event->end_ns - event->ts_ns));
        return;
      case FXT_EVENT_INSTANT:
        break;
      default:
        return; /* counters, async events and flows are not counted here */
    }
    switch (event->category.id) {
      case WORD_SIDE_EXIT:
      case WORD_RECOMPILE_EXIT:
      case WORD_FALLBACK: add_exit(summary, event); break;
      case WORD_TRACE: add_trace_event(summary, event); break;
    }
}

void
summary_object(void *context, const struct fxt_object *object)
{
    struct summary *summary = context;
    threads_name(&summary->threads, reader_pool(summary->reader), object);
}

void
summary_init(struct summary *summary, size_t memory_bytes)
{
    *summary = (struct summary){.reader = reader_new(memory_bytes), .first_ns = INT64_MAX};
    struct span_visitor visitor = {.context = summary, .span = add_span};
    summary->open_spans = spans_new(&visitor);
}

void
summary_finish(struct summary *summary)
{
    spans_finish(summary->open_spans);
}

void
summary_free(struct summary *summary)
{
    spans_free(summary->open_spans);
    threads_free(&summary->threads);
    tally_free(&summary->reasons);
    tally_free(&summary->frames);
    tally_free(&summary->outcomes);
    tally_free(&summary->fallbacks);
    tally_free(&summary->compiles);
    tally_free(&summary->phases);
    tally_free(&summary->invalidations);
    tally_free(&summary->durations);
    tally_free(&summary->sites);
    tally_free(&summary->exact);
    tally_free(&summary->losses);
    reader_free(summary->reader);
}

static enum status
summarize_file(const struct options *options, const char *file)
{
    struct summary summary;
    summary_init(&summary, options->memory_bytes);
    struct diag diag = diag_new(file, options->max_faults);
    struct fxt_visitor visitor = {.context = &summary, .event = summary_event, .object = summary_object};
    enum status status = STATUS_CANNOT_READ;
    if (read_file(summary.reader, file, &visitor, &diag)) {
        status = diag_finish(&diag);
        if (status != STATUS_NOT_A_TRACE) {
            summary_finish(&summary);
            summary_print(&summary, file, options->top);
        }
    }
    summary_free(&summary);
    return status;
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++) {
        if (i > 0) putchar('\n');
        status = worse(status, summarize_file(options, files[i]));
    }
    return worse(status, finish_output());
}

static const struct cli_option summary_options[] = {OPTION_TOP, OPTION_MAX_FAULTS, OPTION_MEMORY, {0}};

const struct command command_summary = {
    .name = "summary",
    .purpose = "count exits by reason and by frame, compilations, losses",
    .arguments = "FILE...",
    .help =
        "Prints one screen for each trace: settings, time span, what was lost, exits by reason\n"
        "and by innermost frame, what recompile exits led to, fallbacks, exact counts for each\n"
        "exit's site, compilations, invalidations, threads. Where exits were sampled, counts are\n"
        "scaled by weight, and it says so.\n",
    .options = summary_options,
    .run = run,
};
