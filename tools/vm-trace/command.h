#ifndef COMMAND_H
#define COMMAND_H
/* command.h - the commands, and the options that they share. Each returns its exit status and says its own errors. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"

struct options {
    uint64_t top;        /* rows of a table */
    uint64_t max_faults; /* that are shown of one file */
    size_t memory_bytes; /* for names and tables */
};

enum status command_check(const struct options *options, int file_count, char **files);
enum status command_summary(const struct options *options, int file_count, char **files);
enum status command_dump(const struct options *options, int file_count, char **files);
/* The last argument is the SQL. */
enum status command_query(const struct options *options, int argument_count, char **arguments);

/* Reads a file for a command; its faults go to diag. False, and said, when it can't be opened. */
bool read_file(struct reader *reader, const char *file, struct fxt_visitor *visitor, struct diag *diag);

/* STATUS_CANNOT_READ, with a message, when something could not be written to standard output. */
enum status finish_output(void);

#endif
