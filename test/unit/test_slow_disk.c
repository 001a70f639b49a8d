/*
 * A disk that takes its time: nobody who holds the GVL waits for it longer than a moment.
 */
#define _GNU_SOURCE 1
#include "harness.h"
#include "vm_trace/session/session.h"
#include "vm_trace/store/chunk_file.h"
#include "vm_trace/platform/platform.h"
#include "vm_trace/streams/compiles/counters.h"
#include "traced.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, CHUNK = 1 << 20, CHUNK_WORDS = CHUNK / 8 };

/* --- instead of the C library's: a disk that can be stopped --- */

static pthread_mutex_t disk_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t disk_goes_on = PTHREAD_COND_INITIALIZER;
static bool stopped;
static unsigned waiting;            /* calls that the stopped disk holds up */
static __thread bool may_not_wait;  /* this thread stands for one that holds the GVL */
static unsigned wrong;              /* calls by such */

static void
use_disk(void)
{
    pthread_mutex_lock(&disk_lock);
    if (may_not_wait) wrong++;
    waiting++;
    while (stopped && !may_not_wait) pthread_cond_wait(&disk_goes_on, &disk_lock);
    waiting--;
    pthread_mutex_unlock(&disk_lock);
}

int
fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    use_disk();
    return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

ssize_t
writev(int fd, const struct iovec *pieces, int count)
{
    use_disk();
    return syscall(SYS_writev, fd, pieces, count);
}

int
ftruncate(int fd, off_t size)
{
    use_disk();
    return (int)syscall(SYS_ftruncate, fd, size);
}

ssize_t
pread(int fd, void *to, size_t bytes, off_t offset)
{
    use_disk();
    return syscall(SYS_pread64, fd, to, bytes, offset);
}

int
fstat(int fd, struct stat *st)
{
    use_disk();
    return fstatat(fd, "", st, AT_EMPTY_PATH);
}

int
fstatfs(int fd, struct statfs *disk)
{
    (void)fd;
    use_disk();
    *disk = (struct statfs){ .f_frsize = PAGE, .f_blocks = 1 << 30, .f_bavail = 1 << 29 };
    return 0;
}

static void
stop_disk(void)
{
    pthread_mutex_lock(&disk_lock);
    stopped = true;
    pthread_mutex_unlock(&disk_lock);
}

static void
start_disk(void)
{
    pthread_mutex_lock(&disk_lock);
    stopped = false;
    pthread_cond_broadcast(&disk_goes_on);
    pthread_mutex_unlock(&disk_lock);
}

static void
wait_until_held_up(void)
{
    for (bool held = false; !held; usleep(100)) {
        pthread_mutex_lock(&disk_lock);
        held = waiting > 0;
        pthread_mutex_unlock(&disk_lock);
    }
}

/*
 * How long a writer waits: as in a program, which shows that a disk that has stopped does not hold it up, or for
 * whatever this machine's disk is at, as the harness has it.
 */
static void
be_impatient(void)
{
    rb_vm_trace_chunk_file_wait_ns = CHUNK_FILE_WAIT_NS;
}

static void
be_patient(void)
{
    rb_vm_trace_chunk_file_wait_ns = INT64_C(60000000000);
}

/* --- the sink ------------------------------------------------------------------------------------ */

static struct rb_vm_trace_chunk_file trace_file = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* The disk is done when a writer asks for the state of the thread that uses it. */
static const char *
done_when_asked(const char *path)
{
    if (strncmp(path, "/proc/self/task/", 16) != 0) return path;
    start_disk();
    do usleep(20000); /* in which the thread also maps the chunk */
    while (__atomic_load_n(&trace_file.at_disk, __ATOMIC_ACQUIRE));
    return path;
}

static void
wait_until_so_many_ready(struct rb_vm_trace_chunk_file *of, size_t count)
{
    for (bool ready = false; !ready; usleep(100)) {
        pthread_mutex_lock(&of->lock);
        ready = of->ready_count >= count;
        pthread_mutex_unlock(&of->lock);
    }
}

