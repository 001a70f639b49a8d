#ifndef RUBY_VM_TRACE_STORE_WRITER_H
#define RUBY_VM_TRACE_STORE_WRITER_H 1
/*
 * One stream of records into chunks of the sink, with the tables of the chunk at hand.
 *
 * A chunk begins with a provider record, which empties a reader's tables, and defines all
 * that it uses: it can be read without others. Known strings (known_strings.h) come first and have
 * their numbers as indexes.
 *
 * A chunk that comes right after the writer's last one in a file that uses no chunk again continues that
 * one: it has no provider record, and uses what was defined there. Such a run of at most
 * WRITER_RUN_CHUNKS chunks is read as one. Deep stacks have texts of 4 KiB: an application defines a
 * MiB of texts before its exits repeat, which each chunk would hold again.
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
 *
 * There may be fewer chunks than ractors: in a limited file, and where very many ractors live. Those that find none for themselves share one:
 * each has it for one event, under a lock. What each defined there stays defined for it until that chunk
 * is full: the numbers of strings and threads go on where the last one stopped.
 *
 * A ractor that ends leaves an orphaned chunk, when there is room in it: the next writer that needs a chunk
 * goes on there in the same way, but with nothing defined, for what it defined elsewhere is not there.
 */

#include "vm_trace/base/clock.h"
#include "vm_trace/schema/fxt.h"
#include "vm_trace/store/chunk_file.h"
#include "vm_trace/base/strings.h"

#define WRITER_RUN_CHUNKS 16
extern uint32_t rb_vm_trace_writer_run_chunks; /* is that; 1: each chunk has tables of its own. Tests set it */

struct vm_trace_thread {
    uint32_t tid;     /* native */
    uint64_t name;    /* identity of the name that was written: another one is written again */
};

struct rb_vm_trace_writer {
    struct rb_vm_trace_chunk_file *file;
    struct rb_vm_trace_chunk chunk;
    size_t pos;             /* words: where the next record goes */
    size_t limit;           /* words: a record must end before */
    size_t pad_end;         /* words: end of the padding record at pos; pos when none is there */
    size_t fast_end;        /* words: the lesser of both */
    uint32_t serial;        /* number of the tables, from 1 on in this writer; 0: none yet. Chunks of a run share them */
    uint32_t chunk_serial;  /* number of the chunk: what points into it ends with it */
    uint32_t run;           /* chunks of the run before this one */
    uint32_t next_string;   /* index of the next string record */
    uint32_t string_limit;  /* and the highest that it may have */
    uint32_t thread_count;
    uint32_t reused;        /* thread indexes that were given to another thread, in all chunks */
    uint32_t renamed;       /* changes when names of threads are to be written again */
    uint32_t last_thread;   /* index that was requested last: mostly the next one, too */
    struct vm_trace_thread threads[FXT_MAX_THREAD_INDEX]; /* index - 1 */
    uint8_t thread_hints[256]; /* by the low bits of an id: the index to look at first */
    struct vm_trace_interned_slot {
        uint64_t serial;    /* of the text */
        struct vm_trace_slot slot;
    } *interned;            /* by id of the text */
    uint32_t interned_capacity;
    uint32_t pid;
    uint32_t shared_serial; /* serial of the shared writer when its chunk was borrowed last; 0: there were other chunks since */
    bool late;              /* it got no chunk when it needed one last, because the disk was too slow */
    bool shares;            /* it is that of struct rb_vm_trace_shared */
    uint32_t epoch;         /* that the last note in the chunk says; 0: it has none */
    uint64_t events;        /* published */
};

/* An orphaned chunk: its ractor has ended. It counts as in use, and snapshots copy it. */
struct rb_vm_trace_orphan {
    struct rb_vm_trace_orphan *next;
    uint64_t latest_ns;       /* no event in it is later */
    struct rb_vm_trace_writer writer;
};

struct rb_vm_trace_shared {
    pthread_mutex_t lock;   /* held while its chunk is borrowed; guards all of it */
    struct rb_vm_trace_writer writer;
    struct rb_vm_trace_orphan *orphans; /* the last that was left comes first */
};

/* `writer` is zeroed. The sink must outlive it. */
void rb_vm_trace_writer_init(struct rb_vm_trace_writer *writer, struct rb_vm_trace_chunk_file *file, uint32_t pid);

/*
 * Close the chunk and begin a new one with its preamble. False when the sink has no more: the
 * old chunk stays then, for the last words.
 */
bool rb_vm_trace_writer_next_chunk(struct rb_vm_trace_writer *writer);

/*
 * Free the room at the end of the chunk, and of its string table, that is kept for what must be
 * said when the disk is full: the loss and the summary.
 */
void rb_vm_trace_writer_last_words(struct rb_vm_trace_writer *writer);

/*
 * Borrow the shared chunk, for a writer that has none, until it is returned. It waits for others
 * that have it for an event. False, and nothing borrowed: there is none, or it is of another sink.
 */
bool rb_vm_trace_writer_borrow(struct rb_vm_trace_writer *writer, struct rb_vm_trace_shared *shared);

/*
 * What was borrowed is full: go on in the next chunk. False: there is none. To be returned in
 * either case.
 */
bool rb_vm_trace_writer_borrow_next(struct rb_vm_trace_writer *writer, struct rb_vm_trace_shared *shared);
void rb_vm_trace_writer_return(struct rb_vm_trace_writer *writer, struct rb_vm_trace_shared *shared);

/*
 * Leave the chunk to others, for the ractor is gone; when there is not enough of it left for any
 * event, with all that it names, it is given back. `latest_ns`: no event in it is later.
 */
void rb_vm_trace_writer_leave(struct rb_vm_trace_writer *writer, struct rb_vm_trace_shared *shared, uint64_t latest_ns);

