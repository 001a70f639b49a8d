#ifndef RUBY_VM_TRACE_WRITER_H
#define RUBY_VM_TRACE_WRITER_H 1
/*
 * One stream of records into chunks of the sink, with the tables of the chunk at hand.
 *
 * A chunk begins with a provider record, which empties a reader's tables, and defines all
 * that it uses: it can be read alone. The words of enum vm_trace_word come first and have
 * their numbers as indexes.
 *
 * Publishing. What is not written is padding. To write n words at p: padding is put behind
 * them (inside the padding that covers p), then words 1..n-1 are stored, then word 0, in that
 * order. Until the last store a reader sees padding there; after it, the record.
 *
 *   before  | pad(r) ....................... |        r = words to the next page
 *   after   | record(n) ..... | pad(r-n) ... |
 *
 * A record longer than r first has the padding under it made one record of n words, by one
 * store, and the rest of its last page made another before that.
 *
 * A writer belongs to one ractor and is used under its GVL: no lock, no atomic read-modify-
 * write.
 */

#include "fxt.h"
#include "sink.h"
#include "strings.h"

struct vm_trace_thread {
    uint32_t tid;     /* native */
    uint64_t name;    /* identity of the name that was written: another one is written again */
};

struct rb_vm_trace_writer {
    struct rb_vm_trace_sink *sink;
    struct rb_vm_trace_chunk chunk;
    size_t pos;             /* words: where the next record goes */
    size_t limit;           /* words: a record must end before */
    size_t pad_end;         /* words: end of the padding record at pos; pos when none is there */
    size_t fast_end;        /* words: the lesser of both */
    uint32_t serial;        /* number of the chunk, from 1 on in this writer; 0: none yet */
    uint32_t next_string;   /* index of the next string record */
    uint32_t string_limit;  /* and the highest that it may have */
    uint32_t thread_count;
    uint32_t last_thread;   /* index that was asked for last: mostly the one that comes next */
    struct vm_trace_thread threads[FXT_MAX_THREAD_INDEX]; /* index - 1 */
    struct vm_trace_interned_slot {
        uint64_t serial;    /* of the text */
        struct vm_trace_slot slot;
    } *interned;            /* by id of the text */
    uint32_t interned_capacity;
    uint32_t pid;
    uint64_t events;        /* published */
};

/* `writer` is zeroed. The sink must outlive it. */
void rb_vm_trace_writer_init(struct rb_vm_trace_writer *writer, struct rb_vm_trace_sink *sink, uint32_t pid);

/*
 * Close the chunk and begin a new one with its preamble. False when the sink has no more: the
 * old chunk stays then, for the last words.
 */
bool rb_vm_trace_writer_next_chunk(struct rb_vm_trace_writer *writer);

/*
 * Free the room at the end of the chunk, and of its string table, that is kept for what must be said when the disk is
 * full: the loss and the summary.
 */
void rb_vm_trace_writer_last_words(struct rb_vm_trace_writer *writer);

/* Give the chunk back; the writer may go on with a next one. */
void rb_vm_trace_writer_close(struct rb_vm_trace_writer *writer);

/* Forget the chunk without a touch (fork's child). */
void rb_vm_trace_writer_drop(struct rb_vm_trace_writer *writer);

void rb_vm_trace_writer_free(struct rb_vm_trace_writer *writer);

/* The slow part of writer_reserve. */
uint64_t *rb_vm_trace_writer_reserve_slow(struct rb_vm_trace_writer *writer, size_t words);

/*
 * Room for a record of 1 to 4,095 words, covered by padding until writer_publish. NULL: the
 * chunk is full (or there is none).
 */
static inline __attribute__((always_inline)) uint64_t *
writer_reserve(struct rb_vm_trace_writer *writer, size_t words)
{
    size_t end = writer->pos + words;
    if (end > writer->fast_end) return rb_vm_trace_writer_reserve_slow(writer, words);
    if (end < writer->pad_end) writer->chunk.words[end] = fxt_padding_header(writer->pad_end - end);
    return writer->chunk.words + writer->pos;
}

/* Make the reserved record visible by storing its first word last. */
static inline void
writer_publish(struct rb_vm_trace_writer *writer, size_t words, uint64_t header)
{
    __atomic_store_n(writer->chunk.words + writer->pos, header, __ATOMIC_RELEASE);
    writer->pos += words;
}

/* Write a string record for `text` (cut already) and number it. False: the chunk is full. */
bool rb_vm_trace_writer_define(struct rb_vm_trace_writer *writer, struct vm_trace_slot *slot,
                               const char *text, size_t bytes);

/* Index of a text in the current chunk, defining it when it has none. False: the chunk is full. */
static inline bool
writer_string(struct rb_vm_trace_writer *writer, struct vm_trace_slot *slot,
              const char *text, size_t bytes, unsigned *index_out)
{
    if (slot->chunk != writer->serial && !rb_vm_trace_writer_define(writer, slot, text, bytes)) return false;
    *index_out = slot->index;
    return true;
}

/* The same for an interned text. */
bool rb_vm_trace_writer_interned_slow(struct rb_vm_trace_writer *writer, const struct vm_trace_string *string,
                                      unsigned *index_out);

static inline bool
writer_interned(struct rb_vm_trace_writer *writer, const struct vm_trace_string *string, unsigned *index_out)
{
    if (string->id < writer->interned_capacity) {
        const struct vm_trace_interned_slot *known = &writer->interned[string->id];
        if (known->serial == string->serial && known->slot.chunk == writer->serial) {
            *index_out = known->slot.index;
            return true;
        }
    }
    return rb_vm_trace_writer_interned_slow(writer, string, index_out);
}

/*
 * Index of a thread in the current chunk, or 0 when it has none under that name yet; then
 * writer_name_thread gives it one. `name_id` tells one name of a thread from another.
 */
unsigned rb_vm_trace_writer_thread(struct rb_vm_trace_writer *writer, uint32_t tid, uint64_t name_id);

/* Write the thread and its name. False: the chunk or its table of threads is full. */
bool rb_vm_trace_writer_name_thread(struct rb_vm_trace_writer *writer, uint32_t tid, uint64_t name_id,
                                    const char *name, size_t name_bytes, unsigned *index_out);

/* Names of threads are written again when the threads come next. */
void rb_vm_trace_writer_forget_names(struct rb_vm_trace_writer *writer);

/* As writer_thread when it was asked for last, under that name; 0 when it was not. */
static inline unsigned
writer_last_thread(const struct rb_vm_trace_writer *writer, uint32_t tid, uint64_t name_id)
{
    if (writer->last_thread == 0) return 0;
    const struct vm_trace_thread *last = &writer->threads[writer->last_thread - 1];
    return last->tid == tid && last->name == name_id ? writer->last_thread : 0;
}

#endif /* RUBY_VM_TRACE_WRITER_H */
