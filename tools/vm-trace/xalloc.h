#ifndef XALLOC_H
#define XALLOC_H
/* xalloc.h - allocation that does not fail, and a budget for what a file's content makes us keep.
 *
 * A trace can name as much as it likes; what is kept for it (names, tables) is counted in a budget, so that no file, however
 * made, takes more memory than was granted. When the machine itself has no memory left the tool says so and ends.
 */
#include <stdbool.h>
#include <stddef.h>

/* Never return NULL; end the program with a message where there is no memory. Free with free(). */
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *ptr, size_t count, size_t size);

/* Makes room for one more element in an array that grows by doubling. */
#define make_room(array, count, capacity) \
    do { \
        if ((count) == (capacity)) { \
            (capacity) = (capacity) ? (capacity) * 2 : 16; \
            (array) = xrealloc((array), (capacity), sizeof *(array)); \
        } \
    } while (0)

struct budget {
    size_t used_bytes;
    size_t limit_bytes;
};

/* Takes bytes from the budget. False, and nothing taken, when they are not there. */
bool budget_take(struct budget *budget, size_t bytes);
void budget_give_back(struct budget *budget, size_t bytes);

#endif
