/*
 * The private stacks of open calls. See open_calls.h.
 */
#include "vm_trace/streams/calls.h"
#include "vm_trace/streams/open_calls.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CALLS = 32, MOST_CALLS = 1 << 22, TRACK_BYTES = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rb_vm_trace_calls *contexts; /* all, of this trace or older ones; guarded by lock */
static uint32_t generation;                /* of the list: a forked child has another one */

/* --- execution contexts ------------------------------------------------------------------------------ */

static void
join(struct rb_vm_trace_calls *calls)
{
    pthread_mutex_lock(&lock);
    calls->generation = generation;
    calls->next = contexts;
    calls->link = &contexts;
    if (contexts) contexts->link = &calls->next;
    contexts = calls;
    *calls->slot = calls;
    pthread_mutex_unlock(&lock);
}

/* Free it; its calls are not written. */
static void
leave(struct rb_vm_trace_calls *calls)
{
    pthread_mutex_lock(&lock);
    *calls->slot = NULL;
    if (calls->generation == generation) {
        *calls->link = calls->next;
        if (calls->next) calls->next->link = calls->link;
    }
    pthread_mutex_unlock(&lock);
    free(calls->open);
    free(calls);
}

/* The name of the track is needed when its thread may be gone. False: no memory. */
static bool
keep_track_name(struct rb_vm_trace_calls *calls)
{
    char name[TRACK_BYTES];
    size_t bytes = rb_vm_trace_host_fiber_name(calls->ec, name, sizeof(name));
    if (bytes > sizeof(name)) bytes = sizeof(name);
    calls->track = malloc(bytes + 1);
    if (!calls->track) return false;
    memcpy(calls->track, name, bytes);
    calls->track_bytes = bytes;
    return true;
}

static inline struct vm_trace_open_call *
innermost(const struct rb_vm_trace_calls *calls)
{
    return &calls->open[calls->depth];
}

/* NULL: no memory, or too deep; then the call counts as part of the one around it. */
static inline struct vm_trace_open_call *
push(struct rb_vm_trace_calls *calls, uintptr_t frame, const struct vm_trace_string *name, uint64_t ns)
{
    if (__builtin_expect(calls->depth + 1 >= calls->capacity, 0)) {
        size_t capacity = calls->capacity * 2;
        struct vm_trace_open_call *grown =
            capacity <= MOST_CALLS ? realloc(calls->open, capacity * sizeof(*grown)) : NULL;
        if (!grown) return NULL;
        calls->open = grown;
        calls->capacity = capacity;
    }
    struct vm_trace_open_call *call = &calls->open[++calls->depth];
    *call = (struct vm_trace_open_call){ .frame = frame, .begin_ns = ns, .name = name };
    return call;
}

/* A time for the next beginning, later than all before it on this track. */
static inline uint64_t
next_ns(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls)
{
    uint64_t ns = clock_now_ns(&ractor->clock);
    if (__builtin_expect(ns <= calls->last_ns, 0)) ns = calls->last_ns + 1;
    calls->last_ns = ns;
    return ns;
}

/* And for an end. */
static inline uint64_t
end_ns(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls)
{
    uint64_t ns = clock_now_ns(&ractor->clock);
    if (__builtin_expect(ns < calls->last_ns, 0)) ns = calls->last_ns;
    calls->last_ns = ns;
    return ns;
}

static inline const struct vm_trace_string *
name_of(struct rb_vm_trace_ractor *ractor, const struct vm_trace_call_frame *frame)
{
    const struct vm_trace_call_name *name = &calls_of(ractor)->names[call_name_index(frame)];
    if (__builtin_expect(name->iseq == frame->iseq && name->method == frame->method, 1)) return name->text;
    return rb_vm_trace_call_name_slow(ractor, frame);
}

/* A frame that was there before: the call began with the trace, or the reset. */
static void
push_before(void *data, struct rb_vm_trace_ractor *ractor, const struct vm_trace_call_frame *frame)
{
    struct rb_vm_trace_calls *calls = data;
    struct vm_trace_open_call *call = push(calls, frame->frame, name_of(ractor, frame), ++calls->last_ns);
    if (call) call->began_before = true;
}

/* What is open when its execution context is seen first; `begins`: but for the innermost frame. */
static void
find_open_frames(struct rb_vm_trace_calls *calls, struct rb_vm_trace_ractor *ractor, bool begins)
{
    calls->last_ns = rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 });
    rb_vm_trace_host_each_frame(calls->ec, begins, ractor, push_before, calls);
}

