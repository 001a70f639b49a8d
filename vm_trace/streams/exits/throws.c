/*
 * A throw and its catch: see throws.h.
 */
#include "vm_trace/streams/exits/throws.h"
#include "vm_trace/streams/code/versions.h"

static bool
catches_p(const struct vm_trace_throw *thrown, struct rb_execution_context_struct *ec)
{
    struct vm_trace_catcher frame = rb_vm_trace_host_catcher(ec);
    for (size_t i = 0; i < thrown->catcher_count; i++) {
        const struct vm_trace_catcher *catcher = &thrown->catchers[i];
        if (catcher->frame == frame.frame && catcher->iseq == frame.iseq) return true;
    }
    return false;
}

struct exit_flow
rb_vm_trace_flow_of_throw(struct vm_trace_throw *thrown, enum vm_trace_throw_part part,
                          struct rb_execution_context_struct *ec)
{
    struct exit_flow none = { .id = 0 };
    if (rb_vm_trace_exits.rate != 1) return none;
    if (part == THROWS) {
        thrown->catcher_count = rb_vm_trace_host_catchers(ec, thrown->catchers);
        if (!thrown->catcher_count) return none;
        return (struct exit_flow){ FXT_EVENT_FLOW_BEGIN, STRING_THROW, rb_vm_trace_version_history_number() };
    }
    if (!thrown->flow || !catches_p(thrown, ec)) return none;
    return (struct exit_flow){ FXT_EVENT_FLOW_END, STRING_THROW, thrown->flow };
}
