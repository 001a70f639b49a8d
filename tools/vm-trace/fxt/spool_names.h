#ifndef SPOOL_NAMES_H
#define SPOOL_NAMES_H
/* spool_names.h - the names of a spool's files: HOST-PID-TIME-NUMBER-REASON.fxt (doc/guide/spool.md). */
#include <stdbool.h>

/* Whether these are two pieces of one recording, the later one with a greater number: files of one folder, of the same
 * host and pid. A process that got the pid of another one begins with number 1. */
bool spool_next_piece_p(const char *earlier, const char *later);

#endif
