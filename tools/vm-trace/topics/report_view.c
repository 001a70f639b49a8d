/* report_view.c - see report_view.h: what the files of a report's tables share. */
#include <string.h>

#include "analysis/label.h"
#include "topics/report_view.h"

struct fxt_string
view_chosen_by(const struct view *view)
{
    const struct trace_choice *filter = &view->report->filter;
    const char *globs[] = {filter->reason, filter->method, filter->thread};
    static const char *const names[] = {"--reason", "--method", "--thread", "--since", "--until"};
    const bool given[] = {globs[0] != NULL, globs[1] != NULL, globs[2] != NULL, filter->since_ns != INT64_MIN,
                          filter->until_ns != INT64_MAX};
    struct fxt_string text = text_of("");
    for (unsigned i = 0; i < sizeof given / sizeof *given; i++) {
        if (given[i]) text = document_text(view->document, "%s%s%s", text.ptr, text.len > 0 ? ", " : "", names[i]);
    }
    return text;
}

struct fxt_string
view_nothing(const struct view *view, enum topic_number topic)
{
#define TOPIC_NAME(name, purpose) #name,
    static const char *const names[TOPICS_COUNT] = {TOPICS(TOPIC_NAME)};
    if (!view->report->recorded[topic])
        return document_text(view->document, "none: --vm-trace=%s records them", names[topic]);
    const struct trace_choice *filter = &view->report->filter;
    const char *why = "";
    if (filter->reason != NULL && topic != TOPIC_counters) why = ": only exits and fallbacks have a reason";
    else if (filter->method != NULL && (topic == TOPIC_sched || topic == TOPIC_samples))
        why = ": it chooses among exits, fallbacks, calls and allocations";
    return document_text(view->document, "none pass %s%s", view_chosen_by(view).ptr, why);
}

bool
view_unseen_shown(uint64_t unseen_ns, uint64_t whole_ns)
{
    return unseen_ns > 0 && unseen_ns >= whole_ns / 200;
}

/* --- exits ------------------------------------------------------------------------------------ */

/* Reasons of ZJIT that do not depend on profiles: the program throws, or there is no code for
 * the instruction. */
static bool
same_in_all_versions(struct fxt_string reason)
{
    static const char *const reasons[] = {"Throw",         "ExceptionHandler", "Interrupt",
                                          "StackOverflow", "SendWhileTracing", "DirectiveInduced",
                                          "CompileError"};
    static const char *const prefixes[] = {"Unhandled", "Unknown"};
    size_t len = strcspn(reason.ptr, "(");
    for (unsigned i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (strlen(reasons[i]) == len && memcmp(reason.ptr, reasons[i], len) == 0) return true;
    }
    for (unsigned i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(reason.ptr, prefixes[i], strlen(prefixes[i])) == 0) return true;
    }
    return false;
}

bool
view_versioned(const struct view *view, const struct exit_row *exit_row)
{
    if (report_process(view->report, exit_row->process)->code.block_versions) return false;
    return exit_row->category == STRING_RECOMPILE_EXIT ||
           !same_in_all_versions(pool_string(view->report->pool, exit_row->reason));
}

static int
compare_exits(const void *left, const void *right, void *context)
{
    const struct exit_row *a = left, *b = right;
    const struct pool *pool = context;
    if (a->lost_ns != b->lost_ns) return a->lost_ns > b->lost_ns ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    const uint32_t a_key[] = {a->reason, a->location, a->insn, a->category, a->callee};
    const uint32_t b_key[] = {b->reason, b->location, b->insn, b->category, b->callee};
    for (unsigned i = 0; i < sizeof a_key / sizeof a_key[0]; i++) {
        int order = fxt_string_compare(pool_string(pool, a_key[i]), pool_string(pool, b_key[i]));
        if (order != 0) return order;
    }
    return (a->version > b->version) - (a->version < b->version);
}

uint32_t
view_opcode(struct pool *pool, uint32_t insn)
{
    int64_t index;
    struct fxt_string name = insn_without_index(pool_string(pool, insn), &index);
    return index == NO_INSN_INDEX ? insn : pool_intern(pool, name.ptr, name.len);
}

struct row_table
view_exits(const struct view *view, bool fallbacks, unsigned by, struct exit_row *sum_out)
{
    struct row_table rows;
    const struct exit_table *exits = &view->report->exits;
    row_table_init(&rows, sizeof(struct exit_row), EXIT_ROW_KEYS, EXIT_ROWS_MAX);
    if (sum_out) *sum_out = (struct exit_row){0};
    for (uint32_t i = 0; i < exits->rows.count; i++) {
        const struct exit_row *exit_row = row_table_at(&exits->rows, i);
        if ((exit_row->category == STRING_FALLBACK) != fallbacks || exit_row->count + exit_row->records == 0) continue;
        if (by & BY_VERSION && !view_versioned(view, exit_row)) continue;
        if (by & INDEXED_ONLY && view_opcode(view->report->pool, exit_row->insn) == exit_row->insn) continue;
        const uint32_t key[EXIT_ROW_KEYS] = {
            0,
            by & BY_CATEGORY ? exit_row->category : 0,
            by & BY_REASON ? exit_row->reason : 0,
            by & BY_LOCATION ? exit_row->location
            : by & BY_METHOD ? label_without_line(view->report->pool, exit_row->location)
                             : 0,
            by & BY_INSN ? exit_row->insn : by & BY_OPCODE ? view_opcode(view->report->pool, exit_row->insn) : 0,
            by & BY_VERSION ? exit_row->version : 0,
            0,
            by & BY_CALLEE ? exit_row->callee : 0,
        };
        struct exit_row *row = row_table_get(&rows, key);
        exit_row_merge(row, exit_row);
        durations_merge(&row->lost, &exit_row->lost);
        if (sum_out) exit_row_merge(sum_out, exit_row);
    }
    row_table_sort(&rows, compare_exits, view->report->pool);
    return rows;
}

const float *
view_rate(const struct view *view, const struct exit_row *exit_row)
{
    const struct report *report = view->report;
    if (exit_row->records == 0) return NULL;
    float *rate = document_rate(view->document);
    exit_row_rate(&report->exits, exit_row, report->first_ns, report->last_ns, DOCUMENT_PARTS, rate);
    return rate;
}
