#ifndef RUBY_VM_TRACE_STREAMS_EXITS_EXIT_EVENT_H
#define RUBY_VM_TRACE_STREAMS_EXITS_EXIT_EVENT_H 1
/*
 * Writes the event of an exit or a fallback for the first time, and then keeps it as a template
 * (exit_templates.h).
 */
#include "vm_trace/streams/exits/seen.h"
#include "vm_trace/streams/code/sites.h"

/* The arrow that begins or ends at an exit. */
struct exit_flow {
    enum fxt_event_type type;
    enum known_string name;
    uint64_t id;                   /* 0: none */
};

struct exit_event {
    const struct rb_vm_trace_site *site;
    uint64_t ns;
    uint64_t weight;               /* exits that this one represents */
    enum known_string outcome;    /* STRING_NONE: not a recompile exit */
    struct exit_flow flow;
    uint64_t seen;                 /* what its guard has met (see) */
    struct vm_trace_seen_text seen_text;
};

/* The whole captured stack; 0: there is none. */
static inline uint32_t
node_of(const struct rb_vm_trace_ractor *ractor)
{
    const struct vm_trace_walk *walk = &ractor->stacks.walk;
    return walk->count ? walk->frames[walk->count - 1].node : 0;
}

/*
 * The place of the template for an exit with that stack. `seen`: as in struct exit_event; a guard that
 * meets a few classes in turn has a template for each of them.
 */
static inline struct vm_trace_template *
template_of(struct rb_vm_trace_ractor *ractor, uint32_t node, uint64_t seen)
{
    struct vm_trace_exit_state *exits = exits_of(ractor);
    const uint64_t golden_ratio = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t which = seen ? (exits->seen.klass ^ seen >> 32) * golden_ratio >> 32 : 0;
    return &exits->templates[(node + which) % VM_TRACE_TEMPLATES];
}

/* The last word that was written is the exit's lost time, which is filled in later. */
static inline void
note_event(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_last_exit *last = &exits_of(ractor)->last;
    last->chunk = ractor->writer.chunk_serial;
    last->lost_ns = writer_last_word(&ractor->writer);
}

/* Write the sample; there is room for it. `lost`: its last word is the lost time, too. */
static inline void
write_sample(struct rb_vm_trace_ractor *ractor, const struct vm_trace_sample *sample, uint64_t ns, bool lost)
{
    sample_write(&ractor->writer, sample, ns);
    if (lost) exits_of(ractor)->last.sample_lost_ns = writer_last_word(&ractor->writer);
}

/*
 * Write the event. False: it could not be written, and is counted as lost. `seen`: what its guard has
 * met; the event lacks it if there is no memory for its text. The stack was captured before.
 */
bool rb_vm_trace_exit_write(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                            struct exit_event *exit, uint64_t seen);

#endif /* RUBY_VM_TRACE_STREAMS_EXITS_EXIT_EVENT_H */
