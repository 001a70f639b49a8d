/* source_file.c - see source_file.h */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/source_file.h"
#include "base/xalloc.h"

static bool
read_all(int fd, char *text, size_t size, size_t *len_out)
{
    size_t len = 0;
    while (len < size) {
        ssize_t got = read(fd, text + len, size - len);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false;
        if (got == 0) break; /* the file has shrunk */
        len += (size_t)got;
    }
    *len_out = len;
    return true;
}

static void
split(struct source_file *source, size_t len)
{
    uint32_t capacity = 0;
    const char *end = source->text + len;
    for (const char *line = source->text; line < end;) {
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        if (line_end == NULL) line_end = end;
        size_t bytes = (size_t)(line_end - line);
        if (bytes > 0 && line[bytes - 1] == '\r') bytes--;
        make_room(source->lines, source->line_count, capacity);
        source->lines[source->line_count++] = (struct fxt_string){.ptr = line, .len = (uint32_t)bytes};
        line = line_end + 1;
    }
}

const char *
source_file_read(struct source_file *source, const char *path)
{
    *source = (struct source_file){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return strerror(errno);
    struct stat stat;
    const char *error = NULL;
    size_t len = 0;
    if (fstat(fd, &stat) != 0) error = strerror(errno);
    else if (!S_ISREG(stat.st_mode)) error = "not a regular file";
    else if (stat.st_size > SOURCE_BYTES_MAX) error = "too large for a source file";
    else {
        source->text = xcalloc((size_t)stat.st_size + 1, 1);
        source->changed = stat.st_mtime;
        if (read_all(fd, source->text, (size_t)stat.st_size, &len)) split(source, len);
        else error = strerror(errno);
    }
    close(fd);
    return error;
}

void
source_file_free(struct source_file *source)
{
    free(source->lines);
    free(source->text);
    *source = (struct source_file){0};
}

bool
source_file_line(const struct source_file *source, uint64_t number, struct fxt_string *line_out)
{
    if (number == 0 || number > source->line_count) return false;
    *line_out = source->lines[number - 1];
    return true;
}

struct fxt_string
source_line_wide(struct fxt_string line)
{
    enum { TAB_WIDTH = 8 };
    char *wide = xcalloc((size_t)line.len * TAB_WIDTH + 1, 1);
    uint32_t len = 0;
    for (uint32_t i = 0; i < line.len; i++) {
        if (line.ptr[i] != '\t') wide[len++] = line.ptr[i];
        else do wide[len++] = ' '; while (len % TAB_WIDTH != 0);
    }
    return (struct fxt_string){.ptr = wide, .len = len};
}