static void
wait_until_ready(struct rb_vm_trace_chunk_file *of)
{
    wait_until_so_many_ready(of, 1);
}

static off_t
size_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_size;
}

/* A file with a first chunk, as a trace begins; what comes now is recorded. */
static char *
begin_recording(struct rb_vm_trace_chunk *first)
{
    char *path = temp_path("t.fxt");
    assert_null(rb_vm_trace_chunk_file_open(&trace_file, path));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, first));
    rb_vm_trace_chunk_file_recording(&trace_file, true);
    may_not_wait = true;
    return path;
}

/* That it returns at all is the point: the disk does not go on meanwhile. */
static void
writer_gives_up_and_gets_its_chunk_when_it_is_ready(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk first, next;
    char *path = begin_recording(&first);
    stop_disk();
    be_impatient();
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
    assert_false(next.none_idle);
    assert_true(trace_file.late);
    assert_int_equal(trace_file.error, 0);
    wait_until_held_up();
    for (int i = 0; i < 100000; i++) assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &next)); /* nor does any other wait */
    start_disk();
    wait_until_ready(&trace_file);
    assert_false(trace_file.late);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
    assert_int_equal(next.offset, CHUNK);
    assert_int_equal(wrong, 0);
    free(path);
}

static void *
start_disk_after_a_wait(void *unused)
{
    usleep(300000);
    start_disk();
    return unused;
}

/* Such as for the lock, or for other threads' page faults while it maps a chunk. */
static void
writer_does_not_give_up_while_the_thread_waits_for_something_else(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk first, next;
    pthread_t starter;
    char *path = begin_recording(&first);
    stop_disk();
    rb_vm_trace_chunk_file_preallocate(&trace_file);
    wait_until_held_up();
    assert_true(__atomic_load_n(&trace_file.at_disk, __ATOMIC_ACQUIRE));
    __atomic_store_n(&trace_file.at_disk, false, __ATOMIC_RELEASE);
    rb_vm_trace_chunk_file_wait_ns = 200000000; /* 40 times that, at most */
    assert_int_equal(pthread_create(&starter, NULL, start_disk_after_a_wait, NULL), 0);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
    assert_false(trace_file.late);
    assert_int_equal(pthread_join(starter, NULL), 0);
    assert_false(__atomic_load_n(&trace_file.at_disk, __ATOMIC_ACQUIRE));
    assert_int_equal(wrong, 0);
    free(path);
}

/* Then the thread waits for the lock, which the writer has while it looks. */
static void
writer_does_not_give_up_when_the_disk_is_done_while_it_looks(void **state)
{
    (void)state;
    if (!VM_TRACE_PLATFORM_LINUX) skip_because("POSIX does not tell what a thread does");
    struct rb_vm_trace_chunk first, next;
    char *path = begin_recording(&first);
    stop_disk();
    rb_vm_trace_chunk_file_preallocate(&trace_file);
    wait_until_held_up();
    path_to_open = done_when_asked;
    be_impatient();
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
    assert_false(trace_file.late);
    assert_int_equal(wrong, 0);
    free(path);
}

/* Nothing that is given back, asked for or looked at while events are recorded waits for the disk; the end does. */
static void
writers_touch_no_disk(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk first, own, shared;
    char *path = begin_recording(&first);
    assert_true(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own, false));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &shared));
    rb_vm_trace_chunk_file_preallocate(&trace_file);
    wait_until_so_many_ready(&trace_file, 3);
    stop_disk();
    assert_true(rb_vm_trace_chunk_file_sound_p(&trace_file));
    for (int i = 0; i < 3; i++) {
        rb_vm_trace_chunk_file_release(&trace_file, &first, 1);
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &first)); /* one that was made ahead */
    }
    rb_vm_trace_chunk_file_preallocate(&trace_file);
    wait_until_held_up();
    rb_vm_trace_chunk_file_release(&trace_file, &first, 1); /* the last of the file */
    rb_vm_trace_chunk_file_release(&trace_file, &own, 1);
    rb_vm_trace_chunk_file_release(&trace_file, &shared, 1);
    assert_true(rb_vm_trace_chunk_file_sound_p(&trace_file));
    assert_int_equal(wrong, 0);
    start_disk();
    may_not_wait = false;
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);
    rb_vm_trace_chunk_file_close(&trace_file);
    trace_free(trace_read(path));
    free(path);
}

