/*
 * Decoding what the kernel records. See records.h.
 *
 * Layouts are those of perf_event_open(2), "MMAP layout", for the fields that rings.c requests: TID,
 * TIME and CPU, then RAW of tracepoints. Records other than samples have the first three at their end.
 */
#include "vm_trace/platform/perf/records.h"
#include "vm_trace/platform/perf/support.h"

#include <string.h>

#if PERF_SUPPORTED

struct identity { /* sample_id, and the begin of a sample */
    uint32_t pid, tid;
    uint64_t time;
    uint32_t cpu, reserved;
};

struct sample {
    struct perf_event_header header;
    struct identity identity;
    uint32_t raw_bytes;
    unsigned char raw[];
};

/* What all tracepoints record first. */
enum { COMMON_TYPE_BYTES = 2, CALL_NUMBER = 8, CALL_VALUES = 16 };

static const struct identity *
identity_of(const struct perf_event_header *header)
{
    if (header->type == PERF_RECORD_SAMPLE) return &((const struct sample *)header)->identity;
    return (const struct identity *)((const char *)header + header->size - sizeof(struct identity));
}

uint64_t
rb_vm_trace_perf_record_ns(const void *at, size_t bytes)
{
    return bytes < sizeof(struct perf_event_header) + sizeof(struct identity) ? 0 : identity_of(at)->time;
}

static bool
read_field(const struct sample *sample, unsigned offset, void *to, size_t bytes)
{
    if (offset + bytes > sample->raw_bytes) return false;
    memcpy(to, sample->raw + offset, bytes);
    return true;
}

static bool
read_task(const struct sample *sample, unsigned tid, unsigned comm, struct vm_trace_task *task_out)
{
    bool ok = read_field(sample, tid, &task_out->tid, sizeof(task_out->tid)) &&
        read_field(sample, comm, task_out->comm, sizeof(task_out->comm));
    task_out->comm[sizeof(task_out->comm) - 1] = '\0';
    return ok;
}

static bool
decode_call(const struct sample *sample, bool enter, struct vm_trace_perf_record *record)
{
    record->kind = enter ? VM_TRACE_PERF_ENTER : VM_TRACE_PERF_EXIT;
    void *values = enter ? (void *)record->call.arguments : (void *)&record->call.result;
    size_t bytes = enter ? sizeof(record->call.arguments) : sizeof(record->call.result);
    return read_field(sample, CALL_NUMBER, &record->call.number, sizeof(record->call.number)) &&
        read_field(sample, CALL_VALUES, values, bytes);
}

static struct vm_trace_perf_record
switch_of(const struct identity *identity, const struct vm_trace_task *task, const struct vm_trace_task *other)
{
    return (struct vm_trace_perf_record){ .kind = VM_TRACE_PERF_SWITCH,
                                          .tid = task->tid,
                                          .cpu = identity->cpu,
                                          .ns = identity->time,
                                          .other = *other };
}

static bool
decode_switch(const struct vm_trace_tracepoints *tracepoints, const struct sample *sample,
              vm_trace_thread_predicate *ours, const void *data, struct vm_trace_perf_record *record,
              struct vm_trace_perf_record *second)
{
    struct vm_trace_task previous, next;
    if (!read_task(sample, tracepoints->switched.previous_tid, tracepoints->switched.previous_comm, &previous) ||
        !read_task(sample, tracepoints->switched.next_tid, tracepoints->switched.next_comm, &next))
        return false;
    bool stops = ours(data, previous.tid), begins = ours(data, next.tid);
    if (stops) *record = switch_of(&sample->identity, &previous, &next);
    if (begins) *(stops ? second : record) = switch_of(&sample->identity, &next, &previous);
    return stops || begins;
}

static bool
decode_waking(const struct vm_trace_tracepoints *tracepoints, const struct sample *sample,
              vm_trace_thread_predicate *ours, const void *data, struct vm_trace_perf_record *record)
{
    record->kind = VM_TRACE_PERF_WAKING;
    record->waker = (struct vm_trace_task){ .tid = record->tid };
    return read_field(sample, tracepoints->waking.tid, &record->tid, sizeof(record->tid)) && ours(data, record->tid);
}

