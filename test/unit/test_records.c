/*
 * Chunks that were written: counting what they hold, and making them fresh.
 */
#include "harness.h"
#include "vm_trace/base/known_strings.h"
#include "vm_trace/schema/fxt.h"
#include "vm_trace/store/chunk_scan.h"
#include "validate.h"
#include "watch.h"
#include "vm_trace/store/writer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Categories that are counted apart. */
#define EXITS (UINT64_C(1) << STRING_SIDE_EXIT | UINT64_C(1) << STRING_RECOMPILE_EXIT)

enum { CHUNK = 1 << 20, CHUNK_WORDS = CHUNK / 8, PAGE_WORDS = 512, LARGEST = 4095 };

static struct rb_vm_trace_chunk_file trace_file = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };
static struct rb_vm_trace_writer writer;
static uint64_t *chunk;        /* of the sink, not the first of the file */
static uint64_t exits, others; /* events written into it */
static unsigned thread;

static void
begin_chunk(void)
{
    char *path = temp_path("t.fxt");
    const char *why = rb_vm_trace_chunk_file_open(&trace_file, path);
    if (why) fail_msg("%s", why);
    free(path);
    rb_vm_trace_writer_run_chunks = 1;
    rb_vm_trace_writer_init(&writer, &trace_file, 42);
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_true(rb_vm_trace_writer_name_thread(&writer, 43, 1, "main", 4, &thread));
    chunk = writer.chunk.words;
    exits = others = 0;
}

static bool
put_text(size_t words, char letter)
{
    uint64_t *record = writer_reserve(&writer, words);
    if (!record) return false;
    memset(record + 1, letter, (words - 1) * 8);
    writer_publish(&writer, words, fxt_string_header(writer.next_string++, (words - 1) * 8));
    return true;
}

static bool
put_event(enum known_string category)
{
    uint64_t *record = writer_reserve(&writer, 2);
    if (!record) return false;
    record[1] = 1000 + writer.events++;
    writer_publish(&writer, 2, fxt_event_header(FXT_EVENT_INSTANT, 2, 0, thread, category, STRING_SITE));
    *(category == STRING_SIDE_EXIT || category == STRING_RECOMPILE_EXIT ? &exits : &others) += 1;
    return true;
}

/* Records of up to `largest` words between events of all kinds, till the chunk is full. */
static void
fill(size_t largest)
{
    static const enum known_string categories[] = {
        STRING_SIDE_EXIT, STRING_FALLBACK, STRING_RECOMPILE_EXIT, STRING_TRACE, STRING_SIDE_EXIT
    };
    uint32_t random = 7;
    for (unsigned i = 0; ; i++) {
        random = random * 1103515245 + 12345;
        if (!put_event(categories[i % 5])) return;
        if (!put_text(2 + random / 65536 % (largest - 1), (char)('a' + i % 26))) return;
    }
}

static void
assert_fresh(void)
{
    for (size_t page = 0; page < CHUNK_WORDS; page += PAGE_WORDS) {
        if (chunk[page] != 0x2002) fail_msg("word %zu is %llx", page, (unsigned long long)chunk[page]);
    }
}

static void
events_and_exits_are_counted(void **state)
{
    (void)state;
    begin_chunk();
    fill(100);
    struct vm_trace_counts counts = { 5, 6 };
    assert_int_equal(rb_vm_trace_records_count(chunk, CHUNK_WORDS, EXITS, &counts), CHUNK_WORDS);
    assert_int_equal(counts.events, 5 + exits + others);
    assert_int_equal(counts.sampled, 6 + exits);
    assert_true(exits > 0 && others > 0);
}

static void
count_ends_before_a_record_that_is_cut_off(void **state)
{
    (void)state;
    begin_chunk();
    size_t before = writer.pos;
    put_event(STRING_SIDE_EXIT);
    put_event(STRING_SIDE_EXIT);
    for (size_t words = before; words < before + 4; words++) {
        struct vm_trace_counts counts = { 0, 0 };
        assert_int_equal(rb_vm_trace_records_count(chunk, words, EXITS, &counts), before + (words - before) / 2 * 2);
        assert_int_equal(counts.events, (words - before) / 2);
    }
}

