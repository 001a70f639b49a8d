/*
 * The trace file: how it is made, grown and given back.
 */
#define _GNU_SOURCE 1 /* F_GETFD and the like */
#include "harness.h"
#include "vm_trace/store/chunk_file.h"
#include "vm_trace/platform/platform.h"
#include "validate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, CHUNK = 1 << 20, CHUNK_WORDS = CHUNK / 8 };
static const uint64_t MAGIC = 0x0016547846040010;

static struct rb_vm_trace_chunk_file trace_file = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static char *
open_sink(const char *name)
{
    char *path = temp_path(name);
    const char *why = rb_vm_trace_chunk_file_open(&trace_file, path);
    if (why) fail_msg("%s: %s", path, why);
    return path;
}

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void
assert_text(const char *path, const char *text)
{
    size_t bytes;
    uint8_t *data = read_bytes(path, &bytes);
    assert_int_equal(bytes, strlen(text));
    assert_memory_equal(data, text, bytes);
    free(data);
}

static off_t
size_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_size;
}

static void
assert_refused(const char *path, const char *reason)
{
    const char *why = rb_vm_trace_chunk_file_open(&trace_file, path);
    assert_non_null(why);
    assert_non_null(strstr(why, reason));
    assert_int_equal(trace_file.fd, -1);
}

/* A record of `words` at `at` which a reader passes over, so that a chunk can be told from a fresh one. */
static void
put_string(uint64_t *at, unsigned index, size_t words)
{
    memset(at + 1, 'x', (words - 1) * 8);
    at[0] = 2 | (uint64_t)words << 4 | (uint64_t)index << 16 | (uint64_t)(words - 1) * 8 << 32;
}

static void
put_provider(uint64_t *at)
{
    at[0] = 0x0010000000110020;
    at[1] = 'p';
}

/* What a chunk begins with before its first event: provider, clock, thread 1, string 1. */
enum { PREAMBLE = 9 };
static void
put_preamble(uint64_t *at)
{
    put_provider(at);
    at[2] = 0x21;
    at[3] = 1000000000;
    at[4] = 0x0000000000010033;
    at[5] = at[6] = 42;
    at[7] = 0x0000000100010022;
    at[8] = 'e';
}

static void
put_event(uint64_t *at)
{
    at[1] = 1;
    at[0] = 0x0001000101000024;
}

/* --- opening ----------------------------------------------------------------------------------- */

static void
file_is_made_for_its_owner_alone(void **state)
{
    (void)state;
    umask(0);
    char *path = open_sink("t.fxt");
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0600);
    free(path);
}

static void
file_is_closed_by_exec(void **state)
{
    (void)state;
    free(open_sink("t.fxt"));
    assert_true(fcntl(trace_file.fd, F_GETFD) & FD_CLOEXEC);
}

static void
stale_file_of_ones_own_is_replaced_by_another_file(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt"), *other_name = temp_path("other");
    write_file(path, "stale");
    assert_int_equal(link(path, other_name), 0);
    free(open_sink("t.fxt"));
    assert_int_equal(size_of(path), 0);
    assert_text(other_name, "stale"); /* not truncated and written over: that may be a file of value */
    free(path);
    free(other_name);
}

static void
link_is_not_followed_and_its_target_is_untouched(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt"), *target = temp_path("target");
    write_file(target, "precious");
    assert_int_equal(symlink(target, path), 0);
    assert_refused(path, "not a regular file");
    assert_text(target, "precious");
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode)); /* and the link stays */
    free(path);
    free(target);
}

static void
link_to_nowhere_makes_no_file_there(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt"), *target = temp_path("target");
    assert_int_equal(symlink(target, path), 0);
    assert_refused(path, "not a regular file");
    assert_int_equal(access(target, F_OK), -1);
    free(path);
    free(target);
}

static void
folder_is_refused(void **state)
{
    (void)state;
    assert_refused(temp_folder(), "not a regular file");
}

static void
fifo_is_refused_without_waiting_for_a_reader(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, "not a regular file");
    assert_int_equal(access(path, F_OK), 0);
    free(path);
}

/* A device of the test's own: were the check broken, it would be removed. */
static void
device_is_refused_and_stays(void **state)
{
    (void)state;
    char *path = temp_path("null");
    if (mknod(path, S_IFCHR | 0666, makedev(1, 3)) != 0) skip_because("only root can make a device");
    assert_refused(path, "not a regular file");
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    free(path);
}

static void
missing_folder_is_named_as_the_system_does(void **state)
{
    (void)state;
    char *path = temp_path("none/t.fxt");
    assert_refused(path, strerror(ENOENT));
    free(path);
}

static void
file_of_another_user_is_refused_and_stays(void **state)
{
    (void)state;
    if (geteuid() != 0) skip_because("only root can make a file of another user");
    char *path = temp_path("t.fxt");
    write_file(path, "theirs");
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_refused(path, "another user");
    assert_text(path, "theirs");
    free(path);
}

static void
file_that_cannot_be_removed_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) skip_because("only root can become another user");
    char *path = temp_path("t.fxt");
    write_file(path, "mine");
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(chmod(temp_folder(), 0555), 0); /* root's folder: nobody may not unlink in it */
    assert_int_equal(seteuid(65534), 0);
    assert_refused(path, strerror(EACCES));
    assert_int_equal(seteuid(0), 0);
    assert_text(path, "mine");
    free(path);
}

/* A folder like /tmp: others put things there under the name that we are about to take. */
static void
traps_in_a_folder_like_tmp_are_refused_and_touch_nothing(void **state)
{
    (void)state;
    enum { OURS = 65534, THEIRS = 65533 };
    if (geteuid() != 0) skip_because("only root can become two other users");
    char *precious = temp_path("precious"), *path = temp_path("tmp/perfetto-1.fxt"), *folder = temp_path("tmp");
    write_file(precious, "ours");
    assert_int_equal(chown(precious, OURS, OURS), 0);
    assert_int_equal(chmod(temp_folder(), 0777), 0);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(chmod(folder, 01777), 0);

    assert_int_equal(seteuid(THEIRS), 0); /* a link to what only we may write */
    assert_int_equal(symlink(precious, path), 0);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(seteuid(OURS), 0);
    assert_refused(path, "not a regular file");
    assert_int_equal(seteuid(0), 0);
    assert_text(precious, "ours");
    assert_int_equal(unlink(path), 0);

    assert_int_equal(seteuid(THEIRS), 0); /* a file that they could go on reading */
    write_file(path, "theirs");
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(seteuid(OURS), 0);
    assert_refused(path, "another user");
    assert_int_equal(seteuid(0), 0);
    assert_text(path, "theirs");
    assert_int_equal(unlink(path), 0);

    assert_int_equal(link(precious, path), 0); /* a second name of ours: the name goes, the file stays */
    assert_int_equal(seteuid(OURS), 0);
    assert_null(rb_vm_trace_chunk_file_open(&trace_file, path));
    assert_int_equal(seteuid(0), 0);
    assert_text(precious, "ours");
    free(precious);
    free(path);
    free(folder);
}

/* A failed start removes what it made, and only that. */
static void
discard_removes_its_own_file_only(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    rb_vm_trace_chunk_file_discard(&trace_file, path);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(trace_file.fd, -1);
    free(open_sink("t.fxt"));
    assert_int_equal(unlink(path), 0);
    write_file(path, "another");
    rb_vm_trace_chunk_file_discard(&trace_file, path);
    assert_text(path, "another");
    free(path);
}

/* --- chunks ---------------------------------------------------------------------------------------- */