static bool
decode_sample(const struct vm_trace_tracepoints *tracepoints, const struct sample *sample, size_t bytes,
              vm_trace_thread_predicate *ours, const void *data, struct vm_trace_perf_record *record,
              struct vm_trace_perf_record *second)
{
    uint16_t type;
    if (bytes < offsetof(struct sample, raw) || sample->raw_bytes > bytes - offsetof(struct sample, raw) ||
        !read_field(sample, 0, &type, COMMON_TYPE_BYTES))
        return false;
    if (type == tracepoints->id[VM_TRACE_SYS_ENTER]) return decode_call(sample, true, record);
    if (type == tracepoints->id[VM_TRACE_SYS_EXIT]) return decode_call(sample, false, record);
    if (type == tracepoints->id[VM_TRACE_SCHED_SWITCH])
        return decode_switch(tracepoints, sample, ours, data, record, second);
    if (type == tracepoints->id[VM_TRACE_SCHED_WAKING])
        return decode_waking(tracepoints, sample, ours, data, record);
    return false;
}

static bool
decode_other(const struct perf_event_header *header, struct vm_trace_perf_record *record)
{
    struct comm {
        struct perf_event_header header;
        uint32_t pid, tid;
        char comm[];
    };
    struct task {
        struct perf_event_header header;
        uint32_t pid, parent, tid, parent_tid;
    };
    struct lost {
        struct perf_event_header header;
        uint64_t id, lost;
    };
    size_t bytes = header->size - sizeof(struct identity);
    if (header->type == PERF_RECORD_LOST && bytes >= sizeof(struct lost)) {
        record->kind = VM_TRACE_PERF_LOST;
        record->lost = ((const struct lost *)header)->lost;
        return true;
    }
    if (header->type == PERF_RECORD_SWITCH) {
        bool off = header->misc & PERF_RECORD_MISC_SWITCH_OUT;
        record->kind = off ? VM_TRACE_PERF_OFF_CPU : VM_TRACE_PERF_ON_CPU;
        record->runnable = off && (header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
        return true;
    }
    if ((header->type == PERF_RECORD_FORK || header->type == PERF_RECORD_EXIT) && bytes >= sizeof(struct task)) {
        const struct task *task = (const struct task *)header;
        bool begun = header->type == PERF_RECORD_FORK;
        record->kind = begun ? VM_TRACE_PERF_BEGUN : VM_TRACE_PERF_ENDED;
        record->tid = task->tid;
        record->parent = task->parent_tid;
        return !begun || task->pid == task->parent; /* else it is a process of its own */
    }
    if (header->type == PERF_RECORD_COMM && bytes > sizeof(struct comm)) {
        const struct comm *comm = (const struct comm *)header;
        record->kind = VM_TRACE_PERF_NAMED;
        record->tid = comm->tid;
        size_t n = bytes - sizeof(struct comm);
        memset(record->comm, 0, sizeof(record->comm));
        memcpy(record->comm, comm->comm, n < sizeof(record->comm) ? n : sizeof(record->comm) - 1);
        return true;
    }
    return false;
}

bool
rb_vm_trace_perf_decode(const struct vm_trace_tracepoints *tracepoints, const void *at, size_t bytes,
                        vm_trace_thread_predicate *ours, const void *data, struct vm_trace_perf_record *record_out,
                        struct vm_trace_perf_record *second_out)
{
    const struct perf_event_header *header = at;
    second_out->kind = VM_TRACE_PERF_UNKNOWN;
    if (bytes < sizeof(*header) + sizeof(struct identity)) return false;
    const struct identity *identity = identity_of(header);
    record_out->kind = VM_TRACE_PERF_UNKNOWN;
    record_out->tid = identity->tid;
    record_out->cpu = identity->cpu;
    record_out->ns = identity->time;
    if (header->type != PERF_RECORD_SAMPLE) return decode_other(header, record_out);
    return decode_sample(tracepoints, (const struct sample *)header, bytes, ours, data, record_out, second_out);
}

#else

bool
rb_vm_trace_perf_decode(const struct vm_trace_tracepoints *tracepoints, const void *at, size_t bytes,
                        vm_trace_thread_predicate *ours, const void *data, struct vm_trace_perf_record *record_out,
                        struct vm_trace_perf_record *second_out)
{
    (void)tracepoints, (void)at, (void)bytes, (void)ours, (void)data, (void)record_out, (void)second_out;
    return false;
}

uint64_t
rb_vm_trace_perf_record_ns(const void *at, size_t bytes)
{
    (void)at, (void)bytes;
    return 0;
}

#endif
