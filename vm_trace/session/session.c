/*
 * A session: begins a trace, reports how it goes, ends it; and the deaths that all streams must
 * know.
 *
 * Locks, outermost first: capture.lock, session.open_lock, that of the shared chunk and of orphaned
 * chunks, then those of strings, deaths and the chunk file, which are leaves. Recording takes none,
 * except for a next chunk (the last two), or where a ractor has no chunk of its own.
 */
#include "vm_trace/session/session.h"
#include "vm_trace/session/fork.h"
#include "vm_trace/session/metadata.h"
#include "vm_trace/session/origin.h"
#include "vm_trace/session/requests.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/session/spool.h"
#include "vm_trace/session/vm_options.h"
#include "vm_trace/base/fiber_tracks.h"
#include "vm_trace/base/messages.h"
#include "vm_trace/store/file_claim.h"
#include "vm_trace/store/memory_ring.h"
#include "vm_trace/streams/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define capture rb_vm_trace_capture
#define session rb_vm_trace_session

/* --- the file ------------------------------------------------------------------------------ */

/* Make the file of this process. NULL, or why it can't be made. */
static const char *
make_file(bool child)
{
    free(session.path);
    session.child = child;
    const char *pattern = session.path_pattern ? session.path_pattern :
                          session.memory.bytes ? VM_TRACE_SNAPSHOT_PATH :
                                                 NULL;
    session.path = rb_vm_trace_expand_path(pattern, capture.pid, child, session.memory.bytes ? 1 : session.number,
                                           session.memory.bytes ? "crash" : NULL);
    if (!session.path) return "out of memory";
    if (session.memory.bytes) return rb_vm_trace_memory_open(&capture.file);
    char *kept;
    const char *why_kept;
    const char *why = rb_vm_trace_chunk_file_open_beside(&capture.file, &session.path, capture.pid, &kept, &why_kept);
    /* Print this even if the program started the trace: the file is not at the requested path. */
    if (kept && !why) rb_vm_trace_message("%s is kept: %s; the trace goes to %s", kept, why_kept, session.path);
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
    if (ok) {
        rb_vm_trace_write_settings(ractor, ec, session.memory.bytes ? "memory" : NULL);
        rb_vm_trace_write_origin(ractor, ec, NULL);
    }
    if (ok && capture.file.keep_newest) {
        rb_vm_trace_writer_close(&ractor->writer);
        rb_vm_trace_chunk_file_begin_ring(&capture.file);
        ok = rb_vm_trace_writer_next_chunk(&ractor->writer);
    }
    if (ok && session.memory.bytes) ok = rb_vm_trace_recorder_begin(ractor->writer.events);
    if (ok) {
        rb_vm_trace_chunk_file_recording(&capture.file, true);
        return NULL;
    }
    /*
     * In memory a limit of the size of files leaves what is there, which is not an error of the
     * sink, but too little to begin with.
     */
    int error = capture.file.error ? capture.file.error : capture.file.reason;
    return error ? rb_vm_trace_chunk_file_reason(&capture.file, error) : "out of memory";
}

/* Say where the trace goes, or why nowhere: then no file is left behind. */
static bool
say_where(const char *why)
{
    if (!why && (rb_vm_trace_messages.quiet || rb_vm_trace_messages.terse)) return true;
    if (!why && session.memory.bytes) {
        const char *folder = session.memory.spool.folder;
        rb_vm_trace_message("recording to memory, %llu MiB at most%s%s", (unsigned long long)session.memory.bytes >> 20,
                            folder ? "; pieces go to " : "", folder ? folder : "");
        return true;
    }
    if (!why) {
        rb_vm_trace_message("tracing to %s", session.path);
        return true;
    }
    if (session.memory.bytes) {
        rb_vm_trace_warn("can't record to memory: %s; running untraced", why);
        rb_vm_trace_chunk_file_close(&capture.file);
        return false;
    }
    rb_vm_trace_warn("can't trace to %s: %s; running untraced", session.path ? session.path : "a file", why);
    if (capture.file.fd >= 0) rb_vm_trace_chunk_file_discard(&capture.file, session.path);
    return false;
}

