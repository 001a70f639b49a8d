/*
 * From start to end: settings, ractors, losses, the last words, and what may be called when.
 */
#define _GNU_SOURCE 1
#include "harness.h"
#include "vm_trace/session/options.h"
#include "vm_trace/streams/exit_state.h"
#include "traced.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

static struct rb_iseq_struct foo;

static void
push_foo(void)
{
    foo = fake_iseq("foo", "app.rb");
    fake_push(&main_thread, &foo, 3);
}

/* A second one, with a thread in foo. */
static struct rb_ractor_struct ractor;
static struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = 7, .thread_name = "t", .name_id = 5 };

static void
begin_ractor(void)
{
    ractor.vm_trace = rb_vm_trace_ractor_new();
    fake_push(&thread, &foo, 2);
}

/* An exit at one of many lines with a reason of its own length: events of many sizes. */
static void
take_varied_exits(struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec, unsigned exits)
{
    static __thread unsigned n;
    for (unsigned i = 0; i < exits; i++, n++) {
        ec->frames[ec->frame_count - 1].line = 1 + n * 7 % 900;
        take_exit(site, ec);
    }
}

/* --- start ---------------------------------------------------------------------------------------- */

static void
settings_come_first_and_say_all(void **state)
{
    (void)state;
    uint64_t before = rb_vm_trace_clock_system_ns();
    start_traced(.exit_rate = 97, .fallback_rate = 4294967295, .compiles = true, .invalidations = true, .counter = "exit_guard");
    struct trace *trace = finish_traced();
    const struct trace_event *settings = &trace->events[0];
    assert_string_equal(settings->category, "trace");
    assert_string_equal(settings->name, "settings");
    assert_true(settings->ns >= before);
    assert_int_equal(settings->tid, 1001);
    assert_string_equal(trace_text(settings, "ruby"), "ruby 9.9.9 (a fake one)");
    assert_string_equal(trace_text(settings, "base"), "ruby-9.9");
    assert_string_equal(trace_text(settings, "jit"), "ZJIT");
    assert_string_equal(trace_text(settings, "flags"), "exits fallbacks compiles invalidations");
    assert_non_null(strstr(trace_text(settings, "command"), "test_lifecycle"));
    assert_int_equal(trace_number(settings, "pid"), getpid());
    assert_int_equal(trace_number(settings, "exit_rate"), 97);
    assert_true(trace_number(settings, "fallback_rate") == 4294967295);
    assert_string_equal(trace_text(settings, "counter"), "exit_guard");
    trace_free(trace);
}

static void
settings_leave_out_what_is_not_traced(void **state)
{
    (void)state;
    start_traced(.invalidations = true);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_text(&trace->events[0], "flags"), "invalidations");
    assert_null(trace_argument(&trace->events[0], "exit_rate"));
    assert_null(trace_argument(&trace->events[0], "fallback_rate"));
    assert_null(trace_argument(&trace->events[0], "counter"));
    assert_summary(trace, 0, 0, 0);
    trace_free(trace);
}

static void
trace_of_nothing_is_made(void **state)
{
    (void)state;
    start_traced(.exit_rate = 0);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_text(&trace->events[0], "flags"), "");
    trace_free(trace);
}

static void
first_and_last_line_say_where_the_trace_is_and_what_is_in_it(void **state)
{
    (void)state;
    capture_stderr();
    start_traced(.exit_rate = 2);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    for (int i = 0; i < 5; i++) take_exit(site, &main_thread);
    char *path = strdup(traced_path), expected[512];
    struct trace *trace = finish_traced();
    char *said = captured_stderr();
    snprintf(expected, sizeof(expected), "ZJIT: tracing to %s\n"
             "ZJIT: wrote 2 of 5 exits (one in 2), 7 events to %s, nothing lost\n", path, path);
    assert_string_equal(said, expected);
    assert_int_equal(trace->event_count, 7);
    trace_free(trace);
    free(said);
    free(path);
}

static void
last_line_is_not_said_into_what_became_the_programs_own_output(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    capture_stderr(); /* the program leads its stderr elsewhere */
    struct trace *trace = finish_traced();
    char *said = captured_stderr();
    assert_string_equal(said, "");
    free(said);
    trace_free(trace);
}

static void
trace_that_cannot_be_made_is_one_line_and_all_calls_are_harmless(void **state)
{
    (void)state;
    fake_ractor_add(&main_ractor);
    fake_current(&main_thread);
    push_foo();
    char *path = temp_path("none/t.fxt");
    capture_stderr();
    assert_false(rb_vm_trace_start(&(struct rb_vm_trace_config){
        .jit = "ZJIT", .path = path, .counter = "c", .exit_rate = 1, .fallback_rate = 1, .compiles = true, .invalidations = true
    }));
    assert_null(main_ractor.vm_trace);
    assert_null(rb_vm_trace_ractor_new());
    rb_vm_trace_ractor_free(NULL);
    assert_null(rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
        .reason = "r", .reason_len = 1, .insn = "i", .insn_len = 1, .unit = &foo, .frame = &foo
    }));
    assert_false(rb_vm_trace_span_begin(RB_VM_TRACE_COMPILE, "c", 1));
    rb_vm_trace_span_end(RB_VM_TRACE_COMPILE, "c", 1);
    rb_vm_trace_compile_end("c", 1, &foo, 1, 1);
    rb_vm_trace_iseq_free(&foo);
    rb_vm_trace_method_free(&foo);
    rb_vm_trace_compacted();
    rb_vm_trace_before_fork();
    rb_vm_trace_after_fork(0);
    rb_vm_trace_before_fork();
    rb_vm_trace_after_fork(-1);
    rb_vm_trace_shutdown();
    char *said = captured_stderr(), expected[512];
    snprintf(expected, sizeof(expected), "ZJIT: can't trace to %s: %s; running untraced\n", path, strerror(ENOENT));
    assert_string_equal(said, expected);
    free(said);
    free(path);
    fake_free_stack(&main_thread);
}

static void
relative_path_is_taken_from_where_the_trace_began(void **state)
{
    (void)state;
    assert_int_equal(chdir(temp_folder()), 0);
    start_traced(.exit_rate = 1, .path = "here-%p.fxt");
    assert_int_equal(chdir("/"), 0);
    char name[64];
    snprintf(name, sizeof(name), "here-%d.fxt", (int)getpid());
    traced_path = temp_path(name);
    trace_free(finish_traced());
}

/* --- ractors --------------------------------------------------------------------------------------- */

struct worker {
    struct rb_ractor_struct ractor;
    struct rb_execution_context_struct thread;
    struct rb_vm_trace_site *site;
    unsigned exits;
    char name[16]; /* of the thread, and reason of its exits */
};

