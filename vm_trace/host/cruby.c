/*
 * What the tracer needs of CRuby: see host.h. Only this file and operands.c know the internals of the
 * VM, so what differs between Rubies belongs here.
 */
#include "ruby/internal/config.h"

#include <unistd.h>

#include "internal.h"
#include "internal/array.h"
#include "internal/bignum.h"
#include "internal/class.h"
#include "internal/cont.h"
#include "internal/gc.h"
#include "internal/hash.h"
#include "internal/imemo.h"
#include "internal/string.h"
#include "internal/variable.h"
#include "internal/vm.h"
#include "eval_intern.h"
#include "iseq.h"
#include "method.h"
#include "ractor_core.h"
#include "ruby/debug.h"
#include "ruby/version.h"
#include "vm_core.h"
#include "vm_sync.h"
#ifdef USE_ZJIT
# include "zjit.h"
#else
# include "rjit.h"
# define USE_ZJIT 0
#endif

#include "vm_trace/platform/platform.h"
#include "vm_trace/base/fiber_tracks.h"
#include "vm_trace/host/host.h"
#include "vm_trace/host/names.h"
#include "vm_trace/vm_trace_jit.h"

#if defined(__has_include)
# if __has_include("vm_trace/base_name.h")
#  include "vm_trace/base_name.h"  /* made by our build: the name of the base */
# endif
#endif
#ifndef RB_VM_TRACE_BASE
# define RB_VM_TRACE_BASE ""
#endif

/* vm_core.h reserves the memory, and only the stream knows what is in it. */
STATIC_ASSERT(thread_memory, sizeof(struct rb_vm_trace_thread) >= RB_VM_TRACE_THREAD_BYTES);

/* Tags in the low bits of a pc need these free. */
STATIC_ASSERT(instructions_are_words, sizeof(VALUE) == 8);

extern const char *rb_dynamic_description;        /* version.c */

/* --- what older Rubies do not have ------------------------------------------------------- */

#if RUBY_API_VERSION_CODE >= 40100
# define ORIGINAL_MODULE(def) ((def)->original_module)
# define HAS_ZJIT_FRAMES 1 /* frames whose pc and ISEQ are kept elsewhere */
#else
# define HAS_ZJIT_FRAMES 0
# define ORIGINAL_MODULE(def) ((VALUE)0)
/* What calls out of compiled code saves them first. */
# define CFP_PC(cfp) ((cfp)->pc)
# define CFP_ISEQ(cfp) ((cfp)->iseq)
#endif

#if RUBY_API_VERSION_CODE >= 40000
VALUE rb_mod_name0(VALUE klass, bool *permanent); /* variable.c */
# define CLASS_EXT(klass) RCLASS_EXT_PRIME(klass) /* where a permanent name is set */
#else
# define CLASS_EXT(klass) RCLASS_EXT(klass)
/* Only a debug build of these Rubies checks anything. */
# define VM_ENV_LOCAL_P_UNCHECKED VM_ENV_LOCAL_P
# define VM_ENV_PREV_EP_UNCHECKED VM_ENV_PREV_EP
# define VM_FRAME_TYPE_UNCHECKED VM_FRAME_TYPE
# define VM_FRAME_RUBYFRAME_P_UNCHECKED VM_FRAME_RUBYFRAME_P
# define VM_FRAME_CFRAME_P_UNCHECKED VM_FRAME_CFRAME_P
# define VM_FRAME_FINISHED_P_UNCHECKED VM_FRAME_FINISHED_P
# define RCLASS_SINGLETON_P(klass) FL_TEST_RAW(klass, FL_SINGLETON)

static VALUE
rb_mod_name0(VALUE klass, bool *permanent)
{
    *permanent = RCLASS_EXT(klass)->permanent_classpath;
    return RCLASS_EXT(klass)->classpath;
}
#endif

/* --- the native thread --------------------------------------------------------------------- */

/* The first three words of what is remembered of a thread. */
struct host_thread {
    uint32_t synthetic_id; /* 0: not needed yet */
    uint32_t fiber_tracks; /* base/fiber_tracks.h */
    struct vm_trace_thread_word times;
};
STATIC_ASSERT(host_thread, sizeof(struct host_thread) == 3 * sizeof(uint64_t));

static struct host_thread *
host_thread(rb_thread_t *th)
{
    return (struct host_thread *)&th->vm_trace.words[0];
}

/* CRuby numbers its threads in debug builds only. */
static uint32_t
synthetic_thread_id(rb_thread_t *th)
{
    enum { IDS = HOST_SYNTHETIC_FIBERS - HOST_SYNTHETIC_THREADS };
    static uint32_t last;
    uint32_t *id = &host_thread(th)->synthetic_id;
    if (!*id) *id = HOST_SYNTHETIC_THREADS + (__atomic_add_fetch(&last, 1, __ATOMIC_RELAXED) & (IDS - 1));
    return *id;
}

static inline struct vm_trace_thread_id
thread_id(struct rb_execution_context_struct *ec)
{
    rb_thread_t *th = rb_ec_thread_ptr(ec);
    struct vm_trace_thread_id id = { .name_id = (uint64_t)(uintptr_t)th }; /* thread_renamed handles the rest */
    if (!th->has_dedicated_nt) {
        id.tid = synthetic_thread_id(th);
        return id;
    }
#ifdef RB_THREAD_T_HAS_NATIVE_ID
    if (th->nt) id.tid = (uint32_t)th->nt->tid;
#endif
    if (!id.tid) id.tid = rb_vm_trace_platform_thread_id();
    if (!id.tid) id.tid = synthetic_thread_id(th); /* the system has no such numbers */
    return id;
}

/* Whether it is not its thread's own, which is not known as a fiber before the thread makes another one. */
static inline bool
fiber_p(const struct rb_execution_context_struct *ec)
{
    const rb_fiber_t *own = rb_ec_thread_ptr(ec)->root_fiber;
    return own && ec->fiber_ptr != own;
}

static struct vm_trace_thread_id
fiber_id(struct rb_execution_context_struct *ec)
{
    rb_thread_t *th = rb_ec_thread_ptr(ec);
    if (!ec->vm_trace_fiber) ec->vm_trace_fiber = rb_vm_trace_fiber_track_new(&host_thread(th)->fiber_tracks);
    if (!ec->vm_trace_fiber) return thread_id(ec);
    return (struct vm_trace_thread_id){ (uint64_t)(uintptr_t)th, HOST_SYNTHETIC_FIBERS + ec->vm_trace_fiber };
}

/* --- frames ------------------------------------------------------------------------------ */

static inline bool
cfunc_method_p(const rb_callable_method_entry_t *method)
{
    return method && method->def && method->def->type == VM_METHOD_TYPE_CFUNC;
}

static inline const rb_callable_method_entry_t *
method_in(VALUE me_cref)
{
    return me_cref && imemo_type_p(me_cref, imemo_ment) ? (const rb_callable_method_entry_t *)me_cref : NULL;
}

/* All flags words of environments have it. */
#define FLAGS_TAG ((VALUE)1)
STATIC_ASSERT(flags_have_the_tag, (VM_FRAME_MAGIC_METHOD & VM_FRAME_MAGIC_BLOCK & VM_FRAME_MAGIC_CLASS &
                                   VM_FRAME_MAGIC_TOP & VM_FRAME_MAGIC_CFUNC & VM_FRAME_MAGIC_IFUNC &
                                   VM_FRAME_MAGIC_EVAL & VM_FRAME_MAGIC_RESCUE & VM_FRAME_MAGIC_DUMMY & FLAGS_TAG));

/*
 * The environment around one that is not local. CRuby moves that to the heap before it tells so the one
 * within: for these few instructions its flags word on the stack is the object that holds it.
 */
static inline const VALUE *
outer_environment(const VALUE *ep)
{
    const VALUE *outer = VM_ENV_PREV_EP_UNCHECKED(ep);
    VALUE flags = outer[VM_ENV_DATA_INDEX_FLAGS];
    return LIKELY(flags & FLAGS_TAG) ? outer : ((const rb_env_t *)flags)->ep;
}

/*
 * The method that a frame runs, as rb_vm_frame_method_entry_unchecked() finds it, which is out
 * of line and would be the larger part of a walk. A block has its method's in an outer
 * environment; a special variable ($~) may stand where a method's own is.
 *
 * `known` is a method entry that lives, or 0: what equals it need not be looked into.
 */
static inline const rb_callable_method_entry_t *
frame_method(const rb_control_frame_t *cfp, VALUE known)
{
    const VALUE *ep = cfp->ep;
    while (!VM_ENV_LOCAL_P_UNCHECKED(ep)) {
        const rb_callable_method_entry_t *method = method_in(ep[VM_ENV_DATA_INDEX_ME_CREF]);
        if (method) return method;
        ep = outer_environment(ep);
    }
    VALUE me_cref = ep[VM_ENV_DATA_INDEX_ME_CREF];
    if (!me_cref || me_cref == known) return (const rb_callable_method_entry_t *)me_cref;
    if (imemo_type_p(me_cref, imemo_svar)) me_cref = ((const struct vm_svar *)me_cref)->cref_or_me;
    return method_in(me_cref);
}

/* The last Ruby frame that a walk has passed: what C frames are called from. */
struct caller {
    const rb_control_frame_t *cfp;
    uintptr_t pc;
};

