#ifndef RUBY_VM_TRACE_HOST_H
#define RUBY_VM_TRACE_HOST_H 1
/*
 * The seam between the tracer and the internals of Ruby: all that the tracer needs. host/cruby.c
 * answers it in a Ruby, a fake host in the unit tests. Where nothing else is said, no function
 * allocates a Ruby object, runs Ruby code or takes a lock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rb_execution_context_struct;
struct rb_iseq_struct;
struct rb_vm_trace_exit_info;
struct rb_vm_trace_ractor;

/*
 * One frame as the walk finds it. `pc` and `method` together distinguish it from all other live
 * frames with another label:
 *   Ruby frame   pc = where it goes on, behind the call; method = its method entry, or 0
 *   exit frame   pc = the exiting instruction + HOST_PC_EXACT (its own line, not the one before)
 *   C frame      pc = that of its caller + HOST_PC_CFUNC, for it reads as called from there
 * Instructions are words, so the low bits are free. No pc moves while its ISEQ lives; a
 * method entry may (rb_vm_trace_compacted).
 */
#define HOST_PC_EXACT 1
#define HOST_PC_CFUNC 2
#define HOST_PC_MASK (~(uintptr_t)3)

struct vm_trace_frame {
    uintptr_t pc;
    uintptr_t method;
    uintptr_t kind;                    /* the host's own: what else it knows a frame by that has not changed */
    const struct rb_iseq_struct *iseq; /* if the slot was refilled; valid during the event only */
    uint32_t id;    /* of its label (stack_table.h); 0: not known */
    uint32_t node;  /* of the stack from the outermost frame to this one; 0: not known */
};

/*
 * What a Ruby thread or fiber is known by in a trace (rb_vm_trace_host_thread, host_fiber): an id,
 * and an id of the name that it has now.
 */
#define HOST_SYNTHETIC_THREADS (UINT32_C(1) << 30) /* no system gives its threads such ids */
#define HOST_SYNTHETIC_FIBERS (UINT32_C(3) << 29)
struct vm_trace_thread_id {
    uint64_t name_id;
    uint32_t tid;
};

/* A stack as the walk finds it, outermost frame first. What the last walk found stays in it. */
struct vm_trace_walk {
    struct vm_trace_frame *frames;
    size_t capacity;
    size_t count;
    size_t changed;   /* the first refilled slot; SIZE_MAX: none */
    struct vm_trace_thread_id fiber; /* whose stack it is */
};

/*
 * Walk the stack of `ec`. A slot that holds the same pc and method already keeps its id and
 * node; another one is filled anew with both 0. Slots of zeros hold nothing.
 *
 * `top_pc`, when not 0, is the pc of the innermost frame, for compiled code may know better
 * than the frame does.
 *
 * False when the slots may not be enough: none was touched, and walk->count is how many are.
 */
bool rb_vm_trace_host_walk(struct vm_trace_walk *walk, struct rb_execution_context_struct *ec, uintptr_t top_pc);

/*
 * The innermost frame alone, as a walk fills its slot (id and node are 0). False: there is none that
 * a backtrace shows.
 */
bool rb_vm_trace_host_top(struct rb_execution_context_struct *ec, struct vm_trace_frame *frame_out);

/*
 * Label of a frame: "Owner#method (path:line)", as Ruby's backtraces read. Writes at most
 * `capacity` bytes, not terminated. Returns the full length, which may be more.
 */
size_t rb_vm_trace_host_label(const struct vm_trace_frame *frame, char *buffer, size_t capacity);

/*
 * The method entry whose code, or a block of it, an ISEQ is, as far as the innermost frame of the
 * current thread tells: it does when the JIT compiles what is being called. 0: it does not.
 */
uintptr_t rb_vm_trace_host_method_of(const struct rb_iseq_struct *iseq);

/* Bounds of an ISEQ's instructions, which hold every pc in it; for the time when it is freed. */
void rb_vm_trace_host_iseq_range(const struct rb_iseq_struct *iseq, uintptr_t *from_out, uintptr_t *to_out);

