#ifndef REPORT_TABLES_H
#define REPORT_TABLES_H
/* report_tables.h - what was gathered, as a document. */
#include "analysis/report_data.h"
#include "render/document.h"

/* Where it comes from: files, processes and their settings, time span, losses. */
void report_head(struct report *report, struct document *document);
/* What costs: exits in several orders, compilations, threads. `top`: rows of a table. */
void report_tables(struct report *report, struct document *document, uint64_t top);
/* What is in the files: events of each kind, providers. */
void report_contents(struct report *report, struct document *document, uint64_t top);

#endif
