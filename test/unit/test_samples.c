/*
 * Exits as stack samples: what a packet says, which stacks are one, and that each chunk stands alone.
 */
#include "harness.h"
#include "vm_trace/streams/exit_state.h"
#include "traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rb_iseq_struct foo, bar;
static struct fake_method foo_method = { "Foo", "foo" }, bar_method = { "Foo", "bar" };

static void
(start_with_samples)(struct rb_vm_trace_config config)
{
    assert_true(rb_vm_trace_parse_vm_option("vm-trace=exits:samples"));
    (start_traced)(config);
    foo = fake_iseq("foo", "app.rb");
    bar = fake_iseq("bar", "app.rb");
}
#define start_with_samples(...) (start_with_samples)((struct rb_vm_trace_config){ __VA_ARGS__ })

static void
push_foo(unsigned line)
{
    fake_push_method(&main_thread, &foo, &foo_method, line);
}

static void
push_bar(unsigned line)
{
    fake_push_method(&main_thread, &bar, &bar_method, line);
}

static struct rb_vm_trace_site *
site_of_foo(unsigned line)
{
    return make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, line);
}

static void
sample_says_who_when_and_the_whole_stack(void **state)
{
    (void)state;
    start_with_samples(.exit_rate = 3);
    push_bar(7);
    push_foo(3);
    for (int i = 0; i < 3; i++) take_exit(site_of_foo(5), &main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->sample_count, 1);
    const struct trace_sample *sample = &trace->samples[0];
    assert_true(sample->ns == trace_event(trace, "side_exit", "r", 0)->ns);
    assert_int_equal(sample->pid, getpid());
    assert_int_equal(sample->tid, 1001);
    assert_int_equal(sample->weight, 3);
    assert_false(sample->has_lost);
    /* The exiting frame ran compiled code, and the others are interpreted from now on. */
    assert_string_equal(sample->stack, "interpreted:Foo#bar app.rb:7 < jit:Foo#foo app.rb:5");
    trace_free(trace);
}

static void
sample_is_these_bytes(void **state)
{
    (void)state;
    start_with_samples(.exit_rate = 1);
    push_foo(3);
    struct rb_vm_trace_site *site = site_of_foo(5);
    for (int i = 0; i < 2; i++) take_exit(site, &main_thread); /* the second as the first */
    const struct rb_vm_trace_writer *writer = &main_ractor.vm_trace->writer;
    const uint64_t *words = writer->chunk.words + writer->pos - 5, *first = words - 5 - 5;
    assert_true(words[0] == (UINT64_C(3) << 48 | UINT64_C(29) << 32 | 5 << 4 | 5)); /* 5 words, 29 bytes, of type 3 */
    uint8_t bytes[32];
    memcpy(bytes, words + 1, sizeof(bytes));
    static const uint8_t begin[] = { 0x0a, 0x9a, 0x00, 0x50, 0xe5, 0x80, 0x00, 0x40 };
    static const uint8_t end[] = { 0x68, 0x02, 0xba, 0x08, 0x86, 0x00, 0x10, 0x01, 0x30, 0x01, 0x58, 0x01, 0, 0, 0 };
    assert_memory_equal(bytes, begin, sizeof(begin));
    assert_memory_equal(bytes + 17, end, sizeof(end));
    uint64_t ns = words[-5 + 1], found = 0;
    for (int i = 8; i >= 0; i--) found = found << 7 | (bytes[8 + i] & 0x7f);
    assert_true(found == ns);
    assert_true(memcmp(first, words, 2 * sizeof(*words)) == 0 && first[2] != words[2]);
    trace_free(finish_traced());
}

static void
event_has_ten_frames_or_one_and_the_number_of_the_others(void **state)
{
    (void)state;
    start_with_samples(.exit_rate = 1);
    for (unsigned i = 1; i <= 10; i++) push_foo(i);
    take_exit(site_of_foo(0), &main_thread);
    push_foo(11);
    take_exit(site_of_foo(0), &main_thread);
    struct trace *trace = finish_traced();
    const struct trace_event *ten = trace_event(trace, "side_exit", "r", 0),
                             *eleven = trace_event(trace, "side_exit", "r", 1);
    assert_string_equal(trace_text(ten, "9"), "Foo#foo (app.rb:1)");
    assert_null(trace_argument(ten, "10+"));
    assert_non_null(trace_text(eleven, "0"));
    assert_null(trace_argument(eleven, "1"));
    assert_int_equal(trace_number(eleven, "10+"), 10);
    assert_int_equal(trace->sample_count, 2);
    trace_free(trace);
}

