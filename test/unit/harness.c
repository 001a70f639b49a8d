/*
 * A process for each test. See harness.h.
 */
#define _GNU_SOURCE 1 /* unshare */
#include "harness.h"
#include "vm_trace/store/chunk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef HARNESS_SECONDS
# define HARNESS_SECONDS 100
#endif
enum { SKIPPED = 77 };

static char folder[64];
static int saved_stderr = -1;
static FILE *captured;

const char *(*path_to_open)(const char *path);

/* Instead of the C library's. */
int
open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    unsigned mode = flags & O_CREAT ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    return (int)syscall(SYS_openat, AT_FDCWD, path_to_open ? path_to_open(path) : path, flags, mode);
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

/* A child's output, each line marked, so that it is not taken for this program's own. */
static void
show(FILE *output, const char *only)
{
    char line[4096];
    rewind(output);
    while (fgets(line, sizeof(line), output)) {
        if (!only) print_message("    | %s", line);
        else if (strncmp(line, only, strlen(only)) == 0) print_message("%s", line);
    }
}

#ifdef HARNESS_GCOV
extern void __gcov_dump(void);

/* Write what gcov counted: at the end of a process, where a test may have limited the size of files. */
static void
write_counts(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    __gcov_dump();
}
#else
static void
write_counts(void)
{
}
#endif

void
end_at_once(int status)
{
    write_counts();
    _exit(status);
}

void
run_isolated(void **state)
{
    const struct isolated *test = *state;
    strcpy(folder, "/tmp/vm_trace-unit-XXXXXX");
    assert_non_null(mkdtemp(folder));
    FILE *output = tmpfile();
    assert_non_null(output);
    fflush(NULL);

    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setpgid(0, 0);
        /* Whatever this machine's disk is at: tests of a slow one say how slow. */
        rb_vm_trace_chunk_file_wait_ns = INT64_C(60000000000);
        alarm(HARNESS_SECONDS); /* a test that hangs must end, and be named */
        dup2(fileno(output), STDOUT_FILENO);
        dup2(fileno(output), STDERR_FILENO);
        const struct CMUnitTest one[] = { { "in a process of its own", test->body, NULL, NULL, NULL } };
        int failed = cmocka_run_group_tests(one, NULL, NULL);
        write_counts();
        exit(failed == 0 ? 0 : 1);
    }
    int status;
    while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
    kill(-child, SIGKILL); /* what the test left running: its own group, so nothing else */
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);

    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        show(output, "skipped, ");
        fclose(output);
        skip();
    }
    bool passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!passed) show(output, NULL);
    fclose(output);
    if (WIFSIGNALED(status)) fail_msg("killed by signal %d", WTERMSIG(status));
    if (!passed) fail_msg("failed with status %d, see above", WEXITSTATUS(status));
}

void
skip_because(const char *reason)
{
    printf("skipped, %s\n", reason);
    fflush(NULL);
    end_at_once(SKIPPED);
}

bool
under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "valgrind");
}

const char *
temp_folder(void)
{
    return folder;
}

char *
temp_path(const char *name)
{
    char *path = malloc(strlen(folder) + strlen(name) + 2);
    assert_non_null(path);
    sprintf(path, "%s/%s", folder, name);
    return path;
}

void
capture_stderr(void)
{
    fflush(stderr);
    captured = tmpfile();
    assert_non_null(captured);
    saved_stderr = dup(STDERR_FILENO);
    dup2(fileno(captured), STDERR_FILENO);
}

char *
captured_stderr(void)
{
    fflush(stderr);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    fseek(captured, 0, SEEK_END);
    size_t bytes = (size_t)ftell(captured);
    rewind(captured);
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, bytes, captured), bytes);
    text[bytes] = '\0';
    fclose(captured);
    return text;
}

void
wait_for(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
    if (WIFSIGNALED(status)) fail_msg("the child was killed by signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

void
in_child(void (*body)(void *), void *argument)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body(argument); /* an assertion that fails ends in run_isolated's exit(1) */
        exit(0);
    }
    wait_for(child);
}

static void
write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) skip_because("this user cannot be mapped into a namespace");
    close(fd);
}

/* A namespace in which a user who is not root may mount, and is still himself. */
static void
enter_user_namespace(void)
{
    char uids[64], gids[64];
    snprintf(uids, sizeof(uids), "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
    snprintf(gids, sizeof(gids), "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        skip_because("no mount namespace can be made here (it needs root, or user namespaces)");
    }
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/uid_map", uids);
    write_text("/proc/self/gid_map", gids);
}

void
mount_small_disk(const char *path, size_t bytes)
{
    char options[64];
    snprintf(options, sizeof(options), "size=%zu", bytes);
    if (unshare(CLONE_NEWNS) != 0) enter_user_namespace();
    if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 || mount("tmpfs", path, "tmpfs", 0, options) != 0) {
        skip_because("no small disk can be mounted here");
    }
}

void
limit_file_size(uint64_t bytes)
{
    struct rlimit limit = { (rlim_t)bytes, RLIM_INFINITY };
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = (rlim_t)bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}
