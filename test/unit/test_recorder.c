/*
 * The flight recorder: what is saved, what a reset forgets, what is left when it fails.
 */
#define _GNU_SOURCE 1
#include "harness.h"
#include "vm_trace/store/memory_ring.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/base/messages.h"
#include "traced.h"
#include "vm_trace/streams/code/versions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 4 };

static struct rb_iseq_struct foo;
static struct rb_vm_trace_site *site;

static void
(start_recorder)(struct rb_vm_trace_config config)
{
    if (!rb_vm_trace_session.memory.bytes) rb_vm_trace_session.memory.bytes = (uint64_t)MIB << 20;
    (start_traced)(config);
    assert_int_not_equal(access(traced_path, F_OK), 0);
    foo = fake_iseq("foo", "a.rb");
    site = make_site(RB_VM_TRACE_SIDE_EXIT, "Overflow", &foo, 1);
    fake_push(&main_thread, &foo, 1);
}
#define start_recorder(...) (start_recorder)((struct rb_vm_trace_config){ __VA_ARGS__ })

static void
exits(unsigned times)
{
    for (unsigned i = 0; i < times; i++) take_exit(site, &main_thread);
}

static struct rb_vm_trace_save
save_as(const char *path)
{
    struct rb_vm_trace_save save = { .path = path, .why = "save" };
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    rb_vm_trace_recorder_write(&save);
    return save;
}

/* Save and decode. */
static struct trace *
saved(void)
{
    struct rb_vm_trace_save save = save_as(traced_path);
    if (save.error) fail_msg("%s: %s", traced_path, save.reason);
    struct trace *trace = trace_read(traced_path);
    assert_int_equal(save.events, trace->event_count);
    assert_int_equal(save.exits, trace_count(trace, "side_exit", NULL));
    return trace;
}

static void
end(void)
{
    rb_vm_trace_shutdown();
    free_traced();
    free(traced_path);
}

static unsigned
files_in(const char *folder)
{
    char command[512];
    snprintf(command, sizeof(command), "ls -A '%s' | wc -l", folder);
    FILE *list = popen(command, "r");
    unsigned count = 0;
    assert_int_equal(fscanf(list, "%u", &count), 1);
    pclose(list);
    return count;
}

static void
saved_trace_has_all_exits_and_says_that_it_is_a_snapshot(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    exits(100);
    struct trace *trace = saved();
    assert_summary(trace, 100, 100, 0);
    assert_int_equal(site_hits(trace, "Overflow"), 100);
    const struct trace_event *settings = trace_event(trace, "trace", "settings", 0), *summary = trace_event(trace, "trace", "summary", 0);
    assert_string_equal(trace_text(settings, "snapshot"), "save");
    assert_string_equal(trace_text(summary, "snapshot"), "save");
    assert_int_equal(trace_number(settings, "max_bytes"), MIB << 20);
    assert_int_equal(settings->ns, trace_event(trace, "side_exit", NULL, 0)->ns);
    assert_string_equal(summary->thread, "vm_trace");
    assert_string_equal(trace_event(trace, "side_exit", NULL, 0)->thread, "main");
    trace_free(trace);
    end();
}

static void
save_changes_nothing_of_what_is_recorded(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    for (unsigned i = 1; i <= 3; i++) {
        exits(10);
        struct trace *trace = saved();
        assert_summary(trace, 10 * i, 10 * i, 0);
        trace_free(trace);
    }
    assert_int_equal(files_in(temp_folder()), 1);
    end();
}

static void
reset_forgets_events_and_hits(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 3);
    exits(100);
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    exits(32); /* sampling begins anew: the third is the first */
    struct trace *trace = saved();
    assert_summary(trace, 32, 10, 0);
    assert_int_equal(site_hits(trace, "Overflow"), 32);
    trace_free(trace);

    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    trace = saved();
    assert_summary(trace, 0, 0, 0);
    assert_int_equal(trace->event_count, 3); /* settings, host, summary */
    trace_free(trace);
    end();
}

