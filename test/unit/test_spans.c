/*
 * Durations: compilations with their phases, and invalidations.
 */
#include "harness.h"
#include "traced.h"

#include <stdlib.h>
#include <string.h>

static struct rb_iseq_struct foo;
static struct fake_method foo_method = { "Foo", "foo" };

static bool
begin(enum rb_vm_trace_span span, const char *name)
{
    return rb_vm_trace_span_begin(span, name, strlen(name));
}

static void
end(enum rb_vm_trace_span span, const char *name)
{
    rb_vm_trace_span_end(span, name, strlen(name));
}

static void
start_compiling(void)
{
    foo = fake_iseq("foo", "app.rb");
    start_traced(.compiles = true, .invalidations = true);
}

static void
compilation_encloses_its_phases_and_says_what_was_made(void **state)
{
    (void)state;
    start_compiling();
    fake_push_method(&main_thread, &foo, &foo_method, 1);
    assert_true(begin(RB_VM_TRACE_COMPILE, "Foo#foo@app.rb:1"));
    assert_true(begin(RB_VM_TRACE_PHASE, "build_hir"));
    end(RB_VM_TRACE_PHASE, "build_hir");
    assert_true(begin(RB_VM_TRACE_PHASE, "optimize"));
    assert_true(begin(RB_VM_TRACE_PHASE, "fold_constants"));
    end(RB_VM_TRACE_PHASE, "fold_constants");
    end(RB_VM_TRACE_PHASE, "optimize");
    rb_vm_trace_compile_end("Foo#foo@app.rb:1", 16, &foo, 2, 5000000000);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->open_spans, 0);
    static const struct { enum trace_event_type type; const char *name; } expected[] = {
        { EVENT_BEGIN, "Foo#foo@app.rb:1" }, { EVENT_BEGIN, "build_hir" }, { EVENT_END, "build_hir" }, { EVENT_BEGIN, "optimize" },
        { EVENT_BEGIN, "fold_constants" }, { EVENT_END, "fold_constants" }, { EVENT_END, "optimize" }, { EVENT_END, "Foo#foo@app.rb:1" }
    };
    assert_int_equal(trace_count(trace, "compile", NULL), 8);
    for (size_t i = 0; i < 8; i++) {
        const struct trace_event *event = trace_event(trace, "compile", NULL, i);
        assert_int_equal(event->type, expected[i].type);
        assert_string_equal(event->name, expected[i].name);
        if (i > 0) assert_true(event->ns >= trace_event(trace, "compile", NULL, i - 1)->ns);
        if (i < 7) assert_int_equal(event->argument_count, 0);
    }
    const struct trace_event *last = trace_event(trace, "compile", NULL, 7);
    assert_int_equal(last->argument_count, 3);
    assert_string_equal(trace_text(last, "iseq"), "Foo#foo (app.rb:1)");
    assert_int_equal(trace_number(last, "version"), 2);
    assert_true(trace_number(last, "code_bytes") == 5000000000);
    trace_free(trace);
}

static void
failed_compilation_has_version_0(void **state)
{
    (void)state;
    start_compiling();
    assert_true(begin(RB_VM_TRACE_COMPILE, "foo@app.rb:1"));
    rb_vm_trace_compile_end("foo@app.rb:1", 12, &foo, 0, 0);
    struct trace *trace = finish_traced();
    const struct trace_event *last = trace_event(trace, "compile", NULL, 1);
    assert_string_equal(trace_text(last, "iseq"), "foo (app.rb:1)"); /* its own method does not run: no owner */
    assert_int_equal(trace_number(last, "version"), 0);
    assert_int_equal(trace_number(last, "code_bytes"), 0);
    trace_free(trace);
}