static void
fresh_chunk_is_padding_a_record_a_page(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_int_equal(chunk.first, 1);
    assert_int_equal(chunk.offset, 0);
    assert_true(chunk.words[0] == MAGIC);
    assert_true(chunk.words[1] == 0x1FF2); /* 511 words */
    for (size_t i = 2; i < CHUNK_WORDS; i++) {
        uint64_t expected = i % 512 == 0 ? 0x2002 : 0; /* 512 words */
        if (chunk.words[i] != expected) fail_msg("word %zu is %llx", i, (unsigned long long)chunk.words[i]);
    }
    size_t bytes;
    uint8_t *data = read_bytes(path, &bytes);
    assert_int_equal(bytes, CHUNK);
    assert_memory_equal(data, chunk.words, bytes);
    free(data);
    struct trace *trace = trace_read(path);
    assert_int_equal(trace->padding_words, CHUNK_WORDS - 1);
    assert_int_equal(trace->record_count, 0);
    trace_free(trace);
    free(path);
}

/* What a kill in the middle of the write leaves: the kernel cuts it at pages. */
static void
every_page_of_a_fresh_chunk_is_a_place_to_end(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    size_t bytes;
    uint8_t *data = read_bytes(path, &bytes);
    assert_int_equal(bytes, 2 * CHUNK);
    for (size_t cut = PAGE; cut <= bytes; cut += PAGE) {
        struct trace *trace = trace_decode(data, cut, TRACE_FILE);
        assert_string_equal(trace->fault, "");
        trace_free(trace);
    }
    free(data);
    free(path);
}

static void
chunks_follow_each_other_without_a_gap(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk a, b, c;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &c));
    assert_int_equal(b.offset, CHUNK);
    assert_int_equal(b.first, 0);
    assert_int_equal(c.offset, 2 * CHUNK);
    b.words[0] = 0x1234; /* marks that show at their place in the file */
    c.words[0] = 0x5678;
    size_t bytes;
    uint8_t *data = read_bytes(path, &bytes);
    assert_int_equal(bytes, 3 * CHUNK);
    assert_true(((uint64_t *)data)[CHUNK_WORDS] == 0x1234);
    assert_true(((uint64_t *)data)[2 * CHUNK_WORDS] == 0x5678);
    free(data);
    free(path);
}

static void
release_of_the_last_chunk_trims_to_a_page(void **state)
{
    (void)state;
    static const struct { size_t used, bytes; } cases[] = {
        { 1, PAGE }, { 511, PAGE }, { 512, PAGE }, { 513, 2 * PAGE }, { CHUNK_WORDS - 1, CHUNK }, { CHUNK_WORDS, CHUNK }
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *path = open_sink("t.fxt");
        struct rb_vm_trace_chunk chunk;
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
        rb_vm_trace_chunk_file_release(&trace_file, &chunk, cases[i].used);
        assert_null(chunk.words);
        assert_int_equal(size_of(path), cases[i].bytes);
        trace_free(trace_read(path));
        rb_vm_trace_chunk_file_close(&trace_file);
        free(path);
    }
}

static void
next_chunk_stands_where_the_last_one_was_trimmed(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk a, b;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    put_provider(a.words + 1);
    put_string(a.words + 3, 1, 509);
    put_string(a.words + 512, 2, 512);
    rb_vm_trace_chunk_file_release(&trace_file, &a, 1024);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    assert_int_equal(b.offset, 2 * PAGE);
    assert_int_equal(b.first, 0);
    assert_int_equal(size_of(path), 2 * PAGE + CHUNK);
    put_string(b.words, 3, 512);
    rb_vm_trace_chunk_file_release(&trace_file, &b, 512);
    assert_int_equal(size_of(path), 3 * PAGE);
    struct trace *trace = trace_read(path);
    assert_int_equal(trace->string_count, 3);
    assert_int_equal(trace->padding_words, 0);
    trace_free(trace);
    free(path);
}

/* As on a system with such pages, where no chunk can be mapped in the middle of one. */
static void
next_chunk_begins_at_a_page_of_the_system(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    enum { SYSTEM_PAGE = 1 << 16 };
    rb_vm_trace_chunk_file_page_bytes = SYSTEM_PAGE;
    struct rb_vm_trace_chunk chunk;
    for (uint64_t n = 0; n < 3; n++) {
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
        assert_int_equal(chunk.offset, n * SYSTEM_PAGE);
        put_provider(chunk.words + chunk.first);
        put_string(chunk.words + chunk.first + 2, 1, 512 - chunk.first - 2);
        rb_vm_trace_chunk_file_release(&trace_file, &chunk, 512);
        assert_int_equal(size_of(path), n * SYSTEM_PAGE + PAGE);
    }
    struct trace *trace = trace_read(path);
    assert_int_equal(trace->chunk_count, 3);
    trace_free(trace);
    free(path);
}

static void
release_of_an_inner_chunk_keeps_the_size(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk a, b;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    put_provider(b.words);
    put_string(b.words + 2, 1, 510);
    rb_vm_trace_chunk_file_release(&trace_file, &a, 3);
    assert_null(a.words);
    assert_int_equal(size_of(path), 2 * CHUNK);
    rb_vm_trace_chunk_file_release(&trace_file, &b, 512);
    assert_int_equal(size_of(path), CHUNK + PAGE);
    struct trace *trace = trace_read(path);
    assert_int_equal(trace->chunk_count, 1);
    trace_free(trace);
    free(path);
}

static void
release_of_nothing_does_nothing(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunk = { 0 };
    rb_vm_trace_chunk_file_release(&trace_file, &chunk, 0);
    rb_vm_trace_chunk_drop(&chunk);
    assert_int_equal(size_of(path), 0);
    free(path);
}

static void
dropped_chunk_leaves_the_file_as_it_is(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    put_provider(chunk.words + 1);
    put_string(chunk.words + 3, 1, 509);
    size_t bytes, bytes_after;
    uint8_t *before = read_bytes(path, &bytes);
    rb_vm_trace_chunk_drop(&chunk);
    assert_null(chunk.words);
    uint8_t *after = read_bytes(path, &bytes_after);
    assert_int_equal(bytes_after, CHUNK);
    assert_memory_equal(before, after, bytes);
    free(before);
    free(after);
    free(path);
}

static void
mapped_chunk_is_usable_after_the_close(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    rb_vm_trace_chunk_file_close(&trace_file);
    assert_int_equal(trace_file.fd, -1);
    put_provider(chunk.words + 1);
    put_string(chunk.words + 3, 1, 509);
    rb_vm_trace_chunk_file_release(&trace_file, &chunk, 512);
    struct trace *trace = trace_read(path);
    assert_int_equal(trace->string_count, 1);
    trace_free(trace);
    free(path);
}

static void
closed_sink_has_no_more_chunks(void **state)
{
    (void)state;
    free(open_sink("t.fxt"));
    rb_vm_trace_chunk_file_close(&trace_file);
    struct rb_vm_trace_chunk chunk;
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    rb_vm_trace_chunk_file_close(&trace_file);
}

/* --- what goes wrong ------------------------------------------------------------------------------- */

static void
limit_of_the_file_size_is_an_error_and_no_signal(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    limit_file_size(2 * CHUNK + CHUNK / 2);
    struct rb_vm_trace_chunk a, b, c;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    assert_int_equal(trace_file.error, 0);
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &c)); /* SIGXFSZ would end this process */
    assert_int_equal(trace_file.error, EFBIG);
    assert_int_equal(size_of(path), 2 * CHUNK);
    trace_free(trace_read(path));
    free(path);
}

