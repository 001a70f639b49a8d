/* parts.c - see parts.h */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/message.h"
#include "base/xalloc.h"
#include "fxt/input.h"
#include "fxt/parts.h"

static char *
text_of_part(const struct fxt_part *part, const char *why)
{
    char *damaged = part->damaged == 0 ? xformat("%s", "") :
        xformat("%" PRIu64 " fault%s in its records, whose contents may be missing (vm-trace check lists them)",
                part->damaged, part->damaged == 1 ? "" : "s");
    if (why == NULL) return damaged;
    char *size = part->file_bytes == INPUT_SIZE_UNKNOWN ? xformat("%s", "") :
        xformat(" of %" PRIu64 " (%.1f %%)", part->file_bytes,
                part->file_bytes == 0 ? 0.0 : 100 * (double)part->read_bytes / (double)part->file_bytes);
    char *text = part->offset == 0 ? xformat("nothing of it was read: %s", why) :
        xformat("only a part was read, %" PRIu64 " bytes%s, up to %.6f s: %s%s%s", part->read_bytes, size,
                (double)part->ns / 1e9, why, part->damaged > 0 ? "; and " : "", damaged);
    free(damaged);
    free(size);
    return text;
}

static struct fxt_part *
new_part(struct fxt_parts *parts, const char *path, const struct fxt_part *part)
{
    make_room(parts->list, parts->count, parts->capacity);
    struct fxt_part *added = &parts->list[parts->count++];
    *added = *part;
    added->path = xformat("%s", path);
    return added;
}

void
fxt_parts_choose(struct fxt_parts *parts, char *chosen)
{
    free(parts->chosen);
    parts->chosen = chosen;
}

void
fxt_parts_copy(struct fxt_parts *parts, const struct fxt_parts *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        struct fxt_part *added = new_part(parts, from->list[i].path, &from->list[i]);
        added->text = xformat("%s", from->list[i].text);
    }
    if (from->chosen != NULL) fxt_parts_choose(parts, xformat("%s", from->chosen));
}

void
fxt_parts_add(struct fxt_parts *parts, const char *path, const struct fxt_part *part, const char *why)
{
    struct fxt_part *added = new_part(parts, path, part);
    added->stopped = why != NULL;
    added->text = text_of_part(part, why);
}

void
fxt_parts_free(struct fxt_parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        free(parts->list[i].path);
        free(parts->list[i].text);
    }
    free(parts->list);
    free(parts->chosen);
    *parts = (struct fxt_parts){0};
}

bool
fxt_parts_stopped(const struct fxt_parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        if (parts->list[i].stopped) return true;
    }
    return false;
}

char *
fxt_parts_line(const struct fxt_parts *parts)
{
    char *line;
    size_t bytes;
    if (parts->count == 0 && parts->chosen == NULL) return NULL;
    FILE *stream = xmemstream(&line, &bytes);
    if (parts->chosen != NULL) fprintf(stream, "%s%s", parts->chosen, parts->count > 0 ? "; " : "");
    for (uint32_t i = 0; i < parts->count; i++) {
        if (i > 0) fputs("; ", stream);
        print_file_name(stream, parts->list[i].path);
        fprintf(stream, ": %s", parts->list[i].text);
    }
    fclose(stream);
    return line;
}
