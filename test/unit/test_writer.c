/*
 * Records into chunks: what is in the file at every instant, and what happens when a chunk, a
 * table or the disk is full.
 */
#include "harness.h"
#include "vm_trace/base/known_strings.h"
#include "validate.h"
#include "watch.h"
#include "vm_trace/store/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, CHUNK_WORDS = CHUNK / 8, PAGE_WORDS = 512, LARGEST = 4095 };
enum { PID = 0x01020304, TID = 0x0A0B0C0D };

static struct rb_vm_trace_chunk_file trace_file = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };
static struct rb_vm_trace_writer writer;
static char *path;

static void
start(void)
{
    path = temp_path("t.fxt");
    const char *why = rb_vm_trace_chunk_file_open(&trace_file, path);
    if (why) fail_msg("%s", why);
    rb_vm_trace_writer_run_chunks = 1;
    rb_vm_trace_writer_init(&writer, &trace_file, PID);
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
}

/* Close all and decode what is in the file. */
static struct trace *
finish(void)
{
    rb_vm_trace_writer_close(&writer);
    rb_vm_trace_writer_free(&writer);
    rb_vm_trace_chunk_file_close(&trace_file);
    struct trace *trace = trace_read(path);
    free(path);
    return trace;
}

/* The chunk as a reader finds it at this instant. */
static struct trace *
look(void)
{
    size_t first = writer.chunk.first;
    struct trace *trace = trace_decode(writer.chunk.words + first, CHUNK - first * 8, TRACE_CHUNK);
    if (trace->fault[0]) fail_msg("with the writer at word %zu: %s", writer.pos, trace->fault);
    return trace;
}

static struct trace
look_at_counts(void)
{
    struct trace *trace = look(), counts = *trace;
    trace_free(trace);
    return counts;
}

/* A string record of `words`, at least 2. False: no room. */
static bool
put(size_t words, char letter)
{
    static char text[LARGEST * 8];
    struct vm_trace_slot slot;
    size_t bytes = (words - 1) * 8;
    memset(text, letter, bytes);
    return rb_vm_trace_writer_define(&writer, &slot, text, bytes);
}

/* Bring the writer to a word of its chunk, with records that define nothing. */
static void
go_to(size_t word)
{
    while (writer.pos < word) {
        size_t words = word - writer.pos < 256 ? word - writer.pos : 256;
        uint64_t *record = writer_reserve(&writer, words);
        assert_non_null(record);
        writer_publish(&writer, words, 2 | (uint64_t)words << 4);
    }
    assert_int_equal(writer.pos, word);
}

static void
put_event(uint64_t ns)
{
    unsigned thread = writer_thread(&writer, TID, 1);
    if (!thread) assert_true(rb_vm_trace_writer_name_thread(&writer, TID, 1, "main", 4, &thread));
    uint64_t *record = writer_reserve(&writer, 2);
    assert_non_null(record);
    record[1] = ns;
    writer_publish(&writer, 2, fxt_event_header(FXT_EVENT_INSTANT, 2, 0, thread, STRING_TRACE, STRING_SITE));
}

/* --- bytes ------------------------------------------------------------------------------------- */

static void
file_begins_with_magic_provider_clock_and_words(void **state)
{
    (void)state;
    start();
    const uint64_t expected[] = {
        0x0016547846040010,                                         /* magic */
        0x00D0000000110030, 0x5F6D762079627572, 0x0000006563617274, /* provider 1, "ruby vm_trace" */
        0x0000000000000021, 0x000000003B9ACA00,                     /* 10^9 ticks a second */
        0x0000000100010022, 0x0000000000000030,                     /* string 1: "0" */
        0x0000000100020022, 0x0000000000000031                      /* string 2: "1" */
    };
    assert_memory_equal(writer.chunk.words, expected, sizeof(expected));
    /* The last of the preamble: the process, its name being the string before it. */
    unsigned name = writer.next_string - 1;
    const uint64_t last[] = {
        0x0000000400000022 | (uint64_t)name << 16, 0x0000000079627572,  /* "ruby" */
        0x0000000000010027 | (uint64_t)name << 24, 0x0000000001020304
    };
    assert_memory_equal(writer.chunk.words + writer.pos - 4, last, sizeof(last));
    trace_free(finish());
}

static void
words_have_their_numbers_as_indexes_in_every_chunk(void **state)
{
    (void)state;
    start();
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    struct trace *trace = look();
    for (int word = 1; word < FIXED_STRINGS; word++) {
        size_t bytes;
        const char *text = rb_vm_trace_known_text((enum known_string)word, &bytes);
        assert_non_null(trace_string(trace, (unsigned)word));
        assert_string_equal(trace_string(trace, (unsigned)word), text);
    }
    trace_free(trace);
    trace_free(finish());
}

