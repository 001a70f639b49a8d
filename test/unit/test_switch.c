/*
 * On and off in a running program: traces one after the other, hooks beside them, a JIT that is asked for its trace points.
 */
#define _GNU_SOURCE 1
#include "harness.h"
#include "vm_trace/session/session.h"
#include "vm_trace/streams/table.h"
#include "vm_trace/streams/code/versions.h"
#include "vm_trace/streams/exit_state.h"
#include "traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rb_iseq_struct foo;
static const struct rb_vm_trace_memory_config into_file;

/* A JIT whose code exits where take_exit says. */
static struct {
    uint64_t rate;          /* 0: off */
    unsigned switched_on, switched_off;
    bool compiles, invalidations;
    const char *refusal;
} fake_jit;

static bool
fake_counter_p(const char *name)
{
    return strcmp(name, "known") == 0;
}

static const char *
fake_exits_on(uint64_t rate, const char *counter)
{
    (void)counter;
    if (fake_jit.refusal) return fake_jit.refusal;
    assert_int_equal(fake_jit.rate, 0);
    fake_jit.rate = rate;
    fake_jit.switched_on++;
    return NULL;
}

static const char *
fake_every_exit(void)
{
    assert_true(fake_jit.rate > 1);
    fake_jit.rate = 1;
    return NULL;
}

static void
fake_exits_off(void)
{
    assert_true(fake_jit.rate > 0);
    fake_jit.rate = 0;
    fake_jit.switched_off++;
}

static void
fake_recording(bool on, bool compiles, bool invalidations)
{
    (void)on;
    fake_jit.compiles = compiles;
    fake_jit.invalidations = invalidations;
}

static const struct rb_vm_trace_jit jit = {
    .name = "ZJIT", .fallbacks = true, .counter_p = fake_counter_p, .exits_on = fake_exits_on,
    .every_exit = fake_every_exit, .exits_off = fake_exits_off, .recording = fake_recording
};

/* A program that is not traced. */
static void
begin_program(void)
{
    fake_ractor_add(&main_ractor);
    fake_current(&main_thread);
    foo = fake_iseq("foo", "app.rb");
    fake_push(&main_thread, &foo, 3);
    rb_vm_trace_register_jit(&jit);
}

/* Start a session with what `config` says of streams. */
static bool
start_session(const struct rb_vm_trace_config *config, char *why_out, size_t why_bytes)
{
    struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS];
    rb_vm_trace_streams_request(config, requests);
    return rb_vm_trace_start_session(config, requests, &into_file, why_out, why_bytes);
}

static void
start(const char *path, uint64_t rate)
{
    struct rb_vm_trace_config config = { .jit = "ZJIT", .path = path, .exit_rate = rate, .compiles = true };
    char why[512] = "";
    bool ok = start_session(&config, why, sizeof(why));
    assert_string_equal(why, "");
    assert_true(ok);
}

static struct rb_vm_trace_status
stop(void)
{
    struct rb_vm_trace_status status;
    assert_true(rb_vm_trace_stop_session(&status));
    return status;
}

/* What compiled code does at an exit, while it does it. */
static void
take_exits(const struct rb_vm_trace_site *site, unsigned exits)
{
    for (unsigned i = 0; i < exits && fake_jit.rate; i++) {
        struct rb_vm_trace_ractor *ractor_state = main_ractor.vm_trace;
        exits_of(ractor_state)->hits[site->index]++;
        if (fake_jit.rate == 1 || --exits_of(ractor_state)->countdown == 0) rb_vm_trace_exit(ractor_state, site, &main_thread);
    }
}

static struct rb_vm_trace_site *
a_site(void)
{
    return make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
}

