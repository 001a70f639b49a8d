/*
 * The private stacks of open calls. See open_calls.h.
 */
#include "vm_trace/streams/calls/calls.h"
#include "vm_trace/streams/calls/open_calls.h"

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
    free(calls->track);
    free(calls);
}

/*
 * The name of the track is needed when its thread may be gone: a fiber can be freed after its thread.
 * False: no memory.
 */
static bool
keep_track_name(struct rb_vm_trace_calls *calls)
{
    char name[TRACK_BYTES];
    size_t bytes = calls->track ? calls->track_bytes : rb_vm_trace_host_fiber_name(calls->ec, name, sizeof(name));
    if (bytes > sizeof(name)) bytes = sizeof(name);
    char *kept = malloc(bytes + 1);
    if (!kept) return false;
    memcpy(kept, calls->track ? calls->track : name, bytes);
    calls->track = kept;
    calls->track_bytes = bytes;
    return true;
}

/* What the depth of recorded calls means in memory that has moved. */
static void
set_room(struct rb_vm_trace_calls *calls, struct vm_trace_open_call *open, size_t capacity)
{
    uint64_t depth = rb_vm_trace_calls.depth;
    calls->top = open + (calls->top - calls->open);
    calls->open = open;
    calls->last = open + capacity - 1;
    calls->deepest = depth < capacity ? open + depth : calls->last;
}

/* False: no memory, or too deep; then the call counts as part of the one around it. */
static __attribute__((noinline)) bool
grow(struct rb_vm_trace_calls *calls)
{
    size_t capacity = 2 * (size_t)(calls->last + 1 - calls->open), depth = (size_t)(calls->top - calls->open);
    if (capacity > MOST_CALLS) return false;
    struct vm_trace_open_call *grown = malloc(capacity * sizeof(*grown));
    if (!grown) return false;
    memcpy(grown, calls->open, (depth + 1) * sizeof(*grown));
    struct vm_trace_open_call *old = calls->open;
    set_room(calls, grown, capacity);
    free(old);
    return true;
}