static void
thread_is_written_with_its_name_and_process(void **state)
{
    (void)state;
    start();
    size_t at = writer.pos;
    uint64_t name = writer.next_string;
    unsigned index = 0;
    assert_true(rb_vm_trace_writer_name_thread(&writer, TID, 7, "worker 1", 8, &index));
    assert_int_equal(index, 1);
    const uint64_t expected[] = {
        0x0000000800000022 | name << 16, 0x312072656B726F77,                        /* "worker 1" */
        0x0000010000020047 | name << 24, 0x000000000A0B0C0D,                        /* thread TID is called so */
        0x0000000000000028 | (uint64_t)STRING_PROCESS << 16, 0x0000000001020304,         /* process: PID */
        0x0000000000010033, 0x0000000001020304, 0x000000000A0B0C0D                  /* thread 1: PID, TID */
    };
    assert_memory_equal(writer.chunk.words + at, expected, sizeof(expected));
    assert_int_equal(writer.pos - at, sizeof(expected) / 8);
    trace_free(finish());
}

static void
longest_string_is_read_back(void **state)
{
    (void)state;
    start();
    assert_true(put(LARGEST, 'l'));
    struct trace *trace = finish();
    const char *text = trace_string(trace, FIXED_STRINGS + 1);
    assert_int_equal(strlen(text), 32752);
    assert_int_equal(strspn(text, "l"), 32752);
    trace_free(trace);
}

static void
empty_text_is_index_0_without_a_record(void **state)
{
    (void)state;
    start();
    size_t at = writer.pos;
    struct vm_trace_slot slot = { 0, 9 };
    assert_true(rb_vm_trace_writer_define(&writer, &slot, "", 0));
    assert_int_equal(slot.index, 0);
    assert_int_equal(writer.pos, at);
    trace_free(finish());
}

/* --- valid at every instant --------------------------------------------------------------------- */

/* As if the process was killed between reserve and publish, with the body half or wholly there. */
static void
body_is_invisible_until_the_first_word(void **state)
{
    (void)state;
    static const size_t starts[] = { 600, 1023, 1024, 1025, 1500 };
    static const size_t sizes[] = { 2, 24, 511, 512, 513, 1025, LARGEST };
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        for (size_t j = 0; j < sizeof(sizes) / sizeof(*sizes); j++) {
            start();
            go_to(starts[i]);
            size_t words = sizes[j];
            struct trace before = look_at_counts();
            uint64_t *record = writer_reserve(&writer, words);
            assert_non_null(record);
            struct trace reserved = look_at_counts();
            for (size_t word = 1; word < words; word++) record[word] = word % 3 ? UINT64_MAX : 0;
            struct trace written = look_at_counts();
            assert_int_equal(reserved.string_count, before.string_count);
            assert_int_equal(written.string_count, before.string_count);
            assert_int_equal(written.padding_words, before.padding_words);

            memset(record + 1, 'b', (words - 1) * 8);
            writer_publish(&writer, words, fxt_string_header(writer.next_string++, (words - 1) * 8));
            struct trace after = look_at_counts();
            assert_int_equal(after.string_count, before.string_count + 1);
            assert_int_equal(after.padding_words, before.padding_words - words);
            trace_free(finish());
        }
    }
}

static void
record_of_one_word_is_possible_anywhere(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 2000; i++) {
        uint64_t *record = writer_reserve(&writer, 1);
        assert_non_null(record);
        writer_publish(&writer, 1, 0x12);
        if (i % 64 == 0) look_at_counts();
    }
    trace_free(finish());
}

static void
record_may_end_at_or_behind_the_end_of_its_page(void **state)
{
    (void)state;
    for (size_t start_word = PAGE_WORDS * 3 - 40; start_word < PAGE_WORDS * 3; start_word += 13) {
        for (int more = -2; more <= 2; more++) {
            int words = (int)(PAGE_WORDS * 3 - start_word) + more;
            if (words < 2) continue;
            start();
            go_to(start_word);
            assert_true(put((size_t)words, 'e'));
            look_at_counts();
            assert_true(put(2, 'f'));
            look_at_counts();
            trace_free(finish());
        }
    }
}

static void
record_of_more_than_4095_words_is_refused(void **state)
{
    (void)state;
    start();
    size_t at = writer.pos;
    assert_null(writer_reserve(&writer, LARGEST + 1));
    assert_null(writer_reserve(&writer, CHUNK_WORDS));
    assert_int_equal(writer.pos, at);
    look_at_counts();
    assert_true(put(LARGEST, 'a'));
    trace_free(finish());
}

static struct {
    size_t records;   /* decoded last */
} watched;

static void
watched_look(void)
{
    struct trace now = look_at_counts();
    if (now.record_count < watched.records) fail_msg("a record is gone");
    if (now.record_count > watched.records + 1) fail_msg("one store made %zu records", now.record_count - watched.records);
    watched.records = now.record_count;
}

/* A large string record, of whose body only some words are stored: a copy would be a store a byte. */
static void
put_large(size_t words, char letter)
{
    uint64_t *record = writer_reserve(&writer, words);
    assert_non_null(record);
    watch_pause();
    memset(record + 1, letter, (words - 1) * 8);
    watch_resume();
    for (size_t word = 1; word < words; word += words / 4 + 1) ((volatile uint64_t *)record)[word] = record[1];
    writer_publish(&writer, words, fxt_string_header(writer.next_string++, (words - 1) * 8));
}