static void
traces_in_a_row_have_their_own_events(void **state)
{
    (void)state;
    begin_program();
    capture_stderr();
    for (unsigned i = 1; i <= 20; i++) {
        char *path = temp_path("t.fxt");
        assert_null(main_ractor.vm_trace);
        start(path, i % 3 + 1);
        assert_true(fake_jit.compiles);
        take_exits(a_site(), 12 * i);
        struct rb_vm_trace_status now;
        rb_vm_trace_status(&now);
        assert_int_equal(status_count(now, "exits"), 12 * i);
        struct rb_vm_trace_status status = stop();
        assert_false(fake_jit.compiles);
        assert_int_equal(status_count(status, "exits"), 12 * i);
        assert_int_equal(status.sampled, 12 * i / (i % 3 + 1));
        assert_int_equal(status.lost, 0);
        assert_string_equal(status.path, path);
        struct trace *trace = trace_read(path);
        assert_summary(trace, 12 * i, 12 * i / (i % 3 + 1), 0);
        assert_int_equal(site_hits(trace, "r"), 12 * i);
        trace_free(trace);
        free(path);
    }
    char *said = captured_stderr();
    assert_string_equal(said, "");
    free(said);
    assert_int_equal(rb_vm_trace_site_count(), 0);
    assert_int_equal(fake_jit.switched_off, 20);
    struct rb_vm_trace_status status;
    assert_false(rb_vm_trace_stop_session(&status));
    fake_free_stack(&main_thread);
}

static void
what_can_not_begin_leaves_nothing(void **state)
{
    (void)state;
    begin_program();
    struct rb_vm_trace_config config = { .jit = "ZJIT", .path = "/no/such/folder/t.fxt", .exit_rate = 1 };
    char why[512];
    assert_false(start_session(&config, why, sizeof(why)));
    assert_string_equal(why, "can't trace to /no/such/folder/t.fxt: No such file or directory; "
                        "give file: a path in a folder that can be written to");
    char *path = temp_path("t.fxt");
    config.path = path;
    fake_jit.refusal = "it does not want to";
    assert_false(start_session(&config, why, sizeof(why)));
    assert_string_equal(why, "can't trace exits: it does not want to");
    assert_int_equal(access(path, F_OK), -1);
    assert_null(main_ractor.vm_trace);
    fake_jit.refusal = NULL;
    start(path, 1);
    take_exits(a_site(), 3);
    assert_int_equal(status_count(stop(), "exits"), 3);
    free(path);
    fake_free_stack(&main_thread);
}

/* One that ended is not freed yet when the trace ends, and one that was being made then has none of the next. */
static void
ractors_may_be_freed_late_and_get_theirs_late(void **state)
{
    (void)state;
    begin_program();
    char *path = temp_path("t.fxt");
    start(path, 1);
    struct rb_vm_trace_ractor *ended = rb_vm_trace_ractor_new(), *begun = rb_vm_trace_ractor_new();
    struct rb_vm_trace_site *site = a_site();
    exits_of(ended)->hits[site->index] += 5;
    take_exits(site, 2);
    assert_int_equal(status_count(stop(), "exits"), 7);
    assert_null(rb_vm_trace_ractor_new());

    start(path, 1);
    rb_vm_trace_ractor_free(ended);
    struct rb_ractor_struct ractor = { .vm_trace = begun };
    struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = 7, .thread_name = "late", .name_id = 7 };
    fake_push(&thread, &foo, 3);
    fake_current(&thread);
    rb_vm_trace_first_hit(a_site(), &thread);
    assert_ptr_not_equal(ractor.vm_trace, begun);
    struct rb_vm_trace_status status = stop();
    assert_int_equal(status_count(status, "exits"), 1);
    assert_int_equal(status.sampled, 1);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    free(path);
    fake_free_stack(&thread);
    fake_free_stack(&main_thread);
}

/* What is left in the file of a trace ends with it: each has a chunk of the main ractor's and one of the others'. */
static void
what_a_ractor_left_is_not_used_in_the_next_trace(void **state)
{
    (void)state;
    begin_program();
    for (unsigned i = 0; i < 3; i++) {
        char *path = temp_path("t.fxt");
        start(path, 1);
        struct rb_vm_trace_site *site = a_site();
        for (unsigned n = 0; n < 2; n++) {
            struct rb_ractor_struct ractor = { .vm_trace = rb_vm_trace_ractor_new() };
            struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = 7, .thread_name = "t", .name_id = 7 };
            fake_push(&thread, &foo, 3);
            take_exit(site, &thread);
            rb_vm_trace_ractor_free(ractor.vm_trace);
            fake_free_stack(&thread);
        }
        assert_non_null(rb_vm_trace_capture.shared.orphans);
        assert_int_equal(status_count(stop(), "exits"), 2);
        assert_null(rb_vm_trace_capture.shared.orphans);
        struct trace *trace = trace_read(path);
        assert_summary(trace, 2, 2, 0);
        assert_int_equal(trace->chunk_count, 2);
        trace_free(trace);
        free(path);
    }
    fake_free_stack(&main_thread);
}

