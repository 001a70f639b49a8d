/*
 * States of threads. See threads.h.
 *
 * A thread gives up the GVL and gets it back by itself, so it can write then. Who wakes it may have
 * no GVL, or another ractor's: it leaves a time and its own id in the thread's memory, and the
 * thread writes the wake-up when it runs. So no event needs a writer without a GVL.
 */
#define _GNU_SOURCE 1 /* dladdr */
#include "vm_trace/streams/threads.h"

#include <dlfcn.h>
#include <string.h>

/* A thread that was blocked for less has only the name of its method: a stack costs more. */
#define STACK_FROM_NS UINT64_C(1000000)
/* A thread that is preempted after having run for less did not keep others from running for long. */
#define PREEMPTED_FROM_NS UINT64_C(1000000)
#define CPUS 256 /* of a context switch */
#define FUNCTIONS 64 /* a power of two */

struct rb_vm_trace_thread {
    uint64_t host;
    uint64_t trace;         /* that the rest belongs to (trace_id) */
    uint64_t suspended_ns;
    uint64_t ready_stamp;   /* clock_stamp of when it was woken; 0: not yet. The scheduler's lock guards both */
    const void *function;   /* what it is about to block in; NULL: not known */
    uint32_t waker;         /* id of the thread that woke it; 0: none of Ruby's */
    int32_t fd_and_1;       /* 0: none */
    uint32_t label;         /* of the method that blocks, in the ractor's stacks, until it runs again; 0: none */
    uint64_t label_changes; /* rb_vm_trace_changes that it belongs to */
    uint8_t why;            /* enum rb_vm_trace_suspension */
    bool suspended;
    bool in_blocked;        /* its `blocked` has begun */
    bool stack;             /* the ractor's stacks hold its own, as long as label_changes says */
};
_Static_assert(sizeof(struct rb_vm_trace_thread) <= RB_VM_TRACE_THREAD_BYTES, "vm_core.h reserves that much");

struct vm_trace_threads_state {
    uint64_t suspended_ns;  /* when a thread of this ractor gave up the GVL last */
    uint64_t resumed_ns;    /* when one got it last */
    uint64_t suspensions;
    uint32_t cpu_and_1;     /* 0: none yet */
    uint32_t nobody;        /* index of the thread that stands for nobody, if it still is */
    struct {
        const void *function;
        struct vm_trace_string *name; /* NULL: it has none */
    } functions[FUNCTIONS]; /* by address */
};

int rb_vm_trace_threads_on;

static const struct vm_trace_string *category, *preempted, *fd_name, *function_name, *waker_name, *nameless;
static bool ticks; /* what a stamp is */
static uint64_t cpus_used[CPUS / 64]; /* a bit for each, changed atomically */

static struct vm_trace_threads_state *
threads_of(const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(&rb_vm_trace_threads, ractor);
}

/* --- names ------------------------------------------------------------------------------------- */

/* The name of a function that is exported, kept by its address. NULL: it has none. */
static const struct vm_trace_string *
name_of_function(struct vm_trace_threads_state *state, const void *function)
{
    uint64_t hash = (uint64_t)(uintptr_t)function * UINT64_C(0x9E3779B97F4A7C15);
    unsigned at = hash >> 58 & (FUNCTIONS - 1);
    if (state->functions[at].function == function) return state->functions[at].name;
    rb_vm_trace_string_release(state->functions[at].name);
    state->functions[at].function = function;
    state->functions[at].name = NULL;
    Dl_info info;
    /* For a static function dladdr finds the exported one before it. */
    if (dladdr(function, &info) && info.dli_sname && info.dli_saddr == function)
        state->functions[at].name = rb_vm_trace_string_intern(info.dli_sname, strlen(info.dli_sname));
    return state->functions[at].name;
}

/* The part of a label "Owner#method (path:line)" that names the method. */
static uint32_t
find_method(const struct vm_trace_label *label)
{
    for (uint32_t at = 1; at + 2 < label->bytes; at++) {
        bool levels = label->text[at + 2] >= '0' && label->text[at + 2] <= '9'; /* "block (2 levels) in" */
        if (label->text[at] == ' ' && label->text[at + 1] == '(' && !levels) return at;
    }
    return label->bytes;
}

