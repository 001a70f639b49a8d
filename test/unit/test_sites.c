/*
 * Sites: exact counts whatever the sample rate, from their making to the death of their ISEQ.
 */
#include "harness.h"
#include "vm_trace/session/options.h"
#include "vm_trace/streams/exit_state.h"
#include "vm_trace/base/strings.h"
#include "traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rb_iseq_struct foo, bar;
static struct fake_method foo_method = { "Foo", "foo" };

static void
start_at(uint64_t exit_rate, uint64_t fallback_rate)
{
    foo = fake_iseq("foo", "app.rb");
    bar = fake_iseq("bar", "app.rb");
    start_traced(.exit_rate = exit_rate, .fallback_rate = fallback_rate);
}

static void
start(uint64_t exit_rate)
{
    start_at(exit_rate, 1);
}

static const struct trace_event *
site_event(const struct trace *trace, const char *reason)
{
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (event_is(event, "trace", "site") && strcmp(trace_text(event, "reason"), reason) == 0) return event;
    }
    fail_msg("no site %s", reason);
    return NULL;
}

static void
each_site_with_hits_is_reported_once_with_their_number(void **state)
{
    (void)state;
    start(97);
    fake_push(&main_thread, &foo, 1);
    static const char *const reasons[] = { "a", "b", "c", "never" };
    static const unsigned hits[] = { 1, 96, 5000, 0 };
    for (int i = 0; i < 4; i++) {
        struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, reasons[i], &foo, (unsigned)i + 1);
        for (unsigned n = 0; n < hits[i]; n++) take_exit(site, &main_thread);
    }
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "trace", "site"), 3);
    for (int i = 0; i < 4; i++) assert_int_equal(site_hits(trace, reasons[i]), hits[i]);
    assert_int_equal(trace_argument(site_event(trace, "c"), "hits")->bits, 64);
    assert_summary(trace, 5097, 5097 / 97, 0);
    trace_free(trace);
}

static void
site_event_says_kind_instruction_version_and_location(void **state)
{
    (void)state;
    static const enum rb_vm_trace_kind kinds[] = { RB_VM_TRACE_SIDE_EXIT, RB_VM_TRACE_RECOMPILE_EXIT, RB_VM_TRACE_FALLBACK };
    static const char *const names[] = { "side_exit", "recompile_exit", "fallback" };
    start_at(97, 97);
    fake_push(&main_thread, &bar, 1);
    for (int i = 0; i < 3; i++) {
        struct rb_vm_trace_site *site = rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
            .kind = kinds[i], .reason = names[i], .reason_len = strlen(names[i]), .insn = "opt_send_without_block!", .insn_len = 22,
            .unit = &bar, .frame = &foo, .pc = fake_pc(&foo, 40), .version = 7
        });
        exits_of(main_ractor.vm_trace)->hits[site->index] = 5000000000; /* more than 32 bits */
    }
    struct trace *trace = finish_traced();
    for (int i = 0; i < 3; i++) {
        const struct trace_event *event = site_event(trace, names[i]);
        assert_string_equal(trace_text(event, "kind"), names[i]);
        assert_string_equal(trace_text(event, "insn"), "opt_send_without_block");
        assert_int_equal(trace_number(event, "version"), 7);
        assert_string_equal(trace_text(event, "location"), "foo (app.rb:40)"); /* the frame's, not the unit's */
        assert_true(trace_number(event, "hits") == 5000000000);
    }
    trace_free(trace);
}

static void
instructions_that_share_a_line_and_a_name_have_an_index_and_what_they_call(void **state)
{
    (void)state;
    start(1);
    fake_push(&main_thread, &foo, 1);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "alone", &foo, 5), &main_thread);
    fake_host.operand_name = "size";
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "shared", &foo, 6), &main_thread);
    fake_host.operand_name = "";
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "calls nothing", &foo, 7), &main_thread);
    struct trace *trace = finish_traced();
    for (int i = 0; i < 2; i++) {
        const char *const category = i ? "trace" : "side_exit";
        const struct trace_event *shared = i ? site_event(trace, "shared") : trace_event(trace, category, "shared", 0);
        const struct trace_event *alone = i ? site_event(trace, "alone") : trace_event(trace, category, "alone", 0);
        assert_int_equal(trace_number(shared, "insn_index"), 5);
        assert_string_equal(trace_text(shared, "callee"), "size");
        assert_null(trace_argument(alone, "insn_index"));
        assert_null(trace_argument(alone, "callee"));
    }
    assert_int_equal(trace_number(site_event(trace, "calls nothing"), "insn_index"), 6);
    assert_null(trace_argument(site_event(trace, "calls nothing"), "callee"));
    trace_free(trace);
}

