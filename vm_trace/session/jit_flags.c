/*
 * Trace flags of a JIT: its option parser hands all that begin with "trace-" to these functions. See
 * vm_trace_jit.h, and flags.h for the table.
 */
#include "vm_trace/session/flags.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/requests.h"
#include "vm_trace/session/session_state.h"
#include "vm_trace/session/vm_options.h"
#include "vm_trace/streams/code/code_text.h"

#include <stdio.h>
#include <string.h>

#define given rb_vm_trace_flags

static bool
begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/*
 * The name of a flag as `jit` has it, for YJIT has other flags called trace-exits. Empty: it has no
 * such flag.
 */
static void
name_flag(const struct rb_vm_trace_jit *jit, const struct vm_trace_flag *flag, char *name_out, size_t bytes)
{
    name_out[0] = '\0';
    if (begins_with(flag->name, "fallbacks") && !jit->fallbacks) return;
    if (!begins_with(flag->name, "exits")) snprintf(name_out, bytes, "trace-%s", flag->name);
    else snprintf(name_out, bytes, "trace-%s%s", jit->exits_flag, flag->name + strlen("exits"));
}

bool
rb_vm_trace_flag(const struct rb_vm_trace_jit *jit, const char *name, const char *value)
{
    char known[64], option[128];
    rb_vm_trace_read_environment();
    const struct vm_trace_flag *flag;
    for (size_t i = 0; (flag = rb_vm_trace_flag_at(i)) != NULL; i++) {
        name_flag(jit, flag, known, sizeof(known));
        if (strcmp(name, known) != 0) continue;
        snprintf(option, sizeof(option), "%s%s", jit->flag_prefix, name);
        given.jit = jit;
        given.how = given.how || flag->how;
        return rb_vm_trace_parse_flag(flag, option, value);
    }
    return false;
}

bool
rb_vm_trace_flag_help(const struct rb_vm_trace_jit *jit, size_t index, char *flag_out, size_t bytes,
                      const char **text_out)
{
    char name[64];
    const struct vm_trace_flag *flag;
    for (size_t i = 0; (flag = rb_vm_trace_flag_at(i)) != NULL; i++) {
        name_flag(jit, flag, name, sizeof(name));
        if (!*name || index-- > 0) continue;
        bool plain = flag->without_text && !jit->code_text;
        snprintf(flag_out, bytes, "%s%s%s", jit->flag_prefix, name, plain ? "" : flag->value);
        *text_out = plain ? flag->without_text : flag->help;
        return true;
    }
    return false;
}

const struct rb_vm_trace_config *
rb_vm_trace_start_by_flags(const struct rb_vm_trace_jit *jit)
{
    static struct rb_vm_trace_config config;
    rb_vm_trace_read_environment();
    /* Code has trace points for what --vm-trace requests, too, and counters have no other ones. */
    struct vm_trace_stream_request *requests = rb_vm_trace_session.vm_options.requests;
    rb_vm_trace_request_along(requests);
    struct rb_vm_trace_config requested = { .jit = jit->name };
    rb_vm_trace_streams_config(requests, &requested);
    bool counters = requested.counters && jit->counters;
    const char *code_text = given.code_text ? given.code_text : requested.code_text;
    if (jit->code_text) rb_vm_trace_code_text_keep(code_text);
    if (!given.exits && !given.fallbacks && !given.compiles && !given.invalidations && !counters) {
        if (!given.how || given.later) return NULL;
        given.exits = true;
    }
    config = (struct rb_vm_trace_config){
        .jit = jit->name,
        .path = rb_vm_trace_session.flags.path_pattern,
        .counter = given.exits ? given.counters : NULL,
        .exit_rate = given.exits ? given.exit_rate : 0,
        .fallback_rate = given.fallbacks ? given.fallback_rate : 0,
        .max_size = rb_vm_trace_session.flags.max_size,
        .compiles = given.compiles,
        .invalidations = given.invalidations
    };
    rb_vm_trace_streams_config(requests, &config);
    if (!jit->fallbacks) config.fallback_rate = 0;
    config.code_text = jit->code_text ? code_text : NULL;
    config.counters = counters;
    return rb_vm_trace_start(&config) ? &config : NULL;
}
