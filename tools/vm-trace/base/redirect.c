/* redirect.c - see redirect.h */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/redirect.h"
#include "base/xalloc.h"

int
redirect(FILE *stream, int fd)
{
    fflush(stream);
    int kept = dup(fileno(stream));
    dup2(fd, fileno(stream));
    return kept;
}

void
restore(FILE *stream, int kept)
{
    fflush(stream);
    dup2(kept, fileno(stream));
    close(kept);
}

struct redirected
redirect_to_text(FILE *stream)
{
    FILE *file = tmpfile();
    int fd = file != NULL ? fileno(file) : open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct redirected redirected = {.stream = stream, .file = file, .kept = redirect(stream, fd)};
    if (file == NULL) close(fd);
    return redirected;
}

char *
redirected_text(struct redirected *redirected)
{
    FILE *file = redirected->file;
    restore(redirected->stream, redirected->kept);
    if (file == NULL) return xformat("vm-trace: no temporary file can be made\n");
    off_t bytes = lseek(fileno(file), 0, SEEK_END);
    char *text = xcalloc((size_t)bytes + 1, 1);
    rewind(file);
    text[fread(text, 1, (size_t)bytes, file)] = '\0';
    fclose(file);
    return text;
}
