/* choice.c - see choice.h */
#include <stdio.h>
#include <stdlib.h>

#include "topics/exits/advice.h"
#include "topics/choice.h"
#include "topics/exits/reason.h"
#include "base/escape.h"
#include "base/message.h"
#include "base/xalloc.h"

enum { THREADS_NAMED = 6 };

bool
choice_cuts(const struct trace_choice *choice)
{
    return choice->since_ns != INT64_MIN || choice->until_ns != INT64_MAX || choice->thread != NULL;
}

bool
choice_picks(const struct trace_choice *choice)
{
    return choice->reason != NULL || choice->method != NULL;
}

const char *
choice_picked(const struct trace_choice *choice)
{
    if (choice->reason != NULL) return "exits and fallbacks";
    return choice->method != NULL ? "exits, fallbacks, calls and allocations" : NULL;
}

char *
choice_window_text(const struct trace_choice *choice)
{
    char since[40] = "the start", until[40] = "the end";
    if (choice->since_ns == INT64_MIN && choice->until_ns == INT64_MAX) return NULL;
    if (choice->since_ns != INT64_MIN) snprintf(since, sizeof since, "%.9g s", (double)choice->since_ns / 1e9);
    if (choice->until_ns != INT64_MAX) snprintf(until, sizeof until, "%.9g s", (double)choice->until_ns / 1e9);
    return xformat("from %s to %s", since, until);
}

char *
choice_text(const struct trace_choice *choice)
{
    if (!choice_cuts(choice) && !choice_picks(choice)) return NULL;
    char *text, *window = choice_window_text(choice);
    size_t bytes;
    FILE *out = xmemstream(&text, &bytes);
    const char *between = "", *const names[] = {"thread", "reason", "method"};
    const char *const globs[] = {choice->thread, choice->reason, choice->method};
    if (window != NULL) fputs(window, out), between = ", ";
    free(window);
    for (unsigned i = 0; i < 3; i++) {
        if (globs[i] == NULL) continue;
        fprintf(out, "%s%s %s", between, names[i], globs[i]);
        between = ", ";
    }
    if (choice_picks(choice)) fprintf(out, " (%s)", choice_picked(choice));
    fclose(out);
    return text;
}

bool
choice_window_any(const char *command, int64_t since_ns, int64_t until_ns)
{
    if ((since_ns > 0 ? since_ns : 0) < until_ns) return true;
    message("%s: --since is not before --until: the range is empty", command);
    return false;
}

static void
print_command(const char *command, const char *where)
{
    fprintf(stderr, "vm-trace: %s: ", command);
    if (where == NULL) return;
    print_file_name(stderr, where);
    fputs(": ", stderr);
}

bool
choice_window_in(const char *command, const char *where, int64_t since_ns, int64_t length_ns)
{
    if (since_ns <= length_ns) return true;
    print_command(command, where);
    fprintf(stderr, "nothing is after --since=%.6f: the trace lasts %.6f s\n", (double)since_ns / 1e9,
            (double)length_ns / 1e9);
    return false;
}

/* --- messages ------------------------------------------------------------------------------------------ */

static void
print_unmatched(const char *command, const struct choice_seen *seen, const char *what, const char *pattern)
{
    print_command(command, seen->where);
    fprintf(stderr, "no %s", what);
    print_escaped(stderr, text_of(pattern));
}

/* "; did you mean NAME?" */
static void
print_nearest(struct fxt_string name)
{
    fputs("; did you mean ", stderr);
    print_escaped(stderr, name);
    fputs("?\n", stderr);
}

/* --- threads --------------------------------------------------------------------------------------------- */

/* Prints the first names, each once. */
static void
print_threads(const struct choice_seen *seen)
{
    unsigned named = 0;
    for (uint32_t i = 0; i < seen->thread_count && named <= THREADS_NAMED; i++) {
        uint32_t same = 0;
        while (seen->threads[same] != seen->threads[i]) same++;
        if (same < i) continue;
        fputs(named == 0 ? "; there are " : ", ", stderr);
        if (named++ < THREADS_NAMED) print_escaped(stderr, pool_string(seen->pool, seen->threads[i]));
        else fputs("...", stderr);
    }
    fputs(named > 0 ? "\n" : "; the trace names none\n", stderr);
}

static bool
check_thread(const char *command, const char *pattern, const struct choice_seen *seen)
{
    if (pattern == NULL || seen->thread) return true;
    struct nearest nearest = nearest_to(pattern);
    for (uint32_t i = 0; i < seen->thread_count; i++)
        nearest_try(&nearest, pool_string(seen->pool, seen->threads[i]).ptr);
    print_unmatched(command, seen, "thread matches --thread=", pattern);
    if (nearest.name != NULL) print_nearest(text_of(nearest.name));
    else print_threads(seen);
    return false;
}

/* --- reasons and methods ----------------------------------------------------------------------------------- */

/* Whether a JIT has such a reason. */
static bool
reason_known(const char *pattern)
{
    struct reason_names names;
    uint32_t *chosen = xcalloc(advice_count(), sizeof *chosen);
    bool known = advice_choose(pattern, chosen);
    free(chosen);
    for (size_t i = 0; !known && reason_at(i, &names); i++) known = reason_matches(pattern, text_of(names.trace));
    return known;
}

static enum status
check_reason(const char *command, const struct choice_seen *seen)
{
    const struct glob *glob = seen->reason;
    if (glob == NULL || glob_matched_any(glob)) return STATUS_FINE;
    print_unmatched(command, seen, "event has the reason ", glob->pattern);
    if (reason_known(glob->pattern)) {
        fputc('\n', stderr);
        return STATUS_FINE;
    }
    struct nearest nearest = nearest_to(glob->pattern);
    for (uint32_t id = 0; id < glob->size; id++) {
        if (glob->known[id] == GLOB_FAILS) nearest_try(&nearest, pool_string(seen->pool, id).ptr);
    }
    reason_nearest(&nearest);
    if (nearest.name != NULL) print_nearest(text_of(nearest.name));
    else fputs("; vm-trace explain lists all\n", stderr);
    return STATUS_USAGE;
}

static enum status
check_method(const char *command, const struct choice_seen *seen)
{
    const struct glob *glob = seen->method;
    if (glob == NULL || glob_matched_any(glob)) return STATUS_FINE;
    struct fxt_string nearest = glob_nearest_method(glob, seen->pool);
    print_unmatched(command, seen, "event is in a method ", glob->pattern);
    if (nearest.len > 0) print_nearest(nearest);
    else fputs("; a glob such as '*name*' matches part of a name\n", stderr);
    return STATUS_USAGE;
}

enum status
choice_check(const char *command, const struct trace_choice *choice, const struct choice_seen *seen)
{
    if (!choice_window_in(command, seen->where, choice->since_ns, seen->length_ns)) return STATUS_USAGE;
    if (!check_thread(command, choice->thread, seen)) return STATUS_USAGE;
    enum status status = check_reason(command, seen);
    return worse(status, check_method(command, seen));
}
