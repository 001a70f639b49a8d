/*
 * Lists of streams, presets, and options of streams. See requests.h.
 */
#include "vm_trace/session/requests.h"
#include "vm_trace/base/numbers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * `default` may cost a web application at most 2 % (doc/guide/tracing.md). `profile` is what the first screen of
 * `vm-trace report` makes use of. `full` has all streams that compiled code need not be made for.
 */
const struct vm_trace_preset rb_vm_trace_presets[] = {
    { "default", "exits:rate=97,markers,threads,gc" },
    { "profile", "default,samples:1ms,states,allocations,fibers:scheduler" },
    { "full", NULL },
    { NULL, NULL }
};

/* "exits, fallbacks, ...": all streams. */
static void
list_streams(char *text, size_t bytes)
{
    size_t at = 0;
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i ? ", " : "", rb_vm_trace_streams[i]->name);
    }
}

static void
list_presets(char *text, size_t bytes)
{
    size_t at = 0;
    for (size_t i = 0; rb_vm_trace_presets[i].name; i++) {
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i ? ", " : "", rb_vm_trace_presets[i].name);
    }
}

/* Index in the table, or the index of its end. */
static size_t
find_stream(const char *name)
{
    size_t i = 0;
    while (rb_vm_trace_streams[i] && strcmp(rb_vm_trace_streams[i]->name, name) != 0) i++;
    return i;
}

static const struct vm_trace_preset *
find_preset(const char *name)
{
    const struct vm_trace_preset *preset = rb_vm_trace_presets;
    while (preset->name && strcmp(preset->name, name) != 0) preset++;
    return preset->name ? preset : NULL;
}

static void
replace_request(struct vm_trace_stream_request *request, const struct vm_trace_stream_request *by)
{
    free((char *)request->only);
    *request = *by;
}

static bool
take_min(const char *value, struct vm_trace_stream_request *request)
{
    uint64_t ns;
    if (!rb_vm_trace_duration(value, &ns)) return false;
    request->min_ns_and_1 = ns + 1;
    return true;
}

static bool
take_stack_part(const char *value, struct vm_trace_stream_request *request)
{
    static const char *const parts[] = {
        [VM_TRACE_STACK_ALL] = "all", [VM_TRACE_STACK_TOP] = "top", [VM_TRACE_STACK_NONE] = "none"
    };
    for (unsigned part = 0; part < sizeof(parts) / sizeof(parts[0]); part++) {
        if (strcmp(parts[part], value) != 0) continue;
        request->stack_part = (enum vm_trace_stack_part)part;
        return true;
    }
    return false;
}

/* depth=N: a number from 1 on. */
static bool
take_depth(const char *value, struct vm_trace_stream_request *request)
{
    char *end;
    unsigned long long depth = rb_vm_trace_whole_number(value, &end);
    if (end == value || *end || errno || depth == 0) return false;
    request->depth = depth;
    return true;
}

/* False: the stream has no such option. */
static bool
take_option(const struct rb_vm_trace_stream *stream, const char *option, struct vm_trace_stream_request *request)
{
    if (stream->takes_min && strncmp(option, "min=", 4) == 0) return take_min(option + 4, request);
    if (stream->takes_stack && strncmp(option, "stack=", 6) == 0) return take_stack_part(option + 6, request);
    if (stream->takes_depth && strncmp(option, "depth=", 6) == 0) return take_depth(option + 6, request);
    if (stream->takes_samples && strcmp(option, "samples") == 0) return request->samples = true;
    const char *only = NULL;
    if (!stream->request || !stream->request(option, &request->rate, &only)) return false;
    if (only) {
        free((char *)request->only);
        request->only = strdup(only);
    }
    return true;
}

/* The options are cut into their parts. */
static bool
take_options(const struct rb_vm_trace_stream *stream, char *options, struct vm_trace_stream_request *request,
             char *why_out, size_t bytes)
{
    for (char *option = options, *next; option; option = next) {
        next = strchr(option, ':');
        if (next) *next++ = '\0';
        if (take_option(stream, option, request)) continue;
        snprintf(why_out, bytes, ": %s takes %s, not \"%.100s\"", stream->name,
                 stream->options ? stream->options : "no options", option);
        return false;
    }
    return true;
}

