/*
 * The spool: names of pieces, limits of the folder, times; and that pieces together have each event
 * once, or say that it is lost.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* asprintf */
#endif
#include "harness.h"
#include "traced.h"
#include "vm_trace/base/messages.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/session/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct rb_iseq_struct foo;
static struct rb_vm_trace_site *site;
static char *folder;

/* --- options ----------------------------------------------------------------------------------------------- */

static void
assert_refused(bool (*parse)(const char *, const char *), const char *value, const char *expected)
{
    capture_stderr();
    assert_false(parse("--vm-trace-x", value));
    char *said = captured_stderr();
    if (!strstr(said, expected)) fail_msg("%s: %s", value, said);
    free(said);
}

static void
wrong_values_are_refused(void **state)
{
    (void)state;
    assert_refused(rb_vm_trace_parse_spool, "", "takes the folder");
    assert_refused(rb_vm_trace_parse_spool, "/nonexistent/a", "/nonexistent/a: No such file or directory; give a folder");
    assert_refused(rb_vm_trace_parse_spool, "/dev/null", "it is no folder");
    static const char *const times[] = { "", "5", "0s", "999ms", "25h", "1d", "-1s", "1 s" };
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
        assert_refused(rb_vm_trace_parse_spool_every, times[i], "takes a time from 1s to 24h");
    static const char *const limits[] = { "", "0", "1,", "1,0", "1,2,3", "x", "1048577", "1,1000001" };
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        assert_refused(rb_vm_trace_parse_spool_limit, limits[i], "takes the MiB that the folder may have");
    assert_refused(rb_vm_trace_parse_spool_compress, "", "takes zstd, gzip or none, not ''");
    assert_refused(rb_vm_trace_parse_spool_compress, "zip", "takes zstd, gzip or none, not 'zip'");
}

static void
options_make_the_configuration(void **state)
{
    (void)state;
    struct rb_vm_trace_memory_config memory = { .save_at = 0 };
    rb_vm_trace_spool_configure(&memory);
    assert_null(memory.spool.folder); /* nobody asked */
    char *path = temp_path("new%p");
    assert_true(rb_vm_trace_parse_spool("-", path));
    rb_vm_trace_spool_configure(&memory);
    assert_true(memory.spool.every_ns == UINT64_C(300000000000));
    assert_true(memory.spool.max_bytes == UINT64_C(1) << 30);
    assert_int_equal(memory.spool.max_files, 1000);
    assert_true(rb_vm_trace_parse_spool_every("-", "2h"));
    assert_true(rb_vm_trace_parse_spool_limit("-", "7,9"));
    rb_vm_trace_spool_configure(&memory);
    assert_true(memory.spool.every_ns == UINT64_C(7200000000000));
    assert_int_equal(memory.spool.max_bytes, 7 << 20);
    assert_int_equal(memory.spool.max_files, 9);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    char *pattern = rb_vm_trace_spool_pattern(&memory.spool);
    assert_non_null(strstr(pattern, "/new%%p/%h-%p-%t-%n-%r.fxt"));
    free(pattern);
    free(path);
}

static void
reasons_are_plain_words(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_spool_reason_p("slow_request-2", 14));
    assert_true(rb_vm_trace_spool_reason_p("abcdefghijklmnopqrstuvwxyz012345", 32));
    assert_false(rb_vm_trace_spool_reason_p("abcdefghijklmnopqrstuvwxyz0123456", 33));
    assert_false(rb_vm_trace_spool_reason_p("", 0));
    assert_false(rb_vm_trace_spool_reason_p("../x", 4));
    assert_false(rb_vm_trace_spool_reason_p("A", 1));
    assert_false(rb_vm_trace_spool_reason_p("a\0b", 3));
}

/* --- times ------------------------------------------------------------------------------------------------- */

static void
pieces_are_due_once_in_each_period(void **state)
{
    (void)state;
    const struct rb_vm_trace_spool spool = { .begin_ns = 5000, .every_ns = 1000 };
    for (uint32_t pid = 1; pid < 500; pid++) {
        uint64_t first = rb_vm_trace_spool_next_ns(&spool, pid, 5000), next = first;
        assert_in_range(first, 5000, 6000);
        for (unsigned i = 1; i < 4; i++) {
            uint64_t after = rb_vm_trace_spool_next_ns(&spool, pid, next);
            assert_int_equal(after - next, 1000);
            assert_int_equal(rb_vm_trace_spool_next_ns(&spool, pid, next + 999), after); /* late */
            next = after;
        }
        /* Some were missed. */
        assert_int_equal(rb_vm_trace_spool_next_ns(&spool, pid, first + 12345), first + 13000);
    }
}

