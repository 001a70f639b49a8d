/*
 * Processes: what the child of a fork writes, and what a kill leaves.
 */
#define _GNU_SOURCE 1
#include "harness.h"
#include "vm_trace/streams/exit_state.h"
#include "traced.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct rb_iseq_struct foo;
static struct rb_vm_trace_site *site;

static void
start(uint64_t rate)
{
    foo = fake_iseq("foo", "app.rb");
    start_traced(.exit_rate = rate);
    fake_push(&main_thread, &foo, 3);
    site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
}

static void
take(unsigned exits)
{
    for (unsigned i = 0; i < exits; i++) take_exit(site, &main_thread);
}

/* fork(2) with the module's hooks around it, as Ruby calls them. */
static pid_t
traced_fork(void)
{
    fflush(NULL);
    rb_vm_trace_before_fork();
    pid_t pid = fork();
    rb_vm_trace_after_fork(pid);
    assert_true(pid >= 0);
    return pid;
}

/* Name of a child's trace. Free it. */
static char *
child_path(pid_t pid)
{
    char name[64];
    snprintf(name, sizeof(name), "t.fxt.%d", (int)pid);
    return temp_path(name);
}

/* End as a program ends. Does not return. */
static void
end_child(void)
{
    rb_vm_trace_shutdown();
    end_at_once(0);
}

static void
child_has_a_file_of_its_own_and_the_parents_is_unharmed(void **state)
{
    (void)state;
    start(1);
    take(5);
    size_t bytes;
    uint8_t *before = read_bytes(traced_path, &bytes);
    pid_t child = traced_fork();
    if (child == 0) {
        take(3);
        end_child();
    }
    wait_for(child);
    assert_unchanged(traced_path, before, bytes);

    take(2);
    struct trace *trace = finish_traced();
    assert_summary(trace, 7, 7, 0);
    assert_int_equal(trace_event(trace, "side_exit", NULL, 6)->pid, getpid());
    trace_free(trace);

    char *path = child_path(child);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    trace = trace_read(path);
    assert_summary(trace, 3, 3, 0); /* counted from zero */
    assert_string_equal(trace->events[0].name, "settings");
    assert_int_equal(trace_number(&trace->events[0], "pid"), child);
    for (size_t i = 0; i < trace->event_count; i++) {
        assert_int_equal(trace->events[i].pid, child);
        assert_int_equal(trace->events[i].tid, child);
        assert_true(trace->events[i].ns >= trace->events[0].ns);
    }
    assert_string_equal(trace_text(trace_event(trace, "side_exit", NULL, 0), "0"), "foo (app.rb:3)");
    trace_free(trace);
    free(path);
}

static void
both_write_at_once(void **state)
{
    (void)state;
    start(1);
    take(10);
    pid_t child = traced_fork();
    take(100000);
    if (child == 0) end_child();
    take(10);
    wait_for(child);
    struct trace *trace = finish_traced();
    assert_summary(trace, 100020, 100020, 0);
    trace_free(trace);
    char *path = child_path(child);
    trace = trace_read(path);
    assert_summary(trace, 100000, 100000, 0);
    trace_free(trace);
    free(path);
}

static void
pattern_of_the_path_has_the_childs_pid(void **state)
{
    (void)state;
    foo = fake_iseq("foo", "app.rb");
    char *pattern = temp_path("p-%p.fxt"), name[64];
    start_traced(.exit_rate = 1, .path = pattern);
    snprintf(name, sizeof(name), "p-%d.fxt", (int)getpid());
    traced_path = temp_path(name);
    fake_push(&main_thread, &foo, 3);
    site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    pid_t child = traced_fork();
    take(1);
    if (child == 0) end_child();
    wait_for(child);
    trace_free(finish_traced());
    snprintf(name, sizeof(name), "p-%d.fxt", (int)child);
    char *path = temp_path(name);
    trace_free(trace_read(path));
    free(path);
    free(pattern);
}

static void
child_with_nothing_to_say_makes_no_file(void **state)
{
    (void)state;
    start(1);
    take(5);
    pid_t child = traced_fork();
    if (child == 0) end_child();
    wait_for(child);
    char *path = child_path(child);
    assert_int_equal(access(path, F_OK), -1);
    free(path);
    trace_free(finish_traced());
}

