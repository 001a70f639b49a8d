/*
 * From start to end: the file, the locals of ractors, forks, the last words.
 *
 * Locks, outermost first: trace.lock, open_lock, that of the shared chunk and of what ractors left, then those of strings, stacks
 * and the sink, which are leaves. A recorder takes none on its way, but for a next chunk (the last two), or where it has none of its own.
 */
#include "lifecycle.h"
#include "memory.h"
#include "options.h"
#include "versions.h"
#include "recorder.h"
#include "sites.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_NORESERVE
# define MAP_NORESERVE 0
#endif

struct vm_trace_global rb_vm_trace_global = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .sink = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 },
    .shared = { .lock = PTHREAD_MUTEX_INITIALIZER, .writer = { .shares = true } }
};

/* Held while a forked child's file is made, so that it is made once. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

#define trace rb_vm_trace_global

/* Whether the spare local may have hits: a ractor is gone, and left them to it, or has none of its own. */
static bool spare_has_hits;

/* One line on stderr, in one write, with the JIT's name before it. */
static void
say_list(const char *format, va_list arguments)
{
    char line[4096 + 256]; /* a path and some words */
    int n = snprintf(line, sizeof(line), "%s: ", trace.config.jit);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, arguments);
    if ((size_t)n > sizeof(line) - 2) {
        n = (int)sizeof(line) - 2;
        memcpy(line + n - 3, "...", 3);
    }
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0) { /* nobody listens */ }
}

#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
static void
say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
}

/*
 * Where stderr led when the tracer began. A program that has led it elsewhere since has made the
 * place a part of its own output, and that is not ours to write to.
 */
static struct stat first_stderr;

static bool
stderr_is_the_first(void)
{
    struct stat now;
    return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == first_stderr.st_dev &&
        now.st_ino == first_stderr.st_ino;
}

void
rb_vm_trace_say(const char *format, ...)
{
    if (!stderr_is_the_first()) return;
    va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
}

/* --- locals -------------------------------------------------------------------------------- */

static size_t
local_bytes(void)
{
    return sizeof(struct rb_vm_trace_local) + VM_TRACE_MAX_SITES * sizeof(uint64_t);
}