static void
folder_is_kept_once(void **state)
{
    (void)state;
    char path[] = "/tmp/a";
    const char *kept = rb_vm_trace_spool_keep_folder(path), *other = rb_vm_trace_spool_keep_folder("/tmp/b");
    path[5] = 'x';
    assert_string_equal(kept, "/tmp/a");
    assert_string_equal(other, "/tmp/b");
    assert_ptr_equal(rb_vm_trace_spool_keep_folder("/tmp/a"), kept);
}

/* Workers of one server have pids in a row. */
static void
processes_are_spread_over_the_period(void **state)
{
    (void)state;
    static const uint64_t seconds[] = { 1, 5 * 60, 24 * 60 * 60 }; /* the shortest, the default, the longest */
    for (unsigned k = 0; k < 3; k++) {
        const struct rb_vm_trace_spool spool = { .every_ns = seconds[k] * UINT64_C(1000000000) };
        unsigned tenths[10] = { 0 };
        for (uint32_t pid = 4000; pid < 4100; pid++) {
            uint64_t first_ns = rb_vm_trace_spool_next_ns(&spool, pid, 0);
            assert_in_range(first_ns, 0, spool.every_ns - 1);
            tenths[first_ns / (spool.every_ns / 10)]++;
        }
        for (unsigned i = 0; i < 10; i++) assert_in_range(tenths[i], 5, 15);
    }
}

/* --- limits ------------------------------------------------------------------------------------------------ */

/* A file of the folder, so many seconds old. */
static void
put_file(const char *name, size_t bytes, unsigned age)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", temp_folder(), name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    struct timespec times[2] = { { .tv_sec = time(NULL) - age }, { .tv_sec = time(NULL) - age } };
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static bool
there_p(const char *name)
{
    char *path = temp_path(name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

#define PIECE(reason) "web-7-18244-20261126T131823-1-" reason ".fxt"

static void
trim(uint64_t max_bytes, uint32_t max_files)
{
    const struct rb_vm_trace_spool spool = { .folder = temp_folder(), .max_bytes = max_bytes, .max_files = max_files };
    rb_vm_trace_spool_trim(&spool);
}

static void
oldest_pieces_go_until_bytes_and_files_are_few_enough(void **state)
{
    (void)state;
    put_file(PIECE("c"), 100, 10);
    put_file(PIECE("a") ".gz", 100, 40);
    put_file(PIECE("b") ".zst", 100, 30);
    put_file(PIECE("d"), 100, 20);
    put_file("notes.txt", 100000, 500);
    put_file(PIECE("e") ".saving-7.tmp", 100, 5); /* young: it may be locked in a moment */
    trim(400, 4);
    assert_true(there_p(PIECE("a") ".gz"));
    trim(399, 4);
    assert_false(there_p(PIECE("a") ".gz"));
    trim(1000, 2);
    assert_false(there_p(PIECE("b") ".zst"));
    assert_true(there_p(PIECE("d")) && there_p(PIECE("c")));
    trim(0, 1000);
    assert_false(there_p(PIECE("d")) || there_p(PIECE("c")));
    assert_true(there_p("notes.txt") && there_p(PIECE("e") ".saving-7.tmp"));
}

/* Traces that the spool did not name: finished, compressed, or being written. */
static void
other_files_are_left_alone_and_do_not_count(void **state)
{
    static const char *const others[] = {
        "my-analysis.fxt", "1234.fxt", "app.fxt.gz", "perfetto-17.fxt", "before-7-20261126-1-time.fxt",
        "-7-20261126T131823-1-time.fxt", "web7-7-20261126T131823-1-.fxt", "web7-7-20261126T131823--time.fxt",
        "web7--20261126T131823-1-time.fxt", "web7-7-20261126T131823-1-time.fxt.txt",
        "web7-7-20261126T131823-1-Time.fxt", "web7-7-20261126T131823-1-time.fxt.7", "web7-7-20261126T131823-1",
        "web7-7-20261126T13182", "web7-7", "web7-7-",
        "app.fxt.saving-7", "-"
    };
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) put_file(others[i], 1000, 600);
    put_file(PIECE("a"), 100, 10);
    trim(100, 1);
    assert_true(there_p(PIECE("a")));
    trim(0, 0);
    assert_false(there_p(PIECE("a")));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) assert_true(there_p(others[i]));
}

