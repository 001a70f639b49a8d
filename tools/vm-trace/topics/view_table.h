#ifndef VIEW_TABLE_H
#define VIEW_TABLE_H
/* view_table.h - makes tables of a document from rows: the first `top` rows that count, and the sum of the others as
 * the last row. A table is data: its columns say where their cells come from.
 *
 *      static const struct table_column columns[] = {
 *          {"count", "count", COLUMN_COUNT, SUMMED(report_loss, events)},
 *          {"share", "share", COLUMN_SHARE, SHARE_OF("count")},
 *          {"reason", "reason", COLUMN_TEXT, NAMED(report_loss, reason)},
 *      };
 *      view_table(&(struct table_def){.view = view, .id = "losses", .title = text_of("Losses"),
 *                                     .rows = &report->losses, COLUMNS_OF(columns), .sort = {"count", "reason"}});
 */
#include <stddef.h>

#include "topics/report_data.h"
#include "render/document.h"

struct view {
    struct report *report;
    struct document *document;
    uint64_t top; /* rows of a table */
};

enum cell_source {
    SOURCE_OWN, /* the table's function `cell`, with the number `own` */
    SOURCE_U64,
    SOURCE_U32,
    SOURCE_BOOL,
    SOURCE_SIGNED, /* a time that may be negative in parts; the cell has 0 then */
    SOURCE_NAME,   /* number of a text in the pool */
    SOURCE_TEXT,   /* const char *; NULL: none */
    SOURCE_STRING, /* struct fxt_string; empty: none */
    SOURCE_TIME,   /* ns; the cell is relative to the start of the trace */
    SOURCE_QUANTILE,
    SOURCE_PID, SOURCE_TID, SOURCE_THREAD, /* of the number of a thread */
    SOURCE_OWN_TID, /* likewise, unless it shares native threads */
    SOURCE_PROCESS_PID, /* of the number of a process */
    SOURCE_SHARE,
};

struct table_column {
    const char *id, *title; /* as in struct column */
    enum column_kind kind;
    enum cell_source source;
    uint16_t offset; /* of the member of a row */
    uint16_t own;    /* SOURCE_OWN: the number; SOURCE_QUANTILE: percent */
    /* Bits of the table's `given`: */
    unsigned only_if;   /* that the column needs, */
    unsigned people_if; /* that people need to see it, */
    unsigned value_if;  /* that its cells need. */
    bool summed;       /* the row of the rest has the sum */
    bool of_whole;     /* SOURCE_SHARE: of the table's `whole` */
    bool any_name;     /* SOURCE_NAME: STRING_NONE is no cell, not "(unknown)" */
    bool blank_zero;   /* 0 is no cell, except in the row of the rest; */
    bool blank_rest;   /* nor there */
    bool unless_empty; /* not for people if no row that counts has a cell other than 0 */
    bool helper;       /* never shown: for shares */
    const char *part, *of; /* SOURCE_SHARE: ids of columns; of: NULL: the sum of `part` in all rows that count */
};

/* Where the cells of a column come from; `type` is without `struct`. Those that are SUMMED are in the row of the rest;
 * so is the share of such a column. */
#define SOURCE_OF(type, member)                                                                                        \
    _Generic((struct type){}.member, uint64_t: SOURCE_U64, uint32_t: SOURCE_U32, bool: SOURCE_BOOL,                \
             int64_t: SOURCE_SIGNED, const char *: SOURCE_TEXT, struct fxt_string: SOURCE_STRING)
