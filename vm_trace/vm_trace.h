#ifndef RUBY_VM_TRACE_VM_TRACE_H
#define RUBY_VM_TRACE_VM_TRACE_H 1
/*
 * What the VM calls. JITs call more: vm_trace_jit.h. The folder vm_trace/ has nothing to do with
 * the file vm_trace.c beside it, which is TracePoint; extensions include ruby/vm_trace.h.
 *
 * When the module is built out (USE_VM_TRACE is 0) every function below is a stub that does
 * nothing, so call sites carry no #if.
 *
 * Rules for all of them, unless stated otherwise: they allocate no Ruby object, raise nothing,
 * never block on another ractor's work, and after any failure the program runs on as if it were not
 * traced.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef USE_VM_TRACE
# define USE_VM_TRACE 1
#endif

struct rb_control_frame_struct;
struct rb_execution_context_struct;
struct rb_iseq_struct;
struct rb_ractor_struct;

/*
 * What one ractor records with: its writer, its tables, and the two words that machine code
 * touches. It hangs on the ractor and is never NULL while a trace is recorded and code of the
 * ractor runs.
 */
struct rb_vm_trace_ractor;

/*
 * What is remembered of a Ruby thread: RB_VM_TRACE_THREAD_BYTES in rb_thread_t, zeros at first. The
 * host has the first three words, the stream `threads` the others.
 */
struct rb_vm_trace_thread;
struct rb_vm_trace_states; /* of an execution context: a word of it that is zero when it is made */
struct rb_vm_trace_calls;  /* likewise */
#define RB_VM_TRACE_THREAD_BYTES 96

/* Why a thread gives up the GVL. */
enum rb_vm_trace_suspension {
    RB_VM_TRACE_BLOCKED,   /* it waits for something else than the GVL */
    RB_VM_TRACE_PREEMPTED, /* its time slice is over: it wants to go on */
    RB_VM_TRACE_DEAD,
    RB_VM_TRACE_BARRIER    /* another ractor stops the world; it keeps the GVL */
};

/* The argument of hooks of RUBY_INTERNAL_EVENT_JIT_EXIT and its like. Valid while they run. */
struct rb_vm_trace_exit_info {
    const char *jit;
    const char *reason, *insn;    /* UTF-8, not terminated */
    size_t reason_len, insn_len;  /* bytes */
    uint32_t version;
    const char *outcome;          /* NULL: the exit cannot cause a recompilation */
};

/*
 * Why a collection runs: bits of the `reason` of rb_vm_trace_gc_start, which are the GC's own (a
 * patch asserts it). The first five say why it is major, the others what began it.
 */
#define RB_VM_TRACE_GC_NOFREE 0x001
#define RB_VM_TRACE_GC_OLDGEN 0x002
#define RB_VM_TRACE_GC_SHADY 0x004
#define RB_VM_TRACE_GC_FORCE 0x008
#define RB_VM_TRACE_GC_OLDMALLOC 0x020
#define RB_VM_TRACE_GC_NEWOBJ 0x100
#define RB_VM_TRACE_GC_MALLOC 0x200
#define RB_VM_TRACE_GC_METHOD 0x400
#define RB_VM_TRACE_GC_CAPI 0x800
#define RB_VM_TRACE_GC_STRESS 0x1000

/* What a pause consists of. The same one may begin again inside itself. */
enum rb_vm_trace_gc_phase {
    RB_VM_TRACE_GC_MARK,
    RB_VM_TRACE_GC_SWEEP,
    RB_VM_TRACE_GC_COMPACT,   /* inside a sweep */
    RB_VM_TRACE_GC_PHASES
};

/* What rb_vm_trace_allocation_gap returns at most. */
#define RB_VM_TRACE_MOST_OBJECTS ((size_t)1 << 48)

#if USE_VM_TRACE
/* --- hooks of exits (world stopped) -------------------------------------------------- */