static void
sites_that_died_are_told_with_their_hits_since_the_reset(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    struct rb_iseq_struct gone = fake_iseq("gone", "b.rb"), early = fake_iseq("early", "c.rb");
    struct rb_vm_trace_site *dying = make_site(RB_VM_TRACE_SIDE_EXIT, "Dead", &gone, 1);
    struct rb_vm_trace_site *before = make_site(RB_VM_TRACE_SIDE_EXIT, "Before", &early, 1);
    fake_push(&main_thread, &gone, 1);
    for (unsigned i = 0; i < 5; i++) {
        take_exit(dying, &main_thread);
        take_exit(before, &main_thread);
    }
    rb_vm_trace_iseq_free(&early);
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    for (unsigned i = 0; i < 7; i++) take_exit(dying, &main_thread);
    rb_vm_trace_iseq_free(&gone);
    struct trace *trace = saved();
    assert_summary(trace, 7, 7, 0);
    assert_int_equal(site_hits(trace, "Dead"), 7);
    assert_int_equal(site_hits(trace, "Before"), 0);
    trace_free(trace);
    end();
}

static void
saving_keeps_no_text_and_lets_none_go(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    struct rb_iseq_struct outer = fake_iseq("outer", "b.rb");
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    assert_non_null(rb_vm_trace_version_history_of(&outer)); /* it is being compiled */
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
    struct rb_vm_trace_site *inlined = rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
        .kind = RB_VM_TRACE_SIDE_EXIT, .reason = "Inlined", .reason_len = 7, .insn = "opt_plus", .insn_len = 8,
        .unit = &outer, .frame = &foo, .pc = fake_pc(&foo, 1), .version = 1
    });
    take_exit(inlined, &main_thread);
    size_t texts = rb_vm_trace_string_count();
    for (unsigned i = 0; i < 4; i++) {
        struct trace *trace = saved();
        assert_string_equal(trace_text(trace_event(trace, "trace", "site", 0), "iseq"), "outer (b.rb:1)");
        trace_free(trace);
        assert_int_equal(rb_vm_trace_string_count(), texts);
    }
    end();
}

static void
sites_that_die_while_a_trace_is_saved_are_told_as_they_were(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    exits(5);
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    exits(3);
    rb_vm_trace_iseq_free(&foo);
    struct rb_iseq_struct bar = fake_iseq("bar", "b.rb");
    site = make_site(RB_VM_TRACE_SIDE_EXIT, "Younger", &bar, 1); /* in the place of the dead one */
    exits(2);
    struct rb_vm_trace_save save = { .path = traced_path, .why = "save" };
    rb_vm_trace_recorder_write(&save);
    assert_int_equal(save.error, 0);
    struct trace *trace = trace_read(traced_path);
    assert_summary(trace, 5, 5, 0);
    assert_int_equal(site_hits(trace, "Overflow"), 5);
    trace_free(trace);

    trace = saved();
    assert_summary(trace, 10, 10, 0);
    assert_int_equal(site_hits(trace, "Overflow"), 8);
    assert_int_equal(site_hits(trace, "Younger"), 2);
    trace_free(trace);
    end();
}

static void
hits_of_ractors_that_are_gone_are_told_since_the_reset(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    struct rb_ractor_struct ractor = { .vm_trace = rb_vm_trace_ractor_new() };
    struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = 1002, .thread_name = "other", .name_id = 7 };
    fake_push(&thread, &foo, 1);
    for (unsigned i = 0; i < 5; i++) take_exit(site, &thread);
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    for (unsigned i = 0; i < 4; i++) take_exit(site, &thread);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    exits(2);
    struct trace *trace = saved();
    assert_summary(trace, 6, 6, 0);
    trace_free(trace);
    fake_free_stack(&thread);
    end();
}

