/*
 * The trace flags of every JIT, "--zjit-trace-exits" and so on, and of the VM: one table says what
 * each is called, what it sets and what --help prints. A JIT's option parser hands all flags that
 * begin with "trace-" to it.
 */
#include "vm_trace/session/flags.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/requests.h"
#include "vm_trace/session/session_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the flags given so far ask for. Those that options.c keeps are in rb_vm_trace_session. */
static struct {
    const struct rb_vm_trace_jit *jit;
    bool exits, fallbacks, compiles, invalidations;
    bool how, later;             /* one says how to trace; one leaves the start to RubyVM::Trace.start */
    uint64_t exit_rate, fallback_rate;
    char *counters;
} flags = { .exit_rate = 1, .fallback_rate = 1 };

static bool
keep(char **kept, const char *value)
{
    char *copy = strdup(value);
    if (!copy) return false;
    free(*kept);
    *kept = copy;
    return true;
}

static bool
parse_exits(const char *option, const char *value)
{
    for (const char *name = value; *value; name++) {
        char counter[128] = "";
        size_t bytes = strcspn(name, ",");
        if (bytes < sizeof(counter)) memcpy(counter, name, bytes);
        if (!flags.jit->counter_p(counter)) {
            fprintf(stderr, "%s takes names of counters, such as %s, with commas between them, or nothing, "
                    "not '%.*s'\n", option, flags.jit->example_counter, (int)bytes, name);
            return false;
        }
        name += bytes;
        if (!*name) break;
    }
    flags.exits = true;
    if (*value) return keep(&flags.counters, value);
    free(flags.counters);
    flags.counters = NULL;
    return true;
}

static bool
parse_exit_rate(const char *option, const char *value)
{
    if (!rb_vm_trace_parse_rate(option, value, &flags.exit_rate)) return false;
    flags.exits = true;
    return true;
}

static bool
parse_fallback_rate(const char *option, const char *value)
{
    if (!rb_vm_trace_parse_rate(option, value, &flags.fallback_rate)) return false;
    flags.fallbacks = true;
    return true;
}

static bool
parse_path(const char *option, const char *value)
{
    if (*value) return keep(&rb_vm_trace_session.flags.path_pattern, value);
    fprintf(stderr, "%s takes the path of the file to write\n", option);
    return false;
}

static bool
parse_max_size(const char *option, const char *value)
{
    return rb_vm_trace_parse_max_size(option, value, &rb_vm_trace_session.flags.max_size);
}

/*
 * In the order of --help. A flag either sets a variable and takes no value, or has a function that
 * parses its value. A flag that says only how to trace implies exits.
 */
static const struct vm_trace_flag {
    const char *name, *value, *help;
    bool (*parse)(const char *option, const char *value);
    bool *on;
    bool how;                    /* it says how to trace, not what */
} table[] = {
    { "exits", "[=counter,...]", "Record side exits, or just those that counters count.", .parse = parse_exits },
    { "exits-sample-rate", "=num", "Record one side exit in num (default: 1).", .parse = parse_exit_rate },
    { "fallbacks", "", "Record sends that compiled code leaves to the VM.", .on = &flags.fallbacks },
    { "fallbacks-sample-rate", "=num", "Record one fallback in num (default: 1).", .parse = parse_fallback_rate },
    { "compiles", "", "Record compilations.", .on = &flags.compiles },
    { "invalidation", "", "Record invalidations.", .on = &flags.invalidations },
    { "methods", "=glob,...", "Trace only what is in methods or files like these.",
      .parse = rb_vm_trace_parse_methods, .how = true },
    { "file", "=path", "Trace file (/tmp/perfetto-%p.fxt); %t: time, %n: number.", .parse = parse_path, .how = true },
    { "max-size", "=MiB[,newest|oldest]", "Limit of its size, and which events stay (default: newest).",
      .parse = parse_max_size, .how = true },
    { "min-free", "=MiB", "Stop recording before the disk has less (default: 5%, 1024).",
      .parse = rb_vm_trace_parse_min_free, .how = true },
    { "memory", "=MiB[,seconds]", "Record into memory; the newest is saved when asked for.",
      .parse = rb_vm_trace_parse_memory, .how = true },
    { "save-at", "=exit|exception|crash|signal[,...]", "When it saves by itself, to the trace file.",
      .parse = rb_vm_trace_parse_save_at, .how = true },
    { "stack", "=frames", "Record only so many innermost frames (default: all).",
      .parse = rb_vm_trace_parse_stack, .how = true },
    { "later", "", "Start no trace; the other options are for a later one.", .on = &flags.later },
    { "quiet", "", "No lines on stderr about the trace, but for failures.", .parse = rb_vm_trace_parse_quiet }
};

