/*
 * The recording path without Ruby, for counting its instructions: recording CASE EVENTS FILE; for the pause of a save:
 * recording --pause SITES FILE, and of a piece of a spool: recording --cut SITES FILE; for the processor time and
 * the bytes of a piece: recording --piece zstd|gzip|none FOLDER; for the processor time of all threads and the time
 * that many records take: recording --store MIB FILE; for what a read of the clock takes:
 * recording --clock; and for what waking a thread and sending a signal to another one takes: recording --signal.
 *
 * benchmarks/instructions runs it under callgrind with two numbers of events; the difference
 * is what the events cost, whatever starting costs.
 *
 * The walk below is what host/cruby.c does less the finding of each frame's method. Time is
 * the counter's at a fixed scale: how often the real clock is read anew depends on how fast
 * the program runs, and would make two runs differ. No chunk is made ahead.
 */
#include "vm_trace/host/host.h"
#include "vm_trace/base/messages.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/session/spool.h"
#include "vm_trace/streams/code/sites.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

enum { MOST_FRAMES = 64, METHOD_BYTES = 64, INSTRUCTION_BYTES = 8 };

struct rb_iseq_struct {
    uintptr_t from, to;
};

struct rb_execution_context_struct {
    struct rb_vm_trace_ractor *vm_trace;
    size_t count;
    uintptr_t pcs[MOST_FRAMES]; /* outermost first */
};

/* No address is followed. */
static const struct rb_iseq_struct iseq = { 0x10000000, 0x20000000 };
static struct rb_execution_context_struct ec;

/* --- the clock ----------------------------------------------------------------------- */

uint64_t
rb_vm_trace_clock_system_ns(void)
{
    return 1000000000;
}

void
rb_vm_trace_clock_init(void)
{
}

uint64_t
rb_vm_trace_clock_read(struct vm_trace_clock *clock)
{
    clock->anchor_ticks = 0;
    clock->anchor_ns = 1000000000;
    clock->scale = UINT64_C(1) << 31;
    clock->horizon = UINT64_MAX;
    return clock->anchor_ns;
}

/* --- the host ------------------------------------------------------------------------ */

bool
rb_vm_trace_host_walk(struct vm_trace_walk *walk, struct rb_execution_context_struct *from, uintptr_t top_pc)
{
    walk->count = from->count;
    walk->changed = SIZE_MAX;
    if (walk->count > walk->capacity) return false;
    walk->fiber = rb_vm_trace_host_fiber(from);
    for (size_t i = 0; i < from->count; i++) {
        uintptr_t pc = from->pcs[i], method = METHOD_BYTES * (i + 1);
        if (top_pc && i + 1 == from->count) pc = top_pc;
        struct vm_trace_frame *frame = &walk->frames[i];
        if (frame->pc == pc && frame->method == method) continue;
        *frame = (struct vm_trace_frame){ .pc = pc, .method = method, .iseq = &iseq };
        if (walk->changed > i) walk->changed = i;
    }
    return true;
}

size_t
rb_vm_trace_host_label(const struct vm_trace_frame *frame, char *buffer, size_t capacity)
{
    /* 40 bytes, as labels often have, and all of them different. */
    char text[] = "Owner#method_name (some/file.rb:0000000)";
    uintptr_t number = frame->pc;
    for (size_t at = sizeof(text) - 3; at > sizeof(text) - 10; at--, number /= 10) text[at] = (char)('0' + number % 10);
    size_t bytes = sizeof(text) - 1;
    memcpy(buffer, text, bytes < capacity ? bytes : capacity);
    return bytes;
}

uintptr_t
rb_vm_trace_host_method_of(const struct rb_iseq_struct *of)
{
    (void)of;
    return 0;
}

void
rb_vm_trace_host_iseq_range(const struct rb_iseq_struct *of, uintptr_t *from_out, uintptr_t *to_out)
{
    *from_out = of->from;
    *to_out = of->to;
}

