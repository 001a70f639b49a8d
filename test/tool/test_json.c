/* The writer of JSON: commas, lines, escapes and numbers, and that wrong nesting ends the program. */
#define _GNU_SOURCE 1
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"

static char *text;
static size_t bytes;

static struct json
begin(void)
{
    return json_to(open_memstream(&text, &bytes));
}

static void
assert_written(struct json *json, const char *expected)
{
    fclose(json->out);
    assert_string_equal(text, expected);
    free(text);
}

static void
commas_stand_between_members_and_elements_only(void **state)
{
    (void)state;
    struct json json = begin();
    json_object(&json);
    json_array(json_key(&json, "empty"));
    json_end(&json);
    json_array(json_key(&json, "list"));
    json_object(&json);
    json_end(&json);
    json_bool(&json, true);
    json_null(&json);
    json_tuple(&json, 1, 2);
    json_numbers(&json, 3, 4);
    json_end(&json);
    json_text_object(json_key(&json, "texts"), "a", "b", "c", "d");
    json_counts(&json, {"n", 1}, {"m", UINT64_MAX});
    json_texts(&json, "last", "");
    json_end(&json);
    assert_written(&json, "{\"empty\":[],\"list\":[{},true,null,[1,2],3,4],\"texts\":{\"a\":\"b\",\"c\":\"d\"},"
                          "\"n\":1,\"m\":18446744073709551615,\"last\":\"\"}");
}

static void
lines_begin_behind_the_comma(void **state)
{
    (void)state;
    struct json json = begin();
    json_array(&json);
    json_unsigned(json_line(&json), 1);
    json_unsigned(json_line_indented(&json, 2), 2);
    json_unsigned(&json, 3);
    json_end(json_line(&json));
    putc('\n', json.out);
    json_object(&json); /* the next text of a stream of them */
    json_null(json_key(json_line(&json), "a"));
    json_end(&json);
    assert_written(&json, "[\n1,\n  2,3\n]\n{\n\"a\":null}");
}

static void
texts_are_escaped(void **state)
{
    (void)state;
    static const char nul[] = "a\0b";
    struct json json = begin();
    json_array(&json);
    json_c_text(&json, "\"\\/\n\x1b\x7f");
    json_text(&json, (struct fxt_string){.ptr = nul, .len = 3});
    /* the last two change the direction and the line */
    json_c_text(&json, "é €\xf0\x9f\x98\x80\xe2\x80\xae\xe2\x80\xa8");
    json_c_text(&json, "\xff\xc3");
    json_c_text(&json, "</script>");
    json_textf(&json, "%d \"%s\"", 7, "<");
    json_end(&json);
    assert_written(&json, "[\"\\\"\\\\/\\u000a\\u001b\\u007f\",\"a\\u0000b\",\"é €\xf0\x9f\x98\x80\\u202e\\u2028\","
                          "\"\\ufffd\\ufffd\",\"</script>\",\"7 \\\"<\\\"\"]");
}

static void
text_in_html_ends_no_script(void **state)
{
    (void)state;
    struct json json = begin();
    json.in_html = true;
    json_object(&json);
    json_c_text(json_key(&json, "<"), "a</script><é");
    json_end(&json);
    assert_written(&json, "{\"\\u003c\":\"a\\u003c/script>\\u003cé\"}");
}

static void
numbers_have_all_their_digits(void **state)
{
    (void)state;
    struct json json = begin();
    json_array(&json);
    json_integer(&json, 0);
    json_integer(&json, INT64_MIN);
    json_integer(&json, INT64_MAX);
    json_unsigned(&json, UINT64_MAX);
    json_decimal(&json, 1000007, 3);
    json_decimal(&json, -5, 3);
    json_decimal(&json, INT64_MIN, 6);
    json_decimal(&json, 0, 3);
    json_double(&json, 0.1, 17);
    json_double(&json, 1.0 / 3, 6);
    json_double(&json, -INFINITY, 17);
    json_double(&json, NAN, 17);
    json_end(&json);
    assert_written(&json, "[0,-9223372036854775808,9223372036854775807,18446744073709551615,1000.007,-0.005,"
                          "-9223372036854.775808,0.000,0.10000000000000001,0.333333,\"-inf\",\"nan\"]");
}

static void
members_of_another_writer_are_joined(void **state)
{
    (void)state;
    char *members;
    size_t size;
    FILE *out = open_memstream(&members, &size);
    struct json part = json_members_to(out), json = begin();
    json_texts(&part, "b", "1");
    json_tuple(json_key(&part, "c"), 2);
    fclose(out);
    json_object(&json);
    json_texts(&json, "a", "0");
    json_members(&json, (struct fxt_string){.ptr = members, .len = (uint32_t)size});
    json_members(&json, (struct fxt_string){.ptr = ""});
    json_begin_plain(json_key(&json, "d"));
    fputs("AAEC", json.out);
    json_end_plain(&json);
    json_end(&json);
    free(members);
    assert_written(&json, "{\"a\":\"0\",\"b\":\"1\",\"c\":[2],\"d\":\"AAEC\"}");
}

static void
number_is_found_by_its_key(void **state)
{
    (void)state;
    assert_int_equal(json_number_in("{\n \"$schema\":5,\"schema\": 12,\"schema\":3}", "schema"), 12);
    assert_int_equal(json_number_in("{\"schemas\":5}", "schema"), 0);
    assert_int_equal(json_number_in("{\"schema\":\"none\"}", "schema"), 0);
}

static void value_in_object(struct json *json) { json_object(json); json_null(json); }
static void key_in_array(struct json *json) { json_array(json); json_key(json, "a"); }
static void key_outside(struct json *json) { json_key(json, "a"); }
static void key_twice(struct json *json) { json_object(json); json_key(json_key(json, "a"), "b"); }
static void end_outside(struct json *json) { json_array(json); json_end(json); json_end(json); }
static void end_behind_key(struct json *json) { json_object(json); json_end(json_key(json, "a")); }
static void members_first(struct json *json) { json_object(json); json_members(json, text_of("")); }
static void too_deep(struct json *json) { for (int i = 0; i < 100; i++) json_array(json); }

static void
wrong_nesting_aborts(void **state)
{
    (void)state;
    void (*const wrong[])(struct json *) = {value_in_object, key_in_array, key_outside, key_twice, end_outside,
                                            end_behind_key, members_first, too_deep};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            signal(SIGABRT, SIG_DFL);
            struct json json = begin();
            wrong[i](&json);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_stand_between_members_and_elements_only),
        cmocka_unit_test(lines_begin_behind_the_comma),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(text_in_html_ends_no_script),
        cmocka_unit_test(numbers_have_all_their_digits),
        cmocka_unit_test(members_of_another_writer_are_joined),
        cmocka_unit_test(number_is_found_by_its_key),
        cmocka_unit_test(wrong_nesting_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
