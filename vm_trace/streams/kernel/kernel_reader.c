/*
 * The kernel reader. See kernel_reader.h.
 */
#include "vm_trace/streams/kernel/kernel_reader.h"
#include "vm_trace/base/messages.h"
#include "vm_trace/base/native_thread.h"
#include "vm_trace/platform/perf/rings.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#define capture rb_vm_trace_capture

enum { WAIT_MS = 20, MOST_STREAMS = 2 };

static struct {
    const struct rb_vm_trace_kernel_stream *streams[MOST_STREAMS];
    size_t stream_count;
    bool running;
    pthread_t thread;
    uint32_t tid;                /* of the thread; 0: not known yet */
    struct rb_vm_trace_ractor *ractor;
    struct vm_trace_wakeup ready, flushed;
    bool stop, flush;            /* requests to the thread */
    int error;                   /* of opening the rings */
    uint64_t unattached;
    uint64_t lost;               /* records that are counted as lost */
} reader;

void
rb_vm_trace_kernel_register(const struct rb_vm_trace_kernel_stream *stream)
{
    reader.streams[reader.stream_count++] = stream;
}

static unsigned
what_is_recorded(void)
{
    unsigned what = 0;
    for (size_t i = 0; i < reader.stream_count; i++) {
        if (reader.streams[i]->stream->rate) what |= reader.streams[i]->what;
    }
    return what;
}

/* --- the thread --------------------------------------------------------------------------------- */

static void
take_record(void *ignored, const struct vm_trace_perf_record *record)
{
    (void)ignored;
    if (record->kind == VM_TRACE_PERF_LOST) return; /* count_lost */
    uint32_t parent = record->kind == VM_TRACE_PERF_BEGUN ? record->parent : 0;
    struct vm_trace_native_thread *thread = rb_vm_trace_native_thread(record->tid, parent);
    if (!thread) return;
    if (record->kind == VM_TRACE_PERF_NAMED) {
        rb_vm_trace_native_named(thread, record->comm);
        return;
    }
    rb_vm_trace_native_at(thread, record->ns);
    for (size_t i = 0; i < reader.stream_count && !thread->own; i++) {
        const struct rb_vm_trace_kernel_stream *stream = reader.streams[i];
        if (stream->stream->rate) stream->record(reader.ractor, thread, record);
    }
    if (record->kind == VM_TRACE_PERF_ENDED) rb_vm_trace_native_ended(thread);
}

static void
count_lost(const struct rb_vm_trace_perf *perf)
{
    uint64_t lost = rb_vm_trace_perf_lost(perf), more = lost - reader.lost;
    ractor_notice_reset(reader.ractor);
    reader.ractor->lost += more;
    reader.ractor->unread += more;
    reader.lost = lost;
}

static void
finish_thread(struct vm_trace_native_thread *thread, void *ns)
{
    for (size_t i = 0; i < reader.stream_count && !thread->own; i++) {
        const struct rb_vm_trace_kernel_stream *stream = reader.streams[i];
        if (stream->stream->rate) stream->finish(reader.ractor, thread, *(const uint64_t *)ns);
    }
}

static bool
requested(bool *request)
{
    return __atomic_load_n(request, __ATOMIC_ACQUIRE);
}

static void *
run(void *ignored)
{
    (void)ignored;
    native_thread_name();
    rb_vm_trace_own_ractor = reader.ractor;
    reader.tid = rb_vm_trace_host_thread(NULL).tid;
    struct rb_vm_trace_perf *perf = rb_vm_trace_perf_open(what_is_recorded(), capture.file.fd, &reader.error);
    reader.unattached = perf ? rb_vm_trace_perf_unattached(perf) : 0;
    rb_vm_trace_wakeup_post(&reader.ready);
    if (!perf) return NULL;
    while (!requested(&reader.stop)) {
        rb_vm_trace_perf_wait(perf, WAIT_MS);
        bool flush = requested(&reader.flush);
        rb_vm_trace_perf_read(perf, flush, take_record, NULL);
        if (!flush) continue;
        count_lost(perf);
        __atomic_store_n(&reader.flush, false, __ATOMIC_RELEASE);
        rb_vm_trace_wakeup_post(&reader.flushed);
    }
    rb_vm_trace_perf_read(perf, true, take_record, NULL);
    count_lost(perf);
    uint64_t ns = rb_vm_trace_clock_system_ns();
    rb_vm_trace_native_each(finish_thread, &ns);
    rb_vm_trace_perf_close(perf);
    clock_now_ns(&reader.ractor->clock); /* so that the summary, which is the last event, is not earlier than any */
    return NULL;
}

static bool
begin_streams(void)
{
    for (size_t i = 0; i < reader.stream_count; i++) {
        if (reader.streams[i]->stream->rate && !reader.streams[i]->begin()) return false;
    }
    return true;
}

