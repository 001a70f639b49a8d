#ifndef RUBY_VM_TRACE_RUBY_FLIGHT_RECORDER_H
#define RUBY_VM_TRACE_RUBY_FLIGHT_RECORDER_H 1
/*
 * Saves that end a session. GVL held, which is let go while they take long. An interrupt (Thread#kill,
 * Timeout, a signal) does not end them: they return it, as rb_protect does, or 0.
 */
#include <stdint.h>

/* Wait until no save is under way. */
int rb_vm_trace_wait_for_save(void);

/*
 * If this session (0: whichever is on) has a spool: write what is in memory as its last piece. When that
 * fails, one line on stderr says why.
 */
int rb_vm_trace_save_last_piece(uint64_t session_number);

#endif /* RUBY_VM_TRACE_RUBY_FLIGHT_RECORDER_H */
