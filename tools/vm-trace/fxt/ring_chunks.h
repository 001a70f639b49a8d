#ifndef RING_CHUNKS_H
#define RING_CHUNKS_H
/* ring_chunks.h - reads the chunks of a file that keeps its newest events, while it is written.
 *
 * The writer reuses chunks: it turns a chunk into padding, from the end on, and then writes it
 * anew. A plain read could mix two moments. So a chunk is read whole, and then again. Where both
 * reads agree, up to padding that extends to the end, that part was in the file at one moment
 * between the reads. (Each use has other times, so nothing can change and change back.)
 */
#include <stdbool.h>
#include <stdint.h>

#include "fxt/input.h"

struct ring_chunks;

struct ring_chunks *ring_chunks_new(void);
void ring_chunks_free(struct ring_chunks *ring);
/* At the first record of a chunk, which may be padding: makes the input's window hold the chunk as
 * it was at one moment. Does nothing within a chunk that is settled already. */
void ring_chunks_settle(struct ring_chunks *ring, struct input *input);
/* Whether the bytes up to this offset belong to a settled chunk. */
bool ring_chunks_settled(struct ring_chunks *ring, uint64_t offset);
/* At the end of the file: whether any chunk has changed since it was read. */
bool ring_chunks_moved(struct ring_chunks *ring, const struct input *input);

#endif
