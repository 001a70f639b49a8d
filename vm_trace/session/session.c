/*
 * From start to end: the file, on and off, what dies meanwhile, forks, the last words.
 *
 * Locks, outermost first: trace.lock, open_lock, that of the shared chunk and of what ractors left,
 * then those of strings, deaths and the sink, which are leaves. A recorder takes none on its way,
 * but for a next chunk (the last two), or where it has none of its own.
 */
#include "vm_trace/session/metadata.h"
#include "vm_trace/store/file_claim.h"
#include "vm_trace/store/memory_ring.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/base/messages.h"
#include "vm_trace/streams/sites.h"
#include "vm_trace/streams/versions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct vm_trace_global rb_vm_trace_global = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .min_free_bytes = SINK_MIN_FREE_DEFAULT,
    .flags = { .min_free_bytes = SINK_MIN_FREE_DEFAULT },
    .sink = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 },
    .shared = { .lock = PTHREAD_MUTEX_INITIALIZER, .writer = { .shares = true } }
};

/* Held while a forked child's file is made, so that it is made once. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

#define trace rb_vm_trace_global

/* --- the file ------------------------------------------------------------------------------ */

/* Make the file of this process. NULL, or why it can't be made. */
static const char *
make_file(bool child)
{
    free(trace.path);
    trace.child = child;
    const char *pattern = trace.config.path ? trace.config.path : trace.memory.bytes ? VM_TRACE_SNAPSHOT_PATH : NULL;
    trace.path = rb_vm_trace_expand_path(pattern, trace.pid, child, trace.memory.bytes ? 1 : trace.session);
    if (!trace.path) return "out of memory";
    if (trace.memory.bytes) return rb_vm_trace_memory_open(&trace.sink);
    char *kept;
    const char *why_kept;
    const char *why = rb_vm_trace_sink_open_beside(&trace.sink, &trace.path, trace.pid, &kept, &why_kept);
    /* Said even where the program began the trace: the file is not where it asked for. */
    if (kept && !why) rb_vm_trace_say("%s is kept: %s; the trace goes to %s", kept, why_kept, trace.path);
    free(kept);
    return why;
}

/*
 * A first chunk with the settings, which in a file that keeps its newest events is a short one of
 * its own: it is never used again. NULL, or why there is no room.
 */
static const char *
begin_file(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    bool ok = rb_vm_trace_writer_next_chunk(&ractor->writer);
    /* Memory is seen by others only after a crash or in a core: then nobody else says why. */
    if (ok) rb_vm_trace_write_settings(ractor, ec, trace.memory.bytes ? "memory" : NULL);
    if (ok && trace.sink.keep_newest) {
        rb_vm_trace_writer_close(&ractor->writer);
        rb_vm_trace_sink_begin_ring(&trace.sink);
        ok = rb_vm_trace_writer_next_chunk(&ractor->writer);
    }
    if (ok && trace.memory.bytes) ok = rb_vm_trace_recorder_begin();
    if (ok) {
        rb_vm_trace_sink_recording(&trace.sink, true);
        return NULL;
    }
    /*
     * In memory a limit of the size of files leaves what is there, which is not an error of the
     * sink, but too little to begin with.
     */
    int error = trace.sink.error ? trace.sink.error : trace.sink.reason;
    return error ? rb_vm_trace_sink_reason(&trace.sink, error) : "out of memory";
}

/* Say where the trace goes, or why nowhere: then no file is left behind. */
static bool
say_where(const char *why)
{
    if (!why && (trace.quiet || trace.terse)) return true;
    if (!why && trace.memory.bytes) {
        rb_vm_trace_say("recording to memory, %llu MiB at most", (unsigned long long)trace.memory.bytes >> 20);
        return true;
    }
    if (!why) {
        rb_vm_trace_say("tracing to %s", trace.path);
        return true;
    }
    if (trace.memory.bytes) {
        rb_vm_trace_warn("can't record to memory: %s; running untraced", why);
        rb_vm_trace_sink_close(&trace.sink);
        return false;
    }
    rb_vm_trace_warn("can't trace to %s: %s; running untraced", trace.path ? trace.path : "a file", why);
    if (trace.sink.fd >= 0) rb_vm_trace_sink_discard(&trace.sink, trace.path);
    return false;
}

