/* Reading a trace while its program writes: records take the place of padding that was read as such. */
#define _GNU_SOURCE 1 /* mkstemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fxt/reader.h"

enum { PAGE_WORDS = 512, PAGES = 600, EVENT_WORDS = 4 }; /* pages: 2.4 MB, more than two windows */

static char path[] = "/tmp/vm-trace-test-XXXXXX";
static int fd;

struct seen {
    unsigned events;
    unsigned faults;
    int64_t last_ts;
    /* What the program writes at the given event, or when so many bytes have been read. */
    void (*write)(void);
    unsigned at_event;
    uint64_t at_bytes;
};

static void
put(size_t word, const uint64_t *words, size_t count)
{
    assert_int_equal(pwrite(fd, words, count * 8, (off_t)(word * 8)), count * 8);
}

static uint64_t
padding(size_t words)
{
    return 2 | (uint64_t)words << 4;
}

/* As the tracer's writer puts one: padding behind it, the padding under it made one record of its size, the rest, its first word. */
static size_t
put_event(size_t word, int64_t ts)
{
    size_t end = word + EVENT_WORDS, page = (end + PAGE_WORDS - 1) / PAGE_WORDS * PAGE_WORDS;
    uint64_t event[EVENT_WORDS] = {4 | EVENT_WORDS << 4, (uint64_t)ts, 42, 43}, under = padding(EVENT_WORDS), rest = padding(page - end);
    if (page > end) put(end, &rest, 1);
    put(word, &under, 1);
    put(word + 1, event + 1, EVENT_WORDS - 1);
    put(word, event, 1);
    return end;
}

enum { FIRST_WORD = 5 };

/* A magic record, a provider, its initialization; then an event; the rest is padding, a record a page. */
static int
make_file(void **state)
{
    (void)state;
    fd = mkstemp(strcpy(path, "/tmp/vm-trace-test-XXXXXX"));
    if (fd < 0 || ftruncate(fd, PAGES * PAGE_WORDS * 8) != 0) return -1;
    for (size_t page = 0; page < PAGES; page++) put(page * PAGE_WORDS, (uint64_t[]){padding(PAGE_WORDS)}, 1);
    const uint64_t head[] = {0x0016547846040010, 0 | 1 << 4 | 1 << 16 | 1 << 20, 1 | 2 << 4, 1000000000, padding(PAGE_WORDS - 4)};
    put(0, head, 5);
    put_event(FIRST_WORD - 1, 1);
    return 0;
}

static int
remove_file(void **state)
{
    (void)state;
    close(fd);
    return unlink(path);
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct seen *seen = context;
    assert_int_equal(event->ts_ns, seen->last_ts + 1);
    seen->last_ts = event->ts_ns;
    if (++seen->events == seen->at_event) seen->write();
}

static void
on_fault(void *context, const struct fxt_fault *fault)
{
    struct seen *seen = context;
    print_error("offset %llu: %s\n", (unsigned long long)fault->offset, fault->text);
    seen->faults++;
}

static void
on_progress(void *context, uint64_t bytes, uint64_t size)
{
    struct seen *seen = context;
    (void)size;
    if (seen->at_bytes == 0 || bytes < seen->at_bytes) return;
    seen->at_bytes = 0;
    seen->write();
}

static struct fxt_counts
read_while(struct seen *seen)
{
    struct reader *reader = reader_new(1 << 20);
    struct fxt_visitor visitor = {.context = seen, .event = on_event, .fault_context = seen, .fault = on_fault, .progress = on_progress};
    assert_int_equal(reader_read(reader, path, &visitor), 0);
    struct fxt_counts counts = *reader_counts(reader);
    reader_free(reader);
    return counts;
}

/* After a record of one word, so that some lie over the edges of pages, where padding began. */
static void
write_events(size_t until_word)
{
    size_t word = FIRST_WORD - 1 + EVENT_WORDS;
    uint64_t rest = padding(PAGE_WORDS - word - 1), string = 2 | 1 << 4 | 1 << 16;
    put(word + 1, &rest, 1);
    put(word, &string, 1);
    word++;
    for (int i = 0; word + EVENT_WORDS < until_word; i++) word = put_event(word, 2 + i);
}

static void
write_few_events(void)
{
    write_events(3 * PAGE_WORDS);
}

static void
write_events_through_all_windows(void)
{
    write_events((PAGES - 1) * PAGE_WORDS);
}

