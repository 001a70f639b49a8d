#ifndef ROW_LIST_H
#define ROW_LIST_H
/* row_list.h - numbers of rows of a table, such as those that the current file has changed. What is done at the end of
 * each file then takes as long as the file is, not as long as all files before it. Zeroed: empty. */
#include <stdint.h>
#include <stdlib.h>

#include "base/xalloc.h"

struct row_list {
    uint32_t *rows;
    uint32_t count, capacity;
};

static inline void
row_list_add(struct row_list *list, uint32_t row)
{
    make_room(list->rows, list->count, list->capacity);
    list->rows[list->count++] = row;
}

static inline void
row_list_free(struct row_list *list)
{
    free(list->rows);
    *list = (struct row_list){0};
}

#endif
