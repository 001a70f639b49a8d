#ifndef INPUT_H
#define INPUT_H
/* input.h - a trace file as a stream of bytes: a regular file of any size, one that is still being written, or a pipe.
 *
 * It is read through a window rather than mapped: a file that shrinks while it is read must not end the tool with a signal, and
 * a pipe has to work too. The end of the file is where it is when the reader gets there.
 */
#include <stddef.h>
#include <stdint.h>

enum { INPUT_WINDOW_BYTES = 1024 * 1024 };

struct input {
    int fd;
    int error; /* errno of the read that failed, or 0 */
    int at_end;
    uint8_t *window;
    size_t start;    /* first byte of the window that was not taken */
    size_t end;      /* end of what was read into it */
    uint64_t offset; /* of that first byte, in the file */
};

/* Opens a file, or standard input for "-". 0, or errno. */
int input_open(struct input *input, const char *path);
/* Makes at least `bytes` (no more than the window) readable at input_bytes(), or as many as there are before the end of the
 * file or an error, and returns how many are. */
size_t input_need(struct input *input, size_t bytes);
static inline const uint8_t *
input_bytes(const struct input *input)
{
    return input->window + input->start;
}
/* Moves past bytes that input_need returned. */
void input_take(struct input *input, size_t bytes);
void input_close(struct input *input);

#endif
