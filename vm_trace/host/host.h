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
struct rb_vm_trace_thread;

/*
 * One frame as the walk finds it. `pc` and `method` together distinguish it from all other live
 * frames with another label:
 *   Ruby frame   pc = where it goes on, behind the call; method = its method entry, or 0
 *   exit frame   pc = the exiting instruction + HOST_PC_EXACT (its own line, not the one before)
 *   C frame      pc = that of its caller + HOST_PC_CFUNC, for it reads as called from there
 *   call         pc = the first instruction (in C: 0) + HOST_PC_CALL (rb_vm_trace_host_call_label)
 * Instructions are words, so the low bits are free. No pc moves while its ISEQ lives; a
 * method entry may (rb_vm_trace_compacted).
 */
#define HOST_PC_EXACT 1
#define HOST_PC_CFUNC 2
#define HOST_PC_CALL 3
#define HOST_PC_MASK (~(uintptr_t)3)

/* Entries of a sample that replace frames (rb_vm_trace_host_sample). */
#define HOST_PC_LEFT_OUT ((uintptr_t)8) /* the middle of a deep stack */
#define HOST_PC_NO_FRAMES ((uintptr_t)16) /* a thread that has none */
#define HOST_LEFT_OUT "(frames left out)"
#define HOST_NO_FRAMES "(no Ruby frames)"

struct vm_trace_frame {
    uintptr_t pc;
    uintptr_t method;
    uintptr_t kind;                    /* the host's own: what else it knows a frame by that has not changed */
    const struct rb_iseq_struct *iseq; /* if the slot was refilled; valid during the event only */
    uint32_t id;    /* of its label (stack_table.h); 0: not known */
    uint32_t node;  /* of the stack from the outermost frame to this one; 0: not known */
};

/*
 * Identifies a Ruby thread or fiber in a trace (rb_vm_trace_host_thread, _host_fiber): its id, and an
 * id of its current name.
 */
#define HOST_SYNTHETIC_THREADS (UINT32_C(1) << 30) /* no system gives its threads such ids */
#define HOST_SYNTHETIC_FIBERS (UINT32_C(3) << 29)
#define HOST_SYNTHETIC_EXECUTION (UINT32_C(7) << 28) /* tracks of execution states */
#define HOST_SYNTHETIC_CPUS (UINT32_C(15) << 27) /* + id of a native thread: track of the CPUs that it has */
#define HOST_SYNTHETIC_END (UINT32_C(1) << 31)
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
 * For samples, in a handler of a signal that interrupts the thread of `ec` anywhere: as the walk, but
 * async-signal-safe. It leaves walk->fiber as it was. Where compiled code has not stored a pc yet,
 * the frame's is that of its first instruction. Of a deeper stack than there are slots, which are
 * HOST_SAMPLE_SLOTS, only HOST_SAMPLE_OUTER outer and the inner frames are found, with HOST_PC_LEFT_OUT in between. False:
 * there are no frames yet or any more, or a continuation exchanges them; the walk is as it was.
 */
enum { HOST_SAMPLE_OUTER = 512, HOST_SAMPLE_SLOTS = 2112 };
bool rb_vm_trace_host_sample(struct vm_trace_walk *walk, struct rb_execution_context_struct *ec);

/*
 * Whether compiled code runs `ec`, or has called what runs, in the same run of the interpreter. Entries
 * are noted while that is watched (rb_vm_trace_host_watch_entries). HOST_COMPILED_UNKNOWN: an
 * exception has left compiled code since. Then a return address there may be on the native stack, from
 * `sp` on, where the thread was interrupted, below *end_out. Async-signal-safe.
 */
enum vm_trace_compiled { HOST_INTERPRETED, HOST_COMPILED, HOST_COMPILED_UNKNOWN };
enum vm_trace_compiled rb_vm_trace_host_compiled(struct rb_execution_context_struct *ec, uintptr_t sp,
                                                 uintptr_t *end_out);

/* Entries were not noted so far. */
void rb_vm_trace_host_compiled_unknown(struct rb_execution_context_struct *ec);

/* An exception is handled in the innermost frame: what was entered before may have ended. */
void rb_vm_trace_host_unwound(struct rb_execution_context_struct *ec);

/* Have the thread of `ec` call rb_vm_trace_interrupted soon. Async-signal-safe. */
void rb_vm_trace_host_interrupt(struct rb_execution_context_struct *ec);

/* What is remembered of the thread of `ec`. */
struct rb_vm_trace_thread *rb_vm_trace_host_thread_memory(struct rb_execution_context_struct *ec);

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