static void
name_of_a_phase_is_one_string_however_often_it_recurs(void **state)
{
    (void)state;
    start_compiling();
    begin(RB_VM_TRACE_PHASE, "optimize");
    end(RB_VM_TRACE_PHASE, "optimize");
    unsigned strings = main_ractor.vm_trace->writer.next_string;
    for (int i = 0; i < 1000; i++) {
        char name[] = "optimize"; /* the caller's text may be gone afterwards */
        assert_true(begin(RB_VM_TRACE_PHASE, name));
        end(RB_VM_TRACE_PHASE, name);
        memset(name, 'x', sizeof(name) - 1);
    }
    assert_int_equal(main_ractor.vm_trace->writer.next_string, strings);
    assert_int_equal(rb_vm_trace_string_count(), 1);
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "compile", "optimize"), 2002);
    trace_free(trace);
}

static void
invalidation_has_its_backtrace_at_its_begin(void **state)
{
    (void)state;
    start_compiling();
    for (unsigned line = 1; line <= 12; line++) fake_push_method(&main_thread, &foo, &foo_method, line);
    assert_true(begin(RB_VM_TRACE_INVALIDATION, "MethodRedefined(Integer@0x7f00, +)"));
    end(RB_VM_TRACE_INVALIDATION, "MethodRedefined(Integer@0x7f00, +)");
    struct trace *trace = finish_traced();
    const struct trace_event *event = trace_event(trace, "invalidation", "MethodRedefined(Integer@0x7f00, +)", 0);
    assert_int_equal(event->type, EVENT_BEGIN);
    assert_int_equal(event->argument_count, 11);
    assert_string_equal(trace_text(event, "0"), "Foo#foo (app.rb:12)");
    assert_string_equal(trace_text(event, "10+"), "Foo#foo (app.rb:2) < Foo#foo (app.rb:1)");
    event = trace_event(trace, "invalidation", NULL, 1);
    assert_int_equal(event->type, EVENT_END);
    assert_int_equal(event->argument_count, 0);
    trace_free(trace);
}

static void
what_was_not_asked_for_is_not_recorded(void **state)
{
    (void)state;
    foo = fake_iseq("foo", "app.rb");
    start_traced(.compiles = true);
    assert_false(begin(RB_VM_TRACE_INVALIDATION, "why"));
    assert_true(begin(RB_VM_TRACE_COMPILE, "foo"));
    end(RB_VM_TRACE_COMPILE, "foo");
    rb_vm_trace_shutdown();
    assert_false(begin(RB_VM_TRACE_COMPILE, "foo"));
    struct trace *trace = trace_read(traced_path);
    assert_int_equal(trace_count(trace, "invalidation", NULL), 0);
    assert_int_equal(trace_count(trace, "compile", NULL), 2);
    trace_free(trace);
    free_traced();
}

static void
nothing_is_recorded_before_a_trace_or_without_ruby(void **state)
{
    (void)state;
    foo = fake_iseq("foo", "app.rb");
    assert_false(begin(RB_VM_TRACE_COMPILE, "early"));
    rb_vm_trace_compile_end("early", 5, &foo, 1, 1);
    start_compiling();
    fake_current(NULL); /* a native thread that runs no Ruby */
    assert_false(begin(RB_VM_TRACE_COMPILE, "nobody"));
    rb_vm_trace_compile_end("nobody", 6, &foo, 1, 1);
    fake_current(&main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "compile", NULL), 0);
    trace_free(trace);
}

/* Begin and end must have one name after the cut, and half a character is none. */
static void
long_names_are_cut_between_characters(void **state)
{
    (void)state;
    start_compiling();
    static char name[40000];
    for (size_t i = 0; i < sizeof(name); i++) name[i] = "\xE2\x82\xAC"[i % 3];
    size_t bytes = sizeof(name) / 3 * 3;
    assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_PHASE, name, bytes));
    assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_INVALIDATION, name, bytes));
    rb_vm_trace_span_end(RB_VM_TRACE_INVALIDATION, name, bytes);
    rb_vm_trace_span_end(RB_VM_TRACE_PHASE, name, bytes);
    assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_COMPILE, name, bytes));
    rb_vm_trace_compile_end(name, bytes, &foo, 1, 1);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->open_spans, 0);
    assert_true(strlen(trace_event(trace, "compile", NULL, 0)->name) > 32000);
    assert_true(strlen(trace_event(trace, "invalidation", NULL, 0)->name) > 32000);
    trace_free(trace);
}

