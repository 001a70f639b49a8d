/*
 * Records into chunks. See writer.h.
 */
#include "vm_trace/store/writer.h"
#include "vm_trace/base/known_strings.h"
#include "vm_trace/base/process_title.h"

#include <stdlib.h>
#include <string.h>

/* One provider for all writers: each run of chunks introduces it again, which empties the tables. */
#define PROVIDER_ID 1
static const char PROVIDER_NAME[] = "ruby vm_trace";
enum { TITLE_BYTES = 256 }; /* the most that the name of the process has */
/* Room for a loss, the name of the process, and a summary, with the text and the thread that they may need. */
#define LAST_WORDS 200
#define LAST_STRINGS 11
/*
 * The most that an event takes, with all that it names: its own name, ten frames, instruction,
 * ISEQ, its thread's name and that of the native one, each a record as long as any can be; the rest
 * of the stack (4 KiB) and the records of the thread and the event fit into one more. A chunk that
 * is taken when an event did not fit must have room for it, as a new one has.
 */
#define EVENT_STRINGS 16
#define EVENT_WORDS ((size_t)EVENT_STRINGS * FXT_RECORD_MAX_WORDS)
#define NO_NAME UINT64_MAX /* no host's name_id */
#define TICKS_PER_SECOND UINT64_C(1000000000) /* times are nanoseconds */

uint32_t rb_vm_trace_writer_run_chunks = WRITER_RUN_CHUNKS;

void
rb_vm_trace_writer_init(struct rb_vm_trace_writer *writer, struct rb_vm_trace_chunk_file *file, uint32_t pid)
{
    writer->file = file;
    writer->pid = pid;
}

static void
set_pad_end(struct rb_vm_trace_writer *writer, size_t pad_end)
{
    writer->pad_end = pad_end;
    writer->fast_end = pad_end < writer->limit ? pad_end : writer->limit;
}

uint64_t *
rb_vm_trace_writer_reserve_slow(struct rb_vm_trace_writer *writer, size_t words)
{
    size_t end = writer->pos + words;
    if (!writer->chunk.words || words > FXT_RECORD_MAX_WORDS || end > writer->limit) return NULL;

    /* The grid's padding from `page` on is untouched. Put the rest of the last page in order,
     * then lay one padding record under the whole of the new one. */
    size_t page = (end + VM_TRACE_PAGE_WORDS - 1) / VM_TRACE_PAGE_WORDS * VM_TRACE_PAGE_WORDS;
    uint64_t *at = writer->chunk.words + writer->pos;
    if (page > end) writer->chunk.words[end] = fxt_padding_header(page - end);
    __atomic_store_n(at, fxt_padding_header(words), __ATOMIC_RELEASE);
    /* The record is written over the grid's padding, which readers must not look for any more. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    set_pad_end(writer, page);
    return at;
}

bool
rb_vm_trace_writer_note_epoch(struct rb_vm_trace_writer *writer, uint32_t epoch)
{
    uint64_t *record = writer_reserve(writer, FXT_NOTE_WORDS);
    if (!record) return false;
    record[1] = epoch;
    writer_publish(writer, FXT_NOTE_WORDS, fxt_note_header());
    writer->epoch = epoch;
    return true;
}

bool
rb_vm_trace_writer_define(struct rb_vm_trace_writer *writer, struct vm_trace_slot *slot,
                          const char *text, size_t bytes)
{
    if (bytes == 0) { /* index 0 is the empty string, always */
        slot->chunk = writer->serial;
        slot->index = 0;
        return writer->serial != 0;
    }
    if (writer->next_string > writer->string_limit) return false;

    size_t words = 1 + fxt_words(bytes);
    uint64_t *record = writer_reserve(writer, words);
    if (!record) return false;
    fxt_put_text(record + 1, text, bytes);
    writer_publish(writer, words, fxt_string_header(writer->next_string, bytes));
    slot->chunk = writer->serial;
    slot->index = writer->next_string++;
    return true;
}

