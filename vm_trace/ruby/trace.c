/*
 * RubyVM::Trace: switches the tracer on and off in a running program. What it does to the code is
 * the JIT's business (struct rb_vm_trace_jit), what it does to files and ractors session.c's; here
 * is what Ruby sees.
 */
#include "ruby/ruby.h"
#include "ruby/thread.h"

#include "vm_trace/ruby/trace.h"
#include "vm_trace/host/host.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/requests.h"
#include "vm_trace/session/session.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/ruby/markers.h"

#include <string.h>

static VALUE eError;

static const struct rb_vm_trace_jit *
jit(void)
{
    return rb_vm_trace_registered_jit();
}

/* --- arguments --------------------------------------------------------------------------------- */

enum option {
    EXITS,
    FALLBACKS,
    COMPILES,
    INVALIDATIONS,
    PATH,
    SAMPLE_RATE,
    FALLBACKS_SAMPLE_RATE,
    MAX_SIZE,
    KEEP,
    MEMORY,
    SECONDS,
    SAVE_AT,
    MIN_FREE,
    STACK,
    PRESET,
    EXIT_SAMPLES,
    STREAMS,
    OPTIONS
};

static const char *const option_names[OPTIONS] = {
    "exits",    "fallbacks", "compiles", "invalidations", "file",    "sample_rate", "fallbacks_sample_rate",
    "max_size", "keep",      "memory",   "seconds",       "save_at", "min_free",    "stack",
    "preset",   "exit_samples", "streams"
};

/* Streams whose only option is their name, behind the options above, by index in the table. */
static bool
named_by_itself_p(const struct rb_vm_trace_stream *stream)
{
    return stream->without_jit;
}

/* Begin and end of messages that have a list of names in them. */
static VALUE
known_options(void)
{
    VALUE text = rb_str_new_cstr("options are ");
    for (int i = 0; i < OPTIONS; i++) rb_str_catf(text, "%s%s:", i ? ", " : "", option_names[i]);
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        if (named_by_itself_p(rb_vm_trace_streams[i])) rb_str_catf(text, ", %s:", rb_vm_trace_streams[i]->name);
    }
    return text;
}

static int
check_option(VALUE key, VALUE value, VALUE data)
{
    (void)value;
    (void)data;
    if (SYMBOL_P(key)) {
        const char *name = rb_id2name(SYM2ID(key));
        for (int i = 0; i < OPTIONS; i++) {
            if (strcmp(name, option_names[i]) == 0) return ST_CONTINUE;
        }
        for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
            if (named_by_itself_p(rb_vm_trace_streams[i]) && strcmp(name, rb_vm_trace_streams[i]->name) == 0)
                return ST_CONTINUE;
        }
    }
    rb_raise(rb_eArgError, "unknown option %+"PRIsVALUE"; %"PRIsVALUE, key, known_options());
}

static bool
given_p(VALUE value)
{
    return value != Qundef && !NIL_P(value);
}

static bool
truth_of(VALUE value, const char *name)
{
    if (!given_p(value) || value == Qfalse) return false;
    if (value == Qtrue) return true;
    rb_raise(rb_eArgError, "%s: takes true or false, not %+"PRIsVALUE, name, value);
}

static bool
truth(VALUE value, enum option option)
{
    return truth_of(value, option_names[option]);
}

static uint64_t
rate(VALUE value, enum option option)
{
    if (!given_p(value)) return 1;
    long number = RB_FIXNUM_P(value) ? FIX2LONG(value) : 0;
    if (number < 1 || number > (long)UINT32_MAX) {
        rb_raise(rb_eArgError, "%s: takes a whole number from 1 (record all) to %u (one in so many), not %+"PRIsVALUE,
                 option_names[option], UINT32_MAX, value);
    }
    return (uint64_t)number;
}

