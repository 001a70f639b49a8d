#ifndef REPORT_TABLES_H
#define REPORT_TABLES_H
/* report_tables.h - a report as a document. */
#include <time.h>

#include "render/document.h"
#include "topics/report_view.h"

/* The processes of the head: the pieces of a recording are one. */
uint32_t report_shown_processes(const struct report *report);
/* The head: files, processes and their settings, time span, losses. */
void report_head(struct report *report, struct document *document);
/* The first lines, before the head: what exits cost. Nothing without the stream `states`. */
void report_cost(struct report *report, struct document *document);
/* Then this line, after the head. */
void report_cost_missing(struct report *report, struct document *document);
/* Where the time went, and what to change first, as tables, which only programs read unless `people`; and as the screen
 * that people see first: at most 24 lines of 80 columns. The head is a document with report_head; its notes on what is
 * missing are part of the screen. `name` is what the command reads; `traced`: when the first trace was written, for only
 * older sources are shown (0: unknown, none is); `top`: causes. */
void report_first(struct report *report, struct document *document, bool people);
void report_first_print(FILE *out, struct report *report, const struct document *head, const char *name, time_t traced,
                        uint64_t top);
/* All tables. `top`: rows of one. */
void report_tables(struct report *report, struct document *document, uint64_t top);
/* Those of one topic. */
void report_topic(struct report *report, struct document *document, uint64_t top, enum topic_number topic);
/* Exits, times and allocations by gem. */
void report_gem_tables(struct report *report, struct document *document, uint64_t top);
/* The contents of the files: providers and their chunks. */
void report_contents(struct report *report, struct document *document, uint64_t top);

#endif
