#ifndef SOURCE_FILE_H
#define SOURCE_FILE_H
/* source_file.h - the lines of a program's source. The path may come from a trace, so it may name
 * anything. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/pool.h"

enum { SOURCE_BYTES_MAX = 64 * 1024 * 1024 };

struct source_file {
    char *text;
    struct fxt_string *lines; /* without line ends */
    uint32_t line_count;
    time_t changed;
};

/* Reads a regular file of at most SOURCE_BYTES_MAX. Never waits, whatever the path names. Returns
 * NULL, or why it cannot be read (a static text); then the source has no lines. */
const char *source_file_read(struct source_file *source, const char *path);
void source_file_free(struct source_file *source);
/* Returns line 1 and so on; false if there is none. */
bool source_file_line(const struct source_file *source, uint64_t number, struct fxt_string *line_out);
/* Returns the line with its tabs as blanks, and a NUL behind it. The caller frees ptr. */
struct fxt_string source_line_wide(struct fxt_string line);

#endif
