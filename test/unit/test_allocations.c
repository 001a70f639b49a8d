/*
 * Allocations: gaps and weights, and samples whose objects are freed, moved, or forgotten.
 */
#include "harness.h"
#include "traced.h"
#include "vm_trace/base/clock.h"
#include "vm_trace/session/session.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/streams/allocations/allocations.h"
#include "vm_trace/streams/allocations/live_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int gaps_begun;
static char objspace, other_objspace;

static void
begin_gaps(void)
{
    gaps_begun++;
}

static const struct fake_object *slots;
static size_t slot_count;

static bool
slot_p(void *in, uintptr_t word)
{
    bool found = false;
    for (size_t i = 0; i < slot_count; i++) found |= word == (uintptr_t)&slots[i];
    return found && in == &objspace;
}

static void
start_allocations(const char *option)
{
    rb_vm_trace_allocations_supported(begin_gaps, slot_p);
    gaps_begun = 0;
    assert_true(rb_vm_trace_parse_vm_option(option));
    start_traced(.exit_rate = 1);
    assert_int_equal(rb_vm_trace_allocations_on, 1);
    assert_int_equal(gaps_begun, 1);
}

/* As the allocator does when the count is complete. */
static void
allocate(struct fake_object *object, void *in, size_t bytes)
{
    object->alive = true;
    assert_int_equal(rb_vm_trace_allocations_due, 0);
    rb_vm_trace_allocation_due(in, bytes);
    rb_vm_trace_allocated((uintptr_t)object);
    assert_int_equal(rb_vm_trace_allocations_due, 0);
}

static bool
alive(void *in, uintptr_t object)
{
    (void)in;
    return ((const struct fake_object *)object)->alive;
}

static struct trace *
finish(uint64_t samples)
{
    struct trace *trace = finish_traced();
    assert_int_equal(trace_counter(trace_event(trace, "trace", "summary", 0), "allocation_samples"), samples);
    return trace;
}

static void
sample_has_class_size_weight_and_backtrace(void **state)
{
    (void)state;
    struct fake_object object = { .class_name = "Foo::Bar" };
    struct rb_iseq_struct iseq = fake_iseq("make", "a.rb");
    struct fake_method method = { "Maker", "make" };
    start_allocations("vm-trace=allocations:64K");
    fake_push_method(&main_thread, &iseq, &method, 3);
    allocate(&object, &objspace, 160);
    struct trace *trace = finish(1);
    const struct trace_event *event = trace_event(trace, "allocation", "Foo::Bar", 0);
    assert_int_equal(event->type, EVENT_INSTANT);
    assert_int_equal(trace_number(event, "sample"), 1);
    assert_int_equal(trace_number(event, "size"), 160);
    assert_int_equal(trace_number(event, "weight"), 65536 + 80); /* the half of the object, in the first order */
    assert_string_equal(trace_text(event, "0"), "Maker#make (a.rb:3)");
    assert_string_equal(event->thread, "main");
    assert_int_equal(trace_number(trace_event(trace, "trace", "settings", 0), "allocations"), 65536);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "allocation_bytes"), 65536 + 80);
    trace_free(trace);
    fake_free_stack(&main_thread);
}

/* Sums of weights are the bytes: gaps and weights belong together, whatever the size. */
static void
weights_of_samples_add_up_to_the_bytes(void **state)
{
    (void)state;
    static const size_t sizes[] = { 32, 40, 640, 4096 };
    static const uint64_t rates[] = { 1, 1024, 4096, 524288 };
    enum { SAMPLES = 40000 };
    for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
        rb_vm_trace_allocations.rate = rates[r];
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            double objects = 0, rate = (double)rates[r], size = (double)sizes[s];
            for (int i = 0; i < SAMPLES; i++) {
                size_t gap = rb_vm_trace_allocation_gap(sizes[s]);
                assert_in_range(gap, 1, RB_VM_TRACE_MOST_OBJECTS);
                objects += (double)gap;
            }
            double weight = rates[r] == 1 ? size : size / -expm1(-size / rate);
            /* The standard deviation of the mean is at most 0.5 %. */
            assert_true(fabs(objects * size / (weight * SAMPLES) - 1) < 0.03);
        }
    }
    rb_vm_trace_allocations.rate = 0;
    assert_int_equal(rb_vm_trace_allocation_gap(40), RB_VM_TRACE_MOST_OBJECTS);
}

