#ifndef TRACE_FOLDER_H
#define TRACE_FOLDER_H
/* trace_folder.h - the folder that `vm-trace record` writes: PID.fxt of each process, and index.csv. */
#include <stdbool.h>
#include <stdint.h>

struct trace_folder {
    char *path; /* absolute */
    const char *name; /* as the user gave it, or the default, for messages */
    bool given;       /* it was there, and stays */
    uint32_t removed; /* traces, because there were too many */
};

/* Makes the folder; NULL: a new one that the time names, in the current folder. One that exists must hold no trace.
 * Prints a message and returns false if that fails. */
bool trace_folder_make(struct trace_folder *folder, const char *name);
/* Removes it if it was made, and is empty. */
void trace_folder_discard(struct trace_folder *folder);

/* What RUBY_VM_TRACE has to be, so that a Ruby records these streams there. malloc'ed. */
char *trace_folder_variable(const struct trace_folder *folder, const char *streams);
/* The path of the traces, with %p for the pid. malloc'ed. */
char *trace_folder_pattern(const struct trace_folder *folder);

/* How many traces there are, and the space on the disk that they take. */
void trace_folder_size(const struct trace_folder *folder, int *count_out, uint64_t *bytes_out);
/* Whether a process still writes a trace: it is locked meanwhile. */
bool trace_written_p(const char *path);
/* Removes the oldest traces that no process writes any more, until at most so many are left. */
void trace_folder_prune(struct trace_folder *folder, uint64_t most);

#endif
