/*
 * Much and long: very many frames and reasons, very long names, and such as are no text at all.
 */
#define _GNU_SOURCE 1
#include "harness.h"
#include "traced.h"
#include "vm_trace/schema/fxt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20, LINES = 1000 };

/* Each chunk of the file that the traced program left, on its own: a trace of all would take a GB. */
static void
each_chunk(void (*look)(const struct trace *chunk))
{
    rb_vm_trace_shutdown();
    free_traced();
    size_t bytes;
    uint8_t *data = read_bytes(traced_path, &bytes);
    for (size_t at = 0; at < bytes; at += CHUNK) {
        size_t first = at == 0 ? FXT_WORD_BYTES : 0;
        size_t end = at + CHUNK < bytes ? at + CHUNK : bytes;
        struct trace *chunk = trace_decode(data + at + first, end - at - first, TRACE_CHUNK);
        if (chunk->fault[0]) fail_msg("in the chunk at %zu: %s", at, chunk->fault);
        look(chunk);
        trace_free(chunk);
    }
    free(data);
    free(traced_path);
}

/* --- many -------------------------------------------------------------------------------------------- */

static void
forty_thousand_frames_and_reasons_have_their_names(void **state)
{
    (void)state;
    if (under_valgrind()) skip_because("under valgrind it takes minutes");
    enum { COUNT = 40000 };
    start_traced(.exit_rate = 1);
    static struct rb_iseq_struct iseqs[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        char *name, reason[32];
        if (asprintf(&name, "method_%u", i) < 0) abort();
        iseqs[i] = fake_iseq(name, "app.rb");
        snprintf(reason, sizeof(reason), "Reason(%u)", i);
        struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, reason, &iseqs[i], 7);
        fake_push(&main_thread, &iseqs[i], 7);
        take_exit(site, &main_thread);
        fake_pop(&main_thread, 1);
    }
    struct trace *trace = finish_traced();
    assert_summary(trace, COUNT, COUNT, 0);
    unsigned exits = 0, sites = 0;
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        char reason[32], label[64];
        bool site = event_is(event, "trace", "site");
        if (!site && !event_is(event, "side_exit", NULL)) continue;
        unsigned n = site ? sites++ : exits++;
        snprintf(reason, sizeof(reason), "Reason(%u)", n);
        snprintf(label, sizeof(label), "method_%u (app.rb:7)", n);
        assert_string_equal(site ? trace_text(event, "reason") : event->name, reason);
        assert_string_equal(trace_text(event, site ? "location" : "0"), label);
    }
    assert_int_equal(exits, COUNT);
    assert_int_equal(sites, COUNT);
    trace_free(trace);
}

static unsigned exits_seen;

static void
look_at_frames(const struct trace *chunk)
{
    for (size_t i = 0; i < chunk->event_count; i++) {
        if (!event_is(&chunk->events[i], "side_exit", "r")) continue;
        char label[64];
        snprintf(label, sizeof(label), "m%u (a.rb:%u)", exits_seen / LINES, exits_seen % LINES + 1);
        assert_string_equal(trace_text(&chunk->events[i], "0"), label);
        exits_seen++;
    }
}

static void
million_frames_have_their_names(void **state)
{
    (void)state;
    if (under_valgrind()) skip_because("under valgrind it takes minutes");
    enum { ISEQS = 1000 };
    start_traced(.exit_rate = 1);
    static struct rb_iseq_struct iseqs[ISEQS];
    static char names[ISEQS][8];
    struct rb_vm_trace_site *site = NULL;
    for (unsigned i = 0; i < ISEQS; i++) {
        snprintf(names[i], sizeof(names[i]), "m%u", i);
        iseqs[i] = fake_iseq(names[i], "a.rb");
        if (!site) site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &iseqs[i], 0);
        for (unsigned line = 1; line <= LINES; line++) {
            fake_push(&main_thread, &iseqs[i], line);
            take_exit(site, &main_thread);
            fake_pop(&main_thread, 1);
        }
    }
    each_chunk(look_at_frames);
    assert_int_equal(exits_seen, ISEQS * LINES);
}

static unsigned sites_seen;

static void
look_at_sites(const struct trace *chunk)
{
    for (size_t i = 0; i < chunk->event_count; i++) {
        if (!event_is(&chunk->events[i], "trace", "site")) continue;
        char reason[16];
        snprintf(reason, sizeof(reason), "r%u", sites_seen);
        assert_string_equal(trace_text(&chunk->events[i], "reason"), reason);
        assert_int_equal(trace_number(&chunk->events[i], "hits"), 1 + sites_seen % 3);
        sites_seen++;
    }
}

