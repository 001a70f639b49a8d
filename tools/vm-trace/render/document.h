#ifndef DOCUMENT_H
#define DOCUMENT_H
/* document.h - the output of a command: lines of a head, then tables; and the formats to print it
 * in.
 *
 * The command fills the document in once. Text and Markdown are for people, JSON and CSV for
 * programs. The head is for people; its contents are also in tables, which are marked as `data`.
 *
 * Strings of cells must live as long as the document; document_text keeps those that are made for
 * it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/pool.h"
#include "fxt/parts.h"
#include "render/terminal.h"

enum { DOCUMENT_PARTS = 20 }; /* parts of the time span in a rate */

enum column_kind {
    COLUMN_COUNT,    /* a number of things */
    COLUMN_NUMBER,   /* any other number: a pid, a version */
    COLUMN_SHARE,    /* 0 to 1 */
    COLUMN_DURATION, /* ns */
    COLUMN_TIME,     /* ns since the start of the trace */
    COLUMN_RATE,     /* DOCUMENT_PARTS numbers, one per part of the time span */
    COLUMN_AMOUNT,   /* a count that may have a fraction: a mean, a rate */
    COLUMN_DELTA,    /* between two amounts */
    COLUMN_TIME_DELTA, /* between two durations, in ns */
    COLUMN_CHANGE,   /* relative growth; below 0: it shrank */
    COLUMN_TEXT,
};

struct column {
    const char *id;    /* for programs: the member of an object, the column of CSV */
    const char *title; /* for people; NULL: not for people */
    enum column_kind kind;
};

struct cell {
    bool present;
    enum style style; /* STYLE_PLAIN by default */
    union {
        uint64_t number; /* COLUMN_COUNT, COLUMN_NUMBER, COLUMN_DURATION */
        int64_t time_ns; /* COLUMN_TIME, COLUMN_TIME_DELTA */
        double share;  /* COLUMN_SHARE, COLUMN_CHANGE */
        double amount; /* COLUMN_AMOUNT, COLUMN_DELTA */
        const float *rate;
        struct fxt_string text;
    };
};

/* The unit and the decimals that all durations of a column share. A zeroed scale has no durations yet. */
enum { DURATION_UNITS = 4 };
struct duration_scale {
    uint64_t most, least; /* without those of 0 */
    uint64_t count;
    uint64_t small[DURATION_UNITS]; /* that are below 1 in this unit */
};

struct table {
    const char *id;
    struct fxt_string title;
    struct column *columns;
    struct duration_scale *scales; /* by column; of the durations, for people */
    unsigned column_count;
    struct cell *cells; /* by rows */
    uint32_t row_count;
    uint32_t row_capacity;
    uint64_t more_rows; /* rows not shown; if any, the last row sums them up */
    bool data;          /* for programs only: people read it in the head or in another table */
    bool people;        /* for people only */
    bool whole_lines;   /* no text is shortened: lines may be longer than the page, as those of code are */
    bool one_line;      /* a row has one line, however short its texts become: for a screen */
    bool prose;         /* people read each row as paragraphs: see document_prose.c */
    const char *minor;  /* id of the column that is left out where space is short and all its texts are the same */
};

struct line {
    const char *title; /* "" continues the line above */
    struct fxt_string text;
};

struct document {
    struct fxt_string title;
    struct line *lines;
    uint32_t line_count, line_capacity;
    struct table **tables;
    uint32_t table_count, table_capacity;
    struct table *partial; /* one of these; NULL: all was read */
    char **kept; /* texts and rates that are freed with the document */
    uint32_t kept_count, kept_capacity;
};

/* A zeroed document is empty. */
void document_free(struct document *document);
/* Takes a table that was made for it elsewhere, as its last one. */
void document_insert(struct document *document, struct table *table);
/* Formats a text like printf; the document keeps it. */
struct fxt_string document_text(struct document *document, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns DOCUMENT_PARTS zeros, which the document keeps. */
float *document_rate(struct document *document);
/* `title` must live as long as the document. */
void document_line(struct document *document, const char *title, struct fxt_string text);
/* Says first of all which files were not read as a whole, in all formats; before any other table. The parts must
 * live as long as the document. */
void document_partial(struct document *document, const struct fxt_parts *parts);
enum {
    PARTIAL_FILE, PARTIAL_WHAT, PARTIAL_STOPPED, PARTIAL_BYTES, PARTIAL_OF, PARTIAL_UP_TO, PARTIAL_FAULTS
};
/* Makes a table; copies the columns. document_free frees those of the document. */
struct table *table_new(const char *id, struct fxt_string title, const struct column *columns, unsigned column_count);
/* Adds one. Valid until the document is freed. */
struct table *document_table(struct document *document, const char *id, struct fxt_string title,
                             const struct column *columns, unsigned column_count);
#define COLUMNS(array) (array), sizeof (array) / sizeof (array)[0]
/* Adds a row of empty cells, one per column. Valid until the next row is added. */
struct cell *table_row(struct table *table);

/* Make the value of a cell. */
struct cell cell_number(uint64_t number);
struct cell cell_share(uint64_t part, uint64_t whole);
struct cell cell_amount(double amount);
struct cell cell_change(double share);
struct cell cell_time(int64_t ns);
struct cell cell_text(struct fxt_string text);
struct cell cell_rate(const float *rate);

enum document_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_MARKDOWN, FORMAT_CSV };

/* Prints the document; or, if table_id is not NULL, only its tables with that
 * id. If there is none, prints a message with the ids of all tables and returns false. */
bool document_print(FILE *out, struct document *document, enum document_format format, const char *table_id);

/* The formats, for document_print; in document_text.c and document_data.c. */
void document_print_text(FILE *out, const struct document *document);
void document_print_markdown(FILE *out, const struct document *document);
void document_print_json(FILE *out, const struct document *document);
void document_print_csv(FILE *out, const struct document *document);
/* Prints the lines about what was read in part, for people: before all else. */
void document_print_partial(FILE *out, const struct document *document, bool markdown);
/* Print a table of prose for people; in document_prose.c. */
void document_prose_text(FILE *out, const struct table *table);
void document_prose_markdown(FILE *out, const struct table *table);
/* Prints one table, without the row that sums up others; `header`: with the names of its
 * columns. `partial` is a further column, or NULL. */
void document_print_csv_table(FILE *out, const struct table *table, bool header, const char *partial);

/* Format numbers for people, and return the buffer. */
enum { NUMBER_TEXT = 32 };
const char *with_commas(char text[NUMBER_TEXT], uint64_t number);  /* 1234567 as 1,234,567 */
const char *amount_text(char text[NUMBER_TEXT], double amount);    /* likewise; 12.3 if small and not whole */
const char *delta_text(char text[NUMBER_TEXT], double delta);      /* likewise, with a sign: +1,234 */
const char *bytes_text(char text[NUMBER_TEXT], uint64_t bytes);    /* 1548.3 kB */
const char *duration_text(char text[NUMBER_TEXT], uint64_t ns);    /* 31.5 ms: three digits */

/* Durations in a column: one unit, and so many decimals that the shortest has three digits, but at most two; what
 * vanishes is <0.01. */
void duration_scale_add(struct duration_scale *scale, uint64_t ns);
const char *scaled_duration_text(char text[NUMBER_TEXT], const struct duration_scale *scale, uint64_t ns);
const char *scaled_delta_text(char text[NUMBER_TEXT], const struct duration_scale *scale, int64_t ns); /* +31.5 ms */
/* Gathers the durations of the columns of a table, before it is printed for people. */
void table_choose_scales(const struct table *table);

#endif
