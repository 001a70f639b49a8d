/*
 * The trace flags of every JIT, "--zjit-trace-exits" and so on, and of the VM: one table says what
 * each is called, what it sets and what --help prints.
 */
#include "vm_trace/session/flags.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/requests.h"
#include "vm_trace/session/session_state.h"
#include "vm_trace/session/spool.h"
#include "vm_trace/streams/code/code_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define given rb_vm_trace_flags

struct vm_trace_flags given = { .exit_rate = 1, .fallback_rate = 1 };

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
        if (!given.jit->counter_p(counter)) {
            fprintf(stderr, "%s takes names of counters, such as %s, with commas between them, or nothing, "
                    "not '%.*s'\n", option, given.jit->example_counter, (int)bytes, name);
            return false;
        }
        name += bytes;
        if (!*name) break;
    }
    given.exits = true;
    if (*value) return keep(&given.counters, value);
    free(given.counters);
    given.counters = NULL;
    return true;
}

static bool
parse_compiles(const char *option, const char *value)
{
    given.compiles = true;
    if (!*value) return true;
    if (given.jit->code_text && rb_vm_trace_code_text_parse(value)) {
        given.exits |= !strchr(value, ','); /* texts of code that exits */
        return keep(&given.code_text, value);
    }
    fprintf(stderr, "%s takes %s, not '%s'\n", option,
            given.jit->code_text ? "hir, hir,all, or nothing" : "no value", value);
    return false;
}

static bool
parse_exit_rate(const char *option, const char *value)
{
    if (!rb_vm_trace_parse_rate(option, value, &given.exit_rate)) return false;
    given.exits = true;
    return true;
}

static bool
parse_fallback_rate(const char *option, const char *value)
{
    if (!rb_vm_trace_parse_rate(option, value, &given.fallback_rate)) return false;
    given.fallbacks = true;
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

static const struct vm_trace_flag table[] = {
    { "exits", "[=counter,...]", "Record side exits, or just those that counters count.", .parse = parse_exits },
    { "exits-sample-rate", "=num", "Record one side exit in num (default: 1).", .parse = parse_exit_rate },
    { "fallbacks", "", "Record sends that compiled code leaves to the VM.", .on = &given.fallbacks },
    { "fallbacks-sample-rate", "=num", "Record one fallback in num (default: 1).", .parse = parse_fallback_rate },
    { "compiles", "[=hir[,all]]", "Record compilations; hir: and the HIR of code that exits.",
      .parse = parse_compiles, .without_text = "Record compilations." },
    { "invalidation", "", "Record invalidations.", .on = &given.invalidations },
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
    { "spool", "=folder", "Keep recording: a piece goes to this folder every so often.",
      .parse = rb_vm_trace_parse_spool, .how = true },
    { "spool-every", "=time", "How often (default: 5min).", .parse = rb_vm_trace_parse_spool_every, .how = true },
    { "spool-limit", "=MiB[,files]", "Limits of the folder (default: 1024,1000).",
      .parse = rb_vm_trace_parse_spool_limit, .how = true },
    { "spool-compress", "=zstd|gzip", "Compress the pieces, by a library of the system.",
      .parse = rb_vm_trace_parse_spool_compress, .how = true },
    { "stack", "=frames", "Record only so many innermost frames (default: all).",
      .parse = rb_vm_trace_parse_stack, .how = true },
    { "late", "=no", "No trace of code that runs: compiling keeps no notes.",
      .parse = rb_vm_trace_parse_late },
    { "later", "", "Start no trace; the other options are for a later one.", .on = &given.later },
    { "quiet", "", "No lines on stderr about the trace, but for failures.", .parse = rb_vm_trace_parse_quiet }
};

enum { FLAGS = sizeof(table) / sizeof(*table) };

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
    return flag->how || flag->parse == rb_vm_trace_parse_quiet || flag->parse == rb_vm_trace_parse_late;
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

const struct vm_trace_flag *
rb_vm_trace_flag_at(size_t index)
{
    return index < FLAGS ? &table[index] : NULL;
}
