/*
 * Flags of JITs: how they are called, what they take, what they ask for, and what --help says of them.
 */
#include "traced.h"
#include "harness.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/session_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
counter_p(const char *name)
{
    return strcmp(name, "guard_failure") == 0 || strcmp(name, "overflow") == 0;
}

static const struct rb_vm_trace_jit zjit = {
    .name = "ZJIT", .flag_prefix = "--zjit-", .exits_flag = "exits", .example_counter = "guard_failure", .fallbacks = true,
    .counter_p = counter_p
};
static const struct rb_vm_trace_jit yjit = {
    .name = "YJIT", .flag_prefix = "--yjit-", .exits_flag = "side-exits", .example_counter = "overflow", .counter_p = counter_p
};

static void
assert_refused(const struct rb_vm_trace_jit *jit, const char *name, const char *value, const char *line)
{
    capture_stderr();
    bool taken = rb_vm_trace_flag(jit, name, value);
    char *said = captured_stderr();
    if (taken) fail_msg("%s=%s was taken", name, value);
    assert_string_equal(said, line);
    free(said);
}

static void
flags_are_found_by_their_names(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_flag(&zjit, "trace-memory", "5"));
    assert_true(rb_vm_trace_session.memory.bytes == 5 << 20);
    assert_true(rb_vm_trace_flag(&yjit, "trace-save-at", "exit"));
    assert_true(rb_vm_trace_session.memory.save_at != 0);
    assert_refused(&zjit, "trace-memor", "5", "");
    assert_refused(&zjit, "trace-memory-", "5", "");
    assert_refused(&zjit, "memory", "5", "");
    assert_refused(&zjit, "", "", "");
}

static void
a_jit_calls_its_exits_as_it_says_and_has_only_its_own_flags(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_flag(&zjit, "trace-exits", ""));
    assert_true(rb_vm_trace_flag(&yjit, "trace-side-exits", ""));
    assert_true(rb_vm_trace_flag(&yjit, "trace-side-exits-sample-rate", "3"));
    assert_refused(&zjit, "trace-side-exits", "", "");
    assert_refused(&yjit, "trace-exits", "", "");
    assert_true(rb_vm_trace_flag(&zjit, "trace-fallbacks", ""));
    assert_refused(&yjit, "trace-fallbacks", "", "");
    assert_refused(&yjit, "trace-fallbacks-sample-rate", "3", "");
}

static void
wrong_values_are_refused_with_a_line_that_says_what_the_flag_takes(void **state)
{
    (void)state;
    assert_refused(&zjit, "trace-compiles", "x", "--zjit-trace-compiles takes no value, not 'x'\n");
    assert_refused(&yjit, "trace-quiet", "x", "--yjit-trace-quiet takes no value, not 'x'\n");
    assert_refused(&zjit, "trace-file", "", "--zjit-trace-file takes the path of the file to write\n");
    assert_refused(&zjit, "trace-max-size", "0", "--zjit-trace-max-size takes a number of MiB from 4 to 1048576, then ',newest' (the default) "
                   "or ',oldest' for the events that are kept, not '0'\n");
    assert_refused(&yjit, "trace-side-exits-sample-rate", "0", "--yjit-trace-side-exits-sample-rate takes a whole number from 1 (record "
                   "all) to 4294967295 (one in so many), not '0'\n");
}

static void
code_can_be_traced_late_unless_a_flag_says_no(void **state)
{
    (void)state;
    assert_refused(&yjit, "trace-late", "yes", "--yjit-trace-late takes no, not 'yes'\n");
    assert_true(rb_vm_trace_late_p());
    assert_true(rb_vm_trace_flag(&yjit, "trace-late", "no"));
    assert_false(rb_vm_trace_late_p());
    assert_null(rb_vm_trace_start_by_flags(&yjit)); /* it asks for no trace */
}

static void
each_counter_must_be_one_of_the_jit(void **state)
{
    (void)state;
    static const char *const good[] = { "overflow", "guard_failure", "overflow,guard_failure" };
    static const struct { const char *value, *named; } bad[] = {
        { "x", "x" }, { "overflow,", "" }, { ",overflow", "" }, { "overflow,x,guard_failure", "x" }, { "overflowing", "overflowing" }
    };
    char line[512], longest[300];
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) assert_true(rb_vm_trace_flag(&zjit, "trace-exits", good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        snprintf(line, sizeof(line), "--zjit-trace-exits takes names of counters, such as guard_failure, with commas between them, or "
                 "nothing, not '%s'\n", bad[i].named);
        assert_refused(&zjit, "trace-exits", bad[i].value, line);
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    snprintf(line, sizeof(line), "--zjit-trace-exits takes names of counters, such as guard_failure, with commas between them, or nothing, "
             "not '%s'\n", longest);
    assert_refused(&zjit, "trace-exits", longest, line);
}

/* Begins the trace, into a file in the test's own folder. */
static const struct rb_vm_trace_config *
start(const struct rb_vm_trace_jit *jit)
{
    char *path = temp_path("flags.fxt");
    assert_true(rb_vm_trace_flag(jit, "trace-file", path));
    free(path);
    fake_ractor_add(&main_ractor);
    fake_current(&main_thread);
    capture_stderr();
    const struct rb_vm_trace_config *config = rb_vm_trace_start_by_flags(jit);
    free(captured_stderr());
    return config;
}

static void
finish(void)
{
    rb_vm_trace_shutdown();
    free_traced();
}

static void
without_a_flag_that_asks_for_events_nothing_starts(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_flag(&zjit, "trace-quiet", ""));
    assert_null(rb_vm_trace_start_by_flags(&zjit));
}

