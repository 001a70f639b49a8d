/* document_print.c - prints a document, or some of its tables, in any of the formats. See document.h. */
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "render/document.h"

static void
print_as(FILE *out, const struct document *document, enum document_format format)
{
    switch (format) {
      case FORMAT_TEXT: document_print_text(out, document); return;
      case FORMAT_MARKDOWN: document_print_markdown(out, document); return;
      case FORMAT_JSON: document_print_json(out, document); return;
      case FORMAT_CSV: document_print_csv(out, document); return;
    }
}

static void
no_such_table(const struct document *document, const char *table_id)
{
    fputs("vm-trace: there is no table ", stderr);
    print_escaped(stderr, text_of(table_id));
    fputs(document->table_count > 0 ? " here; there are:" : " here, nor any other", stderr);
    const char *last = "";
    for (uint32_t i = 0; i < document->table_count; i++) {
        const char *id = document->tables[i]->id;
        if (!document->tables[i]->people && strcmp(id, last) != 0) fprintf(stderr, " %s", last = id);
    }
    putc('\n', stderr);
}

/* A message about the rows that are not shown: the row that sums them up does not fit a table of
 * plain rows. */
static void
print_more_rows(const struct table *table)
{
    char number[NUMBER_TEXT];
    if (table->more_rows == 0) return;
    fprintf(stderr, "vm-trace: %s more rows of the table %s are not shown (--top=N shows more)\n",
            with_commas(number, table->more_rows), table->id);
}

/* Gives a table for programs titles, because the user asked for it. */
static void
show_to_people(struct table *table)
{
    for (unsigned i = 0; table->data && i < table->column_count; i++) table->columns[i].title = table->columns[i].id;
    table->data = false;
}

bool
document_print(FILE *out, struct document *document, enum document_format format, const char *table_id)
{
    if (table_id == NULL) {
        print_as(out, document, format);
        return true;
    }
    struct document one = {.title = document->title}; /* history has several tables of one name, one per ISEQ */
    uint32_t partial = document->partial != NULL && strcmp(table_id, "partial") != 0 && format != FORMAT_CSV;
    if (partial > 0) {
        make_room(one.tables, one.table_count, one.table_capacity);
        one.tables[one.table_count++] = one.partial = document->partial;
    }
    for (uint32_t i = 0; i < document->table_count; i++) {
        if (strcmp(document->tables[i]->id, table_id) != 0 || document->tables[i]->people) continue;
        make_room(one.tables, one.table_count, one.table_capacity);
        one.tables[one.table_count++] = document->tables[i];
        show_to_people(document->tables[i]);
    }
    bool found = one.table_count > partial;
    const char *note = document->partial == NULL ? NULL : document->partial->cells[PARTIAL_WHAT].text.ptr;
    if (!found) no_such_table(document, table_id);
    else if (format != FORMAT_CSV) print_as(out, &one, format);
    for (uint32_t i = 0; format == FORMAT_CSV && i < one.table_count; i++) {
        document_print_csv_table(out, one.tables[i], i == 0, note);
        print_more_rows(one.tables[i]);
    }
    free(one.tables);
    return found;
}
