#ifndef REPORT_LIVE_H
#define REPORT_LIVE_H
/* report_live.h - what programs have done in the last seconds, on one screen (vm-trace top). */
#include "topics/report_data.h"
#include "render/document.h"

struct report_live {
    double seconds;     /* the time that the report covers */
    unsigned rows;      /* of each table, at most */
    unsigned causes;    /* rows of the table of causes; 0: without it */
    bool methods;       /* with the table of methods */
    bool alive;         /* only the table of what is alive, in place of the others */
    bool by_count;      /* exits: the most frequent ones first; else those that lost most time */
    const char *search; /* only rows with this text in them, in upper or lower case; "": all */
};

/* Adds lines with the rates of all, and tables: causes with what their change gains, exits, threads, and
 * methods. The report must have read only what counts. */
void report_live(struct report *report, struct document *document, const struct report_live *live);

#endif