/* Address space of zeros: pages of counters that are never touched cost nothing. */
uint64_t *
rb_vm_trace_local_zeros(void)
{
    void *at = mmap(NULL, local_bytes(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static struct rb_vm_trace_local *
allocate_local(void)
{
    struct rb_vm_trace_local *local = (struct rb_vm_trace_local *)rb_vm_trace_local_zeros();
    if (!local) return NULL;
    local->countdown = trace.config.exit_rate;
    local->fallback_countdown = trace.config.fallback_rate;
    return local;
}

static struct rb_vm_trace_local *
use_spare(void)
{
    spare_has_hits = true;
    return trace.spare;
}

static struct rb_vm_trace_local *
make_local(void)
{
    struct rb_vm_trace_local *local = allocate_local();
    if (!local) return use_spare();
    if (!rb_vm_trace_stacks_init(&local->stacks)) {
        rb_vm_trace_stacks_free(&local->stacks);
        munmap(local, local_bytes());
        return use_spare();
    }
    rb_vm_trace_writer_init(&local->writer, &trace.sink, trace.pid);

    pthread_mutex_lock(&trace.lock);
    local->number = trace.last_number++;
    local->next = trace.locals;
    local->link = &trace.locals;
    if (local->next) local->next->link = &local->next;
    trace.locals = local;
    pthread_mutex_unlock(&trace.lock);
    return local;
}

struct rb_vm_trace_local *
rb_vm_trace_ractor_new(void)
{
    return trace_wanted() ? make_local() : NULL;
}

static void
add_counts(struct vm_trace_totals *totals, const struct rb_vm_trace_local *local)
{
    totals->sampled += local->sampled;
    totals->lost += local->lost;
    totals->events += local->writer.events;
}

/* Take it off the list. trace.lock held, or all ractors stopped. */
static void
unlink_local(struct rb_vm_trace_local *local)
{
    *local->link = local->next;
    if (local->next) local->next->link = local->link;
    local->link = NULL;
}

void
rb_vm_trace_ractor_free(struct rb_vm_trace_local *local)
{
    if (!local || local == trace.spare) return;

    pthread_mutex_lock(&trace.lock);
    if (local->link) { /* else its trace has ended, with all that it counted */
        unlink_local(local);
        /* The spare keeps the hits of those that are gone. */
        spare_has_hits = true;
        for (uint32_t i = 1; i < rb_vm_trace_site_limit(); i++) trace.spare->hits[i] += local->hits[i];
        for (uint32_t i = 1; local->base && trace.spare->base && i < rb_vm_trace_site_limit(); i++) trace.spare->base[i] += local->base[i];
        uint64_t told_ns = clock_latest_ns(&local->clock);
        if (told_ns > trace.dead_ns) trace.dead_ns = told_ns;
        rb_vm_trace_writer_leave(&local->writer, &trace.shared, told_ns);
        add_counts(&trace.dead, local);
    }
    pthread_mutex_unlock(&trace.lock);

    rb_vm_trace_writer_free(&local->writer);
    rb_vm_trace_stacks_free(&local->stacks);
    if (local->base) munmap(local->base, local_bytes());
    munmap(local, local_bytes());
}

struct rb_vm_trace_local *
rb_vm_trace_local_of(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_local *local = rb_vm_trace_host_local(ec);
    if (local && (local == trace.spare || local->link)) return local;
    /* Its ractor was being made when tracing was switched. */
    struct rb_vm_trace_local *made = make_local();
    if (made) rb_vm_trace_host_set_local(ec, made);
    rb_vm_trace_ractor_free(local);
    return made;
}

static uint64_t
hits_since_base(const struct rb_vm_trace_local *local, uint32_t index)
{
    return local->hits[index] - (local->base ? local->base[index] : 0);
}

uint64_t
rb_vm_trace_local_hits(uint32_t index)
{
    uint64_t hits = hits_since_base(trace.spare, index);
    for (const struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        hits += hits_since_base(local, index);
    }
    return hits;
}

static void
copy_hits(const struct rb_vm_trace_local *local, uint64_t *hits_out, uint32_t limit)
{
    const uint64_t *hits = local->hits, *base = local->base;
    if (!base) memcpy(hits_out, hits, limit * sizeof(*hits));
    for (uint32_t i = 0; base && i < limit; i++) hits_out[i] = hits[i] - base[i];
}

void
rb_vm_trace_local_copy_hits(uint64_t *hits_out, uint32_t limit)
{
    /* One ractor's counters after the other's: there are many sites, and few ractors. The program waits for this. */
    const struct rb_vm_trace_local *local = trace.locals;
    if (spare_has_hits || !local) copy_hits(trace.spare, hits_out, limit);
    else copy_hits(local, hits_out, limit);
    for (local = spare_has_hits || !local ? local : local->next; local; local = local->next) {
        for (uint32_t i = 0; i < limit; i++) hits_out[i] += hits_since_base(local, i);
    }
}

static void
clear_hits(struct rb_vm_trace_local *local, uint32_t index)
{
    local->hits[index] = 0;
    if (local->base) local->base[index] = 0;
}

void
rb_vm_trace_local_clear_hits(uint32_t index)
{
    clear_hits(trace.spare, index);
    for (struct rb_vm_trace_local *local = trace.locals; local; local = local->next) clear_hits(local, index);
}

static void
clear_all_hits(struct rb_vm_trace_local *local)
{
    size_t bytes = rb_vm_trace_site_limit() * sizeof(uint64_t);
    memset(local->hits, 0, bytes);
    if (local->base) memset(local->base, 0, bytes);
}

/* --- the file ------------------------------------------------------------------------------ */

/* Our command line as the system has it, cut when it does not fit; "" where it doesn't tell. */
static size_t
command_line(char *buffer, size_t capacity)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    size_t bytes = 0;
    char past[4096] = ""; /* what does not fit is counted */
    for (;;) {
        bool room = bytes < capacity;
        ssize_t n = read(fd, room ? buffer + bytes : past, room ? capacity - bytes : sizeof(past));
        if (n <= 0) break;
        bytes += (size_t)n;
    }
    close(fd);
    bytes = rb_vm_trace_text_cut(buffer, bytes, capacity);
    while (bytes > 0 && buffer[bytes - 1] == '\0') bytes--;
    for (size_t i = 0; i < bytes; i++) {
        if (buffer[i] == '\0') buffer[i] = ' ';
    }
    return bytes;
}

bool
rb_vm_trace_write_settings(struct rb_vm_trace_local *local, struct rb_execution_context_struct *ec, const void *what)
{
    const char *snapshot = what;
    const struct rb_vm_trace_config *config = &trace.config;
    const char *ruby = rb_vm_trace_host_description(), *base = rb_vm_trace_host_base();
    char command[4096], flags[64];
    size_t command_bytes = command_line(command, sizeof(command));
    char *copy;
    const char *clean = rb_vm_trace_text_clean(command, &command_bytes, &copy);
    snprintf(flags, sizeof(flags), "%s%s%s%s",
             config->exit_rate ? " exits" : "", config->fallback_rate ? " fallbacks" : "",
             config->compiles ? " compiles" : "", config->invalidations ? " invalidations" : "");
    const char *first_flag = flags[0] ? flags + 1 : flags;

    struct vm_trace_event event;
    bool begun = rb_vm_trace_event_begin(&event, local, ec, trace.begin_ns) &&
        event_text(&event, W_COMMAND, clean, command_bytes);
    free(copy);
    if (!begun) return false;
    if (!event_text(&event, W_RUBY, ruby, strlen(ruby))) return false;
    if (!event_text(&event, W_BASE, base, strlen(base))) return false;
    if (!event_text(&event, W_JIT, config->jit, strlen(config->jit))) return false;
    if (!event_text(&event, W_FLAGS, first_flag, strlen(first_flag))) return false;
    event_uint32(&event, W_PID, trace.pid);
    if (config->exit_rate) event_uint32(&event, W_EXIT_RATE, (uint32_t)config->exit_rate);
    if (config->fallback_rate) event_uint32(&event, W_FALLBACK_RATE, (uint32_t)config->fallback_rate);
    if (config->counter && !event_text(&event, W_COUNTER, config->counter, strlen(config->counter))) return false;
    const char *methods = rb_vm_trace_methods();
    if (methods) {
        size_t bytes = strlen(methods);
        char *methods_copy;
        const char *clean_methods = rb_vm_trace_text_clean(methods, &bytes, &methods_copy);
        bool written = event_text(&event, W_METHODS, clean_methods, bytes);
        free(methods_copy);
        if (!written) return false;
    }
    if (config->max_size.bytes) {
        const char *keep = config->max_size.keep_oldest ? "oldest" : "newest";
        event_uint64(&event, W_MAX_BYTES, config->max_size.bytes);
        if (!event_text(&event, W_KEEP, keep, strlen(keep))) return false;
    }
    if (snapshot && !event_text(&event, W_SNAPSHOT, snapshot, strlen(snapshot))) return false;
    if (trace.memory.window_ns) event_uint32(&event, W_SECONDS, (uint32_t)(trace.memory.window_ns / 1000000000));
    return event_end(&event, FXT_INSTANT, W_TRACE, W_SETTINGS);
}

/* Make the file of this process. NULL, or why it can't be made. */
static const char *
make_file(bool child)
{
    free(trace.path);
    trace.path = rb_vm_trace_expand_path(trace.config.path, trace.pid, child);
    if (!trace.path) return "out of memory";
    return trace.memory.bytes ? rb_vm_trace_memory_open(&trace.sink) : rb_vm_trace_sink_open(&trace.sink, trace.path);
}

/*
 * A first chunk with the settings, which in a file that keeps its newest events is a short one of
 * its own: it is never used again. NULL, or why there is no room.
 */
static const char *
begin_file(struct rb_vm_trace_local *local, struct rb_execution_context_struct *ec)
{
    bool ok = rb_vm_trace_writer_next_chunk(&local->writer);
    /* Memory is seen by others only after a crash or in a core: then nobody else says why. */
    if (ok) rb_vm_trace_write_settings(local, ec, trace.memory.bytes ? "memory" : NULL);
    if (ok && trace.sink.keep_newest) {
        rb_vm_trace_writer_close(&local->writer);
        rb_vm_trace_sink_begin_ring(&trace.sink);
        ok = rb_vm_trace_writer_next_chunk(&local->writer);
    }
    if (ok && trace.memory.bytes) ok = rb_vm_trace_recorder_begin();
    return ok ? NULL : rb_vm_trace_sink_reason(trace.sink.error);
}

/* Say where the trace goes, or why nowhere: then no file is left behind. */
static bool
say_where(const char *why)
{
    if (!why && trace.quiet) return true;
    if (!why && trace.memory.bytes) {
        rb_vm_trace_say("recording to memory, %llu MiB at most", (unsigned long long)trace.memory.bytes >> 20);
        return true;
    }
    if (!why) {
        rb_vm_trace_say("tracing to %s", trace.path);
        return true;
    }
    if (trace.memory.bytes) {
        say("can't record to memory: %s; running untraced", why);
        rb_vm_trace_sink_close(&trace.sink);
        return false;
    }
    say("can't trace to %s: %s; running untraced", trace.path ? trace.path : "a file", why);
    if (trace.sink.fd >= 0) rb_vm_trace_sink_discard(&trace.sink, trace.path);
    return false;
}

bool
rb_vm_trace_local_next_chunk(struct rb_vm_trace_local *local, struct rb_execution_context_struct *ec)
{
    if (__atomic_load_n(&trace.state, __ATOMIC_ACQUIRE) != VM_TRACE_PENDING) {
        if (!rb_vm_trace_writer_take_rest(&local->writer, &trace.shared, &local->clock) && !rb_vm_trace_writer_next_chunk(&local->writer)) {
            return false;
        }
        if (ec) rb_vm_trace_counters_chunk(local, ec); /* not into the chunks of a trace that is saved */
        return true;
    }
    bool ok;
    pthread_mutex_lock(&open_lock);
    if (trace.state == VM_TRACE_PENDING) {
        const char *why = make_file(true);
        ok = say_where(why ? why : begin_file(local, ec));
        __atomic_store_n(&trace.state, ok ? VM_TRACE_ON : VM_TRACE_OFF, __ATOMIC_RELEASE);
    }
    else { /* another ractor was here first, and may have failed */
        ok = trace.state == VM_TRACE_ON && rb_vm_trace_writer_next_chunk(&local->writer);
    }
    pthread_mutex_unlock(&open_lock);
    return ok;
}

bool
rb_vm_trace_supported_p(void)
{
    return true;
}

/*
 * A ractor's new local. What it has is of a trace that ended while it was being made, or only of hooks: what was counted
 * there is not this trace's.
 */
static struct rb_vm_trace_local *
another_local(struct rb_vm_trace_local *old)
{
    if (old && old != trace.spare && old->link) unlink_local(old);
    rb_vm_trace_ractor_free(old);
    return make_local();
}

/* Nothing is counted yet, and nothing is known of what happened before. */
static void
begin_local(struct rb_vm_trace_local *local)
{
    local->clock = (struct vm_trace_clock){ 0 }; /* no time of its is to be before begin_ns */
    local->sampled = local->lost = local->rate_ns = local->rate_sampled = local->writer.events = 0;
    local->exiting.dropped = local->exiting.site != NULL;
    local->exiting.site = NULL;
    local->writer.pid = trace.pid;
    local->countdown = trace.config.exit_rate;
    local->fallback_countdown = trace.config.fallback_rate;
    clear_all_hits(local);
    rb_vm_trace_stacks_all_dead(&local->stacks);
}

static struct rb_vm_trace_local *
no_local(struct rb_vm_trace_local *old)
{
    rb_vm_trace_ractor_free(old);
    return NULL;
}

/* NULL when it began, or why it can't. trace.path is then the file that can't be made, or NULL. */
static const char *
begin_trace(const struct rb_vm_trace_config *config)
{
    trace.pid = (uint32_t)getpid();
    rb_vm_trace_clock_init();
    trace.begin_ns = rb_vm_trace_clock_system_ns();
    if (fstat(STDERR_FILENO, &first_stderr) != 0) first_stderr.st_ino = 0; /* there is none */
    free((char *)trace.config.path);
    free((char *)trace.config.counter);
    free(trace.path);
    trace.path = NULL;
    trace.config = *config;
    trace.config.path = rb_vm_trace_absolute_path(config->path);
    trace.config.counter = config->counter ? strdup(config->counter) : NULL;
    if (config->path && !trace.config.path) return "the current folder has no path";
    if (trace.memory.bytes) {
        trace.config.max_size = (struct rb_vm_trace_max_size){ .bytes = trace.memory.bytes };
        config = &trace.config;
    }
    trace.sink.max_bytes = config->max_size.bytes;
    trace.sink.keep_newest = config->max_size.bytes && !config->max_size.keep_oldest;
    rb_vm_trace_writer_init(&trace.shared.writer, &trace.sink, trace.pid);
    const char *why = make_file(false);
    if (why) return why;

    trace.dead = (struct vm_trace_totals){ 0 };
    trace.dead_ns = 0;
    if (!trace.by_flags) trace.last_number = 0;
    if (!trace.spare) trace.spare = allocate_local();
    if (!trace.spare) return "out of memory";
    clear_all_hits(trace.spare);
    trace.spare->lost = 0;
    trace.spare->countdown = config->exit_rate;
    trace.spare->fallback_countdown = config->fallback_rate;
    __atomic_store_n(&trace.state, VM_TRACE_ON, __ATOMIC_RELEASE);
    for (struct rb_vm_trace_local *local = trace.locals; trace.by_flags && local; local = local->next) begin_local(local);
    if (!trace.by_flags) rb_vm_trace_host_each_ractor(another_local);
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_local *local = ec ? rb_vm_trace_host_local(ec) : NULL;
    return local && local != trace.spare ? begin_file(local, ec) : "out of memory";
}

/* It did not begin after all: leave no file behind. */
static void
discard_trace(void)
{
    pthread_mutex_lock(&trace.lock);
    if (trace.memory.bytes) rb_vm_trace_recorder_close();
    pthread_mutex_unlock(&trace.lock);
    if (trace.memory.bytes) rb_vm_trace_sink_close(&trace.sink);
    else if (trace.sink.fd >= 0) rb_vm_trace_sink_discard(&trace.sink, trace.path);
    __atomic_store_n(&trace.state, VM_TRACE_OFF, __ATOMIC_RELEASE);
}

bool
rb_vm_trace_start(const struct rb_vm_trace_config *config)
{
    trace.quiet = false;
    trace.by_flags = say_where(begin_trace(config));
    if (!trace.by_flags) discard_trace();
    trace.flags.exits = trace.by_flags && config->exit_rate;
    trace.flags.fallbacks = trace.by_flags && config->fallback_rate;
    free(trace.flags.counter);
    trace.flags.counter = trace.flags.exits && config->counter ? strdup(config->counter) : NULL;
    return trace.by_flags;
}

/* --- on and off --------------------------------------------------------------------------------- */

void
rb_vm_trace_register_jit(const struct rb_vm_trace_jit *jit)
{
    trace.jit = jit;
}

const struct rb_vm_trace_jit *
rb_vm_trace_registered_jit(void)
{
    return trace.jit;
}

/* Free what only a trace needs. Code has no trace points any more, and all ractors stand still. */
static void
forget_trace(void)
{
    /* Those of ractors that never began, or did not come into the child of a fork, are freed when they are collected. */
    while (trace.locals) {
        struct rb_vm_trace_local *local = trace.locals;
        rb_vm_trace_writer_close(&local->writer);
        unlink_local(local);
    }
    rb_vm_trace_host_each_ractor(no_local);
    if (trace.spare) clear_all_hits(trace.spare);
    rb_vm_trace_sites_free();
}

/* Have the machine code call C at one exit in `rate`, or at more. NULL, or why it can't. */
static const char *
attach(uint64_t rate)
{
    const char *why = NULL;
    if (!trace.machine_rate) why = trace.jit->exits_on(rate, trace_on() ? trace.config.counter : NULL);
    else if (rate == 1 && trace.machine_rate > 1) why = trace.jit->every_exit();
    else return NULL; /* C leaves out those that are too many */
    if (!why) trace.machine_rate = rate;
    return why;
}

static void
detach(void)
{
    if (trace.machine_rate) trace.jit->exits_off();
    trace.machine_rate = 0;
    if (!trace.by_flags) forget_trace();
}

/* Code that a flag has given trace points exits there whatever is asked for, and hooks want all. NULL, or why that is more than can be told apart. */
static const char *
why_not_apart(const struct rb_vm_trace_config *config)
{
    if (config->fallback_rate && !trace.flags.fallbacks) {
        return "fallbacks can't be recorded while the program runs, but where it was started with --zjit-trace-fallbacks";
    }
    if (!config->counter) return NULL;
    if (trace.listeners) return "hooks listen to all exits, so those of one counter can't be told apart";
    if (!trace.flags.exits || (trace.flags.counter && strcmp(trace.flags.counter, config->counter) == 0)) return NULL;
    return "a flag had exits of other counters traced, and code has trace points for them for good: start the program without that flag, "
           "or give exits: true";
}

/* Why a trace can't begin, for an exception. */
static void
tell_why(const char *path, const char *why, char *why_out, size_t why_bytes)
{
    if (trace.memory.bytes) {
        snprintf(why_out, why_bytes, "can't record to memory: %s; give memory: fewer MiB", why);
        return;
    }
    snprintf(why_out, why_bytes, "can't trace to %s: %s; give file: a path in a folder that can be written to",
             trace.path ? trace.path : path ? path : "a file", why);
}

bool
rb_vm_trace_switch_on(const struct rb_vm_trace_config *config, const struct rb_vm_trace_memory_config *memory,
                      char *why_out, size_t why_bytes)
{
    /* Of a forked child that could not make its file. */
    if (trace.machine_rate && !trace.listeners) detach();
    trace.quiet = true;
    const char *why = why_not_apart(config);
    if (why) {
        snprintf(why_out, why_bytes, "%s", why);
        return false;
    }
    trace.memory = *memory;
    why = begin_trace(config);
    if (why) {
        tell_why(config->path, why, why_out, why_bytes);
    }
    else if (config->exit_rate && (why = attach(trace.listeners ? 1 : config->exit_rate)) != NULL) {
        snprintf(why_out, why_bytes, "can't trace exits: %s", why);
    }
    if (why) {
        discard_trace();
        if (!trace.listeners) detach();
        trace.memory = (struct rb_vm_trace_memory_config){ 0 };
        return false;
    }
    trace.jit->recording(true, config->compiles, config->invalidations);
    return true;
}

static void end_trace(void);

static void
set_counts(struct rb_vm_trace_status *status, const struct vm_trace_totals *totals)
{
    status->exits = totals->exits;
    status->sampled = totals->sampled;
    status->fallbacks = totals->fallbacks;
    status->events = totals->events;
    status->lost = totals->lost;
}

bool
rb_vm_trace_switch_off(struct rb_vm_trace_status *status_out)
{
    *status_out = (struct rb_vm_trace_status){ .by_flags = trace.by_flags, .memory_bytes = trace.memory.bytes };
    if (!trace_on()) return false;
    trace.memory.save_at = 0; /* those are moments of a program that runs on */
    if (trace.jit) {
        trace.jit->recording(false, false, false);
        if (trace.machine_rate && !trace.listeners) trace.jit->exits_off();
    }
    trace.last = (struct vm_trace_totals){ 0 };
    trace.last_loss = NULL;
    bool file = trace.state == VM_TRACE_ON;
    end_trace();
    status_out->path = !trace.memory.bytes && (file || trace.last.events) ? trace.path : NULL;
    status_out->begin_ns = trace.begin_ns;
    status_out->loss = trace.last_loss;
    set_counts(status_out, &trace.last);
    trace.memory = (struct rb_vm_trace_memory_config){ 0 };
    /* Code that has trace points for good goes on counting there, and hooks are told of what they listen to. */
    if (!trace.listeners) trace.machine_rate = 0;
    rb_vm_trace_lives_free();
    if (!trace.by_flags && !trace.listeners) forget_trace();
    return true;
}

/* Without a file there is nothing to say to anyone when it fails: then nothing is heard. */
static void
begin_to_listen(void)
{
    if (!trace_on() && !trace.by_flags) {
        if (!trace.spare && !(trace.spare = allocate_local())) return;
        free((char *)trace.config.path);
        free((char *)trace.config.counter);
        trace.config = (struct rb_vm_trace_config){ .jit = trace.jit->name };
        rb_vm_trace_clock_init();
        rb_vm_trace_host_each_ractor(another_local);
    }
    attach(1);
}

void
rb_vm_trace_listen(bool on)
{
    if (on == trace.listeners) return;
    trace.listeners = on;
    if (on && trace.jit) begin_to_listen();
    else if (!on && trace.machine_rate && !trace_on()) detach();
}

void
rb_vm_trace_jit_ready(void)
{
    if (trace.listeners && !trace.machine_rate) begin_to_listen();
}

/* --- lives of others ------------------------------------------------------------------------- */

static void
tell_all(struct vm_trace_range range)
{
    pthread_mutex_lock(&trace.lock);
    for (struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        rb_vm_trace_stacks_dead(&local->stacks, range);
    }
    pthread_mutex_unlock(&trace.lock);
}

static struct rb_vm_trace_local *
local_or_null(struct rb_execution_context_struct **ec_out)
{
    struct rb_execution_context_struct *ec = *ec_out = rb_vm_trace_host_current();
    struct rb_vm_trace_local *local = ec ? rb_vm_trace_host_local(ec) : NULL;
    return local == trace.spare ? NULL : local;
}

static void
retire_sites(uintptr_t unit)
{
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_local *local = local_or_null(&ec);
    rb_vm_trace_sites_retire(unit, trace_on() ? local : NULL, ec);
}

void
rb_vm_trace_iseq_free(const struct rb_iseq_struct *iseq)
{
    if (!trace_wanted()) return;
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    if (from == to) return; /* it never got instructions */

    /* A pc may stand behind the last instruction. */
    tell_all((struct vm_trace_range){ .from = from, .to = to + 1 });
    retire_sites(from);
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_local *local = local_or_null(&ec);
    if (trace_on()) rb_vm_trace_life_end(from, local, ec);
}

void
rb_vm_trace_code_free(const struct rb_iseq_struct *iseq)
{
    if (!trace_wanted()) return;
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    retire_sites(from);
}

void
rb_vm_trace_method_free(const void *method_entry)
{
    if (!trace_on()) return; /* labels are made anew when a trace begins */
    uintptr_t at = (uintptr_t)method_entry;
    tell_all((struct vm_trace_range){ .from = at, .to = at + 1, .methods = true });
}

void
rb_vm_trace_compacted(void)
{
    if (!trace_on()) return;
    pthread_mutex_lock(&trace.lock);
    for (struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        rb_vm_trace_stacks_all_dead(&local->stacks);
    }
    pthread_mutex_unlock(&trace.lock);
}

void
rb_vm_trace_thread_renamed(void)
{
    if (!trace_on()) return;
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_local *local = ec ? rb_vm_trace_host_local(ec) : NULL;
    if (!local || local == trace.spare) return;
    rb_vm_trace_writer_forget_names(&local->writer);
    pthread_mutex_lock(&trace.shared.lock);
    rb_vm_trace_writer_forget_names(&trace.shared.writer);
    pthread_mutex_unlock(&trace.shared.lock);
}

bool
rb_vm_trace_fault(const void *address)
{
    if (!trace_on()) return false;
    /* Whoever touches a chunk is its owner, or the sink. */
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_local *local = ec ? rb_vm_trace_host_local(ec) : NULL;
    return rb_vm_trace_sink_fault(&trace.sink, local ? &local->writer.chunk : NULL, address) ||
        (trace.memory.bytes && rb_vm_trace_recorder_fault(address));
}

/* --- fork -------------------------------------------------------------------------------------- */

void
rb_vm_trace_before_fork(void)
{
    pthread_mutex_lock(&trace.lock);
    pthread_mutex_lock(&open_lock);
    pthread_mutex_lock(&trace.shared.lock);
    pthread_mutex_lock(&trace.sink.lock);
    rb_vm_trace_strings_before_fork();
}

/* In the child: what is mapped and open is the parent's. */
static void
begin_child(void)
{
    trace.pid = (uint32_t)getpid();
    trace.begin_ns = rb_vm_trace_clock_system_ns();
    if (trace.memory.bytes) rb_vm_trace_recorder_begin_child();
    trace.dead = (struct vm_trace_totals){ 0 };
    trace.dead_ns = 0;
    for (struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        rb_vm_trace_writer_drop(&local->writer);
        /* Its owner may have been in the middle of something; that thread is no more. */
        rb_vm_trace_stacks_after_fork(&local->stacks);
        begin_local(local);
    }
    rb_vm_trace_shared_drop(&trace.shared);
    trace.shared.writer.pid = trace.pid;
    clear_all_hits(trace.spare);
    trace.spare->lost = 0;
    rb_vm_trace_sink_after_fork(&trace.sink);
    __atomic_store_n(&trace.state, VM_TRACE_PENDING, __ATOMIC_RELEASE);
}

void
rb_vm_trace_after_fork(long pid)
{
    /* daemon(3) says 0 when it failed, too: only the pid tells who we are. */
    bool child = pid == 0 && trace_on() && (uint32_t)getpid() != trace.pid;
    if (child) begin_child();
    rb_vm_trace_strings_after_fork();
    if (__atomic_load_n(&trace.state, __ATOMIC_RELAXED) == VM_TRACE_PENDING) rb_vm_trace_lives_after_fork();
    pthread_mutex_unlock(&trace.sink.lock);
    pthread_mutex_unlock(&trace.shared.lock);
    pthread_mutex_unlock(&open_lock);
    pthread_mutex_unlock(&trace.lock);
    if (child && trace.memory.bytes) rb_vm_trace_recorder_threads();
}

/* --- end ----------------------------------------------------------------------------------------- */

/* Of those that were not written, or were cut off: the disk's reason, or the only other ones there are. */
const char *
rb_vm_trace_loss_reason(void)
{
    if (trace.sink.reason) return rb_vm_trace_sink_reason(trace.sink.reason);
    return trace.sink.starved ? "a file of that size has too few chunks for so many ractors" : "out of memory";
}

const char *
rb_vm_trace_dropped_reason(void)
{
    return trace.memory.bytes ? "older events gave way at the limit of the memory" : "older events gave way at the limit of the file's size";
}

bool
rb_vm_trace_write_loss(struct rb_vm_trace_local *local, struct rb_execution_context_struct *ec, const void *what)
{
    const struct vm_trace_loss *loss = what;
    struct vm_trace_event event;
    if (!rb_vm_trace_event_begin(&event, local, ec, clock_now_ns(&local->clock))) return false;
    event_uint64(&event, W_LOST, loss->events);
    if (!event_text(&event, W_REASON, loss->why, strlen(loss->why))) return false;
    return event_end(&event, FXT_INSTANT, W_TRACE, W_LOSS);
}

bool
rb_vm_trace_write_summary(struct rb_vm_trace_local *local, struct rb_execution_context_struct *ec, const void *what)
{
    const struct vm_trace_summary *summary = what;
    const struct vm_trace_totals *totals = &summary->totals;
    uint64_t now_ns = clock_now_ns(&local->clock);
    struct vm_trace_event event;
    if (!rb_vm_trace_event_begin(&event, local, ec, now_ns < summary->least_ns ? summary->least_ns : now_ns)) return false;
    event_uint64(&event, W_EXITS, totals->exits);
    event_uint64(&event, W_SAMPLED, totals->sampled);
    event_uint64(&event, W_FALLBACKS, totals->fallbacks);
    event_uint64(&event, W_EVENTS, totals->events);
    event_uint64(&event, W_LOST, totals->lost);
    event_uint64(&event, W_SITES, totals->sites);
    if (summary->snapshot && !event_text(&event, W_SNAPSHOT, summary->snapshot, strlen(summary->snapshot))) return false;
    return event_end(&event, FXT_INSTANT, W_TRACE, W_SUMMARY);
}

/* All that was counted so far, less the hits. */
struct vm_trace_totals
rb_vm_trace_local_totals(void)
{
    struct vm_trace_totals totals = trace.dead;
    totals.lost += trace.spare->lost;
    for (const struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        add_counts(&totals, local);
    }
    return totals;
}

/* What is there now, and why not all is. trace.lock held. */
static struct vm_trace_totals
count_all(const char **loss_out)
{
    struct vm_trace_totals totals = rb_vm_trace_local_totals();
    rb_vm_trace_sites_count_hits(&totals);
    *loss_out = totals.lost ? rb_vm_trace_loss_reason() : trace.sink.dropped.events ? rb_vm_trace_dropped_reason() : NULL;
    totals.sampled -= trace.sink.dropped.exits;
    totals.events -= trace.sink.dropped.events;
    totals.lost += trace.sink.dropped.events;
    return totals;
}

void
rb_vm_trace_status(struct rb_vm_trace_status *status_out)
{
    *status_out = (struct rb_vm_trace_status){ .on = trace_on(), .by_flags = trace.by_flags };
    if (!status_out->on) return;
    pthread_mutex_lock(&trace.lock);
    struct vm_trace_totals totals = count_all(&status_out->loss);
    status_out->memory_bytes = trace.memory.bytes;
    status_out->path = trace.state == VM_TRACE_ON && !trace.memory.bytes ? trace.path : NULL;
    status_out->begin_ns = trace.begin_ns;
    set_counts(status_out, &totals);
    pthread_mutex_unlock(&trace.lock);
}

static void
say_what_was_written(const struct vm_trace_totals *totals, const struct vm_trace_loss *lost, const struct vm_trace_loss *dropped)
{
    if (trace.quiet || !stderr_is_the_first()) return;
    char exits[96] = "", losses[320] = "nothing lost";
    if (trace.config.exit_rate > 1) {
        snprintf(exits, sizeof(exits), "%llu of %llu exits (one in %llu), ", (unsigned long long)totals->sampled,
                 (unsigned long long)totals->exits, (unsigned long long)trace.config.exit_rate);
    }
    else if (trace.config.exit_rate) {
        snprintf(exits, sizeof(exits), "%llu of %llu exits, ", (unsigned long long)totals->sampled,
                 (unsigned long long)totals->exits);
    }
    if (!totals->lost && trace.sink.trim_error) {
        snprintf(losses, sizeof(losses), "nothing lost as far as can be seen (%s)", strerror(trace.sink.trim_error));
    }
    else if (totals->lost) {
        snprintf(losses, sizeof(losses), "%llu events lost (%s%s%s)", (unsigned long long)totals->lost,
                 lost->events ? lost->why : "", lost->events && dropped->events ? "; " : "",
                 dropped->events ? dropped->why : "");
    }
    say("wrote %s%llu events to %s, %s", exits, (unsigned long long)totals->events, trace.path, losses);
}

/*
 * Someone cut the file short, or removed it, or the disk is no longer there. Make what is left a valid file, with a chunk for the
 * last words. Returns what is no longer there of what was written.
 */
static struct vm_trace_counts
rescue(struct rb_vm_trace_local *local, struct rb_execution_context_struct *ec)
{
    struct vm_trace_totals written = rb_vm_trace_local_totals();
    struct vm_trace_counts left;
    if (local) rb_vm_trace_writer_close(&local->writer);
    bool mended = rb_vm_trace_sink_mend(&trace.sink, &left);
    if (mended && local && rb_vm_trace_writer_next_chunk(&local->writer) && left.events == 0) {
        rb_vm_trace_write_settings(local, ec, NULL);
    }
    return (struct vm_trace_counts){ written.events - left.events, written.sampled - left.exits };
}

/* Clocks of ractors differ by the little that each is off, and the summary is the last event. All ractors stand. */
static uint64_t
latest_ns(void)
{
    uint64_t latest = trace.dead_ns;
    for (const struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        uint64_t ns = clock_latest_ns(&local->clock);
        if (ns > latest) latest = ns;
    }
    return latest;
}

/* All chunks but the local's are back. */
static void
write_last_words(struct rb_vm_trace_local *local, struct rb_execution_context_struct *ec)
{
    int trouble = rb_vm_trace_sink_end(&trace.sink);
    struct vm_trace_counts gone = { 0, 0 };
    /* Closed by the program, it still has what was written. */
    if (trouble != 0 && trouble != EBADF) gone = rescue(local, ec);

    struct vm_trace_totals hits = trace.dead;
    rb_vm_trace_sites_report(local, ec, &hits);
    if (local) rb_vm_trace_writer_last_words(&local->writer);

    struct vm_trace_totals totals = rb_vm_trace_local_totals();
    totals.exits = hits.exits;
    totals.fallbacks = hits.fallbacks;
    totals.sites = hits.sites;
    totals.sampled -= gone.exits + trace.sink.dropped.exits;
    totals.events -= gone.events + trace.sink.dropped.events;
    struct vm_trace_loss lost = { totals.lost + gone.events, rb_vm_trace_loss_reason() };
    struct vm_trace_loss dropped = { trace.sink.dropped.events, rb_vm_trace_dropped_reason() };
    totals.lost = lost.events + dropped.events;
    if (local) {
        if (lost.events && rb_vm_trace_event_write(local, ec, rb_vm_trace_write_loss, &lost)) totals.events++;
        if (dropped.events && rb_vm_trace_event_write(local, ec, rb_vm_trace_write_loss, &dropped)) totals.events++;
        struct vm_trace_summary summary = { .totals = totals, .least_ns = latest_ns() };
        if (rb_vm_trace_event_write(local, ec, rb_vm_trace_write_summary, &summary)) totals.events++;
        rb_vm_trace_writer_close(&local->writer);
    }
    trace.last = totals;
    trace.last_loss = lost.events ? lost.why : dropped.events ? dropped.why : NULL;
    rb_vm_trace_sink_close(&trace.sink);
    say_what_was_written(&totals, &lost, &dropped);
}

static void
end_trace(void)
{
    if (!trace_on()) return;
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_local *local = ec ? rb_vm_trace_host_local(ec) : NULL;
    if (local == trace.spare) local = NULL;
    if (trace.memory.bytes) rb_vm_trace_recorder_end(local, ec);

    pthread_mutex_lock(&trace.lock);
    if (trace.memory.bytes) {
        rb_vm_trace_recorder_close();
        trace.last = count_all(&trace.last_loss);
    }
    /* A forked child that exited, but had none of its exits sampled, still has counts to report. */
    if (trace.state == VM_TRACE_PENDING && local && !trace.memory.bytes && (rb_vm_trace_sites_any_hits() || rb_vm_trace_local_totals().lost)) {
        rb_vm_trace_local_next_chunk(local, ec);
    }
    if (trace.state == VM_TRACE_ON) {
        for (struct rb_vm_trace_local *other = trace.locals; other; other = other->next) {
            if (other != local || trace.memory.bytes) rb_vm_trace_writer_close(&other->writer);
        }
        rb_vm_trace_shared_close(&trace.shared);
        if (trace.memory.bytes) rb_vm_trace_sink_close(&trace.sink);
        else write_last_words(local, ec);
    }
    __atomic_store_n(&trace.state, VM_TRACE_OFF, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&trace.lock);
}

void
rb_vm_trace_shutdown(void)
{
    end_trace();
    trace.ended = true;
}
