#ifndef RUBY_VM_TRACE_VM_TRACE_JIT_H
#define RUBY_VM_TRACE_VM_TRACE_JIT_H 1
/*
 * What JITs call, beside vm_trace.h, whose rules hold here, too. vm_trace/jit/ffi.rs declares the
 * same for Rust and has to be changed with this file. When the module is built out, disabled.c
 * gives Rust the stubs below as real functions.
 */

#include "vm_trace/vm_trace.h"

/* A place where compiled code exits: made together with the code, passed by address. */
struct rb_vm_trace_site;

/* The text of a compiled version. */
struct rb_vm_trace_code;

enum rb_vm_trace_kind {
    RB_VM_TRACE_SIDE_EXIT,
    RB_VM_TRACE_RECOMPILE_EXIT,
    RB_VM_TRACE_FALLBACK,
    RB_VM_TRACE_COUNTER          /* nothing exits: a counter of the JIT's statistics, named by `reason`, at a line */
};

/* The number of them. */
#define RB_VM_TRACE_KINDS 4

/* What a recompile exit led to. The numbers are known to the JIT. */
enum rb_vm_trace_outcome {
    RB_VM_TRACE_PROFILING,           /* the instruction is profiled again, the code stays */
    RB_VM_TRACE_INVALIDATED,         /* this exit invalidated the version */
    RB_VM_TRACE_ALREADY_INVALIDATED, /* the newest version is invalid already, a next one not made yet */
    RB_VM_TRACE_VERSION_LIMIT        /* no more versions are allowed: the exit stays */
};

enum rb_vm_trace_span {
    RB_VM_TRACE_COMPILE,      /* of an ISEQ: the outermost */
    RB_VM_TRACE_PHASE,        /* of a compilation; its names are few */
    RB_VM_TRACE_INVALIDATION
};

struct rb_vm_trace_max_size {
    uint64_t bytes;          /* of each file; 0: no limit */
    bool keep_oldest;        /* at the limit; otherwise the newest events are kept */
};

struct rb_vm_trace_config {
    const char *jit;         /* "ZJIT" or "YJIT": the prefix of messages; static */
    const char *path;        /* of --zjit-trace-file or its like, with %p for the pid; NULL for the default */
    const char *counter;     /* the one counter whose exits are recorded, or NULL */
    uint64_t exit_rate;      /* K: one exit in K is recorded; 0: exits are not traced */
    uint64_t fallback_rate;  /* likewise for fallbacks */
    struct rb_vm_trace_max_size max_size;
    bool compiles;
    bool invalidations;
    bool counters;
    const char *code_text;   /* of compilations: what text of the code is kept (code_text.h), or NULL */
};

/*
 * Describes a JIT; never freed. counter_p takes no lock. The other functions patch code that was
 * compiled without trace points; a JIT that can't do that leaves them NULL. They are called under
 * the VM lock with every ractor stopped.
 *
 * A program may have much code. So that nobody is stopped for long, those of them that prepare and restore
 * patch for about `ns` (0: as long as it takes) and return whether there is more to do; between two calls the
 * program runs, compiles, and may do anything.
 */
struct rb_vm_trace_jit {
    const char *name;            /* "ZJIT": the prefix of messages */
    const char *flag_prefix;     /* "--zjit-" */
    const char *exits_flag;      /* what follows "trace-" in the flag that traces exits: "exits" */
    const char *example_counter; /* a name that counter_p knows, for messages */
    bool fallbacks;              /* it has fallbacks, and flags for them */
    const char *code_text;       /* the kind of text of its code (rb_vm_trace_code_new): "hir"; NULL: none */
    bool counters;               /* its code can count at sites what its statistics count (the stream `counters`) */
    /* Whether it has a counter of that name. */
    bool (*counter_p)(const char *name);
    /* Patch code for what exits_on will be called with. What is patched does nothing before. */
    bool (*prepare_exits)(uint64_t rate, const char *counter, uint64_t ns);
    /*
     * Have exits call rb_vm_trace_exit and its like: all, or those that increment `counter` (may be
     * NULL); one in `rate`. Returns NULL, or why that can't be (static). Patches what is not patched yet.
     */
    const char *(*exits_on)(uint64_t rate, const char *counter);
    /*
     * While they are on: from now on every one calls, also when only one in K did. NULL, or why
     * that can't be.
     */
    const char *(*every_exit)(void);
    void (*exits_off)(void);
    /* Have code be what it was, unless exits are on. */
    bool (*restore_exits)(uint64_t ns);
    /*
     * Have compiled code call rb_vm_trace_frame_pushed or _frames_popped where it pushes or pops a
     * frame. NULL, or why that can't be. While they are on already, nothing changes. What is patched
     * calls whether calls are recorded or not.
     */
    bool (*prepare_calls)(uint64_t ns);
    const char *(*calls_on)(void);
    bool (*restore_calls)(uint64_t ns);
    /* Something is recorded from now on or not: compilations, invalidations. */
    void (*recording)(bool on, bool compiles, bool invalidations);
};

