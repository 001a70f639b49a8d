#ifndef INPUT_H
#define INPUT_H
/* input.h - a trace file as a stream of bytes: a regular file of any size, one that is still being written, a pipe; any of them
 * may be compressed with gzip, which is seen by its first bytes.
 *
 * It is read through a window rather than mapped: a file that shrinks while it is read must not end the tool with a signal, and
 * pipes and compressed files have to work too. Nothing is kept: memory is the window's, and another for compressed bytes.
 *
 * Of a regular file as much is read as there is when it is opened, and what completes the record that lies over that end.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

enum { INPUT_WINDOW_BYTES = 1024 * 1024 };

#define INPUT_SIZE_UNKNOWN UINT64_MAX

struct input {
    int fd;
    int error;               /* errno of the read that failed, or 0 */
    const char *gzip_fault;  /* what is wrong with the compressed data; NULL where nothing is */
    bool at_end;
    uint8_t *window;
    size_t start;            /* first byte of the window that was not taken */
    size_t end;              /* end of what was read into it */
    uint64_t offset;         /* of that first byte, in the trace as it is when decompressed */

    int64_t file_start;      /* where in a regular file the reading began; -1 for a pipe */
    uint64_t file_size;      /* bytes to read of the file, compressed as they are; INPUT_SIZE_UNKNOWN for a pipe */
    uint64_t file_taken;     /* bytes that were read of it */
    uint64_t fills;          /* how often something was read */
    bool probed;             /* whether it is compressed is known */
    bool in_member;          /* within a gzip member */
    uint8_t *compressed;     /* window of compressed bytes, INPUT_WINDOW_BYTES; NULL where there are none */
    z_stream gzip;
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
/* Whether the word at an offset that was passed is another one now. If so, reading goes on from there. For a file that is written
 * while it is read; never true of others. */
bool input_reread(struct input *input, uint64_t offset, uint64_t word);
/* Up to `bytes` that begin where input_bytes() does, as they are in the file now. 0 where it is none that can be written while it is read. */
size_t input_look_again(const struct input *input, uint8_t *to, size_t bytes);
/* Puts bytes that were so read in the place of those that input_need returned. */
void input_replace(struct input *input, const uint8_t *from, size_t bytes);
/* Moves past bytes that input_need returned. */
void input_take(struct input *input, size_t bytes);
void input_close(struct input *input);

#endif