static void
hooks_are_told_of_every_exit_beside_a_trace_of_some(void **state)
{
    (void)state;
    begin_program();
    rb_vm_trace_subscribe(true);
    struct rb_vm_trace_site *site = a_site();
    take_exits(site, 10);
    assert_int_equal(fake_host.told, 10);

    char *path = temp_path("t.fxt");
    start(path, 4);
    take_exits(site, 40);
    assert_int_equal(fake_host.told, 50);
    struct rb_vm_trace_status status = stop();
    assert_int_equal(status_count(status, "exits"), 40);
    assert_int_equal(status.sampled, 10);
    assert_int_equal(fake_jit.switched_on, 1);
    take_exits(site, 5); /* the site is still theirs */
    assert_int_equal(fake_host.told, 55);
    struct trace *trace = trace_read(path);
    assert_summary(trace, 40, 10, 0);
    trace_free(trace);

    rb_vm_trace_subscribe(false);
    assert_int_equal(fake_jit.rate, 0);
    assert_null(main_ractor.vm_trace);
    assert_int_equal(rb_vm_trace_site_count(), 0);
    free(path);
    fake_free_stack(&main_thread);
}

static void
hooks_may_come_and_go_while_a_trace_is_on(void **state)
{
    (void)state;
    begin_program();
    char *path = temp_path("t.fxt");
    start(path, 5);
    struct rb_vm_trace_site *site = a_site();
    take_exits(site, 50);
    assert_int_equal(fake_host.told, 0);
    rb_vm_trace_subscribe(true);
    assert_int_equal(fake_jit.rate, 1);
    take_exits(site, 50);
    assert_int_equal(fake_host.told, 50);
    rb_vm_trace_subscribe(false);
    take_exits(site, 50);
    assert_int_equal(fake_host.told, 50);
    struct rb_vm_trace_status status = stop();
    assert_int_equal(status_count(status, "exits"), 150);
    assert_int_equal(status.sampled, 30);
    assert_int_equal(fake_jit.rate, 0);
    struct trace *trace = trace_read(path);
    assert_summary(trace, 150, 30, 0);
    trace_free(trace);
    free(path);
    fake_free_stack(&main_thread);
}

/* What code does that a flag had count down to one in K. */
static void
take_flagged_exits(const struct rb_vm_trace_site *site, struct rb_ractor_struct *ractor, unsigned exits)
{
    struct rb_execution_context_struct thread = { .ractor = ractor, .tid = 8, .thread_name = "t", .name_id = 8 };
    fake_push(&thread, &foo, 3);
    for (unsigned i = 0; i < exits; i++) {
        struct rb_vm_trace_ractor *ractor_state = ractor->vm_trace;
        exits_of(ractor_state)->hits[site->index]++;
        if (--exits_of(ractor_state)->countdown == 0) rb_vm_trace_exit(ractor_state, site, &thread);
    }
    fake_free_stack(&thread);
}

