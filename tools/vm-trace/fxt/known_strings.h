#ifndef KNOWN_STRINGS_H
#define KNOWN_STRINGS_H
/* known_strings.h - the strings of the tracer's event schema: categories, names of events and
 * arguments, outcomes. doc/internals/events.md explains them.
 *
 * A reader's string pool begins with them in this order, so the number of a string shows whether it
 * is one of them.
 */
#include "base/pool.h"

#define KNOWN_STRINGS(S) \
    S(FRAME_0, "0") S(FRAME_1, "1") S(FRAME_2, "2") S(FRAME_3, "3") S(FRAME_4, "4") \
    S(FRAME_5, "5") S(FRAME_6, "6") S(FRAME_7, "7") S(FRAME_8, "8") S(FRAME_9, "9") \
    S(FRAME_REST, "10+") \
    S(SIDE_EXIT, "side_exit") S(RECOMPILE_EXIT, "recompile_exit") S(FALLBACK, "fallback") \
    S(COMPILE, "compile") S(INVALIDATION, "invalidation") S(REPROFILE, "reprofile") S(TRACE, "trace") \
    S(SETTINGS, "settings") S(SITE, "site") S(LOSS, "loss") S(SUMMARY, "summary") \
    S(INSN, "insn") S(VERSION, "version") S(WEIGHT, "weight") S(OUTCOME, "outcome") \
    S(PROFILING, "profiling") S(INVALIDATED, "invalidated") \
    S(ALREADY_INVALIDATED, "already_invalidated") S(VERSION_LIMIT, "version_limit") \
    S(REASON, "reason") S(KIND, "kind") S(LOCATION, "location") S(HITS, "hits") S(SAMPLED, "sampled") \
    S(EVENTS, "events") S(EXITS, "exits") S(FALLBACKS, "fallbacks") S(LOST, "lost") \
    S(EXIT_RATE, "exit_rate") S(FALLBACK_RATE, "fallback_rate") S(COUNTER, "counter") \
    S(ISEQ, "iseq") S(CODE_BYTES, "code_bytes") S(SITES, "sites") \
    S(RUBY, "ruby") S(BASE, "base") S(JIT, "jit") S(FLAGS, "flags") S(COMMAND, "command") S(PID, "pid") \
    S(CUT, "cut") S(SINCE_NS, "since_ns") S(UNTIL_NS, "until_ns") S(LEFT_OUT, "left_out") \
    S(MODULE, "module") S(PROCESS, "process") S(KEEP, "keep") S(NEWEST, "newest") S(THREAD, "thread") \
    S(RECOMPILATION, "recompilation") S(THROW, "throw") S(EXIT_BYTES, "exit_bytes") S(INLINED, "inlined") \
    S(ERROR, "error") \
    S(SNAPSHOT, "snapshot") S(CALLEE, "callee") S(MARKER, "marker") \
    S(INSN_INDEX, "insn_index") S(SEEN, "seen") S(INDEX, "index") S(LENGTH, "length") \
    S(BLOCKED, "blocked") S(PREEMPTED, "preempted") S(CLASS, "class") S(FD, "fd") \
    S(GC, "gc") S(GC_MINOR, "GC minor") S(GC_MAJOR, "GC major") S(GC_HEAP, "GC heap") \
    S(MARK, "mark") S(SWEEP, "sweep") S(COMPACT, "compact") S(BARRIER, "barrier") \
    S(COUNT, "count") S(MAJOR_BY, "major_by") S(FREED_SLOTS, "freed_slots") \
    S(ALLOCATION, "allocation") S(ALLOCATIONS, "allocations") S(SAMPLE, "sample") S(SIZE, "size") \
    S(FREED, "freed") S(ALIVE, "alive") S(SURVIVED, "survived") S(UNTRACKED, "untracked") \
    S(ALLOCATION_SAMPLES, "allocation_samples") S(ALLOCATION_BYTES, "allocation_bytes") \
    S(SUSPENSIONS, "suspensions") S(SUSPENSIONS_WITHOUT_CALLERS, "suspensions_without_callers") \
    S(LOST_NS, "lost_ns") S(LOST_MAX_NS, "lost_max_ns") S(EXECUTION, "execution") \
    S(STATES, "states") S(COMPILED, "compiled") S(EXITED, "exited") S(UNCOMPILED, "uncompiled") \
    S(UNCOMPILABLE, "uncompilable") S(REPROFILED, "reprofiled") S(C_FUNCTION, "c_function") \
    S(COMPILING, "compiling") S(WAITING, "waiting") S(UNSEEN, "unseen") S(CHANGES, "changes") \
    S(INTERPRETED, "interpreted") S(WHY, "why") S(CALLS, "calls") S(INTERPRETED_NS, "interpreted_ns") \
    S(FIRST_NS, "first_ns") S(LAST_NS, "last_ns") S(STATES_MIN_NS, "states_min_ns") \
    S(NOT_COMPILED_YET, "not compiled yet") S(CANNOT_BE_COMPILED, "cannot be compiled") \
    S(PROFILED_AGAIN, "profiled again") S(STATE, "state") S(RAN_NS, "ran_ns") \
    S(CALL, "call") S(LEFT_OUT_NS, "left_out_ns") S(BEGAN, "began") S(ENDED, "ended") \
    S(BEFORE_THE_TRACE, "before the trace") S(AFTER_THE_TRACE, "after the trace") S(NEVER, "never") \
    S(CALLS_MIN_NS, "calls_min_ns") S(CALLS_DEPTH, "calls_depth") S(CALLS_LEFT_OUT, "calls_left_out") \
    S(CALLS_REPLACED, "calls_replaced") S(COUNTS, "counts") \
    S(SYSCALL, "syscall") S(RESULT, "result") S(ERRNO, "errno") \
    S(SYSCALLS, "syscalls") S(SYSCALLS_MIN_NS, "syscalls_min_ns") S(SYSCALLS_LEFT_OUT, "syscalls_left_out") \
    S(SCHED, "sched") S(RUNNABLE, "runnable") S(CPU, "cpu") S(WOKEN, "woken") S(OTHER, "other") S(WAKER, "waker") \
    S(SCHED_MIN_NS, "sched_min_ns") S(SCHED_SLICES, "sched_slices") S(SCHED_LEFT_OUT, "sched_left_out") \
    S(SAMPLE_RECORDS, "sample_records") S(SAMPLES_NS, "samples_ns") S(SAMPLES_CLOCK, "samples_clock") \
    S(SAMPLES_UNHANDLED, "samples_unhandled") \
    S(HOST, "host") S(UNIX_NS, "unix_ns") S(SERVICE, "service") S(STACK, "stack") \
    S(ENDPOINT, "endpoint") S(STATUS, "status") S(REQUEST_ID, "request_id") S(JOB_ID, "job_id")

enum known_string {
    KNOWN_STRINGS_BEGIN = STRING_NONE,
#define KNOWN_STRING_NUMBER(name, text) STRING_##name,
    KNOWN_STRINGS(KNOWN_STRING_NUMBER)
#undef KNOWN_STRING_NUMBER
    KNOWN_STRINGS_END
};

#endif