/* So that the chunks behind it begin where a piece of the page cache does. */
static void
unused_end_of_the_last_chunk_stays_padding(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk first, own;
    char *path = begin_recording(&first);
    assert_true(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own, false));
    rb_vm_trace_chunk_file_release(&trace_file, &own, 1);
    assert_true(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own, false));
    assert_int_equal(own.offset, 2 * CHUNK);
    assert_int_equal(size_of(path), 4 * CHUNK);
    assert_int_equal(wrong, 0);
    free(path);
}

static void
error_of_the_disk_stops_the_file_as_ever(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk first, next;
    char *path = begin_recording(&first);
    limit_file_size(CHUNK);
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
    assert_int_equal(trace_file.error, EFBIG);
    assert_int_equal(trace_file.reason, EFBIG);
    assert_false(next.none_idle);
    assert_int_equal(wrong, 0);
    free(path);
}

static void
cut_file_is_seen_by_the_thread(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk first, next;
    char *path = begin_recording(&first);
    assert_int_equal(truncate(path, PAGE), 0);
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
    assert_int_equal(trace_file.error, CHUNK_FILE_CUT);
    assert_int_equal(wrong, 0);
    free(path);
}

/*
 * A file of at most four chunks that keeps its newest events, with the settings written and nothing
 * recorded yet. Returns its path.
 */
static char *
begin_small_ring(void)
{
    struct rb_vm_trace_chunk head;
    trace_file.max_bytes = 4 * CHUNK;
    trace_file.keep_newest = true;
    char *path = begin_recording(&head);
    may_not_wait = false;
    rb_vm_trace_chunk_file_recording(&trace_file, false);
    rb_vm_trace_chunk_file_release(&trace_file, &head, 512);
    rb_vm_trace_chunk_file_begin_ring(&trace_file);
    return path;
}

/* The thread may have the next chunk ready before the writer counts the event that it lost. */
static void
writer_remembers_that_the_disk_was_too_slow(void **state)
{
    (void)state;
    static struct rb_vm_trace_writer writer;
    struct rb_vm_trace_chunk first;
    char *path = begin_recording(&first);
    rb_vm_trace_writer_init(&writer, &trace_file, 1);
    stop_disk();
    be_impatient();
    assert_false(rb_vm_trace_writer_next_chunk(&writer));
    start_disk();
    wait_until_ready(&trace_file);
    assert_false(trace_file.late);
    assert_true(writer.late);
    assert_true(rb_vm_trace_writer_next_chunk(&writer));
    assert_false(writer.late);
    assert_int_equal(wrong, 0);
    free(path);
}

/* What is used again is mapped and made fresh by the thread, too, and not before a writer needs it. */
static void
limited_file_is_as_patient(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk chunk[4];
    char *path = begin_small_ring();
    rb_vm_trace_chunk_file_recording(&trace_file, true);
    may_not_wait = true;
    for (int i = 0; i < 3; i++) assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk[i]));
    for (int i = 0; i < 3; i++) rb_vm_trace_chunk_file_release(&trace_file, &chunk[i], CHUNK_WORDS);
    rb_vm_trace_chunk_file_preallocate(&trace_file);
    assert_int_equal(trace_file.idle_count, 3);
    be_impatient();
    stop_disk();
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk[0]));
    assert_true(trace_file.late);
    assert_false(chunk[0].none_idle);
    start_disk();
    be_patient();
    wait_until_ready(&trace_file);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk[0]));
    assert_int_equal(chunk[0].offset, PAGE);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk[1]));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk[2]));
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk[3]));
    assert_true(chunk[3].none_idle);
    rb_vm_trace_chunk_file_release(&trace_file, &chunk[1], CHUNK_WORDS);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk[3]));
    assert_int_equal(chunk[3].offset, PAGE + CHUNK);
    assert_int_equal(wrong, 0);
    free(path);
}