/* Exact counts are in the trace whatever K was: those of a child, too. */
static void
child_whose_exits_were_not_sampled_reports_their_counts(void **state)
{
    (void)state;
    start(97);
    take(50);
    pid_t child = traced_fork();
    if (child == 0) {
        take(60);
        end_child();
    }
    wait_for(child);
    struct trace *trace = finish_traced();
    assert_summary(trace, 50, 0, 0);
    trace_free(trace);
    char *path = child_path(child);
    if (access(path, F_OK) != 0) fail_msg("60 exits of the child are nowhere");
    trace = trace_read(path);
    assert_int_equal(site_hits(trace, "r"), 60);
    assert_summary(trace, 60, 0, 0);
    trace_free(trace);
    free(path);
}

static void
countdown_of_the_child_begins_anew(void **state)
{
    (void)state;
    start(10);
    take(9);
    pid_t child = traced_fork();
    if (child == 0) {
        take(9);
        assert_int_equal(exits_of(main_ractor.vm_trace)->sampled, 0);
        take(1);
        assert_int_equal(exits_of(main_ractor.vm_trace)->sampled, 1);
        end_child();
    }
    wait_for(child);
    take(1);
    struct trace *trace = finish_traced();
    assert_summary(trace, 10, 1, 0);
    trace_free(trace);
}

static void
child_of_a_child_has_its_own_file_too(void **state)
{
    (void)state;
    start(1);
    take(1);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = traced_fork();
    if (child == 0) {
        pid_t grandchild = traced_fork(); /* before the child has a file */
        if (grandchild == 0) {
            take(2);
            end_child();
        }
        wait_for(grandchild);
        take(3);
        pid_t second = traced_fork(); /* and after */
        if (second == 0) {
            take(4);
            end_child();
        }
        wait_for(second);
        take(5);
        pid_t pids[2] = { grandchild, second };
        assert_int_equal(write(ends[1], pids, sizeof(pids)), sizeof(pids));
        end_child();
    }
    wait_for(child);
    pid_t pids[2];
    assert_int_equal(read(ends[0], pids, sizeof(pids)), sizeof(pids));
    struct trace *trace = finish_traced();
    assert_summary(trace, 1, 1, 0);
    trace_free(trace);
    const struct { pid_t pid; uint64_t exits; } expected[] = { { child, 8 }, { pids[0], 2 }, { pids[1], 4 } };
    for (size_t i = 0; i < 3; i++) {
        char *path = child_path(expected[i].pid);
        trace = trace_read(path);
        assert_int_equal(trace_number(&trace->events[0], "pid"), expected[i].pid);
        assert_summary(trace, expected[i].exits, expected[i].exits, 0);
        trace_free(trace);
        free(path);
    }
}

static void
failed_fork_changes_nothing(void **state)
{
    (void)state;
    start(1);
    take(2);
    rb_vm_trace_before_fork();
    rb_vm_trace_after_fork(-1);
    take(2);
    rb_vm_trace_before_fork();
    rb_vm_trace_after_fork(0); /* as daemon(3) says when it failed: this is still the parent */
    take(2);
    struct trace *trace = finish_traced();
    assert_summary(trace, 6, 6, 0);
    trace_free(trace);
}

static void
child_of_an_ended_trace_makes_no_file(void **state)
{
    (void)state;
    start(1);
    take(1);
    rb_vm_trace_shutdown();
    pid_t child = traced_fork();
    if (child == 0) {
        take(5);
        end_child();
    }
    wait_for(child);
    char *path = child_path(child);
    assert_int_equal(access(path, F_OK), -1);
    free(path);
    trace_free(finish_traced());
}