static void
long_label_of_an_iseq_is_cut_between_characters(void **state)
{
    (void)state;
    start_compiling();
    static char name[3010];
    for (size_t shift = 0; shift < 3; shift++) {
        memset(name, 'x', shift);
        for (size_t i = 0; i < 3000; i++) name[shift + i] = "\xE2\x82\xAC"[i % 3];
        name[shift + 3000] = '\0';
        foo.name = name;
        assert_true(begin(RB_VM_TRACE_COMPILE, "foo@app.rb:1"));
        rb_vm_trace_compile_end("foo@app.rb:1", 12, &foo, 1, 1);
    }
    struct trace *trace = finish_traced(); /* the validator takes only UTF-8 */
    for (size_t i = 0; i < 3; i++) {
        const char *label = trace_text(trace_event(trace, "compile", NULL, 2 * i + 1), "iseq");
        assert_true(strlen(label) > 1000);
        assert_memory_equal(label, &"xx\xE2\x82\xAC"[2 - i], 3 + i);
    }
    trace_free(trace);
}

static void
durations_nest_on_each_thread_alone(void **state)
{
    (void)state;
    start_compiling();
    struct rb_execution_context_struct worker = { .ractor = &main_ractor, .tid = 1002, .thread_name = "worker", .name_id = 2 };
    assert_true(begin(RB_VM_TRACE_COMPILE, "a"));
    fake_current(&worker);
    assert_true(begin(RB_VM_TRACE_COMPILE, "b"));
    fake_current(&main_thread);
    end(RB_VM_TRACE_COMPILE, "a");
    fake_current(&worker);
    end(RB_VM_TRACE_COMPILE, "b");
    fake_current(&main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->open_spans, 0);
    assert_int_equal(trace_event(trace, "compile", "b", 0)->tid, 1002);
    assert_int_equal(trace_event(trace, "compile", "b", 1)->tid, 1002);
    trace_free(trace);
}

static void
duration_goes_over_the_end_of_a_chunk(void **state)
{
    (void)state;
    rb_vm_trace_writer_run_chunks = 1;
    start_compiling();
    assert_true(begin(RB_VM_TRACE_COMPILE, "outer"));
    static char filler[20000];
    memset(filler, 'f', sizeof(filler));
    for (int i = 0; i < 100; i++) {
        filler[0] = (char)('a' + i % 26);
        assert_true(begin(RB_VM_TRACE_PHASE, "phase"));
        assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_COMPILE, filler, sizeof(filler)));
        rb_vm_trace_compile_end(filler, sizeof(filler), &foo, 1, 1);
        end(RB_VM_TRACE_PHASE, "phase");
    }
    end(RB_VM_TRACE_COMPILE, "outer");
    struct trace *trace = finish_traced();
    assert_true(trace->chunk_count > 2);
    assert_int_equal(trace->open_spans, 0);
    assert_int_equal(trace_count(trace, "compile", "phase"), 200);
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(compilation_encloses_its_phases_and_says_what_was_made),
        isolated_test(failed_compilation_has_version_0),
        isolated_test(name_of_a_phase_is_one_string_however_often_it_recurs),
        isolated_test(invalidation_has_its_backtrace_at_its_begin),
        isolated_test(what_was_not_asked_for_is_not_recorded),
        isolated_test(nothing_is_recorded_before_a_trace_or_without_ruby),
        isolated_test(long_names_are_cut_between_characters),
        isolated_test(long_label_of_an_iseq_is_cut_between_characters),
        isolated_test(durations_nest_on_each_thread_alone),
        isolated_test(duration_goes_over_the_end_of_a_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
