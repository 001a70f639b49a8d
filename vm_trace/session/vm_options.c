/*
 * --vm-trace=LIST and what goes with it: options that start a trace for the whole VM, with a JIT or
 * without. See vm_trace.h.
 */
#include "vm_trace/session/flags.h"
#include "vm_trace/session/session_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "exits, fallbacks, ...": all streams. */
static void
list_streams(char *text, size_t bytes)
{
    size_t at = 0;
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i ? ", " : "", rb_vm_trace_streams[i]->name);
    }
}

/* Index in the table, or that of its end. */
static size_t
find_stream(const char *name, size_t bytes)
{
    size_t i = 0;
    while (rb_vm_trace_streams[i] &&
           (strlen(rb_vm_trace_streams[i]->name) != bytes || memcmp(rb_vm_trace_streams[i]->name, name, bytes) != 0))
        i++;
    return i;
}

/* False: the stream has no such option. */
static bool
take_option(const struct rb_vm_trace_stream *stream, const char *option, struct vm_trace_stream_request *request)
{
    const char *only = NULL;
    if (!stream->request(option, &request->rate, &only)) return false;
    if (only) {
        free((char *)request->only);
        request->only = strdup(only);
    }
    return true;
}

/* One NAME:OPTION:OPTION, which is cut into its parts. */
static bool
parse_stream(char *text)
{
    char names[256];
    size_t bytes = strcspn(text, ":"), i = find_stream(text, bytes);
    const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
    if (!stream) {
        list_streams(names, sizeof(names));
        fprintf(stderr, "--vm-trace: there is no stream \"%.*s\"; streams are: %s\n", (int)bytes, text, names);
        return false;
    }
    struct vm_trace_stream_request *request = &rb_vm_trace_session.vm_options.requests[i];
    if (!request->rate) request->rate = stream->default_rate ? stream->default_rate : 1;
    for (char *option = text[bytes] ? text + bytes + 1 : NULL, *next; option; option = next) {
        next = strchr(option, ':');
        if (next) *next++ = '\0';
        if (stream->request && take_option(stream, option, request)) continue;
        fprintf(stderr, "--vm-trace: %s takes %s, not \"%s\"\n", stream->name,
                stream->options ? stream->options : "no options", option);
        return false;
    }
    return true;
}

static bool
parse_list(const char *value)
{
    char *text = *value ? strdup(value) : NULL;
    bool given = text != NULL, ok = given;
    for (char *name = text, *next; ok && name; name = next) {
        next = strchr(name, ',');
        if (next) *next++ = '\0';
        ok = parse_stream(name);
    }
    free(text);
    if (given) return ok;
    char names[256];
    list_streams(names, sizeof(names));
    fprintf(stderr, "--vm-trace takes names of streams with commas between them: %s\n", names);
    return false;
}

bool
rb_vm_trace_parse_vm_option(const char *text)
{
    static const char NAME[] = "--vm-trace";
    char option[64], names[256];
    size_t bytes = strcspn(text, "=");
    const char *value = text[bytes] ? text + bytes + 1 : "";
    snprintf(option, sizeof(option), "--%.*s", (int)bytes, text);
    rb_vm_trace_session.vm_options.given = true;
    if (strcmp(option, NAME) == 0) return parse_list(value);
    const struct vm_trace_flag *flag = rb_vm_trace_common_flag(option + strlen(NAME) + 1);
    if (flag) return rb_vm_trace_parse_flag(flag, option, value);
    rb_vm_trace_list_common_flags(names, sizeof(names));
    fprintf(stderr, "there is no option %s; options are: --vm-trace=LIST, and --vm-trace-%s\n", option, names);
    return false;
}
