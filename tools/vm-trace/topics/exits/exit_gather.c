/* exit_gather.c - gathers exits and fallbacks for a report: events, and sites with their exact hits. */
#include "analysis/event_args.h"
#include "analysis/label.h"
#include "topics/exits/exit_resolve.h"
#include "topics/markers/endpoint_costs.h"
#include "topics/report_data.h"

static void
init(struct report *report)
{
    exit_table_init(&report->exits);
    throws_init(&report->throws);
    seen_table_init(&report->seen);
}

static void
free_all(struct report *report)
{
    exit_table_free(&report->exits);
    throws_free(&report->throws);
    seen_table_free(&report->seen);
}

/* The key of an exit's row, from its event or from its site. */
struct exit_key {
    uint32_t words[EXIT_ROW_KEYS];
};

static struct exit_key
exit_key(struct pool *pool, const struct fxt_event *event, uint32_t process, uint32_t kind, uint32_t location)
{
    uint32_t iseq = event_text(pool, event, STRING_ISEQ);
    bool inlined = iseq != STRING_NONE && label_without_line(pool, iseq) != label_without_line(pool, location);
    return (struct exit_key){{
        process, kind, event_reason(pool, event), location, event_insn(pool, event),
        (uint32_t)event_uint(event, STRING_VERSION, 0), inlined ? iseq : STRING_NONE,
        event_text(pool, event, STRING_CALLEE),
    }};
}

static void
add_exit(struct report *report, const struct topic_event *of)
{
    const struct fxt_event *event = of->event;
    struct report_thread *thread = report_thread(report, of->thread);
    uint32_t process = report_piece(report, thread->process);
    uint64_t weight = event_uint(event, STRING_WEIGHT, 1);
    uint32_t location = report_frame(report, event);
    const struct exit_key key = exit_key(report->pool, event, process, event->category.id, location);
    uint32_t reason = key.words[2];
    bool fallback = event->category.id == STRING_FALLBACK;
    bool wanted = report_exit_wanted(report, reason, location);
    if (wanted) {
        *(fallback ? &thread->fallbacks : &thread->exits) += weight;
        seen_table_add(&report->seen, report->pool, event, reason, location, weight);
        if (!fallback) endpoint_cost_add(report, of->native, event->ts_ns, ENDPOINT_EXITS, weight, location);
        if (!fallback && fxt_event_arg(event, STRING_LOST_NS) != NULL)
            endpoint_cost_add(report, of->native, event->ts_ns, ENDPOINT_LOST,
                              event_uint(event, STRING_LOST_NS, 0) * weight, location);
    }
    throws_exit(&report->throws, report->pool, event, of->native, wanted);
    if (weight != 1) report_process(report, process)->sampled = true;
    struct exit_row *exit_row = exit_table_row(&report->exits, key.words);
    if (exit_row == NULL) {
        report->exits.uncounted += weight;
        return;
    }
    exit_table_add(&report->exits, exit_row, event->ts_ns, weight);
    if (fxt_event_arg(event, STRING_LOST_NS) != NULL) report_process(report, process)->timed = true;
    exit_row_add_lost(exit_row, event_uint(event, STRING_LOST_NS, 0), weight);
    if (event->category.id == STRING_RECOMPILE_EXIT) {
        uint32_t outcome = event_text(report->pool, event, STRING_OUTCOME);
        bool known = outcome >= STRING_PROFILING && outcome <= STRING_VERSION_LIMIT;
        exit_row->outcomes[known ? outcome - STRING_PROFILING + 1 : 0] += weight;
    }
}

static void
wanted(struct report *report, const struct topic_event *of)
{
    if (of->event->category.id == STRING_THROW) throws_flow(&report->throws, of->event, of->native);
    else if (of->event->type == FXT_EVENT_INSTANT) add_exit(report, of);
}

static void
about_trace(struct report *report, const struct topic_event *of)
{
    const struct fxt_event *event = of->event;
    if (event->name.id != STRING_SITE) return;
    uint32_t location = event_text(report->pool, event, STRING_LOCATION);
    const struct exit_key key =
        exit_key(report->pool, event, of->process, event_text(report->pool, event, STRING_KIND), location);
    report_process(report, of->process)->sites++;
    if (report->times_only) return;
    struct exit_row *exit_row = exit_table_row(&report->exits, key.words);
    uint64_t hits = event_uint(event, STRING_HITS, 0);
    if (exit_row == NULL) {
        report->exits.uncounted_hits += hits;
        return;
    }
    uint64_t max_ns = event_uint(event, STRING_LOST_MAX_NS, 0);
    exit_row->hits += hits;
    exit_row->site_lost_ns += event_uint(event, STRING_LOST_NS, 0);
    if (max_ns > exit_row->lost_max_ns) exit_row->lost_max_ns = max_ns;
}

const struct topic topic_exits = {
    .init = init,
    .free = free_all,
    .categories = {STRING_SIDE_EXIT, STRING_RECOMPILE_EXIT, STRING_FALLBACK, STRING_THROW},
    .about_trace = about_trace,
    .wanted = wanted,
    .resolve = exits_resolve,
    .tables = exits_tables,
};
