#ifndef XALLOC_H
#define XALLOC_H
/* xalloc.h - allocation that does not fail, and a budget for what a file's content makes us keep.
 *
 * A trace can name as much as it likes; what is kept for it (names, tables) is counted in a budget, so that no file, however
 * made, takes more memory than was granted. When the machine itself has no memory left the tool says so and ends.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Never return NULL; end the program with a message where there is no memory. Free with free(). */
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *ptr, size_t count, size_t size);

/* Twice the capacity (16 elements at first). Ends the program with a message where that does not fit in a counter of so many
 * bytes: a counter that wrapped around would make the array too small. */
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
    bool exceeded; /* by budget_charge */
};

/* Takes bytes from the budget. False, and nothing taken, when they are not there. */
bool budget_take(struct budget *budget, size_t bytes);
/* Takes bytes also where they are not there, and then sets `exceeded`: for what is kept in any case. Who reads on looks at that, and
 * stops (reader.c does after each record), so the limit is exceeded by little. */
void budget_charge(struct budget *budget, size_t bytes);
void budget_give_back(struct budget *budget, size_t bytes);

/* make_room that charges the budget for what the array grows by. */
#define make_room_within(budget, array, count, capacity) \
    do { \
        size_t before_ = (capacity); \
        make_room(array, count, capacity); \
        if ((capacity) != before_) budget_charge((budget), ((capacity) - before_) * sizeof *(array)); \
    } while (0)

#endif
