#ifndef RUBY_VM_TRACE_SESSION_REQUESTS_H
#define RUBY_VM_TRACE_SESSION_REQUESTS_H 1
/*
 * Requests from a LIST, as in --vm-trace=LIST: names of streams and presets, with commas between them,
 * and the options of a stream behind colons: "default,threads:min=5ms,compiles". A later item replaces
 * an earlier one for the same stream.
 *
 * Any thread, but only one at a time for each set of requests. Requests of streams that the list does
 * not name stay. Requests own their strings.
 */

#include "vm_trace/streams/table.h"

/*
 * A preset is a list with a name. Streams that can't be recorded (without a JIT, or on a base that
 * lacks them) are left out.
 */
struct vm_trace_preset {
    const char *name;
    const char *list; /* NULL: all streams */
};

/* The last one has no name. */
extern const struct vm_trace_preset rb_vm_trace_presets[];

/*
 * Add the requests of the list. False: why_out has the reason, to follow the name of the option: it
 * begins with ": " or a blank. Some requests may have been added then.
 */
bool rb_vm_trace_request_list(const char *list, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                              char *why_out, size_t bytes);

/* Add the requests of a preset. False: there is no such preset; as above. */
bool rb_vm_trace_request_preset(const char *name, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                                char *why_out, size_t bytes);

/*
 * Add what streams that are requested need beside them (their `with`), where it is not requested. It
 * is left out where it can't be recorded, as that of a preset.
 */
void rb_vm_trace_request_along(struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS]);

/* Set options of a stream, such as "min=5ms:stack=top". False: it has no such option; as above. */
bool rb_vm_trace_request_options(const struct rb_vm_trace_stream *stream, const char *options,
                                 struct vm_trace_stream_request *request, char *why_out, size_t bytes);

#endif /* RUBY_VM_TRACE_SESSION_REQUESTS_H */