struct rb_execution_context_struct *
rb_vm_trace_host_current(void)
{
    return &ec;
}

void
rb_vm_trace_host_forked(void)
{
}

struct rb_vm_trace_ractor *
rb_vm_trace_host_ractor(struct rb_execution_context_struct *of)
{
    return of->vm_trace;
}

void
rb_vm_trace_host_each_ractor(struct rb_vm_trace_ractor *(*change)(struct rb_vm_trace_ractor *ractor_state))
{
    ec.vm_trace = change(ec.vm_trace);
}

void
rb_vm_trace_host_set_ractor(struct rb_execution_context_struct *of, struct rb_vm_trace_ractor *ractor_state)
{
    of->vm_trace = ractor_state;
}

void
rb_vm_trace_host_notify_hooks(struct rb_execution_context_struct *of, const struct rb_vm_trace_exit_info *exit)
{
    (void)of, (void)exit; /* nobody listens */
}

struct vm_trace_thread_id
rb_vm_trace_host_thread(struct rb_execution_context_struct *of)
{
    (void)of;
    return (struct vm_trace_thread_id){ 1, 4711 };
}

struct vm_trace_thread_id
rb_vm_trace_host_fiber(struct rb_execution_context_struct *of)
{
    return rb_vm_trace_host_thread(of);
}

bool
rb_vm_trace_host_main_ractor_p(struct rb_execution_context_struct *of)
{
    (void)of;
    return true;
}

size_t
rb_vm_trace_host_class_name(uintptr_t object, char *buffer, size_t capacity)
{
    (void)object;
    (void)buffer;
    (void)capacity;
    return 0;
}

uint64_t
rb_vm_trace_host_malloc_bytes(uintptr_t object, size_t below, bool collecting)
{
    (void)object, (void)below, (void)collecting;
    return HOST_BYTES_UNKNOWN;
}

size_t
rb_vm_trace_host_stack_words(struct rb_execution_context_struct *of, uintptr_t *words, size_t capacity)
{
    (void)of, (void)words, (void)capacity;
    return 0;
}

uintptr_t
rb_vm_trace_host_buffer_owner(uintptr_t slot, const void *buffer, size_t bytes)
{
    (void)slot, (void)buffer, (void)bytes;
    return 0;
}

size_t
rb_vm_trace_host_table_offset(void)
{
    return 0;
}

bool
rb_vm_trace_host_collecting_p(void)
{
    return false;
}

bool
rb_vm_trace_host_scheduler_p(struct rb_execution_context_struct *of)
{
    (void)of;
    return false;
}

void
rb_vm_trace_host_clear_object(uintptr_t object)
{
    (void)object;
}

bool
rb_vm_trace_host_find_operands(uintptr_t pc, struct vm_trace_guard *guard)
{
    (void)pc, (void)guard;
    return false;
}

uint64_t
rb_vm_trace_host_seen(struct rb_execution_context_struct *of, uintptr_t pc, struct vm_trace_guard guard,
                      struct vm_trace_seen *seen)
{
    (void)of, (void)pc, (void)guard, (void)seen;
    return VM_TRACE_SAW_NOTHING;
}

bool
rb_vm_trace_host_insn_repeated_p(const struct rb_iseq_struct *iseq, uintptr_t pc, uint32_t *index_out)
{
    (void)iseq, (void)pc, (void)index_out;
    return false;
}

size_t
rb_vm_trace_host_operand_name(uintptr_t pc, char *buffer, size_t capacity)
{
    (void)pc, (void)buffer, (void)capacity;
    return 0;
}

size_t
rb_vm_trace_shape_text(uint32_t shape, char *buffer, size_t capacity)
{
    (void)shape, (void)buffer, (void)capacity;
    return 0;
}

size_t
rb_vm_trace_host_value_name(uintptr_t value, char *buffer, size_t capacity)
{
    return rb_vm_trace_host_class_name(value, buffer, capacity);
}

