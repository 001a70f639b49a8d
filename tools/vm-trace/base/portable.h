#ifndef PORTABLE_H
#define PORTABLE_H
/* portable.h - what Linux and the GNU C library have, under the same names where macOS has it otherwise or not at all.
 * Included behind the system's headers. On Linux it is empty. */
#ifdef __APPLE__
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

#define st_atim st_atimespec
#define st_ctim st_ctimespec
#define st_mtim st_mtimespec
#define CLOCK_BOOTTIME CLOCK_MONOTONIC_RAW /* the clock of traces there */
#define SOCK_CLOEXEC 0                     /* what the tool executes inherits its sockets */
#define fwrite_unlocked fwrite
/* The system's SQLite lacks these two. Where the collation is not known, the rows are compared by SQLite. */
#define sqlite3_hard_heap_limit64 sqlite3_soft_heap_limit64
#define sqlite3_vtab_collation(info, constraint) ((void)(info), (void)(constraint), "unknown")

/* qsort_r(3) of GNU: BSD's has other arguments. */
#define qsort_r portable_qsort_r
void portable_qsort_r(void *rows, size_t count, size_t bytes, int (*compare)(const void *, const void *, void *),
                      void *context);

int pipe2(int ends_out[2], int flags);
void *memrchr(const void *bytes, int byte, size_t count);
/* Numbers in names by their value; for scandir(3). */
int versionsort(const struct dirent **a, const struct dirent **b);
/* Looks for a signal every few milliseconds. */
int sigtimedwait(const sigset_t *signals, siginfo_t *info_out, const struct timespec *patience);

/* A stream that is only written. */
typedef struct {
    ssize_t (*write)(void *cookie, const char *bytes, size_t count);
    int (*close)(void *cookie);
} cookie_io_functions_t;
FILE *fopencookie(void *cookie, const char *mode, cookie_io_functions_t functions);
#endif
#endif
