#ifndef READER_INTERNAL_H
#define READER_INTERNAL_H
/* reader_internal.h - what the files of the reader share; nobody else includes it.
 *
 * read_records.c cuts the file into records and keeps the tables; decode_args.c reads strings and
 * arguments; decode_event.c and decode_kernel.c read the records that are handed out.
 */
#include "fxt/cursor.h"
#include "fxt/input.h"
#include "fxt/provider.h"
#include "fxt/reader.h"
#include "fxt/ring_chunks.h"

struct reader {
    struct budget budget;
    struct pool *pool;
    struct providers providers;
    struct provider *current; /* NULL after a switch to a provider that was never introduced */
    struct fxt_visitor visitor;
    struct fxt_counts counts;
    bool stopped;
    struct ring_chunks *ring; /* of a file whose chunks are used again; NULL where they are not */
    bool moved;        /* some were, while it was read */

    uint64_t offset; /* of the current record */
    uint64_t header;
    struct fxt_event event; /* reused: it is large */
    struct fxt_sched sched;
};

/* Whether a reference to a string is an index of the table: else the string is inline, or empty. */
static inline bool
string_indexed(unsigned ref)
{
    return ref != 0 && !(ref & FXT_STRING_REF_INLINE);
}
/* Reads a string by its reference, moving the cursor past an inline one. False, with a fault reported, when the record is too
 * short or the index undefined. `what` names it in the fault. */
bool decode_string(struct reader *reader, struct cursor *cursor, unsigned ref, const char *what, struct fxt_string *string_out);
/* Reads arguments. False, with a fault reported, where Perfetto drops the record: with `undefined` it does not for a string that
 * is not defined, which is the empty one then. *flawed_out is set when a flaw was reported that makes the record's own length
 * meaningless. */
bool decode_args(struct reader *reader, struct cursor *cursor, unsigned count, bool undefined, struct fxt_arg *args, bool *flawed_out);
/* A thread by its reference; inline where it is 0. False when the record is too short. */
bool decode_thread(struct reader *reader, struct cursor *cursor, unsigned ref, struct thread_ids *ids_out);
/* A time stamp in the current provider's clock. False when the record is too short or the time cannot be held. */
bool decode_time(struct reader *reader, struct cursor *cursor, const char *what, int64_t *ns_out);
/* Reports a record that holds more words than its content. */
void decode_finish(struct reader *reader, const struct cursor *cursor, const char *what);
/* Reports that bytes after a string are not zero. */
void decode_check_padding(struct reader *reader, const char *ptr, size_t len, const char *what);
/* "the record ends within its %s" */
void decode_too_short(struct reader *reader, const char *what);

void decode_event(struct reader *reader, struct cursor *cursor);
void decode_kernel_object(struct reader *reader, struct cursor *cursor);
void decode_sched(struct reader *reader, struct cursor *cursor);
void decode_blob(struct reader *reader, struct cursor *cursor);

/* The file says that its chunks are used again: from here on each is taken as it was at one moment. */
void reader_begin_ring(struct reader *reader);

/* Ticks of a clock in nanoseconds, or -1 where that does not fit: rounded exactly as Perfetto rounds. */
int64_t ticks_to_ns(uint64_t ticks, uint64_t ticks_per_second);

#endif
