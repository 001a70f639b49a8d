#ifndef SPOOL_NAMES_H
#define SPOOL_NAMES_H
/* spool_names.h - the names of a spool's files: HOST-PID-TIME-NUMBER-REASON.fxt (doc/guide/spool.md); and what belongs
 * to one recording. A process is identified by its recording and its pid: two containers have the same pids. The reader
 * says of each record which ones it belongs to. */
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/pool.h"

/* What a file belongs to, of files that are read one after the other. Zeroed: there is none yet. */
struct recording {
    char *path;      /* of the file; NULL: the next one begins a recording */
    uint32_t number; /* from 1 */
    uint32_t last;   /* the greatest number */
    bool traced;     /* a provider of the file has the number */
    struct map processes; /* recording and pid -> number */
};

/* Whether a file is the next piece of a spool after another: of the same folder, host and pid, with a greater number (a
 * process that got the pid of another one begins with 1). */
bool spool_goes_on(const char *earlier, const char *later);
/* Takes the next file, which may go on with the recording; otherwise another recording begins. */
void recording_next(struct recording *recording, const char *path);
/* Returns the number of the recording of a new provider of the file, with its name. Each one of CRuby's tracer is a
 * recording of its own, since a tracer has one provider: `vm-trace merge` joined them. */
uint32_t recording_of(struct recording *recording, struct fxt_string name);
/* Returns the number of a process, from 0; with too many, the last one collects the rest. */
uint32_t recording_process(struct recording *recording, uint32_t number, uint32_t pid);
void recording_free(struct recording *recording);

#endif