/* Fill a slot, if it does not hold just that. Returns the next one. */
static struct vm_trace_frame *
fill(struct vm_trace_walk *walk, const struct caller *caller, struct vm_trace_frame *frame, uintptr_t kind,
     uintptr_t pc, const rb_callable_method_entry_t *method)
{
    const rb_iseq_t *iseq = caller->cfp ? CFP_ISEQ(caller->cfp) : NULL;
    frame->kind = kind;
    if (frame->pc != pc || frame->method != (uintptr_t)method || frame->iseq != iseq) {
        frame->iseq = iseq;
        frame->pc = pc;
        frame->method = (uintptr_t)method;
        frame->id = frame->node = 0;
        size_t index = (size_t)(frame - walk->frames);
        if (walk->changed > index) walk->changed = index;
    }
    return frame + 1;
}

NOINLINE(static struct vm_trace_frame *look_into(struct vm_trace_walk *walk, struct caller *caller,
                                                 struct vm_trace_frame *frame, const rb_control_frame_t *cfp,
                                                 const rb_control_frame_t *top, uintptr_t top_pc));

/* A frame that is not what its slot holds, as far as is seen at once. Returns the next slot. */
static struct vm_trace_frame *
look_into(struct vm_trace_walk *walk, struct caller *caller, struct vm_trace_frame *frame,
          const rb_control_frame_t *cfp, const rb_control_frame_t *top, uintptr_t top_pc)
{
    uintptr_t kind = cfp->ep[VM_ENV_DATA_INDEX_FLAGS];
    if (VM_FRAME_TYPE_UNCHECKED(cfp) == VM_FRAME_MAGIC_RESCUE) {
        /*
         * A rescue or ensure body runs in a frame of its own on that of its method, and stands for
         * both, as in Ruby's backtraces.
         */
        bool counted = caller->cfp == RUBY_VM_PREVIOUS_CONTROL_FRAME(cfp) && caller->pc;
        if (counted) frame--;
        kind = 0; /* which is never seen at once, for then the frame below it would count, too */
    }
    else if (cfp > top && VM_FRAME_TYPE_UNCHECKED(RUBY_VM_NEXT_CONTROL_FRAME(cfp)) == VM_FRAME_MAGIC_RESCUE) {
        return frame; /* that one will fill the slot */
    }

    const rb_callable_method_entry_t *method = frame_method(cfp, frame->method);
    if (VM_FRAME_RUBYFRAME_P_UNCHECKED(cfp)) {
        /* Compiled frames keep both outside the control frame. */
        *caller = (struct caller){ cfp, (uintptr_t)CFP_PC(cfp) };
        if (!caller->pc) return frame;
        return fill(walk, caller, frame, kind, top_pc ? top_pc : caller->pc, method);
    }
    if (VM_FRAME_TYPE_UNCHECKED(cfp) == VM_FRAME_MAGIC_CFUNC && cfunc_method_p(method)) {
        return fill(walk, caller, frame, kind, caller->pc + HOST_PC_CFUNC, method);
    }
    return frame; /* a block in C has the method around it, and is no frame that a backtrace shows */
}

/* CFP_PC without its check which JIT is on. */
static inline uintptr_t
pc_of(const rb_control_frame_t *cfp, bool zjit)
{
#if HAS_ZJIT_FRAMES
    return (uintptr_t)(zjit && cfp->jit_return ? CFP_ZJIT_FRAME(cfp)->pc : cfp->pc);
#else
    return (uintptr_t)cfp->pc;
#endif
}

/* frame_method(), where it is not what a slot holds at first sight. */
NOINLINE(static bool method_is(const rb_control_frame_t *cfp, uintptr_t method));

static bool
method_is(const rb_control_frame_t *cfp, uintptr_t method)
{
    return (uintptr_t)frame_method(cfp, method) == method;
}

/*
 * Whether the method of a frame is that: itself in a local environment, which for a block is an
 * outer one. A local environment of none, as of <main>, holds what its constants and definitions
 * refer to.
 */
static inline bool
same_method_p(const rb_control_frame_t *cfp, const VALUE *ep, VALUE flags, uintptr_t method)
{
    while (!(flags & VM_ENV_FLAG_LOCAL)) {
        if (UNLIKELY(ep[VM_ENV_DATA_INDEX_ME_CREF])) return method_is(cfp, method);
        ep = outer_environment(ep);
        flags = ep[VM_ENV_DATA_INDEX_FLAGS];
    }
    VALUE me_cref = ep[VM_ENV_DATA_INDEX_ME_CREF];
    if (LIKELY(me_cref == (VALUE)method)) return true;
    if (!method && imemo_type_p(me_cref, imemo_cref)) return true;
    return method_is(cfp, method);
}

/*
 * Whether a frame is what a slot holds: the same flags, which tell its type, the same method and
 * the same pc. That is all that slots are filled from. Then it counts as the caller, if it is a
 * Ruby frame. `top_pc` as for the walk.
 */
static inline __attribute__((always_inline)) bool
same_p(struct caller *caller, const rb_control_frame_t *cfp, uintptr_t top_pc, bool zjit,
       const struct vm_trace_frame *frame)
{
    const VALUE *ep = cfp->ep;
    VALUE flags = ep[VM_ENV_DATA_INDEX_FLAGS];
    if (UNLIKELY(flags != frame->kind) || UNLIKELY(!same_method_p(cfp, ep, flags, frame->method))) return false;
    if (UNLIKELY(flags & VM_FRAME_FLAG_CFRAME)) return caller->pc + HOST_PC_CFUNC == frame->pc;
    uintptr_t pc = pc_of(cfp, zjit);
    if ((top_pc ? top_pc : pc) != frame->pc) return false;
    *caller = (struct caller){ cfp, pc };
    return true;
}

/* One frame of a walk, into the slot or past it. Returns the next slot. */
static inline __attribute__((always_inline)) struct vm_trace_frame *
pass(struct vm_trace_walk *walk, struct caller *caller, struct vm_trace_frame *frame,
     const rb_control_frame_t *cfp, const rb_control_frame_t *top, uintptr_t top_pc, bool zjit)
{
    if (LIKELY(same_p(caller, cfp, top_pc, zjit, frame))) return frame + 1;
    struct caller here = *caller; /* whose address is taken: the loop's own stays in registers */
    frame = look_into(walk, &here, frame, cfp, top, top_pc);
    *caller = here;
    return frame;
}

/* Whether frames may be ZJIT's, which keep their pc elsewhere. */
static inline bool
zjit_frames_p(void)
{
#if HAS_ZJIT_FRAMES
    return rb_zjit_enabled_p;
#else
    return false;
#endif
}

/* Frames lie side by side; behind the outermost one is a dummy. */
static inline const rb_control_frame_t *
outermost_frame(const rb_execution_context_t *ec)
{
    const rb_control_frame_t *end = RUBY_VM_END_CONTROL_FRAME(ec);
    return RUBY_VM_NEXT_CONTROL_FRAME(RUBY_VM_NEXT_CONTROL_FRAME(end));
}

/*
 * Most frames are what the last walk saw in their place: these are the loop, and look_into does all
 * others.
 */
bool
rb_vm_trace_host_walk(struct vm_trace_walk *walk, struct rb_execution_context_struct *ec, uintptr_t top_pc)
{
    const bool zjit = zjit_frames_p();
    const rb_control_frame_t *top = ec->cfp;
    const rb_control_frame_t *cfp = outermost_frame(ec);
    if (!top) top = cfp + 1; /* a thread that has not begun */
    if (top + walk->capacity <= cfp) {
        if (ec->vm_stack) {
            walk->count = (size_t)(cfp - top) + 1;
            return false;
        }
        top = cfp + 1; /* a thread that has ended */
    }

    struct vm_trace_frame *frame = walk->frames;
    struct caller caller = { NULL, 0 };
    walk->changed = SIZE_MAX;
    for (; cfp > top; cfp = RUBY_VM_NEXT_CONTROL_FRAME(cfp)) frame = pass(walk, &caller, frame, cfp, top, 0, zjit);
    if (cfp == top) frame = pass(walk, &caller, frame, cfp, top, top_pc, zjit);
    walk->count = (size_t)(frame - walk->frames);
    walk->fiber = fiber_p(ec) ? fiber_id(ec) : thread_id(ec);
    return true;
}

/*
 * Where an ISEQ's instructions begin. While a file is parsed, a frame with an ISEQ that has only its name
 * stands for it (rb_vm_push_frame_fname): its own address has to tell it from that of the next file.
 */
static inline uintptr_t
first_pc(const rb_iseq_t *iseq)
{
    const VALUE *instructions = ISEQ_BODY(iseq)->iseq_encoded;
    return instructions ? (uintptr_t)instructions : (uintptr_t)iseq;
}

/* The bounds of an ISEQ's instructions hold the pc, that of one or behind the last one. */
static inline bool
pc_in_p(const rb_iseq_t *iseq, uintptr_t pc)
{
    const struct rb_iseq_constant_body *body = ISEQ_BODY(iseq);
    uintptr_t from = (uintptr_t)body->iseq_encoded;
    return pc > from && pc <= from + body->iseq_size * sizeof(VALUE);
}

/*
 * Compiled code stores the pc of a frame late, so there may be another frame's where this frame
 * began. `found`: the walk has found the frame.
 */
