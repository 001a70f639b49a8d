/*
 * The validator itself: each fault that it knows, made once. Words are written out by hand.
 */
#include "harness.h"
#include "validate.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC 0x0016547846040010
#define PROVIDER 0x0010000000110020, 0x0000000000000070      /* provider 1, "p" */
#define CLOCK 0x0000000000000021, 0x000000003B9ACA00         /* 10^9 ticks a second */
#define STRING_1 0x0000000100010022, 0x0000000000000061      /* "a" */
#define THREAD_1 0x0000000000010033, 0x0000000000000007, 0x0000000000000008
#define EVENT 0x0001000101000024, 0x0000000000000064         /* "a" "a" on thread 1 */

#define decode(part, ...) \
    trace_decode((const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }), part)

static void
assert_fault_in(struct trace *trace, const char *text)
{
    if (!strstr(trace->fault, text)) fail_msg("fault is '%s', not '%s'", trace->fault, text);
    trace_free(trace);
}

#define assert_fault(text, ...) assert_fault_in(decode(TRACE_FILE, __VA_ARGS__), text)

static void
good_trace_is_decoded(void **state)
{
    (void)state;
    struct trace *trace = decode(TRACE_FILE, MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1,
                                 0x0000000000010027 | 1ull << 24, 7,                       /* process 7 is "a" */
                                 0x0000010001020047, 8, 0x0000000000010028, 7,             /* thread 8 of it, too */
                                 0x0001000101100044, 100, 0x0000000000010024, 0xFFFFFFFFFFFFFFFF, /* a: uint64 */
                                 0x0000000000000012);                                      /* padding */
    assert_string_equal(trace->fault, "at byte 96: thread without its process");
    trace_free(trace);

    trace = decode(TRACE_FILE, MAGIC, PROVIDER, CLOCK, STRING_1, 0x0000000700020022, 0x00737365636F7270 /* "process" */, THREAD_1,
                   0x0000000001010027, 7, 0x0000010001020047, 8, 0x0000000000020028, 7,
                   0x0001000101100044, 100, 0x0000000000010024, 0xFFFFFFFFFFFFFFFF, 0x0000000000000012);
    assert_string_equal(trace->fault, "");
    assert_int_equal(trace->event_count, 1);
    assert_int_equal(trace->padding_words, 1);
    const struct trace_event *event = trace_event(trace, "a", "a", 0);
    assert_int_equal(event->ns, 100);
    assert_int_equal(event->pid, 7);
    assert_int_equal(event->tid, 8);
    assert_string_equal(event->thread, "a");
    assert_string_equal(event->process, "a");
    assert_true(trace_number(event, "a") == UINT64_MAX);
    trace_free(trace);
}

static void
faults_of_stack_samples_are_found(void **state)
{
    (void)state;
    assert_fault("a blob that is none of Perfetto's", MAGIC, PROVIDER, 0x0000000000000015);
    assert_fault("bytes behind a blob", MAGIC, PROVIDER, 0x0003000200000025, 0x100000000000000a);
    assert_fault("no packet", MAGIC, PROVIDER, 0x0003000200000025, 0x0000000000000110);
    assert_fault("a damaged packet", MAGIC, PROVIDER, 0x0003000300000025, 0x000000000050050a);
    assert_fault("flags 0 of a packet", MAGIC, PROVIDER, 0x0003000400000025, 0x000000006550020a);
    assert_fault("a packet before its sequence began", MAGIC, PROVIDER, 0x0003000600000025, 0x000002686550040a);
    assert_fault("interned data without a number", MAGIC, PROVIDER, 0x0003000a00000035, 0x026201686550080a,
                 0x0000000000000128);
    assert_fault("number 1 is defined twice", MAGIC, PROVIDER, 0x0003001000000035, 0x0862016865500e0a,
                 0x0108022a0108022a);
    assert_fault("a sample's thread is not defined", MAGIC, PROVIDER, 0x0003000b00000035, 0x08ba01686550090a,
                 0x0000000000011002);
    assert_fault("a sample's stack is not defined", MAGIC, PROVIDER, 0x0003001400000045, 0x056201686550120a,
                 0x0408ba0108020382, 0x0000000001300110);
}

static void
faults_of_records_are_found(void **state)
{
    (void)state;
    assert_fault("no magic number", 0x0000000000000012);
    assert_fault("record of size 0", MAGIC, 0x0000000000000002);
    assert_fault("record of 3 words, but 2 are left", MAGIC, 0x0000000000000032, 0);
    assert_fault("record of type 6, which", MAGIC, PROVIDER, 0x0000000000000016);
    assert_fault("record of type 1 before a provider", MAGIC, CLOCK);
    assert_fault("metadata of type 2", MAGIC, 0x0000000000120010);
    assert_fault("provider 0", MAGIC, 0x0010000000010020, 0x70);
    assert_fault("text of 1 bytes in 0 words", MAGIC, 0x0010000000110010);
    assert_fault("without its ticks", MAGIC, PROVIDER, 0x0000000000000011);

    struct trace *trace = trace_decode("1234567", 7, TRACE_FILE);
    assert_fault_in(trace, "no multiple of 8");
}