/* capture.begin_child_file */
static bool
begin_child_file(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    bool ok;
    pthread_mutex_lock(&session.open_lock);
    if (capture.state == VM_TRACE_PENDING) {
        const char *why = make_file(true);
        ok = say_where(why ? why : begin_file(ractor, ec));
        __atomic_store_n(&capture.state, ok ? VM_TRACE_ON : VM_TRACE_OFF, __ATOMIC_RELEASE);
    }
    else { /* another ractor was here first, and may have failed */
        ok = capture.state == VM_TRACE_ON && rb_vm_trace_writer_next_chunk(&ractor->writer);
    }
    pthread_mutex_unlock(&session.open_lock);
    return ok;
}

bool
rb_vm_trace_supported_p(void)
{
    return true;
}

bool
rb_vm_trace_late_p(void)
{
    return !session.flags.never_late;
}

static void
request(struct rb_vm_trace_stream *stream, const struct vm_trace_stream_request *what)
{
    free((char *)stream->only);
    stream->only = what->only ? strdup(what->only) : NULL;
    stream->rate = what->rate;
    stream->min_ns = what->min_ns_and_1 ? what->min_ns_and_1 - 1 : stream->default_min_ns;
    stream->stack_part = what->stack_part;
    stream->samples = what->samples;
    stream->depth = what->depth ? what->depth : VM_TRACE_ANY_DEPTH;
}

/*
 * NULL when it began, or why it can't. session.path is then the file that can't be made, or NULL.
 */
static const char *
begin_trace(const struct rb_vm_trace_config *config,
            const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS])
{
    session.number++;
    capture.pid = (uint32_t)getpid();
    rb_vm_trace_clock_init();
    rb_vm_trace_origin_init();
    capture.begin_ns = rb_vm_trace_clock_system_ns();
    capture.begin_child_file = begin_child_file;
    rb_vm_trace_claim_image(capture.begin_ns);
    rb_vm_trace_handle_forks();
    rb_vm_trace_messages_begin();
    free(session.path_pattern);
    free(session.path);
    session.path = NULL;
    capture.jit = config->jit;
    session.jit_came_late = false;
    rb_vm_trace_messages.prefix = strcmp(config->jit, "none") == 0 ? "vm_trace" : config->jit;
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) request(rb_vm_trace_streams[i], &requests[i]);
    const struct rb_vm_trace_spool *spool = &session.memory.spool;
    session.path_pattern =
        spool->folder ? rb_vm_trace_spool_pattern(spool) : rb_vm_trace_absolute_path(config->path);
    if ((spool->folder || config->path) && !session.path_pattern) return "the current folder has no path";
    session.max_size = config->max_size;
    capture.in_memory = session.memory.bytes > 0;
    if (capture.in_memory) session.max_size = (struct rb_vm_trace_max_size){ .bytes = session.memory.bytes };
    capture.file.max_bytes = session.max_size.bytes;
    capture.file.min_free_bytes = session.min_free_bytes;
    capture.file.keep_newest = session.max_size.bytes && !session.max_size.keep_oldest;
    capture.file.sampled_categories = 0;
    EACH_STREAM(stream, sampled_categories) capture.file.sampled_categories |= stream->sampled_categories;
    rb_vm_trace_writer_init(&capture.shared.writer, &capture.file, capture.pid);
    const char *why = make_file(false);
    if (why) return why;

    capture.dead = (struct vm_trace_totals){ 0 };
    capture.dead_ns = 0;
    if (!capture.by_flags) capture.last_number = 0;
    if (!rb_vm_trace_ractor_begin_overflow()) return "out of memory";
    __atomic_store_n(&capture.state, VM_TRACE_ON, __ATOMIC_RELEASE);
    struct rb_vm_trace_ractor *kept = capture.by_flags ? capture.ractors : NULL;
    for (; kept; kept = kept->next) rb_vm_trace_ractor_begin(kept);
    if (!capture.by_flags) rb_vm_trace_ractor_renew_all();
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    return ractor ? begin_file(ractor, ec) : "out of memory";
}