static void
file_that_nobody_writes_has_its_event(void **state)
{
    (void)state;
    struct seen seen = {.events = 0};
    struct fxt_counts counts = read_while(&seen);
    assert_int_equal(seen.events, 1);
    assert_int_equal(seen.faults, 0);
    assert_int_equal(counts.bytes, PAGES * PAGE_WORDS * 8);
    assert_int_equal(counts.padding_records, PAGES);
}

static void
events_written_while_padding_is_read_are_seen_whole(void **state)
{
    (void)state;
    struct seen seen = {.write = write_few_events, .at_event = 1};
    struct fxt_counts counts = read_while(&seen);
    assert_int_equal(seen.faults, 0);
    assert_in_range(seen.events, 300, 400);
    assert_int_equal(counts.events, seen.events);
}

static void
a_window_that_was_read_after_padding_was_overwritten_is_read_from_where_it_began(void **state)
{
    (void)state;
    for (uint64_t at_bytes = 1; at_bytes < 3; at_bytes++) {
        struct seen seen = {.write = write_events_through_all_windows, .at_bytes = at_bytes << 20};
        struct fxt_counts counts = read_while(&seen);
        assert_int_equal(seen.faults, 0);
        assert_int_equal(seen.events, counts.events);
        assert_true(seen.events > 70000);
        assert_true(counts.padding_records <= 2); /* those that were passed before are not counted twice */
        remove_file(state);
        make_file(state);
    }
}

/* --- a file whose chunks are used again --- */

enum { CHUNK_WORDS = 128 * 1024, CHUNKS = 3, GENERATION = 1000000000 };
static const uint64_t preamble[] = {0 | 1 << 4 | 1 << 16 | 1 << 20, 1 | 2 << 4, GENERATION};
enum { PREAMBLE_WORDS = 3, CHUNK_EVENTS = (CHUNK_WORDS - PREAMBLE_WORDS) / EVENT_WORDS };

/* Full of events whose times tell which use of the chunk they are of; where it is not full, padding is behind them. */
static void
put_chunk(unsigned number, unsigned generation, unsigned events)
{
    static uint64_t words[CHUNK_WORDS];
    memset(words, 0, sizeof words);
    memcpy(words, preamble, sizeof preamble);
    uint64_t *at = words + PREAMBLE_WORDS;
    for (uint64_t i = 1; i <= events; i++, at += EVENT_WORDS) {
        memcpy(at, (uint64_t[]){4 | EVENT_WORDS << 4, generation * (uint64_t)GENERATION + i, 42, 43}, EVENT_WORDS * 8);
    }
    for (size_t left; (left = (size_t)(words + CHUNK_WORDS - at)) > 0;) {
        size_t page = PAGE_WORDS - (size_t)(at - words) % PAGE_WORDS;
        *at = padding(page);
        at += page;
    }
    put(PAGE_WORDS + number * CHUNK_WORDS, words, CHUNK_WORDS);
}

static uint64_t
string_header(unsigned index, size_t bytes)
{
    return 2 | 2 << 4 | (uint64_t)index << 16 | (uint64_t)bytes << 32;
}

static int
make_ring(void **state)
{
    (void)state;
    fd = mkstemp(strcpy(path, "/tmp/vm-trace-test-XXXXXX"));
    if (fd < 0) return -1;
    uint64_t head[PAGE_WORDS] = {0x0016547846040010};
    memcpy(head + 1, preamble, sizeof preamble);
    static const char *const texts[] = {"trace", "settings", "keep", "newest"};
    for (unsigned i = 0; i < 4; i++) {
        head[4 + 2 * i] = string_header(i + 1, strlen(texts[i]));
        memcpy(&head[5 + 2 * i], texts[i], strlen(texts[i]));
    }
    const uint64_t settings[] = {4 | 5 << 4 | 1 << 20 | UINT64_C(1) << 32 | UINT64_C(2) << 48, 1, 42, 43, 6 | 1 << 4 | 3 << 16 | UINT64_C(4) << 32};
    memcpy(head + 12, settings, sizeof settings);
    head[17] = padding(PAGE_WORDS - 17);
    put(0, head, PAGE_WORDS);
    for (unsigned i = 0; i < CHUNKS; i++) put_chunk(i, 1 + i, CHUNK_EVENTS);
    return 0;
}

struct ring_seen {
    struct seen seen;
    uint64_t generation;
    int64_t last;
    unsigned of_generation[16];
};

