/*
 * Exits and fallbacks: what an event says, which ones are sampled, and whose it is.
 */
#include "harness.h"
#include "vm_trace/base/known_strings.h"
#include "vm_trace/streams/exit_state.h"
#include "traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rb_iseq_struct foo;
static struct fake_method foo_method = { "Foo", "foo" };

static void
push_foo(unsigned line)
{
    if (!foo.from) foo = fake_iseq("foo", "app.rb");
    fake_push_method(&main_thread, &foo, &foo_method, line);
}

/* --- what is in an event ------------------------------------------------------------------------- */

static void
side_exit_says_why_where_and_when(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo(3);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "GuardType(Fixnum)", &foo, 5);
    uint64_t before = rb_vm_trace_clock_system_ns();
    take_exit(site, &main_thread);
    struct trace *trace = finish_traced();
    const struct trace_event *event = trace_event(trace, "side_exit", NULL, 0);
    assert_string_equal(event->name, "GuardType(Fixnum)");
    assert_int_equal(event->type, EVENT_INSTANT);
    assert_int_equal(event->pid, getpid());
    assert_int_equal(event->tid, 1001);
    assert_string_equal(event->thread, "main");
    assert_string_equal(event->process, "ruby");
    assert_true(event->ns + 1000000 > before && event->ns < before + 60000000000);
    assert_string_equal(trace_text(event, "0"), "Foo#foo (app.rb:5)"); /* the instruction's line, not the frame's */
    assert_string_equal(trace_text(event, "insn"), "opt_plus");
    assert_int_equal(trace_number(event, "version"), 1);
    assert_int_equal(event->argument_count, 3); /* no weight at K = 1, no outcome, no second frame */
    trace_free(trace);
}

static void
side_exit_is_these_words(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo(3);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "FixnumAddOverflow", &foo, 0), &main_thread);
    const struct rb_vm_trace_writer *writer = &main_ractor.vm_trace->writer;
    /* The event is the last record; its strings were defined before: reason, frame, instruction. */
    uint64_t insn = writer->next_string - 1, frame = insn - 1, reason = insn - 2, side_exit = STRING_SIDE_EXIT;
    const uint64_t *words = writer->chunk.words + writer->pos - 5;
    assert_true(words[0] == (0x0000000001300054 | side_exit << 32 | reason << 48)); /* 5 words, 3 arguments, thread 1 */
    assert_true(words[2] == (0x0000000000010016 | frame << 32));                    /* "0" is string 1 */
    assert_true(words[3] == (0x00000000000C0016 | insn << 32));                     /* "insn" is string 12 */
    assert_true(words[4] == 0x00000001000D0012);                                    /* "version", 13, is 1 */
    trace_free(finish_traced());
}

static void
site_without_a_pc_takes_the_line_of_the_frame(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo(3);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "CompileError", &foo, 0), &main_thread);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_text(trace_event(trace, "side_exit", NULL, 0), "0"), "Foo#foo (app.rb:3)");
    trace_free(trace);
}

static void
frames_are_ten_arguments_and_a_tail(void **state)
{
    (void)state;
    static const unsigned depths[] = { 1, 2, 9, 10, 11, 12, 16, 100 };
    start_traced(.exit_rate = 1);
    push_foo(1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
        while (main_thread.frame_count < depths[i]) push_foo((unsigned)main_thread.frame_count + 1);
        take_exit(site, &main_thread);
    }
    struct trace *trace = finish_traced();
    for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
        const struct trace_event *event = trace_event(trace, "side_exit", NULL, i);
        for (unsigned frame = 0; frame < 10; frame++) {
            char name[4], expected[32];
            sprintf(name, "%u", frame);
            if (frame >= depths[i]) {
                assert_null(trace_argument(event, name));
                continue;
            }
            sprintf(expected, "Foo#foo (app.rb:%u)", depths[i] - frame);
            assert_string_equal(trace_text(event, name), expected);
        }
        assert_int_equal(trace_argument(event, "10+") != NULL, depths[i] > 10);
    }
    assert_string_equal(trace_text(trace_event(trace, "side_exit", NULL, 4), "10+"), "Foo#foo (app.rb:1)");
    assert_string_equal(trace_text(trace_event(trace, "side_exit", NULL, 5), "10+"), "Foo#foo (app.rb:2) < Foo#foo (app.rb:1)");
    trace_free(trace);
}

