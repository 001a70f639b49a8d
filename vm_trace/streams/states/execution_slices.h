#ifndef RUBY_VM_TRACE_STREAMS_STATES_EXECUTION_SLICES_H
#define RUBY_VM_TRACE_STREAMS_STATES_EXECUTION_SLICES_H 1
/*
 * Slices of category `execution`: levels (levels.h) that took long enough, on a track beside the
 * thread's.
 */

#include "vm_trace/streams/states/levels.h"

/* For the function below. */
void rb_vm_trace_write_slice_slow(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states,
                                  const struct vm_trace_level *level, uint64_t end_ns);

/* Write the level as it was until `end_ns`, unless it was shorter than `min`. GVL held. */
static inline void
write_slice(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, const struct vm_trace_level *level,
            uint64_t end_ns)
{
    if (end_ns - level->begin_ns < rb_vm_trace_states.min_ns) states->times->left_out++;
    else rb_vm_trace_write_slice_slow(ractor, states, level, end_ns);
}

#endif /* RUBY_VM_TRACE_STREAMS_STATES_EXECUTION_SLICES_H */
