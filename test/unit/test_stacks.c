/*
 * Frames to labels, stacks to nodes and to the text of the tail; what dies is forgotten.
 */
#include "harness.h"
#include "fake_host.h"
#include "vm_trace/capture/stack_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rb_vm_trace_stacks stacks;
static struct rb_execution_context_struct ec = { .tid = 1, .thread_name = "main", .name_id = 1 };

static void
start(void)
{
    memset(&stacks, 0, sizeof(stacks));
    assert_true(rb_vm_trace_stacks_init(&stacks));
    fake_current(&ec);
}

static void
finish(void)
{
    rb_vm_trace_stacks_free(&stacks);
    fake_free_stack(&ec);
}

/* Capture and return how many labels were asked for. */
static size_t
capture(void)
{
    fake_host.labels = 0;
    assert_true(stacks_capture(&stacks, &ec, 0));
    assert_int_equal(stacks.walk.count, ec.frame_count);
    return fake_host.labels;
}

/* Label of a captured frame, counted from the innermost. */
static void
assert_label(size_t from_top, const char *expected)
{
    const struct vm_trace_label *label = &stacks.labels[stacks.walk.frames[stacks.walk.count - 1 - from_top].id];
    char *text = malloc(label->bytes + 1);
    memcpy(text, label->text, label->bytes);
    text[label->bytes] = '\0';
    assert_string_equal(text, expected);
    free(text);
}

static uint32_t
top_node(void)
{
    return stacks.walk.frames[stacks.walk.count - 1].node;
}

/* The tail's text of so many frames of the captured stack. Free it. */
static char *
tail_of(size_t kept)
{
    size_t bytes;
    const char *text = rb_vm_trace_stacks_tail(&stacks, top_node(), kept, &bytes);
    assert_true(bytes <= 4096);
    char *copy = malloc(bytes + 1);
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

static char *
tail(void)
{
    return tail_of(SIZE_MAX);
}

static void
assert_tail_of(size_t kept, const char *expected)
{
    char *text = tail_of(kept);
    assert_string_equal(text, expected);
    free(text);
}

static void
assert_tail(const char *expected)
{
    assert_tail_of(SIZE_MAX, expected);
}

/* --- labels --------------------------------------------------------------------------------------- */

static void
frames_are_labelled_outermost_first(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct main_iseq = fake_iseq("<main>", "a.rb"), foo = fake_iseq("foo", "a.rb");
    struct fake_method method = { "Foo", "foo" }, each = { "Array", "each" };
    fake_push(&ec, &main_iseq, 7);
    fake_push_cfunc(&ec, &each);
    fake_push_method(&ec, &foo, &method, 2);
    assert_int_equal(capture(), 3);
    assert_label(0, "Foo#foo (a.rb:2)");
    assert_label(1, "Array#each (a.rb:7)");
    assert_label(2, "<main> (a.rb:7)");
    finish();
}

static void
unchanged_frames_cost_no_lookup(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    for (unsigned line = 1; line <= 50; line++) fake_push(&ec, &foo, line);
    assert_int_equal(capture(), 50);
    uint32_t node = top_node();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(capture(), 0);
        assert_int_equal(top_node(), node);
    }
    finish();
}

static void
only_the_changed_frame_is_labelled(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    for (unsigned line = 1; line <= 50; line++) fake_push(&ec, &foo, line);
    capture();
    uint32_t node = top_node();
    ec.frames[49].line = 99;
    assert_int_equal(capture(), 1);
    assert_label(0, "foo (a.rb:99)");
    assert_int_not_equal(top_node(), node);
    ec.frames[49].line = 50;
    assert_int_equal(capture(), 0); /* known from before */
    assert_int_equal(top_node(), node);
    finish();
}

