/* Columns that texts take on a terminal, and texts made to fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "render/display.h"

static void
widths_are_those_of_a_terminal(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned columns;
    } cases[] = {
        {"", 0}, {"Foo#bar", 7}, {"Caf\u00e9", 4},
        {"Cafe\u0301", 4},                                             /* an accent of its own */
        {"\u65e5\u672c\u8a9e", 6}, {"\uff71", 1}, {"\ud55c", 2},       /* Japanese, half width, Korean */
        {"\u1112\u1161\u11ab", 2},                                     /* the same in parts */
        {"\U0001f600", 2}, {"\U0001f44d\U0001f3fd", 2},                /* an emoji; with a tone of skin */
        {"\U0001f468\u200d\U0001f469\u200d\U0001f467", 2},             /* a family */
        {"\u2764\ufe0f", 2},                                           /* a heart shown as an emoji */
        {"\U0001f1e9\U0001f1ea", 2}, {"\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 4}, /* flags */
        {"\u2588\u2581", 2},
        {"\xff\xfe", 2}, /* what is not UTF-8 comes escaped, but must not lead astray */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(display_width(cases[i].text), cases[i].columns);
    }
}

static void
texts_fit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned columns;
        const char *fit;
    } cases[] = {
        {"Foo#bar (/app/foo.rb:3)", 23, "Foo#bar (/app/foo.rb:3)"},
        {"Foo#bar (/app/models/foo.rb:3)", 27, "Foo#bar (\u2026/models/foo.rb:3)"},
        {"Foo#bar (/app/models/foo.rb:3)", 26, "Foo#bar (\u2026/foo.rb:3)"},
        {"Foo::Bar#a_long_name (/app/foo.rb:123)", 24, "Foo::\u2026ame (\u2026/foo.rb:123)"},
        {"Foo#bar (/app/foo.rb:123)", 12, "Foo#ba\u2026:123)"},
        {"/usr/lib/ruby/set.rb", 16, "\u2026/ruby/set.rb"},
        {"Foo#bar (foo.rb:3)", 12, "Foo#ba\u2026rb:3)"},
        {"GuardType(ArrayExact)", 12, "GuardT\u2026xact)"},
        {"\u65e5\u672c\u8a9e\u65e5\u672c\u8a9e", 8, "\u65e5\u672c\u2026\u8a9e"}, /* no character is halved */
        {"e\u0301e\u0301e\u0301e\u0301e\u0301", 4, "e\u0301e\u0301\u2026e\u0301"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *fit = display_fit(cases[i].text, cases[i].columns);
        assert_string_equal(fit, cases[i].fit);
        free(fit);
    }
}

static void
any_text_fits_any_width(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Foo#bar (/app/models/foo.rb:3)", "/", "(/", " (/)", " (a/b) (c/d)", "///////////////////", "\u65e5/\u65e5/\u65e5\u65e5\u65e5\u65e5.rb:1",
        "block in <main> (/very/long/path/with/a/very_long_name_of_a_file_that_fills_everything.rb:12345)", "\u0301\u0301\u0301/\u0301"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (unsigned columns = 4; columns < 100; columns++) {
            char *fit = display_fit(texts[i], columns);
            assert_true(display_width(fit) <= columns);
            if (display_width(texts[i]) <= columns) assert_string_equal(fit, texts[i]);
            free(fit);
        }
    }
}

static void
a_page_has_the_columns_that_the_environment_says(void **state)
{
    (void)state;
    setenv("COLUMNS", "132", 1);
    assert_int_equal(display_columns(stdout), 132);
    setenv("COLUMNS", "3", 1);
    assert_int_equal(display_columns(stdout), 40);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths_are_those_of_a_terminal),
        cmocka_unit_test(texts_fit),
        cmocka_unit_test(any_text_fits_any_width),
        cmocka_unit_test(a_page_has_the_columns_that_the_environment_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