/*
 * The process is the child of a fork: gives the current native thread its own id at once, which
 * CRuby does only after the hooks of a fork, and never after a fork(2) of an extension.
 */
void rb_vm_trace_host_forked(void);

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

/*
 * Have the main thread run the postponed jobs that were triggered: wakes it from a blocking call, as a
 * signal does. Any native thread.
 */
void rb_vm_trace_host_wake_main(void);

/* Notify the hooks that subscribe to exits: runs Ruby code. GVL held. */
void rb_vm_trace_host_notify_hooks(struct rb_execution_context_struct *ec, const struct rb_vm_trace_exit_info *exit);

/* Call func(data) with the world stopped: under the VM lock, every other ractor waiting. */
void rb_vm_trace_host_with_world_stopped(void (*func)(void *data), void *data);

/* Give others the GVL that wait for it. No interrupt is handled, and nothing is raised. GVL held. */
void rb_vm_trace_host_let_others_run(void);

/*
 * The Ruby thread of `ec`; NULL: the current native thread, which runs no Ruby. A Ruby thread that
 * has a native thread for itself has the id of that. Those that share native ones have ids from
 * HOST_SYNTHETIC_THREADS on, which no other Ruby thread of the process gets.
 * rb_vm_trace_thread_renamed reports a change of the name.
 */
struct vm_trace_thread_id rb_vm_trace_host_thread(struct rb_execution_context_struct *ec);

/*
 * Call function(ec, tid, data) for each Ruby thread that has a native thread, whose id that is. World
 * stopped.
 */
void rb_vm_trace_host_each_thread(void (*function)(struct rb_execution_context_struct *ec, uint32_t tid, void *data),
                                  void *data);

/* Its name (that of the tracer where there is no `ec`); as for rb_vm_trace_host_label. */
size_t rb_vm_trace_host_thread_name(struct rb_execution_context_struct *ec, char *buffer, size_t capacity);

/*
 * Whether the thread of `ec` gets the GVL at once: no thread of its ractor has it, and there is no other
 * ractor, whose barrier it would wait for. Its scheduler's lock held.
 */
bool rb_vm_trace_host_gvl_free_p(struct rb_execution_context_struct *ec);

/* Whether the current thread, of `ec`, has the GVL of its ractor. */
bool rb_vm_trace_host_has_gvl_p(struct rb_execution_context_struct *ec);

/*
 * The fiber of `ec`, which the current thread runs. A fiber other than the thread's own has an id from
 * HOST_SYNTHETIC_FIBERS on (base/fiber_tracks.h). For the thread's own fiber, or without memory, this
 * is the thread.
 */
struct vm_trace_thread_id rb_vm_trace_host_fiber(struct rb_execution_context_struct *ec);

/* Its name; as for rb_vm_trace_host_label. */
size_t rb_vm_trace_host_fiber_name(struct rb_execution_context_struct *ec, char *buffer, size_t capacity);

/* The execution context of a fiber object. NULL: the fiber has none yet. */
struct rb_execution_context_struct *rb_vm_trace_host_fiber_context(uintptr_t fiber);

/*
 * The track of the fiber of `ec` (base/fiber_tracks.h), which has not ended. 0: there is no memory, or nothing was ever
 * run in it.
 */
uint32_t rb_vm_trace_host_fiber_track(struct rb_execution_context_struct *ec);

/* Whether the thread of `ec` has a fiber scheduler. */
bool rb_vm_trace_host_scheduler_p(struct rb_execution_context_struct *ec);

/* Whether the fiber of `ec` has frames: it has begun, and has not ended. */
bool rb_vm_trace_host_fiber_alive_p(struct rb_execution_context_struct *ec);

/*
 * How many of the inner frames of `ec`, which the walk found, are within the method of its thread's fiber scheduler
 * that was called to wait, itself included. 0: the fiber waits without a scheduler.
 */
size_t rb_vm_trace_host_scheduler_frames(struct rb_execution_context_struct *ec, const struct vm_trace_walk *walk);

/*
 * Offset of the ractor in a thread, and of the field that rb_vm_trace_host_ractor reads in a
 * ractor, in bytes.
 */
size_t rb_vm_trace_host_thread_offset(void);
size_t rb_vm_trace_host_ractor_offset(void);

/*
 * Name of the class of an object: "String", "#<Class(String)>" for an unnamed subclass, "(array)" for
 * the type of an object that Ruby code never sees. Only the object's class and flags need to be set.
 * Buffer and result as for rb_vm_trace_host_label.
 */
size_t rb_vm_trace_host_class_name(uintptr_t object, char *buffer, size_t capacity);

/* --- what the guards of compiled code have met --- */