static void
two_thousand_recursive_frames_are_one_entry_of_the_tail(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    for (int i = 0; i < 2000; i++) push_foo(3);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0), &main_thread);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_text(trace_event(trace, "side_exit", NULL, 0), "10+"), "Foo#foo (app.rb:3) x1990");
    trace_free(trace);
}

static void
event_may_have_all_fifteen_arguments(void **state)
{
    (void)state;
    start_traced(.exit_rate = 2);
    for (unsigned i = 1; i <= 12; i++) push_foo(i);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_RECOMPILE_EXIT, "NoProfileSend", &foo, 0);
    take_recompile_exit(site, &main_thread, RB_VM_TRACE_INVALIDATED);
    take_recompile_exit(site, &main_thread, RB_VM_TRACE_INVALIDATED);
    struct trace *trace = finish_traced();
    const struct trace_event *event = trace_event(trace, "recompile_exit", NULL, 0);
    assert_int_equal(event->argument_count, 15);
    assert_int_equal(trace_number(event, "weight"), 2);
    assert_string_equal(trace_text(event, "outcome"), "invalidated");
    trace_free(trace);
}

static void
recompile_exit_says_what_it_led_to(void **state)
{
    (void)state;
    static const char *const expected[] = { "profiling", "invalidated", "already_invalidated", "version_limit" };
    start_traced(.exit_rate = 1);
    push_foo(3);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_RECOMPILE_EXIT, "NoProfileSend", &foo, 5);
    for (int outcome = RB_VM_TRACE_PROFILING; outcome <= RB_VM_TRACE_VERSION_LIMIT; outcome++) {
        take_recompile_exit(site, &main_thread, (enum rb_vm_trace_outcome)outcome);
    }
    struct trace *trace = finish_traced();
    for (size_t i = 0; i < 4; i++) {
        const struct trace_event *event = trace_event(trace, "recompile_exit", "NoProfileSend", i);
        assert_string_equal(trace_text(event, "outcome"), expected[i]);
        assert_string_equal(trace_text(event, "0"), "Foo#foo (app.rb:5)");
        assert_string_equal(trace_text(event, "insn"), "opt_plus");
    }
    assert_summary(trace, 4, 4, 0);
    trace_free(trace);
}

static void
recompile_exit_has_the_time_before_what_it_caused(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1, .invalidations = true);
    push_foo(3);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_RECOMPILE_EXIT, "NoProfileSend", &foo, 5);
    uint64_t start_ns = rb_vm_trace_now(main_ractor.vm_trace);
    assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_INVALIDATION, "why", 3));
    rb_vm_trace_span_end(RB_VM_TRACE_INVALIDATION, "why", 3);
    rb_vm_trace_recompile_exit(main_ractor.vm_trace, site, &main_thread, start_ns, RB_VM_TRACE_INVALIDATED);
    exits_of(main_ractor.vm_trace)->hits[site->index]++;
    struct trace *trace = finish_traced();
    const struct trace_event *exit = trace_event(trace, "recompile_exit", NULL, 0), *begin = trace_event(trace, "invalidation", NULL, 0);
    assert_true(exit->ns == start_ns);
    assert_true(exit->ns <= begin->ns);
    assert_true(exit->offset > begin->offset);
    trace_free(trace);
}

static void
reason_of_any_length_and_script_is_kept_or_cut_with_a_note(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo(3);
    static char reason[40001];
    for (size_t i = 0; i + 3 <= 40000; i += 3) memcpy(reason + i, "\xE2\x82\xAC", 3);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, reason, &foo, 0), &main_thread);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "Überlauf(整数)", &foo, 0), &main_thread);
    struct trace *trace = finish_traced();
    const char *name = trace_event(trace, "side_exit", NULL, 0)->name;
    assert_true(strlen(name) > 32000);
    assert_non_null(strstr(name, " bytes cut]"));
    assert_string_equal(trace_event(trace, "side_exit", NULL, 1)->name, "Überlauf(整数)");
    trace_free(trace);
}

/* --- sampling -------------------------------------------------------------------------------------- */