static void
chunk_that_ends_at_the_limit_is_had(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    limit_file_size(CHUNK);
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_int_equal(size_of(path), CHUNK);
    free(path);
}

static void
error_stays_until_another_file_is_opened(void **state)
{
    (void)state;
    free(open_sink("t.fxt"));
    limit_file_size(CHUNK / 2);
    struct rb_vm_trace_chunk chunk;
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    limit_file_size(10 * CHUNK);
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_int_equal(trace_file.error, EFBIG);
    rb_vm_trace_chunk_file_close(&trace_file);
    free(open_sink("u.fxt"));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_int_equal(trace_file.error, 0);
}

static void
full_disk_is_an_error_and_the_file_stays_valid(void **state)
{
    (void)state;
    char *disk = temp_path("disk");
    assert_int_equal(mkdir(disk, 0777), 0);
    mount_small_disk(disk, 2 * CHUNK + CHUNK / 2);
    char *path = open_sink("disk/t.fxt");
    struct rb_vm_trace_chunk a, b, c;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &c));
    assert_int_equal(trace_file.error, ENOSPC);
    assert_int_equal(size_of(path), 2 * CHUNK);

    /* All of what was reserved can be written: no SIGBUS. */
    put_provider(a.words + 1);
    memset(a.words + 3, 'x', CHUNK - 24);
    put_provider(b.words);
    memset(b.words + 2, 'x', CHUNK - 16);
    for (size_t i = 512; i < CHUNK_WORDS; i += 512) put_string(a.words + i, 10 + (unsigned)(i / 512), 512);
    put_string(a.words + 3, 1, 509);
    for (size_t i = 512; i < CHUNK_WORDS; i += 512) put_string(b.words + i, 10 + (unsigned)(i / 512), 512);
    put_string(b.words + 2, 1, 510);
    struct trace *trace = trace_read(path);
    assert_int_equal(trace->string_count, 512);
    trace_free(trace);
    free(path);
    free(disk);
}

static void
disk_that_others_filled_is_an_error_and_the_size_stays(void **state)
{
    (void)state;
    char *disk = temp_path("disk"), *other = temp_path("disk/other");
    assert_int_equal(mkdir(disk, 0777), 0);
    mount_small_disk(disk, 3 * CHUNK);
    char *path = open_sink("disk/t.fxt");
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    FILE *file = fopen(other, "w");
    char block[PAGE] = "x";
    for (int i = 0; i < 300; i++) assert_int_equal(fwrite(block, 1, PAGE, file), PAGE);
    fclose(file);
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_int_equal(trace_file.error, ENOSPC);
    assert_int_equal(size_of(path), CHUNK);
    trace_free(trace_read(path));
    free(path);
    free(other);
    free(disk);
}

/* Daemons close what they don't know, and their next file has our number. */
static void
descriptor_that_became_another_file_is_never_touched(void **state)
{
    (void)state;
    free(open_sink("t.fxt"));
    struct rb_vm_trace_chunk a, b;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    char *other = temp_path("log");
    write_file(other, "lines of a log");
    close(trace_file.fd);
    assert_int_equal(open(other, O_RDWR), trace_file.fd);

    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    assert_int_equal(trace_file.error, EBADF);
    rb_vm_trace_chunk_file_release(&trace_file, &a, 1);
    int fd = trace_file.fd;
    rb_vm_trace_chunk_file_close(&trace_file);
    assert_int_not_equal(fcntl(fd, F_GETFD), -1); /* still open */
    assert_text(other, "lines of a log");
    free(other);
}

/* --- what others do to the file -------------------------------------------------------------------- */

static struct rb_vm_trace_chunk faulting;
static volatile sig_atomic_t faults;
static uint64_t size_from_then_on; /* not 0: what the sink takes the file's size for */

static void
on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    faults++;
    if (size_from_then_on) trace_file.size = size_from_then_on;
    if (!rb_vm_trace_chunk_file_fault(&trace_file, &faulting, info->si_addr)) _exit(99);
}

static void
handle_faults(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGBUS, &action, NULL);
}

static void
chunk_that_was_cut_off_takes_words_that_go_nowhere(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    handle_faults();
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &faulting));
    put_provider(faulting.words + 1);
    assert_int_equal(truncate(path, 0), 0);
    for (size_t i = 0; i < CHUNK_WORDS; i += 100) faulting.words[i] = i;
    for (size_t i = 0; i < CHUNK_WORDS; i += 100) assert_int_equal(faulting.words[i], i);
    assert_int_equal(faults, 1);
    assert_int_equal(size_of(path), 0);
    rb_vm_trace_chunk_file_release(&trace_file, &faulting, 512); /* nor does it get its size back, as zeros */
    assert_int_equal(size_of(path), 0);
    free(path);
}

static void
address_outside_of_the_chunk_is_not_ours(void **state)
{
    (void)state;
    free(open_sink("t.fxt"));
    struct rb_vm_trace_chunk chunk, none = { 0 };
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_false(rb_vm_trace_chunk_file_fault(&trace_file, &chunk, (char *)chunk.words - 1));
    assert_false(rb_vm_trace_chunk_file_fault(&trace_file, &chunk, (char *)chunk.words + CHUNK));
    assert_false(rb_vm_trace_chunk_file_fault(&trace_file, &none, NULL));
    assert_false(rb_vm_trace_chunk_file_fault(&trace_file, NULL, chunk.words));
    assert_true(chunk.words[1] == 0x1FF2); /* untouched */
    assert_true(rb_vm_trace_chunk_file_fault(&trace_file, &chunk, (char *)chunk.words + CHUNK - 1));
}

static void
cut_is_seen_at_the_next_chunk(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk a, b;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    assert_int_equal(truncate(path, CHUNK / 2), 0);
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    assert_int_equal(trace_file.error, CHUNK_FILE_CUT);
    assert_int_equal(size_of(path), CHUNK / 2);
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), CHUNK_FILE_CUT);
    free(path);
}

static void
removal_is_seen_at_the_next_chunk_and_at_the_end(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk a, b;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), CHUNK_FILE_REMOVED);
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    assert_int_equal(trace_file.error, CHUNK_FILE_REMOVED);
    struct vm_trace_counts left;
    assert_false(rb_vm_trace_chunk_file_mend(&trace_file, &left));
    free(path);
}

static void
renamed_file_is_still_the_file(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt"), *other = temp_path("u.fxt");
    struct rb_vm_trace_chunk chunk;
    assert_int_equal(rename(path, other), 0);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_int_equal(size_of(other), CHUNK);
    free(path);
    free(other);
}

/* Between the look at the file and the write: bytes are appended, so that no hole of zeros comes to be. */
static void
write_into_a_file_that_was_just_cut_leaves_no_hole(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_true(fcntl(trace_file.fd, F_GETFL) & O_APPEND);
    assert_int_equal(truncate(path, PAGE), 0);
    uint64_t word = 0x12; /* one word of padding */
    assert_int_equal(pwrite(trace_file.fd, &word, 8, CHUNK), 8);
    assert_int_equal(size_of(path), PAGE + 8);
    free(path);
}