static void
count_ends_where_no_record_stands(void **state)
{
    (void)state;
    begin_chunk();
    put_event(STRING_SIDE_EXIT);
    size_t at = writer.pos;
    put_event(STRING_SIDE_EXIT);
    chunk[at] = 0; /* what a hole in a file reads as */
    struct vm_trace_counts counts = { 0, 0 };
    assert_int_equal(rb_vm_trace_records_count(chunk, CHUNK_WORDS, EXITS, &counts), at);
    assert_int_equal(counts.events, 1);
}

static void
renewed_chunk_is_as_a_fresh_one(void **state)
{
    (void)state;
    static const size_t largest[] = { 2, 3, 17, 400, 511, 512, 513, 2047, 2048, LARGEST };
    for (size_t i = 0; i < sizeof(largest) / sizeof(*largest); i++) {
        begin_chunk();
        fill(largest[i]);
        assert_true(rb_vm_trace_records_renew(chunk, CHUNK_WORDS));
        assert_fresh();
        rb_vm_trace_chunk_file_close(&trace_file);
    }
}

static void
chunk_of_largest_records_is_renewed(void **state)
{
    (void)state;
    begin_chunk();
    while (put_text(LARGEST, 'x')) { }
    assert_true(rb_vm_trace_records_renew(chunk, CHUNK_WORDS));
    assert_fresh();
}

static void
fresh_and_renewed_chunks_are_renewed(void **state)
{
    (void)state;
    begin_chunk();
    assert_true(rb_vm_trace_records_renew(chunk, CHUNK_WORDS));
    assert_fresh();
    assert_true(rb_vm_trace_records_renew(chunk, CHUNK_WORDS));
    assert_fresh();
}

static void
chunk_that_holds_no_records_is_left_alone(void **state)
{
    (void)state;
    begin_chunk();
    fill(100);
    chunk[CHUNK_WORDS - PAGE_WORDS / 2] = 0;
    memset(chunk + CHUNK_WORDS / 2, 0, 1 << 16);
    uint64_t *before = malloc(CHUNK);
    memcpy(before, chunk, CHUNK);
    assert_false(rb_vm_trace_records_renew(chunk, CHUNK_WORDS));
    assert_memory_equal(before, chunk, CHUNK);
    free(before);
}

static size_t records_left;

/* The chunk as a reader finds it when the process is killed here: the records that were first in it, without a fault. */
static void
look_at_what_is_left(void)
{
    struct trace *trace = trace_decode(chunk, CHUNK, TRACE_CHUNK);
    if (trace->fault[0]) fail_msg("%s", trace->fault);
    if (trace->record_count > records_left) fail_msg("%zu records came back", trace->record_count - records_left);
    records_left = trace->record_count;
    trace_free(trace);
}

static void
chunk_being_renewed_is_valid_after_every_single_store(void **state)
{
    (void)state;
    begin_chunk();
    fill(600);
    records_left = SIZE_MAX;
    look_at_what_is_left();
    assert_true(records_left > 700);
    watch_stores(chunk, CHUNK, look_at_what_is_left);
    assert_true(rb_vm_trace_records_renew(chunk, CHUNK_WORDS));
    assert_true(watch_end() > 256);
    assert_int_equal(records_left, 0);
    assert_fresh();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(events_and_exits_are_counted),
        isolated_test(count_ends_before_a_record_that_is_cut_off),
        isolated_test(count_ends_where_no_record_stands),
        isolated_test(renewed_chunk_is_as_a_fresh_one),
        isolated_test(chunk_of_largest_records_is_renewed),
        isolated_test(fresh_and_renewed_chunks_are_renewed),
        isolated_test(chunk_that_holds_no_records_is_left_alone),
        isolated_test(chunk_being_renewed_is_valid_after_every_single_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