/* Made for a writer that waited no longer, and not wanted any more: it is a chunk of the file like those around it. */
static void
chunk_that_was_made_fresh_for_nobody_stays_in_the_file(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk chunk[3];
    char *path = begin_small_ring();
    for (int i = 0; i < 3; i++) assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk[i]));
    for (int i = 0; i < 3; i++) rb_vm_trace_chunk_file_release(&trace_file, &chunk[i], CHUNK_WORDS);
    rb_vm_trace_chunk_file_recording(&trace_file, true);
    stop_disk();
    be_impatient();
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk[0]));
    start_disk();
    wait_until_ready(&trace_file);
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);
    assert_int_equal(size_of(path), PAGE + 3 * CHUNK);
    assert_int_equal(trace_file.idle_count, 3);
    free(path);
}

static void
child_of_a_fork_has_nothing_of_what_the_thread_was_making(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip_because("ThreadSanitizer knows no threads in the child of a process that had some");
#endif
    struct rb_vm_trace_chunk first, next;
    char *path = begin_recording(&first);
    stop_disk();
    be_impatient();
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
    wait_until_held_up();
    pthread_mutex_lock(&trace_file.lock); /* not held by the thread, or this would wait for the disk */
    pid_t child = fork();
    if (child == 0) {
        rb_vm_trace_chunk_file_after_fork(&trace_file);
        pthread_mutex_unlock(&trace_file.lock);
        pthread_mutex_init(&disk_lock, NULL);
        may_not_wait = stopped = false;
        be_patient();
        char *own = temp_path("u.fxt");
        assert_null(rb_vm_trace_chunk_file_open(&trace_file, own));
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
        rb_vm_trace_chunk_file_recording(&trace_file, true);
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
        rb_vm_trace_chunk_file_close(&trace_file);
        _exit(0);
    }
    pthread_mutex_unlock(&trace_file.lock);
    wait_for(child);
    start_disk();
    wait_until_ready(&trace_file);
    assert_int_equal(wrong, 0);
    free(path);
}

/* Then there is nobody else to wait for the disk. */
static void
without_a_thread_chunks_are_made_as_they_are_needed(void **state)
{
    (void)state;
    struct rb_vm_trace_chunk first, next;
    char *path = begin_recording(&first);
    trace_file.preallocator.refused = true;
    may_not_wait = false;
    for (int i = 1; i < 5; i++) {
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
        assert_int_equal(next.offset, i * CHUNK);
    }
    free(path);
}

/* --- a traced program ---------------------------------------------------------------------------- */

static struct rb_iseq_struct foo;

