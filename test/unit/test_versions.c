/*
 * Compiled versions: what joins an exit, the invalidation of a version, and the next compilation; and counters.
 */
#include "harness.h"
#include "vm_trace/streams/code/versions.h"
#include "traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rb_iseq_struct foo, bar;
static struct fake_method foo_method = { "Foo", "foo" }, bar_method = { "Bar", "bar" };

static void
start_all(uint64_t exit_rate)
{
    foo = fake_iseq("foo", "app.rb");
    bar = fake_iseq("bar", "app.rb");
    start_traced(.compiles = true, .invalidations = true, .exit_rate = exit_rate);
    fake_push_method(&main_thread, &foo, &foo_method, 1);
}

static void
compile(const struct rb_iseq_struct *iseq, uint32_t version)
{
    bool wanted = rb_vm_trace_compile_begin("foo@app.rb:1", 12, iseq);
    if (!wanted) return;
    rb_vm_trace_compiled("foo@app.rb:1", 12, &(struct rb_vm_trace_compiled){
        .iseq = iseq, .version = version, .counted = true, .code_bytes = 1000, .exit_bytes = 300, .exits = 4
    });
}

/* What the JIT does when a site's exit is the last one needed. */
static void
exit_that_invalidates(const struct rb_vm_trace_site *site, const struct rb_iseq_struct *unit, uint32_t version, bool sampled)
{
    struct rb_vm_trace_ractor *ractor_state = main_ractor.vm_trace;
    ++*(uint64_t *)((char *)ractor_state + rb_vm_trace_hits_offset(site));
    uint64_t start_ns = rb_vm_trace_recompile_begin(ractor_state, site, sampled);
    assert_true(rb_vm_trace_version_begin(unit, version, NULL, 0, true));
    rb_vm_trace_version_end();
    if (sampled) rb_vm_trace_recompile_exit(ractor_state, site, &main_thread, start_ns, RB_VM_TRACE_INVALIDATED);
    else rb_vm_trace_recompile_end(ractor_state);
}

static const struct trace_event *
of_type(const struct trace *trace, enum trace_event_type type, size_t nth)
{
    for (size_t i = 0; i < trace->event_count; i++) {
        if (trace->events[i].type == type && nth-- == 0) return &trace->events[i];
    }
    fail_msg("no event of type %d", type);
    return NULL;
}

static void
one_number_joins_exit_invalidation_and_compilation(void **state)
{
    (void)state;
    start_all(1);
    compile(&foo, 1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_RECOMPILE_EXIT, "NoProfileSend", &foo, 2);
    exit_that_invalidates(site, &foo, 1, true);
    compile(&foo, 2);
    struct trace *trace = finish_traced();

    const struct trace_event *exit = trace_event(trace, "recompile_exit", "NoProfileSend", 0);
    const struct trace_event *invalidation = trace_event(trace, "invalidation", "NoProfileSend", 0);
    const struct trace_event *compilation = trace_event(trace, "compile", NULL, 2);
    const struct trace_event *flows[] = {
        of_type(trace, EVENT_FLOW_BEGIN, 0), of_type(trace, EVENT_FLOW_STEP, 0), of_type(trace, EVENT_FLOW_END, 0)
    };
    assert_true(flows[0]->ns == exit->ns && flows[1]->ns == invalidation->ns && flows[2]->ns == compilation->ns);
    assert_true(exit->ns < invalidation->ns && invalidation->ns < compilation->ns);
    assert_true(flows[0]->id == flows[1]->id && flows[1]->id == flows[2]->id);
    assert_true(flows[0]->id >> 32 == exit->pid);
    assert_string_equal(trace_text(invalidation, "iseq"), "Foo#foo (app.rb:1)");
    assert_int_equal(trace_number(invalidation, "version"), 1);
    assert_string_equal(trace_text(invalidation, "0"), "Foo#foo (app.rb:1)");

    const struct trace_event *reprofile[] = { of_type(trace, EVENT_ASYNC_BEGIN, 0), of_type(trace, EVENT_ASYNC_END, 0) };
    assert_string_equal(reprofile[0]->category, "reprofile");
    assert_string_equal(reprofile[0]->name, "Foo#foo (app.rb:1)");
    assert_string_equal(trace_text(reprofile[0], "reason"), "NoProfileSend");
    assert_int_equal(trace_number(reprofile[0], "version"), 1);
    assert_true(reprofile[0]->ns == invalidation->ns && reprofile[1]->ns == compilation->ns);
    assert_true(reprofile[0]->id == reprofile[1]->id);
    assert_int_equal(trace->open_asyncs + trace->open_flows, 0);
    assert_string_equal(trace_text(trace_event(trace, "trace", "site", 0), "iseq"), "Foo#foo (app.rb:1)");
    trace_free(trace);
}

