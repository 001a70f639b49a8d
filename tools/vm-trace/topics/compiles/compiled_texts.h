#ifndef COMPILED_TEXTS_H
#define COMPILED_TEXTS_H
/* compiled_texts.h - texts of compiled versions (ZJIT's HIR), and what happened in each of their lines: exits,
 * fallbacks, lost time.
 *
 *      compiled_texts_init -> compiled_texts_event for every event `code` and `site` -> compiled_texts_sort
 *      -> code_lines of each text that is to be shown -> compiled_texts_free
 *
 * A version is known by its process, its ISEQ and its number. Where ISEQs share a label, as those of evals do, the
 * last text of a number is shown for all of them.
 */
#include "base/row_table.h"
#include "fxt/reader.h"
#include "topics/compiles/version_history.h"

enum { COMPILED_TEXTS_MAX = 256 * 1024, COMPILED_HITS_MAX = 1024 * 1024 };

struct compiled_text {
    uint32_t process, iseq, version; /* the key; the process is a number of the caller's */
    uint32_t kind;                   /* STRING_HIR */
    uint64_t bytes;                  /* of the whole text, also where it was not kept */
    char *text;                      /* what is there of it, `length` bytes */
    size_t length, capacity;
    uint64_t offset;                 /* of its last part */
    uint32_t lines;
};

/* What happened at a line, with one reason. */
struct compiled_hits {
    uint32_t process, iseq, version, line; /* the key; lines count from 1 */
    uint32_t kind;                         /* the category of its events */
    uint32_t reason;
    uint64_t hits, lost_ns;
    uint64_t offset;                       /* of the first record */
};

struct compiled_texts {
    struct row_table texts; /* of struct compiled_text */
    struct row_table hits;  /* of struct compiled_hits */
    struct budget *budget;  /* of the texts */
    uint64_t uncounted;     /* events that had no room */
};

void compiled_texts_init(struct compiled_texts *texts, struct budget *budget);
void compiled_texts_free(struct compiled_texts *texts);
/* False: a part of a text does not follow the one before it. */
bool compiled_texts_event(struct compiled_texts *texts, struct pool *pool, uint32_t process,
                          const struct fxt_event *event);
/* Whether there is a text with that line, or one that was too large to keep. */
bool compiled_texts_have(struct compiled_texts *texts, const struct compiled_hits *hits);
/* Sorts texts by process, ISEQ and version, and hits by these and by line; each line's most frequent ones first. */
void compiled_texts_sort(struct compiled_texts *texts);

enum text_change { TEXT_SAME, TEXT_ADDED, TEXT_REMOVED };

/* A line of a text, or one that only the text before it had. */
struct code_line {
    const char *ptr; /* into the text that has it, without the newline */
    size_t len;
    uint32_t number; /* in that text, from 1 */
    enum text_change change;
    uint64_t exits, fallbacks, lost_ns; /* over all reasons */
    uint32_t reason;                    /* of most of them; STRING_NONE: nothing happened there */
    bool shown; /* of interest: in a first text the blocks that exit, or all if none does; in others what changed or
                   exits, with a line before and behind */
};

/* Returns the lines of a text, malloc'ed; once sorted. Lines that differ only in numbers of values and blocks (v12,
 * bb3) are the same as in the text before, which is NULL for the first one. */
struct code_line *code_lines(const struct compiled_texts *texts, const struct compiled_text *before,
                             const struct compiled_text *text, size_t *count_out);
/* Why the version before was given up: the reason of its invalidation; STRING_NONE: that is unknown. process: as the
 * history has it. */
uint32_t code_why_made(const struct version_history *history, uint32_t process, const struct compiled_text *text);
/* "HIR". */
const char *code_kind(const struct compiled_text *text);

#endif