/* Exit number i (from 1) is at line i; exactly every K-th is there, and they weigh what was taken. */
static void
assert_every_kth(uint64_t rate, unsigned exits)
{
    start_traced(.exit_rate = rate);
    push_foo(1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    for (unsigned i = 1; i <= exits; i++) {
        main_thread.frames[0].line = i;
        take_exit(site, &main_thread);
    }
    struct trace *trace = finish_traced();
    size_t recorded = trace_count(trace, "side_exit", NULL);
    assert_int_equal(recorded, exits / rate);
    uint64_t weight = 0;
    for (size_t i = 0; i < recorded; i++) {
        const struct trace_event *event = trace_event(trace, "side_exit", NULL, i);
        char expected[64];
        sprintf(expected, "Foo#foo (app.rb:%u)", (unsigned)((i + 1) * rate));
        assert_string_equal(trace_text(event, "0"), expected);
        weight += rate > 1 ? trace_number(event, "weight") : 1;
        if (rate > 1) assert_int_equal(trace_argument(event, "weight")->bits, 32);
    }
    assert_int_equal(weight, exits - exits % rate);
    assert_int_equal(site_hits(trace, "r"), exits);
    assert_summary(trace, exits, recorded, 0);
    trace_free(trace);
}

static void
all_exits_are_recorded_at_rate_1(void **state)
{
    (void)state;
    assert_every_kth(1, 900);
}

static void
every_second_exit_is_recorded_at_rate_2(void **state)
{
    (void)state;
    assert_every_kth(2, 901);
}

static void
every_97th_exit_is_recorded_at_rate_97(void **state)
{
    (void)state;
    assert_every_kth(97, 97 * 9 + 50);
}

static void
nothing_is_recorded_before_the_kth_exit(void **state)
{
    (void)state;
    assert_every_kth(1000, 999);
}

static void
largest_rate_is_a_weight(void **state)
{
    (void)state;
    start_traced(.exit_rate = 4294967295);
    push_foo(1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    exits_of(main_ractor.vm_trace)->hits[site->index] = 4294967293;
    exits_of(main_ractor.vm_trace)->countdown = 2;
    take_exit(site, &main_thread);
    take_exit(site, &main_thread);
    assert_true(exits_of(main_ractor.vm_trace)->countdown == 4294967295);
    struct trace *trace = finish_traced();
    assert_true(trace_number(trace_event(trace, "side_exit", NULL, 0), "weight") == 4294967295);
    trace_free(trace);
}

static void
sites_of_a_ractor_share_the_countdown(void **state)
{
    (void)state;
    start_traced(.exit_rate = 3);
    push_foo(1);
    struct rb_vm_trace_site *a = make_site(RB_VM_TRACE_SIDE_EXIT, "a", &foo, 1), *b = make_site(RB_VM_TRACE_SIDE_EXIT, "b", &foo, 2),
        *c = make_site(RB_VM_TRACE_RECOMPILE_EXIT, "c", &foo, 3);
    for (int i = 0; i < 4; i++) {
        take_exit(a, &main_thread);
        rb_vm_trace_hit(b, &main_thread);
        take_recompile_exit(c, &main_thread, RB_VM_TRACE_PROFILING);
        rb_vm_trace_hit(b, &main_thread);
    }
    struct trace *trace = finish_traced(); /* abcb abcb abcb abcb: the 3rd, 6th, 9th ... are c b a b c */
    assert_int_equal(trace_count(trace, "side_exit", "a"), 1);
    assert_int_equal(trace_count(trace, "side_exit", "b"), 2);
    assert_int_equal(trace_count(trace, "recompile_exit", "c"), 2);
    assert_int_equal(site_hits(trace, "b"), 8);
    assert_summary(trace, 16, 5, 0);
    trace_free(trace);
}

static void
fallbacks_have_a_rate_of_their_own(void **state)
{
    (void)state;
    start_traced(.exit_rate = 2, .fallback_rate = 5);
    push_foo(1);
    struct rb_vm_trace_site *exit = make_site(RB_VM_TRACE_SIDE_EXIT, "exit", &foo, 1),
        *fallback = make_site(RB_VM_TRACE_FALLBACK, "SendWithoutBlockPolymorphic", &foo, 2);
    for (int i = 0; i < 23; i++) {
        rb_vm_trace_hit(fallback, &main_thread);
        if (i % 4 == 0) take_exit(exit, &main_thread);
    }
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "fallback", "SendWithoutBlockPolymorphic"), 4);
    assert_int_equal(trace_count(trace, "side_exit", NULL), 3);
    const struct trace_event *event = trace_event(trace, "fallback", NULL, 0);
    assert_int_equal(trace_number(event, "weight"), 5);
    assert_string_equal(trace_text(event, "0"), "Foo#foo (app.rb:2)");
    assert_string_equal(trace_text(event, "insn"), "opt_plus");
    assert_null(trace_argument(event, "outcome"));
    assert_int_equal(site_hits(trace, "SendWithoutBlockPolymorphic"), 23);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "fallbacks"), 23);
    assert_summary(trace, 6, 3, 0);
    trace_free(trace);
}