/* It did not begin after all: leave no file behind. */
static void
discard_trace(void)
{
    pthread_mutex_lock(&capture.lock);
    if (session.memory.bytes) rb_vm_trace_recorder_close();
    pthread_mutex_unlock(&capture.lock);
    if (session.memory.bytes) rb_vm_trace_chunk_file_close(&capture.file);
    else if (capture.file.fd >= 0) rb_vm_trace_chunk_file_discard(&capture.file, session.path);
    __atomic_store_n(&capture.state, VM_TRACE_OFF, __ATOMIC_RELEASE);
}

/* Stop all streams before the one at `end`, the last first. */
static void
stop_streams(size_t end)
{
    while (end-- > 0) {
        if (rb_vm_trace_streams[end]->stop) rb_vm_trace_streams[end]->stop();
    }
}

static size_t
stream_count(void)
{
    size_t count = 0;
    while (rb_vm_trace_streams[count]) count++;
    return count;
}

/* NULL, or why: then none is started, and *name_out is the stream that can't be. */
static const char *
start_streams(bool by_flags, const char **name_out)
{
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
        const char *why = stream->start ? stream->start(by_flags) : NULL;
        if (!why) continue;
        stop_streams(i);
        /* Some start together, when the first of them would, recorded or not. */
        while (!rb_vm_trace_streams[i]->rate && rb_vm_trace_streams[i + 1]) i++;
        *name_out = rb_vm_trace_streams[i]->name;
        return why;
    }
    return NULL;
}

#define NO_JIT "no JIT is on: start Ruby with --zjit or --yjit"

/* Whether a JIT is on. While its flags start a trace it is not registered yet. */
static bool
jit_on(void)
{
    return rb_vm_trace_registered_jit() || capture.by_flags;
}

/* NULL, or why the stream can't be recorded as requested. */
static const char *
why_stream_refused(const struct rb_vm_trace_stream *stream, const struct vm_trace_stream_request *wanted)
{
    return stream->refuse && wanted->rate ? stream->refuse(wanted->rate, wanted->only) : NULL;
}

/*
 * Have the settings say that the trace lacks a stream of a preset. Not one of compiled code: nobody takes
 * it for granted that there are fallbacks. Returns whether it does.
 */
static bool
note_left_out(const struct rb_vm_trace_stream *stream, const char *why)
{
    size_t at = strlen(session.left_out);
    if (!stream->without_jit) return false;
    snprintf(session.left_out + at, sizeof(session.left_out) - at, "%s%s: %s", at ? "; " : "", stream->name, why);
    return true;
}

/* What --vm-trace requests of a stream; one that can't be recorded is left out, with a line on stderr. */
static struct vm_trace_stream_request
vm_request(size_t i)
{
    const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
    struct vm_trace_stream_request wanted = session.vm_options.requests[i];
    const char *why = why_stream_refused(stream, &wanted);
    if (why) {
        if (!wanted.by_preset) rb_vm_trace_warn("no %s are traced: %s", stream->name, why);
        else if (note_left_out(stream, why)) rb_vm_trace_warn("the trace has no %s: %s", stream->name, why);
        wanted.rate = 0;
    }
    return wanted;
}

/* What --vm-trace=LIST requests beside `requests`, which a JIT's flags begin with. */
static void
add_vm_requests(struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS])
{
    session.left_out[0] = '\0';
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        if (!requests[i].rate) requests[i] = vm_request(i);
        requests[i].samples |= session.vm_options.requests[i].samples;
    }
}

/* Else the signal would do what it does to a program without a handler: end it. */
static void
save_from_memory(void)
{
    rb_vm_trace_spool_configure(&session.memory);
    if ((session.memory.save_at || session.memory.signal) && !session.memory.bytes) {
        session.memory.bytes = (uint64_t)VM_TRACE_DEFAULT_MEMORY_MIB << 20;
    }
}

static void
streams_ended(void)
{
    EACH_STREAM(stream, ended) stream->ended();
}

/* Free what only a trace needs. Code has no trace points any more. World stopped, or no program runs yet. */
static void
forget_trace(void)
{
    if (capture.by_flags || capture.subscribed) return;
    rb_vm_trace_ractor_free_all();
    EACH_STREAM(stream, forget) stream->forget();
}

/* Whether anything is left. */
static bool
leave_out(struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS], const char *name)
{
    bool any = false;
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        if (strcmp(rb_vm_trace_streams[i]->name, name) == 0) requests[i].rate = 0;
        any |= requests[i].rate != 0;
    }
    return any;
}