static void
hooks_are_told_of_every_exit_of_code_that_a_flag_had_count_down(void **state)
{
    (void)state;
    begin_program();
    char *path = temp_path("t.fxt");
    assert_true(rb_vm_trace_start(&(struct rb_vm_trace_config){ .jit = "ZJIT", .path = path, .exit_rate = 7 }));
    main_ractor.vm_trace = rb_vm_trace_ractor_new();
    struct rb_ractor_struct other = { .vm_trace = rb_vm_trace_ractor_new() };
    struct rb_vm_trace_site *site = a_site();
    take_flagged_exits(site, &main_ractor, 10); /* 7 and 14 are recorded, 21, ... */
    take_flagged_exits(site, &other, 6);
    assert_int_equal(fake_host.told, 0);

    rb_vm_trace_subscribe(true);
    take_flagged_exits(site, &main_ractor, 10);
    take_flagged_exits(site, &other, 1);
    assert_int_equal(fake_host.told, 11);
    struct rb_ractor_struct later = { .vm_trace = rb_vm_trace_ractor_new() };
    take_flagged_exits(site, &later, 8);
    assert_int_equal(fake_host.told, 19);

    rb_vm_trace_subscribe(false);
    take_flagged_exits(site, &main_ractor, 10);
    take_flagged_exits(site, &other, 7);
    take_flagged_exits(site, &later, 13);
    assert_int_equal(fake_host.told, 19);

    struct rb_vm_trace_status status = stop();
    assert_int_equal(status_count(status, "exits"), 30 + 14 + 21);
    assert_int_equal(status.sampled, 4 + 2 + 3);
    struct trace *trace = trace_read(path);
    assert_summary(trace, 30 + 14 + 21, 4 + 2 + 3, 0);
    trace_free(trace);

    /* The flag's code goes on between traces, and counts down to another K in the next one. */
    rb_vm_trace_subscribe(true);
    take_flagged_exits(site, &main_ractor, 5);
    assert_int_equal(fake_host.told, 24);
    char *next = temp_path("next.fxt");
    start(next, 3);
    take_flagged_exits(site, &main_ractor, 10);
    assert_int_equal(fake_host.told, 34);
    rb_vm_trace_subscribe(false);
    take_flagged_exits(site, &main_ractor, 5);
    assert_int_equal(fake_host.told, 34);
    status = stop();
    assert_int_equal(status_count(status, "exits"), 15);
    assert_int_equal(status.sampled, 5);
    rb_vm_trace_ractor_free(other.vm_trace);
    rb_vm_trace_ractor_free(later.vm_trace);
    free(next);
    free(path);
    fake_free_stack(&main_thread);
}

static void
hooks_before_the_jit_is_on_are_told_once_it_is(void **state)
{
    (void)state;
    fake_ractor_add(&main_ractor);
    fake_current(&main_thread);
    rb_vm_trace_subscribe(true);
    assert_null(main_ractor.vm_trace);
    foo = fake_iseq("foo", "app.rb");
    fake_push(&main_thread, &foo, 3);
    rb_vm_trace_register_jit(&jit);
    rb_vm_trace_jit_ready();
    take_exits(a_site(), 3);
    assert_int_equal(fake_host.told, 3);
    rb_vm_trace_subscribe(false);
    fake_free_stack(&main_thread);
}

/* A number tells a trace from those before it; what could not begin has none that is shown. */
static void
each_trace_has_a_number_of_its_own(void **state)
{
    (void)state;
    begin_program();
    char *path = temp_path("t.fxt");
    uint64_t last = 0;
    for (unsigned i = 0; i < 3; i++) {
        struct rb_vm_trace_status status;
        rb_vm_trace_status(&status);
        assert_int_equal(status.session_number, 0);
        start(path, 1);
        rb_vm_trace_status(&status);
        assert_true(status.session_number > last);
        last = status.session_number;
        rb_vm_trace_before_fork();
        rb_vm_trace_after_fork(-1);
        rb_vm_trace_status(&status);
        assert_int_equal(status.session_number, last);
        stop();
    }
    free(path);
    fake_free_stack(&main_thread);
}

static void
assert_refused(struct rb_vm_trace_config config, const char *expected)
{
    char why[512] = "", *path = temp_path("refused.fxt");
    config.jit = "ZJIT";
    config.path = path;
    assert_false(start_session(&config, why, sizeof(why)));
    assert_non_null(strstr(why, expected));
    assert_int_equal(access(path, F_OK), -1);
    free(path);
}

static void
what_code_can_not_tell_apart_is_refused(void **state)
{
    (void)state;
    begin_program();
    assert_refused((struct rb_vm_trace_config){ .fallback_rate = 1 },
                   "fallbacks can be recorded only in a program that was started with ZJIT");
    rb_vm_trace_subscribe(true);
    assert_refused((struct rb_vm_trace_config){ .exit_rate = 1, .counter = "known" }, "hooks subscribe to all exits");
    rb_vm_trace_subscribe(false);
    fake_free_stack(&main_thread);
}

static struct rb_vm_trace_site *
a_recompile_site(void)
{
    return make_site(RB_VM_TRACE_RECOMPILE_EXIT, "NoProfileSend", &foo, 0);
}

/*
 * Where machine code does not count: the exit is counted before the JIT acts, and recorded when the
 * outcome is known.
 */