static struct vm_trace_frame *
correct_pc(struct vm_trace_walk *walk, struct caller *caller, struct vm_trace_frame *frame,
           const rb_control_frame_t *cfp, bool found)
{
    if (!VM_FRAME_RUBYFRAME_P_UNCHECKED(cfp)) return frame;
    const rb_iseq_t *iseq = CFP_ISEQ(cfp);
    if (!iseq) return frame;
    if (found && pc_in_p(iseq, frame[-1].pc)) return frame;
    if (!found) {
        frame->method = (uintptr_t)frame_method(cfp, 0);
        frame->kind = 0;
        frame++;
    }
    caller->cfp = cfp;
    caller->pc = first_pc(iseq);
    size_t index = (size_t)(frame - walk->frames) - 1;
    if (walk->changed > index) walk->changed = index;
    frame[-1].iseq = iseq;
    frame[-1].pc = caller->pc + sizeof(VALUE); /* behind its first word: an exact one is an exit's */
    frame[-1].id = frame[-1].node = 0;
    return frame;
}

/* A slot has the frame's pc, but that may be left over from the frame that the slot was filled from. */
static inline bool
other_iseq_p(const struct vm_trace_frame *slot, const rb_control_frame_t *cfp)
{
    return VM_FRAME_RUBYFRAME_P_UNCHECKED(cfp) && slot->iseq != CFP_ISEQ(cfp);
}

/*
 * What the handler relies on, at each instruction of the thread that it interrupts
 * (test/integration/test_single_step.rb):
 *
 * - ec->cfp is NULL or a frame of the VM stack. All writers set it last, when the frame has its ISEQ and its
 *   environment its three words: vm_push_frame(), and the code of YJIT and ZJIT (on 4.1 by our patch, for
 *   blocks). The pc of compiled code's frame may be left over from another one: see correct_pc.
 * - An environment is on that stack or in an env object that its frame keeps alive. Its flags have a tag, or
 *   vm_make_env_each() is moving it: see outer_environment.
 * - A method's word is 0 or an imemo that the frame keeps alive: cref, method entry or svar.
 * - On 4.1 a frame of ZJIT's refers to the native stack, where its code still runs.
 * - Only a continuation breaks these, and by our patch ec->cfp is NULL meanwhile.
 * - Nothing is freed or moved before the sampled thread itself collects, which it says before.
 */
bool
rb_vm_trace_host_sample(struct vm_trace_walk *walk, struct rb_execution_context_struct *ec)
{
    const bool zjit = zjit_frames_p();
    const rb_control_frame_t *top = ec->cfp, *end = RUBY_VM_END_CONTROL_FRAME(ec);
    if (!ec->vm_stack || (const VALUE *)top < ec->vm_stack || top > end) return false;
    walk->changed = SIZE_MAX;
    const rb_control_frame_t *cfp = outermost_frame(ec);
    struct vm_trace_frame *frame = walk->frames;
    struct caller caller = { NULL, 0 };
    size_t frames = cfp >= top ? (size_t)(cfp - top) + 1 : 0, i = 0;
    size_t skipped = frames >= walk->capacity ? frames - walk->capacity + 1 : 0;
    for (; i < frames; i++, cfp = RUBY_VM_NEXT_CONTROL_FRAME(cfp)) {
        if (skipped && i == HOST_SAMPLE_OUTER) {
            cfp -= skipped;
            i += skipped;
            caller = (struct caller){ NULL, 0 };
            frame = fill(walk, &caller, frame, 0, HOST_PC_LEFT_OUT, NULL);
        }
        struct vm_trace_frame *before = frame;
        frame = pass(walk, &caller, frame, cfp, top, 0, zjit);
        size_t index = (size_t)(before - walk->frames);
        bool found = frame != before || VM_FRAME_TYPE_UNCHECKED(cfp) == VM_FRAME_MAGIC_RESCUE;
        /* A frame in a slot that did not change was correct before. */
        if (found ? walk->changed <= index || other_iseq_p(frame - 1, cfp) : cfp == top)
            frame = correct_pc(walk, &caller, frame, cfp, found);
    }
    walk->count = (size_t)(frame - walk->frames);
    return true;
}

/* Values of ec->vm_trace_compiled, which is else the frame that compiled code was entered with last. */
#define NOT_COMPILED NULL
#define COMPILED_UNKNOWN ((const rb_control_frame_t *)1)

enum vm_trace_compiled
rb_vm_trace_host_compiled(struct rb_execution_context_struct *ec, uintptr_t sp, uintptr_t *end_out)
{
    const rb_control_frame_t *entered = ec->vm_trace_compiled;
    if (!ec->vm_stack || !ec->cfp) return HOST_INTERPRETED; /* the thread has ended, but for the VM's own work */
    if (entered == NOT_COMPILED) return HOST_INTERPRETED;
    if (entered == COMPILED_UNKNOWN || entered < ec->cfp) {
        /* vm_exec() has it in its frame. While fibers are switched, the stack is still the other one's. */
        const uintptr_t tag = (uintptr_t)ec->tag, begin = (uintptr_t)ec->machine.stack_start;
        const bool own = sp < tag && tag <= begin && begin - sp <= ec->machine.stack_maxsize;
        *end_out = tag;
        return own ? HOST_COMPILED_UNKNOWN : HOST_INTERPRETED;
    }
    for (const rb_control_frame_t *cfp = ec->cfp; cfp < entered; cfp = RUBY_VM_PREVIOUS_CONTROL_FRAME(cfp)) {
        if (VM_FRAME_FINISHED_P_UNCHECKED(cfp)) return HOST_INTERPRETED; /* another run, which has not entered any */
    }
    return HOST_COMPILED;
}

void
rb_vm_trace_host_compiled_unknown(struct rb_execution_context_struct *ec)
{
    ec->vm_trace_compiled = COMPILED_UNKNOWN;
}

void
rb_vm_trace_host_unwound(struct rb_execution_context_struct *ec)
{
    if (ec->vm_trace_compiled != NOT_COMPILED) ec->vm_trace_compiled = COMPILED_UNKNOWN;
}

void
rb_vm_trace_host_interrupt(struct rb_execution_context_struct *ec)
{
    ATOMIC_OR(ec->interrupt_flag, VM_TRACE_INTERRUPT_MASK);
}

struct rb_vm_trace_thread *
rb_vm_trace_host_thread_memory(struct rb_execution_context_struct *ec)
{
    return &rb_ec_thread_ptr(ec)->vm_trace;
}

/* The innermost frame that a backtrace shows, from `cfp` on. */
static bool
find_top(const rb_control_frame_t *cfp, const rb_control_frame_t *end, struct vm_trace_frame *frame_out)
{
    for (; cfp < end; cfp = RUBY_VM_PREVIOUS_CONTROL_FRAME(cfp)) {
        const rb_callable_method_entry_t *method = frame_method(cfp, 0);
        bool ruby = VM_FRAME_RUBYFRAME_P_UNCHECKED(cfp);
        if (!ruby && !(VM_FRAME_TYPE_UNCHECKED(cfp) == VM_FRAME_MAGIC_CFUNC && cfunc_method_p(method))) continue;
        if (ruby && !CFP_PC(cfp)) continue;
        *frame_out = (struct vm_trace_frame){ .method = (uintptr_t)method };
        while (cfp < end && !(VM_FRAME_RUBYFRAME_P_UNCHECKED(cfp) && CFP_PC(cfp)))
            cfp = RUBY_VM_PREVIOUS_CONTROL_FRAME(cfp);
        if (cfp < end) {
            frame_out->pc = (uintptr_t)CFP_PC(cfp);
            frame_out->iseq = CFP_ISEQ(cfp);
        }
        if (!ruby) frame_out->pc += HOST_PC_CFUNC;
        return true;
    }
    return false;
}

bool
rb_vm_trace_host_top(struct rb_execution_context_struct *ec, struct vm_trace_frame *frame_out)
{
    if (!ec->vm_stack || !ec->cfp) return false;
    const rb_control_frame_t *end = RUBY_VM_END_CONTROL_FRAME(ec), *cfp = ec->cfp;
    const rb_control_frame_t *caller = RUBY_VM_PREVIOUS_CONTROL_FRAME(cfp);
    /* Mostly a method in C that a Ruby frame has called. */
    VALUE method = cfp->ep[VM_ENV_DATA_INDEX_ME_CREF];
    if (LIKELY(VM_FRAME_TYPE_UNCHECKED(cfp) == VM_FRAME_MAGIC_CFUNC && caller < end &&
               VM_FRAME_RUBYFRAME_P_UNCHECKED(caller) && cfunc_method_p(method_in(method)))) {
        frame_out->pc = (uintptr_t)CFP_PC(caller);
        frame_out->method = method;
        frame_out->iseq = CFP_ISEQ(caller);
        frame_out->pc += HOST_PC_CFUNC;
        if (LIKELY(frame_out->pc != HOST_PC_CFUNC)) return true;
    }
    return find_top(cfp, end, frame_out);
}

/* --- execution states ---------------------------------------------------------------------- */

struct rb_vm_trace_states **
rb_vm_trace_host_states(struct rb_execution_context_struct *ec)
{
    return &ec->vm_trace_states;
}

struct vm_trace_thread_word *
rb_vm_trace_host_thread_times(struct rb_execution_context_struct *ec)
{
    return &host_thread(rb_ec_thread_ptr(ec))->times;
}

uintptr_t
rb_vm_trace_host_innermost(struct rb_execution_context_struct *ec)
{
    return (uintptr_t)ec->cfp;
}

