#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H
/* report_view.h - what the files that make a report's tables share. */
#include "analysis/report_data.h"
#include "render/document.h"

struct view {
    struct report *report;
    struct document *document;
    uint64_t top; /* rows of a table */
};

/* Parts of a place's key, by which places are put together. BY_VERSION leaves out what differs in no version, see
 * view_versioned. */
enum { BY_CATEGORY = 1, BY_REASON = 2, BY_LOCATION = 4, BY_METHOD = 8, BY_INSN = 16, BY_VERSION = 32, BY_CALLEE = 64 };

/* The text of a number of the pool; "(unknown)" for none. */
struct fxt_string view_name(const struct view *view, uint32_t id);
/* All places of exits, or of fallbacks, put together by the parts in `by`, largest first. The caller frees the group.
 * sum_out: all of them in one, or NULL. */
struct row_table view_exits(const struct view *view, bool fallbacks, unsigned by, struct exit_row *sum_out);
/* What happened at a place over time, for a cell; NULL where no event tells it. The document keeps it. */
const float *view_rate(const struct view *view, const struct exit_row *exit_row);

/* Whether compiling the ISEQ anew could change how often a place exits. */
bool view_versioned(const struct view *view, const struct exit_row *exit_row);

/* report_versions.c: where compiling anew did not help, and which ISEQs were compiled anew. */
void view_add_loops(const struct view *view);
void view_add_recompiled(const struct view *view);

/* report_durations.c: compilations, invalidations, other durations. */
void view_add_compilations(const struct view *view);
void view_add_durations(const struct view *view);

#endif