/*
 * Begin before the program does. A stream that can't be started is left out, with a line on stderr, and the others
 * begin again. False: there is no trace.
 */
static bool
begin_by_flags(const struct rb_vm_trace_config *config, struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
               bool by_jit)
{
    const char *why, *why_not, *name;
    bool any = true;
    do {
        why = begin_trace(config, requests);
        capture.by_flags = by_jit && !why;
        why_not = why ? NULL : start_streams(by_jit, &name);
        if (!why_not) break;
        any = leave_out(requests, name);
        rb_vm_trace_warn(any ? "no %s are traced: %s" : "can't trace %s: %s; running untraced", name, why_not);
        discard_trace();
        streams_ended();
        capture.by_flags = false;
        forget_trace();
    } while (any);
    if (any && say_where(why)) return true;
    discard_trace();
    return false;
}

bool
rb_vm_trace_start(const struct rb_vm_trace_config *config)
{
    struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS];
    rb_vm_trace_streams_request(config, requests);
    add_vm_requests(requests);
    rb_vm_trace_messages.quiet = false;
    rb_vm_trace_messages.terse = session.flags.quiet;
    save_from_memory();
    session.option_prefix = config->jit[0] == 'Y' ? "--yjit" : "--zjit";
    capture.before_program = true;
    return begin_by_flags(config, requests, true);
}

/* --- start and stop in a running program ---------------------------------------------------------------- */

/* Why a trace can't begin, for an exception. */
static void
tell_why(const char *path, const char *why, char *why_out, size_t why_bytes)
{
    if (session.memory.bytes) {
        snprintf(why_out, why_bytes, "can't record to memory: %s; give memory: fewer MiB", why);
        return;
    }
    snprintf(why_out, why_bytes, "can't trace to %s: %s; give file: a path in a folder that can be written to",
             session.path ? session.path : path ? path : "a file", why);
}

/*
 * Why a stream can't be recorded in a program that runs; NULL: all can. Who names a stream of a JIT
 * that is not on has it refused; only presets wait for one.
 */
static const char *
why_refused(const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS])
{
    const char *why = NULL;
    for (size_t i = 0; !why && rb_vm_trace_streams[i]; i++) {
        const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
        if (requests[i].by_preset) continue;
        if (requests[i].rate && stream->needs_jit && !jit_on()) why = NO_JIT;
        else if (stream->refuse) why = stream->refuse(requests[i].rate, requests[i].only);
    }
    return why;
}

/* What is requested, without what a preset names and can't be recorded. */
static void
leave_out_of_presets(const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                     struct vm_trace_stream_request able_out[VM_TRACE_MAX_STREAMS])
{
    session.left_out[0] = '\0';
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
        const char *why = requests[i].by_preset ? why_stream_refused(stream, &requests[i]) : NULL;
        able_out[i] = requests[i];
        if (!why) continue;
        able_out[i].rate = 0;
        note_left_out(stream, why);
    }
}

bool
rb_vm_trace_prepare_session(const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS], uint64_t ns)
{
    if (trace_on() || why_refused(requests)) return false; /* it does not start, either */
    struct vm_trace_stream_request all[VM_TRACE_MAX_STREAMS];
    memcpy(all, requests, sizeof(all));
    rb_vm_trace_request_along(all);
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
        if (all[i].rate && stream->prepare && stream->prepare(all[i].rate, all[i].only, ns)) return true;
    }
    return false;
}

bool
rb_vm_trace_restore_session(uint64_t ns)
{
    EACH_STREAM(stream, restore) {
        if (stream->restore(ns)) return true;
    }
    return false;
}

/* The thread that saves by itself reads it at any time. */
static void
set_memory(const struct rb_vm_trace_memory_config *memory)
{
    pthread_mutex_lock(&capture.lock);
    session.memory = memory ? *memory : (struct rb_vm_trace_memory_config){ 0 };
    pthread_mutex_unlock(&capture.lock);
}

/* It could not begin, or not all of its streams could be started. */
static void
undo_begin(void)
{
    discard_trace();
    streams_ended();
    forget_trace();
    set_memory(NULL);
    capture.in_memory = false;
}

