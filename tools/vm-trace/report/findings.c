/* findings.c - see findings.h */
#include <stdlib.h>
#include <string.h>

#include "topics/exits/advice.h"
#include "analysis/label.h"
#include "topics/exits/lasting_exits.h"
#include "report/work_places.h"
#include "topics/compiles/code_text.h"
#include "report/findings.h"

const char *const finding_subject_names[FINDING_SUBJECTS] = {
    [FINDING_EXITS] = "exits",     [FINDING_INTERPRETED] = "interpreted", [FINDING_COMPILING] = "compiling",
    [FINDING_GC] = "gc",           [FINDING_GVL] = "gvl",                 [FINDING_BLOCKED] = "blocked",
    [FINDING_METHOD] = "method",   [FINDING_FIBERS] = "fibers",
};

/* What part of the time that a cause takes its change gains. benchmarks/README.md has the measurements. */
static const struct {
    double least, gain, most; /* gain 0: it is not known what the same work takes otherwise */
} gains[FINDING_SUBJECTS] = {
    [FINDING_EXITS] = {0.35, 0.95, 1},
    [FINDING_INTERPRETED] = {0.20, 0.70, 1},
    [FINDING_COMPILING] = {0, 0, 1},
    [FINDING_GC] = {0.30, 0, 1},
    [FINDING_GVL] = {0, 0, 1},
    [FINDING_FIBERS] = {0, 0, 1},
    [FINDING_BLOCKED] = {0, 0, 1},
    [FINDING_METHOD] = {0, 0, 1},
};

/* Shares of the whole from which on a cause is worth a row; a method's own time has no cause, so it needs more. */
static const double worth = 0.01, method_worth = 0.05;

/* --- where the time went ---------------------------------------------------------------------------- */

enum where_source { OF_STATES, OF_SAMPLES, OF_THREADS, WHERE_SOURCES };

static struct row_table *
source_rows(struct report *report, enum where_source source)
{
    switch (source) {
      case OF_STATES: return &report->execution.threads;
      case OF_SAMPLES: return &report->samples.threads;
      default: return &report->states.threads;
    }
}

static bool
runs_p(unsigned kind)
{
    return kind < EXECUTION_RUNNING_STATES || kind == WHERE_INTERPRETED || kind == WHERE_RUNNING ||
           kind == WHERE_WITHOUT_GVL;
}

static uint64_t
ran_ns(const uint64_t ns[WHERE_KINDS])
{
    uint64_t sum = 0;
    for (unsigned kind = 0; kind < WHERE_KINDS; kind++) sum += runs_p(kind) ? ns[kind] : 0;
    return sum;
}

/* The times of a thread. Returns its number. */
static uint32_t
thread_where(struct report *report, enum where_source source, uint32_t row, uint64_t ns_out[WHERE_KINDS])
{
    static const unsigned kind_of_sample[TIME_SAMPLE_STATES] = {
        [TIME_SAMPLE_COMPILED] = EXECUTION_COMPILED,   [TIME_SAMPLE_INTERPRETED] = WHERE_INTERPRETED,
        [TIME_SAMPLE_COMPILING] = EXECUTION_COMPILING, [TIME_SAMPLE_GC] = EXECUTION_GC,
        [TIME_SAMPLE_BLOCKED] = EXECUTION_BLOCKED,     [TIME_SAMPLE_WAITING] = EXECUTION_WAITING,
        [TIME_SAMPLE_NO_CPU] = EXECUTION_NO_CPU,       [TIME_SAMPLE_WITHOUT_GVL] = WHERE_WITHOUT_GVL,
    };
    const void *found = row_table_at(source_rows(report, source), row);
    memset(ns_out, 0, WHERE_KINDS * sizeof *ns_out);
    if (source == OF_STATES) {
        const struct execution_thread *thread = found;
        memcpy(ns_out, thread->ns, EXECUTION_UNSEEN * sizeof *ns_out);
        return thread->thread;
    }
    if (source == OF_SAMPLES) {
        const struct sample_thread *thread = found;
        for (unsigned i = 0; i < TIME_SAMPLE_STATES; i++) ns_out[kind_of_sample[i]] = thread->times.ns[i];
        return thread->thread;
    }
    const struct thread_times *times = found;
    ns_out[WHERE_RUNNING] = times->ns[THREAD_RUNNING];
    ns_out[EXECUTION_GC] = times->ns[THREAD_IN_GC];
    ns_out[EXECUTION_WAITING] = times->ns[THREAD_WAITING];
    ns_out[EXECUTION_BLOCKED] = times->ns[THREAD_BLOCKED];
    return times->row;
}

/* The tracer calls it so, unless the program does otherwise. */
static bool
main_thread_p(const struct report *report, uint32_t number)
{
    const struct report_thread *thread = report_thread(report, number);
    return fxt_string_is(pool_string(report->pool, thread->name), "main") ||
           (thread->runs == STRING_NONE && thread->tid == report_process(report, thread->process)->pid);
}

/* No stream knows states: the lives of main threads, for shares of what others know. */
static void
add_lives(struct report *report, struct where *where)
{
    where->of_main = true;
    for (uint32_t i = 0; i < report->threads.count; i++) {
        if (!main_thread_p(report, i) || !report_thread_wanted(report, i)) continue;
        where->threads++;
        where->whole_ns += report_thread_ns(report, i, 0);
    }
}

/* Sampled time of the threads that count in a state. */
static uint64_t
sampled_in(struct report *report, bool of_main, enum time_sample_state state)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < report->samples.threads.count; i++) {
        const struct sample_thread *thread = row_table_at(&report->samples.threads, i);
        if (!report_thread_wanted(report, thread->thread)) continue;
        if (!of_main || main_thread_p(report, thread->thread)) ns += thread->times.ns[state];
    }
    return ns;
}

/*
 * Without it: states of the stream `threads`, and of older traces, include it. Then each one in which a thread runs has
 * its part, as the samples know it, so that the sum stays.
 */
static void
take_out_no_cpu(struct report *report, struct where *where)
{
    bool known = where->ns[EXECUTION_NO_CPU] > 0;
    uint64_t ran = ran_ns(where->ns);
    uint64_t without_ns = known ? where->ns[EXECUTION_NO_CPU] : sampled_in(report, where->of_main, TIME_SAMPLE_NO_CPU);
    if (known) ran += without_ns;
    if (without_ns > ran) without_ns = ran;
    where->cpu_part = ran > 0 ? (double)(ran - without_ns) / (double)ran : 1;
    for (unsigned kind = 0; kind < WHERE_KINDS && !known && without_ns > 0; kind++) {
        if (!runs_p(kind)) continue;
        uint64_t left_ns = (uint64_t)(where->cpu_part * (double)where->ns[kind]);
        where->ns[EXECUTION_NO_CPU] += where->ns[kind] - left_ns;
        where->ns[kind] = left_ns;
    }
}

