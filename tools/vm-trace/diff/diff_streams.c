/* diff_streams.c - see diff_streams.h */
#include <stdlib.h>
#include <string.h>

#include "topics/kernel/cpu_tracks.h"
#include "diff/diff_streams.h"
#include "analysis/event_args.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"

const char *const diff_sum_names[DIFF_SUMS] = {
    [DIFF_LOST] = "lost",
    [DIFF_WAITING] = "waiting", [DIFF_BLOCKED_TIME] = "blocked",    [DIFF_RUNNING] = "running",
    [DIFF_OWN_TIME] = "calls",  [DIFF_GC_TIME] = "gc",              [DIFF_COLLECTIONS] = "collections",
    [DIFF_ALLOCATED] = "allocations",
};

const char *
diff_sum_unit(enum diff_sum sum)
{
    return sum == DIFF_ALLOCATED ? "bytes" : sum == DIFF_COLLECTIONS ? "count" : "ns";
}

/* What a stream has of each run is added to. */
struct diff_adder {
    struct diff *diff;
    struct diff_streams *streams;
    enum diff_stream stream;
    struct diff_table all[DIFF_STREAMS], sums[DIFF_SUMS]; /* tables with one row each, whose key is 0 */
};

static const uint32_t no_names[4];

static void
add(struct diff_adder *adder, const uint32_t names[4], uint32_t run, double sum, double count, double variance)
{
    struct diff_stream_table *table = &adder->streams->tables[adder->stream];
    diff_table_add(adder->diff, &table->sums, names, run, sum, variance);
    if (diff_stream_kinds[adder->stream].counts[0] != NULL)
        diff_table_add(adder->diff, &table->counts, names, run, count, 0);
    diff_table_add(adder->diff, &adder->all[adder->stream], no_names, run, sum, variance);
}

static void
add_to_sum(struct diff_adder *adder, enum diff_sum sum, uint32_t run, double amount, double variance)
{
    diff_table_add(adder->diff, &adder->sums[sum], no_names, run, amount, variance);
}

static uint32_t
run_of(const struct report *report, uint32_t process)
{
    return report_process(report, process)->file;
}

/* --- what each run has ------------------------------------------------------------------------------ */

static void
add_execution(struct diff_adder *adder)
{
    struct report *report = adder->diff->report;
    for (uint32_t i = 0; i < report->execution.threads.count; i++) {
        const struct execution_thread *thread = row_table_at(&report->execution.threads, i);
        uint32_t run = run_of(report, report_thread(report, thread->thread)->process);
        for (unsigned state = 0; state < EXECUTION_UNSEEN; state++) {
            const char *meaning = execution_state_names[state].meaning;
            const uint32_t names[4] = {pool_intern(report->pool, meaning, strlen(meaning))};
            if (thread->ns[state] > 0)
                add(adder, names, run, (double)thread->ns[state], 0, 0);
        }
    }
}

static void
add_states(struct diff_adder *adder)
{
    static const struct {
        const char *name;
        enum thread_state state;
        enum diff_sum sum; /* DIFF_SUMS: none */
    } states[] = {{"waiting", THREAD_WAITING, DIFF_WAITING},
                  {"blocked", THREAD_BLOCKED, DIFF_BLOCKED_TIME},
                  {"in GC", THREAD_IN_GC, DIFF_SUMS},
                  {"running", THREAD_RUNNING, DIFF_RUNNING}};
    struct report *report = adder->diff->report;
    for (uint32_t i = 0; i < report->states.threads.count; i++) {
        const struct thread_times *times = row_table_at(&report->states.threads, i);
        const struct report_thread *thread = report_thread(report, times->row);
        uint32_t run = run_of(report, thread->process);
        for (unsigned s = 0; s < sizeof states / sizeof *states; s++) {
            double ns = (double)times->ns[states[s].state];
            uint32_t state = pool_intern(report->pool, states[s].name, strlen(states[s].name));
            const uint32_t names[4] = {thread->name, state};
            if (ns > 0) add(adder, names, run, ns, 0, 0);
            if (states[s].sum != DIFF_SUMS) add_to_sum(adder, states[s].sum, run, ns, 0);
        }
    }
}

static void
add_blocked(struct diff_adder *adder)
{
    struct report *report = adder->diff->report;
    for (uint32_t i = 0; i < report->blocked.count; i++) {
        const struct report_blocked *blocked = row_table_at(&report->blocked, i);
        const uint32_t names[4] = {blocked->name, blocked->class_name};
        add(adder, names, run_of(report, report_thread(report, blocked->thread)->process),
            (double)blocked->durations.total_ns, (double)blocked->durations.count, 0);
    }
}

