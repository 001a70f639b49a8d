/*
 * Values of options: paths of traces, and K of a sample rate.
 */
#define _GNU_SOURCE 1
#include "harness.h"
#include "vm_trace/capture/method_filter.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/snapshot.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void
assert_path(const char *pattern, uint32_t pid, int child, const char *expected)
{
    char *path = rb_vm_trace_expand_path(pattern, pid, child, 7, NULL);
    assert_string_equal(path, expected);
    free(path);
}

static void
default_path_has_the_pid(void **state)
{
    (void)state;
    assert_path(NULL, 1234, 0, "/tmp/perfetto-1234.fxt");
    assert_path(NULL, 4294967295, 0, "/tmp/perfetto-4294967295.fxt");
}

static void
path_without_a_pattern_is_taken_as_it_is(void **state)
{
    (void)state;
    assert_path("/a/b.fxt", 7, 0, "/a/b.fxt");
    assert_path("", 7, 0, "");
    assert_path("/größe %d %", 7, 0, "/größe %d %");
}

static void
percent_p_is_the_pid_wherever_it_stands(void **state)
{
    (void)state;
    assert_path("%p", 42, 0, "42");
    assert_path("/t/%p/a-%p.fxt", 42, 0, "/t/42/a-42.fxt");
    assert_path("%p%p%p%p%p%p%p%p", 4294967295, 0,
                "42949672954294967295429496729542949672954294967295429496729542949672954294967295");
}

static void
two_percent_signs_are_one(void **state)
{
    (void)state;
    assert_path("/t/100%%.fxt", 42, 0, "/t/100%.fxt");
    assert_path("%%p", 42, 0, "%p");
    assert_path("%%%p", 42, 0, "%42");
    assert_path("%%%%", 42, 0, "%%");
}

static void
percent_n_is_the_number(void **state)
{
    (void)state;
    assert_path("/t/%p-%n.fxt", 42, 0, "/t/42-7.fxt");
    assert_path("%n", 42, 1, "7.42");
    assert_path("%%n%%t", 42, 0, "%n%t");
}

/* The time that it is, between two looks at the clock: a minute may begin meanwhile. */
static void
percent_t_is_the_time_in_utc(void **state)
{
    (void)state;
    char before[32], after[32];
    time_t seconds = time(NULL);
    strftime(before, sizeof(before), "a-%Y%m%dT%H%M%S.fxt", gmtime(&seconds));
    char *path = rb_vm_trace_expand_path("a-%t.fxt", 42, 0, 1, NULL);
    seconds = time(NULL);
    strftime(after, sizeof(after), "a-%Y%m%dT%H%M%S.fxt", gmtime(&seconds));
    assert_true(strlen(path) == strlen(before) && strcmp(path, before) >= 0 && strcmp(path, after) <= 0);
    free(path);
}

/* Of a socket, whose path the tool makes, too. */
static void
without_a_number_there_is_only_the_pid(void **state)
{
    (void)state;
    char *path = rb_vm_trace_expand_path("/t/%p-%t-%n-%%", 42, 0, 0, NULL);
    assert_string_equal(path, "/t/42-%t-%n-%");
    free(path);
}

static void
child_has_its_own_pid_or_gets_it_appended(void **state)
{
    (void)state;
    assert_path("/t/a-%p.fxt", 43, 1, "/t/a-43.fxt");
    assert_path("/t/a.fxt", 43, 1, "/t/a.fxt.43");
    assert_path("/t/%%p", 43, 1, "/t/%p.43");
    assert_path(NULL, 43, 1, "/tmp/perfetto-43.fxt");
    assert_path("a", 4294967295, 1, "a.4294967295");
}

/* --- absolute ---------------------------------------------------------------------------------------- */

static void
absolute_path_stays_and_none_stays_none(void **state)
{
    (void)state;
    char *path = rb_vm_trace_absolute_path("/a/%p/../b");
    assert_string_equal(path, "/a/%p/../b");
    free(path);
    assert_null(rb_vm_trace_absolute_path(NULL));
}

static void
relative_path_begins_with_the_current_folder(void **state)
{
    (void)state;
    assert_int_equal(chdir(temp_folder()), 0);
    char *path = rb_vm_trace_absolute_path("a/%p.fxt"), expected[256];
    snprintf(expected, sizeof(expected), "%s/a/%%p.fxt", temp_folder());
    assert_string_equal(path, expected);
    free(path);
}

