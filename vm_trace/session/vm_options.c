/*
 * --vm-trace=LIST and what goes with it: options that start a trace for the whole VM, with a JIT or
 * without, from the command line, RUBYOPT, and the environment variable RUBY_VM_TRACE. See vm_trace.h.
 */
#include "vm_trace/session/vm_options.h"
#include "vm_trace/base/messages.h"
#include "vm_trace/session/flags.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/requests.h"
#include "vm_trace/session/session_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
parse_list(const char *value)
{
    char why[512];
    if (rb_vm_trace_request_list(value, rb_vm_trace_session.vm_options.requests, why, sizeof(why))) return true;
    fprintf(stderr, "--vm-trace%s\n", why);
    return false;
}

static bool
parse(const char *text)
{
    static const char NAME[] = "--vm-trace";
    char option[64], names[256];
    size_t bytes = strcspn(text, "=");
    const char *value = text[bytes] ? text + bytes + 1 : "";
    snprintf(option, sizeof(option), "--%.*s", (int)bytes, text);
    bool list = strcmp(option, NAME) == 0;
    const struct vm_trace_flag *flag = list ? NULL : rb_vm_trace_common_flag(option + strlen(NAME) + 1);
    if (!list && !flag) {
        rb_vm_trace_list_common_flags(names, sizeof(names));
        fprintf(stderr, "there is no option %s; options are: --vm-trace=LIST, and --vm-trace-%s\n", option, names);
        return false;
    }
    bool ok = list ? parse_list(value) : rb_vm_trace_parse_flag(flag, option, value);
    bool about_trace = list || flag->parse != rb_vm_trace_parse_late;
    rb_vm_trace_session.vm_options.given |= ok && about_trace;
    return ok;
}

/* Cut off the first word of `text`, without its backslashes. Returns what follows; NULL: there is none. */
static char *
take_word(char *text, char **word_out)
{
    static const char SPACES[] = " \t\n";
    text += strspn(text, SPACES);
    char *to = *word_out = text;
    while (*text && !strchr(SPACES, *text)) {
        if (*text == '\\' && text[1]) text++;
        *to++ = *text++;
    }
    bool more = *text != '\0';
    *to = '\0';
    return more ? text + 1 : NULL;
}

void
rb_vm_trace_read_environment(void)
{
    static const char NAME[] = "RUBY_VM_TRACE", OPTION[] = "--vm-trace";
    static bool read;
    const char *value = read ? NULL : getenv(NAME);
    read = true;
    char *copy = value ? strdup(value) : NULL, *word;
    for (char *rest = copy; rest;) {
        rest = take_word(rest, &word);
        if (!*word) continue;
        bool option = strncmp(word, OPTION, strlen(OPTION)) == 0;
        if (option && parse(word + strlen("--"))) continue;
        if (!option) rb_vm_trace_warn("%s holds %s, not an option such as %s=LIST", NAME, word, OPTION);
        rb_vm_trace_warn("%s is ignored from there on", NAME);
        break;
    }
    free(copy);
}

bool
rb_vm_trace_parse_vm_option(const char *text)
{
    rb_vm_trace_read_environment();
    return parse(text);
}