/* Indexes of a label and of its method. False: the chunk is full. */
static inline bool
name_blocked(struct rb_vm_trace_writer *writer, struct vm_trace_label *label, unsigned *label_out, unsigned *method_out)
{
    if (!label->method_bytes) label->method_bytes = find_method(label);
    return writer_string(writer, &label->slot, label->text, label->bytes, label_out) &&
        writer_string(writer, &label->method_slot, label->text, label->method_bytes, method_out);
}

/* --- CPUs -------------------------------------------------------------------------------------- */

/*
 * Each live ractor has one: the main ractor CPU 0, another one the lowest that is free. The last one
 * is for all that find none.
 */
static uint32_t
take_cpu(bool main)
{
    for (uint32_t cpu = main ? 0 : 1; cpu < CPUS - 1; cpu++) {
        uint64_t bit = UINT64_C(1) << cpu % 64;
        if (!(__atomic_fetch_or(&cpus_used[cpu / 64], bit, __ATOMIC_RELAXED) & bit) || main) return cpu;
    }
    return CPUS - 1;
}

/*
 * Before the time of an event is read: writing it may take so long, where it needs a chunk, that
 * another ractor ends meanwhile. Its CPU is not free at that time.
 */
static inline void
have_cpu(struct vm_trace_threads_state *state, struct rb_execution_context_struct *ec)
{
    if (!state->cpu_and_1) state->cpu_and_1 = 1 + take_cpu(rb_vm_trace_host_main_ractor_p(ec));
}

/* --- records ----------------------------------------------------------------------------------- */

/*
 * Records that must not be parted are composed one behind the other and written at once: the first
 * word of the first one is stored last, and until then all of it is padding.
 */
struct records {
    size_t words;
    uint64_t words_of[5 + 2 + EVENT_MAX_WORDS];
};

static inline void
add_switch(struct records *records, uint64_t ns, uint32_t cpu, enum fxt_thread_state state, unsigned outgoing,
           unsigned incoming)
{
    records->words_of[records->words++] = fxt_switch_header(cpu, state, outgoing, incoming);
    records->words_of[records->words++] = ns;
}

static inline void
add_event(struct records *records, struct vm_trace_event *event, enum fxt_event type, unsigned in, unsigned name)
{
    uint64_t *to = records->words_of + records->words;
    to[0] = fxt_event_header(type, event->words, event->arguments, event->thread, in, name);
    for (unsigned i = 1; i < event->words; i++) to[i] = event->record[i];
    records->words += event->words;
}

/* False: the chunk is full. `events`: how many of them are events. */
static inline bool
put_records(struct rb_vm_trace_writer *writer, const struct records *records, unsigned events)
{
    uint64_t *to = writer_reserve(writer, records->words);
    if (!to) return false;
    for (size_t i = 1; i < records->words; i++) to[i] = records->words_of[i];
    writer_publish(writer, records->words, records->words_of[0]);
    writer->events += events;
    return true;
}

/* Index of the thread that stands for nobody. 0: the chunk is full. */
static inline unsigned
nobody(struct vm_trace_threads_state *state, struct rb_vm_trace_writer *writer)
{
    unsigned index = state->nobody;
    if (index && index <= writer->thread_count && writer->threads[index - 1].tid == 0) return index;
    return state->nobody = rb_vm_trace_writer_no_thread(writer);
}

struct suspension {
    struct rb_vm_trace_thread *thread;
    enum rb_vm_trace_suspension why;
    uint64_t ns;
    uint64_t runs_from_ns;  /* it was not seen to begin to run; 0: it was */
    uint32_t label;         /* of the method that it is in, in the ractor's stacks; 0: none */
    bool stack;             /* the ractor's stacks hold the thread's: for a preempted one */
};