static void
percent_sign_of_the_current_folder_is_no_pattern(void **state)
{
    (void)state;
    char *folder = temp_path("100%p%%");
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chdir(folder), 0);
    char *absolute = rb_vm_trace_absolute_path("%p.fxt"), *path = rb_vm_trace_expand_path(absolute, 42, 0, 1, NULL), expected[256];
    snprintf(expected, sizeof(expected), "%s/42.fxt", folder);
    assert_string_equal(path, expected);
    free(absolute);
    free(path);
    free(folder);
}

static void
relative_path_in_a_folder_that_is_gone_is_none(void **state)
{
    (void)state;
    char *folder = temp_path("gone");
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_null(rb_vm_trace_absolute_path("a.fxt"));
    free(folder);
}

/* --- rates --------------------------------------------------------------------------------------------- */

static void
whole_numbers_from_1_are_rates(void **state)
{
    (void)state;
    static const struct { const char *text; uint64_t rate; } good[] = {
        { "1", 1 }, { "2", 2 }, { "97", 97 }, { "1000000", 1000000 }, { "4294967295", 4294967295 }, { "007", 7 }
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        uint64_t rate = 0;
        errno = ERANGE; /* what an earlier call left must not matter */
        assert_true(rb_vm_trace_parse_rate("--zjit-trace-exits-sample-rate", good[i].text, &rate));
        assert_int_equal(rate, good[i].rate);
    }
}

static void
anything_else_is_refused_naming_the_option_and_what_it_takes(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "0", "00", "-1", "+1", " 1", "1 ", "1x", "x", "0x10", "1.0", "1e3", "1_000", "4294967296", "18446744073709551616",
        "99999999999999999999999999", "18446744073709551617", "\xE2\x91\xA0"
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint64_t rate = 12345;
        errno = 0;
        capture_stderr();
        bool taken = rb_vm_trace_parse_rate("--zjit-trace-exits-sample-rate", bad[i], &rate);
        char *said = captured_stderr(), quoted[64];
        if (taken) fail_msg("'%s' was taken as %llu", bad[i], (unsigned long long)rate);
        assert_int_equal(rate, 12345);
        snprintf(quoted, sizeof(quoted), "'%s'", bad[i]);
        assert_non_null(strstr(said, "--zjit-trace-exits-sample-rate"));
        assert_non_null(strstr(said, "from 1 "));
        assert_non_null(strstr(said, quoted));
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
        free(said);
    }
}

static void
good_rate_after_a_bad_one_is_taken(void **state)
{
    (void)state;
    uint64_t rate = 0;
    errno = 0;
    assert_false(rb_vm_trace_parse_rate("--o", "18446744073709551616", &rate)); /* leaves ERANGE */
    assert_true(rb_vm_trace_parse_rate("--o", "3", &rate));
    assert_int_equal(rate, 3);
}

/* --- limit of the file's size -------------------------------------------------------------------------- */

static void
size_is_mib_with_the_newest_or_the_oldest(void **state)
{
    (void)state;
    static const struct { const char *value; uint64_t mib; bool oldest; } cases[] = {
        { "4", 4, false }, { "4,newest", 4, false }, { "4,oldest", 4, true }, { "64", 64, false }, { "0064,oldest", 64, true },
        { "1048576", 1048576, false }
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct rb_vm_trace_max_size size = { 1, !cases[i].oldest };
        assert_true(rb_vm_trace_parse_max_size("--zjit-trace-max-size", cases[i].value, &size));
        assert_true(size.bytes == cases[i].mib << 20);
        assert_int_equal(size.keep_oldest, cases[i].oldest);
    }
}

static void
other_sizes_are_refused_with_a_line_that_says_what_is_taken(void **state)
{
    (void)state;
    static const char *const values[] = {
        "", "0", "3", "3,newest", "4,", "4,Newest", "4,newest ", "4,oldest,newest", "4 ", " 4", "+4", "-4", "4M", "4.5", "0x10",
        ",newest", "newest", "1048577", "18446744073709551617", "99999999999999999999999"
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        struct rb_vm_trace_max_size size = { 7, true };
        capture_stderr();
        bool taken = rb_vm_trace_parse_max_size("--zjit-trace-max-size", values[i], &size);
        char *said = captured_stderr(), expected[256];
        if (taken) fail_msg("'%s' was taken", values[i]);
        assert_true(size.bytes == 7 && size.keep_oldest);
        snprintf(expected, sizeof(expected), "--zjit-trace-max-size takes a number of MiB from 4 to 1048576, then ',newest' (the default) "
                 "or ',oldest' for the events that are kept, not '%s'\n", values[i]);
        assert_string_equal(said, expected);
        free(said);
    }
}