static void *
work(void *argument)
{
    struct worker *worker = argument;
    fake_current(&worker->thread);
    for (unsigned i = 0; i < worker->exits; i++) {
        if (i % 50 == 0) { /* others' ISEQs die, and this one evals */
            struct rb_iseq_struct eval = fake_iseq("eval", "e.rb");
            fake_push(&worker->thread, &eval, 1);
            take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "eval", &eval, 0), &worker->thread);
            fake_pop(&worker->thread, 1);
            rb_vm_trace_iseq_free(&eval);
            rb_vm_trace_method_free(&eval);
        }
        take_varied_exits(worker->site, &worker->thread, 1);
    }
    return NULL;
}

static void
assert_so_many_are_counted(unsigned ractors, unsigned exits, struct rb_vm_trace_config config, bool free_before_the_end)
{
    unsigned evals = exits / 50;
    (start_traced)(config);
    push_foo();
    struct worker *workers = calloc(ractors, sizeof(*workers));
    pthread_t *threads = calloc(ractors, sizeof(*threads));
    for (unsigned i = 0; i < ractors; i++) {
        struct worker *worker = &workers[i];
        snprintf(worker->name, sizeof(worker->name), "ractor %u", i);
        worker->ractor.vm_trace = rb_vm_trace_ractor_new();
        assert_non_null(worker->ractor.vm_trace);
        worker->thread = (struct rb_execution_context_struct){
            .ractor = &worker->ractor, .tid = 2000 + i, .thread_name = workers[i].name, .name_id = 5
        };
        fake_push(&worker->thread, &foo, 1);
        fake_push(&worker->thread, &foo, 1);
        worker->site = make_site(RB_VM_TRACE_SIDE_EXIT, workers[i].name, &foo, 0);
        worker->exits = exits;
    }
    for (unsigned i = 0; i < ractors; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (unsigned i = 0; i < ractors; i++) pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < ractors && free_before_the_end; i++) rb_vm_trace_ractor_free(workers[i].ractor.vm_trace);
    rb_vm_trace_shutdown();
    for (unsigned i = 0; i < ractors && !free_before_the_end; i++) rb_vm_trace_ractor_free(workers[i].ractor.vm_trace);

    struct trace *trace = finish_traced();
    size_t recorded = 0;
    for (unsigned i = 0; i < ractors; i++) {
        size_t here = 0;
        assert_int_equal(site_hits(trace, workers[i].name), exits);
        for (size_t n = 0; n < trace->event_count; n++) {
            const struct trace_event *event = &trace->events[n];
            if (event->tid != 2000 + i || strcmp(event->category, "side_exit") != 0) continue;
            assert_string_equal(event->thread, workers[i].name);
            assert_true(strcmp(event->name, "eval") == 0 || strcmp(event->name, workers[i].name) == 0);
            here++;
        }
        assert_int_equal(here, (exits + evals) / config.exit_rate); /* one countdown a ractor */
        recorded += here;
        fake_free_stack(&workers[i].thread);
    }
    assert_summary(trace, ractors * (exits + evals), recorded, 0);
    trace_free(trace);
    free(workers);
    free(threads);
}

static void
assert_ractors_are_counted(uint64_t rate, bool free_before_the_end)
{
    assert_so_many_are_counted(4, 30000, (struct rb_vm_trace_config){ .exit_rate = rate }, free_before_the_end);
}

static void
ractors_that_exit_at_once_are_all_counted(void **state)
{
    (void)state;
    assert_ractors_are_counted(1, false);
}

/* Two of three chunks are ractors' own: the others share the last, and none of their events is in a chunk that is used again. */
static void
ractors_without_a_chunk_share_one_and_lose_nothing(void **state)
{
    (void)state;
    struct rb_vm_trace_config config = { .exit_rate = 1, .max_size = { .bytes = 4 << 20 } };
    assert_so_many_are_counted(24, 300, config, false);
}

static void
thread_that_is_renamed_has_its_new_name_in_the_chunk_that_is_shared(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1, .max_size = { .bytes = 4 << 20 });
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    struct rb_ractor_struct ractors[3] = { { .vm_trace = NULL } };
    struct rb_execution_context_struct contexts[3], *last = &contexts[2];
    for (unsigned i = 0; i < 3; i++) {
        ractors[i].vm_trace = rb_vm_trace_ractor_new();
        contexts[i] = (struct rb_execution_context_struct){ .ractor = &ractors[i], .tid = 7 + i, .thread_name = "old", .name_id = 5 };
        fake_push(&contexts[i], &foo, 1);
        take_exit(site, &contexts[i]);
    }
    fake_current(last);
    last->thread_name = "new";
    rb_vm_trace_thread_renamed();
    take_exit(site, last);
    take_exit(site, &contexts[1]);
    assert_null(ractors[2].vm_trace->writer.chunk.words);
    fake_current(&main_thread);
    for (unsigned i = 0; i < 3; i++) rb_vm_trace_ractor_free(ractors[i].vm_trace);
    for (unsigned i = 0; i < 3; i++) fake_free_stack(&contexts[i]);
    struct trace *trace = finish_traced();
    unsigned renamed = 0;
    for (size_t i = 0; i < trace->event_count; i++) renamed += strcmp(trace->events[i].thread, "new") == 0;
    assert_int_equal(renamed, 1);
    trace_free(trace);
}

/* The one before it has ended, and had the same native thread, and its Ruby thread the same address. */
static void
ractor_has_its_own_name_in_the_chunk_that_is_shared(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1, .max_size = { .bytes = 4 << 20 });
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    struct rb_ractor_struct owner = { .vm_trace = rb_vm_trace_ractor_new() };
    struct rb_execution_context_struct context = { .ractor = &owner, .tid = 7, .thread_name = "owner", .name_id = 5 };
    fake_push(&context, &foo, 1);
    take_exit(site, &context);
    fake_free_stack(&context);
    begin_ractor();
    thread.thread_name = "first";
    for (int i = 0; i < 2; i++) {
        take_exit(site, &thread);
        assert_null(ractor.vm_trace->writer.chunk.words);
        rb_vm_trace_ractor_free(ractor.vm_trace);
        thread.thread_name = "second";
        ractor.vm_trace = rb_vm_trace_ractor_new();
    }
    rb_vm_trace_ractor_free(ractor.vm_trace);
    rb_vm_trace_ractor_free(owner.vm_trace);
    struct trace *trace = finish_traced();
    assert_string_equal(trace_event(trace, "side_exit", "r", 1)->thread, "first");
    assert_string_equal(trace_event(trace, "side_exit", "r", 2)->thread, "second");
    trace_free(trace);
    fake_free_stack(&thread);
}

