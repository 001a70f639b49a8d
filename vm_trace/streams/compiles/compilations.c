/*
 * Durations: compilations with their phases, and invalidations; and what joins the invalidation of
 * a version to the next compilation.
 */
#include "vm_trace/base/messages.h"
#include "vm_trace/capture/method_filter.h"
#include "vm_trace/streams/compiles/counters.h"
#include "vm_trace/streams/states/call_times.h"
#include "vm_trace/streams/code/code_text.h"
#include "vm_trace/streams/code/sites.h"
#include "vm_trace/streams/states/states.h"
#include "vm_trace/streams/code/versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct span_event {
    enum rb_vm_trace_span span;
    uint64_t ns;
    const char *name;
    size_t name_bytes;
    const struct vm_trace_string *phase;  /* the name, when it is interned, or NULL */
    /* for the end of a whole compilation: */
    const struct rb_vm_trace_compiled *compiled;
    const char *iseq;
    size_t iseq_bytes;
    const char *inlined; /* or NULL */
    size_t inlined_bytes;
    /* for its beginning: */
    const struct vm_trace_version_history *history;
};

static enum known_string
category(enum rb_vm_trace_span span)
{
    return span == RB_VM_TRACE_INVALIDATION ? STRING_INVALIDATION : STRING_COMPILE;
}

static bool
wanted(enum rb_vm_trace_span span)
{
    return trace_on() && (span == RB_VM_TRACE_INVALIDATION ? rb_vm_trace_invalidations.rate > 0
                                                           : rb_vm_trace_compiles.rate > 0);
}

static bool
span_name(struct vm_trace_event *event, const struct span_event *span, unsigned *index_out)
{
    if (span->phase) return writer_interned(event->writer, span->phase, index_out);
    struct vm_trace_slot slot;
    if (!rb_vm_trace_writer_define(event->writer, &slot, span->name, span->name_bytes)) return false;
    *index_out = slot.index;
    return true;
}

static bool
write_begin(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct span_event *span = what;
    struct vm_trace_event event;
    unsigned name;
    if (!rb_vm_trace_event_begin_in_fiber(&event, ractor, ec, span->ns)) return false;
    if (!span_name(&event, span, &name)) return false;
    if (span->span == RB_VM_TRACE_INVALIDATION && !rb_vm_trace_event_backtrace(&event, &ractor->stacks, 0)) return false;
    return event_end(&event, FXT_EVENT_DURATION_BEGIN, category(span->span), name);
}

/*
 * The beginning of a compilation: the ISEQ's `reprofile` span ends here, and so does the flow,
 * where the compilation is recorded.
 */
static bool
write_compile_begin(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct span_event *span = what;
    const struct vm_trace_version_history *history = span->history;
    bool ends = history && history->reprofile;
    struct vm_trace_event event, reprofile;
    unsigned name, label;
    if (!rb_vm_trace_event_begin_in_fiber(&event, ractor, ec, span->ns)) return false;
    if (span->name && !span_name(&event, span, &name)) return false;
    if (ends) {
        reprofile = event;
        if (!writer_interned(event.writer, history->label, &label)) return false;
        if (!event_room(&event, 3 + event.words + EVENT_FLOW_WORDS)) return false;
        event_end_id(&reprofile, FXT_EVENT_ASYNC_END, STRING_REPROFILE, label, history->reprofile);
    }
    if (!span->name) return true;
    if (!event_end(&event, FXT_EVENT_DURATION_BEGIN, STRING_COMPILE, name)) return false;
    return !ends || !history->flow || event_flow(&event, FXT_EVENT_FLOW_END, STRING_RECOMPILATION, history->reprofile);
}

static bool
write_end(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct span_event *span = what;
    struct vm_trace_event event;
    unsigned name;
    if (!rb_vm_trace_event_begin_in_fiber(&event, ractor, ec, span->ns)) return false;
    if (!span_name(&event, span, &name)) return false;
    const struct rb_vm_trace_compiled *compiled = span->compiled;
    if (compiled) {
        if (!event_text(&event, STRING_ISEQ, span->iseq, span->iseq_bytes)) return false;
        event_uint32(&event, STRING_VERSION, compiled->version);
        event_uint64(&event, STRING_CODE_BYTES, compiled->code_bytes);
        if (compiled->counted) {
            event_uint64(&event, STRING_EXIT_BYTES, compiled->exit_bytes);
            event_uint64(&event, STRING_EXITS, compiled->exits);
        }
        if (span->inlined && !event_text(&event, STRING_INLINED, span->inlined, span->inlined_bytes)) return false;
        if (compiled->error && !event_text(&event, STRING_ERROR, compiled->error, compiled->error_len)) return false;
    }
    return event_end(&event, FXT_EVENT_DURATION_END, category(span->span), name);
}