bool
rb_vm_trace_writer_interned_slow(struct rb_vm_trace_writer *writer, const struct vm_trace_string *string,
                                 unsigned *index_out)
{
    if (string->id >= writer->interned_capacity) {
        uint32_t capacity = writer->interned_capacity ? writer->interned_capacity : 256;
        while (capacity <= string->id) capacity *= 2;
        struct vm_trace_interned_slot *grown = realloc(writer->interned, capacity * sizeof(*grown));
        if (!grown) { /* define it each time: larger, never wrong */
            struct vm_trace_slot once = { 0, 0 };
            return writer_string(writer, &once, string->text, string->bytes, index_out);
        }
        memset(grown + writer->interned_capacity, 0, (capacity - writer->interned_capacity) * sizeof(*grown));
        writer->interned = grown;
        writer->interned_capacity = capacity;
    }
    struct vm_trace_interned_slot *known = &writer->interned[string->id];
    if (known->serial != string->serial) {
        known->serial = string->serial;
        known->slot.chunk = 0;
    }
    return writer_string(writer, &known->slot, string->text, string->bytes, index_out);
}

/*
 * A snapshot reads the chunk's offset first, then the position, without a lock. So that it takes no
 * position for one in the new chunk that was in the old one, the old one's is 0 by now, and seen so.
 */
static void
set_chunk(struct rb_vm_trace_writer *writer, const struct rb_vm_trace_chunk *chunk)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
    writer->chunk = *chunk;
}

void
rb_vm_trace_writer_name_process(struct rb_vm_trace_writer *writer)
{
    char title[TITLE_BYTES], *copy = NULL;
    size_t bytes = rb_vm_trace_process_title(title, sizeof(title));
    const char *name = bytes ? rb_vm_trace_text_clean(title, &bytes, &copy)
                             : rb_vm_trace_known_text(STRING_RUBY, &bytes);
    struct vm_trace_slot slot = { 0, 0 };
    bool defined = rb_vm_trace_writer_define(writer, &slot, name, rb_vm_trace_text_fit(name, bytes, TITLE_BYTES));
    free(copy);
    uint64_t *record = defined ? writer_reserve(writer, 2) : NULL;
    if (!record) return;
    record[1] = writer->pid;
    writer_publish(writer, 2, fxt_kernel_object_header(2, FXT_OBJECT_PROCESS, slot.index, 0));
}

static bool
reserve_chunk(struct rb_vm_trace_writer *writer, struct rb_vm_trace_chunk *chunk_out)
{
    struct rb_vm_trace_chunk_file *file = writer->file;
    bool ok = writer->shares ? rb_vm_trace_chunk_file_reserve(file, chunk_out)
                             : rb_vm_trace_chunk_file_reserve_own(file, chunk_out, writer->chunk.words != NULL);
    writer->late = chunk_out->late;
    return ok;
}

/* Whether a new chunk continues the one that the writer has filled, see writer.h. */
static bool
continues_p(const struct rb_vm_trace_writer *writer, const struct rb_vm_trace_chunk *next)
{
    return writer->chunk.words && !writer->shares && writer->chunk.stays && next->stays &&
        next->offset == writer->chunk.offset + VM_TRACE_CHUNK_BYTES && writer->run + 1 < rb_vm_trace_writer_run_chunks &&
        writer->next_string <= FXT_MAX_STRING_INDEX / 2; /* fuller tables may end the chunk early */
}