static void
chunk_is_valid_after_every_single_store(void **state)
{
    (void)state;
    start();
    watched.records = look_at_counts().record_count;
    watch_stores(writer.chunk.words, CHUNK, watched_look);
    unsigned thread;
    assert_true(rb_vm_trace_writer_name_thread(&writer, TID, 1, "main", 4, &thread));
    put_event(1);
    go_to(PAGE_WORDS - 30);
    put_large(30, 'a');                  /* to the end of its page */
    assert_true(put(5, 'b'));            /* first of a page */
    put_large(PAGE_WORDS, 'c');          /* over one end */
    put_event(2);
    put_large(PAGE_WORDS * 2 + 7, 'd');  /* over two */
    go_to(PAGE_WORDS * 5 - 1);
    put_large(2, 'e');                   /* first word on one page, the second on the next */
    go_to(PAGE_WORDS * 6 - 2);
    put_event(3);
    put_large(PAGE_WORDS, 'f');          /* a page of its own */
    put_large(LARGEST, 'g');
    go_to(PAGE_WORDS * 17);
    put_large(PAGE_WORDS * 3, 'h');
    for (uint64_t ns = 4; ns < 30; ns++) put_event(ns);
    assert_true(watch_end() > 150);

    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "trace", "site"), 29);
    trace_free(trace);
}

/* --- chunks ---------------------------------------------------------------------------------------- */

static void
full_chunk_refuses_and_the_next_one_goes_on(void **state)
{
    (void)state;
    start();
    size_t put_count = 0;
    while (put(100, 'a')) put_count++;
    assert_true(put_count > 1250);
    assert_false(put(100, 'a'));
    look_at_counts();
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_int_equal(writer.chunk.offset, CHUNK);
    assert_true(put(100, 'b'));
    struct trace *trace = finish();
    assert_int_equal(trace->chunk_count, 2);
    assert_int_equal(trace->string_count, put_count + 1 + 2 * FIXED_STRINGS);
    trace_free(trace);
}

/* Records of many sizes over several chunks: nothing is lost, nothing is there twice. */
static void
records_of_all_sizes_fill_chunks_without_loss(void **state)
{
    (void)state;
    start();
    uint32_t random = 12345;
    size_t count = 0, words_put = 0;
    while (writer.serial < 5) {
        random = random * 1103515245 + 12345;
        size_t words = 2 + (random >> 16) % ((random >> 8) % 16 ? 40 : LARGEST - 2);
        if (!put(words, 'r')) {
            look_at_counts();
            assert_true(rb_vm_trace_writer_next_chunk(&writer));
            continue;
        }
        count++;
        words_put += words;
    }
    struct trace *trace = finish();
    assert_int_equal(trace->chunk_count, 5);
    assert_int_equal(trace->string_count, count + 5 * FIXED_STRINGS);
    assert_true(words_put > 4 * CHUNK_WORDS - 4 * (LARGEST + 1200));
    trace_free(trace);
}

static void
full_string_table_starts_a_new_chunk(void **state)
{
    (void)state;
    start();
    struct vm_trace_slot slot;
    char text[16];
    size_t count = 0;
    for (;; count++) {
        size_t bytes = (size_t)sprintf(text, "%zu", count);
        if (!rb_vm_trace_writer_define(&writer, &slot, text, bytes)) break;
    }
    /* A few may be kept for the last words. */
    assert_in_range(slot.index, 32756, 32767);
    assert_int_equal(writer.next_string, slot.index + 1);
    assert_int_equal(count + FIXED_STRINGS, slot.index);
    assert_true(writer.pos < CHUNK_WORDS - 10000); /* the table was full, not the chunk */
    struct trace *trace = look();
    sprintf(text, "%zu", count - 1);
    assert_string_equal(trace_string(trace, slot.index), text);
    trace_free(trace);

    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_true(rb_vm_trace_writer_define(&writer, &slot, "first of the next", 17));
    assert_int_equal(slot.index, FIXED_STRINGS + 1);
    trace = finish();
    assert_int_equal(trace->chunk_count, 2);
    assert_string_equal(trace_string(trace, FIXED_STRINGS + 1), "first of the next");
    trace_free(trace);
}

static void
chunk_can_be_read_alone(void **state)
{
    (void)state;
    start();
    struct vm_trace_slot slot = { 0, 0 };
    unsigned index;
    for (int chunk = 0; chunk < 3; chunk++) {
        assert_true(writer_string(&writer, &slot, "a label", 7, &index));
        put_event(10 + (uint64_t)chunk);
        go_to(CHUNK_WORDS - 2000);
        if (chunk < 2) assert_true(rb_vm_trace_writer_next_chunk(&writer));
    }
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "trace", "site"), 3);
    trace_free(trace);

    path = temp_path("t.fxt");
    size_t bytes;
    uint8_t *data = read_bytes(path, &bytes);
    for (size_t offset = 0; offset < bytes; offset += CHUNK) {
        size_t size = bytes - offset < CHUNK ? bytes - offset : CHUNK;
        trace = trace_decode(data + offset + (offset ? 0 : 8), size - (offset ? 0 : 8), TRACE_CHUNK);
        assert_string_equal(trace->fault, "");
        const struct trace_event *event = trace_event(trace, "trace", "site", 0);
        assert_int_equal(event->ns, 10 + offset / CHUNK);
        assert_string_equal(event->thread, "main");
        assert_string_equal(event->process, "ruby");
        assert_string_equal(trace_string(trace, FIXED_STRINGS + 1), "a label");
        trace_free(trace);
    }
    free(data);
    free(path);
}