/* Two chunks of records of a page: an event and a text. Cut at any place, whole records are what is left. */
static void
cut_file_is_mended_to_whole_records(void **state)
{
    (void)state;
    static const struct { off_t cut; size_t size, events; } cases[] = {
        { 0, 0, 0 }, { 8, 0, 0 }, { 7, 0, 0 }, { 100, PAGE, 1 }, { PAGE - 8, PAGE, 1 }, { PAGE, PAGE, 1 },
        { PAGE + 8, PAGE, 1 }, { PAGE + 16, 2 * PAGE, 2 }, { CHUNK - 8, CHUNK, 256 }, { CHUNK, CHUNK, 256 },
        { CHUNK + 15, CHUNK, 256 }, { CHUNK + 87, CHUNK + PAGE, 256 }, { CHUNK + 88, CHUNK + PAGE, 257 }, { 2 * CHUNK - 1, 2 * CHUNK, 512 }
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *path = open_sink("t.fxt");
        for (int chunk_number = 0; chunk_number < 2; chunk_number++) {
            struct rb_vm_trace_chunk chunk;
            assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
            for (size_t page = 0; page < CHUNK_WORDS; page += 512) {
                uint64_t *at = chunk.words + page;
                size_t words = 512;
                if (page == 0 && chunk_number == 0) at++, words--;
                if (page == 0) put_preamble(at), at += PREAMBLE, words -= PREAMBLE;
                put_event(at);
                put_string(at + 2, 2 + (unsigned)(page / 512), words - 2);
            }
            rb_vm_trace_chunk_file_release(&trace_file, &chunk, CHUNK_WORDS);
        }
        assert_int_equal(truncate(path, cases[i].cut), 0);
        assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), CHUNK_FILE_CUT);
        struct vm_trace_counts left;
        assert_true(rb_vm_trace_chunk_file_mend(&trace_file, &left));
        assert_int_equal(left.events, cases[i].events);
        assert_int_equal(size_of(path), cases[i].size);
        assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);

        struct rb_vm_trace_chunk next; /* and it goes on from there */
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
        assert_int_equal(next.offset, cases[i].size);
        assert_int_equal(next.first, cases[i].size == 0);
        rb_vm_trace_chunk_file_release(&trace_file, &next, 512);
        rb_vm_trace_chunk_file_close(&trace_file);
        struct trace *trace = trace_read(path);
        assert_int_equal(trace->event_count, cases[i].events);
        trace_free(trace);
        free(path);
    }
}

static void
file_with_a_hole_is_mended_up_to_there(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    put_preamble(chunk.words + 1);
    put_event(chunk.words + 1 + PREAMBLE);
    put_string(chunk.words + 12, 2, 500);
    rb_vm_trace_chunk_file_release(&trace_file, &chunk, CHUNK_WORDS);
    assert_int_equal(truncate(path, PAGE), 0);
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), CHUNK_FILE_CUT);
    assert_int_equal(truncate(path, CHUNK / 2), 0); /* longer again, with zeros */
    struct vm_trace_counts left;
    assert_true(rb_vm_trace_chunk_file_mend(&trace_file, &left));
    assert_int_equal(left.events, 1);
    assert_int_equal(size_of(path), PAGE);
    trace_free(trace_read(path));
    free(path);
}

/* Instead of the C library's: what others do between two calls. */
static const char *cut_path; /* to be cut to cut_to bytes just before the next ftruncate */
static off_t cut_to;
static int fstat_error;

int
ftruncate(int fd, off_t size)
{
    if (cut_path) assert_int_equal(truncate(cut_path, cut_to), 0);
    cut_path = NULL;
    return (int)syscall(SYS_ftruncate, fd, size);
}

static const char *appended_path; /* to be cut to cut_to bytes just before, or just after, the next append */
static bool cut_after;

ssize_t
writev(int fd, const struct iovec *pieces, int count)
{
    if (appended_path && !cut_after) assert_int_equal(truncate(appended_path, cut_to), 0);
    ssize_t n = syscall(SYS_writev, fd, pieces, count);
    if (appended_path && cut_after) assert_int_equal(truncate(appended_path, cut_to), 0);
    appended_path = NULL;
    return n;
}

int
fstat(int fd, struct stat *st)
{
    errno = fstat_error;
    return fstat_error ? -1 : fstatat(fd, "", st, AT_EMPTY_PATH);
}

/* A chunk that was appended behind a truncated part is removed; nothing else is. */
static void
cut_while_a_chunk_is_appended_loses_no_more_than_was_cut(void **state)
{
    (void)state;
    static const struct { bool after; off_t cut; } cases[] = {
        { false, CHUNK - PAGE }, { false, PAGE }, { false, 0 },
        { true, 2 * CHUNK - PAGE }, { true, CHUNK + PAGE }, { true, CHUNK - PAGE }, { true, 0 }
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *path = open_sink("t.fxt");
        struct rb_vm_trace_chunk first, second;
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &first));
        appended_path = path;
        cut_after = cases[i].after;
        cut_to = cases[i].cut;
        assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &second));
        assert_null(appended_path);
        assert_int_equal(size_of(path), cases[i].cut);
        rb_vm_trace_chunk_drop(&first);
        rb_vm_trace_chunk_file_close(&trace_file);
        free(path);
    }
}

static uint64_t free_bytes = UINT64_MAX, disk_bytes = UINT64_C(1) << 40; /* of the disk; UINT64_MAX: as it is */

int
fstatfs(int fd, struct statfs *disk)
{
    (void)fd;
    *disk = (struct statfs){ .f_bsize = PAGE, .f_frsize = PAGE, .f_blocks = disk_bytes / PAGE, .f_bavail = free_bytes / PAGE, .f_bfree = UINT64_MAX / PAGE };
    return 0;
}

/* By POSIX. */
int
fstatvfs(int fd, struct statvfs *disk)
{
    (void)fd;
    *disk = (struct statvfs){ .f_bsize = PAGE, .f_frsize = PAGE, .f_blocks = disk_bytes / PAGE,
                              .f_bavail = free_bytes / PAGE };
    return 0;
}

/* --- a disk that is nearly full --- */

static void
disk_with_too_little_space_stops_the_file_and_the_end_is_still_written(void **state)
{
    (void)state;
    const uint64_t mib = 1 << 20, gib = 1 << 30;
    static const uint64_t by_default = CHUNK_FILE_MIN_FREE_DEFAULT;
    const struct { uint64_t min_free, all, free; bool stops; } cases[] = {
        { by_default, 100 * gib, gib, false }, { by_default, 100 * gib, gib - 1, true },
        { by_default, 1000 * mib, 50 * mib, false }, { by_default, 1000 * mib, 50 * mib - 1, true },
        { 10 * mib, gib, 10 * mib, false }, { 10 * mib, gib, 10 * mib - 1, true },
        { 0, gib, 0, false }, { by_default, 0, 0, false }, /* off; a file system that counts nothing */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        trace_file.min_free_bytes = cases[i].min_free;
        char *path = open_sink("t.fxt"), expected[64];
        struct rb_vm_trace_chunk a, b;
        free_bytes = UINT64_C(1) << 39;
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
        disk_bytes = cases[i].all;
        free_bytes = cases[i].free;
        assert_int_equal(rb_vm_trace_chunk_file_reserve(&trace_file, &b), !cases[i].stops);
        if (cases[i].stops) {
            assert_int_equal(trace_file.error, CHUNK_FILE_FULL);
            snprintf(expected, sizeof(expected), " is full (%llu MiB free)", (unsigned long long)cases[i].free >> 20);
            const char *why = rb_vm_trace_chunk_file_reason(&trace_file, trace_file.error);
            if ((VM_TRACE_PLATFORM_LINUX && why[0] != '/') || !strstr(why, expected)) fail_msg("%s", why);
            assert_int_equal(size_of(path), CHUNK);
            assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);
            assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
            assert_int_equal(trace_file.reason, CHUNK_FILE_FULL);
        }
        rb_vm_trace_chunk_file_release(&trace_file, &b, 1);
        rb_vm_trace_chunk_file_release(&trace_file, &a, CHUNK_WORDS);
        rb_vm_trace_chunk_file_close(&trace_file);
        free(path);
    }
}

