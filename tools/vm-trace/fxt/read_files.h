#ifndef READ_FILES_H
#define READ_FILES_H
/* read_files.h - reads trace files and reports on stderr what is wrong with them. */
#include <stdbool.h>
#include <stdint.h>

#include "fxt/fault_report.h"

/* Reads one file; its faults go to `report`, which the caller finishes. Prints a message and returns
 * false when the file cannot be opened. */
bool read_file(struct reader *reader, const char *file, struct fxt_visitor *visitor, struct fault_report *report);

/* What else wants to know of each file, with the visitor's context. Functions may be NULL. */
struct file_bounds {
    void (*begin)(void *context, const char *path);
    void (*end)(void *context); /* not of a file that could not be opened */
};

/* Reads files one after the other, with up to max_faults messages each. `bounds` may be NULL. Returns the
 * worst status. */
enum status read_files(struct reader *reader, uint64_t max_faults, int file_count, char **files,
                       struct fxt_visitor *visitor, const struct file_bounds *bounds);

#endif