static void
text_is_defined_once_a_chunk(void **state)
{
    (void)state;
    start();
    struct vm_trace_slot slot = { 0, 0 };
    unsigned first, again;
    assert_true(writer_string(&writer, &slot, "a label", 7, &first));
    size_t at = writer.pos;
    assert_true(writer_string(&writer, &slot, "a label", 7, &again));
    assert_int_equal(first, again);
    assert_int_equal(writer.pos, at);
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    at = writer.pos;
    assert_true(writer_string(&writer, &slot, "a label", 7, &again));
    assert_int_equal(writer.pos, at + 2);
    trace_free(finish());
}

/* --- runs of chunks -------------------------------------------------------------------------------- */

/* In an event of its own: a text that the next chunk may know already. */
static size_t
define_again(struct vm_trace_slot *slot, const char *text)
{
    unsigned index;
    size_t at = writer.pos;
    assert_true(writer_string(&writer, slot, text, strlen(text), &index));
    assert_int_equal(index, slot->index);
    return writer.pos - at;
}

static void
chunks_one_after_the_other_share_their_tables(void **state)
{
    (void)state;
    start();
    rb_vm_trace_writer_run_chunks = 3;
    struct vm_trace_slot slot = { 0, 0 };
    for (int chunk = 0; chunk < 7; chunk++) {
        assert_int_equal(define_again(&slot, "a label"), chunk % 3 ? 0 : 2);
        put_event((uint64_t)chunk);
        go_to(CHUNK_WORDS - 2000);
        assert_true(rb_vm_trace_writer_next_chunk(&writer));
        assert_int_equal(writer.chunk_serial, chunk + 2);
        assert_int_equal(writer.chunk.offset, (chunk + 1) * (uint64_t)CHUNK);
    }
    struct trace *trace = finish(); /* each event names a thread and texts that are defined */
    assert_int_equal(trace->chunk_count, 3);
    assert_int_equal(trace_count(trace, "trace", "site"), 7);
    trace_free(trace);
}

/* Between the two is one that empties a reader's tables. */
static void
chunk_after_another_writers_defines_what_it_uses(void **state)
{
    (void)state;
    start();
    rb_vm_trace_writer_run_chunks = WRITER_RUN_CHUNKS;
    struct vm_trace_slot slot = { 0, 0 };
    assert_int_equal(define_again(&slot, "a label"), 2);
    static struct rb_vm_trace_writer other;
    rb_vm_trace_writer_init(&other, &trace_file, PID);
    assert_true(rb_vm_trace_writer_next_chunk(&other));
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_int_equal(define_again(&slot, "a label"), 2);
    put_event(1);
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_int_equal(define_again(&slot, "a label"), 0);
    put_event(2);
    rb_vm_trace_writer_close(&other);
    rb_vm_trace_writer_free(&other);
    struct trace *trace = finish();
    assert_int_equal(trace->chunk_count, 3);
    assert_int_equal(trace_count(trace, "trace", "site"), 2);
    trace_free(trace);
}

/* The one before it may be used again while it stays. */
static void
chunk_of_a_file_that_keeps_its_newest_events_can_be_read_alone(void **state)
{
    (void)state;
    trace_file.max_bytes = 4 * (uint64_t)CHUNK;
    trace_file.keep_newest = true;
    start();
    rb_vm_trace_writer_run_chunks = WRITER_RUN_CHUNKS;
    rb_vm_trace_writer_close(&writer); /* the settings */
    rb_vm_trace_chunk_file_begin_ring(&trace_file);
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    struct vm_trace_slot slot = { 0, 0 };
    for (int chunk = 0; chunk < 6; chunk++) {
        assert_int_equal(define_again(&slot, "a label"), 2);
        assert_true(rb_vm_trace_writer_next_chunk(&writer));
    }
    trace_free(finish());
}

/* Otherwise it would be full of texts soon, and what is left of the chunk would be padding. */
static void
half_full_string_table_ends_a_run(void **state)
{
    (void)state;
    start();
    rb_vm_trace_writer_run_chunks = WRITER_RUN_CHUNKS;
    struct vm_trace_slot slot = { 0, 0 };
    for (int i = 0; i < FXT_MAX_STRING_INDEX / 2; i++) assert_true(rb_vm_trace_writer_define(&writer, &slot, "x", 1));
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_int_equal(define_again(&slot, "x"), 2);
    trace_free(finish());
}

/* --- the disk is full ---------------------------------------------------------------------------- */