/*
 * Whether hooks subscribe to exits (vm_trace.c): then rb_exec_jit_event_hooks is called for each
 * one. Under the VM lock.
 */
void rb_vm_trace_subscribe(bool on);

/* --- options ------------------------------------------------------------------------- */

/*
 * Parse an option of --vm-trace, without its "--": "vm-trace=exits:rate=97,markers",
 * "vm-trace-file=PATH". It is kept for the next function. False: one line on stderr says what is
 * wrong, and what there is.
 */
bool rb_vm_trace_parse_vm_option(const char *text);

/*
 * Start what --vm-trace requested, beside what flags of the JIT have started. Called once, when a
 * JIT is on or will not be, before the program runs. Where a stream can't be recorded, or the file
 * can't be made, a line on stderr says so, and the program runs.
 */
void rb_vm_trace_start_requested(void);

/* --- what is freed and moved --------------------------------------------------------- */

/*
 * An ISEQ, a method entry, or a class (or module) is freed. Called by the GC, which may run beside
 * other ractors.
 */
void rb_vm_trace_iseq_free(const struct rb_iseq_struct *iseq);
void rb_vm_trace_method_free(const void *method_entry);
void rb_vm_trace_class_free(uintptr_t klass);

/* Objects have moved. Called with every ractor stopped. */
void rb_vm_trace_compacted(void);

/* --- garbage collection -------------------------------------------------------------- */

/*
 * Not 0 while collections are recorded, or samples; changes with the world stopped. The GC calls the
 * functions of this part only then.
 *
 * The thread that collects calls them, with the GVL. They take no VM lock and allocate no memory of
 * Ruby's. One pause, from gc_enter to gc_exit in CRuby's GC, is
 *     rb_vm_trace_gc_enter
 *     rb_vm_trace_gc_stopped                 if it waited for other ractors
 *     rb_vm_trace_gc_start or _continue      else it belongs to no collection: nothing is recorded
 *     rb_vm_trace_gc_begin, rb_vm_trace_gc_end ...
 *     rb_vm_trace_gc_exit
 * Calls that a trace did not see the beginning of do nothing.
 *
 * They are exported: a GC may be a shared object.
 */
# if defined(__GNUC__)
#  pragma GCC visibility push(default)
# endif
extern int rb_vm_trace_gc_on;
enum { RB_VM_TRACE_COLLECTIONS_RECORDED = 1, RB_VM_TRACE_COLLECTIONS_SAMPLED = 2 }; /* its bits */

/* A pause begins, before other ractors are stopped. `malloc_bytes`: malloc'ed since the last collection. */
void rb_vm_trace_gc_enter(size_t malloc_bytes);

/* It has waited until all other ractors were stopped. */
void rb_vm_trace_gc_stopped(void);

/* A collection begins in this pause: number `count`, as GC.count, because of `reason` (see above). */
void rb_vm_trace_gc_start(size_t count, bool major, unsigned int reason);

/* Or the last one that began goes on in it: incremental marking, lazy sweeping. */
void rb_vm_trace_gc_continue(size_t count, bool major);

/*
 * A phase begins, ends. `freed_slots`: slots of the heap that have ever been freed, of a sweep; 0
 * of others. No object may be half moved.
 */
void rb_vm_trace_gc_begin(enum rb_vm_trace_gc_phase phase, size_t freed_slots);
void rb_vm_trace_gc_end(enum rb_vm_trace_gc_phase phase, size_t freed_slots);

/*
 * The pause ends, and phases that are open. What the heap has now: its pages in bytes, slots with
 * an object. `ractor_heap`: each ractor has a heap of its own.
 */
void rb_vm_trace_gc_exit(size_t heap_bytes, size_t live_slots, bool ractor_heap);
# if defined(__GNUC__)
#  pragma GCC visibility pop
# endif