/* NULL: no memory. */
static __attribute__((noinline)) struct rb_vm_trace_calls *
make(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_calls **slot = rb_vm_trace_host_calls(ec), *calls;
    if (*slot) leave(*slot);
    calls = calloc(1, sizeof(*calls));
    if (!calls) return NULL;
    calls->ec = ec;
    calls->id = rb_vm_trace_host_fiber(ec);
    calls->open = malloc(FIRST_CALLS * sizeof(*calls->open));
    bool fiber = calls->id.tid >= HOST_SYNTHETIC_FIBERS;
    if (!calls->open || (fiber && !keep_track_name(calls))) {
        free(calls->open);
        free(calls);
        return NULL;
    }
    calls->capacity = FIRST_CALLS;
    calls->open[0] = (struct vm_trace_open_call){ .frame = UINTPTR_MAX };
    calls->trace = trace_id();
    calls->slot = slot;
    calls->changes = ~trace_changes();
    join(calls);
    return calls;
}

/* After a reset, open calls began with it, outer ones first. */
static void
begin_epoch(struct rb_vm_trace_calls *calls)
{
    uint64_t begin_ns = rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 });
    for (size_t depth = 0; depth <= calls->depth; depth++) {
        struct vm_trace_open_call *call = &calls->open[depth];
        call->recorded_ns = call->left_out = call->left_out_ns = 0;
        if (call->begin_ns > begin_ns) continue;
        call->begin_ns = begin_ns + depth;
        call->began_before = true;
    }
    if (calls->last_ns < begin_ns + calls->depth) calls->last_ns = begin_ns + calls->depth;
}

static __attribute__((noinline)) void
catch_up(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls)
{
    uint64_t changes = trace_changes();
    bool reset = (uint32_t)changes != (uint32_t)calls->changes;
    ractor_notice_reset(ractor);
    struct vm_trace_ractor_calls *names = calls_of(ractor);
    if (names->changes != changes) {
        rb_vm_trace_call_names_forget(names);
        names->changes = changes;
    }
    if (reset) begin_epoch(calls);
    calls->changes = changes;
}

/* One that is new, or not looked at since something changed. */
static __attribute__((noinline)) struct rb_vm_trace_calls *
find_slow(struct rb_execution_context_struct *ec, const struct vm_trace_call_context *context, bool begins)
{
    struct rb_vm_trace_calls *calls = context->calls;
    if (!context->ractor || context->ractor == rb_vm_trace_capture.overflow) return NULL;
    bool known = calls && calls->trace == trace_id();
    if (!known) calls = make(context->ractor, ec);
    if (!calls) return NULL;
    catch_up(context->ractor, calls);
    if (!known) find_open_frames(calls, context->ractor, begins);
    return calls;
}

/* NULL: nothing can be recorded. `begins`: the innermost frame begins now. */
static inline struct rb_vm_trace_calls *
find(struct rb_execution_context_struct *ec, const struct vm_trace_call_context *context, bool begins)
{
    if (!trace_on()) return NULL;
    struct rb_vm_trace_calls *calls = context->calls;
    /* `changes` is another one in each trace. */
    if (__builtin_expect(!calls || calls->changes != trace_changes() || calls->trace != trace_id(), 0))
        return find_slow(ec, context, begins);
    return calls;
}

/* --- the end of a call ---------------------------------------------------------------------------------- */

/* Write one that has nothing but its two times, where all that it needs is in the chunk. */
static inline bool
write_fast(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, const struct vm_trace_open_call *call,
           uint64_t ns)
{
    enum { WORDS = 3 };
    struct rb_vm_trace_writer *writer = &ractor->writer;
    struct vm_trace_ractor_calls *own = calls_of(ractor);
    if (writer->pos + WORDS > writer->fast_end || own->chunk != writer->serial || calls->chunk != writer->serial)
        return false;
    const struct vm_trace_thread *thread = &writer->threads[calls->thread - 1];
    if (thread->tid != calls->id.tid || thread->name != calls->id.name_id) return false;
    if (call->name->id >= writer->interned_capacity) return false;
    const struct vm_trace_interned_slot *slot = &writer->interned[call->name->id];
    if (slot->serial != call->name->serial || slot->slot.chunk != writer->serial) return false;
    uint64_t *to = writer_reserve(writer, WORDS);
    to[1] = call->begin_ns;
    to[2] = ns;
    writer_publish(writer, WORDS, fxt_event_header(FXT_DURATION_COMPLETE, WORDS, 0, calls->thread, own->category,
                                                   slot->slot.index));
    writer->events++;
    return true;
}

static inline void
write_call(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, const struct vm_trace_open_call *call,
           uint64_t ns)
{
    bool plain = !call->left_out && !call->began_before;
    if (__builtin_expect(plain, 1) && __builtin_expect(write_fast(ractor, calls, call, ns), 1)) {
        calls_of(ractor)->written++;
        return;
    }
    if (rb_vm_trace_call_write_slow(ractor, calls, call, ns, VM_TRACE_CALL_ENDED)) calls_of(ractor)->written++;
}