#define AT(from, type, member) .source = (from), .offset = offsetof(struct type, member)
#define MEMBER(type, member) AT(SOURCE_OF(type, member), type, member)
#define SUMMED(type, member) MEMBER(type, member), .summed = true
#define NAMED(type, member) AT(SOURCE_NAME, type, member)
#define NAMED_IF_ANY(type, member) AT(SOURCE_NAME, type, member), .any_name = true
#define SINCE_START(type, member) AT(SOURCE_TIME, type, member)
#define QUANTILE(percent, type, member) AT(SOURCE_QUANTILE, type, member), .own = (percent)
#define PROCESS_PID(type, member) AT(SOURCE_PROCESS_PID, type, member)
#define OWN_CELL(number) .source = SOURCE_OWN, .own = (number)
#define OWN_SUM(number) OWN_CELL(number), .summed = true
#define SHARE_OF(id) .source = SOURCE_SHARE, .part = (id)
#define SHARE_IN_ROW(id, whole_id) SHARE_OF(id), .of = (whole_id)
#define SHARE_OF_WHOLE(id) SHARE_OF(id), .of_whole = true
/* The columns of a thread, whose number is in the row. */
#define THREAD_PID_COLUMN(type, member) {"pid", NULL, COLUMN_NUMBER, AT(SOURCE_PID, type, member)}
#define THREAD_COLUMN(type, member) {"thread", "thread", COLUMN_TEXT, AT(SOURCE_THREAD, type, member)}
#define THREAD_COLUMNS(type, member)                                                                                   \
    THREAD_PID_COLUMN(type, member), {"tid", "tid", COLUMN_NUMBER, AT(SOURCE_TID, type, member)},                      \
    THREAD_COLUMN(type, member)

enum { TABLE_COLUMNS_MAX = 48, TABLE_SORT_MAX = 8 };

/* A table. What is zero is not needed. */
struct table_def {
    const struct view *view;
    const char *id;
    struct fxt_string title;
    const struct table_column *columns;
    unsigned column_count; /* at most TABLE_COLUMNS_MAX */
    struct row_table *rows;
    const uint32_t *order; /* of the rows to use, in this order; else all */
    uint32_t order_count;
    /* Sorts the rows by the cells of these columns: counts and times from the largest on, other numbers and texts from
     * the smallest on. Or by a function, whose context is `compare_context`, or the pool. */
    const char *sort[TABLE_SORT_MAX];
    int (*compare)(const void *, const void *, void *);
    const void *compare_context;
    const char *unless_zero; /* only rows count in which this column is not 0; */
    bool (*counts)(const struct table_def *def, const void *row); /* only rows for which it returns true */
    struct cell (*cell)(const struct table_def *def, unsigned own, const void *row);
    void (*merge)(void *rest, const void *row); /* makes the row of the rest from zeros; else cells are added */
    const void *context; /* of these functions */
    const struct pool *pool; /* of names; NULL: the report's */
    const void *first;   /* a row before the others, which is not one of them */
    uint64_t whole;      /* see SHARE_OF_WHOLE */
    unsigned given;      /* bits of the caller: see struct table_column */
    uint32_t fewest;     /* rows that people need to see the table; 0: 1 */
    bool shown_empty;    /* for people also without rows */
    bool data;           /* for programs */
    bool no_rest;        /* without a last row for the others */
};
#define COLUMNS_OF(array) .columns = (array), .column_count = sizeof (array) / sizeof (array)[0]

/* Adds the table to the document. Valid until the document is freed. */
struct table *view_table(const struct table_def *def);
/* The number of rows that count; and the sum of a column, which is SUMMED, in them. Both are for titles. */
uint32_t view_table_rows(const struct table_def *def);
uint64_t view_table_sum(const struct table_def *def, const char *column);
/* An array as rows, which live as long as the array. */
struct row_table rows_of_array(const void *array, uint32_t count, size_t row_bytes);
#define ROWS_OF(array, count) rows_of_array((array), (count), sizeof *(array))

/* The text of a number of the pool; "(unknown)" for STRING_NONE. */
struct fxt_string view_name(const struct view *view, uint32_t id);
/* A title, and how many more have no row, because of too many of `what`; the document keeps it. */
struct fxt_string view_title(const struct view *view, struct fxt_string title, uint64_t uncounted, const char *what);

#endif