#if USE_VM_TRACE
/* --- start --------------------------------------------------------------------------- */

/* Whether the module is built in: trace options are refused when it is not. */
bool rb_vm_trace_supported_p(void);

/*
 * Whether code that was compiled without trace points may be traced while it runs, for which compiling keeps
 * notes: --vm-trace-late=no saves them. The same for as long as the process lives, once options are parsed.
 */
bool rb_vm_trace_late_p(void);

/*
 * Open the file and begin. Called once, with the GVL, before any site is made. The strings of
 * the config are copied. False when the file could not be made: one line on stderr said so,
 * no site should be made, and every other function is harmless.
 */
bool rb_vm_trace_start(const struct rb_vm_trace_config *config);

/* Whether flags choose methods or files (--zjit-trace-methods): only these are traced then. */
bool rb_vm_trace_methods_requested_p(void);

/* --- flags (GVL held; before any other thread) --------------------------------------- */

/*
 * Take a flag of `jit`, as its option parser has it: "trace-memory" of --zjit-trace-memory=16,5,
 * and "16,5" ("" where there is no value). What it sets is kept until rb_vm_trace_start_by_flags.
 * False: the JIT has no flag of that name, or one line on stderr says what the flag takes.
 */
bool rb_vm_trace_flag(const struct rb_vm_trace_jit *jit, const char *name, const char *value);

/*
 * The line of --help for the index-th of these flags: "--zjit-trace-file=path" and what it is for
 * (static). False: there are no more. `flag_out` has `bytes`, 64 are enough.
 */
bool rb_vm_trace_flag_help(const struct rb_vm_trace_jit *jit, size_t index, char *flag_out, size_t bytes,
                           const char **text_out);

/*
 * Call rb_vm_trace_start for what these flags request, and return that (static). Flags that say
 * only how to trace request exits, unless one leaves the start to RubyVM::Trace. NULL: they request
 * no trace, or it could not start.
 */
const struct rb_vm_trace_config *rb_vm_trace_start_by_flags(const struct rb_vm_trace_jit *jit);

/* --- traces of running programs ------------------------------------------------------ */

/* A JIT is on. Called once, while it starts. */
void rb_vm_trace_register_jit(const struct rb_vm_trace_jit *jit);

/* It, or NULL. */
const struct rb_vm_trace_jit *rb_vm_trace_registered_jit(void);

/* The registered JIT takes requests from now on: start what was requested before. World stopped. */
void rb_vm_trace_jit_ready(void);

/* Where an execution context notes the exit at hand, in bytes; SIZE_MAX: nowhere in this Ruby. */
size_t rb_vm_trace_pending_offset(void);

/*
 * A JIT puts its code there from now on. Called while it starts; `code` NULL: it has no memory. At most
 * four regions are known.
 */
void rb_vm_trace_code_region(const void *code, size_t bytes);

/*
 * Reserve address space that nobody can read or write, where every jump from it to `code` and back
 * has 32 bits of distance. On arm64, whose branches reach 128 MiB: as near to `code` as possible, so who
 * writes a branch checks that. NULL: there is none, or no more memory.
 */
void *rb_vm_trace_reserve_code_region(const void *code, size_t code_bytes, size_t bytes);

/* Make pages of it readable, and executable or writable. False: the kernel refused. */
bool rb_vm_trace_protect_code_region(void *start, size_t bytes, bool executable);
void rb_vm_trace_release_code_region(void *start, size_t bytes);

/* Such memory, or a JIT's, was written to: no cache has what was there. It need not be executable. */
void rb_vm_trace_code_written(const void *start, size_t bytes);

/*
 * Code that was written is executable, and others may run it next: have the processors forget what they
 * fetched of it before. World stopped. Both do nothing on x86-64, where nobody calls them.
 */
void rb_vm_trace_code_changed(void);