static void
failed_next_chunk_keeps_the_old_one_for_the_last_words(void **state)
{
    (void)state;
    limit_file_size(CHUNK);
    start();
    while (put(50, 'a')) {}
    while (put(2, 'b')) {}
    size_t at = writer.pos;
    assert_false(rb_vm_trace_writer_next_chunk(&writer));
    assert_int_equal(trace_file.error, EFBIG);
    assert_non_null(writer.chunk.words);
    assert_int_equal(writer.pos, at);
    assert_false(put(2, 'b'));
    rb_vm_trace_writer_last_words(&writer);
    assert_true(put(2, 'c'));
    put_event(1);
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "trace", "site"), 1);
    trace_free(trace);
}

/*
 * Whatever the sizes of the records that filled the chunk, there is room for a loss and a
 * summary with the texts and the thread that they need: 64 words.
 */
static void
room_for_the_last_words_is_kept_from_records_of_all_sizes(void **state)
{
    (void)state;
    for (size_t words = 1; words <= 600; words += words < 20 ? 1 : 61) {
        limit_file_size(CHUNK);
        start();
        for (uint64_t *record; (record = writer_reserve(&writer, words)) != NULL; ) {
            writer_publish(&writer, words, 2 | (uint64_t)words << 4);
        }
        for (uint64_t *record; (record = writer_reserve(&writer, 1)) != NULL; ) writer_publish(&writer, 1, 0x12);
        rb_vm_trace_writer_last_words(&writer);
        if (CHUNK_WORDS - writer.pos < 64) fail_msg("after records of %zu words %zu are left", words, CHUNK_WORDS - writer.pos);
        if (!put(64, 'l')) fail_msg("after records of %zu words there is no room", words);
        while (put(2, 'm')) {}
        trace_free(finish());
    }
}

static void
closed_writer_refuses_and_goes_on_with_a_next_chunk(void **state)
{
    (void)state;
    start();
    rb_vm_trace_writer_close(&writer);
    assert_false(put(2, 'a'));
    assert_null(writer_reserve(&writer, 1));
    rb_vm_trace_writer_last_words(&writer);
    assert_null(writer_reserve(&writer, 1));
    rb_vm_trace_writer_close(&writer);
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_true(put(2, 'a'));
    struct trace *trace = finish();
    assert_int_equal(trace->chunk_count, 2);
    trace_free(trace);
}

static void
dropped_writer_refuses_and_leaves_the_file(void **state)
{
    (void)state;
    start();
    put_event(1);
    size_t bytes;
    uint8_t *before = read_bytes(path, &bytes);
    writer.events = 1;
    rb_vm_trace_writer_drop(&writer);
    assert_null(writer_reserve(&writer, 1));
    assert_false(put(2, 'a'));
    rb_vm_trace_writer_close(&writer);
    assert_int_equal(writer.events, 0);
    assert_unchanged(path, before, bytes);
    trace_free(finish());
}

/* --- what another leaves ------------------------------------------------------------------------------ */

static struct vm_trace_clock fresh_clock; /* as the system's */
static struct rb_vm_trace_shared shared = { .lock = PTHREAD_MUTEX_INITIALIZER, .writer = { .file = &trace_file, .shares = true } };

/* The same writer takes it, as that of another ractor would. */
static void
rest_is_taken_where_it_was_left_and_nothing_is_defined(void **state)
{
    (void)state;
    start();
    struct vm_trace_slot slot = { 0, 0 };
    unsigned index, again, thread, another;
    assert_true(writer_string(&writer, &slot, "a label", 7, &index));
    put_event(5);
    size_t at = writer.pos;
    uint32_t next_string = writer.next_string;
    rb_vm_trace_writer_leave(&writer, &shared, UINT64_MAX);
    assert_false(put(2, 'a'));
    assert_false(rb_vm_trace_writer_take_orphan(&writer, &shared, &fresh_clock)); /* by this clock its event is still to come */
    shared.orphans->latest_ns = rb_vm_trace_clock_system_ns();
    assert_true(rb_vm_trace_writer_take_orphan(&writer, &shared, &fresh_clock));
    assert_false(rb_vm_trace_writer_take_orphan(&writer, &shared, &fresh_clock));
    assert_int_equal(writer.pos, at);

    assert_true(writer_string(&writer, &slot, "a label", 7, &again));
    assert_int_equal(again, next_string);
    /* Another thread may have the number and the address of the one that was named. */
    assert_int_equal(writer_thread(&writer, TID, 1), 0);
    assert_true(rb_vm_trace_writer_name_thread(&writer, TID, 1, "heir", 4, &thread));
    assert_true(rb_vm_trace_writer_name_thread(&writer, TID + 1, 1, "other", 5, &another));
    assert_int_equal(thread, 1);
    assert_int_equal(another, 2);
    put_event(6);
    struct trace *trace = finish();
    assert_int_equal(trace->chunk_count, 1);
    assert_string_equal(trace_event(trace, NULL, NULL, 0)->thread, "main");
    assert_string_equal(trace_event(trace, NULL, NULL, 1)->thread, "heir");
    trace_free(trace);
}

