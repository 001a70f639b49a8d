/*
 * The flight recorder. See snapshot.h.
 */
#include "vm_trace/base/native_thread.h"
#include "vm_trace/base/messages.h"
#include "vm_trace/base/perfetto.h"
#include "vm_trace/session/metadata.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/origin.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/session/spool.h"
#include "vm_trace/store/file_claim.h"
#include "vm_trace/store/memory_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define capture rb_vm_trace_capture
#define session rb_vm_trace_session

enum {
    BUFFER_WORDS = 1 << 13, /* what is copied goes to the file in pieces of that many */
    MAX_DEPTH_SLOTS = 64    /* threads whose open spans are known at once */
};

static struct {
    bool open;                 /* there is something to save; read without the lock, cleared under it */
    bool saving;               /* guarded by capture.lock, as all up to `taken` */
    bool cut;                  /* the snapshot is a piece: what is recorded now is the next one's */
    pthread_cond_t done;
    uint64_t unsaved;          /* events that were counted and no save has: the first ones in memory, until a reset */
    uint64_t saved;            /* traces */
    struct last_path {
        char *path;            /* of the last save, as its pattern says; NULL: there was none */
        uint64_t count;        /* of traces that were saved under it */
    } own, named;              /* by the pattern of the options, by one that the program gave */

    struct rb_vm_trace_chunk_snapshot snapshot;
    struct vm_trace_totals taken; /* counted from the reset to the begin of the snapshot */
    uint32_t epoch;               /* of the snapshot: events of others are not saved */
    uint64_t from_ns;             /* nor those before it: 0, or the begin of the last seconds that are kept */
    uint64_t snapshot_ns;

    struct rb_vm_trace_chunk_file out;
    struct rb_vm_trace_ractor *ractor; /* writes the settings and the last words */
    uint64_t failed;                 /* events of pieces that could not be written: a loss of the next one */
    char why_failed[128];
} recorder = { .done = PTHREAD_COND_INITIALIZER, .out = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 } };

/* --- snapshot begin ---------------------------------------------------------------------------------------- */

/*
 * Chunks that are written into, as far as they are. A writer may just be changing its own, for it
 * needs no lock to.
 */
static void
add_in_use(const struct rb_vm_trace_writer *writer)
{
    /*
     * In this order: a position that is read first may be another chunk's. One that was given back
     * is among the idle ones already.
     */
    uint64_t offset = __atomic_load_n(&writer->chunk.offset, __ATOMIC_ACQUIRE);
    size_t words = __atomic_load_n(&writer->pos, __ATOMIC_ACQUIRE);
    if (words > 0 && offset > 0) rb_vm_trace_memory_snapshot_in_use(&capture.file, &recorder.snapshot, offset, words);
}

static enum vm_trace_snapshot_answer
begin_snapshot(void)
{
    if (!__atomic_load_n(&recorder.open, __ATOMIC_ACQUIRE)) return VM_TRACE_SNAPSHOT_NO_RECORDER;
    if (recorder.saving) return VM_TRACE_SNAPSHOT_BUSY;
    size_t ractors = 0;
    for (const struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next) ractors++;
    if (!rb_vm_trace_chunk_snapshot_room(&recorder.snapshot, &capture.file, ractors + 1))
        return VM_TRACE_SNAPSHOT_NO_ROOM;
    EACH_STREAM(stream, snapshot_room) {
        if (!stream->snapshot_room()) return VM_TRACE_SNAPSHOT_NO_ROOM;
    }

    /*
     * Events are counted after they were written, so all that are counted here are in the chunks.
     */
    recorder.taken = rb_vm_trace_ractor_totals();
    recorder.taken.events -= recorder.unsaved;
    pthread_mutex_lock(&capture.shared.lock);
    pthread_mutex_lock(&capture.file.lock);
    rb_vm_trace_memory_snapshot_begin(&capture.file, &recorder.snapshot);
    add_in_use(&capture.shared.writer); /* first: a local that had it last may still name it, with a position in its own next one */
    for (const struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next)
        add_in_use(&ractor->writer);
    for (const struct rb_vm_trace_orphan *orphan = capture.shared.orphans; orphan; orphan = orphan->next)
        add_in_use(&orphan->writer);
    pthread_mutex_unlock(&capture.file.lock);
    pthread_mutex_unlock(&capture.shared.lock);
    EACH_STREAM(stream, snapshot_begin) stream->snapshot_begin(); /* hits are counted before their event is written: no event is there without its hit */

    recorder.snapshot_ns = rb_vm_trace_clock_system_ns();
    recorder.epoch = trace_epoch();
    uint64_t window_ns = session.memory.window_ns;
    recorder.from_ns = window_ns && recorder.snapshot_ns > window_ns ? recorder.snapshot_ns - window_ns : 0;
    recorder.saving = true;
    return VM_TRACE_SNAPSHOT_BEGUN;
}

