#ifndef ANNOTATED_H
#define ANNOTATED_H
/* annotated.h - source files with what their lines cost in the margin. */
#include <time.h>

#include "source/annotation.h"
#include "render/document.h"

struct annotated_view {
    const struct report *report;
    const struct annotation *annotation;
    const char *const *sources; /* for each file, where to read it; NULL: do not show it */
    time_t traced;              /* a source that changed later is said to be newer; 0: unknown */
    uint64_t context;           /* lines around a line with exits */
    uint64_t top;               /* files to show */
};

/* Prints the files as text, or as Markdown with a block of text for each. The document has the head. */
void annotated_print(const struct annotated_view *view, const struct document *head, bool markdown);
/* Adds tables for programs: annotated_files, annotated_lines, annotated_reasons, with lost times if
 * the trace has them. */
void annotated_tables(const struct annotated_view *view, struct document *document);

#endif
