/* reason.c - see reason.h */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "topics/exits/reason.h"
#include "topics/exits/reason_names.h"

static const char exit_prefix[] = "exit_", fallback_prefix[] = "send_fallback_";
enum { EXITS = sizeof exit_names / sizeof *exit_names, FALLBACKS = sizeof fallback_names / sizeof *fallback_names };

bool
reason_at(size_t index, struct reason_names *names_out)
{
    if (index >= EXITS + FALLBACKS) return false;
    bool fallback = index >= EXITS;
    const struct reason_name *name = fallback ? &fallback_names[index - EXITS] : &exit_names[index];
    *names_out = (struct reason_names){.trace = name->trace, .stats = name->stats, .fallback = fallback};
    const char *prefix = !fallback ? exit_prefix : strcmp(name->trace, name->stats) == 0 ? "" : fallback_prefix;
    snprintf(names_out->counter, sizeof names_out->counter, "%s%s", prefix, name->stats);
    return true;
}

bool
reason_find(const char *reason, struct reason_names *names_out)
{
    for (size_t i = 0; reason_at(i, names_out); i++) {
        if (fnmatch(names_out->trace, reason, 0) == 0) return true;
    }
    return false;
}

/* Copies the text before the parentheses. Returns false if it is too long for a reason. */
static bool
head_of(const char *reason, char head[REASON_COUNTER])
{
    size_t len = strcspn(reason, "(");
    if (len == 0 || len >= REASON_COUNTER) return false;
    memcpy(head, reason, len);
    head[len] = '\0';
    return true;
}

static bool
any_name_matches(const char *glob, const struct reason_names *names)
{
    return fnmatch(glob, names->stats, 0) == 0 || fnmatch(glob, names->counter, 0) == 0;
}

bool
reason_matches(const char *glob, struct fxt_string reason)
{
    char head[REASON_COUNTER];
    if (fnmatch(glob, reason.ptr, 0) == 0) return true;
    if (head_of(reason.ptr, head) && fnmatch(glob, head, 0) == 0) return true;
    struct reason_names names;
    return reason_find(reason.ptr, &names) && any_name_matches(glob, &names);
}

bool
reason_counter(const char *name, char counter[REASON_COUNTER])
{
    struct reason_names names;
    char head[REASON_COUNTER];
    bool found = false;
    for (size_t i = 0; reason_at(i, &names) && !names.fallback; i++) {
        bool same = strcmp(name, names.stats) == 0 || strcmp(name, names.counter) == 0 ||
                    strcmp(name, names.trace) == 0 || (head_of(names.trace, head) && strcmp(name, head) == 0);
        if (!same) continue;
        if (found && strcmp(counter, names.counter) != 0) return false;
        memcpy(counter, names.counter, sizeof names.counter);
        found = true;
    }
    return found;
}

void
reason_nearest(struct nearest *nearest)
{
    struct reason_names names;
    bool underlined = strchr(nearest->wanted, '_') != NULL; /* suggest a name in the spelling of the question */
    for (size_t i = 0; reason_at(i, &names); i++) {
        char head[REASON_COUNTER];
        const char *name = underlined || names.fallback ? names.stats : names.trace;
        nearest_try_as(nearest, names.stats, name);
        nearest_try_as(nearest, names.counter, name);
        nearest_try_as(nearest, names.trace, name);
        if (head_of(names.trace, head)) nearest_try_as(nearest, head, name);
    }
}