/* capture.lock held. */
static bool
reset(struct rb_vm_trace_ractor *caller)
{
    bool ok = rb_vm_trace_ractor_reset(caller);
    if (ok) recorder.unsaved = 0;
    return ok;
}

enum vm_trace_snapshot_answer
rb_vm_trace_snapshot_begin(bool cut)
{
    if (trace_on()) {
        EACH_STREAM(stream, flush) stream->flush();
    }
    pthread_mutex_lock(&capture.lock);
    enum vm_trace_snapshot_answer answer = begin_snapshot();
    /* Without memory for a reset the next piece has these events once more. */
    recorder.cut = answer == VM_TRACE_SNAPSHOT_BEGUN && cut && reset(NULL);
    pthread_mutex_unlock(&capture.lock);
    return answer;
}

/* `next`: the first chunk that was not given back. */
static void
end_snapshot(size_t next)
{
    pthread_mutex_lock(&capture.lock);
    rb_vm_trace_memory_snapshot_end(&capture.file, &recorder.snapshot, next);
    EACH_STREAM(stream, snapshot_end) stream->snapshot_end();
    recorder.saving = false;
    pthread_cond_broadcast(&recorder.done);
    pthread_mutex_unlock(&capture.lock);
}

static void
wait_locked(void)
{
    while (recorder.saving) pthread_cond_wait(&recorder.done, &capture.lock);
}

void
rb_vm_trace_recorder_wait(void)
{
    pthread_mutex_lock(&capture.lock);
    wait_locked();
    pthread_mutex_unlock(&capture.lock);
}

bool
rb_vm_trace_recorder_refuse(void)
{
    pthread_mutex_lock(&capture.lock);
    __atomic_store_n(&recorder.open, false, __ATOMIC_RELEASE);
    bool idle = !recorder.saving;
    pthread_mutex_unlock(&capture.lock);
    return idle;
}

void
rb_vm_trace_recorder_close(void)
{
    __atomic_store_n(&recorder.open, false, __ATOMIC_RELEASE);
    wait_locked();
}

bool
rb_vm_trace_recorder_reset(struct rb_vm_trace_ractor *caller)
{
    pthread_mutex_lock(&capture.lock);
    bool ok = reset(caller);
    pthread_mutex_unlock(&capture.lock);
    return ok;
}

bool
rb_vm_trace_recorder_any_p(void)
{
    pthread_mutex_lock(&capture.lock);
    struct vm_trace_totals totals = rb_vm_trace_ractor_totals();
    bool any = totals.events > recorder.unsaved || totals.lost > 0;
    pthread_mutex_unlock(&capture.lock);
    return any;
}

/* --- copying ----------------------------------------------------------------------------------------- */

