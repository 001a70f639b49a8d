#ifndef TRACED_H
#define TRACED_H 1
/*
 * A traced program as the module sees it: a main ractor with its main thread, and what machine
 * code does at an exit.
 */

#include "fake_host.h"
#include "vm_trace/capture/ractor_state.h"
#include "vm_trace/session/session.h"
#include "vm_trace/streams/code/sites.h"
#include "vm_trace/streams/code/versions.h"
#include "validate.h"

extern struct rb_ractor_struct main_ractor;
extern struct rb_execution_context_struct main_thread;

/* The file of start_traced, while there is one. */
extern char *traced_path;

/*
 * Begin to trace into a file of this test. `config` has the rates and what else is wanted; jit
 * and path are filled in where they are NULL.
 */
void start_traced(struct rb_vm_trace_config config);
/* The same for the streams of a list, as RubyVM::Trace.start does it. */
void start_session_traced(const char *streams);
#define start_traced(...) (start_traced)((struct rb_vm_trace_config){ __VA_ARGS__ })

/*
 * From now on the clock of the main ractor is stopped, a millisecond ahead, and time passes only by
 * pass(). A recorder needs the time-stamp counter for that: see skip_without_ticks.
 */
void stop_clock(void);
void pass(uint64_t ns);
/* Skips the test where the clock can't be made to stand still. */
void skip_without_ticks(void);

/* End as a program ends, free what the module has, and decode the file. */
struct trace *finish_traced(void);

/* Free what the module has: when there is no file to read. */
void free_traced(void);

/* A site, its texts being C strings. Line 0: as the frame says. */
struct rb_vm_trace_site *make_site(enum rb_vm_trace_kind kind, const char *reason, const struct rb_iseq_struct *iseq, unsigned line);

/* What machine code does at a traced side exit: see vm_trace_jit.h. */
void take_exit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec);

/* The same for an exit that recompiles. */
void take_recompile_exit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec, enum rb_vm_trace_outcome outcome);

/* Events that begin each trace: the settings and the host. */
#define FIRST_EVENTS 2

/* Hits of a site, as its site event in the trace has them; 0 when there is none. */
uint64_t site_hits(const struct trace *trace, const char *reason);

/* Compare the summary with all that is in the file. The exits are the test's to know. */
void assert_summary(const struct trace *trace, uint64_t exits, uint64_t sampled, uint64_t lost);

/* What a stream counted, by its name in the summary. It must be in the status. */
uint64_t status_count(struct rb_vm_trace_status status, const char *name);

#endif /* TRACED_H */