/* A whole number with these bounds. */
static uint64_t
number_between(VALUE value, enum option option, const char *of, long least, long most)
{
    long number = RB_FIXNUM_P(value) ? FIX2LONG(value) : 0;
    if (number < least || number > most) {
        rb_raise(rb_eArgError, "%s: takes a number of %s from %ld to %ld, not %+" PRIsVALUE, option_names[option], of,
                 least, most, value);
    }
    return (uint64_t)number;
}

static struct rb_vm_trace_max_size
max_size(VALUE value, VALUE keep)
{
    struct rb_vm_trace_max_size size = { 0, false };
    if (given_p(keep)) {
        ID id = SYMBOL_P(keep) ? SYM2ID(keep) : 0;
        if (id != rb_intern("newest") && id != rb_intern("oldest")) {
            rb_raise(rb_eArgError, "keep: takes :newest or :oldest, not %+"PRIsVALUE, keep);
        }
        if (!given_p(value)) rb_raise(rb_eArgError, "keep: is for a limited file; give max_size:, too");
        size.keep_oldest = id == rb_intern("oldest");
    }
    if (!given_p(value)) return size;
    size.bytes = number_between(value, MAX_SIZE, "MiB", VM_TRACE_LEAST_MIB, VM_TRACE_MOST_MIB) << 20;
    return size;
}

/* save_at: a moment, or an Array of them. */
static unsigned
moments(VALUE given)
{
    VALUE array = rb_Array(given);
    unsigned bits = 0;
    for (long i = 0; i < RARRAY_LEN(array); i++) {
        VALUE name = RARRAY_AREF(array, i), text = SYMBOL_P(name) ? rb_sym2str(name) : Qnil;
        unsigned bit = NIL_P(text) ? 0 : rb_vm_trace_moment(RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
        if (!bit) {
            rb_raise(rb_eArgError, "save_at: takes :exit, :exception, :crash, or an Array of these, not %+"PRIsVALUE"; "
                     "in a trap for a signal call RubyVM::Trace.save", given);
        }
        bits |= bit;
    }
    return bits;
}

static struct rb_vm_trace_memory_config
memory_config(const VALUE values[OPTIONS])
{
    struct rb_vm_trace_memory_config memory = { 0 };
    if (!given_p(values[MEMORY])) {
        static const enum option parts[] = { SECONDS, SAVE_AT };
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            if (given_p(values[parts[i]])) {
                rb_raise(rb_eArgError, "%s: is for what is recorded into memory; give memory:, too",
                         option_names[parts[i]]);
            }
        }
        return memory;
    }
    memory.bytes = number_between(values[MEMORY], MEMORY, "MiB", VM_TRACE_LEAST_MIB, VM_TRACE_MOST_MEMORY_MIB) << 20;
    if (given_p(values[SECONDS])) {
        memory.window_ns = number_between(values[SECONDS], SECONDS, "seconds", 1, VM_TRACE_MOST_SECONDS) * 1000000000;
    }
    if (given_p(values[SAVE_AT])) memory.save_at = moments(values[SAVE_AT]);
    if (given_p(values[MAX_SIZE]))
        rb_raise(rb_eArgError, "max_size: is for a file; memory: says how much there is of that");
    if (given_p(values[PATH]) && !memory.save_at) {
        rb_raise(
            rb_eArgError,
            "file: is not written where memory: is recorded into; call RubyVM::Trace.save(path) for a trace of it, "
            "or give save_at:, too");
    }
    return memory;
}

/*
 * Of exits: true, or the name of one of the JIT's counters. The VALUEs stay on the caller's stack.
 */
static const char *
counter_name(VALUE *exits)
{
    if (!SYMBOL_P(*exits) && !RB_TYPE_P(*exits, T_STRING)) return NULL;
    *exits = rb_String(*exits);
    const char *name = StringValueCStr(*exits);
    if (!jit()->counter_p(name)) {
        rb_raise(rb_eArgError, "exits: takes true, false, or a counter of RubyVM::%s, such as %s, not %+" PRIsVALUE,
                 jit()->name, strcmp(jit()->name, "ZJIT") == 0 ? "exit_guard_type_failure" : "opt_plus_overflow",
                 *exits);
    }
    return name;
}