static void
one_in_97_is_exact_in_each_ractor(void **state)
{
    (void)state;
    assert_ractors_are_counted(97, false);
}

static void
counts_of_ractors_that_are_gone_are_kept(void **state)
{
    (void)state;
    assert_ractors_are_counted(1, true);
}

/* Ractors that live one after the other on a native thread, whose thread and address the next one has, too. */
struct generations {
    uint32_t tid;
    bool own_threads;  /* each has another native thread all the same */
    unsigned ractors, first;
    struct rb_vm_trace_site *site;
};

static void *
live_and_die(void *argument)
{
    enum { EXITS = 3 };
    const struct generations *generations = argument;
    for (unsigned i = 0; i < generations->ractors; i++) {
        char name[32];
        snprintf(name, sizeof(name), "ractor %u", generations->first + i);
        struct rb_ractor_struct one = { .vm_trace = rb_vm_trace_ractor_new() };
        struct rb_execution_context_struct context = {
            .ractor = &one, .tid = generations->tid + (generations->own_threads ? i : 0), .thread_name = name, .name_id = 5
        };
        fake_push(&context, &foo, 1);
        for (unsigned n = 0; n < EXITS; n++) take_exit(generations->site, &context);
        fake_free_stack(&context);
        rb_vm_trace_ractor_free(one.vm_trace);
    }
    return NULL;
}

/* `most_chunks`: of the file. Without what others left there would be one a ractor; at times a clock that is ahead by little keeps one from it. */
static void
assert_generations_are_recorded(unsigned threads, unsigned ractors, bool own_threads, unsigned most_chunks, struct rb_vm_trace_config config)
{
    (start_traced)(config);
    push_foo();
    struct generations generations[8];
    pthread_t ids[8];
    for (unsigned i = 0; i < threads; i++) {
        generations[i] = (struct generations){
            .tid = 2000 + i * 1000, .own_threads = own_threads, .ractors = ractors, .first = i * ractors,
            .site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0)
        };
        assert_int_equal(pthread_create(&ids[i], NULL, live_and_die, &generations[i]), 0);
    }
    for (unsigned i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    assert_ptr_equal(rb_vm_trace_capture.ractors, main_ractor.vm_trace);
    assert_null(main_ractor.vm_trace->next);

    struct trace *trace = finish_traced();
    unsigned *exits = calloc(threads * ractors, sizeof(*exits)), ractor;
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (strcmp(event->category, "side_exit") != 0) continue;
        assert_int_equal(sscanf(event->thread, "ractor %u", &ractor), 1);
        assert_in_range(ractor, 0, threads * ractors - 1);
        assert_int_equal(event->tid, 2000 + ractor / ractors * 1000 + (own_threads ? ractor % ractors : 0));
        exits[ractor]++;
    }
    for (unsigned i = 0; i < threads * ractors; i++) assert_int_equal(exits[i], 3);
    assert_in_range(trace->chunk_count, 1, most_chunks);
    assert_summary(trace, 3 * threads * ractors, 3 * threads * ractors, 0);
    trace_free(trace);
    free(exits);
}

static void
ractors_that_come_and_go_fill_chunks_one_after_the_other(void **state)
{
    (void)state;
    assert_generations_are_recorded(4, 300, false, 100, (struct rb_vm_trace_config){ .exit_rate = 1 });
}

static void
ractors_with_threads_of_their_own_share_the_indexes_of_a_chunk(void **state)
{
    (void)state;
    assert_generations_are_recorded(1, 600, true, 1 + 1, (struct rb_vm_trace_config){ .exit_rate = 1 });
}

/* There are three chunks: what they leave is no more than that, and none is used again before they are full. */
static void
ractors_that_come_and_go_lose_nothing_in_a_limited_file(void **state)
{
    (void)state;
    struct rb_vm_trace_config config = { .exit_rate = 1, .max_size = { .bytes = 4 << 20 } };
    assert_generations_are_recorded(4, 200, false, 1 + 3, config);
}

/* By the clock of the next one its events are still to come. The summary is later all the same. */
static void
what_a_ractor_left_whose_clock_is_ahead_is_not_taken_until_then(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    begin_ractor();
    take_exit(site, &thread);
    ractor.vm_trace->clock.anchor_ns += 3600 * UINT64_C(1000000000);
    take_exit(site, &thread);
    bool ahead = rb_vm_trace_now(ractor.vm_trace) > rb_vm_trace_clock_system_ns() + 1800 * UINT64_C(1000000000);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    ractor.vm_trace = rb_vm_trace_ractor_new();
    take_exit(site, &thread);
    if (ahead) assert_non_null(rb_vm_trace_capture.shared.orphans);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    struct trace *trace = finish_traced();
    assert_summary(trace, 3, 3, 0);
    assert_true(trace_event(trace, "trace", "summary", 0)->ns >= trace_event(trace, "side_exit", "r", 1)->ns);
    trace_free(trace);
    fake_free_stack(&thread);
}

static void
counts_of_a_gone_ractor_are_reported_when_the_iseq_dies(void **state)
{
    (void)state;
    start_traced(.exit_rate = 7);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    begin_ractor();
    for (int i = 0; i < 20; i++) take_exit(site, &thread);
    for (int i = 0; i < 10; i++) take_exit(site, &main_thread);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    rb_vm_trace_iseq_free(&foo);
    struct rb_iseq_struct bar = fake_iseq("bar", "app.rb");
    make_site(RB_VM_TRACE_SIDE_EXIT, "heir of the index", &bar, 0);
    struct trace *trace = finish_traced();
    assert_int_equal(site_hits(trace, "r"), 30);
    assert_int_equal(site_hits(trace, "heir of the index"), 0);
    assert_summary(trace, 30, 2 + 1, 0);
    trace_free(trace);
    fake_free_stack(&thread);
}

static void
ractor_that_never_exits_takes_no_chunk(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    struct rb_vm_trace_ractor *ractor_state = rb_vm_trace_ractor_new();
    rb_vm_trace_ractor_free(ractor_state);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->chunk_count, 1);
    trace_free(trace);
}

static void
ractors_that_live_at_the_start_get_their_state(void **state)
{
    (void)state;
    static struct rb_ractor_struct other;
    fake_ractor_add(&other);
    start_traced(.exit_rate = 1);
    assert_non_null(other.vm_trace);
    assert_ptr_not_equal(other.vm_trace, main_ractor.vm_trace);
    rb_vm_trace_ractor_free(other.vm_trace);
    trace_free(finish_traced());
}