/* The frames above a change are the same frames, but of another stack. */
static void
change_in_the_middle_gives_new_nodes_above_it(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    for (unsigned line = 1; line <= 5; line++) fake_push(&ec, &foo, line);
    capture();
    uint32_t below = stacks.walk.frames[1].node, above = top_node();
    ec.frames[2].line = 99;
    assert_int_equal(capture(), 1);
    assert_int_equal(stacks.walk.frames[1].node, below);
    assert_int_not_equal(top_node(), above);
    assert_tail("foo (a.rb:5) < foo (a.rb:4) < foo (a.rb:99) < foo (a.rb:2) < foo (a.rb:1)");
    finish();
}

static void
same_frame_of_another_method_has_its_own_label(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    struct fake_method a = { "A", "foo" }, b = { "B", "foo" };
    fake_push_method(&ec, &foo, &a, 1);
    capture();
    ec.frames[0].method = &b;
    assert_int_equal(capture(), 1);
    assert_label(0, "B#foo (a.rb:1)");
    ec.frames[0].method = &a;
    assert_int_equal(capture(), 0);
    assert_label(0, "A#foo (a.rb:1)");
    finish();
}

static void
same_call_of_another_cfunc_has_its_own_label(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    struct fake_method map = { "Array", "map" }, each = { "Array", "each" };
    fake_push(&ec, &foo, 3);
    fake_push_cfunc(&ec, &map);
    capture();
    assert_label(0, "Array#map (a.rb:3)");
    ec.frames[1].method = &each;
    capture();
    assert_label(0, "Array#each (a.rb:3)");
    ec.frames[0].line = 4;
    capture();
    assert_label(0, "Array#each (a.rb:4)");
    finish();
}

static void
exact_pc_of_the_top_frame_has_its_own_line(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    fake_push(&ec, &foo, 3);
    assert_true(stacks_capture(&stacks, &ec, (uintptr_t)fake_pc(&foo, 8) + HOST_PC_EXACT));
    assert_label(0, "foo (a.rb:8)");
    assert_true(stacks_capture(&stacks, &ec, 0));
    assert_label(0, "foo (a.rb:3)");
    finish();
}

static void
shorter_and_longer_stacks_are_right(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb"), bar = fake_iseq("bar", "a.rb");
    for (unsigned line = 1; line <= 6; line++) fake_push(&ec, &foo, line);
    capture();
    fake_pop(&ec, 3);
    assert_int_equal(capture(), 0);
    assert_tail("foo (a.rb:3) < foo (a.rb:2) < foo (a.rb:1)");
    fake_push(&ec, &bar, 1);
    fake_push(&ec, &foo, 5); /* as it was at this depth, but on another stack */
    assert_int_equal(capture(), 1);
    assert_tail("foo (a.rb:5) < bar (a.rb:1) < foo (a.rb:3) < foo (a.rb:2) < foo (a.rb:1)");
    fake_pop(&ec, 4);
    assert_int_equal(capture(), 0);
    assert_tail("foo (a.rb:1)");
    for (unsigned line = 2; line <= 6; line++) fake_push(&ec, &foo, line);
    assert_int_equal(capture(), 0);
    assert_tail("foo (a.rb:6) < foo (a.rb:5) < foo (a.rb:4) < foo (a.rb:3) < foo (a.rb:2) < foo (a.rb:1)");
    finish();
}

static void
frame_beyond_a_shorter_stack_gets_a_node_of_the_new_one(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    fake_push(&ec, &foo, 1);
    fake_push(&ec, &foo, 2);
    fake_push(&ec, &foo, 3);
    capture();
    fake_pop(&ec, 2);
    ec.frames[0].line = 9;
    capture();
    fake_push(&ec, &foo, 2); /* the very slot's old frame, under which the stack is another */
    fake_push(&ec, &foo, 3);
    assert_int_equal(capture(), 0);
    assert_tail("foo (a.rb:3) < foo (a.rb:2) < foo (a.rb:9)");
    finish();
}

static void
empty_stack_is_captured(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    assert_int_equal(capture(), 0);
    fake_push(&ec, &foo, 1);
    assert_int_equal(capture(), 1);
    fake_pop(&ec, 1);
    assert_int_equal(capture(), 0);
    finish();
}