/* Take that of the current thread. NULL: there is none. */
void *rb_vm_trace_take_exit(void);

/* The current thread's. */
struct rb_execution_context_struct *rb_vm_trace_current(void);

/* --- sites --------------------------------------------------------------------------- */

struct rb_vm_trace_site_desc {
    enum rb_vm_trace_kind kind;
    const char *reason;      /* UTF-8, not terminated; copied */
    size_t reason_len;       /* bytes */
    const char *insn;        /* name of the bytecode instruction, likewise */
    size_t insn_len;
    const struct rb_iseq_struct *unit;  /* the compiled ISEQ; the site is freed with it */
    const struct rb_iseq_struct *frame; /* the ISEQ whose frame exits: a callee when inlined */
    const void *pc;          /* address of the exiting instruction in `frame`; NULL: the frame has it */
    const void *frame_pc;    /* where `pc` is NULL: what the frame has at this site, which names it; or NULL */
    uint32_t version;        /* number of the compiled version, from 1, as the JIT counts them */
    const char *callee;      /* name of what a fallback calls, like `reason`; NULL: it has none, or this is no fallback */
    size_t callee_len;
    struct rb_vm_trace_code *code; /* the text of the code, which has the site in line `code_line`, from 1; or NULL */
    uint32_t code_line;
    const void *method;      /* method entry that an inlined `frame` was called by; NULL: as the frames of this thread say */
};

/*
 * Make the static record of one exit. Called while compiling, under the VM lock. NULL when tracing
 * never started, or when other methods were requested: the caller then makes an untraced exit, and
 * nothing is lost. Where the table of sites is full or there is no memory, exits share a site that
 * counts and records them without reason and instruction, and a message says so.
 */
struct rb_vm_trace_site *rb_vm_trace_site_new(const struct rb_vm_trace_site_desc *desc);

/*
 * Where an ISEQ goes on after a jump out of a call that it catches (break, next, redo, retry): the
 * addresses that its frame has then, at most `capacity`. Returns how many.
 */
size_t rb_vm_trace_landings(const struct rb_iseq_struct *iseq, const void **pcs_out, size_t capacity);

/*
 * Write what objects of a shape have: "@x, @y of 4" (so many fit in), "no variables, frozen". Of many variables the
 * first ones and the last ones. Returns the length of the text, which may be larger than `capacity`; it is
 * not terminated. 0: this Ruby does not tell.
 */
size_t rb_vm_trace_shape_text(uint32_t shape, char *buffer, size_t capacity);

/*
 * What machine code does at a traced exit, after the frame's state is saved:
 *
 *     state = ec->thread->ractor->vm_trace        (rb_vm_trace_thread_offset(), rb_vm_trace_ractor_offset())
 *     *(state + hits_offset(site)) += 1
 *     K > 1:  if (--*(state + countdown_offset)) goto done
 *     rb_vm_trace_exit(state, site, ec)
 *   done:
 *
 * Both words are 64 bits wide and belong to the ractor, so no atomic instruction is needed.
 */
size_t rb_vm_trace_thread_offset(void);                                /* of `ractor`, in bytes */
size_t rb_vm_trace_ractor_offset(void);                                /* bytes */
size_t rb_vm_trace_countdown_offset(void);                             /* bytes */
size_t rb_vm_trace_hits_offset(const struct rb_vm_trace_site *site);   /* bytes */

/* All machine code of a live ISEQ is freed, and its sites with it. Under the VM lock. */
void rb_vm_trace_code_free(const struct rb_iseq_struct *iseq);

/* --- exits (GVL held; the exiting frame is the top one) ------------------------------ */

/* Record one sampled exit. Restarts the countdown. */
void rb_vm_trace_exit(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site,
                      struct rb_execution_context_struct *ec);

/*
 * Around what the JIT does at an exit that may cause a recompilation: a version that it invalidates
 * in between is invalidated by this exit. Returns the time, in nanoseconds of CLOCK_BOOTTIME. Then
 * call rb_vm_trace_recompile_exit if this exit is recorded (`sampled`), else
 * rb_vm_trace_recompile_end.
 */
uint64_t rb_vm_trace_recompile_begin(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site,
                                     bool sampled);
void rb_vm_trace_recompile_end(struct rb_vm_trace_ractor *ractor);

/*
 * Record an exit that may cause a recompilation. `start_ns` is the time before the JIT acted, so
 * that the exit comes before what it caused. Restarts the countdown.
 */