/* In its trace it has not begun. */
static void
what_the_parent_profiles_again_has_no_end_in_a_forked_child(void **state)
{
    (void)state;
    start_all(1);
    compile(&foo, 1);
    exit_that_invalidates(make_site(RB_VM_TRACE_RECOMPILE_EXIT, "NoProfileSend", &foo, 2), &foo, 1, true);
    rb_vm_trace_version_histories_after_fork();
    compile(&foo, 2);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->open_asyncs, 1);
    assert_int_equal(trace->open_flows, 1);
    trace_free(trace);
}

static void
flow_of_an_exit_that_is_not_recorded_begins_at_the_invalidation(void **state)
{
    (void)state;
    start_all(10);
    compile(&foo, 1);
    exit_that_invalidates(make_site(RB_VM_TRACE_RECOMPILE_EXIT, "NoProfileSend", &foo, 2), &foo, 1, false);
    assert_false(rb_vm_trace_span_begin(RB_VM_TRACE_INVALIDATION, "x", 1) && versions_of(main_ractor.vm_trace)->exiting.site);
    rb_vm_trace_span_end(RB_VM_TRACE_INVALIDATION, "x", 1);
    struct trace *trace = finish_traced();
    assert_int_equal(of_type(trace, EVENT_FLOW_BEGIN, 0)->ns, trace_event(trace, "invalidation", "NoProfileSend", 0)->ns);
    assert_int_equal(trace->open_flows, 1);  /* not compiled again, */
    assert_int_equal(trace->open_asyncs, 1); /* and still profiled */
    trace_free(trace);
}

/* Two sampled exits of bar, inlined into foo, with so many frames. */
static struct trace *
exits_of_an_inlined_frame(unsigned depth)
{
    start_all(2);
    compile(&foo, 1);
    fake_pop(&main_thread, 1);
    for (unsigned line = 1; line <= depth; line++) fake_push_method(&main_thread, &bar, &bar_method, line);
    struct rb_vm_trace_site *site = rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
        .kind = RB_VM_TRACE_RECOMPILE_EXIT, .reason = "NoProfileSend", .reason_len = 13, .insn = "opt_plus", .insn_len = 8,
        .unit = &foo, .frame = &bar, .pc = fake_pc(&bar, depth), .version = 1
    });
    for (int i = 0; i < 4; i++) take_recompile_exit(site, &main_thread, RB_VM_TRACE_PROFILING);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_text(trace_event(trace, "trace", "site", 0), "iseq"), "Foo#foo (app.rb:1)");
    assert_int_equal(trace_event(trace, "recompile_exit", NULL, 1)->argument_count, FXT_ARGS_MAX);
    return trace;
}

static void
exit_of_an_inlined_frame_names_the_iseq(void **state)
{
    (void)state;
    struct trace *trace = exits_of_an_inlined_frame(10);
    for (size_t i = 0; i < 2; i++) assert_string_equal(trace_text(trace_event(trace, "recompile_exit", NULL, i), "iseq"), "Foo#foo (app.rb:1)");
    trace_free(trace);
}

static void
exit_with_as_many_arguments_as_there_can_be_has_fewer_frames_of_their_own(void **state)
{
    (void)state;
    struct trace *trace = exits_of_an_inlined_frame(11);
    for (size_t i = 0; i < 2; i++) {
        const struct trace_event *event = trace_event(trace, "recompile_exit", NULL, i);
        assert_string_equal(trace_text(event, "iseq"), "Foo#foo (app.rb:1)");
        assert_non_null(trace_argument(event, "8"));
        assert_null(trace_argument(event, "9"));
        assert_string_equal(trace_text(event, "10+"), "Bar#bar (app.rb:2) < Bar#bar (app.rb:1)");
    }
    trace_free(trace);
}

