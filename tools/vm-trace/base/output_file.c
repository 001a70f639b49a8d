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
#ifdef HAVE_ZSTD
# include <zstd.h>
#endif

#include "base/output_file.h"
#include "base/portable.h"
#include "base/xalloc.h"

/* --- what must not be left behind ------------------------------------------------------------- */

/* The files that are being written. They are removed if the tool is interrupted or runs out of
 * memory. */
static const char *volatile unfinished[OUTPUTS_MAX];

static void
remove_unfinished(unsigned slot)
{
    if (unfinished[slot] != NULL) unlink(unfinished[slot]);
    unfinished[slot] = NULL;
}

static void
remove_all_unfinished(void)
{
    for (unsigned slot = 0; slot < OUTPUTS_MAX; slot++) remove_unfinished(slot);
}

static const int ending_signals[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof *ending_signals };

static void
interrupted(int signal_number)
{
    remove_all_unfinished();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void
remove_on_signal(struct output *output)
{
    static bool watching;
    unfinished[output->slot] = output->temporary;
    if (watching) return;
    watching = true;
    atexit(remove_all_unfinished);
    for (unsigned i = 0; i < ENDING_SIGNALS; i++) {
        if (signal(ending_signals[i], interrupted) == SIG_IGN) signal(ending_signals[i], SIG_IGN); /* as under nohup */
    }
}

/* Creates the file that output->temporary names. A signal waits until it is known what to remove. */
static int
create_temporary(struct output *output)
{
    sigset_t ending, before;
    sigemptyset(&ending);
    for (unsigned i = 0; i < ENDING_SIGNALS; i++) sigaddset(&ending, ending_signals[i]);
    sigprocmask(SIG_BLOCK, &ending, &before);
    int fd = mkostemp(output->temporary, O_CLOEXEC);
    if (fd >= 0) remove_on_signal(output);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return fd;
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

/* --- Zstandard ------------------------------------------------------------------------------------ */

#ifdef HAVE_ZSTD
struct zstd_file {
    int fd;
    ZSTD_CStream *stream;
};

/* Compresses, and writes all that comes out. */
static bool
zstd_step(struct zstd_file *zstd, ZSTD_inBuffer *in, ZSTD_EndDirective directive)
{
    char bytes[16 * 1024];
    for (;;) {
        ZSTD_outBuffer out = {bytes, sizeof bytes, 0};
        size_t left = ZSTD_compressStream2(zstd->stream, &out, in, directive);
        if (ZSTD_isError(left)) return false;
        for (size_t at = 0; at < out.pos;) {
            ssize_t written = write(zstd->fd, bytes + at, out.pos - at);
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) return false;
            at += (size_t)written;
        }
        if (directive == ZSTD_e_end ? left == 0 : in->pos == in->size) return true;
    }
}

static ssize_t
zstd_write(void *cookie, const char *bytes, size_t size)
{
    ZSTD_inBuffer in = {bytes, size, 0};
    return zstd_step(cookie, &in, ZSTD_e_continue) ? (ssize_t)size : 0; /* 0: as fopencookie expects */
}

static int
zstd_close(void *cookie)
{
    struct zstd_file *zstd = cookie;
    ZSTD_inBuffer none = {NULL, 0, 0};
    bool good = zstd_step(zstd, &none, ZSTD_e_end);
    ZSTD_freeCStream(zstd->stream);
    good = close(zstd->fd) == 0 && good;
    free(zstd);
    return good ? 0 : EOF;
}

static FILE *
open_zstd(int fd)
{
    struct zstd_file *zstd = xcalloc(1, sizeof *zstd);
    *zstd = (struct zstd_file){fd, ZSTD_createCStream()};
    if (zstd->stream != NULL)
        return fopencookie(zstd, "wb", (cookie_io_functions_t){.write = zstd_write, .close = zstd_close});
    free(zstd);
    errno = ENOMEM;
    return NULL;
}
#else
static FILE *
open_zstd(int fd)
{
    (void)fd;
    errno = ENOTSUP; /* libzstd was not there when the tool was built */
    return NULL;
}
#endif

enum compressor { COMPRESS_NOT, COMPRESS_GZIP, COMPRESS_ZSTD };

static FILE *
open_stream(int fd, enum compressor compressor)
{
    if (compressor == COMPRESS_NOT) return fdopen(fd, "wb");
    if (compressor == COMPRESS_ZSTD) return open_zstd(fd);
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
    for (output->slot = 0; output->slot < OUTPUTS_MAX && unfinished[output->slot] != NULL; output->slot++) {}
    if (output->slot == OUTPUTS_MAX) {
        errno = EMFILE;
        return -1;
    }
    output->temporary = xcalloc(size, 1);
    snprintf(output->temporary, size, "%.*s.%s.XXXXXX", folder_len, output->target, output->target + folder_len);
    int fd = create_temporary(output);
    if (fd < 0) return fd;
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
        output->file = kind == OUTPUT_GZIP ? open_stream(dup(STDOUT_FILENO), COMPRESS_GZIP) : stdout;
        return output->file != NULL || fail_errno(output->path);
    }

    struct stat there, input;
    bool exists = stat(path, &there) == 0;
    for (int i = 0; exists && i < input_count; i++) {
        if (stat(inputs[i], &input) != 0 || input.st_dev != there.st_dev || input.st_ino != there.st_ino) continue;
        return fail(path, "is an input, so it cannot be the output; give another file");
    }
    enum compressor compressor = kind == OUTPUT_GZIP || ends_with(path, ".gz") ? COMPRESS_GZIP :
                                 ends_with(path, ".zst")                       ? COMPRESS_ZSTD :
                                                                                 COMPRESS_NOT;
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
    if (fd >= 0) output->file = open_stream(fd, compressor);
    if (output->file != NULL) return true;
    fail_errno(path);
    if (fd >= 0) close(fd);
    output_close(output, STATUS_CANNOT_READ);
    return false;
}

bool
output_complete(struct output *output)
{
    bool good = !ferror(output->file);
    good = fclose(output->file) == 0 && good;
    output->file = NULL;
    output->failed = !good;
    return good;
}

enum status
output_close(struct output *output, enum status status)
{
    if (output->file == stdout) return worse(status, finish_output());
    if (output->file != NULL) output_complete(output);
    bool good = !output->failed;
    bool wanted = status < STATUS_USAGE && good;
    if (wanted && output->target != NULL) good = rename(output->temporary, output->target) == 0;
    if (status < STATUS_USAGE && !good) fail_errno(output->path);
    if (output->target != NULL && output->slot < OUTPUTS_MAX) {
        if (wanted && good) unfinished[output->slot] = NULL;
        else remove_unfinished(output->slot);
    }
    free(output->target);
    free(output->temporary);
    *output = (struct output){0};
    return good ? status : worse(status, STATUS_CANNOT_READ);
}