/* The chunk that it left is in use by nobody when it is frozen, and by another ractor when it is copied. */
static void
what_a_ractor_left_is_saved_as_it_was(void **state)
{
    (void)state;
    rb_vm_trace_session.memory.bytes = 8 << 20; /* so that it has a chunk of its own */
    start_recorder(.exit_rate = 1);
    struct rb_ractor_struct ractor = { .vm_trace = rb_vm_trace_ractor_new() };
    struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = 1002, .thread_name = "first", .name_id = 7 };
    fake_push(&thread, &foo, 1);
    for (unsigned i = 0; i < 5; i++) take_exit(site, &thread);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    exits(2);
    assert_non_null(rb_vm_trace_capture.shared.orphans);
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    ractor.vm_trace = rb_vm_trace_ractor_new();
    thread.thread_name = "second";
    for (unsigned i = 0; i < 30000; i++) take_exit(site, &thread); /* till that chunk is full */
    struct rb_vm_trace_save save = { .path = traced_path, .why = "save" };
    rb_vm_trace_recorder_write(&save);
    assert_int_equal(save.error, 0);
    struct trace *trace = trace_read(traced_path);
    assert_summary(trace, 7, 7, 0);
    for (size_t i = 0; i < trace->event_count; i++) assert_string_not_equal(trace->events[i].thread, "second");
    trace_free(trace);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    trace = saved();
    assert_summary(trace, 30007, 30007, 0);
    trace_free(trace);
    fake_free_stack(&thread);
    end();
}

static void
oldest_events_give_way_and_are_counted(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    enum { EXITS = 200000 };
    exits(EXITS);
    struct trace *trace = saved();
    const struct trace_event *summary = trace_event(trace, "trace", "summary", 0);
    size_t there = trace_count(trace, "side_exit", NULL);
    assert_true(there > 10000 && there < EXITS);
    assert_summary(trace, EXITS, there, EXITS - there);
    assert_string_equal(trace_text(trace_event(trace, "trace", "loss", 0), "reason"), "older events gave way at the limit of the memory");
    /* In the order in which they were written. */
    for (size_t i = 1; i < trace->event_count; i++) assert_true(trace->events[i - 1].ns <= trace->events[i].ns);
    assert_int_equal(summary->ns, trace->events[trace->event_count - 1].ns);
    assert_true(rb_vm_trace_capture.file.size <= (uint64_t)MIB << 20);
    trace_free(trace);
    end();
}

/* More than the older half is written between the freeze and the copy: only the newer half is left, without a hole. */
static void
what_is_recorded_while_a_trace_is_saved_is_kept_and_not_in_it(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    exits(200000);
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    struct rb_vm_trace_site *later = make_site(RB_VM_TRACE_SIDE_EXIT, "Later", &foo, 2);
    for (unsigned i = 0; i < 12000; i++) take_exit(later, &main_thread);
    struct rb_vm_trace_save save = { .path = traced_path, .why = "save" };
    rb_vm_trace_recorder_write(&save);
    assert_int_equal(save.error, 0);
    struct trace *trace = trace_read(traced_path);
    assert_int_equal(trace_count(trace, "side_exit", "Later"), 0);
    assert_summary(trace, 200000, trace_count(trace, "side_exit", NULL), 200000 - trace_count(trace, "side_exit", NULL));
    assert_true(trace_count(trace, "side_exit", NULL) > 5000);
    trace_free(trace);

    trace = saved();
    assert_int_equal(trace_count(trace, "side_exit", "Later"), 12000);
    trace_free(trace);
    end();
}

/* They fill their chunks while those that are frozen can't be used again. */
static void
ractors_without_a_chunk_lose_nothing_while_a_trace_is_saved(void **state)
{
    (void)state;
    enum { RACTORS = 6, BEFORE = 100, LATER = 20000 };
    start_recorder(.exit_rate = 1);
    struct rb_ractor_struct ractors[RACTORS] = { { .vm_trace = NULL } };
    struct rb_execution_context_struct threads[RACTORS];
    for (unsigned i = 0; i < RACTORS; i++) {
        ractors[i].vm_trace = rb_vm_trace_ractor_new();
        threads[i] = (struct rb_execution_context_struct){ .ractor = &ractors[i], .tid = 7 + i, .thread_name = "t", .name_id = 5 };
        fake_push(&threads[i], &foo, 2);
    }
    for (unsigned i = 0; i < RACTORS * BEFORE; i++) take_exit(site, &threads[i % RACTORS]);
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    for (unsigned i = 0; i < RACTORS * LATER; i++) take_exit(site, &threads[i % RACTORS]);
    exits(LATER);
    struct rb_vm_trace_save save = { .path = traced_path, .why = "save" };
    rb_vm_trace_recorder_write(&save);
    assert_int_equal(save.error, 0);
    struct trace *trace = trace_read(traced_path);
    assert_summary(trace, RACTORS * BEFORE, RACTORS * BEFORE, 0);
    for (unsigned i = 0; i < RACTORS; i++) {
        size_t of_this = 0;
        for (size_t n = 0; n < trace->event_count; n++) of_this += trace->events[n].tid == 7 + i;
        assert_int_equal(of_this, BEFORE);
    }
    trace_free(trace);

    trace = saved();
    size_t there = trace_count(trace, "side_exit", NULL), all = RACTORS * (BEFORE + LATER) + LATER;
    assert_true(there > 10000 && there < all);
    assert_summary(trace, all, there, all - there);
    assert_int_equal(trace_count(trace, "trace", "loss"), 1);
    assert_string_equal(trace_text(trace_event(trace, "trace", "loss", 0), "reason"), "older events gave way at the limit of the memory");
    trace_free(trace);
    for (unsigned i = 0; i < RACTORS; i++) rb_vm_trace_ractor_free(ractors[i].vm_trace);
    for (unsigned i = 0; i < RACTORS; i++) fake_free_stack(&threads[i]);
    end();
}

