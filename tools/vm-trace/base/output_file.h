#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H
/* output_file.h - the file that a command writes (-o OUT).
 *
 * The file gets a temporary name in the same folder and is renamed when it is complete, so OUT is
 * either unchanged or complete. A name that ends in .gz or .zst is compressed with gzip or Zstandard. "-" is standard
 * output. An existing OUT that is not a regular file (a pipe, a device) is written directly. Up to
 * OUTPUTS_MAX outputs can be open at a time.
 */
#include <stdbool.h>
#include <stdio.h>

#include "base/message.h"

enum { OUTPUTS_MAX = 160 };

enum output_kind {
    OUTPUT_TEXT,
    OUTPUT_BINARY,   /* not for a terminal */
    OUTPUT_GZIP,     /* likewise, and compressed whatever its name */
    OUTPUT_DATABASE, /* the caller writes to `temporary` itself */
};

struct output {
    FILE *file;       /* NULL for OUTPUT_DATABASE */
    const char *path; /* as given by the user */
    char *target;     /* the file to replace; NULL: nothing is renamed */
    char *temporary;  /* its name until it is complete */
    bool failed;      /* output_complete did */
    unsigned slot;    /* of the temporary name in the list of those to remove */
};

/* Opens the output; NULL is standard output. Prints a message and returns false if it cannot be
 * written or is one of the inputs. */
bool output_open(struct output *output, enum output_kind kind, const char *path, int input_count, char **inputs);
/* Writes all out, but leaves it under its temporary name, where it can be read, until output_close. Only for an
 * output that gets a name. Returns false if it could not be written; output_close says so. */
bool output_complete(struct output *output);
/* Completes the output. If status says that the input was useless (STATUS_USAGE or worse),
 * discards it as if it had never been opened. Returns the worse of status and its own. */
enum status output_close(struct output *output, enum status status);

#endif
