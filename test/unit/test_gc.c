/*
 * Garbage collections: what the GC calls, in orders that a Ruby makes rarely or not at will.
 */
#include "harness.h"
#include "traced.h"
#include "vm_trace/session/session.h"
#include "vm_trace/streams/gc/gc.h"
#include "vm_trace/streams/samples/samples.h"

#include <stdlib.h>
#include <string.h>

static void
begin_gaps(void)
{
}

static void
start_gc(void)
{
    rb_vm_trace_allocations_supported(begin_gaps, NULL);
    assert_true(rb_vm_trace_parse_vm_option("vm-trace=gc"));
    start_traced(.exit_rate = 1);
    assert_int_equal(rb_vm_trace_gc_on, 1);
}

static void
collect(size_t count, bool major, unsigned reason)
{
    rb_vm_trace_gc_enter(77);
    rb_vm_trace_gc_start(count, major, reason);
    rb_vm_trace_gc_begin(RB_VM_TRACE_GC_MARK, 0);
    rb_vm_trace_gc_end(RB_VM_TRACE_GC_MARK, 0);
    rb_vm_trace_gc_begin(RB_VM_TRACE_GC_SWEEP, 1000 * count);
    rb_vm_trace_gc_end(RB_VM_TRACE_GC_SWEEP, 1000 * count + 5);
    rb_vm_trace_gc_exit(65536, 3, false);
}

/* Nothing stays open, and what begins does so at different times. */
static struct trace *
finish(uint64_t collections, uint64_t pauses)
{
    struct trace *trace = finish_traced();
    assert_int_equal(trace->open_spans, 0);
    const struct trace_event *summary = trace_event(trace, "trace", "summary", 0);
    assert_int_equal(trace_counter(summary, "gc_collections"), collections);
    assert_int_equal(trace_counter(summary, "gc_pauses"), pauses);
    uint64_t last_ns = 0;
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (strcmp(event->category, "gc") != 0 || event->type != EVENT_BEGIN) continue;
        assert_true(event->ns > last_ns);
        last_ns = event->ns;
    }
    return trace;
}