static void
links_and_folders_are_left_alone(void **state)
{
    (void)state;
    put_file("target", 100, 50);
    char *target = temp_path("target"), *link = temp_path(PIECE("l")), *dir = temp_path(PIECE("d"));
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(mkdir(dir, 0700), 0);
    trim(0, 0);
    assert_true(there_p("target") && there_p(PIECE("l")) && there_p(PIECE("d")));
    assert_int_equal(unlink(link) | rmdir(dir), 0);
    free(target);
    free(link);
    free(dir);
}

static void
pieces_of_other_users_are_left_alone(void **state)
{
    (void)state;
    if (geteuid() != 0) skip_because("only root can give a file to another user");
    put_file(PIECE("o"), 100, 50);
    char *path = temp_path(PIECE("o"));
    assert_int_equal(chown(path, 65534, 65534), 0);
    trim(0, 0);
    assert_true(there_p(PIECE("o")));
    free(path);
}

static void
what_a_killed_process_was_saving_goes(void **state)
{
    (void)state;
    put_file(PIECE("x") ".saving-1", 100, 600);
    put_file(PIECE("y") ".saving-2", 100, 600);
    put_file(PIECE("z") ".zst.saving-3", 100, 600);
    char *locked = temp_path(PIECE("y") ".saving-2");
    int fd = open(locked, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    trim(1 << 20, 10);
    assert_false(there_p(PIECE("x") ".saving-1") || there_p(PIECE("z") ".zst.saving-3"));
    assert_true(there_p(PIECE("y") ".saving-2"));
    close(fd);
    free(locked);
}

static void
folder_that_is_gone_is_no_harm(void **state)
{
    (void)state;
    rb_vm_trace_spool_trim(&(struct rb_vm_trace_spool){ .folder = "/nonexistent/spool" });
}

/* --- pieces ------------------------------------------------------------------------------------------------ */

static void
start_spool(uint64_t rate, const char *name)
{
    folder = temp_path(name);
    assert_true(rb_vm_trace_parse_spool("-", folder));
    rb_vm_trace_session.memory = (struct rb_vm_trace_memory_config){ .bytes = 8 << 20 };
    start_traced(.exit_rate = rate);
    foo = fake_iseq("foo", "a.rb");
    site = make_site(RB_VM_TRACE_SIDE_EXIT, "Overflow", &foo, 1);
    fake_push(&main_thread, &foo, 1);
}

static void
exits(unsigned times)
{
    for (unsigned i = 0; i < times; i++) take_exit(site, &main_thread);
}

static struct rb_vm_trace_save
save_piece(const char *why)
{
    struct rb_vm_trace_save save = { .why = why };
    assert_int_equal(rb_vm_trace_snapshot_begin(true), VM_TRACE_SNAPSHOT_BEGUN);
    rb_vm_trace_recorder_write(&save);
    return save;
}

static void
assert_piece(const char *why, unsigned number, uint64_t hits, uint64_t sampled, uint64_t lost)
{
    struct rb_vm_trace_save save = save_piece(why);
    if (save.error) fail_msg("%s: %s", save.path, save.reason);
    char ending[64], *name = strrchr(save.path, '/');
    snprintf(ending, sizeof(ending), "-%u-%s.fxt", number, why);
    assert_string_equal(name + strlen(name) - strlen(ending), ending);
    struct trace *trace = trace_read(save.path);
    assert_summary(trace, hits, sampled, lost);
    assert_string_equal(trace_text(trace_event(trace, "trace", "settings", 0), "snapshot"), why);
    assert_int_equal(trace_count(trace, "trace", "host"), 1);
    trace_free(trace);
    free(save.made);
}

static void
stop_spool(void)
{
    rb_vm_trace_session.memory.save_at = 0;
    rb_vm_trace_shutdown();
    char command[512];
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
    free_traced();
    free(traced_path);
    free(folder);
}

static void
each_event_is_in_one_piece(void **state)
{
    (void)state;
    start_spool(1, "spool");
    exits(100);
    assert_piece("time", 1, 100, 100, 0);
    assert_false(rb_vm_trace_recorder_any_p());
    exits(7);
    assert_true(rb_vm_trace_recorder_any_p());
    assert_piece("slow", 2, 7, 7, 0);
    assert_piece("save", 3, 0, 0, 0);
    stop_spool();
}

/* Gives `path`, a compressed piece, the name of its trace, uncompressed by the program of the system. */
static char *
uncompress(const char *path)
{
    char command[1024], *trace = strdup(path);
    assert_non_null(strrchr(trace, '.'));
    *strrchr(trace, '.') = '\0';
    assert_int_not_equal(access(trace, F_OK), 0); /* the piece as it was is gone */
    snprintf(command, sizeof(command), "%s '%s' > '%s'", strstr(path, ".gz") ? "gzip -dc" : "zstd -qdc", path, trace);
    assert_int_equal(system(command), 0);
    return trace;
}

static void
compress_by(const char *how)
{
    enum vm_trace_compression compression;
    assert_true(rb_vm_trace_compression_named(how, &compression));
    const char *why = rb_vm_trace_compression_load(compression); /* a C library may have others than the system's */
    if (why) skip_because(why);
    assert_true(rb_vm_trace_parse_spool_compress("-", how));
}

static void
test_compressed(const char *how, const char *suffix)
{
    char command[64];
    snprintf(command, sizeof(command), "%s --version > /dev/null 2>&1", how);
    if (system(command) != 0) skip_because("its program, which would read the pieces, is not installed");
    compress_by(how);
    start_spool(1, "spool");
    for (unsigned i = 1; i <= 3; i++) {
        exits(30000 * (i - 1) + 1); /* the last one is several MiB */
        struct rb_vm_trace_save save = save_piece("time");
        assert_int_equal(save.error, 0);
        assert_string_equal(save.path + strlen(save.path) - strlen(suffix), suffix);
        char *path = uncompress(save.path);
        struct trace *trace = trace_read(path);
        assert_summary(trace, 30000 * (i - 1) + 1, 30000 * (i - 1) + 1, 0);
        trace_free(trace);
        free(path);
        free(save.made);
    }
    stop_spool();
}

static void
pieces_are_compressed_by_zstd(void **state)
{
    (void)state;
    test_compressed("zstd", ".fxt.zst");
}

static void
pieces_are_compressed_by_gzip(void **state)
{
    (void)state;
    test_compressed("gzip", ".fxt.gz");
}

static void
piece_that_cannot_be_compressed_stays_as_it_is(void **state)
{
    (void)state;
    compress_by("gzip");
    start_spool(1, "spool");
    exits(5);
    capture_stderr();
    rb_vm_trace_messages_begin();
    for (unsigned number = 1; number <= 2; number++) {
        /* Its name is taken. */
        free(rb_vm_trace_session.path_pattern);
        assert_true(asprintf(&rb_vm_trace_session.path_pattern, "%s/p%u.fxt", folder, number) > 0);
        char *taken;
        assert_true(asprintf(&taken, "%s/p%u.fxt.gz", folder, number) > 0);
        assert_int_equal(mkdir(taken, 0700), 0);
        struct rb_vm_trace_save save = save_piece("time");
        assert_int_equal(save.error, 0);
        struct trace *trace = trace_read(save.path);
        assert_summary(trace, number == 1 ? 5 : 0, number == 1 ? 5 : 0, 0);
        trace_free(trace);
        free(save.made);
        free(taken);
    }
    char *said = captured_stderr(), *first = strstr(said, "p1.fxt is not compressed: it exists and is not a regular file");
    if (!first) fail_msg("%s", said);
    assert_null(strstr(said, "p2.fxt is not compressed"));
    free(said);
    stop_spool();
}

/* The countdown to the next sample goes on. */
static void
sampled_pieces_have_exact_hits(void **state)
{
    (void)state;
    start_spool(10, "spool");
    exits(25);
    assert_piece("time", 1, 25, 2, 0);
    exits(10);
    assert_piece("time", 2, 10, 1, 0);
    exits(4);
    assert_piece("time", 3, 4, 0, 0);
    stop_spool();
}

static void
piece_that_cannot_be_written_is_a_loss_of_the_next(void **state)
{
    (void)state;
    start_spool(1, "spool");
    exits(5);
    assert_piece("time", 1, 5, 5, 0);
    char aside[512];
    snprintf(aside, sizeof(aside), "%s-aside", folder);
    assert_int_equal(rename(folder, aside), 0);
    for (unsigned i = 0; i < 2; i++) {
        exits(20);
        struct rb_vm_trace_save save = save_piece("time");
        assert_int_equal(save.error, ENOENT);
        free(save.made);
    }
    assert_int_equal(rename(aside, folder), 0);
    exits(3);
    struct rb_vm_trace_save save = save_piece("time");
    assert_int_equal(save.error, 0);
    struct trace *trace = trace_read(save.path);
    assert_summary(trace, 3, 3, 40);
    assert_string_equal(trace_text(trace_event(trace, "trace", "loss", 0), "reason"),
                        "could not be saved: No such file or directory");
    trace_free(trace);
    free(save.made);
    exits(1);
    assert_piece("time", 3, 1, 1, 0); /* said once */
    stop_spool();
}

/* Saves beside the spool take nothing from it. */
static void
save_of_a_copy_leaves_the_loss_to_the_next_piece(void **state)
{
    (void)state;
    start_spool(1, "spool");
    char aside[512], *copy = temp_path("copy.fxt");
    snprintf(aside, sizeof(aside), "%s-aside", folder);
    assert_int_equal(rename(folder, aside), 0);
    exits(20);
    struct rb_vm_trace_save piece = save_piece("time"), beside = { .path = copy, .why = "save" };
    assert_int_equal(piece.error, ENOENT);
    free(piece.made);
    assert_int_equal(rename(aside, folder), 0);
    exits(3);
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    rb_vm_trace_recorder_write(&beside);
    struct trace *trace = trace_read(copy);
    assert_summary(trace, 3, 3, 0);
    trace_free(trace);
    assert_int_equal(unlink(copy), 0);
    free(copy);
    assert_piece("time", 2, 3, 3, 20);
    stop_spool();
}

static void
pieces_on_a_full_disk_fail_and_say_so_once(void **state)
{
    (void)state;
    char *disk = temp_path("disk"), piece[512], *said;
    assert_int_equal(mkdir(disk, 0700), 0);
    mount_small_disk(disk, 16 << 20);
    start_spool(1, "disk");
    rb_vm_trace_session.memory.save_at = VM_TRACE_SAVE_AT_EXIT;
    rb_vm_trace_session.min_free_bytes = 0;
    snprintf(piece, sizeof(piece), "%s/filler", disk);
    int fd = open(piece, O_WRONLY | O_CREAT, 0600);
    static const char zeros[4096];
    while (write(fd, zeros, sizeof(zeros)) > 0) continue;
    close(fd);
    capture_stderr();
    rb_vm_trace_messages_begin();
    for (unsigned i = 0; i < 3; i++) {
        exits(10);
        rb_vm_trace_recorder_save_at(VM_TRACE_SAVE_AT_EXIT, main_ractor.vm_trace, &main_thread);
    }
    said = captured_stderr();
    const char *first = strstr(said, "can't save to ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "can't save to "));
    free(said);
    assert_int_equal(unlink(piece), 0);
    exits(2);
    struct rb_vm_trace_save save = save_piece("exit");
    assert_int_equal(save.error, 0);
    struct trace *trace = trace_read(save.path);
    assert_summary(trace, 2, 2, 30);
    trace_free(trace);
    free(save.made);
    rb_vm_trace_session.memory.save_at = 0;
    rb_vm_trace_shutdown();
    free_traced();
    free(traced_path);
    free(folder);
    free(disk);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(wrong_values_are_refused),
        isolated_test(options_make_the_configuration),
        isolated_test(reasons_are_plain_words),
        isolated_test(folder_is_kept_once),
        isolated_test(pieces_are_due_once_in_each_period),
        isolated_test(processes_are_spread_over_the_period),
        isolated_test(oldest_pieces_go_until_bytes_and_files_are_few_enough),
        isolated_test(other_files_are_left_alone_and_do_not_count),
        isolated_test(links_and_folders_are_left_alone),
        isolated_test(pieces_of_other_users_are_left_alone),
        isolated_test(what_a_killed_process_was_saving_goes),
        isolated_test(folder_that_is_gone_is_no_harm),
        isolated_test(each_event_is_in_one_piece),
        isolated_test(pieces_are_compressed_by_zstd),
        isolated_test(pieces_are_compressed_by_gzip),
        isolated_test(piece_that_cannot_be_compressed_stays_as_it_is),
        isolated_test(sampled_pieces_have_exact_hits),
        isolated_test(piece_that_cannot_be_written_is_a_loss_of_the_next),
        isolated_test(save_of_a_copy_leaves_the_loss_to_the_next_piece),
        isolated_test(pieces_on_a_full_disk_fail_and_say_so_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
