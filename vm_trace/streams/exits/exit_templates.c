/*
 * Events of exits with stack samples, written once more: see exit_templates.h.
 */
#include "vm_trace/streams/exits/exit_templates.h"

bool
rb_vm_trace_exit_same_name_p(const struct vm_trace_exit_state *exits, struct vm_trace_template *known)
{
    const struct vm_trace_string *text = exits->seen_texts.texts[known->seen_place];
    bool same = text && text->serial == known->seen_serial &&
                rb_vm_trace_host_value_named_p(exits->seen.value, text->text, known->class_bytes);
    if (same) known->seen_class = rb_vm_trace_seen_class(&exits->seen);
    return same;
}

bool
rb_vm_trace_exit_write_with_sample_again(struct rb_vm_trace_ractor *ractor, const struct vm_trace_template *known,
                                         unsigned thread, uint64_t ns, uint64_t seen, const struct exit_flow *flow)
{
    const struct vm_trace_sample *sample = &known->sample;
    if (sample->tid != ractor->stacks.walk.fiber.tid) return false;
    if (!write_template(ractor, known, thread, ns, seen, flow, sample->words)) return false;
    write_sample(ractor, sample, ns, known->lost);
    return true;
}
