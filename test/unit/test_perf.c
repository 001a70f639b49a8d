/*
 * Records of perf_event_open: what they say, and what broken ones do not. Names of system calls. Why the
 * kernel refuses.
 */
#include "harness.h"
#include "vm_trace/platform/perf/names.h"
#include "vm_trace/platform/perf/records.h"
#include "vm_trace/platform/perf/refusal.h"
#include "vm_trace/platform/perf/support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#if PERF_SUPPORTED

enum { ENTER_ID = 101, EXIT_ID, SWITCH_ID, WAKING_ID, TID = 4711, OTHER = 4712, CPU = 3 };
#define NS UINT64_C(123456789)

static const struct vm_trace_tracepoints tracepoints = {
    .id = { [VM_TRACE_SYS_ENTER] = ENTER_ID,
            [VM_TRACE_SYS_EXIT] = EXIT_ID,
            [VM_TRACE_SCHED_SWITCH] = SWITCH_ID,
            [VM_TRACE_SCHED_WAKING] = WAKING_ID },
    /* As Linux 6.18 has them. */
    .switched = { .previous_comm = 8, .previous_tid = 24, .next_comm = 40, .next_tid = 56 },
    .waking = { .tid = 24 }
};

/* A record as the kernel writes it. */
struct built {
    size_t bytes;
    union {
        uint64_t words[64];
        unsigned char at[512];
    };
};

static void
put(struct built *built, const void *what, size_t bytes)
{
    memcpy(built->at + built->bytes, what, bytes);
    built->bytes += bytes;
}

static void
put_header(struct built *built, uint32_t type, uint16_t misc)
{
    struct perf_event_header header = { type, misc, 0 };
    *built = (struct built){ .bytes = 0 };
    put(built, &header, sizeof(header));
}

static void
put_identity(struct built *built, uint32_t tid)
{
    uint32_t ids[2] = { 4000, tid }, cpu[2] = { CPU, 0 };
    uint64_t ns = NS;
    put(built, ids, sizeof(ids));
    put(built, &ns, sizeof(ns));
    put(built, cpu, sizeof(cpu));
}

static void
finish(struct built *built)
{
    struct perf_event_header header;
    built->bytes = (built->bytes + 7) / 8 * 8;
    memcpy(&header, built->at, sizeof(header));
    header.size = (uint16_t)built->bytes;
    memcpy(built->at, &header, sizeof(header));
}

/* A sample of a tracepoint whose fields are `raw`, after the two bytes of its id. */
static struct built
sample(uint16_t id, void *raw, uint32_t bytes, uint32_t tid)
{
    struct built built;
    memcpy(raw, &id, sizeof(id));
    put_header(&built, PERF_RECORD_SAMPLE, 0);
    put_identity(&built, tid);
    put(&built, &bytes, sizeof(bytes));
    put(&built, raw, bytes);
    finish(&built);
    return built;
}

static bool
ours(const void *data, uint32_t tid)
{
    (void)data;
    return tid == TID || tid == OTHER;
}

static struct vm_trace_perf_record second;

static bool
decode(const struct built *built, struct vm_trace_perf_record *record)
{
    memset(record, 0, sizeof(*record));
    return rb_vm_trace_perf_decode(&tracepoints, built->at, built->bytes, ours, NULL, record, &second);
}

static void
begin_and_end_of_a_system_call(void **state)
{
    (void)state;
    uint64_t enter[8] = { 0, 1, 7, 8, 9, 10, 11, 12 }, leave[3] = { 0, 1, (uint64_t)-EAGAIN };
    struct vm_trace_perf_record record;
    struct built built = sample(ENTER_ID, enter, sizeof(enter), TID);
    assert_true(decode(&built, &record));
    assert_int_equal(record.kind, VM_TRACE_PERF_ENTER);
    assert_int_equal(record.tid, TID);
    assert_int_equal(record.cpu, CPU);
    assert_int_equal(record.ns, NS);
    assert_int_equal(rb_vm_trace_perf_record_ns(built.at, built.bytes), NS);
    assert_int_equal(record.call.number, 1);
    assert_int_equal(record.call.arguments[0], 7);
    assert_int_equal(record.call.arguments[5], 12);
    built = sample(EXIT_ID, leave, sizeof(leave), TID);
    assert_true(decode(&built, &record));
    assert_int_equal(record.kind, VM_TRACE_PERF_EXIT);
    assert_int_equal(record.call.result, -EAGAIN);
}