static void
million_reasons_have_their_names_and_counts(void **state)
{
    (void)state;
    rb_vm_trace_writer_run_chunks = 1;
    if (under_valgrind()) skip_because("under valgrind it takes minutes");
    enum { SITES = 1000000 };
    start_traced(.exit_rate = 4294967295);
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    fake_push(&main_thread, &foo, 1);
    for (unsigned i = 0; i < SITES; i++) {
        char reason[16];
        snprintf(reason, sizeof(reason), "r%u", i);
        struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, reason, &foo, 1);
        for (unsigned hit = 0; hit < 1 + i % 3; hit++) take_exit(site, &main_thread);
    }
    each_chunk(look_at_sites);
    assert_int_equal(sites_seen, SITES);
}

/* --- long, and strange ------------------------------------------------------------------------------- */

enum { LONG = 40 << 10 };

/* All that is no good text: NUL (or z), line ends, escapes, halves of characters. And how it is recorded. */
static const char PART[] = "\0\n\r\33[2J\xC3\xFF\xED\xA0\x80\"\\a\xE2\x82", SHOWN[] = "\0\n\r\33[2J\\xC3\\xFF\\xED\\xA0\\x80\"\\a\\xE2\\x82";
enum { PART_BYTES = sizeof(PART) - 1, SHOWN_BYTES = sizeof(SHOWN) - 1, PARTS = LONG / PART_BYTES };

static char *
repeat(const char *part, size_t bytes, size_t times, bool with_nul)
{
    char *text = malloc(bytes * times + 1);
    assert_non_null(text);
    for (size_t i = 0; i < bytes * times; i++) text[i] = part[i % bytes] || with_nul ? part[i % bytes] : 'z';
    text[bytes * times] = '\0';
    return text;
}

static const struct trace_argument *
argument_of(const struct trace_event *event, const char *name)
{
    const struct trace_argument *argument = trace_argument(event, name);
    assert_non_null(argument);
    return argument;
}

/* The beginning of `whole`, up to a note that says how much is cut. */
static void
assert_cut(const char *text, size_t bytes, const char *whole, size_t whole_bytes)
{
    assert_true(bytes <= FXT_MAX_STRING_BYTES);
    const char *note = memmem(text, bytes, "...[", 4);
    assert_non_null(note);
    size_t kept = (size_t)(note - text);
    assert_true(kept > FXT_MAX_STRING_BYTES - 100);
    assert_memory_equal(text, whole, kept);
    char expected[64];
    int n = snprintf(expected, sizeof(expected), "...[%zu bytes cut]", whole_bytes - kept);
    assert_int_equal(bytes - kept, n);
    assert_memory_equal(note, expected, (size_t)n);
}

static void
names_of_40_kb_that_are_no_text_are_escaped_and_whole_or_cut_with_a_note(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1, .compiles = true, .invalidations = true);
    char *name = repeat(PART, PART_BYTES, PARTS, false), *reason = repeat(PART, PART_BYTES, PARTS, true);
    char *shown_name = repeat(SHOWN, SHOWN_BYTES, PARTS, false), *shown = repeat(SHOWN, SHOWN_BYTES, PARTS, true);
    size_t place = strlen(" (a.rb:1)"), few = 500;
    struct rb_iseq_struct iseq = fake_iseq(name, "a.rb");
    fake_push(&main_thread, &iseq, 1);
    for (int i = 0; i < 2; i++) {
        size_t bytes = (i == 0 ? few : PARTS) * PART_BYTES;
        struct rb_vm_trace_site *site = rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
            .kind = RB_VM_TRACE_SIDE_EXIT, .reason = reason, .reason_len = bytes, .insn = reason, .insn_len = bytes,
            .unit = &iseq, .frame = &iseq, .version = 1
        });
        take_exit(site, &main_thread);
        assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_INVALIDATION, reason, bytes));
        rb_vm_trace_span_end(RB_VM_TRACE_INVALIDATION, reason, bytes);
        assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_COMPILE, reason, bytes));
        rb_vm_trace_compile_end(reason, bytes, &iseq, 1, 100);
    }
    struct trace *trace = finish_traced();
    assert_summary(trace, 2, 2, 0);
    const struct trace_event *exit = trace_event(trace, "side_exit", NULL, 0);
    const struct trace_argument *text = argument_of(exit, "insn");
    assert_int_equal(text->bytes, few * SHOWN_BYTES);
    assert_memory_equal(text->text, shown, text->bytes);
    text = argument_of(exit, "0");
    assert_cut(text->text, text->bytes, shown_name, PARTS * SHOWN_BYTES + place);
    text = argument_of(trace_event(trace, "side_exit", NULL, 1), "insn");
    assert_cut(text->text, text->bytes, shown, PARTS * SHOWN_BYTES);
    text = argument_of(trace_event(trace, "compile", NULL, 1), "iseq");
    assert_cut(text->text, text->bytes, shown_name, PARTS * SHOWN_BYTES + place);
    assert_int_equal(trace_count(trace, "invalidation", NULL), 4);
    assert_int_equal(trace->open_spans, 0);
    trace_free(trace);
    free(name);
    free(reason);
    free(shown);
    free(shown_name);
}

