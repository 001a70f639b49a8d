#ifndef WORDS_H
#define WORDS_H
/* words.h - the words of the tracer's event contract: categories, event names, argument names, outcomes.
 *
 * Every pool starts with them in this order, so the number of a string says which word it is. doc/events.md tells what they mean.
 */
#define WORDS(W) \
    W(FRAME_0, "0") W(FRAME_1, "1") W(FRAME_2, "2") W(FRAME_3, "3") W(FRAME_4, "4") \
    W(FRAME_5, "5") W(FRAME_6, "6") W(FRAME_7, "7") W(FRAME_8, "8") W(FRAME_9, "9") \
    W(FRAME_REST, "10+") \
    W(SIDE_EXIT, "side_exit") W(RECOMPILE_EXIT, "recompile_exit") W(FALLBACK, "fallback") \
    W(COMPILE, "compile") W(INVALIDATION, "invalidation") W(REPROFILE, "reprofile") W(TRACE, "trace") \
    W(SETTINGS, "settings") W(SITE, "site") W(LOSS, "loss") W(SUMMARY, "summary") \
    W(INSN, "insn") W(VERSION, "version") W(WEIGHT, "weight") W(OUTCOME, "outcome") \
    W(PROFILING, "profiling") W(INVALIDATED, "invalidated") \
    W(ALREADY_INVALIDATED, "already_invalidated") W(VERSION_LIMIT, "version_limit") \
    W(REASON, "reason") W(KIND, "kind") W(LOCATION, "location") W(HITS, "hits") W(SAMPLED, "sampled") \
    W(EVENTS, "events") W(EXITS, "exits") W(FALLBACKS, "fallbacks") W(LOST, "lost") \
    W(EXIT_RATE, "exit_rate") W(FALLBACK_RATE, "fallback_rate") W(COUNTER, "counter") \
    W(ISEQ, "iseq") W(CODE_BYTES, "code_bytes") W(SITES, "sites") \
    W(RUBY, "ruby") W(BASE, "base") W(JIT, "jit") W(FLAGS, "flags") W(COMMAND, "command") W(PID, "pid") \
    W(CUT, "cut") W(SINCE_NS, "since_ns") W(UNTIL_NS, "until_ns") W(LEFT_OUT, "left_out") \
    W(MODULE, "module") W(PROCESS, "process") W(KEEP, "keep") W(NEWEST, "newest") W(THREAD, "thread") \
    W(RECOMPILATION, "recompilation") W(EXIT_BYTES, "exit_bytes") W(INLINED, "inlined") W(ERROR, "error") \
    W(SNAPSHOT, "snapshot") W(CALLEE, "callee")

enum word {
    WORD_NONE = 0,
#define WORD_NUMBER(name, text) WORD_##name,
    WORDS(WORD_NUMBER)
#undef WORD_NUMBER
    WORD_COUNT
};

#endif
