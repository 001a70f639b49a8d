#ifndef CHOICE_H
#define CHOICE_H
/* choice.h - what of a trace the user asks for, by --since, --until, --thread, --reason and --method: the same for all
 * commands, who also say in the same words when it is nothing. */
#include <stdint.h>

#include "analysis/glob.h"
#include "base/status.h"

/* --reason chooses among exits and fallbacks; --method also among calls and allocations. */
struct trace_choice {
    int64_t since_ns, until_ns; /* from the first event of the first file; INT64_MIN, INT64_MAX: all */
    const char *reason;         /* globs; NULL: all */
    const char *method;
    const char *thread; /* a glob of the name, or a tid */
    bool app_only; /* the innermost frame of the application counts, not the innermost one */
};

#define TRACE_CHOICE_ALL {.since_ns = INT64_MIN, .until_ns = INT64_MAX}

/* Whether a time or a thread is chosen, which sums of the whole trace do not know. */
bool choice_cuts(const struct trace_choice *choice);
/* Whether a reason or a method is. */
bool choice_picks(const struct trace_choice *choice);
/* What --reason and --method choose among: "exits and fallbacks". NULL: neither is given. */
const char *choice_picked(const struct trace_choice *choice);
/* "from 3 s to the end"; malloc'ed. NULL: any time. */
char *choice_window_text(const struct trace_choice *choice);
/* "from 3 s to 5 s, thread web*, method Foo#* (exits, fallbacks, calls and allocations)"; malloc'ed. NULL: all is
 * chosen. */
char *choice_text(const struct trace_choice *choice);

/* What was found in the records. */
struct choice_seen {
    const char *where;         /* a file or a folder, if that is to be named; or NULL */
    const struct pool *pool;
    int64_t length_ns;         /* from the first event to the end of the last one */
    bool thread;               /* one matches */
    const uint32_t *threads;   /* their names, also repeated ones */
    uint32_t thread_count;
    const struct glob *reason, *method; /* tried on all events; NULL: not checked */
};

/* Whether a window of time has any; before anything is read. Prints a message if not. */
bool choice_window_any(const char *command, int64_t since_ns, int64_t until_ns);
/* Whether the window lies in a trace of this length. Prints a message if not. */
bool choice_window_in(const char *command, const char *where, int64_t since_ns, int64_t length_ns);
/* Prints a message for the first option that nothing matches. STATUS_USAGE if it must be misspelled; a known reason
 * just has no events. */
enum status choice_check(const char *command, const struct trace_choice *choice, const struct choice_seen *seen);

#endif