static void
version_is_a_part_of_the_invalidation_that_is_open(void **state)
{
    (void)state;
    start_all(0);
    compile(&foo, 1);
    compile(&bar, 1);
    assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_INVALIDATION, "CME is invalidated", 18));
    assert_true(rb_vm_trace_version_begin(&foo, 1, NULL, 0, true));
    rb_vm_trace_version_end();
    assert_true(rb_vm_trace_version_begin(&bar, 1, NULL, 0, false));
    rb_vm_trace_version_end();
    rb_vm_trace_span_end(RB_VM_TRACE_INVALIDATION, "CME is invalidated", 18);
    assert_true(rb_vm_trace_version_begin(&foo, 2, "EP is escaped", 13, false));
    rb_vm_trace_version_end();
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "invalidation", "CME is invalidated"), 6);
    const struct trace_event *of_foo = trace_event(trace, "invalidation", NULL, 1), *of_bar = trace_event(trace, "invalidation", NULL, 3);
    assert_string_equal(trace_text(of_foo, "iseq"), "Foo#foo (app.rb:1)");
    assert_null(trace_argument(of_foo, "0")); /* it is at the outer one */
    assert_string_equal(trace_text(of_bar, "iseq"), "bar (app.rb:1)");
    const struct trace_event *alone = trace_event(trace, "invalidation", "EP is escaped", 0);
    assert_string_equal(trace_text(alone, "0"), "Foo#foo (app.rb:1)");
    assert_int_equal(trace->open_asyncs, 1); /* bar has no further version: nothing is waited for */
    assert_int_equal(trace->open_flows, 1);
    trace_free(trace);
}

static void
an_iseq_that_is_freed_ends_its_span(void **state)
{
    (void)state;
    start_all(0);
    compile(&bar, 1);
    assert_true(rb_vm_trace_version_begin(&bar, 1, "EP is escaped", 13, true));
    rb_vm_trace_version_end();
    assert_int_equal(rb_vm_trace_version_history_count(), 1);
    rb_vm_trace_iseq_free(&bar);
    assert_int_equal(rb_vm_trace_version_history_count(), 0);
    compile(&bar, 1); /* another one at its address */
    struct trace *trace = finish_traced();
    assert_int_equal(trace->open_asyncs, 0);
    assert_int_equal(trace->open_flows, 1); /* it led to no compilation */
    trace_free(trace);
}

static void
compilation_says_what_it_made_and_why_it_failed(void **state)
{
    (void)state;
    start_all(0);
    assert_true(rb_vm_trace_compile_begin("foo@app.rb:1", 12, &foo));
    rb_vm_trace_inlined(&bar, &bar_method);
    rb_vm_trace_inlined(&foo, NULL);
    rb_vm_trace_inlined(&bar, &bar_method);
    rb_vm_trace_compiled("foo@app.rb:1", 12, &(struct rb_vm_trace_compiled){
        .iseq = &foo, .version = 1, .counted = true, .code_bytes = 5000000000, .exit_bytes = 7, .exits = 2
    });
    assert_true(rb_vm_trace_compile_begin("foo@app.rb:1", 12, &foo));
    rb_vm_trace_compiled("foo@app.rb:1", 12, &(struct rb_vm_trace_compiled){
        .iseq = &foo, .counted = true, .error = "OutOfMemory", .error_len = 11
    });
    struct trace *trace = finish_traced();
    const struct trace_event *made = trace_event(trace, "compile", NULL, 1), *failed = trace_event(trace, "compile", NULL, 3);
    assert_true(trace_number(made, "code_bytes") == 5000000000);
    assert_int_equal(trace_number(made, "exit_bytes"), 7);
    assert_int_equal(trace_number(made, "exits"), 2);
    assert_string_equal(trace_text(made, "inlined"), "Bar#bar (app.rb:1) x2, foo (app.rb:1)");
    assert_null(trace_argument(made, "error"));
    assert_string_equal(trace_text(failed, "error"), "OutOfMemory");
    assert_null(trace_argument(failed, "inlined"));
    assert_int_equal(trace_number(failed, "version"), 0);
    trace_free(trace);
}

static void
counters_say_what_there_is_so_far(void **state)
{
    (void)state;
    start_all(0);
    compile(&foo, 1);
    assert_true(rb_vm_trace_version_begin(&foo, 1, "EP is escaped", 13, true));
    rb_vm_trace_version_end();
    compile(&foo, 2);
    compile(&bar, 0);
    struct trace *trace = finish_traced();
    static const uint64_t expected[][3] = { { 1000, 1, 0 }, { 1000, 1, 1 }, { 2000, 2, 1 }, { 3000, 2, 1 } };
    assert_int_equal(trace_count(trace, "counter", "code"), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(trace_number(trace_event(trace, "counter", "code", i), "bytes"), expected[i][0]);
        assert_int_equal(trace_number(trace_event(trace, "counter", "versions", i), "compiled"), expected[i][1]);
        assert_int_equal(trace_number(trace_event(trace, "counter", "versions", i), "invalidated"), expected[i][2]);
    }
    trace_free(trace);
}