/* --- allocations -----------------------------------------------------------------------
 *
 * The allocator counts the objects of each heap (all slots of one size) down to the next sample and
 * calls nothing in between:
 *     rb_vm_trace_allocation_gap     returns how many objects it is to the next sample
 *     rb_vm_trace_allocation_due     the object that is being allocated is a sample
 *     rb_vm_trace_allocated          the sample has its class now
 * The functions are exported, because a GC may be a shared object.
 */
# if defined(__GNUC__)
#  pragma GCC visibility push(default)
# endif

/* Not 0 while allocations are sampled; changes with the world stopped. */
extern int rb_vm_trace_allocations_on;

/* The number of samples that have no class yet. */
extern unsigned rb_vm_trace_allocations_due;

/*
 * A GC that can sample calls this before the program runs. `begin_gaps` is called with the world
 * stopped when sampling has begun or ended. It makes each heap start a new count. `slot_p` says whether a
 * word is the address of a slot of `objspace`, used or free; called in a collection or with the world stopped.
 */
void rb_vm_trace_allocations_supported(void (*begin_gaps)(void), bool (*slot_p)(void *objspace, uintptr_t word));

/* Buffers of so many bytes may be samples. SIZE_MAX: none is. Changes with the world stopped. */
extern size_t rb_vm_trace_buffers_from;

/*
 * The number of objects up to and including the next sample, for a heap with slots of that size: 1 to
 * RB_VM_TRACE_MOST_OBJECTS, random, another one at each call. Any thread.
 */
size_t rb_vm_trace_allocation_gap(size_t slot_bytes);

/*
 * The slot that the current thread has just taken is a sample. `objspace` is the one that
 * rb_vm_trace_allocations_marked will be called with. The caller allocates no other object before
 * rb_vm_trace_allocated.
 */
void rb_vm_trace_allocation_due(void *objspace, size_t slot_bytes);

/*
 * All live objects of `objspace` are marked, and none is swept yet. `alive` says whether an object is
 * marked. Called by the thread that collects.
 */
void rb_vm_trace_allocations_marked(void *objspace, bool (*alive)(void *objspace, uintptr_t object));

/* All objects of `from` belong to `to` now. No collection of `from` runs any more. */
void rb_vm_trace_allocations_absorbed(void *to, const void *from);

void rb_vm_trace_allocated_slow(uintptr_t object);
void rb_vm_trace_buffer_allocated_slow(void *objspace, const void *buffer, size_t bytes);
# if defined(__GNUC__)
#  pragma GCC visibility pop
# endif

/* The object has its class and flags, and nothing else yet. Called by the thread that allocates it. */
static inline void
rb_vm_trace_allocated(uintptr_t object)
{
    if (__builtin_expect(rb_vm_trace_allocations_due, 0)) rb_vm_trace_allocated_slow(object);
}

/*
 * malloc, calloc or realloc returned `buffer`, which no object refers to yet; a collection may run here. `bytes` as
 * requested. Any thread, also without the GVL, and in a collection.
 */
static inline void
rb_vm_trace_buffer_allocated(void *objspace, const void *buffer, size_t bytes)
{
    if (__builtin_expect(bytes >= rb_vm_trace_buffers_from, 0)) {
        rb_vm_trace_buffer_allocated_slow(objspace, buffer, bytes);
    }
}

/* --- ractors, threads, forks --------------------------------------------------------- */

/* The state of a new ractor; called before it runs. Any thread. NULL: nothing is traced. */
struct rb_vm_trace_ractor *rb_vm_trace_ractor_new(void);

/*
 * The ractor has ended. Called once, when none of its code can run any more and it leaves the VM,
 * or, if it never began, when it is collected. Other ractors use the rest of its chunk. Takes NULL.
 */
void rb_vm_trace_ractor_free(struct rb_vm_trace_ractor *ractor);

/* Around fork(2); `pid` is what it returned. Main ractor, GVL held. */
void rb_vm_trace_before_fork(void);
void rb_vm_trace_after_fork(long pid);

