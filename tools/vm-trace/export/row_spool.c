/* row_spool.c - see row_spool.h */
#define _GNU_SOURCE /* mkostemp */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "export/row_spool.h"

/* What the temporary file has before the rows of one file. */
struct block {
    uint64_t previous; /* of the same file: offset + 1, or 0 */
    uint64_t bytes;
};

void
row_spool_init(struct row_spool *spool, const char *folder, size_t limit_bytes)
{
    *spool = (struct row_spool){.folder = folder, .limit_bytes = limit_bytes};
    spool->text = open_memstream(&spool->bytes, &spool->size);
    if (spool->text == NULL) {
        file_message(folder, strerror(errno));
        exit(STATUS_CANNOT_READ);
    }
}

void
row_spool_free(struct row_spool *spool)
{
    fclose(spool->text);
    if (spool->file != NULL) fclose(spool->file);
    free(spool->bytes);
    free(spool->rows);
}

static bool
fail(struct row_spool *spool)
{
    char text[256];
    snprintf(text, sizeof text, "cannot have a temporary file: %s", strerror(errno));
    if (!spool->failed) file_message(spool->folder, text);
    spool->failed = true;
    return false;
}

static FILE *
open_temporary(const char *folder)
{
    char *path = xformat("%s/.rows.XXXXXX", folder);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    free(path);
    return fd < 0 ? NULL : fdopen(fd, "w+b");
}

/* Writes the rows of one file that are in memory. */
static void
write_rows(struct row_spool *spool, struct spooled *of, FILE *out)
{
    for (uint32_t number = of->first; number != 0; number = spool->rows[number - 1].next) {
        const struct spooled_row *row = &spool->rows[number - 1];
        fwrite(spool->bytes + row->begin, 1, row->len, out);
    }
    of->first = of->last = 0;
}

static void
write_block(struct row_spool *spool, struct spooled *of)
{
    struct block block = {.previous = of->last_block};
    for (uint32_t number = of->first; number != 0; number = spool->rows[number - 1].next)
        block.bytes += spool->rows[number - 1].len;
    of->last_block = spool->file_end + 1;
    fwrite(&block, sizeof block, 1, spool->file);
    write_rows(spool, of, spool->file);
    spool->file_end += sizeof block + block.bytes;
}

/* Empties the memory. */
static void
flush(struct row_spool *spool)
{
    for (uint32_t i = 0; i < spool->count; i++) {
        struct spooled *of = spool->rows[i].of;
        if (of->first == 0) continue; /* it was written with its first row */
        if (of->out != NULL) {
            write_rows(spool, of, of->out);
            continue;
        }
        if (spool->file == NULL && !spool->failed && (spool->file = open_temporary(spool->folder)) == NULL) fail(spool);
        if (!spool->failed) write_block(spool, of);
        else of->first = of->last = 0;
    }
    if (spool->file != NULL && ferror(spool->file)) fail(spool);
    rewind(spool->text);
    spool->count = 0;
    spool->end = 0;
}

void
row_spool_add(struct row_spool *spool, struct spooled *of)
{
    size_t begin = spool->end;
    spool->end = (size_t)ftell(spool->text);
    make_room(spool->rows, spool->count, spool->capacity);
    spool->rows[spool->count++] = (struct spooled_row){.of = of, .begin = begin, .len = (uint32_t)(spool->end - begin)};
    if (of->last == 0) of->first = spool->count;
    else spool->rows[of->last - 1].next = spool->count;
    of->last = spool->count;
    if (spool->end < spool->limit_bytes) return;
    fflush(spool->text);
    flush(spool);
}

static bool
copy(FILE *from, uint64_t bytes, FILE *out)
{
    char part[16 * 1024];
    while (bytes > 0) {
        size_t size = bytes < sizeof part ? (size_t)bytes : sizeof part;
        if (fread(part, 1, size, from) != size) return false;
        fwrite(part, 1, size, out);
        bytes -= size;
    }
    return true;
}

bool
row_spool_write(struct row_spool *spool, struct spooled *of)
{
    ARRAY_OF(uint64_t) blocks = {0}; /* from the last to the first */
    struct block block = {0};
    bool good = !spool->failed;
    for (uint64_t offset = of->last_block; good && offset != 0; offset = block.previous) {
        make_room(blocks.list, blocks.count, blocks.capacity);
        blocks.list[blocks.count++] = offset - 1;
        good = fseeko(spool->file, (off_t)(offset - 1), SEEK_SET) == 0 &&
               fread(&block, sizeof block, 1, spool->file) == 1;
    }
    while (good && blocks.count > 0) {
        good = fseeko(spool->file, (off_t)blocks.list[--blocks.count], SEEK_SET) == 0 &&
               fread(&block, sizeof block, 1, spool->file) == 1 && copy(spool->file, block.bytes, of->out);
    }
    free(blocks.list);
    fflush(spool->text);
    write_rows(spool, of, of->out);
    of->last_block = 0;
    return good || fail(spool);
}