static inline bool
recorded_p(const struct vm_trace_open_call *call, size_t depth, uint64_t took_ns)
{
    return call->name && took_ns >= rb_vm_trace_calls.min_ns && depth <= rb_vm_trace_calls.depth;
}

/* The innermost call ended at `ns`. */
static inline void
pop(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, uint64_t ns)
{
    struct vm_trace_open_call *call = innermost(calls), *outer = call - 1;
    uint64_t took_ns = ns - call->begin_ns;
    if (__builtin_expect(recorded_p(call, calls->depth, took_ns), 1)) {
        outer->recorded_ns += took_ns;
        write_call(ractor, calls, call, ns);
    }
    else {
        outer->left_out += call->left_out + 1;
        outer->left_out_ns += took_ns - call->recorded_ns;
        outer->recorded_ns += call->recorded_ns;
        calls_of(ractor)->left_out++;
    }
    calls->depth--;
}

/* Calls end whose frames are inside `frame`. */
static inline void
pop_inside(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, uintptr_t frame)
{
    if (innermost(calls)->frame >= frame) return;
    uint64_t ns = end_ns(ractor, calls);
    do pop(ractor, calls, ns);
    while (innermost(calls)->frame < frame);
}

/* --- what the VM reports -------------------------------------------------------------------------------- */

static void
begin(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, const struct vm_trace_call_frame *frame)
{
    /* What was in its place has ended without a report. */
    if (__builtin_expect(innermost(calls)->frame <= frame->frame, 0)) pop_inside(ractor, calls, frame->frame + 1);
    const struct vm_trace_string *name = name_of(ractor, frame);
    push(calls, frame->frame, name, next_ns(ractor, calls));
}

void
rb_vm_trace_calls_begun(struct rb_execution_context_struct *ec)
{
    struct vm_trace_call_context context;
    struct vm_trace_call_frame frame;
    if (!rb_vm_trace_host_call_frame(ec, &context, &frame)) return;
    struct rb_vm_trace_calls *calls = find(ec, &context, true);
    if (calls) begin(context.ractor, calls, &frame);
}

void
rb_vm_trace_calls_left(struct rb_execution_context_struct *ec)
{
    struct vm_trace_call_context context;
    rb_vm_trace_host_call_context(ec, &context);
    struct rb_vm_trace_calls *calls = find(ec, &context, false);
    if (calls) pop_inside(context.ractor, calls, context.frame);
}

void
rb_vm_trace_calls_switched(struct rb_execution_context_struct *ec, uintptr_t before)
{
    struct vm_trace_call_context context;
    rb_vm_trace_host_call_context(ec, &context);
    if (context.frame < before) {
        rb_vm_trace_calls_begun(ec);
        return;
    }
    struct rb_vm_trace_calls *calls = find(ec, &context, false);
    if (!calls) return;
    /* Its caller has changed ec->cfp already, when the frame was not complete. */
    if (context.frame == before && innermost(calls)->frame > before) rb_vm_trace_calls_begun(ec);
    else pop_inside(context.ractor, calls, context.frame);
}

void
rb_vm_trace_calls_unwound(struct rb_execution_context_struct *ec)
{
    struct vm_trace_call_context context;
    struct vm_trace_call_frame frame;
    bool call = rb_vm_trace_host_call_frame(ec, &context, &frame);
    struct rb_vm_trace_calls *calls = find(ec, &context, false);
    if (!calls) return;
    pop_inside(context.ractor, calls, context.frame);
    /* The frame of a rescue or an ensure is where that of a call was, whose end may not be known. */
    if (call && (innermost(calls)->frame != frame.frame || innermost(calls)->name != name_of(context.ractor, &frame)))
        begin(context.ractor, calls, &frame);
}

/* What is open at `ns`, innermost calls first. */
static void
report_context(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, uint64_t ns,
               enum vm_trace_call_end end)
{
    if (ns < calls->last_ns) ns = calls->last_ns;
    for (size_t depth = calls->depth; depth > 0; depth--) {
        const struct vm_trace_open_call *call = &calls->open[depth];
        if (!call->name || depth > rb_vm_trace_calls.depth) continue;
        if (rb_vm_trace_call_write_slow(ractor, calls, call, ns, end)) calls_of(ractor)->written++;
    }
}

/* A fiber is freed that was not resumed to its end. `current` collects garbage. */
static void
abandon(struct rb_execution_context_struct *current, struct rb_vm_trace_calls *calls)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(current);
    if (!ractor || ractor == rb_vm_trace_capture.overflow) return;
    if ((uint32_t)calls->changes != trace_epoch()) begin_epoch(calls);
    calls->ec = current; /* its own is gone */
    report_context(ractor, calls, calls->last_ns, VM_TRACE_CALL_ABANDONED);
}