/* Inline, as all that runs at each call. */
static inline __attribute__((always_inline)) void
push(struct rb_vm_trace_calls *calls, uintptr_t frame, const struct vm_trace_call_name *name, uint16_t slot,
     uint64_t ns, bool before)
{
    if (__builtin_expect(calls->top == calls->last, 0) && !grow(calls)) return;
    struct vm_trace_open_call *call = ++calls->top;
    call->frame = frame;
    call->begin_ns = ns;
    call->name = name->text;
    call->header = name->header;
    call->recorded_ns = call->left_out = call->left_out_ns = 0;
    call->chunk = name->chunk;
    call->slot = slot;
    call->began_before = before;
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

static inline __attribute__((always_inline)) const struct vm_trace_call_name *
name_of(struct rb_vm_trace_ractor *ractor, uintptr_t frame, const struct rb_iseq_struct *iseq, uintptr_t method,
        uint16_t slot)
{
    const struct vm_trace_call_name *name = &calls_of(ractor)->names[slot];
    if (__builtin_expect(name->iseq == iseq && name->method == method, 1)) return name;
    const struct vm_trace_call_frame unknown = { frame, iseq, method };
    return rb_vm_trace_call_name_slow(ractor, &unknown);
}

/* A frame that was there before: the call began with the trace, or at the reset (begin_epoch). */
static void
push_before(void *data, struct rb_vm_trace_ractor *ractor, const struct vm_trace_call_frame *frame)
{
    struct rb_vm_trace_calls *calls = data;
    uint16_t slot = call_name_slot(frame->iseq, frame->method);
    push(calls, frame->frame, name_of(ractor, frame->frame, frame->iseq, frame->method, slot), slot, ++calls->last_ns,
         true);
}

/*
 * After a reset: open calls begin right before it, 1 ns apart, the innermost one last. What else is open begins
 * with the reset (`blocked`, a system call), so it is inside of them.
 */
static void
begin_epoch(struct rb_vm_trace_calls *calls)
{
    uint64_t begin_ns = rb_vm_trace_epoch_begin_ns(&calls->epoch);
    struct vm_trace_open_call *last = calls->top;
    while (last > calls->open && last->begin_ns >= begin_ns) last--;
    for (struct vm_trace_open_call *call = calls->open; call <= calls->top; call++) {
        call->recorded_ns = call->left_out = call->left_out_ns = 0;
        if (call > last) continue;
        call->begin_ns = begin_ns - 1 - (uint64_t)(last - call);
        call->began_before = true;
    }
    if (calls->last_ns < begin_ns) calls->last_ns = begin_ns;
    if (calls->suspended_ns && calls->suspended_ns < begin_ns) calls->suspended_ns = begin_ns;
}

/* What is open when its execution context is seen first; `begins`: but for the innermost frame. */
static void
find_open_frames(struct rb_vm_trace_calls *calls, struct rb_vm_trace_ractor *ractor, bool begins)
{
    uint64_t begin_ns = rb_vm_trace_epoch_begin_ns(&calls->epoch);
    bool reset = calls->epoch != rb_vm_trace_capture.first_epoch;
    calls->last_ns = reset ? 0 : begin_ns; /* no event is before the settings, with which the trace begins */
    rb_vm_trace_host_each_frame(calls->ec, begins, ractor, push_before, calls);
    if (reset) begin_epoch(calls);
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
    calls->ractor = ractor;
    calls->id = rb_vm_trace_host_fiber(ec);
    struct vm_trace_open_call *open = malloc(FIRST_CALLS * sizeof(*open));
    bool fiber = calls->id.tid >= HOST_SYNTHETIC_FIBERS;
    if (!open || (fiber && !keep_track_name(calls))) {
        free(open);
        free(calls);
        return NULL;
    }
    calls->top = calls->open;
    set_room(calls, open, FIRST_CALLS);
    calls->open[0] = (struct vm_trace_open_call){ .frame = UINTPTR_MAX };
    calls->trace = trace_id();
    calls->slot = slot;
    calls->changes = ~trace_changes();
    join(calls);
    return calls;
}

static __attribute__((noinline)) void
catch_up(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls)
{
    uint64_t changes = trace_changes();
    ractor_notice_reset(ractor);
    struct vm_trace_ractor_calls *names = calls_of(ractor);
    if (names->changes != changes) {
        rb_vm_trace_call_names_forget(names);
        names->changes = changes;
    }
    if (calls->epoch != (uint32_t)changes) begin_epoch(calls);
    calls->changes = changes;
}

/* --- the end of a call ---------------------------------------------------------------------------------- */

/* Write one that has nothing but its two times, where all that it needs is in the chunk. */
static inline __attribute__((always_inline)) bool
write_fast(struct rb_vm_trace_writer *writer, const struct rb_vm_trace_calls *calls,
           const struct vm_trace_open_call *call, uint64_t ns)
{
    enum { LINE_WORDS = 8 };
    size_t pos = writer->pos;
    if (pos + VM_TRACE_CALL_WORDS > writer->fast_end || call->chunk != writer->serial ||
        calls->chunk != writer->serial || calls->renamed != writer->renamed || calls->reused != writer->reused)
        return false;
    uint64_t *to = writer_reserve(writer, VM_TRACE_CALL_WORDS);
    to[1] = call->begin_ns;
    to[2] = ns;
    __atomic_store_n(to, call->header | calls->thread, __ATOMIC_RELEASE);
    writer_move_to(writer, pos + VM_TRACE_CALL_WORDS);
    if (pos % LINE_WORDS + VM_TRACE_CALL_WORDS > LINE_WORDS) writer_prefetch(to); /* once for each line */
    writer_count_events(writer, 1);
    return true;
}

static __attribute__((noinline)) void
write_slow(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, const struct vm_trace_open_call *call,
           uint64_t ns)
{
    if (rb_vm_trace_call_write_slow(ractor, calls, call, ns, VM_TRACE_CALL_ENDED)) calls_of(ractor)->written++;
}

/* It is too short or too deep, or of a method that is not requested. */
static __attribute__((noinline)) void
leave_out(struct rb_vm_trace_ractor *ractor, const struct vm_trace_open_call *call, uint64_t took_ns)
{
    struct vm_trace_open_call *outer = (struct vm_trace_open_call *)call - 1;
    outer->left_out += call->left_out + 1;
    outer->left_out_ns += took_ns - call->recorded_ns;
    outer->recorded_ns += call->recorded_ns;
    calls_of(ractor)->left_out++;
}

/* The fiber did not run from `begin_ns` to `end_ns`: this is no time of its open calls, if any of them is recorded. */
static __attribute__((noinline)) void
put_suspended(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, uint64_t begin_ns, uint64_t end_ns,
              enum vm_trace_call_end end)
{
    const struct vm_trace_open_call *recorded = calls->top;
    while (recorded > calls->open && (!recorded->name || recorded > calls->deepest)) recorded--;
    if (recorded == calls->open || end_ns <= begin_ns || end_ns - begin_ns < rb_vm_trace_calls.min_ns) return;
    struct vm_trace_call_name *name = &calls_of(ractor)->names[CALL_NAMES];
    name->text = KNOWN(FIBER_SUSPENDED);
    const struct vm_trace_open_call stretch = {
        .begin_ns = begin_ns, .name = name->text, .header = name->header, .chunk = name->chunk, .slot = CALL_NAMES
    };
    calls->top->recorded_ns += end_ns - begin_ns;
    if ((end == VM_TRACE_CALL_ENDED && write_fast(&ractor->writer, calls, &stretch, end_ns)) ||
        rb_vm_trace_call_write_slow(ractor, calls, &stretch, end_ns, end))
        calls_of(ractor)->written++;
}

/* --- which execution context ----------------------------------------------------------------------------- */

/* One that is new, or not looked at since something changed. `begins`: the innermost frame begins now. */
static __attribute__((noinline)) struct rb_vm_trace_calls *
find_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls,
          bool begins)
{
    if (!ractor || ractor == rb_vm_trace_capture.overflow) return NULL;
    bool known = calls && calls->trace == trace_id();
    if (!known) calls = make(ractor, ec);
    if (!calls) return NULL;
    catch_up(ractor, calls);
    if (known) return calls;
    find_open_frames(calls, ractor, begins);
    const struct vm_trace_ractor_calls *names = calls_of(ractor);
    if (names->switched_to == ec && calls->last_ns < names->switched_ns) { /* it was suspended when the trace began */
        put_suspended(ractor, calls, calls->last_ns + 1, names->switched_ns, VM_TRACE_CALL_ENDED);
        calls->last_ns = names->switched_ns;
    }
    return calls;
}