/* Right before execve(2), which may fail: what the tracer's threads have not written yet is written. GVL held. */
void rb_vm_trace_before_exec(void);

/*
 * A fiber has ended, or is freed: the next one can reuse its track. `track` is a word of its execution
 * context, which begins as zero. Any thread.
 */
void rb_vm_trace_fiber_ended_slow(uint32_t *track);

static inline void
rb_vm_trace_fiber_ended(uint32_t *track)
{
    if (__builtin_expect(*track, 0)) rb_vm_trace_fiber_ended_slow(track);
}

/* A thread has a new name. Called by a thread of the same ractor, with the GVL. */
void rb_vm_trace_thread_renamed(void);

/* --- states of threads ----------------------------------------------------------------
 *
 * Each costs a branch where nothing of that is recorded. `ec` is that of the thread that is
 * meant, `thread` its memory.
 */
/*
 * Bits: the stream `threads` is recorded; native threads note what they run (streams/kernel/native_threads.h);
 * the stream `samples` is recorded; the stream `fibers` is.
 */
extern uint8_t rb_vm_trace_threads_on; /* a byte: one instruction compares it with 0 where it is */
enum {
    RB_VM_TRACE_THREADS_STATES = 1, RB_VM_TRACE_THREADS_NATIVE = 2, RB_VM_TRACE_THREADS_SAMPLES = 4,
    RB_VM_TRACE_THREADS_FIBERS = 8
};

/*
 * streams/thread_hooks.c hands these to the streams that are recorded. They are cold, so that what prepares a
 * call is not where nothing is recorded.
 */
# define COLD __attribute__((cold))
void rb_vm_trace_thread_suspended_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                       enum rb_vm_trace_suspension why) COLD;
void rb_vm_trace_thread_ready_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread) COLD;
void rb_vm_trace_thread_resumed_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread) COLD;
void rb_vm_trace_thread_blocks_in_slow(struct rb_vm_trace_thread *thread, const void *function, int fd) COLD;
void rb_vm_trace_thread_suspending_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                        enum rb_vm_trace_suspension why) COLD;
void rb_vm_trace_barrier_joined_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread) COLD;
void rb_vm_trace_barrier_complete_slow(struct rb_vm_trace_thread *thread) COLD;
void rb_vm_trace_barrier_left_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread) COLD;
void rb_vm_trace_fiber_ready_slow(uintptr_t fiber) COLD;
# undef COLD

/*
 * CRuby calls Fiber::Scheduler#unblock for a fiber: from now on it could run. `fiber` is a Ruby object. Any thread of the
 * fiber's ractor, GVL held.
 */
static inline void
rb_vm_trace_fiber_ready(uintptr_t fiber)
{
    if (__builtin_expect(rb_vm_trace_threads_on, 0)) rb_vm_trace_fiber_ready_slow(fiber);
}

/*
 * The current thread, which has its GVL, is interrupted as the tracer wanted (rb_vm_trace_host_interrupt).
 * Called where Ruby checks for interrupts.
 */
void rb_vm_trace_interrupted(struct rb_execution_context_struct *ec);

/*
 * The current thread gives up the GVL, which it still holds, after rb_vm_trace_thread_suspending. The lock of
 * its ractor's scheduler may be held: only words are stored.
 */
static inline void
rb_vm_trace_thread_suspended(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                             enum rb_vm_trace_suspension why)
{
    if (__builtin_expect(rb_vm_trace_threads_on, 0)) rb_vm_trace_thread_suspended_slow(ec, thread, why);
}

/*
 * The thread waits for the GVL from now on. Called by whoever wakes it, with the lock of the
 * scheduler of the thread's ractor, with or without a GVL: only words are stored.
 */
static inline void
rb_vm_trace_thread_ready(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (__builtin_expect(rb_vm_trace_threads_on, 0)) rb_vm_trace_thread_ready_slow(ec, thread);
}

