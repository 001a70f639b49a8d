/*
 * When the flight recorder saves without a call by the program: at a signal, each period of a spool,
 * an exception, the end. See snapshot.h.
 */
#include "vm_trace/base/messages.h"
#include "vm_trace/base/native_thread.h"
#include "vm_trace/platform/platform.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/session/spool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define capture rb_vm_trace_capture
#define session rb_vm_trace_session

static struct vm_trace_wakeup wakings; /* of the thread that saves: by a signal, or by a trace that begins */
static uint32_t beginnings; /* wakings that are not signals */

/* --- saying what was saved --------------------------------------------------------------------------------- */

bool
rb_vm_trace_recorder_hint(const struct rb_vm_trace_save *save, char *text, size_t capacity)
{
    const struct rb_vm_trace_memory_config *memory = &save->memory;
    if (!save->held_ns) return false;
    uint64_t mib = memory->bytes >> 20;
    double enough = (double)mib * (double)memory->window_ns / (double)save->held_ns;
    int bytes = snprintf(text, capacity, "memory held the last %.1f of %llu seconds: ", (double)save->held_ns / 1e9,
                         (unsigned long long)memory->window_ns / 1000000000);
    if (bytes < 0 || (size_t)bytes >= capacity) return true;
    text += bytes;
    capacity -= (size_t)bytes;
    if (enough > VM_TRACE_MOST_MEMORY_MIB)
        snprintf(text, capacity, "no memory would hold all, so record one exit in K");
    else snprintf(text, capacity, "about %.0f MiB, not %llu, would hold all", enough + 0.5, (unsigned long long)mib);
    return true;
}

/* Pieces of a spool fail one after the other for the same reason: one message is enough. */
static bool
news_p(const char *reason)
{
    static char said[128];
    if (strncmp(said, reason, sizeof(said) - 1) == 0) return false;
    snprintf(said, sizeof(said), "%s", reason);
    return true;
}

static void
say_what_was_saved(const struct rb_vm_trace_save *save)
{
    const char *path = save->path ? save->path : "a file";
    if (save->error) {
        if (!session.memory.spool.folder || news_p(save->reason))
            rb_vm_trace_message("can't save to %s: %s", path, save->reason);
        return;
    }
    if (rb_vm_trace_messages.quiet || rb_vm_trace_messages.terse || session.memory.spool.folder) return;
    char lost[64] = "", hint[128];
    if (save->lost) snprintf(lost, sizeof(lost), ", %llu older ones are gone", (unsigned long long)save->lost);
    if (save->why_kept) rb_vm_trace_message("%s is kept: %s; the trace is saved beside it", save->kept, save->why_kept);
    rb_vm_trace_message("saved %llu exits, %llu events to %s (%s)%s", (unsigned long long)save->exits,
                        (unsigned long long)save->events, path, save->why, lost);
    if (rb_vm_trace_recorder_hint(save, hint, sizeof(hint))) rb_vm_trace_message("%s", hint);
}

void
rb_vm_trace_recorder_saved(struct rb_vm_trace_save *save)
{
    say_what_was_saved(save);
    free(save->made);
    free(save->kept);
}

/* --- signals and times -------------------------------------------------------------------------------------- */

/* `write`: how. */
static void
save_to_file(const char *why, void (*write)(struct rb_vm_trace_save *save))
{
    enum vm_trace_snapshot_answer answer;
    bool cut = session.memory.spool.folder != NULL;
    while ((answer = rb_vm_trace_snapshot_begin(cut)) == VM_TRACE_SNAPSHOT_BUSY) rb_vm_trace_recorder_wait();
    if (answer == VM_TRACE_SNAPSHOT_NO_RECORDER) return; /* a child that has recorded nothing */
    struct rb_vm_trace_save save = { .why = why, .error = ENOMEM, .reason = "out of memory" };
    if (answer == VM_TRACE_SNAPSHOT_BEGUN) write(&save);
    rb_vm_trace_recorder_saved(&save);
}

/* One waking was for a trace that begins. */
static bool
beginning_p(void)
{
    if (__atomic_load_n(&beginnings, __ATOMIC_ACQUIRE) == 0) return false;
    __atomic_fetch_sub(&beginnings, 1, __ATOMIC_ACQ_REL); /* nobody else subtracts */
    return true;
}

