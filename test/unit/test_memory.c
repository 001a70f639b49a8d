/*
 * Memory in place of a file: the ring of chunks there, and what is frozen of it.
 */
#define _GNU_SOURCE 1
#include "harness.h"
#include "vm_trace/schema/fxt.h"
#include "vm_trace/store/memory_ring.h"
#include "vm_trace/platform/platform.h"
#include "validate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20, SETTINGS = 4096 };

static struct rb_vm_trace_chunk_file trace_file = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .keep_newest = true };
static struct rb_vm_trace_chunk_snapshot snapshot;

/* Memory of so many MiB with a first chunk of a page, as that of the settings is: one MiB less is a ring. */
static void
open_memory(unsigned mib)
{
    trace_file.max_bytes = (uint64_t)mib * MIB;
    const char *why = rb_vm_trace_memory_open(&trace_file);
    if (why) fail_msg("%s", why);
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    rb_vm_trace_chunk_file_release(&trace_file, &chunk, 10);
    rb_vm_trace_chunk_file_begin_ring(&trace_file);
    assert_int_equal(trace_file.size, SETTINGS);
    assert_true(rb_vm_trace_chunk_snapshot_room(&snapshot, &trace_file, 8));
}

static void
close_memory(void)
{
    rb_vm_trace_chunk_file_close(&trace_file);
    rb_vm_trace_chunk_snapshot_free(&snapshot);
}

/* A chunk of the ring by its number, in order of address. */
static uint64_t
number_of(uint64_t offset)
{
    assert_int_equal((offset - SETTINGS) % MIB, 0);
    return (offset - SETTINGS) / MIB;
}

static struct rb_vm_trace_chunk
reserve(uint64_t number)
{
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_ptr_equal(chunk.words, trace_file.memory + chunk.offset);
    assert_int_equal(number_of(chunk.offset), number);
    return chunk;
}

static void
assert_none(void)
{
    struct rb_vm_trace_chunk chunk;
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_int_equal(trace_file.error, 0);
}

static void
release(struct rb_vm_trace_chunk *chunk)
{
    rb_vm_trace_chunk_file_release(&trace_file, chunk, VM_TRACE_CHUNK_WORDS);
    assert_null(chunk->words);
}

/* Every chunk is made, the lower numbers are the older ones, and the last is in use. */
static struct rb_vm_trace_chunk
fill(unsigned mib)
{
    open_memory(mib);
    for (unsigned i = 0; i < mib - 2; i++) {
        struct rb_vm_trace_chunk chunk = reserve(i);
        release(&chunk);
    }
    return reserve(mib - 2);
}

static void
begin_snapshot(const struct rb_vm_trace_chunk *in_use)
{
    pthread_mutex_lock(&trace_file.lock);
    rb_vm_trace_memory_snapshot_begin(&trace_file, &snapshot);
    if (in_use) rb_vm_trace_memory_snapshot_in_use(&trace_file, &snapshot, in_use->offset, 100);
    pthread_mutex_unlock(&trace_file.lock);
}

static void
memory_is_a_file_without_a_name_that_nobody_can_cut(void **state)
{
    (void)state;
    open_memory(4);
    struct rb_vm_trace_chunk chunk = reserve(0);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", trace_file.fd);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_nlink, 0);
    assert_int_equal(st.st_size, SETTINGS + MIB);
    assert_true(fcntl(trace_file.fd, F_GETFD) & FD_CLOEXEC);
    if (VM_TRACE_PLATFORM_LINUX) {
        assert_int_not_equal(truncate(path, 0), 0);
        assert_int_equal(errno, EPERM);
    }
    release(&chunk);
    close_memory();
}

static void
ring_uses_at_most_the_memory_that_it_was_given(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk last = fill(4);
    assert_int_equal(trace_file.size, SETTINGS + 3 * MIB);
    for (uint64_t i = 0; i < 7; i++) {
        struct rb_vm_trace_chunk chunk = reserve(i % 2);
        release(&chunk);
    }
    assert_int_equal(trace_file.size, SETTINGS + 3 * MIB);
    release(&last);
    close_memory();
}

static void
program_that_closes_all_descriptors_goes_on_in_the_memory_that_is_there(void **state)
{
    (void)state;
    open_memory(8);
    struct rb_vm_trace_chunk first = reserve(0), second = reserve(1);
    release(&first);
    close(trace_file.fd);
    int other = open("/dev/null", O_RDWR); /* gets the number */
    assert_int_equal(other, trace_file.fd);
    first = reserve(0);
    assert_none();
    assert_int_equal(trace_file.size, SETTINGS + 2 * MIB);
    release(&first);
    release(&second);
    close_memory();
    assert_true(fcntl(other, F_GETFD) >= 0); /* it was not closed */
    close(other);
}