static bool
write_suspended(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    static const enum fxt_thread_state states[] = { FXT_THREAD_BLOCKED, FXT_THREAD_RUNNABLE, FXT_THREAD_DEAD };
    const struct suspension *suspension = what;
    const struct rb_vm_trace_thread *thread = suspension->thread;
    struct vm_trace_threads_state *state = threads_of(ractor);
    bool blocked = suspension->why == RB_VM_TRACE_BLOCKED;
    struct vm_trace_event event;
    unsigned in = 0, name = 0, text, key;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, suspension->ns)) return false;
    unsigned none = nobody(state, event.writer);
    if (!none) return false;
    if (blocked) {
        if (!writer_interned(event.writer, category, &in)) return false;
        if (suspension->label) {
            if (!name_blocked(event.writer, &ractor->stacks.labels[suspension->label], &text, &name)) return false;
            event_string(&event, W_0, text);
        }
        else if (!writer_interned(event.writer, nameless, &name)) return false;
        if (thread->fd_and_1) {
            if (!writer_interned(event.writer, fd_name, &key)) return false;
            event_uint32(&event, (enum vm_trace_word)key, (uint32_t)(thread->fd_and_1 - 1));
        }
        const struct vm_trace_string *function = thread->function ? name_of_function(state, thread->function) : NULL;
        if (function && !event_interned_rarely(&event, function_name, function)) return false;
    }
    else if (suspension->stack) {
        if (!writer_interned(event.writer, preempted, &in)) return false;
        if (!name_blocked(event.writer, &ractor->stacks.labels[suspension->label], &text, &name)) return false;
        if (!rb_vm_trace_event_backtrace(&event, &ractor->stacks, 0)) return false;
    }

    struct records records;
    records.words = 0;
    uint64_t ns = event.record[1];
    uint32_t cpu = state->cpu_and_1 - 1;
    if (suspension->runs_from_ns) {
        uint64_t from = suspension->runs_from_ns < ns ? suspension->runs_from_ns : ns - 1;
        add_switch(&records, from, cpu, FXT_THREAD_RUNNABLE, none, event.thread);
    }
    add_switch(&records, ns, cpu, states[suspension->why], event.thread, none);
    if (blocked || suspension->stack) add_event(&records, &event, blocked ? FXT_DURATION_BEGIN : FXT_INSTANT, in, name);
    return put_records(event.writer, &records, blocked || suspension->stack);
}

struct resumption {
    const struct rb_vm_trace_thread *thread;
    uint64_t ns, ready_ns;  /* ready_ns 0: not known */
    uint32_t label;         /* of what it blocked in; 0: none */
    bool ends_blocked;
    bool stack;             /* the ractor's stacks hold the thread's */
};

static bool
write_resumed(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct resumption *resumption = what;
    struct vm_trace_threads_state *state = threads_of(ractor);
    uint32_t waker = resumption->thread->waker;
    struct vm_trace_event event;
    unsigned in = 0, name = 0, key = 0, text;
    uint64_t ready_ns = resumption->ready_ns ? resumption->ready_ns : resumption->ns;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, ready_ns)) return false;
    unsigned none = nobody(state, event.writer);
    if (!none || !writer_interned(event.writer, waker_name, &key)) return false;
    if (resumption->ends_blocked) {
        if (!writer_interned(event.writer, category, &in)) return false;
        if (!(resumption->label ? name_blocked(event.writer, &ractor->stacks.labels[resumption->label], &text, &name)
                                : writer_interned(event.writer, nameless, &name)))
            return false;
        if (resumption->stack && !rb_vm_trace_event_backtrace(&event, &ractor->stacks, 1)) return false;
    }

    struct records records;
    records.words = 0;
    uint32_t cpu = state->cpu_and_1 - 1;
    ready_ns = event.record[1];
    if (resumption->ends_blocked) add_event(&records, &event, FXT_DURATION_END, in, name);
    if (resumption->ready_ns) {
        uint64_t *to = records.words_of + records.words;
        size_t words = waker ? 5 : 3;
        to[0] = fxt_wakeup_header(words, waker ? 1 : 0, cpu);
        to[1] = ready_ns;
        to[2] = event.writer->threads[event.thread - 1].tid;
        if (waker) {
            to[3] = fxt_koid_argument(key);
            to[4] = waker;
        }
        records.words += words;
    }
    add_switch(&records, resumption->ns > ready_ns ? resumption->ns : ready_ns + 1, cpu, FXT_THREAD_RUNNABLE, none,
               event.thread);
    return put_records(event.writer, &records, resumption->ends_blocked);
}