static void
recompile_exits_that_c_counts_are_one_in_k(void **state)
{
    (void)state;
    begin_program();
    char *path = temp_path("t.fxt");
    start(path, 4);
    struct rb_vm_trace_site *site = a_recompile_site();
    unsigned recorded = 0;
    for (unsigned i = 0; i < 40; i++) {
        uint64_t start_ns = 0, weight = rb_vm_trace_recompile_taken(site, &main_thread, &start_ns);
        assert_true(start_ns > 0);
        recorded += weight > 0;
        if (weight) assert_int_equal(weight, 4);
        rb_vm_trace_recompile_done(site, &main_thread, start_ns, weight, i < 20 ? RB_VM_TRACE_PROFILING : RB_VM_TRACE_VERSION_LIMIT);
    }
    assert_int_equal(recorded, 10);
    /* One more that is not finished: its code is gone before the JIT acted. It was taken, and counts. */
    uint64_t start_ns;
    rb_vm_trace_recompile_taken(site, &main_thread, &start_ns);
    assert_ptr_equal(versions_of(main_ractor.vm_trace)->exiting.site, site);
    rb_vm_trace_recompile_dropped(&main_thread);
    assert_null(versions_of(main_ractor.vm_trace)->exiting.site);
    /* And two that nothing could be found out about. */
    rb_vm_trace_lost(&main_thread);
    rb_vm_trace_lost(&main_thread);

    struct rb_vm_trace_status status = stop();
    assert_int_equal(status_count(status, "exits"), 41);
    assert_int_equal(status.sampled, 10);
    assert_int_equal(status.lost, 2);
    struct trace *trace = trace_read(path);
    assert_int_equal(trace_count(trace, "recompile_exit", "NoProfileSend"), 10);
    assert_string_equal(trace_text(trace_event(trace, "recompile_exit", NULL, 0), "outcome"), "profiling");
    assert_string_equal(trace_text(trace_event(trace, "recompile_exit", NULL, 9), "outcome"), "version_limit");
    assert_summary(trace, 41, 10, 2);
    trace_free(trace);
    free(path);
    fake_free_stack(&main_thread);
}

/* The trace begins, or ends, between the two halves of such an exit: it is in neither. */
static void
recompile_exit_that_is_under_way_when_tracing_is_switched_is_in_no_trace(void **state)
{
    (void)state;
    begin_program();
    char *path = temp_path("t.fxt");
    rb_vm_trace_subscribe(true); /* so that sites and locals stay */
    struct rb_vm_trace_site *site = a_recompile_site();
    uint64_t start_ns = 0, weight = rb_vm_trace_recompile_taken(site, &main_thread, &start_ns);
    assert_int_equal(weight, 0);
    start(path, 1);
    rb_vm_trace_recompile_done(site, &main_thread, start_ns, weight, RB_VM_TRACE_PROFILING);
    assert_int_equal(fake_host.told, 1);
    site = a_recompile_site();
    weight = rb_vm_trace_recompile_taken(site, &main_thread, &start_ns);
    assert_int_equal(weight, 1);
    struct rb_vm_trace_status status = stop();
    assert_int_equal(status.sampled, 0);
    rb_vm_trace_recompile_done(site, &main_thread, start_ns, weight, RB_VM_TRACE_PROFILING);
    assert_int_equal(fake_host.told, 2);
    struct trace *trace = trace_read(path);
    assert_int_equal(trace_count(trace, "recompile_exit", NULL), 0);
    trace_free(trace);
    rb_vm_trace_subscribe(false);
    free(path);
    fake_free_stack(&main_thread);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(traces_in_a_row_have_their_own_events),
        isolated_test(what_can_not_begin_leaves_nothing),
        isolated_test(ractors_may_be_freed_late_and_get_theirs_late),
        isolated_test(what_a_ractor_left_is_not_used_in_the_next_trace),
        isolated_test(hooks_are_told_of_every_exit_beside_a_trace_of_some),
        isolated_test(hooks_may_come_and_go_while_a_trace_is_on),
        isolated_test(hooks_are_told_of_every_exit_of_code_that_a_flag_had_count_down),
        isolated_test(hooks_before_the_jit_is_on_are_told_once_it_is),
        isolated_test(each_trace_has_a_number_of_its_own),
        isolated_test(what_code_can_not_tell_apart_is_refused),
        isolated_test(recompile_exits_that_c_counts_are_one_in_k),
        isolated_test(recompile_exit_that_is_under_way_when_tracing_is_switched_is_in_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