static void
location_has_its_owner_from_the_first_recorded_exit(void **state)
{
    (void)state;
    start(2);
    struct rb_vm_trace_site *recorded = make_site(RB_VM_TRACE_SIDE_EXIT, "recorded", &foo, 5);
    fake_push_method(&main_thread, &foo, &foo_method, 5);
    take_exit(recorded, &main_thread);
    take_exit(recorded, &main_thread);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_text(site_event(trace, "recorded"), "location"), "Foo#foo (app.rb:5)");
    trace_free(trace);
}

static void
location_has_its_owner_when_the_running_method_is_compiled(void **state)
{
    (void)state;
    start(1000);
    fake_push_method(&main_thread, &foo, &foo_method, 1);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "its own", &foo, 5), &main_thread);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "inlined", &bar, 6), &main_thread);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_text(site_event(trace, "its own"), "location"), "Foo#foo (app.rb:5)");
    assert_string_equal(trace_text(site_event(trace, "inlined"), "location"), "bar (app.rb:6)");
    trace_free(trace);
}

static void
long_location_is_whole(void **state)
{
    (void)state;
    static char name[3001];
    memset(name, 'n', 3000);
    start(100);
    foo.name = name;
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 5), &main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(strlen(trace_text(site_event(trace, "r"), "location")), 3000 + strlen(" (app.rb:5)"));
    trace_free(trace);
}

static void
no_site_is_made_when_there_is_no_trace(void **state)
{
    (void)state;
    struct rb_vm_trace_site_desc desc = {
        .reason = "r", .reason_len = 1, .insn = "i", .insn_len = 1, .unit = &foo, .frame = &foo, .version = 1
    };
    assert_null(rb_vm_trace_site_new(&desc));
    start(1);
    assert_non_null(rb_vm_trace_site_new(&desc));
    rb_vm_trace_shutdown();
    assert_null(rb_vm_trace_site_new(&desc));
    trace_free(finish_traced());
}

/* --- the table is full -------------------------------------------------------------------------------- */

static void
exits_of_places_beyond_the_limit_are_counted_and_recorded(void **state)
{
    (void)state;
    enum { LIMIT = 16, OWN = LIMIT - 1 - RB_VM_TRACE_KINDS }; /* index 0 is none, and each kind has a collective site */
    static char reasons[LIMIT + 4][8];
    capture_stderr();
    rb_vm_trace_most_sites = LIMIT;
    start(3);
    fake_push(&main_thread, &foo, 7);
    for (unsigned i = 0; i < OWN + 4; i++) {
        snprintf(reasons[i], sizeof(reasons[i]), "r%u", i);
        struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, reasons[i], &foo, i + 1);
        for (unsigned n = 0; n < 6; n++) take_exit(site, &main_thread);
    }
    struct rb_vm_trace_site *recompile = make_site(RB_VM_TRACE_RECOMPILE_EXIT, "recompile", &foo, 1);
    for (unsigned n = 0; n < 3; n++) take_recompile_exit(recompile, &main_thread, RB_VM_TRACE_PROFILING);
    for (unsigned n = 0; n < 9; n++) rb_vm_trace_hit(make_site(RB_VM_TRACE_FALLBACK, "fallback", &foo, 1), &main_thread);
    assert_int_equal(rb_vm_trace_site_count(), OWN);

    struct trace *trace = finish_traced();
    for (unsigned i = 0; i < OWN; i++) assert_int_equal(site_hits(trace, reasons[i]), 6);
    for (unsigned i = OWN; i < OWN + 4; i++) assert_int_equal(site_hits(trace, reasons[i]), 0);
    assert_int_equal(site_hits(trace, "(site table full)"), 4 * 6 + 3 + 9);
    assert_summary(trace, (OWN + 4) * 6 + 3, (OWN + 4) * 2 + 1, 0);
    unsigned recorded = 0;
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (strcmp(event->name, "(site table full)") != 0) continue;
        assert_string_equal(trace_text(event, "0"), "foo (app.rb:7)"); /* as the frame says */
        recorded++;
    }
    assert_int_equal(recorded, 4 * 2 + 1 + 9);
    char *said = captured_stderr();
    const char *message = strstr(said, "ZJIT: 11 places that can exit are traced");
    assert_non_null(message);
    assert_null(strstr(message + strlen("ZJIT: 11 places"), "places that can exit are traced")); /* once */
    free(said);
    trace_free(trace);
}