static void
window_leaves_out_what_is_older(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    rb_vm_trace_session.memory.window_ns = 3000000000; /* what comes then may take that long */
    exits(50);
    usleep(3100000);
    exits(20);
    struct trace *trace = saved();
    assert_int_equal(trace_count(trace, "side_exit", NULL), 20);
    assert_summary(trace, 70, 20, 50);
    assert_int_equal(trace_number(trace_event(trace, "trace", "settings", 0), "seconds"), 3);
    trace_free(trace);
    end();
}

static void
ends_of_spans_that_began_before_the_reset_are_left_out(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1, .compiles = true);
    assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_PHASE, "outer", 5));
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_PHASE, "inner", 5));
    rb_vm_trace_span_end(RB_VM_TRACE_PHASE, "inner", 5);
    rb_vm_trace_span_end(RB_VM_TRACE_PHASE, "outer", 5);
    struct trace *trace = saved();
    assert_int_equal(trace_count(trace, "compile", "inner"), 2);
    assert_int_equal(trace_count(trace, "compile", "outer"), 0);
    assert_int_equal(trace->open_spans, 0);
    assert_summary(trace, 0, 0, 0); /* nothing is lost */
    trace_free(trace);
    end();
}

static void
second_save_waits_for_the_first(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    exits(5);
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BUSY);
    struct rb_vm_trace_save save = { .path = traced_path, .why = "save" };
    rb_vm_trace_recorder_write(&save);
    rb_vm_trace_recorder_wait();
    trace_free(saved());
    end();
}

/* A save that fails, for the reason that `error` is, leaves `traced_path` as it was and the recorder as it is. */
static void
assert_fails(const char *path, int error)
{
    struct rb_vm_trace_save save = save_as(path);
    assert_int_equal(save.error, error);
    assert_non_null(save.reason);
}

static void
failed_save_leaves_the_file_that_was_there_and_what_is_recorded(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    exits(10);
    trace_free(saved());
    char *folder = temp_path("folder"), *link_to = temp_path("link"), *nowhere = temp_path("no/where");
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink(traced_path, link_to), 0);
    exits(10);
    assert_fails(folder, EEXIST);
    assert_fails(link_to, EEXIST);
    assert_fails(nowhere, ENOENT);

    struct trace *trace = trace_read(traced_path);
    assert_summary(trace, 10, 10, 0);
    trace_free(trace);
    trace = saved();
    assert_summary(trace, 20, 20, 0);
    trace_free(trace);
    struct stat st;
    assert_int_equal(stat(traced_path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(files_in(temp_folder()), 3);
    free(folder);
    free(link_to);
    free(nowhere);
    end();
}

static void
full_disk_fails_the_save_and_leaves_nothing_there(void **state)
{
    (void)state;
    char *disk = temp_path("disk"), path[512];
    assert_int_equal(mkdir(disk, 0700), 0);
    mount_small_disk(disk, 2 << 20);
    start_recorder(.exit_rate = 1);
    exits(200000);
    snprintf(path, sizeof(path), "%s/t.fxt", disk);
    assert_fails(path, ENOSPC);
    assert_int_equal(files_in(disk), 0);
    struct trace *trace = saved();
    assert_true(trace_count(trace, "side_exit", NULL) > 10000);
    trace_free(trace);
    free(disk);
    end();
}

static void
nothing_can_be_saved_of_a_trace_that_goes_to_a_file(void **state)
{
    (void)state;
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_NO_RECORDER);
    start_traced(.exit_rate = 1);
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_NO_RECORDER);
    trace_free(finish_traced());
}