/* Each flag in a test of its own, for one that was given stays given. */
static void
assert_asks_for_exits(const char *name, const char *value)
{
    assert_true(rb_vm_trace_flag(&zjit, name, value));
    fake_ractor_add(&main_ractor);
    fake_current(&main_thread);
    capture_stderr();
    const struct rb_vm_trace_config *config = rb_vm_trace_start_by_flags(&zjit);
    free(captured_stderr());
    assert_non_null(config);
    assert_true(config->exit_rate == 1 && !config->compiles && config->fallback_rate == 0);
    finish();
}

#define ASKS_FOR_EXITS(test, name, value) static void test(void **state) { (void)state; assert_asks_for_exits(name, value); }
ASKS_FOR_EXITS(a_file_asks_for_exits, "trace-file", temp_path("t.fxt"))
ASKS_FOR_EXITS(memory_asks_for_exits, "trace-memory", "4")
ASKS_FOR_EXITS(min_free_asks_for_exits, "trace-min-free", "0")
ASKS_FOR_EXITS(save_at_asks_for_exits, "trace-save-at", "exit")
ASKS_FOR_EXITS(stack_asks_for_exits, "trace-stack", "1")
ASKS_FOR_EXITS(methods_ask_for_exits, "trace-methods", "a")
ASKS_FOR_EXITS(max_size_asks_for_exits, "trace-max-size", "4")

static void
a_start_that_is_left_for_later_is_not_asked_for(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_flag(&zjit, "trace-later", ""));
    assert_true(rb_vm_trace_flag(&zjit, "trace-stack", "7"));
    assert_null(start(&zjit));
    assert_refused(&zjit, "trace-later", "1", "--zjit-trace-later takes no value, not '1'\n");
}

static void
what_flags_ask_for_is_started(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_flag(&zjit, "trace-exits", "overflow,guard_failure"));
    assert_true(rb_vm_trace_flag(&zjit, "trace-exits-sample-rate", "7"));
    assert_true(rb_vm_trace_flag(&zjit, "trace-invalidation", ""));
    const struct rb_vm_trace_config *config = start(&zjit);
    assert_non_null(config);
    assert_string_equal(config->jit, "ZJIT");
    assert_string_equal(config->counter, "overflow,guard_failure");
    assert_true(config->exit_rate == 7 && config->fallback_rate == 0);
    assert_true(config->invalidations && !config->compiles);
    finish();
}

static void
a_rate_asks_for_what_it_is_the_rate_of(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_flag(&zjit, "trace-fallbacks-sample-rate", "5"));
    const struct rb_vm_trace_config *config = start(&zjit);
    assert_non_null(config);
    assert_true(config->exit_rate == 0 && config->fallback_rate == 5 && !config->counter);
    finish();
}

static void
the_last_flag_says_which_exits(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_flag(&zjit, "trace-exits", "overflow"));
    assert_true(rb_vm_trace_flag(&zjit, "trace-exits", ""));
    const struct rb_vm_trace_config *config = start(&zjit);
    assert_true(config && config->exit_rate == 1 && !config->counter);
    finish();
}

static void
a_file_that_cannot_be_made_starts_nothing(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_flag(&zjit, "trace-exits", ""));
    assert_true(rb_vm_trace_flag(&zjit, "trace-file", "/nonexistent/x.fxt"));
    capture_stderr();
    assert_null(rb_vm_trace_start_by_flags(&zjit));
    char *said = captured_stderr();
    assert_non_null(strstr(said, "/nonexistent/x.fxt"));
    free(said);
}

/* Ruby puts a flag and what it is for on one line, or the flag alone; both have 80 columns. */
static void
help_has_a_line_for_each_flag_that_fits_80_columns(void **state)
{
    (void)state;
    const struct rb_vm_trace_jit *const jits[] = { &zjit, &yjit };
    for (size_t j = 0; j < 2; j++) {
        char flag[64], name[64];
        const char *text;
        size_t i = 0;
        for (; rb_vm_trace_flag_help(jits[j], i, flag, sizeof(flag), &text); i++) {
            assert_int_equal(strncmp(flag, jits[j]->flag_prefix, 7), 0);
            if (strlen(flag) > 75 || strlen(text) > 60) fail_msg("%s: %s", flag, text);
            snprintf(name, sizeof(name), "%.*s", (int)strcspn(flag + 7, "[="), flag + 7);
            capture_stderr();
            bool taken = rb_vm_trace_flag(jits[j], name, ""); /* where it takes no value, or none is needed */
            char *said = captured_stderr();
            if (!taken && !*said) fail_msg("%s is in --help and no flag", name);
            free(said);
        }
        assert_int_equal(i, j == 0 ? 20 : 18);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(flags_are_found_by_their_names),
        isolated_test(a_jit_calls_its_exits_as_it_says_and_has_only_its_own_flags),
        isolated_test(wrong_values_are_refused_with_a_line_that_says_what_the_flag_takes),
        isolated_test(code_can_be_traced_late_unless_a_flag_says_no),
        isolated_test(each_counter_must_be_one_of_the_jit),
        isolated_test(without_a_flag_that_asks_for_events_nothing_starts),
        isolated_test(a_file_asks_for_exits),
        isolated_test(memory_asks_for_exits),
        isolated_test(min_free_asks_for_exits),
        isolated_test(save_at_asks_for_exits),
        isolated_test(stack_asks_for_exits),
        isolated_test(methods_ask_for_exits),
        isolated_test(max_size_asks_for_exits),
        isolated_test(a_start_that_is_left_for_later_is_not_asked_for),
        isolated_test(what_flags_ask_for_is_started),
        isolated_test(a_rate_asks_for_what_it_is_the_rate_of),
        isolated_test(the_last_flag_says_which_exits),
        isolated_test(a_file_that_cannot_be_made_starts_nothing),
        isolated_test(help_has_a_line_for_each_flag_that_fits_80_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