static struct vm_trace_catcher
catcher(const rb_control_frame_t *cfp)
{
    return (struct vm_trace_catcher){ (uintptr_t)cfp, VM_FRAME_RUBYFRAME_P_UNCHECKED(cfp) ? CFP_ISEQ(cfp) : NULL };
}

struct vm_trace_catcher
rb_vm_trace_host_catcher(struct rb_execution_context_struct *ec)
{
    return catcher(ec->cfp);
}

/* Whether a `return` in the block of that environment, or in a block within, returns from it. */
static bool
returned_from_p(const VALUE *ep)
{
    return VM_ENV_LOCAL_P(ep) || VM_ENV_FLAGS(ep, VM_FRAME_FLAG_LAMBDA);
}

size_t
rb_vm_trace_host_catchers(struct rb_execution_context_struct *ec,
                          struct vm_trace_catcher catchers_out[VM_TRACE_CATCHERS])
{
    enum { MOST_FRAMES = 256 };
    const rb_control_frame_t *cfp = ec->cfp, *end = RUBY_VM_END_CONTROL_FRAME(ec);
    if (VM_ENV_LOCAL_P(cfp->ep)) return 0;
    const VALUE *around = VM_ENV_PREV_EP(cfp->ep), *home = around;
    while (!returned_from_p(home)) home = VM_ENV_PREV_EP(home);
    size_t count = 0;
    for (int i = 0; i < MOST_FRAMES && cfp < end; i++, cfp = RUBY_VM_PREVIOUS_CONTROL_FRAME(cfp)) {
        if (cfp->ep == around) catchers_out[count++] = catcher(cfp);
        if (cfp->ep != home) continue;
        if (cfp + 1 < end) catchers_out[count++] = catcher(RUBY_VM_PREVIOUS_CONTROL_FRAME(cfp));
        break;
    }
    return count;
}

uintptr_t
rb_vm_trace_host_first_frame(struct rb_execution_context_struct *ec)
{
    const rb_control_frame_t *cfp = ec->cfp, *end = RUBY_VM_END_CONTROL_FRAME(ec);
    while (cfp < end && !VM_FRAME_FINISHED_P_UNCHECKED(cfp)) cfp = RUBY_VM_PREVIOUS_CONTROL_FRAME(cfp);
    return (uintptr_t)cfp;
}

uintptr_t
rb_vm_trace_host_innermost_method(struct rb_execution_context_struct *ec)
{
    return (uintptr_t)ec->cfp->ep[VM_ENV_DATA_INDEX_ME_CREF];
}

const struct rb_iseq_struct *
rb_vm_trace_host_watch_frame(uintptr_t frame)
{
    const rb_control_frame_t *cfp = (const rb_control_frame_t *)frame;
    VM_ENV_FLAGS_SET(cfp->ep, RB_VM_TRACE_FRAME_FLAG);
    return CFP_ISEQ(cfp);
}

static inline bool
compiled_p(const rb_execution_context_t *ec)
{
    const struct rb_vm_trace_states_head *head = (const struct rb_vm_trace_states_head *)ec->vm_trace_states;
    return LIKELY(head != NULL) && head->compiled;
}

void
rb_vm_trace_c_called_slow(rb_execution_context_t *ec)
{
    rb_vm_trace_frame_begun_slow(ec);
    if ((rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_STATES) && !compiled_p(ec)) rb_vm_trace_states_c_called(ec);
}

static VALUE
run_handler(rb_execution_context_t *ec, rb_control_frame_t *cfp, rb_vm_trace_compiled_code code)
{
    if (!(rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_STATES)) return code(ec, cfp);
    bool same = compiled_p(ec);
    uint64_t entry = same ? RB_VM_TRACE_SAME_STATE : rb_vm_trace_states_enter(ec, (uintptr_t)cfp);
    VALUE value = code(ec, cfp);
    if (!same || value == Qundef) rb_vm_trace_states_return(ec, (uintptr_t)cfp, entry, value == Qundef);
    return value;
}

VALUE
rb_vm_trace_run_handler_slow(rb_execution_context_t *ec, rb_control_frame_t *cfp, rb_vm_trace_compiled_code code)
{
    if (!(rb_vm_trace_entries_on & RB_VM_TRACE_FRAMES_SAMPLES)) return run_handler(ec, cfp, code);
    const rb_control_frame_t *before = ec->vm_trace_compiled;
    ec->vm_trace_compiled = cfp;
    VALUE value = run_handler(ec, cfp, code);
    ec->vm_trace_compiled = before;
    return value;
}

VALUE
rb_vm_trace_run_compiled_slow(rb_execution_context_t *ec, rb_control_frame_t *cfp, rb_vm_trace_compiled_code code)
{
    if (rb_vm_trace_frames_on) rb_vm_trace_frame_begun_slow(ec);
    return rb_vm_trace_run_handler_slow(ec, cfp, code);
}

#if USE_ZJIT
static NOINLINE(VALUE enter_zjit_slow(rb_execution_context_t *ec, rb_control_frame_t *cfp, rb_jit_func_t code));
static VALUE
enter_zjit_slow(rb_execution_context_t *ec, rb_control_frame_t *cfp, rb_jit_func_t code)
{
    uint64_t entry = rb_vm_trace_states_enter(ec, (uintptr_t)cfp);
    VALUE value = ((rb_zjit_func_t)rb_zjit_entry)(ec, cfp, code);
    rb_vm_trace_states_return(ec, (uintptr_t)cfp, entry, value == Qundef);
    return value;
}

/* As rb_vm_trace_run_compiled_slow, for code that is entered through a pointer. */
static VALUE
enter_zjit(rb_execution_context_t *ec, rb_control_frame_t *cfp, rb_jit_func_t code)
{
    if (!compiled_p(ec)) return enter_zjit_slow(ec, cfp, code);
    VALUE value = ((rb_zjit_func_t)rb_zjit_entry)(ec, cfp, code);
    if (UNLIKELY(value == Qundef)) rb_vm_trace_states_return(ec, (uintptr_t)cfp, RB_VM_TRACE_SAME_STATE, true);
    return value;
}

/* The same while calls are recorded, and maybe states. */
static VALUE
enter_zjit_call(rb_execution_context_t *ec, rb_control_frame_t *cfp, rb_jit_func_t code)
{
    rb_vm_trace_frame_begun_slow(ec);
    if (rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_STATES) return enter_zjit(ec, cfp, code);
    return ((rb_zjit_func_t)rb_zjit_entry)(ec, cfp, code);
}

static rb_zjit_func_t sampled_entry; /* one of them */

/* The same while samples are taken. */
static VALUE
enter_zjit_sampled(rb_execution_context_t *ec, rb_control_frame_t *cfp, rb_jit_func_t code)
{
    const rb_control_frame_t *before = ec->vm_trace_compiled;
    ec->vm_trace_compiled = cfp;
    VALUE value = sampled_entry(ec, cfp, code);
    ec->vm_trace_compiled = before;
    return value;
}
#endif

/* Whether calls of methods in C that the interpreter makes, and returns, are reported. */
static void
report_c(rb_ractor_t *ractor)
{
    if (rb_vm_trace_frames_on) ractor->pub.hooks.events |= RB_VM_TRACE_EVENT_C;
    else ractor->pub.hooks.events &= ~RB_VM_TRACE_EVENT_C;
}

void
rb_vm_trace_host_watch_entries(int streams)
{
    rb_ractor_t *ractor = NULL;
    ccan_list_for_each(&GET_VM()->ractor.set, ractor, vmlr_node) report_c(ractor);
#if RUBY_API_VERSION_CODE >= 40000
    bool calls = (streams & RB_VM_TRACE_FRAMES_CALLS) != 0;
    /* Without a JIT it only has to be there: frames are reported, and nothing is called through it. */
    void *entry = calls ? (void *)rb_vm_trace_interpreted : NULL;
# if USE_ZJIT
    if (rb_zjit_entry) {
        bool states = (streams & RB_VM_TRACE_FRAMES_STATES) != 0;
        entry = calls ? (void *)enter_zjit_call : states ? (void *)enter_zjit : rb_zjit_entry;
        sampled_entry = (rb_zjit_func_t)entry;
        if (streams & RB_VM_TRACE_FRAMES_SAMPLES) entry = (void *)enter_zjit_sampled;
    }
# endif
    rb_vm_frame_entry = entry;
#else
    rb_frame_entry.by.calls = (streams & RB_VM_TRACE_FRAMES_CALLS) != 0;
#endif
}

/* --- calls --------------------------------------------------------------------------------- */

struct rb_vm_trace_calls **
rb_vm_trace_host_calls(struct rb_execution_context_struct *ec)
{
    return &ec->vm_trace_calls;
}

/* What the environment of a frame, or that of the method around it, has as its method. */
static inline VALUE
raw_method(const rb_control_frame_t *cfp)
{
    const VALUE *ep = cfp->ep;
    while (!VM_ENV_LOCAL_P_UNCHECKED(ep)) {
        VALUE method = ep[VM_ENV_DATA_INDEX_ME_CREF];
        if (method && imemo_type_p(method, imemo_ment)) return method;
        ep = VM_ENV_PREV_EP_UNCHECKED(ep);
    }
    return ep[VM_ENV_DATA_INDEX_ME_CREF];
}