static void
number_of_frames_to_keep_is_taken(void **state)
{
    (void)state;
    assert_int_equal(rb_vm_trace_capture.stack_frames, 0);
    assert_true(rb_vm_trace_parse_stack("--zjit-trace-stack", "1"));
    assert_int_equal(rb_vm_trace_capture.stack_frames, 1);
    assert_true(rb_vm_trace_parse_stack("--yjit-trace-stack", "1048576"));
    assert_int_equal(rb_vm_trace_capture.stack_frames, 1048576);
    static const char *const values[] = { "", "0", "-1", "+1", " 1", "1 ", "1,2", "all", "1048577", "99999999999999999999999" };
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        capture_stderr();
        bool taken = rb_vm_trace_parse_stack("--zjit-trace-stack", values[i]);
        char *said = captured_stderr(), expected[256];
        if (taken) fail_msg("'%s' was taken", values[i]);
        snprintf(expected, sizeof(expected), "--zjit-trace-stack takes the number of innermost frames to record of each stack, "
                 "from 1 to 1048576, not '%s'\n", values[i]);
        assert_string_equal(said, expected);
        free(said);
    }
    assert_int_equal(rb_vm_trace_capture.stack_frames, 1048576);
}

static bool
requested(const char *label)
{
    return rb_vm_trace_method_requested_p(label, strlen(label));
}

static void
methods_are_matched_by_name_or_path(void **state)
{
    (void)state;
    assert_false(rb_vm_trace_methods_requested_p());
    assert_true(requested("anything (a.rb:1)"));
    assert_true(rb_vm_trace_parse_methods("--x", "Foo#b?r,*/lib/*.rb,Baz.n*"));
    assert_true(rb_vm_trace_methods_requested_p());
    assert_string_equal(rb_vm_trace_methods(), "Foo#b?r,*/lib/*.rb,Baz.n*");
    assert_true(requested("Foo#bar (a.rb:1)"));
    assert_true(requested("block in Foo#bar (a.rb:1)"));
    assert_true(requested("block (2 levels) in Foo#bar (a.rb:1)"));
    assert_true(requested("rescue in block in Foo#bar (a.rb:1)"));
    assert_true(requested("Baz.new (a.rb:1)"));
    assert_true(requested("X#y (/app/lib/x.rb:12)"));
    assert_true(requested("<top (required)> (/app/lib/x.rb:12)"));
    assert_true(requested("bar (a.rb:1)")); /* whose is not known: maybe Foo's */
    assert_false(requested("Foo#bars (a.rb:1)"));
    assert_false(requested("Bar#bar (a.rb:1)"));
    assert_false(requested("foo (a.rb:1)"));
    assert_false(requested("X#y (/app/x.rb:12)"));
    assert_false(requested("block (2 levels) in <main> (/app/x.rb:12)"));
    assert_false(requested(""));
    assert_true(rb_vm_trace_parse_methods("--x", "/a.rb"));
    assert_true(requested("Foo#bar (/a.rb:1)"));
    assert_false(requested("Foo#bar (/lib/a.rb:1)"));
}

static void
globs_of_methods_must_not_be_empty(void **state)
{
    (void)state;
    static const char *const wrong[] = { "", ",", "a,", ",a", "a,,b" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        capture_stderr();
        assert_false(rb_vm_trace_parse_methods("--x-methods", wrong[i]));
        char *said = captured_stderr();
        assert_non_null(strstr(said, "--x-methods takes globs of methods or files"));
        free(said);
        assert_false(rb_vm_trace_methods_requested_p());
    }
}

static void
memory_is_mib_and_perhaps_seconds(void **state)
{
    (void)state;
    const struct rb_vm_trace_memory_config *memory = &rb_vm_trace_session.memory;
    assert_true(rb_vm_trace_parse_memory("--zjit-trace-memory", "4"));
    assert_true(memory->bytes == 4 << 20 && memory->window_ns == 0);
    assert_true(rb_vm_trace_parse_memory("--zjit-trace-memory", "65536,3"));
    assert_true(memory->bytes == UINT64_C(65536) << 20 && memory->window_ns == UINT64_C(3000000000));
}

static void
assert_refused_by(bool (*parse)(const char *option, const char *value), const char *value, const char *takes)
{
    capture_stderr();
    bool taken = parse("--a-flag", value);
    char *said = captured_stderr(), expected[512];
    if (taken) fail_msg("'%s' was taken", value);
    snprintf(expected, sizeof(expected), "--a-flag takes %s, not '%s'\n", takes, value);
    assert_string_equal(said, expected);
    free(said);
}

