/*
 * Stacks of samples: what the handler adds to a ring comes out as the stacks that there were, under their names.
 */
#include "harness.h"
#include "fake_host.h"
#include "vm_trace/streams/samples/sample_ring.h"

#include <stdio.h>
#include <string.h>

static struct rb_vm_trace_stacks stacks;
static struct vm_trace_sample_rings rings;
static struct vm_trace_sample_ring *ring;
static struct rb_execution_context_struct ec = { .tid = 1, .thread_name = "main", .name_id = 1 };
static struct rb_iseq_struct main_iseq, foo, bar;

static void
start(void)
{
    memset(&stacks, 0, sizeof(stacks));
    assert_true(rb_vm_trace_stacks_init(&stacks));
    rings = (struct vm_trace_sample_rings){ NULL, NULL };
    ring = rb_vm_trace_sample_ring_lend(&rings);
    assert_non_null(ring);
    main_iseq = fake_iseq("<main>", "a.rb");
    foo = fake_iseq("foo", "a.rb");
    bar = fake_iseq("bar", "a.rb");
    fake_current(&ec);
}

static void
finish(void)
{
    rb_vm_trace_sample_rings_free(&rings);
    rb_vm_trace_stacks_free(&stacks);
    fake_free_stack(&ec);
}

static bool
sample(uint64_t ns, uint16_t what)
{
    if (!rb_vm_trace_sample_ring_walk(ring, &ec)) return false;
    const struct vm_trace_sampled_stack stack = { .ns = ns, .weight_ns = 1, .ticks = 1, .state = what };
    rb_vm_trace_sample_ring_add(ring, &stack);
    return true;
}

/* All stacks of the ring as a text: "10 s0: foo (a.rb:2) < <main> (a.rb:1)\n" for each. */
static char taken[1 << 20];
static size_t taken_bytes;

static void
add_text(const char *text, size_t bytes)
{
    assert_true(taken_bytes + bytes < sizeof(taken));
    memcpy(taken + taken_bytes, text, bytes);
    taken_bytes += bytes;
    taken[taken_bytes] = '\0';
}

static bool all_die; /* before each stack is put */

static void
put_stack(const struct vm_trace_sampled_stack *stack, const struct vm_trace_sampled_frame *frames, void *ignored)
{
    static const struct vm_trace_sampled_frame other = { HOST_PC_NO_FRAMES, 0, NULL };
    char head[64];
    (void)ignored;
    if (all_die) rb_vm_trace_all_died();
    if (!stack->count) { /* as samples.c does it: what is put stays in place of none */
        assert_true(rb_vm_trace_stacks_put(&stacks, &other, 0, 1));
    }
    else {
        assert_true(rb_vm_trace_stacks_put(&stacks, frames, stack->from, stack->count));
        assert_int_equal(stacks.walk.count, stack->count);
    }
    add_text(head, (size_t)snprintf(head, sizeof(head), "%u s%u:", (unsigned)stack->ns, stack->state));
    for (size_t i = stack->count; i-- > 0;) {
        const struct vm_trace_label *label = &stacks.labels[stacks.walk.frames[i].id];
        add_text(" ", 1);
        add_text(label->text, label->bytes);
    }
    add_text("\n", 1);
}

static void
assert_taken(const char *expected)
{
    taken_bytes = 0;
    taken[0] = '\0';
    rb_vm_trace_sample_ring_take(ring, put_stack, NULL);
    assert_string_equal(taken, expected);
    assert_null(rb_vm_trace_sample_ring_owner(ring));
}

static void
stacks_come_out_as_they_were(void **state)
{
    (void)state;
    start();
    fake_push(&ec, &main_iseq, 1);
    fake_push(&ec, &foo, 2);
    assert_true(sample(10, 0));
    assert_true(sample(11, 1)); /* the same again */
    fake_push(&ec, &bar, 3);
    assert_true(sample(12, 2));
    fake_pop(&ec, 2);
    assert_true(sample(13, 3)); /* shorter */
    fake_push(&ec, &bar, 4);
    assert_true(sample(14, 4));
    assert_taken("10 s0: foo (a.rb:2) <main> (a.rb:1)\n11 s1: foo (a.rb:2) <main> (a.rb:1)\n"
                 "12 s2: bar (a.rb:3) foo (a.rb:2) <main> (a.rb:1)\n13 s3: <main> (a.rb:1)\n"
                 "14 s4: bar (a.rb:4) <main> (a.rb:1)\n");
    finish();
}

/* A stack that grows again after it was shorter must not keep the frames that were there before. */
static void
what_a_shorter_stack_hid_is_seen_again(void **state)
{
    (void)state;
    start();
    fake_push(&ec, &main_iseq, 1);
    fake_push(&ec, &foo, 2);
    assert_true(sample(1, 0));
    fake_pop(&ec, 1);
    assert_true(sample(2, 0));
    fake_push(&ec, &foo, 2);
    assert_true(sample(3, 0));
    assert_taken("1 s0: foo (a.rb:2) <main> (a.rb:1)\n2 s0: <main> (a.rb:1)\n3 s0: foo (a.rb:2) <main> (a.rb:1)\n");
    finish();
}

