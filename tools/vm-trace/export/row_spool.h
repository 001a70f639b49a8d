#ifndef ROW_SPOOL_H
#define ROW_SPOOL_H
/* row_spool.h - rows of many files, in the order in which they come, until each file is written as a whole.
 *
 * A trace of 10,000 processes has 90,000 files of tables, which cannot all be open while it is read once. Rows wait in
 * memory; when they take too much of it, they go into a temporary file, or into theirs if that is open.
 *
 *      row_spool_init -> print to `text`, row_spool_add, for each row -> row_spool_write for each file -> row_spool_free
 */
#include <stdbool.h>
#include <stdio.h>

#include "base/xalloc.h"

/* The rows of one file. Zeroed: there are none. */
struct spooled {
    FILE *out;                     /* the caller's, while it is open; or NULL */
    uint32_t first, last;          /* in memory: number + 1 */
    uint64_t last_block;           /* in the temporary file: offset + 1 */
};

struct row_spool {
    FILE *text; /* where rows are printed */
    char *bytes;
    size_t size, end, limit_bytes;
    struct spooled_row {
        struct spooled *of;
        size_t begin;
        uint32_t len, next; /* of the next one of the same file: number + 1 */
    } *rows;
    uint32_t count, capacity;
    const char *folder;
    FILE *file; /* temporary, without a name; NULL: not needed so far */
    uint64_t file_end;
    bool failed;
};

/* The folder, for the temporary file, must live as long. */
void row_spool_init(struct row_spool *spool, const char *folder, size_t limit_bytes);
void row_spool_free(struct row_spool *spool);
/* What was printed since the last row is a row. `of` must stay where it is. */
void row_spool_add(struct row_spool *spool, struct spooled *of);
/* Writes the rows of a file to `out`, which is open, and forgets them. Returns false, with a message the first time, if
 * the temporary file could not be written or read. */
bool row_spool_write(struct row_spool *spool, struct spooled *of);

#endif