/* Ractors other than the one that forks are no more in the child; what is left of them is freed there. */
static void
other_ractors_are_dropped_in_the_child(void **state)
{
    (void)state;
    start(1);
    struct rb_ractor_struct ractor = { .vm_trace = rb_vm_trace_ractor_new() };
    struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = 7, .thread_name = "t", .name_id = 5 };
    fake_push(&thread, &foo, 2);
    take(1);
    for (int i = 0; i < 20; i++) take_exit(site, &thread);
    size_t bytes;
    uint8_t *before = read_bytes(traced_path, &bytes);
    pid_t child = traced_fork();
    if (child == 0) {
        rb_vm_trace_ractor_free(ractor.vm_trace);
        take(3);
        end_child();
    }
    wait_for(child);
    assert_unchanged(traced_path, before, bytes);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    struct trace *trace = finish_traced();
    assert_summary(trace, 21, 21, 0);
    trace_free(trace);
    char *path = child_path(child);
    trace = trace_read(path);
    assert_summary(trace, 3, 3, 0);
    trace_free(trace);
    free(path);
    fake_free_stack(&thread);
}

/* The one that forks has borrowed the chunk that it shares with two others: in the child there is another one, and nobody else. */
static void
child_of_a_ractor_that_shares_a_chunk_has_a_file_of_its_own(void **state)
{
    (void)state;
    enum { RACTORS = 4 };
    foo = fake_iseq("foo", "app.rb");
    start_traced(.exit_rate = 1, .max_size = { .bytes = 4 << 20 });
    site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    struct rb_ractor_struct ractors[RACTORS] = { { .vm_trace = NULL } };
    struct rb_execution_context_struct contexts[RACTORS], *last = &contexts[RACTORS - 1];
    for (unsigned i = 0; i < RACTORS; i++) {
        ractors[i].vm_trace = rb_vm_trace_ractor_new();
        contexts[i] = (struct rb_execution_context_struct){ .ractor = &ractors[i], .tid = 7 + i, .thread_name = "t", .name_id = 5 };
        fake_push(&contexts[i], &foo, 2);
        for (int n = 0; n < 10; n++) take_exit(site, &contexts[i]);
    }
    assert_null(ractors[RACTORS - 1].vm_trace->writer.chunk.words);
    fake_current(last);
    pid_t child = traced_fork();
    if (child == 0) {
        for (int n = 0; n < 3; n++) take_exit(site, last);
        end_child();
    }
    wait_for(child);
    take_exit(site, last);
    fake_current(&main_thread);
    for (unsigned i = 0; i < RACTORS; i++) rb_vm_trace_ractor_free(ractors[i].vm_trace);
    for (unsigned i = 0; i < RACTORS; i++) fake_free_stack(&contexts[i]);
    char *path = child_path(child);
    struct trace *trace = finish_traced();
    assert_summary(trace, 10 * RACTORS + 1, 10 * RACTORS + 1, 0);
    trace_free(trace);
    trace = trace_read(path);
    assert_summary(trace, 3, 3, 0);
    trace_free(trace);
    free(path);
}

/* One ractor comes and goes, and leaves its chunk. */
static void
live_and_die(uint32_t tid)
{
    struct rb_ractor_struct ractor = { .vm_trace = rb_vm_trace_ractor_new() };
    struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = tid, .thread_name = "t", .name_id = 5 };
    fake_push(&thread, &foo, 2);
    take_exit(site, &thread);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    fake_free_stack(&thread);
}

static void
what_a_ractor_left_is_the_parents_alone(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip_because("ThreadSanitizer knows no threads in the child of a process that had some");
#endif
    start(1);
    live_and_die(7);
    size_t bytes;
    uint8_t *before = read_bytes(traced_path, &bytes);
    pid_t child = traced_fork();
    if (child == 0) {
        take(1);
        live_and_die(8);
        live_and_die(9);
        end_child();
    }
    wait_for(child);
    assert_unchanged(traced_path, before, bytes);
    live_and_die(10);
    struct trace *trace = finish_traced();
    assert_summary(trace, 2, 2, 0);
    assert_int_equal(trace->chunk_count, 2);
    trace_free(trace);
    char *path = child_path(child);
    trace = trace_read(path);
    assert_summary(trace, 3, 3, 0);
    assert_int_equal(trace->chunk_count, 2);
    trace_free(trace);
    free(path);
}