void rb_vm_trace_recompile_exit(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site,
                                struct rb_execution_context_struct *ec,
                                uint64_t start_ns, enum rb_vm_trace_outcome outcome);

/*
 * The same where machine code does not count. Before the JIT acts, _taken counts the exit; it
 * returns its weight if the exit is to be recorded, else 0, and the time. Afterwards call _done, or
 * _dropped.
 */
uint64_t rb_vm_trace_recompile_taken(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec,
                                     uint64_t *start_ns_out);
void rb_vm_trace_recompile_done(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec,
                                uint64_t start_ns, uint64_t weight, enum rb_vm_trace_outcome outcome);
void rb_vm_trace_recompile_dropped(struct rb_execution_context_struct *ec);

/* An exit cannot be recorded, because there is no memory for its stub: count it as lost. */
void rb_vm_trace_lost(struct rb_execution_context_struct *ec);

/* The first exit of a site: count, sample and record it. */
void rb_vm_trace_first_hit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec);

/*
 * Count, sample and record out of line: for fallbacks, and where locks keep hooks from being
 * called.
 */
void rb_vm_trace_hit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec);

/* Count at the site of a counter, in C. */
void rb_vm_trace_count(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec);

/* What the fallback called, that rb_vm_trace_hit was called before, has returned. GVL held. */
void rb_vm_trace_fallback_end(struct rb_execution_context_struct *ec);

/*
 * While the stream `calls` is recorded: compiled code has changed ec->cfp, which was `before`, and has
 * pushed a frame, or has popped one or more. If ec->cfp is the same, its frame may have become complete
 * just now. Of a pushed frame its ISEQ, environment and flags are there. Allocates nothing of Ruby's. GVL
 * held.
 */
void rb_vm_trace_frame_pushed(struct rb_execution_context_struct *ec, uintptr_t before);
void rb_vm_trace_frames_popped(struct rb_execution_context_struct *ec);

/* The innermost frame was pushed where nothing is patched. Does nothing while no calls are recorded. */
void rb_vm_trace_jit_frame_begun(struct rb_execution_context_struct *ec);

/*
 * NULL, but while the stream `calls` is recorded and was before anything was compiled. Then code that is
 * compiled gives a frame to each call, also where it could do without: of a method in Ruby that only
 * returns something, of a leaf in C. And it counts here the calls of methods in C that it replaces by
 * code of its own. The word is never freed: code may count there when nothing is recorded any more.
 */
uint64_t *rb_vm_trace_replaced_calls(void);

/* The ractor's time, in nanoseconds of CLOCK_BOOTTIME. */
uint64_t rb_vm_trace_now(struct rb_vm_trace_ractor *ractor);

/* --- spans (GVL held) ---------------------------------------------------------------- */

/*
 * Begin a duration event on this thread; false when it is not recorded. An invalidation
 * carries the backtrace. `name` is copied.
 */
bool rb_vm_trace_span_begin(enum rb_vm_trace_span span, const char *name, size_t name_len);

/* End the innermost one. Spans of one thread nest. */
void rb_vm_trace_span_end(enum rb_vm_trace_span span, const char *name, size_t name_len);

/* The same for a whole compilation. `version` 0: no code was made. */
void rb_vm_trace_compile_end(const char *name, size_t name_len, const struct rb_iseq_struct *iseq,
                             uint32_t version, size_t code_bytes);

/*
 * The same for a JIT that has versions of ISEQs. The beginning also ends the `reprofile` event that
 * the invalidation of the last version began, so call it whatever is recorded. False: do not call
 * rb_vm_trace_compiled. VM lock held.
 */
bool rb_vm_trace_compile_begin(const char *name, size_t name_len, const struct rb_iseq_struct *iseq);

struct rb_vm_trace_compiled {
    const struct rb_iseq_struct *iseq;
    uint32_t version;        /* 0: no code was made */
    bool counted;            /* the two below are known */
    uint64_t code_bytes;     /* all that was emitted meanwhile */
    uint64_t exit_bytes;     /* those of side exits, of which there are: */
    uint64_t exits;
    const char *error;       /* why no code was made, or NULL; UTF-8, not terminated */
    size_t error_len;
};
void rb_vm_trace_compiled(const char *name, size_t name_len, const struct rb_vm_trace_compiled *compiled);