/*
 * Phases have few names, which recur: they are interned and stay. Other names hold an ISEQ's
 * or an address, and are written where they occur. Returns what the caller has to free.
 */
static char *
set_name(struct span_event *span, const char *name, size_t bytes)
{
    char *copy;
    span->name = rb_vm_trace_text_clean(name, &bytes, &copy);
    span->name_bytes = bytes;
    if (span->span == RB_VM_TRACE_PHASE) span->phase = rb_vm_trace_string_permanent(span->name, bytes);
    return copy;
}

bool
rb_vm_trace_span_begin(enum rb_vm_trace_span kind, const char *name, size_t name_len)
{
    if (!wanted(kind)) return false;
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    if (!ractor) return false;

    struct span_event span = { .span = kind, .ns = clock_now_ns(&ractor->clock) };
    if (kind == RB_VM_TRACE_INVALIDATION && !stacks_capture(&ractor->stacks, ec, 0)) {
        ractor->lost++;
        return false;
    }
    char *copy = set_name(&span, name, name_len);
    bool ok = rb_vm_trace_event_write(ractor, ec, write_begin, &span);
    if (ok && kind == RB_VM_TRACE_INVALIDATION && !versions_of(ractor)->violated) {
        versions_of(ractor)->violated = rb_vm_trace_string_intern(span.name, span.name_bytes);
    }
    free(copy);
    if (ok && kind == RB_VM_TRACE_COMPILE) rb_vm_trace_states_compile_begin(ractor, ec, span.ns);
    return ok;
}

static void
end_span(struct span_event *span, const char *name, size_t name_len)
{
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    if (!ractor || !trace_on()) return;
    span->ns = clock_now_ns(&ractor->clock);
    char *copy = set_name(span, name, name_len);
    rb_vm_trace_event_write(ractor, ec, write_end, span);
    free(copy);
    if (span->compiled) rb_vm_trace_counters_write(ractor, ec);
    if (span->span == RB_VM_TRACE_COMPILE) rb_vm_trace_states_compile_end(ractor, ec, span->ns); /* failed, too */
}

void
rb_vm_trace_span_end(enum rb_vm_trace_span kind, const char *name, size_t name_len)
{
    struct span_event span = { .span = kind };
    end_span(&span, name, name_len);
    if (kind != RB_VM_TRACE_INVALIDATION) return;
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    if (!ractor) return;
    rb_vm_trace_string_release(versions_of(ractor)->violated);
    versions_of(ractor)->violated = NULL;
}

/* --- compilations --------------------------------------------------------------------------- */

/* Callees that were inlined into what is being compiled. Guarded by the VM lock. */
static struct inlined {
    char *label;
    size_t bytes;
    unsigned count;
} *inlined_list;
static size_t inlined_count, inlined_capacity;

void
rb_vm_trace_inlined(const struct rb_iseq_struct *callee, const void *method_entry)
{
    if (!wanted(RB_VM_TRACE_COMPILE)) return;
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(callee, &from, &to);
    struct vm_trace_frame frame = { .pc = from + HOST_PC_EXACT, .method = (uintptr_t)method_entry, .iseq = callee };
    char buffer[1024];
    size_t bytes;
    char *text = rb_vm_trace_text_whole(rb_vm_trace_make_label, &frame, buffer, sizeof(buffer), &bytes);
    for (size_t i = 0; i < inlined_count; i++) {
        if (inlined_list[i].bytes != bytes || memcmp(inlined_list[i].label, text, bytes) != 0) continue;
        inlined_list[i].count++;
        goto done;
    }
    if (inlined_count == inlined_capacity) {
        size_t capacity = inlined_capacity ? inlined_capacity * 2 : 16;
        struct inlined *grown = realloc(inlined_list, capacity * sizeof(*grown));
        if (!grown) goto done; /* the event will tell fewer */
        inlined_list = grown;
        inlined_capacity = capacity;
    }
    char *label = malloc(bytes);
    if (!label) goto done;
    memcpy(label, text, bytes);
    inlined_list[inlined_count++] = (struct inlined){ label, bytes, 1 };
  done:
    if (text != buffer) free(text);
}