static void
disk_is_named_by_where_it_is_mounted(void **state)
{
    (void)state;
    char *disk = temp_path("disk"), *folder = temp_path("disk/some"), expected[PATH_MAX];
    assert_int_equal(mkdir(disk, 0777), 0);
    mount_small_disk(disk, 8 * CHUNK);
    assert_int_equal(mkdir(folder, 0777), 0);
    char *path = open_sink("disk/some/t.fxt");
    struct rb_vm_trace_chunk chunk;
    trace_file.min_free_bytes = 5 << 20;
    free_bytes = 3 << 20;
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    snprintf(expected, sizeof(expected), "%s is full (3 MiB free)", VM_TRACE_PLATFORM_LINUX ? disk : "the disk");
    assert_string_equal(rb_vm_trace_chunk_file_reason(&trace_file, trace_file.error), expected);
    free(path);
    free(folder);
    free(disk);
}

/* A disk that fails, or is read-only now: the file keeps its size, and a store into a page of it faults. */
static void
page_that_the_file_system_refuses_is_seen_and_what_is_there_is_counted(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunk, next;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    put_preamble(chunk.words + 1);
    put_string(chunk.words + 1 + PREAMBLE + 2, 2, 500);
    put_event(chunk.words + 1 + PREAMBLE);
    assert_true(rb_vm_trace_chunk_file_fault(&trace_file, &chunk, chunk.words + 512));
    put_event(chunk.words + 512); /* goes nowhere */
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &next));
    assert_int_equal(trace_file.error, CHUNK_FILE_REFUSED);
    rb_vm_trace_chunk_file_release(&trace_file, &chunk, 512 + 2);
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), CHUNK_FILE_REFUSED);
    struct vm_trace_counts left;
    assert_true(rb_vm_trace_chunk_file_mend(&trace_file, &left));
    assert_int_equal(left.events, 1);
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);
    rb_vm_trace_chunk_file_close(&trace_file);
    struct trace *trace = trace_read(path);
    assert_int_equal(trace->event_count, 1);
    trace_free(trace);
    free(path);
}

static void
descriptor_of_which_the_system_says_nothing_is_left_alone(void **state)
{
    (void)state;
    free(open_sink("t.fxt"));
    struct rb_vm_trace_chunk chunk;
    int fd = trace_file.fd;
    fstat_error = EIO;
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_int_equal(trace_file.error, EIO);
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), EIO);
    rb_vm_trace_chunk_file_close(&trace_file);
    assert_int_not_equal(fcntl(fd, F_GETFD), -1);
}

/* --- a cut in the very moment when the file is made shorter, which would make it longer --- */

/* Three pages of records, and padding up to the chunk's end; all words of the records are 0 but for the first ones. */
static size_t
put_three_pages(struct rb_vm_trace_chunk *chunk)
{
    put_preamble(chunk->words + 1);
    put_event(chunk->words + 1 + PREAMBLE);
    put_string(chunk->words + 12, 2, 500);
    for (size_t page = 512; page < 3 * 512; page += 512) {
        put_event(chunk->words + page);
        put_string(chunk->words + page + 2, 2 + (unsigned)page / 512, 510);
        memset(chunk->words + page + 3, 0, 509 * 8);
    }
    return 3 * 512;
}

static void
cut_while_padding_is_cut_off_leaves_no_zeros(void **state)
{
    (void)state;
    static const struct { off_t cut, cut_again; int trouble; size_t size; unsigned events; } cases[] = {
        { 0, 0, CHUNK_FILE_CUT, 0, 0 }, { 4, 4, CHUNK_FILE_CUT, 0, 0 }, { PAGE, PAGE, CHUNK_FILE_CUT, PAGE, 1 }, { PAGE + 8, 100, CHUNK_FILE_CUT, PAGE, 1 },
        { 2 * PAGE + 16, 2 * PAGE + 16, CHUNK_FILE_CUT, 3 * PAGE, 3 }, { 2 * PAGE + 16, PAGE + 8, CHUNK_FILE_CUT, PAGE, 1 }, { 2 * PAGE + 16, 0, CHUNK_FILE_CUT, 0, 0 },
        { 3 * PAGE - 8, 0, 0, 3 * PAGE, 3 }, /* zeros for zeros */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *path = open_sink("t.fxt");
        struct rb_vm_trace_chunk chunk;
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
        size_t used = put_three_pages(&chunk);
        cut_path = path;
        cut_to = cases[i].cut;
        rb_vm_trace_chunk_file_release(&trace_file, &chunk, used);
        assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), cases[i].trouble);
        if (cases[i].trouble) {
            struct vm_trace_counts left;
            cut_path = path;
            cut_to = cases[i].cut_again;
            assert_true(rb_vm_trace_chunk_file_mend(&trace_file, &left));
            assert_int_equal(left.events, cases[i].events);
        }
        assert_int_equal(size_of(path), cases[i].size);
        rb_vm_trace_chunk_file_close(&trace_file);
        struct trace *trace = cases[i].size > 0 ? trace_read(path) : NULL;
        if (trace) assert_int_equal(trace->event_count, cases[i].events);
        if (trace) trace_free(trace);
        free(path);
    }
}

/* Offsets past what 32 bits hold: the file is made long, without its blocks. */
static void
chunks_past_4_gib_have_their_own_bytes(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    uint64_t far = (UINT64_C(10) << 30) + PAGE;
    if (truncate(path, (off_t)far) != 0) skip_because("this file system has no files of 10 GiB");
    trace_file.size = far;
    for (uint64_t i = 0; i < 3; i++) {
        struct rb_vm_trace_chunk chunk;
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
        assert_true(chunk.offset == far + i * CHUNK);
        assert_int_equal(chunk.first, 0);
        assert_true(chunk.words[0] == 0x2002 && chunk.words[CHUNK_WORDS - 512] == 0x2002);
        chunk.words[1] = 0x1234 + i;
        uint64_t word;
        assert_int_equal(pread(trace_file.fd, &word, 8, (off_t)chunk.offset + 8), 8);
        assert_true(word == 0x1234 + i);
        rb_vm_trace_chunk_file_release(&trace_file, &chunk, i == 2 ? 1 : CHUNK_WORDS);
    }
    assert_true((uint64_t)size_of(path) == far + 2 * CHUNK + PAGE);
    free(path);
}

/* --- a limited file ---------------------------------------------------------------------------------- */

static char *
open_limited(size_t chunks, bool keep_newest)
{
    trace_file.max_bytes = chunks * CHUNK;
    trace_file.keep_newest = keep_newest;
    return open_sink("t.fxt");
}

/* Reserve one, mark it, give it back. The offset, in chunks behind the first page. */
static uint64_t
use_chunk(uint64_t mark)
{
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_true(chunk.words[0] == 0x2002 && chunk.words[CHUNK_WORDS - 512] == 0x2002); /* fresh */
    put_preamble(chunk.words);
    put_event(chunk.words + PREAMBLE);
    put_string(chunk.words + PREAMBLE + 2, (unsigned)mark, 501);
    assert_int_equal(chunk.offset % CHUNK, PAGE);
    rb_vm_trace_chunk_file_release(&trace_file, &chunk, 512);
    return chunk.offset / CHUNK;
}