bool
rb_vm_trace_start_session(const struct rb_vm_trace_config *config,
                          const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                          const struct rb_vm_trace_memory_config *memory, char *why_out, size_t why_bytes)
{
    rb_vm_trace_messages.quiet = true;
    rb_vm_trace_messages.terse = false;
    session.option_prefix = NULL;
    capture.before_program = false;
    struct vm_trace_stream_request all[VM_TRACE_MAX_STREAMS], able[VM_TRACE_MAX_STREAMS] = { { .rate = 0 } };
    const char *why = why_refused(requests), *name;
    memcpy(all, requests, sizeof(all));
    rb_vm_trace_request_along(all);
    leave_out_of_presets(all, able);
    if (why) {
        snprintf(why_out, why_bytes, "%s", why);
        return false;
    }
    struct rb_vm_trace_memory_config kept = *memory;
    const char *folder = memory->spool.folder;
    if (folder) kept.spool.folder = rb_vm_trace_spool_keep_folder(folder);
    set_memory(&kept);
    why = folder && !kept.spool.folder ? "out of memory" : begin_trace(config, able);
    if (why) tell_why(config->path, why, why_out, why_bytes);
    else if ((why = start_streams(false, &name)) != NULL) snprintf(why_out, why_bytes, "can't trace %s: %s", name, why);
    if (why) undo_begin();
    return !why;
}

/* --- --vm-trace ------------------------------------------------------------------------------------------------ */

/*
 * Leaves out what can't be recorded, with a line on stderr for each, and one for all that the user named
 * and that wait for a JIT. False: nothing is left.
 */
static bool
take_requests(struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS])
{
    bool any = false;
    char waiting[128] = "";
    size_t at = 0;
    session.left_out[0] = '\0';
    rb_vm_trace_request_along(session.vm_options.requests);
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
        requests[i] = vm_request(i);
        if (!requests[i].rate) continue;
        any = true;
        if (stream->needs_jit && !requests[i].by_preset && !jit_on())
            at += (size_t)snprintf(waiting + at, sizeof(waiting) - at, "%s%s", at ? ", " : "", stream->name);
    }
    if (at) rb_vm_trace_warn("%s: " NO_JIT ", or let the program turn one on; nothing is recorded before", waiting);
    return any;
}

static void
start_requested(void *ignored)
{
    (void)ignored;
    if (trace_on()) return; /* flags of a JIT have started it, with these streams */
    const struct rb_vm_trace_jit *jit = rb_vm_trace_registered_jit();
    struct rb_vm_trace_config config = {
        .jit = jit ? jit->name : "none", .path = session.flags.path_pattern, .max_size = session.flags.max_size
    };
    struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS] = { { .rate = 0 } };
    if (!take_requests(requests)) return;
    rb_vm_trace_messages.quiet = false;
    rb_vm_trace_messages.terse = session.flags.quiet;
    session.option_prefix = "--vm";
    capture.before_program = true;
    save_from_memory();
    if (!begin_by_flags(&config, requests, false)) undo_begin();
}

void
rb_vm_trace_start_requested(void)
{
    bool any = false;
    rb_vm_trace_read_environment();
    if (!session.vm_options.given) return;
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) any |= session.vm_options.requests[i].rate > 0;
    if (any) rb_vm_trace_host_with_world_stopped(start_requested, NULL);
    else if (!trace_on())
        rb_vm_trace_warn("nothing is traced: give --vm-trace=LIST, too, such as --vm-trace=exits,markers");
}

void
rb_vm_trace_jit_ready(void)
{
    const struct rb_vm_trace_jit *jit = rb_vm_trace_registered_jit();
    if (jit && trace_on() && !capture.by_flags) {
        struct rb_execution_context_struct *ec;
        struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
        capture.jit = jit->name;
        session.jit_came_late = capture.state == VM_TRACE_ON; /* else the settings are still to be written */
        if (session.jit_came_late && ractor) rb_vm_trace_event_write(ractor, ec, rb_vm_trace_write_jit, NULL);
    }
    EACH_STREAM(stream, jit_ready) {
        const char *why = stream->jit_ready();
        if (why) rb_vm_trace_warn("no %s of %s's code are traced: %s", stream->name, capture.jit, why);
    }
}

