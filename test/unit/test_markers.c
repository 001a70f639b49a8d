/*
 * Markers: instants, spans and counters of the program's own.
 */
#include "harness.h"
#include "traced.h"
#include "vm_trace/session/session.h"
#include "vm_trace/streams/markers/markers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
start_markers(void)
{
    assert_true(rb_vm_trace_parse_vm_option("vm-trace=markers"));
    start_traced(.exit_rate = 1);
    assert_int_equal(rb_vm_trace_markers_on, 1);
}

static rb_vm_trace_span
write(enum fxt_event_type type, const char *name, const struct vm_trace_marker_argument *arguments, unsigned count)
{
    return rb_vm_trace_marker_write(&(struct vm_trace_marker){
        .type = type, .name = name, .name_bytes = strlen(name), .arguments = arguments, .argument_count = count
    });
}

static void
every_kind_of_argument_is_in_the_trace(void **state)
{
    (void)state;
    start_markers();
    double half = 0.5;
    uint64_t bits;
    memcpy(&bits, &half, sizeof(bits));
    const struct vm_trace_marker_argument arguments[] = {
        { "text", 4, FXT_ARG_STRING, "some", 4, 0 }, { "minus", 5, FXT_ARG_INT64, NULL, 0, (uint64_t)-5 },
        { "half", 4, FXT_ARG_DOUBLE, NULL, 0, bits }, { "yes", 3, FXT_ARG_BOOL, NULL, 0, 1 }, { "nothing", 7, FXT_ARG_NULL, NULL, 0, 0 }
    };
    assert_true(write(FXT_EVENT_INSTANT, "all", arguments, 5) != 0);
    struct trace *trace = finish_traced();
    const struct trace_event *event = trace_event(trace, "marker", "all", 0);
    assert_int_equal(event->type, EVENT_INSTANT);
    assert_int_equal(event->argument_count, 5);
    assert_string_equal(trace_text(event, "text"), "some");
    assert_true(trace_number(event, "minus") == (uint64_t)-5);
    assert_true(trace_number(event, "half") == bits);
    assert_int_equal(trace_number(event, "yes"), 1);
    assert_string_equal(event->arguments[4].name, "nothing");
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "markers"), 1);
    assert_string_equal(trace_text(trace_event(trace, "trace", "settings", 0), "flags"), "exits markers");
    trace_free(trace);
}

static void
most_arguments_fit_and_what_is_left_out_is_counted(void **state)
{
    (void)state;
    start_markers();
    static const char keys[] = "abcdefghijklmn";
    struct vm_trace_marker_argument arguments[VM_TRACE_MARKER_ARGUMENTS];
    for (unsigned i = 0; i < VM_TRACE_MARKER_ARGUMENTS; i++) {
        arguments[i] = (struct vm_trace_marker_argument){ &keys[i], 1, FXT_ARG_INT64, NULL, 0, i };
    }
    struct vm_trace_marker marker = { .type = FXT_EVENT_INSTANT, .name = "many", .name_bytes = 4, .arguments = arguments,
                                      .argument_count = VM_TRACE_MARKER_ARGUMENTS, .left_out = 7 };
    assert_true(rb_vm_trace_marker_write(&marker) != 0);
    struct trace *trace = finish_traced();
    const struct trace_event *event = trace_event(trace, "marker", "many", 0);
    assert_int_equal(event->argument_count, 15);
    assert_int_equal(trace_number(event, "n"), 13);
    assert_int_equal(trace_number(event, "left_out"), 7);
    trace_free(trace);
}

static void
extension_marks_by_handles(void **state)
{
    (void)state;
    start_markers();
    const rb_vm_trace_marker *parse = rb_vm_trace_marker_name("parse"), *queue = rb_vm_trace_marker_name("queue");
    rb_vm_trace_span span = rb_vm_trace_marker_begin(parse);
    rb_vm_trace_marker_instant(parse);
    rb_vm_trace_marker_counter(queue, -3);
    rb_vm_trace_marker_end(parse, span);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->open_spans, 0);
    assert_int_equal(trace_count(trace, "marker", "parse"), 3);
    const struct trace_event *counter = trace_event(trace, "marker", "queue", 0);
    assert_int_equal(counter->type, EVENT_COUNTER);
    assert_true(trace_number(counter, "value") == (uint64_t)-3);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "markers"), 4);
    trace_free(trace);
}

