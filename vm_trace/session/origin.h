#ifndef RUBY_VM_TRACE_SESSION_ORIGIN_H
#define RUBY_VM_TRACE_SESSION_ORIGIN_H 1
/*
 * Where a trace comes from: host, service, version of the service, and the time of day. Who collects
 * traces of many processes tells them apart by these.
 *
 * Service and version are those of OpenTelemetry: OTEL_SERVICE_NAME, else service.name of
 * OTEL_RESOURCE_ATTRIBUTES, and its service.version (OpenTelemetry Specification 1.x, "Environment
 * Variable Specification" and "Resource SDK", "Specifying resource information via an environment
 * variable": keys and values between commas, values percent-encoded). Without them an event has
 * neither argument.
 */

#include "vm_trace/capture/event.h"

/*
 * Read the host's name and the environment, once. Before any thread of the tracer runs: setenv(3) of
 * a program would move what is read later.
 */
void rb_vm_trace_origin_init(void);

/* The host's name; "" when the system does not tell. Static. */
const char *rb_vm_trace_origin_host(void);

/*
 * Write the event `host`, for rb_vm_trace_event_write; `what` is not looked at. Its `unix_ns` is the
 * time of day at the event's own time.
 */
bool rb_vm_trace_write_origin(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                              const void *what);

#endif /* RUBY_VM_TRACE_SESSION_ORIGIN_H */
