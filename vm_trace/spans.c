/*
 * Durations: compilations with their phases, and invalidations.
 */
#include "event.h"

#include <stdlib.h>
#include <string.h>

struct span_event {
    enum rb_vm_trace_span span;
    uint64_t ns;
    const char *name;
    size_t name_bytes;
    const struct vm_trace_string *phase;  /* the name, interned, or NULL */
    /* for the end of a whole compilation: */
    const char *iseq;
    size_t iseq_bytes;
    uint32_t version;
    uint64_t code_bytes;
};

static enum vm_trace_word
category(enum rb_vm_trace_span span)
{
    return span == RB_VM_TRACE_INVALIDATION ? W_INVALIDATION : W_COMPILE;
}

static bool
wanted(enum rb_vm_trace_span span)
{
    return trace_on() && (span == RB_VM_TRACE_INVALIDATION ? rb_vm_trace_global.config.invalidations
                                                           : rb_vm_trace_global.config.compiles);
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
write_begin(struct rb_vm_trace_local *local, struct rb_execution_context_struct *ec, const void *what)
{
    const struct span_event *span = what;
    struct vm_trace_event event;
    unsigned name;
    if (!rb_vm_trace_event_begin(&event, local, ec, span->ns)) return false;
    if (!span_name(&event, span, &name)) return false;
    if (span->span == RB_VM_TRACE_INVALIDATION && !rb_vm_trace_event_backtrace(&event, &local->stacks)) return false;
    if (!event_running(&event, local, ec)) return false;
    return event_end(&event, FXT_DURATION_BEGIN, category(span->span), name);
}

static bool
write_end(struct rb_vm_trace_local *local, struct rb_execution_context_struct *ec, const void *what)
{
    const struct span_event *span = what;
    struct vm_trace_event event;
    unsigned name;
    if (!rb_vm_trace_event_begin(&event, local, ec, span->ns)) return false;
    if (!span_name(&event, span, &name)) return false;
    if (span->iseq) {
        if (!event_text(&event, W_ISEQ, span->iseq, span->iseq_bytes)) return false;
        event_uint32(&event, W_VERSION, span->version);
        event_uint64(&event, W_CODE_BYTES, span->code_bytes);
    }
    if (!event_running(&event, local, ec)) return false;
    return event_end(&event, FXT_DURATION_END, category(span->span), name);
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
    span->phase = span->span == RB_VM_TRACE_PHASE ? rb_vm_trace_string_permanent(span->name, bytes) : NULL;
    return copy;
}

static struct rb_vm_trace_local *
current_local(struct rb_execution_context_struct **ec_out)
{
    struct rb_execution_context_struct *ec = *ec_out = rb_vm_trace_host_current();
    struct rb_vm_trace_local *local = ec ? rb_vm_trace_host_local(ec) : NULL;
    return local == rb_vm_trace_global.spare ? NULL : local;
}

bool
rb_vm_trace_span_begin(enum rb_vm_trace_span kind, const char *name, size_t name_len)
{
    if (!wanted(kind)) return false;
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_local *local = current_local(&ec);
    if (!local) return false;

    struct span_event span = { .span = kind, .ns = clock_now_ns(&local->clock) };
    if (kind == RB_VM_TRACE_INVALIDATION && !rb_vm_trace_stacks_capture(&local->stacks, ec, 0)) {
        local->lost++;
        return false;
    }
    char *copy = set_name(&span, name, name_len);
    bool ok = rb_vm_trace_event_write(local, ec, write_begin, &span);
    free(copy);
    return ok;
}

static void
end_span(struct span_event *span, const char *name, size_t name_len)
{
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_local *local = current_local(&ec);
    if (!local || !trace_on()) return;
    span->ns = clock_now_ns(&local->clock);
    char *copy = set_name(span, name, name_len);
    rb_vm_trace_event_write(local, ec, write_end, span);
    free(copy);
}

void
rb_vm_trace_span_end(enum rb_vm_trace_span kind, const char *name, size_t name_len)
{
    struct span_event span = { .span = kind };
    end_span(&span, name, name_len);
}

void
rb_vm_trace_compile_end(const char *name, size_t name_len, const struct rb_iseq_struct *iseq,
                        uint32_t version, size_t code_bytes)
{
    char buffer[1024];
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    struct vm_trace_frame frame = {
        .pc = from + HOST_PC_EXACT, .method = rb_vm_trace_host_method_of(iseq), .iseq = iseq
    };
    size_t bytes;
    char *label = rb_vm_trace_text_whole(rb_vm_trace_make_label, &frame, buffer, sizeof(buffer), &bytes);
    struct span_event span = {
        .span = RB_VM_TRACE_COMPILE, .iseq = label, .iseq_bytes = bytes, .version = version, .code_bytes = code_bytes
    };
    end_span(&span, name, name_len);
    if (label != buffer) free(label);
}
