#ifndef RECORD_REWRITE_H
#define RECORD_REWRITE_H
/* record_rewrite.h - records with other texts: names of all kinds, values of arguments, and those in Perfetto's packets.
 *
 * A record is composed anew, of the fields that its type has. Not copied: fields that are unknown, reserved bits, bytes
 * behind a text, and what follows the last field. Definitions of strings are not copied either. Each use of a text is
 * rewritten by itself, and defined before the first record that needs the result. So one text may become several, and
 * no text is there that no record uses.
 *
 *      record_rewriter_new -> record_rewrite from the visitor's function `record` -> record_rewriter_free
 */
#include "fxt/reader.h"

/* What a text is. */
enum text_kind {
    TEXT_PROVIDER,
    TEXT_CATEGORY,
    TEXT_EVENT,    /* name of an event */
    TEXT_ARGUMENT, /* name of an argument */
    TEXT_VALUE,
    TEXT_PROCESS,  /* name of a process: its title */
    TEXT_OBJECT,   /* name of a thread, a fiber */
    TEXT_BLOB,
    TEXT_FUNCTION, /* from here on: in stack samples */
    TEXT_PATH,
    TEXT_SAMPLE,   /* a source, a counter, a unit, a kind */
};

struct text_use {
    enum text_kind kind;
    struct fxt_string category; /* of an event; the other records have none */
    struct fxt_string argument; /* TEXT_VALUE: its name */
};

struct text_rewriter {
    void *context;
    /* Returns the text to write instead, not longer than this one. Its id is a number of the reader's pool. */
    struct fxt_string (*rewrite)(void *context, const struct text_use *use, struct fxt_string text);
    /* A string record, for the record that record_rewrite returns. */
    void (*define)(void *context, const struct fxt_record *definition);
};

struct record_rewriter;

/* Both must outlive it. Its tables are charged to the reader's budget. */
struct record_rewriter *record_rewriter_new(struct reader *reader, const struct text_rewriter *texts);
void record_rewriter_free(struct record_rewriter *rewriter);
/* Composes a record that the reader has just read, which is no string record; valid until the next call. Returns false
 * if the record is damaged, or of a type that may hold texts in places that are not known here. */
bool record_rewrite(struct record_rewriter *rewriter, const struct fxt_record *record, struct fxt_record *rewritten_out);
/* How many fields of packets were left out, and strings defined. */
uint64_t record_rewriter_fields_left_out(const struct record_rewriter *rewriter);
uint64_t record_rewriter_definitions(const struct record_rewriter *rewriter);

#endif
