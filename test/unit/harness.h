#ifndef HARNESS_H
#define HARNESS_H 1
/*
 * What all unit tests share. The module has one global trace and a program starts it once, so
 * each test runs in a process of its own: in main()'s table write isolated_test(name) instead
 * of cmocka_unit_test(name). What the test prints is shown only when it fails.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>

struct isolated {
    void (*body)(void **state);
};

#define isolated_test(f) { #f, run_isolated, NULL, NULL, &(struct isolated){ f } }

void run_isolated(void **state);

/* In an isolated test: it cannot run here, and why. Does not return. */
void skip_because(const char *reason) __attribute__((noreturn));

/* Whether valgrind runs this: it does not single-step, and is slow. */
bool under_valgrind(void);

/* Path of a file in the folder that this test has for itself and that goes away with it. Free it. */
char *temp_path(const char *name);
const char *temp_folder(void);

/* From now on stderr goes to a file; captured_stderr ends that and gives the text. Free it. */
void capture_stderr(void);
char *captured_stderr(void);

/* Run `body` in a forked child without hooks; fails the test when the child fails or is killed. */
void in_child(void (*body)(void *), void *argument);

/* End a child as _exit does. Where coverage is counted, what it ran counts, too. Does not return. */
void end_at_once(int status) __attribute__((noreturn));

/* Wait for a child and fail the test when it failed or was killed. */
void wait_for(pid_t child);

/* Mount a file system of `bytes` over `path`, a folder, for this test's process only; skips the test where that is not allowed. */
void mount_small_disk(const char *path, size_t bytes);

/* If set: returns the path of the file that `open` opens instead, or the same path. */
extern const char *(*path_to_open)(const char *path);

/* Limit of a file's size for this process; a signal is what the test must not get. */
void limit_file_size(uint64_t bytes);

#endif /* HARNESS_H */
