#ifndef PIECE_ENDS_H
#define PIECE_ENDS_H
/* piece_ends.h - where durations end that are open at the end of a spool's piece.
 *
 *      piece_ends_init -> for each file: piece_ends_file_begin, then piece_ends_event for each event ->
 *      piece_ends_free
 *
 * A thread that waits while the recorder cuts its recording has the begin of the duration in both
 * pieces, and its end in the later one. Read as one trace, the later begin would lie in the earlier
 * one, which never ends: so the earlier one ends where the next piece begins.
 */
#include "base/row_table.h"
#include "fxt/reader.h"

struct piece_end {
    uint32_t recording, pid, tid;
    uint32_t category, name; /* strings of the reader's pool */
    int64_t ts_ns;
};

typedef void on_piece_end_function(void *context, const struct piece_end *end);

struct piece_ends {
    void *context;
    on_piece_end_function *end; /* innermost first */
    struct pool *pool;
    struct row_table threads;
    const char *path; /* of the current file */
    bool goes_on; /* the current file is the next piece of the file before */
};

void piece_ends_init(struct piece_ends *ends, struct pool *pool, on_piece_end_function *end, void *context);
void piece_ends_free(struct piece_ends *ends);
/* The path must live until the next file begins. */
void piece_ends_file_begin(struct piece_ends *ends, const char *path);
/* Takes an event, and passes the ends that are before it. */
void piece_ends_event(struct piece_ends *ends, const struct fxt_event *event);

#endif