static void
stack_deeper_than_ever_grows_the_frames(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    for (unsigned depth = 1; depth <= 5000; depth++) {
        fake_push(&ec, &foo, depth % 1000);
        if (depth % 100 == 0 || depth == 257) {
            capture();
            assert_int_equal(stacks.nodes[top_node()].depth, depth);
        }
    }
    fake_pop(&ec, 4999);
    assert_int_equal(capture(), 0);
    assert_int_equal(stacks.nodes[top_node()].depth, 1);
    finish();
}

static void
thousands_of_labels_are_found_again(void **state)
{
    (void)state;
    enum { ISEQS = 40, LINES = 200 };
    start();
    struct rb_iseq_struct iseqs[ISEQS];
    char names[ISEQS][16];
    for (int i = 0; i < ISEQS; i++) {
        sprintf(names[i], "method_%d", i);
        iseqs[i] = fake_iseq(names[i], "many.rb");
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < ISEQS; i++) {
            for (unsigned line = 1; line <= LINES; line++) {
                fake_push(&ec, &iseqs[i], line);
                assert_int_equal(capture(), round == 0 ? 1 : 0);
                char expected[64];
                sprintf(expected, "method_%d (many.rb:%u)", i, line);
                assert_label(0, expected);
                fake_pop(&ec, 1);
            }
        }
    }
    assert_int_equal(stacks.labels_alive, ISEQS * LINES);
    finish();
}

static void
label_longer_than_the_buffer_is_whole(void **state)
{
    (void)state;
    start();
    static char name[20001];
    memset(name, 'n', 20000);
    struct rb_iseq_struct foo = fake_iseq(name, "a.rb");
    fake_push(&ec, &foo, 1);
    assert_int_equal(capture(), 2); /* asked again, with room enough */
    const struct vm_trace_label *label = &stacks.labels[stacks.walk.frames[0].id];
    assert_int_equal(label->bytes, 20000 + strlen(" (a.rb:1)"));
    assert_memory_equal(label->text, name, 20000);
    assert_memory_equal(label->text + 20000, " (a.rb:1)", 9);
    finish();
}

static void
label_longer_than_a_record_is_cut_with_a_note(void **state)
{
    (void)state;
    start();
    static char name[50001];
    memset(name, 'n', 50000);
    struct rb_iseq_struct foo = fake_iseq(name, "a.rb");
    fake_push(&ec, &foo, 1);
    capture();
    const struct vm_trace_label *label = &stacks.labels[stacks.walk.frames[0].id];
    assert_true(label->bytes <= 32752);
    assert_memory_equal(label->text + label->bytes - 10, "bytes cut]", 10);
    finish();
}

/* --- the tail --------------------------------------------------------------------------------------- */

static void
repeated_frames_are_written_once_with_their_number(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct main_iseq = fake_iseq("<main>", "a.rb"), a = fake_iseq("a", "a.rb"), b = fake_iseq("b", "a.rb");
    fake_push(&ec, &main_iseq, 1);
    fake_push(&ec, &a, 2);
    fake_push(&ec, &a, 2);
    fake_push(&ec, &a, 2);
    fake_push(&ec, &b, 3);
    fake_push(&ec, &a, 2);
    capture();
    assert_tail("a (a.rb:2) < b (a.rb:3) < a (a.rb:2) x3 < <main> (a.rb:1)");
    fake_pop(&ec, 2);
    capture();
    assert_tail("a (a.rb:2) x3 < <main> (a.rb:1)");
    fake_pop(&ec, 1);
    capture();
    assert_tail("a (a.rb:2) x2 < <main> (a.rb:1)");
    finish();
}

static void
recursion_of_1990_frames_is_one_entry(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct main_iseq = fake_iseq("<main>", "a.rb"), fib = fake_iseq("fib", "a.rb");
    fake_push(&ec, &main_iseq, 9);
    for (int i = 0; i < 1990; i++) fake_push(&ec, &fib, 3);
    assert_int_equal(capture(), 2);
    assert_tail("fib (a.rb:3) x1990 < <main> (a.rb:9)");
    finish();
}

