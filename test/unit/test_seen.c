/*
 * What an event says that its guard has met.
 */
#include "harness.h"
#include "traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rb_iseq_struct foo;
static struct fake_object float_value = { .class_name = "Float", .kind = VM_TRACE_SAW_FLONUM };
static struct fake_object point = { .class_name = "Point", .ivar = "@x" };
static struct fake_object list = { .class_name = "Array", .length = 3 };

static struct rb_vm_trace_site *
begin(const char *reason, uint64_t rate)
{
    start_traced(.exit_rate = rate);
    foo = fake_iseq("foo", "app.rb");
    fake_push(&main_thread, &foo, 3);
    return make_site(RB_VM_TRACE_SIDE_EXIT, reason, &foo, 5);
}

static void
meet(struct rb_vm_trace_site *site, const struct fake_object *operand)
{
    fake_host.operand = operand;
    take_exit(site, &main_thread);
}

static struct trace *
end(void)
{
    fake_host.operand = NULL;
    return finish_traced();
}

static const struct trace_event *
exit_at(const struct trace *trace, size_t index)
{
    return trace_event(trace, "side_exit", NULL, index);
}

static void
exit_says_the_class_of_what_its_guard_has_met(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    for (int i = 0; i < 3; i++) meet(site, &float_value);
    for (int i = 0; i < 3; i++) meet(site, &point);
    meet(site, &float_value);
    struct trace *trace = end();
    static const char *const expected[] = { "Float", "Float", "Float", "Point", "Point", "Point", "Float" };
    for (size_t i = 0; i < 7; i++) assert_string_equal(trace_text(exit_at(trace, i), "seen"), expected[i]);
    assert_null(trace_argument(exit_at(trace, 0), "index"));
    assert_summary(trace, 7, 7, 0);
    trace_free(trace);
}

static void
what_is_the_same_again_is_not_named_again(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    meet(site, &point);
    size_t names = fake_host.value_names, guards = fake_host.guards;
    struct fake_object another = { .class_name = "Point" };
    for (int i = 0; i < 100; i++) meet(site, i % 2 ? &point : &another);
    assert_int_equal(fake_host.value_names, names);
    assert_int_equal(fake_host.guards, guards);
    trace_free(end());
}

static void
class_that_gets_another_name_is_named_anew(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    struct fake_object object = { .class_name = "#<Class(Object)>" };
    meet(site, &object);
    object.class_name = "Point";
    meet(site, &object);
    struct trace *trace = end();
    assert_string_equal(trace_text(exit_at(trace, 0), "seen"), "#<Class(Object)>");
    assert_string_equal(trace_text(exit_at(trace, 1), "seen"), "Point");
    trace_free(trace);
}

static void
assert_all_seen(const struct trace *trace, const char *const *expected, size_t count)
{
    for (size_t i = 0; i < count; i++) assert_string_equal(trace_text(exit_at(trace, i), "seen"), expected[i]);
}

static void
class_that_keeps_its_name_is_known_by_its_address(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    struct fake_class klass = { .name = "Point" };
    struct fake_object one = { .klass = &klass }, other = { .klass = &klass };
    for (int i = 0; i < 10; i++) meet(site, i % 2 ? &one : &other);
    assert_int_equal(fake_host.names_compared, 0);
    struct trace *trace = end();
    for (size_t i = 0; i < 10; i++) assert_string_equal(trace_text(exit_at(trace, i), "seen"), "Point");
    trace_free(trace);
}

static void
class_without_a_name_is_not_known_by_its_address(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    struct fake_class klass = { .name = "#<Class(Object)>", .unnamed = true };
    struct fake_object object = { .klass = &klass };
    meet(site, &object);
    meet(site, &object);
    klass = (struct fake_class){ .name = "Point" };
    meet(site, &object);
    meet(site, &object);
    struct trace *trace = end();
    assert_all_seen(trace, (const char *const []){ "#<Class(Object)>", "#<Class(Object)>", "Point", "Point" }, 4);
    trace_free(trace);
}

static void
address_of_a_freed_class_is_that_of_another_one(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardShape(ShapeId(7))", 1);
    struct fake_class klass = { .name = "Old" };
    struct fake_object object = { .klass = &klass, .ivar = "@x" };
    for (int i = 0; i < 2; i++) meet(site, &object);
    rb_vm_trace_class_free((uintptr_t)&klass);
    klass.name = "New";
    for (int i = 0; i < 2; i++) meet(site, &object);
    rb_vm_trace_compacted();
    klass.name = "Moved";
    for (int i = 0; i < 2; i++) meet(site, &object);
    struct trace *trace = end();
    assert_all_seen(trace, (const char *const []){ "Old @x", "Old @x", "New @x", "New @x", "Moved @x", "Moved @x" }, 6);
    trace_free(trace);
}