bool
rb_vm_trace_host_value_named_p(uintptr_t value, const char *name, size_t bytes)
{
    (void)value, (void)name, (void)bytes;
    return false;
}

bool
rb_vm_trace_host_class_named_p(uintptr_t klass)
{
    (void)klass;
    return false;
}

size_t
rb_vm_trace_host_ivar_name(uintptr_t pc, uintptr_t object, char *buffer, size_t capacity)
{
    (void)pc;
    return rb_vm_trace_host_class_name(object, buffer, capacity);
}

uintptr_t
rb_vm_trace_host_moved_to(uintptr_t object)
{
    return object;
}

bool
rb_vm_trace_host_top(struct rb_execution_context_struct *of, struct vm_trace_frame *frame_out)
{
    (void)of, (void)frame_out;
    return false;
}

/* Execution states are not recorded here. */
struct rb_vm_trace_states **
rb_vm_trace_host_states(struct rb_execution_context_struct *of)
{
    static struct rb_vm_trace_states *states;
    (void)of;
    return &states;
}

struct vm_trace_thread_word *
rb_vm_trace_host_thread_times(struct rb_execution_context_struct *of)
{
    static struct vm_trace_thread_word word;
    (void)of;
    return &word;
}

uintptr_t
rb_vm_trace_host_innermost(struct rb_execution_context_struct *of)
{
    return MOST_FRAMES - of->count;
}

struct vm_trace_catcher
rb_vm_trace_host_catcher(struct rb_execution_context_struct *of)
{
    return (struct vm_trace_catcher){ rb_vm_trace_host_innermost(of), &iseq };
}

size_t
rb_vm_trace_host_catchers(struct rb_execution_context_struct *of, struct vm_trace_catcher out[VM_TRACE_CATCHERS])
{
    (void)of;
    (void)out;
    return 0;
}

uintptr_t
rb_vm_trace_host_first_frame(struct rb_execution_context_struct *of)
{
    (void)of;
    return MOST_FRAMES;
}

uintptr_t
rb_vm_trace_host_innermost_method(struct rb_execution_context_struct *of)
{
    (void)of;
    return 0;
}

const struct rb_iseq_struct *
rb_vm_trace_host_watch_frame(uintptr_t frame)
{
    (void)frame;
    return &iseq;
}

void
rb_vm_trace_host_watch_entries(int streams)
{
    (void)streams;
}

/* No samples are taken. */
bool
rb_vm_trace_host_sample(struct vm_trace_walk *walk, struct rb_execution_context_struct *of)
{
    (void)of;
    walk->count = 0;
    return true;
}

enum vm_trace_compiled
rb_vm_trace_host_compiled(struct rb_execution_context_struct *of, uintptr_t sp, uintptr_t *end_out)
{
    (void)of, (void)sp;
    *end_out = 0;
    return HOST_INTERPRETED;
}

void
rb_vm_trace_host_compiled_unknown(struct rb_execution_context_struct *of)
{
    (void)of;
}

void
rb_vm_trace_host_unwound(struct rb_execution_context_struct *of)
{
    (void)of;
}

void
rb_vm_trace_host_interrupt(struct rb_execution_context_struct *of)
{
    (void)of;
}

struct rb_vm_trace_thread *
rb_vm_trace_host_thread_memory(struct rb_execution_context_struct *of)
{
    (void)of;
    return NULL;
}

/* Nor are calls. */
struct rb_vm_trace_calls **
rb_vm_trace_host_calls(struct rb_execution_context_struct *of)
{
    static struct rb_vm_trace_calls *calls;
    (void)of;
    return &calls;
}

bool
rb_vm_trace_host_call_frame(struct rb_execution_context_struct *of, struct vm_trace_call_frame *frame_out)
{
    (void)of, (void)frame_out;
    return false;
}

void
rb_vm_trace_host_call_begun(struct rb_execution_context_struct *of)
{
    (void)of;
}