/* "< N more frames", where what is shown and N make up the depth. */
static void
assert_cut_tail(size_t depth, unsigned first_line)
{
    char *text = tail();
    size_t shown = 0;
    char *at = text;
    for (;;) {
        unsigned line = 0, more = 0;
        int length = 0;
        if (sscanf(at, "%u more frame%n", &more, &length) == 1 && length) {
            if (more + shown != depth) fail_msg("%zu shown and %u more, of %zu", shown, more, depth);
            assert_string_equal(at + length, more == 1 ? "" : "s");
            assert_true(shown == 0 || strncmp(at - 3, " < ", 3) == 0);
            break;
        }
        char *label = strstr(at, ":");
        if (!label || sscanf(label, ":%u)%n", &line, &length) != 1) fail_msg("no label: %s", at);
        assert_int_equal(line, first_line - shown);
        shown++;
        at = label + length;
        if (*at == '\0') break; /* all of it */
        assert_memory_equal(at, " < ", 3);
        at += 3;
    }
    if (*at == '\0') assert_int_equal(shown, depth);
    else assert_true(strlen(text) > 4096 - 200); /* cut late, not early */
    free(text);
}

static void
long_tail_is_cut_with_the_exact_number_of_frames(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("a_method_with_a_name_of_some_length", "a/path/of/some/length.rb");
    for (unsigned line = 1; line <= 900; line++) {
        fake_push(&ec, &foo, line);
        if (line % 50 == 0 || (line >= 50 && line <= 70)) {
            capture();
            assert_cut_tail(line, line);
        }
    }
    finish();
}

/* Names of each length, so that the cut falls on every byte of a label once. */
static void
cut_tail_never_passes_4096_bytes(void **state)
{
    (void)state;
    char name[256] = "";
    for (size_t length = 1; length < 140; length++) {
        start();
        memset(name, 'n', length);
        struct rb_iseq_struct foo = fake_iseq(name, "a.rb");
        for (unsigned line = 1; line <= 700; line++) fake_push(&ec, &foo, line);
        capture();
        assert_cut_tail(700, 700);
        finish();
    }
}

static void
run_that_does_not_fit_is_counted_whole(void **state)
{
    (void)state;
    start();
    static char name[4036];
    memset(name, 'n', 4035);
    struct rb_iseq_struct main_iseq = fake_iseq("<main>", "a.rb"), foo = fake_iseq("foo", "b.rb"), large = fake_iseq(name, "c.rb");
    fake_push(&ec, &main_iseq, 1);
    for (int i = 0; i < 300; i++) fake_push(&ec, &foo, 2);
    for (int i = 0; i < 200; i++) fake_push(&ec, &large, 3);
    fake_push(&ec, &foo, 4);
    capture();
    assert_tail("foo (b.rb:4) < 501 more frames");
    fake_pop(&ec, 1);
    capture();
    char *text = tail();
    assert_non_null(strstr(text, "n (c.rb:3) x200 < 301 more frames"));
    free(text);
    finish();
}

static void
label_larger_than_the_tail_leaves_a_count_alone(void **state)
{
    (void)state;
    start();
    static char name[5001];
    memset(name, 'n', 5000);
    struct rb_iseq_struct large = fake_iseq(name, "c.rb");
    fake_push(&ec, &large, 3);
    capture();
    assert_tail("1 more frame");
    fake_push(&ec, &large, 4);
    capture();
    assert_tail("2 more frames");
    finish();
}

/* --- what dies -------------------------------------------------------------------------------------- */

static void
iseq_dies(const struct rb_iseq_struct *iseq)
{
    rb_vm_trace_died((struct vm_trace_range){ .from = iseq->from, .to = iseq->to + 1 });
}