static void end_trace(void);

/* Streams of compiled code always have their counts, even of 0, so that programs find `exits`. */
static void
set_counts(struct rb_vm_trace_status *status, const struct vm_trace_totals *totals)
{
    status->events = totals->events;
    status->sampled = totals->sampled;
    status->lost = totals->lost;
    EACH_STREAM(stream, counters) {
        if (!stream->rate && !stream_always_counted_p(stream)) continue;
        for (size_t i = 0; stream->counters[i]; i++) {
            status->counts[status->count_count++] =
                (struct rb_vm_trace_count){ stream->counters[i], totals->counters[stream->first_counter + i] };
        }
    }
}

bool
rb_vm_trace_stop_session(struct rb_vm_trace_status *status_out)
{
    *status_out = (struct rb_vm_trace_status){ .by_flags = capture.by_flags, .memory_bytes = session.memory.bytes };
    if (!trace_on()) return false;
    session.memory.save_at = 0; /* those are moments of a program that runs on */
    stop_streams(stream_count());
    session.last = (struct vm_trace_totals){ 0 };
    session.last_loss = NULL;
    bool file = capture.state == VM_TRACE_ON;
    end_trace();
    status_out->path = !session.memory.bytes && (file || session.last.events) ? session.path : NULL;
    status_out->begin_ns = capture.begin_ns;
    status_out->loss = session.last_loss;
    set_counts(status_out, &session.last);
    set_memory(NULL);
    capture.in_memory = false;
    streams_ended();
    forget_trace();
    return true;
}

/* --- lives of others ------------------------------------------------------------------------- */

static void
unit_freed(uintptr_t unit, bool iseq)
{
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    EACH_STREAM(stream, unit_freed) stream->unit_freed(unit, iseq, trace_on() ? ractor : NULL, ec);
}

void
rb_vm_trace_iseq_free(const struct rb_iseq_struct *iseq)
{
    if (!trace_wanted()) return;
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    /*
     * Most are of evals and blocks that no event ever named and no JIT compiled: no lock is taken
     * for those.
     */
    if (!rb_vm_trace_address_noted_p(from)) return;

    /* A pc may stand behind the last instruction. */
    rb_vm_trace_died((struct vm_trace_range){ .from = from, .to = to + 1 });
    unit_freed(from, true);
}

void
rb_vm_trace_code_free(const struct rb_iseq_struct *iseq)
{
    if (!trace_wanted()) return;
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    unit_freed(from, false);
}

/* What an object of the GC is known by. */
static void
object_freed(uintptr_t at)
{
    if (!trace_on()) return; /* each trace makes its own labels and events */
    if (rb_vm_trace_address_noted_p(at))
        rb_vm_trace_died((struct vm_trace_range){ .from = at, .to = at + 1, .methods = true });
}

void
rb_vm_trace_method_free(const void *method_entry)
{
    object_freed((uintptr_t)method_entry);
}

void
rb_vm_trace_class_free(uintptr_t klass)
{
    object_freed(klass); /* no label has its address, but events are kept by it (exit_templates.h) */
}

void
rb_vm_trace_compacted(void)
{
    if (!trace_on()) return;
    rb_vm_trace_all_died();
    EACH_STREAM(stream, compacted) stream->compacted();
}

void
rb_vm_trace_fiber_ended_slow(uint32_t *track)
{
    rb_vm_trace_fiber_track_free(*track);
    *track = 0;
}

void
rb_vm_trace_thread_renamed(void)
{
    if (!trace_on()) return;
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    if (!ractor) return;
    rb_vm_trace_writer_forget_names(&ractor->writer);
    pthread_mutex_lock(&capture.shared.lock);
    rb_vm_trace_writer_forget_names(&capture.shared.writer);
    pthread_mutex_unlock(&capture.shared.lock);
    EACH_STREAM(stream, thread_renamed) stream->thread_renamed();
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
    struct rb_vm_trace_ractor *ractor = ec ? rb_vm_trace_host_ractor(ec) : rb_vm_trace_own_ractor;
    return rb_vm_trace_chunk_file_fault(&capture.file, ractor ? &ractor->writer.chunk : NULL, address) ||
        rb_vm_trace_chunk_file_fault(&capture.file, &capture.shared.writer.chunk, address) ||
        (session.memory.bytes && rb_vm_trace_recorder_fault(address));
}

