/* document_prose.c - prints a table of long texts for people, as text or as Markdown.
 *
 * Each row is a heading, the first column, and a paragraph for each further cell that is present.
 * Columns are texts and counts. The texts are the tool's own, with code between backticks; a text
 * with line ends is a program and keeps its lines. Only the first column and `place` are the trace's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "render/display.h"
#include "render/document.h"

enum { INDENT = 2, LABEL_WIDTH = 10, PAGE_LEAST = 40 };

/* The caller frees it. */
static char *
cell_words(const struct column *column, const struct cell *cell)
{
    char number[NUMBER_TEXT];
    const char *text = column->kind == COLUMN_TEXT ? cell->text.ptr : with_commas(number, cell->number);
    size_t size = 4 * strlen(text) + 8; /* a byte becomes at most four */
    char *words = xcalloc(size, 1);
    if (strcmp(column->id, "place") == 0) return escape_into(words, size, text_of(text));
    snprintf(words, size, "%s", text);
    return words;
}

/* The length of a word; code between backticks is one word. */
static size_t
word_bytes(const char *word)
{
    bool code = false;
    size_t bytes = 0;
    for (; word[bytes] != '\0' && (code || word[bytes] != ' '); bytes++) code = code != (word[bytes] == '`');
    return bytes;
}

/* Prints the words of a text, and breaks lines where the page ends. */
static void
print_wrapped(FILE *out, const char *text, unsigned indent, unsigned page)
{
    unsigned at = indent;
    for (const char *word = text; *word != '\0';) {
        size_t bytes = word_bytes(word);
        char *shown = strndup(word, bytes);
        unsigned width = shown ? display_width(shown) : 0;
        free(shown);
        if (word > text && at + 1 + width > page) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
        }
        else if (word > text) {
            putc(' ', out);
            at++;
        }
        fwrite(word, 1, bytes, out);
        at += width;
        word += bytes + (word[bytes] == ' ');
    }
    putc('\n', out);
}

static void
print_paragraph(FILE *out, const char *label, const char *text, unsigned page)
{
    unsigned indent = INDENT + LABEL_WIDTH;
    fprintf(out, "%*s%s%-*s%s", INDENT, "", style(out, STYLE_DIM), LABEL_WIDTH, label, style(out, STYLE_PLAIN));
    if (strchr(text, '\n') == NULL) {
        print_wrapped(out, text, indent, page);
        return;
    }
    for (const char *line = text; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        fprintf(out, "%*s%.*s\n", line == text ? 0 : (int)indent, "", (int)len, line);
        line += len + (line[len] == '\n');
    }
}

void
document_prose_text(FILE *out, const struct table *table)
{
    unsigned page = display_columns(out);
    if (page < PAGE_LEAST) page = PAGE_LEAST;
    for (uint32_t row = 0; row < table->row_count; row++) {
        const struct cell *cells = table->cells + (size_t)row * table->column_count;
        if (row > 0) putc('\n', out);
        fputs(style(out, STYLE_BOLD), out);
        print_escaped(out, cells[0].text);
        fprintf(out, "%s\n", style(out, STYLE_PLAIN));
        for (unsigned i = 1; i < table->column_count; i++) {
            if (!cells[i].present || table->columns[i].title == NULL) continue;
            char *words = cell_words(&table->columns[i], &cells[i]);
            print_paragraph(out, table->columns[i].title, words, page);
            free(words);
        }
    }
}

void
document_prose_markdown(FILE *out, const struct table *table)
{
    for (uint32_t row = 0; row < table->row_count; row++) {
        const struct cell *cells = table->cells + (size_t)row * table->column_count;
        fputs(row > 0 ? "\n### `" : "### `", out);
        print_escaped(out, cells[0].text);
        fputs("`\n\n", out);
        for (unsigned i = 1; i < table->column_count; i++) {
            if (!cells[i].present || table->columns[i].title == NULL) continue;
            char *words = cell_words(&table->columns[i], &cells[i]);
            if (strchr(words, '\n') != NULL) fprintf(out, "\n```ruby\n%s```\n", words);
            else fprintf(out, "- **%s**: %s\n", table->columns[i].title, words);
            free(words);
        }
    }
}