static void
on_ring_event(void *context, const struct fxt_event *event)
{
    struct ring_seen *ring = context;
    uint64_t generation = (uint64_t)event->ts_ns / GENERATION;
    int64_t number = event->ts_ns % GENERATION;
    if (number > 1 && generation > 0) assert_true(generation == ring->generation && number == ring->last + 1);
    ring->generation = generation;
    ring->last = number;
    ring->of_generation[generation]++;
}

static bool
read_ring_while(struct ring_seen *ring)
{
    struct reader *reader = reader_new(1 << 20);
    struct fxt_visitor visitor = {.context = ring, .event = on_ring_event, .fault_context = ring, .fault = on_fault, .progress = on_progress};
    assert_int_equal(reader_read(reader, path, &visitor), 0);
    assert_int_equal(ring->seen.faults, 0);
    bool moved = reader_moved(reader);
    reader_free(reader);
    return moved;
}

static void
use_first_chunk_again(void)
{
    put_chunk(0, 9, CHUNK_EVENTS);
}

static void
make_first_chunk_fresh(void)
{
    put_chunk(0, 9, 2);
}

enum { FRESH_PAGE = 100, FRESH_WORDS = FRESH_PAGE * PAGE_WORDS - PREAMBLE_WORDS };

/* As the tracer does it: from its end on, so that what is before can be read. */
static void
begin_to_make_first_chunk_fresh(void)
{
    for (size_t page = FRESH_PAGE; page < CHUNK_WORDS / PAGE_WORDS; page++) put((1 + page) * PAGE_WORDS, (uint64_t[]){padding(PAGE_WORDS)}, 1);
    enum { CUT_WORDS = FRESH_WORDS % EVENT_WORDS }; /* of the event that lies over that page's start */
    put((1 + FRESH_PAGE) * PAGE_WORDS - CUT_WORDS, (uint64_t[]){padding(CUT_WORDS)}, 1);
}

static void
ring_that_nobody_writes_has_its_events(void **state)
{
    (void)state;
    struct ring_seen ring = {.generation = 0};
    assert_false(read_ring_while(&ring));
    for (unsigned i = 0; i <= CHUNKS; i++) assert_int_equal(ring.of_generation[i], i == 0 ? 1 : CHUNK_EVENTS);
}

/* The first window ends a page before the first chunk does. */
static void
chunk_is_read_as_it_was_at_one_moment(void **state)
{
    (void)state;
    static const struct { void (*write)(void); unsigned events; } cases[] = {{use_first_chunk_again, CHUNK_EVENTS}, {make_first_chunk_fresh, 2}};
    for (unsigned i = 0; i < 2; i++) {
        struct ring_seen ring = {.seen = {.write = cases[i].write, .at_bytes = 1}};
        read_ring_while(&ring);
        assert_int_equal(ring.of_generation[1], 0);
        assert_int_equal(ring.of_generation[9], cases[i].events);
        assert_int_equal(ring.of_generation[2] + ring.of_generation[3], 2 * CHUNK_EVENTS);
        remove_file(state);
        make_ring(state);
    }
}

static void
chunk_that_is_being_made_fresh_has_its_first_records(void **state)
{
    (void)state;
    struct ring_seen ring = {.seen = {.write = begin_to_make_first_chunk_fresh, .at_bytes = 1}};
    read_ring_while(&ring);
    assert_int_equal(ring.of_generation[1], FRESH_WORDS / EVENT_WORDS);
}

static void
chunk_that_was_used_again_after_it_was_read_is_told(void **state)
{
    (void)state;
    struct ring_seen ring = {.seen = {.write = use_first_chunk_again, .at_bytes = 3 << 20}};
    assert_true(read_ring_while(&ring));
    assert_int_equal(ring.of_generation[1], CHUNK_EVENTS);
}

int
main(void)
{
#define RING_CASE(name) cmocka_unit_test_setup_teardown(name, make_ring, remove_file)
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)
    const struct CMUnitTest tests[] = {
        CASE(file_that_nobody_writes_has_its_event),
        CASE(events_written_while_padding_is_read_are_seen_whole),
        CASE(a_window_that_was_read_after_padding_was_overwritten_is_read_from_where_it_began),
        RING_CASE(ring_that_nobody_writes_has_its_events),
        RING_CASE(chunk_is_read_as_it_was_at_one_moment),
        RING_CASE(chunk_that_is_being_made_fresh_has_its_first_records),
        RING_CASE(chunk_that_was_used_again_after_it_was_read_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