void
rb_vm_trace_host_calls_left(struct rb_execution_context_struct *of)
{
    (void)of;
}

void
rb_vm_trace_host_each_frame(struct rb_execution_context_struct *of, bool but_innermost,
                            struct rb_vm_trace_ractor *ractor,
                            void (*function)(void *data, struct rb_vm_trace_ractor *ractor,
                                             const struct vm_trace_call_frame *frame),
                            void *data)
{
    (void)of, (void)but_innermost, (void)ractor, (void)function, (void)data;
}

void
rb_vm_trace_host_call_label(const struct vm_trace_call_frame *frame, struct vm_trace_frame *label_out)
{
    *label_out = (struct vm_trace_frame){ .method = frame->method, .iseq = frame->iseq };
}

bool
rb_vm_trace_host_gvl_free_p(struct rb_execution_context_struct *of)
{
    (void)of;
    return false;
}

void
rb_vm_trace_host_each_thread(void (*function)(struct rb_execution_context_struct *of, uint32_t tid, void *data),
                             void *data)
{
    function(&ec, rb_vm_trace_host_thread(&ec).tid, data);
}

bool
rb_vm_trace_host_has_gvl_p(struct rb_execution_context_struct *of)
{
    (void)of;
    return true;
}

size_t
rb_vm_trace_host_thread_name(struct rb_execution_context_struct *of, char *buffer, size_t capacity)
{
    (void)of;
    memcpy(buffer, "main", capacity < 4 ? capacity : 4);
    return 4;
}

size_t
rb_vm_trace_host_fiber_name(struct rb_execution_context_struct *of, char *buffer, size_t capacity)
{
    return rb_vm_trace_host_thread_name(of, buffer, capacity);
}

struct rb_execution_context_struct *
rb_vm_trace_host_fiber_context(uintptr_t fiber)
{
    (void)fiber;
    return NULL;
}

bool
rb_vm_trace_host_fiber_alive_p(struct rb_execution_context_struct *of)
{
    (void)of;
    return true;
}

uint32_t
rb_vm_trace_host_fiber_track(struct rb_execution_context_struct *of)
{
    (void)of;
    return 0;
}

size_t
rb_vm_trace_host_scheduler_frames(struct rb_execution_context_struct *of, const struct vm_trace_walk *walk)
{
    (void)of;
    (void)walk;
    return 0;
}

uint64_t
rb_vm_trace_clock_early_stamp_ns(const struct vm_trace_clock *clock, uint64_t stamp)
{
    (void)clock;
    return stamp;
}

bool
rb_vm_trace_clock_ticks_p(void)
{
    return false;
}

void
rb_vm_trace_host_with_world_stopped(void (*func)(void *data), void *data)
{
    func(data);
}

size_t
rb_vm_trace_host_thread_offset(void)
{
    return 0;
}

size_t
rb_vm_trace_host_ractor_offset(void)
{
    return offsetof(struct rb_execution_context_struct, vm_trace);
}

const char *
rb_vm_trace_host_description(void)
{
    return "no ruby";
}

const char *
rb_vm_trace_host_base(void)
{
    return "";
}

/* --- the cases ------------------------------------------------------------------------- */

static uintptr_t
instruction(size_t number)
{
    return iseq.from + number * INSTRUCTION_BYTES;
}

static struct rb_vm_trace_site *
make_site(size_t number)
{
    struct rb_vm_trace_site *site = rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
        .kind = RB_VM_TRACE_SIDE_EXIT, .reason = "FixnumAddOverflow", .reason_len = 17,
        .insn = "opt_plus", .insn_len = 8, .unit = &iseq, .frame = &iseq,
        .pc = (const void *)instruction(number), .version = 1
    });
    if (!site) abort();
    return site;
}

static void
set_stack(size_t frames)
{
    ec.count = frames;
    for (size_t i = 0; i < frames; i++) ec.pcs[i] = instruction(1000 + i);
}