/* As what a chunk is taken for may be as large as an event can be: 16 texts of the most that a record holds. */
static void
rest_has_room_for_any_event_or_is_given_back(void **state)
{
    (void)state;
    enum { TEXTS = 16 };
    for (int full = 0; full < 3; full++) {
        start();
        if (full == 0) go_to(writer.limit - TEXTS * LARGEST + 1);
        if (full == 1) writer.next_string = writer.string_limit - TEXTS + 1;
        if (full == 2) rb_vm_trace_writer_close(&writer);
        rb_vm_trace_writer_leave(&writer, &shared, 1);
        assert_null(shared.orphans);
        assert_null(writer.chunk.words);
        assert_false(rb_vm_trace_writer_take_orphan(&writer, &shared, &fresh_clock));
        trace_free(finish());
    }
    start();
    unsigned index;
    go_to(writer.limit - TEXTS * LARGEST);
    writer.next_string = writer.string_limit - TEXTS;
    for (uint32_t tid = 1; tid <= 254; tid++) writer.threads[writer.thread_count++].tid = tid;
    rb_vm_trace_writer_leave(&writer, &shared, 1);
    assert_true(rb_vm_trace_writer_take_orphan(&writer, &shared, &fresh_clock));
    for (int i = 0; i < TEXTS - 1; i++) assert_true(put(LARGEST, 'x'));
    assert_true(put(520, 'y')); /* the rest of the stack is no longer */
    assert_true(rb_vm_trace_writer_name_thread(&writer, TID, 1, "t", 1, &index));
    assert_non_null(writer_reserve(&writer, 64));
    rb_vm_trace_writer_close(&writer);
    rb_vm_trace_chunk_file_close(&trace_file);
    free(path);
}

static void
rests_are_given_back_at_the_end_and_the_last_is_cut_off(void **state)
{
    (void)state;
    start();
    put_event(1);
    for (int i = 0; i < 2; i++) {
        rb_vm_trace_writer_leave(&writer, &shared, 1);
        assert_true(rb_vm_trace_writer_next_chunk(&writer));
        put_event(2);
    }
    rb_vm_trace_writer_leave(&writer, &shared, 2);
    rb_vm_trace_shared_close(&shared);
    assert_null(shared.orphans);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_in_range(st.st_size, 2 * CHUNK + 1, 2 * CHUNK + 2 * PAGE_WORDS * 8);
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "trace", "site"), 3);
    trace_free(trace);
}

static void
dropped_rests_leave_the_file(void **state)
{
    (void)state;
    start();
    put_event(1);
    rb_vm_trace_writer_leave(&writer, &shared, 1);
    size_t bytes;
    uint8_t *before = read_bytes(path, &bytes);
    rb_vm_trace_shared_drop(&shared);
    assert_false(rb_vm_trace_writer_take_orphan(&writer, &shared, &fresh_clock));
    assert_unchanged(path, before, bytes);
    trace_free(finish());
}

static void
rest_of_another_file_or_of_one_that_was_removed_is_not_taken(void **state)
{
    (void)state;
    start();
    put_event(1);
    rb_vm_trace_writer_leave(&writer, &shared, 1);
    struct rb_vm_trace_chunk_file other_sink = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };
    struct rb_vm_trace_writer other = { .file = &other_sink };
    char *other_path = temp_path("other.fxt");
    assert_null(rb_vm_trace_chunk_file_open(&other_sink, other_path));
    assert_false(rb_vm_trace_writer_take_orphan(&other, &shared, &fresh_clock));
    rb_vm_trace_chunk_file_close(&other_sink);
    free(other_path);
    assert_int_equal(unlink(path), 0);
    assert_false(rb_vm_trace_writer_take_orphan(&writer, &shared, &fresh_clock));
    assert_non_null(shared.orphans);
    rb_vm_trace_shared_close(&shared);
    rb_vm_trace_chunk_file_close(&trace_file);
    free(path);
}

/* --- threads ------------------------------------------------------------------------------------------ */

static void
thread_table_holds_255_and_then_indexes_are_used_again(void **state)
{
    (void)state;
    start();
    unsigned index;
    for (uint32_t tid = 1; tid <= 255; tid++) {
        assert_int_equal(writer_thread(&writer, tid, 1), 0);
        assert_true(rb_vm_trace_writer_name_thread(&writer, tid, 1, "t", 1, &index));
        assert_int_equal(index, tid);
    }
    for (uint32_t tid = 1; tid <= 255; tid++) assert_int_equal(writer_thread(&writer, tid, 1), tid);
    /* Not that of the last one, which the record that is being made may have. */
    assert_int_equal(writer_thread(&writer, 1, 1), 1);
    assert_true(rb_vm_trace_writer_name_thread(&writer, 256, 1, "t", 1, &index));
    assert_int_equal(index, 2);
    assert_int_equal(writer_thread(&writer, 2, 1), 0);
    assert_int_equal(writer_thread(&writer, 256, 1), 2);
    /* One that is known keeps its own under another name. */
    assert_true(rb_vm_trace_writer_name_thread(&writer, 255, 2, "u", 1, &index));
    assert_int_equal(index, 255);
    /* "None" is a thread like others. */
    unsigned none = rb_vm_trace_writer_no_thread(&writer);
    assert_int_equal(none, 3);
    assert_int_equal(rb_vm_trace_writer_no_thread(&writer), none);

    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_int_equal(writer_thread(&writer, 1, 1), 0);
    assert_true(rb_vm_trace_writer_name_thread(&writer, 256, 1, "t", 1, &index));
    assert_int_equal(index, 1);
    trace_free(finish());
}