static inline bool
call_frame(const rb_control_frame_t *cfp, struct vm_trace_call_frame *frame_out)
{
    VALUE flags = cfp->ep[VM_ENV_DATA_INDEX_FLAGS], type = flags & VM_FRAME_MAGIC_MASK;
    if (flags & VM_FRAME_FLAG_CFRAME) {
        if (type != VM_FRAME_MAGIC_CFUNC) return false; /* a block in C */
        *frame_out = (struct vm_trace_call_frame){ (uintptr_t)cfp, NULL, cfp->ep[VM_ENV_DATA_INDEX_ME_CREF] };
        return frame_out->method != 0;
    }
    if (type == VM_FRAME_MAGIC_DUMMY) return false;
    *frame_out = (struct vm_trace_call_frame){ (uintptr_t)cfp, CFP_ISEQ(cfp), raw_method(cfp) };
    return frame_out->iseq != NULL;
}

/* Its flags are on the stack, for it has just been pushed. */
static inline void
watch(const rb_control_frame_t *cfp)
{
    ((VALUE *)cfp->ep)[VM_ENV_DATA_INDEX_FLAGS] |= RB_VM_TRACE_FRAME_FLAG;
}

bool
rb_vm_trace_host_call_frame(struct rb_execution_context_struct *ec, struct vm_trace_call_frame *frame_out)
{
    if (!call_frame(ec->cfp, frame_out)) return false;
    VM_ENV_FLAGS_SET(ec->cfp->ep, RB_VM_TRACE_FRAME_FLAG);
    return true;
}

void
rb_vm_trace_host_call_begun(struct rb_execution_context_struct *ec)
{
    struct vm_trace_call_frame frame;
    if (!call_frame(ec->cfp, &frame)) return;
    watch(ec->cfp);
    rb_vm_trace_calls_begin(ec, rb_ec_ractor_ptr(ec)->vm_trace, ec->vm_trace_calls, frame.frame, frame.iseq,
                            frame.method);
}

void
rb_vm_trace_host_calls_left(struct rb_execution_context_struct *ec)
{
    rb_vm_trace_calls_end(ec, rb_ec_ractor_ptr(ec)->vm_trace, ec->vm_trace_calls, (uintptr_t)ec->cfp);
}

/* What the stub of patched code calls (vm_trace_jit.h). */
void
rb_vm_trace_frame_pushed(struct rb_execution_context_struct *ec, uintptr_t before)
{
    if (!(rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_CALLS)) return; /* code is being patched, or restored */
    /* Its caller may have changed ec->cfp already, when the frame was not complete. */
    if (UNLIKELY((uintptr_t)ec->cfp == before) && rb_vm_trace_call_open_p(ec, before)) return;
    rb_vm_trace_host_call_begun(ec);
}

void
rb_vm_trace_frames_popped(struct rb_execution_context_struct *ec)
{
    if (rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_CALLS) rb_vm_trace_host_calls_left(ec);
}

void
rb_vm_trace_host_each_frame(struct rb_execution_context_struct *ec, bool but_innermost,
                            struct rb_vm_trace_ractor *ractor,
                            void (*function)(void *data, struct rb_vm_trace_ractor *ractor,
                                             const struct vm_trace_call_frame *frame),
                            void *data)
{
    const rb_control_frame_t *top = ec->cfp, *cfp = outermost_frame(ec);
    if (!but_innermost) top = RUBY_VM_NEXT_CONTROL_FRAME(top);
    for (; cfp > top; cfp = RUBY_VM_NEXT_CONTROL_FRAME(cfp)) {
        struct vm_trace_call_frame frame;
        if (!cfp->ep || !call_frame(cfp, &frame)) continue;
        VM_ENV_FLAGS_SET(cfp->ep, RB_VM_TRACE_FRAME_FLAG);
        function(data, ractor, &frame);
    }
}

void
rb_vm_trace_host_call_label(const struct vm_trace_call_frame *frame, struct vm_trace_frame *label_out)
{
    const rb_callable_method_entry_t *method = frame_method((const rb_control_frame_t *)frame->frame, 0);
    uintptr_t pc = frame->iseq ? (uintptr_t)ISEQ_BODY(frame->iseq)->iseq_encoded : 0;
    *label_out = (struct vm_trace_frame){ .pc = pc + HOST_PC_CALL, .method = (uintptr_t)method, .iseq = frame->iseq };
}

/* --- labels -------------------------------------------------------------------------------- */

/* Name of a class or module if it is permanent: backtraces show no other. */
static VALUE
permanent_name(VALUE klass)
{
    bool permanent = false;
    if (!RB_TYPE_P(klass, T_CLASS) && !RB_TYPE_P(klass, T_MODULE)) return Qnil;
    VALUE name = rb_mod_name0(klass, &permanent);
    return permanent ? name : Qnil;
}

/* "Owner#name", "Owner.name" for a singleton's, or the bare name of an anonymous owner's. */
static void
add_method_name(struct text *text, VALUE owner, VALUE name)
{
    if (RB_TYPE_P(owner, T_CLASS) || RB_TYPE_P(owner, T_MODULE)) {
        bool singleton = RB_TYPE_P(owner, T_CLASS) && RCLASS_SINGLETON_P(owner);
        VALUE shown = permanent_name(singleton ? RCLASS_ATTACHED_OBJECT(owner) : owner);
        if (!NIL_P(shown)) {
            add_string(text, shown);
            add_cstr(text, singleton ? "." : "#");
        }
    }
    add_string(text, name);
}

/* The module whose source has the definition, which an alias or a copy does not change. */
static VALUE
method_owner(const rb_callable_method_entry_t *method)
{
    if (!method || !method->def) return Qnil;
    VALUE owner = method->owner, original = ORIGINAL_MODULE(method->def);
    if (!original || original == owner) return owner;
    bool copy_on_singleton = RB_TYPE_P(owner, T_CLASS) && RCLASS_SINGLETON_P(owner) &&
        RCLASS_ATTACHED_OBJECT(owner) == original; /* module_function */
    return copy_on_singleton ? owner : original;
}

/* The block that `define_method` made the method of; NULL: something else did. */
static const rb_iseq_t *
defined_by_block(const rb_callable_method_entry_t *method)
{
    if (!method || !method->def || method->def->type != VM_METHOD_TYPE_BMETHOD) return NULL;
    int is_proc;
    return rb_proc_get_iseq(method->def->body.bmethod.proc, &is_proc);
}

/* How many blocks a piece of code is inside of another one. */
enum { NOT_INSIDE = -1 };

static int
levels_between(const rb_iseq_t *inner, const rb_iseq_t *outer)
{
    int levels = 0;
    for (; inner && inner != outer; inner = ISEQ_BODY(inner)->parent_iseq) {
        if (ISEQ_BODY(inner)->type == ISEQ_TYPE_BLOCK) levels++;
    }
    return inner ? levels : NOT_INSIDE;
}

static void
add_levels(struct text *text, int levels)
{
    add_cstr(text, "block ");
    if (levels > 1) {
        add_cstr(text, "(");
        add_number(text, levels);
        add_cstr(text, " levels) ");
    }
    add_cstr(text, "in ");
}

/* As backtraces name the code of an ISEQ. */
static void
add_iseq_name(struct text *text, VALUE owner, const rb_iseq_t *iseq, const rb_callable_method_entry_t *method)
{
    const rb_iseq_t *body_of_method = defined_by_block(method);
    int levels = body_of_method ? levels_between(iseq, body_of_method) : NOT_INSIDE;
    if (levels != NOT_INSIDE) {
        if (levels > 0) add_levels(text, levels);
        add_method_name(text, owner, host_id_text(method->def->original_id));
        return;
    }
    for (;;) {
        const struct rb_iseq_constant_body *body = ISEQ_BODY(iseq);
        switch (body->type) {
          case ISEQ_TYPE_METHOD:
            add_method_name(text, owner, body->location.label);
            return;
          case ISEQ_TYPE_RESCUE:
          case ISEQ_TYPE_ENSURE:
          case ISEQ_TYPE_EVAL:
            if (!body->parent_iseq) break;
            iseq = body->parent_iseq;
            continue;
          case ISEQ_TYPE_BLOCK:
          case ISEQ_TYPE_PLAIN: {
            if (!body->parent_iseq) break;
            add_levels(text, levels_between(iseq, body->local_iseq));
            iseq = body->local_iseq;
            if (ISEQ_BODY(iseq)->type == ISEQ_TYPE_PLAIN) break; /* it is its own: end here */
            continue;
          }
          default:
            break;
        }
        if (ISEQ_BODY(iseq)->iseq_encoded) add_string(text, ISEQ_BODY(iseq)->location.label);
        else add_cstr(text, "<parsing>"); /* whose label is the path */
        return;
    }
}

/* Line of the instruction at the pc, or of the call before it; eval may begin below 0. */
static int
line_of(const rb_iseq_t *iseq, uintptr_t tagged_pc)
{
    const struct rb_iseq_constant_body *body = ISEQ_BODY(iseq);
    size_t at = (size_t)((const VALUE *)(tagged_pc & HOST_PC_MASK) - body->iseq_encoded);
    if (at > body->iseq_size) return 0;
    if (!(tagged_pc & HOST_PC_EXACT) && at > 0) at--;
    return (int)rb_iseq_line_no(iseq, at);
}