/* For these streams a method in C that computes without the GVL is blocked. */
static void
take_out_without_gvl(struct report *report, struct where *where)
{
    uint64_t ns = sampled_in(report, where->of_main, TIME_SAMPLE_WITHOUT_GVL);
    uint64_t *blocked_ns = &where->ns[EXECUTION_BLOCKED];
    if (where->of_main) {
        if (ns > *blocked_ns) ns = *blocked_ns;
        *blocked_ns -= ns;
    }
    else {
        where->whole_ns += ns; /* blocked time does not count */
    }
    where->ns[WHERE_WITHOUT_GVL] += ns;
}

static int
longest_state_first(const void *left, const void *right)
{
    const struct where_state *a = left, *b = right;
    if (a->ns != b->ns) return a->ns > b->ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void
list_states(struct where *where)
{
    static const char *const others[WHERE_KINDS - EXECUTION_UNSEEN] = {"interpreted", "running", "C without the GVL",
                                                                         "not recorded"};
    for (unsigned kind = 0; kind < WHERE_KINDS; kind++) {
        if (where->ns[kind] == 0) continue;
        bool known = kind < EXECUTION_UNSEEN;
        const char *name = known ? execution_state_names[kind].meaning : others[kind - EXECUTION_UNSEEN];
        where->states[where->count++] = (struct where_state){name, where->ns[kind]};
    }
    qsort(where->states, where->count, sizeof *where->states, longest_state_first);
}

static struct where
where_of(const struct view *view)
{
    struct report *report = view->report;
    struct where where = {.cpu_part = 1};
    enum where_source source = OF_STATES;
    while (source < WHERE_SOURCES && source_rows(report, source)->count == 0) source++;
    if (source == WHERE_SOURCES && !report->exits_only) add_lives(report, &where);
    if (source == WHERE_SOURCES || report->exits_only) return where;
    uint32_t rows = source_rows(report, source)->count;
    uint64_t all_ns = 0, main_ns = 0, ns[WHERE_KINDS];
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t thread = thread_where(report, source, i, ns);
        if (!report_thread_wanted(report, thread)) continue;
        all_ns += ran_ns(ns);
        if (main_thread_p(report, thread)) main_ns += ran_ns(ns);
    }
    where.of_main = main_ns >= all_ns - main_ns;
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t thread = thread_where(report, source, i, ns);
        if (!report_thread_wanted(report, thread) || (where.of_main && !main_thread_p(report, thread))) continue;
        if (!where.of_main) ns[EXECUTION_BLOCKED] = 0;
        where.threads++;
        for (unsigned kind = 0; kind < WHERE_KINDS; kind++) where.ns[kind] += ns[kind], where.whole_ns += ns[kind];
    }
    take_out_no_cpu(report, &where);
    if (source != OF_SAMPLES) take_out_without_gvl(report, &where);
    list_states(&where);
    return where;
}

static struct where
requests_of(const struct report *report)
{
    struct where where = {.cpu_part = 1};
    const struct endpoints *endpoints = report->endpoints;
    if (endpoints == NULL || !endpoints->recorded[ENDPOINT_RAN] || endpoints->outer.ns == 0) return where;
    const uint64_t *costs = endpoints->outer.costs;
    where.whole_ns = endpoints->outer.ns;
    where.ns[EXECUTION_GC] = costs[ENDPOINT_GC];
    where.ns[WHERE_RUNNING] = costs[ENDPOINT_RAN] - costs[ENDPOINT_GC];
    where.ns[EXECUTION_WAITING] = costs[ENDPOINT_WAITED];
    where.ns[EXECUTION_BLOCKED] = costs[ENDPOINT_BLOCKED];
    where.ns[WHERE_UNSEEN] = where.whole_ns - costs[ENDPOINT_RAN] - costs[ENDPOINT_WAITED] - costs[ENDPOINT_BLOCKED];
    list_states(&where);
    return where;
}

/* What a gain can be a part of: other programs have the rest. */
static uint64_t
with_cpu_ns(const struct where *where)
{
    return where->whole_ns - where->ns[EXECUTION_NO_CPU];
}

/* --- the list --------------------------------------------------------------------------------------- */

/* A time that is not exactly known. */
struct uncertain {
    double ns, error_ns;
};

/* What a change gains if a cause takes this. */
struct gain {
    double least, ns, most;
};

static struct gain
gain_of(enum finding_subject subject, struct uncertain time)
{
    return (struct gain){gains[subject].least * (time.ns - time.error_ns), gains[subject].gain * time.ns,
                         gains[subject].most * (time.ns + time.error_ns)};
}

/* The order of rows: by what they gain; where that is not known, a quarter of the most. */
static double
weight(const struct finding *finding)
{
    if (finding->of_count > 0) return (double)finding->count / (double)finding->of_count;
    double ns = (double)finding->most_ns / 4;
    double known = (double)(finding->estimated ? finding->gain_ns : finding->least_ns);
    if (known > ns) ns = known;
    return finding->whole_ns > 0 ? ns / (double)finding->whole_ns : 0;
}

/* Puts a row in its place. */
static void
insert(struct findings *findings, const struct finding *finding)
{
    unsigned at = findings->count;
    while (at > 0 && weight(&findings->list[at - 1]) < weight(finding)) at--;
    if (at == FINDINGS_MOST) return;
    if (findings->count < FINDINGS_MOST) findings->count++;
    memmove(&findings->list[at + 1], &findings->list[at], (findings->count - 1 - at) * sizeof *finding);
    findings->list[at] = *finding;
}

static uint64_t
within(double ns, uint64_t whole_ns)
{
    return ns <= 0 ? 0 : ns < (double)whole_ns ? (uint64_t)ns : whole_ns;
}

/* Takes a row with this gain if it is worth it. */
static void
add(struct findings *findings, const struct finding *given, struct gain gain)
{
    struct finding finding = *given;
    double least = finding.subject == FINDING_METHOD ? method_worth : worth;
    if (finding.whole_ns == 0) finding.whole_ns = with_cpu_ns(&findings->where);
    if (finding.whole_ns == 0) return; /* nothing is known that it could be a part of */
    finding.least_ns = within(gain.least, finding.whole_ns);
    finding.gain_ns = within(gain.ns, finding.whole_ns);
    finding.most_ns = within(gain.most, finding.whole_ns);
    finding.estimated = finding.gain_ns > 0;
    uint64_t gain_ns = finding.estimated ? finding.gain_ns : finding.most_ns;
    if (gain_ns > 0 && (double)gain_ns >= least * (double)finding.whole_ns) insert(findings, &finding);
}