/*
 * The thread that saves at signals and writes pieces of a spool. It outlives the trace, for a later one may
 * have the same moments.
 */
static void *
save_by_itself(void *ignored)
{
    (void)ignored;
    native_thread_name();
    for (;;) {
        pthread_mutex_lock(&capture.lock);
        const struct rb_vm_trace_spool spool = session.memory.spool; /* a trace that begins wakes us */
        pthread_mutex_unlock(&capture.lock);
        uint64_t now_ns = rb_vm_trace_spool_now_ns();
        uint64_t until_ns = spool.folder ? rb_vm_trace_spool_next_ns(&spool, capture.pid, now_ns) : 0;
        bool woken = rb_vm_trace_wakeup_wait(&wakings, until_ns);
        if (woken && beginning_p()) continue;
        /* The trace may have ended meanwhile. */
        if (woken && session.memory.signal) save_to_file("signal", rb_vm_trace_recorder_write_here);
        bool due = !woken && session.memory.spool.folder;
        if (due && rb_vm_trace_recorder_any_p()) save_to_file("time", rb_vm_trace_recorder_write_here);
    }
    return NULL;
}

static void
on_signal(int number)
{
    (void)number;
    int saved = errno;
    rb_vm_trace_wakeup_post(&wakings);
    errno = saved;
}

/*
 * The signal is handled by a thread of its own, so that it works while the program hangs, too. A
 * program that sets a trap for it has it for itself.
 */
void
rb_vm_trace_recorder_threads(void)
{
    static uint32_t pid; /* of the process that has the thread: a forked child has none */
    pthread_t thread;
    if (!session.memory.signal && !session.memory.spool.folder) return;
    if (pid == capture.pid) {
        __atomic_fetch_add(&beginnings, 1, __ATOMIC_ACQ_REL);
        rb_vm_trace_wakeup_post(&wakings);
        return;
    }
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    __atomic_store_n(&beginnings, 0, __ATOMIC_RELEASE);
    bool ok = rb_vm_trace_wakeup_init(&wakings) && native_thread_start(&thread, save_by_itself, NULL) == 0;
    if (ok) pthread_detach(thread);
    if (ok) pid = capture.pid;
    /* In a forked child the program may have taken the signal meanwhile: it keeps it. */
    static bool taken;
    if (ok && !taken && session.memory.signal) taken = sigaction(session.memory.signal, &action, NULL) == 0;
    if (!ok) rb_vm_trace_message("can't save at a signal or a time: out of memory");
}

/* --- a stop, an exception, the end --------------------------------------------------------------------------- */

static bool
unreported_p(void)
{
    EACH_STREAM(stream, unreported_p) {
        if (stream->unreported_p()) return true;
    }
    return false;
}

/* A forked child that exited, but had none of its exits sampled, still has counts to report. */
static void
begin_for_counts(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    if (capture.state != VM_TRACE_PENDING || !ractor) return;
    pthread_mutex_lock(&capture.lock);
    if (unreported_p()) rb_vm_trace_ractor_next_chunk(ractor, ec);
    pthread_mutex_unlock(&capture.lock);
}

/* Whether there is something that no piece has. */
static bool
rest_p(void)
{
    return rb_vm_trace_recorder_any_p() || unreported_p();
}

void
rb_vm_trace_recorder_save_rest(const char *why)
{
    if (session.memory.spool.folder && rest_p()) save_to_file(why, rb_vm_trace_recorder_write);
}

bool
rb_vm_trace_recorder_last_piece_p(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    begin_for_counts(ractor, ec);
    return rest_p();
}

void
rb_vm_trace_recorder_save_at(unsigned moment, struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    if (!session.memory.bytes || !(session.memory.save_at & moment) || !trace_on()) return;
    begin_for_counts(ractor, ec);
    if (session.memory.spool.folder && !rest_p()) return;
    save_to_file(moment == VM_TRACE_SAVE_AT_EXIT ? "exit" : "exception", rb_vm_trace_recorder_write);
}

void
rb_vm_trace_recorder_end(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    rb_vm_trace_recorder_save_at(VM_TRACE_SAVE_AT_EXIT, ractor, ec);
}

