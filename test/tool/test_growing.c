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

#include "reader.h"

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

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)
    const struct CMUnitTest tests[] = {
        CASE(file_that_nobody_writes_has_its_event),
        CASE(events_written_while_padding_is_read_are_seen_whole),
        CASE(a_window_that_was_read_after_padding_was_overwritten_is_read_from_where_it_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
