/*
 * Native threads. See native_threads.h.
 */
#include "vm_trace/streams/kernel/native_threads.h"
#include "vm_trace/base/clock.h"
#include "vm_trace/base/native_thread.h"
#include "vm_trace/base/strings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOTES = 1 << 14,   /* a power of two: what a thread may note until the reader takes it */
    KNOWN_NAMES = 256, /* likewise */
    FIRST_NAMED = 4096,
    BUCKETS = 1 << 10
};

/* From `ns` on the thread runs what has this id. */
struct note {
    uint64_t ns;
    struct vm_trace_thread_id id;
    char *name;        /* NULL: as before */
    size_t name_bytes;
};

struct vm_trace_notes {
    struct vm_trace_notes *next; /* in the list of new ones */
    uint32_t tid;
    uint64_t session;
    uint32_t written, taken;     /* by the thread; by the reader. Each only grows */
    struct vm_trace_thread_id last;
    uint32_t names;              /* that `known` belongs to */
    struct vm_trace_thread_id known[KNOWN_NAMES]; /* ids whose names were noted, by the low bits of the id */
    struct note notes[NOTES];
};

/* Names that notes gave, by id: a fiber that runs again is noted without one. */
struct named {
    struct named *next;
    struct vm_trace_native_track track;
    uint32_t runs_on;  /* the native thread that ran it last; 0: none */
    uint64_t since_ns; /* and since when */
    bool needed;       /* a note was of it, or, while names are freed, a thread has it */
    char name[];
};

static struct {
    uint64_t session;                    /* which notes belong to */
    uint32_t names;                      /* changes when names do */
    struct vm_trace_notes *fresh;        /* a stack that threads push on, and the reader empties */
    /* The reader's. */
    struct vm_trace_native_thread *threads[BUCKETS];
    struct named *named[BUCKETS];
    size_t named_count, named_kept;      /* of these; and when those that nobody needed went last */
    struct vm_trace_notes *all;          /* that the reader has seen, by `next` */
    uint64_t last_name;
} native = { .session = 1 };

static __thread struct vm_trace_notes *own_notes;
static __thread uint64_t own_session;

size_t
rb_vm_trace_native_track_name(const void *track, char *buffer, size_t capacity)
{
    const struct vm_trace_native_track *named = track;
    memcpy(buffer, named->name, named->name_bytes < capacity ? named->name_bytes : capacity);
    return named->name_bytes;
}

/* --- threads of Ruby --- */