static void
check_jit(void)
{
    if (!jit()) {
        rb_raise(rb_eNotImpError,
                 "no JIT is on whose code can be traced while it runs: start Ruby with --zjit or --yjit, "
                 "or call RubyVM::ZJIT.enable or RubyVM::YJIT.enable first");
    }
}

/* Options of a stream as --vm-trace has them: of the pair of a Hash. */
static int
add_stream_option(VALUE key, VALUE value, VALUE text)
{
    if (RSTRING_LEN(text)) rb_str_cat_cstr(text, ":");
    rb_str_catf(text, "%" PRIsVALUE "=", key);
    bool min = SYMBOL_P(key) && SYM2ID(key) == rb_intern("min");
    if (min && (RB_TYPE_P(value, T_FLOAT) || RB_INTEGER_TYPE_P(value))) { /* seconds, as Ruby has them */
        double ns = NUM2DBL(value) * 1e9;
        if (ns >= 0 && ns <= 86400e9) rb_str_catf(text, "%.0fns", ns);
        else rb_str_append(text, rb_obj_as_string(value));
    }
    else {
        rb_str_append(text, rb_obj_as_string(value));
    }
    return ST_CONTINUE;
}

/*
 * Read the value of a stream's keyword: true, false, or options: a Hash, or a String or an Integer as in
 * --vm-trace=NAME:OPTIONS.
 */
static void
read_stream(VALUE value, const struct rb_vm_trace_stream *stream, struct vm_trace_stream_request *request)
{
    bool hash = RB_TYPE_P(value, T_HASH), text_p = RB_TYPE_P(value, T_STRING) || RB_INTEGER_TYPE_P(value);
    if (!stream->options || !given_p(value) || value == Qtrue || value == Qfalse) {
        if (truth_of(value, stream->name)) request->rate = stream_default_rate(stream);
        return;
    }
    VALUE text = hash ? rb_str_new_cstr("") : text_p ? rb_String(value) : Qnil;
    if (hash) rb_hash_foreach(value, add_stream_option, text);
    char why[256];
    request->rate = stream_default_rate(stream);
    if (hash && RSTRING_LEN(text) == 0) return;
    if (!NIL_P(text) && rb_vm_trace_request_options(stream, StringValueCStr(text), request, why, sizeof(why))) return;
    if (hash) rb_raise(rb_eArgError, "%s", why + 2);
    rb_raise(rb_eArgError, "%s: takes true, false, or %s, not %+"PRIsVALUE, stream->name, stream->options, value);
}

/*
 * Set the requests of streams that have a keyword of their own name, and which of these are given.
 * True: one of them is to be recorded.
 */
static bool
read_streams(VALUE options, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
             bool mentioned[VM_TRACE_MAX_STREAMS])
{
    bool any = false;
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
        requests[i] = (struct vm_trace_stream_request){ .rate = 0 };
        mentioned[i] = false;
        if (NIL_P(options) || !named_by_itself_p(stream)) continue;
        VALUE value = rb_hash_lookup2(options, ID2SYM(rb_intern(stream->name)), Qundef);
        mentioned[i] = given_p(value);
        read_stream(value, stream, &requests[i]);
        any |= requests[i].rate > 0;
    }
    return any;
}

