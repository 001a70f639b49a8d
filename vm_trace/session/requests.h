#ifndef RUBY_VM_TRACE_SESSION_REQUESTS_H
#define RUBY_VM_TRACE_SESSION_REQUESTS_H 1
/*
 * What a LIST requests of the streams, as in --vm-trace=LIST: names of streams and of presets with
 * commas between them, the options of a stream behind colons: "default,threads:min=5ms,compiles".
 * A later item replaces what an earlier one says of the same stream.
 *
 * Any thread, but each set of requests by one at a time. What was requested before stays where
 * nothing else is said of it. Requests own their strings.
 */

#include "vm_trace/streams/table.h"

/*
 * A preset is a list for a purpose. What it names is left out where it can't be recorded: without a
 * JIT, or on a base that lacks the stream.
 */
struct vm_trace_preset {
    const char *name;
    const char *list; /* NULL: all streams */
};

/* The last one has no name. */
extern const struct vm_trace_preset rb_vm_trace_presets[];

/*
 * Add what the list requests. False: why_out has the reason, which begins with ": " or a blank to
 * follow the name of the option, and some requests may have been added.
 */
bool rb_vm_trace_request_list(const char *list, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                              char *why_out, size_t bytes);

/* Add what the preset of that name requests. False: there is none; as above. */
bool rb_vm_trace_request_preset(const char *name, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                                char *why_out, size_t bytes);

/* Set options of a stream, "min=5ms:stack=top". False: it has no such option; as above. */
bool rb_vm_trace_request_options(const struct rb_vm_trace_stream *stream, const char *options,
                                 struct vm_trace_stream_request *request, char *why_out, size_t bytes);

#endif /* RUBY_VM_TRACE_SESSION_REQUESTS_H */