static void
begin_ring(void)
{
    struct rb_vm_trace_chunk head;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &head));
    put_preamble(head.words + 1);
    put_event(head.words + 1 + PREAMBLE);
    put_string(head.words + 12, 2, 500);
    rb_vm_trace_chunk_file_release(&trace_file, &head, 512);
    rb_vm_trace_chunk_file_begin_ring(&trace_file);
}

static void
newest_chunks_are_kept_and_the_file_does_not_grow(void **state)
{
    (void)state;
    char *path = open_limited(5, true);
    begin_ring();
    for (uint64_t i = 0; i < 23; i++) {
        assert_int_equal(use_chunk(100 + i), i % 4);
        assert_true(size_of(path) <= 5 * CHUNK);
        struct trace *trace = trace_read(path);
        assert_int_equal(trace->event_count, 1 + (i < 4 ? i + 1 : 4)); /* the first is that of the settings */
        trace_free(trace);
    }
    assert_int_equal(trace_file.dropped.events, 19);
    assert_int_equal(trace_file.dropped.sampled, 0);
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);
    free(path);
}

static void
chunk_that_is_in_use_is_not_used_again(void **state)
{
    (void)state;
    free(open_limited(5, true));
    begin_ring();
    struct rb_vm_trace_chunk held;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &held));
    held.words[1] = 0x5555;
    for (uint64_t i = 0; i < 9; i++) assert_int_equal(use_chunk(100 + i), 1 + i % 3);
    assert_true(held.words[1] == 0x5555);
}

static void
refusal_because_all_chunks_are_in_use_is_no_error(void **state)
{
    (void)state;
    free(open_limited(5, true));
    begin_ring();
    struct rb_vm_trace_chunk chunks[5];
    for (int i = 0; i < 4; i++) assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunks[i]));
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunks[4]));
    assert_int_equal(trace_file.error, 0);
    assert_true(trace_file.starved);
    rb_vm_trace_chunk_file_release(&trace_file, &chunks[2], 1);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunks[4]));
    assert_true(chunks[4].offset == PAGE + 2 * CHUNK);
}

static void
last_chunk_is_for_all_who_have_none_of_their_own(void **state)
{
    (void)state;
    free(open_limited(5, true));
    begin_ring();
    struct rb_vm_trace_chunk own[4], shared;
    for (int i = 0; i < 3; i++) assert_true(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own[i], false));
    assert_false(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own[3], false));
    assert_true(own[3].none_idle);
    assert_int_equal(trace_file.error, 0);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &shared));
    assert_false(trace_file.starved);
    /* Once it is had, all others may be owned; and given back, it must be to be had again. */
    rb_vm_trace_chunk_file_release(&trace_file, &own[0], 1);
    assert_true(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own[0], false));
    rb_vm_trace_chunk_file_release(&trace_file, &shared, 1);
    assert_false(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own[3], false));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &shared));
}

static void
so_many_may_own_chunks_and_go_on_to_the_next_one(void **state)
{
    (void)state;
    free(open_sink("t.fxt"));
    struct rb_vm_trace_chunk own[CHUNK_FILE_MOST_OWN], next, shared;
    for (size_t i = 0; i < CHUNK_FILE_MOST_OWN; i++) assert_true(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own[i], false));
    assert_false(rb_vm_trace_chunk_file_reserve_own(&trace_file, &next, false));
    assert_true(next.none_idle);
    assert_int_equal(trace_file.error, 0);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &shared));
    assert_true(rb_vm_trace_chunk_file_reserve_own(&trace_file, &next, true));
    rb_vm_trace_chunk_file_release(&trace_file, &own[0], 1);
    assert_false(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own[0], false));
    rb_vm_trace_chunk_file_release(&trace_file, &own[1], 1);
    assert_true(rb_vm_trace_chunk_file_reserve_own(&trace_file, &own[1], false));
    assert_int_equal(trace_file.own, CHUNK_FILE_MOST_OWN);
}

static void
oldest_chunks_are_kept_with_room_for_the_end(void **state)
{
    (void)state;
    static const struct { size_t limit, before, at_the_end; } cases[] = { { 4, 3, 1 }, { 8, 7, 1 }, { 16, 14, 2 }, { 24, 21, 3 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *path = open_limited(cases[i].limit, false);
        struct rb_vm_trace_chunk chunk;
        size_t count = 0;
        while (rb_vm_trace_chunk_file_reserve(&trace_file, &chunk)) count++;
        assert_int_equal(count, cases[i].before);
        assert_int_equal(trace_file.error, CHUNK_FILE_LIMIT);
        assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);
        for (count = 0; rb_vm_trace_chunk_file_reserve(&trace_file, &chunk); ) count++;
        assert_int_equal(count, cases[i].at_the_end);
        assert_int_equal(trace_file.reason, CHUNK_FILE_LIMIT);
        assert_true((size_t)size_of(path) == cases[i].limit * CHUNK);
        rb_vm_trace_chunk_file_close(&trace_file);
        free(path);
    }
}

static void
chunk_that_was_cut_off_while_it_is_made_fresh_is_an_error(void **state)
{
    (void)state;
    char *path = open_limited(4, true);
    handle_faults();
    begin_ring();
    for (uint64_t i = 0; i < 3; i++) use_chunk(100 + i);
    /* The look at the file comes first; make it pass. */
    assert_int_equal(truncate(path, PAGE + 100), 0);
    size_from_then_on = trace_file.size;
    trace_file.size = PAGE;
    trace_file.max_bytes = CHUNK / 2;
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &faulting));
    assert_int_equal(faults, 1);
    assert_int_equal(trace_file.error, CHUNK_FILE_CUT);
    free(path);
}

static void *
reserve_and_release(void *argument)
{
    for (int i = 0; i < 8; i++) {
        struct rb_vm_trace_chunk chunk;
        if (!rb_vm_trace_chunk_file_reserve(&trace_file, &chunk)) return "no chunk";
        for (size_t word = chunk.first; word < CHUNK_WORDS; word = word / 512 * 512 + 512) {
            /* A chunk that another thread has would not be fresh. */
            size_t words = 512 - word % 512;
            if (chunk.words[word] != (2 | (uint64_t)words << 4)) return "not fresh";
            chunk.words[word + 1] = (uint64_t)argument;
        }
        for (size_t word = chunk.first; word < CHUNK_WORDS; word = word / 512 * 512 + 512) {
            if (chunk.words[word + 1] != (uint64_t)argument) return "another thread wrote here";
        }
        rb_vm_trace_chunk_file_release(&trace_file, &chunk, i % 2 ? CHUNK_WORDS : CHUNK_WORDS / 2);
    }
    return NULL;
}

static void
threads_get_chunks_of_their_own(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    pthread_t threads[4];
    char marks[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, reserve_and_release, &marks[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *why;
        pthread_join(threads[i], &why);
        if (why) fail_msg("%s", (char *)why);
    }
    assert_true(trace_file.size <= 32 * (uint64_t)CHUNK);
    assert_int_equal(trace_file.size % PAGE, 0);
    trace_free(trace_read(path));
    free(path);
}

/* --- chunks made ahead ------------------------------------------------------------------------------ */

/* Ask for one and wait for the thread to be done; the address of the chunk. */
static const uint64_t *
made_ahead(void)
{
    rb_vm_trace_chunk_file_preallocate(&trace_file);
    for (;;) {
        pthread_mutex_lock(&trace_file.lock);
        bool done = !trace_file.preallocator.wanted && !trace_file.disk_busy;
        const uint64_t *words = trace_file.ready_count > 0 ? trace_file.ready[0].words : NULL;
        pthread_mutex_unlock(&trace_file.lock);
        if (done) return words;
        usleep(100);
    }
}

static void
chunk_made_ahead_is_the_next_one_and_fresh(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk a, b, c;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    const uint64_t *ahead = made_ahead();
    assert_non_null(ahead);
    assert_int_equal(size_of(path), 2 * CHUNK);
    trace_free(trace_read(path)); /* valid with nothing in it */

    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    assert_ptr_equal(b.words, ahead);
    assert_int_equal(b.offset, CHUNK);
    assert_int_equal(b.first, 0);
    for (size_t i = 0; i < CHUNK_WORDS; i += 512) assert_true(b.words[i] == 0x2002);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &c)); /* there is one only */
    assert_int_equal(c.offset, 2 * CHUNK);
    put_provider(b.words);
    put_string(b.words + 2, 1, 510);
    trace_free(trace_read(path));
    free(path);
}