static void
end_hooks(void)
{
    rb_vm_trace_threads_on &= ~RB_VM_TRACE_THREADS_NATIVE;
}

/* --- what both streams do alike ------------------------------------------------------------------ */

static struct vm_trace_kernel_counts *
counts_of(const struct rb_vm_trace_stream *stream, const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(stream, ractor);
}

void
rb_vm_trace_kernel_slice(const struct rb_vm_trace_stream *stream, struct rb_vm_trace_ractor *ractor,
                         uint64_t begin_ns, uint64_t end_ns, vm_trace_event_writer *write, const void *what)
{
    struct vm_trace_kernel_counts *counts = counts_of(stream, ractor);
    ractor_notice_reset(ractor);
    if (end_ns <= ractor->from_ns) return;
    if (begin_ns < ractor->from_ns) begin_ns = ractor->from_ns;
    if (end_ns - begin_ns < stream->min_ns) counts->left_out++;
    else counts->written += rb_vm_trace_event_write_in_epoch(ractor, NULL, write, what);
}

void
rb_vm_trace_kernel_count_from_0(const struct rb_vm_trace_stream *stream, struct rb_vm_trace_ractor *ractor)
{
    *counts_of(stream, ractor) = (struct vm_trace_kernel_counts){ 0, 0 };
}

void
rb_vm_trace_kernel_add_counts(const struct rb_vm_trace_stream *stream, const struct rb_vm_trace_ractor *ractor,
                              struct vm_trace_totals *totals)
{
    const struct vm_trace_kernel_counts *counts = counts_of(stream, ractor);
    *stream_counter(stream, totals, 0) += counts->written;
    *stream_counter(stream, totals, 1) += counts->left_out;
}

bool
rb_vm_trace_kernel_write_settings(const struct rb_vm_trace_stream *stream, const char *min_name,
                                  struct vm_trace_event *event)
{
    return !stream->rate || !stream->min_ns || rb_vm_trace_event_setting(event, min_name, stream->min_ns);
}

/* --- the session --------------------------------------------------------------------------------- */

static void
join_reader(void)
{
    pthread_join(reader.thread, NULL);
    reader.running = false;
}

const char *
rb_vm_trace_kernel_start(bool by_flags)
{
    (void)by_flags;
    if (reader.running || !what_is_recorded()) return NULL;
    if (!capture.by_flags) rb_vm_trace_kernel_forget(); /* that of an earlier trace */
    if (!reader.ractor) reader.ractor = rb_vm_trace_ractor_own();
    if (!reader.ractor || !begin_streams() || !rb_vm_trace_native_begin()) return "out of memory";
    reader.tid = 0;
    reader.stop = reader.flush = false;
    reader.lost = reader.unattached = 0;
    bool ok = rb_vm_trace_wakeup_init(&reader.ready) && rb_vm_trace_wakeup_init(&reader.flushed);
    int error = ok ? native_thread_start(&reader.thread, run, NULL) : ENOMEM;
    if (error) return strerror(error);
    reader.running = true;
    rb_vm_trace_wakeup_wait(&reader.ready, 0);
    if (reader.error) {
        join_reader();
        return strerror(reader.error);
    }
    if (reader.unattached)
        rb_vm_trace_warn("%llu threads are not recorded by syscalls and sched: no descriptors or memory; raise ulimit -n",
                         (unsigned long long)reader.unattached);
    rb_vm_trace_threads_on |= RB_VM_TRACE_THREADS_NATIVE;
    return NULL;
}

void
rb_vm_trace_kernel_stop(void)
{
    if (!reader.running) return;
    end_hooks();
    __atomic_store_n(&reader.stop, true, __ATOMIC_RELEASE);
    rb_vm_trace_perf_wake(reader.tid);
    join_reader(); /* its ractor state stays until the trace has ended, which has its counts */
}

void
rb_vm_trace_kernel_flush(void)
{
    if (!reader.running || requested(&reader.stop)) return;
    while (rb_vm_trace_wakeup_wait(&reader.flushed, 1)) continue; /* of a request that nobody waited for any more */
    __atomic_store_n(&reader.flush, true, __ATOMIC_RELEASE);
    rb_vm_trace_perf_wake(reader.tid);
    /* It may wait for the disk: then the save has what is there. */
    rb_vm_trace_wakeup_wait(&reader.flushed, clock_ns_of(CLOCK_MONOTONIC) + UINT64_C(1000000000));
}

void
rb_vm_trace_kernel_after_fork(void)
{
    if (!reader.running) return;
    end_hooks();
    reader.running = false;
    rb_vm_trace_native_after_fork();
}

void
rb_vm_trace_kernel_forget(void)
{
    if (reader.ractor) rb_vm_trace_ractor_free(reader.ractor);
    reader.ractor = NULL;
    rb_vm_trace_native_free_all();
}
