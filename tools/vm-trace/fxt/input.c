/* input.c - see input.h */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "fxt/input.h"

int
input_open(struct input *input, const char *path)
{
    *input = (struct input){.fd = STDIN_FILENO, .file_start = -1, .file_size = INPUT_SIZE_UNKNOWN};
    if (strcmp(path, "-") != 0) {
        input->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (input->fd < 0) return errno;
    }
    struct stat stat;
    if (fstat(input->fd, &stat) == 0 && S_ISREG(stat.st_mode)) {
        input->file_start = lseek(input->fd, 0, SEEK_CUR); /* standard input may have been read from already */
        input->file_size = input->file_start < stat.st_size ? (uint64_t)(stat.st_size - input->file_start) : 0;
    }
    input->window = xrealloc(NULL, INPUT_WINDOW_BYTES, 1);
    return 0;
}

/* Reads up to `size` bytes of the file. Returns 0 at its end, or on an error. */
static size_t
read_file_bytes(struct input *input, uint8_t *to, size_t size)
{
    if (size > input->file_size - input->file_taken) size = (size_t)(input->file_size - input->file_taken);
    ssize_t got;
    do got = read(input->fd, to, size);
    while (got < 0 && errno == EINTR);
    if (got < 0) input->error = errno;
    if (got <= 0) return 0;
    input->file_taken += (uint64_t)got;
    input->fills++;
    return (size_t)got;
}

/* Reads up to `size` decompressed bytes. Returns 0 at the end, or if the data are damaged. */
static size_t
read_decompressed_bytes(struct input *input, uint8_t *to, size_t size)
{
    struct decompressor *decompressor = &input->decompressor;
    size_t done = 0;
    while (done == 0 && decompressor->fault == NULL) {
        if (input->compressed_bytes == 0) {
            input->compressed_at = input->compressed;
            input->compressed_bytes = read_file_bytes(input, input->compressed, INPUT_WINDOW_BYTES);
            if (input->compressed_bytes == 0) {
                if (decompressor->in_member && input->error == 0) decompressor->fault = "they are truncated";
                return 0;
            }
        }
        done = decompress(decompressor, &input->compressed_at, &input->compressed_bytes, to, size);
    }
    return done;
}

/* Looks at the first bytes: if they are those of a compressed file, the bytes read so far are compressed. */
static void
detect_compression(struct input *input)
{
    input->probed = true;
    enum compression kind = compression_of(input->window, input->end);
    if (kind == COMPRESSION_NONE) return;
    int error = decompress_begin(&input->decompressor, kind);
    if (error != 0) {
        input->error = error;
        input->end = 0;
        input->at_end = true;
        return;
    }
    input->compressed = input->window;
    input->compressed_at = input->compressed;
    input->compressed_bytes = input->end;
    input->window = xrealloc(NULL, INPUT_WINDOW_BYTES, 1);
    input->end = 0;
    input->at_end = false;
}

static size_t
fill(struct input *input, size_t bytes)
{
    if (INPUT_WINDOW_BYTES - input->start < bytes) {
        memmove(input->window, input->window + input->start, input->end - input->start);
        input->end -= input->start;
        input->start = 0;
    }
    size_t there = input->end - input->start;
    /* A record may extend beyond the end that the file had when it was opened: that part was
     * padding then. */
    bool over_the_end =
        there > 0 && there < bytes && input->file_taken == input->file_size && input->compressed == NULL;
    if (over_the_end) {
        input->file_size += bytes - there;
        input->at_end = false;
    }
    for (;;) {
        while (input->end - input->start < bytes && !input->at_end) {
            uint8_t *to = input->window + input->end;
            size_t room = INPUT_WINDOW_BYTES - input->end;
            size_t got = input->compressed ? read_decompressed_bytes(input, to, room) : read_file_bytes(input, to, room);
            if (got == 0) input->at_end = true;
            input->end += got;
        }
        if (input->probed) return input->end - input->start;
        detect_compression(input);
    }
}

size_t
input_need(struct input *input, size_t bytes)
{
    size_t there = input->end - input->start;
    return there >= bytes ? there : fill(input, bytes);
}

bool
input_reread(struct input *input, uint64_t offset, uint64_t word)
{
    uint64_t now;
    off_t at = (off_t)(input->file_start + (int64_t)offset);
    if (input->file_start < 0 || input->compressed != NULL) return false;
    if (pread(input->fd, &now, sizeof now, at) != sizeof now || now == word) return false;
    if (lseek(input->fd, at, SEEK_SET) != at) return false;
    input->start = input->end = 0;
    input->offset = input->file_taken = offset;
    input->at_end = false;
    return true;
}

size_t
input_look_again(const struct input *input, uint8_t *to, size_t bytes)
{
    if (input->file_start < 0 || input->compressed != NULL) return 0;
    size_t done = 0;
    while (done < bytes) {
        ssize_t got =
            pread(input->fd, to + done, bytes - done, (off_t)(input->file_start + (int64_t)(input->offset + done)));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done;
}

void
input_replace(struct input *input, const uint8_t *from, size_t bytes)
{
    memcpy(input->window + input->start, from, bytes);
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
    decompress_end(&input->decompressor);
    free(input->compressed);
    free(input->window);
    *input = (struct input){.fd = -1};
}