/* Empty tables, and what a reader must know first. A fresh chunk has room for all of it. */
static void
begin_tables(struct rb_vm_trace_writer *writer)
{
    writer->serial++;
    writer->run = 0;
    writer->next_string = 1;
    writer->thread_count = 0;
    writer->last_thread = 0;

    size_t name_bytes = sizeof(PROVIDER_NAME) - 1;
    size_t words = 1 + fxt_words(name_bytes);
    uint64_t *record = writer_reserve(writer, words);
    fxt_put_text(record + 1, PROVIDER_NAME, name_bytes);
    writer_publish(writer, words, fxt_provider_info_header(PROVIDER_ID, name_bytes));

    record = writer_reserve(writer, 2);
    record[1] = TICKS_PER_SECOND;
    writer_publish(writer, 2, fxt_header(FXT_RECORD_INITIALIZATION, 2));

    struct vm_trace_slot slot;
    for (int string = 1; string < FIXED_STRINGS; string++) {
        size_t bytes;
        const char *text = rb_vm_trace_known_text((enum known_string)string, &bytes);
        rb_vm_trace_writer_define(writer, &slot, text, bytes);
    }
    rb_vm_trace_writer_name_process(writer);
}

bool
rb_vm_trace_writer_next_chunk(struct rb_vm_trace_writer *writer)
{
    struct rb_vm_trace_chunk chunk;
    bool filled = writer->chunk.words != NULL;
    if (!reserve_chunk(writer, &chunk)) {
        if (!chunk.none_idle || !writer->chunk.words) return false;
        /* All chunks of a limited file are in use: then it is ours that is used again. */
        rb_vm_trace_writer_close(writer);
        if (!reserve_chunk(writer, &chunk)) return false;
    }
    bool continues = continues_p(writer, &chunk);
    rb_vm_trace_writer_close(writer);
    if (filled) rb_vm_trace_chunk_file_preallocate(writer->file); /* a first one may stay the only one */
    set_chunk(writer, &chunk);
    writer->limit = VM_TRACE_CHUNK_WORDS - LAST_WORDS;
    writer_move_to(writer, writer->chunk.first);
    set_pad_end(writer, VM_TRACE_PAGE_WORDS);
    writer->chunk_serial++;
    writer->shared_serial = 0;
    writer->string_limit = FXT_MAX_STRING_INDEX - LAST_STRINGS;
    writer->epoch = 0;
    if (continues) writer->run++;
    else begin_tables(writer);
    return true;
}

void
rb_vm_trace_writer_last_words(struct rb_vm_trace_writer *writer)
{
    if (!writer->chunk.words) return;
    writer->limit = VM_TRACE_CHUNK_WORDS;
    writer->string_limit = FXT_MAX_STRING_INDEX;
}

static uint32_t
find_thread(struct rb_vm_trace_writer *writer, uint32_t tid)
{
    uint8_t *hint = &writer->thread_hints[tid & (sizeof(writer->thread_hints) - 1)];
    uint32_t likely = *hint;
    if (likely && likely <= writer->thread_count && writer->threads[likely - 1].tid == tid) return likely;
    for (uint32_t i = 0; i < writer->thread_count; i++) {
        if (writer->threads[i].tid == tid) return *hint = (uint8_t)(i + 1);
    }
    return 0;
}

unsigned
rb_vm_trace_writer_thread_slow(struct rb_vm_trace_writer *writer, uint32_t tid, uint64_t name_id)
{
    uint32_t index = find_thread(writer, tid);
    if (!index || writer->threads[index - 1].name != name_id) return 0;
    writer->last_thread = index;
    return index;
}

void
rb_vm_trace_writer_forget_names(struct rb_vm_trace_writer *writer)
{
    for (uint32_t i = 0; i < writer->thread_count; i++) writer->threads[i].name = NO_NAME;
    writer->last_thread = 0;
    writer->renamed++;
}

/*
 * Give a thread the next index, or, when all are in use, that of another one, but not of the thread
 * that was requested last: the record that is being composed may have it. 0: no room.
 */
static uint32_t
define_thread(struct rb_vm_trace_writer *writer, uint32_t pid, uint32_t tid)
{
    uint64_t *record = writer_reserve(writer, 3);
    if (!record) return 0;
    uint32_t index;
    if (writer->thread_count < FXT_MAX_THREAD_INDEX) {
        index = ++writer->thread_count;
    }
    else {
        do index = 1 + writer->reused++ % FXT_MAX_THREAD_INDEX;
        while (index == writer->last_thread);
    }
    record[1] = pid;
    record[2] = tid;
    writer_publish(writer, 3, fxt_thread_header(index));
    writer->threads[index - 1] = (struct vm_trace_thread){ tid, NO_NAME };
    return index;
}