/* Between both: a callee, called by way of a method entry (or NULL), was inlined. */
void rb_vm_trace_inlined(const struct rb_iseq_struct *callee, const void *method_entry);

/* --- texts of compiled code ----------------------------------------------------------- */

/* Whether texts are kept: --zjit-trace-compiles=hir. The same for as long as the process lives. */
bool rb_vm_trace_code_wanted_p(void);

/*
 * Keep a text of a version that is being compiled (UTF-8, not terminated; copied), for a trace to have it
 * beside the sites that refer to it. NULL: none is to be kept of this ISEQ, or there is no memory. The caller
 * owns a reference. VM lock held.
 */
struct rb_vm_trace_code *rb_vm_trace_code_new(const struct rb_iseq_struct *iseq, uint32_t version, const char *text,
                                              size_t text_len);

/* Give it back; takes NULL. Sites have references of their own. Any thread, also in a garbage collection. */
void rb_vm_trace_code_release(struct rb_vm_trace_code *code);

/* --- versions (VM lock held) --------------------------------------------------------- */

/*
 * A compiled version is invalidated, from _begin until _end, which is called when _begin said true.
 * `reason` NULL: the recompile exit that is being acted upon, or the invalidation span that is
 * open. `may_recompile` false: the ISEQ has no further version.
 */
bool rb_vm_trace_version_begin(const struct rb_iseq_struct *iseq, uint32_t version, const char *reason,
                               size_t reason_len, bool may_recompile);
void rb_vm_trace_version_end(void);