bool
rb_vm_trace_ractor_next_chunk(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    if (__atomic_load_n(&trace.state, __ATOMIC_ACQUIRE) != VM_TRACE_PENDING) {
        if (!rb_vm_trace_writer_take_rest(&ractor->writer, &trace.shared, &ractor->clock) && !rb_vm_trace_writer_next_chunk(&ractor->writer)) {
            return false;
        }
        if (ec) rb_vm_trace_counters_chunk(ractor, ec); /* not into the chunks of a trace that is saved */
        return true;
    }
    bool ok;
    pthread_mutex_lock(&open_lock);
    if (trace.state == VM_TRACE_PENDING) {
        const char *why = make_file(true);
        ok = say_where(why ? why : begin_file(ractor, ec));
        __atomic_store_n(&trace.state, ok ? VM_TRACE_ON : VM_TRACE_OFF, __ATOMIC_RELEASE);
    }
    else { /* another ractor was here first, and may have failed */
        ok = trace.state == VM_TRACE_ON && rb_vm_trace_writer_next_chunk(&ractor->writer);
    }
    pthread_mutex_unlock(&open_lock);
    return ok;
}

bool
rb_vm_trace_supported_p(void)
{
    return true;
}

static void handle_forks(void);

/* NULL when it began, or why it can't. trace.path is then the file that can't be made, or NULL. */
static const char *
begin_trace(const struct rb_vm_trace_config *config)
{
    trace.session++;
    trace.pid = (uint32_t)getpid();
    rb_vm_trace_clock_init();
    trace.begin_ns = rb_vm_trace_clock_system_ns();
    rb_vm_trace_claim_image(trace.begin_ns);
    handle_forks();
    rb_vm_trace_say_begin();
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
    trace.sink.min_free_bytes = trace.min_free_bytes;
    trace.sink.keep_newest = config->max_size.bytes && !config->max_size.keep_oldest;
    rb_vm_trace_writer_init(&trace.shared.writer, &trace.sink, trace.pid);
    const char *why = make_file(false);
    if (why) return why;

    trace.dead = (struct vm_trace_totals){ 0 };
    trace.dead_ns = 0;
    if (!trace.by_flags) trace.last_number = 0;
    if (!rb_vm_trace_ractor_begin_overflow()) return "out of memory";
    __atomic_store_n(&trace.state, VM_TRACE_ON, __ATOMIC_RELEASE);
    for (struct rb_vm_trace_ractor *ractor = trace.ractors; trace.by_flags && ractor; ractor = ractor->next) rb_vm_trace_ractor_begin(ractor);
    if (!trace.by_flags) rb_vm_trace_ractor_renew_all();
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_ractor *ractor = ec ? rb_vm_trace_host_ractor(ec) : NULL;
    return ractor && ractor != trace.overflow ? begin_file(ractor, ec) : "out of memory";
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
    trace.terse = trace.flags.quiet;
    /* Else the signal would do what it does to a program without a handler: end it. */
    if ((trace.memory.save_at || trace.memory.signal) && !trace.memory.bytes) {
        trace.memory.bytes = (uint64_t)VM_TRACE_DEFAULT_MEMORY_MIB << 20;
    }
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
    rb_vm_trace_ractor_free_all();
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
    trace.terse = false;
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
        free((char *)trace.config.path);
        free((char *)trace.config.counter);
        trace.config = (struct rb_vm_trace_config){ .jit = trace.jit->name };
        if (!rb_vm_trace_ractor_begin_overflow()) return;
        rb_vm_trace_clock_init();
        rb_vm_trace_ractor_renew_all();
    }
    attach(1);
}

void
rb_vm_trace_listen(bool on)
{
    if (on == trace.listeners) return;
    trace.listeners = on;
    rb_vm_trace_ractor_call_at_every_exit(on);
    if (on && trace.jit) begin_to_listen();
    else if (!on && trace.machine_rate && !trace_on()) detach();
}

void
rb_vm_trace_jit_ready(void)
{
    if (trace.listeners && !trace.machine_rate) begin_to_listen();
}

/* --- lives of others ------------------------------------------------------------------------- */

static struct rb_vm_trace_ractor *
ractor_or_null(struct rb_execution_context_struct **ec_out)
{
    struct rb_execution_context_struct *ec = *ec_out = rb_vm_trace_host_current();
    struct rb_vm_trace_ractor *ractor = ec ? rb_vm_trace_host_ractor(ec) : NULL;
    return ractor == trace.overflow ? NULL : ractor;
}