/*
 * "label, label x2", cut to what a record holds, and forget them. NULL: there are none. The caller
 * frees it.
 */
static char *
inlined_text(size_t *bytes_out)
{
    size_t room = 1, at = 0;
    for (size_t i = 0; i < inlined_count; i++) room += inlined_list[i].bytes + sizeof(", x4294967295");
    char *text = inlined_count ? malloc(room) : NULL;
    for (size_t i = 0; i < inlined_count; i++) {
        const struct inlined *inlined = &inlined_list[i];
        if (text) {
            if (at) at += (size_t)sprintf(text + at, ", ");
            memcpy(text + at, inlined->label, inlined->bytes);
            at += inlined->bytes;
            if (inlined->count > 1) at += (size_t)sprintf(text + at, " x%u", inlined->count);
        }
        free(inlined->label);
    }
    inlined_count = 0;
    *bytes_out = text ? rb_vm_trace_string_cut(text, at) : 0;
    return text;
}

bool
rb_vm_trace_compile_begin(const char *name, size_t name_len, const struct rb_iseq_struct *iseq)
{
    if (!trace_on()) return false;
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    if (!ractor) return false;

    bool compiles = rb_vm_trace_compiles.rate > 0, ok = true;
    struct span_event span = { .span = RB_VM_TRACE_COMPILE, .ns = clock_now_ns(&ractor->clock) };
    char *copy = compiles ? set_name(&span, name, name_len) : NULL;
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    struct vm_trace_version_history *history = rb_vm_trace_version_history_of(iseq);
    span.history = history;
    if (compiles && history && !rb_vm_trace_method_requested_p(history->label->text, history->label->bytes)) {
        compiles = false;
        span.name = NULL; /* only what is open ends */
    }
    if (compiles || (history && history->reprofile))
        ok = rb_vm_trace_event_write(ractor, ec, write_compile_begin, &span);
    if (history) history->reprofile = 0;
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
    free(copy);
    if (compiles && ok) rb_vm_trace_states_compile_begin(ractor, ec, span.ns);
    return compiles && ok;
}

/* The label of an ISEQ with a version history, else that of the innermost frame. */
static char *
iseq_label(const struct rb_iseq_struct *iseq, char *buffer, size_t capacity, size_t *bytes_out)
{
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    struct vm_trace_string *known = rb_vm_trace_version_history_label(from);
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
    if (known) {
        char *text = known->bytes <= capacity ? buffer : malloc(known->bytes);
        *bytes_out = text ? known->bytes : 0;
        if (text) memcpy(text, known->text, known->bytes);
        rb_vm_trace_string_release(known);
        return text ? text : buffer;
    }
    struct vm_trace_frame frame = {
        .pc = from + HOST_PC_EXACT, .method = rb_vm_trace_host_method_of(iseq), .iseq = iseq
    };
    return rb_vm_trace_text_whole(rb_vm_trace_make_label, &frame, buffer, capacity, bytes_out);
}

static void
interpreted_until_now(const struct rb_iseq_struct *iseq)
{
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    rb_vm_trace_call_times_compiled(from);
}

void
rb_vm_trace_compiled(const char *name, size_t name_len, const struct rb_vm_trace_compiled *compiled)
{
    char buffer[1024];
    size_t bytes;
    char *label = iseq_label(compiled->iseq, buffer, sizeof(buffer), &bytes);
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    rb_vm_trace_count_compiled(compiled->code_bytes, compiled->version > 0);
    if (compiled->version) interpreted_until_now(compiled->iseq);
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);

    struct rb_vm_trace_compiled clean = *compiled;
    char *error = NULL;
    if (clean.error) clean.error = rb_vm_trace_text_clean(clean.error, &clean.error_len, &error);
    struct span_event span = {
        .span = RB_VM_TRACE_COMPILE, .compiled = &clean,
        .iseq = label, .iseq_bytes = bytes
    };
    char *inlined = inlined_text(&span.inlined_bytes);
    span.inlined = inlined;
    end_span(&span, name, name_len);
    free(inlined);
    free(error);
    if (label != buffer) free(label);
}

