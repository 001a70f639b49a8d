/* text_columns.c - see text_columns.h */
#include "render/text_columns.h"

void
text_columns_print(FILE *out, const struct text_column *columns, unsigned count, unsigned indent,
                   const struct text_cell *cells)
{
    unsigned blanks = indent;
    for (unsigned i = 0; i < count; i++) {
        const struct text_cell *cell = &cells[i];
        if (columns[i].hidden) continue;
        unsigned pad = columns[i].width > cell->width ? columns[i].width - cell->width : 0;
        if (cell->width > 0) {
            bool styled = cell->style != STYLE_PLAIN;
            fprintf(out, "%*s%s%s%s", (int)(blanks + (cell->right ? pad : 0)), "",
                    styled ? style(out, cell->style) : "", cell->text, styled ? style(out, STYLE_PLAIN) : "");
            blanks = cell->right ? 0 : pad;
        }
        else {
            blanks += pad;
        }
        blanks += TEXT_COLUMN_GAP;
    }
    putc('\n', out);
}