/*
 * The thread has the GVL and runs on, if it gave it up or was about to. Called by itself, without that lock
 * or the ractor's, for naming a method may need the VM lock.
 */
static inline void
rb_vm_trace_thread_resumed(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (__builtin_expect(rb_vm_trace_threads_on, 0)) rb_vm_trace_thread_resumed_slow(ec, thread);
}

/*
 * What the current thread is about to block in: a function that runs without the GVL (NULL: not
 * known), and a file descriptor (-1: none). GVL held.
 */
static inline void
rb_vm_trace_thread_blocks_in(struct rb_vm_trace_thread *thread, const void *function, int fd)
{
    if (__builtin_expect(rb_vm_trace_threads_on, 0)) rb_vm_trace_thread_blocks_in_slow(thread, function, fd);
}

/*
 * The current thread is about to give up the GVL. This writes all there is to write, with the GVL and
 * without a lock of the scheduler or of the ractor. It may still find that it need not wait: then
 * rb_vm_trace_thread_resumed comes next. One that is preempted calls this if others seem to wait.
 */
static inline void
rb_vm_trace_thread_suspending(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                              enum rb_vm_trace_suspension why)
{
    if (__builtin_expect(rb_vm_trace_threads_on, 0)) rb_vm_trace_thread_suspending_slow(ec, thread, why);
}

/*
 * The current thread is about to stop for another ractor's barrier. That ractor still waits for it, so
 * no trace starts or stops meanwhile. Called without the VM's lock, so that nobody waits longer for
 * that.
 */
static inline void
rb_vm_trace_barrier_joined(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (__builtin_expect(rb_vm_trace_threads_on, 0)) rb_vm_trace_barrier_joined_slow(ec, thread);
}

/*
 * All have stopped for the current thread's barrier. `thread` is the running one of another ractor.
 * Called with the lock of the list of running threads.
 */
static inline void
rb_vm_trace_barrier_complete(struct rb_vm_trace_thread *thread)
{
    if (__builtin_expect(rb_vm_trace_threads_on, 0)) rb_vm_trace_barrier_complete_slow(thread);
}

/* The thread runs on. Called by itself when the next barrier has to wait for it again. */
static inline void
rb_vm_trace_barrier_left(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (__builtin_expect(rb_vm_trace_threads_on, 0)) rb_vm_trace_barrier_left_slow(ec, thread);
}

/* --- frames ---------------------------------------------------------------------------
 *
 * For the streams `states` (whether a thread runs compiled code or the interpreter) and `calls`
 * (when each frame begins and ends). While one of them is recorded, compiled code is entered through
 * the functions below. A frame that is watched carries RB_VM_TRACE_FRAME_FLAG among its flags, so
 * that whoever pops it reports that. Compiled code does not look at the flag. Where it pushes and pops
 * frames, `calls` patches it (rb_vm_trace_frame_pushed and _frames_popped in vm_trace_jit.h).
 */
/* A bit of a frame's flags that CRuby does not use. */
#define RB_VM_TRACE_FRAME_FLAG 0x8000

/*
 * Bits: which of the two are recorded, and of entries into compiled code also the stream `samples`.
 * Changes with the world stopped.
 */
extern uint8_t rb_vm_trace_frames_on, rb_vm_trace_entries_on;
enum { RB_VM_TRACE_FRAMES_STATES = 1, RB_VM_TRACE_FRAMES_CALLS = 2, RB_VM_TRACE_FRAMES_SAMPLES = 4 };

typedef uintptr_t (*rb_vm_trace_compiled_code)(struct rb_execution_context_struct *ec,
                                               struct rb_control_frame_struct *cfp);

uintptr_t rb_vm_trace_run_compiled_slow(struct rb_execution_context_struct *ec, struct rb_control_frame_struct *cfp,
                                        rb_vm_trace_compiled_code code);
