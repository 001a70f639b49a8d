/* Documents: each format goes to the stream that is given, and only there. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "render/document.h"

static const struct column columns[] = {
    {"name", "name", COLUMN_TEXT}, {"share", "share", COLUMN_SHARE}, {"time", "time", COLUMN_DURATION}};

static void
fill(struct document *document)
{
    document->title = text_of("The title");
    document_line(document, "head", text_of("a line"));
    struct table *table = document_table(document, "rows", text_of("All rows"), COLUMNS(columns));
    struct cell *row = table_row(table);
    row[0] = cell_text(text_of("a \"name\""));
    row[0].style = STYLE_WORSE;
    row[1] = cell_share(1, 4);
    row[2] = cell_number(1500);
    document_table(document, "texts", text_of("Texts"), columns, 1)->prose = true;
    table_row(document->tables[1])[0] = cell_text(text_of("long"));
}

static char *
printed(enum document_format format, const char *table_id)
{
    struct document document = {0};
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    fill(&document);
    assert_true(document_print(out, &document, format, table_id));
    fclose(out);
    document_free(&document);
    return text;
}

static void
all_formats_go_to_the_stream(void **state)
{
    (void)state;
    static const char *const parts[][2] = {
        [FORMAT_TEXT] = {"The title\n  head           a line\n\nAll rows\n",
                         "  a \"name\"  25.0%  1.50 us\n\nTexts\nlong\n"},
        [FORMAT_JSON] = {"{\"rows\":{\"rows\":[\n  {\"name\":\"a \\\"name\\\"\",\"share\":0.25,\"time\":1500}]},\n",
                         "\"texts\":{\"rows\":[\n  {\"name\":\"long\"}]}}\n"},
        [FORMAT_MARKDOWN] = {"# The title\n\n- **head**: a line\n",
                             "| a \"name\" | 25.0% | 1.50 us |\n\n## Texts\n\n### `long`\n"},
        [FORMAT_CSV] = {"table,more_rows,name,share,time\n",
                        "rows,,\"a \"\"name\"\"\",0.25,1500\ntexts,,\"long\",,\n"}};
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), ends[2];
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDOUT_FILENO);
    char *texts[4], *table = printed(FORMAT_CSV, "rows");
    for (unsigned format = 0; format < 4; format++) texts[format] = printed(format, NULL);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(ends[1]);
    char rest;
    assert_int_equal(read(ends[0], &rest, 1), 0); /* nothing was printed there */
    close(ends[0]);
    for (unsigned format = 0; format < 4; format++) {
        assert_non_null(strstr(texts[format], parts[format][0]));
        assert_non_null(strstr(texts[format], parts[format][1]));
        free(texts[format]);
    }
    assert_string_equal(table, "name,share,time\n\"a \"\"name\"\"\",0.25,1500\n");
    free(table);
}

static void
colour_is_for_the_stream_that_is_a_terminal(void **state)
{
    (void)state;
    char *text;
    size_t bytes;
    FILE *memory = open_memstream(&text, &bytes);
    int keys = posix_openpt(O_RDWR | O_NOCTTY);
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    assert_true(keys >= 0 && grantpt(keys) == 0 && unlockpt(keys) == 0);
    FILE *terminal = fopen(ptsname(keys), "w");
    assert_non_null(terminal);
    assert_string_equal(style(terminal, STYLE_BOLD), "\033[1m");
    assert_string_equal(style(memory, STYLE_BOLD), "");
    fclose(memory);
    fclose(terminal);
    close(keys);
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_formats_go_to_the_stream),
        cmocka_unit_test(colour_is_for_the_stream_that_is_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