/* The option that chooses the method of a label. */
static struct fxt_string
method_option(const struct view *view, const char *subject, struct fxt_string label)
{
    struct label_parts parts = label_parts(label);
    bool plain = parts.method.len > 0 && memchr(parts.method.ptr, '\'', parts.method.len) == NULL;
    if (!plain) return document_text(view->document, "%s", subject);
    return document_text(view->document, "%s --method='%.*s'", subject, (int)parts.method.len, parts.method.ptr);
}

/* --- by place ------------------------------------------------------------------------------------------ */

/* What is known of a method of the application, and what it calls. */
struct place {
    uint32_t method; /* the key, as work_places.h has it */
    uint64_t lost_ns, interpreted_ns, bytes;
    uint64_t in_few_calls_ns; /* interpreted, in calls so long and few that no JIT compiles the ISEQ */
    /* The rows with most of each: index + 1; 0: none. */
    uint32_t exits, iseq, allocations;
    uint64_t most_lost_ns, most_interpreted_ns, most_bytes;
    double bytes_variance;
};
enum { PLACES_MAX = 256 * 1024 };

struct by_place {
    struct row_table rows; /* of struct place */
    struct work_places work;
    struct row_table methods;     /* of struct sample_row */
    struct row_table exits;       /* of struct exit_row */
    struct row_table allocations; /* of struct allocation_row, by frame */
    struct allocation_row allocated;
    struct row_table lasting; /* of struct lasting_exits */
    double interpreted_part;  /* interpreted_part() */
    uint64_t *iseq_ns;        /* of each row of execution.iseqs: own time interpreted */
    uint64_t sampled_ns, period_ns; /* all samples; 0: they have no period */
    double gc_ns;                   /* all pauses */
    uint64_t collections;
    bool places_garbage; /* enough allocations were sampled to say where */
};

static struct place *
place_of(struct by_place *by_place, uint32_t label)
{
    uint32_t method = work_place_of(&by_place->work, label);
    return row_table_get(&by_place->rows, &method);
}

/* A part of the sampled time. */
static struct uncertain
sampled(const struct by_place *by_place, uint64_t ns)
{
    uint64_t period_ns = by_place->period_ns;
    return (struct uncertain){(double)ns, period_ns > 0 ? sample_error_ns(ns, by_place->sampled_ns, period_ns) : 0};
}

/* Adds to a sum, and keeps the row with most of it. */
static void
add_part(uint64_t *sum, uint64_t *most, uint32_t *row_of_most, uint64_t amount, uint32_t row)
{
    *sum += amount;
    if (amount <= *most) return;
    *most = amount;
    *row_of_most = row + 1;
}

/*
 * What part of the time in which states say that code was interpreted is likely to be so. States know no time without a
 * CPU: on a busy machine it is in the state in which the thread had to wait for one. Samples know it.
 */
static double
interpreted_part(const struct view *view, const struct by_place *by_place)
{
    const struct report *report = view->report;
    uint64_t ns[EXECUTION_STATES];
    double states_ns = 0;
    execution_sum(&report->execution, ns);
    for (unsigned state = EXECUTION_EXITED; state <= EXECUTION_REPROFILED; state++) states_ns += (double)ns[state];
    if (by_place->work.rows.count == 0 || report->samples.all.cpu || states_ns <= 0) return 1;
    struct uncertain samples = sampled(by_place, by_place->work.interpreted_ns);
    double most_ns = samples.ns + samples.error_ns;
    return most_ns < states_ns ? most_ns / states_ns : 1;
}

static uint64_t
row_lost_ns(const struct by_place *by_place, const struct exit_row *row)
{
    return (uint64_t)(by_place->interpreted_part * (double)row->lost_ns);
}

static void
gather_exits(const struct view *view, struct by_place *by_place)
{
    by_place->interpreted_part = interpreted_part(view, by_place);
    by_place->exits = view_exits(view, false, BY_CATEGORY | BY_REASON | BY_LOCATION | BY_INSN | BY_CALLEE, NULL);
    for (uint32_t i = 0; i < by_place->exits.count; i++) {
        const struct exit_row *row = row_table_at(&by_place->exits, i);
        struct place *place = row->lost_ns > 0 ? place_of(by_place, row->location) : NULL;
        if (place != NULL)
            add_part(&place->lost_ns, &place->most_lost_ns, &place->exits, row_lost_ns(by_place, row), i);
    }
}

/* Whether its calls are long: a loop that is entered once stays interpreted to its end. */
static bool
in_few_calls_p(const struct execution_iseq *iseq)
{
    enum { LONG_NS = 5 * 1000 * 1000 };
    return iseq->why == STRING_NOT_COMPILED_YET && (iseq->calls == 0 || iseq->interpreted_ns / iseq->calls >= LONG_NS);
}

/* An ISEQ's time includes what it called; its method's samples do not. */
static void
gather_interpreted(const struct view *view, struct by_place *by_place)
{
    struct report *report = view->report;
    by_place->iseq_ns = xcalloc((size_t)report->execution.iseqs.count + 1, sizeof *by_place->iseq_ns);
    for (uint32_t i = 0; i < report->execution.iseqs.count; i++) {
        const struct execution_iseq *iseq = row_table_at(&report->execution.iseqs, i);
        if (!report_iseq_wanted(report, iseq->iseq)) continue;
        uint64_t ns = iseq->interpreted_ns;
        uint32_t method = label_without_line(report->pool, iseq->iseq);
        const struct sample_row *sampled = row_table_find(&by_place->methods, &method);
        uint64_t own_ns = sampled != NULL ? sampled->own.ns[TIME_SAMPLE_INTERPRETED] : 0;
        if (by_place->methods.count > 0 && own_ns < ns) ns = own_ns;
        by_place->iseq_ns[i] = ns;
        struct place *place = ns > 0 ? place_of(by_place, iseq->iseq) : NULL;
        if (place == NULL) continue;
        uint64_t *sum = in_few_calls_p(iseq) ? &place->in_few_calls_ns : &place->interpreted_ns;
        add_part(sum, &place->most_interpreted_ns, &place->iseq, ns, i);
    }
}

