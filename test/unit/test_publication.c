/*
 * Records are whole for whoever sees them, while threads publish them: for readers of the file, who
 * go on to the first padding, and for snapshots, who go on to the writer's position.
 *
 * What a record says follows from its header: the body of string number n is the letter of n, all over.
 * On x86-64 a missing barrier is hardly seen, under an emulator that runs there neither; a store that
 * comes too early is.
 */
#include "harness.h"
#include "validate.h"
#include "vm_trace/store/writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, CHUNK_WORDS = CHUNK / 8, LARGEST = 4095, PID = 42 };
enum { WRITERS = 3, RECORDS = 30000, MOST_CHUNKS = 256 };

static struct rb_vm_trace_chunk_file trace_file = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static struct publisher {
    struct rb_vm_trace_writer writer;
    uint64_t chunk;          /* offset in the file of the writer's, for snapshots; bytes */
    pthread_t thread;
    unsigned random;
} publishers[WRITERS];
static int working;

static unsigned
string_index(uint64_t header)
{
    return (header >> 16) & 0x7FFF;
}

static uint64_t
body_word(unsigned index)
{
    return UINT64_C(0x0101010101010101) * ('a' + index % 26);
}

/* Mostly short records, some that go over pages. */
static size_t
next_size(struct publisher *own)
{
    unsigned number = (unsigned)rand_r(&own->random);
    if (number % 512 == 0) return LARGEST - number / 512 % 2000;
    return 2 + number / 512 % 60;
}

static bool
begin_chunk(struct publisher *own)
{
    if (!rb_vm_trace_writer_next_chunk(&own->writer)) return false;
    __atomic_store_n(&own->chunk, own->writer.chunk.offset, __ATOMIC_RELEASE);
    return true;
}

/* Now and then readers get the processor in the middle of it. */
static void
write_body(uint64_t *record, size_t words, unsigned index)
{
    for (size_t word = words - 1; word > 0; word--) {
        if (word == words / 2 && index % 64 == 0) sched_yield();
        record[word] = body_word(index);
    }
}

static void *
publish(void *argument)
{
    struct publisher *own = argument;
    const char *why = NULL;
    for (int i = 0; i < RECORDS && !why; i++) {
        size_t words = next_size(own);
        uint64_t *record = own->writer.next_string < 0x7FFF ? writer_reserve(&own->writer, words) : NULL;
        if (!record) {
            if (!begin_chunk(own)) why = "no more chunks";
            i--;
            continue;
        }
        unsigned index = own->writer.next_string++;
        write_body(record, words, index);
        writer_publish(&own->writer, words, fxt_string_header(index, (words - 1) * 8));
    }
    __atomic_fetch_sub(&working, 1, __ATOMIC_RELEASE);
    return (void *)why;
}

static bool
whole_p(const uint64_t *record, size_t words)
{
    uint64_t expected = body_word(string_index(record[0]));
    for (size_t word = 1; word < words; word++) {
        if (__atomic_load_n(record + word, __ATOMIC_RELAXED) != expected) return false;
    }
    return true;
}

/*
 * Read a chunk from word `at` to word `end`, or to the first padding where that comes first. The strings
 * that the writer defines itself, in the chunk's first page, are not looked at.
 */
static const char *
read_chunk(const uint64_t *chunk, size_t at, size_t end, bool padding_expected)
{
    while (at < end) {
        uint64_t header = __atomic_load_n(chunk + at, __ATOMIC_ACQUIRE);
        size_t words = header >> 4 & 0xFFF;
        if (header == 0 || fxt_padding_header(words) == header)
            return padding_expected ? NULL : "padding before the writer's position";
        if (words == 0 || at + words > CHUNK_WORDS) return "a record of no possible size";
        bool ours = (header & 0xF) == FXT_RECORD_STRING && words > 1 && (chunk[at + 1] & 0xFF) == (chunk[at + 1] >> 56);
        if (at >= 512 && !ours) return "a record begins with words of another";
        if (at >= 512 && !whole_p(chunk + at, words)) return "a record is visible in part";
        at += words;
    }
    return NULL;
}

/* The file as readers see it: a writer unmaps its chunk when it has another. */
static struct {
    int fd;
    const uint64_t *words;
} file;

static void *
read_file(void *nothing)
{
    const char *why = nothing;
    bool last = false;
    while (!why && !last) {
        last = __atomic_load_n(&working, __ATOMIC_ACQUIRE) == 0;
        struct stat status;
        if (fstat(file.fd, &status) != 0) return "no size";
        for (size_t chunk = 0; !why && chunk < (size_t)status.st_size / CHUNK; chunk++)
            why = read_chunk(file.words + chunk * CHUNK_WORDS, 0, CHUNK_WORDS, true);
    }
    return (void *)why;
}

/* As a snapshot. A position that is read while the writer changes chunks is that of the new one, or 0. */
static void *
read_positions(void *nothing)
{
    const char *why = nothing;
    while (!why && __atomic_load_n(&working, __ATOMIC_ACQUIRE) > 0) {
        for (int i = 0; !why && i < WRITERS; i++) {
            const struct publisher *publisher = &publishers[i];
            uint64_t chunk = __atomic_load_n(&publisher->chunk, __ATOMIC_ACQUIRE);
            size_t pos = __atomic_load_n(&publisher->writer.pos, __ATOMIC_ACQUIRE);
            if (__atomic_load_n(&publisher->chunk, __ATOMIC_ACQUIRE) == chunk)
                why = read_chunk(file.words + chunk / sizeof(uint64_t), 0, pos, false);
        }
    }
    return (void *)why;
}

static void
records_are_whole_while_threads_publish_them(void **state)
{
    char *path = temp_path("t.fxt");
    const char *fault = rb_vm_trace_chunk_file_open(&trace_file, path);
    if (fault) fail_msg("%s", fault);
    file.fd = open(path, O_RDONLY | O_CLOEXEC);
    void *words = mmap(NULL, (size_t)MOST_CHUNKS * CHUNK, PROT_READ, MAP_SHARED, file.fd, 0);
    assert_ptr_not_equal(words, MAP_FAILED);
    file.words = words;
    working = WRITERS;
    for (int i = 0; i < WRITERS; i++) {
        publishers[i].random = (unsigned)i + 1;
        rb_vm_trace_writer_init(&publishers[i].writer, &trace_file, PID);
        assert_true(begin_chunk(&publishers[i]));
    }
    pthread_t readers[2];
    assert_int_equal(pthread_create(&readers[0], NULL, read_file, NULL), 0);
    assert_int_equal(pthread_create(&readers[1], NULL, read_positions, NULL), 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&publishers[i].thread, NULL, publish, &publishers[i]), 0);
    for (int i = 0; i < WRITERS + 2; i++) {
        void *why;
        pthread_join(i < WRITERS ? publishers[i].thread : readers[i - WRITERS], &why);
        if (why) fail_msg("%s", (char *)why);
    }
    size_t preambles = 0;
    for (int i = 0; i < WRITERS; i++) {
        preambles += publishers[i].writer.serial;
        rb_vm_trace_writer_close(&publishers[i].writer);
        rb_vm_trace_writer_free(&publishers[i].writer);
    }
    assert_in_range(preambles, 2 * WRITERS, MOST_CHUNKS);
    rb_vm_trace_chunk_file_close(&trace_file);
    struct trace *trace = trace_read(path);
    assert_in_range(trace->string_count, WRITERS * RECORDS, SIZE_MAX);
    trace_free(trace);
    free(path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(records_are_whole_while_threads_publish_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