static void
freed_is_written_at_the_marking_that_did_not_find_it(void **state)
{
    (void)state;
    struct fake_object objects[3] = { { .class_name = "A" }, { .class_name = "B" }, { .class_name = "C" } };
    start_allocations("vm-trace=allocations:1");
    for (int i = 0; i < 3; i++) allocate(&objects[i], &objspace, 40);
    rb_vm_trace_allocations_marked(&objspace, alive);
    rb_vm_trace_allocations_marked(&objspace, alive);
    objects[1].alive = false;
    rb_vm_trace_allocations_marked(&objspace, alive);
    objects[1].alive = true; /* another one at its address, which is no sample */
    rb_vm_trace_allocations_marked(&objspace, alive);
    objects[2].alive = false;
    rb_vm_trace_allocations_marked(&objspace, alive);
    struct trace *trace = finish(3);
    assert_int_equal(trace_count(trace, "allocation", "freed"), 2);
    const struct trace_event *freed = trace_event(trace, "allocation", "freed", 0);
    assert_int_equal(trace_number(freed, "sample"), 2);
    assert_int_equal(trace_number(freed, "survived"), 2);
    freed = trace_event(trace, "allocation", "freed", 1);
    assert_int_equal(trace_number(freed, "sample"), 3);
    assert_int_equal(trace_number(freed, "survived"), 4);
    const struct trace_event *living = trace_event(trace, "allocation", "alive", 0);
    assert_int_equal(trace_count(trace, "allocation", "alive"), 1);
    assert_int_equal(trace_number(living, "sample"), 1);
    assert_int_equal(trace_number(living, "survived"), 5);
    trace_free(trace);
}

/* What a collection reads, and what only a thread with the GVL can. */
static void
bytes_by_malloc_are_those_of_the_last_look(void **state)
{
    (void)state;
    struct fake_object freed = { .class_name = "A" }, grows = { .class_name = "B" },
                       data = { .class_name = "C", .extension = true, .malloc_bytes = 500 },
                       freed_data = { .class_name = "D", .extension = true, .malloc_bytes = 600 };
    start_allocations("vm-trace=allocations:1");
    allocate(&freed, &objspace, 40);
    allocate(&grows, &objspace, 40);
    allocate(&data, &objspace, 40);
    allocate(&freed_data, &objspace, 40);
    freed.malloc_bytes = UINT64_C(5000000000);
    freed.alive = freed_data.alive = false;
    grows.malloc_bytes = 10;
    rb_vm_trace_allocations_marked(&objspace, alive);
    grows.malloc_bytes = 20;
    struct rb_vm_trace_status status;
    assert_true(rb_vm_trace_stop_session(&status));
    grows.malloc_bytes = 30;
    free_traced();
    struct trace *trace = trace_read(traced_path);
    assert_int_equal(trace_number(trace_event(trace, "allocation", "freed", 0), "malloc_bytes"), UINT64_C(5000000000));
    assert_null(trace_argument(trace_event(trace, "allocation", "freed", 1), "malloc_bytes"));
    assert_int_equal(trace_number(trace_event(trace, "allocation", "alive", 0), "malloc_bytes"), 20);
    assert_int_equal(trace_number(trace_event(trace, "allocation", "alive", 1), "malloc_bytes"), 500);
    assert_null(trace_argument(trace_event(trace, "allocation", "alive", 1), "class")); /* the file has the sample */
    trace_free(trace);
}

static void
what_a_collection_can_not_read_stays_as_it_was(void **state)
{
    (void)state;
    struct fake_object data = { .class_name = "C", .extension = true, .malloc_bytes = 500 };
    start_allocations("vm-trace=allocations:1");
    allocate(&data, &objspace, 40);
    rb_vm_trace_live_samples_measure();
    data.alive = false;
    data.malloc_bytes = 600;
    rb_vm_trace_allocations_marked(&objspace, alive);
    struct trace *trace = finish(1);
    assert_int_equal(trace_number(trace_event(trace, "allocation", "freed", 0), "malloc_bytes"), 500);
    trace_free(trace);
}

