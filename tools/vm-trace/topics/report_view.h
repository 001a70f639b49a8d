#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H
/* report_view.h - shared by the files that make a report's tables. */
#include "topics/view_table.h"

/* Keys of exits, to group them by. BY_VERSION leaves out exits that are the same in every
 * version, see view_versioned. */
enum {
    BY_CATEGORY = 1,
    BY_REASON = 2,
    BY_LOCATION = 4,
    BY_METHOD = 8,
    BY_INSN = 16,
    BY_VERSION = 32,
    BY_CALLEE = 64,
    BY_OPCODE = 128,   /* the instruction without its index */
    INDEXED_ONLY = 256 /* leaves out exits whose instruction has none */
};

/* All exits, or all fallbacks, grouped by the keys in `by`, those that lost most time, or else the most
 * frequent ones, first. The caller frees the rows with exit_rows_free. sum_out: the sum of all, or
 * NULL. */
struct row_table view_exits(const struct view *view, bool fallbacks, unsigned by, struct exit_row *sum_out);
/* "opt_plus" of "opt_plus@12"; numbers of the pool. */
uint32_t view_opcode(struct pool *pool, uint32_t insn);
/* The rate of a row for a cell, kept by the document; NULL if the trace has no event of it. */
const float *view_rate(const struct view *view, const struct exit_row *exit_row);

/* "--since, --thread": the options that choose, of this report. */
struct fxt_string view_chosen_by(const struct view *view);
/* Why a selection of tables has nothing, which the command asked for: not recorded, or left out by options. */
struct fxt_string view_nothing(const struct view *view, enum topic_number topic);

/* Whether what a stream did not see of threads is worth a row, or a column: from half a percent on. */
bool view_unseen_shown(uint64_t unseen_ns, uint64_t whole_ns);

/* The time in which threads ran; 0 if that is unknown. */
uint64_t view_running_ns(const struct view *view);

/* Whether a recompilation of the ISEQ could change these exits. */
bool view_versioned(const struct view *view, const struct exit_row *exit_row);

/* In thread_pools.c: adds a table of threads, for people with one row for all threads of a process whose names differ
 * only in digits ("puma srv tp 001"), unless the report is to have each, or there are more than 2,000 threads. by: id
 * of the column that it is sorted by.
 * share_of: id of what the shares of a row are of; NULL: of the sum of all rows. `add` adds one table. */
void view_thread_pools(const struct view *view, void (*add)(const struct view *view), const char *by,
                       const char *share_of);
/* In exit_tables.c: the numbers of titles for programs, exits, fallbacks. */
void view_add_totals(const struct view *view);
void view_add_exits(const struct view *view);
void view_add_fallbacks(const struct view *view);
/* In throw_tables.c: exits in pairs. */
void view_add_throws(const struct view *view);
/* In seen_tables.c: what guards expected and met. */
void view_add_seen(const struct view *view);

/* In counter_tables.c: what the counters of compiled code counted. */
void view_add_counters(const struct view *view);

/* In version_tables.c: where recompilation did not help, and recompiled ISEQs. */
void view_add_loops(const struct view *view);
void view_add_recompiled(const struct view *view);

/* In duration_tables.c: compilations, invalidations, other durations. */
void view_add_compilations(const struct view *view);
void view_add_durations(const struct view *view);

/* In thread_tables.c: exits and events of threads; their states, holders of the GVL, what they blocked in. */
void view_add_threads(const struct view *view);
void view_add_thread_states(const struct view *view);
/* In fiber_tables.c: what fibers waited for. */
void view_add_fibers(const struct view *view);
/* In execution_tables.c: where the time went by states, and what ran without compiled code. */
void view_add_execution(const struct view *view);
void view_add_interpreted(const struct view *view);
/* In call_tables.c: methods by own time. */
void view_add_calls(const struct view *view);
/* In sample_tables.c: sampled time by thread and state, and the methods in which threads ran or waited. */
void view_add_samples(const struct view *view);
/* In syscall_tables.c: system calls by name and by method. */
void view_add_syscalls(const struct view *view);
/* In cpu_tables.c: how long threads had a CPU or waited for one. */
void view_add_cpus(const struct view *view);
/* In gc_tables.c: garbage collections. */
void view_add_gc(const struct view *view);
/* In allocation_tables.c: sampled allocations, and the objects that survived. */
void view_add_allocations(const struct view *view);

#endif