/* NULL: nothing can be recorded. `changes` is another one in each trace, and for each ractor state. */
static inline __attribute__((always_inline)) struct rb_vm_trace_calls *
find(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls,
     bool begins)
{
    if (__builtin_expect(!trace_on(), 0)) return NULL;
    if (__builtin_expect(!calls || calls->changes != trace_changes(), 0)) return find_slow(ec, ractor, calls, begins);
    return calls;
}

/* The innermost call ended at `ns`. */
static inline __attribute__((always_inline)) void
pop(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, uint64_t ns)
{
    struct vm_trace_open_call *call = calls->top--;
    uint64_t took_ns = ns - call->begin_ns;
    if (__builtin_expect(!call->name || took_ns < rb_vm_trace_calls.min_ns || call > calls->deepest, 0)) {
        leave_out(ractor, call, took_ns);
        return;
    }
    calls->top->recorded_ns += took_ns;
    bool plain = !(call->left_out | call->began_before);
    if (__builtin_expect(plain, 1) && __builtin_expect(write_fast(&ractor->writer, calls, call, ns), 1))
        calls_of(ractor)->written++;
    else write_slow(ractor, calls, call, ns);
}

/* All calls that are left end whose frames are inside `frame`. */
static __attribute__((noinline)) void
pop_rest(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, uintptr_t frame, uint64_t ns)
{
    while (calls->top->frame < frame) pop(ractor, calls, ns);
}

