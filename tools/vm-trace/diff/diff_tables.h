#ifndef DIFF_TABLES_H
#define DIFF_TABLES_H
/* diff_tables.h - the differences between two sides, as a document. */
#include "diff/diff.h"
#include "diff/diff_streams.h"
#include "topics/view_table.h"

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

/* The first columns of all tables: a number of a cell, and how its value is shown. Programs get the spread, too. */
enum diff_values { DIFF_AMOUNTS, DIFF_TIMES, DIFF_BYTES };
enum {
    DIFF_CHANGE, DIFF_BEFORE, DIFF_AFTER, DIFF_DELTA, DIFF_OF_ALL, DIFF_BEFORE_LOW, DIFF_BEFORE_HIGH, DIFF_AFTER_LOW,
    DIFF_AFTER_HIGH, DIFF_CELLS
};
struct cell diff_value_cell(enum diff_values values, double value);
/* all_before: of all rows, on the first side. */
struct cell diff_row_cell(const struct diff_row *row, unsigned own, enum diff_values values, double all_before);
#define DIFF_VALUE_COLUMNS(value, delta, delta_title)                                                                  \
    {"change", "", COLUMN_TEXT, OWN_CELL(DIFF_CHANGE)}, {"a", "A", value, OWN_SUM(DIFF_BEFORE)},                       \
    {"b", "B", value, OWN_SUM(DIFF_AFTER)}, {"delta", delta_title, delta, OWN_SUM(DIFF_DELTA)},                        \
    {"of_a", "of all A", COLUMN_CHANGE, OWN_SUM(DIFF_OF_ALL)}
#define DIFF_SPREAD_COLUMNS(spread)                                                                                    \
    {"a_low", NULL, spread, OWN_CELL(DIFF_BEFORE_LOW)}, {"a_high", NULL, spread, OWN_CELL(DIFF_BEFORE_HIGH)},          \
    {"b_low", NULL, spread, OWN_CELL(DIFF_AFTER_LOW)}, {"b_high", NULL, spread, OWN_CELL(DIFF_AFTER_HIGH)}

#endif
