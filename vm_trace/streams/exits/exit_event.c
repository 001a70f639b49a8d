/*
 * Events of exits: see exit_event.h.
 */
#include "vm_trace/streams/exits/exit_event.h"
#include "vm_trace/streams/states/states.h"
#include "vm_trace/streams/code/versions.h"

static bool
has_lost_time_p(const struct rb_vm_trace_site *site)
{
    return rb_vm_trace_states.rate && site->kind != RB_VM_TRACE_FALLBACK;
}

static bool
has_iseq_p(const struct rb_vm_trace_site *site)
{
    return site->inlined && site->iseq;
}

/* How many arguments an event has beside its backtrace. */
static unsigned
count_arguments(const struct exit_event *exit)
{
    const struct rb_vm_trace_site *site = exit->site;
    enum { INSN_AND_VERSION = 2 };
    unsigned count = INSN_AND_VERSION + (exit->weight > 1) + (exit->outcome != STRING_NONE) + (site->callee != NULL) +
        site->repeated;
    return count + seen_arguments(exit->seen) + has_iseq_p(site) + has_lost_time_p(site);
}

static void
keep_template(struct rb_vm_trace_ractor *ractor, const struct exit_event *exit, const struct vm_trace_event *event,
              unsigned numbers, const struct vm_trace_sample *sample)
{
    uint32_t node = node_of(ractor);
    if (!node) return;
    struct vm_trace_template *keep = template_of(ractor, node, exit->seen);
    keep->chunk = ractor->writer.serial;
    keep->tree = ractor->stacks.tree;
    keep->node = node;
    keep->site = exit->site->serial;
    keep->outcome = (uint32_t)exit->outcome;
    keep->words = event->words;
    keep->lost = has_lost_time_p(exit->site);
    keep->sampled = sample->words > 0;
    if (keep->sampled) keep->sample = *sample;
    keep->seen = exit->seen;
    if (exit->seen) {
        keep->numbers = (uint8_t)numbers;
        keep->seen_place = (uint8_t)exit->seen_text.place;
        keep->class_bytes = (uint32_t)exit->seen_text.class_bytes;
        keep->seen_class = rb_vm_trace_seen_class(&exits_of(ractor)->seen);
        keep->seen_serial = exit->seen_text.text->serial;
    }
    memcpy(keep->record, event->record, event->words * sizeof(*keep->record));
}

_Static_assert(TEXT_CACHE_SIZE <= UINT8_MAX + 1, "a template has the place in a byte");

static bool
write_exit(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct exit_event *exit = what;
    const struct rb_vm_trace_site *site = exit->site;
    struct vm_trace_event event;
    unsigned reason, numbers = 0;
    if (!rb_vm_trace_event_begin_in_fiber(&event, ractor, ec, exit->ns)) return false;
    if (!writer_interned(&ractor->writer, site->reason, &reason)) return false;
    bool sampled = rb_vm_trace_exits.samples && site->kind != RB_VM_TRACE_FALLBACK, lost = has_lost_time_p(site);
    if (!(sampled ? rb_vm_trace_event_frames_and : rb_vm_trace_event_backtrace_and)(&event, &ractor->stacks,
                                                                                    count_arguments(exit))) {
        return false;
    }
    if (!event_interned(&event, STRING_INSN, site->insn)) return false;
    event_uint32(&event, STRING_VERSION, site->version);
    if (exit->weight > 1) event_uint32(&event, STRING_WEIGHT, (uint32_t)exit->weight);
    if (exit->outcome != STRING_NONE) event_string(&event, STRING_OUTCOME, exit->outcome);
    if (site->callee && !event_interned_rarely(&event, KNOWN(CALLEE), site->callee)) return false;
    if (site->repeated && !event_uint32_rarely(&event, KNOWN(INSN_INDEX), site->insn_index)) return false;
    if (has_iseq_p(site) && !event_interned(&event, STRING_ISEQ, site->iseq)) return false;
    if (exit->seen) {
        enum { SEEN_WORDS = 1 };
        numbers = event.words + SEEN_WORDS;
        if (!rb_vm_trace_seen_write(&event, &exits_of(ractor)->seen, &exit->seen_text)) return false;
    }
    if (lost) { /* the last argument; states.c fills it in */
        if (!event_uint64_rarely(&event, KNOWN(LOST_NS), 0)) return false;
    }
    struct vm_trace_sample sample;
    sample.words = 0; /* the rest of it is for samples */
    if (sampled) {
        struct vm_trace_samples *samples = &exits_of(ractor)->samples;
        samples->lost_time = rb_vm_trace_states.rate > 0;
        if (!rb_vm_trace_sample_compose(ractor, samples, exit->weight, lost, &sample)) return false;
    }
    const struct exit_flow *flow = &exit->flow;
    size_t flow_words = flow->id ? EVENT_FLOW_WORDS : 0;
    if (!event_room(&event, event.words + flow_words + sample.words)) return false;
    if (!event_end(&event, FXT_EVENT_INSTANT, site_category(site), reason)) return false;
    if (lost) note_event(ractor);
    if (flow->id) event_flow(&event, flow->type, flow->name, flow->id);
    if (sample.words) write_sample(ractor, &sample, event.record[1], lost);
    keep_template(ractor, exit, &event, numbers, &sample);
    return true;
}

/* The frame of the first exit of a site has what was not known while compiling. */
static void
locate(const struct rb_vm_trace_site *site, const struct rb_vm_trace_stacks *stacks)
{
    if (__atomic_load_n(&site->located, __ATOMIC_RELAXED) || !stacks->walk.count) return;
    const struct vm_trace_label *label = &stacks->labels[stacks->walk.frames[stacks->walk.count - 1].id];
    rb_vm_trace_site_locate(site, label->text, label->bytes);
}

bool
rb_vm_trace_exit_write(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                       struct exit_event *exit, uint64_t seen)
{
    ractor_notice_reset(ractor);
    if (!hits_mark(ractor, exit->site->index)) {
        ractor->lost++;
        return false;
    }
    locate(exit->site, &ractor->stacks);
    if (seen) exit->seen_text = rb_vm_trace_seen_text(ractor, exit->site);
    if (exit->seen_text.text) exit->seen = seen;
    return rb_vm_trace_event_write_in_epoch(ractor, ec, write_exit, exit);
}