/* Add what a preset names, or a list as in --vm-trace=LIST. False: the option is not given. */
static bool
read_names(VALUE value, enum option option, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS])
{
    char why[512];
    if (!given_p(value)) return false;
    VALUE text = SYMBOL_P(value) ? rb_sym2str(value) : rb_check_string_type(value);
    if (NIL_P(text)) {
        rb_raise(rb_eArgError, "%s: takes %s, not %+" PRIsVALUE, option_names[option],
                 option == PRESET ? "the name of a preset" : "a list as --vm-trace does", value);
    }
    const char *names = StringValueCStr(text);
    bool ok = option == PRESET ? rb_vm_trace_request_preset(names, requests, why, sizeof(why))
                               : rb_vm_trace_request_list(names, requests, why, sizeof(why));
    if (!ok) rb_raise(rb_eArgError, "%s: %s", option_names[option], why + (why[0] == ':' ? 2 : 1));
    RB_GC_GUARD(text);
    return true;
}

/* True: there is a preset or a list, which the program's other options override. */
static bool
read_preset(const VALUE values[OPTIONS], struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS])
{
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) requests[i] = (struct vm_trace_stream_request){ .rate = 0 };
    bool preset = read_names(values[PRESET], PRESET, requests);
    return read_names(values[STREAMS], STREAMS, requests) || preset;
}

/* The option that says whether a stream is recorded that is not named by itself. */
static enum option
option_of(const struct rb_vm_trace_stream *stream)
{
    int option = EXITS;
    while (option <= INVALIDATIONS && strcmp(option_names[option], stream->name) != 0) option++;
    return option <= INVALIDATIONS ? (enum option)option : OPTIONS;
}

/* Whether one of these streams records exits along with it, at a rate of its own. */
static bool
exits_along_p(const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS])
{
    struct vm_trace_stream_request all[VM_TRACE_MAX_STREAMS];
    memcpy(all, requests, sizeof(all));
    rb_vm_trace_request_along(all);
    return all[0].rate > 0;
}

/* Fill in the configs and the requests, whose strings are those of `values`. */
static void
read_options(VALUE options, VALUE values[OPTIONS], struct rb_vm_trace_config *config,
             struct rb_vm_trace_memory_config *memory, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS])
{
    for (int i = 0; i < OPTIONS; i++) values[i] = Qundef;
    if (!NIL_P(options)) {
        rb_hash_foreach(options, check_option, Qnil);
        for (int i = 0; i < OPTIONS; i++) {
            values[i] = rb_hash_lookup2(options, ID2SYM(rb_intern(option_names[i])), Qundef);
        }
    }
    /* Without a JIT, a request for another stream alone does not include exits. */
    struct vm_trace_stream_request others[VM_TRACE_MAX_STREAMS], of_preset[VM_TRACE_MAX_STREAMS];
    bool mentioned[VM_TRACE_MAX_STREAMS];
    bool other = read_streams(options, others, mentioned), preset = read_preset(values, of_preset);
    other |= preset;
    for (size_t i = 0; preset && rb_vm_trace_streams[i]; i++) {
        enum option option = option_of(rb_vm_trace_streams[i]);
        if (option != OPTIONS) mentioned[i] = given_p(values[option]);
    }
    bool along = !given_p(values[SAMPLE_RATE]) && exits_along_p(others);
    if (values[EXITS] == Qundef) values[EXITS] = preset || along || (other && !jit()) ? Qfalse : Qtrue;
    bool needs_jit = given_p(values[EXITS]) && values[EXITS] != Qfalse;
    for (int i = FALLBACKS; i <= INVALIDATIONS; i++) needs_jit |= given_p(values[i]) && values[i] != Qfalse;
    if (needs_jit || !other) check_jit();
    const char *counter = counter_name(&values[EXITS]);
    bool exits = counter || truth(values[EXITS], EXITS);
    *config = (struct rb_vm_trace_config){
        .jit = jit() ? jit()->name : "none",
        .counter = counter,
        .compiles = truth(values[COMPILES], COMPILES),
        .invalidations = truth(values[INVALIDATIONS], INVALIDATIONS),
        .max_size = max_size(values[MAX_SIZE], values[KEEP])
    };
    *memory = memory_config(values);
    uint64_t exit_rate = rate(values[SAMPLE_RATE], SAMPLE_RATE);
    uint64_t fallback_rate = rate(values[FALLBACKS_SAMPLE_RATE], FALLBACKS_SAMPLE_RATE);
    config->fallback_rate = truth(values[FALLBACKS], FALLBACKS) ? fallback_rate : 0;
    config->exit_rate = exits ? exit_rate : 0;
    if (!exits && !config->fallback_rate && !config->compiles && !config->invalidations && !other) {
        rb_raise(rb_eArgError, "nothing is to be recorded; %"PRIsVALUE, known_options());
    }
    rb_vm_trace_streams_request(config, requests);
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        if (others[i].rate) requests[i] = others[i];
        if (preset && !mentioned[i]) requests[i] = of_preset[i];
    }
    if (preset && given_p(values[SAMPLE_RATE]) && requests[0].rate) requests[0].rate = exit_rate;
    requests[0].samples |= truth(values[EXIT_SAMPLES], EXIT_SAMPLES);
    if (given_p(values[PATH])) {
        values[PATH] = rb_get_path(values[PATH]);
        config->path = StringValueCStr(values[PATH]);
        if (!*config->path) rb_raise(rb_eArgError, "file: takes the path of the file to write, %%p is the pid");
    }
}