unsigned
rb_vm_trace_writer_no_thread(struct rb_vm_trace_writer *writer)
{
    uint32_t index = find_thread(writer, 0);
    return index ? index : define_thread(writer, 0, 0);
}

bool
rb_vm_trace_writer_name_thread(struct rb_vm_trace_writer *writer, uint32_t tid, uint64_t name_id,
                               const char *name, size_t name_bytes, unsigned *index_out)
{
    uint32_t index = find_thread(writer, tid);
    struct vm_trace_slot slot = { 0, 0 };
    if (!rb_vm_trace_writer_define(writer, &slot, name, name_bytes)) return false;
    uint64_t *record = writer_reserve(writer, 4);
    if (!record) return false;
    record[1] = tid;
    record[2] = fxt_koid_argument(STRING_PROCESS);
    record[3] = writer->pid;
    writer_publish(writer, 4, fxt_kernel_object_header(4, FXT_OBJECT_THREAD, slot.index, 1));

    if (!index) index = define_thread(writer, writer->pid, tid);
    if (!index) return false;
    writer->threads[index - 1].name = name_id;
    writer->last_thread = index;
    *index_out = index;
    return true;
}

/* The chunk and its tables, as far as they are filled. */
static void
hand_over(struct rb_vm_trace_writer *to, const struct rb_vm_trace_writer *from)
{
    set_chunk(to, &from->chunk);
    writer_move_to(to, from->pos);
    to->limit = from->limit;
    set_pad_end(to, from->pad_end);
    to->next_string = from->next_string;
    to->string_limit = from->string_limit;
    to->thread_count = from->thread_count;
    memcpy(to->threads, from->threads, from->thread_count * sizeof(*to->threads));
    to->run = from->run;
    to->epoch = from->epoch;
    to->last_thread = 0; /* another may have given it another name */
}

static void
no_chunk(struct rb_vm_trace_writer *writer)
{
    writer->chunk.words = NULL;
    writer->limit = 0;
    writer_move_to(writer, 0);
    set_pad_end(writer, 0);
}

static void
take_shared(struct rb_vm_trace_writer *writer, const struct rb_vm_trace_shared *shared)
{
    hand_over(writer, &shared->writer);
    if (writer->shared_serial == shared->writer.serial) return;
    writer->shared_serial = shared->writer.serial;
    writer->serial++; /* what it defined elsewhere is not defined here */
    writer->chunk_serial++;
}

bool
rb_vm_trace_writer_borrow(struct rb_vm_trace_writer *writer, struct rb_vm_trace_shared *shared)
{
    if (writer->chunk.words || writer->file != shared->writer.file) return false;
    pthread_mutex_lock(&shared->lock);
    if (!shared->writer.chunk.words && !rb_vm_trace_writer_next_chunk(&shared->writer)) {
        writer->late |= shared->writer.late;
        pthread_mutex_unlock(&shared->lock);
        return false;
    }
    take_shared(writer, shared);
    return true;
}

bool
rb_vm_trace_writer_borrow_next(struct rb_vm_trace_writer *writer, struct rb_vm_trace_shared *shared)
{
    hand_over(&shared->writer, writer);
    bool ok = rb_vm_trace_writer_next_chunk(&shared->writer);
    writer->late |= shared->writer.late;
    take_shared(writer, shared);
    return ok;
}

void
rb_vm_trace_writer_return(struct rb_vm_trace_writer *writer, struct rb_vm_trace_shared *shared)
{
    hand_over(&shared->writer, writer);
    no_chunk(writer);
    pthread_mutex_unlock(&shared->lock);
}

