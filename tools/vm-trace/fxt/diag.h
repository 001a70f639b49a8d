#ifndef DIAG_H
#define DIAG_H
/* diag.h - what the tool says on stderr, and its exit statuses.
 *
 * A message reads `vm-trace: FILE: reason` or `vm-trace: FILE: offset N: reason`.
 */
#include <stdint.h>
#include <stdio.h>

#include "fxt/reader.h"

/* Exit statuses, as listed in --help and the man page; of several files the worst counts. */
enum status {
    STATUS_FINE = 0,
    STATUS_FAULTS = 1,
    STATUS_USAGE = 2,
    STATUS_CANNOT_READ = 3,
    STATUS_NOT_A_TRACE = 4,
};

enum status worse(enum status a, enum status b);

/* FILE, escaped; "standard input" for "-". */
void print_file_name(FILE *out, const char *file);

/* `vm-trace: FILE: text` */
void diag_file(const char *file, const char *text);

/* Says the faults of one file, up to a limit, and counts them all. Shows how far the reading is. */
struct diag {
    const char *file;
    int64_t begun_ns;    /* when reading began; 0 where no progress is shown: stderr is no terminal */
    int64_t shown_ns;    /* when progress was shown last; 0 while there is nothing to take away */
    uint64_t shown_most;
    uint64_t shown;
    uint64_t faults;
    uint64_t warnings;
    enum status worst; /* what the faults so far make of the exit status */
};

struct diag diag_new(const char *file, uint64_t shown_most);
/* For the reader's callback: context is a struct diag. */
void diag_fault(void *context, const struct fxt_fault *fault);
/* For the reader's callback, likewise: one line that is written over, when reading takes more than a second. */
void diag_progress(void *context, uint64_t bytes, uint64_t size);
/* Takes the line of progress away; says how many faults were not shown, if any; the file's exit status. */
enum status diag_finish(struct diag *diag);

#endif
