/*
 * RubyVM::Trace: switches the tracer on and off in a running program. What it does to the code is
 * the JIT's business (struct rb_vm_trace_jit), what it does to files and ractors session.c's; here
 * is what Ruby sees.
 */
#include "ruby/ruby.h"
#include "ruby/thread.h"

#include "vm_trace/ruby/trace.h"
#include "vm_trace/ruby/flight_recorder.h"
#include "vm_trace/ruby/start_options.h"
#include "vm_trace/host/host.h"
#include "vm_trace/session/session.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/ruby/markers.h"

static VALUE eError;

/* --- pieces ------------------------------------------------------------------------------------------ */

/*
 * A program may have much compiled code: it is patched in pieces, and nobody is stopped for longer than one takes.
 * Threads that wait run in between. Those that calculate do so for their whole time slice: so they are waited for
 * so long at most, and then only other ractors run in between. One of those may undo what a piece has done: so
 * there are so many pieces at most, and the rest is done at once.
 */
#define PIECE_NS 2500000
#define WAIT_NS UINT64_C(2000000000)
#define MOST_PIECES 1000

struct piece {
    const struct vm_trace_stream_request *requests; /* NULL: code is to be what it was */
    bool more;
};

static void
do_piece(void *data)
{
    struct piece *piece = data;
    piece->more = piece->requests ? rb_vm_trace_prepare_session(piece->requests, PIECE_NS)
                                  : rb_vm_trace_restore_session(PIECE_NS);
}

static void
do_in_pieces(const struct vm_trace_stream_request *requests)
{
    struct piece piece = { .requests = requests };
    uint64_t begin_ns = rb_vm_trace_clock_system_ns();
    for (int i = 0; i < MOST_PIECES; i++) {
        rb_vm_trace_host_with_world_stopped(do_piece, &piece);
        if (!piece.more) return;
        if (rb_vm_trace_clock_system_ns() - begin_ns < WAIT_NS) rb_vm_trace_host_let_others_run();
    }
}

/* --- start, stop, status -------------------------------------------------------------------------- */

struct start {
    struct vm_trace_start_options options;
    struct rb_vm_trace_status status;
    uint64_t *session;
    bool ok;
    char why[4096 + 512]; /* a path and some words */
};

static void
start_with_world_stopped(void *data)
{
    struct start *start = data;
    rb_vm_trace_status(&start->status);
    if (start->status.on) return;
    const struct vm_trace_start_options *options = &start->options;
    rb_vm_trace_session.min_free_bytes = options->min_free_bytes;
    rb_vm_trace_capture.stack_frames = options->stack_frames;
    start->ok = rb_vm_trace_start_session(&options->config, options->requests, &options->memory, start->why,
                                          sizeof(start->why));
    if (!start->ok) return;
    rb_vm_trace_status(&start->status);
    *start->session = start->status.session_number;
}

static VALUE
path_of(const struct rb_vm_trace_status *status)
{
    return status->path ? rb_external_str_new_cstr(status->path) : Qnil;
}

static void
set(VALUE hash, const char *name, VALUE value)
{
    rb_hash_aset(hash, ID2SYM(rb_intern(name)), value);
}

static void
set_counts(VALUE hash, const struct rb_vm_trace_status *status)
{
    set(hash, "events", ULL2NUM(status->events));
    for (unsigned i = 0; i < status->count_count; i++)
        set(hash, status->counts[i].name, ULL2NUM(status->counts[i].count));
    set(hash, "sampled", ULL2NUM(status->sampled));
    set(hash, "lost", ULL2NUM(status->lost));
    if (status->loss) set(hash, "loss", rb_str_new_cstr(status->loss));
    if (status->memory_bytes) set(hash, "memory", ULL2NUM(status->memory_bytes >> 20));
    if (status->spool) set(hash, "spool", rb_external_str_new_cstr(status->spool));
    set(hash, "path", path_of(status));
}