static void
method_dies(const struct fake_method *method)
{
    rb_vm_trace_died((struct vm_trace_range){ (uintptr_t)method, (uintptr_t)method + 1, true });
}

static void
reused_address_of_a_dead_iseq_gets_its_new_label(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct main_iseq = fake_iseq("<main>", "a.rb");
    struct rb_iseq_struct old = fake_iseq_at(0x500000, 100, "old", "old.rb"), new = fake_iseq_at(0x500000, 100, "new", "new.rb");
    fake_push(&ec, &main_iseq, 1);
    fake_push(&ec, &old, 5);
    capture();
    iseq_dies(&old);
    ec.frames[1].iseq = &new;
    assert_true(capture() >= 1);
    assert_label(0, "new (new.rb:5)");
    assert_label(1, "<main> (a.rb:1)");
    assert_tail("new (new.rb:5) < <main> (a.rb:1)");
    assert_int_equal(stacks.labels_alive, 2);
    finish();
}

static void
first_and_last_pc_of_a_dead_iseq_are_forgotten(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct before = fake_iseq_at(0x500000, 10, "before", "x.rb"), dead = fake_iseq_at(0x600000, 10, "dead", "x.rb"),
        behind = fake_iseq_at(0x700000, 10, "behind", "x.rb");
    struct fake_method each = { "Array", "each" };
    fake_push(&ec, &before, 9);
    fake_push(&ec, &dead, 0);      /* at the very first word */
    fake_push(&ec, &dead, 10);     /* behind the last instruction, a call */
    fake_push_cfunc(&ec, &each);   /* which called this */
    fake_push(&ec, &behind, 1);
    assert_int_equal(capture(), 5);
    iseq_dies(&dead);
    dead.name = "another";
    dead.path = "y.rb";
    assert_int_equal(capture(), 3);
    assert_label(1, "Array#each (y.rb:10)");
    assert_label(2, "another (y.rb:10)");
    assert_label(3, "another (y.rb:0)");
    finish();
}

static void
labels_of_the_living_are_kept(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct a = fake_iseq("a", "x.rb"), b = fake_iseq("b", "x.rb"), c = fake_iseq("c", "x.rb");
    for (unsigned line = 1; line <= 20; line++) {
        fake_push(&ec, &a, line);
        fake_push(&ec, &b, line);
        fake_push(&ec, &c, line);
    }
    assert_int_equal(capture(), 60);
    iseq_dies(&b);
    assert_int_equal(capture(), 20);
    finish();
}

static void
exit_and_cfunc_frames_of_a_dead_iseq_are_forgotten(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct old = fake_iseq_at(0x500000, 100, "old", "old.rb"), new = fake_iseq_at(0x500000, 100, "new", "new.rb");
    struct fake_method each = { "Array", "each" };
    fake_push(&ec, &old, 5);
    fake_push_cfunc(&ec, &each);
    capture();
    assert_label(0, "Array#each (old.rb:5)");
    fake_pop(&ec, 1);
    uintptr_t exact = (uintptr_t)fake_pc(&old, 100) + HOST_PC_EXACT;
    assert_true(stacks_capture(&stacks, &ec, exact));
    assert_label(0, "old (old.rb:100)");

    iseq_dies(&old);
    ec.frames[0].iseq = &new;
    assert_true(stacks_capture(&stacks, &ec, exact));
    assert_label(0, "new (new.rb:100)");
    fake_push_cfunc(&ec, &each);
    capture();
    assert_label(0, "Array#each (new.rb:5)");
    finish();
}

static void
dead_method_is_forgotten_with_all_its_frames(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct foo = fake_iseq("foo", "a.rb");
    struct fake_method methods[3] = { { "A", "a" }, { "B", "b" }, { "C", "c" } };
    for (int i = 0; i < 3; i++) {
        fake_push_method(&ec, &foo, &methods[i], 1);
        fake_push_method(&ec, &foo, &methods[i], 2);
    }
    assert_int_equal(capture(), 6);
    method_dies(&methods[1]);
    methods[1].owner = "Other";
    assert_int_equal(capture(), 2);
    assert_label(0, "C#foo (a.rb:2)");
    assert_label(2, "Other#foo (a.rb:2)");
    assert_label(3, "Other#foo (a.rb:1)");
    finish();
}

