/*
 * Texts of compiled versions: written before the first of their sites, once for each file, in parts, and within a
 * limit of memory.
 */
#include "harness.h"
#include "vm_trace/streams/code/code_text.h"
#include "traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rb_iseq_struct foo;
static const char SMALL[] = "fn foo:\n  v1 = GuardType v0, Fixnum\n";

static void
start(const char *kept)
{
    foo = fake_iseq("foo", "app.rb");
    rb_vm_trace_code_text_keep(kept);
    start_traced(.compiles = true, .exit_rate = 1);
    fake_push(&main_thread, &foo, 1);
}

static struct rb_vm_trace_code *
make_code(uint32_t version, const char *text, size_t bytes)
{
    struct rb_vm_trace_code *code = rb_vm_trace_code_new(&foo, version, text, bytes);
    assert_non_null(code);
    return code;
}

/* A site of this line of a text (1 or 2). Takes the reference to the text. */
static uint32_t code_line = 2;

static struct rb_vm_trace_site *
site_of_version(uint32_t version, struct rb_vm_trace_code *code, const char *reason)
{
    struct rb_vm_trace_site *site = rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
        .kind = RB_VM_TRACE_SIDE_EXIT, .reason = reason, .reason_len = strlen(reason), .insn = "opt_plus", .insn_len = 8,
        .unit = &foo, .frame = &foo, .pc = fake_pc(&foo, 1), .version = version, .code = code, .code_line = code_line
    });
    assert_non_null(site);
    rb_vm_trace_code_release(code);
    return site;
}

static struct rb_vm_trace_site *
site_of(struct rb_vm_trace_code *code, const char *reason)
{
    return site_of_version(1, code, reason);
}

static const struct trace_event *
event_at(const struct trace *trace, const char *name, size_t index)
{
    for (size_t i = 0; i < trace->event_count; i++) {
        if (event_is(&trace->events[i], "trace", name) && index-- == 0) return &trace->events[i];
    }
    fail_msg("there are fewer events trace %s", name);
    return NULL;
}

static void
a_text_comes_before_its_sites_and_is_there_once(void **state)
{
    (void)state;
    start("hir");
    struct rb_vm_trace_code *code = make_code(1, SMALL, sizeof(SMALL) - 1);
    rb_vm_trace_code_text_retain(code);
    take_exit(site_of(code, "a"), &main_thread);
    take_exit(site_of(code, "b"), &main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "trace", "code"), 1);
    assert_int_equal(trace_count(trace, "trace", "site"), 2);
    const struct trace_event *text = event_at(trace, "code", 0);
    assert_true(text < event_at(trace, "site", 0));
    assert_string_equal(trace_text(text, "text"), SMALL);
    assert_string_equal(trace_text(text, "kind"), "hir");
    assert_int_equal(trace_argument(text, "bytes")->number, sizeof(SMALL) - 1);
    assert_int_equal(trace_argument(event_at(trace, "site", 0), "code_line")->number, 2);
    trace_free(trace);
    assert_int_equal(rb_vm_trace_code_text_bytes(), 0);
}

/* With one site that is never hit: how many texts the trace has. */
static size_t
texts_of_no_exit(const char *kept)
{
    start(kept);
    site_of(make_code(1, SMALL, sizeof(SMALL) - 1), "never");
    struct trace *trace = finish_traced();
    size_t count = trace_count(trace, "trace", "code");
    trace_free(trace);
    return count;
}

static void
a_text_without_exits_is_not_there(void **state)
{
    (void)state;
    assert_int_equal(texts_of_no_exit("hir"), 0);
}

static void
all_texts_are_there_if_wanted(void **state)
{
    (void)state;
    assert_int_equal(texts_of_no_exit("hir,all"), 1);
}

static void
none_is_kept_without_the_flag(void **state)
{
    (void)state;
    start(NULL);
    assert_null(rb_vm_trace_code_new(&foo, 1, SMALL, sizeof(SMALL) - 1));
    trace_free(finish_traced());
}