static void
gather_garbage(const struct view *view, struct by_place *by_place, double cpu_part)
{
    enum { SAMPLES_LEAST = 20 };
    struct report *report = view->report;
    for (uint32_t i = 0; i < report->gc.reasons.count; i++) {
        const struct gc_reason *reason = row_table_at(&report->gc.reasons, i);
        by_place->gc_ns += cpu_part * (double)reason->pauses.total_ns;
        by_place->collections += reason->collections;
    }
    by_place->allocations = allocations_group(&report->allocations, ALLOCATIONS_BY_FRAME, &by_place->allocated);
    const struct allocation_row *sum = &by_place->allocated;
    by_place->places_garbage = sum->all.samples >= SAMPLES_LEAST || (sum->all.bytes > 0 && allocations_exact(sum));
    for (uint32_t i = 0; i < by_place->allocations.count && by_place->places_garbage; i++) {
        const struct allocation_row *row = row_table_at(&by_place->allocations, i);
        struct place *place = row->frame != STRING_NONE ? place_of(by_place, row->frame) : NULL;
        if (place == NULL) continue;
        add_part(&place->bytes, &place->most_bytes, &place->allocations, row->all.bytes, i);
        place->bytes_variance += row->all.variance;
    }
}

static struct by_place
gather_places(const struct view *view, const struct where *where)
{
    struct report *report = view->report;
    struct by_place by_place = {.work = work_places_of(&report->samples.all, &report->owners)};
    by_place.methods = sample_sums(&report->samples.all, false);
    row_table_init(&by_place.rows, sizeof(struct place), 1, PLACES_MAX);
    by_place.lasting = lasting_exits_of(report);
    by_place.period_ns = report->samples.all.period_ns;
    by_place.sampled_ns = sample_threads_ns(&report->samples.threads, false) +
                          sample_threads_ns(&report->samples.threads, true);
    gather_exits(view, &by_place);
    if (report->exits_only) return by_place;
    gather_interpreted(view, &by_place);
    gather_garbage(view, &by_place, where->cpu_part);
    for (uint32_t i = 0; i < by_place.work.rows.count; i++) {
        const struct work_place *work = row_table_at(&by_place.work.rows, i);
        row_table_get(&by_place.rows, &work->method);
    }
    return by_place;
}

static void
free_places(struct by_place *by_place)
{
    work_places_free(&by_place->work);
    row_table_free(&by_place->methods);
    exit_rows_free(&by_place->exits);
    allocation_rows_free(&by_place->allocations);
    row_table_free(&by_place->lasting);
    row_table_free(&by_place->rows);
    free(by_place->iseq_ns);
}

/* The part of the collections that a place's allocations cause. */
static struct uncertain
garbage_of(const struct by_place *by_place, const struct place *place)
{
    const struct allocation_row *sum = &by_place->allocated;
    if (place->bytes == 0) return (struct uncertain){0};
    double share = (double)place->bytes / (double)sum->all.bytes;
    const struct allocation_count part = {.bytes = place->bytes, .variance = place->bytes_variance};
    double margin = allocation_margin(&part, &sum->all);
    return (struct uncertain){share * by_place->gc_ns, margin * by_place->gc_ns};
}

/* --- the subjects ------------------------------------------------------------------------------------ */

static struct fxt_string
exit_help(const struct view *view, struct row_table *lasting, const struct exit_row *row)
{
    const struct pool *pool = view->report->pool;
    const char *reason = pool_string(pool, row->reason).ptr;
    const struct lasting_exits *place = lasting_exits_find(lasting, row->reason);
    unsigned name;
    /* Exits that cost so much do not end by themselves, unless the JIT compiles again because of them. */
    if (row->category == STRING_SIDE_EXIT || (place != NULL && place->lasts)) {
        int64_t index;
        struct fxt_string insn = insn_without_index(pool_string(pool, row->insn), &index);
        const struct lasting_advice *advice = advice_lasting(reason, insn);
        if (advice != NULL) return text_of(advice->help);
    }
    const struct advice *advice = advice_find(ADVICE_EXIT, reason, &name);
    if (advice == NULL || advice->help == NULL) return text_of("");
    return document_text(view->document, "%s%s", advice_untested_p(advice) ? "(untested) " : "", advice->help);
}

/* "GuardType(Fixnum), opt_plus: 63 times, each 12.5 us" */
static struct fxt_string
exit_cause(const struct view *view, const struct exit_row *row)
{
    char count[NUMBER_TEXT], each[NUMBER_TEXT];
    bool timed = row->lost_ns > 0 && row->count > 0;
    return document_text(view->document, "%s, %s: %s time%s%s%s", view_name(view, row->reason).ptr,
                         view_name(view, row->insn).ptr, with_commas(count, row->count), row->count == 1 ? "" : "s",
                         timed ? ", each " : "", timed ? duration_text(each, row->lost_ns / row->count) : "");
}

static void
describe_exits(const struct view *view, struct by_place *by_place, const struct exit_row *row, uint64_t elsewhere,
               struct finding *finding)
{
    char number[NUMBER_TEXT];
    finding->what = text_of("exits at");
    finding->place = view_name(view, row->location);
    finding->cause = exit_cause(view, row);
    if (elsewhere > 0)
        finding->cause = document_text(view->document, "%s; %s more elsewhere", finding->cause.ptr,
                                       with_commas(number, elsewhere));
    finding->helps = exit_help(view, &by_place->lasting, row);
    finding->evidence = method_option(view, "--exits", finding->place);
}

/* The state that such an ISEQ is in. */
static enum execution_state
state_of(const struct execution_iseq *iseq)
{
    if (iseq->why == STRING_CANNOT_BE_COMPILED) return EXECUTION_UNCOMPILABLE;
    return iseq->why == STRING_PROFILED_AGAIN ? EXECUTION_REPROFILED : EXECUTION_UNCOMPILED;
}

static const char *
interpreted_help(const struct execution_iseq *iseq, struct fxt_string label, bool compiled)
{
    if (compiled && state_of(iseq) == EXECUTION_UNCOMPILABLE)
        return "Its code was thrown away: a TracePoint does that, or too many invalidations.";
    if (state_of(iseq) == EXECUTION_UNCOMPILABLE)
        return "Write without what the compiler refuses; `report --compiles` names it.";
    if (state_of(iseq) == EXECUTION_REPROFILED) return "Find what invalidated its code: `vm-trace history`.";
    if (fxt_string_starts(label_parts(label).path, "<internal:"))
        return "Part of Ruby, called too seldom to be compiled: a lower call threshold makes it so.";
    if (in_few_calls_p(iseq))
        return "A JIT compiles what is called often: if the loop does much, put its body into a method.";
    return "It was called too seldom to be compiled: run longer, or lower the call threshold.";
}