void
rb_vm_trace_compile_end(const char *name, size_t name_len, const struct rb_iseq_struct *iseq,
                        uint32_t version, size_t code_bytes)
{
    struct rb_vm_trace_compiled compiled = { .iseq = iseq, .version = version, .code_bytes = code_bytes };
    rb_vm_trace_compiled(name, name_len, &compiled);
}

/* --- invalidated versions ---------------------------------------------------------------------- */

struct version_event {
    uint64_t ns;
    const struct vm_trace_string *why, *iseq;
    uint32_t version;
    bool backtrace;
    enum fxt_event_type flow_type;
    uint64_t flow, reprofile; /* 0: none */
};

static bool
write_version_begin(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct version_event *version = what;
    enum { REPROFILE_WORDS = 5 };
    struct vm_trace_event event, reprofile;
    unsigned why, iseq;
    if (!rb_vm_trace_event_begin_in_fiber(&event, ractor, ec, version->ns)) return false;
    reprofile = event;
    if (!writer_interned(event.writer, version->why, &why) || !writer_interned(event.writer, version->iseq, &iseq))
        return false;
    if (version->backtrace && !rb_vm_trace_event_backtrace(&event, &ractor->stacks, 0)) return false;
    event_string(&event, STRING_ISEQ, iseq);
    event_uint32(&event, STRING_VERSION, version->version);

    /* All of it or nothing. */
    if (!event_room(&event, event.words + EVENT_FLOW_WORDS + REPROFILE_WORDS)) return false;
    event_end(&event, FXT_EVENT_DURATION_BEGIN, STRING_INVALIDATION, why);
    if (version->flow) event_flow(&event, version->flow_type, STRING_RECOMPILATION, version->flow);
    if (version->reprofile) {
        event_string(&reprofile, STRING_REASON, why);
        event_uint32(&reprofile, STRING_VERSION, version->version);
        event_end_id(&reprofile, FXT_EVENT_ASYNC_BEGIN, STRING_REPROFILE, iseq, version->reprofile);
    }
    return true;
}

/*
 * Why a version goes: what the JIT says, the exit that it acts upon, or the invalidation that it is
 * a part of. Own reference.
 */
static struct vm_trace_string *
why_invalidated(const struct rb_vm_trace_ractor *ractor, const char *reason, size_t reason_len)
{
    if (reason) return rb_vm_trace_string_intern(reason, reason_len);
    const struct vm_trace_version_state *versions = versions_of(ractor);
    const struct vm_trace_string *known = versions->exiting.site ? versions->exiting.site->reason : versions->violated;
    if (known) return rb_vm_trace_string_intern(known->text, known->bytes);
    size_t bytes;
    const char *text = rb_vm_trace_known_text(STRING_RECOMPILE_EXIT, &bytes); /* of exits that are not traced */
    return rb_vm_trace_string_intern(text, bytes);
}

bool
rb_vm_trace_version_begin(const struct rb_iseq_struct *iseq, uint32_t version, const char *reason, size_t reason_len,
                          bool may_recompile)
{
    if (!wanted(RB_VM_TRACE_INVALIDATION)) return false;
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    struct vm_trace_version_state *versions = ractor ? versions_of(ractor) : NULL;
    if (!ractor || versions->why) return false;

    struct version_event event = { .ns = clock_now_ns(&ractor->clock), .version = version };
    event.backtrace = !versions->violated;
    if (event.backtrace && !stacks_capture(&ractor->stacks, ec, 0)) {
        ractor->lost++;
        return false;
    }
    struct vm_trace_string *why = why_invalidated(ractor, reason, reason_len);
    event.why = why;

    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    rb_vm_trace_count_invalidated();
    struct vm_trace_version_history *history = rb_vm_trace_version_history_of(iseq);
    bool ok = why && history,
         requested = !ok || rb_vm_trace_method_requested_p(history->label->text, history->label->bytes);
    if (!ok) ractor->lost++;
    else if (!requested) ok = false;
    else {
        bool exits = versions->exiting.site && versions->exiting.weight && !versions->exiting.flow;
        uint64_t number = exits || may_recompile ? rb_vm_trace_version_history_number() : 0;
        event.iseq = history->label;
        event.flow = number;
        event.flow_type = !exits ? FXT_EVENT_FLOW_BEGIN : may_recompile ? FXT_EVENT_FLOW_STEP : FXT_EVENT_FLOW_END;
        if (exits) {
            versions->exiting.flow = number;
            if (event.ns <= versions->exiting.start_ns) event.ns = versions->exiting.start_ns + 1; /* the exit comes before */
        }
        if (may_recompile && !history->reprofile) event.reprofile = number;
        ok = rb_vm_trace_event_write(ractor, ec, write_version_begin, &event);
        if (ok && event.reprofile) {
            history->reprofile = number;
            history->flow = true;
        }
    }
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
    if (ok) versions->why = why;
    else rb_vm_trace_string_release(why);
    return ok;
}

