/* The bytes of a trace file: growing files, compressed ones, what of them is kept in memory. */
#define _GNU_SOURCE 1 /* mkstemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fxt/input.h"

static char path[] = "/tmp/vm-trace-test-XXXXXX";

static int
make_file(void **state)
{
    (void)state;
    int fd = mkstemp(strcpy(path, "/tmp/vm-trace-test-XXXXXX"));
    return fd < 0 ? -1 : close(fd);
}

static int
remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static void
append(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* Words 0, 1, 2, ... as one gzip member. */
static void
append_compressed(uint64_t first, uint64_t count)
{
    gzFile file = gzopen(path, "ab");
    assert_non_null(file);
    for (uint64_t i = first; i < first + count; i++) assert_int_equal(gzwrite(file, &i, sizeof i), sizeof i);
    gzclose(file);
}

/* How many words 0, 1, 2, ... can be read. */
static uint64_t
count_words(struct input *input)
{
    uint64_t count = 0, word;
    while (input_need(input, sizeof word) >= sizeof word) {
        memcpy(&word, input_bytes(input), sizeof word);
        assert_int_equal(word, count);
        assert_int_equal(input->offset, count * sizeof word);
        input_take(input, sizeof word);
        count++;
    }
    return count;
}

static void
what_is_written_after_the_opening_is_not_read(void **state)
{
    (void)state;
    struct input input;
    uint64_t words[] = {0, 1, 2, 3};
    append(words, sizeof words);
    assert_int_equal(input_open(&input, path), 0);
    append(words, sizeof words);
    assert_int_equal(count_words(&input), 4);
    assert_int_equal(input_need(&input, 1), 0);
    input_close(&input);
}

static void
file_that_shrinks_ends_where_it_ends(void **state)
{
    (void)state;
    struct input input;
    uint64_t words[] = {0, 1, 2, 3};
    append(words, sizeof words);
    assert_int_equal(input_open(&input, path), 0);
    assert_int_equal(truncate(path, 16), 0);
    assert_int_equal(count_words(&input), 2);
    assert_int_equal(input.error, 0);
    input_close(&input);
}

static void
what_completes_the_last_bytes_is_read(void **state)
{
    (void)state;
    struct input input;
    uint64_t words[] = {0, 1, 2, 3};
    append(words, 20);
    assert_int_equal(input_open(&input, path), 0);
    append((const char *)words + 20, 12);
    assert_int_equal(input_need(&input, 16), 20);
    input_take(&input, 16);
    assert_int_equal(input_need(&input, 8), 8);
    input_take(&input, 8);
    assert_int_equal(input_need(&input, 8), 0);
    input_close(&input);
}

static void
compressed_file_of_several_members_and_windows_is_read_as_one(void **state)
{
    (void)state;
    enum { FIRST = 300000, SECOND = 100000 }; /* 3.2 MB: more than a window of each kind */
    struct input input;
    append_compressed(0, FIRST);
    append_compressed(FIRST, SECOND);
    assert_int_equal(input_open(&input, path), 0);
    assert_int_equal(count_words(&input), FIRST + SECOND);
    assert_null(input.decompressor.fault);
    input_close(&input);
}

static void
compressed_file_that_is_cut_gives_what_it_has_and_says_so(void **state)
{
    (void)state;
    struct input input;
    append_compressed(0, 100000);
    assert_int_equal(truncate(path, 50000), 0);
    assert_int_equal(input_open(&input, path), 0);
    assert_in_range(count_words(&input), 1000, 99999);
    assert_string_equal(input.decompressor.fault, "they are truncated");
    input_close(&input);
}

static void
bytes_that_only_begin_like_gzip_are_a_fault(void **state)
{
    (void)state;
    struct input input;
    append("\x1f\x8bhello, hello", 14);
    assert_int_equal(input_open(&input, path), 0);
    assert_int_equal(input_need(&input, 8), 0);
    assert_non_null(input.decompressor.fault);
    input_close(&input);
}

static void
file_of_one_byte_is_no_gzip(void **state)
{
    (void)state;
    struct input input;
    append("\x1f", 1);
    assert_int_equal(input_open(&input, path), 0);
    assert_int_equal(input_need(&input, 8), 1);
    assert_null(input.decompressor.fault);
    input_close(&input);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)
    const struct CMUnitTest tests[] = {
        CASE(what_is_written_after_the_opening_is_not_read),
        CASE(what_completes_the_last_bytes_is_read),
        CASE(file_that_shrinks_ends_where_it_ends),
        CASE(compressed_file_of_several_members_and_windows_is_read_as_one),
        CASE(compressed_file_that_is_cut_gives_what_it_has_and_says_so),
        CASE(bytes_that_only_begin_like_gzip_are_a_fault),
        CASE(file_of_one_byte_is_no_gzip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