/* Also where it has not met that class, but another one of the same name, when the event was kept. */
static void
address_that_is_learnt_later_is_forgotten_with_its_class(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    struct fake_class classes[64];
    for (int i = 0; i < 64; i++) {
        classes[i] = (struct fake_class){ .name = "Same" };
        meet(site, &(struct fake_object){ .klass = &classes[i] });
    }
    for (int i = 0; i < 64; i++) {
        rb_vm_trace_class_free((uintptr_t)&classes[i]);
        classes[i].name = "Other";
        meet(site, &(struct fake_object){ .klass = &classes[i] });
    }
    struct trace *trace = end();
    for (size_t i = 0; i < 128; i++)
        assert_string_equal(trace_text(exit_at(trace, i), "seen"), i < 64 ? "Same" : "Other");
    trace_free(trace);
}

static void
each_ractor_notices_that_a_class_is_freed(void **state)
{
    (void)state;
    static struct rb_ractor_struct other;
    static struct rb_execution_context_struct thread = {
        .ractor = &other, .tid = 12, .thread_name = "other", .name_id = 12
    };
    fake_ractor_add(&other);
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    fake_push(&thread, &foo, 3);
    struct fake_class klass = { .name = "Old" };
    struct fake_object object = { .klass = &klass };
    fake_host.operand = &object;
    for (int i = 0; i < 8; i++) {
        if (i == 4) {
            rb_vm_trace_class_free((uintptr_t)&klass);
            klass.name = "New";
        }
        fake_current(i % 2 ? &thread : &main_thread);
        take_exit(site, i % 2 ? &thread : &main_thread);
    }
    fake_current(&main_thread);
    rb_vm_trace_ractor_free(other.vm_trace);
    fake_ractor_remove(&other);
    fake_free_stack(&thread);
    struct trace *trace = end();
    size_t found[2] = { 0, 0 };
    for (size_t i = 0; i < trace->event_count; i++) {
        if (!event_is(&trace->events[i], "side_exit", NULL)) continue;
        found[strcmp(trace_text(&trace->events[i], "seen"), "Old") == 0]++;
    }
    assert_int_equal(found[0], 4);
    assert_int_equal(found[1], 4);
    trace_free(trace);
}

static void
what_a_guard_meets_in_turn_is_not_written_anew(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    static const struct fake_object nil = { .class_name = "NilClass", .kind = VM_TRACE_SAW_NIL };
    meet(site, &float_value);
    meet(site, &nil);
    size_t names = fake_host.value_names;
    for (int i = 0; i < 10; i++) meet(site, i % 2 ? &nil : &float_value);
    assert_int_equal(fake_host.value_names, names);
    struct trace *trace = end();
    for (size_t i = 0; i < 12; i++)
        assert_string_equal(trace_text(exit_at(trace, i), "seen"), i % 2 ? "NilClass" : "Float");
    trace_free(trace);
}

static void
operand_that_is_not_found_is_left_out(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    meet(site, &float_value);
    meet(site, NULL);
    meet(site, &float_value);
    struct trace *trace = end();
    assert_non_null(trace_argument(exit_at(trace, 0), "seen"));
    assert_null(trace_argument(exit_at(trace, 1), "seen"));
    assert_non_null(trace_argument(exit_at(trace, 2), "seen"));
    trace_free(trace);
}

static void
shape_guard_says_the_instance_variable(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardShape(ShapeId(7))", 1);
    meet(site, &point);
    meet(site, &point);
    meet(site, &list);
    struct trace *trace = end();
    assert_string_equal(trace_text(exit_at(trace, 0), "seen"), "Point @x");
    assert_string_equal(trace_text(exit_at(trace, 1), "seen"), "Point @x");
    assert_string_equal(trace_text(exit_at(trace, 2), "seen"), "Array"); /* whose variable is not known */
    trace_free(trace);
}

/* Objects of one class in turn: what is kept of the last exit must not be what is said of the next. */
static void
shape_guard_says_what_each_object_has(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardShape(ShapeId(7))", 1);
    struct fake_class klass = { .name = "Point" };
    struct fake_object objects[] = { { .klass = &klass, .ivar = "@x", .shape = 1 }, { .klass = &klass, .shape = 4000000000 } };
    for (int i = 0; i < 6; i++) meet(site, &objects[i / 2 % 2]);
    struct trace *trace = end();
    assert_all_seen(trace, (const char *const []){ "Point @x (@v1)", "Point @x (@v1)", "Point (@v4000000000)",
                                                   "Point (@v4000000000)", "Point @x (@v1)", "Point @x (@v1)" }, 6);
    trace_free(trace);
}

/* -1 as the signed number that it is. */
static void
index_guard_says_index_and_length_of_each_exit(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardLess", 1);
    static const int64_t indexes[] = { 3, 4, -1, INT64_MIN / 4 };
    for (size_t i = 0; i < 4; i++) {
        fake_host.index = indexes[i];
        list.length = 3 + i;
        meet(site, &list);
    }
    struct trace *trace = end();
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(trace_text(exit_at(trace, i), "seen"), "Array");
        assert_int_equal((int64_t)trace_number(exit_at(trace, i), "index"), indexes[i]);
        assert_int_equal(trace_number(exit_at(trace, i), "length"), 3 + i);
    }
    trace_free(trace);
}