/* The parts of a text of 100 lines, or of one line. */
static void
assert_parts(bool lines)
{
    enum { LINE = 1000, LINES = 100 };
    static char text[LINE * LINES], again[sizeof(text)];
    memset(text, 'x', sizeof(text));
    for (size_t line = 1; line <= LINES && lines; line++) text[line * LINE - 1] = '\n';
    code_line = lines ? 2 : 1;
    start("hir");
    take_exit(site_of(make_code(1, text, sizeof(text)), "a"), &main_thread);
    struct trace *trace = finish_traced();
    size_t at = 0, parts = trace_count(trace, "trace", "code");
    assert_int_equal(parts, 4);
    for (size_t i = 0; i < parts; i++) {
        const struct trace_event *part = event_at(trace, "code", i);
        const struct trace_argument *offset = trace_argument(part, "offset");
        size_t bytes = strlen(trace_text(part, "text"));
        assert_int_equal(offset ? offset->number : 0, at);
        assert_true(at + bytes <= sizeof(again));
        memcpy(again + at, trace_text(part, "text"), bytes);
        at += bytes;
        if (lines) assert_int_equal(again[at - 1], '\n');
    }
    assert_int_equal(at, sizeof(text));
    assert_memory_equal(text, again, sizeof(text));
    trace_free(trace);
}

static void
parts_of_a_long_text_end_with_a_line(void **state)
{
    (void)state;
    assert_parts(true);
}

static void
a_line_longer_than_a_record_is_cut(void **state)
{
    (void)state;
    assert_parts(false);
}

/* Of a text that has no room, the size is known. */
static void
memory_has_a_limit(void **state)
{
    (void)state;
    start("hir");
    rb_vm_trace_code_text_most_bytes = 2 * sizeof(SMALL);
    take_exit(site_of(make_code(1, SMALL, sizeof(SMALL) - 1), "a"), &main_thread);
    take_exit(site_of(make_code(2, SMALL, sizeof(SMALL) - 1), "b"), &main_thread);
    take_exit(site_of(make_code(3, SMALL, sizeof(SMALL) - 1), "c"), &main_thread);
    assert_int_equal(rb_vm_trace_code_text_bytes(), 2 * (sizeof(SMALL) - 1));
    struct trace *trace = finish_traced();
    rb_vm_trace_code_text_most_bytes = VM_TRACE_CODE_TEXT_BYTES;
    assert_int_equal(trace_count(trace, "trace", "code"), 3);
    size_t kept = 0;
    for (size_t i = 0; i < 3; i++) {
        const struct trace_event *text = event_at(trace, "code", i);
        kept += trace_argument(text, "text") != NULL;
        assert_int_equal(trace_argument(text, "bytes")->number, sizeof(SMALL) - 1);
    }
    assert_int_equal(kept, 2);
    trace_free(trace);
}

/* Of versions 1 to 3 only the first exits. The second is what that led to. */
static void
make_three_versions(void)
{
    take_exit(site_of(make_code(1, SMALL, sizeof(SMALL) - 1), "a"), &main_thread);
    for (uint32_t version = 2; version <= 3; version++)
        site_of_version(version, make_code(version, SMALL, sizeof(SMALL) - 1), "never");
}

static void
assert_two_versions(const struct trace *trace)
{
    assert_int_equal(trace_count(trace, "trace", "code"), 2);
    for (size_t i = 0; i < 2; i++) assert_int_equal(trace_argument(event_at(trace, "code", i), "version")->number, i + 1);
}

static void
the_version_after_one_that_exits_is_there(void **state)
{
    (void)state;
    start("hir");
    make_three_versions();
    struct trace *trace = finish_traced();
    assert_two_versions(trace);
    trace_free(trace);
}

static void
dead_code_leaves_its_text(void **state)
{
    (void)state;
    start("hir");
    make_three_versions();
    rb_vm_trace_code_free(&foo);
    assert_int_equal(rb_vm_trace_code_text_bytes(), 0);
    struct trace *trace = finish_traced();
    assert_two_versions(trace);
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(a_text_comes_before_its_sites_and_is_there_once),
        isolated_test(a_text_without_exits_is_not_there),
        isolated_test(all_texts_are_there_if_wanted),
        isolated_test(none_is_kept_without_the_flag),
        isolated_test(parts_of_a_long_text_end_with_a_line),
        isolated_test(a_line_longer_than_a_record_is_cut),
        isolated_test(memory_has_a_limit),
        isolated_test(the_version_after_one_that_exits_is_there),
        isolated_test(dead_code_leaves_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