/* When objects are being finalized, what they hold may be freed already. */
static void
nothing_is_read_after_the_program_has_ended(void **state)
{
    (void)state;
    struct fake_object object = { .class_name = "A", .malloc_bytes = 10 };
    start_allocations("vm-trace=allocations:1");
    allocate(&object, &objspace, 40);
    rb_vm_trace_finalizing();
    object.malloc_bytes = 20;
    struct trace *trace = finish(1);
    assert_int_equal(trace_number(trace_event(trace, "allocation", "alive", 0), "malloc_bytes"), 10);
    trace_free(trace);
}

static struct trace *
save_traced(void)
{
    struct rb_vm_trace_save save = { .path = traced_path, .why = "save" };
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    rb_vm_trace_recorder_write(&save);
    return trace_read(traced_path);
}

/* The event of its allocation is gone, so what is saved of it has all of that. */
static void
living_sample_is_saved_with_its_class_and_backtrace(void **state)
{
    (void)state;
    struct fake_object kept = { .class_name = "Kept", .malloc_bytes = 1000 }, freed = { .class_name = "Freed" };
    struct rb_iseq_struct iseq = fake_iseq("make", "a.rb");
    struct fake_method method = { "Maker", "make" };
    rb_vm_trace_session.memory.bytes = 4 << 20;
    uint64_t begin_ns = rb_vm_trace_clock_system_ns();
    start_allocations("vm-trace=allocations:64K");
    fake_push_method(&main_thread, &iseq, &method, 3);
    allocate(&kept, &objspace, 160);
    allocate(&freed, &objspace, 160);
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    freed.alive = false;
    rb_vm_trace_allocations_marked(&objspace, alive);
    struct trace *trace = save_traced();
    assert_int_equal(trace_count(trace, "allocation", NULL), 1);
    const struct trace_event *living = trace_event(trace, "allocation", "alive", 0);
    assert_string_equal(trace_text(living, "class"), "Kept");
    assert_int_equal(trace_number(living, "size"), 160);
    assert_int_equal(trace_number(living, "weight"), 65536 + 80);
    assert_int_equal(trace_number(living, "survived"), 1);
    assert_int_equal(trace_number(living, "malloc_bytes"), 1000);
    assert_in_range(trace_number(living, "age_ns"), 1, rb_vm_trace_clock_system_ns() - begin_ns);
    assert_string_equal(trace_text(living, "0"), "Maker#make (a.rb:3)");
    trace_free(trace);
    rb_vm_trace_shutdown();
    size_t texts = rb_vm_trace_string_count();
    rb_vm_trace_allocations.forget();
    assert_int_equal(rb_vm_trace_string_count(), texts - 1); /* the label; others have the classes, too */
    free_traced();
    free(traced_path);
    fake_free_stack(&main_thread);
}

static void
sample_that_is_older_than_a_reset_is_not_written_when_it_is_freed(void **state)
{
    (void)state;
    struct fake_object before = { .class_name = "A" }, after = { .class_name = "B" };
    rb_vm_trace_session.memory.bytes = 4 << 20;
    start_allocations("vm-trace=allocations:1");
    allocate(&before, &objspace, 40);
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    allocate(&after, &objspace, 40);
    before.alive = after.alive = false;
    rb_vm_trace_allocations_marked(&objspace, alive);
    struct trace *trace = save_traced();
    assert_int_equal(trace_count(trace, "allocation", "freed"), 1);
    assert_int_equal(trace_number(trace_event(trace, "allocation", "freed", 0), "sample"), 2);
    trace_free(trace);
    rb_vm_trace_shutdown();
    free_traced();
    free(traced_path);
}

/* The number of the sample that the n-th event of a name is of. */
static uint64_t
sample_of(struct trace *trace, const char *name, size_t n)
{
    return trace_number(trace_event(trace, "allocation", name, n), "sample");
}