struct copy {
    uint64_t buffer[BUFFER_WORDS];
    size_t used;               /* of it, words */
    uint64_t words;            /* of the chunk that is being copied, which are in the file or the buffer */
    int error;
    struct vm_trace_counts counts;
    uint64_t left_out;         /* events that are older than the window */
    uint64_t ends;             /* of durations that began before what is saved */
    uint64_t first_ns, last_ns;
    struct { uint32_t tid, depth; } open[MAX_DEPTH_SLOTS]; /* spans that have begun, by thread */
    uint32_t tids[FXT_MAX_THREAD_INDEX + 1]; /* of the chunk */
    bool in_epoch;             /* as the last note in the chunk says */
    bool last_wanted;          /* the event before, in the chunk, was */
};

static void
flush(struct copy *copy)
{
    if (copy->used > 0 && !copy->error)
        copy->error = rb_vm_trace_chunk_file_append(&recorder.out, copy->buffer, copy->used);
    copy->used = 0;
}

static void
put(struct copy *copy, uint64_t header, const uint64_t *record, size_t words)
{
    if (copy->used + words > BUFFER_WORDS) flush(copy);
    copy->buffer[copy->used] = header;
    if (words > 1) memcpy(&copy->buffer[copy->used + 1], record + 1, (words - 1) * sizeof(*record));
    copy->used += words;
    copy->words += words;
}

static uint32_t *
depth_of(struct copy *copy, uint32_t tid)
{
    static uint32_t unknown;
    size_t free = MAX_DEPTH_SLOTS;
    for (size_t i = 0; i < MAX_DEPTH_SLOTS; i++) {
        if (copy->open[i].depth == 0) free = i;
        else if (copy->open[i].tid == tid) return &copy->open[i].depth;
    }
    if (free < MAX_DEPTH_SLOTS) {
        copy->open[free].tid = tid;
        return &copy->open[free].depth;
    }
    unknown = 1; /* with so many at once nothing is known of the others: their ends stay */
    return &unknown;
}

/* Whether an event is saved. An end of a span whose begin is not there is none. */
static bool
wanted(struct copy *copy, uint64_t header, uint64_t ns)
{
    if (!copy->in_epoch) return false;
    if (ns < recorder.from_ns) {
        copy->left_out++;
        return false;
    }
    unsigned type = (unsigned)fxt_bits(header, FXT_EVENT_TYPE);
    if (type >= FXT_EVENT_FLOW_BEGIN) return copy->last_wanted; /* it belongs to the event right before it */
    if (type != FXT_EVENT_DURATION_BEGIN && type != FXT_EVENT_DURATION_END) return true;
    uint32_t *depth = depth_of(copy, copy->tids[fxt_bits(header, FXT_EVENT_THREAD)]);
    if (type == FXT_EVENT_DURATION_BEGIN) return ++*depth;
    if (*depth > 0) return (*depth)--;
    copy->ends++;
    return false;
}

static void
count(struct copy *copy, uint64_t header, uint64_t ns)
{
    unsigned category = (unsigned)fxt_bits(header, FXT_EVENT_CATEGORY);
    copy->counts.events++;
    copy->counts.sampled += category_in_p(capture.file.sampled_categories, category);
    if (ns < copy->first_ns) copy->first_ns = ns;
    if (ns > copy->last_ns) copy->last_ns = ns;
}

/* Words of the record at `at`, whose header that is; 0: nothing more is to be read. */
static size_t
record_at(const uint64_t *words, size_t at, size_t count, uint64_t *header_out)
{
    if (at >= count) return 0;
    *header_out = __atomic_load_n(&words[at], __ATOMIC_ACQUIRE);
    size_t size = fxt_bits(*header_out, FXT_HEADER_SIZE);
    return size <= count - at ? size : 0;
}

static bool
scheduling_p(uint64_t type, size_t size)
{
    return type == FXT_RECORD_SCHEDULING && size > 1;
}