/* A method entry's address is no pc, and the other way round. */
static void
death_of_a_method_does_not_touch_code_at_its_address(void **state)
{
    (void)state;
    start();
    struct fake_method method = { "A", "a" };
    uintptr_t at = (uintptr_t)&method & HOST_PC_MASK;
    struct rb_iseq_struct foo = fake_iseq_at(at, 1, "foo", "a.rb"), bar = fake_iseq("bar", "a.rb");
    fake_push(&ec, &foo, 0);
    fake_push_method(&ec, &bar, &method, 1);
    assert_int_equal(capture(), 2);
    method_dies(&method);
    assert_int_equal(capture(), 1);
    iseq_dies(&foo);
    assert_int_equal(capture(), 1);
    finish();
}

/*
 * Memory of an ISEQ that died goes to smaller ones, which die too, all between two captures:
 * the ranges overlap then.
 */
static void
overlapping_dead_ranges_are_all_forgotten(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct large = fake_iseq_at(0x500000, 100, "large", "a.rb");
    for (unsigned line = 1; line < 100; line++) fake_push(&ec, &large, line);
    assert_int_equal(capture(), 99);
    struct rb_iseq_struct small[] = {
        fake_iseq_at(0x500000, 10, "s", "b.rb"), fake_iseq_at(0x500080, 20, "s", "b.rb"), fake_iseq_at(0x500200, 5, "s", "b.rb"),
        fake_iseq_at(0x500080, 20, "s", "b.rb"), fake_iseq_at(0x500210, 1, "s", "b.rb"), fake_iseq_at(0x500300, 2, "s", "b.rb")
    };
    iseq_dies(&large);
    for (size_t i = 0; i < sizeof(small) / sizeof(*small); i++) iseq_dies(&small[i]);
    large.name = "another";
    capture();
    for (size_t i = 0; i < 99; i++) {
        char expected[32];
        sprintf(expected, "another (a.rb:%zu)", 99 - i);
        assert_label(i, expected);
    }
    finish();
}

static void
nodes_of_the_dead_are_not_mistaken_for_those_of_reused_labels(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct main_iseq = fake_iseq("<main>", "a.rb"), old = fake_iseq_at(0x500000, 10, "old", "x.rb");
    fake_push(&ec, &main_iseq, 1);
    fake_push(&ec, &old, 1);
    capture();
    uint32_t label = stacks.walk.frames[1].id;
    stacks.nodes[top_node()].slot = (struct vm_trace_slot){ 77, 77 }; /* as if it was written */
    iseq_dies(&old);
    struct rb_iseq_struct new = fake_iseq_at(0x900000, 10, "new", "x.rb");
    ec.frames[1].iseq = &new;
    capture();
    assert_int_equal(stacks.walk.frames[1].id, label); /* the id is used again */
    assert_int_not_equal(stacks.nodes[top_node()].slot.chunk, 77);
    assert_int_equal(stacks.labels[label].slot.chunk, 0);
    assert_tail("new (x.rb:1) < <main> (a.rb:1)");
    finish();
}

static void
ids_of_dead_labels_are_used_again(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 5000; i++) {
        struct rb_iseq_struct eval = fake_iseq_at(0x500000 + (uintptr_t)(i % 7) * 0x10000, 100, "eval", "e.rb");
        fake_push(&ec, &eval, 1 + (unsigned)i % 90);
        capture();
        fake_pop(&ec, 1);
        iseq_dies(&eval);
    }
    assert_true(stacks.label_count < 10);
    finish();
}