#else /* !USE_VM_TRACE */
struct rb_vm_trace_compiled;
struct rb_vm_trace_site_desc;
struct rb_vm_trace_code;
RB_VM_TRACE_STUB bool rb_vm_trace_supported_p(void) { return false; }
RB_VM_TRACE_STUB bool rb_vm_trace_late_p(void) { return false; }
RB_VM_TRACE_STUB bool rb_vm_trace_start(const struct rb_vm_trace_config *config) { return false; }
RB_VM_TRACE_STUB struct rb_vm_trace_site *
rb_vm_trace_site_new(const struct rb_vm_trace_site_desc *desc)
{
    return NULL;
}
RB_VM_TRACE_STUB size_t
rb_vm_trace_landings(const struct rb_iseq_struct *iseq, const void **pcs_out, size_t capacity)
{
    return 0;
}
RB_VM_TRACE_STUB size_t rb_vm_trace_shape_text(uint32_t shape, char *buffer, size_t capacity) { return 0; }
RB_VM_TRACE_STUB size_t rb_vm_trace_thread_offset(void) { return 0; }
RB_VM_TRACE_STUB bool rb_vm_trace_methods_requested_p(void) { return false; }
RB_VM_TRACE_STUB bool
rb_vm_trace_flag(const struct rb_vm_trace_jit *jit, const char *name, const char *value)
{
    return false;
}
RB_VM_TRACE_STUB bool
rb_vm_trace_flag_help(const struct rb_vm_trace_jit *jit, size_t index, char *flag_out, size_t bytes,
                      const char **text_out)
{
    return false;
}
RB_VM_TRACE_STUB const struct rb_vm_trace_config *
rb_vm_trace_start_by_flags(const struct rb_vm_trace_jit *jit)
{
    return NULL;
}
RB_VM_TRACE_STUB size_t rb_vm_trace_ractor_offset(void) { return 0; }
RB_VM_TRACE_STUB size_t rb_vm_trace_countdown_offset(void) { return 0; }
RB_VM_TRACE_STUB size_t rb_vm_trace_hits_offset(const struct rb_vm_trace_site *site) { return 0; }
RB_VM_TRACE_STUB void rb_vm_trace_register_jit(const struct rb_vm_trace_jit *jit) {}
RB_VM_TRACE_STUB const struct rb_vm_trace_jit *rb_vm_trace_registered_jit(void) { return NULL; }
RB_VM_TRACE_STUB void rb_vm_trace_jit_ready(void) {}
RB_VM_TRACE_STUB void
rb_vm_trace_first_hit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec)
{
}
RB_VM_TRACE_STUB size_t rb_vm_trace_pending_offset(void) { return 0; }
RB_VM_TRACE_STUB void rb_vm_trace_code_region(const void *code, size_t bytes) {}
RB_VM_TRACE_STUB void *
rb_vm_trace_reserve_code_region(const void *code, size_t code_bytes, size_t bytes)
{
    return NULL;
}
RB_VM_TRACE_STUB bool
rb_vm_trace_protect_code_region(void *start, size_t bytes, bool executable)
{
    return false;
}
RB_VM_TRACE_STUB void rb_vm_trace_release_code_region(void *start, size_t bytes) {}
RB_VM_TRACE_STUB void rb_vm_trace_code_written(const void *start, size_t bytes) {}
RB_VM_TRACE_STUB void rb_vm_trace_code_changed(void) {}
RB_VM_TRACE_STUB void *rb_vm_trace_take_exit(void) { return NULL; }
RB_VM_TRACE_STUB struct rb_execution_context_struct *rb_vm_trace_current(void) { return NULL; }
RB_VM_TRACE_STUB uint64_t
rb_vm_trace_recompile_taken(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec,
                            uint64_t *start_ns_out)
{
    return 0;
}
RB_VM_TRACE_STUB void
rb_vm_trace_recompile_done(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec,
                           uint64_t start_ns, uint64_t weight, enum rb_vm_trace_outcome outcome)
{
}
RB_VM_TRACE_STUB void rb_vm_trace_recompile_dropped(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void rb_vm_trace_lost(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void
rb_vm_trace_exit(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site,
                 struct rb_execution_context_struct *ec)
{
}
RB_VM_TRACE_STUB void
rb_vm_trace_recompile_exit(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site,
                           struct rb_execution_context_struct *ec, uint64_t start_ns, enum rb_vm_trace_outcome outcome)
{
}
RB_VM_TRACE_STUB void rb_vm_trace_hit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void rb_vm_trace_count(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void rb_vm_trace_frame_pushed(struct rb_execution_context_struct *ec, uintptr_t before) {}
RB_VM_TRACE_STUB void rb_vm_trace_frames_popped(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void rb_vm_trace_jit_frame_begun(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB uint64_t *rb_vm_trace_replaced_calls(void) { return NULL; }
RB_VM_TRACE_STUB uint64_t rb_vm_trace_now(struct rb_vm_trace_ractor *ractor) { return 0; }
RB_VM_TRACE_STUB bool
rb_vm_trace_span_begin(enum rb_vm_trace_span span, const char *name, size_t name_len)
{
    return false;
}
RB_VM_TRACE_STUB void rb_vm_trace_span_end(enum rb_vm_trace_span span, const char *name, size_t name_len) {}
RB_VM_TRACE_STUB void
rb_vm_trace_compile_end(const char *name, size_t name_len, const struct rb_iseq_struct *iseq, uint32_t version,
                        size_t code_bytes)
{
}
RB_VM_TRACE_STUB uint64_t
rb_vm_trace_recompile_begin(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site, bool sampled)
{
    return 0;
}
RB_VM_TRACE_STUB void rb_vm_trace_recompile_end(struct rb_vm_trace_ractor *ractor) {}
RB_VM_TRACE_STUB bool
rb_vm_trace_compile_begin(const char *name, size_t name_len, const struct rb_iseq_struct *iseq)
{
    return false;
}
RB_VM_TRACE_STUB void
rb_vm_trace_compiled(const char *name, size_t name_len, const struct rb_vm_trace_compiled *compiled)
{
}
RB_VM_TRACE_STUB bool rb_vm_trace_code_wanted_p(void) { return false; }
RB_VM_TRACE_STUB struct rb_vm_trace_code *
rb_vm_trace_code_new(const struct rb_iseq_struct *iseq, uint32_t version, const char *text, size_t text_len)
{
    return NULL;
}
RB_VM_TRACE_STUB void rb_vm_trace_code_release(struct rb_vm_trace_code *code) {}
RB_VM_TRACE_STUB void rb_vm_trace_fallback_end(struct rb_execution_context_struct *ec) {}
RB_VM_TRACE_STUB void rb_vm_trace_inlined(const struct rb_iseq_struct *callee, const void *method_entry) {}
RB_VM_TRACE_STUB bool
rb_vm_trace_version_begin(const struct rb_iseq_struct *iseq, uint32_t version, const char *reason, size_t reason_len,
                          bool may_recompile)
{
    return false;
}
RB_VM_TRACE_STUB void rb_vm_trace_version_end(void) {}
RB_VM_TRACE_STUB void rb_vm_trace_code_free(const struct rb_iseq_struct *iseq) {}
#endif /* USE_VM_TRACE */

#endif /* RUBY_VM_TRACE_VM_TRACE_JIT_H */