enum { FLAGS = sizeof(table) / sizeof(*table) };

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
rb_vm_trace_parse_flag(const struct vm_trace_flag *flag, const char *option, const char *value)
{
    if (flag->parse) return flag->parse(option, value);
    if (!*value) return *flag->on = true;
    fprintf(stderr, "%s takes no value, not '%s'\n", option, value);
    return false;
}

static bool
common_p(const struct vm_trace_flag *flag)
{
    return flag->how || flag->parse == rb_vm_trace_parse_quiet;
}

const struct vm_trace_flag *
rb_vm_trace_common_flag(const char *name)
{
    for (const struct vm_trace_flag *flag = table; flag < table + FLAGS; flag++) {
        if (common_p(flag) && strcmp(name, flag->name) == 0) return flag;
    }
    return NULL;
}

void
rb_vm_trace_list_common_flags(char *text_out, size_t bytes)
{
    size_t at = 0;
    for (const struct vm_trace_flag *flag = table; flag < table + FLAGS; flag++) {
        if (common_p(flag)) at += (size_t)snprintf(text_out + at, bytes - at, "%s%s", at ? ", -" : "", flag->name);
    }
}

bool
rb_vm_trace_flag(const struct rb_vm_trace_jit *jit, const char *name, const char *value)
{
    char known[64], option[128];
    for (const struct vm_trace_flag *flag = table; flag < table + FLAGS; flag++) {
        name_flag(jit, flag, known, sizeof(known));
        if (strcmp(name, known) != 0) continue;
        snprintf(option, sizeof(option), "%s%s", jit->flag_prefix, name);
        flags.jit = jit;
        flags.how = flags.how || flag->how;
        return rb_vm_trace_parse_flag(flag, option, value);
    }
    return false;
}

bool
rb_vm_trace_flag_help(const struct rb_vm_trace_jit *jit, size_t index, char *flag_out, size_t bytes,
                      const char **text_out)
{
    char name[64];
    for (const struct vm_trace_flag *flag = table; flag < table + FLAGS; flag++) {
        name_flag(jit, flag, name, sizeof(name));
        if (!*name || index-- > 0) continue;
        snprintf(flag_out, bytes, "%s%s%s", jit->flag_prefix, name, flag->value);
        *text_out = flag->help;
        return true;
    }
    return false;
}

const struct rb_vm_trace_config *
rb_vm_trace_start_by_flags(const struct rb_vm_trace_jit *jit)
{
    static struct rb_vm_trace_config config;
    if (!flags.exits && !flags.fallbacks && !flags.compiles && !flags.invalidations) {
        if (!flags.how || flags.later) return NULL;
        flags.exits = true;
    }
    config = (struct rb_vm_trace_config){
        .jit = jit->name,
        .path = rb_vm_trace_session.flags.path_pattern,
        .counter = flags.exits ? flags.counters : NULL,
        .exit_rate = flags.exits ? flags.exit_rate : 0,
        .fallback_rate = flags.fallbacks ? flags.fallback_rate : 0,
        .max_size = rb_vm_trace_session.flags.max_size,
        .compiles = flags.compiles,
        .invalidations = flags.invalidations
    };
    /* Code has trace points for what --vm-trace requests, too. */
    struct vm_trace_stream_request *requests = rb_vm_trace_session.vm_options.requests;
    rb_vm_trace_request_along(requests);
    rb_vm_trace_streams_config(requests, &config);
    if (!jit->fallbacks) config.fallback_rate = 0;
    return rb_vm_trace_start(&config) ? &config : NULL;
}