static void
retire_sites(uintptr_t unit)
{
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = ractor_or_null(&ec);
    rb_vm_trace_sites_retire(unit, trace_on() ? ractor : NULL, ec);
}

void
rb_vm_trace_iseq_free(const struct rb_iseq_struct *iseq)
{
    if (!trace_wanted()) return;
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    if (from == to) return; /* it never got instructions */
    /* Most are of evals and blocks that no event ever named and no JIT compiled: no lock is taken for those. */
    if (!rb_vm_trace_address_noted_p(from)) return;

    /* A pc may stand behind the last instruction. */
    rb_vm_trace_died((struct vm_trace_range){ .from = from, .to = to + 1 });
    retire_sites(from);
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = ractor_or_null(&ec);
    if (trace_on()) rb_vm_trace_life_end(from, ractor, ec);
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
    if (rb_vm_trace_address_noted_p(at)) rb_vm_trace_died((struct vm_trace_range){ .from = at, .to = at + 1, .methods = true });
}

void
rb_vm_trace_compacted(void)
{
    if (trace_on()) rb_vm_trace_all_died();
}

void
rb_vm_trace_thread_renamed(void)
{
    if (!trace_on()) return;
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_ractor *ractor = ec ? rb_vm_trace_host_ractor(ec) : NULL;
    if (!ractor || ractor == trace.overflow) return;
    rb_vm_trace_writer_forget_names(&ractor->writer);
    pthread_mutex_lock(&trace.shared.lock);
    rb_vm_trace_writer_forget_names(&trace.shared.writer);
    pthread_mutex_unlock(&trace.shared.lock);
}

bool
rb_vm_trace_fault(const void *address)
{
    if (!trace_on()) return false;
    /*
     * Whoever touches a chunk is its owner, the sink, or one who begins the next chunk for all that
     * share one. Nobody touches what ractors left before it is a writer's own again.
     */
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_ractor *ractor = ec ? rb_vm_trace_host_ractor(ec) : NULL;
    return rb_vm_trace_sink_fault(&trace.sink, ractor ? &ractor->writer.chunk : NULL, address) ||
        rb_vm_trace_sink_fault(&trace.sink, &trace.shared.writer.chunk, address) ||
        (trace.memory.bytes && rb_vm_trace_recorder_fault(address));
}

/* --- fork -------------------------------------------------------------------------------------- */

/*
 * A fork is under way, on this thread, around which Ruby calls the hooks: the C library's own
 * handlers are not needed.
 */
static __thread bool hooked;

static pthread_mutex_t *const locks[] = { &rb_vm_trace_global.lock, &open_lock, &rb_vm_trace_global.shared.lock, &rb_vm_trace_global.sink.lock,
                                        &rb_vm_trace_deaths_lock };
enum { LOCKS = sizeof(locks) / sizeof(locks[0]) };

static void
unlock_for_fork(int count)
{
    while (count > 0) pthread_mutex_unlock(locks[--count]);
}

void
rb_vm_trace_before_fork(void)
{
    hooked = true;
    for (int i = 0; i < LOCKS; i++) pthread_mutex_lock(locks[i]);
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
    rb_vm_trace_ractor_begin_overflow(); /* which begins an epoch */
    for (struct rb_vm_trace_ractor *ractor = trace.ractors; ractor; ractor = ractor->next) {
        rb_vm_trace_writer_drop(&ractor->writer);
        /* Its owner may have been in the middle of something: that thread is no more. */
        rb_vm_trace_ractor_begin(ractor);
    }
    rb_vm_trace_shared_drop(&trace.shared);
    trace.shared.writer.pid = trace.pid;
    rb_vm_trace_sink_after_fork(&trace.sink);
    __atomic_store_n(&trace.state, VM_TRACE_PENDING, __ATOMIC_RELEASE);
}

/* All locks are held, and let go. True: this is a traced child. */
static bool
end_fork(bool in_child)
{
    bool child = in_child && trace_on() && (uint32_t)getpid() != trace.pid;
    if (child) begin_child();
    rb_vm_trace_strings_after_fork();
    if (__atomic_load_n(&trace.state, __ATOMIC_RELAXED) == VM_TRACE_PENDING) rb_vm_trace_lives_after_fork();
    unlock_for_fork(LOCKS);
    return child;
}

