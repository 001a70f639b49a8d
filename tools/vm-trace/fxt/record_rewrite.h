#ifndef RECORD_REWRITE_H
#define RECORD_REWRITE_H
/* record_rewrite.h - a record with other texts: names of all kinds, values of arguments, and those in Perfetto's
 * packets. */
#include "fxt/reader.h"

struct text_rewriter {
    void *context;
    /* Returns the text to write instead, no longer than this one; valid until the next call. */
    struct fxt_string (*rewrite)(void *context, struct fxt_string text);
};

/* Makes such a record in `to`, which has room for FXT_RECORD_MAX_WORDS words. Returns false if the record is damaged,
 * or of a type that may hold texts in places that are not known here. */
bool record_rewrite(const struct text_rewriter *rewriter, const struct fxt_record *record, uint8_t *to,
                    struct fxt_record *rewritten_out);

#endif