static void
requested_frames_are_in_the_event(void **state)
{
    (void)state;
    rb_vm_trace_capture.stack_frames = 10;
    start_with_samples(.exit_rate = 1);
    for (unsigned i = 1; i <= 12; i++) push_foo(i);
    take_exit(site_of_foo(0), &main_thread);
    struct trace *trace = finish_traced();
    const struct trace_event *event = trace_event(trace, "side_exit", "r", 0);
    assert_string_equal(trace_text(event, "9"), "Foo#foo (app.rb:3)");
    assert_int_equal(trace_number(event, "10+"), 2);
    trace_free(trace);
}

static void
fallbacks_have_none(void **state)
{
    (void)state;
    start_with_samples(.exit_rate = 1, .fallback_rate = 1);
    for (unsigned i = 1; i <= 12; i++) push_foo(i);
    rb_vm_trace_hit(make_site(RB_VM_TRACE_FALLBACK, "f", &foo, 0), &main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->sample_count, 0);
    assert_non_null(trace_text(trace_event(trace, "fallback", "f", 0), "10+"));
    trace_free(trace);
}

/* --- stacks ------------------------------------------------------------------------------------------ */

static void
repetitions_are_left_out(void **state)
{
    (void)state;
    start_with_samples(.exit_rate = 1);
    struct rb_vm_trace_site *site = site_of_foo(9);
    push_bar(1);
    for (int i = 0; i < 300; i++) {
        push_bar(4);
        push_bar(4);
        push_foo(3);
        take_exit(site, &main_thread);
    }
    struct trace *trace = finish_traced();
    assert_int_equal(trace->sample_count, 300);
    for (size_t i = 1; i < 300; i++) {
        assert_string_equal(trace->samples[i].stack, "interpreted:Foo#bar app.rb:1 < interpreted:Foo#bar app.rb:4 < "
                            "interpreted:Foo#foo app.rb:3 < interpreted:Foo#bar app.rb:4 < jit:Foo#foo app.rb:9");
    }
    assert_int_equal(trace->stack_count, 2); /* the first one has no foo that calls */
    trace_free(trace);
}

static void
middle_of_a_deep_stack_is_left_out(void **state)
{
    (void)state;
    start_with_samples(.exit_rate = 1);
    struct rb_vm_trace_site *site = site_of_foo(999);
    for (unsigned i = 1; i <= 2400; i++) {
        push_foo(i);
        if (i >= 2399) take_exit(site, &main_thread);
    }
    assert_int_equal(main_ractor.vm_trace->stacks.walk.count, 2400);
    const struct vm_trace_samples *samples = &exits_of(main_ractor.vm_trace)->samples;
    /*
     * 512 outermost ones, those from a multiple of 64 on, the exiting one, and what stands for the
     * others.
     */
    assert_int_equal(samples->frames, 512 + (2399 - 512 - 448) + 1 + 1);
    assert_int_equal(samples->stacks, 2);
    assert_int_not_equal(samples->middle, 0);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->sample_count, 2);
    trace_free(trace);
}

static void
stack_of_2000_frames_is_whole(void **state)
{
    (void)state;
    start_with_samples(.exit_rate = 1);
    for (unsigned i = 1; i <= 2000; i++) push_foo(i);
    take_exit(site_of_foo(0), &main_thread);
    assert_int_equal(exits_of(main_ractor.vm_trace)->samples.frames, 2000);
    assert_int_equal(exits_of(main_ractor.vm_trace)->samples.middle, 0);
    trace_free(finish_traced());
}

/* --- chunks -------------------------------------------------------------------------------------------- */

/* The validator forgets all at the begin of a chunk. */
static void
each_chunk_defines_what_its_samples_need(void **state)
{
    (void)state;
    rb_vm_trace_writer_run_chunks = 1;
    enum { EXITS = 40000 };
    start_with_samples(.exit_rate = 1);
    push_bar(7);
    push_foo(3);
    struct rb_vm_trace_site *sites[] = { site_of_foo(5), site_of_foo(6) };
    for (int i = 0; i < EXITS; i++) take_exit(sites[i % 2], &main_thread);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->sample_count, EXITS);
    assert_true(trace->chunk_count > 2);
    for (size_t i = 0; i < EXITS; i++) {
        assert_int_equal(trace->samples[i].sequence, 101);
        assert_string_equal(trace->samples[i].stack, i % 2 ? "interpreted:Foo#bar app.rb:7 < jit:Foo#foo app.rb:6"
                                                           : "interpreted:Foo#bar app.rb:7 < jit:Foo#foo app.rb:5");
    }
    trace_free(trace);
}