static void
places_that_the_method_filter_leaves_out_need_no_room(void **state)
{
    (void)state;
    rb_vm_trace_most_sites = 1 + RB_VM_TRACE_KINDS + 1; /* room for one */
    assert_true(rb_vm_trace_parse_methods("--zjit-trace-methods", "foo"));
    start(1);
    fake_push(&main_thread, &foo, 7);
    for (unsigned i = 0; i < 10; i++) {
        assert_null(rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
            .reason = "r", .reason_len = 1, .insn = "i", .insn_len = 1, .unit = &bar, .frame = &bar, .version = 1
        }));
    }
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "mine", &foo, 1), &main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(site_hits(trace, "mine"), 1);
    assert_summary(trace, 1, 1, 0);
    trace_free(trace);
}

/* --- the death of an ISEQ ---------------------------------------------------------------------------- */

static void
dead_iseq_reports_its_sites_then_and_there(void **state)
{
    (void)state;
    start(97);
    fake_push(&main_thread, &bar, 1);
    struct rb_vm_trace_site *a = make_site(RB_VM_TRACE_SIDE_EXIT, "a", &foo, 1), *b = make_site(RB_VM_TRACE_FALLBACK, "b", &foo, 2),
        *c = make_site(RB_VM_TRACE_SIDE_EXIT, "c", &bar, 3);
    make_site(RB_VM_TRACE_SIDE_EXIT, "no hits", &foo, 4);
    for (int i = 0; i < 200; i++) take_exit(a, &main_thread);
    for (int i = 0; i < 30; i++) rb_vm_trace_hit(b, &main_thread);
    for (int i = 0; i < 100; i++) take_exit(c, &main_thread);
    assert_int_equal(rb_vm_trace_site_count(), 4);
    rb_vm_trace_iseq_free(&foo);
    assert_int_equal(rb_vm_trace_site_count(), 1);
    for (int i = 0; i < 100; i++) take_exit(c, &main_thread);

    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "trace", "site"), 3);
    assert_int_equal(site_hits(trace, "a"), 200);
    assert_int_equal(site_hits(trace, "b"), 30);
    assert_int_equal(site_hits(trace, "c"), 200);
    assert_true(site_event(trace, "a")->offset < trace_event(trace, "side_exit", "c", 1)->offset);
    assert_summary(trace, 400, 400 / 97, 0);
    trace_free(trace);
}

/* What a code GC does: the ISEQ lives on and is compiled anew. */
static void
freed_code_reports_its_sites_and_the_iseq_gets_new_ones(void **state)
{
    (void)state;
    start(1);
    fake_push(&main_thread, &bar, 1);
    struct rb_vm_trace_site *a = make_site(RB_VM_TRACE_SIDE_EXIT, "a", &foo, 1), *b = make_site(RB_VM_TRACE_SIDE_EXIT, "b", &bar, 1);
    for (int i = 0; i < 20; i++) take_exit(a, &main_thread);
    rb_vm_trace_code_free(&foo);
    assert_int_equal(rb_vm_trace_site_count(), 1);
    take_exit(b, &main_thread);
    struct rb_vm_trace_site *again = make_site(RB_VM_TRACE_SIDE_EXIT, "again", &foo, 1);
    for (int i = 0; i < 3; i++) take_exit(again, &main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(site_hits(trace, "a"), 20);
    assert_int_equal(site_hits(trace, "b"), 1);
    assert_int_equal(site_hits(trace, "again"), 3);
    assert_summary(trace, 24, 24, 0);
    trace_free(trace);
}

static void
index_of_a_dead_site_is_used_again_with_a_count_of_zero(void **state)
{
    (void)state;
    start(100000);
    fake_push(&main_thread, &bar, 1);
    struct rb_vm_trace_site *old = make_site(RB_VM_TRACE_SIDE_EXIT, "old", &foo, 1);
    size_t offset = rb_vm_trace_hits_offset(old);
    for (int i = 0; i < 50; i++) take_exit(old, &main_thread);
    rb_vm_trace_iseq_free(&foo);
    struct rb_vm_trace_site *new = make_site(RB_VM_TRACE_SIDE_EXIT, "new", &bar, 1);
    assert_int_equal(rb_vm_trace_hits_offset(new), offset);
    for (int i = 0; i < 3; i++) take_exit(new, &main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(site_hits(trace, "old"), 50);
    assert_int_equal(site_hits(trace, "new"), 3);
    assert_summary(trace, 53, 0, 0);
    trace_free(trace);
}

static void
sites_of_an_iseq_at_a_reused_address_are_its_own(void **state)
{
    (void)state;
    start(100000);
    struct rb_iseq_struct old = fake_iseq_at(0x500000, 50, "old", "a.rb"), new = fake_iseq_at(0x500000, 60, "new", "a.rb");
    fake_push(&main_thread, &bar, 1);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "old", &old, 1), &main_thread);
    rb_vm_trace_iseq_free(&old);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "new", &new, 1), &main_thread);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_text(site_event(trace, "old"), "location"), "old (a.rb:1)");
    assert_string_equal(trace_text(site_event(trace, "new"), "location"), "new (a.rb:1)");
    trace_free(trace);
}