/* When there was no memory for a ractor it shares the spare one: nothing recorded, all counted. */
static void
ractor_without_memory_of_its_own_counts_losses(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1, .fallback_rate = 1, .compiles = true);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0),
        *fallback = make_site(RB_VM_TRACE_FALLBACK, "f", &foo, 0);
    struct rb_ractor_struct ractor = { .vm_trace = rb_vm_trace_capture.overflow };
    struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = 7, .thread_name = "t", .name_id = 5 };
    for (int i = 0; i < 20; i++) take_exit(site, &thread);
    for (int i = 0; i < 3; i++) take_exit(site, &main_thread);
    rb_vm_trace_hit(fallback, &thread);
    fake_current(&thread);
    assert_false(rb_vm_trace_span_begin(RB_VM_TRACE_COMPILE, "c", 1));
    fake_current(&main_thread);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    struct trace *trace = finish_traced();
    assert_summary(trace, 23, 3, 21);
    assert_int_equal(site_hits(trace, "r"), 23);
    trace_free(trace);
}

/* --- losses ---------------------------------------------------------------------------------------- */

/*
 * The disk is full in the middle. `salt` shifts where the first chunk ends in the middle of an
 * event, so that the room left differs.
 */
static void
fill_the_disk(void *argument)
{
    unsigned salt = *(unsigned *)argument;
    limit_file_size(CHUNK);
    start_traced(.exit_rate = 1);
    push_foo();
    char reason[512];
    memset(reason, 'r', sizeof(reason));
    reason[1 + salt * 13] = '\0';
    for (unsigned i = 0; i < 1 + salt; i++) fake_push(&main_thread, &foo, 1 + i);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, reason, &foo, 0);
    take_varied_exits(site, &main_thread, 40000);
    uint64_t lost = main_ractor.vm_trace->lost, sampled = exits_of(main_ractor.vm_trace)->sampled;
    assert_true(sampled > 1000);
    assert_int_equal(lost + sampled, 40000);
    struct trace *trace = finish_traced();
    const struct trace_event *summary = trace_event(trace, "trace", "summary", 0);
    lost = trace_number(summary, "lost");
    assert_true(lost == 40000 - sampled || lost == 40000 - sampled + 1); /* the site's event may be lost too */
    assert_summary(trace, 40000, sampled, lost);
    assert_string_equal(trace_text(trace_event(trace, "trace", "loss", 0), "reason"), strerror(EFBIG));
    trace_free(trace);
}

static void
full_disk_in_the_middle_leaves_loss_and_summary(void **state)
{
    (void)state;
    for (unsigned salt = 0; salt < 14; salt++) in_child(fill_the_disk, &salt);
}

static void
full_disk_is_said_at_the_end(void **state)
{
    (void)state;
    rb_vm_trace_writer_run_chunks = 1;
    char *disk = temp_path("disk");
    assert_int_equal(mkdir(disk, 0777), 0);
    mount_small_disk(disk, 2 * CHUNK + CHUNK / 2);
    traced_path = temp_path("disk/t.fxt");
    capture_stderr();
    start_traced(.exit_rate = 1, .path = traced_path);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    take_varied_exits(site, &main_thread, 100000);
    uint64_t sampled = exits_of(main_ractor.vm_trace)->sampled;
    struct trace *trace = finish_traced();
    char *said = captured_stderr(), expected[128];
    uint64_t lost = trace_number(trace_event(trace, "trace", "summary", 0), "lost");
    assert_in_range(lost + sampled, 100000, 100001); /* the site's event may be lost, too */
    assert_int_equal(trace->chunk_count, 2);
    assert_summary(trace, 100000, sampled, lost);
    snprintf(expected, sizeof(expected), ", %llu events lost (%s)\n", (unsigned long long)lost, strerror(ENOSPC));
    assert_non_null(strstr(said, expected));
    assert_string_equal(trace_text(trace_event(trace, "trace", "loss", 0), "reason"), strerror(ENOSPC));
    trace_free(trace);
    free(said);
    free(disk);
}

/* No file at all, rather than one of 0 bytes that no reader takes. */
static void
assert_no_room_at_the_start(struct rb_vm_trace_config config, const char *reason)
{
    config.jit = "ZJIT";
    config.exit_rate = 1;
    fake_ractor_add(&main_ractor);
    fake_current(&main_thread);
    push_foo();
    capture_stderr();
    assert_false(rb_vm_trace_start(&config));
    assert_null(rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
        .reason = "r", .reason_len = 1, .insn = "i", .insn_len = 1, .unit = &foo, .frame = &foo
    }));
    rb_vm_trace_iseq_free(&foo);
    rb_vm_trace_shutdown();
    free_traced();
    char *said = captured_stderr(), expected[512];
    snprintf(expected, sizeof(expected), "ZJIT: can't trace to %s: %s; running untraced\n", config.path, reason);
    assert_string_equal(said, expected);
    assert_int_equal(access(config.path, F_OK), -1);
    free(said);
}

static void
file_size_limit_below_a_chunk_leaves_the_program_untraced_and_no_file(void **state)
{
    (void)state;
    char *path = temp_path("t.fxt");
    limit_file_size(1000);
    assert_no_room_at_the_start((struct rb_vm_trace_config){ .path = path }, strerror(EFBIG));
    free(path);
}

static void
full_disk_at_the_start_leaves_the_program_untraced_and_no_file(void **state)
{
    (void)state;
    char *disk = temp_path("disk"), *path = temp_path("disk/t.fxt");
    assert_int_equal(mkdir(disk, 0777), 0);
    mount_small_disk(disk, CHUNK / 2);
    assert_no_room_at_the_start((struct rb_vm_trace_config){ .path = path }, strerror(ENOSPC));
    free(path);
    free(disk);
}

static void
file_of_a_forked_child_that_finds_the_disk_full_is_not_left_behind(void **state)
{
    (void)state;
    char *disk = temp_path("disk");
    assert_int_equal(mkdir(disk, 0777), 0);
    mount_small_disk(disk, CHUNK + CHUNK / 2);
    traced_path = temp_path("disk/t.fxt");
    start_traced(.exit_rate = 1, .path = traced_path);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    capture_stderr();
    rb_vm_trace_before_fork();
    pid_t child = fork();
    rb_vm_trace_after_fork(child);
    if (child == 0) {
        for (int i = 0; i < 10; i++) take_exit(site, &main_thread);
        rb_vm_trace_shutdown();
        end_at_once(0);
    }
    wait_for(child);
    char *said = captured_stderr(), path[256], expected[512];
    snprintf(path, sizeof(path), "%s.%d", traced_path, child);
    snprintf(expected, sizeof(expected), "ZJIT: can't trace to %s: %s; running untraced\n", path, strerror(ENOSPC));
    assert_string_equal(said, expected);
    assert_int_equal(access(path, F_OK), -1);
    free(said);
    take_exit(site, &main_thread);
    struct trace *trace = finish_traced(); /* the parent's is whole */
    assert_summary(trace, 1, 1, 0);
    trace_free(trace);
    free(disk);
}

