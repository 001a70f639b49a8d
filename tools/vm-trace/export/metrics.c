/* metrics.c - see metrics.h */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "export/metrics.h"
#include "topics/report_view.h"

enum { LIMITED = STRING_VERSION_LIMIT - STRING_PROFILING + 1 };

struct metrics {
    FILE *out;
    struct view view;
    const char *labels; /* of every sample */
};

/* --- lines --------------------------------------------------------------------------------------------- */

static void
begin_family(const struct metrics *metrics, const char *name, const char *unit, const char *help)
{
    fprintf(metrics->out, "# TYPE vm_trace_%s gauge\n", name);
    if (unit != NULL) fprintf(metrics->out, "# UNIT vm_trace_%s %s\n", name, unit);
    fprintf(metrics->out, "# HELP vm_trace_%s %s\n", name, help);
}

/* A value as the format has it between quotes. Bytes outside of ASCII are no part of any label here. */
static void
print_value(FILE *out, struct fxt_string value)
{
    for (uint32_t i = 0; i < value.len; i++) {
        char byte = value.ptr[i];
        if (byte == '"' || byte == '\\') fprintf(out, "\\%c", byte);
        else if (byte == '\n') fputs("\\n", out);
        else putc(byte >= ' ' && byte < 0x7f ? byte : '?', out);
    }
}

struct label {
    const char *name; /* NULL: none */
    struct fxt_string value;
};

/* Prints the name and the labels of a sample, up to its value. */
static void
begin_sample(const struct metrics *metrics, const char *name, struct label first, struct label second)
{
    const struct label labels[] = {first, second};
    const char *between = "{";
    fprintf(metrics->out, "vm_trace_%s", name);
    for (unsigned i = 0; i < 2; i++) {
        if (labels[i].name == NULL) continue;
        fprintf(metrics->out, "%s%s=\"", between, labels[i].name);
        print_value(metrics->out, labels[i].value);
        putc('"', metrics->out);
        between = ",";
    }
    if (*metrics->labels != '\0') fprintf(metrics->out, "%s%s", between, metrics->labels), between = ",";
    fputs(*between == ',' ? "} " : " ", metrics->out);
}

static const struct label none = {.name = NULL};

static struct label
label(const char *name, const char *value)
{
    return (struct label){name, text_of(value)};
}

static void
print_count(const struct metrics *metrics, const char *name, struct label one, struct label two, uint64_t count)
{
    begin_sample(metrics, name, one, two);
    fprintf(metrics->out, "%" PRIu64 "\n", count);
}

static void
print_seconds(const struct metrics *metrics, const char *name, struct label one, struct label two, uint64_t ns)
{
    begin_sample(metrics, name, one, two);
    fprintf(metrics->out, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
}

/* --- sums ---------------------------------------------------------------------------------------------- */

/* What rows with one reason have together. In the order of the first row of each. */
struct sum {
    uint32_t reason, kind; /* the key: strings of the pool */
    uint64_t count, ns, limited;
};
enum { SUM_KEYS = 2 };

static struct row_table
sums_new(void)
{
    struct row_table sums;
    row_table_init(&sums, sizeof(struct sum), SUM_KEYS, UINT32_MAX);
    return sums;
}

static struct sum *
sum_of(struct row_table *sums, uint32_t reason, uint32_t kind)
{
    return row_table_get(sums, (const uint32_t[SUM_KEYS]){reason, kind});
}

static struct label
reason_label(const struct metrics *metrics, const struct sum *sum)
{
    return (struct label){"reason", view_name(&metrics->view, sum->reason)};
}

/* --- what was read ---------------------------------------------------------------------------------------- */

static void
print_losses(const struct metrics *metrics)
{
    const struct row_table *losses = &metrics->view.report->losses;
    struct row_table sums = sums_new();
    for (uint32_t i = 0; i < losses->count; i++) {
        const struct report_loss *loss = row_table_at(losses, i);
        sum_of(&sums, loss->reason, STRING_NONE)->count += loss->events;
    }
    begin_family(metrics, "lost_events", NULL, "Events that the recorder lost, by reason.");
    for (uint32_t i = 0; i < sums.count; i++) {
        const struct sum *sum = row_table_at(&sums, i);
        print_count(metrics, "lost_events", reason_label(metrics, sum), none, sum->count);
    }
    row_table_free(&sums);
}

static void
print_traces(const struct metrics *metrics, uint32_t files, uint32_t unread)
{
    const struct report *report = metrics->view.report;
    struct map snapshots = {0}; /* by host and pid: a process may have several */
    uint32_t processes = 0;
    uint64_t traced_ns = 0;
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        if (!process->shown) continue;
        const uint64_t key = (uint64_t)process->host.origin.host << 32 | process->pid;
        processes += !process->snapshot || map_get(&snapshots, key) == MAP_NONE;
        if (process->snapshot) map_set(&snapshots, key, 1);
        if (process->first_ns <= process->last_ns) traced_ns += (uint64_t)(process->last_ns - process->first_ns);
    }
    map_free(&snapshots);
    begin_family(metrics, "files", NULL, "Traces that were to be read.");
    print_count(metrics, "files", label("state", "read"), none, files - unread);
    print_count(metrics, "files", label("state", "skipped"), none, unread);
    begin_family(metrics, "partial_files", NULL, "Traces of which only a part was read, or with damaged records.");
    print_count(metrics, "partial_files", none, none, reader_parts(report->reader)->count - unread);
    begin_family(metrics, "processes", NULL, "Processes in these traces.");
    print_count(metrics, "processes", none, none, processes);
    begin_family(metrics, "traced_seconds", "seconds", "From the first to the last event, summed over processes.");
    print_seconds(metrics, "traced_seconds", none, none, traced_ns);
    print_losses(metrics);
}