static void
switch_tells_both_of_our_threads_what_the_other_one_is(void **state)
{
    (void)state;
    unsigned char raw[64] = { 0 };
    uint32_t previous = TID, next = OTHER;
    struct vm_trace_perf_record record;
    memcpy(raw + 8, "one", 4);
    memcpy(raw + 24, &previous, 4);
    memcpy(raw + 40, "two", 4);
    memcpy(raw + 56, &next, 4);
    struct built built = sample(SWITCH_ID, raw, sizeof(raw), TID);
    assert_true(decode(&built, &record));
    assert_int_equal(record.kind, VM_TRACE_PERF_SWITCH);
    assert_int_equal(record.tid, TID);
    assert_string_equal(record.other.comm, "two");
    assert_int_equal(second.kind, VM_TRACE_PERF_SWITCH);
    assert_int_equal(second.tid, OTHER);
    assert_string_equal(second.other.comm, "one");

    previous = 5; /* of another process */
    memcpy(raw + 24, &previous, 4);
    built = sample(SWITCH_ID, raw, sizeof(raw), 5);
    assert_true(decode(&built, &record));
    assert_int_equal(record.tid, OTHER);
    assert_int_equal(record.other.tid, 5);
    assert_int_equal(second.kind, VM_TRACE_PERF_UNKNOWN);

    next = 6;
    memcpy(raw + 56, &next, 4);
    built = sample(SWITCH_ID, raw, sizeof(raw), 5);
    assert_false(decode(&built, &record));
}

static void
waking_is_of_the_thread_that_is_woken(void **state)
{
    (void)state;
    unsigned char raw[40] = { 0 };
    uint32_t woken = TID;
    struct vm_trace_perf_record record;
    memcpy(raw + 24, &woken, 4);
    struct built built = sample(WAKING_ID, raw, sizeof(raw), 99);
    assert_true(decode(&built, &record));
    assert_int_equal(record.kind, VM_TRACE_PERF_WAKING);
    assert_int_equal(record.tid, TID);
    assert_int_equal(record.waker.tid, 99);
}