static void
describe_interpreted(const struct view *view, const struct execution_iseq *iseq, uint64_t elsewhere,
                     struct finding *finding)
{
    struct report *report = view->report;
    char text[CODE_TEXT], calls[NUMBER_TEXT];
    code_text(text, &report->history, report->pool, iseq, report->start_ns);
    finding->what = text_of("interpreted:");
    finding->place = view_name(view, iseq->iseq);
    finding->cause = document_text(view->document, "%s, %s call%s", *text ? text : view_name(view, iseq->why).ptr,
                                   with_commas(calls, iseq->calls), iseq->calls == 1 ? "" : "s");
    if (elsewhere > 0)
        finding->cause = document_text(view->document, "%s; and %s more method%s", finding->cause.ptr,
                                       with_commas(calls, elsewhere), elsewhere == 1 ? "" : "s");
    finding->helps = text_of(interpreted_help(iseq, finding->place, strncmp(text, "compiled", 8) == 0));
    finding->evidence = method_option(view, "--compiles", finding->place);
}

static void
describe_garbage(const struct view *view, const struct by_place *by_place, const struct place *place,
                 const struct work_place *work, struct finding *finding)
{
    const struct allocation_row *row = row_table_at(&by_place->allocations, place->allocations - 1);
    char number[NUMBER_TEXT], bytes[NUMBER_TEXT], time[NUMBER_TEXT];
    struct fxt_string inner = label_parts(view_name(view, row->frame)).method;
    bool of_line = work != NULL && work->line != STRING_NONE;
    bool elsewhere = of_line && label_without_line(view->report->pool, row->frame) != work->method;
    finding->what = text_of("garbage of");
    finding->place = view_name(view, elsewhere ? work->line : row->frame);
    finding->cause = document_text(view->document, "%s%.*s%s%.0f %% of the bytes that %s collections in %s freed (%s)",
                                   elsewhere ? "Mostly " : "", elsewhere ? (int)inner.len : 0, inner.ptr,
                                   elsewhere ? ": " : "",
                                   100 * (double)place->bytes / (double)by_place->allocated.all.bytes,
                                   with_commas(number, by_place->collections),
                                   duration_text(time, (uint64_t)by_place->gc_ns), bytes_text(bytes, place->bytes));
    finding->helps = text_of("Allocate less there: reuse objects, change them in place, avoid copies.");
    finding->evidence = text_of("--gc");
}

/* What helps where nothing but a method's own time is known. <main>, files and class bodies run once. */
static struct fxt_string
method_help(struct fxt_string label)
{
    bool once = fxt_string_starts(label_parts(label).method, "<");
    return text_of(once ? "It runs once: do less in it." : "Call it less often, or do less in it.");
}

/* "84 % of it in String#gsub" */
static struct fxt_string
work_cause(const struct view *view, const struct work_places *places, const struct work_place *work, uint64_t ran_ns)
{
    double percent = 100 / (double)ran_ns;
    if (work->innermost == work->method)
        return document_text(view->document, "%.0f %% of it in compiled code",
                             percent * (double)work->ns[TIME_SAMPLE_COMPILED]);
    struct fxt_string inner = label_parts(view_name(view, work->innermost)).method;
    if (work_method_of(places, work->innermost) == work->method) inner = text_of("a block of its own");
    return document_text(view->document, "%.0f %% of it in %.*s", percent * (double)work->innermost_ns, (int)inner.len,
                         inner.ptr);
}

/* The method that calls it for at least half of its time; empty if there is none, if it runs once (<main>), or if its
 * frame was left out. */
static struct fxt_string
main_caller(const struct view *view, const struct work_place *work, uint64_t ran_ns)
{
    if (2 * work->caller_ns < ran_ns) return text_of("");
    struct fxt_string caller = label_parts(view_name(view, work->caller)).method;
    bool named = !fxt_string_starts(caller, "<") && !fxt_string_starts(caller, "(");
    return named ? document_text(view->document, "%.*s", (int)caller.len, caller.ptr) : text_of("");
}

static void
describe_work(const struct view *view, const struct work_places *places, const struct work_place *work,
              double garbage_ns, struct finding *finding)
{
    enum { MUCH_GARBAGE = 20 }; /* a twentieth of the time */
    uint64_t ran_ns = work_place_ran_ns(work);
    char time[NUMBER_TEXT];
    finding->what = text_of("time in");
    finding->place = view_name(view, work->line);
    finding->helps = method_help(finding->place);
    if (2 * work->loading_ns > ran_ns) {
        finding->what = text_of("loading code in");
        finding->cause = document_text(view->document, "%.0f %% of its time is in require and load",
                                       100 * (double)work->loading_ns / (double)ran_ns);
        finding->helps = text_of("Load less, or when it is needed; Bootsnap keeps what Ruby parsed and compiled.");
    }
    else {
        finding->cause = work_cause(view, places, work, ran_ns);
        finding->caller = main_caller(view, work, ran_ns);
        finding->line_tells = true;
    }
    if (garbage_ns * MUCH_GARBAGE > (double)ran_ns)
        finding->cause = document_text(view->document, "%s; its garbage: %s", finding->cause.ptr,
                                       duration_text(time, (uint64_t)garbage_ns));
    finding->evidence = text_of("--samples");
}

/* What is known of a place, by cause, and the cause that gains most, if it is worth a row. */
struct place_gain {
    struct gain of[FINDING_SUBJECTS], sum;
    enum finding_subject subject; /* FINDING_METHOD: none is */
    double known;
};

static struct place_gain
place_gain(const struct by_place *by_place, const struct place *place, double least_ns)
{
    static const enum finding_subject subjects[] = {FINDING_EXITS, FINDING_INTERPRETED, FINDING_GC};
    struct place_gain gain = {.subject = FINDING_METHOD, .known = least_ns};
    gain.of[FINDING_EXITS] = gain_of(FINDING_EXITS, (struct uncertain){(double)place->lost_ns, 0});
    gain.of[FINDING_INTERPRETED] = gain_of(FINDING_INTERPRETED, sampled(by_place, place->interpreted_ns));
    gain.of[FINDING_GC] = gain_of(FINDING_GC, garbage_of(by_place, place));
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        const struct gain *cause = &gain.of[subjects[i]];
        gain.sum.least += cause->least > 0 ? cause->least : 0;
        gain.sum.ns += cause->ns;
        gain.sum.most += cause->most;
        double known = cause->ns > cause->least ? cause->ns : cause->least;
        if (known > 0 && known >= gain.known) gain.known = known, gain.subject = subjects[i];
    }
    /* What a JIT would make of a loop that it never saw is not known. */
    gain.sum.most += (double)place->in_few_calls_ns;
    return gain;
}

/* The time in which a method was on the stack of a thread that ran. */
static uint64_t
method_ran_ns(struct by_place *by_place, uint32_t method)
{
    const struct sample_row *row = row_table_find(&by_place->methods, &method);
    return row != NULL ? row->total_ns[0] : 0;
}

