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

/* Shared by both: a verdict as text, and as a cell; "per run" and so on. */
const char *diff_verdict_text(enum verdict verdict);
struct cell diff_verdict_cell(const struct diff_row *row);
const char *diff_unit_text(enum diff_unit unit);

#endif
