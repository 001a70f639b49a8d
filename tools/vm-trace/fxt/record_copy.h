#ifndef RECORD_COPY_H
#define RECORD_COPY_H
/* record_copy.h - copies records of one or several traces into a new trace.
 *
 * Records are copied unchanged, except for the ids of providers: providers of different files must
 * not become one. Definitions of a provider (strings, threads, clock rates) are written before the
 * first kept record that follows them, so a chunk without a kept record leaves nothing behind.
 * Padding is dropped.
 */
#include <stdio.h>

#include "fxt/reader.h"

struct record_copy;

/* keep_ids: for a single file, whose providers keep their ids. */
struct record_copy *record_copy_new(FILE *out, bool keep_ids);
void record_copy_free(struct record_copy *copy);
/* Call it before each file: its providers differ from those of the files before. */
void record_copy_next_file(struct record_copy *copy);
/* Whether a record defines something that other records need: a string, a thread, a clock rate,
 * a provider. */
bool record_is_definition(const struct fxt_record *record);
/* Takes a record that is a definition. */
void record_copy_define(struct record_copy *copy, const struct fxt_record *record);
/* Writes any other record, after the definitions that it needs. */
void record_copy_write(struct record_copy *copy, const struct fxt_record *record);

#endif