/* --- what others do to the file --------------------------------------------------------------------- */

static void
on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    if (!rb_vm_trace_fault(info->si_addr)) _exit(99);
}

/* As CRuby's handler does. */
static void
handle_faults(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGBUS, &action, NULL);
}

/* Cut the file to a part of what it has, in the middle of 100,000 exits; then sums must be right. */
static void
cut_in_the_middle(void *argument)
{
    unsigned part = *(unsigned *)argument; /* of 16 */
    handle_faults();
    capture_stderr();
    start_traced(.exit_rate = 1);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    take_varied_exits(site, &main_thread, 50000);
    struct stat st;
    assert_int_equal(stat(traced_path, &st), 0);
    assert_int_equal(truncate(traced_path, st.st_size * part / 16), 0);
    take_varied_exits(site, &main_thread, 50000);
    struct trace *trace = finish_traced();
    char *said = captured_stderr(), expected[128];
    uint64_t kept = trace_count(trace, "side_exit", NULL);
    uint64_t lost = trace_number(trace_event(trace, "trace", "summary", 0), "lost");
    assert_summary(trace, 100000, kept, lost);
    /* Of the file three chunks that were made ahead may be empty, and most of the last one. */
    uint64_t cut_at = part * 50000 / 16, empty = part * 4 * 13000 / 16;
    assert_in_range(kept, cut_at > 5000 ? cut_at - 5000 : 0, cut_at + empty + 5000);
    assert_true(lost + kept >= 100000 && lost + kept <= 100000 + FIRST_EVENTS); /* where nothing is left, these are lost, too */
    assert_string_equal(trace_text(trace_event(trace, "trace", "loss", 0), "reason"), "another program cut the file short");
    snprintf(expected, sizeof(expected), "wrote %llu of 100000 exits, ", (unsigned long long)kept);
    assert_non_null(strstr(said, expected));
    snprintf(expected, sizeof(expected), ", %llu events lost (another program cut the file short)\n", (unsigned long long)lost);
    assert_non_null(strstr(said, expected));
    assert_int_equal(site_hits(trace, "r"), 100000); /* counts are not events */
    trace_free(trace);
    free(said);
}

static void
cut_file_is_mended_at_the_end_and_the_loss_is_exact(void **state)
{
    (void)state;
    for (unsigned part = 0; part < 16; part += 3) in_child(cut_in_the_middle, &part);
}

enum { OTHERS_EXITS = 30000 };
static struct rb_vm_trace_site *others_site;

static void *
exit_in_another_ractor(void *argument)
{
    fake_current(argument);
    take_varied_exits(others_site, argument, OTHERS_EXITS);
    return NULL;
}

/* `count` ractors that run at once; join_ractors ends them. */
static struct rb_ractor_struct others[8];
static struct rb_execution_context_struct contexts[8];
static pthread_t threads[8];

static void
run_ractors(int count)
{
    others_site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    for (int i = 0; i < count; i++) {
        others[i].vm_trace = rb_vm_trace_ractor_new();
        contexts[i] = (struct rb_execution_context_struct){ .ractor = &others[i], .tid = 2 + (unsigned)i, .thread_name = "t" };
        fake_push(&contexts[i], &foo, 2);
        assert_int_equal(pthread_create(&threads[i], NULL, exit_in_another_ractor, &contexts[i]), 0);
    }
}

static void
join_ractors(int count)
{
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        rb_vm_trace_ractor_free(others[i].vm_trace);
        fake_free_stack(&contexts[i]);
    }
}

static void
cut_under_several_ractors_harms_none(void **state)
{
    (void)state;
    enum { RACTORS = 4 };
    handle_faults();
    start_traced(.exit_rate = 1);
    push_foo();
    run_ractors(RACTORS);
    for (int cut = 0; cut < 50; cut++) {
        assert_int_equal(truncate(traced_path, cut * 4096), 0); /* shorter, and longer with zeros */
        usleep(1000);
    }
    join_ractors(RACTORS);
    assert_int_equal(truncate(traced_path, 4096), 0); /* none of the chunks is as it should be */
    struct trace *trace = finish_traced();
    uint64_t lost = trace_number(trace_event(trace, "trace", "summary", 0), "lost");
    assert_true(lost > 0);
    assert_summary(trace, RACTORS * OTHERS_EXITS, trace_count(trace, "side_exit", NULL), lost);
    trace_free(trace);
}

/* What a quiet trace says whose file is removed, or is not. */
static char *
said_by_quiet_trace(bool remove)
{
    capture_stderr();
    assert_true(rb_vm_trace_parse_quiet("--zjit-trace-quiet", ""));
    start_traced(.exit_rate = 1);
    push_foo();
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0), &main_thread);
    if (remove) assert_int_equal(unlink(traced_path), 0);
    rb_vm_trace_shutdown();
    return captured_stderr();
}

static void
quiet_trace_says_nothing(void **state)
{
    (void)state;
    assert_string_equal(said_by_quiet_trace(false), "");
    assert_int_equal(unlink(traced_path), 0);
}

static void
quiet_trace_says_what_was_lost(void **state)
{
    (void)state;
    assert_non_null(strstr(said_by_quiet_trace(true), "events lost (the file was removed)"));
}

static void
removed_file_is_a_loss_of_all_and_said(void **state)
{
    (void)state;
    capture_stderr();
    start_traced(.exit_rate = 1);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    take_varied_exits(site, &main_thread, 30000);
    assert_int_equal(unlink(traced_path), 0);
    take_varied_exits(site, &main_thread, 30000);
    rb_vm_trace_shutdown();
    free_traced();
    char *said = captured_stderr(), expected[512];
    /* 60,000 exits, the settings, the host, and the site's event */
    snprintf(expected, sizeof(expected), "wrote 0 of 60000 exits, 0 events to %s, 60003 events lost (the file was removed)\n", traced_path);
    assert_non_null(strstr(said, expected));
    assert_int_equal(access(traced_path, F_OK), -1);
    free(said);
    free(traced_path);
}