/* The execution context of the current native thread; NULL when it runs no Ruby. */
struct rb_execution_context_struct *rb_vm_trace_host_current(void);

/* What the ractor of `ec` records with, and whether it is the main one. */
bool rb_vm_trace_host_main_ractor_p(struct rb_execution_context_struct *ec);
struct rb_vm_trace_ractor *rb_vm_trace_host_ractor(struct rb_execution_context_struct *ec);

/*
 * Give every live ractor another state: change() is called once for each, with the one it has or
 * NULL. VM lock held.
 */
void rb_vm_trace_host_each_ractor(struct rb_vm_trace_ractor *(*change)(struct rb_vm_trace_ractor *ractor));

/* Give the ractor of `ec` its state. GVL held. */
void rb_vm_trace_host_set_ractor(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor *ractor);

/* Wake the main thread from a blocking call, as a signal does. Any native thread. */
void rb_vm_trace_host_wake_main(void);

/* Notify the hooks that subscribe to exits: runs Ruby code. GVL held. */
void rb_vm_trace_host_notify_hooks(struct rb_execution_context_struct *ec, const struct rb_vm_trace_exit_info *exit);

/* Call func(data) with the world stopped: under the VM lock, every other ractor waiting. */
void rb_vm_trace_host_with_world_stopped(void (*func)(void *data), void *data);

/*
 * The Ruby thread of `ec`; NULL: the current native thread, which runs no Ruby. A Ruby thread that
 * has a native thread for itself has the id of that. Those that share native ones have ids from
 * HOST_SYNTHETIC_THREADS on, which no other Ruby thread of the process gets.
 * rb_vm_trace_thread_renamed reports a change of the name.
 */
struct vm_trace_thread_id rb_vm_trace_host_thread(struct rb_execution_context_struct *ec);

/* Its name (that of the tracer where there is no `ec`); as for host_label. */
size_t rb_vm_trace_host_thread_name(struct rb_execution_context_struct *ec, char *buffer, size_t capacity);

/* Whether no thread has the GVL of the ractor of `ec`. Its scheduler's lock held. */
bool rb_vm_trace_host_gvl_free_p(struct rb_execution_context_struct *ec);

/*
 * The fiber of `ec`, which the current thread runs: that of its thread where it is the thread's
 * own, or there is no memory; others have ids from HOST_SYNTHETIC_FIBERS on (base/fiber_tracks.h).
 */
struct vm_trace_thread_id rb_vm_trace_host_fiber(struct rb_execution_context_struct *ec);

/* Its name; as for host_label. */
size_t rb_vm_trace_host_fiber_name(struct rb_execution_context_struct *ec, char *buffer, size_t capacity);

/*
 * Offset of the ractor in a thread, and of the field that rb_vm_trace_host_ractor reads in a
 * ractor, in bytes.
 */
size_t rb_vm_trace_host_thread_offset(void);
size_t rb_vm_trace_host_ractor_offset(void);

/*
 * Name of the class of an object, which may be half made: it has its class and flags. "String",
 * "#<Class(String)>" of an unnamed subclass, "(array)" for the type of one that Ruby code never
 * sees. As for host_label.
 */
size_t rb_vm_trace_host_class_name(uintptr_t object, char *buffer, size_t capacity);

/*
 * Clear what its allocator has not filled yet of an object: another ractor's collection may look
 * into it wherever this one waits for a lock.
 */
void rb_vm_trace_host_clear_object(uintptr_t object);

/* Where an object is now, while a compaction updates references. */
uintptr_t rb_vm_trace_host_moved_to(uintptr_t object);

/* RUBY_DESCRIPTION; static or for ever. */
const char *rb_vm_trace_host_description(void);

/* Name of the base that was patched, or "". */
const char *rb_vm_trace_host_base(void);

#endif /* RUBY_VM_TRACE_HOST_H */