void
rb_vm_trace_calls_context_ended(struct rb_vm_trace_calls **slot)
{
    struct rb_vm_trace_calls *calls = *slot;
    struct rb_execution_context_struct *current = rb_vm_trace_host_current();
    struct vm_trace_call_context context;
    if (calls->depth > 0 && calls->trace == trace_id() && (rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_CALLS)) {
        if (current == calls->ec) {
            rb_vm_trace_host_call_context(current, &context);
            if (find(current, &context, false) == calls) { /* a thread that was killed */
                uint64_t ns = end_ns(context.ractor, calls);
                while (calls->depth > 0) pop(context.ractor, calls, ns);
            }
        }
        else if (current && calls->track) abandon(current, calls);
    }
    leave(calls);
}

/* --- the end of a trace, and snapshots ------------------------------------------------------------------ */

void
rb_vm_trace_open_calls_report(struct rb_vm_trace_ractor *ractor)
{
    uint64_t ns = rb_vm_trace_ractor_latest_ns();
    pthread_mutex_lock(&lock);
    for (struct rb_vm_trace_calls *calls = contexts; calls; calls = calls->next) {
        if (calls->trace != trace_id()) continue;
        if ((uint32_t)calls->changes != trace_epoch()) begin_epoch(calls);
        report_context(ractor, calls, ns, VM_TRACE_CALL_OPEN);
        calls->depth = 0;
    }
    pthread_mutex_unlock(&lock);
}

/* Copies of contexts of the current ractor, whose other threads do not run now. */
static struct {
    struct rb_vm_trace_calls *copies;
    uint64_t ns;
} snapshot;

static struct rb_vm_trace_calls *
copy(const struct rb_vm_trace_calls *calls)
{
    struct rb_vm_trace_calls *made = malloc(sizeof(*made));
    size_t bytes = (calls->depth + 1) * sizeof(*calls->open);
    if (!made) return NULL;
    *made = *calls;
    made->copy = true;
    made->open = malloc(bytes);
    if (!made->open || !keep_track_name(made)) {
        free(made->open);
        free(made);
        return NULL;
    }
    memcpy(made->open, calls->open, bytes);
    return made;
}

void
rb_vm_trace_open_calls_snapshot_end(void)
{
    while (snapshot.copies) {
        struct rb_vm_trace_calls *made = snapshot.copies;
        snapshot.copies = made->next;
        for (size_t depth = 1; depth <= made->depth; depth++) {
            const struct vm_trace_string *name = made->open[depth].name;
            if (name) rb_vm_trace_string_release((struct vm_trace_string *)name);
        }
        free(made->open);
        free(made->track);
        free(made);
    }
}

void
rb_vm_trace_open_calls_snapshot_begin(void)
{
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    if (!ractor) return;
    snapshot.ns = clock_now_ns(&ractor->clock);
    pthread_mutex_lock(&lock);
    for (struct rb_vm_trace_calls *calls = contexts; calls; calls = calls->next) {
        if (calls->trace != trace_id() || rb_vm_trace_host_ractor(calls->ec) != ractor) continue;
        struct rb_vm_trace_calls *made = copy(calls);
        if (!made) {
            ractor->lost += calls->depth;
            continue;
        }
        if ((uint32_t)made->changes != trace_epoch()) begin_epoch(made);
        for (size_t depth = 1; depth <= made->depth; depth++) {
            const struct vm_trace_string *name = made->open[depth].name;
            if (name) rb_vm_trace_string_retain((struct vm_trace_string *)name);
        }
        made->next = snapshot.copies;
        snapshot.copies = made;
    }
    pthread_mutex_unlock(&lock);
}

bool
rb_vm_trace_open_calls_snapshot_write(struct rb_vm_trace_ractor *ractor)
{
    for (struct rb_vm_trace_calls *made = snapshot.copies; made; made = made->next)
        report_context(ractor, made, snapshot.ns, VM_TRACE_CALL_OPEN);
    return false;
}

void
rb_vm_trace_open_calls_free_all(void)
{
    pthread_mutex_lock(&lock);
    while (contexts) {
        struct rb_vm_trace_calls *calls = contexts;
        contexts = calls->next;
        *calls->slot = NULL;
        free(calls->open);
        free(calls->track);
        free(calls);
    }
    pthread_mutex_unlock(&lock);
}

void
rb_vm_trace_open_calls_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    contexts = NULL;
    generation++;
    snapshot.copies = NULL; /* of the parent's */
}