static void
more_than_1024_deaths_forget_all(void **state)
{
    (void)state;
    for (int deaths = 1023; deaths <= 1026; deaths++) {
        start();
        struct rb_iseq_struct alive = fake_iseq("alive", "a.rb"), dead = fake_iseq("dead", "a.rb");
        fake_push(&ec, &alive, 1);
        fake_push(&ec, &dead, 1);
        capture();
        for (int i = 0; i < deaths - 1; i++) {
            struct rb_iseq_struct other = fake_iseq_at(0x100000 + (uintptr_t)i * 0x100, 10, "other", "b.rb");
            iseq_dies(&other);
        }
        iseq_dies(&dead); /* the last one: must not be the one that is left out */
        dead.name = "another";
        assert_int_equal(capture(), deaths > 1024 ? 2 : 1);
        assert_label(0, "another (a.rb:1)");
        assert_int_equal(capture(), 0);
        finish();
    }
}

static void
compaction_forgets_all_once(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct a = fake_iseq("a", "x.rb"), b = fake_iseq("b", "x.rb");
    struct fake_method moved = { "A", "a" }, at_its_old_place = { "B", "b" };
    fake_push_method(&ec, &a, &moved, 1);
    fake_push(&ec, &b, 2);
    capture();
    rb_vm_trace_all_died();
    moved = at_its_old_place;
    assert_int_equal(capture(), 2);
    assert_label(1, "B#a (x.rb:1)");
    assert_int_equal(capture(), 0);
    finish();
}

static void
child_of_a_fork_forgets_all_and_can_go_on(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct a = fake_iseq("a", "x.rb");
    fake_push(&ec, &a, 1);
    capture();
    pthread_mutex_lock(&rb_vm_trace_deaths_lock);
    pthread_mutex_unlock(&rb_vm_trace_deaths_lock);
    rb_vm_trace_stacks_forget_all(&stacks);
    assert_int_equal(capture(), 1);
    iseq_dies(&a);
    assert_int_equal(capture(), 1);
    finish();
}

/* --- a limit of frames --------------------------------------------------------------------------------- */

static void
tail_of_fewer_frames_says_how_many_there_are_more(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct main_iseq = fake_iseq("<main>", "a.rb"), foo = fake_iseq("foo", "a.rb");
    fake_push(&ec, &main_iseq, 9);
    for (int i = 0; i < 5; i++) fake_push(&ec, &foo, 2);
    fake_push(&ec, &foo, 3);
    assert_int_equal(capture(), 3);
    assert_tail_of(0, "7 more frames");
    assert_tail_of(1, "foo (a.rb:3) < 6 more frames");
    assert_tail_of(2, "foo (a.rb:3) < foo (a.rb:2) < 5 more frames");
    assert_tail_of(3, "foo (a.rb:3) < foo (a.rb:2) x2 < 4 more frames");
    assert_tail_of(5, "foo (a.rb:3) < foo (a.rb:2) x4 < 2 more frames");
    assert_tail_of(6, "foo (a.rb:3) < foo (a.rb:2) x5 < 1 more frame");
    assert_tail_of(7, "foo (a.rb:3) < foo (a.rb:2) x5 < <main> (a.rb:9)");
    assert_tail_of(8, "foo (a.rb:3) < foo (a.rb:2) x5 < <main> (a.rb:9)");
    finish();
}

/* --- bounds -------------------------------------------------------------------------------------------- */