static void
buffer_is_followed_by_the_object_that_owned_it_at_the_next_collection(void **state)
{
    (void)state;
    static char buffers[4][1024];
    struct fake_object objects[3] = { { .class_name = "Kept", .alive = true }, { .class_name = "Shares", .alive = true },
                                      { .class_name = "Root", .alive = true } };
    /* Of the first one, code knows the table. */
    const uintptr_t words[] = { (uintptr_t)buffers, (uintptr_t)&objects[0].table, (uintptr_t)&objects[1] };
    slots = objects;
    slot_count = 3;
    fake_host.words = words;
    fake_host.word_count = 3;
    start_allocations("vm-trace=allocations:1");
    for (size_t i = 0; i < 4; i++) rb_vm_trace_buffer_allocated(&objspace, buffers[i], 1024);
    rb_vm_trace_buffer_allocated(&objspace, buffers[0], 1023); /* is counted with its object */
    objects[0].buffer = buffers[0];
    objects[1].buffer = objects[2].buffer = buffers[1];
    objects[1].shared = &objects[2];
    rb_vm_trace_allocations_marked(&objspace, alive); /* nobody has the other two */
    objects[1].buffer = NULL;
    objects[1].alive = false;
    rb_vm_trace_allocations_marked(&objspace, alive); /* the hidden object keeps the second */
    objects[2].alive = false;
    rb_vm_trace_allocations_marked(&objspace, alive);
    rb_vm_trace_buffer_allocated(&objspace, buffers[3], 1024);
    objects[2].buffer = buffers[3]; /* is not alive */
    rb_vm_trace_finalizing();
    struct trace *trace = finish(5);
    assert_int_equal(trace_count(trace, "allocation", "(buffer)"), 5);
    assert_int_equal(trace_number(trace_event(trace, "allocation", "(buffer)", 0), "size"), 1024);
    assert_int_equal(trace_count(trace, "allocation", "freed"), 4);
    assert_int_equal(sample_of(trace, "freed", 0), 3);
    assert_int_equal(sample_of(trace, "freed", 1), 4);
    assert_null(trace_argument(trace_event(trace, "allocation", "freed", 1), "holder"));
    assert_int_equal(sample_of(trace, "freed", 2), 2);
    assert_int_equal(trace_number(trace_event(trace, "allocation", "freed", 2), "survived"), 2);
    assert_string_equal(trace_text(trace_event(trace, "allocation", "freed", 2), "holder"), "Shares");
    assert_int_equal(sample_of(trace, "freed", 3), 5);
    assert_int_equal(trace_count(trace, "allocation", "alive"), 1);
    assert_int_equal(sample_of(trace, "alive", 0), 1);
    assert_string_equal(trace_text(trace_event(trace, "allocation", "alive", 0), "holder"), "Kept");
    assert_int_equal(trace_number(trace_event(trace, "trace", "settings", 0), "allocations_buffers_from"), 1024);
    trace_free(trace);
}

/* A string that has grown has another buffer. */
static void
buffer_is_freed_when_its_object_has_another_one(void **state)
{
    (void)state;
    static char before[1024], after[1024];
    struct fake_object object = { .class_name = "Grows", .alive = true, .buffer = before };
    const uintptr_t word = (uintptr_t)&object;
    slots = &object;
    slot_count = 1;
    fake_host.words = &word;
    fake_host.word_count = 1;
    start_allocations("vm-trace=allocations:1");
    rb_vm_trace_buffer_allocated(&objspace, before, 1024);
    rb_vm_trace_allocations_marked(&objspace, alive);
    rb_vm_trace_buffer_allocated(&objspace, after, 1024);
    object.buffer = after;
    rb_vm_trace_finalizing(); /* finds out both */
    struct trace *trace = finish(2);
    assert_int_equal(trace_count(trace, "allocation", "alive"), 1);
    assert_int_equal(sample_of(trace, "alive", 0), 2);
    assert_int_equal(sample_of(trace, "freed", 0), 1);
    trace_free(trace);
}