/* "Owner#method (path:line of its definition)"; one in C has none. */
static void
add_call(struct text *text, VALUE owner, const rb_callable_method_entry_t *method, const rb_iseq_t *iseq)
{
    if (!iseq) {
        add_method_name(text, owner, method && method->def ? host_id_text(method->def->original_id) : Qnil);
        return;
    }
    const struct rb_iseq_constant_body *body = ISEQ_BODY(iseq);
    if (body->type == ISEQ_TYPE_RESCUE) add_cstr(text, "rescue in ");
    else if (body->type == ISEQ_TYPE_ENSURE) add_cstr(text, "ensure in ");
    add_iseq_name(text, owner, iseq, method);
    add_cstr(text, " (");
    add_string(text, rb_iseq_path(iseq));
    add_cstr(text, ":");
    add_number(text, body->location.first_lineno ? body->location.first_lineno : 1); /* that of a file has none */
    add_cstr(text, ")");
}

size_t
rb_vm_trace_host_label(const struct vm_trace_frame *frame, char *buffer, size_t capacity)
{
    struct text text = { buffer, capacity, 0 };
    if (frame->pc == HOST_PC_LEFT_OUT || frame->pc == HOST_PC_NO_FRAMES) {
        add_cstr(&text, frame->pc == HOST_PC_LEFT_OUT ? HOST_LEFT_OUT : HOST_NO_FRAMES);
        return text.bytes;
    }
    const rb_callable_method_entry_t *method = (const rb_callable_method_entry_t *)frame->method;
    VALUE owner = method_owner(method);
    if ((frame->pc & ~HOST_PC_MASK) == HOST_PC_CALL) {
        add_call(&text, owner, method, frame->iseq);
        return text.bytes;
    }
    if (frame->pc & HOST_PC_CFUNC) {
        add_method_name(&text, owner, host_id_text(method->def->original_id));
    }
    else {
        /* JITs compile a block once for all methods that it defines, so their exits have its own name. */
        add_iseq_name(&text, owner, frame->iseq, frame->pc & HOST_PC_EXACT ? NULL : method);
    }
    add_cstr(&text, " (");
    if (frame->iseq) {
        add_string(&text, rb_iseq_path(frame->iseq));
        add_cstr(&text, ":");
        add_number(&text, line_of(frame->iseq, frame->pc));
    }
    else {
        add_cstr(&text, "<cfunc>");
    }
    add_cstr(&text, ")");
    return text.bytes;
}

static const char *
type_name(VALUE object)
{
    static const char *const names[] = {
        [T_OBJECT] = "(object)", [T_CLASS] = "(class)", [T_MODULE] = "(module)", [T_FLOAT] = "(float)",
        [T_STRING] = "(string)", [T_REGEXP] = "(regexp)", [T_ARRAY] = "(array)", [T_HASH] = "(hash)",
        [T_STRUCT] = "(struct)", [T_BIGNUM] = "(bignum)", [T_FILE] = "(file)", [T_DATA] = "(data)",
        [T_MATCH] = "(match)", [T_COMPLEX] = "(complex)", [T_RATIONAL] = "(rational)", [T_SYMBOL] = "(symbol)",
        [T_IMEMO] = "(imemo)", [T_ICLASS] = "(iclass)"
    };
    unsigned type = (unsigned)BUILTIN_TYPE(object);
    return type < numberof(names) && names[type] ? names[type] : "(internal)";
}

size_t
rb_vm_trace_host_class_name(uintptr_t object, char *buffer, size_t capacity)
{
    struct text text = { buffer, capacity, 0 };
    VALUE klass = RB_TYPE_P((VALUE)object, T_IMEMO) ? 0 : rb_class_real(RBASIC_CLASS((VALUE)object));
    VALUE name = klass ? permanent_name(klass) : Qnil, named = klass;
    while (named && NIL_P(name)) {
        named = RCLASS_SUPER(named) ? rb_class_real(RCLASS_SUPER(named)) : 0;
        if (named) name = permanent_name(named);
    }
    if (NIL_P(name)) {
        add_cstr(&text, klass ? "#<Class>" : type_name((VALUE)object));
    }
    else {
        if (named != klass) add_cstr(&text, "#<Class(");
        add_string(&text, name);
        if (named != klass) add_cstr(&text, ")>");
    }
    return text.bytes;
}

static void
add_class(struct text *text, VALUE klass)
{
    if (RB_TYPE_P(klass, T_CLASS) && RCLASS_SINGLETON_P(klass)) {
        VALUE attached = RCLASS_ATTACHED_OBJECT(klass);
        bool module = RB_TYPE_P(attached, T_CLASS) || RB_TYPE_P(attached, T_MODULE);
        add_cstr(text, module ? "#<Class:" : "#<Class:#<");
        add_class(text, module ? attached : rb_class_real(klass));
        add_cstr(text, module ? ">" : ">>");
        return;
    }
    VALUE name = permanent_name(klass);
    if (!NIL_P(name)) {
        add_string(text, name);
    }
    else if (!RB_TYPE_P(klass, T_CLASS) || !RCLASS_SUPER(klass)) {
        add_cstr(text, RB_TYPE_P(klass, T_MODULE) ? "#<Module>" : "#<Class>");
    }
    else {
        add_cstr(text, "#<Class(");
        add_class(text, rb_class_real(RCLASS_SUPER(klass)));
        add_cstr(text, ")>");
    }
}

/* The name of an object's class, where it has one. NULL: it has to be put together. */
static inline const char *
class_path(VALUE object, size_t *bytes_out)
{
    VALUE klass = RBASIC_CLASS(object);
    if (UNLIKELY(!klass || FL_TEST_RAW(klass, FL_SINGLETON))) return NULL;
    const rb_classext_t *class = CLASS_EXT(klass);
    if (UNLIKELY(!class->permanent_classpath)) return NULL;
    *bytes_out = (size_t)RSTRING_LEN(class->classpath);
    return RSTRING_PTR(class->classpath);
}

/* NULL: its class says it. */
static const char *
name_of_kind(VALUE value)
{
    if (RB_SPECIAL_CONST_P(value)) {
        return FIXNUM_P(value) ? "Integer" : FLONUM_P(value) ? "Float" : STATIC_SYM_P(value) ? "Symbol" :
               NIL_P(value) ? "NilClass" : value == Qtrue ? "TrueClass" : value == Qfalse ? "FalseClass" :
               "(undefined)";
    }
    switch (RB_BUILTIN_TYPE(value)) {
      case T_BIGNUM: return "Integer (bignum)";
      case T_FLOAT: return "Float (heap)";
      case T_SYMBOL: return "Symbol (dynamic)";
      case T_IMEMO: return type_name(value);
      default: return RBASIC_CLASS(value) ? NULL : type_name(value);
    }
}

size_t
rb_vm_trace_host_value_name(uintptr_t value, char *buffer, size_t capacity)
{
    struct text text = { buffer, capacity, 0 };
    const char *name = name_of_kind((VALUE)value);
    if (name) add_cstr(&text, name);
    else add_class(&text, RBASIC_CLASS((VALUE)value));
    return text.bytes;
}

/* Names are short, so that a call of memcmp would be the larger part of it. */
static inline bool
same_bytes_p(const char *a, const char *b, size_t bytes)
{
    uint64_t a_word, b_word;
    uint32_t a_half, b_half, a_last, b_last;
    enum { WORD = sizeof(a_word), HALF = sizeof(a_half) };
    if (bytes < HALF) {
        while (bytes > 0 && a[bytes - 1] == b[bytes - 1]) bytes--;
        return bytes == 0;
    }
    if (bytes < WORD) {
        memcpy(&a_half, a, HALF);
        memcpy(&b_half, b, HALF);
        memcpy(&a_last, a + bytes - HALF, HALF);
        memcpy(&b_last, b + bytes - HALF, HALF);
        return ((a_half ^ b_half) | (a_last ^ b_last)) == 0;
    }
    for (size_t at = 0;; at += WORD) {
        if (at + WORD > bytes) at = bytes - WORD; /* the last ones, some of them once more */
        memcpy(&a_word, a + at, WORD);
        memcpy(&b_word, b + at, WORD);
        if (a_word != b_word) return false;
        if (at + WORD == bytes) return true;
    }
}

/* The rare case of one that has to be put together. */
NOINLINE(static bool put_together_p(uintptr_t value, const char *name, size_t bytes));

static bool
put_together_p(uintptr_t value, const char *name, size_t bytes)
{
    char buffer[256];
    return bytes <= sizeof(buffer) && rb_vm_trace_host_value_name(value, buffer, sizeof(buffer)) == bytes &&
           memcmp(buffer, name, bytes) == 0;
}

bool
rb_vm_trace_host_value_named_p(uintptr_t value, const char *name, size_t bytes)
{
    size_t whole_bytes;
    const char *whole = class_path((VALUE)value, &whole_bytes);
    if (UNLIKELY(!whole)) return put_together_p(value, name, bytes);
    return whole_bytes == bytes && same_bytes_p(whole, name, bytes);
}

bool
rb_vm_trace_host_class_named_p(uintptr_t klass)
{
    VALUE named = (VALUE)klass;
    while (named && RB_TYPE_P(named, T_CLASS) && RCLASS_SINGLETON_P(named)) {
        VALUE attached = RCLASS_ATTACHED_OBJECT(named);
        bool module = RB_TYPE_P(attached, T_CLASS) || RB_TYPE_P(attached, T_MODULE);
        named = module ? attached : rb_class_real(named);
    }
    return named && !NIL_P(permanent_name(named));
}

void
rb_vm_trace_host_clear_object(uintptr_t object)
{
    /* Older Rubies have filled the first five words. */
    const size_t filled = RUBY_API_VERSION_CODE >= 40000 ? sizeof(struct RBasic) : 5 * sizeof(VALUE);
    const size_t bytes = rb_gc_obj_slot_size((VALUE)object);
    if (bytes > filled) memset((char *)object + filled, 0, bytes - filled);
}