/* --- exits ------------------------------------------------------------------------------------------------ */

static uint32_t
without_parentheses(struct pool *pool, uint32_t reason)
{
    struct fxt_string text = pool_string(pool, reason);
    const char *open = text.len > 0 ? memchr(text.ptr, '(', text.len) : NULL;
    return open == NULL ? reason : pool_intern(pool, text.ptr, (size_t)(open - text.ptr));
}

/* Of exits whose reasons differ only in parentheses. */
static struct row_table
sum_exits(const struct view *view, bool fallbacks)
{
    struct row_table rows = view_exits(view, fallbacks, BY_REASON, NULL), sums = sums_new();
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct exit_row *row = row_table_at(&rows, i);
        struct sum *sum = sum_of(&sums, without_parentheses(view->report->pool, row->reason), STRING_NONE);
        sum->count += row->count;
        sum->ns += row->lost_ns;
        sum->limited += row->outcomes[LIMITED];
    }
    exit_rows_free(&rows);
    return sums;
}

static void
print_exits(const struct metrics *metrics)
{
    struct row_table exits = sum_exits(&metrics->view, false), fallbacks = sum_exits(&metrics->view, true);
    const struct sum *sums = exits.rows;
    begin_family(metrics, "exits", NULL, "Exits of compiled code to the interpreter, by reason.");
    for (uint32_t i = 0; i < exits.count; i++)
        print_count(metrics, "exits", reason_label(metrics, &sums[i]), none, sums[i].count);
    if (report_timed(metrics->view.report)) {
        begin_family(metrics, "exit_lost_seconds", "seconds",
                     "Time in the interpreter because of exits, by reason (stream states).");
        for (uint32_t i = 0; i < exits.count; i++)
            print_seconds(metrics, "exit_lost_seconds", reason_label(metrics, &sums[i]), none, sums[i].ns);
    }
    begin_family(metrics, "exits_at_version_limit", NULL,
                 "Recompile exits of code that has as many versions as it may have, by reason.");
    for (uint32_t i = 0; i < exits.count; i++) {
        if (sums[i].limited > 0)
            print_count(metrics, "exits_at_version_limit", reason_label(metrics, &sums[i]), none, sums[i].limited);
    }
    begin_family(metrics, "fallbacks", NULL, "Calls that compiled code left to the interpreter, by reason.");
    for (uint32_t i = 0; i < fallbacks.count; i++) {
        const struct sum *sum = row_table_at(&fallbacks, i);
        print_count(metrics, "fallbacks", reason_label(metrics, sum), none, sum->count);
    }
    row_table_free(&exits);
    row_table_free(&fallbacks);
}

/* --- the other streams ------------------------------------------------------------------------------------- */