bool
rb_vm_trace_request_options(const struct rb_vm_trace_stream *stream, const char *options,
                            struct vm_trace_stream_request *request, char *why_out, size_t bytes)
{
    char *text = strdup(options);
    bool ok = text && take_options(stream, text, request, why_out, bytes);
    if (!text) snprintf(why_out, bytes, ": out of memory");
    free(text);
    return ok;
}

static bool
add_preset(const struct vm_trace_preset *preset, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
           char *why_out, size_t bytes)
{
    struct vm_trace_stream_request of_preset[VM_TRACE_MAX_STREAMS] = { { .rate = 0 } };
    if (preset->list && !rb_vm_trace_request_list(preset->list, of_preset, why_out, bytes)) return false;
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
        if (!preset->list && !stream->by_name) of_preset[i].rate = stream_default_rate(stream);
        of_preset[i].by_preset = true;
        if (of_preset[i].rate) replace_request(&requests[i], &of_preset[i]);
    }
    return true;
}

void
rb_vm_trace_request_along(struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS])
{
    char why[256]; /* the lists are ours, and have no mistakes */
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        const char *with = requests[i].rate ? rb_vm_trace_streams[i]->with : NULL;
        struct vm_trace_stream_request along[VM_TRACE_MAX_STREAMS] = { { .rate = 0 } };
        if (!with || !rb_vm_trace_request_list(with, along, why, sizeof(why))) continue;
        for (size_t at = 0; rb_vm_trace_streams[at]; at++) {
            along[at].by_preset = true;
            along[at].samples |= requests[at].samples;
            if (along[at].rate && !requests[at].rate) requests[at] = along[at]; /* strings are the caller's */
        }
    }
}

bool
rb_vm_trace_request_preset(const char *name, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                           char *why_out, size_t bytes)
{
    const struct vm_trace_preset *preset = find_preset(name);
    if (preset) return add_preset(preset, requests, why_out, bytes);
    char presets[128];
    list_presets(presets, sizeof(presets));
    snprintf(why_out, bytes, ": there is no preset \"%.100s\"; presets are: %s", name, presets);
    return false;
}

/* One NAME:OPTION:OPTION, which is cut into its parts. */
static bool
add_item(char *item, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS], char *why_out, size_t bytes)
{
    char *options = strchr(item, ':'), streams[256], presets[128];
    if (options) *options++ = '\0';
    size_t i = find_stream(item);
    const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
    const struct vm_trace_preset *preset = find_preset(item);
    if (stream) {
        replace_request(&requests[i], &(struct vm_trace_stream_request){ .rate = stream_default_rate(stream) });
        return take_options(stream, options, &requests[i], why_out, bytes);
    }
    if (preset && !options) return add_preset(preset, requests, why_out, bytes);
    list_streams(streams, sizeof(streams));
    list_presets(presets, sizeof(presets));
    if (preset) snprintf(why_out, bytes, ": the preset %s takes no options, not \"%.100s\"", item, options);
    else
        snprintf(why_out, bytes, ": there is no stream \"%.100s\"; streams are: %s; presets are: %s", item, streams,
                 presets);
    return false;
}

/* The comma behind it. NULL: it is the last one. No stream begins with a digit: that is one more option. */
static char *
end_of_item(char *item)
{
    char *comma = strchr(item, ',');
    for (; comma && comma[1] >= '0' && comma[1] <= '9'; comma = strchr(comma, ',')) *comma = ':';
    return comma;
}

bool
rb_vm_trace_request_list(const char *list, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                         char *why_out, size_t bytes)
{
    char *text = *list ? strdup(list) : NULL;
    if (!text) {
        char streams[256], presets[128];
        list_streams(streams, sizeof(streams));
        list_presets(presets, sizeof(presets));
        snprintf(why_out, bytes, " takes names of streams with commas between them: %s; or of presets: %s", streams,
                 presets);
        return false;
    }
    bool ok = true;
    for (char *item = text, *next; ok && item; item = next) {
        next = end_of_item(item);
        if (next) *next++ = '\0';
        ok = add_item(item, requests, why_out, bytes);
    }
    free(text);
    return ok;
}