static void
reasons_without_a_guard_look_at_nothing(void **state)
{
    (void)state;
    static const char *const reasons[] = {
        "FixnumAddOverflow", "GuardType", "GuardLes", "GuardLessX", "opt_plus_overflow", "Interrupt",
        "guard_send_klass",
    };
    begin("CompileError(OutOfMemory)", 1);
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        meet(make_site(RB_VM_TRACE_SIDE_EXIT, reasons[i], &foo, 5), &point);
    /* The frame alone knows where it is. */
    meet(make_site(RB_VM_TRACE_SIDE_EXIT, "GuardType(Fixnum)", &foo, 0), &point);
    rb_vm_trace_hit(make_site(RB_VM_TRACE_FALLBACK, "GuardType(Fixnum)", &foo, 5), &main_thread);
    assert_int_equal(fake_host.guards, 0);
    struct trace *trace = end();
    for (size_t i = 0; i < 8; i++) assert_null(trace_argument(exit_at(trace, i), "seen"));
    trace_free(trace);
}

static void
event_without_room_for_all_has_fewer_frames_of_their_own(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardLess", 2);
    enum { DEPTH = 12 };
    for (unsigned line = 2; line <= DEPTH; line++) fake_push(&main_thread, &foo, line);
    for (int i = 0; i < 6; i++) {
        fake_host.index = i;
        meet(site, &list);
    }
    struct trace *trace = end();
    for (size_t i = 0; i < 3; i++) { /* 15: insn, version, weight, seen, index, length, 8 frames, 10+ */
        const struct trace_event *event = exit_at(trace, i);
        assert_int_equal(event->argument_count, 15);
        assert_string_equal(trace_text(event, "seen"), "Array");
        assert_int_equal(trace_number(event, "weight"), 2);
        assert_string_equal(trace_text(event, "7"), "foo (app.rb:5)");
        assert_null(trace_argument(event, "8"));
        assert_string_equal(trace_text(event, "10+"),
                            "foo (app.rb:4) < foo (app.rb:3) < foo (app.rb:2) < foo (app.rb:3)");
    }
    trace_free(trace);
}

static void
full_chunk_defines_what_was_seen_again(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    enum { EXITS = 40000 };
    for (int i = 0; i < EXITS; i++) meet(site, i % 3 ? &point : &float_value);
    struct trace *trace = end();
    for (size_t i = 0; i < EXITS; i++)
        assert_string_equal(trace_text(exit_at(trace, i), "seen"), i % 3 ? "Point" : "Float");
    assert_summary(trace, EXITS, EXITS, 0);
    trace_free(trace);
}

static void
more_classes_than_are_cached_are_all_right(void **state)
{
    (void)state;
    struct rb_vm_trace_site *site = begin("GuardType(Fixnum)", 1);
    enum { CLASSES = 2000 };
    static char names[CLASSES][16];
    for (int i = 0; i < 2 * CLASSES; i++) {
        snprintf(names[i % CLASSES], sizeof(names[0]), "C%d", i % CLASSES);
        meet(site, &(struct fake_object){ .class_name = names[i % CLASSES] });
    }
    struct trace *trace = end();
    size_t event = 0;
    for (size_t i = 0; i < trace->event_count; i++) {
        if (!event_is(&trace->events[i], "side_exit", NULL)) continue;
        assert_string_equal(trace_text(&trace->events[i], "seen"), names[event++ % CLASSES]);
    }
    assert_int_equal(event, 2 * CLASSES);
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(exit_says_the_class_of_what_its_guard_has_met),
        isolated_test(what_is_the_same_again_is_not_named_again),
        isolated_test(class_that_gets_another_name_is_named_anew),
        isolated_test(class_that_keeps_its_name_is_known_by_its_address),
        isolated_test(class_without_a_name_is_not_known_by_its_address),
        isolated_test(address_of_a_freed_class_is_that_of_another_one),
        isolated_test(address_that_is_learnt_later_is_forgotten_with_its_class),
        isolated_test(each_ractor_notices_that_a_class_is_freed),
        isolated_test(what_a_guard_meets_in_turn_is_not_written_anew),
        isolated_test(operand_that_is_not_found_is_left_out),
        isolated_test(shape_guard_says_the_instance_variable),
        isolated_test(shape_guard_says_what_each_object_has),
        isolated_test(index_guard_says_index_and_length_of_each_exit),
        isolated_test(reasons_without_a_guard_look_at_nothing),
        isolated_test(event_without_room_for_all_has_fewer_frames_of_their_own),
        isolated_test(full_chunk_defines_what_was_seen_again),
        isolated_test(more_classes_than_are_cached_are_all_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