/* They write in turns, each with numbers of its own. */
static void
ractors_that_share_a_chunk_have_sequences_of_their_own(void **state)
{
    (void)state;
    enum { RACTORS = 5 };
    start_with_samples(.exit_rate = 1, .max_size = { .bytes = 4 << 20 });
    push_foo(1);
    struct rb_vm_trace_site *site = site_of_foo(0);
    struct rb_ractor_struct ractors[RACTORS] = { { .vm_trace = NULL } };
    struct rb_execution_context_struct contexts[RACTORS];
    for (unsigned i = 0; i < RACTORS; i++) {
        ractors[i].vm_trace = rb_vm_trace_ractor_new();
        contexts[i] = (struct rb_execution_context_struct){
            .ractor = &ractors[i], .tid = 7 + i, .thread_name = "t", .name_id = 5 + i,
        };
        fake_push_method(&contexts[i], &foo, &foo_method, 10 + i);
    }
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < RACTORS; i++) take_exit(site, &contexts[i]);
    }
    assert_null(ractors[RACTORS - 1].vm_trace->writer.chunk.words);
    for (unsigned i = 0; i < RACTORS; i++) {
        rb_vm_trace_ractor_free(ractors[i].vm_trace);
        fake_free_stack(&contexts[i]);
    }
    struct trace *trace = finish_traced();
    assert_int_equal(trace->sample_count, 3 * RACTORS);
    bool shared = false;
    for (size_t i = 0; i < trace->sample_count; i++) {
        char expected[64];
        sprintf(expected, "interpreted:Foo#foo app.rb:%u", (unsigned)trace->samples[i].tid + 3);
        assert_string_equal(trace->samples[i].stack, expected);
        shared |= trace->samples[i].sequence != 101;
    }
    assert_true(shared);
    trace_free(trace);
}

/* --- lost time ------------------------------------------------------------------------------------------- */

static void
word_of_a_number_is_its_varint(void **state)
{
    (void)state;
    static const uint64_t numbers[] = { 0, 1, 127, 128, 300, 1234567890123, PROTO_WORD_MAX };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        uint64_t word = proto_word(numbers[i], true), found = 0;
        for (int byte = 7; byte >= 0; byte--) {
            assert_int_equal(word >> (8 * byte + 7) & 1, byte < 7);
            found = found << 7 | (word >> (8 * byte) & 0x7f);
        }
        assert_true(found == numbers[i]);
    }
}

static void
lost_time_is_the_last_word_whatever_the_weight(void **state)
{
    (void)state;
    static const uint64_t weights[] = { 1, 97, 128, 20000, 3000000, UINT32_MAX };
    start_with_samples(.exit_rate = 1);
    push_foo(1);
    take_exit(site_of_foo(0), &main_thread);
    struct rb_vm_trace_ractor *ractor = main_ractor.vm_trace;
    for (size_t i = 0; i < sizeof(weights) / sizeof(*weights); i++) {
        struct vm_trace_sample sample;
        assert_true(rb_vm_trace_sample_compose(ractor, &exits_of(ractor)->samples, weights[i], true, &sample));
        assert_in_range(sample.words, 6, VM_TRACE_SAMPLE_WORDS);
        assert_true((sample.record[0] >> 32 & 0x7fff) == 8 * (sample.words - 1)); /* whole words */
        assert_true(sample.record[sample.words - 1] == proto_word(0, true));
    }
    trace_free(finish_traced());
}

static void
time_of_a_packet_is_found_again(void **state)
{
    (void)state;
    static const uint64_t times[] = { 1, 68105950877820, UINT64_C(1) << 56, INT64_MAX };
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        uint64_t packet[4] = { perfetto_timed_word(29, 101), 0, UINT64_C(0x08ba0268) << 8, 0 };
        perfetto_put_time(packet, times[i]);
        assert_true(perfetto_time(packet, 4) == times[i]);
        assert_true(packet[2] >> 8 == UINT64_C(0x08ba0268));
        assert_true(perfetto_time(packet, 2) == 0);
        packet[0] ^= UINT64_C(1) << 56;
        assert_true(perfetto_time(packet, 4) == 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(sample_says_who_when_and_the_whole_stack),
        isolated_test(sample_is_these_bytes),
        isolated_test(event_has_ten_frames_or_one_and_the_number_of_the_others),
        isolated_test(requested_frames_are_in_the_event),
        isolated_test(fallbacks_have_none),
        isolated_test(repetitions_are_left_out),
        isolated_test(middle_of_a_deep_stack_is_left_out),
        isolated_test(stack_of_2000_frames_is_whole),
        isolated_test(each_chunk_defines_what_its_samples_need),
        isolated_test(ractors_that_share_a_chunk_have_sequences_of_their_own),
        isolated_test(word_of_a_number_is_its_varint),
        isolated_test(lost_time_is_the_last_word_whatever_the_weight),
        isolated_test(time_of_a_packet_is_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