static void
renamed_thread_keeps_its_index_and_writes_its_new_name(void **state)
{
    (void)state;
    start();
    unsigned first, second;
    put_event(1);
    assert_true(rb_vm_trace_writer_name_thread(&writer, TID, 1, "main", 4, &first));
    assert_int_equal(writer_thread(&writer, TID, 2), 0);
    assert_int_equal(writer_last_thread(&writer, TID, 2), 0);
    assert_true(rb_vm_trace_writer_name_thread(&writer, TID, 2, "renamed", 7, &second));
    assert_int_equal(first, second);
    assert_int_equal(writer_thread(&writer, TID, 2), first);
    assert_int_equal(writer_thread(&writer, TID, 1), 0);
    uint64_t *record = writer_reserve(&writer, 2);
    record[1] = 2;
    writer_publish(&writer, 2, fxt_event_header(FXT_EVENT_INSTANT, 2, 0, first, STRING_TRACE, STRING_SITE));
    struct trace *trace = finish();
    assert_string_equal(trace_event(trace, NULL, NULL, 0)->thread, "main");
    assert_string_equal(trace_event(trace, NULL, NULL, 1)->thread, "renamed");
    assert_int_equal(trace_event(trace, NULL, NULL, 1)->tid, TID);
    assert_int_equal(trace_event(trace, NULL, NULL, 1)->pid, PID);
    trace_free(trace);
}

static void
last_thread_is_found_without_a_search(void **state)
{
    (void)state;
    start();
    unsigned a, b;
    assert_int_equal(writer_last_thread(&writer, 1, 1), 0);
    assert_true(rb_vm_trace_writer_name_thread(&writer, 1, 1, "a", 1, &a));
    assert_true(rb_vm_trace_writer_name_thread(&writer, 2, 1, "b", 1, &b));
    assert_int_equal(writer_last_thread(&writer, 2, 1), b);
    assert_int_equal(writer_last_thread(&writer, 1, 1), 0);
    assert_int_equal(writer_thread(&writer, 1, 1), a);
    assert_int_equal(writer_last_thread(&writer, 1, 1), a);
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_int_equal(writer_last_thread(&writer, 1, 1), 0);
    trace_free(finish());
}

static void
thread_without_a_name_is_written(void **state)
{
    (void)state;
    start();
    unsigned index;
    assert_true(rb_vm_trace_writer_name_thread(&writer, TID, 1, "", 0, &index));
    assert_int_equal(index, 1);
    put_event(1);
    struct trace *trace = finish();
    assert_string_equal(trace_event(trace, NULL, NULL, 0)->thread, "");
    trace_free(trace);
}

/* --- interned texts ---------------------------------------------------------------------------------- */

static unsigned
interned(const struct vm_trace_string *string)
{
    unsigned index = 0;
    assert_true(writer_interned(&writer, string, &index));
    return index;
}

static void
interned_text_is_defined_once_a_chunk(void **state)
{
    (void)state;
    start();
    struct vm_trace_string *a = rb_vm_trace_string_intern("reason a", 8), *b = rb_vm_trace_string_intern("reason b", 8);
    unsigned index = interned(a);
    assert_int_equal(interned(b), index + 1);
    assert_int_equal(interned(a), index);
    struct trace *trace = look();
    assert_string_equal(trace_string(trace, index), "reason a");
    trace_free(trace);
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_int_equal(interned(b), index); /* the first of this chunk */
    trace = finish();
    assert_string_equal(trace_string(trace, index), "reason b");
    trace_free(trace);
}

static void
text_with_an_id_used_before_is_defined_anew(void **state)
{
    (void)state;
    start();
    struct vm_trace_string *a = rb_vm_trace_string_intern("reason a", 8);
    uint32_t id = a->id;
    unsigned index = interned(a);
    rb_vm_trace_string_release(a);
    struct vm_trace_string *b = rb_vm_trace_string_intern("reason b", 8);
    assert_int_equal(b->id, id);
    assert_int_not_equal(interned(b), index);
    struct trace *trace = finish();
    assert_string_equal(trace_string(trace, index), "reason a");
    assert_string_equal(trace_string(trace, index + 1), "reason b");
    trace_free(trace);
}

