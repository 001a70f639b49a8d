#ifndef COST_TEXT_H
#define COST_TEXT_H
/* cost_text.h - what exits cost, in sentences: how much of the time, whether that is the program's
 * problem, and what is. `report` and `html` begin with them. */
#include "topics/states/execution.h"

/* What both know of a trace with the stream `states`. */
struct cost {
    bool summed;      /* the sums of threads' states are known: they are at the end of a trace */
    bool estimated;   /* lost_ns is made of the weights of recorded exits */
    bool selected;    /* lost_ns and exits are those of some exits only */
    uint64_t ns[EXECUTION_STATES]; /* of all threads */
    uint64_t lost_ns; /* by exits */
    uint64_t exits;
    uint64_t span_ns; /* of the trace */
    uint32_t places;      /* at which exits lost time */
    uint32_t most_places; /* the fewest that make up COST_MOST_PERCENT of it */
};
enum { COST_MOST_PERCENT = 90 };

enum cost_verdict {
    COST_UNKNOWN,  /* without sums */
    COST_NOTHING,  /* exits are not the problem: less than 3 % */
    COST_SOME,     /* less than 10 % */
    COST_MUCH,
    COST_VERDICTS
};
extern const char *const cost_verdict_names[COST_VERDICTS]; /* for programs */

enum { COST_TEXT = 512 };

enum cost_verdict cost_verdict(const struct cost *cost);
/* The state, other than compiled code and exits, in which threads ran longest. */
enum execution_state cost_largest_other(const struct cost *cost);
/* "of 10.0 s, 3.1 s (31.0 %) were interpreted because of exits, 90 % of it at 4 of 57 places".
 * Returns the buffer. */
const char *cost_sentence(char text[COST_TEXT], const struct cost *cost);
/* "exits are not your problem: ...", and "garbage collection took 31 %": what took longer. Return the
 * buffer; empty if that is unknown. */
const char *cost_advice(char text[COST_TEXT], const struct cost *cost);
const char *cost_others(char text[COST_TEXT], const struct cost *cost);

#endif