/* --- end ----------------------------------------------------------------------------------------- */

/* What is there now, and why not all is. capture.lock held. */
static struct vm_trace_totals
count_all(const char **loss_out)
{
    struct vm_trace_totals totals = rb_vm_trace_ractor_totals();
    EACH_STREAM(stream, count) stream->count(&totals);
    *loss_out = NULL;
    if (totals.lost > totals.late + totals.unread) *loss_out = rb_vm_trace_loss_reason();
    else if (totals.late) *loss_out = rb_vm_trace_late_reason();
    else if (totals.unread) *loss_out = rb_vm_trace_unread_reason();
    else if (capture.file.dropped.events) *loss_out = rb_vm_trace_dropped_reason();
    totals.sampled -= capture.file.dropped.sampled;
    totals.events -= capture.file.dropped.events;
    totals.lost += capture.file.dropped.events;
    return totals;
}

void
rb_vm_trace_status(struct rb_vm_trace_status *status_out)
{
    *status_out = (struct rb_vm_trace_status){ .on = trace_on(), .by_flags = capture.by_flags };
    if (!status_out->on) return;
    status_out->session_number = session.number;
    pthread_mutex_lock(&capture.lock);
    struct vm_trace_totals totals = count_all(&status_out->loss);
    status_out->memory_bytes = session.memory.bytes;
    status_out->spool = session.memory.spool.folder;
    status_out->path = capture.state == VM_TRACE_ON && !session.memory.bytes ? session.path : NULL;
    status_out->begin_ns = capture.begin_ns;
    set_counts(status_out, &totals);
    pthread_mutex_unlock(&capture.lock);
}

/*
 * A stream gives an event that would begin in the same ns as the one before it the next ns, and leaves the clock as
 * it is. So events are a few ns ahead of the clock where a tick of the clock is longer than an event takes.
 */
#define MOST_AHEAD_NS 1000

enum { LOSSES = 4 }; /* what was not written or is gone; what the disk was too slow for, or we were; what gave way */