/*
 * Go on in what another has left: the writer's own chunk, if it has one, is given back. `clock` is
 * its ractor's. False, and nothing changed: nothing is left, what is left holds events that are
 * later by that clock (those of ractors differ a little, and in a chunk no thread's time runs
 * back), it is of another sink, or others did something to the file.
 */
bool rb_vm_trace_writer_take_orphan(struct rb_vm_trace_writer *writer, struct rb_vm_trace_shared *shared,
                                    struct vm_trace_clock *clock);

/* Give back the shared chunk and all orphaned ones. */
void rb_vm_trace_shared_close(struct rb_vm_trace_shared *shared);

/* Forget them without a touch, with the lock held (fork's child). */
void rb_vm_trace_shared_drop(struct rb_vm_trace_shared *shared);

/* Give the chunk back; the writer may go on with a next one. */
void rb_vm_trace_writer_close(struct rb_vm_trace_writer *writer);

/* Forget the chunk without a touch (fork's child). */
void rb_vm_trace_writer_drop(struct rb_vm_trace_writer *writer);

void rb_vm_trace_writer_free(struct rb_vm_trace_writer *writer);

/*
 * Note that what follows in the chunk belongs to that epoch (ractor_state.h). A snapshot reads such notes, and
 * leaves them out. False: the chunk is full, and has no room for any event either.
 */
bool rb_vm_trace_writer_note_epoch(struct rb_vm_trace_writer *writer, uint32_t epoch);

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

/*
 * Ask for the memory that records will be written to a little later, which otherwise is waited for:
 * a chunk that was made ahead is in the cache of the core that made it. Two lines, for a record may
 * be longer than one. What lies past the chunk is left alone.
 */
#define WRITER_AHEAD_BYTES 512
#define WRITER_LINE_BYTES 64
static inline void
writer_prefetch(const uint64_t *at)
{
    const char *line = (const char *)at + WRITER_AHEAD_BYTES;
#if defined(__GNUC__) && defined(__x86_64__)
    /*
     * For writing; the compiler's own is for reading there, unless built for a newer processor.
     * Older ones take it for a no-op.
     */
    __asm__ volatile("prefetchw %0\n\tprefetchw %1" : : "m"(line[0]), "m"(line[WRITER_LINE_BYTES]));
#else
    __builtin_prefetch(line, 1);
    __builtin_prefetch(line + WRITER_LINE_BYTES, 1);
#endif
}

/*
 * The position after a record. A snapshot reads it from another thread: what lies before it, and the
 * hits of what was recorded there, are seen with it.
 */
static inline void
writer_move_to(struct rb_vm_trace_writer *writer, size_t pos)
{
    __atomic_store_n(&writer->pos, pos, __ATOMIC_RELEASE);
}

/* Events that were published. A snapshot, which reads this count first, finds all of them. */
static inline void
writer_count_events(struct rb_vm_trace_writer *writer, uint64_t events)
{
    __atomic_store_n(&writer->events, writer->events + events, __ATOMIC_RELEASE);
}

/* Make the reserved record visible: a reader that sees its first word sees all of it. */
static inline void
writer_publish(struct rb_vm_trace_writer *writer, size_t words, uint64_t header)
{
    size_t pos = writer->pos;
    uint64_t *record = writer->chunk.words + pos;
    __atomic_store_n(record, header, __ATOMIC_RELEASE);
    writer_prefetch(record);
    writer_move_to(writer, pos + words);
}

/* The last word of the record that was published last. */
static inline uint64_t *
writer_last_word(const struct rb_vm_trace_writer *writer)
{
    return writer->chunk.words + writer->pos - 1;
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

/* The slow part of writer_thread. */
unsigned rb_vm_trace_writer_thread_slow(struct rb_vm_trace_writer *writer, uint32_t tid, uint64_t name_id);

/* Write the thread and its name. False: the chunk is full. */
bool rb_vm_trace_writer_name_thread(struct rb_vm_trace_writer *writer, uint32_t tid, uint64_t name_id,
                                    const char *name, size_t name_bytes, unsigned *index_out);

/*
 * Name the process: the title that the program gave it, or "ruby". A new chunk begins with it; readers use the last
 * one. It is left out when the chunk is full.
 */
void rb_vm_trace_writer_name_process(struct rb_vm_trace_writer *writer);

/*
 * Index of the thread that stands for "none" in scheduling records (pid and tid 0), which is
 * defined when a chunk has it first. 0: the chunk is full.
 */
unsigned rb_vm_trace_writer_no_thread(struct rb_vm_trace_writer *writer);

/* Names of threads are written again when the threads come next. */
void rb_vm_trace_writer_forget_names(struct rb_vm_trace_writer *writer);

/* writer_thread of the thread and name that were requested last; 0 for others. */
static inline unsigned
writer_last_thread(const struct rb_vm_trace_writer *writer, uint32_t tid, uint64_t name_id)
{
    if (writer->last_thread == 0) return 0;
    const struct vm_trace_thread *last = &writer->threads[writer->last_thread - 1];
    return last->tid == tid && last->name == name_id ? writer->last_thread : 0;
}

/*
 * Index of a thread in the current chunk, or 0 when it has none under that name yet; then
 * rb_vm_trace_writer_name_thread gives it one. `name_id` distinguishes the names of a thread.
 */
static inline unsigned
writer_thread(struct rb_vm_trace_writer *writer, uint32_t tid, uint64_t name_id)
{
    unsigned last = writer_last_thread(writer, tid, name_id);
    return last ? last : rb_vm_trace_writer_thread_slow(writer, tid, name_id);
}

#endif /* RUBY_VM_TRACE_STORE_WRITER_H */