/* What tells most about a failed guard, of what its instruction works on. */
enum vm_trace_looks_at {
    VM_TRACE_LOOKS_AT_NOTHING,
    VM_TRACE_LOOKS_AT_RECEIVER,   /* or the only operand */
    VM_TRACE_LOOKS_AT_ARGUMENT,   /* the first one */
    VM_TRACE_LOOKS_AT_UNEXPECTED, /* the first operand that is not as expected */
    VM_TRACE_LOOKS_AT_IVAR,       /* the object, and its instance variable that is accessed */
    VM_TRACE_LOOKS_AT_SHAPE,      /* the same, and which variables the object has */
    VM_TRACE_LOOKS_AT_INDEX,      /* the collection, its length, and the index */
    VM_TRACE_LOOKS_AT_LENGTH      /* the collection and its length */
};

enum vm_trace_expected {
    VM_TRACE_ANOTHER_CLASS, /* which no operand is */
    VM_TRACE_FIXNUM,
    VM_TRACE_FLONUM,
    VM_TRACE_FIXNUM_OR_FLONUM,
    VM_TRACE_STRING         /* also of a subclass */
};

/* A guard: one word, so that a site can be given it without a lock. */
struct vm_trace_guard {
    bool known;            /* the rest is */
    uint8_t looks_at, expected;
    uint8_t place, depth, arguments; /* the host's own: where the operands are */
    uint8_t how;           /* the host's own, bits, */
    uint8_t tags;          /* and this: what is expected */
};

/* What a value is, as far as that alone names its class. In the low byte of `what`. */
enum vm_trace_value_kind {
    VM_TRACE_SAW_NOTHING,  /* no value */
    VM_TRACE_SAW_OBJECT,   /* its class does (rb_vm_trace_host_class_named_p), or its class's name */
    VM_TRACE_SAW_FIXNUM, VM_TRACE_SAW_FLONUM, VM_TRACE_SAW_SYMBOL, VM_TRACE_SAW_NIL, VM_TRACE_SAW_TRUE,
    VM_TRACE_SAW_FALSE, VM_TRACE_SAW_UNDEFINED, VM_TRACE_SAW_BIGNUM, VM_TRACE_SAW_HEAP_FLOAT,
    VM_TRACE_SAW_DYNAMIC_SYMBOL
};

#define VM_TRACE_SAW_INDEX 0x100U  /* beside the kind: `index` is known, and `length` */
#define VM_TRACE_SAW_LENGTH 0x200U
#define VM_TRACE_SAW_WIDE 0x400U   /* one of them has more than 32 bits */
#define VM_TRACE_SAW_SHAPE 0x800U  /* `shape` is known */

struct vm_trace_seen {
    uint32_t what;         /* an enum vm_trace_value_kind, and which numbers there are */
    uintptr_t value;       /* on the frame's stack, so it lives during the event */
    uintptr_t klass;       /* of VM_TRACE_SAW_OBJECT: its class; 0: it has none. Else the kind */
    int64_t index;
    uint64_t length;       /* elements of an array, bytes of a string */
    uint32_t shape;        /* of an object */
};

/*
 * Find the operands of the instruction at `pc`, for what the guard looks at. False: it has none, or
 * none that are known.
 */
bool rb_vm_trace_host_find_operands(uintptr_t pc, struct vm_trace_guard *guard);

/*
 * What such a guard has met, in the innermost frame of `ec`, which exits at that instruction. Returns
 * seen->what and, in the upper half, seen->shape; VM_TRACE_SAW_NOTHING: the frame is elsewhere, or all
 * operands are as expected.
 */
uint64_t rb_vm_trace_host_seen(struct rb_execution_context_struct *ec, uintptr_t pc, struct vm_trace_guard guard,
                               struct vm_trace_seen *seen);

/*
 * Name of the class of a value that is seen, as the reasons of exits name classes: "String",
 * "#<Class:Foo>" for the singleton class of Foo, "#<Class:#<Foo>>" for that of an object,
 * "#<Class(String)>" for a subclass without a name. "Integer (bignum)", "Float (heap)" and "Symbol
 * (dynamic)" are what is no immediate value. As for rb_vm_trace_host_label.
 */
size_t rb_vm_trace_host_value_name(uintptr_t value, char *buffer, size_t capacity);

/* Whether that is the name, for VM_TRACE_SAW_OBJECT. Fast where the class has a name. */
bool rb_vm_trace_host_value_named_p(uintptr_t value, const char *name, size_t bytes);

/*
 * Whether the name of a class (seen->klass; not 0) stays what it is until the class is freed
 * (rb_vm_trace_class_free) or moved (rb_vm_trace_compacted). That of a class without a name does not:
 * it may get one.
 */
