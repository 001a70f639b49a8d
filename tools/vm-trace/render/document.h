#ifndef DOCUMENT_H
#define DOCUMENT_H
/* document.h - what a command has to say: lines of a head, then tables; and the forms in which it is printed.
 *
 * The command fills it in once; text and Markdown are for people, JSON and CSV for programs. The head is for people: what it
 * says stands in tables as well, which are marked as `data`.
 *
 * Strings that cells point to must live as long as the document; document_text keeps those that are made for it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/pool.h"
#include "render/terminal.h"

enum { DOCUMENT_PARTS = 20 }; /* of a time span, in a rate */

enum column_kind {
    COLUMN_COUNT,    /* of things */
    COLUMN_NUMBER,   /* that is no count: a pid, a version */
    COLUMN_SHARE,    /* 0 to 1 */
    COLUMN_DURATION, /* ns */
    COLUMN_TIME,     /* ns from the start of the trace */
    COLUMN_RATE,     /* DOCUMENT_PARTS numbers: how many in each part of the time span */
    COLUMN_AMOUNT,   /* a count that need not be whole: a mean, a rate */
    COLUMN_DELTA,    /* from one amount to another */
    COLUMN_CHANGE,   /* a share by which something grew, or shrank: below 0 */
    COLUMN_TEXT,
};

struct column {
    const char *id;    /* for programs: member of an object, column of CSV */
    const char *title; /* for people; NULL: the column is not for them */
    enum column_kind kind;
};

struct cell {
    bool present;
    enum style style; /* STYLE_PLAIN unless it is set */
    union {
        uint64_t number; /* COLUMN_COUNT, COLUMN_NUMBER, COLUMN_DURATION */
        int64_t time_ns;
        double share;  /* COLUMN_SHARE, COLUMN_CHANGE */
        double amount; /* COLUMN_AMOUNT, COLUMN_DELTA */
        const float *rate;
        struct fxt_string text;
    };
};

struct table {
    const char *id;
    struct fxt_string title;
    struct column *columns;
    unsigned column_count;
    struct cell *cells; /* by rows */
    uint32_t row_count;
    uint32_t row_capacity;
    uint64_t more_rows; /* not shown; the last row sums them up when there are any */
    bool data;          /* for programs only: people have read it in the head, or in a table that is for them */
    bool people;        /* for people only */
};

struct line {
    const char *title; /* "" continues the line before */
    struct fxt_string text;
};

struct document {
    struct fxt_string title;
    struct line *lines;
    uint32_t line_count, line_capacity;
    struct table **tables;
    uint32_t table_count, table_capacity;
    char **kept; /* texts and rates that are freed with it */
    uint32_t kept_count, kept_capacity;
};

/* A zeroed document is an empty one. */
void document_free(struct document *document);
/* A text made as by printf, kept by the document. */
struct fxt_string document_text(struct document *document, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Zeros, likewise kept: DOCUMENT_PARTS of them. */
float *document_rate(struct document *document);
/* `title` must live as long as the document. */
void document_line(struct document *document, const char *title, struct fxt_string text);
/* The columns are copied. Good until the document is freed. */
struct table *document_table(struct document *document, const char *id, struct fxt_string title, const struct column *columns,
                             unsigned column_count);
#define COLUMNS(array) (array), sizeof (array) / sizeof (array)[0]
/* A new row of empty cells, as many as there are columns; good until the next one. */
struct cell *table_row(struct table *table);

/* A cell's value. */
struct cell cell_number(uint64_t number);
struct cell cell_share(uint64_t part, uint64_t whole);
struct cell cell_amount(double amount);
struct cell cell_change(double share);
struct cell cell_time(int64_t ns);
struct cell cell_text(struct fxt_string text);
struct cell cell_rate(const float *rate);

enum document_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_MARKDOWN, FORMAT_CSV };

/* Prints the document to standard output; of a table's id that is not NULL, only the tables of that id.
 * Prints a message with the ids that there are, and returns false, when there is no such table. */
bool document_print(struct document *document, enum document_format format, const char *table_id);

/* document_text.c, document_data.c: the formats, for document_print. */
void document_print_text(const struct document *document);
void document_print_markdown(const struct document *document);
void document_print_json(const struct document *document);
void document_print_csv(const struct document *document);
/* A table by itself: names of its columns, if wanted, and its rows without the one that sums up others. */
void document_print_csv_table(const struct table *table, bool header);

/* For people. The buffer is returned. */
enum { NUMBER_TEXT = 32 };
const char *with_commas(char text[NUMBER_TEXT], uint64_t number);  /* 1234567 as 1,234,567 */
const char *amount_text(char text[NUMBER_TEXT], double amount);    /* likewise; 12.3, where it is small and not whole */
const char *delta_text(char text[NUMBER_TEXT], double delta);      /* the same with a sign: +1,234 */
const char *bytes_text(char text[NUMBER_TEXT], uint64_t bytes);    /* 1548.3 kB */
const char *duration_text(char text[NUMBER_TEXT], uint64_t ns);    /* 31.5 ms */

#endif
