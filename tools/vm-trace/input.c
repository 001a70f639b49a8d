/* input.c - see input.h */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "xalloc.h"

int
input_open(struct input *input, const char *path)
{
    *input = (struct input){.fd = STDIN_FILENO};
    if (strcmp(path, "-") != 0) {
        input->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (input->fd < 0) return errno;
    }
    input->window = xrealloc(NULL, INPUT_WINDOW_BYTES, 1);
    return 0;
}

static size_t
fill(struct input *input, size_t bytes)
{
    if (INPUT_WINDOW_BYTES - input->start < bytes) {
        memmove(input->window, input->window + input->start, input->end - input->start);
        input->end -= input->start;
        input->start = 0;
    }
    while (input->end - input->start < bytes && !input->at_end) {
        ssize_t got = read(input->fd, input->window + input->end, INPUT_WINDOW_BYTES - input->end);
        if (got < 0) {
            if (errno == EINTR) continue;
            input->error = errno;
        }
        if (got <= 0) input->at_end = 1;
        else input->end += (size_t)got;
    }
    return input->end - input->start;
}

size_t
input_need(struct input *input, size_t bytes)
{
    size_t there = input->end - input->start;
    return there >= bytes ? there : fill(input, bytes);
}

void
input_take(struct input *input, size_t bytes)
{
    input->start += bytes;
    input->offset += bytes;
}

void
input_close(struct input *input)
{
    if (input->fd > STDERR_FILENO) close(input->fd);
    free(input->window);
    *input = (struct input){.fd = -1};
}
