#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H
/* report_view.h - what the files that make a report's tables share. */
#include "document.h"
#include "report.h"

struct view {
    struct report *report;
    struct document *document;
    uint64_t top; /* rows of a table */
};

/* Parts of a place's key, by which places are put together. BY_VERSION leaves out what differs in no version, see
 * view_versioned. */
enum { BY_CATEGORY = 1, BY_REASON = 2, BY_LOCATION = 4, BY_METHOD = 8, BY_INSN = 16, BY_VERSION = 32, BY_CALLEE = 64 };

/* The text of a number of the pool; "(not said)" for none. */
struct fxt_string view_name(const struct view *view, uint32_t id);
/* All places of exits, or of fallbacks, put together by the parts in `by`, largest first. The caller frees the group.
 * sum_out: all of them in one, or NULL. */
struct group view_places(const struct view *view, bool fallbacks, unsigned by, struct place *sum_out);
/* What happened at a place over time, for a cell; NULL where no event tells it. The document keeps it. */
const float *view_rate(const struct view *view, const struct place *place);

/* Whether compiling the ISEQ anew could change how often a place exits. */
bool view_versioned(const struct view *view, const struct place *place);

/* report_versions.c: where compiling anew did not help, and which ISEQs were compiled anew. */
void view_add_loops(const struct view *view);
void view_add_recompiled(const struct view *view);

/* report_durations.c: compilations, invalidations, other durations. */
void view_add_compilations(const struct view *view);
void view_add_durations(const struct view *view);

#endif
