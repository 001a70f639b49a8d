#ifndef XALLOC_H
#define XALLOC_H
/* xalloc.h - allocation that does not fail, and a budget for what a file makes the tool keep.
 *
 * A trace can contain any number of names. What the tool keeps for them is charged to a budget, so
 * no file can take more memory than granted. If the machine has no memory left, the tool prints a
 * message and exits.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* These never return NULL: without memory they print a message and exit. Free the result with
 * free(). */
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *ptr, size_t count, size_t size);
/* A text formatted like printf. */
char *xformat(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A stream into memory: *text_out is all of it when it is closed. */
FILE *xmemstream(char **text_out, size_t *bytes_out);

/* Doubles a capacity (16 elements at first). Prints a message and exits if a counter of
 * counter_bytes cannot hold the result: a counter that wraps around would make the array too
 * small. */
size_t grown_capacity(size_t capacity, size_t counter_bytes);

/* Makes room for one more element in an array that grows by doubling. */
#define make_room(array, count, capacity) \
    do { \
        if ((count) == (capacity)) { \
            size_t grown_ = grown_capacity((capacity), sizeof(capacity)); \
            (array) = xrealloc((array), grown_, sizeof *(array)); \
            (capacity) = grown_; \
        } \
    } while (0)

struct budget {
    size_t used_bytes;
    size_t limit_bytes;
    bool exceeded; /* set by budget_charge */
};

/* Takes bytes from the budget. Returns false, and takes nothing, if they are not available. */
bool budget_take(struct budget *budget, size_t bytes);
/* Takes bytes even if they are not available, and then sets `exceeded`: for what must be kept in
 * any case. The reader checks this after each record and stops, so the limit is exceeded by
 * little. */
void budget_charge(struct budget *budget, size_t bytes);
void budget_give_back(struct budget *budget, size_t bytes);

/* An array that grows. */
#define ARRAY_OF(type) \
    struct { \
        type *list; \
        uint32_t count; \
        uint32_t capacity; \
    }

/* make_room that charges the growth of the array to the budget. */
#define make_room_within(budget, array, count, capacity) \
    do { \
        size_t before_ = (capacity); \
        make_room(array, count, capacity); \
        if ((capacity) != before_) budget_charge((budget), ((capacity) - before_) * sizeof *(array)); \
    } while (0)

#endif