static void
exits_go_on_and_what_was_lost_is_counted(void **state)
{
    (void)state;
    enum { EXITS = 200000 };
    foo = fake_iseq("foo", "a.rb");
    start_traced(.exit_rate = 1);
    fake_push(&main_thread, &foo, 1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    take_exit(site, &main_thread);
    stop_disk();
    be_impatient();
    may_not_wait = true;
    for (unsigned i = 1; i < EXITS; i++) take_exit(site, &main_thread);
    uint64_t lost = main_ractor.vm_trace->lost;
    assert_true(lost > 0 && main_ractor.vm_trace->late == lost);
    struct rb_vm_trace_status status;
    rb_vm_trace_status(&status);
    assert_non_null(strstr(status.loss, "the disk was too slow"));
    start_disk();
    wait_until_ready(&rb_vm_trace_capture.file);
    be_patient();
    for (unsigned i = 0; i < EXITS; i++) take_exit(site, &main_thread); /* all of these are recorded */
    assert_int_equal(main_ractor.vm_trace->lost, lost);
    assert_int_equal(wrong, 0);
    may_not_wait = false;
    struct trace *trace = finish_traced();
    assert_summary(trace, 2 * EXITS, 2 * EXITS - lost, lost);
    assert_int_equal(trace_count(trace, "trace", "loss"), 1);
    assert_int_equal(trace_number(trace_event(trace, "trace", "loss", 0), "lost"), lost);
    assert_non_null(strstr(trace_text(trace_event(trace, "trace", "loss", 0), "reason"), "the disk was too slow"));
    trace_free(trace);
}

/* Leave room for so many words in the first chunk for which none is made ahead. */
static void
leave_room(struct rb_vm_trace_writer *writer, const struct rb_vm_trace_site *site, size_t words)
{
    while (rb_vm_trace_capture.file.ready_count > 0 || writer->limit - writer->pos > 256 + words)
        take_exit(site, &main_thread);
    size_t rest = writer->limit - writer->pos - words;
    assert_non_null(writer_reserve(writer, rest));
    writer_publish(writer, rest, fxt_padding_header(rest));
}

static void *
start_disk_later(void *unused)
{
    wait_until_held_up();
    usleep(20000);
    start_disk();
    return unused;
}

static void
samples_of_exits_are_in_order_around_a_chunk_that_was_waited_for(void **state)
{
    (void)state;
    enum { COUNTS = 5 + 7 };
    pthread_t starter;
    foo = fake_iseq("foo", "a.rb");
    start_traced(.exit_rate = 1, .compiles = true);
    fake_push(&main_thread, &foo, 1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    struct rb_vm_trace_ractor *ractor = main_ractor.vm_trace;
    take_exit(site, &main_thread);
    rb_vm_trace_counters_write(ractor, &main_thread); /* the first sample begins, at the latest */
    stop_disk();
    leave_room(&ractor->writer, site, COUNTS);
    usleep(20000); /* a sample is due */
    assert_int_equal(pthread_create(&starter, NULL, start_disk_later, NULL), 0);
    rb_vm_trace_counters_write(ractor, &main_thread);
    assert_int_equal(pthread_join(starter, NULL), 0);
    assert_int_equal(ractor->lost, 0);
    struct trace *trace = finish_traced();
    size_t samples = trace_count(trace, "counter", "exits");
    assert_true(samples > 0);
    uint64_t last_ns = 0;
    for (size_t i = 0; i < samples; i++) {
        const struct trace_event *sample = trace_event(trace, "counter", "exits", i);
        assert_true(sample->ns > last_ns);
        assert_true(trace_number(sample, "per_second") > 0);
        last_ns = sample->ns;
    }
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(writer_gives_up_and_gets_its_chunk_when_it_is_ready),
        isolated_test(writer_does_not_give_up_while_the_thread_waits_for_something_else),
        isolated_test(writer_does_not_give_up_when_the_disk_is_done_while_it_looks),
        isolated_test(writers_touch_no_disk),
        isolated_test(unused_end_of_the_last_chunk_stays_padding),
        isolated_test(error_of_the_disk_stops_the_file_as_ever),
        isolated_test(cut_file_is_seen_by_the_thread),
        isolated_test(writer_remembers_that_the_disk_was_too_slow),
        isolated_test(limited_file_is_as_patient),
        isolated_test(chunk_that_was_made_fresh_for_nobody_stays_in_the_file),
        isolated_test(child_of_a_fork_has_nothing_of_what_the_thread_was_making),
        isolated_test(without_a_thread_chunks_are_made_as_they_are_needed),
        isolated_test(exits_go_on_and_what_was_lost_is_counted),
        isolated_test(samples_of_exits_are_in_order_around_a_chunk_that_was_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