/* --- hooks ------------------------------------------------------------------------------------- */

/*
 * The state of the ractor whose thread it is. NULL: nothing can be recorded; it is counted as lost,
 * unless the ractor has none any more.
 */
static struct rb_vm_trace_ractor *
recording_ractor(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = trace_on() ? rb_vm_trace_host_ractor(ec) : NULL;
    if (ractor != rb_vm_trace_capture.overflow) return ractor;
    if (ractor) __atomic_fetch_add(&ractor->lost, 1, __ATOMIC_RELAXED);
    return NULL;
}

void
rb_vm_trace_thread_suspended_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                  enum rb_vm_trace_suspension why)
{
    struct rb_vm_trace_ractor *ractor = recording_ractor(ec);
    if (!ractor) return;
    struct vm_trace_threads_state *state = threads_of(ractor);
    have_cpu(state, ec);
    struct suspension suspension = { thread, why, clock_now_ns(&ractor->clock), 0, 0, false };
    if (thread->trace != trace_id()) {
        /* It has run since the trace began, or since another thread gave up the GVL. */
        uint64_t begin_ns = rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 });
        suspension.runs_from_ns = state->suspended_ns >= begin_ns ? state->suspended_ns + 1 : begin_ns;
    }
    if (why != RB_VM_TRACE_DEAD && thread->label_changes == ractor->stacks.changes) {
        suspension.label = thread->label;
        suspension.stack = thread->stack && thread->label;
    }
    thread->stack = false;
    thread->trace = trace_id();
    thread->suspended_ns = suspension.ns;
    thread->ready_stamp = 0;
    thread->waker = 0;
    thread->why = (uint8_t)why;
    thread->suspended = true;
    bool written = rb_vm_trace_event_write(ractor, ec, write_suspended, &suspension);
    thread->in_blocked = written && why == RB_VM_TRACE_BLOCKED;
    thread->function = NULL;
    thread->fd_and_1 = 0;
    state->suspended_ns = suspension.ns;
    state->suspensions += written;
}

void
rb_vm_trace_thread_ready_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (!trace_on()) return;
    struct rb_execution_context_struct *waker = rb_vm_trace_host_current();
    thread->ready_stamp = clock_stamp(ticks);
    thread->waker = waker && waker != ec ? rb_vm_trace_host_thread(waker).tid : 0;
}

/* The method that a thread blocked in, as its begin had it. */
static uint32_t
label_of(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
         const struct rb_vm_trace_thread *thread)
{
    if (!thread->label || thread->label_changes == ractor->stacks.changes) return thread->label;
    return rb_vm_trace_stacks_top(&ractor->stacks, ec); /* labels were freed meanwhile, and ids given to others */
}

void
rb_vm_trace_thread_resumed_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    /* A forked child makes its file when it has something to say: this alone is nothing. */
    if (__atomic_load_n(&rb_vm_trace_capture.state, __ATOMIC_ACQUIRE) != VM_TRACE_ON) return;
    struct rb_vm_trace_ractor *ractor = recording_ractor(ec);
    if (!ractor) return;
    bool known = thread->trace == trace_id() && thread->suspended;
    if (!known && !thread->ready_stamp) return; /* it never stopped */
    have_cpu(threads_of(ractor), ec);
    bool preempted = known && thread->why == RB_VM_TRACE_PREEMPTED;
    struct resumption resumption = {
        .thread = thread, .ns = clock_now_ns(&ractor->clock), .ends_blocked = known && thread->in_blocked
    };
    uint64_t least_ns = known ? thread->suspended_ns : rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 });
    if (thread->ready_stamp && !preempted) {
        resumption.ready_ns = clock_stamp_ns(&ractor->clock, thread->ready_stamp);
        if (resumption.ready_ns >= resumption.ns) resumption.ready_ns = resumption.ns - 1;
        if (resumption.ready_ns <= least_ns) resumption.ready_ns = known ? least_ns + 1 : 0;
    }
    if (resumption.ends_blocked) {
        resumption.stack = resumption.ns - thread->suspended_ns >= STACK_FROM_NS && stacks_capture(&ractor->stacks, ec, 0);
        resumption.label = label_of(ractor, ec, thread);
    }
    if (preempted) thread->waker = 0;
    threads_of(ractor)->resumed_ns = resumption.ns;
    thread->trace = trace_id();
    thread->suspended = thread->in_blocked = false;
    rb_vm_trace_event_write(ractor, ec, write_resumed, &resumption);
    thread->ready_stamp = 0;
    thread->label = 0;
}