struct bench_case {
    const char *name;
    size_t frames;
    bool other_top, new_frame, new_chunk;
};

static const struct bench_case cases[] = {
    { .name = "same_stack_8_frames", .frames = 8 },
    { .name = "same_stack_53_frames", .frames = 53 },
    { .name = "other_top_frame_8_frames", .frames = 8, .other_top = true },
    { .name = "new_frame_8_frames", .frames = 8, .new_frame = true },
    { .name = "new_chunk_8_frames", .frames = 8, .new_chunk = true },
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static void
run(const struct bench_case *what, size_t events)
{
    struct rb_vm_trace_site *sites[] = { make_site(1), make_site(2) };
    if (what->new_chunk) rb_vm_trace_writer_run_chunks = 1; /* each has tables of its own */
    set_stack(what->frames);
    for (size_t i = 0; i < events; i++) {
        /* In the middle of the stack: what is above is looked up again. */
        if (what->new_frame) ec.pcs[what->frames / 2] = instruction(5000 + i);
        if (what->new_chunk && !rb_vm_trace_ractor_next_chunk(ec.vm_trace, &ec)) abort();
        rb_vm_trace_exit(ec.vm_trace, sites[what->other_top ? i % 2 : 0], &ec);
    }
}

static uint64_t
real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/*
 * A flight recorder of 16 MiB that is full, with so many sites: nanoseconds for which a save stops the program, the
 * median of some. `cut`: it is a piece of a spool, and one exit in 97 is recorded, as in the preset `default`.
 */
static bool
pause_of_save(size_t count, const char *path, bool cut)
{
    enum { SAVES = 25, EVENTS = 300000 };
    uint64_t pauses[SAVES];
    struct rb_vm_trace_site **sites = malloc(count * sizeof(*sites));
    if (!sites) return false;
    for (size_t i = 0; i < count; i++) sites[i] = make_site(i);
    set_stack(8);
    size_t next = 0;
    for (size_t i = 0; i < EVENTS || i < count; i++) rb_vm_trace_hit(sites[next++ % count], &ec);
    for (size_t i = 0; i < SAVES; i++) {
        /* What a program does between two saves leaves other things in the caches. */
        for (size_t k = 0; k < 20000; k++) rb_vm_trace_hit(sites[next++ % count], &ec);
        uint64_t from = real_ns();
        enum vm_trace_snapshot_answer answer = rb_vm_trace_snapshot_begin(cut);
        pauses[i] = real_ns() - from;
        struct rb_vm_trace_save save = { .path = path, .why = "save" };
        if (answer == VM_TRACE_SNAPSHOT_BEGUN) rb_vm_trace_recorder_write(&save);
        if (answer != VM_TRACE_SNAPSHOT_BEGUN || save.error) return false;
    }
    free(sites);
    qsort(pauses, SAVES, sizeof(pauses[0]), compare);
    printf("%llu\n", (unsigned long long)pauses[SAVES / 2]);
    return true;
}

static int64_t
cpu_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/*
 * Microseconds of the processor that a piece of a full flight recorder of 16 MiB takes, from the moment of its cut
 * until it has its name, and its bytes: medians of some. A thousand sites, all exits recorded.
 */
static bool
piece(const char *compression, const char *folder)
{
    enum { PIECES = 9, EVENTS = 300000, SITES = 1000 };
    uint64_t us[PIECES], bytes[PIECES];
    struct rb_vm_trace_config config = { .jit = "none", .exit_rate = 1 };
    if (!rb_vm_trace_parse_spool("--piece", folder) || !rb_vm_trace_parse_spool_compress("--piece", compression) ||
        !rb_vm_trace_start(&config))
        return false;
    static struct rb_vm_trace_site *sites[SITES];
    for (size_t i = 0; i < SITES; i++) sites[i] = make_site(i);
    set_stack(8);
    bool done = true;
    for (size_t i = 0; done && i < PIECES; i++) {
        struct rb_vm_trace_save save = { .why = "save" };
        struct stat st;
        for (size_t k = 0; k < EVENTS; k++) rb_vm_trace_hit(sites[k % SITES], &ec);
        int64_t from = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
        done = rb_vm_trace_snapshot_begin(true) == VM_TRACE_SNAPSHOT_BEGUN;
        if (done) rb_vm_trace_recorder_write(&save);
        us[i] = (uint64_t)(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - from) / 1000;
        done = done && !save.error && stat(save.path, &st) == 0;
        bytes[i] = done ? (uint64_t)st.st_size : 0;
        if (done) remove(save.path);
        free(save.made);
    }
    rb_vm_trace_session.memory.save_at = 0;
    rb_vm_trace_shutdown();
    qsort(us, PIECES, sizeof(us[0]), compare);
    qsort(bytes, PIECES, sizeof(bytes[0]), compare);
    if (done) printf("%llu %llu\n", (unsigned long long)us[PIECES / 2], (unsigned long long)bytes[PIECES / 2]);
    return done;
}

enum { RECORD_WORDS = 13, MIB_WORDS = (1 << 20) / 8 };

static void
fill_record(uint64_t *record, uint64_t number)
{
    for (size_t i = 1; i < RECORD_WORDS; i++) record[i] = number + i;
}

/* Processor time of all threads for 100 bytes, in picoseconds, and MB a second. */
static void
print_costs(const char *what, size_t mib, int64_t cpu, uint64_t ns)
{
    double bytes = (double)mib * (1 << 20);
    printf("%s %.0f %.0f\n", what, (double)cpu / bytes * 100000, bytes * 1000 / (double)ns);
}

/* The least that bytes in a file take: records in private memory, and a write(2) for each MiB. */
static bool
write_records(size_t mib, const char *path)
{
    static uint64_t words[MIB_WORDS];
    FILE *file = fopen(path, "w");
    if (!file) return false;
    setvbuf(file, NULL, _IONBF, 0);
    fill_record(words, 0);
    int64_t from_cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t from_ns = real_ns();
    bool done = true;
    for (size_t i = 0; done && i < mib; i++) {
        for (size_t at = 0; at + RECORD_WORDS <= MIB_WORDS; at += RECORD_WORDS) fill_record(words + at, at);
        done = fwrite(words, sizeof(words), 1, file) == 1;
    }
    done = fclose(file) == 0 && done;
    print_costs("write", mib, cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - from_cpu, real_ns() - from_ns);
    remove(path);
    return done;
}

/* As the ractor of a program does it: it waits for no disk, so here it asks again. */
static bool
store_records(size_t mib, const char *path)
{
    struct rb_vm_trace_config config = { .jit = "none", .path = path, .exit_rate = 97 };
    rb_vm_trace_messages.quiet = true;
    int64_t from_cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t from_ns = real_ns();
    if (!rb_vm_trace_start(&config)) return false;
    struct rb_vm_trace_writer *writer = &ec.vm_trace->writer;
    for (size_t left = mib * MIB_WORDS / RECORD_WORDS; left > 0; ) {
        uint64_t *record = writer_reserve(writer, RECORD_WORDS);
        if (record) {
            fill_record(record, left--);
            writer_publish(writer, RECORD_WORDS, fxt_padding_header(RECORD_WORDS));
        }
        else if (!rb_vm_trace_ractor_next_chunk(ec.vm_trace, &ec) && !writer->late) {
            return false;
        }
    }
    rb_vm_trace_shutdown();
    print_costs("store", mib, cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - from_cpu, real_ns() - from_ns);
    remove(path);
    return true;
}

/* Picoseconds of the processor for a read of what the tracer's clock reads, where it may. */
static void
clock_read(void)
{
    enum { READS = 4000000 };
    volatile uint64_t read = 0;
    int64_t from_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
#if CLOCK_HAS_TICKS
    for (size_t i = 0; i < READS; i++) read = clock_ticks();
#else
    for (size_t i = 0; i < READS; i++) read = real_ns();
#endif
    int64_t took_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from_ns;
    (void)read;
    printf("%lld\n", (long long)(took_ns * 1000 / READS));
}

enum { SIGNALS = 5000, PERIOD_NS = 100000 };

static void
handle_nothing(int number)
{
    (void)number;
}

static void *
signal_often(void *thread)
{
    struct timespec next;
    prctl(PR_SET_TIMERSLACK, 1000UL);
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (size_t i = 0; i < SIGNALS; i++) {
        next.tv_nsec += PERIOD_NS;
        if (next.tv_nsec >= 1000000000) next.tv_nsec -= 1000000000, next.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        pthread_kill(*(pthread_t *)thread, SIGURG);
    }
    return NULL;
}

static volatile size_t spun;

static int64_t
spin(size_t count)
{
    int64_t from = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < count; i++) spun = i;
    return cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - from;
}

