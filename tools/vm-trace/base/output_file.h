#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H
/* output_file.h - a file that a command writes (-o OUT).
 *
 * It is written under a temporary name beside OUT and renamed when it is whole: OUT is either what it was or all there, whatever
 * happens meanwhile. A name that ends in .gz is compressed with gzip. "-" is standard output; what is there and is no regular
 * file (a pipe, a device) is written to as it is. One output at a time.
 */
#include <stdbool.h>
#include <stdio.h>

#include "base/message.h"

enum output_kind {
    OUTPUT_TEXT,
    OUTPUT_BINARY,   /* not for a terminal */
    OUTPUT_GZIP,     /* the same, compressed whatever the name is */
    OUTPUT_DATABASE, /* the caller writes to `temporary` itself */
};

struct output {
    FILE *file;       /* NULL for OUTPUT_DATABASE */
    const char *path; /* as the user gave it */
    char *target;     /* what is replaced in the end; NULL where nothing is renamed */
    char *temporary;  /* the file's name until then */
};

/* path NULL: standard output. False, and said, when it can't be written, or is one of the inputs. */
bool output_open(struct output *output, enum output_kind kind, const char *path, int input_count, char **inputs);
/* Puts the file in its place, unless status says that nothing useful could be made of the input (STATUS_USAGE and worse): then
 * it is as if it had never been opened. Returns the worse of status and its own. */
enum status output_close(struct output *output, enum status status);

#endif