static void
buffers_without_the_gvl_and_in_a_collection_are_counted(void **state)
{
    (void)state;
    static char buffer[4096];
    start_allocations("vm-trace=allocations:1");
    fake_host.collecting = true;
    rb_vm_trace_buffer_allocated(&objspace, buffer, sizeof(buffer));
    fake_host.collecting = false;
    fake_host.without_gvl = &main_thread;
    rb_vm_trace_buffer_allocated(&objspace, buffer, sizeof(buffer));
    fake_host.without_gvl = NULL;
    struct trace *trace = finish(0);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "allocation_buffers_left_out"), 2);
    trace_free(trace);
    rb_vm_trace_buffer_allocated(&objspace, buffer, SIZE_MAX - 1); /* nothing is on */
}

static void
buffers_are_sampled_by_their_bytes(void **state)
{
    (void)state;
    static const size_t sizes[] = { 1024, 65536, 1 << 20 };
    static char buffer;
    enum { ALLOCATED = 64 << 20 };
    start_allocations("vm-trace=allocations:64K");
    for (size_t s = 0; s < 3; s++)
        for (size_t bytes = 0; bytes < ALLOCATED; bytes += sizes[s])
            rb_vm_trace_buffer_allocated(&objspace, &buffer, sizes[s]);
    struct trace *trace = finish_traced();
    double bytes = (double)trace_number(trace_event(trace, "trace", "summary", 0), "allocation_bytes");
    assert_true(fabs(bytes / (3.0 * ALLOCATED) - 1) < 0.1); /* some 1,700 samples, a standard deviation of 1.3 % */
    trace_free(trace);
}

static void
collection_of_another_objspace_changes_nothing(void **state)
{
    (void)state;
    struct fake_object one = { .class_name = "A" }, other = { .class_name = "B" };
    start_allocations("vm-trace=allocations:1");
    allocate(&one, &objspace, 40);
    allocate(&other, &other_objspace, 40);
    one.alive = other.alive = false;
    rb_vm_trace_allocations_marked(&other_objspace, alive);
    struct trace *trace = finish(2);
    assert_int_equal(trace_number(trace_event(trace, "allocation", "freed", 0), "sample"), 2);
    assert_int_equal(trace_number(trace_event(trace, "allocation", "alive", 0), "sample"), 1);
    assert_int_equal(trace_count(trace, "allocation", NULL), 4);
    trace_free(trace);
}

static void
objects_that_moved_are_found(void **state)
{
    (void)state;
    struct fake_object from = { .class_name = "A" }, to = { .class_name = "A" }, stays = { .class_name = "B" };
    start_allocations("vm-trace=allocations:1");
    allocate(&from, &objspace, 40);
    allocate(&stays, &objspace, 40);
    from.moved_to = &to;
    rb_vm_trace_compacted();
    from.alive = false;
    to.alive = true;
    rb_vm_trace_allocations_marked(&objspace, alive);
    to.alive = false;
    rb_vm_trace_allocations_marked(&objspace, alive);
    struct trace *trace = finish(2);
    const struct trace_event *freed = trace_event(trace, "allocation", "freed", 0);
    assert_int_equal(trace_number(freed, "sample"), 1);
    assert_int_equal(trace_number(freed, "survived"), 1);
    assert_int_equal(trace_count(trace, "allocation", "freed"), 1);
    trace_free(trace);
}

static void
full_table_leaves_samples_untracked(void **state)
{
    (void)state;
    static struct fake_object objects[LIVE_SAMPLES_MOST + 2];
    start_allocations("vm-trace=allocations:1");
    for (size_t i = 0; i < LIVE_SAMPLES_MOST + 2; i++) {
        objects[i].class_name = i < LIVE_SAMPLES_MOST ? "Tracked" : "Untracked";
        if (i > LIVE_SAMPLES_MOST) { /* a place becomes free */
            objects[7].alive = false;
            objects[i].class_name = "Again";
            rb_vm_trace_allocations_marked(&objspace, alive);
        }
        allocate(&objects[i], &objspace, 40);
    }
    struct trace *trace = finish(LIVE_SAMPLES_MOST + 2);
    assert_int_equal(trace_number(trace_event(trace, "allocation", "Untracked", 0), "untracked"), 1);
    assert_null(trace_argument(trace_event(trace, "allocation", "Tracked", LIVE_SAMPLES_MOST - 1), "untracked"));
    assert_null(trace_argument(trace_event(trace, "allocation", "Again", 0), "untracked"));
    assert_int_equal(trace_count(trace, "allocation", "alive"), LIVE_SAMPLES_MOST);
    trace_free(trace);
}