/* A record that defines nothing: padding, or a note (rb_vm_trace_writer_note_epoch). */
static bool
nothing_p(uint64_t header, const uint64_t *record, bool *in_epoch)
{
    if (!fxt_padding_p(header)) return false;
    if (header == fxt_note_header()) *in_epoch = (uint32_t)record[1] == recorder.epoch;
    return true;
}

/* Whether any event of a chunk is of the epoch and young enough. Most chunks tell at once. */
static bool
any_wanted(const uint64_t *words, size_t count)
{
    bool in_epoch = false;
    uint64_t header;
    for (size_t at = 0, size; (size = record_at(words, at, count, &header)) > 0; at += size) {
        uint64_t type = fxt_bits(header, FXT_HEADER_TYPE);
        if (nothing_p(header, &words[at], &in_epoch) || !in_epoch) continue;
        if (size < 2) continue;
        bool timed = type == FXT_RECORD_EVENT || type == FXT_RECORD_SCHEDULING;
        if (timed && words[at + 1] >= recorder.from_ns) return true;
        if (type == FXT_RECORD_BLOB && perfetto_time(&words[at + 1], size - 1) >= recorder.from_ns) return true;
    }
    return false;
}

/*
 * Copy the records of a chunk, without its padding. It may be made fresh for other records while it
 * is read, if it is one of the older half: then what was copied is thrown away, but no word outside
 * of it is ever read.
 */
static void
copy_chunk(struct copy *copy, const uint64_t *words, size_t count_words)
{
    bool any = any_wanted(words, count_words);
    uint64_t header;
    memset(copy->tids, 0, sizeof(copy->tids));
    copy->words = 0;
    copy->in_epoch = copy->last_wanted = false;
    for (size_t at = 0, size; !copy->error && (size = record_at(words, at, count_words, &header)) > 0; at += size) {
        uint64_t type = fxt_bits(header, FXT_HEADER_TYPE);
        if (nothing_p(header, &words[at], &copy->in_epoch)) continue;
        if (type == FXT_RECORD_THREAD && size > 2)
            copy->tids[fxt_bits(header, FXT_THREAD_INDEX)] = (uint32_t)words[at + 2];
        if (scheduling_p(type, size) && !(copy->in_epoch && words[at + 1] >= recorder.from_ns)) continue;
        if (type == FXT_RECORD_BLOB && size > 1) {
            uint64_t ns = perfetto_time(&words[at + 1], size - 1); /* what only defines has none */
            if (ns && !(copy->in_epoch && ns >= recorder.from_ns)) continue;
        }
        if (type == FXT_RECORD_EVENT) {
            uint64_t ns = size > 1 ? words[at + 1] : 0;
            copy->last_wanted = wanted(copy, header, ns);
            if (!copy->last_wanted) continue;
            count(copy, header, ns);
        }
        if (any) put(copy, header, words + at, size);
    }
    if (copy->words % VM_TRACE_PAGE_WORDS > 0) {
        /* What comes next is mapped, from a page on. */
        static const uint64_t nothing[VM_TRACE_PAGE_WORDS];
        size_t padding = VM_TRACE_PAGE_WORDS - copy->words % VM_TRACE_PAGE_WORDS;
        put(copy, fxt_padding_header(padding), nothing, padding);
    }
    flush(copy);
}

static void
begin_copy(struct copy *copy)
{
    copy->counts = (struct vm_trace_counts){ 0, 0 };
    copy->left_out = copy->ends = 0;
    copy->first_ns = UINT64_MAX;
    copy->last_ns = 0;
    memset(copy->open, 0, sizeof(copy->open));
}

/* All chunks of the snapshot, the oldest first. Returns how many were given back. */
static size_t
copy_chunks(struct copy *copy)
{
    const struct rb_vm_trace_chunk_snapshot *snapshot = &recorder.snapshot;
    uint64_t start = recorder.out.size;
    size_t i = 0;
    begin_copy(copy);
    for (; i < snapshot->count && !copy->error; i++) {
        copy_chunk(copy, (const uint64_t *)(capture.file.memory + snapshot->chunks[i].offset),
                   snapshot->chunks[i].words);
        if (rb_vm_trace_memory_give_back(&capture.file, &recorder.snapshot, i)) continue;
        /*
         * The program was faster. So were all before it used again: a trace has no hole in the
         * middle.
         */
        if (ftruncate(recorder.out.fd, (off_t)start) != 0) copy->error = errno;
        recorder.out.size = start;
        begin_copy(copy);
    }
    return i;
}