/* As rb_str_memsize, which would look for the encoding to add the few bytes of the terminator. */
static uint64_t
string_malloc_bytes(VALUE string)
{
    const VALUE heap = STR_NOEMBED, others = STR_SHARED | FL_USER18; /* STR_NOFREE is string.c's own */
    return (RBASIC(string)->flags & (heap | others)) == heap ? (uint64_t)RSTRING(string)->as.heap.aux.capa + 1 : 0;
}

static uint64_t
if_below(uint64_t bytes, size_t below)
{
    return bytes < below ? bytes : 0;
}

/* Before 4.1, a table's bins are a buffer of their own. */
static uint64_t
hash_malloc_bytes(VALUE hash, uint64_t bytes, size_t below)
{
    if (RUBY_API_VERSION_CODE >= 40100 || !RHASH_ST_TABLE_P(hash)) return if_below(bytes, below);
    const uint64_t entries = (3 * sizeof(st_data_t)) << RHASH_ST_TABLE(hash)->entry_power;
    return if_below(entries, below) + if_below(bytes > entries ? bytes - entries : 0, below);
}

uint64_t
rb_vm_trace_host_malloc_bytes(uintptr_t object, size_t below, bool collecting)
{
    const VALUE value = (VALUE)object;
    const enum ruby_value_type type = BUILTIN_TYPE(value);
    switch (type) {
      case T_NONE:
      case T_ZOMBIE:
      case T_MOVED:
      case T_NODE:
        return HOST_BYTES_UNKNOWN;
      case T_STRING:
        if (collecting) return if_below(string_malloc_bytes(value), below);
        break;
      case T_OBJECT:
      case T_ARRAY:
      case T_HASH:
      case T_STRUCT:
      case T_BIGNUM:
      case T_FLOAT:
      case T_RATIONAL:
      case T_COMPLEX:
      case T_SYMBOL:
        break;
      default: /* tables that a thread may be changing, and functions of extensions */
        if (collecting) return HOST_BYTES_UNKNOWN;
    }
    const uint64_t bytes = rb_obj_memsize_of(value) - rb_gc_obj_slot_size(value);
    if (type == T_HASH) return hash_malloc_bytes(value, bytes, below);
    return type == T_STRING || type == T_ARRAY || type == T_BIGNUM ? if_below(bytes, below) : bytes;
}

/* From a frame within the function that has all registers in its own. */
NO_SANITIZE("address", NOINLINE(static size_t words_of_stack(struct rb_execution_context_struct *ec, uintptr_t *words,
                                                             size_t capacity)));
static size_t
words_of_stack(struct rb_execution_context_struct *ec, uintptr_t *words, size_t capacity)
{
    enum { MOST_WORDS = 256, LEAST_ADDRESS = 1 << 16 };
    const uintptr_t *from = __builtin_frame_address(0), *end = (const uintptr_t *)ec->machine.stack_start;
    const uintptr_t low = (uintptr_t)from, high = (uintptr_t)end;
    size_t count = 0;
    if (low >= high || high - low > ec->machine.stack_maxsize) return 0; /* the stack is another one */
    for (const uintptr_t *at = from; at < end && at < from + MOST_WORDS && count < capacity; at++) {
        const uintptr_t word = *at;
        if (word % sizeof(VALUE) || word < LEAST_ADDRESS || (low <= word && word < high)) continue;
        size_t known = 0;
        while (known < count && words[known] != word) known++;
        if (known == count) words[count++] = word;
    }
    return count;
}

size_t
rb_vm_trace_host_stack_words(struct rb_execution_context_struct *ec, uintptr_t *words, size_t capacity)
{
    __builtin_unwind_init();
    size_t count = 0;
    if (count < capacity && ec->cfp && !SPECIAL_CONST_P(ec->cfp->self)) words[count++] = ec->cfp->self;
    return count + words_of_stack(ec, words + count, capacity - count);
}

static VALUE
string_owner(VALUE string, const void *buffer, size_t bytes)
{
    const VALUE flags = RBASIC(string)->flags;
    if (!(flags & STR_NOEMBED) || RSTRING(string)->as.heap.ptr != buffer) return 0;
    if (flags & STR_SHARED) return RSTRING(string)->as.heap.aux.shared;
    const size_t capacity = (size_t)RSTRING(string)->as.heap.aux.capa, terminator = 4; /* bytes at most */
    return capacity < bytes && bytes <= capacity + terminator ? string : 0;
}

static VALUE
array_owner(VALUE array, const void *buffer, size_t bytes)
{
    const VALUE flags = RBASIC(array)->flags;
    if (flags & RARRAY_EMBED_FLAG || RARRAY(array)->as.heap.ptr != buffer) return 0;
    if (flags & RARRAY_SHARED_FLAG) return RARRAY(array)->as.heap.aux.shared_root;
    return (size_t)RARRAY(array)->as.heap.aux.capa * sizeof(VALUE) == bytes ? array : 0;
}

static VALUE
hash_owner(VALUE hash, const void *buffer)
{
    if (!RHASH_ST_TABLE_P(hash)) return 0;
    const st_table *table = RHASH_ST_TABLE(hash);
#if RUBY_API_VERSION_CODE < 40100
    if (table->bins == buffer) return hash;
#endif
    return (const void *)table->entries == buffer ? hash : 0;
}

uintptr_t
rb_vm_trace_host_buffer_owner(uintptr_t slot, const void *buffer, size_t bytes)
{
    const VALUE value = (VALUE)slot;
    switch (BUILTIN_TYPE(value)) {
      case T_STRING: return (uintptr_t)string_owner(value, buffer, bytes);
      case T_ARRAY: return (uintptr_t)array_owner(value, buffer, bytes);
      case T_HASH: return (uintptr_t)hash_owner(value, buffer);
      case T_BIGNUM:
        return FL_TEST_RAW(value, BIGNUM_EMBED_FLAG) || RBIGNUM(value)->as.heap.digits != buffer ? 0 : slot;
      default: return 0;
    }
}

size_t
rb_vm_trace_host_table_offset(void)
{
    return sizeof(struct RHash);
}

bool
rb_vm_trace_host_collecting_p(void)
{
    return rb_during_gc();
}

uintptr_t
rb_vm_trace_host_moved_to(uintptr_t object)
{
    return (uintptr_t)rb_gc_location((VALUE)object);
}

uintptr_t
rb_vm_trace_host_method_of(const struct rb_iseq_struct *iseq)
{
    const struct rb_execution_context_struct *ec = rb_current_execution_context(false);
    if (!ec || !ec->cfp || VM_FRAME_CFRAME_P_UNCHECKED(ec->cfp)) return 0;
    const rb_iseq_t *running = CFP_ISEQ(ec->cfp);
    if (!running || ISEQ_BODY(running)->local_iseq != ISEQ_BODY(iseq)->local_iseq) return 0;
    return (uintptr_t)frame_method(ec->cfp, 0);
}

void
rb_vm_trace_host_iseq_range(const struct rb_iseq_struct *iseq, uintptr_t *from_out, uintptr_t *to_out)
{
    const struct rb_iseq_constant_body *body = ISEQ_BODY(iseq);
    *from_out = first_pc(iseq);
    *to_out = *from_out + (body->iseq_encoded ? body->iseq_size * sizeof(VALUE) : 0);
}

size_t
rb_vm_trace_landings(const struct rb_iseq_struct *iseq, const void **pcs_out, size_t capacity)
{
    const struct rb_iseq_constant_body *body = ISEQ_BODY(iseq);
    const struct iseq_catch_table *table = body->catch_table;
    size_t count = 0;
    for (unsigned int i = 0; table && i < table->size && count < capacity; i++) {
        const struct iseq_catch_table_entry *entry = UNALIGNED_MEMBER_PTR(table, entries[i]);
        if (entry->type == CATCH_TYPE_RESCUE || entry->type == CATCH_TYPE_ENSURE) continue; /* these run in a frame of their own */
        const void *pc = body->iseq_encoded + entry->cont;
        size_t known = 0;
        while (known < count && pcs_out[known] != pc) known++;
        if (known == count) pcs_out[count++] = pc;
    }
    return count;
}

/* --- threads and ractors --------------------------------------------------------------------- */

struct rb_execution_context_struct *
rb_vm_trace_host_current(void)
{
    return rb_current_execution_context(false);
}

void
rb_vm_trace_host_forked(void)
{
#ifdef RB_THREAD_T_HAS_NATIVE_ID
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_native_thread *nt = ec ? rb_ec_thread_ptr(ec)->nt : NULL;
    uint32_t tid = rb_vm_trace_platform_thread_id();
    if (nt && tid) nt->tid = (int)tid;
#endif
}

struct rb_vm_trace_ractor *
rb_vm_trace_host_ractor(struct rb_execution_context_struct *ec)
{
    return rb_ec_ractor_ptr(ec)->vm_trace;
}

bool
rb_vm_trace_host_main_ractor_p(struct rb_execution_context_struct *ec)
{
    return rb_ec_ractor_ptr(ec) == GET_VM()->ractor.main_ractor;
}

size_t
rb_vm_trace_host_thread_offset(void)
{
    return offsetof(rb_thread_t, ractor);
}

size_t
rb_vm_trace_host_ractor_offset(void)
{
    return offsetof(rb_ractor_t, vm_trace);
}