static struct vm_trace_notes *
make_notes(uint32_t tid)
{
    struct vm_trace_notes *notes = calloc(1, sizeof(*notes));
    if (!notes) return NULL;
    notes->tid = tid;
    notes->session = native.session;
    notes->next = __atomic_load_n(&native.fresh, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&native.fresh, &notes->next, notes, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
    return notes;
}

static size_t
fiber_name(const void *ec, char *buffer, size_t capacity)
{
    return rb_vm_trace_host_fiber_name((struct rb_execution_context_struct *)ec, buffer, capacity);
}

static bool
same_p(struct vm_trace_thread_id a, struct vm_trace_thread_id b)
{
    return a.tid == b.tid && a.name_id == b.name_id;
}

static void
write_note(struct vm_trace_notes *notes, struct rb_execution_context_struct *ec, struct vm_trace_thread_id id,
           uint64_t ns)
{
    uint32_t written = notes->written;
    if (written - __atomic_load_n(&notes->taken, __ATOMIC_ACQUIRE) == NOTES) return; /* the next one tries again */
    struct note note = { .ns = ns, .id = id };
    struct vm_trace_thread_id *known = &notes->known[id.tid % KNOWN_NAMES];
    if (!same_p(*known, id)) {
        char buffer[256];
        char *name = rb_vm_trace_text_whole(fiber_name, ec, buffer, sizeof(buffer), &note.name_bytes);
        note.name = name == buffer ? malloc(note.name_bytes + 1) : name;
        if (!note.name) return;
        if (name == buffer) memcpy(note.name, buffer, note.name_bytes);
        *known = id;
    }
    notes->notes[written % NOTES] = note;
    notes->last = id;
    __atomic_store_n(&notes->written, written + 1, __ATOMIC_RELEASE);
}

static uint32_t
native_tid(void)
{
    struct vm_trace_thread_id id = rb_vm_trace_host_thread(NULL);
    return id.tid;
}

void
rb_vm_trace_native_runs(struct rb_execution_context_struct *ec)
{
    struct vm_trace_notes *notes = own_notes;
    if (__builtin_expect(own_session != native.session, 0)) {
        notes = make_notes(native_tid());
        if (!notes) return;
        own_notes = notes;
        own_session = native.session;
    }
    uint32_t names = __atomic_load_n(&native.names, __ATOMIC_RELAXED);
    if (__builtin_expect(notes->names != names, 0)) {
        memset(notes->known, 0, sizeof(notes->known));
        notes->last = (struct vm_trace_thread_id){ 0, 0 };
        notes->names = names;
    }
    struct vm_trace_thread_id id = rb_vm_trace_host_fiber(ec);
    /* What shares native threads may have run on another one meanwhile. */
    bool stays = id.tid == notes->tid && same_p(id, notes->last);
    if (!stays) write_note(notes, ec, id, rb_vm_trace_clock_system_ns());
}

static void
note_thread(struct rb_execution_context_struct *ec, uint32_t tid, void *ok)
{
    struct vm_trace_notes *notes = make_notes(tid);
    if (!notes) {
        *(bool *)ok = false;
        return;
    }
    notes->names = native.names;
    write_note(notes, ec, rb_vm_trace_host_fiber(ec), 0);
}

bool
rb_vm_trace_native_begin(void)
{
    bool ok = true;
    rb_vm_trace_native_free_all();
    rb_vm_trace_host_each_thread(note_thread, &ok);
    return ok;
}

void
rb_vm_trace_native_renamed(void)
{
    __atomic_add_fetch(&native.names, 1, __ATOMIC_RELAXED);
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    if (ec && (rb_vm_trace_threads_on & RB_VM_TRACE_THREADS_NATIVE)) rb_vm_trace_native_runs(ec); /* mostly its own */
}

/* --- the kernel reader --- */

static struct named *
find_named(uint32_t tid)
{
    struct named *named = native.named[tid % BUCKETS];
    while (named && named->track.id.tid != tid) named = named->next;
    return named;
}

static struct named *
named_of(const struct vm_trace_native_track *track)
{
    return track->name ? (struct named *)((char *)track->name - offsetof(struct named, name)) : NULL;
}

static void
keep_tracks(struct vm_trace_native_thread *thread, void *ignored)
{
    const struct vm_trace_native_track *tracks[] = { &thread->track, &thread->own_track, &thread->cpu_track,
                                                     &thread->call.track };
    (void)ignored;
    for (size_t i = 0; i < sizeof(tracks) / sizeof(tracks[0]); i++) {
        struct named *named = named_of(tracks[i]);
        if (named) named->needed = true;
    }
}

/*
 * Frees names that no thread has, and that no note was of since this was done last. Ruby's threads name
 * again what they run: names are new to them.
 */
static void
free_unneeded(void)
{
    size_t left = 0;
    rb_vm_trace_native_each(keep_tracks, NULL);
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct named **at = &native.named[i], *named; (named = *at) != NULL;) {
            if (!named->needed) {
                *at = named->next;
                free(named);
                continue;
            }
            named->needed = false;
            left++;
            at = &named->next;
        }
    }
    native.named_count = native.named_kept = left;
    __atomic_add_fetch(&native.names, 1, __ATOMIC_RELAXED);
}

/* The name for the track of an id from now on. NULL: no memory. */
static struct named *
name_track(uint32_t tid, const char *name, size_t bytes)
{
    struct named **bucket = &native.named[tid % BUCKETS];
    struct named *before = find_named(tid);
    if (before && before->track.name_bytes == bytes && memcmp(before->name, name, bytes) == 0) return before;
    if (native.named_count >= FIRST_NAMED + 2 * native.named_kept) {
        free_unneeded();
        before = find_named(tid); /* it may be gone */
    }
    struct named *named = malloc(sizeof(*named) + bytes);
    if (!named) return NULL;
    native.named_count++;
    named->needed = true;
    memcpy(named->name, name, bytes);
    named->runs_on = before ? before->runs_on : 0;
    named->since_ns = before ? before->since_ns : 0;
    /* High, so that it is no id of a host's. */
    named->track = (struct vm_trace_native_track){ { UINT64_MAX - ++native.last_name, tid }, named->name, bytes };
    named->next = *bucket; /* an older name is found no more, but slices that are open may have it */
    *bucket = named;
    return named;
}

