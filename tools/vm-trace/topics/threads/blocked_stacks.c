/* blocked_stacks.c - see blocked_stacks.h */
#include "analysis/event_args.h"
#include "topics/threads/blocked_stacks.h"

/* The thread of a stack: its name at that time. */
static uint32_t
root_of(struct report *report, uint32_t row)
{
    const struct report_thread *thread = report_thread(report, row);
    return profile_thread(report->blocked_stacks, thread->name, thread->tid);
}

/* The begin of a `blocked` duration has the innermost frame, and its end the callers, if it was long:
 * returns the label of the frame, or the node of the callers (0: none). */
uint32_t
blocked_stack_of(void *context, const struct fxt_event *event, uint32_t row, bool end)
{
    struct report *report = context;
    if (end) {
        uint32_t root = root_of(report, row), node = profile_stack(report->blocked_stacks, root, event, 1);
        return node == root ? 0 : node;
    }
    uint32_t frame = event_text(report->pool, event, STRING_FRAME_0);
    return frame != STRING_NONE ? frame : pool_id(report->pool, event->name);
}

void
blocked_stack_add(struct report *report, const struct duration_edge *begin, const struct duration_edge *end,
                  struct interval time, uint64_t ns)
{
    struct profile *profile = report->blocked_stacks;
    uint32_t node = end != NULL && end->category == STRING_BLOCKED ? end->stack : 0;
    if (node == 0) {
        uint32_t none = pool_intern(report->pool, PROFILE_NO_STACK, sizeof PROFILE_NO_STACK - 1);
        node = profile_child(profile, root_of(report, begin->row), none, true);
    }
    node = profile_end_of(profile, profile_child(profile, node, begin->stack, false));
    profile_add(profile, node, ns);
    if (report->blocked_added != NULL) report->blocked_added(report->blocked_context, node, begin->ts_ns, time);
}