void
rb_vm_trace_host_each_ractor(struct rb_vm_trace_ractor *(*change)(struct rb_vm_trace_ractor *ractor))
{
    rb_vm_t *vm = GET_VM();
    rb_ractor_t *ractor = NULL;
    ccan_list_for_each(&vm->ractor.set, ractor, vmlr_node) {
        ractor->vm_trace = change(ractor->vm_trace);
    }
}

void
rb_vm_trace_host_set_ractor(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor *ractor)
{
    rb_ec_ractor_ptr(ec)->vm_trace = ractor;
    report_c(rb_ec_ractor_ptr(ec));
}

void
rb_vm_trace_host_with_world_stopped(void (*func)(void *data), void *data)
{
    RB_VM_LOCK_ENTER();
    {
        rb_vm_barrier();
        func(data);
    }
    RB_VM_LOCK_LEAVE();
}

void
rb_vm_trace_host_let_others_run(void)
{
    rb_execution_context_t *ec = GET_EC();
    rb_atomic_t mask = ec->interrupt_mask;
    ec->interrupt_mask = ~(rb_atomic_t)0;
    rb_thread_schedule();
    ec->interrupt_mask = mask;
}

void
rb_vm_trace_host_wake_main(void)
{
    rb_thread_t *main_thread = GET_VM()->ractor.main_thread;
    /* A trigger without the GVL reaches the thread that ran last, which may be blocked for ever. */
    RUBY_VM_SET_POSTPONED_JOB_INTERRUPT(main_thread->ec);
    rb_threadptr_interrupt(main_thread);
}

void
rb_vm_trace_host_notify_hooks(struct rb_execution_context_struct *ec, const struct rb_vm_trace_exit_info *exit)
{
#ifdef RUBY_INTERNAL_EVENT_JIT_MASK
    rb_exec_jit_event_hooks(ec, exit->outcome ? RUBY_INTERNAL_EVENT_JIT_RECOMPILE_EXIT : RUBY_INTERNAL_EVENT_JIT_EXIT,
                            exit);
#endif
}

#ifdef RB_VM_TRACE_EC_HAS_EXIT
size_t
rb_vm_trace_pending_offset(void)
{
    return offsetof(rb_execution_context_t, vm_trace_exit);
}

void *
rb_vm_trace_take_exit(void)
{
    rb_execution_context_t *ec = rb_current_execution_context(false);
    void *exit = ec->vm_trace_exit;
    ec->vm_trace_exit = NULL;
    return exit;
}

struct rb_execution_context_struct *
rb_vm_trace_current(void)
{
    return rb_current_execution_context(false);
}
#endif

/* The block that a thread runs, if it is one of Ruby's. */
static const rb_iseq_t *
thread_block(const rb_thread_t *th)
{
    if (th->invoke_type != thread_invoke_type_proc) return NULL;
    const rb_proc_t *proc;
    GetProcPtr(th->invoke_arg.proc.proc, proc);
    return vm_block_type(&proc->block) == block_type_iseq ? vm_block_iseq(&proc->block) : NULL;
}

struct vm_trace_thread_id
rb_vm_trace_host_thread(struct rb_execution_context_struct *ec)
{
    if (ec) return thread_id(ec);
    uint32_t tid = rb_vm_trace_platform_thread_id();
    return (struct vm_trace_thread_id){ 2, tid ? tid : HOST_SYNTHETIC_THREADS }; /* no Ruby thread has that */
}

void
rb_vm_trace_host_each_thread(void (*function)(struct rb_execution_context_struct *ec, uint32_t tid, void *data),
                             void *data)
{
#ifdef RB_THREAD_T_HAS_NATIVE_ID
    rb_vm_t *vm = GET_VM();
    rb_ractor_t *ractor = NULL;
    ccan_list_for_each(&vm->ractor.set, ractor, vmlr_node) {
        rb_thread_t *th = NULL;
        ccan_list_for_each(&ractor->threads.set, th, lt_node) {
            if (!th->nt || th->nt->tid <= 0 || !th->ec) continue;
            /* In the child of a fork CRuby still lists the threads of the parent when a trace goes on there. */
            if (rb_vm_trace_platform_thread_lives_p((uint32_t)th->nt->tid))
                function(th->ec, (uint32_t)th->nt->tid, data);
        }
    }
#else
    (void)function, (void)data;
#endif
}

bool
rb_vm_trace_host_gvl_free_p(struct rb_execution_context_struct *ec)
{
    return rb_ec_ractor_ptr(ec)->threads.sched.running == NULL && !rb_multi_ractor_p();
}

bool
rb_vm_trace_host_has_gvl_p(struct rb_execution_context_struct *ec)
{
    return rb_ec_ractor_ptr(ec)->threads.sched.running == rb_ec_thread_ptr(ec);
}

size_t
rb_vm_trace_host_thread_name(struct rb_execution_context_struct *ec, char *buffer, size_t capacity)
{
    struct text text = { buffer, capacity, 0 };
    if (!ec) {
        add_cstr(&text, "vm_trace");
        return text.bytes;
    }
    const rb_thread_t *th = rb_ec_thread_ptr(ec);
    const rb_ractor_t *ractor = th->ractor;
    if (RB_TYPE_P(th->name, T_STRING)) {
        add_string(&text, th->name);
    }
    else if (th == th->vm->ractor.main_thread) {
        add_cstr(&text, "main");
    }
    else if (th == ractor->threads.main) {
        add_cstr(&text, "Ractor #");
        add_number(&text, rb_ractor_id(ractor));
        if (RB_TYPE_P(ractor->name, T_STRING)) {
            add_cstr(&text, " ");
            add_string(&text, ractor->name);
        }
    }
    else {
        const rb_iseq_t *iseq = thread_block(th);
        add_cstr(&text, "Thread");
        if (iseq) {
            add_cstr(&text, " ");
            add_string(&text, rb_iseq_path(iseq));
            add_cstr(&text, ":");
            add_number(&text, ISEQ_BODY(iseq)->location.first_lineno);
        }
    }
    return text.bytes;
}

struct vm_trace_thread_id
rb_vm_trace_host_fiber(struct rb_execution_context_struct *ec)
{
    return ec && fiber_p(ec) ? fiber_id(ec) : rb_vm_trace_host_thread(ec);
}

size_t
rb_vm_trace_host_fiber_name(struct rb_execution_context_struct *ec, char *buffer, size_t capacity)
{
    size_t bytes = rb_vm_trace_host_thread_name(ec, buffer, capacity);
    if (!ec || !fiber_p(ec) || !ec->vm_trace_fiber) return bytes;
    struct text text = { buffer, capacity, bytes };
    add_cstr(&text, " fiber ");
    add_number(&text, rb_vm_trace_fiber_track_number(ec->vm_trace_fiber));
    return text.bytes;
}

struct rb_execution_context_struct *
rb_vm_trace_host_fiber_context(uintptr_t fiber)
{
    struct rb_fiber_struct *data = RTYPEDDATA_GET_DATA((VALUE)fiber);
    return data ? rb_fiberptr_get_ec(data) : NULL;
}

uint32_t
rb_vm_trace_host_fiber_track(struct rb_execution_context_struct *ec)
{
    if (!ec->vm_stack) return 0;
    if (!fiber_p(ec)) return rb_vm_trace_fiber_track_of_thread(&host_thread(rb_ec_thread_ptr(ec))->fiber_tracks);
    fiber_id(ec); /* gives it a track */
    return ec->vm_trace_fiber;
}

bool
rb_vm_trace_host_fiber_alive_p(struct rb_execution_context_struct *ec)
{
    return ec->vm_stack && ec->cfp && ec->cfp <= outermost_frame(ec);
}

/* Whether the frame runs a method of the object, other than those that all objects have. */
static bool
method_of_object_p(const struct vm_trace_frame *frame, VALUE object)
{
    const rb_callable_method_entry_t *method = (const rb_callable_method_entry_t *)frame->method;
    VALUE owner = method ? method->owner : rb_cObject;
    return owner != rb_cObject && owner != rb_mKernel && owner != rb_cBasicObject && rb_obj_is_kind_of(object, owner);
}

bool
rb_vm_trace_host_scheduler_p(struct rb_execution_context_struct *ec)
{
    return RTEST(rb_ec_thread_ptr(ec)->scheduler);
}

size_t
rb_vm_trace_host_scheduler_frames(struct rb_execution_context_struct *ec, const struct vm_trace_walk *walk)
{
    VALUE scheduler = rb_ec_thread_ptr(ec)->scheduler;
    size_t inner = 0;
    for (size_t i = walk->count; i > 0 && RTEST(scheduler); i--) {
        const struct vm_trace_frame *frame = &walk->frames[i - 1];
        if (method_of_object_p(frame, scheduler)) {
            inner = walk->count - i + 1;
            continue;
        }
        /* Between two of its frames may be a method in C. A block of other code is what a scheduler's method yields to. */
        bool called_by_it = i > 1 && method_of_object_p(frame - 1, scheduler);
        if (inner ? !called_by_it : (frame->kind & VM_FRAME_MAGIC_MASK) == VM_FRAME_MAGIC_BLOCK) break;
    }
    return inner;
}

/* --- who we are ------------------------------------------------------------------------------- */

const char *
rb_vm_trace_host_description(void)
{
    return rb_dynamic_description;
}

const char *
rb_vm_trace_host_base(void)
{
    return RB_VM_TRACE_BASE;
}