static void
trace_is_saved_at_the_end_when_that_is_wanted(void **state)
{
    (void)state;
    rb_vm_trace_session.memory.save_at = VM_TRACE_SAVE_AT_EXIT;
    start_recorder(.exit_rate = 1);
    exits(10);
    struct trace *trace = finish_traced();
    assert_summary(trace, 10, 10, 0);
    assert_string_equal(trace_text(trace_event(trace, "trace", "settings", 0), "snapshot"), "exit");
    trace_free(trace);
}

static void
crash_leaves_what_is_in_memory(void **state)
{
    (void)state;
    rb_vm_trace_session.memory.save_at = VM_TRACE_SAVE_AT_CRASH;
    start_recorder(.exit_rate = 1);
    exits(10);
    capture_stderr();
    rb_vm_trace_recorder_crash();
    free(captured_stderr());
    struct trace *trace = trace_read(traced_path);
    assert_int_equal(trace_count(trace, "side_exit", NULL), 10);
    assert_string_equal(trace_text(trace_event(trace, "trace", "settings", 0), "snapshot"), "memory");
    trace_free(trace);
    end();
}

static void
child(void *ignored)
{
    (void)ignored;
    exits(7);
    struct trace *trace = saved();
    assert_summary(trace, 7, 7, 0);
    trace_free(trace);
}

static void
forked_child_has_a_recorder_of_its_own_also_when_the_parent_was_saving(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    exits(5);
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    exits(3);
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    rb_vm_trace_before_fork();
    pid_t pid = fork();
    rb_vm_trace_after_fork(pid);
    if (pid == 0) {
        child(NULL);
        end_at_once(0);
    }
    wait_for(pid);
    struct rb_vm_trace_save save = { .path = traced_path, .why = "save" };
    rb_vm_trace_recorder_write(&save);
    assert_int_equal(save.error, 0);
    struct trace *trace = trace_read(traced_path);
    assert_summary(trace, 3, 3, 0);
    trace_free(trace);
    end();
}

static void
limit_of_the_file_size_that_leaves_no_memory_is_named(void **state)
{
    (void)state;
    static const size_t limits[] = { 1 << 16, 1 << 20 };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        pid_t child = fork();
        if (child == 0) {
            rb_vm_trace_session.memory.bytes = (uint64_t)MIB << 20;
            capture_stderr();
            limit_file_size(limits[i]);
            fake_ractor_add(&main_ractor);
            fake_current(&main_thread);
            bool begun = rb_vm_trace_start(&(struct rb_vm_trace_config){ .jit = "ZJIT", .exit_rate = 1 });
            limit_file_size(UINT64_C(1) << 30);
            char *said = captured_stderr();
            if (begun || !strstr(said, "can't record to memory: File too large; running untraced")) fail_msg("%zu: %s", limits[i], said);
            _exit(0);
        }
        wait_for(child);
    }
}