static void
chunk_made_ahead_is_cut_off_with_the_unused_rest(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk a, b;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    assert_non_null(made_ahead());
    rb_vm_trace_chunk_file_release(&trace_file, &a, 513);
    assert_int_equal(size_of(path), 2 * PAGE);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    assert_int_equal(b.offset, 2 * PAGE);
    assert_non_null(made_ahead());
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);
    assert_int_equal(size_of(path), CHUNK + 2 * PAGE);
    assert_int_equal(trace_file.ready_count, 0);
    rb_vm_trace_chunk_file_preallocate(&trace_file); /* what comes after the end needs none */
    assert_false(trace_file.preallocator.running);
    rb_vm_trace_chunk_file_release(&trace_file, &b, 1);
    assert_int_equal(size_of(path), 3 * PAGE);
    free(path);
}

static void
inner_chunk_that_is_given_back_leaves_the_one_made_ahead(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk a, b;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    const uint64_t *ahead = made_ahead();
    rb_vm_trace_chunk_file_release(&trace_file, &a, 1);
    assert_ptr_equal(trace_file.ready[0].words, ahead);
    assert_int_equal(size_of(path), 4 * CHUNK);
    free(path);
}

/* One piece of the page cache, which one entry of the page table can map, holds both chunks. */
static void
two_chunks_are_made_ahead_where_their_size_divides_the_offset(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunks[5];
    static const size_t sizes[] = { 2, 4, 6, 6 }; /* after the first, the second, ... */
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunks[0]));
    for (int i = 1; i < 5; i++) {
        assert_non_null(made_ahead());
        assert_int_equal(size_of(path), sizes[i - 1] * CHUNK);
        trace_free(trace_read(path)); /* valid with nothing in it */
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunks[i]));
        assert_int_equal(chunks[i].offset, (uint64_t)i * CHUNK);
        for (size_t at = 0; at < CHUNK_WORDS; at += 512) assert_true(chunks[i].words[at] == 0x2002);
    }
    assert_ptr_equal(chunks[3].words, chunks[2].words + CHUNK_WORDS);
    assert_int_equal((uintptr_t)chunks[2].words % (2 * CHUNK), 0);
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);
    assert_int_equal(size_of(path), 5 * CHUNK);
    rb_vm_trace_chunk_file_release(&trace_file, &chunks[4], 1);
    assert_int_equal(size_of(path), 4 * CHUNK + PAGE);
    free(path);
}

static void
one_chunk_is_made_ahead_where_the_limit_allows_no_two(void **state)
{
    (void)state;
    for (int of_system = 0; of_system < 2; of_system++) {
        char *path = open_limited(of_system ? 0 : 4, false); /* of which one is kept for the end */
        struct rb_vm_trace_chunk a, b, c, d;
        if (of_system) limit_file_size(3 * CHUNK);
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
        assert_non_null(made_ahead());
        assert_int_equal(size_of(path), 3 * CHUNK);
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &c));
        assert_int_equal(c.offset, 2 * CHUNK);
        assert_null(made_ahead());
        assert_int_equal(trace_file.error, 0);
        assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &d));
        assert_int_equal(trace_file.error, of_system ? EFBIG : CHUNK_FILE_LIMIT);
        rb_vm_trace_chunk_file_close(&trace_file);
        free(path);
    }
}

/* Bytes of our address space that are of the file. */
static size_t
mapped(const char *path)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    char line[PATH_MAX + 128];
    size_t bytes = 0;
    while (fgets(line, sizeof(line), maps)) {
        size_t from, to;
        if (strstr(line, path) && sscanf(line, "%zx-%zx", &from, &to) == 2) bytes += to - from;
    }
    fclose(maps);
    return bytes;
}

static void
chunk_that_is_given_back_is_unmapped_by_the_thread_or_by_who_ends_it(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunks[6];
    for (int i = 0; i < 4; i++) assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunks[i]));
    assert_non_null(made_ahead());
    assert_int_equal(mapped(path), 6 * CHUNK);
    rb_vm_trace_chunk_file_release(&trace_file, &chunks[0], 1);
    rb_vm_trace_chunk_file_release(&trace_file, &chunks[1], 1); /* one waits for the thread, others do not */
    assert_int_equal(mapped(path), 5 * CHUNK);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunks[4]));
    made_ahead();
    assert_int_equal(mapped(path), 6 * CHUNK); /* less one, and two more */
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunks[5]));
    rb_vm_trace_chunk_file_release(&trace_file, &chunks[4], 1);
    rb_vm_trace_chunk_file_release(&trace_file, &chunks[2], 1);
    assert_int_equal(mapped(path), 5 * CHUNK);
    assert_int_equal(rb_vm_trace_chunk_file_end(&trace_file), 0);
    assert_int_equal(mapped(path), 3 * CHUNK); /* the chunk that waited is mapped together with one in use */
    rb_vm_trace_chunk_file_release(&trace_file, &chunks[5], 1);
    rb_vm_trace_chunk_file_release(&trace_file, &chunks[3], 1);
    assert_int_equal(mapped(path), 0);
    free(path);
}

static void
chunk_that_cannot_be_made_ahead_is_an_error_for_the_one_who_needs_it(void **state)
{
    (void)state;
    free(open_sink("t.fxt"));
    struct rb_vm_trace_chunk chunk;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    limit_file_size(CHUNK);
    assert_null(made_ahead());
    assert_int_equal(trace_file.error, 0);
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_int_equal(trace_file.error, EFBIG);
}

static void
chunk_made_ahead_of_a_cut_is_not_handed_out(void **state)
{
    (void)state;
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk a, b;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &a));
    assert_non_null(made_ahead());
    assert_int_equal(truncate(path, CHUNK / 2), 0);
    assert_false(rb_vm_trace_chunk_file_reserve(&trace_file, &b));
    assert_int_equal(trace_file.error, CHUNK_FILE_CUT);
    assert_int_equal(trace_file.ready_count, 0);
    assert_int_equal(size_of(path), CHUNK / 2);
    free(path);
}

/* The thread touches pages of a file that is being cut all the time: no fault may be anyone else's. */
static void
cuts_while_chunks_are_made_ahead_harm_nobody(void **state)
{
    (void)state;
    handle_faults();
    for (int round = 0; round < 200; round++) {
        char *path = open_sink("t.fxt");
        struct rb_vm_trace_chunk first = { 0 }, chunk; /* with two, two are made */
        if (round % 2) assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &first));
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
        rb_vm_trace_chunk_file_preallocate(&trace_file);
        usleep((useconds_t)round);
        assert_int_equal(truncate(path, round % 3 * PAGE), 0);
        rb_vm_trace_chunk_file_close(&trace_file);
        rb_vm_trace_chunk_drop(&first);
        rb_vm_trace_chunk_drop(&chunk);
        free(path);
    }
}