/* Nanoseconds of the processor for what no sampler can do without: that one thread wakes, and sends a signal
 * to another one, which handles it. */
static void
send_signals(void)
{
    pthread_t self = pthread_self(), other;
    signal(SIGURG, handle_nothing);
    size_t count = 1 << 24;
    count = (size_t)((double)count * SIGNALS * PERIOD_NS / (double)spin(count)); /* as long as the signals take */
    int64_t alone = spin(count);
    if (pthread_create(&other, NULL, signal_often, &self) != 0) return;
    int64_t signalled = spin(count);
    pthread_join(other, NULL);
    alone = (alone + spin(count)) / 2;
    printf("%lld\n", (long long)(signalled - alone) / SIGNALS);
}

int
main(int argc, char **argv)
{
    bool cut = argc == 4 && strcmp(argv[1], "--cut") == 0;
    if ((cut || (argc == 4 && strcmp(argv[1], "--pause") == 0)) && strtoul(argv[2], NULL, 10) > 0) {
        struct rb_vm_trace_config config = { .jit = "none", .path = argv[3], .exit_rate = cut ? 97 : 1 };
        rb_vm_trace_session.memory.bytes = 16 << 20;
        rb_vm_trace_messages.quiet = true;
        if (!rb_vm_trace_start(&config)) return 1;
        bool done = pause_of_save(strtoul(argv[2], NULL, 10), argv[3], cut);
        rb_vm_trace_shutdown();
        remove(argv[3]);
        return done ? 0 : 1;
    }
    if (argc == 4 && strcmp(argv[1], "--piece") == 0) return piece(argv[2], argv[3]) ? 0 : 1;
    if (argc == 4 && strcmp(argv[1], "--store") == 0) {
        size_t mib = strtoul(argv[2], NULL, 10);
        return write_records(mib, argv[3]) && store_records(mib, argv[3]) ? 0 : 1;
    }
    if (argc == 2 && strcmp(argv[1], "--clock") == 0) {
        clock_read();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--signal") == 0) {
        send_signals();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--compiler") == 0) {
        puts(__VERSION__);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--cases") == 0) {
        for (size_t i = 0; i < CASES; i++) puts(cases[i].name);
        return 0;
    }
    for (size_t i = 0; argc == 4 && i < CASES; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0) continue;
        struct rb_vm_trace_config config = { .jit = "none", .path = argv[3], .exit_rate = 1 };
        if (!rb_vm_trace_start(&config)) return 1;
        rb_vm_trace_capture.file.preallocator.refused = true; /* when a thread is done differs, too */
        run(&cases[i], strtoul(argv[2], NULL, 10));
        rb_vm_trace_shutdown();
        return ec.vm_trace->lost ? 1 : 0;
    }
    fprintf(stderr, "usage: recording --cases | --compiler | CASE EVENTS FILE | --pause SITES FILE | "
                    "--cut SITES FILE | --store MIB FILE | --clock | --signal\n");
    return 2;
}