/* Another process writes a trace at `path` until the descriptor that is returned is closed. */
static int
begin_writer_at(const char *path, pid_t *pid_out)
{
    int to_it[2], ready[2];
    char byte = 0;
    assert_int_equal(pipe(to_it), 0);
    assert_int_equal(pipe(ready), 0);
    *pid_out = fork();
    if (*pid_out == 0) {
        static struct rb_vm_trace_chunk_file theirs = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };
        close(to_it[1]);
        if (rb_vm_trace_chunk_file_open(&theirs, path) || write(ready[1], &byte, 1) != 1) _exit(1);
        while (read(to_it[0], &byte, 1) > 0) continue;
        _exit(0);
    }
    close(to_it[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return to_it[1];
}

/* What the program asked for fails, for it said where; what it did not ask for goes beside it. */
static void
file_that_another_process_writes_is_not_saved_over(void **state)
{
    (void)state;
    rb_vm_trace_session.memory.save_at = VM_TRACE_SAVE_AT_EXIT | VM_TRACE_SAVE_AT_CRASH;
    start_recorder(.exit_rate = 1);
    exits(5);
    pid_t writer;
    char name[64], *beside;
    int to_writer = begin_writer_at(traced_path, &writer);
    struct stat before, after;
    assert_int_equal(stat(traced_path, &before), 0);

    struct rb_vm_trace_save save = save_as(traced_path);
    assert_int_equal(save.error, EBUSY);
    assert_string_equal(save.reason, "another process is writing it");
    assert_int_equal(files_in(temp_folder()), 1);

    capture_stderr();
    rb_vm_trace_messages_begin();
    rb_vm_trace_recorder_save_at(VM_TRACE_SAVE_AT_EXIT, main_ractor.vm_trace, &main_thread);
    char *said = captured_stderr();
    assert_non_null(strstr(said, "t.fxt is kept: another process is writing it; the trace is saved beside it"));
    free(said);
    snprintf(name, sizeof(name), "t.fxt.%d", (int)getpid());
    beside = temp_path(name);
    struct trace *trace = trace_read(beside);
    assert_summary(trace, 5, 5, 0);
    trace_free(trace);

    capture_stderr();
    rb_vm_trace_recorder_crash();
    said = captured_stderr();
    assert_non_null(strstr(said, beside)); /* nobody writes that one any more */
    free(said);
    trace = trace_read(beside);
    assert_int_equal(trace_count(trace, "side_exit", NULL), 5);
    trace_free(trace);

    assert_int_equal(stat(traced_path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    close(to_writer);
    wait_for(writer);
    assert_int_equal(unlink(beside), 0);
    rb_vm_trace_session.memory.save_at = 0;
    free(beside);
    end();
}

/* Whether a file of the test's folder is a trace with so many exits. */
static void
assert_saved_to(const char *name, unsigned count)
{
    char *path = temp_path(name);
    struct trace *trace = trace_read(path);
    assert_int_equal(trace_count(trace, "side_exit", NULL), count);
    trace_free(trace);
    free(path);
}

static void
save_unasked(void)
{
    exits(1);
    capture_stderr();
    rb_vm_trace_recorder_save_at(VM_TRACE_SAVE_AT_EXIT, main_ractor.vm_trace, &main_thread);
    free(captured_stderr());
}

static void
traces_that_are_saved_to_one_path_are_kept_apart(void **state)
{
    (void)state;
    rb_vm_trace_session.memory.save_at = VM_TRACE_SAVE_AT_EXIT | VM_TRACE_SAVE_AT_CRASH;
    start_recorder(.exit_rate = 1);
    for (unsigned i = 0; i < 3; i++) save_unasked();
    assert_saved_to("t.fxt", 1);
    assert_saved_to("t.fxt.2", 2);
    assert_saved_to("t.fxt.3", 3);
    capture_stderr();
    rb_vm_trace_recorder_crash();
    free(captured_stderr());
    assert_saved_to("t.fxt", 1);
    assert_int_equal(files_in(temp_folder()), 4);
    /* A path that is free again is taken. */
    assert_int_equal(unlink(traced_path), 0);
    save_unasked();
    assert_saved_to("t.fxt", 4);
    rb_vm_trace_session.memory.save_at = 0;
    end();
}

static void
patterns_name_each_saved_trace(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    char *numbered = temp_path("%%-%n.fxt"), *timed = temp_path("at-%t"), *literal = temp_path("a.fxt");
    const char *patterns[] = { numbered, numbered, timed, timed, timed, literal, literal };
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        exits(1);
        struct rb_vm_trace_save save = { .pattern = patterns[i], .why = "save" };
        assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
        rb_vm_trace_recorder_write(&save);
        assert_int_equal(save.error, 0);
        assert_ptr_equal(save.path, save.made);
        assert_int_equal(access(save.path, F_OK), 0);
        free(save.made);
    }
    assert_saved_to("%-1.fxt", 1);
    assert_saved_to("%-2.fxt", 2);
    assert_saved_to("a.fxt", 7); /* it was named: the first one is replaced */
    assert_int_equal(files_in(temp_folder()), 6);
    free(numbered);
    free(timed);
    free(literal);
    end();
}

static void
memory_that_held_less_than_the_window_is_reported(void **state)
{
    (void)state;
    char hint[128];
    rb_vm_trace_session.memory.window_ns = UINT64_C(3600000000000);
    start_recorder(.exit_rate = 1);
    exits(10);
    struct rb_vm_trace_save save = save_as(traced_path);
    assert_int_equal(save.held_ns, 0); /* the program is that young: nothing is gone */
    assert_false(rb_vm_trace_recorder_hint(&save, hint, sizeof(hint)));
    exits(200000);
    save = save_as(traced_path);
    assert_true(save.held_ns > 0 && save.held_ns < UINT64_C(3600000000000));
    assert_true(rb_vm_trace_recorder_hint(&save, hint, sizeof(hint)));
    assert_non_null(strstr(hint, " of 3600 seconds: "));
    save.held_ns = UINT64_C(1400000000);
    save.memory.window_ns = UINT64_C(3000000000);
    assert_true(rb_vm_trace_recorder_hint(&save, hint, sizeof(hint)));
    assert_string_equal(hint, "memory held the last 1.4 of 3 seconds: about 9 MiB, not 4, would hold all");
    save.held_ns = 1000;
    assert_true(rb_vm_trace_recorder_hint(&save, hint, sizeof(hint)));
    assert_string_equal(hint, "memory held the last 0.0 of 3 seconds: no memory would hold all, so record one exit in K");
    end();
}

/* As of a preset without a JIT: requested, and not begun. */
static void
streams_that_did_not_begin_have_nothing_to_save(void **state)
{
    (void)state;
    start_recorder(.exit_rate = 1);
    for (size_t i = 0; rb_vm_trace_streams[i]; i++)
        if (!rb_vm_trace_streams[i]->rate) rb_vm_trace_streams[i]->rate = 1;
    struct trace *trace = saved();
    assert_int_equal(trace_count(trace, "trace", "more_settings"), 1); /* of so many streams */
    assert_int_equal(trace_number(trace_event(trace, "trace", "more_settings", 0), "samples_ns"), 1);
    trace_free(trace);
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    trace_free(saved());
    free_traced();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(streams_that_did_not_begin_have_nothing_to_save),
        isolated_test(traces_that_are_saved_to_one_path_are_kept_apart),
        isolated_test(patterns_name_each_saved_trace),
        isolated_test(memory_that_held_less_than_the_window_is_reported),
        isolated_test(saved_trace_has_all_exits_and_says_that_it_is_a_snapshot),
        isolated_test(save_changes_nothing_of_what_is_recorded),
        isolated_test(reset_forgets_events_and_hits),
        isolated_test(sites_that_died_are_told_with_their_hits_since_the_reset),
        isolated_test(saving_keeps_no_text_and_lets_none_go),
        isolated_test(sites_that_die_while_a_trace_is_saved_are_told_as_they_were),
        isolated_test(hits_of_ractors_that_are_gone_are_told_since_the_reset),
        isolated_test(what_a_ractor_left_is_saved_as_it_was),
        isolated_test(oldest_events_give_way_and_are_counted),
        isolated_test(what_is_recorded_while_a_trace_is_saved_is_kept_and_not_in_it),
        isolated_test(ractors_without_a_chunk_lose_nothing_while_a_trace_is_saved),
        isolated_test(window_leaves_out_what_is_older),
        isolated_test(ends_of_spans_that_began_before_the_reset_are_left_out),
        isolated_test(second_save_waits_for_the_first),
        isolated_test(failed_save_leaves_the_file_that_was_there_and_what_is_recorded),
        isolated_test(full_disk_fails_the_save_and_leaves_nothing_there),
        isolated_test(nothing_can_be_saved_of_a_trace_that_goes_to_a_file),
        isolated_test(trace_is_saved_at_the_end_when_that_is_wanted),
        isolated_test(crash_leaves_what_is_in_memory),
        isolated_test(limit_of_the_file_size_that_leaves_no_memory_is_named),
        isolated_test(file_that_another_process_writes_is_not_saved_over),
        isolated_test(forked_child_has_a_recorder_of_its_own_also_when_the_parent_was_saving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
