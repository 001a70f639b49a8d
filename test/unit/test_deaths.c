/*
 * What happens when ISEQs and method entries die: each ractor forgets them before their memory is
 * used again, and what nothing was ever recorded of costs no lock.
 */
#include "harness.h"
#include "traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rb_iseq_struct foo;

static void
start(void)
{
    start_traced(.exit_rate = 1);
    foo = fake_iseq("foo", "a.rb");
}

static void
end(void)
{
    trace_free(finish_traced());
}

/* Ended by SIGALRM if it waits for a lock. */
static void
dies_without_a_lock(const struct rb_iseq_struct *iseq, const struct fake_method *method)
{
    static const struct fake_class klass = { .name = "A" };
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    unsigned before = alarm(60);
    if (iseq) rb_vm_trace_iseq_free(iseq);
    if (method) rb_vm_trace_method_free(method);
    rb_vm_trace_class_free((uintptr_t)&klass);
    alarm(before);
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
}

static void
death_of_what_nothing_was_recorded_of_is_not_logged(void **state)
{
    (void)state;
    start();
    fake_push(&main_thread, &foo, 1);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "Overflow", &foo, 1), &main_thread);
    uint64_t changes = rb_vm_trace_changes;
    for (int i = 0; i < 100; i++) {
        struct rb_iseq_struct eval = fake_iseq("eval", "e.rb");
        struct fake_method method[2] = { { "A", "a" } };
        dies_without_a_lock(&eval, &method[i % 2]);
    }
    assert_int_equal(rb_vm_trace_changes, changes);
    end();
}

static void
death_of_what_has_a_label_a_site_or_a_life_is_logged(void **state)
{
    (void)state;
    start();
    static const struct fake_method method = { "A", "a" };
    struct rb_iseq_struct labelled = fake_iseq("labelled", "a.rb"), site = fake_iseq("site", "a.rb"), history = fake_iseq("life", "a.rb");
    fake_push_method(&main_thread, &labelled, &method, 1);
    fake_push(&main_thread, &foo, 1);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "Overflow", &foo, 1), &main_thread);
    make_site(RB_VM_TRACE_SIDE_EXIT, "Overflow", &site, 1);
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    assert_non_null(rb_vm_trace_version_history_of(&history));
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
    struct rb_iseq_struct *iseqs[] = { &labelled, &site, &history };
    size_t sites = rb_vm_trace_site_count(), histories = rb_vm_trace_version_history_count();
    for (int i = 0; i < 3; i++) {
        uint64_t changes = rb_vm_trace_changes;
        rb_vm_trace_iseq_free(iseqs[i]);
        assert_int_not_equal(rb_vm_trace_changes, changes);
    }
    assert_int_equal(rb_vm_trace_site_count(), sites - 1);
    assert_int_equal(rb_vm_trace_version_history_count(), histories - 1);
    uint64_t changes = rb_vm_trace_changes;
    dies_without_a_lock(NULL, &method);
    assert_int_not_equal(rb_vm_trace_changes, changes);
    end();
}

/* What is known of the ISEQ whose label was made last must not outlive it. */
static void
death_of_an_iseq_in_the_place_of_a_dead_one_is_logged(void **state)
{
    (void)state;
    start();
    const struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "Overflow", &foo, 0);
    struct rb_iseq_struct eval;
    fake_push(&main_thread, &eval, 1);
    for (int i = 0; i < 3; i++) {
        eval = fake_iseq("eval", "e.rb");
        take_exit(site, &main_thread);
        uint64_t changes = rb_vm_trace_changes;
        rb_vm_trace_iseq_free(&eval);
        assert_int_not_equal(rb_vm_trace_changes, changes);
    }
    end();
}

/* However many ractors there are: a reader is never waited for. */
static void
death_is_logged_without_a_look_at_any_ractor(void **state)
{
    (void)state;
    start();
    struct rb_ractor_struct ractors[3];
    for (int i = 0; i < 3; i++) ractors[i].vm_trace = rb_vm_trace_ractor_new();
    struct rb_vm_trace_stacks before[3];
    for (int i = 0; i < 3; i++) before[i] = ractors[i].vm_trace->stacks;
    fake_push(&main_thread, &foo, 1);
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "Overflow", &foo, 1), &main_thread);
    rb_vm_trace_iseq_free(&foo);
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(&before[i], &ractors[i].vm_trace->stacks, sizeof(before[i]));
        rb_vm_trace_ractor_free(ractors[i].vm_trace);
    }
    end();
}

/* --- all at once -------------------------------------------------------------------------------------- */

enum { WORKERS = 4, GENERATIONS = 3000 };

struct worker {
    pthread_t native;
    uintptr_t from;
    bool failed;
};

/* Its ISEQs follow each other at one address; deaths of others come in between, sometimes more than the log holds. */
static void *
work(void *argument)
{
    struct worker *worker = argument;
    struct rb_vm_trace_stacks stacks = { .walk = { .count = 0 } };
    struct rb_execution_context_struct ec = { .tid = 1 };
    fake_current(&ec);
    worker->failed = !rb_vm_trace_stacks_init(&stacks);
    for (unsigned i = 0; i < GENERATIONS && !worker->failed; i++) {
        char name[16], expected[32];
        sprintf(name, "m%u", i);
        sprintf(expected, "m%u (e.rb:1)", i);
        struct rb_iseq_struct iseq = fake_iseq_at(worker->from, 10, name, "e.rb");
        fake_push(&ec, &iseq, 1);
        for (int twice = 0; twice < 2 && !worker->failed; twice++) {
            worker->failed = !stacks_capture(&stacks, &ec, 0);
            const struct vm_trace_label *label = &stacks.labels[stacks.walk.frames[0].id];
            if (label->bytes != strlen(expected) || memcmp(label->text, expected, label->bytes) != 0) worker->failed = true;
        }
        fake_pop(&ec, 1);
        unsigned times = i % 1000 == 999 ? 3000 : 1;
        while (times-- > 0) rb_vm_trace_died((struct vm_trace_range){ .from = iseq.from, .to = iseq.to + 1 });
    }
    if (stacks.label_count > 20) worker->failed = true; /* what died is forgotten, and no more than that is there */
    rb_vm_trace_stacks_free(&stacks);
    fake_free_stack(&ec);
    return NULL;
}

static void
no_thread_takes_the_living_for_the_dead_while_all_log_deaths(void **state)
{
    (void)state;
    struct worker workers[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){ .from = 0x500000 + i * 0x10000 };
        assert_int_equal(pthread_create(&workers[i].native, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].native, NULL);
        assert_false(workers[i].failed);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(death_of_what_nothing_was_recorded_of_is_not_logged),
        isolated_test(death_of_what_has_a_label_a_site_or_a_life_is_logged),
        isolated_test(death_of_an_iseq_in_the_place_of_a_dead_one_is_logged),
        isolated_test(death_is_logged_without_a_look_at_any_ractor),
        isolated_test(no_thread_takes_the_living_for_the_dead_while_all_log_deaths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