/* *session_out: the number of the trace as soon as it is on, whatever happens then. The path. */
static VALUE
start_session(VALUE options, uint64_t *session_out)
{
    struct start start = { .session = session_out };
    rb_vm_trace_read_start_options(options, &start.options);
    do_in_pieces(start.options.requests);
    rb_vm_trace_host_with_world_stopped(start_with_world_stopped, &start);
    if (!start.ok) do_in_pieces(NULL);
    for (int i = 0; i < VM_TRACE_START_OPTIONS; i++) RB_GC_GUARD(start.options.values[i]);
    if (start.ok) return path_of(&start.status);
    if (start.status.on) {
        rb_raise(eError, "already started%s, into %s: call RubyVM::Trace.stop first",
                 start.status.by_flags ? " by a flag" : "",
                 start.status.memory_bytes ? "memory" :
                 start.status.path         ? start.status.path :
                                             "a file that is not made yet");
    }
    rb_raise(eError, "%s", start.why);
}

VALUE
rb_vm_trace_control_start(VALUE options)
{
    uint64_t session;
    return start_session(options, &session);
}

static VALUE
options_of(int argc, VALUE *argv)
{
    VALUE options;
    rb_scan_args(argc, argv, "0:", &options);
    return options;
}

/*
 *  call-seq:
 *    RubyVM::Trace.start(exits: true, compiles: false, invalidations: false, file: nil, sample_rate: 1, max_size: nil,
 *                        keep: :newest, min_free: nil, stack: nil, exit_samples: false, preset: nil,
 *                        streams: nil, markers: false, threads: false, gc: false, allocations: false, states: false, calls: false,
 *                        syscalls: false, sched: false, samples: false) -> path
 *    RubyVM::Trace.start(memory: MiB, seconds: nil, save_at: nil, **others) -> nil
 *    RubyVM::Trace.start(spool: folder, spool_every: 300, spool_limit: [1024, 1000], memory: 16, **others) -> nil
 *
 *  Records the side exits of compiled code from now on into a file, whose path it returns; or into memory, of which
 *  RubyVM::Trace.save makes a trace; or in pieces into a folder, one each +spool_every+ seconds, of which the oldest
 *  are deleted beyond +spool_limit+, MiB and files.
 */
static VALUE
trace_start(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    return rb_vm_trace_control_start(options_of(argc, argv));
}

struct stop {
    uint64_t session; /* that is to end; 0: whichever is on */
    struct rb_vm_trace_status status;
    bool saving;      /* it can't end yet */
    bool ok;
};

static void
stop_with_world_stopped(void *data)
{
    struct stop *stop = data;
    rb_vm_trace_status(&stop->status);
    if (!stop->status.on || (stop->session && stop->session != stop->status.session_number)) return;
    stop->session = stop->status.session_number;
    stop->saving = stop->status.memory_bytes && !rb_vm_trace_recorder_refuse();
    if (!stop->saving) stop->ok = rb_vm_trace_stop_session(&stop->status);
}

static VALUE
summary_of(const struct rb_vm_trace_status *status)
{
    VALUE summary = rb_hash_new();
    set_counts(summary, status);
    return summary;
}

/* Ends it if that can be done at once. Nothing here checks interrupts, but others may run when it has ended. */
static bool
try_stop(struct stop *stop)
{
    stop->saving = stop->ok = false;
    rb_vm_trace_host_with_world_stopped(stop_with_world_stopped, stop);
    if (stop->ok) do_in_pieces(NULL);
    return !stop->saving;
}

/*
 * Ends the trace before any interrupt (Thread#kill, Timeout, a signal) is handled, for the caller
 * may never come back to end it. While others run, what is being saved is written, and the last piece
 * of a spool; an interrupt that comes meanwhile is handled when the trace has ended.
 */
static void
stop_session(struct stop *stop)
{
    int interrupted = rb_vm_trace_save_last_piece(stop->session);
    while (!try_stop(stop)) {
        int state = rb_vm_trace_wait_for_save();
        if (state) interrupted = state;
    }
    if (interrupted) rb_jump_tag(interrupted);
}