/* --- threads ------------------------------------------------------------------------------------------ */

static void
each_event_stands_on_its_thread(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo(1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    struct rb_execution_context_struct worker = { &main_ractor, 1002, "Thread app.rb:7", 2, main_thread.frames, 1, 0 };
    for (int i = 0; i < 3; i++) {
        take_exit(site, &main_thread);
        take_exit(site, &worker);
    }
    size_t names = fake_host.thread_names;
    struct trace *trace = finish_traced();
    assert_int_equal(names, 2);
    for (size_t i = 0; i < 6; i++) {
        const struct trace_event *event = trace_event(trace, "side_exit", NULL, i);
        assert_int_equal(event->tid, i % 2 ? 1002 : 1001);
        assert_string_equal(event->thread, i % 2 ? "Thread app.rb:7" : "main");
    }
    assert_int_equal(trace->thread_name_count, 2);
    trace_free(trace);
}

static void
new_name_of_a_thread_is_shown_from_then_on(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo(1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    take_exit(site, &main_thread);
    main_thread.thread_name = "Zoë";
    main_thread.name_id = 2;
    take_exit(site, &main_thread);
    take_exit(site, &main_thread);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_event(trace, "side_exit", NULL, 0)->thread, "main");
    assert_string_equal(trace_event(trace, "side_exit", NULL, 1)->thread, "Zoë");
    assert_string_equal(trace_event(trace, "side_exit", NULL, 2)->thread, "Zoë");
    assert_int_equal(trace->thread_name_count, 2);
    trace_free(trace);
}

static void
more_than_255_threads_share_the_indexes_of_a_chunk(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo(1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    for (uint32_t i = 0; i < 600; i++) {
        struct rb_execution_context_struct worker = { &main_ractor, 2000 + i, "worker", 2, main_thread.frames, 1, 0 };
        take_exit(site, &worker);
    }
    struct trace *trace = finish_traced();
    assert_int_equal(trace->chunk_count, 1);
    for (uint32_t i = 0; i < 600; i++) assert_int_equal(trace_event(trace, "side_exit", NULL, i)->tid, 2000 + i);
    assert_summary(trace, 600, 600, 0);
    trace_free(trace);
}

static void
trace_with_a_long_thread_name(void *argument)
{
    size_t shift = *(size_t *)argument;
    static char name[400];
    memset(name, 'x', sizeof(name));
    for (size_t i = shift; i + 3 < sizeof(name); i += 3) memcpy(name + i, "\xE2\x82\xAC", 3);
    name[sizeof(name) - 1] = '\0';
    start_traced(.exit_rate = 1);
    push_foo(1);
    main_thread.thread_name = name;
    main_thread.name_id = 7;
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0), &main_thread);
    struct trace *trace = finish_traced(); /* the validator takes only UTF-8 */
    const char *shown = trace_event(trace, "side_exit", NULL, 0)->thread;
    assert_true(strlen(shown) > 200);
    assert_memory_equal(shown, name, 200);
    trace_free(trace);
}

/* A name of the user's, cut somewhere: not in the middle of a character. */
static void
long_name_of_a_thread_is_cut_between_characters(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 3; shift++) in_child(trace_with_a_long_thread_name, &shift);
}

/* --- many ---------------------------------------------------------------------------------------------- */

