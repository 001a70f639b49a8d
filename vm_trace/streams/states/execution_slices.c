/*
 * Slices of execution states. See execution_slices.h.
 */
#include "vm_trace/streams/states/execution_slices.h"
#include "vm_trace/streams/states/call_times.h"
#include "vm_trace/streams/code/sites.h"

#include <string.h>

/* Numbers of tracks, of all threads. */
static uint32_t last_track;

static const struct vm_trace_string *
name_of(enum vm_trace_execution state)
{
    if (state == VM_TRACE_COMPILED) return KNOWN(COMPILED);
    return state == VM_TRACE_COMPILING ? KNOWN(COMPILING) : KNOWN(INTERPRETED);
}

static size_t
name_track(const void *ec, char *buffer, size_t capacity)
{
    static const char SUFFIX[] = " execution";
    size_t bytes = rb_vm_trace_host_fiber_name((struct rb_execution_context_struct *)ec, buffer, capacity);
    for (size_t i = 0; i < sizeof(SUFFIX) - 1; i++, bytes++) {
        if (bytes < capacity) buffer[bytes] = SUFFIX[i];
    }
    return bytes;
}

struct slice {
    struct rb_vm_trace_states *states;
    const struct vm_trace_level *level;
    uint64_t begin_ns, end_ns;
};

static bool
begin_slice(struct vm_trace_event *event, struct rb_vm_trace_ractor *ractor, const struct slice *slice)
{
    struct rb_vm_trace_states *states = slice->states;
    if (!states->track) states->track = __atomic_add_fetch(&last_track, 1, __ATOMIC_RELAXED);
    struct vm_trace_thread_id id = rb_vm_trace_host_fiber(states->ec);
    id.tid = HOST_SYNTHETIC_EXECUTION + states->track % (HOST_SYNTHETIC_CPUS - HOST_SYNTHETIC_EXECUTION);
    return rb_vm_trace_event_begin_on(event, ractor, id, name_track, states->ec, slice->begin_ns);
}

/* What the exit was, that led to it. */
static bool
put_exit(struct vm_trace_event *event, const struct rb_vm_trace_site *site)
{
    return event_interned(event, STRING_REASON, site->reason) && event_interned(event, STRING_INSN, site->insn) &&
        event_interned(event, STRING_FRAME_0, site->location);
}

/* Its label is made once: a program may have thousands of slices in a second. */
static bool
put_iseq(struct vm_trace_event *event, const struct rb_iseq_struct *iseq)
{
    const struct vm_trace_call_times *calls = iseq ? rb_vm_trace_call_times_of(iseq) : NULL;
    return !calls || event_interned(event, STRING_ISEQ, rb_vm_trace_call_times_label(calls));
}

static bool
write_event(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    (void)ec;
    const struct slice *slice = what;
    const struct vm_trace_level *level = slice->level;
    const struct rb_vm_trace_site *site = level->state == VM_TRACE_EXITED ? level->exit.site : NULL;
    struct vm_trace_event event;
    unsigned category, name;
    if (!begin_slice(&event, ractor, slice)) return false;
    if (!writer_interned(event.writer, KNOWN(EXECUTION), &category)) return false;
    if (!writer_interned(event.writer, name_of(level->state), &name)) return false;
    if (site && site->serial == level->exit.serial) {
        if (!put_exit(&event, site)) return false;
    }
    else if (interpreted_p(level->state)) {
        const struct vm_trace_string *why = rb_vm_trace_call_times_why(level->state);
        unsigned key;
        /* None: due to an exit whose site was freed meanwhile, or to an exception. */
        if (why && (!writer_interned(event.writer, KNOWN(WHY), &key) ||
                    !event_interned(&event, (enum known_string)key, why)))
            return false;
    }
    if (!put_iseq(&event, level->iseq)) return false;
    return event_end_id(&event, FXT_EVENT_DURATION_COMPLETE, (enum known_string)category, name, slice->end_ns);
}

void
rb_vm_trace_write_slice_slow(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states,
                             const struct vm_trace_level *level, uint64_t end_ns)
{
    /*
     * What began before a reset begins with it, an outer level before an inner one: of slices that
     * begin at the same time, Perfetto keeps only the innermost.
     */
    ractor_notice_reset(ractor);
    uint64_t begin_ns = ractor->from_ns + (uint64_t)(level - states->levels);
    if (begin_ns < level->begin_ns) begin_ns = level->begin_ns;
    if (end_ns < begin_ns + rb_vm_trace_states.min_ns) {
        states->times->left_out++;
        return;
    }
    struct slice slice = { states, level, begin_ns, end_ns };
    rb_vm_trace_event_write(ractor, states->ec, write_event, &slice);
}