static void
add_cpus(struct diff_adder *adder)
{
    struct report *report = adder->diff->report;
    for (uint32_t i = 0; i < report->kernel.cpus.threads.count; i++) {
        const struct cpu_thread *thread = row_table_at(&report->kernel.cpus.threads, i);
        const struct fxt_string track = pool_string(report->pool, report_thread(report, thread->track)->name);
        const struct fxt_string name = cpu_track_thread_name(track);
        const struct {
            const char *name;
            uint64_t ns;
        } states[] = {{"on a CPU", thread->cpu_ns},
                      {"preempted, waiting for a CPU", thread->preempted_ns},
                      {"woken, waiting for a CPU", thread->woken_ns}};
        for (unsigned s = 0; s < sizeof states / sizeof *states; s++) {
            const uint32_t names[4] = {pool_intern(report->pool, name.ptr, name.len),
                                       pool_intern(report->pool, states[s].name, strlen(states[s].name))};
            if (states[s].ns > 0)
                add(adder, names, run_of(report, thread->process), (double)states[s].ns, 0,
                    0);
        }
    }
}

static void
add_syscalls(struct diff_adder *adder)
{
    struct report *report = adder->diff->report;
    for (uint32_t i = 0; i < report->kernel.syscalls.sums.count; i++) {
        const struct syscall_sum *sum = row_table_at(&report->kernel.syscalls.sums, i);
        const uint32_t names[4] = {sum->name};
        add(adder, names, run_of(report, report_thread(report, sum->thread)->process),
            (double)sum->totals.total_ns, (double)sum->totals.calls, 0);
    }
}

static void
add_calls(struct diff_adder *adder)
{
    struct row_table rows = calls_group(&adder->diff->report->calls, true);
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct call_row *row = row_table_at(&rows, i);
        if (!glob_matches(&adder->diff->report->method_glob, adder->diff->report->pool, row->name)) continue;
        const uint32_t names[4] = {diff_method(adder->diff, row->name)};
        double ns = (double)call_own_ns(row->totals.own_ns);
        add(adder, names, row->file, ns, (double)row->totals.calls, 0);
        add_to_sum(adder, DIFF_OWN_TIME, row->file, ns, 0);
    }
    row_table_free(&rows);
}

/* Each sample represents about a period, and so adds the square of one to the variance. A wait has the
 * variance of one sample: how long it took is known but for its ends. */
static void
add_samples(struct diff_adder *adder)
{
    struct report *report = adder->diff->report;
    double period_ns = (double)report->samples.all.period_ns;
    for (uint32_t run = 0; run < adder->diff->run_count; run++)
        adder->streams->unseen_samples[run] = period_ns * period_ns;
    for (uint32_t i = 0; i < report->samples.places.count; i++) {
        const struct sample_place *place = row_table_at(&report->samples.places, i);
        const char *state = time_sample_titles[place->state];
        const uint32_t names[4] = {diff_method(adder->diff, place->label),
                                   pool_intern(report->pool, state, strlen(state))};
        double ns = (double)place->ns;
        double variance = time_sample_waits((enum time_sample_state)place->state) ? period_ns * period_ns
                                                                                  : period_ns * ns;
        add(adder, names, place->file, ns, 0, variance);
    }
}

static void
add_gc(struct diff_adder *adder)
{
    struct report *report = adder->diff->report;
    for (uint32_t i = 0; i < report->gc.process_reasons.count; i++) {
        const struct gc_process_reason *reason = row_table_at(&report->gc.process_reasons, i);
        const uint32_t names[4] = {reason->kind, reason->reason, reason->major_by};
        uint32_t run = run_of(report, reason->piece);
        double ns = (double)reason->total_ns;
        add(adder, names, run, ns, (double)reason->collections, 0);
        add_to_sum(adder, DIFF_GC_TIME, run, ns, 0);
        add_to_sum(adder, DIFF_COLLECTIONS, run, (double)reason->collections, 0);
    }
}

/* The variance that one sample more would add: w (w - s), of the mean weight w and size s. */
static void
find_unseen(const struct diff *diff, double *unseen)
{
    struct allocation_row sum;
    struct row_table files = allocations_group(&diff->report->allocations, ALLOCATIONS_BY_FILE, &sum);
    for (uint32_t i = 0; i < files.count; i++) {
        const struct allocation_row *file = row_table_at(&files, i);
        double samples = (double)file->all.samples;
        double weight = (double)file->all.bytes / samples, size = (double)file->slot_bytes / samples;
        unseen[file->file] = weight > size ? weight * (weight - size) : 0;
    }
    allocation_rows_free(&files);
}

