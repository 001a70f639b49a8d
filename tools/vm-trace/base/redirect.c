/* redirect.c - see redirect.h */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/redirect.h"
#include "base/xalloc.h"

struct redirected
redirect_errors(void)
{
    FILE *file = tmpfile();
    int fd = file != NULL ? fileno(file) : open("/dev/null", O_WRONLY | O_CLOEXEC);
    fflush(stderr);
    struct redirected redirected = {.file = file, .kept = dup(STDERR_FILENO)};
    dup2(fd, STDERR_FILENO);
    if (file == NULL) close(fd);
    return redirected;
}

char *
redirected_text(struct redirected *redirected)
{
    FILE *file = redirected->file;
    fflush(stderr);
    dup2(redirected->kept, STDERR_FILENO);
    close(redirected->kept);
    if (file == NULL) return xformat("vm-trace: no temporary file can be made\n");
    off_t bytes = lseek(fileno(file), 0, SEEK_END);
    char *text = xcalloc((size_t)bytes + 1, 1);
    rewind(file);
    text[fread(text, 1, (size_t)bytes, file)] = '\0';
    fclose(file);
    return text;
}
