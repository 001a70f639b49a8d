#ifndef RUBY_VM_TRACE_STREAMS_EXITS_THROWS_H
#define RUBY_VM_TRACE_STREAMS_EXITS_THROWS_H 1
/*
 * Exits in pairs: where a `break` or a `return` of a block leaves compiled code, and where an outer
 * frame catches it.
 */
#include "vm_trace/streams/exits/exit_event.h"

/*
 * The arrow from an exit at a `throw` to the next exit, if that is in a frame that can catch it. Only
 * if every exit is recorded: otherwise the next recorded exit need not be the next exit.
 *
 * `thrown`: the throw that was recorded last, if no other exit came after it. At a throw this stores
 * its catchers there; the caller stores its flow, once the event is written.
 */
struct exit_flow rb_vm_trace_flow_of_throw(struct vm_trace_throw *thrown, enum vm_trace_throw_part part,
                                           struct rb_execution_context_struct *ec);

#endif /* RUBY_VM_TRACE_STREAMS_EXITS_THROWS_H */