static void
say_what_was_written(const struct vm_trace_totals *totals, const struct vm_trace_loss losses[LOSSES])
{
    if (rb_vm_trace_messages.quiet || (rb_vm_trace_messages.terse && !totals->lost)) return;
    char streams[256] = "", lost[800] = "nothing lost";
    size_t at = 0;
    EACH_STREAM(stream, describe) {
        size_t n = stream->describe(streams + at, sizeof(streams) - at, totals);
        if (n) at += n + (size_t)snprintf(streams + at + n, sizeof(streams) - at - n, ", ");
    }
    if (!totals->lost && capture.file.trim_error) {
        snprintf(lost, sizeof(lost), "nothing lost as far as can be seen (%s)", strerror(capture.file.trim_error));
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
    rb_vm_trace_message("wrote %s%llu events to %s, %s", streams, (unsigned long long)totals->events, session.path,
                        lost);
}

/*
 * Someone cut the file short, or removed it, or the disk is no longer there. Make what is left a
 * valid file, with a chunk for the last words. Returns what is no longer there of what was written.
 */
static struct vm_trace_counts
rescue(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    struct vm_trace_totals written = rb_vm_trace_ractor_totals();
    struct vm_trace_counts left;
    if (ractor) rb_vm_trace_writer_close(&ractor->writer);
    bool mended = rb_vm_trace_chunk_file_mend(&capture.file, &left);
    if (mended && ractor && rb_vm_trace_writer_next_chunk(&ractor->writer) && left.events == 0) {
        rb_vm_trace_write_settings(ractor, ec, NULL);
    }
    return (struct vm_trace_counts){ written.events - left.events, written.sampled - left.sampled };
}

/* All chunks but the ractor's are given back. */
static void
write_last_words(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    int trouble = rb_vm_trace_chunk_file_end(&capture.file);
    struct vm_trace_counts gone = { 0, 0 };
    /* Closed by the program, it still has what was written. */
    if (trouble != 0 && trouble != EBADF) gone = rescue(ractor, ec);

    struct vm_trace_totals reported = { 0 };
    EACH_STREAM(stream, finish) stream->finish();
    EACH_STREAM(stream, report) stream->report(ractor, ec, &reported);
    if (ractor) rb_vm_trace_writer_last_words(&ractor->writer);

    struct vm_trace_totals totals = rb_vm_trace_ractor_totals();
    for (int i = 0; i < VM_TRACE_MAX_COUNTERS; i++) totals.counters[i] += reported.counters[i];
    totals.sampled -= gone.sampled + capture.file.dropped.sampled;
    totals.events -= gone.events + capture.file.dropped.events;
    const struct vm_trace_loss losses[LOSSES] = {
        { totals.lost - totals.late - totals.unread + gone.events, rb_vm_trace_loss_reason() },
        { totals.late, rb_vm_trace_late_reason() },
        { totals.unread, rb_vm_trace_unread_reason() },
        { capture.file.dropped.events, rb_vm_trace_dropped_reason() }
    };
    session.last_loss = NULL;
    totals.lost = 0;
    for (int i = 0; i < LOSSES; i++) {
        totals.lost += losses[i].events;
        if (losses[i].events && !session.last_loss) session.last_loss = losses[i].why;
    }
    if (ractor) {
        for (int i = 0; i < LOSSES; i++) {
            if (losses[i].events && rb_vm_trace_event_write(ractor, ec, rb_vm_trace_write_loss, &losses[i]))
                totals.events++;
        }
        if (rb_vm_trace_event_write(ractor, ec, rb_vm_trace_write_origin, NULL)) totals.events++;
        /* In a file that keeps its newest events the first one may be gone. */
        if (session.jit_came_late && rb_vm_trace_event_write(ractor, ec, rb_vm_trace_write_jit, NULL)) totals.events++;
        if (rb_vm_trace_more_counts_p(&totals) && rb_vm_trace_event_write(ractor, ec, rb_vm_trace_write_counts, &totals))
            totals.events++;
        rb_vm_trace_writer_name_process(&ractor->writer);
        struct vm_trace_summary summary = { .totals = totals,
                                            .least_ns = rb_vm_trace_ractor_latest_ns() + MOST_AHEAD_NS };
        if (rb_vm_trace_event_write(ractor, ec, rb_vm_trace_write_summary, &summary)) totals.events++;
        rb_vm_trace_writer_close(&ractor->writer);
    }
    session.last = totals;
    rb_vm_trace_chunk_file_close(&capture.file);
    say_what_was_written(&totals, losses);
}

static bool
unreported_p(void)
{
    EACH_STREAM(stream, unreported_p) {
        if (stream->unreported_p()) return true;
    }
    return false;
}

static void
end_trace(void)
{
    if (!trace_on()) return;
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    if (session.memory.bytes) rb_vm_trace_recorder_end(ractor, ec);
    EACH_STREAM(stream, end_threads) stream->end_threads();

    pthread_mutex_lock(&capture.lock);
    if (session.memory.bytes) {
        rb_vm_trace_recorder_close();
        session.last = count_all(&session.last_loss);
    }
    /* A forked child that exited, but had none of its exits sampled, still has counts to report. */
    if (capture.state == VM_TRACE_PENDING && ractor && !session.memory.bytes &&
        (unreported_p() || rb_vm_trace_ractor_totals().lost)) {
        rb_vm_trace_ractor_next_chunk(ractor, ec);
    }
    if (capture.state == VM_TRACE_ON) {
        rb_vm_trace_chunk_file_recording(&capture.file, false);
        for (struct rb_vm_trace_ractor *other = capture.ractors; other; other = other->next) {
            if (other != ractor || session.memory.bytes) rb_vm_trace_writer_close(&other->writer);
        }
        rb_vm_trace_shared_close(&capture.shared);
        if (session.memory.bytes) rb_vm_trace_chunk_file_close(&capture.file);
        else write_last_words(ractor, ec);
    }
    __atomic_store_n(&capture.state, VM_TRACE_OFF, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&capture.lock);
}

void
rb_vm_trace_finalizing(void)
{
    if (!trace_on()) return;
    EACH_STREAM(stream, finalizing) stream->finalizing();
}

void
rb_vm_trace_shutdown(void)
{
    end_trace();
    capture.ended = true;
}