static void
number_of_nodes_has_a_bound(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct iseqs[8];
    for (int i = 0; i < 8; i++) iseqs[i] = fake_iseq("m", "a.rb");
    uint32_t most = 0;
    /* 300,000 different stacks of four frames over few labels, on one that stays. */
    fake_push(&ec, &iseqs[4], 1);
    for (unsigned i = 0; i < 300000; i++) {
        fake_push(&ec, &iseqs[0], 1 + i % 60);
        fake_push(&ec, &iseqs[1], 1 + i / 60 % 70);
        fake_push(&ec, &iseqs[2], 1 + i / 4200 % 80);
        fake_push(&ec, &iseqs[3], 1 + i % 3);
        capture();
        assert_true(top_node() < stacks.node_count); /* also when the tree was begun anew under this walk */
        assert_int_equal(stacks.nodes[top_node()].depth, 5);
        if (stacks.node_count > most) most = stacks.node_count;
        if (i % 10007 == 0) {
            char expected[128];
            sprintf(expected, "m (a.rb:%u) < m (a.rb:%u) < m (a.rb:%u) < m (a.rb:%u) < m (a.rb:1)", 1 + i % 3, 1 + i / 4200 % 80, 1 + i / 60 % 70,
                    1 + i % 60);
            assert_tail(expected);
        }
        fake_pop(&ec, 4);
    }
    assert_true(most > 100000); /* the bound was reached */
    assert_true(most <= 131072);
    assert_true(stacks.node_capacity <= 131072);
    finish();
}

static void
stack_of_more_frames_than_nodes_may_be_is_captured(void **state)
{
    (void)state;
    start();
    struct rb_iseq_struct a = fake_iseq("a", "x.rb"), b = fake_iseq("b", "x.rb");
    for (int i = 0; i < 140000; i++) fake_push(&ec, i % 2 ? &a : &b, 1);
    capture();
    assert_int_equal(stacks.nodes[top_node()].depth, 140000);
    capture();
    assert_int_equal(stacks.nodes[top_node()].depth, 140000);
    char *text = tail();
    assert_non_null(strstr(text, " more frames"));
    free(text);
    finish();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(frames_are_labelled_outermost_first),
        isolated_test(unchanged_frames_cost_no_lookup),
        isolated_test(only_the_changed_frame_is_labelled),
        isolated_test(change_in_the_middle_gives_new_nodes_above_it),
        isolated_test(same_frame_of_another_method_has_its_own_label),
        isolated_test(same_call_of_another_cfunc_has_its_own_label),
        isolated_test(exact_pc_of_the_top_frame_has_its_own_line),
        isolated_test(shorter_and_longer_stacks_are_right),
        isolated_test(frame_beyond_a_shorter_stack_gets_a_node_of_the_new_one),
        isolated_test(empty_stack_is_captured),
        isolated_test(stack_deeper_than_ever_grows_the_frames),
        isolated_test(thousands_of_labels_are_found_again),
        isolated_test(label_longer_than_the_buffer_is_whole),
        isolated_test(label_longer_than_a_record_is_cut_with_a_note),
        isolated_test(repeated_frames_are_written_once_with_their_number),
        isolated_test(recursion_of_1990_frames_is_one_entry),
        isolated_test(long_tail_is_cut_with_the_exact_number_of_frames),
        isolated_test(cut_tail_never_passes_4096_bytes),
        isolated_test(run_that_does_not_fit_is_counted_whole),
        isolated_test(label_larger_than_the_tail_leaves_a_count_alone),
        isolated_test(reused_address_of_a_dead_iseq_gets_its_new_label),
        isolated_test(first_and_last_pc_of_a_dead_iseq_are_forgotten),
        isolated_test(labels_of_the_living_are_kept),
        isolated_test(exit_and_cfunc_frames_of_a_dead_iseq_are_forgotten),
        isolated_test(dead_method_is_forgotten_with_all_its_frames),
        isolated_test(death_of_a_method_does_not_touch_code_at_its_address),
        isolated_test(overlapping_dead_ranges_are_all_forgotten),
        isolated_test(nodes_of_the_dead_are_not_mistaken_for_those_of_reused_labels),
        isolated_test(ids_of_dead_labels_are_used_again),
        isolated_test(more_than_1024_deaths_forget_all),
        isolated_test(compaction_forgets_all_once),
        isolated_test(child_of_a_fork_forgets_all_and_can_go_on),
        isolated_test(tail_of_fewer_frames_says_how_many_there_are_more),
        isolated_test(number_of_nodes_has_a_bound),
        isolated_test(stack_of_more_frames_than_nodes_may_be_is_captured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
