#ifndef READER_INTERNAL_H
#define READER_INTERNAL_H
/* reader_internal.h - shared by the files of the reader; no other file includes it.
 *
 * read_records.c cuts the file into records and keeps the tables; decode_args.c decodes strings and
 * arguments; decode_event.c and decode_kernel.c decode the records that visitors get.
 */
#include "fxt/cursor.h"
#include "fxt/input.h"
#include "fxt/provider.h"
#include "fxt/reader.h"
#include "fxt/ring_chunks.h"
#include "fxt/spool_names.h"

struct reader {
    struct budget budget;
    struct pool *pool;
    struct providers providers;
    struct provider *current; /* NULL after a switch to an unknown provider */
    struct recording recording;
    struct fxt_visitor visitor;
    struct fxt_counts counts;
    bool stopped;
    bool again;                 /* the file was read before, up to the record at last_offset */
    uint64_t last_offset;
    char *stopped_by;           /* the text of that fault */
    int64_t first_ns, last_ns;  /* of events and scheduling records: the least time, and the last in the file's order */
    struct fxt_parts parts;
    struct ring_chunks *ring; /* of a file that reuses its chunks, else NULL */
    bool moved;        /* chunks changed while the file was read */
    size_t packet_left; /* bytes of a packet in the blobs to come */

    uint64_t offset; /* of the current record */
    uint64_t header;
    struct fxt_event event; /* reused, because it is large */
    struct fxt_sched sched;
};

/* Whether a string reference is an index into the table; otherwise the string is inline or
 * empty. */
static inline bool
string_indexed(unsigned ref)
{
    return ref != 0 && !(ref & FXT_STRING_REF_INLINE);
}
/* Reads a string by its reference, and moves the cursor past an inline one. Reports a fault and
 * returns false if the record is too short or the index is undefined. `what` names the string in
 * the fault. */
bool decode_string(struct reader *reader, struct cursor *cursor, unsigned ref, const char *what,
                   struct fxt_string *string_out);
/* Reads arguments. Reports a fault and returns false where Perfetto drops the record. If
 * `undefined` is true, an undefined string is not such a case: it reads as the empty string.
 * Sets *flawed_out after a fault that makes the record's own length meaningless. */
bool decode_args(struct reader *reader, struct cursor *cursor, unsigned count, bool undefined, struct fxt_arg *args,
                 bool *flawed_out);
/* Reads a thread by its reference; 0 is an inline thread. Returns false if the record is too
 * short. */
bool decode_thread(struct reader *reader, struct cursor *cursor, unsigned ref, struct thread_ids *ids_out);
/* Reads a time stamp of the current provider's clock. Returns false if the record is too short
 * or the time does not fit into 64 bits of nanoseconds. */
bool decode_time(struct reader *reader, struct cursor *cursor, const char *what, int64_t *ns_out);
/* The recording of the current provider, and the number of one of its processes. */
static inline uint32_t
current_recording(const struct reader *reader)
{
    uint32_t number = reader->current->recording;
    return number != 0 ? number : reader->recording.number; /* nothing introduces provider 0 */
}
static inline uint32_t
current_process(struct reader *reader, uint32_t pid)
{
    struct provider *provider = reader->current;
    if (provider->pid != pid || provider->process == MAP_NONE) {
        provider->pid = pid;
        provider->process = recording_process(&reader->recording, current_recording(reader), pid);
    }
    return provider->process;
}
/* Takes the time of a record that visitors get, and where it ends, INT64_MIN: not among records of its thread. */
static inline void
note_record_time(struct reader *reader, int64_t ts_ns, int64_t seen_ns)
{
    if (ts_ns < reader->first_ns) reader->first_ns = ts_ns;
    if (seen_ns != INT64_MIN) reader->last_ns = seen_ns;
}
/* Reports a record that is longer than its content. */
void decode_finish(struct reader *reader, const struct cursor *cursor, const char *what);
/* Reports bytes after a string that are not zero. */
void decode_check_padding(struct reader *reader, const char *ptr, size_t len, const char *what);
/* "the record ends within its %s" */
void decode_too_short(struct reader *reader, const char *what);

void decode_event(struct reader *reader, struct cursor *cursor);
void decode_kernel_object(struct reader *reader, struct cursor *cursor);
void decode_sched(struct reader *reader, struct cursor *cursor);
void decode_blob(struct reader *reader, struct cursor *cursor);

/* The number of faults so far, of a record alone, that are no warnings. */
uint64_t reader_damage(const struct reader *reader);
/* The file reuses its chunks: from here on, each chunk is read as it was at one moment. */
static inline void
reader_begin_ring(struct reader *reader)
{
    if (reader->ring == NULL) reader->ring = ring_chunks_new();
}

/* Converts ticks to nanoseconds, rounded exactly as in Perfetto; -1 if they do not fit. */
int64_t ticks_to_ns(uint64_t ticks, uint64_t ticks_per_second);

#endif
