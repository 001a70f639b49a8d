#ifndef RUBY_VM_TRACE_STREAMS_STATES_LEVELS_H
#define RUBY_VM_TRACE_STREAMS_STATES_LEVELS_H 1
/*
 * Execution states: whether a thread runs compiled code or the interpreter, and why the interpreter.
 *
 * Each execution context has a stack of levels. A level begins when compiled code or a frame without
 * compiled code is entered, and ends with that frame. The innermost level is the state. The time from
 * one change of state to the next is added to the state that ends, so each nanosecond of a thread
 * belongs to one state. When compiled code exits, its level changes from `compiled` to `exited` until
 * its frame ends: the exit lost that time, without inner levels (compiled callees).
 *
 *     Ruby frames     main ─ A ─ B        B exits: A and B continue in the interpreter
 *     levels          uncompiled(main) ─ exited(A), was compiled(A)
 *
 * A thread's frames are next to each other in memory, inner ones at lower addresses. So a level whose
 * frame is below the innermost frame has ended, even if no hook reported it.
 */

#include "vm_trace/capture/event.h"
#include "vm_trace/streams/exit_state.h"

/* X(name, argument of the event). The states. */
#define VM_TRACE_EXECUTION_STATES(X) \
    X(COMPILED, "compiled") X(EXITED, "exited") X(UNCOMPILED, "uncompiled") X(UNCOMPILABLE, "uncompilable") \
    X(REPROFILED, "reprofiled") X(FALLBACK, "fallback") X(C_FUNCTION, "c_function") X(COMPILING, "compiling") \
    X(GC, "gc") X(WAITING, "waiting") X(NO_CPU, "no_cpu") X(BLOCKED, "blocked") X(UNSEEN, "unseen")

enum vm_trace_execution {
#define X(name, text) VM_TRACE_##name,
    VM_TRACE_EXECUTION_STATES(X)
#undef X
    VM_TRACE_EXECUTIONS
};

static inline bool
interpreted_p(enum vm_trace_execution state)
{
    return state == VM_TRACE_EXITED || state == VM_TRACE_UNCOMPILED || state == VM_TRACE_UNCOMPILABLE ||
        state == VM_TRACE_REPROFILED;
}

/* What is known of the calls of an ISEQ (call_times.h). */
struct vm_trace_call_times;

struct vm_trace_level {
    uintptr_t frame;             /* it ends with this frame; UINTPTR_MAX: never */
    uint64_t begin_ns;           /* 0: it has no slice */
    uint64_t lost_ns;            /* in `exited`, with inner levels of the same exit */
    uint64_t interpreted_ns, ran_ns; /* values of the execution context when it began */
    struct vm_trace_last_exit exit; /* that led to `exited` */
    const struct rb_iseq_struct *iseq; /* of the frame; NULL: not known */
    struct vm_trace_call_times *call_times; /* NULL: the call is not timed */
    enum vm_trace_execution call_state; /* the state that it counts as in call_times */
    unsigned weight;             /* number of calls that it stands for */
    uint64_t call_ns;            /* when it began */
    uintptr_t c_method;          /* identifies a method in C; 0: not a method in C */
    enum vm_trace_execution state;
    bool inherited;              /* it is `exited` because of the exit of an outer level */
};

/* Of a thread: the sums of all its fibers. */
struct vm_trace_thread_times {
    struct vm_trace_thread_times *next, **link;
    struct rb_vm_trace_states *running; /* its execution context that ran last; NULL: it has ended */
    uint64_t trace;              /* that all this belongs to (trace_id) */
    uint32_t epoch;              /* and since which reset */
    uint32_t contexts;           /* number of execution contexts that point here */
    bool ended;
    struct vm_trace_thread_id id;
    struct vm_trace_string *name; /* that the thread had at first */
    uint64_t left_ns;            /* when it left one of them for an unknown one; 0: it did not */
    uint64_t ns[VM_TRACE_EXECUTIONS];
    struct vm_trace_cpu_look {
        uint64_t due_ns;         /* the first change of state from then on is the next look */
        uint64_t ns, cpu_ns;     /* time, and CPU time of the native thread */
        uint64_t not_run_ns;     /* sum of the states in which it had no GVL, or no CPU */
        const char *native;      /* identifies the native thread; NULL: there was no look */
    } look;                      /* the last one at the CPU time of the thread */
    uint64_t changes;            /* of state */
    uint64_t left_out;           /* slices that were too short to be written */
};

/* Of an execution context. Used by the thread that runs it, GVL held. */
struct rb_vm_trace_states {
    struct rb_vm_trace_states_head head;
    struct rb_vm_trace_states *next, **link;
    struct rb_vm_trace_states **slot; /* of the execution context, that points here */
    struct rb_execution_context_struct *ec;
    struct vm_trace_thread_times *times;
    uint64_t trace;
    uint32_t generation;         /* of the list that it is in */
    uint32_t track;              /* number of its track of slices; 0: none yet */
    uint64_t since_ns;           /* the state is on since then; 0: it is paused */
    uint64_t paused_ns;          /* since then */
    uint64_t interpreted_ns;     /* so far, whatever the reason */
    uint64_t ran_ns;             /* so far, in any state but `compiling` */
    uint64_t short_c_ns;         /* of methods in C since then that were not timed */
    uint32_t untimed;            /* entries into compiled code until one is timed */
    uint32_t random;             /* the last number of its generator */
    size_t depth, capacity;      /* the innermost level is levels[depth] */
    struct vm_trace_level *levels;
};

#endif /* RUBY_VM_TRACE_STREAMS_STATES_LEVELS_H */
