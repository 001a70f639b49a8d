/* cost_text.c - see cost_text.h */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "topics/states/cost_text.h"
#include "render/document.h"

/* Shares of the time in which threads ran, or of their lives, from which on something is worth a
 * word. */
static const double much = 0.1, some = 0.03, other_least = 0.05, waiting_least = 0.1, blocked_least = 0.5;

const char *const cost_verdict_names[COST_VERDICTS] = {
    [COST_UNKNOWN] = "unknown", [COST_NOTHING] = "nothing", [COST_SOME] = "some", [COST_MUCH] = "much"};

/* The states in a sentence, in front of "took 31 %". */
static const char *const phrases[EXECUTION_STATES] = {
    [EXECUTION_COMPILED] = "compiled code",
    [EXECUTION_EXITED] = "exits",
    [EXECUTION_UNCOMPILED] = "interpreting what was not compiled yet",
    [EXECUTION_UNCOMPILABLE] = "interpreting what cannot be compiled",
    [EXECUTION_REPROFILED] = "interpreting what is profiled again",
    [EXECUTION_FALLBACK] = "fallback calls",
    [EXECUTION_C_FUNCTION] = "C functions",
    [EXECUTION_COMPILING] = "compiling",
    [EXECUTION_GC] = "garbage collection",
};

static double
share_of(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

struct sentence {
    char *text;
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void
say(struct sentence *sentence, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int len = vsnprintf(sentence->text + sentence->len, COST_TEXT - sentence->len, format, list);
    va_end(list);
    if (len > 0) sentence->len += (size_t)len;
    if (sentence->len >= COST_TEXT) sentence->len = COST_TEXT - 1;
}

enum cost_verdict
cost_verdict(const struct cost *cost)
{
    uint64_t running_ns = execution_running_ns(cost->ns);
    if (!cost->summed || running_ns == 0) return COST_UNKNOWN;
    double share = share_of(cost->lost_ns, running_ns);
    return share >= much ? COST_MUCH : share >= some ? COST_SOME : COST_NOTHING;
}

enum execution_state
cost_largest_other(const struct cost *cost)
{
    enum execution_state largest = EXECUTION_UNCOMPILED;
    for (unsigned i = EXECUTION_UNCOMPILED; i < EXECUTION_RUNNING_STATES; i++) {
        if (cost->ns[i] > cost->ns[largest]) largest = i;
    }
    return largest;
}

const char *
cost_sentence(char text[COST_TEXT], const struct cost *cost)
{
    struct sentence sentence = {text, 0};
    char whole[NUMBER_TEXT], lost[NUMBER_TEXT], number[NUMBER_TEXT], most[NUMBER_TEXT];
    uint64_t running_ns = execution_running_ns(cost->ns);
    const char *exits = cost->selected ? "these exits" : "exits";
    text[0] = '\0';
    if (cost->summed) {
        bool idle = execution_life_ns(cost->ns) > running_ns + running_ns / 1000;
        say(&sentence, "of %s%s, ", duration_text(whole, running_ns), idle ? " of running" : "");
    }
    else {
        say(&sentence, "in %s, ", duration_text(whole, cost->span_ns));
    }
    if (cost->lost_ns == 0) {
        say(&sentence, "nothing was interpreted because of %s", exits);
        return text;
    }
    say(&sentence, "%s%s", cost->estimated ? "about " : "", duration_text(lost, cost->lost_ns));
    if (cost->summed) say(&sentence, " (%.1f %%)", 100 * share_of(cost->lost_ns, running_ns));
    say(&sentence, " were interpreted because of %s", exits);
    with_commas(number, cost->places);
    if (cost->places > 0 && cost->most_places == cost->places)
        say(&sentence, " at %s place%s", number, cost->places == 1 ? "" : "s");
    else if (cost->places > 0)
        say(&sentence, ", %d %% of it at %s of %s places", COST_MOST_PERCENT, with_commas(most, cost->most_places),
            number);
    return text;
}

/* "1,804 a second, 172.0 us each" */
static void
say_rate(struct sentence *sentence, const struct cost *cost)
{
    char rate[NUMBER_TEXT], each[NUMBER_TEXT];
    if (cost->exits == 0 || cost->span_ns == 0) return;
    double per_second = (double)cost->exits * 1e9 / (double)cost->span_ns;
    say(sentence, " (%s a second, %s each)",
        per_second >= 10 ? with_commas(rate, (uint64_t)(per_second + 0.5)) : amount_text(rate, per_second),
        duration_text(each, cost->lost_ns / cost->exits));
}

const char *
cost_advice(char text[COST_TEXT], const struct cost *cost)
{
    struct sentence sentence = {text, 0};
    double share = share_of(cost->lost_ns, execution_running_ns(cost->ns));
    const char *exits = cost->selected ? "these exits" : "exits";
    text[0] = '\0';
    switch (cost_verdict(cost)) {
      case COST_UNKNOWN:
      case COST_VERDICTS: return text;
      case COST_NOTHING: say(&sentence, "%s are not your problem: they", exits); break;
      case COST_SOME: say(&sentence, "%s", exits); break;
      case COST_MUCH: say(&sentence, "%s are worth a look: they", exits); break;
    }
    say(&sentence, " cost %.1f %% of the time", 100 * share);
    say_rate(&sentence, cost);
    return text;
}

const char *
cost_others(char text[COST_TEXT], const struct cost *cost)
{
    struct sentence sentence = {text, 0};
    uint64_t running_ns = execution_running_ns(cost->ns), life_ns = execution_life_ns(cost->ns);
    enum execution_state other = cost_largest_other(cost);
    double share = share_of(cost->ns[other], running_ns);
    double compiled = share_of(cost->ns[EXECUTION_COMPILED], running_ns);
    double waiting = share_of(cost->ns[EXECUTION_WAITING], life_ns);
    double no_cpu = share_of(cost->ns[EXECUTION_NO_CPU], life_ns);
    double blocked = share_of(cost->ns[EXECUTION_BLOCKED], life_ns);
    text[0] = '\0';
    if (cost_verdict(cost) == COST_UNKNOWN) return text;
    if (cost->ns[other] > cost->lost_ns && share >= other_least)
        say(&sentence, "%s took %.1f %%", phrases[other], 100 * share);
    else if (cost_verdict(cost) == COST_NOTHING)
        say(&sentence, "compiled code took %.1f %%", 100 * compiled);
    const char *separator = sentence.len > 0 ? "; " : "";
    if (waiting >= waiting_least)
        say(&sentence, "%sthreads waited for the GVL %.1f %% of their lives", separator, 100 * waiting);
    separator = sentence.len > 0 ? "; " : "";
    if (no_cpu >= waiting_least)
        say(&sentence, "%sthreads had no CPU %.1f %% of their lives", separator, 100 * no_cpu);
    separator = sentence.len > 0 ? "; " : "";
    if (blocked >= blocked_least)
        say(&sentence, "%sthreads were blocked %.1f %% of their lives", separator, 100 * blocked);
    return text;
}