bool rb_vm_trace_host_class_named_p(uintptr_t klass);

/*
 * Name of the instance variable of an object that the instruction at `pc` accesses; 0: it is not
 * known. As for rb_vm_trace_host_label.
 */
size_t rb_vm_trace_host_ivar_name(uintptr_t pc, uintptr_t object, char *buffer, size_t capacity);

/*
 * Whether the source line of the instruction at `pc`, of `iseq`, has another one of that name: looks
 * only at the instructions around it that are of the same line. Sets its index, as `--dump=insns` shows it.
 */
bool rb_vm_trace_host_insn_repeated_p(const struct rb_iseq_struct *iseq, uintptr_t pc, uint32_t *index_out);

/*
 * Name of the method that the instruction at `pc` calls, or of the instance variable that it reads or
 * writes; 0: its own name says that, as that of `opt_plus` does. As for rb_vm_trace_host_label.
 */
size_t rb_vm_trace_host_operand_name(uintptr_t pc, char *buffer, size_t capacity);

/*
 * Clear the part of an object that its allocator has not filled yet. While this ractor waits for a
 * lock, a collection of another one may read the object.
 */
void rb_vm_trace_host_clear_object(uintptr_t object);

/*
 * Bytes that an object holds outside of its slot, by malloc: what ObjectSpace.memsize_of says, without
 * the slot, and without buffers of `below` bytes or more if the object is one of those that own buffers
 * (rb_vm_trace_host_buffer_owner). HOST_BYTES_UNKNOWN: they can't be read now. With the GVL, and no other
 * ractor running, or `collecting`: by a collection that has marked the objects and has not swept any. Then it
 * reads only the words of objects whose size is there, which those of an extension's data are not.
 */
#define HOST_BYTES_UNKNOWN UINT64_MAX
uint64_t rb_vm_trace_host_malloc_bytes(uintptr_t object, size_t below, bool collecting);

/*
 * Words that may be the address of an object to which the C function that allocates will give a buffer: the
 * frame's receiver, and what is in registers and in the innermost part of the C stack. Returns how many. For the
 * current thread.
 */
size_t rb_vm_trace_host_stack_words(struct rb_execution_context_struct *ec, uintptr_t *words, size_t capacity);

/*
 * The object that owns a buffer of so many bytes: the one in the slot, if it is a string, an array, a hash or
 * a big integer that has the buffer, or the hidden one that it shares the buffer with. 0: none. When
 * rb_vm_trace_host_malloc_bytes may be called.
 */
uintptr_t rb_vm_trace_host_buffer_owner(uintptr_t slot, const void *buffer, size_t bytes);

/* Where the table of a hash is in its slot: code that grows the table may know only that address. */
size_t rb_vm_trace_host_table_offset(void);

/* Whether the current thread's ractor is in a collection, so that nothing can be allocated. */
bool rb_vm_trace_host_collecting_p(void);

/* Where an object is now, while a compaction updates references. */
uintptr_t rb_vm_trace_host_moved_to(uintptr_t object);

/* --- execution states (vm_trace.h) --- */

/*
 * Around compiled code that the frame `frame` enters: called by the host, and defined by the stream of
 * states. What begins returns a number for what ends. `exited`: the code returned to the interpreter,
 * which goes on with the frame.
 *
 * Where compiled code enters compiled code by way of C nothing changes: then rb_vm_trace_states has
 * `compiled` set, and the number is RB_VM_TRACE_SAME_STATE. It need not be ended, unless it exited.
 */
#define RB_VM_TRACE_SAME_STATE UINT64_MAX
struct rb_vm_trace_states_head { /* that a struct rb_vm_trace_states begins with */
    bool compiled;
};
uint64_t rb_vm_trace_states_enter(struct rb_execution_context_struct *ec, uintptr_t frame);
void rb_vm_trace_states_return(struct rb_execution_context_struct *ec, uintptr_t frame, uint64_t entry, bool exited);

/* A method in C begins in the innermost frame. Not called where `compiled` is set: then nothing changes. */
void rb_vm_trace_states_c_called(struct rb_execution_context_struct *ec);

/* The word of an execution context that holds its states. */
struct rb_vm_trace_states **rb_vm_trace_host_states(struct rb_execution_context_struct *ec);

/* What its thread keeps for its times: zeros at first, and valid for one trace. */
struct vm_trace_thread_word {
    void *times;
    uint64_t trace;
};
struct vm_trace_thread_word *rb_vm_trace_host_thread_times(struct rb_execution_context_struct *ec);

