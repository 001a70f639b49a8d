/*
 * --vm-trace=LIST and what goes with it: options that start a trace for the whole VM, with a JIT or
 * without. See vm_trace.h.
 */
#include "vm_trace/session/flags.h"
#include "vm_trace/session/requests.h"
#include "vm_trace/session/session_state.h"

#include <stdio.h>
#include <string.h>

static bool
parse_list(const char *value)
{
    char why[512];
    if (rb_vm_trace_request_list(value, rb_vm_trace_session.vm_options.requests, why, sizeof(why))) return true;
    fprintf(stderr, "--vm-trace%s\n", why);
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