static void
each_chunk_has_a_sample_of_exits_a_second(void **state)
{
    (void)state;
    rb_vm_trace_writer_run_chunks = 1;
    skip_without_ticks();
    start_all(1);
    stop_clock(); /* a quiet machine fills a chunk in less than the millisecond that a sample needs */
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "FixnumAddOverflow", &foo, 2);
    for (int i = 0; i < 100000; i++) {
        pass(100);
        take_exit(site, &main_thread);
    }
    struct trace *trace = finish_traced();
    assert_true(trace->chunk_count > 3);
    size_t samples = trace_count(trace, "counter", "exits");
    assert_true(samples > 0 && samples <= trace->chunk_count); /* one may come at the end */
    for (size_t i = 0; i < samples; i++) {
        const struct trace_event *sample = trace_event(trace, "counter", "exits", i);
        assert_true(trace_number(sample, "per_second") > 0);
        assert_int_equal(sample->id, main_ractor.vm_trace ? 0 : sample->id);
    }
    assert_summary(trace, 100000, 100000, 0);
    trace_free(trace);
}

static void
pairs_are_not_parted_by_the_end_of_a_chunk(void **state)
{
    (void)state;
    rb_vm_trace_writer_run_chunks = 1;
    start_all(1);
    compile(&foo, 1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_RECOMPILE_EXIT, "NoProfileSend", &foo, 2);
    for (uint32_t version = 1; version < 10000; version++) {
        exit_that_invalidates(site, &foo, version, true);
        compile(&foo, version + 1);
    }
    struct trace *trace = finish_traced(); /* the validator looks at each flow */
    assert_true(trace->chunk_count > 3);
    assert_int_equal(trace->open_flows + trace->open_asyncs, 0);
    assert_summary(trace, 9999, 9999, 0);
    trace_free(trace);
}

/* More than the table has room for at first: each keeps its own name and its own number. */
static void
thousands_of_iseqs_are_told_apart(void **state)
{
    (void)state;
    enum { ISEQS = 3000 };
    static struct rb_iseq_struct iseqs[ISEQS];
    static char names[ISEQS][16];
    start_all(1);
    for (unsigned i = 0; i < ISEQS; i++) {
        snprintf(names[i], sizeof(names[i]), "m%u", i);
        iseqs[i] = fake_iseq(names[i], "app.rb");
        compile(&iseqs[i], 1);
    }
    assert_int_equal(rb_vm_trace_version_history_count(), ISEQS);
    for (unsigned i = 0; i < ISEQS; i++) {
        assert_true(rb_vm_trace_version_begin(&iseqs[i], 1, "redefined", 9, true));
        rb_vm_trace_version_end();
    }
    for (unsigned i = 0; i < ISEQS; i += 2) rb_vm_trace_iseq_free(&iseqs[i]);
    assert_int_equal(rb_vm_trace_version_history_count(), ISEQS / 2);
    struct trace *trace = finish_traced();
    for (unsigned i = 0; i < ISEQS; i += 500) { /* a begin and an end of each */
        char label[64];
        snprintf(label, sizeof(label), "m%u (app.rb:", i);
        assert_non_null(strstr(trace_text(trace_event(trace, "invalidation", "redefined", 2 * i), "iseq"), label));
    }
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(one_number_joins_exit_invalidation_and_compilation),
        isolated_test(what_the_parent_profiles_again_has_no_end_in_a_forked_child),
        isolated_test(flow_of_an_exit_that_is_not_recorded_begins_at_the_invalidation),
        isolated_test(exit_of_an_inlined_frame_names_the_iseq),
        isolated_test(exit_with_as_many_arguments_as_there_can_be_has_fewer_frames_of_their_own),
        isolated_test(version_is_a_part_of_the_invalidation_that_is_open),
        isolated_test(an_iseq_that_is_freed_ends_its_span),
        isolated_test(compilation_says_what_it_made_and_why_it_failed),
        isolated_test(counters_say_what_there_is_so_far),
        isolated_test(each_chunk_has_a_sample_of_exits_a_second),
        isolated_test(pairs_are_not_parted_by_the_end_of_a_chunk),
        isolated_test(thousands_of_iseqs_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
