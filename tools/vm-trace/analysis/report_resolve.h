#ifndef REPORT_RESOLVE_H
#define REPORT_RESOLVE_H
/* report_resolve.h - from what was gathered to what counts: the events of a process, or the exact hits of its sites.
 *
 * All tables are made of the same places afterwards, so their sums agree: counts with the hits of the sites where these
 * count, recorded ones with the events in the file, outcomes and threads (which sites do not know) shared out in
 * proportion to the events.
 */
#include "analysis/report_data.h"

#define REPORT_UNRECORDED "(none recorded)"

/* After the last file, once. */
void report_resolve(struct report *report);

#endif