static void
add_classes(struct diff_adder *adder)
{
    struct allocation_row sum;
    struct row_table rows =
        allocations_group(&adder->diff->report->allocations, ALLOCATIONS_BY_FILE | ALLOCATIONS_BY_CLASS, &sum);
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct allocation_row *row = row_table_at(&rows, i);
        const uint32_t names[4] = {row->class_name};
        double bytes = (double)row->all.bytes;
        add(adder, names, row->file, bytes, 0, row->all.variance);
        add_to_sum(adder, DIFF_ALLOCATED, row->file, bytes, row->all.variance);
    }
    allocation_rows_free(&rows);
    find_unseen(adder->diff, adder->streams->unseen);
}

static void
add_alive(struct diff_adder *adder)
{
    const unsigned by = ALLOCATIONS_BY_FILE | ALLOCATIONS_BY_CLASS | ALLOCATIONS_BY_FRAME;
    struct allocation_row sum;
    struct row_table rows = allocations_group(&adder->diff->report->allocations, by, &sum);
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct allocation_row *row = row_table_at(&rows, i);
        const uint32_t names[4] = {row->frame, row->class_name};
        if (row->live.samples == 0) continue;
        add(adder, names, row->file, (double)row->live_bytes, 0, row->live.variance);
    }
    allocation_rows_free(&rows);
}

static void
add_counters(struct diff_adder *adder)
{
    struct report *report = adder->diff->report;
    for (uint32_t i = 0; i < report->counters.rows.count; i++) {
        const struct counter_row *row = row_table_at(&report->counters.rows, i);
        const uint32_t names[4] = {row->counter, diff_method(adder->diff, row->location)};
        add(adder, names, row->run, (double)row->hits, 0, 0);
    }
}

static void
add_fibers(struct diff_adder *adder)
{
    struct report *report = adder->diff->report;
    for (uint32_t i = 0; i < report->fibers.tracks.count; i++) {
        const struct fiber_track *track = row_table_at(&report->fibers.tracks, i);
        const struct report_thread *thread = report_thread(report, track->thread);
        const struct {
            const char *name;
            uint64_t ns;
        } states[] = {{"waiting for an event", track->waited_ns - track->ready_ns},
                      {"ready, waiting for the thread", track->ready_ns},
                      {"running", track->ran_ns}};
        for (unsigned s = 0; fiber_tid_p(thread->tid) && s < sizeof states / sizeof *states; s++) {
            const uint32_t names[4] = {pool_intern(report->pool, states[s].name, strlen(states[s].name))};
            if (states[s].ns > 0) add(adder, names, run_of(report, thread->process), (double)states[s].ns, 0, 0);
        }
    }
}

const struct diff_stream_kind diff_stream_kinds[DIFF_STREAMS] = {
    [DIFF_EXECUTION] = {"states", "Where the time went", {NULL, NULL}, {"state", NULL, NULL}, "states", false,
                        add_execution},
    [DIFF_STATES] = {"thread_states", "Threads by state", {NULL, NULL}, {"thread", "state", NULL}, "threads", false,
                     add_states},
    [DIFF_BLOCKED] = {"blocked", "Blocked in", {"n A", "n B"}, {"name", "class", NULL}, "threads", false, add_blocked},
    [DIFF_CPUS] = {"cpu", "Threads and CPUs", {NULL, NULL}, {"thread", "state", NULL}, "sched", false, add_cpus},
    [DIFF_SYSCALLS] = {"syscalls", "System calls", {"calls A", "calls B"}, {"syscall", NULL, NULL}, "syscalls", false,
                       add_syscalls},
    [DIFF_CALLS] = {"calls", "Own time by method", {"calls A", "calls B"}, {"method", NULL, NULL}, "calls", false,
                    add_calls},
    [DIFF_SAMPLES] = {"samples", "Sampled time by method and state", {NULL, NULL}, {"method", "state", NULL},
                      "samples", false, add_samples},
    [DIFF_GC] = {"gc", "Garbage collections", {"GCs A", "GCs B"}, {"kind", "reason", "major_by"}, "gc", false, add_gc},
    [DIFF_CLASSES] = {"allocations", "Allocated bytes by class", {NULL, NULL}, {"class", NULL, NULL}, "allocations",
                      true, add_classes},
    [DIFF_ALIVE] = {"alive", "Bytes alive at the end by method and class", {NULL, NULL}, {"method", "class", NULL},
                    "allocations", true, add_alive},
    [DIFF_COUNTERS] = {"counters", "Counters of ZJIT's statistics by method", {NULL, NULL}, {"counter", "method", NULL},
                       "counters", true, add_counters},
    [DIFF_FIBERS] = {"fibers", "Fibers by state", {NULL, NULL}, {"state", NULL, NULL}, "fibers", false, add_fibers},
};

/* --- which streams all runs have ---------------------------------------------------------------------- */