static void
address_that_is_not_the_tracers_is_not_its_fault(void **state)
{
    (void)state;
    int somewhere = 0;
    assert_false(rb_vm_trace_fault(&somewhere)); /* before the start */
    start_traced(.exit_rate = 1);
    assert_false(rb_vm_trace_fault(&somewhere));
    assert_false(rb_vm_trace_fault(NULL));
    fake_current(NULL);
    assert_false(rb_vm_trace_fault(main_ractor.vm_trace->writer.chunk.words)); /* a thread without Ruby touches none */
    fake_current(&main_thread);
    void *chunk = main_ractor.vm_trace->writer.chunk.words;
    trace_free(finish_traced());
    assert_false(rb_vm_trace_fault(chunk));
}

/* Its next chunk is begun while nobody has borrowed it, by whoever comes: that one is no owner of it. */
static void
shared_chunk_that_was_cut_off_is_no_bus_error(void **state)
{
    (void)state;
    handle_faults();
    start_traced(.exit_rate = 1);
    push_foo();
    struct rb_vm_trace_writer *shared = &rb_vm_trace_capture.shared.writer;
    assert_true(rb_vm_trace_writer_next_chunk(shared));
    assert_int_equal(truncate(traced_path, 0), 0);
    struct vm_trace_slot slot;
    assert_true(rb_vm_trace_writer_define(shared, &slot, "text", 4));
    fake_current(NULL); /* and on a thread that runs no Ruby */
    assert_int_equal(truncate(traced_path, 0), 0);
    assert_true(rb_vm_trace_writer_define(shared, &slot, "text", 4));
    fake_current(&main_thread);
    rb_vm_trace_shutdown();
    free_traced();
    free(traced_path);
}

/* --- a limited file ---------------------------------------------------------------------------------- */

static struct rb_vm_trace_max_size
mib(uint64_t size, bool keep_oldest)
{
    return (struct rb_vm_trace_max_size){ .bytes = size << 20, .keep_oldest = keep_oldest };
}

/* Lines go up one by one, so the kept exits tell which they are. */
static void
take_numbered_exits(struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        ec->frames[ec->frame_count - 1].line = 1 + i % 900;
        ec->frames[ec->frame_count - 2].line = 1 + i / 900;
        take_exit(site, ec);
    }
}

static unsigned
number_of(const struct trace_event *event)
{
    unsigned low, high;
    const char *inner = trace_text(event, "0"), *outer = trace_text(event, "1");
    assert_int_equal(sscanf(inner, "foo (app.rb:%u)", &low), 1);
    assert_int_equal(sscanf(outer, "foo (app.rb:%u)", &high), 1);
    return (low - 1) + 900 * (high - 1);
}

static void
newest_exits_are_kept_with_the_settings_and_all_sums_are_right(void **state)
{
    (void)state;
    enum { EXITS = 400000 };
    capture_stderr();
    start_traced(.exit_rate = 1, .max_size = mib(4, false));
    push_foo();
    fake_push(&main_thread, &foo, 1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    take_numbered_exits(site, &main_thread, 0, EXITS);
    struct stat st;
    assert_int_equal(stat(traced_path, &st), 0);
    assert_true(st.st_size <= 4 * CHUNK);
    struct trace *trace = finish_traced();
    char *said = captured_stderr(), expected[256];

    const struct trace_event *settings = &trace->events[0];
    assert_true(event_is(settings, "trace", "settings"));
    assert_true(trace_number(settings, "max_bytes") == 4 * CHUNK);
    assert_string_equal(trace_text(settings, "keep"), "newest");
    uint64_t kept = trace_count(trace, "side_exit", NULL);
    assert_true(kept > 10000 && kept < EXITS / 2);
    assert_summary(trace, EXITS, kept, EXITS - kept);
    assert_string_equal(trace_text(trace_event(trace, "trace", "loss", 0), "reason"),
                        "older events gave way at the limit of the file's size");
    static bool seen[EXITS];
    for (size_t i = 0; i < trace->event_count; i++) {
        if (event_is(&trace->events[i], "side_exit", "r")) seen[number_of(&trace->events[i])] = true;
    }
    for (size_t i = 0; i < EXITS; i++) assert_int_equal(seen[i], i >= EXITS - kept);
    snprintf(expected, sizeof(expected), "wrote %llu of %d exits, ", (unsigned long long)kept, EXITS);
    assert_non_null(strstr(said, expected));
    snprintf(expected, sizeof(expected), ", %llu events lost (older events gave way at the limit of the file's size)\n",
             (unsigned long long)(EXITS - kept));
    assert_non_null(strstr(said, expected));
    assert_int_equal(site_hits(trace, "r"), EXITS);
    trace_free(trace);
    free(said);
}

static void
oldest_exits_are_kept_and_the_counts_have_room(void **state)
{
    (void)state;
    enum { EXITS = 200000, SITES = 5000 };
    start_traced(.exit_rate = 1, .max_size = mib(4, true));
    push_foo();
    fake_push(&main_thread, &foo, 1);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    take_numbered_exits(site, &main_thread, 0, EXITS);
    for (unsigned i = 0; i < SITES; i++) {
        char reason[32];
        snprintf(reason, sizeof(reason), "site %u", i);
        take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, reason, &foo, 1 + i % 900), &main_thread);
    }
    struct trace *trace = finish_traced();
    uint64_t kept = trace_count(trace, "side_exit", NULL);
    assert_true(kept > 10000 && kept < EXITS);
    assert_summary(trace, EXITS + SITES, kept, EXITS + SITES - kept);
    unsigned next = 0;
    for (size_t i = 0; i < trace->event_count; i++) {
        if (event_is(&trace->events[i], "side_exit", "r")) assert_int_equal(number_of(&trace->events[i]), next++);
    }
    assert_string_equal(trace_text(trace_event(trace, "trace", "loss", 0), "reason"), "the limit of the file's size is reached");
    assert_int_equal(trace_count(trace, "trace", "site"), 1 + SITES); /* all of them */
    trace_free(trace);
}

static void
file_below_its_limit_is_as_any_other(void **state)
{
    (void)state;
    for (int oldest = 0; oldest < 2; oldest++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            start_traced(.exit_rate = 1, .max_size = mib(4, oldest));
            push_foo();
            struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
            take_varied_exits(site, &main_thread, 100);
            char *path = strdup(traced_path);
            struct trace *trace = finish_traced();
            assert_summary(trace, 100, 100, 0);
            trace_free(trace);
            struct stat st;
            assert_int_equal(stat(path, &st), 0);
            assert_true(st.st_size < 100000); /* trimmed */
            exit(0);
        }
        wait_for(child);
    }
}

