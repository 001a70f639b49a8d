/* portable.c - see portable.h */
#include "base/portable.h"

#ifdef __APPLE__
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"

#undef qsort_r

struct sorting {
    int (*compare)(const void *, const void *, void *);
    void *context;
};

static int
compare_by(void *sorting_of, const void *a, const void *b)
{
    const struct sorting *sorting = sorting_of;
    return sorting->compare(a, b, sorting->context);
}

void
portable_qsort_r(void *rows, size_t count, size_t bytes, int (*compare)(const void *, const void *, void *), void *context)
{
    struct sorting sorting = {compare, context};
    qsort_r(rows, count, bytes, &sorting, compare_by);
}

int
pipe2(int ends_out[2], int flags)
{
    if (pipe(ends_out) != 0) return -1;
    for (int i = 0; i < 2 && (flags & O_CLOEXEC); i++) fcntl(ends_out[i], F_SETFD, FD_CLOEXEC);
    return 0;
}

void *
memrchr(const void *bytes, int byte, size_t count)
{
    const char *first = bytes;
    for (const char *at = first + count; at > first;) {
        if (*--at == (char)byte) return (char *)bytes + (at - first);
    }
    return NULL;
}

int
versionsort(const struct dirent **a, const struct dirent **b)
{
    const char *x = (*a)->d_name, *y = (*b)->d_name;
    for (; *x != '\0' && *y != '\0'; x++, y++) {
        if (isdigit((unsigned char)*x) && isdigit((unsigned char)*y)) {
            char *x_end, *y_end;
            unsigned long long n = strtoull(x, &x_end, 10), m = strtoull(y, &y_end, 10);
            if (n != m) return n < m ? -1 : 1;
            x = x_end - 1;
            y = y_end - 1;
        }
        else if (*x != *y) break;
    }
    return (unsigned char)*x - (unsigned char)*y;
}

int
sigtimedwait(const sigset_t *signals, siginfo_t *info_out, const struct timespec *patience)
{
    enum { STEP_NS = 5000000 };
    const struct timespec step = {.tv_nsec = STEP_NS};
    long long left_ns = (long long)patience->tv_sec * 1000000000 + patience->tv_nsec;
    (void)info_out;
    for (;;) {
        sigset_t pending;
        int number;
        sigpending(&pending);
        for (number = 1; number < NSIG; number++) {
            if (sigismember(&pending, number) && sigismember(signals, number)) break;
        }
        if (number < NSIG) return sigwait(signals, &number) == 0 ? number : -1;
        if (left_ns <= 0) break;
        nanosleep(&step, NULL);
        left_ns -= STEP_NS;
    }
    errno = EAGAIN;
    return -1;
}

/* --- streams ------------------------------------------------------------------------------------------ */

struct stream {
    void *cookie;
    cookie_io_functions_t functions;
};

static int
write_stream(void *stream_of, const char *bytes, int count)
{
    const struct stream *stream = stream_of;
    ssize_t written = stream->functions.write(stream->cookie, bytes, (size_t)count);
    return written > 0 || count == 0 ? (int)written : -1;
}

static int
close_stream(void *stream_of)
{
    struct stream *stream = stream_of;
    int result = stream->functions.close(stream->cookie);
    free(stream);
    return result;
}

FILE *
fopencookie(void *cookie, const char *mode, cookie_io_functions_t functions)
{
    struct stream *stream = xcalloc(1, sizeof *stream);
    (void)mode;
    *stream = (struct stream){cookie, functions};
    FILE *file = funopen(stream, NULL, write_stream, NULL, close_stream);
    if (file == NULL) free(stream);
    return file;
}
#else
typedef int portable_is_empty; /* ISO C has no empty files */
#endif