static void
free_space_is_mib_or_nothing(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_session.min_free_bytes == CHUNK_FILE_MIN_FREE_DEFAULT);
    assert_true(rb_vm_trace_parse_min_free("--zjit-trace-min-free", "300"));
    assert_true(rb_vm_trace_session.min_free_bytes == 300 << 20);
    assert_true(rb_vm_trace_parse_min_free("--yjit-trace-min-free", "0"));
    assert_true(rb_vm_trace_session.min_free_bytes == 0 && rb_vm_trace_session.flags.min_free_bytes == 0);
    static const char *const wrong[] = { "", "-1", "x", "5x", "1048577", "99999999999999999999" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_refused_by(rb_vm_trace_parse_min_free, wrong[i], "the MiB that stay free on the disk, up to 1048576, or 0 to write until it is full");
    }
}

static void
moments_of_saving_are_words_and_a_signal(void **state)
{
    (void)state;
    const struct rb_vm_trace_memory_config *memory = &rb_vm_trace_session.memory;
    assert_true(rb_vm_trace_parse_save_at("--zjit-trace-save-at", "crash"));
    assert_true(memory->save_at == VM_TRACE_SAVE_AT_CRASH && memory->signal == 0);
    assert_true(rb_vm_trace_parse_save_at("--zjit-trace-save-at", "USR2,exit,exception"));
    assert_true(memory->save_at == (VM_TRACE_SAVE_AT_EXIT | VM_TRACE_SAVE_AT_EXCEPTION) && memory->signal == SIGUSR2);
}

static void
other_memory_and_moments_are_refused_with_a_line_that_says_what_is_taken(void **state)
{
    (void)state;
    static const char *const sizes[] = { "", "3", "0", "-4", "x", "4x", " 4", "4,", "4,0", "4,x", "4,-1", "65537", "4,5,6", "4,1048577", "99999999999999999999999" };
    static const char *const moments[] = { "", "never", "exit,", ",exit", "KILL", "USR1,USR2", "exit,,crash", "SIGUSR1", "Exit", "exit " };
    const struct rb_vm_trace_memory_config before = rb_vm_trace_session.memory;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        assert_refused_by(rb_vm_trace_parse_memory, sizes[i],
                          "the MiB of memory to record into, from 4 to 65536, then, if only so much is to be saved, ',SECONDS'");
    }
    for (size_t i = 0; i < sizeof(moments) / sizeof(*moments); i++) {
        assert_refused_by(rb_vm_trace_parse_save_at, moments[i],
                          "exit, exception, crash, and one signal (HUP, QUIT, USR1, USR2 or WINCH), joined by commas");
    }
    assert_memory_equal(&before, &rb_vm_trace_session.memory, sizeof(before));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(default_path_has_the_pid),
        isolated_test(path_without_a_pattern_is_taken_as_it_is),
        isolated_test(percent_p_is_the_pid_wherever_it_stands),
        isolated_test(two_percent_signs_are_one),
        isolated_test(percent_n_is_the_number),
        isolated_test(percent_t_is_the_time_in_utc),
        isolated_test(without_a_number_there_is_only_the_pid),
        isolated_test(child_has_its_own_pid_or_gets_it_appended),
        isolated_test(absolute_path_stays_and_none_stays_none),
        isolated_test(relative_path_begins_with_the_current_folder),
        isolated_test(percent_sign_of_the_current_folder_is_no_pattern),
        isolated_test(relative_path_in_a_folder_that_is_gone_is_none),
        isolated_test(whole_numbers_from_1_are_rates),
        isolated_test(anything_else_is_refused_naming_the_option_and_what_it_takes),
        isolated_test(good_rate_after_a_bad_one_is_taken),
        isolated_test(size_is_mib_with_the_newest_or_the_oldest),
        isolated_test(other_sizes_are_refused_with_a_line_that_says_what_is_taken),
        isolated_test(number_of_frames_to_keep_is_taken),
        isolated_test(methods_are_matched_by_name_or_path),
        isolated_test(globs_of_methods_must_not_be_empty),
        isolated_test(memory_is_mib_and_perhaps_seconds),
        isolated_test(free_space_is_mib_or_nothing),
        isolated_test(moments_of_saving_are_words_and_a_signal),
        isolated_test(other_memory_and_moments_are_refused_with_a_line_that_says_what_is_taken)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
