#ifndef SPOOL_NAMES_H
#define SPOOL_NAMES_H
/* spool_names.h - the names of a spool's files: HOST-PID-TIME-NUMBER-REASON.fxt (doc/guide/spool.md). */
#include <stdbool.h>
#include <stdint.h>

/* What a file belongs to, of files that are read one after the other. Zeroed: there is none yet. */
struct recording {
    const char *path; /* of the file; NULL: the next one begins a recording */
    uint32_t number;  /* from 1 */
};

/* Takes the next file; the path must live until the one after it. Returns whether it goes on with the recording, as the
 * next piece of a spool: a file of the same folder, host and pid, with a greater number (a process that got the pid of
 * another one begins with 1). Else another recording begins. */
bool recording_next(struct recording *recording, const char *path);

#endif
