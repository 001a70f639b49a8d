#ifndef INPUT_H
#define INPUT_H
/* input.h - a trace file as a stream of bytes: a regular file of any size, also one that is still
 * being written, or a pipe. Each may be compressed (decompress.h), which its first bytes show.
 *
 * The input is read through a window, not mapped: a file that shrinks meanwhile must not end the
 * tool with a signal, and pipes and compressed files must work, too. Memory is the window, and
 * another one for compressed bytes.
 *
 * A regular file is read up to the end that it had when it was opened, and then to the end of the
 * record that lies across that point.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxt/decompress.h"

enum { INPUT_WINDOW_BYTES = 1024 * 1024 };

#define INPUT_SIZE_UNKNOWN UINT64_MAX

struct input {
    int fd;
    int error;               /* errno of the read that failed, or 0 */
    bool at_end;
    uint8_t *window;
    size_t start;            /* first byte of the window that is not consumed */
    size_t end;              /* end of the bytes that were read into it */
    uint64_t offset;         /* of that first byte, in the decompressed trace */

    int64_t file_start;      /* where reading began in a regular file; -1 for a pipe */
    uint64_t file_size;      /* bytes of the file to read, as they are (compressed); INPUT_SIZE_UNKNOWN for a pipe */
    uint64_t file_taken;     /* bytes read so far */
    uint64_t fills;          /* number of reads */
    bool probed;             /* whether the input was checked for compression */
    uint8_t *compressed;     /* window of compressed bytes, INPUT_WINDOW_BYTES; or NULL */
    const uint8_t *compressed_at; /* those that are not decompressed yet */
    size_t compressed_bytes;
    struct decompressor decompressor;
};

/* Opens a file, or standard input for "-". Returns 0 or errno. */
int input_open(struct input *input, const char *path);
/* Makes at least `bytes` (no more than the window) readable at input_bytes(), or as many as
 * there are before the end of the file or an error. Returns how many are readable. */
size_t input_need(struct input *input, size_t bytes);
static inline const uint8_t *
input_bytes(const struct input *input)
{
    return input->window + input->start;
}
/* For a file that is written while it is read: returns whether the word at an earlier offset has
 * changed. If so, reading continues from there. */
bool input_reread(struct input *input, uint64_t offset, uint64_t word);
/* Reads up to `bytes` again from where input_bytes() begins, as they are in the file now.
 * Returns 0 for an input that cannot be written while it is read. */
size_t input_look_again(const struct input *input, uint8_t *to, size_t bytes);
/* Replaces bytes that input_need returned by bytes that input_look_again read. */
void input_replace(struct input *input, const uint8_t *from, size_t bytes);
/* Consumes bytes that input_need returned. */
void input_take(struct input *input, size_t bytes);
void input_close(struct input *input);

#endif
