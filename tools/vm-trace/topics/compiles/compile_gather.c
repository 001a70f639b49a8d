/* compile_gather.c - gathers for a report what the compiler did, and the history of compiled versions. */
#include "topics/report_data.h"

static void
init(struct report *report)
{
    compilations_init(&report->compilations);
    named_durations_init(&report->invalidations);
}

static void
free_all(struct report *report)
{
    compilations_free(&report->compilations);
    named_durations_free(&report->invalidations);
    version_history_free(&report->history);
}

static void
file_end(struct report *report)
{
    compilations_file_end(&report->compilations);
    version_history_file_end(&report->history);
}

static void
of_thread(struct report *report, const struct topic_event *of)
{
    version_history_event(&report->history, report->pool, of->whole, of->event);
}

/* The reason of an invalidation may contain an address. */
static void
add_invalidation(struct report *report, const struct duration_edge *begin, uint64_t ns)
{
    uint32_t name = pool_without_addresses(report->pool, begin->name);
    report->uncounted += !named_durations_add(&report->invalidations, STRING_INVALIDATION, name, ns);
}

static void
pair(struct report *report, const struct duration_edge *begin, const struct duration_edge *end, bool wanted)
{
    if (begin->category == STRING_COMPILE) compilations_pair(&report->compilations, begin, end, wanted);
    else if (begin->outermost && wanted && end != NULL)
        add_invalidation(report, begin, (uint64_t)(end->ts_ns - begin->ts_ns));
}

static void
single(struct report *report, const struct duration_edge *edge, uint64_t ns)
{
    if (edge->category == STRING_COMPILE) compilations_single(&report->compilations, edge, ns);
    else add_invalidation(report, edge, ns);
}

TOPIC_CALL(resolve, version_history_sort(&report->history))

const struct topic topic_compiles = {
    .init = init,
    .free = free_all,
    .file_end = file_end,
    .categories = {STRING_COMPILE, STRING_INVALIDATION, STRING_REPROFILE},
    .of_thread = of_thread,
    .durations = {STRING_COMPILE, STRING_INVALIDATION},
    .pair = pair,
    .single = single,
    .resolve = resolve,
    .tables = compiles_tables,
};
