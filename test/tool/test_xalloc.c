/* Memory: arrays that grow, budgets, and strings that keep apart whatever the limit is. */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/pool.h"
#include "base/xalloc.h"

static void
capacity_doubles(void **state)
{
    (void)state;
    assert_int_equal(grown_capacity(0, sizeof(uint32_t)), 16);
    assert_int_equal(grown_capacity(16, sizeof(uint32_t)), 32);
    assert_int_equal(grown_capacity(UINT32_C(1) << 30, sizeof(uint32_t)), UINT32_C(1) << 31);
    assert_int_equal(grown_capacity(UINT32_C(1) << 31, sizeof(size_t)), UINT64_C(1) << 32);
}

/* What the program prints when it would grow an array of that capacity; its exit status. */
static int
growing(size_t capacity, size_t counter_bytes, char *text, size_t room)
{
    int pipe_ends[2], status;
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipe_ends[1], STDERR_FILENO);
        grown_capacity(capacity, counter_bytes);
        _exit(0);
    }
    close(pipe_ends[1]);
    ssize_t bytes = read(pipe_ends[0], text, room - 1);
    text[bytes > 0 ? bytes : 0] = '\0';
    close(pipe_ends[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
capacity_that_its_counter_cannot_hold_ends_the_program(void **state)
{
    (void)state;
    char text[200];
    assert_int_equal(growing(UINT32_C(1) << 31, sizeof(uint32_t), text, sizeof text), 3);
    assert_string_equal(text, "vm-trace: a table would have more than 4294967295 rows; vm-trace cut extracts a shorter trace\n");
    assert_int_equal(growing(SIZE_MAX / 2 + 1, sizeof(size_t), text, sizeof text), 3);
}

static void
charge_beyond_the_limit_is_noted_and_nothing_more_can_be_taken(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 100};
    assert_true(budget_take(&budget, 90));
    assert_false(budget_take(&budget, 11));
    budget_charge(&budget, 10);
    assert_false(budget.exceeded);
    budget_charge(&budget, 1);
    assert_true(budget.exceeded);
    assert_false(budget_take(&budget, 1)); /* used - limit would wrap around */
    budget_give_back(&budget, 11);
    assert_true(budget_take(&budget, 10));
}

static void
strings_beyond_the_limit_keep_numbers_of_their_own(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 1};
    struct pool *pool = pool_new(&budget);
    char text[300];
    memset(text, 'x', sizeof text);
    uint32_t before = pool_size(pool);
    for (int i = 0; i < 10000; i++) {
        snprintf(text, 10, "%09d", i);
        assert_int_equal(pool_intern(pool, text, sizeof text), before + (uint32_t)i);
    }
    assert_true(budget.exceeded);
    snprintf(text, 10, "%09d", 9999);
    assert_int_equal(pool_find(pool, text, sizeof text), before + 9999);
    pool_free(pool);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capacity_doubles),
        cmocka_unit_test(capacity_that_its_counter_cannot_hold_ends_the_program),
        cmocka_unit_test(charge_beyond_the_limit_is_noted_and_nothing_more_can_be_taken),
        cmocka_unit_test(strings_beyond_the_limit_keep_numbers_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