static void
exits_over_many_chunks_are_all_there(void **state)
{
    (void)state;
    enum { ISEQS = 30, EXITS = 60000 };
    start_traced(.exit_rate = 1);
    struct rb_iseq_struct iseqs[ISEQS];
    struct rb_vm_trace_site *sites[ISEQS];
    char names[ISEQS][24], reasons[ISEQS][24];
    for (int i = 0; i < ISEQS; i++) {
        sprintf(names[i], "method_%d", i);
        sprintf(reasons[i], "Reason(%d)", i);
        iseqs[i] = fake_iseq(names[i], "app.rb");
        sites[i] = make_site(RB_VM_TRACE_SIDE_EXIT, reasons[i], &iseqs[i], 0);
    }
    uint32_t random = 1;
    unsigned lines[EXITS / 1000];
    for (unsigned n = 0; n < EXITS; n++) {
        random = random * 1103515245 + 12345;
        size_t depth = 1 + (random >> 16) % 30;
        while (main_thread.frame_count > depth) fake_pop(&main_thread, 1);
        while (main_thread.frame_count < depth) fake_push(&main_thread, &iseqs[(random >> 8) % ISEQS], 1 + n % 900);
        main_thread.frames[depth - 1].line = 1 + n % 997;
        if (n % 1000 == 0) lines[n / 1000] = 1 + n % 997;
        take_exit(sites[n % ISEQS], &main_thread);
    }
    struct trace *trace = finish_traced();
    assert_true(trace->chunk_count > 4);
    assert_int_equal(trace->event_count, EXITS + ISEQS + 4); /* settings, host, host, summary */
    for (unsigned n = 0; n < EXITS; n += 1000) {
        const struct trace_event *event = &trace->events[FIRST_EVENTS + n];
        assert_string_equal(event->name, reasons[n % ISEQS]);
        char expected[16];
        sprintf(expected, ":%u)", lines[n / 1000]);
        assert_non_null(strstr(trace_text(event, "0"), expected));
    }
    for (size_t i = FIRST_EVENTS; i < EXITS; i++) assert_true(trace->events[i].ns <= trace->events[i + 1].ns);
    assert_summary(trace, EXITS, EXITS, 0);
    trace_free(trace);
}

/*
 * A few stacks again and again, as in a loop, while code dies, objects move and chunks end: each
 * event has the frames that were there, under the names that they had then.
 */
static void
every_backtrace_is_that_of_its_exit(void **state)
{
    (void)state;
    enum { STACKS = 24, EXITS = 20000 };
    static struct { unsigned stack, name; } taken[EXITS];
    static char names[EXITS / 700 + 1][12];
    start_traced(.exit_rate = 1);
    struct rb_iseq_struct iseq = fake_iseq("m0", "app.rb"), code = fake_iseq("code", "app.rb");
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &code, 0);
    uint32_t random = 7;
    unsigned stack = 0, name = 0;
    for (unsigned n = 0; n < EXITS; n++) {
        if (n % 700 == 0) {
            if (n % 1400 == 0) rb_vm_trace_iseq_free(&iseq);
            else rb_vm_trace_compacted();
            name = n / 700;
            sprintf(names[name], "m%u", name);
            iseq.name = names[name]; /* another one at the same address */
        }
        random = random * 1103515245 + 12345;
        if (random >> 30 != 0) stack = (random >> 16) % STACKS; /* else the same once more */
        main_thread.frame_count = 0;
        for (unsigned i = 0; i < 1 + stack % 14; i++) fake_push(&main_thread, &iseq, 1 + stack + i * 30);
        take_exit(site, &main_thread);
        taken[n].stack = stack;
        taken[n].name = name;
        /* Fill the chunk now and then. */
        if (n % 999 == 0) while (rb_vm_trace_writer_define(&main_ractor.vm_trace->writer, &(struct vm_trace_slot){ 0, 0 }, "filler", 6)) {}
    }
    struct trace *trace = finish_traced();
    assert_true(trace->chunk_count > 20);
    for (unsigned n = 0; n < EXITS; n++) {
        const struct trace_event *event = &trace->events[FIRST_EVENTS + n];
        unsigned depth = 1 + taken[n].stack % 14, line = 1 + taken[n].stack;
        assert_int_equal(event->argument_count, (depth < 11 ? depth : 11) + 2);
        for (unsigned i = 0; i < depth && i < 10; i++) {
            char expected[32], key[4];
            sprintf(expected, "%s (app.rb:%u)", names[taken[n].name], line + (depth - 1 - i) * 30);
            sprintf(key, "%u", i);
            assert_string_equal(trace_text(event, key), expected);
        }
        if (depth <= 10) continue;
        char expected[32];
        sprintf(expected, "%s (app.rb:%u)", names[taken[n].name], line + (depth - 11) * 30);
        assert_memory_equal(trace_text(event, "10+"), expected, strlen(expected));
    }
    trace_free(trace);
}