/* Calls end whose frames are inside `frame`: mostly one. */
static inline __attribute__((always_inline)) void
pop_inside(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, uintptr_t frame)
{
    if (calls->top->frame >= frame) return;
    uint64_t ns = end_ns(ractor, calls);
    pop(ractor, calls, ns);
    if (__builtin_expect(calls->top->frame < frame, 0)) pop_rest(ractor, calls, frame, ns);
}

static __attribute__((noinline)) void
pop_missed(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, uintptr_t frame)
{
    pop_inside(ractor, calls, frame);
}

/* --- what the VM reports -------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void
begin(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, uintptr_t frame,
      const struct rb_iseq_struct *iseq, uintptr_t method)
{
    /* What was in its place has ended without a report. */
    if (__builtin_expect(calls->top->frame <= frame, 0)) pop_missed(ractor, calls, frame + 1);
    uint16_t slot = call_name_slot(iseq, method);
    const struct vm_trace_call_name *name = name_of(ractor, frame, iseq, method, slot);
    push(calls, frame, name, slot, next_ns(ractor, calls), false);
}

void
rb_vm_trace_calls_begin(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor *ractor,
                        struct rb_vm_trace_calls *calls, uintptr_t frame, const struct rb_iseq_struct *iseq,
                        uintptr_t method)
{
    calls = find(ec, ractor, calls, true);
    if (calls) begin(ractor, calls, frame, iseq, method);
}

void
rb_vm_trace_calls_end(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor *ractor,
                      struct rb_vm_trace_calls *calls, uintptr_t frame)
{
    calls = find(ec, ractor, calls, false);
    if (calls) pop_inside(ractor, calls, frame);
}

bool
rb_vm_trace_call_open_p(struct rb_execution_context_struct *ec, uintptr_t frame)
{
    const struct rb_vm_trace_calls *calls = *rb_vm_trace_host_calls(ec);
    return calls && calls->trace == trace_id() && calls->top->frame <= frame;
}

void
rb_vm_trace_calls_unwound(struct rb_execution_context_struct *ec)
{
    struct vm_trace_call_frame frame;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(ec);
    bool call = rb_vm_trace_host_call_frame(ec, &frame);
    struct rb_vm_trace_calls *calls = find(ec, ractor, *rb_vm_trace_host_calls(ec), false);
    if (!calls) return;
    pop_missed(ractor, calls, rb_vm_trace_host_innermost(ec));
    if (!call) return;
    /* The frame of a rescue or an ensure is where that of a call was, whose end may not be known. */
    uint16_t slot = call_name_slot(frame.iseq, frame.method);
    const struct vm_trace_call_name *name = name_of(ractor, frame.frame, frame.iseq, frame.method, slot);
    if (calls->top->frame != frame.frame || calls->top->name != name->text)
        begin(ractor, calls, frame.frame, frame.iseq, frame.method);
}

void
rb_vm_trace_calls_switched(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to,
                           struct rb_vm_trace_ractor *ractor)
{
    struct rb_vm_trace_calls *left = *rb_vm_trace_host_calls(from), *next = *rb_vm_trace_host_calls(to);
    if (ractor == rb_vm_trace_capture.overflow) return;
    if (left && left->trace == trace_id() && (left = find(from, ractor, left, false)) != NULL && left->top > left->open)
        left->suspended_ns = next_ns(ractor, left);
    if (!next || next->trace != trace_id()) { /* known as soon as it reports something */
        calls_of(ractor)->switched_to = to;
        calls_of(ractor)->switched_ns = clock_now_ns(&ractor->clock);
    }
    else if ((next = find(to, ractor, next, false)) != NULL && next->suspended_ns) {
        put_suspended(ractor, next, next->suspended_ns, end_ns(ractor, next), VM_TRACE_CALL_ENDED);
        next->suspended_ns = 0;
    }
}