static void
print_compilations(const struct metrics *metrics)
{
    const struct compilations *compilations = &metrics->view.report->compilations;
    begin_family(metrics, "compilations", NULL, "ISEQs that were compiled, each time.");
    print_count(metrics, "compilations", none, none, compilations->whole.count);
    begin_family(metrics, "compilation_seconds", "seconds", "Time in which ISEQs were compiled.");
    print_seconds(metrics, "compilation_seconds", none, none, compilations->whole.total_ns);
}

static void
print_threads(const struct metrics *metrics)
{
    static const struct { enum thread_state state; const char *name; } states[] = {
        {THREAD_RUNNING, "running"}, {THREAD_IN_GC, "gc"}, {THREAD_WAITING, "waiting"}, {THREAD_BLOCKED, "blocked"}};
    const struct thread_states *threads = &metrics->view.report->states;
    uint64_t ns[THREAD_STATE_COUNT];
    if (threads->threads.count == 0) return; /* without the stream it is not known */
    thread_states_sum(threads, ns);
    begin_family(metrics, "thread_seconds", "seconds",
                 "Time of Ruby threads by state; waiting: for the GVL (stream threads).");
    for (unsigned i = 0; i < sizeof states / sizeof *states; i++)
        print_seconds(metrics, "thread_seconds", label("state", states[i].name), none, ns[states[i].state]);
}

static void
print_gc_reasons(const struct metrics *metrics, const struct row_table *sums, bool seconds)
{
    for (uint32_t i = 0; i < sums->count; i++) {
        const struct sum *sum = row_table_at(sums, i);
        const struct label kind = label("kind", sum->kind == STRING_GC_MAJOR ? "major" : "minor");
        const struct label reason = reason_label(metrics, sum);
        if (seconds) print_seconds(metrics, "gc_pause_seconds", kind, reason, sum->ns);
        else print_count(metrics, "gc_pauses", kind, reason, sum->count);
    }
}

static void
print_gc(const struct metrics *metrics)
{
    const struct row_table *reasons = &metrics->view.report->gc.reasons;
    struct row_table sums = sums_new(); /* rows of `reasons` differ in what made a collection a major one, too */
    uint64_t longest_ns = 0;
    if (reasons->count == 0) return;
    for (uint32_t i = 0; i < reasons->count; i++) {
        const struct gc_reason *reason = row_table_at(reasons, i);
        struct sum *sum = sum_of(&sums, reason->reason, reason->kind);
        sum->count += reason->pauses.count;
        sum->ns += reason->pauses.total_ns;
        if (reason->pauses.longest_ns > longest_ns) longest_ns = reason->pauses.longest_ns;
    }
    begin_family(metrics, "gc_pauses", NULL, "Pauses of the garbage collector, by kind and reason.");
    print_gc_reasons(metrics, &sums, false);
    begin_family(metrics, "gc_pause_seconds", "seconds", "Their time.");
    print_gc_reasons(metrics, &sums, true);
    row_table_free(&sums);
    begin_family(metrics, "gc_longest_pause_seconds", "seconds", "The longest pause of the garbage collector.");
    print_seconds(metrics, "gc_longest_pause_seconds", none, none, longest_ns);
}

void
metrics_print(FILE *out, struct report *report, const char *labels, uint32_t files, uint32_t unread)
{
    const struct metrics metrics = {.out = out, .view = {.report = report}, .labels = labels};
    print_traces(&metrics, files, unread);
    print_exits(&metrics);
    print_compilations(&metrics);
    print_threads(&metrics);
    print_gc(&metrics);
    fputs("# EOF\n", out);
}

bool
metrics_labels_p(const char *text)
{
    for (const char *at = text; *at != '\0';) {
        if (!isalpha((unsigned char)*at) && *at != '_') return false;
        while (isalnum((unsigned char)*at) || *at == '_') at++;
        if (at[0] != '=' || at[1] != '"') return false;
        for (at += 2; *at != '"'; at++) {
            if (*at == '\\' && at[1] != '\0') at++;
            if (iscntrl((unsigned char)*at)) return false;
        }
        at++;
        if (*at == ',' && at[1] != '\0') at++;
        else if (*at != '\0') return false;
    }
    return true;
}