/* Code of `unit` into which `foo` was inlined. */
static struct rb_vm_trace_site *
make_inlined_site(const char *reason, const struct rb_iseq_struct *unit)
{
    return rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
        .kind = RB_VM_TRACE_SIDE_EXIT, .reason = reason, .reason_len = strlen(reason), .insn = "nop", .insn_len = 3,
        .unit = unit, .frame = &foo, .pc = fake_pc(&foo, 3), .version = 2
    });
}

static void
site_at_the_address_of_a_dead_one_is_not_taken_for_it(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo(3);
    struct rb_iseq_struct unit = fake_iseq("unit", "app.rb");
    struct rb_vm_trace_site *first = make_inlined_site("first", &unit);
    take_exit(first, &main_thread);
    take_exit(first, &main_thread);
    rb_vm_trace_iseq_free(&unit);
    struct rb_vm_trace_site *second = make_inlined_site("second", &unit);
    assert_ptr_equal(second, first);
    take_exit(second, &main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "side_exit", "first"), 2);
    assert_int_equal(trace_count(trace, "side_exit", "second"), 1);
    trace_free(trace);
}

static void
events_that_differ_in_one_thing_each_say_their_own(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    struct rb_execution_context_struct other = { .ractor = &main_ractor, .tid = 1002, .thread_name = "other", .name_id = 2 };
    push_foo(3);
    fake_push_method(&other, &foo, &foo_method, 3);
    struct rb_vm_trace_site *sites[] = {
        make_site(RB_VM_TRACE_RECOMPILE_EXIT, "a", &foo, 3), make_site(RB_VM_TRACE_RECOMPILE_EXIT, "b", &foo, 3)
    };
    enum { EVENTS = 24000 }; /* more than a chunk */
    for (unsigned i = 0; i < EVENTS; i++) {
        fake_current(i & 2 ? &other : &main_thread);
        take_recompile_exit(sites[i & 1], i & 2 ? &other : &main_thread, i & 4 ? RB_VM_TRACE_PROFILING : RB_VM_TRACE_VERSION_LIMIT);
    }
    fake_current(&main_thread);
    struct trace *trace = finish_traced();
    unsigned i = 0;
    for (size_t n = 0; n < trace->event_count; n++) {
        const struct trace_event *event = &trace->events[n];
        if (!event_is(event, "recompile_exit", NULL)) continue;
        assert_string_equal(event->name, i & 1 ? "b" : "a");
        assert_int_equal(event->tid, i & 2 ? 1002 : 1001);
        assert_string_equal(trace_text(event, "outcome"), i & 4 ? "profiling" : "version_limit");
        i++;
    }
    assert_int_equal(i, EVENTS);
    trace_free(trace);
    fake_free_stack(&other);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(side_exit_says_why_where_and_when),
        isolated_test(side_exit_is_these_words),
        isolated_test(site_without_a_pc_takes_the_line_of_the_frame),
        isolated_test(frames_are_ten_arguments_and_a_tail),
        isolated_test(two_thousand_recursive_frames_are_one_entry_of_the_tail),
        isolated_test(event_may_have_all_fifteen_arguments),
        isolated_test(recompile_exit_says_what_it_led_to),
        isolated_test(recompile_exit_has_the_time_before_what_it_caused),
        isolated_test(reason_of_any_length_and_script_is_kept_or_cut_with_a_note),
        isolated_test(all_exits_are_recorded_at_rate_1),
        isolated_test(every_second_exit_is_recorded_at_rate_2),
        isolated_test(every_97th_exit_is_recorded_at_rate_97),
        isolated_test(nothing_is_recorded_before_the_kth_exit),
        isolated_test(largest_rate_is_a_weight),
        isolated_test(sites_of_a_ractor_share_the_countdown),
        isolated_test(fallbacks_have_a_rate_of_their_own),
        isolated_test(each_event_stands_on_its_thread),
        isolated_test(new_name_of_a_thread_is_shown_from_then_on),
        isolated_test(more_than_255_threads_share_the_indexes_of_a_chunk),
        isolated_test(long_name_of_a_thread_is_cut_between_characters),
        isolated_test(exits_over_many_chunks_are_all_there),
        isolated_test(every_backtrace_is_that_of_its_exit),
        isolated_test(site_at_the_address_of_a_dead_one_is_not_taken_for_it),
        isolated_test(events_that_differ_in_one_thing_each_say_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
