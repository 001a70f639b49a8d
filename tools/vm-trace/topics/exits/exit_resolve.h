#ifndef EXIT_RESOLVE_H
#define EXIT_RESOLVE_H
/* exit_resolve.h - decides what counts in a report: the events of a process, or the exact hits of
 * its sites.
 *
 * Afterwards all tables are made from the same rows, so their sums agree. Counts are the hits of
 * the sites where these count. Recorded exits are events in the file. Outcomes and threads, which
 * sites do not record, are distributed in proportion to the events.
 */
#include "topics/report_data.h"

/* Call it once, after the last file. */
void exits_resolve(struct report *report);

#endif