/* What one change ends in a place, which is an application's method with all that it calls in libraries: what has the
 * reason of the row with most of it, and what is in the method of that row. */
struct change {
    struct place place; /* with the rows of the whole place, but only these times */
    uint64_t elsewhere; /* exits, or ISEQs, that other rows have for the same reason */
    uint64_t ran_ns;    /* sampled time of the method with all that it called; UINT64_MAX: it is that of the place */
};

static struct change
change_of(const struct view *view, struct by_place *by_place, const struct place *place, enum finding_subject subject)
{
    const struct row_table *iseqs = &view->report->execution.iseqs;
    bool exits = subject == FINDING_EXITS;
    const struct exit_row *exit = exits ? row_table_at(&by_place->exits, place->exits - 1) : NULL;
    const struct execution_iseq *iseq = exits ? NULL : row_table_at(iseqs, place->iseq - 1);
    uint32_t label = exits ? exit->location : iseq->iseq, method = work_method_of(&by_place->work, label);
    struct change change = {.place = *place, .ran_ns = UINT64_MAX};
    change.place.lost_ns = change.place.interpreted_ns = 0;
    if (method != place->method) {
        uint64_t method_ns = method_ran_ns(by_place, method);
        uint64_t block_ns = method_ran_ns(by_place, label_without_line(view->report->pool, label));
        change.ran_ns = method_ns > block_ns ? method_ns : block_ns;
        change.place.bytes = change.place.in_few_calls_ns = 0;
    }
    for (uint32_t i = 0; i < by_place->exits.count; i++) {
        const struct exit_row *row = row_table_at(&by_place->exits, i);
        if (row->lost_ns == 0 || work_place_of(&by_place->work, row->location) != place->method) continue;
        bool alike = exits && row->reason == exit->reason;
        if (!alike && work_method_of(&by_place->work, row->location) != method) continue;
        change.place.lost_ns += row_lost_ns(by_place, row);
        if (alike && row != exit) change.elsewhere += row->count;
    }
    for (uint32_t i = 0; i < iseqs->count; i++) {
        const struct execution_iseq *row = row_table_at(iseqs, i);
        uint64_t ns = by_place->iseq_ns != NULL ? by_place->iseq_ns[i] : 0;
        if (ns == 0 || in_few_calls_p(row) || work_place_of(&by_place->work, row->iseq) != place->method) continue;
        bool alike = !exits && row->why == iseq->why;
        if (!alike && work_method_of(&by_place->work, row->iseq) != method) continue;
        change.place.interpreted_ns += ns;
        if (alike && row != iseq) change.elsewhere++;
    }
    return change;
}

/* The most that a change can save: what a method did, with what it called, and its garbage. */
static double
most_of_work(const struct by_place *by_place, uint64_t ran_ns, const struct place_gain *gain)
{
    return gain_of(FINDING_METHOD, sampled(by_place, ran_ns)).most + gain->of[FINDING_GC].most;
}

/* One row for what is known of a place; its subject is the cause that gains most. If that is in a library, the time of
 * the place is a second one. */
static void
add_place(const struct view *view, struct findings *findings, struct by_place *by_place, const struct place *place)
{
    enum { MUCH_WORK = 3 }; /* times the garbage: then that is the lesser cause */
    const struct work_place *work = work_places_find(&by_place->work, place->method);
    const struct uncertain garbage = garbage_of(by_place, place);
    double least_ns = worth * (double)with_cpu_ns(&findings->where);
    const struct place_gain whole = place_gain(by_place, place, least_ns);
    struct place_gain gain = whole;
    struct finding finding = {.subject = whole.subject};
    struct change change = {.ran_ns = UINT64_MAX};
    if (finding.subject == FINDING_EXITS || finding.subject == FINDING_INTERPRETED) {
        change = change_of(view, by_place, place, finding.subject);
        gain = place_gain(by_place, &change.place, least_ns);
        if (gain.subject != finding.subject) {
            gain = whole;
            finding.subject = FINDING_METHOD;
            change = (struct change){.ran_ns = UINT64_MAX};
        }
    }
    bool most_of_it = work == NULL || 2 * place->in_few_calls_ns >= work_place_ran_ns(work);
    bool unseen = finding.subject == FINDING_METHOD && place->in_few_calls_ns > 0 &&
                  (double)place->in_few_calls_ns >= gain.known && most_of_it;
    if (unseen) finding.subject = FINDING_INTERPRETED;
    if (work != NULL) {
        /* The samples in the garbage collector are those of the collections that happened to begin there. */
        uint64_t ran_ns = work_place_ran_ns(work) - (by_place->places_garbage ? work->ns[TIME_SAMPLE_GC] : 0);
        double most = most_of_work(by_place, change.ran_ns < ran_ns ? change.ran_ns : ran_ns, &gain);
        if (most > gain.sum.most) gain.sum.most = most;
        if (finding.subject == FINDING_GC && (double)ran_ns > MUCH_WORK * garbage.ns) finding.subject = FINDING_METHOD;
        if (change.ran_ns < UINT64_MAX && ran_ns > 0) {
            struct finding second = {.subject = FINDING_METHOD};
            describe_work(view, &by_place->work, work, garbage.ns, &second);
            add(findings, &second, (struct gain){0, 0, most_of_work(by_place, ran_ns, &whole)});
        }
    }
    switch (finding.subject) {
      case FINDING_EXITS: {
        const struct exit_row *row = row_table_at(&by_place->exits, place->exits - 1);
        describe_exits(view, by_place, row, change.elsewhere, &finding);
        break;
      }
      case FINDING_INTERPRETED: {
        const struct execution_iseq *row = row_table_at(&view->report->execution.iseqs, place->iseq - 1);
        describe_interpreted(view, row, change.elsewhere, &finding);
        break;
      }
      case FINDING_GC: describe_garbage(view, by_place, place, work, &finding); break;
      default:
        if (work == NULL || work_place_ran_ns(work) == 0) return;
        describe_work(view, &by_place->work, work, garbage.ns, &finding);
    }
    if (unseen || gains[finding.subject].gain <= 0) gain.sum.ns = 0; /* what is known of it is the least */
    add(findings, &finding, gain.sum);
}