static void
set_track(struct vm_trace_native_thread *thread, const struct named *named)
{
    static const char SUFFIX[] = " CPU";
    char name[256];
    if (!named) return;
    const struct vm_trace_native_track *track = &named->track;
    thread->track = *track;
    if (!thread->ruby) thread->own_track = *track;
    if (thread->cpu_track.name && thread->ruby && track->id.tid != thread->tid) return; /* a fiber has no CPU of its own */
    size_t bytes = track->name_bytes < sizeof(name) - sizeof(SUFFIX) ? track->name_bytes : sizeof(name) - sizeof(SUFFIX);
    memcpy(name, track->name, bytes);
    memcpy(name + bytes, SUFFIX, sizeof(SUFFIX) - 1);
    const struct named *cpu =
        name_track(HOST_SYNTHETIC_CPUS + thread->tid, name, bytes + sizeof(SUFFIX) - 1);
    if (cpu) thread->cpu_track = cpu->track;
}

void
rb_vm_trace_native_named(struct vm_trace_native_thread *thread, const char *comm)
{
    snprintf(thread->comm, sizeof(thread->comm), "%s", comm);
    thread->own = !thread->ruby && strcmp(comm, VM_TRACE_NATIVE_NAME) == 0;
    if (!thread->ruby) set_track(thread, name_track(thread->tid, comm, strlen(comm)));
}

static struct vm_trace_native_thread *
find_thread(uint32_t tid)
{
    struct vm_trace_native_thread *thread = native.threads[tid % BUCKETS];
    while (thread && thread->tid != tid) thread = thread->next;
    return thread;
}

/* Of a thread that has ended nothing can be read: it began with its parent's name. */
static void
read_comm(uint32_t tid, uint32_t parent, char comm[VM_TRACE_COMM_BYTES])
{
    if (rb_vm_trace_platform_thread_name(tid, comm, VM_TRACE_COMM_BYTES)) return;
    const struct vm_trace_native_thread *creator = find_thread(parent);
    snprintf(comm, VM_TRACE_COMM_BYTES, "%s", creator ? creator->comm : "thread");
}

/*
 * A Ruby thread that shares native threads goes on on another one. What the first one does from now
 * on, and what it has begun and not ended, is its own: it waits for something to run.
 */
static void
leave(struct vm_trace_native_thread *from, uint32_t tid)
{
    if (from->track.id.tid == tid) from->track = from->own_track;
    if (from->call.ns && from->call.track.id.tid == tid) from->call.track = from->own_track;
}

static void
take_note(struct vm_trace_native_thread *thread, struct note *note)
{
    struct named *named = note->name ? name_track(note->id.tid, note->name, note->name_bytes) : find_named(note->id.tid);
    free(note->name);
    if (!named) return;
    named->needed = true;
    thread->ruby = true;
    thread->own = false;
    set_track(thread, named);
    if (note->ns < named->since_ns) { /* it has left already: notes of several threads come in no order */
        leave(thread, named->track.id.tid);
        return;
    }
    struct vm_trace_native_thread *from = named->runs_on != thread->tid ? find_thread(named->runs_on) : NULL;
    if (from) leave(from, named->track.id.tid);
    named->runs_on = thread->tid;
    named->since_ns = note->ns;
}

/* All notes of one thread up to a time. */
static void
take_notes(struct vm_trace_native_thread *thread, struct vm_trace_notes *notes, uint64_t ns)
{
    uint32_t written = __atomic_load_n(&notes->written, __ATOMIC_ACQUIRE), taken = notes->taken;
    for (; taken != written && notes->notes[taken % NOTES].ns <= ns; taken++)
        take_note(thread, &notes->notes[taken % NOTES]);
    __atomic_store_n(&notes->taken, taken, __ATOMIC_RELEASE);
}