uintptr_t rb_vm_trace_run_handler_slow(struct rb_execution_context_struct *ec, struct rb_control_frame_struct *cfp,
                                       rb_vm_trace_compiled_code code);

/*
 * The innermost frame begins in the interpreter, for its ISEQ has no compiled code. This is its
 * call number `calls` without, of `threshold` after which it is compiled. GVL held.
 */
void rb_vm_trace_uncompiled_slow(struct rb_execution_context_struct *ec, uint64_t calls, uint64_t threshold);

/* The same where no JIT is on. Called only while the stream `calls` has set the VM's entry. */
void rb_vm_trace_interpreted(struct rb_execution_context_struct *ec);

/* A frame with the flag was popped. By the thread itself, GVL held. */
void rb_vm_trace_frame_popped(struct rb_execution_context_struct *ec);

/* A method in C begins in the innermost frame, called by the VM's own code. GVL held. */
void rb_vm_trace_c_called_slow(struct rb_execution_context_struct *ec);

/* The innermost frame begins in another way: the body of a class, a tail call. GVL held. */
void rb_vm_trace_frame_begun_slow(struct rb_execution_context_struct *ec);

/* An exception is handled in the innermost frame, which the interpreter runs from now on. */
void rb_vm_trace_unwound_slow(struct rb_execution_context_struct *ec);

/* The thread runs another fiber, whose execution context is the current one by now. */
void rb_vm_trace_fiber_switched_slow(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to);

/*
 * The execution context ends; the words are those of it. By the thread that runs it, GVL held, or by
 * any when it runs no more.
 */
void rb_vm_trace_states_ended_slow(struct rb_vm_trace_states **states);
void rb_vm_trace_calls_ended_slow(struct rb_vm_trace_calls **calls);

/* Run the compiled code of the frame `cfp`, which begins; returns what it does. GVL held. */
static inline uintptr_t
rb_vm_trace_run_compiled(struct rb_execution_context_struct *ec, struct rb_control_frame_struct *cfp,
                         rb_vm_trace_compiled_code code)
{
    if (__builtin_expect(rb_vm_trace_entries_on, 0)) return rb_vm_trace_run_compiled_slow(ec, cfp, code);
    return code(ec, cfp);
}

/* The same for a frame that goes on after rb_vm_trace_unwound. */
static inline uintptr_t
rb_vm_trace_run_handler(struct rb_execution_context_struct *ec, struct rb_control_frame_struct *cfp,
                        rb_vm_trace_compiled_code code)
{
    if (__builtin_expect(rb_vm_trace_entries_on, 0)) return rb_vm_trace_run_handler_slow(ec, cfp, code);
    return code(ec, cfp);
}

static inline void
rb_vm_trace_uncompiled(struct rb_execution_context_struct *ec, uint64_t calls, uint64_t threshold)
{
    if (__builtin_expect(rb_vm_trace_frames_on, 0)) rb_vm_trace_uncompiled_slow(ec, calls, threshold);
}

static inline void
rb_vm_trace_c_called(struct rb_execution_context_struct *ec)
{
    if (__builtin_expect(rb_vm_trace_frames_on, 0)) rb_vm_trace_c_called_slow(ec);
}

static inline void
rb_vm_trace_frame_begun(struct rb_execution_context_struct *ec)
{
    if (__builtin_expect(rb_vm_trace_frames_on, 0)) rb_vm_trace_frame_begun_slow(ec);
}

static inline void
rb_vm_trace_unwound(struct rb_execution_context_struct *ec)
{
    if (__builtin_expect(rb_vm_trace_entries_on, 0)) rb_vm_trace_unwound_slow(ec);
}

static inline void
rb_vm_trace_fiber_switched(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to)
{
    if (__builtin_expect(rb_vm_trace_frames_on | rb_vm_trace_threads_on, 0)) rb_vm_trace_fiber_switched_slow(from, to);
}