static void
freeze_keeps_the_newer_half_and_the_chunks_in_use(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk in_use = fill(8); /* 7 chunks: 0 to 5 idle, 6 in use */
    begin_snapshot(&in_use);
    assert_int_equal(snapshot.count, 7);
    assert_int_equal(snapshot.idle, 6);
    assert_int_equal(snapshot.older, 3);
    for (unsigned i = 0; i < 7; i++) assert_int_equal(number_of(snapshot.chunks[i].offset), i);
    assert_int_equal(snapshot.chunks[5].words, VM_TRACE_CHUNK_WORDS);
    assert_int_equal(snapshot.chunks[6].words, 100);

    struct rb_vm_trace_chunk a = reserve(0), b = reserve(1), c = reserve(2);
    assert_none();
    release(&in_use); /* which is frozen: nobody gets it */
    assert_none();
    release(&b);
    b = reserve(1);
    for (unsigned i = 0; i < 3; i++) assert_false(rb_vm_trace_memory_give_back(&trace_file, &snapshot, i)); /* they were used again */
    for (unsigned i = 3; i < 7; i++) assert_true(rb_vm_trace_memory_give_back(&trace_file, &snapshot, i));
    rb_vm_trace_memory_snapshot_end(&trace_file, &snapshot, 7);
    for (unsigned i = 3; i < 7; i++) {
        struct rb_vm_trace_chunk chunk = reserve(i);
        release(&chunk);
    }
    release(&a);
    release(&b);
    release(&c);
    close_memory();
}

static void
ring_that_can_grow_is_frozen_whole(void **state)
{
    (void)state;
    open_memory(8);
    struct rb_vm_trace_chunk chunks[4];
    for (unsigned i = 0; i < 4; i++) chunks[i] = reserve(i);
    for (unsigned i = 0; i < 3; i++) release(&chunks[i]);
    begin_snapshot(&chunks[3]);
    assert_int_equal(snapshot.count, 4);
    assert_int_equal(snapshot.older, 0);
    struct rb_vm_trace_chunk next = reserve(4); /* a new one */
    for (unsigned i = 0; i < 4; i++) assert_true(rb_vm_trace_memory_give_back(&trace_file, &snapshot, i));
    rb_vm_trace_memory_snapshot_end(&trace_file, &snapshot, 4);
    release(&next);
    release(&chunks[3]);
    close_memory();
}

/* One must stay when all that are in use are frozen, also if it is wanted by the only one that records. */
static void
ractors_chunks_of_their_own_leave_one_to_share_also_while_frozen(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk own = fill(4), other; /* 3 chunks: 0 and 1 idle, 2 in use */
    release(&own);
    assert_true(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own, false));
    assert_false(rb_vm_trace_chunk_file_reserve_own(&trace_file, &other, false)); /* of the two left one may be frozen while it is shared */
    assert_true(other.none_idle);
    begin_snapshot(&own);
    release(&own);
    assert_false(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own, false));
    struct rb_vm_trace_chunk shared;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &shared));
    release(&shared);
    rb_vm_trace_memory_snapshot_end(&trace_file, &snapshot, 0);
    assert_true(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own, false));
    release(&own);
    close_memory();
}

static void
chunks_that_are_given_back_are_older_than_those_written_meanwhile(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk in_use = fill(8);
    begin_snapshot(&in_use);
    struct rb_vm_trace_chunk chunk = reserve(0);
    release(&chunk); /* newer now than all that is frozen */
    assert_false(rb_vm_trace_memory_give_back(&trace_file, &snapshot, 0));
    for (unsigned i = 1; i < 5; i++) assert_true(rb_vm_trace_memory_give_back(&trace_file, &snapshot, i));
    rb_vm_trace_memory_snapshot_end(&trace_file, &snapshot, 5); /* a save that failed half-way */
    static const unsigned order[] = { 1, 2, 3, 4, 5, 0 };
    struct rb_vm_trace_chunk chunks[6];
    for (unsigned i = 0; i < 6; i++) chunks[i] = reserve(order[i]);
    assert_none(); /* the one in use still is */
    for (unsigned i = 0; i < 6; i++) release(&chunks[i]);
    release(&in_use);
    close_memory();
}

static void
chunk_in_use_that_is_idle_already_is_frozen_once(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk in_use = fill(4), stale = in_use;
    release(&in_use);
    begin_snapshot(&stale);
    assert_int_equal(snapshot.count, 3);
    assert_int_equal(snapshot.chunks[2].words, VM_TRACE_CHUNK_WORDS);
    rb_vm_trace_memory_snapshot_end(&trace_file, &snapshot, 0);
    close_memory();
}

/* Ask for a chunk ahead, and wait until the thread is done with that, and gone. Whether it made one. */
static bool
made_ahead(void)
{
    rb_vm_trace_chunk_file_preallocate(&trace_file);
    for (bool begun = false; !begun; usleep(100)) {
        pthread_mutex_lock(&trace_file.lock);
        begun = !trace_file.preallocator.wanted;
        pthread_mutex_unlock(&trace_file.lock);
    }
    pthread_mutex_lock(&trace_file.lock);
    rb_vm_trace_preallocator_stop(&trace_file.preallocator);
    bool made = trace_file.ready_count > 0;
    pthread_mutex_unlock(&trace_file.lock);
    return made;
}

