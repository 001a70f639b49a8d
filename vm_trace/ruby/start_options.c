/*
 * What RubyVM::Trace.start takes. See start_options.h.
 */
#include "vm_trace/ruby/start_options.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/requests.h"
#include "vm_trace/session/spool.h"

#include <string.h>

static const struct rb_vm_trace_jit *
jit(void)
{
    return rb_vm_trace_registered_jit();
}

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
    SPOOL,
    SPOOL_EVERY,
    SPOOL_LIMIT,
    SPOOL_COMPRESS,
    OPTIONS
};
_Static_assert((int)OPTIONS == VM_TRACE_START_OPTIONS, "the struct has a VALUE for each");

static const char *const option_names[OPTIONS] = {
    "exits",    "fallbacks", "compiles", "invalidations", "file",    "sample_rate", "fallbacks_sample_rate",
    "max_size", "keep",      "memory",   "seconds",       "save_at", "min_free",    "stack",
    "preset",   "exit_samples", "streams",    "spool",       "spool_every", "spool_limit",
    "spool_compress"
};

/* Streams whose only option is their name, behind the options above, by index in the table. */
static bool
named_by_itself_p(const struct rb_vm_trace_stream *stream)
{
    return stream->without_jit || stream->by_name;
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

/* Raise where one of these options is given; `why` says what it needs. */
static void
refuse(const VALUE values[OPTIONS], const enum option *options, size_t count, const char *why)
{
    for (size_t i = 0; i < count; i++) {
        if (given_p(values[options[i]])) rb_raise(rb_eArgError, "%s: %s", option_names[options[i]], why);
    }
}
#define REFUSE(values, why, ...) \
    refuse(values, (const enum option[]){ __VA_ARGS__ }, \
           sizeof((const enum option[]){ __VA_ARGS__ }) / sizeof(enum option), why)

/* Seconds as Ruby has them, as text with a unit; all else as it is. */
static VALUE
duration_text(VALUE value)
{
    if (!RB_TYPE_P(value, T_FLOAT) && !RB_INTEGER_TYPE_P(value)) return rb_obj_as_string(value);
    double ns = NUM2DBL(value) * 1e9;
    return ns >= 0 && ns <= 86400e9 ? rb_sprintf("%.0fns", ns) : rb_obj_as_string(value);
}

/* What a spool has, without its folder. */
static struct rb_vm_trace_spool
spool_config(VALUE every, VALUE limit, VALUE compression)
{
    struct rb_vm_trace_spool spool = rb_vm_trace_spool_defaults;
    VALUE text = given_p(every) ? duration_text(every) : Qnil;
    if (given_p(every) && !rb_vm_trace_spool_take_every(&spool, StringValueCStr(text)))
        rb_raise(rb_eArgError, "spool_every: " VM_TRACE_SPOOL_EVERY_TAKES ", or seconds, not %+"PRIsVALUE, every);
    if (RB_TYPE_P(limit, T_ARRAY)) text = rb_ary_join(limit, rb_str_new_cstr(","));
    else if (given_p(limit)) text = rb_obj_as_string(limit);
    if (given_p(limit) && !rb_vm_trace_spool_take_limit(&spool, StringValueCStr(text)))
        rb_raise(rb_eArgError, "spool_limit: " VM_TRACE_SPOOL_LIMIT_TAKES ", or an Array of both, not %+"PRIsVALUE,
                 limit);
    if (!given_p(compression)) return spool;
    text = rb_obj_as_string(compression);
    const char *why = rb_vm_trace_spool_take_compression(&spool, StringValueCStr(text));
    if (why) rb_raise(rb_eArgError, "spool_compress: %s, not %+"PRIsVALUE, why, compression);
    return spool;
}

/* A folder for pieces (spool.h): its path is written to folder_out, which memory points to. */
static void
read_spool(const VALUE values[OPTIONS], struct rb_vm_trace_memory_config *memory, char folder_out[PATH_MAX])
{
    struct rb_vm_trace_spool spool = spool_config(values[SPOOL_EVERY], values[SPOOL_LIMIT], values[SPOOL_COMPRESS]);
    VALUE path = rb_get_path(values[SPOOL]);
    const char *why = rb_vm_trace_spool_make_folder(StringValueCStr(path), folder_out);
    if (why) rb_raise(rb_eArgError, "spool: %"PRIsVALUE": %s; give a folder that this user can write to", path, why);
    spool.folder = folder_out;
    rb_vm_trace_spool_use(memory, &spool);
}

static struct rb_vm_trace_memory_config
memory_config(const VALUE values[OPTIONS], char spool_folder[PATH_MAX])
{
    struct rb_vm_trace_memory_config memory = { 0 };
    bool spool = given_p(values[SPOOL]);
    if (!spool) REFUSE(values, "is for pieces of the recording; give spool:, a folder, too", SPOOL_EVERY, SPOOL_LIMIT,
                       SPOOL_COMPRESS);
    if (!spool && !given_p(values[MEMORY])) {
        REFUSE(values, "is for what is recorded into memory; give memory:, too", SECONDS, SAVE_AT);
        return memory;
    }
    memory.bytes = (uint64_t)VM_TRACE_DEFAULT_MEMORY_MIB << 20;
    if (given_p(values[MEMORY]))
        memory.bytes =
            number_between(values[MEMORY], MEMORY, "MiB", VM_TRACE_LEAST_MIB, VM_TRACE_MOST_MEMORY_MIB) << 20;
    REFUSE(values, "is for a file; memory: says how much there is of that", MAX_SIZE);
    if (spool) {
        REFUSE(values, "does not go with spool:, whose pieces have all of the time since the piece before", SECONDS);
        REFUSE(values, "does not go with spool:, which writes pieces at all of these moments", SAVE_AT);
        REFUSE(values, "does not go with spool:, in which each piece has a name of its own", PATH);
        read_spool(values, &memory, spool_folder);
        return memory;
    }
    if (given_p(values[SECONDS])) {
        memory.window_ns = number_between(values[SECONDS], SECONDS, "seconds", 1, VM_TRACE_MOST_SECONDS) * 1000000000;
    }
    if (given_p(values[SAVE_AT])) memory.save_at = moments(values[SAVE_AT]);
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
    rb_str_append(text, min ? duration_text(value) : rb_obj_as_string(value));
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

void
rb_vm_trace_read_start_options(VALUE options, struct vm_trace_start_options *out)
{
    VALUE *values = out->values;
    struct rb_vm_trace_config *config = &out->config;
    struct vm_trace_stream_request *requests = out->requests;
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
    out->min_free_bytes = !given_p(values[MIN_FREE]) ? rb_vm_trace_session.flags.min_free_bytes :
        number_between(values[MIN_FREE], MIN_FREE, "MiB", 0, VM_TRACE_MOST_MIB) << 20;
    out->stack_frames = !given_p(values[STACK]) ? 0 :
        (uint32_t)number_between(values[STACK], STACK, "frames", 1, VM_TRACE_MOST_FRAMES);
    out->memory = memory_config(values, out->spool_folder); /* last: it makes a folder */
}