void
rb_vm_trace_after_fork(long pid)
{
    /* daemon(3) says 0 when it failed, too: only the pid tells who we are. */
    bool child = end_fork(pid == 0);
    hooked = false;
    if (child && trace.memory.bytes) rb_vm_trace_recorder_threads();
}

/*
 * Extensions may call fork(2) themselves. Without the hooks the child would write into the parent's
 * chunks. A handler of signals may fork, too, on a thread that is in the tracer and holds a lock:
 * so a lock is not waited for for ever, and such a child is not traced.
 */
static __thread bool locked_by_handler;

static bool
lock_in_time(pthread_mutex_t *lock)
{
    enum { MOST_TRIES = 1000 };
    for (int i = 0; i < MOST_TRIES; i++) {
        if (pthread_mutex_trylock(lock) == 0) return true;
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    }
    return false;
}

static void
prepare_fork(void)
{
    locked_by_handler = false;
    if (hooked || !trace_on()) return;
    for (int i = 0; i < LOCKS; i++) {
        if (lock_in_time(locks[i])) continue;
        unlock_for_fork(i);
        return;
    }
    rb_vm_trace_strings_before_fork();
    locked_by_handler = true;
}

static void
fork_in_parent(void)
{
    if (locked_by_handler) end_fork(false);
    locked_by_handler = false;
}

static void
fork_in_child(void)
{
    /*
     * No thread is begun here: a child that only execs needs none, and a signal that saves is for
     * Ruby's own children.
     */
    if (locked_by_handler) end_fork(true);
    else if (!hooked) __atomic_store_n(&trace.state, VM_TRACE_OFF, __ATOMIC_RELEASE);
    locked_by_handler = false;
}

static void
handle_forks(void)
{
    static bool handled;
    if (!handled) handled = pthread_atfork(prepare_fork, fork_in_parent, fork_in_child) == 0;
}

/* --- end ----------------------------------------------------------------------------------------- */

/* What is there now, and why not all is. trace.lock held. */
static struct vm_trace_totals
count_all(const char **loss_out)
{
    struct vm_trace_totals totals = rb_vm_trace_ractor_totals();
    rb_vm_trace_sites_count_hits(&totals);
    *loss_out = NULL;
    if (totals.lost > totals.late) *loss_out = rb_vm_trace_loss_reason();
    else if (totals.late) *loss_out = rb_vm_trace_late_reason();
    else if (trace.sink.dropped.events) *loss_out = rb_vm_trace_dropped_reason();
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
    status_out->session = trace.session;
    pthread_mutex_lock(&trace.lock);
    struct vm_trace_totals totals = count_all(&status_out->loss);
    status_out->memory_bytes = trace.memory.bytes;
    status_out->path = trace.state == VM_TRACE_ON && !trace.memory.bytes ? trace.path : NULL;
    status_out->begin_ns = trace.begin_ns;
    set_counts(status_out, &totals);
    pthread_mutex_unlock(&trace.lock);
}

enum { LOSSES = 3 }; /* what was not written or is gone; what the disk was too slow for; what gave way */

static void
say_what_was_written(const struct vm_trace_totals *totals, const struct vm_trace_loss losses[LOSSES])
{
    if (trace.quiet || (trace.terse && !totals->lost)) return;
    char exits[96] = "", lost[800] = "nothing lost";
    if (trace.config.exit_rate > 1) {
        snprintf(exits, sizeof(exits), "%llu of %llu exits (one in %llu), ", (unsigned long long)totals->sampled,
                 (unsigned long long)totals->exits, (unsigned long long)trace.config.exit_rate);
    }
    else if (trace.config.exit_rate) {
        snprintf(exits, sizeof(exits), "%llu of %llu exits, ", (unsigned long long)totals->sampled,
                 (unsigned long long)totals->exits);
    }
    if (!totals->lost && trace.sink.trim_error) {
        snprintf(lost, sizeof(lost), "nothing lost as far as can be seen (%s)", strerror(trace.sink.trim_error));
    }
    else if (totals->lost) {
        int n = snprintf(lost, sizeof(lost), "%llu events lost (", (unsigned long long)totals->lost);
        const char *between = "";
        for (int i = 0; i < LOSSES; i++) {
            if (!losses[i].events) continue;
            n += snprintf(lost + n, sizeof(lost) - (size_t)n, "%s%.*s", between, 200, losses[i].why);
            between = "; ";
        }
        snprintf(lost + n, sizeof(lost) - (size_t)n, ")");
    }
    rb_vm_trace_say("wrote %s%llu events to %s, %s", exits, (unsigned long long)totals->events, trace.path, lost);
}