NORETURN(static void not_started(void));

static void
not_started(void)
{
    rb_raise(eError, "not started: call RubyVM::Trace.start first");
}

VALUE
rb_vm_trace_control_try_stop(void)
{
    struct stop stop = { .session = 0 };
    if (!try_stop(&stop)) return Qundef;
    if (!stop.ok) not_started();
    return summary_of(&stop.status);
}

/*
 *  call-seq:
 *    RubyVM::Trace.stop -> hash
 *
 *  Ends the trace. The hash has the counts of its summary, and the path. What was recorded into memory and not saved is
 *  lost; a spool gets it as its last piece.
 */
static VALUE
trace_stop(VALUE self)
{
    (void)self;
    struct stop stop = { .session = 0 };
    stop_session(&stop);
    if (!stop.ok) not_started();
    return summary_of(&stop.status);
}

static void
status_with_world_stopped(void *data)
{
    rb_vm_trace_status(data);
}

VALUE
rb_vm_trace_control_status(void)
{
    struct rb_vm_trace_status status;
    rb_vm_trace_host_with_world_stopped(status_with_world_stopped, &status);
    VALUE hash = rb_hash_new();
    set(hash, "on", status.on ? Qtrue : Qfalse);
    const struct rb_vm_trace_jit *jit = rb_vm_trace_registered_jit();
    set(hash, "jit", jit ? rb_str_new_cstr(jit->name) : Qnil);
    if (status.on) {
        set(hash, "session", ULL2NUM(status.session_number));
        set_counts(hash, &status);
    }
    return hash;
}

/*
 *  call-seq:
 *    RubyVM::Trace.status -> hash
 *
 *  Whether a trace is on, and then what is in it so far.
 */
static VALUE
trace_status(VALUE self)
{
    (void)self;
    return rb_vm_trace_control_status();
}

struct record {
    VALUE options, summary;
    uint64_t session; /* 0: not begun */
};

static VALUE
begin_record(VALUE data)
{
    struct record *record = (struct record *)data;
    start_session(record->options, &record->session);
    return rb_yield(Qundef);
}

/* Only its own trace: the block or another thread may have ended that, and begun another one. */
static VALUE
end_record(VALUE data)
{
    struct record *record = (struct record *)data;
    struct stop stop = { .session = record->session };
    if (!record->session) return Qnil;
    stop_session(&stop);
    if (stop.ok) record->summary = summary_of(&stop.status);
    return Qnil;
}

/*
 *  call-seq:
 *    RubyVM::Trace.record(**options) { ... } -> hash or nil
 *
 *  Records what happens while the block runs, in all threads and ractors. Takes what start takes, returns what stop returns; nil
 *  when something else has stopped that trace. A trace that was started meanwhile is left alone.
 */
static VALUE
trace_record(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    rb_need_block();
    struct record record = { .options = options_of(argc, argv), .summary = Qnil };
    rb_ensure(begin_record, (VALUE)&record, end_record, (VALUE)&record);
    return record.summary;
}

void Init_VM_Trace(void);

void
Init_VM_Trace(void)
{
    VALUE mRubyVM = rb_const_get(rb_cObject, rb_intern("RubyVM"));
    VALUE mTrace = rb_define_module_under(mRubyVM, "Trace");
    eError = rb_define_class_under(mTrace, "Error", rb_eStandardError);
    rb_gc_register_mark_object(eError);
    rb_define_singleton_method(mTrace, "start", trace_start, -1);
    rb_define_singleton_method(mTrace, "stop", trace_stop, 0);
    rb_define_singleton_method(mTrace, "status", trace_status, 0);
    rb_define_singleton_method(mTrace, "record", trace_record, -1);
    rb_vm_trace_define_markers(mTrace);
    rb_vm_trace_remote_init();
}