/* Wait until the thread has made one. */
static void
wait_for_ready(void)
{
    for (bool ready = false; !ready; usleep(100)) {
        pthread_mutex_lock(&trace_file.lock);
        ready = trace_file.ready_count > 0;
        pthread_mutex_unlock(&trace_file.lock);
    }
}

static void
next_chunk_is_made_ahead_while_there_is_memory_to_come(void **state)
{
    (void)state;
    open_memory(4);
    struct rb_vm_trace_chunk a = reserve(0);
    rb_vm_trace_chunk_file_preallocate(&trace_file);
    wait_for_ready();
    assert_int_equal(trace_file.size, SETTINGS + 2 * MIB);
    struct rb_vm_trace_chunk b = reserve(1);
    for (size_t i = 0; i < VM_TRACE_CHUNK_WORDS; i += VM_TRACE_PAGE_WORDS) assert_true(b.words[i] == fxt_padding_header(VM_TRACE_PAGE_WORDS));
    release(&a);
    rb_vm_trace_chunk_file_preallocate(&trace_file);
    wait_for_ready();
    begin_snapshot(&b); /* neither idle nor in use: there is nothing in it */
    assert_int_equal(snapshot.count, 2);
    rb_vm_trace_memory_snapshot_end(&trace_file, &snapshot, 0);
    struct rb_vm_trace_chunk c = reserve(2);
    assert_int_equal(trace_file.size, SETTINGS + 3 * MIB);
    release(&b);
    release(&c);
    close_memory();
}

static void
oldest_chunk_is_made_fresh_ahead_and_is_no_part_of_what_is_frozen(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk in_use = fill(8), first = { .words = (uint64_t *)(trace_file.memory + SETTINGS) };
    first.words[0] = fxt_padding_header(1);
    first.words[1] = fxt_padding_header(511);
    rb_vm_trace_chunk_file_preallocate(&trace_file);
    wait_for_ready();
    assert_true(first.words[0] == fxt_padding_header(512));
    begin_snapshot(&in_use);
    assert_int_equal(snapshot.count, 6);
    assert_int_equal(number_of(snapshot.chunks[0].offset), 1);
    rb_vm_trace_memory_snapshot_end(&trace_file, &snapshot, 0);
    struct rb_vm_trace_chunk a = reserve(0), b = reserve(1);
    release(&a);
    release(&b);
    release(&in_use);
    close_memory();
}

static void
last_idle_chunk_is_not_taken_ahead(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk in_use = fill(4), a = reserve(0);
    assert_false(made_ahead());
    release(&a);
    assert_true(made_ahead()); /* now there are two */
    release(&in_use);
    close_memory();
}

static void
dump_has_all_that_is_there(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk in_use = fill(4);
    char *path = temp_path("dump.fxt");
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(rb_vm_trace_memory_dump(&trace_file, fd));
    close(fd);
    size_t bytes;
    uint8_t *data = read_bytes(path, &bytes);
    assert_int_equal(bytes, trace_file.size);
    assert_memory_equal(data, trace_file.memory, bytes);
    free(data);
    free(path);
    release(&in_use);
    close_memory();
}

static void
ring_goes_on_with_what_it_has_where_it_can_t_grow(void **state)
{
    (void)state;
    limit_file_size(3 * MIB);
    open_memory(8);
    struct rb_vm_trace_chunk a = reserve(0), b = reserve(1);
    assert_none();
    release(&a);
    a = reserve(0);
    begin_snapshot(&b);
    assert_none();
    rb_vm_trace_memory_snapshot_end(&trace_file, &snapshot, 0);
    release(&a);
    release(&b);
    close_memory();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(memory_is_a_file_without_a_name_that_nobody_can_cut),
        isolated_test(ring_uses_at_most_the_memory_that_it_was_given),
        isolated_test(program_that_closes_all_descriptors_goes_on_in_the_memory_that_is_there),
        isolated_test(freeze_keeps_the_newer_half_and_the_chunks_in_use),
        isolated_test(ring_that_can_grow_is_frozen_whole),
        isolated_test(ractors_chunks_of_their_own_leave_one_to_share_also_while_frozen),
        isolated_test(chunks_that_are_given_back_are_older_than_those_written_meanwhile),
        isolated_test(chunk_in_use_that_is_idle_already_is_frozen_once),
        isolated_test(next_chunk_is_made_ahead_while_there_is_memory_to_come),
        isolated_test(oldest_chunk_is_made_fresh_ahead_and_is_no_part_of_what_is_frozen),
        isolated_test(last_idle_chunk_is_not_taken_ahead),
        isolated_test(dump_has_all_that_is_there),
        isolated_test(ring_goes_on_with_what_it_has_where_it_can_t_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
