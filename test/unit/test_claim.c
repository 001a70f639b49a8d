/*
 * A trace file that is being written belongs to its writer.
 */
#define _GNU_SOURCE 1
#include "vm_trace/store/file_claim.h"
#include "vm_trace/base/clock.h"
#include "vm_trace/platform/platform.h"
#include "vm_trace/schema/fxt.h"
#include "harness.h"
#include "vm_trace/store/chunk_file.h"
#include "validate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rb_vm_trace_chunk_file trace_file = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* Another process that does `body` to the path, which then is as that left it until the process is told to end. */
struct other {
    pid_t pid;
    int to_it;
};

static struct other
other_process(void (*body)(const char *path), const char *path)
{
    int to_it[2], ready[2];
    char byte = 0;
    assert_int_equal(pipe(to_it), 0);
    assert_int_equal(pipe(ready), 0);
    struct other other = { fork(), to_it[1] };
    if (other.pid == 0) {
        close(to_it[1]);
        body(path);
        if (write(ready[1], &byte, 1) != 1) _exit(1);
        while (read(to_it[0], &byte, 1) > 0) continue;
        _exit(0);
    }
    close(to_it[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return other;
}

static void
end_of(struct other other)
{
    close(other.to_it);
    wait_for(other.pid);
}

static void
write_trace(const char *path)
{
    struct rb_vm_trace_chunk chunk;
    if (rb_vm_trace_chunk_file_open(&trace_file, path) || !rb_vm_trace_chunk_file_reserve(&trace_file, &chunk)) _exit(1);
}

static void
assert_busy(const char *path)
{
    struct stat before, after;
    assert_int_equal(lstat(path, &before), 0);
    assert_string_equal(rb_vm_trace_chunk_file_open(&trace_file, path), "another process is writing it");
    assert_int_equal(errno, EBUSY);
    assert_int_equal(lstat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
}

/* A file is busy while another process, which began with `write`, lives. */
static void
assert_kept_from(void (*write)(const char *path))
{
    char *path = temp_path("t.fxt");
    struct other other = other_process(write, path);
    assert_busy(path);
    end_of(other);
    free(path);
}

static void
file_that_another_process_writes_is_kept(void **state)
{
    (void)state;
    assert_kept_from(write_trace);
}

static void
file_of_a_writer_that_died_is_replaced(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt");
    struct other other = other_process(write_trace, path);
    struct stat before, after;
    assert_int_equal(lstat(path, &before), 0);
    int status;
    assert_int_equal(kill(other.pid, SIGKILL), 0);
    assert_int_equal(waitpid(other.pid, &status, 0), other.pid);
    char *keep = temp_path("keep"); /* so that its number is not given to the next file */
    assert_int_equal(link(path, keep), 0);
    assert_null(rb_vm_trace_chunk_file_open(&trace_file, path));
    assert_int_equal(lstat(path, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
    free(keep);
    free(path);
}

/* A name with the pid is the next one to try, then such with numbers. */
static void
next_free_name_is_taken(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt"), name[64];
    struct other other = other_process(write_trace, path);
    for (int i = 1; i <= 3; i++) {
        char *at = strdup(path), *kept;
        const char *why_kept;
        struct rb_vm_trace_chunk_file here = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };
        assert_null(rb_vm_trace_chunk_file_open_beside(&here, &at, 4711, &kept, &why_kept));
        snprintf(name, sizeof(name), i == 1 ? "t.fxt.4711" : "t.fxt.4711.%d", i);
        char *expected = temp_path(name);
        assert_string_equal(at, expected);
        assert_string_equal(kept, path);
        assert_string_equal(why_kept, "another process is writing it");
        free(expected);
        free(kept);
        free(at);
    }
    end_of(other);
    char *kept;
    const char *why_kept;
    assert_null(rb_vm_trace_chunk_file_open_beside(&trace_file, &path, 4711, &kept, &why_kept));
    assert_null(kept);
    free(path);
}

static void
write_trace_and_close_descriptors(const char *path)
{
    write_trace(path);
    close(trace_file.fd);
}

/* Daemons close what they know nothing of; the chunk that is mapped still holds the file. */
static void
program_that_closes_all_descriptors_keeps_its_file(void **state)
{
    (void)state;
    assert_kept_from(write_trace_and_close_descriptors);
}

static void
drop_what_is_the_parents(const char *path)
{
    (void)path;
    rb_vm_trace_chunk_file_after_fork(&trace_file);
}

static void
forked_child_leaves_the_lock_to_the_parent(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt");
    write_trace(path);
    end_of(other_process(drop_what_is_the_parents, path));
    struct rb_vm_trace_chunk_file ours = trace_file;
    pid_t child = fork();
    if (child == 0) {
        trace_file.fd = -1;
        assert_busy(path);
        _exit(0);
    }
    wait_for(child);
    trace_file = ours;
    free(path);
}

static void
file_that_was_closed_is_free_again(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt");
    write_trace(path); /* its chunk stays mapped */
    rb_vm_trace_chunk_file_close(&trace_file);
    assert_null(rb_vm_trace_chunk_file_open(&trace_file, path));
    free(path);
}

/* As a trace begins: the process, and an event with the time of the settings. */
static void
make_trace_of(const char *path, uint64_t pid, uint64_t ns)
{
    uint64_t words[] = { FXT_MAGIC_RECORD, fxt_padding_header(2), 0, fxt_kernel_object_header(2, FXT_OBJECT_PROCESS, 1, 0), pid,
                         fxt_event_header(FXT_EVENT_INSTANT, 2, 0, 1, 1, 1), ns };
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(words, sizeof(words), 1, file), 1);
    fclose(file);
}

/* After exec a process finds what it wrote before under its own pid, with no lock on it. */
static void
trace_of_the_same_process_before_exec_is_kept(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt");
    usleep(20000); /* the kernel says in hundredths of a second when a process began */
    uint64_t now_ns = rb_vm_trace_clock_system_ns(), pid = (uint64_t)getpid();
    make_trace_of(path, pid, now_ns);
    rb_vm_trace_claim_image(now_ns + 1);
    assert_string_equal(rb_vm_trace_chunk_file_open(&trace_file, path), "this process wrote it before exec");
    assert_int_equal(errno, EBUSY);
    assert_string_equal(rb_vm_trace_claim_remove_stale(path, false), "this process wrote it before exec");
    assert_int_equal(access(path, F_OK), 0);
    assert_null(rb_vm_trace_claim_remove_stale(path, true));
    assert_int_equal(access(path, F_OK), -1);

    make_trace_of(path, pid + 1, now_ns); /* another's, which ended */
    assert_null(rb_vm_trace_claim_remove_stale(path, false));
    make_trace_of(path, pid, 1); /* another's that had the pid before, when the machine had just started */
    if (VM_TRACE_PLATFORM_LINUX) assert_null(rb_vm_trace_claim_remove_stale(path, false));
    else assert_non_null(rb_vm_trace_claim_remove_stale(path, false)); /* it is not known when a process began */
    make_trace_of(path, pid, now_ns + 2); /* of this image: the program began a trace there again */
    assert_null(rb_vm_trace_claim_remove_stale(path, false));
    free(path);
}

/* What the program does when a test executes it anew: whether it keeps what that wrote. */
static int
after_exec(const char *path)
{
    rb_vm_trace_claim_image(rb_vm_trace_clock_system_ns());
    const char *why = rb_vm_trace_claim_remove_stale(path, false);
    if (why && strcmp(why, "this process wrote it before exec") == 0) return 0;
    fprintf(stderr, "%s\n", why ? why : "it was taken for stale");
    return 1;
}

static void
executed_program_keeps_what_it_wrote_before(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt");
    pid_t pid = fork();
    if (pid == 0) {
        usleep(20000); /* as above */
        make_trace_of(path, (uint64_t)getpid(), rb_vm_trace_clock_system_ns());
        usleep(20000); /* so that it is seen if something takes exec for the begin of the process */
        execl("/proc/self/exe", "test_claim", path, (char *)NULL);
        _exit(127);
    }
    wait_for(pid);
    free(path);
}

static void
claim_over_and_over(const char *path, uint32_t number)
{
    for (int i = 0; i < 300; i++) {
        char *at = strdup(path), *kept;
        const char *why_kept, *why = rb_vm_trace_chunk_file_open_beside(&trace_file, &at, number, &kept, &why_kept);
        if (why) fail_msg("%s", why);
        struct stat ours, there;
        for (int look = 0; look < 5; look++) {
            assert_int_equal(fstat(trace_file.fd, &ours), 0);
            if (lstat(at, &there) != 0 || ours.st_ino != there.st_ino) fail_msg("%s was taken away", at);
        }
        rb_vm_trace_chunk_file_close(&trace_file); /* now it is stale, and the next one's */
        free(kept);
        free(at);
    }
}

static void
writers_at_once_never_take_each_others_file(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt");
    pid_t pids[4];
    for (uint32_t i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            claim_over_and_over(path, 1000 + i);
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++) wait_for(pids[i]);
    free(path);
}

int
main(int count, char **arguments)
{
    if (count > 1) return after_exec(arguments[1]);
    const struct CMUnitTest tests[] = {
        isolated_test(file_that_another_process_writes_is_kept),
        isolated_test(file_of_a_writer_that_died_is_replaced),
        isolated_test(next_free_name_is_taken),
        isolated_test(program_that_closes_all_descriptors_keeps_its_file),
        isolated_test(forked_child_leaves_the_lock_to_the_parent),
        isolated_test(file_that_was_closed_is_free_again),
        isolated_test(trace_of_the_same_process_before_exec_is_kept),
        isolated_test(executed_program_keeps_what_it_wrote_before),
        isolated_test(writers_at_once_never_take_each_others_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