/* More ractors than chunks: each keeps its own, or has none and counts. */
static void
more_ractors_than_chunks_stay_below_the_limit(void **state)
{
    (void)state;
    enum { RACTORS = 6 };
    start_traced(.exit_rate = 1, .max_size = mib(4, false));
    push_foo();
    run_ractors(RACTORS);
    join_ractors(RACTORS);
    struct stat st;
    assert_int_equal(stat(traced_path, &st), 0);
    assert_true(st.st_size <= 4 * CHUNK);
    struct trace *trace = finish_traced();
    uint64_t kept = trace_count(trace, "side_exit", NULL), lost = 0;
    for (size_t i = 0; i < trace_count(trace, "trace", "loss"); i++) lost += trace_number(trace_event(trace, "trace", "loss", i), "lost");
    assert_true(kept > 0);
    assert_int_equal(trace_count(trace, "trace", "loss"), 1); /* none for want of a chunk */
    assert_string_equal(trace_text(trace_event(trace, "trace", "loss", 0), "reason"), "older events gave way at the limit of the file's size");
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "lost"), lost);
    assert_int_equal(lost + kept, RACTORS * OTHERS_EXITS);
    trace_free(trace);
}

static void
losses_of_other_ractors_are_in_the_main_ones_last_words(void **state)
{
    (void)state;
    limit_file_size(2 * CHUNK);
    start_traced(.exit_rate = 1);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    begin_ractor();
    take_varied_exits(site, &thread, 40000);
    uint64_t lost = ractor.vm_trace->lost;
    assert_true(lost > 0);
    take_varied_exits(site, &main_thread, 100);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    struct trace *trace = finish_traced();
    assert_summary(trace, 40100, 40100 - lost, lost);
    assert_int_equal(trace_event(trace, "trace", "summary", 0)->tid, 1001);
    trace_free(trace);
    fake_free_stack(&thread);
}

/* A ractor that begins when the disk is full has no chunk at all. */
static void
ractor_without_a_chunk_counts_its_losses(void **state)
{
    (void)state;
    limit_file_size(CHUNK);
    start_traced(.exit_rate = 1);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    begin_ractor();
    take_varied_exits(site, &thread, 10);
    take_varied_exits(site, &main_thread, 5);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    struct trace *trace = finish_traced();
    assert_summary(trace, 15, 5, 10);
    trace_free(trace);
    fake_free_stack(&thread);
}

static void
last_words_have_room_for_a_thread_with_a_long_name(void **state)
{
    (void)state;
    limit_file_size(CHUNK);
    start_traced(.exit_rate = 1);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    take_varied_exits(site, &main_thread, 40000);
    static char name[300];
    memset(name, 'n', sizeof(name) - 1);
    main_thread.thread_name = name; /* renamed at the very end */
    main_thread.name_id = 99;
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "trace", "loss"), 1);
    assert_int_equal(trace_count(trace, "trace", "summary"), 1);
    assert_true(strlen(trace_event(trace, "trace", "summary", 0)->thread) > 200);
    trace_free(trace);
}

/* With no string left in the chunk, the loss must still be said. */
static void
last_words_are_said_when_the_string_table_is_full(void **state)
{
    (void)state;
    limit_file_size(CHUNK);
    start_traced(.exit_rate = 1, .compiles = true);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    take_exit(site, &main_thread);
    struct vm_trace_slot slot;
    char text[16];
    for (int i = 0; rb_vm_trace_writer_define(&main_ractor.vm_trace->writer, &slot, text, (size_t)sprintf(text, "%d", i)); i++) {}
    fake_push(&main_thread, &foo, 99); /* a frame that would need a string */
    take_exit(site, &main_thread);
    assert_int_equal(main_ractor.vm_trace->lost, 1);
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "trace", "summary"), 1);
    uint64_t lost = trace_number(trace_event(trace, "trace", "summary", 0), "lost");
    assert_in_range(lost, 1, 2); /* the site's event may be lost too */
    assert_int_equal(trace_count(trace, "trace", "loss"), 1);
    assert_int_equal(trace_number(trace_event(trace, "trace", "loss", 0), "lost"), lost);
    trace_free(trace);
}

/* As daemons do: all descriptors closed, and ours used again for a file of the program. */
static void
closed_descriptor_is_a_loss_and_the_programs_file_is_untouched(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    take_varied_exits(site, &main_thread, 10);
    char *log = temp_path("log");
    int fd = rb_vm_trace_capture.file.fd;
    close(fd);
    assert_int_equal(open(log, O_RDWR | O_CREAT, 0600), fd);
    take_varied_exits(site, &main_thread, 40000);
    uint64_t sampled = exits_of(main_ractor.vm_trace)->sampled;
    assert_true(sampled < 40010);
    struct trace *trace = finish_traced();
    uint64_t lost = trace_number(trace_event(trace, "trace", "summary", 0), "lost");
    assert_in_range(lost + sampled, 40010, 40011);
    assert_summary(trace, 40010, sampled, lost);
    assert_string_equal(trace_text(trace_event(trace, "trace", "loss", 0), "reason"), strerror(EBADF));
    size_t bytes;
    free(read_bytes(log, &bytes));
    assert_int_equal(bytes, 0);
    assert_int_not_equal(fcntl(fd, F_GETFD), -1);
    trace_free(trace);
    free(log);
}

/* --- the end ----------------------------------------------------------------------------------------- */

static void
summary_is_the_last_event_and_counts_all_others(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1, .fallback_rate = 1, .compiles = true, .invalidations = true);
    push_foo();
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "a", &foo, 1), &main_thread);
    take_recompile_exit(make_site(RB_VM_TRACE_RECOMPILE_EXIT, "b", &foo, 2), &main_thread, RB_VM_TRACE_PROFILING);
    rb_vm_trace_hit(make_site(RB_VM_TRACE_FALLBACK, "c", &foo, 3), &main_thread);
    rb_vm_trace_span_begin(RB_VM_TRACE_INVALIDATION, "d", 1);
    rb_vm_trace_span_end(RB_VM_TRACE_INVALIDATION, "d", 1);
    rb_vm_trace_span_begin(RB_VM_TRACE_COMPILE, "e", 1);
    rb_vm_trace_compile_end("e", 1, &foo, 1, 100);
    struct trace *trace = finish_traced();
    assert_summary(trace, 2, 2, 0);
    assert_int_equal(trace->event_count, FIRST_EVENTS + 3 + 4 + 2 + 3 + 2); /* exits, spans, counters, sites, host and summary */
    const struct trace_event *summary = &trace->events[trace->event_count - 1];
    assert_string_equal(summary->name, "summary");
    for (size_t i = 0; i < trace->event_count; i++) assert_true(trace->events[i].ns <= summary->ns);
    trace_free(trace);
}

