#ifndef RECORD_COPY_H
#define RECORD_COPY_H
/* record_copy.h - records of several traces, or some of them, as one new trace.
 *
 * Records are copied as they are: each belongs to a provider, and only the provider's id is changed, so that providers of
 * different files do not become one. What providers define (strings, threads, clock rates) is written when a record that is
 * kept comes after it; a chunk of which nothing is kept leaves nothing behind. Padding is left out.
 */
#include <stdio.h>

#include "fxt/reader.h"

struct record_copy;

/* keep_ids: there will be one file, and its providers keep their ids. */
struct record_copy *record_copy_new(FILE *out, bool keep_ids);
void record_copy_free(struct record_copy *copy);
/* Before each file: its providers are others than those of the files before. */
void record_copy_next_file(struct record_copy *copy);
/* A record that defines something or that tells how to read the others: a string, a thread, an initialization, a provider. */
bool record_is_definition(const struct fxt_record *record);
/* Takes such a record. */
void record_copy_define(struct record_copy *copy, const struct fxt_record *record);
/* Writes any other record, and what it needs before it. */
void record_copy_write(struct record_copy *copy, const struct fxt_record *record);

#endif