/* Give the settings, the only events in so many bytes at the start, the time of the first event that was kept. */
static void
set_begin(struct copy *copy, uint64_t bytes)
{
    int fd = recorder.out.fd, flags = fcntl(fd, F_GETFL);
    uint64_t header;
    if (copy->first_ns == UINT64_MAX || flags < 0 || bytes > sizeof(copy->buffer)) return;
    if (pread(fd, copy->buffer, (size_t)bytes, 0) != (ssize_t)bytes) return;
    /* With O_APPEND it would be written at the end. */
    if (fcntl(fd, F_SETFL, flags & ~O_APPEND) != 0) return;
    bool ok = true;
    for (size_t at = 1, size, words = (size_t)bytes / FXT_WORD_BYTES;
         ok && (size = record_at(copy->buffer, at, words, &header)) > 0; at += size) {
        if (fxt_bits(header, FXT_HEADER_TYPE) != FXT_RECORD_EVENT) continue;
        off_t to = (off_t)((at + 1) * FXT_WORD_BYTES);
        ok = pwrite(fd, &copy->first_ns, sizeof(copy->first_ns), to) > 0; /* else it is as it was */
    }
    fcntl(fd, F_SETFL, flags);
}

/* --- the file ------------------------------------------------------------------------------------------ */

static void
write_last_words(struct copy *copy, struct rb_vm_trace_save *save)
{
    static const char OLDER[] = "older events than the last seconds that were asked for";
    struct rb_vm_trace_ractor *ractor = recorder.ractor;
    struct vm_trace_totals totals = recorder.taken;
    EACH_STREAM(stream, snapshot_write) {
        while (stream->snapshot_write(ractor, &totals)) continue;
    }
    rb_vm_trace_writer_last_words(&ractor->writer);

    uint64_t there = copy->counts.events + copy->left_out + copy->ends;
    struct vm_trace_loss losses[] = {
        { totals.lost - totals.unread, rb_vm_trace_loss_reason() },
        { totals.unread, rb_vm_trace_unread_reason() },
        { totals.events > there ? totals.events - there : 0, rb_vm_trace_dropped_reason() },
        { copy->left_out, OLDER },
        { recorder.cut ? recorder.failed : 0, recorder.why_failed }
    };
    /* What is left out for its age was there: then memory goes back far enough. */
    bool less =
        session.memory.window_ns && losses[2].events && !copy->left_out && copy->first_ns < recorder.snapshot_ns;
    save->held_ns = less ? recorder.snapshot_ns - copy->first_ns : 0;
    save->memory = session.memory;
    totals.lost = 0;
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        totals.lost += losses[i].events;
        if (losses[i].events) rb_vm_trace_event_write(ractor, NULL, rb_vm_trace_write_loss, &losses[i]);
    }
    rb_vm_trace_event_write(ractor, NULL, rb_vm_trace_write_origin, NULL);
    if (rb_vm_trace_more_counts_p(&totals)) rb_vm_trace_event_write(ractor, NULL, rb_vm_trace_write_counts, &totals);
    totals.sampled = copy->counts.sampled;
    totals.events = copy->counts.events + ractor->writer.events; /* settings, sites, losses */
    rb_vm_trace_writer_name_process(&ractor->writer);
    struct vm_trace_summary summary = { totals, save->why, copy->last_ns };
    rb_vm_trace_event_write(ractor, NULL, rb_vm_trace_write_summary, &summary);
    save->events = totals.events + 1;
    save->exits = totals.sampled;
    save->lost = totals.lost;
}

