#ifndef PARTS_H
#define PARTS_H
/* parts.h - the files of which only a part was read, and why: for the first line of each output.
 *
 * The reader keeps the list (reader_parts), so that every command has the same one.
 */
#include <stdbool.h>
#include <stdint.h>

struct fxt_part {
    char *path;
    char *text;          /* what was read of it, why not all, and the remedy, for people; printable, without the path */
    bool stopped;        /* reading ended early: how the trace goes on is not known */
    uint64_t offset;     /* of the first record that was not read, in the decompressed trace */
    uint64_t read_bytes; /* of the file as it is, compressed or not */
    uint64_t file_bytes; /* INPUT_SIZE_UNKNOWN: a pipe */
    uint64_t damaged;    /* faults in records that were read */
    int64_t ns;          /* from the earliest record to the last one that was read */
};

struct fxt_parts {
    char *chosen; /* what the user asked for, by --since and the like; NULL: all */
    struct fxt_part *list;
    uint32_t count, capacity;
};

/* Adds a part, which has no path and text yet. `why` is the fault that ended the reading, or NULL. */
void fxt_parts_add(struct fxt_parts *parts, const char *path, const struct fxt_part *part, const char *why);
/* Adds those of another list. */
void fxt_parts_copy(struct fxt_parts *parts, const struct fxt_parts *from);
void fxt_parts_free(struct fxt_parts *parts);
/* Takes over a malloc'ed text. */
void fxt_parts_choose(struct fxt_parts *parts, char *chosen);
/* Whether any file was read only up to a point. */
bool fxt_parts_stopped(const struct fxt_parts *parts);
/* All of them as one printable line, with their paths. NULL: every file was read as a whole, and all
 * was asked for. The caller frees it. */
char *fxt_parts_line(const struct fxt_parts *parts);

#endif
