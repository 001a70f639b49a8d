#ifndef TEXT_COLUMNS_H
#define TEXT_COLUMNS_H
/* text_columns.h - prints rows of texts in aligned columns: the tables of documents and of SQL. */
#include <stdbool.h>

#include "render/terminal.h"

enum { TEXT_COLUMN_GAP = 2 }; /* blanks between columns */

struct text_column {
    unsigned width; /* in columns of a terminal */
    bool hidden;
};

struct text_cell {
    const char *text; /* escaped; a text wider than its column shifts the rest of the row */
    unsigned width;   /* of the text */
    bool right;       /* aligned to the right of its column */
    enum style style;
};

/* Prints a row and a line end, without blanks at the end of the line. */
void text_columns_print(FILE *out, const struct text_column *columns, unsigned count, unsigned indent,
                        const struct text_cell *cells);

#endif
