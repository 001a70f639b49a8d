#ifndef RUBY_VM_TRACE_PLATFORM_PERF_REFUSAL_H
#define RUBY_VM_TRACE_PLATFORM_PERF_REFUSAL_H 1
/* Why the kernel refuses to record, in words. */

/*
 * The sentence for what failed: `tracefs_error` (0: nothing did) of reading tracefs, else
 * `open_error` of perf_event_open. `paranoid` is the highest value of kernel.perf_event_paranoid that
 * allows it. Valid until the next call.
 */
const char *rb_vm_trace_perf_refusal(int tracefs_error, int open_error, int paranoid);

#endif /* RUBY_VM_TRACE_PLATFORM_PERF_REFUSAL_H */