/* What its frames have names a site that no recorded exit has named; events have the frames as they are. */
static void
site_without_a_pc_is_named_by_that_of_its_frames(void **state)
{
    (void)state;
    start(6);
    fake_push(&main_thread, &foo, 7);
    static const char *const names[] = { "counted", "recorded" };
    struct rb_vm_trace_site *made[2];
    for (int i = 0; i < 2; i++) {
        made[i] = rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
            .reason = names[i], .reason_len = strlen(names[i]), .insn = "i", .insn_len = 1,
            .unit = &foo, .frame = &foo, .frame_pc = fake_pc(&foo, 41), .version = 1
        });
    }
    for (int i = 0; i < 5; i++) take_exit(made[0], &main_thread);
    take_exit(made[1], &main_thread);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_text(site_event(trace, "counted"), "location"), "foo (app.rb:40)");
    assert_string_equal(trace_text(trace_event(trace, "side_exit", "recorded", 0), "0"), "foo (app.rb:7)");
    trace_free(trace);
}

/* Of an inlined callee only the frames die: the code is the caller's. */
static void
death_of_an_inlined_iseq_leaves_the_sites_of_its_caller(void **state)
{
    (void)state;
    start(1);
    fake_push(&main_thread, &bar, 1);
    struct rb_vm_trace_site *site = rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
        .reason = "r", .reason_len = 1, .insn = "i", .insn_len = 1, .unit = &bar, .frame = &foo, .pc = fake_pc(&foo, 2), .version = 1
    });
    take_exit(site, &main_thread);
    rb_vm_trace_iseq_free(&foo);
    assert_int_equal(rb_vm_trace_site_count(), 1);
    take_exit(site, &main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(site_hits(trace, "r"), 2);
    trace_free(trace);
}

static void
death_of_an_iseq_without_sites_or_instructions_is_harmless(void **state)
{
    (void)state;
    struct rb_iseq_struct none = fake_iseq_at(0, 0, "none", "a.rb");
    rb_vm_trace_iseq_free(&none); /* before there is a trace */
    start(1);
    rb_vm_trace_iseq_free(&foo);
    rb_vm_trace_iseq_free(&none);
    rb_vm_trace_method_free(&foo_method);
    fake_push(&main_thread, &bar, 1);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "r", &bar, 1), &main_thread);
    rb_vm_trace_iseq_free(&foo);
    struct trace *trace = finish_traced();
    assert_int_equal(site_hits(trace, "r"), 1);
    trace_free(trace);
    rb_vm_trace_iseq_free(&bar); /* after it */
}

static void
dead_iseq_of_a_frame_is_labelled_anew(void **state)
{
    (void)state;
    start(1);
    struct rb_iseq_struct old = fake_iseq_at(0x500000, 50, "old", "a.rb"), new = fake_iseq_at(0x500000, 60, "new", "a.rb");
    fake_push(&main_thread, &old, 4);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &bar, 0);
    take_exit(site, &main_thread);
    rb_vm_trace_iseq_free(&old);
    main_thread.frames[0].iseq = &new;
    take_exit(site, &main_thread);
    main_thread.frames[0].method = &foo_method;
    take_exit(site, &main_thread);
    rb_vm_trace_method_free(&foo_method);
    foo_method.owner = "Other";
    take_exit(site, &main_thread);
    rb_vm_trace_compacted();
    foo_method.owner = "Moved";
    take_exit(site, &main_thread);
    struct trace *trace = finish_traced();
    static const char *const expected[] = {
        "old (a.rb:4)", "new (a.rb:4)", "Foo#new (a.rb:4)", "Other#new (a.rb:4)", "Moved#new (a.rb:4)"
    };
    for (size_t i = 0; i < 5; i++) assert_string_equal(trace_text(trace_event(trace, "side_exit", NULL, i), "0"), expected[i]);
    trace_free(trace);
}