/* The class of each is looked up anew, and none is lost. */
static void
samples_go_on_in_the_next_chunk(void **state)
{
    (void)state;
    rb_vm_trace_writer_run_chunks = 1;
    enum { MANY = 30000 };
    static struct fake_object objects[MANY];
    char names[300][16];
    start_allocations("vm-trace=allocations:1");
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i % 300], sizeof(names[0]), "Class%zu", i % 300);
        objects[i].class_name = names[i % 300];
        allocate(&objects[i], &objspace, 40);
        objects[i].alive = false;
        if (i % 1000 == 0) rb_vm_trace_allocations_marked(&objspace, alive);
    }
    rb_vm_trace_allocations_marked(&objspace, alive);
    struct trace *trace = finish(MANY);
    assert_true(trace->chunk_count > 1);
    assert_int_equal(trace_count(trace, "allocation", "freed"), MANY);
    for (size_t i = 0; i < 300; i++) assert_int_equal(trace_count(trace, "allocation", names[i]), MANY / 300);
    trace_free(trace);
}

static void
nothing_is_written_after_the_trace(void **state)
{
    (void)state;
    struct fake_object object = { .class_name = "A" };
    start_allocations("vm-trace=allocations:1");
    allocate(&object, &objspace, 40);
    struct rb_vm_trace_status status;
    assert_true(rb_vm_trace_stop_session(&status));
    assert_int_equal(rb_vm_trace_allocations_on, 0);
    assert_int_equal(gaps_begun, 2);
    rb_vm_trace_allocation_due(&objspace, 40);
    rb_vm_trace_allocated((uintptr_t)&object);
    object.alive = false;
    rb_vm_trace_allocations_marked(&objspace, alive);
    free_traced();
    struct trace *trace = trace_read(traced_path);
    assert_int_equal(trace_count(trace, "allocation", NULL), 2);
    trace_free(trace);
}

static void
gc_that_can_not_sample_is_refused(void **state)
{
    (void)state;
    rb_vm_trace_allocations_supported(NULL, NULL);
    struct rb_vm_trace_stream *stream = &rb_vm_trace_allocations;
    assert_null(stream->refuse(0, NULL));
    assert_string_equal(stream->refuse(1, NULL), "this GC has no sampling of allocations; the default GC has");
    assert_true(rb_vm_trace_parse_vm_option("vm-trace=allocations"));
    start_traced(.exit_rate = 1);
    assert_int_equal(rb_vm_trace_allocations_on, 0);
    trace_free(finish(0));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(sample_has_class_size_weight_and_backtrace),
        isolated_test(weights_of_samples_add_up_to_the_bytes),
        isolated_test(freed_is_written_at_the_marking_that_did_not_find_it),
        isolated_test(bytes_by_malloc_are_those_of_the_last_look),
        isolated_test(what_a_collection_can_not_read_stays_as_it_was),
        isolated_test(nothing_is_read_after_the_program_has_ended),
        isolated_test(living_sample_is_saved_with_its_class_and_backtrace),
        isolated_test(sample_that_is_older_than_a_reset_is_not_written_when_it_is_freed),
        isolated_test(buffer_is_followed_by_the_object_that_owned_it_at_the_next_collection),
        isolated_test(buffer_is_freed_when_its_object_has_another_one),
        isolated_test(buffers_without_the_gvl_and_in_a_collection_are_counted),
        isolated_test(buffers_are_sampled_by_their_bytes),
        isolated_test(collection_of_another_objspace_changes_nothing),
        isolated_test(objects_that_moved_are_found),
        isolated_test(full_table_leaves_samples_untracked),
        isolated_test(samples_go_on_in_the_next_chunk),
        isolated_test(nothing_is_written_after_the_trace),
        isolated_test(gc_that_can_not_sample_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
