#ifndef RUBY_VM_TRACE_HOST_NAMES_H
#define RUBY_VM_TRACE_HOST_NAMES_H 1
/* Names that the VM keeps. After CRuby's own headers, in files of host/ alone. */

#include "internal/symbol.h"
#include "vm_sync.h"

/*
 * The text of an ID; 0: it has none. rb_id2str takes the VM's lock where there are several ractors,
 * and on its way in stops for another ractor's barrier. That ractor may end the trace meanwhile, and
 * free what our caller is writing to. A lock without barrier does not stop for one, nor do locks
 * within it.
 */
static inline VALUE
host_id_text(ID id)
{
    VALUE text;
    RB_VM_LOCK_ENTER_NO_BARRIER();
    text = rb_id2str(id);
    RB_VM_LOCK_LEAVE_NO_BARRIER();
    return text;
}

#endif /* RUBY_VM_TRACE_HOST_NAMES_H */