/*
 * Someone cut the file short, or removed it, or the disk is no longer there. Make what is left a valid file, with a chunk for the
 * last words. Returns what is no longer there of what was written.
 */
static struct vm_trace_counts
rescue(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    struct vm_trace_totals written = rb_vm_trace_ractor_totals();
    struct vm_trace_counts left;
    if (ractor) rb_vm_trace_writer_close(&ractor->writer);
    bool mended = rb_vm_trace_sink_mend(&trace.sink, &left);
    if (mended && ractor && rb_vm_trace_writer_next_chunk(&ractor->writer) && left.events == 0) {
        rb_vm_trace_write_settings(ractor, ec, NULL);
    }
    return (struct vm_trace_counts){ written.events - left.events, written.sampled - left.exits };
}

/* All chunks but the local's are back. */
static void
write_last_words(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    int trouble = rb_vm_trace_sink_end(&trace.sink);
    struct vm_trace_counts gone = { 0, 0 };
    /* Closed by the program, it still has what was written. */
    if (trouble != 0 && trouble != EBADF) gone = rescue(ractor, ec);

    struct vm_trace_totals hits = trace.dead;
    rb_vm_trace_sites_report(ractor, ec, &hits);
    if (ractor) rb_vm_trace_writer_last_words(&ractor->writer);

    struct vm_trace_totals totals = rb_vm_trace_ractor_totals();
    totals.exits = hits.exits;
    totals.fallbacks = hits.fallbacks;
    totals.sites = hits.sites;
    totals.sampled -= gone.exits + trace.sink.dropped.exits;
    totals.events -= gone.events + trace.sink.dropped.events;
    const struct vm_trace_loss losses[LOSSES] = {
        { totals.lost - totals.late + gone.events, rb_vm_trace_loss_reason() },
        { totals.late, rb_vm_trace_late_reason() },
        { trace.sink.dropped.events, rb_vm_trace_dropped_reason() }
    };
    trace.last_loss = NULL;
    totals.lost = 0;
    for (int i = 0; i < LOSSES; i++) {
        totals.lost += losses[i].events;
        if (losses[i].events && !trace.last_loss) trace.last_loss = losses[i].why;
    }
    if (ractor) {
        for (int i = 0; i < LOSSES; i++) {
            if (losses[i].events && rb_vm_trace_event_write(ractor, ec, rb_vm_trace_write_loss, &losses[i])) totals.events++;
        }
        struct vm_trace_summary summary = { .totals = totals, .least_ns = rb_vm_trace_ractor_latest_ns() };
        if (rb_vm_trace_event_write(ractor, ec, rb_vm_trace_write_summary, &summary)) totals.events++;
        rb_vm_trace_writer_close(&ractor->writer);
    }
    trace.last = totals;
    rb_vm_trace_sink_close(&trace.sink);
    say_what_was_written(&totals, losses);
}

static void
end_trace(void)
{
    if (!trace_on()) return;
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_ractor *ractor = ec ? rb_vm_trace_host_ractor(ec) : NULL;
    if (ractor == trace.overflow) ractor = NULL;
    if (trace.memory.bytes) rb_vm_trace_recorder_end(ractor, ec);

    pthread_mutex_lock(&trace.lock);
    if (trace.memory.bytes) {
        rb_vm_trace_recorder_close();
        trace.last = count_all(&trace.last_loss);
    }
    /* A forked child that exited, but had none of its exits sampled, still has counts to report. */
    if (trace.state == VM_TRACE_PENDING && ractor && !trace.memory.bytes && (rb_vm_trace_sites_any_hits() || rb_vm_trace_ractor_totals().lost)) {
        rb_vm_trace_ractor_next_chunk(ractor, ec);
    }
    if (trace.state == VM_TRACE_ON) {
        rb_vm_trace_sink_recording(&trace.sink, false);
        for (struct rb_vm_trace_ractor *other = trace.ractors; other; other = other->next) {
            if (other != ractor || trace.memory.bytes) rb_vm_trace_writer_close(&other->writer);
        }
        rb_vm_trace_shared_close(&trace.shared);
        if (trace.memory.bytes) rb_vm_trace_sink_close(&trace.sink);
        else write_last_words(ractor, ec);
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