static bool
worth_leaving(const struct rb_vm_trace_writer *writer)
{
    return writer->chunk.words && writer->pos + EVENT_WORDS <= writer->limit &&
        writer->next_string + EVENT_STRINGS <= writer->string_limit;
}

void
rb_vm_trace_writer_leave(struct rb_vm_trace_writer *writer, struct rb_vm_trace_shared *shared, uint64_t latest_ns)
{
    struct rb_vm_trace_orphan *orphan = worth_leaving(writer) ? calloc(1, sizeof(*orphan)) : NULL;
    if (!orphan) rb_vm_trace_writer_close(writer);
    pthread_mutex_lock(&shared->lock);
    if (orphan) {
        rb_vm_trace_writer_init(&orphan->writer, writer->file, writer->pid);
        orphan->latest_ns = latest_ns;
        orphan->next = shared->orphans;
        hand_over(&orphan->writer, writer);
        rb_vm_trace_writer_forget_names(&orphan->writer);
        no_chunk(writer);
        __atomic_store_n(&shared->orphans, orphan, __ATOMIC_RELAXED);
    }
    /* Another thread may get the number and the address of one that is gone. */
    rb_vm_trace_writer_forget_names(&shared->writer);
    pthread_mutex_unlock(&shared->lock);
}

/* Under the lock: who looks with it for all chunks in use finds each in one place at least. */
static void
take(struct rb_vm_trace_writer *writer, const struct rb_vm_trace_orphan *orphan)
{
    rb_vm_trace_writer_close(writer);
    hand_over(writer, &orphan->writer);
    writer->serial++;
    writer->chunk_serial++;
    writer->shared_serial = 0;
}

bool
rb_vm_trace_writer_take_orphan(struct rb_vm_trace_writer *writer, struct rb_vm_trace_shared *shared,
                               struct vm_trace_clock *clock)
{
    if (!__atomic_load_n(&shared->orphans, __ATOMIC_RELAXED) || writer->file != shared->writer.file) return false;
    if (!rb_vm_trace_chunk_file_sound_p(writer->file)) return false;
    pthread_mutex_lock(&shared->lock);
    struct rb_vm_trace_orphan *orphan = shared->orphans;
    bool taken = orphan && orphan->latest_ns <= clock_now_ns(clock);
    if (taken) {
        __atomic_store_n(&shared->orphans, orphan->next, __ATOMIC_RELAXED);
        take(writer, orphan);
    }
    pthread_mutex_unlock(&shared->lock);
    if (taken) free(orphan);
    return taken;
}

/* `end`: what becomes of the chunks. */
static void
end_shared(struct rb_vm_trace_shared *shared, void (*end)(struct rb_vm_trace_writer *writer))
{
    end(&shared->writer);
    for (struct rb_vm_trace_orphan *orphan = shared->orphans, *next; orphan; orphan = next) {
        next = orphan->next;
        end(&orphan->writer);
        free(orphan);
    }
    __atomic_store_n(&shared->orphans, NULL, __ATOMIC_RELAXED);
}

void
rb_vm_trace_shared_close(struct rb_vm_trace_shared *shared)
{
    pthread_mutex_lock(&shared->lock);
    end_shared(shared, rb_vm_trace_writer_close);
    pthread_mutex_unlock(&shared->lock);
}

void
rb_vm_trace_shared_drop(struct rb_vm_trace_shared *shared)
{
    end_shared(shared, rb_vm_trace_writer_drop);
}

void
rb_vm_trace_writer_close(struct rb_vm_trace_writer *writer)
{
    rb_vm_trace_chunk_file_release(writer->file, &writer->chunk, writer->pos);
    no_chunk(writer);
}

void
rb_vm_trace_writer_drop(struct rb_vm_trace_writer *writer)
{
    rb_vm_trace_chunk_drop(&writer->chunk);
    no_chunk(writer);
    writer->events = 0;
}

void
rb_vm_trace_writer_free(struct rb_vm_trace_writer *writer)
{
    free(writer->interned);
    writer->interned = NULL;
    writer->interned_capacity = 0;
}