static void
fail(struct rb_vm_trace_save *save, int error)
{
    save->error = error > 0 ? error : error == CHUNK_FILE_FULL ? ENOSPC : EIO; /* someone cut or removed it while it was made */
    save->reason = rb_vm_trace_chunk_file_reason(&recorder.out, error);
}

/* The whole trace, into a sink that is open. Returns how many chunks were given back. */
static size_t
write_trace(struct rb_vm_trace_save *save)
{
    static struct copy copy; /* there is one save at a time */
    struct rb_vm_trace_ractor *ractor = recorder.ractor;
    copy.error = 0;
    ractor->writer.events = ractor->lost = 0;
    ractor->writer.pid = capture.pid;
    if (!rb_vm_trace_writer_next_chunk(&ractor->writer) ||
        !rb_vm_trace_event_write(ractor, NULL, rb_vm_trace_write_settings, save->why)) {
        rb_vm_trace_writer_close(&ractor->writer);
        fail(save, recorder.out.error ? recorder.out.error : ENOMEM);
        return 0;
    }
    rb_vm_trace_writer_close(&ractor->writer);
    uint64_t settings_bytes = recorder.out.size;

    size_t given_back = copy_chunks(&copy);
    rb_vm_trace_chunk_file_end(&recorder.out);
    if (!copy.error && !rb_vm_trace_writer_next_chunk(&ractor->writer)) copy.error = recorder.out.error;
    if (!copy.error) {
        set_begin(&copy, settings_bytes);
        write_last_words(&copy, save);
    }
    rb_vm_trace_writer_close(&ractor->writer);
    if (!copy.error && ractor->lost) copy.error = recorder.out.error ? recorder.out.error : ENOMEM;
    if (copy.error) fail(save, copy.error);
    return given_back;
}

/* Why a path can't be replaced: as rb_vm_trace_claim_remove_stale, and nothing is removed. */
static const char *
look_at(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0) return NULL; /* if it is more than missing, making the file beside it says so */
    return rb_vm_trace_claim_refusal(&st);
}

/* Give the file its name, or another one if the program gave none. */
static const char *
name_file(struct rb_vm_trace_save *save, const char *beside)
{
    bool own = save->made && !save->pattern;
    const char *why = rb_vm_trace_claim_rename(beside, save->path, !own);
    if (!why || errno != EBUSY || !own) return why;
    const char *why_kept = why;
    char *name = malloc(strlen(save->path) + CLAIM_SUFFIX_BYTES);
    if (!name) return why;
    for (unsigned n = 1; why && errno == EBUSY && n < CLAIM_NAMES; n++) {
        rb_vm_trace_claim_name(name, save->path, capture.pid, n);
        why = rb_vm_trace_claim_rename(beside, name, false);
    }
    int error = errno;
    if (!why) {
        save->kept = save->made;
        save->path = save->made = name;
        save->why_kept = why_kept;
        name = NULL;
    }
    free(name);
    errno = error;
    return why;
}

/* A piece that the spool wants compressed; it is written, and closed. False: it stays as it is. */
static bool
compress_piece(struct rb_vm_trace_save *save, const char *beside)
{
    static bool said;
    const char *why;
    char *path = rb_vm_trace_spool_compress(&session.memory.spool, beside, save->path, &why);
    if (!path) {
        if (!said) rb_vm_trace_message("%s is not compressed: %s", save->path, why);
        said = true;
        return false;
    }
    free(save->made);
    save->path = save->made = path;
    return true;
}

/*
 * Write it under the name `beside`, or one like it, then give it its own. Returns how many chunks
 * were given back.
 */