static void
counts_of_gone_and_spare_ractors_begin_anew_in_the_child(void **state)
{
    (void)state;
    start(1);
    struct rb_ractor_struct ractor = { .vm_trace = rb_vm_trace_ractor_new() }, poor = { .vm_trace = rb_vm_trace_capture.overflow };
    struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = 7, .thread_name = "t", .name_id = 5 };
    fake_push(&thread, &foo, 2);
    for (int i = 0; i < 20; i++) take_exit(site, &thread);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    thread.ractor = &poor;
    take_exit(site, &thread);
    pid_t child = traced_fork();
    if (child == 0) {
        take(3);
        end_child();
    }
    wait_for(child);
    struct trace *trace = finish_traced();
    assert_summary(trace, 21, 20, 1);
    trace_free(trace);
    char *path = child_path(child);
    trace = trace_read(path);
    assert_summary(trace, 3, 3, 0);
    trace_free(trace);
    free(path);
    fake_free_stack(&thread);
}

static void
child_whose_file_cannot_be_made_says_so_once_and_why(void **state)
{
    (void)state;
    capture_stderr();
    start(1);
    take(1);
    pid_t child = traced_fork();
    if (child == 0) {
        char *path = child_path(getpid());
        assert_int_equal(mkdir(path, 0700), 0); /* what is in its way */
        free(path);
        take(5);
        rb_vm_trace_iseq_free(&foo);
        end_child();
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    char *said = captured_stderr(), *path = child_path(child), expected[512];
    if (status != 0) fail_msg("the child ended with %d: %s", status, said);
    /* It ran out of nothing, and there is no such file that something was written to. */
    snprintf(expected, sizeof(expected), "ZJIT: tracing to %s\nZJIT: can't trace to %s: it exists and is not a regular file; "
             "running untraced\n", traced_path, path);
    assert_string_equal(said, expected);
    free(said);
    free(path);
    trace_free(finish_traced());
}

static void *
take_in_a_thread(void *argument)
{
    struct rb_execution_context_struct *thread = argument;
    fake_current(thread);
    take_exit(site, thread);
    return NULL;
}

/*
 * Two ractors of the child come to the file at once and it can't be made: both stand at the lock
 * (which the hooks of a fork hold for them here), and the second must not undo what the first found.
 */
static void
file_that_cannot_be_made_is_tried_once_by_ractors_that_come_together(void **state)
{
    (void)state;
    enum { RACTORS = 3 };
    capture_stderr();
    start(1);
    take(1);
    pid_t child = traced_fork();
    if (child == 0) {
        struct rb_ractor_struct ractors[RACTORS] = { { .vm_trace = NULL } };
        struct rb_execution_context_struct contexts[RACTORS];
        pthread_t threads[RACTORS];
        char *path = child_path(getpid());
        assert_int_equal(mkdir(path, 0700), 0);
        free(path);
        for (int i = 0; i < RACTORS; i++) {
            ractors[i].vm_trace = rb_vm_trace_ractor_new();
            contexts[i] = (struct rb_execution_context_struct){
                .ractor = &ractors[i], .tid = 2000 + (uint32_t)i, .thread_name = "t", .name_id = 5, .frames = main_thread.frames,
                .frame_count = 1
            };
        }
        rb_vm_trace_before_fork();
        for (int i = 0; i < RACTORS; i++) pthread_create(&threads[i], NULL, take_in_a_thread, &contexts[i]);
        nanosleep(&(struct timespec){ 0, 50000000 }, NULL); /* in less they may come one by one, which must pass, too */
        rb_vm_trace_after_fork(-1);
        for (int i = 0; i < RACTORS; i++) pthread_join(threads[i], NULL);
        assert_int_equal(rb_vm_trace_capture.state, VM_TRACE_OFF);
        end_child();
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    char *said = captured_stderr(), *first = strstr(said, "can't trace to ");
    if (status != 0) fail_msg("the child ended with %d: %s", status, said);
    assert_non_null(first);
    assert_null(strstr(first + 1, "ZJIT: ")); /* nothing more is said */
    free(said);
    trace_free(finish_traced());
}

static void
child_does_not_keep_the_parents_file_open(void **state)
{
    (void)state;
    start(1);
    take(1);
    int fd = rb_vm_trace_capture.file.fd;
    pid_t child = traced_fork();
    if (child == 0) {
        assert_int_equal(fcntl(fd, F_GETFD), -1);
        end_child();
    }
    wait_for(child);
    assert_int_not_equal(fcntl(fd, F_GETFD), -1);
    trace_free(finish_traced());
}

static void
relative_path_of_a_child_is_in_the_first_folder(void **state)
{
    (void)state;
    foo = fake_iseq("foo", "app.rb");
    assert_int_equal(chdir(temp_folder()), 0);
    start_traced(.exit_rate = 1, .path = "t.fxt");
    traced_path = temp_path("t.fxt");
    fake_push(&main_thread, &foo, 3);
    site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    assert_int_equal(chdir("/"), 0);
    pid_t child = traced_fork();
    take(1);
    if (child == 0) end_child();
    wait_for(child);
    char *path = child_path(child);
    trace_free(trace_read(path));
    free(path);
    trace_free(finish_traced());
}

static void
child_that_leaves_without_an_end_has_a_valid_file(void **state)
{
    (void)state;
    start(1);
    pid_t child = traced_fork();
    if (child == 0) {
        take(3);
        end_at_once(0);
    }
    wait_for(child);
    char *path = child_path(child);
    struct trace *trace = trace_read(path);
    assert_int_equal(trace_count(trace, "side_exit", NULL), 3);
    assert_int_equal(trace_count(trace, "trace", "summary"), 0);
    trace_free(trace);
    free(path);
    trace_free(finish_traced());
}

/*
 * A process that exits as fast as it can, over many chunks, is killed: the file is valid, and
 * every exit is in it of which the process had come back.
 */
static void
sigkill_loses_nothing_that_was_published(void **state)
{
    (void)state;
    enum { KILLS = 25 };
    volatile uint64_t *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(done != MAP_FAILED);
    char *path = temp_path("t.fxt");
    for (int i = 0; i < KILLS; i++) {
        *done = 0;
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            start(1);
            static char reason[3000];
            memset(reason, 'r', sizeof(reason) - 1); /* records over pages */
            for (uint64_t n = 0; ; n++) {
                if (n % 100 == 0) {
                    sprintf(reason + sizeof(reason) - 24, "%llu", (unsigned long long)n);
                    site = make_site(RB_VM_TRACE_SIDE_EXIT, reason, &foo, 0);
                }
                main_thread.frames[0].line = 1 + n % 900;
                take(1);
                *done = n + 1;
            }
        }
        while (*done == 0) {}
        nanosleep(&(struct timespec){ 0, 100000 + i * 397123 }, NULL);
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

        struct trace *trace = trace_read(path);
        size_t exits = trace_count(trace, "side_exit", NULL);
        if (exits != *done && exits != *done + 1) fail_msg("%zu exits are there, of %llu", exits, (unsigned long long)*done);
        for (size_t n = 0; n < exits; n++) {
            char expected[32];
            sprintf(expected, "foo (app.rb:%zu)", 1 + n % 900);
            assert_string_equal(trace_text(&trace->events[FIRST_EVENTS + n], "0"), expected);
        }
        trace_free(trace);
    }
    free(path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(child_has_a_file_of_its_own_and_the_parents_is_unharmed),
        isolated_test(both_write_at_once),
        isolated_test(pattern_of_the_path_has_the_childs_pid),
        isolated_test(child_with_nothing_to_say_makes_no_file),
        isolated_test(child_whose_exits_were_not_sampled_reports_their_counts),
        isolated_test(countdown_of_the_child_begins_anew),
        isolated_test(child_of_a_child_has_its_own_file_too),
        isolated_test(failed_fork_changes_nothing),
        isolated_test(child_of_an_ended_trace_makes_no_file),
        isolated_test(other_ractors_are_dropped_in_the_child),
        isolated_test(child_of_a_ractor_that_shares_a_chunk_has_a_file_of_its_own),
        isolated_test(what_a_ractor_left_is_the_parents_alone),
        isolated_test(counts_of_gone_and_spare_ractors_begin_anew_in_the_child),
        isolated_test(child_whose_file_cannot_be_made_says_so_once_and_why),
        isolated_test(file_that_cannot_be_made_is_tried_once_by_ractors_that_come_together),
        isolated_test(child_does_not_keep_the_parents_file_open),
        isolated_test(relative_path_of_a_child_is_in_the_first_folder),
        isolated_test(child_that_leaves_without_an_end_has_a_valid_file),
        isolated_test(sigkill_loses_nothing_that_was_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