/* Collections, where it is not known what allocates. */
static void
add_collections(const struct view *view, struct findings *findings, const struct by_place *by_place)
{
    if (by_place->places_garbage || by_place->gc_ns == 0) return;
    char number[NUMBER_TEXT], time[NUMBER_TEXT];
    struct finding finding = {
        .subject = FINDING_GC,
        .what = text_of("garbage collections"),
        .place = text_of(""),
        .cause = document_text(view->document, "%s collection%s took %s", with_commas(number, by_place->collections),
                               by_place->collections == 1 ? "" : "s",
                               duration_text(time, (uint64_t)by_place->gc_ns)),
        .helps = text_of(by_place->allocations.count == 0
                             ? "Record what allocates: --vm-trace=profile."
                             : "Too few allocations were sampled to say of what: allocations:16K."),
        .evidence = text_of("--gc"),
    };
    add(findings, &finding, gain_of(FINDING_GC, (struct uncertain){by_place->gc_ns, 0}));
}

/* Nothing has a time: exits by their number. */
static void
add_counts(const struct view *view, struct findings *findings, struct by_place *by_place)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < by_place->exits.count; i++)
        sum += ((const struct exit_row *)row_table_at(&by_place->exits, i))->count;
    for (uint32_t i = 0; i < by_place->exits.count && i < FINDINGS_MOST; i++) { /* most first */
        const struct exit_row *row = row_table_at(&by_place->exits, i);
        if ((double)row->count < worth * (double)sum) continue;
        struct finding finding = {.subject = FINDING_EXITS, .count = row->count, .of_count = sum};
        describe_exits(view, by_place, row, 0, &finding);
        finding.what = text_of("at");
        insert(findings, &finding);
    }
}

static void
add_compiling(const struct view *view, struct findings *findings, struct by_place *by_place)
{
    const struct compilations *compilations = &view->report->compilations;
    const struct compiled_iseq *most = NULL;
    for (uint32_t i = 0; i < compilations->iseqs.count; i++) {
        const struct compiled_iseq *iseq = row_table_at(&compilations->iseqs, i);
        if (most == NULL || iseq->total_ns > most->total_ns) most = iseq;
    }
    uint64_t all_ns = compilations->whole.total_ns;
    double share = most != NULL && all_ns > 0 ? (double)most->total_ns / (double)all_ns : 0;
    char count[NUMBER_TEXT], iseqs[NUMBER_TEXT];
    struct finding finding = {
        .subject = FINDING_COMPILING,
        .what = most != NULL ? document_text(view->document, "compiling, %.0f %% of it", 100 * share)
                             : text_of("compiling"),
        .place = most != NULL ? view_name(view, most->iseq) : text_of(""),
        .cause = document_text(view->document, "%s compilations of %s methods and blocks",
                               with_commas(count, compilations->whole.count),
                               with_commas(iseqs, compilations->iseqs.count)),
        .helps = text_of("It ends when the program is warm; code that is made anew is compiled anew."),
        .evidence = text_of("--compiles"),
    };
    struct gain gain = {.most = (double)findings->where.ns[EXECUTION_COMPILING]};
    if (gain.most < worth * (double)findings->where.whole_ns) return;
    /* Code that is always new is cold, too: all of the method's time can depend on it. */
    const struct work_place *work =
        share >= 0.5 ? work_places_find(&by_place->work, work_place_of(&by_place->work, most->iseq)) : NULL;
    if (work != NULL) gain.most += (double)work_place_ran_ns(work) - (double)work->ns[TIME_SAMPLE_COMPILING];
    add(findings, &finding, gain);
}

/* Where a thread's time slices ended mostly: a sample of what it does with the GVL. */
static uint32_t
preempted_at(const struct report *report, uint32_t thread)
{
    uint64_t most = 0;
    uint32_t frame = STRING_NONE;
    for (uint32_t i = 0; i < report->preempted.count; i++) {
        const struct report_preempted *row = row_table_at(&report->preempted, i);
        if (row->thread == thread && row->count > most) most = row->count, frame = row->frame;
    }
    return frame;
}

static void
add_gvl(const struct view *view, struct findings *findings)
{
    struct report *report = view->report;
    const struct thread_times *most = NULL;
    uint64_t others_ns = 0, lives_ns = 0;
    uint32_t threads = 0;
    for (uint32_t i = 0; i < report->states.threads.count; i++) {
        const struct thread_times *times = row_table_at(&report->states.threads, i);
        if (!report_thread_wanted(report, times->row)) continue;
        others_ns += times->others_ns;
        if (times->ns[THREAD_WAITING] > 0) lives_ns += thread_life_ns(times), threads++;
        if (most == NULL || times->others_ns > most->others_ns) most = times;
    }
    if (most == NULL || threads < 2) return;
    bool one = most->others_ns >= others_ns / 3; /* else they all hold it in turns */
    char time[NUMBER_TEXT], count[NUMBER_TEXT];
    uint32_t frame = preempted_at(report, most->row);
    struct finding finding = {
        .subject = FINDING_GVL,
        .whole_ns = lives_ns,
        .what = text_of(one ? "waits for the GVL, held by" : "waits for the GVL"),
        .place = one ? view_name(view, report_thread(report, most->row)->name) : text_of(""),
        .cause = document_text(view->document, "threads waited %s%s%s",
                               duration_text(time, one ? most->others_ns : others_ns),
                               frame != STRING_NONE ? " while it ran " : "",
                               frame != STRING_NONE ? view_name(view, frame).ptr : ""),
        .helps = text_of(one ? "Cut its work into short pieces, or move it into another process."
                             : "More processes with fewer threads each: one GVL serves them all."),
        .evidence = text_of("--threads"),
    };
    if (!one) finding.cause = document_text(view->document, "%s threads waited %s of %s for each other",
                                            with_commas(count, threads), time, duration_text(count, lives_ns));
    double ns = (double)(one ? most->others_ns : others_ns);
    add(findings, &finding, gain_of(FINDING_GVL, (struct uncertain){ns, 0}));
}

/* Fibers that could run, and waited for others of their thread. */
static void
add_fibers(const struct view *view, struct findings *findings)
{
    const struct fibers *fibers = &view->report->fibers;
    const struct fiber_run *most = NULL;
    uint64_t ready_ns = 0, lives_ns = 0, runs_ns = 0;
    for (uint32_t i = 0; i < fibers->tracks.count; i++) {
        const struct fiber_track *track = row_table_at(&fibers->tracks, i);
        if (!fiber_tid_p(report_thread(view->report, track->thread)->tid)) continue;
        ready_ns += track->ready_ns;
        lives_ns += track->waited_ns + track->ran_ns;
    }
    for (uint32_t i = 0; i < fibers->runs.count; i++) {
        const struct fiber_run *run = row_table_at(&fibers->runs, i);
        runs_ns += run->durations.total_ns;
        bool placed = !fxt_string_is(view_name(view, run->frame), FIBER_ENDED);
        if (placed && (most == NULL || run->durations.total_ns > most->durations.total_ns)) most = run;
    }
    if (most != NULL && most->durations.total_ns < runs_ns / 3) most = NULL; /* they all keep it in turns */
    char ready[NUMBER_TEXT], longest[NUMBER_TEXT];
    struct finding finding = {
        .subject = FINDING_FIBERS,
        .whole_ns = lives_ns,
        .what = text_of(most != NULL ? "fibers wait for" : "fibers wait for each other"),
        .place = most != NULL ? view_name(view, most->frame) : text_of(""),
        .cause = document_text(view->document, "fibers that were ready waited %s for their thread",
                               duration_text(ready, ready_ns)),
        .helps = text_of("Cut its work into short pieces, or move it to another thread."),
        .evidence = text_of("--fibers"),
    };
    if (most != NULL)
        finding.cause = document_text(view->document, "%s; the longest run took %s", finding.cause.ptr,
                                      duration_text(longest, most->durations.longest_ns));
    if (lives_ns > 0) add(findings, &finding, gain_of(FINDING_FIBERS, (struct uncertain){(double)ready_ns, 0}));
}

