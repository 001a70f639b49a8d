#ifndef RUBY_VM_TRACE_STREAMS_EXITS_EXIT_TEMPLATES_H
#define RUBY_VM_TRACE_STREAMS_EXITS_EXIT_TEMPLATES_H 1
/*
 * Events of exits that are written again with another time: most exits in a loop. Inline, because
 * each instruction counts.
 */
#include "vm_trace/streams/exits/exit_event.h"
#include "vm_trace/streams/code/versions.h"

/*
 * Copy `count` words. They are few, and the compiler does not know their number. So copy four at a
 * time, and at the end the last four, which may overlap: that takes a fraction of a loop's
 * instructions.
 */
static inline __attribute__((always_inline)) void
copy_words(uint64_t *to, const uint64_t *from, size_t count)
{
    enum { STEP = 4, STEP_BYTES = STEP * sizeof(uint64_t) };
    if (count < STEP) {
        for (size_t i = 0; i < count; i++) to[i] = from[i];
        return;
    }
    for (size_t i = 0; i + STEP < count; i += STEP) memcpy(to + i, from + i, STEP_BYTES);
    memcpy(to + count - STEP, from + count - STEP, STEP_BYTES);
}

/* For the function below, if the class is another one. */
bool rb_vm_trace_exit_same_name_p(const struct vm_trace_exit_state *exits, struct vm_trace_template *known);

/* Whether the object that the guard has met has the class in the template. */
static inline bool
same_class_p(const struct vm_trace_exit_state *exits, struct vm_trace_template *known)
{
    return __builtin_expect(known->seen_class == exits->seen.klass, 1) || rb_vm_trace_exit_same_name_p(exits, known);
}

/* Put the numbers into the record of a template; they may differ from exit to exit. */
static inline void
put_numbers(uint64_t *record, const struct vm_trace_template *known, const struct vm_trace_seen *seen)
{
    uint64_t *at = record + known->numbers;
    if (__builtin_expect(known->seen & VM_TRACE_SAW_WIDE, 0)) {
        if (known->seen & VM_TRACE_SAW_INDEX) {
            at[1] = (uint64_t)seen->index;
            at += 2;
        }
        if (known->seen & VM_TRACE_SAW_LENGTH) at[1] = seen->length;
        return;
    }
    if (known->seen & VM_TRACE_SAW_INDEX) {
        *at = fxt_argument_with_value(*at, (uint32_t)seen->index);
        at++;
    }
    if (known->seen & VM_TRACE_SAW_LENGTH) *at = fxt_argument_with_value(*at, (uint32_t)seen->length);
}

/*
 * Write the event of a template with another time, for a thread with that index, if there is room for
 * it and for `more_words` behind it. `seen`: as in struct exit_event. `flow`: its own arrow, or NULL.
 */
static inline __attribute__((always_inline)) bool
write_template(struct rb_vm_trace_ractor *ractor, const struct vm_trace_template *known, unsigned thread, uint64_t ns,
               uint64_t seen, const struct exit_flow *flow, size_t more_words)
{
    struct rb_vm_trace_writer *writer = &ractor->writer;
    size_t words = known->words;
    if (flow) more_words += EVENT_FLOW_WORDS;
    if (more_words && writer->pos + words + more_words > writer->limit) return false;
    uint64_t *to = writer_reserve(writer, words);
    if (!to) return false;
    to[1] = ns;
    copy_words(to + 2, known->record + 2, words - 2);
    if (seen > UINT8_MAX) put_numbers(to, known, &exits_of(ractor)->seen);
    writer_publish(writer, words, fxt_event_header_with_thread(known->record[0], thread));
    writer_count_events(writer, 1);
    if (known->lost) note_event(ractor);
    if (flow) write_flow(writer, thread, ns, flow->type, flow->name, flow->id);
    return true;
}

/*
 * The same with its sample. False, too, if the sample belongs to another thread. Out of line, because
 * most traces have no samples.
 */
bool rb_vm_trace_exit_write_with_sample_again(struct rb_vm_trace_ractor *ractor,
                                              const struct vm_trace_template *known, unsigned thread, uint64_t ns,
                                              uint64_t seen, const struct exit_flow *flow);

/*
 * Write the event of a template again, with another time. `seen`: as in struct exit_event. `flow`: its
 * own arrow, or NULL. False: there is no template, or no room.
 */
static inline __attribute__((always_inline)) bool
write_again(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
            const struct rb_vm_trace_site *site, uint64_t ns, enum known_string outcome, uint64_t seen,
            const struct exit_flow *flow)
{
    struct rb_vm_trace_writer *writer = &ractor->writer;
    uint32_t node = node_of(ractor);
    struct vm_trace_template *known = template_of(ractor, node, seen);
    if (known->node != node || known->site != site->serial || known->outcome != (uint32_t)outcome ||
        known->chunk != writer->serial || known->tree != ractor->stacks.tree || known->seen != seen) {
        return false;
    }
    if ((seen & UINT8_MAX) == VM_TRACE_SAW_OBJECT && !same_class_p(exits_of(ractor), known)) return false;
    const struct vm_trace_thread_id *fiber = &ractor->stacks.walk.fiber;
    unsigned thread = writer_thread(writer, fiber->tid, fiber->name_id);
    if (!thread) return false;
    if (__builtin_expect(known->sampled, 0)) {
        return rb_vm_trace_exit_write_with_sample_again(ractor, known, thread, ns, seen, flow);
    }
    return write_template(ractor, known, thread, ns, seen, flow, 0);
}

#endif /* RUBY_VM_TRACE_STREAMS_EXITS_EXIT_TEMPLATES_H */