static void
what_comes_after_no_frames_is_put_as_a_whole(void **state)
{
    (void)state;
    start();
    fake_push(&ec, &main_iseq, 1);
    fake_push(&ec, &foo, 2);
    assert_true(sample(1, 0));
    fake_pop(&ec, 2);
    assert_true(sample(2, 0));
    fake_push(&ec, &main_iseq, 1);
    fake_push(&ec, &foo, 2);
    assert_true(sample(3, 0)); /* no slot has changed */
    assert_taken("1 s0: foo (a.rb:2) <main> (a.rb:1)\n2 s0:\n3 s0: foo (a.rb:2) <main> (a.rb:1)\n");
    fake_pop(&ec, 1);
    assert_true(sample(4, 0));
    fake_pop(&ec, 1);
    assert_true(sample(5, 0));
    fake_push(&ec, &main_iseq, 1);
    assert_true(sample(6, 0)); /* as many frames as were put in place of none */
    assert_taken("4 s0: <main> (a.rb:1)\n5 s0:\n6 s0: <main> (a.rb:1)\n");
    finish();
}

static void
forgotten_frames_are_put_again(void **state)
{
    (void)state;
    start();
    fake_push(&ec, &main_iseq, 1);
    fake_push(&ec, &foo, 2);
    assert_true(sample(1, 0));
    fake_push(&ec, &bar, 3);
    assert_true(sample(2, 0));
    all_die = true;
    assert_taken("1 s0: foo (a.rb:2) <main> (a.rb:1)\n2 s0: bar (a.rb:3) foo (a.rb:2) <main> (a.rb:1)\n");
    all_die = false;
    finish();
}

/* A thread goes over to another fiber before the stacks of the one that it left are taken. */
static void
all_stacks_are_of_one_owner(void **state)
{
    struct rb_execution_context_struct other = { 0 };
    (void)state;
    start();
    fake_push(&ec, &main_iseq, 1);
    assert_true(sample(1, 0));
    assert_ptr_equal(rb_vm_trace_sample_ring_owner(ring), &ec);
    assert_false(rb_vm_trace_sample_ring_walk(ring, &other));
    assert_taken("1 s0: <main> (a.rb:1)\n");
    assert_true(rb_vm_trace_sample_ring_walk(ring, &other));
    finish();
}

static void
a_ring_is_used_again_after_it_was_emptied(void **state)
{
    (void)state;
    start();
    assert_taken("");
    fake_push(&ec, &main_iseq, 1);
    assert_true(sample(1, 0));
    assert_taken("1 s0: <main> (a.rb:1)\n");
    assert_true(sample(2, 0)); /* all of it, though nothing has changed */
    assert_taken("2 s0: <main> (a.rb:1)\n");
    rb_vm_trace_sample_ring_return(&rings, ring);
    assert_ptr_equal(rb_vm_trace_sample_ring_lend(&rings), ring);
    assert_ptr_not_equal(rb_vm_trace_sample_ring_lend(&rings), ring);
    finish();
}

static void
two_samples_of_one_walk_are_two_stacks(void **state)
{
    (void)state;
    start();
    fake_push(&ec, &main_iseq, 1);
    const struct vm_trace_sampled_stack stack = { .ns = 5, .weight_ns = 1, .ticks = 1 };
    assert_true(rb_vm_trace_sample_ring_walk(ring, &ec));
    rb_vm_trace_sample_ring_add(ring, &stack);
    rb_vm_trace_sample_ring_add(ring, &stack);
    assert_taken("5 s0: <main> (a.rb:1)\n5 s0: <main> (a.rb:1)\n");
    finish();
}

static void
count_stack(const struct vm_trace_sampled_stack *stack, const struct vm_trace_sampled_frame *frames, void *count)
{
    (void)stack, (void)frames;
    ++*(size_t *)count;
    assert_false(rb_vm_trace_sample_ring_walk(ring, &ec)); /* a signal while it is emptied finds no room */
}

static void
a_full_ring_takes_no_more_and_is_due_before(void **state)
{
    (void)state;
    start();
    for (unsigned line = 1; line <= 200; line++) fake_push(&ec, &foo, line);
    assert_false(rb_vm_trace_sample_ring_due_p(ring, 1, true));
    size_t added = 0, due_at = 0;
    for (; sample(added + 1, 0); added++) {
        if (!due_at && rb_vm_trace_sample_ring_due_p(ring, added + 1, true)) due_at = added + 1;
        fake_pop(&ec, 200);
        for (unsigned line = 1; line <= 200; line++) fake_push(&ec, &foo, line + (unsigned)added % 2);
        assert_true(added < 100000);
    }
    assert_in_range(due_at, added / 3, 2 * added / 3 + 1);
    size_t count = 0;
    rb_vm_trace_sample_ring_take(ring, count_stack, &count);
    assert_int_equal(count, added);
    assert_true(sample(1, 0));
    assert_true(rb_vm_trace_sample_ring_due_p(ring, 200000000, true)); /* it is old */
    assert_false(rb_vm_trace_sample_ring_due_p(ring, 200000000, false));
    assert_true(rb_vm_trace_sample_ring_due_p(ring, 20000000000, false));
    finish();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(stacks_come_out_as_they_were),
        isolated_test(what_a_shorter_stack_hid_is_seen_again),
        isolated_test(what_comes_after_no_frames_is_put_as_a_whole),
        isolated_test(forgotten_frames_are_put_again),
        isolated_test(all_stacks_are_of_one_owner),
        isolated_test(a_ring_is_used_again_after_it_was_emptied),
        isolated_test(two_samples_of_one_walk_are_two_stacks),
        isolated_test(a_full_ring_takes_no_more_and_is_due_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