static void
records_without_samples(void **state)
{
    (void)state;
    struct vm_trace_perf_record record;
    struct built built;
    put_header(&built, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
    put_identity(&built, TID);
    finish(&built);
    assert_true(decode(&built, &record));
    assert_int_equal(record.kind, VM_TRACE_PERF_OFF_CPU);
    assert_true(record.runnable);

    put_header(&built, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT); /* it waits for something */
    put_identity(&built, TID);
    finish(&built);
    assert_true(decode(&built, &record));
    assert_int_equal(record.kind, VM_TRACE_PERF_OFF_CPU);
    assert_false(record.runnable);

    put_header(&built, PERF_RECORD_SWITCH, 0);
    put_identity(&built, TID);
    finish(&built);
    assert_true(decode(&built, &record));
    assert_int_equal(record.kind, VM_TRACE_PERF_ON_CPU);

    uint32_t task[4] = { 4000, 4000, OTHER, TID }, child[4] = { 5000, 4000, 5000, TID };
    uint64_t ns = NS, lost[2] = { 1, 42 };
    put_header(&built, PERF_RECORD_FORK, 0);
    put(&built, task, sizeof(task));
    put(&built, &ns, sizeof(ns));
    put_identity(&built, TID);
    finish(&built);
    assert_true(decode(&built, &record));
    assert_int_equal(record.kind, VM_TRACE_PERF_BEGUN);
    assert_int_equal(record.tid, OTHER);
    assert_int_equal(record.parent, TID);

    put_header(&built, PERF_RECORD_FORK, 0); /* of a process */
    put(&built, child, sizeof(child));
    put(&built, &ns, sizeof(ns));
    put_identity(&built, TID);
    finish(&built);
    assert_false(decode(&built, &record));

    put_header(&built, PERF_RECORD_COMM, 0);
    put(&built, task, 2 * sizeof(*task));
    put(&built, "a name of 16 bytes and more", 24);
    put_identity(&built, TID);
    finish(&built);
    assert_true(decode(&built, &record));
    assert_int_equal(record.kind, VM_TRACE_PERF_NAMED);
    assert_string_equal(record.comm, "a name of 16 by");

    put_header(&built, PERF_RECORD_LOST, 0);
    put(&built, lost, sizeof(lost));
    put_identity(&built, TID);
    finish(&built);
    assert_true(decode(&built, &record));
    assert_int_equal(record.lost, 42);
}

/* Cut anywhere, or with a length that lies, a record is none: nothing past its end is read (run under ASan, too). */
static void
cut_records_are_none(void **state)
{
    (void)state;
    uint64_t enter[8] = { 0, 1, 7, 8, 9, 10, 11, 12 };
    struct vm_trace_perf_record record;
    struct built whole = sample(ENTER_ID, enter, sizeof(enter), TID);
    for (size_t bytes = 0; bytes < whole.bytes - 7; bytes++) {
        struct built cut = { .bytes = bytes };
        memcpy(cut.at, whole.at, bytes);
        assert_false(decode(&cut, &record));
    }
    uint32_t lie = 1 << 30;
    memcpy(whole.at + 32, &lie, sizeof(lie));
    assert_false(decode(&whole, &record));
    uint64_t unknown[3] = { 0 };
    whole = sample(9999, unknown, sizeof(unknown), TID);
    assert_false(decode(&whole, &record));
}

static void
names_are_those_of_the_headers(void **state)
{
    (void)state;
    assert_string_equal(rb_vm_trace_system_call_name(SYS_read), "read");
    assert_string_equal(rb_vm_trace_system_call_name(SYS_futex), "futex");
    assert_null(rb_vm_trace_system_call_name(99999));
    assert_null(rb_vm_trace_system_call_name(-1));
    assert_string_equal(rb_vm_trace_error_name(EAGAIN), "EAGAIN");
    assert_string_equal(rb_vm_trace_error_name(ENOENT), "ENOENT");
    assert_string_equal(rb_vm_trace_error_name(512), "ERESTARTSYS");
    assert_null(rb_vm_trace_error_name(4000));
}

static void
refusals_name_the_cause_and_the_remedy(void **state)
{
    (void)state;
    assert_non_null(strstr(rb_vm_trace_perf_refusal(ENOENT, 0, 1), "mount -t tracefs nodev /sys/kernel/tracing"));
    assert_non_null(strstr(rb_vm_trace_perf_refusal(EACCES, 0, 1), "only root may read /sys/kernel/tracing"));
    assert_non_null(strstr(rb_vm_trace_perf_refusal(0, ENOSYS, 1), "perf_event_open is missing"));
    assert_non_null(strstr(rb_vm_trace_perf_refusal(0, EMFILE, 1), "ulimit -n"));
    assert_non_null(strstr(rb_vm_trace_perf_refusal(0, EBUSY, 1), strerror(EBUSY)));
    /* Root has the privilege, so something else forbids it. A user without it gets the level. */
    const char *text = rb_vm_trace_perf_refusal(0, EPERM, -2);
    assert_true(strstr(text, "seccomp") || strstr(text, "kernel.perf_event_paranoid is "));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begin_and_end_of_a_system_call),
        cmocka_unit_test(switch_tells_both_of_our_threads_what_the_other_one_is),
        cmocka_unit_test(waking_is_of_the_thread_that_is_woken),
        cmocka_unit_test(records_without_samples),
        cmocka_unit_test(cut_records_are_none),
        cmocka_unit_test(names_are_those_of_the_headers),
        cmocka_unit_test(refusals_name_the_cause_and_the_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int
main(void)
{
    return 0;
}

#endif