/* There are chunks to go on in: then the file keeps the newest events in what it has. */
static void
full_disk_ends_the_growth_of_a_file_that_keeps_the_newest_events(void **state)
{
    (void)state;
    char *path = open_limited(8, true);
    trace_file.min_free_bytes = 1 << 20;
    begin_ring();
    for (uint64_t i = 0; i < 3; i++) assert_int_equal(use_chunk(100 + i), i);
    free_bytes = 0;
    for (uint64_t i = 3; i < 9; i++) assert_int_equal(use_chunk(100 + i), i % 3);
    assert_int_equal(trace_file.error, 0);
    assert_int_equal(trace_file.dropped.events, 6);
    assert_int_equal(size_of(path), PAGE + 3 * CHUNK);
    free(path);
}

/* Only signals of faults: a program's own must not be taken where it can't see them. */
static void
thread_that_works_ahead_takes_no_signals(void **state)
{
    (void)state;
    free(open_sink("t.fxt"));
    sigset_t set, mine;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    made_ahead();
    assert_int_equal(kill(getpid(), SIGUSR1), 0); /* would end the process */
    assert_non_null(made_ahead());
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    assert_true(sigismember(&mine, SIGUSR1)); /* as it was here */
    assert_false(sigismember(&mine, SIGUSR2));
}

static void
child_of_a_fork_closes_what_is_the_parents_and_works_ahead_itself(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip_because("ThreadSanitizer knows no threads in the child of a process that had some");
#endif
    char *path = open_sink("t.fxt");
    struct rb_vm_trace_chunk chunk, full, half;
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &full));
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_non_null(made_ahead());
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &half));
    rb_vm_trace_chunk_file_release(&trace_file, &full, CHUNK_WORDS);
    pthread_mutex_lock(&trace_file.lock);
    pid_t child = fork();
    if (child == 0) {
        rb_vm_trace_chunk_file_after_fork(&trace_file);
        pthread_mutex_unlock(&trace_file.lock);
        rb_vm_trace_chunk_drop(&chunk);
        rb_vm_trace_chunk_drop(&half);
        assert_int_equal(mapped(path), 0);
        free(open_sink("u.fxt"));
        assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
        assert_non_null(made_ahead());
        rb_vm_trace_chunk_file_close(&trace_file);
        end_at_once(0);
    }
    pthread_mutex_unlock(&trace_file.lock);
    wait_for(child);
    assert_int_equal(size_of(path), 4 * CHUNK);
    assert_true(rb_vm_trace_chunk_file_reserve(&trace_file, &chunk));
    assert_int_equal(chunk.offset, 3 * CHUNK);
    free(path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(file_is_made_for_its_owner_alone),
        isolated_test(file_is_closed_by_exec),
        isolated_test(stale_file_of_ones_own_is_replaced_by_another_file),
        isolated_test(link_is_not_followed_and_its_target_is_untouched),
        isolated_test(link_to_nowhere_makes_no_file_there),
        isolated_test(folder_is_refused),
        isolated_test(fifo_is_refused_without_waiting_for_a_reader),
        isolated_test(device_is_refused_and_stays),
        isolated_test(missing_folder_is_named_as_the_system_does),
        isolated_test(file_of_another_user_is_refused_and_stays),
        isolated_test(file_that_cannot_be_removed_is_refused),
        isolated_test(traps_in_a_folder_like_tmp_are_refused_and_touch_nothing),
        isolated_test(discard_removes_its_own_file_only),
        isolated_test(fresh_chunk_is_padding_a_record_a_page),
        isolated_test(every_page_of_a_fresh_chunk_is_a_place_to_end),
        isolated_test(chunks_follow_each_other_without_a_gap),
        isolated_test(release_of_the_last_chunk_trims_to_a_page),
        isolated_test(next_chunk_stands_where_the_last_one_was_trimmed),
        isolated_test(next_chunk_begins_at_a_page_of_the_system),
        isolated_test(release_of_an_inner_chunk_keeps_the_size),
        isolated_test(release_of_nothing_does_nothing),
        isolated_test(dropped_chunk_leaves_the_file_as_it_is),
        isolated_test(mapped_chunk_is_usable_after_the_close),
        isolated_test(closed_sink_has_no_more_chunks),
        isolated_test(limit_of_the_file_size_is_an_error_and_no_signal),
        isolated_test(chunk_that_ends_at_the_limit_is_had),
        isolated_test(error_stays_until_another_file_is_opened),
        isolated_test(full_disk_is_an_error_and_the_file_stays_valid),
        isolated_test(disk_that_others_filled_is_an_error_and_the_size_stays),
        isolated_test(descriptor_that_became_another_file_is_never_touched),
        isolated_test(chunk_that_was_cut_off_takes_words_that_go_nowhere),
        isolated_test(address_outside_of_the_chunk_is_not_ours),
        isolated_test(cut_is_seen_at_the_next_chunk),
        isolated_test(removal_is_seen_at_the_next_chunk_and_at_the_end),
        isolated_test(renamed_file_is_still_the_file),
        isolated_test(write_into_a_file_that_was_just_cut_leaves_no_hole),
        isolated_test(cut_file_is_mended_to_whole_records),
        isolated_test(file_with_a_hole_is_mended_up_to_there),
        isolated_test(page_that_the_file_system_refuses_is_seen_and_what_is_there_is_counted),
        isolated_test(disk_with_too_little_space_stops_the_file_and_the_end_is_still_written),
        isolated_test(disk_is_named_by_where_it_is_mounted),
        isolated_test(full_disk_ends_the_growth_of_a_file_that_keeps_the_newest_events),
        isolated_test(descriptor_of_which_the_system_says_nothing_is_left_alone),
        isolated_test(cut_while_padding_is_cut_off_leaves_no_zeros),
        isolated_test(chunks_past_4_gib_have_their_own_bytes),
        isolated_test(newest_chunks_are_kept_and_the_file_does_not_grow),
        isolated_test(chunk_that_is_in_use_is_not_used_again),
        isolated_test(refusal_because_all_chunks_are_in_use_is_no_error),
        isolated_test(so_many_may_own_chunks_and_go_on_to_the_next_one),
        isolated_test(last_chunk_is_for_all_who_have_none_of_their_own),
        isolated_test(oldest_chunks_are_kept_with_room_for_the_end),
        isolated_test(chunk_that_was_cut_off_while_it_is_made_fresh_is_an_error),
        isolated_test(cut_while_a_chunk_is_appended_loses_no_more_than_was_cut),
        isolated_test(threads_get_chunks_of_their_own),
        isolated_test(chunk_made_ahead_is_the_next_one_and_fresh),
        isolated_test(chunk_made_ahead_is_cut_off_with_the_unused_rest),
        isolated_test(inner_chunk_that_is_given_back_leaves_the_one_made_ahead),
        isolated_test(two_chunks_are_made_ahead_where_their_size_divides_the_offset),
        isolated_test(one_chunk_is_made_ahead_where_the_limit_allows_no_two),
        isolated_test(chunk_that_is_given_back_is_unmapped_by_the_thread_or_by_who_ends_it),
        isolated_test(chunk_that_cannot_be_made_ahead_is_an_error_for_the_one_who_needs_it),
        isolated_test(chunk_made_ahead_of_a_cut_is_not_handed_out),
        isolated_test(cuts_while_chunks_are_made_ahead_harm_nobody),
        isolated_test(thread_that_works_ahead_takes_no_signals),
        isolated_test(child_of_a_fork_closes_what_is_the_parents_and_works_ahead_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
