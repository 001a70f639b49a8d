#ifndef RUBY_VM_TRACE_STREAMS_THROWS_H
#define RUBY_VM_TRACE_STREAMS_THROWS_H 1
/*
 * Exits in pairs: where a `break` or a `return` of a block leaves compiled code, and where an outer
 * frame catches it.
 */
#include "vm_trace/streams/exit_event.h"

/*
 * The arrow from an exit at a `throw` to the next exit, when that is in a frame that can catch it.
 * Only where every exit is recorded: else the one that is recorded next need not be the next.
 *
 * `thrown`: the throw that was recorded last, if no other exit was since. Of a throw, its catchers
 * are noted there; its flow is to be, once the event is written.
 */
struct exit_flow rb_vm_trace_flow_of_throw(struct vm_trace_throw *thrown, enum vm_trace_throw_part part,
                                           struct rb_execution_context_struct *ec);

#endif /* RUBY_VM_TRACE_STREAMS_THROWS_H */
