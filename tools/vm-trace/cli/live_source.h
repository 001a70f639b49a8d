#ifndef LIVE_SOURCE_H
#define LIVE_SOURCE_H
/* live_source.h - the traces that programs write while the tool reads them again and again. */
#include <stdbool.h>

#include "cli/process.h"

struct live_source {
    const char *name;  /* a folder, a file, or a pid, as the user gave it */
    char *path;        /* of the file that the process writes; NULL: of its memory a trace is saved each time */
    char *saved;       /* that trace */
    char folder[64];   /* in which it is saved; empty: there is none */
    char root[PROCESS_ROOT_BYTES]; /* what the process does not see of that path */
    bool process;      /* `name` is a pid */
    bool started;      /* the process was not traced before */
};

/* Finds what a process writes: the file that it has open, or the memory that it records into. If it does neither and
 * may_start says so, it is made to record into memory (control.h) until live_source_close. Prints a message and
 * returns false if there is nothing to read. */
bool live_source_open(struct live_source *source, const char *name, bool may_start);
/* Whether its process still runs; true if it is no process. */
bool live_source_runs(const struct live_source *source);
/* The traces to read now: of a folder, those that were written in the last `seconds`. The caller frees them with
 * folder_traces_free. -1: there are none. */
int live_source_traces(struct live_source *source, double seconds, char ***traces_out);
void live_source_close(struct live_source *source);

#endif