static void
thousands_of_interned_texts_keep_their_indexes(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    start();
    static struct vm_trace_string *strings[COUNT];
    static unsigned indexes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        char text[32];
        strings[i] = rb_vm_trace_string_intern(text, (size_t)sprintf(text, "reason %d", i));
    }
    for (int i = COUNT; i-- > 0; ) indexes[i] = interned(strings[i]); /* the highest id first */
    for (int i = 0; i < COUNT; i++) assert_int_equal(interned(strings[i]), indexes[i]);
    struct trace *trace = finish();
    assert_string_equal(trace_string(trace, indexes[0]), "reason 0");
    assert_string_equal(trace_string(trace, indexes[COUNT - 1]), "reason 2999");
    trace_free(trace);
}

/* --- the name of the process --- */

static char *command_line; /* path of the file that is read instead of the system's */

static const char *
file_of_command_line(const char *name)
{
    return strcmp(name, "/proc/self/cmdline") == 0 ? command_line : name;
}

static void
name_of_the_process_is_its_title(void **state)
{
    (void)state;
#define LINE(text) text, sizeof(text) - 1
#define E7 "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
#define E35 E7 E7 E7 E7 E7
#define E126 E35 E35 E35 E7 E7 E7
    static const struct {
        const char *line;
        size_t bytes;
        const char *name;
    } cases[] = {
        { LINE("ruby\0script.rb\0"), "ruby" },
        { LINE("bin/ruby\0-e\0\0"), "ruby" },
        { LINE("/usr/bin/ruby\0"), "ruby" },
        { LINE(""), "ruby" },
        { LINE("puma\0\0\0\0"), "puma" },
        { LINE("job 7\0"), "job 7" },                                     /* as long as the arguments */
        { LINE("job 8 of the whole night"), "job 8 of the whole night" }, /* longer */
        { LINE("xy" E126 E7), "xy" E126 "\xC3\xA9" },
        { LINE("x" E126 E7), "x" E126 "\xC3\xA9" }, /* at most 256 bytes, of whole characters */
        { LINE("w\xFFx\0\0"), "w\\xFFx" },           /* no UTF-8 */
    };
    command_line = temp_path("cmdline");
    path_to_open = file_of_command_line;
    start();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        FILE *file = fopen(command_line, "w");
        fwrite(cases[i].line, 1, cases[i].bytes, file);
        fclose(file);
        rb_vm_trace_writer_name_process(&writer);
        struct trace *trace = look();
        assert_string_equal(trace->process_name, cases[i].name);
        trace_free(trace);
    }
    unlink(command_line);
    rb_vm_trace_writer_name_process(&writer); /* a system that does not say */
    struct trace *trace = finish();
    assert_string_equal(trace->process_name, "ruby");
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(file_begins_with_magic_provider_clock_and_words),
        isolated_test(words_have_their_numbers_as_indexes_in_every_chunk),
        isolated_test(thread_is_written_with_its_name_and_process),
        isolated_test(longest_string_is_read_back),
        isolated_test(empty_text_is_index_0_without_a_record),
        isolated_test(body_is_invisible_until_the_first_word),
        isolated_test(record_of_one_word_is_possible_anywhere),
        isolated_test(record_may_end_at_or_behind_the_end_of_its_page),
        isolated_test(record_of_more_than_4095_words_is_refused),
        isolated_test(chunk_is_valid_after_every_single_store),
        isolated_test(full_chunk_refuses_and_the_next_one_goes_on),
        isolated_test(records_of_all_sizes_fill_chunks_without_loss),
        isolated_test(full_string_table_starts_a_new_chunk),
        isolated_test(chunk_can_be_read_alone),
        isolated_test(text_is_defined_once_a_chunk),
        isolated_test(chunks_one_after_the_other_share_their_tables),
        isolated_test(chunk_after_another_writers_defines_what_it_uses),
        isolated_test(chunk_of_a_file_that_keeps_its_newest_events_can_be_read_alone),
        isolated_test(half_full_string_table_ends_a_run),
        isolated_test(failed_next_chunk_keeps_the_old_one_for_the_last_words),
        isolated_test(room_for_the_last_words_is_kept_from_records_of_all_sizes),
        isolated_test(closed_writer_refuses_and_goes_on_with_a_next_chunk),
        isolated_test(dropped_writer_refuses_and_leaves_the_file),
        isolated_test(rest_is_taken_where_it_was_left_and_nothing_is_defined),
        isolated_test(rest_has_room_for_any_event_or_is_given_back),
        isolated_test(rests_are_given_back_at_the_end_and_the_last_is_cut_off),
        isolated_test(dropped_rests_leave_the_file),
        isolated_test(rest_of_another_file_or_of_one_that_was_removed_is_not_taken),
        isolated_test(thread_table_holds_255_and_then_indexes_are_used_again),
        isolated_test(renamed_thread_keeps_its_index_and_writes_its_new_name),
        isolated_test(last_thread_is_found_without_a_search),
        isolated_test(thread_without_a_name_is_written),
        isolated_test(interned_text_is_defined_once_a_chunk),
        isolated_test(text_with_an_id_used_before_is_defined_anew),
        isolated_test(thousands_of_interned_texts_keep_their_indexes),
        isolated_test(name_of_the_process_is_its_title),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
