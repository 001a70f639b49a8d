#ifndef SPOOL_NAMES_H
#define SPOOL_NAMES_H
/* spool_names.h - the names of a spool's files: HOST-PID-TIME-NUMBER-REASON.fxt (doc/guide/spool.md); and what belongs
 * to one recording. A process is identified by its recording and its pid: two containers have the same pids. */
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/pool.h"

/* What a file belongs to, of files that are read one after the other. Zeroed: there is none yet. */
struct recording {
    const char *path; /* of the file; NULL: the next one begins a recording */
    uint32_t number;  /* from 1 */
    uint32_t last;    /* the greatest number */
    struct map of_tracer; /* provider of CRuby's tracer -> number; empty unless recording_tracer is called */
};

/* Takes the next file; the path must live until the one after it. Returns whether it goes on with the recording, as the
 * next piece of a spool: a file of the same folder, host and pid, with a greater number (a process that got the pid of
 * another one begins with 1). Else another recording begins. */
bool recording_next(struct recording *recording, const char *path);
/* Takes a provider of the file, with its name. Each one of CRuby's tracer is a recording of its own, since a tracer has
 * one provider: `vm-trace merge` joined them. */
void recording_tracer(struct recording *recording, uint32_t provider, struct fxt_string name);
/* The number of the recording that a provider's records belong to. */
uint32_t recording_of(const struct recording *recording, uint32_t provider);
/* Only after recording_tracer. */
void recording_free(struct recording *recording);

#endif