static void
name_of_an_iseq_of_5_kb_is_whole_in_its_compilation(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1, .compiles = true);
    char name[5001];
    memset(name, 'n', sizeof(name) - 1);
    name[5000] = '\0';
    struct rb_iseq_struct iseq = fake_iseq(name, "a.rb");
    fake_push(&main_thread, &iseq, 1);
    assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_COMPILE, name, 5000));
    rb_vm_trace_compile_end(name, 5000, &iseq, 1, 100);
    struct trace *trace = finish_traced();
    const struct trace_argument *label = argument_of(trace_event(trace, "compile", NULL, 1), "iseq");
    assert_int_equal(label->bytes, 5000 + strlen(" (a.rb:1)"));
    assert_memory_equal(label->text, name, 5000);
    trace_free(trace);
}

static void
name_of_a_thread_is_whole_up_to_what_a_record_holds(void **state)
{
    (void)state;
    char *name = repeat("größe ", 8, LONG / 8, false);
    struct trace *trace;
    main_thread.thread_name = name;
    start_traced(.exit_rate = 1);
    name[3000] = '\0';
    main_thread.name_id++;
    rb_vm_trace_thread_renamed();
    struct rb_iseq_struct iseq = fake_iseq("foo", "a.rb");
    fake_push(&main_thread, &iseq, 1);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "r", &iseq, 0), &main_thread);
    trace = finish_traced();
    const char *cut = trace->events[0].thread;
    name[3000] = 'g';
    assert_cut(cut, strlen(cut), name, LONG / 8 * 8);
    name[3000] = '\0';
    assert_string_equal(trace_event(trace, "side_exit", "r", 0)->thread, name);
    trace_free(trace);
    free(name);
}

static void
renamed_thread_has_its_new_name_from_the_next_event_on(void **state)
{
    (void)state;
    static const char *const names[] = { "one", "two", "", "three" };
    start_traced(.exit_rate = 1);
    struct rb_iseq_struct iseq = fake_iseq("foo", "a.rb");
    fake_push(&main_thread, &iseq, 1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &iseq, 0);
    for (size_t i = 0; i < 4; i++) {
        main_thread.thread_name = names[i]; /* its name_id stays: only the hook tells */
        rb_vm_trace_thread_renamed();
        for (int exit = 0; exit < 3; exit++) take_exit(site, &main_thread);
    }
    fake_current(NULL);
    rb_vm_trace_thread_renamed(); /* by a thread that runs no Ruby: nothing */
    fake_current(&main_thread);
    struct trace *trace = finish_traced();
    for (size_t i = 0; i < 12; i++) assert_string_equal(trace_event(trace, "side_exit", "r", i)->thread, names[i / 3]);
    assert_int_equal(trace->thread_name_count, 5); /* once each, and "main" */
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(forty_thousand_frames_and_reasons_have_their_names),
        isolated_test(million_frames_have_their_names),
        isolated_test(million_reasons_have_their_names_and_counts),
        isolated_test(names_of_40_kb_that_are_no_text_are_escaped_and_whole_or_cut_with_a_note),
        isolated_test(name_of_an_iseq_of_5_kb_is_whole_in_its_compilation),
        isolated_test(name_of_a_thread_is_whole_up_to_what_a_record_holds),
        isolated_test(renamed_thread_has_its_new_name_from_the_next_event_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