/* Waits for work that others do, or for more of it to come: their length is not the program's to change here. */
static bool
idle_p(struct fxt_string name)
{
    static const char *const idle[] = {
        "Thread#join", "Thread#value", "Thread::Queue#pop", "Queue#pop", "Thread::SizedQueue#", "SizedQueue#",
        "Thread::ConditionVariable#", "ConditionVariable#", "IO.select", "Kernel#select", "rb_thread_fd_select",
        "BasicSocket#__accept", "TCPServer#accept", "Socket#__accept", "Ractor",
    };
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
        if (fxt_string_starts(name, idle[i])) return true;
    }
    return false;
}

struct wait_sum {
    uint32_t name; /* the key */
    uint64_t ns, count;
};

/* The line with most of what was sampled in the method `name`. */
static uint32_t
waited_at(const struct view *view, const struct row_table *lines, struct fxt_string name)
{
    uint64_t most = 0;
    uint32_t label = STRING_NONE;
    for (uint32_t i = 0; i < lines->count; i++) {
        const struct sample_row *row = row_table_at(lines, i);
        struct label_parts parts = label_parts(view_name(view, row->text));
        if (!fxt_string_equal(parts.method, name)) continue;
        if (row->own.ns[TIME_SAMPLE_BLOCKED] > most) most = row->own.ns[TIME_SAMPLE_BLOCKED], label = row->text;
    }
    return label;
}

static void
add_blocked(const struct view *view, struct findings *findings, const struct row_table *lines)
{
    enum { NAMES_MOST = 64 * 1024 };
    struct report *report = view->report;
    bool of_main = findings->where.of_main;
    struct row_table sums;
    row_table_init(&sums, sizeof(struct wait_sum), 1, NAMES_MOST);
    uint64_t lives_ns = 0;
    for (uint32_t i = 0; i < report->states.threads.count; i++)
        lives_ns += thread_life_ns(row_table_at(&report->states.threads, i));
    for (uint32_t i = 0; i < report->blocked.count; i++) {
        const struct report_blocked *row = row_table_at(&report->blocked, i);
        struct fxt_string name = view_name(view, row->name);
        bool lock = fxt_string_starts(name, "Mutex#") || fxt_string_starts(name, "Thread::Mutex#") ||
                    fxt_string_starts(name, "Monitor#");
        if (idle_p(name) || (!lock && (!of_main || !main_thread_p(report, row->thread)))) continue;
        struct wait_sum *sum = row_table_get(&sums, &row->name);
        if (sum != NULL) sum->ns += row->durations.total_ns, sum->count += row->durations.count;
    }
    for (uint32_t i = 0; i < sums.count; i++) {
        const struct wait_sum *sum = row_table_at(&sums, i);
        struct fxt_string name = view_name(view, sum->name);
        uint32_t line = waited_at(view, lines, name);
        char count[NUMBER_TEXT], each[NUMBER_TEXT];
        struct finding finding = {
            .subject = FINDING_BLOCKED,
            .whole_ns = of_main ? 0 : lives_ns,
            .what = text_of("blocked in"),
            .place = line != STRING_NONE ? view_name(view, line) : name,
            .cause = document_text(view->document, "%s time%s, %s each", with_commas(count, sum->count),
                                   sum->count == 1 ? "" : "s",
                                   duration_text(each, sum->count > 0 ? sum->ns / sum->count : 0)),
            .helps = text_of("Do less of it, do it elsewhere, or let another thread run meanwhile."),
            .evidence = text_of("--threads"),
        };
        add(findings, &finding, gain_of(FINDING_BLOCKED, (struct uncertain){(double)sum->ns, 0}));
    }
    row_table_free(&sums);
}

static void
add_called_methods(const struct view *view, struct findings *findings)
{
    struct row_table rows = calls_group(&view->report->calls, false);
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct call_row *row = row_table_at(&rows, i);
        uint64_t ns = call_own_ns(row->totals.own_ns);
        char calls[NUMBER_TEXT], each[NUMBER_TEXT];
        if (row->totals.calls == 0 || idle_p(view_name(view, row->name))) continue;
        struct finding finding = {
            .subject = FINDING_METHOD,
            .what = text_of("own time of"),
            .place = view_name(view, row->name),
            .cause = document_text(view->document, "%s call%s, each %s", with_commas(calls, row->totals.calls),
                                   row->totals.calls == 1 ? "" : "s", duration_text(each, ns / row->totals.calls)),
            .helps = method_help(view_name(view, row->name)),
            .evidence = text_of("--calls"),
        };
        add(findings, &finding, gain_of(FINDING_METHOD, (struct uncertain){(double)ns, 0}));
    }
    row_table_free(&rows);
}

struct findings
findings_of(const struct view *view)
{
    struct findings findings = {.where = where_of(view), .requests = requests_of(view->report)};
    struct report *report = view->report;
    struct by_place by_place = gather_places(view, &findings.where);
    for (uint32_t i = 0; i < by_place.rows.count; i++)
        add_place(view, &findings, &by_place, row_table_at(&by_place.rows, i));
    if (!report->exits_only) {
        struct row_table lines = sample_sums(&report->samples.all, true);
        add_collections(view, &findings, &by_place);
        add_compiling(view, &findings, &by_place);
        add_gvl(view, &findings);
        add_fibers(view, &findings);
        add_blocked(view, &findings, &lines);
        if (by_place.work.rows.count == 0) add_called_methods(view, &findings);
        row_table_free(&lines);
    }
    findings.counts = findings.count == 0 && !report_timed(report);
    if (findings.counts) add_counts(view, &findings, &by_place);
    free_places(&by_place);
    return findings;
}
