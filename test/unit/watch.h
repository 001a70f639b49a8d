#ifndef WATCH_H
#define WATCH_H 1
/*
 * Every single store into a piece of memory: it is made read-only, each store into it faults, is
 * let through alone by the processor's trap flag, and after it the test has a look. That is what
 * a file holds when the process is killed between any two instructions.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * From now on call `look` after each store into `bytes` at `at`, whole pages. A store elsewhere
 * that faults fails the test. Skips the test where this can't be done.
 */
void watch_stores(void *at, size_t bytes, void (*look)(void));

/* Stores of the test's own that are not watched. */
void watch_pause(void);
void watch_resume(void);

/* End it. Returns the number of stores. */
size_t watch_end(void);

#endif /* WATCH_H */