/* --- start, stop, status -------------------------------------------------------------------------- */

struct start {
    struct rb_vm_trace_config config;
    struct rb_vm_trace_memory_config memory;
    struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS];
    uint64_t min_free_bytes;
    uint32_t stack_frames; /* 0: all */
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
    rb_vm_trace_session.min_free_bytes = start->min_free_bytes;
    rb_vm_trace_capture.stack_frames = start->stack_frames;
    start->ok =
        rb_vm_trace_start_session(&start->config, start->requests, &start->memory, start->why, sizeof(start->why));
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
    VALUE values[OPTIONS];
    struct start start = { .session = session_out };
    read_options(options, values, &start.config, &start.memory, start.requests);
    start.min_free_bytes = !given_p(values[MIN_FREE]) ? rb_vm_trace_session.flags.min_free_bytes :
        number_between(values[MIN_FREE], MIN_FREE, "MiB", 0, VM_TRACE_MOST_MIB) << 20;
    if (given_p(values[STACK]))
        start.stack_frames = (uint32_t)number_between(values[STACK], STACK, "frames", 1, VM_TRACE_MOST_FRAMES);
    rb_vm_trace_host_with_world_stopped(start_with_world_stopped, &start);
    for (int i = 0; i < OPTIONS; i++) RB_GC_GUARD(values[i]);
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
 *
 *  Records the side exits of compiled code from now on into a file, whose path it returns; or into memory, of which
 *  RubyVM::Trace.save makes a trace.
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

/* Ends it if that can be done at once: nothing here checks interrupts. */
static bool
try_stop(struct stop *stop)
{
    stop->saving = stop->ok = false;
    rb_vm_trace_host_with_world_stopped(stop_with_world_stopped, stop);
    return !stop->saving;
}

static void *
wait_for_save(void *unused)
{
    (void)unused;
    rb_vm_trace_recorder_wait();
    return NULL;
}

static VALUE
wait_without_gvl(VALUE unused)
{
    rb_thread_call_without_gvl(wait_for_save, NULL, NULL, NULL);
    return unused;
}

/*
 * Ends the trace before any interrupt (Thread#kill, Timeout, a signal) is handled, for the caller
 * may never come back to end it. While others run, what is being saved is written; an interrupt
 * that comes meanwhile is handled when the trace has ended.
 */
static void
stop_session(struct stop *stop)
{
    int interrupted = 0;
    while (!try_stop(stop)) {
        int state;
        rb_protect(wait_without_gvl, Qnil, &state);
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
 *  Ends the trace. The hash has the counts of its summary, and the path. What was recorded into memory and not saved is lost.
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
    set(hash, "jit", jit() ? rb_str_new_cstr(jit()->name) : Qnil);
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