static size_t
write_beside(struct rb_vm_trace_save *save, char **beside)
{
    size_t given_back = 0;
    char *kept = NULL;
    const char *why = look_at(save->path), *why_kept;
    recorder.out.min_free_bytes = session.min_free_bytes;
    if (!why) why = rb_vm_trace_chunk_file_open_beside(&recorder.out, beside, capture.pid, &kept, &why_kept);
    save->error = why ? errno : 0;
    save->reason = why;
    free(kept);
    if (!why) {
        given_back = write_trace(save);
        bool compress = !save->error && recorder.cut && session.memory.spool.compression != VM_TRACE_UNCOMPRESSED;
        if (compress) rb_vm_trace_chunk_file_close(&recorder.out); /* which cuts off what is unused */
        bool compressed = compress && compress_piece(save, *beside);
        /* While it is open it is locked: nobody else with that name may take it for stale. */
        if (!save->error && !compressed && (why = name_file(save, *beside))) {
            save->error = errno;
            save->reason = why;
        }
        if (save->error) unlink(*beside);
        if (!compress) rb_vm_trace_chunk_file_close(&recorder.out);
    }
    return given_back;
}

/* NULL: the program has named the file. */
static struct last_path *
last_path(const struct rb_vm_trace_save *save)
{
    if (!save->made) return NULL;
    if (!save->pattern) return &recorder.own;
    return strchr(save->pattern, '%') ? &recorder.named : NULL;
}

/*
 * Make the path of a pattern. A saved trace does not replace the one that was saved before it: its
 * path gets a number then, PATH.2, PATH.3, and so on. A file that the program names without a
 * pattern is replaced, as that asks for. False: no memory.
 */
static bool
make_path(struct rb_vm_trace_save *save)
{
    const char *pattern = save->pattern        ? save->pattern :
                          session.path_pattern ? session.path_pattern :
                                                 VM_TRACE_SNAPSHOT_PATH;
    bool child = !save->pattern && session.child;
    char *path = rb_vm_trace_expand_path(pattern, capture.pid, child, recorder.saved + 1, save->why);
    if (!path) return false;
    save->path = save->made = path;
    struct last_path *last = last_path(save);
    if (!last) return true;
    if (!last->path || strcmp(path, last->path) != 0) {
        free(last->path);
        last->count = 0;
        return (last->path = strdup(path)) != NULL;
    }
    struct stat st;
    if (last->count == 0 || lstat(path, &st) != 0) return true; /* that one failed, or was moved away */
    size_t bytes = strlen(path) + CLAIM_SUFFIX_BYTES;
    char *numbered = malloc(bytes);
    if (!numbered) return false;
    snprintf(numbered, bytes, "%s.%llu", path, (unsigned long long)last->count + 1);
    free(path);
    save->path = save->made = numbered;
    return true;
}

/* The events of a piece that could not be written are a loss, which the next written piece reports. */
static void
note_piece(const struct rb_vm_trace_save *save)
{
    if (!save->error) {
        recorder.failed = 0;
        return;
    }
    recorder.failed += recorder.taken.events + recorder.taken.lost;
    snprintf(recorder.why_failed, sizeof(recorder.why_failed), "could not be saved: %s", save->reason);
}

void
rb_vm_trace_recorder_write_here(struct rb_vm_trace_save *save)
{
    bool ok = save->path || make_path(save);
    size_t given_back = 0, bytes = ok ? strlen(save->path) + 32 : 0;
    char *beside = ok ? malloc(bytes) : NULL;
    if (beside) {
        snprintf(beside, bytes, "%s.saving-%lu", save->path, (unsigned long)capture.pid);
        given_back = write_beside(save, &beside);
    }
    else {
        save->error = ENOMEM;
        save->reason = strerror(ENOMEM);
    }
    free(beside);
    recorder.saved += save->error == 0;
    struct last_path *last = last_path(save);
    if (last) last->count += save->error == 0;
    const struct rb_vm_trace_spool spool = session.memory.spool; /* the trace may end behind the snapshot */
    bool piece = recorder.cut;
    if (piece) note_piece(save);
    end_snapshot(given_back);
    if (piece) rb_vm_trace_spool_trim(&spool);
}