/* What is open at `ns`, innermost calls first. */
static void
report_context(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls, uint64_t ns,
               enum vm_trace_call_end end)
{
    if (ns < calls->last_ns) ns = calls->last_ns;
    if (calls->suspended_ns) put_suspended(ractor, calls, calls->suspended_ns, ns, end);
    for (const struct vm_trace_open_call *call = calls->top; call > calls->open; call--) {
        if (!call->name || call > calls->deepest) continue;
        if (rb_vm_trace_call_write_slow(ractor, calls, call, ns, end)) calls_of(ractor)->written++;
    }
}

/* A fiber is freed that was not resumed to its end. `current` collects garbage. */
static void
abandon(struct rb_execution_context_struct *current, struct rb_vm_trace_calls *calls)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(current);
    if (!ractor || ractor == rb_vm_trace_capture.overflow) return;
    if (calls->epoch != trace_epoch()) begin_epoch(calls);
    calls->ec = current; /* its own is gone */
    report_context(ractor, calls, calls->last_ns, VM_TRACE_CALL_ABANDONED);
}

void
rb_vm_trace_calls_context_ended(struct rb_vm_trace_calls **slot)
{
    struct rb_vm_trace_calls *calls = *slot;
    struct rb_execution_context_struct *current = rb_vm_trace_host_current();
    bool recorded = calls->trace == trace_id() && (rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_CALLS);
    if (recorded && calls->top > calls->open && current) {
        struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(current);
        if (current != calls->ec && calls->track) abandon(current, calls);
        else if (current == calls->ec && find(current, ractor, calls, false) == calls)
            pop_missed(ractor, calls, UINTPTR_MAX); /* a thread that was killed */
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
        if (calls->epoch != trace_epoch()) begin_epoch(calls);
        report_context(ractor, calls, ns, VM_TRACE_CALL_OPEN);
        calls->top = calls->open;
        calls->suspended_ns = 0;
    }
    pthread_mutex_unlock(&lock);
}

void
rb_vm_trace_open_calls_each_name(const struct rb_vm_trace_ractor *ractor,
                                 void (*function)(const struct vm_trace_string *name, void *data), void *data)
{
    pthread_mutex_lock(&lock);
    for (const struct rb_vm_trace_calls *calls = contexts; calls; calls = calls->next) {
        if (calls->trace != trace_id() || calls->ractor != ractor) continue;
        for (const struct vm_trace_open_call *call = calls->open + 1; call <= calls->top; call++) {
            if (call->name) function(call->name, data);
        }
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
    size_t depth = (size_t)(calls->top - calls->open);
    if (!made) return NULL;
    *made = *calls;
    made->copy = true;
    struct vm_trace_open_call *open = malloc((depth + 1) * sizeof(*open));
    if (!open || !keep_track_name(made)) {
        free(open);
        free(made);
        return NULL;
    }
    memcpy(open, calls->open, (depth + 1) * sizeof(*open));
    set_room(made, open, depth + 1);
    return made;
}

void
rb_vm_trace_open_calls_snapshot_end(void)
{
    while (snapshot.copies) {
        struct rb_vm_trace_calls *made = snapshot.copies;
        snapshot.copies = made->next;
        for (const struct vm_trace_open_call *call = made->open + 1; call <= made->top; call++) {
            if (call->name) rb_vm_trace_string_release((struct vm_trace_string *)call->name);
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
        if (calls->trace != trace_id() || calls->ractor != ractor) continue;
        struct rb_vm_trace_calls *made = copy(calls);
        if (!made) {
            ractor->lost += (uint64_t)(calls->top - calls->open);
            continue;
        }
        if (made->epoch != trace_epoch()) begin_epoch(made);
        for (const struct vm_trace_open_call *call = made->open + 1; call <= made->top; call++) {
            if (call->name) rb_vm_trace_string_retain((struct vm_trace_string *)call->name);
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