/* Counts may not vanish from the file without a word, even where nobody is there to write them. */
static void
hits_of_an_iseq_that_dies_outside_of_ruby_are_reported_or_counted_as_lost(void **state)
{
    (void)state;
    start(100000);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 1);
    for (int i = 0; i < 50; i++) take_exit(site, &main_thread);
    fake_current(NULL);
    rb_vm_trace_iseq_free(&foo);
    fake_current(&main_thread);
    struct trace *trace = finish_traced();
    const struct trace_event *summary = trace_event(trace, "trace", "summary", 0);
    assert_int_equal(trace_number(summary, "exits"), 50);
    if (site_hits(trace, "r") != 50) assert_int_equal(trace_number(summary, "lost"), 1);
    trace_free(trace);
}

/* Thousands of ISEQs come and go in no order, as in a program that evals. */
static void
sites_of_thousands_of_iseqs_are_told_apart_and_freed(void **state)
{
    (void)state;
    enum { ISEQS = 3000, ROUNDS = 3 };
    start(1000000);
    static struct rb_iseq_struct iseqs[ISEQS];
    static char reasons[ISEQS][16];
    uint64_t total = 0, strings = rb_vm_trace_string_count();
    fake_push(&main_thread, &bar, 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ISEQS; i++) {
            iseqs[i] = fake_iseq_at(0x10000000 + (uintptr_t)i * (uintptr_t)i * 320, 8, "eval", "e.rb"); /* in no regular distance */
            sprintf(reasons[i], "r%d", i);
            for (unsigned line = 1; line <= 1 + (unsigned)i % 3; line++) {
                struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, reasons[i], &iseqs[i], line);
                for (int n = 0; n < i % 5; n++) take_exit(site, &main_thread);
                total += (uint64_t)(i % 5);
            }
        }
        assert_int_equal(rb_vm_trace_site_count(), ISEQS * 2);
        size_t alive = ISEQS * 2;
        for (int i = 0; i < ISEQS; i++) {
            int dead = (i * 1009 + round) % ISEQS;
            rb_vm_trace_iseq_free(&iseqs[dead]);
            alive -= 1 + (size_t)dead % 3;
            assert_int_equal(rb_vm_trace_site_count(), alive); /* its own ones, and no other's */
        }
        assert_int_equal(rb_vm_trace_site_count(), 0);
        assert_int_equal(rb_vm_trace_string_count(), strings + 2); /* of the collective sites */
    }
    assert_true(rb_vm_trace_hits_limit <= ISEQS * 2 + 1 + RB_VM_TRACE_KINDS); /* indexes were used again */
    struct trace *trace = finish_traced();
    for (int i = 0; i < ISEQS; i += 101) {
        assert_int_equal(site_hits(trace, reasons[i]), (uint64_t)(ROUNDS * (i % 5) * (1 + i % 3)));
    }
    assert_summary(trace, total, 0, 0);
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(each_site_with_hits_is_reported_once_with_their_number),
        isolated_test(site_event_says_kind_instruction_version_and_location),
        isolated_test(instructions_that_share_a_line_and_a_name_have_an_index_and_what_they_call),
        isolated_test(location_has_its_owner_from_the_first_recorded_exit),
        isolated_test(location_has_its_owner_when_the_running_method_is_compiled),
        isolated_test(long_location_is_whole),
        isolated_test(no_site_is_made_when_there_is_no_trace),
        isolated_test(exits_of_places_beyond_the_limit_are_counted_and_recorded),
        isolated_test(places_that_the_method_filter_leaves_out_need_no_room),
        isolated_test(dead_iseq_reports_its_sites_then_and_there),
        isolated_test(freed_code_reports_its_sites_and_the_iseq_gets_new_ones),
        isolated_test(index_of_a_dead_site_is_used_again_with_a_count_of_zero),
        isolated_test(sites_of_an_iseq_at_a_reused_address_are_its_own),
        isolated_test(site_without_a_pc_is_named_by_that_of_its_frames),
        isolated_test(death_of_an_inlined_iseq_leaves_the_sites_of_its_caller),
        isolated_test(death_of_an_iseq_without_sites_or_instructions_is_harmless),
        isolated_test(dead_iseq_of_a_frame_is_labelled_anew),
        isolated_test(hits_of_an_iseq_that_dies_outside_of_ruby_are_reported_or_counted_as_lost),
        isolated_test(sites_of_thousands_of_iseqs_are_told_apart_and_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
