#ifndef REPORT_FOLD_H
#define REPORT_FOLD_H
/* report_fold.h - tables of a report that would repeat each other's rows are shown as one. */
#include "analysis/report_data.h"
#include "render/document.h"

/* Where each reason happens at one line only, say, "exits by reason" and "exits by line" have the same rows. People get one table with
 * the names of both; programs get the tables as they are. After report_tables. */
void report_fold(const struct report *report, struct document *document);

#endif
