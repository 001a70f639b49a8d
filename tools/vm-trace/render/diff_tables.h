#ifndef DIFF_TABLES_H
#define DIFF_TABLES_H
/* diff_tables.h - the differences between two sides, as a document. */
#include "analysis/diff.h"
#include "analysis/diff_streams.h"
#include "render/document.h"

/* Fills in the document. `top`: rows of a table; further rows are summed up in one. Texts point
 * into `diff`, which must outlive the document. */
void diff_document(const struct diff *diff, struct document *document, uint64_t top);
/* Adds the other streams. In diff_stream_tables.c. */
void diff_streams_document(struct diff_streams *streams, const struct diff *diff, struct document *document,
                           uint64_t top);

/* What a limit of --fail-over found. */
struct limit_result {
    const char *name; /* "exits", or of a sum */
    char *message;    /* why it failed: lines; "": it did not */
};

/* A short document, of at most 60 lines in Markdown, as a comment on a change: what the limits found, sums, and what
 * changed most. */
void diff_comment_document(const struct diff *diff, const struct diff_streams *streams,
                           const struct limit_result *results, uint32_t result_count, struct document *document);
/* Writes the results as JUnit XML: a test case for each limit. In junit.c. */
void junit_print(FILE *out, const struct limit_result *results, uint32_t result_count, const char *partial);

/* Shared by both: a sum with its unit; a verdict as text, and as a cell; "per run" and so on. */
const char *diff_sum_text(char text[NUMBER_TEXT], enum diff_sum sum, double value);
const char *diff_verdict_text(enum verdict verdict);
struct cell diff_verdict_cell(const struct diff_row *row);
const char *diff_unit_text(enum diff_unit unit);

#endif
