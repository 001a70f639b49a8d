/*
 * The arrow from an exit at a `throw` to the exit where it is caught.
 */
#include "harness.h"
#include "vm_trace/streams/exit_state.h"
#include "traced.h"

#include <string.h>

static struct rb_iseq_struct caller, method, block;
static struct rb_vm_trace_site *throws, *catches, *other;

static struct rb_vm_trace_site *
site_of(const char *insn, const struct rb_iseq_struct *iseq)
{
    struct rb_vm_trace_site *site = rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
        .kind = RB_VM_TRACE_SIDE_EXIT, .reason = insn, .reason_len = strlen(insn), .insn = insn,
        .insn_len = strlen(insn), .unit = iseq, .frame = iseq, .version = 1
    });
    assert_non_null(site);
    return site;
}

static void
start(uint64_t rate)
{
    start_traced(.exit_rate = rate);
    caller = fake_iseq("caller", "app.rb");
    method = fake_iseq("method", "app.rb");
    block = fake_iseq("block in method", "app.rb");
    throws = site_of("throw", &block);
    catches = site_of("(handler)", &method);
    other = site_of("opt_plus", &method);
    fake_push(&main_thread, &caller, 1);
}

/* The method calls its block, which throws. */
static void
throw(void)
{
    fake_push(&main_thread, &method, 2);
    fake_push(&main_thread, &block, 3);
    take_exit(throws, &main_thread);
}

/* Where the frames have gone, the one that is innermost then catches it. */
static void
catch_after(size_t frames)
{
    fake_pop(&main_thread, frames);
    take_exit(catches, &main_thread);
}

/* A block that breaks out of its method, so many times. */
static void
break_times(int times)
{
    for (int i = 0; i < times; i++) {
        throw();
        catch_after(1);
        fake_pop(&main_thread, 1);
    }
}

/* Returns the number of arrows from a throw to a catch; each follows its event and has its time. */
static size_t
arrows(void)
{
    struct trace *trace = finish_traced();
    size_t count = 0;
    uint64_t open = 0;
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i], *before = event - 1;
        if (event->type != EVENT_FLOW_BEGIN && event->type != EVENT_FLOW_END) continue;
        assert_string_equal(event->category, "throw");
        assert_string_equal(before->name, event->type == EVENT_FLOW_BEGIN ? "throw" : "(handler)");
        assert_true(before->type == EVENT_INSTANT && before->ns == event->ns);
        if (event->type == EVENT_FLOW_END) {
            assert_true(event->id == open);
            count++;
        }
        open = event->id;
    }
    trace_free(trace);
    return count;
}

static void
a_break_is_joined_with_the_method_that_goes_on(void **state)
{
    (void)state;
    start(1);
    break_times(3); /* the first one makes the events, the others write them again */
    assert_int_equal(arrows(), 3);
}

static void
a_return_is_joined_with_the_caller(void **state)
{
    (void)state;
    start(1);
    throw();
    catch_after(2);
    assert_int_equal(arrows(), 1);
}

static void
another_exit_between_parts_them(void **state)
{
    (void)state;
    start(1);
    throw();
    fake_pop(&main_thread, 1);
    take_exit(other, &main_thread);
    take_exit(catches, &main_thread);
    assert_int_equal(arrows(), 0);
}

/* An interpreted frame caught it. */
static void
another_method_at_the_same_place_has_not_caught_it(void **state)
{
    (void)state;
    start(1);
    throw();
    fake_pop(&main_thread, 2);
    fake_push(&main_thread, &block, 5);
    take_exit(catches, &main_thread);
    assert_int_equal(arrows(), 0);
}

static void
a_catch_without_a_throw_is_joined_with_nothing(void **state)
{
    (void)state;
    start(1);
    throw();
    catch_after(1);
    take_exit(catches, &main_thread); /* of an exception */
    assert_int_equal(arrows(), 1);
}

static void
samples_are_not_joined(void **state)
{
    (void)state;
    start(3); /* the throw of one loop, the catch of a later one */
    break_times(10);
    assert_int_equal(arrows(), 0);
}

/* Their arrows are between the events and the samples. */
static void
exits_with_stack_samples_are_joined(void **state)
{
    (void)state;
    enum { THROWS = 20000 };
    start(1);
    rb_vm_trace_exits.samples = true;
    break_times(THROWS);
    assert_int_equal(arrows(), THROWS);
}

/* Both records of an exit and its arrow are in one chunk. */
static void
arrows_over_many_chunks(void **state)
{
    (void)state;
    enum { THROWS = 100000 };
    start(1);
    break_times(THROWS);
    assert_int_equal(arrows(), THROWS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(a_break_is_joined_with_the_method_that_goes_on),
        isolated_test(a_return_is_joined_with_the_caller),
        isolated_test(another_exit_between_parts_them),
        isolated_test(another_method_at_the_same_place_has_not_caught_it),
        isolated_test(a_catch_without_a_throw_is_joined_with_nothing),
        isolated_test(samples_are_not_joined),
        isolated_test(exits_with_stack_samples_are_joined),
        isolated_test(arrows_over_many_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