/* The innermost frame. Frames that it calls have lower numbers, and those that called it higher ones. */
uintptr_t rb_vm_trace_host_innermost(struct rb_execution_context_struct *ec);

/*
 * A frame, so that it is known again when all that it called are gone. Another one may have the same
 * number later, and even be of the same ISEQ, but not as long as the frame itself runs.
 */
struct vm_trace_catcher {
    uintptr_t frame;                   /* as rb_vm_trace_host_innermost gives it */
    const struct rb_iseq_struct *iseq; /* NULL: it is one in C */
};

/* The innermost frame. */
struct vm_trace_catcher rb_vm_trace_host_catcher(struct rb_execution_context_struct *ec);

/*
 * Where control can go on when the innermost frame, that of a block, throws: after a `break` in the
 * frame that the block is written in, after a `return` in the one that called the method, or the
 * lambda. Returns how many there are; looks at a few hundred frames, and no further.
 */
enum { VM_TRACE_CATCHERS = 2 };
size_t rb_vm_trace_host_catchers(struct rb_execution_context_struct *ec,
                                 struct vm_trace_catcher catchers_out[VM_TRACE_CATCHERS]);

/* The frame that the innermost call of vm_exec began with, or one beyond the last. */
uintptr_t rb_vm_trace_host_first_frame(struct rb_execution_context_struct *ec);

/* What identifies the method of the innermost frame, which is one in C. */
uintptr_t rb_vm_trace_host_innermost_method(struct rb_execution_context_struct *ec);

/* Have rb_vm_trace_frame_popped called when the frame is popped. Returns its ISEQ. */
const struct rb_iseq_struct *rb_vm_trace_host_watch_frame(uintptr_t frame);

/*
 * Which of RB_VM_TRACE_FRAMES_... the entries of Ruby frames report to, where the VM enters them through
 * a pointer. World stopped; again when a JIT was enabled.
 */
void rb_vm_trace_host_watch_entries(int streams);

/* --- calls (vm_trace.h) --- */

struct rb_vm_trace_calls;

/* The word of an execution context that holds its open calls. */
struct rb_vm_trace_calls **rb_vm_trace_host_calls(struct rb_execution_context_struct *ec);

/* A frame of a call. Frames with the same ISEQ and method have the same name. */
struct vm_trace_call_frame {
    uintptr_t frame;                   /* as rb_vm_trace_host_innermost gives it */
    const struct rb_iseq_struct *iseq; /* NULL: it is one of a method in C */
    uintptr_t method;                  /* what its environment, or that of the method around it, has as its method */
};

/*
 * The innermost frame; its pc need not be there yet. Has rb_vm_trace_frame_popped called when it is
 * popped. False: it is no call.
 */
bool rb_vm_trace_host_call_frame(struct rb_execution_context_struct *ec, struct vm_trace_call_frame *frame_out);

/*
 * The innermost frame begins, or frames inside of it have ended: call the function of the stream below
 * with what it needs. These two run at each call and return, so the arguments are in registers.
 */
void rb_vm_trace_host_call_begun(struct rb_execution_context_struct *ec);
void rb_vm_trace_host_calls_left(struct rb_execution_context_struct *ec);

/* Of the stream. `calls` is the word of `ec`, the others are as in struct vm_trace_call_frame. */
void rb_vm_trace_calls_begin(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor *ractor,
                             struct rb_vm_trace_calls *calls, uintptr_t frame, const struct rb_iseq_struct *iseq,
                             uintptr_t method);
void rb_vm_trace_calls_end(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor *ractor,
                           struct rb_vm_trace_calls *calls, uintptr_t frame);
/* Whether the innermost open call is that of the frame. */
bool rb_vm_trace_call_open_p(struct rb_execution_context_struct *ec, uintptr_t frame);

/* The same for each frame, outermost first, or each but the innermost one. */
void rb_vm_trace_host_each_frame(struct rb_execution_context_struct *ec, bool but_innermost,
                                 struct rb_vm_trace_ractor *ractor,
                                 void (*function)(void *data, struct rb_vm_trace_ractor *ractor,
                                                  const struct vm_trace_call_frame *frame),
                                 void *data);

/*
 * What the call is named by: rb_vm_trace_host_label then gives "Owner#method (path:line of its
 * definition)", or "Owner#method" for one in C. The frame is on the stack.
 */
void rb_vm_trace_host_call_label(const struct vm_trace_call_frame *frame, struct vm_trace_frame *label_out);

/* RUBY_DESCRIPTION; static or for ever. */
const char *rb_vm_trace_host_description(void);

/* Name of the base that was patched, or "". */
const char *rb_vm_trace_host_base(void);

#endif /* RUBY_VM_TRACE_HOST_H */
