#ifndef DIFF_TABLES_H
#define DIFF_TABLES_H
/* diff_tables.h - the differences between two sides, as a document. */
#include "analysis/diff.h"
#include "render/document.h"

/* Fills in the document. `top`: rows of a table; further rows are summed up in one. Texts point
 * into `diff`, which must outlive the document. */
void diff_document(const struct diff *diff, struct document *document, uint64_t top);

#endif
