/* output_file.c - see output_file.h */
#define _GNU_SOURCE /* fopencookie */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/output_file.h"
#include "base/xalloc.h"

/* --- what must not be left behind ------------------------------------------------------------- */

/* The file that is being written. It is removed if the tool is interrupted or runs out of
 * memory. */
static const char *volatile unfinished;

static void
remove_unfinished(void)
{
    if (unfinished != NULL) unlink(unfinished);
    unfinished = NULL;
}

static void
interrupted(int signal_number)
{
    remove_unfinished();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void
remove_on_signal(const char *temporary)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};
    static bool watching;
    unfinished = temporary;
    if (watching) return;
    watching = true;
    atexit(remove_unfinished);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        if (signal(signals[i], interrupted) == SIG_IGN) signal(signals[i], SIG_IGN); /* as under nohup */
    }
}

/* --- gzip --------------------------------------------------------------------------------------- */

static ssize_t
gzip_write(void *cookie, const char *bytes, size_t size)
{
    return gzwrite(cookie, bytes, (unsigned)size); /* returns 0 on failure, as fopencookie expects */
}

static int
gzip_close(void *cookie)
{
    return gzclose(cookie) == Z_OK ? 0 : EOF;
}

static FILE *
open_stream(int fd, bool compressed)
{
    if (!compressed) return fdopen(fd, "wb");
    gzFile gzip = gzdopen(fd, "wb");
    if (gzip == NULL) return NULL;
    return fopencookie(gzip, "wb", (cookie_io_functions_t){.write = gzip_write, .close = gzip_close});
}

/* --- opening -------------------------------------------------------------------------------------- */

static bool
fail(const char *path, const char *reason)
{
    file_message(path, reason);
    return false;
}

static bool
fail_errno(const char *path)
{
    char text[256];
    snprintf(text, sizeof text, "cannot be written: %s", strerror(errno));
    return fail(path, text);
}

static bool
ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* Creates the temporary file beside its target, with the mode of the file that it replaces; a
 * new one is private (0600), as traces are. */
static int
open_temporary(struct output *output, const struct stat *replaced)
{
    const char *slash = strrchr(output->target, '/');
    int folder_len = slash == NULL ? 0 : (int)(slash + 1 - output->target);
    size_t size = strlen(output->target) + sizeof "..XXXXXX";
    output->temporary = xcalloc(size, 1);
    snprintf(output->temporary, size, "%.*s.%s.XXXXXX", folder_len, output->target, output->target + folder_len);
    int fd = mkostemp(output->temporary, O_CLOEXEC);
    if (fd < 0) return fd;
    remove_on_signal(output->temporary);
    if (replaced != NULL) fchmod(fd, replaced->st_mode & 0777);
    return fd;
}

bool
output_open(struct output *output, enum output_kind kind, const char *path, int input_count, char **inputs)
{
    bool to_stdout = path == NULL || strcmp(path, "-") == 0;
    *output = (struct output){.path = to_stdout ? "standard output" : path};
    if (to_stdout) {
        if (kind == OUTPUT_DATABASE) return fail(output->path, "cannot take a database; give a file with -o FILE");
        if (kind != OUTPUT_TEXT && isatty(STDOUT_FILENO)) {
            return fail(output->path, "is a terminal, and the output is binary; give a file with -o FILE");
        }
        output->file = kind == OUTPUT_GZIP ? open_stream(dup(STDOUT_FILENO), true) : stdout;
        return output->file != NULL || fail_errno(output->path);
    }

    struct stat there, input;
    bool exists = stat(path, &there) == 0;
    for (int i = 0; exists && i < input_count; i++) {
        if (stat(inputs[i], &input) != 0 || input.st_dev != there.st_dev || input.st_ino != there.st_ino) continue;
        return fail(path, "is an input, so it cannot be the output; give another file");
    }
    bool compressed = kind == OUTPUT_GZIP || (kind != OUTPUT_DATABASE && ends_with(path, ".gz"));
    int fd;
    if (exists && !S_ISREG(there.st_mode)) {
        if (kind == OUTPUT_DATABASE) return fail(path, "is not a regular file: a database cannot be written there");
        fd = open(path, O_WRONLY | O_CLOEXEC);
    }
    else {
        output->target = exists ? realpath(path, NULL) : strdup(path); /* if it is a link, keep the link */
        fd = output->target == NULL ? -1 : open_temporary(output, exists ? &there : NULL);
    }
    if (fd >= 0 && kind == OUTPUT_DATABASE) {
        close(fd);
        return true;
    }
    if (fd >= 0) output->file = open_stream(fd, compressed);
    if (output->file != NULL) return true;
    fail_errno(path);
    if (fd >= 0) close(fd);
    output_close(output, STATUS_CANNOT_READ);
    return false;
}

enum status
output_close(struct output *output, enum status status)
{
    if (output->file == stdout) return worse(status, finish_output());
    bool good = true;
    if (output->file != NULL) {
        good = !ferror(output->file);
        good = fclose(output->file) == 0 && good;
    }
    bool wanted = status < STATUS_USAGE && good;
    if (wanted && output->target != NULL) good = rename(output->temporary, output->target) == 0;
    if (status < STATUS_USAGE && !good) fail_errno(output->path);
    if (output->target != NULL) {
        if (wanted && good) unfinished = NULL;
        else remove_unfinished();
    }
    free(output->target);
    free(output->temporary);
    *output = (struct output){0};
    return good ? status : worse(status, STATUS_CANNOT_READ);
}