static void
pause_has_its_phases_inside_and_counters_after_it(void **state)
{
    (void)state;
    start_gc();
    collect(3, false, RB_VM_TRACE_GC_NEWOBJ);
    struct trace *trace = finish(1, 1);
    const char *const names[] = { "GC minor", "mark", "mark", "sweep", "sweep", "GC minor", "GC heap" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_string_equal(trace_event(trace, "gc", NULL, i)->name, names[i]);
    const struct trace_event *begun = trace_event(trace, "gc", "GC minor", 0), *heap = trace_event(trace, "gc", "GC heap", 0);
    assert_int_equal(begun->argument_count, 2);
    assert_int_equal(trace_number(begun, "count"), 3);
    assert_string_equal(trace_text(begun, "reason"), "newobj");
    assert_int_equal(trace_number(trace_event(trace, "gc", "sweep", 1), "freed_slots"), 5);
    assert_int_equal(heap->type, EVENT_COUNTER);
    assert_int_equal(heap->id, 0);
    assert_int_equal(trace_number(heap, "heap_bytes"), 65536);
    assert_int_equal(trace_number(heap, "live_slots"), 3);
    assert_int_equal(trace_number(heap, "malloc_bytes"), 77);
    assert_string_equal(begun->thread, "main");
    trace_free(trace);
}

static void
reasons_are_spelled_as_ruby_spells_them(void **state)
{
    (void)state;
    static const struct {
        unsigned bits;
        const char *reason, *major_by;
    } cases[] = {
        { RB_VM_TRACE_GC_NEWOBJ, "newobj", NULL },
        { RB_VM_TRACE_GC_CAPI, "capi", NULL },
        { RB_VM_TRACE_GC_STRESS, "stress", NULL },
        { RB_VM_TRACE_GC_STRESS | RB_VM_TRACE_GC_MALLOC | RB_VM_TRACE_GC_NOFREE, "malloc", "nofree" },
        { RB_VM_TRACE_GC_METHOD | RB_VM_TRACE_GC_OLDGEN | RB_VM_TRACE_GC_FORCE, "method", "oldgen" },
        { RB_VM_TRACE_GC_METHOD | RB_VM_TRACE_GC_SHADY, "method", "shady" },
        { RB_VM_TRACE_GC_METHOD | RB_VM_TRACE_GC_FORCE, "method", "force" },
        { RB_VM_TRACE_GC_NEWOBJ | RB_VM_TRACE_GC_OLDMALLOC, "newobj", "oldmalloc" },
    };
    enum { CASES = sizeof(cases) / sizeof(cases[0]) };
    start_gc();
    for (size_t i = 0; i < CASES; i++) collect(i, cases[i].major_by != NULL, cases[i].bits);
    struct trace *trace = finish(CASES, CASES);
    size_t nth[2] = { 0, 0 };
    for (size_t i = 0; i < CASES; i++) {
        bool major = cases[i].major_by != NULL;
        const struct trace_event *event = trace_event(trace, "gc", major ? "GC major" : "GC minor", 2 * nth[major]++);
        assert_int_equal(trace_number(event, "count"), i);
        assert_string_equal(trace_text(event, "reason"), cases[i].reason);
        assert_int_equal(event->argument_count, major ? 3 : 2);
        if (major) assert_string_equal(trace_text(event, "major_by"), cases[i].major_by);
    }
    trace_free(trace);
}

static void
later_pause_has_only_the_count(void **state)
{
    (void)state;
    start_gc();
    rb_vm_trace_gc_enter(0);
    rb_vm_trace_gc_continue(9, true);
    rb_vm_trace_gc_exit(0, 0, false);
    struct trace *trace = finish(0, 1);
    const struct trace_event *event = trace_event(trace, "gc", "GC major", 0);
    assert_int_equal(event->argument_count, 1);
    assert_int_equal(trace_number(event, "count"), 9);
    trace_free(trace);
}

static void
wait_for_other_ractors_is_at_the_begin_of_the_pause(void **state)
{
    (void)state;
    start_gc();
    rb_vm_trace_gc_enter(0);
    rb_vm_trace_gc_stopped();
    rb_vm_trace_gc_continue(9, true);
    rb_vm_trace_gc_exit(0, 0, true);
    collect(10, false, RB_VM_TRACE_GC_METHOD);
    struct trace *trace = finish(1, 2);
    const struct trace_event *pause = trace_event(trace, "gc", "GC major", 0), *wait = trace_event(trace, "gc", "barrier", 0);
    assert_true(wait->ns == pause->ns + 1);
    assert_int_equal(trace_event(trace, "gc", "barrier", 1)->type, EVENT_END);
    assert_int_equal(trace_count(trace, "gc", "barrier"), 2);
    trace_free(trace);
}

static void
counters_of_a_heap_have_the_number_of_its_ractor(void **state)
{
    (void)state;
    start_gc();
    main_ractor.vm_trace->number = 5;
    for (int own = 0; own < 2; own++) {
        rb_vm_trace_gc_enter(0);
        rb_vm_trace_gc_start((size_t)own, false, RB_VM_TRACE_GC_NEWOBJ);
        rb_vm_trace_gc_exit(65536, 3, own == 1);
    }
    struct trace *trace = finish(2, 2);
    assert_int_equal(trace_event(trace, "gc", "GC heap", 0)->id, 0);
    assert_int_equal(trace_event(trace, "gc", "GC heap", 1)->id, 5);
    trace_free(trace);
}

/* The clock stands still in the pause; finish() compares the times. */
static void
what_begins_in_the_same_moment_is_a_nanosecond_later(void **state)
{
    (void)state;
    skip_without_ticks();
    start_gc();
    stop_clock();
    collect(1, true, RB_VM_TRACE_GC_MALLOC);
    struct trace *trace = finish(1, 1);
    uint64_t begin_ns = trace_event(trace, "gc", "GC major", 0)->ns;
    for (size_t i = 1; i < 7; i++) assert_true(trace_event(trace, "gc", NULL, i)->ns == begin_ns + i);
    trace_free(trace);
}

/* As finalizers at the end of the process: the GC is entered, and nothing is collected. */
static void
pause_of_no_collection_is_not_recorded(void **state)
{
    (void)state;
    start_gc();
    rb_vm_trace_gc_enter(0);
    rb_vm_trace_gc_begin(RB_VM_TRACE_GC_SWEEP, 5);
    rb_vm_trace_gc_end(RB_VM_TRACE_GC_SWEEP, 6);
    rb_vm_trace_gc_exit(0, 0, false);
    rb_vm_trace_gc_start(1, true, 0); /* belongs to no pause */
    struct trace *trace = finish(0, 0);
    assert_int_equal(trace_count(trace, "gc", NULL), 0);
    trace_free(trace);
}

/* As a trace that begins while the GC is somewhere in a pause. */
static void
calls_without_their_beginning_do_nothing(void **state)
{
    (void)state;
    start_gc();
    rb_vm_trace_gc_end(RB_VM_TRACE_GC_MARK, 0);
    rb_vm_trace_gc_begin(RB_VM_TRACE_GC_SWEEP, 5);
    rb_vm_trace_gc_end(RB_VM_TRACE_GC_SWEEP, 6);
    rb_vm_trace_gc_start(1, true, 0);
    rb_vm_trace_gc_exit(0, 0, false);
    collect(1, true, RB_VM_TRACE_GC_METHOD | RB_VM_TRACE_GC_FORCE);
    struct trace *trace = finish(1, 1);
    assert_int_equal(trace_count(trace, "gc", NULL), 7);
    trace_free(trace);
}

/* NoMemoryError in a GC. */
static void
pause_that_is_given_up_ends_its_phases(void **state)
{
    (void)state;
    start_gc();
    rb_vm_trace_gc_enter(0);
    rb_vm_trace_gc_start(1, true, RB_VM_TRACE_GC_MALLOC);
    rb_vm_trace_gc_begin(RB_VM_TRACE_GC_SWEEP, 5);
    rb_vm_trace_gc_begin(RB_VM_TRACE_GC_COMPACT, 0);
    rb_vm_trace_gc_exit(0, 0, false);
    rb_vm_trace_gc_end(RB_VM_TRACE_GC_SWEEP, 5);
    struct trace *trace = finish(1, 1);
    const char *const names[] = { "GC major", "sweep", "compact", "compact", "sweep", "GC major", "GC heap" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_string_equal(trace_event(trace, "gc", NULL, i)->name, names[i]);
    assert_int_equal(trace_event(trace, "gc", "sweep", 1)->argument_count, 0);
    trace_free(trace);
}

/* A compaction of the heaps of all ractors: each is swept, one within the other. */
static void
phases_of_several_heaps_are_one(void **state)
{
    (void)state;
    start_gc();
    rb_vm_trace_gc_enter(0);
    rb_vm_trace_gc_start(1, true, RB_VM_TRACE_GC_METHOD);
    rb_vm_trace_gc_begin(RB_VM_TRACE_GC_SWEEP, 100);
    rb_vm_trace_gc_begin(RB_VM_TRACE_GC_COMPACT, 0);
    rb_vm_trace_gc_begin(RB_VM_TRACE_GC_SWEEP, 7000);
    rb_vm_trace_gc_begin(RB_VM_TRACE_GC_COMPACT, 0);
    rb_vm_trace_gc_end(RB_VM_TRACE_GC_COMPACT, 0);
    rb_vm_trace_gc_end(RB_VM_TRACE_GC_COMPACT, 0);
    rb_vm_trace_gc_end(RB_VM_TRACE_GC_SWEEP, 103);
    rb_vm_trace_gc_end(RB_VM_TRACE_GC_SWEEP, 7040);
    rb_vm_trace_gc_exit(0, 0, true);
    struct trace *trace = finish(1, 1);
    assert_int_equal(trace_count(trace, "gc", "sweep"), 2);
    assert_int_equal(trace_count(trace, "gc", "compact"), 2);
    assert_int_equal(trace_number(trace_event(trace, "gc", "sweep", 1), "freed_slots"), 43);
    trace_free(trace);
}

static void
nothing_is_written_after_the_trace(void **state)
{
    (void)state;
    start_gc();
    collect(1, true, RB_VM_TRACE_GC_METHOD);
    rb_vm_trace_gc_enter(0);
    struct rb_vm_trace_status status;
    assert_true(rb_vm_trace_stop_session(&status));
    assert_int_equal(rb_vm_trace_gc_on, 0);
    rb_vm_trace_gc_start(2, true, RB_VM_TRACE_GC_METHOD);
    rb_vm_trace_gc_exit(0, 0, false);
    free_traced();
    struct trace *trace = trace_read(traced_path);
    assert_int_equal(trace_count(trace, "gc", NULL), 7);
    trace_free(trace);
}

/* Each of them defines what it names. */
static void
pauses_go_on_in_the_next_chunk(void **state)
{
    (void)state;
    rb_vm_trace_writer_run_chunks = 1;
    start_gc();
    enum { MANY = 40000 };
    for (size_t i = 0; i < MANY; i++) collect(i, i & 1, RB_VM_TRACE_GC_METHOD);
    struct trace *trace = finish(MANY, MANY);
    assert_true(trace->chunk_count > 5);
    assert_int_equal(trace_count(trace, "gc", NULL), 7 * MANY);
    trace_free(trace);
}

static void
nothing_is_written_where_collections_are_not_recorded(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    assert_int_equal(rb_vm_trace_gc_on, 0);
    struct trace *trace = finish(0, 0);
    trace_free(trace);
}

/* MMTk has none of the hooks. */
static void
collector_without_hooks_is_refused(void **state)
{
    (void)state;
    static const char why[] = "this GC does not tell of its collections; the default GC does";
    struct rb_vm_trace_stream *const streams[] = { &rb_vm_trace_gc, &rb_vm_trace_samples };
    for (size_t i = 0; i < 2; i++) {
        assert_null(streams[i]->refuse(0, NULL));
        assert_string_equal(streams[i]->refuse(1, NULL), why);
    }
    assert_true(rb_vm_trace_parse_vm_option("vm-trace=gc"));
    start_traced(.exit_rate = 1);
    assert_int_equal(rb_vm_trace_gc_on, 0);
    trace_free(finish(0, 0));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(pause_has_its_phases_inside_and_counters_after_it),
        isolated_test(reasons_are_spelled_as_ruby_spells_them),
        isolated_test(later_pause_has_only_the_count),
        isolated_test(wait_for_other_ractors_is_at_the_begin_of_the_pause),
        isolated_test(counters_of_a_heap_have_the_number_of_its_ractor),
        isolated_test(what_begins_in_the_same_moment_is_a_nanosecond_later),
        isolated_test(pause_of_no_collection_is_not_recorded),
        isolated_test(calls_without_their_beginning_do_nothing),
        isolated_test(pause_that_is_given_up_ends_its_phases),
        isolated_test(phases_of_several_heaps_are_one),
        isolated_test(nothing_is_written_after_the_trace),
        isolated_test(pauses_go_on_in_the_next_chunk),
        isolated_test(nothing_is_written_where_collections_are_not_recorded),
        isolated_test(collector_without_hooks_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