static void
summary_is_last_where_another_ractors_clock_is_ahead(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    begin_ractor();
    take_exit(site, &thread);
    ractor.vm_trace->clock.anchor_ns += 1000 * 1000 * 1000;
    take_exit(site, &thread);
    struct trace *trace = finish_traced();
    assert_true(trace_event(trace, "trace", "summary", 0)->ns >= trace_event(trace, "side_exit", "r", 1)->ns);
    trace_free(trace);
    rb_vm_trace_ractor_free(ractor.vm_trace);
    fake_free_stack(&thread);
}

static void
file_ends_with_the_page_of_its_last_record(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    char *path = strdup(traced_path);
    trace_free(finish_traced());
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 0 && st.st_size <= 8192);
    assert_int_equal(st.st_size % 4096, 0);
    free(path);
}

static void
calls_after_the_end_are_harmless_and_leave_the_file(void **state)
{
    (void)state;
    start_traced(.exit_rate = 2, .fallback_rate = 1, .compiles = true, .invalidations = true);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0), *fallback = make_site(RB_VM_TRACE_FALLBACK, "f", &foo, 0),
        *recompile = make_site(RB_VM_TRACE_RECOMPILE_EXIT, "c", &foo, 0);
    take_exit(site, &main_thread);
    rb_vm_trace_shutdown();
    size_t bytes;
    uint8_t *before = read_bytes(traced_path, &bytes);
    for (int i = 0; i < 10; i++) take_exit(site, &main_thread); /* code that was compiled may still run */
    for (int i = 0; i < 10; i++) rb_vm_trace_hit(fallback, &main_thread);
    for (int i = 0; i < 10; i++) take_recompile_exit(recompile, &main_thread, RB_VM_TRACE_PROFILING);
    rb_vm_trace_iseq_free(&foo);
    rb_vm_trace_compacted();
    assert_null(rb_vm_trace_ractor_new());
    rb_vm_trace_before_fork();
    rb_vm_trace_after_fork(1);
    rb_vm_trace_shutdown();
    assert_unchanged(traced_path, before, bytes);
    trace_free(finish_traced());
}

static void
end_outside_of_ruby_leaves_a_valid_file(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo();
    take_exit(make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0), &main_thread);
    fake_current(NULL);
    struct trace *trace = finish_traced();
    assert_int_equal(trace_count(trace, "side_exit", NULL), 1);
    trace_free(trace);
}

static void
trace_is_readable_while_it_is_written(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    push_foo();
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_SIDE_EXIT, "r", &foo, 0);
    for (unsigned i = 0; i < 20; i++) {
        take_varied_exits(site, &main_thread, 1000);
        struct trace *trace = trace_read(traced_path);
        assert_int_equal(trace_count(trace, "side_exit", "r"), 1000 * (i + 1));
        trace_free(trace);
    }
    trace_free(finish_traced());
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(settings_come_first_and_say_all),
        isolated_test(settings_leave_out_what_is_not_traced),
        isolated_test(trace_of_nothing_is_made),
        isolated_test(first_and_last_line_say_where_the_trace_is_and_what_is_in_it),
        isolated_test(last_line_is_not_said_into_what_became_the_programs_own_output),
        isolated_test(trace_that_cannot_be_made_is_one_line_and_all_calls_are_harmless),
        isolated_test(relative_path_is_taken_from_where_the_trace_began),
        isolated_test(ractors_that_exit_at_once_are_all_counted),
        isolated_test(ractors_without_a_chunk_share_one_and_lose_nothing),
        isolated_test(thread_that_is_renamed_has_its_new_name_in_the_chunk_that_is_shared),
        isolated_test(ractor_has_its_own_name_in_the_chunk_that_is_shared),
        isolated_test(one_in_97_is_exact_in_each_ractor),
        isolated_test(counts_of_ractors_that_are_gone_are_kept),
        isolated_test(ractors_that_come_and_go_fill_chunks_one_after_the_other),
        isolated_test(ractors_with_threads_of_their_own_share_the_indexes_of_a_chunk),
        isolated_test(ractors_that_come_and_go_lose_nothing_in_a_limited_file),
        isolated_test(what_a_ractor_left_whose_clock_is_ahead_is_not_taken_until_then),
        isolated_test(counts_of_a_gone_ractor_are_reported_when_the_iseq_dies),
        isolated_test(ractor_that_never_exits_takes_no_chunk),
        isolated_test(ractors_that_live_at_the_start_get_their_state),
        isolated_test(ractor_without_memory_of_its_own_counts_losses),
        isolated_test(full_disk_in_the_middle_leaves_loss_and_summary),
        isolated_test(full_disk_is_said_at_the_end),
        isolated_test(file_size_limit_below_a_chunk_leaves_the_program_untraced_and_no_file),
        isolated_test(full_disk_at_the_start_leaves_the_program_untraced_and_no_file),
        isolated_test(file_of_a_forked_child_that_finds_the_disk_full_is_not_left_behind),
        isolated_test(cut_file_is_mended_at_the_end_and_the_loss_is_exact),
        isolated_test(cut_under_several_ractors_harms_none),
        isolated_test(quiet_trace_says_nothing),
        isolated_test(quiet_trace_says_what_was_lost),
        isolated_test(removed_file_is_a_loss_of_all_and_said),
        isolated_test(shared_chunk_that_was_cut_off_is_no_bus_error),
        isolated_test(address_that_is_not_the_tracers_is_not_its_fault),
        isolated_test(newest_exits_are_kept_with_the_settings_and_all_sums_are_right),
        isolated_test(oldest_exits_are_kept_and_the_counts_have_room),
        isolated_test(file_below_its_limit_is_as_any_other),
        isolated_test(more_ractors_than_chunks_stay_below_the_limit),
        isolated_test(losses_of_other_ractors_are_in_the_main_ones_last_words),
        isolated_test(ractor_without_a_chunk_counts_its_losses),
        isolated_test(last_words_have_room_for_a_thread_with_a_long_name),
        isolated_test(last_words_are_said_when_the_string_table_is_full),
        isolated_test(closed_descriptor_is_a_loss_and_the_programs_file_is_untouched),
        isolated_test(summary_is_the_last_event_and_counts_all_others),
        isolated_test(summary_is_last_where_another_ractors_clock_is_ahead),
        isolated_test(file_ends_with_the_page_of_its_last_record),
        isolated_test(calls_after_the_end_are_harmless_and_leave_the_file),
        isolated_test(end_outside_of_ruby_leaves_a_valid_file),
        isolated_test(trace_is_readable_while_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