void
rb_vm_trace_thread_blocks_in_slow(struct rb_vm_trace_thread *thread, const void *function, int fd)
{
    thread->function = function;
    thread->fd_and_1 = fd + 1;
}

void
rb_vm_trace_thread_suspending_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                   enum rb_vm_trace_suspension why)
{
    struct rb_vm_trace_ractor *ractor = trace_on() ? rb_vm_trace_host_ractor(ec) : NULL;
    if (!ractor || ractor == rb_vm_trace_capture.overflow) return;
    struct rb_vm_trace_stacks *stacks = &ractor->stacks;
    thread->stack = false;
    if (why == RB_VM_TRACE_PREEMPTED) {
        thread->stack = clock_now_ns(&ractor->clock) - threads_of(ractor)->resumed_ns >= PREEMPTED_FROM_NS &&
            stacks_capture(stacks, ec, 0) && stacks->walk.count > 0;
        thread->label = thread->stack ? stacks->walk.frames[stacks->walk.count - 1].id : 0;
    }
    else {
        thread->label = rb_vm_trace_stacks_top(stacks, ec);
    }
    thread->label_changes = stacks->changes;
}

/* --- the stream -------------------------------------------------------------------------------- */

static const char *
start_threads(bool by_flags)
{
    static const struct {
        const struct vm_trace_string **string;
        const char *text;
    } names[] = {
        { &category, "blocked" },       { &preempted, "preempted" }, { &fd_name, "fd" },
        { &function_name, "function" }, { &waker_name, "waker" },    { &nameless, "(no method)" }
    };
    (void)by_flags;
    if (!rb_vm_trace_threads.rate) return NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *names[i].string = rb_vm_trace_string_permanent(names[i].text, strlen(names[i].text));
        if (!*names[i].string) return "out of memory";
    }
    ticks = rb_vm_trace_clock_ticks_p();
    rb_vm_trace_threads_on = 1;
    return NULL;
}

static void
stop_threads(void)
{
    rb_vm_trace_threads_on = 0;
}

static void
free_state(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_threads_state *state = threads_of(ractor);
    uint32_t cpu = state->cpu_and_1 ? state->cpu_and_1 - 1 : 0;
    if (cpu) __atomic_fetch_and(&cpus_used[cpu / 64], ~(UINT64_C(1) << cpu % 64), __ATOMIC_RELAXED);
    for (size_t i = 0; i < FUNCTIONS; i++) rb_vm_trace_string_release(state->functions[i].name);
}

static void
count_from_0(struct rb_vm_trace_ractor *ractor)
{
    threads_of(ractor)->suspensions = 0;
}

static void
add_count(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    *stream_counter(&rb_vm_trace_threads, totals, 0) += threads_of(ractor)->suspensions;
}

static const char *const counters[] = { "suspensions", NULL };

struct rb_vm_trace_stream rb_vm_trace_threads = {
    .name = "threads",
    .counters = counters,
    .without_jit = true,
    .ractor_bytes = sizeof(struct vm_trace_threads_state),
    .start = start_threads,
    .stop = stop_threads,
    .ractor_begin = count_from_0,
    .ractor_epoch = count_from_0,
    .ractor_free = free_state,
    .ractor_count = add_count
};
