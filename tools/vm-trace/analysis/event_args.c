/* event_args.c - see event_args.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "fxt/known_strings.h"

uint64_t
event_uint(const struct fxt_event *event, uint32_t name, uint64_t missing)
{
    uint64_t value;
    return fxt_arg_uint(fxt_event_arg(event, name), &value) ? value : missing;
}

bool
event_read_uint(const struct fxt_event *event, uint32_t name, uint64_t *value_out)
{
    return fxt_arg_uint(fxt_event_arg(event, name), value_out);
}

uint32_t
event_text(struct pool *pool, const struct fxt_event *event, uint32_t name)
{
    const struct fxt_arg *arg = fxt_event_arg(event, name);
    return arg == NULL || arg->type != FXT_ARG_STRING ? STRING_NONE : pool_id(pool, arg->string);
}

uint32_t
event_insn(struct pool *pool, const struct fxt_event *event)
{
    uint32_t insn = event_text(pool, event, STRING_INSN);
    const struct fxt_arg *index = fxt_event_arg(event, STRING_INSN_INDEX);
    uint64_t number;
    char text[128];
    if (insn == STRING_NONE || index == NULL || !fxt_arg_uint(index, &number)) return insn;
    int len = snprintf(text, sizeof text, "%.80s@%" PRIu32, pool_string(pool, insn).ptr, (uint32_t)number);
    uint32_t id = pool_intern(pool, text, (size_t)len);
    return id == STRING_NONE ? insn : id;
}

struct fxt_string
insn_without_index(struct fxt_string insn, int64_t *index_out)
{
    const char *at = insn.len > 0 ? memchr(insn.ptr, '@', insn.len) : NULL;
    *index_out = NO_INSN_INDEX;
    if (at == NULL) return insn;
    *index_out = strtol(at + 1, NULL, 10);
    return (struct fxt_string){.ptr = insn.ptr, .len = (uint32_t)(at - insn.ptr)};
}

bool
event_older_behind(struct pool *pool, const struct fxt_event *settings)
{
    bool in_order = fxt_event_arg(settings, STRING_SNAPSHOT) != NULL &&
                    !fxt_string_is(fxt_event_text(settings, STRING_SNAPSHOT), "memory");
    return !in_order && event_text(pool, settings, STRING_KEEP) == STRING_NEWEST;
}

bool
text_has_word(struct fxt_string text, const char *word)
{
    size_t len = strlen(word);
    for (size_t at = 0, end; at < text.len; at = end + 1) {
        for (end = at; end < text.len && text.ptr[end] != ' '; end++) {}
        bool ends = end - at == len || (end - at > len && text.ptr[at + len] == ':');
        if (ends && memcmp(text.ptr + at, word, len) == 0) return true;
    }
    return false;
}

void
event_code_jit(struct code_settings *settings, const struct fxt_event *event)
{
    const struct fxt_string jit = fxt_event_text(event, STRING_JIT);
    if (jit.len > 0) settings->block_versions = fxt_string_is(jit, "YJIT");
}

struct code_settings
event_code_settings(const struct fxt_event *event)
{
    const struct fxt_string flags = fxt_event_text(event, STRING_FLAGS);
    struct code_settings settings = {.traced_code = text_has_word(flags, "exits") || text_has_word(flags, "fallbacks")};
    event_code_jit(&settings, event);
    return settings;
}

uint32_t
event_reason(struct pool *pool, const struct fxt_event *event)
{
    bool named = event->category.id != STRING_TRACE && event->category.id != STRING_REPROFILE;
    return pool_without_addresses(pool, named ? pool_id(pool, event->name) : event_text(pool, event, STRING_REASON));
}

uint32_t
arg_text(struct pool *pool, const struct fxt_arg *arg)
{
    char text[64];
    int len;
    switch (arg->type) {
      case FXT_ARG_STRING: return pool_id(pool, arg->string);
      case FXT_ARG_INT32:
      case FXT_ARG_INT64: len = snprintf(text, sizeof text, "%" PRId64, arg->i64); break;
      case FXT_ARG_DOUBLE: len = snprintf(text, sizeof text, "%g", arg->f64); break;
      case FXT_ARG_BOOL: len = snprintf(text, sizeof text, "%s", arg->boolean ? "true" : "false"); break;
      default: len = snprintf(text, sizeof text, "%" PRIu64, arg->u64); break;
    }
    return pool_intern(pool, text, (size_t)len);
}