/* --- threads --------------------------------------------------------------------------------------------- */

static void *
run_write(void *save)
{
    native_thread_name();
    rb_vm_trace_recorder_write_here(save);
    return NULL;
}

void
rb_vm_trace_recorder_write_begin(struct rb_vm_trace_save *save)
{
    /* An event lies on the track of the thread that writes it; settings belong to none of the program's. */
    save->beside = native_thread_start(&save->thread, run_write, save) == 0;
    if (!save->beside) rb_vm_trace_recorder_write_here(save);
}

void
rb_vm_trace_recorder_write_end(struct rb_vm_trace_save *save)
{
    if (save->beside) pthread_join(save->thread, NULL);
    save->beside = false;
}

void
rb_vm_trace_recorder_write(struct rb_vm_trace_save *save)
{
    rb_vm_trace_recorder_write_begin(save);
    rb_vm_trace_recorder_write_end(save);
}

/* --- moments ----------------------------------------------------------------------------------------------- */

bool
rb_vm_trace_recorder_begin(uint64_t events)
{
    if (!recorder.ractor) recorder.ractor = rb_vm_trace_ractor_zeros(); /* aligned to more than malloc's 16 bytes */
    if (!recorder.ractor) return false;
    rb_vm_trace_writer_init(&recorder.ractor->writer, &recorder.out, capture.pid);
    recorder.unsaved = events;
    rb_vm_trace_recorder_threads();
    __atomic_store_n(&recorder.open, true, __ATOMIC_RELEASE);
    return true;
}

void
rb_vm_trace_recorder_begin_child(void)
{
    pthread_cond_init(&recorder.done, NULL); /* who waited is no more */
    recorder.unsaved = recorder.failed = 0;
    recorder.saved = recorder.own.count = recorder.named.count = 0;
    recorder.open = false;
    if (!recorder.saving) return;
    /* The thread that saved is the parent's. */
    recorder.saving = false;
    EACH_STREAM(stream, snapshot_end) stream->snapshot_end();
    pthread_mutex_init(&recorder.out.lock, NULL);
    rb_vm_trace_writer_drop(&recorder.ractor->writer);
    rb_vm_trace_chunk_file_after_fork(&recorder.out);
}

bool
rb_vm_trace_recorder_fault(const void *address)
{
    /* Only the thread that saves touches it. */
    return recorder.saving && rb_vm_trace_chunk_file_fault(&recorder.out, &recorder.ractor->writer.chunk, address);
}

void
rb_vm_trace_recorder_crash(void)
{
    static int once;
    if (!(session.memory.save_at & VM_TRACE_SAVE_AT_CRASH) || capture.state != VM_TRACE_ON || !capture.file.memory)
        return;
    if (__atomic_exchange_n(&once, 1, __ATOMIC_RELAXED)) return;
    static char path[PATH_MAX + CLAIM_SUFFIX_BYTES];
    const char *why;
    int fd = -1;
    if (strlen(session.path) >= PATH_MAX) return;
    /* A trace that was saved before stays: it has what memory here may have no more. */
    unsigned first = recorder.own.count > 0;
    for (unsigned n = first; n < CLAIM_NAMES && fd < 0 && (n == first || errno == EBUSY); n++) {
        rb_vm_trace_claim_name(path, session.path, capture.pid, n);
        fd = rb_vm_trace_claim_create(path, O_WRONLY, &why);
    }
    static const char SAVED[] = "vm_trace: saved to ", FAILED[] = "vm_trace: can't save to ";
    bool ok = fd >= 0 && rb_vm_trace_memory_dump(&capture.file, fd);
    const char *said[] = { ok ? SAVED : FAILED, path, "\n" };
    for (int i = 0; i < 3; i++) {
        if (write(STDERR_FILENO, said[i], strlen(said[i])) < 0) break;
    }
}
