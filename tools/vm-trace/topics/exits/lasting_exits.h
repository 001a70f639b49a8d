#ifndef LASTING_EXITS_H
#define LASTING_EXITS_H
/* lasting_exits.h - for each reason of a report: the place that has most of its exits, and whether these
 * go on to the end of the trace. */
#include "topics/report_data.h"

/* LASTING_COUNT: fewer exits may be a warm-up. */
enum { LASTING_COUNT = 1000 };

struct lasting_exits {
    uint32_t reason; /* the key */
    uint64_t count;  /* of the reason, wherever */
    /* The place with the most: strings of the report's pool. */
    uint32_t location, insn, callee;
    uint64_t at_place;
    bool lasts; /* it has at least LASTING_COUNT exits, half of all with the reason, and they go on */
};

/* Returns rows of struct lasting_exits; the caller frees them. */
struct row_table lasting_exits_of(const struct report *report);
/* Returns the row of a reason, or NULL. */
const struct lasting_exits *lasting_exits_find(struct row_table *rows, uint32_t reason);

#endif