void
rb_vm_trace_version_end(void)
{
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    struct vm_trace_version_state *versions = ractor ? versions_of(ractor) : NULL;
    if (!ractor || !versions->why) return;
    struct vm_trace_string *why = versions->why;
    struct span_event span = { .span = RB_VM_TRACE_INVALIDATION, .phase = why };
    end_span(&span, why->text, why->bytes);
    if (trace_on()) rb_vm_trace_counters_write(ractor, ec);
    versions->why = NULL;
    rb_vm_trace_string_release(why);
}

/* --- texts of code ------------------------------------------------------------------------------ */

static bool
request_code_text(const char *option, uint64_t *rate_out, const char **only_out)
{
    (void)rate_out;
    if (strcmp(option, "hir=all") == 0) option = "hir,all";
    if (!rb_vm_trace_code_text_parse(option)) return false;
    *only_out = option;
    return true;
}

static bool
write_code_text_setting(struct vm_trace_event *event)
{
    const char *only = rb_vm_trace_compiles.only;
    unsigned name;
    if (!only || !rb_vm_trace_known_init()) return true;
    return writer_interned(event->writer, KNOWN(CODE_TEXT), &name) &&
        event_text(event, (enum known_string)name, only, strlen(only));
}

static const char *
refuse_code_text(uint64_t rate, const char *only)
{
    if (!rate || !only || rb_vm_trace_code_wanted_p()) return NULL;
    return "HIR is kept while ZJIT compiles: start the program with ZJIT and --vm-trace=compiles:hir";
}

/* --- the streams --------------------------------------------------------------------------------- */

/*
 * A JIT that can be traced while it runs counts what it compiles only while something is recorded.
 */
static const char *
start_compiles(bool by_flags)
{
    const struct rb_vm_trace_jit *jit = rb_vm_trace_registered_jit();
    rb_vm_trace_code_text_next_file();
    if (rb_vm_trace_compiles.only && !rb_vm_trace_code_text_all_p() && !rb_vm_trace_exits.rate)
        rb_vm_trace_warn("compiles:hir keeps the text of code that exits, and no exits are traced: add exits, or "
                         "request compiles:hir=all");
    if (!by_flags && jit) jit->recording(true, rb_vm_trace_compiles.rate > 0, rb_vm_trace_invalidations.rate > 0);
    return NULL;
}

static const char *
start_with_jit(void)
{
    return trace_on() ? start_compiles(rb_vm_trace_capture.by_flags) : NULL;
}

static void
stop_compiles(void)
{
    const struct rb_vm_trace_jit *jit = rb_vm_trace_registered_jit();
    if (jit) jit->recording(false, false, false);
}

static void
unit_freed(uintptr_t unit, bool iseq, struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    if (iseq && trace_on()) rb_vm_trace_version_history_end(unit, ractor, ec);
}

struct rb_vm_trace_stream rb_vm_trace_compiles = {
    .name = "compiles",
    .needs_jit = true,
    .options = "hir, hir=all",
    .request = request_code_text,
    .refuse = refuse_code_text,
    .write_settings = write_code_text_setting,
    .start = start_compiles,
    .jit_ready = start_with_jit,
    .stop = stop_compiles,
    .after_fork = rb_vm_trace_code_text_next_file,
    .ended = rb_vm_trace_counters_clear,
    .chunk_begun = rb_vm_trace_counters_chunk
};

struct rb_vm_trace_stream rb_vm_trace_invalidations = {
    .name = "invalidations",
    .needs_jit = true,
    .ractor_bytes = sizeof(struct vm_trace_version_state),
    .ractor_begin = rb_vm_trace_version_state_begin,
    .ended = rb_vm_trace_version_histories_free,
    .unit_freed = unit_freed,
    .after_fork = rb_vm_trace_version_histories_after_fork
};