/* The first notes are those that the session began with, which are all taken at once. */
static void
find_notes(struct vm_trace_native_thread *thread)
{
    struct vm_trace_notes *last = NULL;
    for (struct vm_trace_notes *notes = native.all; notes; notes = notes->next) {
        if (notes->tid != thread->tid || notes->session != native.session) continue;
        if (!last) last = notes; /* the newest come first */
        else take_notes(thread, notes, UINT64_MAX);
    }
    thread->notes = last;
}

/* Notes of threads that have made their first one. */
static void
take_fresh(void)
{
    struct vm_trace_notes *fresh = __atomic_exchange_n(&native.fresh, NULL, __ATOMIC_ACQUIRE), *last = fresh;
    if (!fresh) return;
    while (last->next) last = last->next;
    struct vm_trace_notes *known = native.all;
    last->next = known; /* the newest come first in both */
    native.all = fresh;
    for (const struct vm_trace_notes *notes = fresh; notes != known; notes = notes->next) {
        struct vm_trace_native_thread *thread = find_thread(notes->tid);
        if (thread) find_notes(thread);
    }
}

void
rb_vm_trace_native_at(struct vm_trace_native_thread *thread, uint64_t ns)
{
    if (__atomic_load_n(&native.fresh, __ATOMIC_RELAXED)) take_fresh();
    if (thread->notes) take_notes(thread, thread->notes, ns);
}

struct vm_trace_native_thread *
rb_vm_trace_native_thread(uint32_t tid, uint32_t parent)
{
    struct vm_trace_native_thread **bucket = &native.threads[tid % BUCKETS], *thread = find_thread(tid);
    if (thread) return thread;
    thread = calloc(1, sizeof(*thread));
    if (!thread) return NULL;
    char comm[VM_TRACE_COMM_BYTES];
    thread->tid = tid;
    read_comm(tid, parent, comm);
    thread->next = *bucket;
    *bucket = thread; /* what it has is needed from now on */
    rb_vm_trace_native_named(thread, comm);
    if (!thread->track.name || !thread->cpu_track.name) {
        *bucket = thread->next;
        free(thread);
        return NULL;
    }
    find_notes(thread);
    return thread;
}

static void
free_notes(struct vm_trace_notes *notes)
{
    uint32_t written = __atomic_load_n(&notes->written, __ATOMIC_ACQUIRE);
    for (uint32_t i = notes->taken; i != written; i++) free(notes->notes[i % NOTES].name);
    free(notes);
}

void
rb_vm_trace_native_ended(struct vm_trace_native_thread *thread)
{
    struct vm_trace_native_thread **at = &native.threads[thread->tid % BUCKETS];
    while (*at != thread) at = &(*at)->next;
    *at = thread->next;
    for (struct vm_trace_notes **from = &native.all; *from;) {
        struct vm_trace_notes *notes = *from;
        /* Where nothing was taken, they are of a new thread with the same id. */
        if (notes->tid != thread->tid || notes->taken == 0 || notes->taken != notes->written) {
            from = &notes->next;
            continue;
        }
        *from = notes->next;
        free_notes(notes);
    }
    free(thread);
}

void
rb_vm_trace_native_each(void (*function)(struct vm_trace_native_thread *thread, void *data), void *data)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct vm_trace_native_thread *thread = native.threads[i], *next; thread; thread = next) {
            next = thread->next;
            function(thread, data);
        }
    }
}

static void
free_thread(struct vm_trace_native_thread *thread, void *ignored)
{
    (void)ignored;
    rb_vm_trace_native_ended(thread);
}

void
rb_vm_trace_native_free_all(void)
{
    native.session++; /* what threads remember is freed */
    take_fresh();
    rb_vm_trace_native_each(free_thread, NULL);
    for (struct vm_trace_notes *notes = native.all, *next; notes; notes = next) {
        next = notes->next;
        free_notes(notes);
    }
    native.all = NULL;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct named *named = native.named[i], *next; named; named = next) {
            next = named->next;
            free(named);
        }
        native.named[i] = NULL;
    }
    native.named_count = native.named_kept = 0;
}

void
rb_vm_trace_native_after_fork(void)
{
    /* The reader may have been in the middle of something: what it had is left alone. */
    memset(native.threads, 0, sizeof(native.threads));
    memset(native.named, 0, sizeof(native.named));
    native.named_count = native.named_kept = 0;
    native.fresh = native.all = NULL;
    native.session++;
}
