#ifndef REPORT_FOLD_H
#define REPORT_FOLD_H
/* report_fold.h - shows tables of a report with the same rows as one table. */
#include "topics/report_data.h"
#include "render/document.h"

/* If each reason occurs at a single line, "exits by reason" and "exits by line" have the same
 * rows. People then get one table with the names of both; programs get the tables as they are.
 * Call it after report_tables. */
void report_fold(const struct report *report, struct document *document);

#endif