static void
faults_of_strings_are_found(void **state)
{
    (void)state;
    assert_fault("string before a provider", MAGIC, STRING_1);
    assert_fault("string 1 is empty", MAGIC, PROVIDER, 0x0000000000010012);
    assert_fault("string 0 has a text", MAGIC, PROVIDER, 0x0000000100000022, 0x61);
    assert_fault("string 1 is defined twice", MAGIC, PROVIDER, STRING_1, STRING_1);
    assert_fault("text of 9 bytes in 1 words", MAGIC, PROVIDER, 0x0000000900010022, 0x61);
    assert_fault("text of 1 bytes in 2 words", MAGIC, PROVIDER, 0x0000000100010032, 0x61, 0);
    assert_fault("something else than zeros", MAGIC, PROVIDER, 0x0000000100010022, 0x6161);
    assert_fault("not UTF-8", MAGIC, PROVIDER, 0x0000000100010022, 0x80);
    assert_fault("not UTF-8", MAGIC, PROVIDER, 0x0000000200010022, 0x82E2);  /* the last byte is missing */
    assert_fault("reserved bits of a string record", MAGIC, PROVIDER, 0x0000000180010022, 0x61);
    assert_fault("reserved bits of a string record", MAGIC, PROVIDER, 0x0000800100010022, 0x61);
}

static void
faults_of_threads_and_objects_are_found(void **state)
{
    (void)state;
    assert_fault("thread record of 2 words", MAGIC, PROVIDER, 0x0000000000010023, 7);
    assert_fault("thread 0 is defined", MAGIC, PROVIDER, 0x0000000000000033, 7, 8);
    assert_fault("thread 1 is defined twice", MAGIC, PROVIDER, THREAD_1, THREAD_1);
    assert_fault("reserved bits of a thread record", MAGIC, PROVIDER, 0x0000000001010033, 7, 8);
    assert_fault("string 1 is not defined", MAGIC, PROVIDER, 0x0000000001010027, 7);
    assert_fault("kernel object of type 2 with 0 arguments", MAGIC, PROVIDER, STRING_1, 0x0000000001020027, 7);
    assert_fault("kernel object of type 3", MAGIC, PROVIDER, STRING_1, 0x0000000001030027, 7);
}

static void
faults_of_events_are_found(void **state)
{
    (void)state;
    assert_fault("before the provider and its clock", MAGIC, PROVIDER, STRING_1, THREAD_1, EVENT);
    assert_fault("thread 1 is not defined", MAGIC, PROVIDER, CLOCK, STRING_1, EVENT);
    assert_fault("string 1 is not defined", MAGIC, PROVIDER, CLOCK, THREAD_1, EVENT);
    /* The tables are empty after a provider's record. */
    assert_fault("string 1 is not defined", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, EVENT, PROVIDER, CLOCK, THREAD_1, EVENT);
    assert_fault("without a category or a name", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0000000101000024, 0x64);
    assert_fault("inline thread", MAGIC, PROVIDER, CLOCK, STRING_1, 0x0001000100000024, 0x64);
    assert_fault("inline string", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x8001000101000034, 0x64, 0x61);
    assert_fault("event of type 11", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x00010001010b0024, 0x64);
    assert_fault("a ends before it begins", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101040034, 0x64, 0x63);
    assert_fault("event of 2 words", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101040024, 0x64);
    assert_fault("argument 0 is behind the record's end", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101100024, 0x64);
    assert_fault("1 words behind the last argument", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101000034, 0x64, 0);
    assert_fault("argument a ends behind", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101100034, 0x64, 0x0000000000010024);
    assert_fault("argument of type 2 has 2 words", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101100044, 0x64,
                 0x0000000000010022, 0);
    assert_fault("argument a has type 7, which", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101100034, 0x64, 0x10017);
    assert_fault("two arguments are called a", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101200044, 0x64,
                 0x10012, 0x10012);
    assert_fault("argument 0 has no name", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101100034, 0x64, 0x00012);
    assert_fault("reserved bits of argument a", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101100034, 0x64,
                 0x0001000100010016);
    assert_fault("a ends but did not begin", MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101030024, 0x64);
    assert_fault("b ends inside of a", MAGIC, PROVIDER, CLOCK, STRING_1, 0x0000000100020022, 0x62, THREAD_1,
                 0x0001000101020024, 0x64, 0x0002000101030024, 0x65);
}

static void
open_durations_are_counted(void **state)
{
    (void)state;
    struct trace *trace = decode(TRACE_FILE, MAGIC, PROVIDER, CLOCK, STRING_1, THREAD_1, 0x0001000101020024, 0x64,
                                 0x0001000101020024, 0x65, 0x0001000101030024, 0x66);
    assert_string_equal(trace->fault, "");
    assert_int_equal(trace->open_spans, 1);
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_trace_is_decoded),
        cmocka_unit_test(faults_of_records_are_found),
        cmocka_unit_test(faults_of_stack_samples_are_found),
        cmocka_unit_test(faults_of_strings_are_found),
        cmocka_unit_test(faults_of_threads_and_objects_are_found),
        cmocka_unit_test(faults_of_events_are_found),
        cmocka_unit_test(open_durations_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