static inline void
rb_vm_trace_states_ended(struct rb_vm_trace_states **states)
{
    if (__builtin_expect(*states != NULL, 0)) rb_vm_trace_states_ended_slow(states);
}

static inline void
rb_vm_trace_calls_ended(struct rb_vm_trace_calls **calls)
{
    if (__builtin_expect(*calls != NULL, 0)) rb_vm_trace_calls_ended_slow(calls);
}

/* --- signals ------------------------------------------------------------------------- */

/*
 * In a handler of SIGBUS, before anything else: true when the address is in a part of the trace
 * file that someone cut off. Then memory is there now, and the handler returns. Async-signal-safe.
 */
bool rb_vm_trace_fault(const void *address);

/* --- Ruby ---------------------------------------------------------------------------- */

/* Define RubyVM::Trace with the methods of the flight recorder. Called once, when the VM boots. */
void rb_vm_trace_define_recorder(void);

/* --- end ----------------------------------------------------------------------------- */

/* All objects are freed from now on. Main thread, alone, before rb_vm_trace_shutdown. */
void rb_vm_trace_finalizing(void);

/* End the trace: write counts and summary, close the file, print one line about it on stderr. */
void rb_vm_trace_shutdown(void);

#else /* !USE_VM_TRACE */
# ifndef RB_VM_TRACE_STUB
#  define RB_VM_TRACE_STUB static inline
# endif
RB_VM_TRACE_STUB bool rb_vm_trace_parse_vm_option(const char *text) { return false; }
RB_VM_TRACE_STUB void rb_vm_trace_start_requested(void) {}
RB_VM_TRACE_STUB void rb_vm_trace_subscribe(bool on) {}
RB_VM_TRACE_STUB void rb_vm_trace_iseq_free(const struct rb_iseq_struct *iseq) {}
RB_VM_TRACE_STUB void rb_vm_trace_method_free(const void *method_entry) {}
RB_VM_TRACE_STUB void rb_vm_trace_class_free(uintptr_t klass) {}
RB_VM_TRACE_STUB void rb_vm_trace_compacted(void) {}
# define rb_vm_trace_gc_on 0
RB_VM_TRACE_STUB void rb_vm_trace_gc_enter(size_t malloc_bytes) {}
RB_VM_TRACE_STUB void rb_vm_trace_gc_stopped(void) {}
RB_VM_TRACE_STUB void rb_vm_trace_gc_start(size_t count, bool major, unsigned int reason) {}
RB_VM_TRACE_STUB void rb_vm_trace_gc_continue(size_t count, bool major) {}
RB_VM_TRACE_STUB void rb_vm_trace_gc_begin(enum rb_vm_trace_gc_phase phase, size_t freed_slots) {}
RB_VM_TRACE_STUB void rb_vm_trace_gc_end(enum rb_vm_trace_gc_phase phase, size_t freed_slots) {}
RB_VM_TRACE_STUB void rb_vm_trace_gc_exit(size_t heap_bytes, size_t live_slots, bool ractor_heap) {}
# define rb_vm_trace_allocations_on 0
RB_VM_TRACE_STUB void rb_vm_trace_allocations_supported(void (*begin_gaps)(void), bool (*slot_p)(void *objspace, uintptr_t word)) {}
RB_VM_TRACE_STUB size_t rb_vm_trace_allocation_gap(size_t slot_bytes) { return RB_VM_TRACE_MOST_OBJECTS; }
RB_VM_TRACE_STUB void rb_vm_trace_allocation_due(void *objspace, size_t slot_bytes) {}
RB_VM_TRACE_STUB void rb_vm_trace_allocations_marked(void *objspace, bool (*alive)(void *objspace, uintptr_t object)) {}
RB_VM_TRACE_STUB void rb_vm_trace_allocations_absorbed(void *to, const void *from) {}
RB_VM_TRACE_STUB void rb_vm_trace_allocated(uintptr_t object) {}
RB_VM_TRACE_STUB void rb_vm_trace_buffer_allocated(void *objspace, const void *buffer, size_t bytes) {}
RB_VM_TRACE_STUB struct rb_vm_trace_ractor *rb_vm_trace_ractor_new(void) { return NULL; }
RB_VM_TRACE_STUB void rb_vm_trace_ractor_free(struct rb_vm_trace_ractor *ractor) {}
RB_VM_TRACE_STUB void rb_vm_trace_before_fork(void) {}
RB_VM_TRACE_STUB void rb_vm_trace_after_fork(long pid) {}
RB_VM_TRACE_STUB void rb_vm_trace_before_exec(void) {}
RB_VM_TRACE_STUB void rb_vm_trace_fiber_ended(uint32_t *track) {}
RB_VM_TRACE_STUB void rb_vm_trace_fiber_ready(uintptr_t fiber) {}
RB_VM_TRACE_STUB void rb_vm_trace_thread_renamed(void) {}
# define rb_vm_trace_threads_on 0
RB_VM_TRACE_STUB void rb_vm_trace_thread_suspended(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread, enum rb_vm_trace_suspension why) {}
RB_VM_TRACE_STUB void rb_vm_trace_thread_ready(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread) {}
RB_VM_TRACE_STUB void rb_vm_trace_thread_resumed(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread) {}
RB_VM_TRACE_STUB void rb_vm_trace_thread_blocks_in(struct rb_vm_trace_thread *thread, const void *function, int fd) {}
RB_VM_TRACE_STUB void rb_vm_trace_thread_suspending(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread, enum rb_vm_trace_suspension why) {}
RB_VM_TRACE_STUB void rb_vm_trace_interrupted(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void rb_vm_trace_barrier_joined(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread) {}
RB_VM_TRACE_STUB void rb_vm_trace_barrier_complete(struct rb_vm_trace_thread *thread) {}
RB_VM_TRACE_STUB void rb_vm_trace_barrier_left(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread) {}
# define rb_vm_trace_frames_on 0
# define RB_VM_TRACE_FRAME_FLAG 0
typedef uintptr_t (*rb_vm_trace_compiled_code)(struct rb_execution_context_struct *ec,
                                               struct rb_control_frame_struct *cfp);
RB_VM_TRACE_STUB uintptr_t
rb_vm_trace_run_compiled(struct rb_execution_context_struct *ec, struct rb_control_frame_struct *cfp,
                         rb_vm_trace_compiled_code code)
{
    return code(ec, cfp);
}
RB_VM_TRACE_STUB uintptr_t
rb_vm_trace_run_handler(struct rb_execution_context_struct *ec, struct rb_control_frame_struct *cfp,
                        rb_vm_trace_compiled_code code)
{
    return code(ec, cfp);
}
RB_VM_TRACE_STUB void
rb_vm_trace_uncompiled(struct rb_execution_context_struct *ec, uint64_t calls, uint64_t threshold) {}
RB_VM_TRACE_STUB void rb_vm_trace_interpreted(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void rb_vm_trace_frame_begun(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void rb_vm_trace_calls_ended(struct rb_vm_trace_calls **calls) {}
RB_VM_TRACE_STUB void rb_vm_trace_frame_popped(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void rb_vm_trace_c_called(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void rb_vm_trace_unwound(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void
rb_vm_trace_fiber_switched(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to) {}
RB_VM_TRACE_STUB void rb_vm_trace_states_ended(struct rb_vm_trace_states **states) {}
RB_VM_TRACE_STUB bool rb_vm_trace_fault(const void *address) { return false; }
RB_VM_TRACE_STUB void rb_vm_trace_define_recorder(void) {}
RB_VM_TRACE_STUB void rb_vm_trace_finalizing(void) {}
RB_VM_TRACE_STUB void rb_vm_trace_shutdown(void) {}
#endif /* USE_VM_TRACE */

#endif /* RUBY_VM_TRACE_VM_TRACE_H */