/* Marks the runs that have the stream by their settings, for it may have recorded nothing. */
static void
mark_set(const struct report *report, const char *stream, bool *has)
{
    for (uint32_t i = 0; i < report->setting_count; i++) {
        const struct report_setting *setting = &report->settings[i];
        if (setting->name == STRING_FLAGS && text_has_word(pool_string(report->pool, setting->value), stream))
            has[run_of(report, setting->process)] = true;
    }
}

static void
mark_recorded(const struct diff_table *table, bool *has)
{
    for (uint32_t i = 0; i < table->cells.count; i++) {
        const struct diff_cell *cell = row_table_at(&table->cells, i);
        if (cell->count > 0) has[cell->run] = true;
    }
}

static void
find_recorded(const struct diff *diff, struct diff_streams *streams)
{
    bool *has = xcalloc(diff->run_count + 1, sizeof *has);
    for (unsigned i = 0; i < DIFF_STREAMS; i++) {
        struct diff_stream_table *table = &streams->tables[i];
        memset(has, 0, diff->run_count * sizeof *has);
        mark_set(diff->report, diff_stream_kinds[i].stream, has);
        mark_recorded(&table->sums, has);
        if (i == DIFF_BLOCKED) mark_recorded(&streams->tables[DIFF_STATES].sums, has);
        for (uint32_t run = 0; run < diff->run_count; run++) table->lacks += !has[run];
        table->recorded = table->lacks == 0;
        if (table->lacks == diff->run_count) table->lacks = 0;
    }
    free(has);
}

/* --- all ------------------------------------------------------------------------------------------------ */

/* Compares a table of one row, and frees it. */
static struct diff_row
compare_all(const struct diff *diff, struct diff_table *table)
{
    struct diff_row all = {0};
    diff_table_compare(diff, table);
    if (table->rows.count > 0) all = *(struct diff_row *)table->rows.rows;
    diff_table_free(table);
    return all;
}

void
diff_streams_init(struct diff_streams *streams, struct diff *diff)
{
    *streams = (struct diff_streams){.unseen = xcalloc(diff->run_count, sizeof(double)),
                                     .unseen_samples = xcalloc(diff->run_count, sizeof(double))};
    struct diff_adder adder = {.diff = diff, .streams = streams};
    for (unsigned i = 0; i < DIFF_STREAMS; i++) {
        diff_table_init(&streams->tables[i].sums);
        diff_table_init(&streams->tables[i].counts);
        diff_table_init(&adder.all[i]);
    }
    for (unsigned i = 0; i < DIFF_SUMS; i++) diff_table_init(&adder.sums[i]);
    for (unsigned i = 0; i < DIFF_STREAMS; i++) {
        adder.stream = i;
        diff_stream_kinds[i].add(&adder);
    }
    find_recorded(diff, streams);
    streams->tables[DIFF_CLASSES].sums.unseen = adder.all[DIFF_CLASSES].unseen = streams->unseen;
    streams->tables[DIFF_ALIVE].sums.unseen = adder.all[DIFF_ALIVE].unseen = streams->unseen;
    adder.sums[DIFF_ALLOCATED].unseen = streams->unseen;
    streams->tables[DIFF_SAMPLES].sums.unseen = adder.all[DIFF_SAMPLES].unseen = streams->unseen_samples;
    for (unsigned i = 0; i < DIFF_STREAMS; i++) {
        diff_table_compare(diff, &streams->tables[i].sums);
        diff_table_compare(diff, &streams->tables[i].counts);
        streams->tables[i].all = compare_all(diff, &adder.all[i]);
    }
    for (unsigned i = 0; i < DIFF_SUMS; i++) {
        enum diff_stream of = i == DIFF_GC_TIME || i == DIFF_COLLECTIONS ? DIFF_GC
                              : i == DIFF_ALLOCATED                    ? DIFF_CLASSES
                              : i == DIFF_OWN_TIME                     ? DIFF_CALLS
                                                                       : DIFF_STATES;
        streams->summed[i] = streams->tables[of].recorded;
        streams->sums[i] = compare_all(diff, &adder.sums[i]);
    }
    streams->summed[DIFF_LOST] = diff->timed;
    streams->sums[DIFF_LOST] = diff->lost_total;
}

void
diff_streams_free(struct diff_streams *streams)
{
    for (unsigned i = 0; i < DIFF_STREAMS; i++) {
        diff_table_free(&streams->tables[i].sums);
        diff_table_free(&streams->tables[i].counts);
    }
    free(streams->unseen);
    free(streams->unseen_samples);
}

const struct diff_row *
diff_stream_count(struct diff_stream_table *table, const struct diff_row *row)
{
    const uint32_t names[4] = {row->reason, row->method, row->insn, row->line};
    return row_table_find(&table->counts.rows, names);
}