/* Ractors without memory of their own share a state, which they must not write to. */
static void
marker_of_a_ractor_without_memory_is_a_lost_event(void **state)
{
    (void)state;
    start_markers();
    struct rb_ractor_struct ractor = { .vm_trace = rb_vm_trace_capture.overflow };
    struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = 7, .thread_name = "t", .name_id = 5 };
    fake_current(&thread);
    assert_int_equal(write(FXT_EVENT_DURATION_BEGIN, "begun", NULL, 0), 0);
    fake_current(&main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "marker", NULL), 0);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "lost"), 1);
    trace_free(trace);
}

static void
nothing_is_written_where_markers_are_not_recorded(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    const rb_vm_trace_marker *name = rb_vm_trace_marker_name("unseen");
    rb_vm_trace_marker_instant(name);
    assert_int_equal(rb_vm_trace_marker_begin(name), 0);
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "marker", NULL), 0);
    trace_free(trace);
}

static void
span_does_not_end_in_another_trace(void **state)
{
    (void)state;
    start_markers();
    const rb_vm_trace_marker *name = rb_vm_trace_marker_name("long");
    rb_vm_trace_span span = rb_vm_trace_marker_begin(name);
    assert_true(rb_vm_trace_marker_same_trace_p(span));
    struct rb_vm_trace_status status;
    assert_true(rb_vm_trace_stop_session(&status));
    assert_int_equal(status_count(status, "markers"), 1);
    assert_false(rb_vm_trace_marker_same_trace_p(span));
    rb_vm_trace_marker_end(name, span); /* no trace: nothing happens */
    free_traced();
    struct trace *trace = trace_read(traced_path);
    assert_int_equal(trace->open_spans, 1);
    trace_free(trace);
}

static void
texts_that_come_once_are_not_kept(void **state)
{
    (void)state;
    start_markers();
    write(FXT_EVENT_INSTANT, "first", NULL, 0);
    size_t before = rb_vm_trace_string_count();
    for (int i = 0; i < 20000; i++) {
        char name[32];
        snprintf(name, sizeof(name), "request %d", i);
        assert_true(write(FXT_EVENT_INSTANT, name, NULL, 0) != 0);
    }
    assert_true(rb_vm_trace_string_count() - before <= 256);
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "marker", NULL), 20001);
    assert_int_equal(trace_count(trace, "marker", "request 19999"), 1);
    trace_free(trace);
}

static void
unknown_stream_is_an_error_that_lists_all(void **state)
{
    (void)state;
    capture_stderr();
    assert_false(rb_vm_trace_parse_vm_option("vm-trace=marks"));
    char *said = captured_stderr();
    assert_string_equal(said, "--vm-trace: there is no stream \"marks\"; streams are: exits, fallbacks, compiles, "
                              "invalidations, markers, threads, fibers, gc, allocations, states, calls, syscalls, sched, "
                              "samples, counters; presets are: default, profile, full\n");
    free(said);
    capture_stderr();
    assert_false(rb_vm_trace_parse_vm_option("vm-trace=markers:rate=3"));
    assert_false(rb_vm_trace_parse_vm_option("vm-trace=exits:every=3"));
    assert_false(rb_vm_trace_parse_vm_option("vm-trace"));
    assert_false(rb_vm_trace_parse_vm_option("vm-trace-fiel=x"));
    said = captured_stderr();
    assert_non_null(strstr(said, "markers takes no options, not \"rate=3\"\n"));
    assert_non_null(strstr(said, "exits takes rate=N, counter=NAME, samples, not \"every=3\"\n"));
    assert_non_null(strstr(said, "--vm-trace takes names of streams with commas between them: exits,"));
    assert_non_null(strstr(said, "there is no option --vm-trace-fiel; options are: --vm-trace=LIST, and --vm-trace-methods, -file, "));
    free(said);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(every_kind_of_argument_is_in_the_trace),
        isolated_test(most_arguments_fit_and_what_is_left_out_is_counted),
        isolated_test(extension_marks_by_handles),
        isolated_test(marker_of_a_ractor_without_memory_is_a_lost_event),
        isolated_test(nothing_is_written_where_markers_are_not_recorded),
        isolated_test(span_does_not_end_in_another_trace),
        isolated_test(texts_that_come_once_are_not_kept),
        isolated_test(unknown_stream_is_an_error_that_lists_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
