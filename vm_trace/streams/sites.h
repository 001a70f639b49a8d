#ifndef RUBY_VM_TRACE_STREAMS_SITES_H
#define RUBY_VM_TRACE_STREAMS_SITES_H 1
/*
 * Sites: the static record of each place that can exit. A site never moves, for machine code
 * holds its address, and lives until the ISEQ dies whose code holds it.
 */

#include "vm_trace/capture/ractor_state.h"

struct rb_vm_trace_site {
    uint64_t hits_offset;     /* of its counter in a local, in bytes. First: machine code reads it */
    uint32_t index;           /* of its counter in every local; never 0 for a live site */
    uint32_t serial;          /* no other site has had it, also not at this address */
    uint32_t version;
    enum rb_vm_trace_kind kind;
    uint32_t next;            /* of the same ISEQ, or of the free list; 0: end */
    uintptr_t pc;             /* of the exiting instruction; 0: the frame knows */
    uintptr_t unit;           /* identity of the ISEQ (its first pc); 0: free */
    struct vm_trace_string *reason, *insn;
    struct vm_trace_string *location; /* label: of the first recorded exit, till then as the compilation knew it */
    bool located;             /* location has its owner */
    bool inlined;             /* the frame that exits is not of the ISEQ that was compiled */
    struct vm_trace_string *callee; /* name of what a fallback calls; NULL: none */
    struct vm_trace_string *iseq; /* label of the ISEQ that was compiled; NULL where its versions are not followed */
};

/* The category of its events. */
static inline enum vm_trace_word
site_category(const struct rb_vm_trace_site *site)
{
    static const enum vm_trace_word categories[] = {
        [RB_VM_TRACE_SIDE_EXIT] = W_SIDE_EXIT,
        [RB_VM_TRACE_RECOMPILE_EXIT] = W_RECOMPILE_EXIT,
        [RB_VM_TRACE_FALLBACK] = W_FALLBACK
    };
    return categories[site->kind];
}

/*
 * Better the site's location by the label of a frame that exited there. Once a site. GVL held.
 */
void rb_vm_trace_site_locate(const struct rb_vm_trace_site *site, const char *label, size_t bytes);

/* Write an event for every site with hits into `local`. trace.lock held. Fills in exits, fallbacks, sites. */
void rb_vm_trace_sites_report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                              struct vm_trace_totals *totals);

/* Add the hits of all sites to exits and fallbacks. trace.lock held. */
void rb_vm_trace_sites_count_hits(struct vm_trace_totals *totals);

/* Whether any site was hit since counts began. trace.lock held. */
bool rb_vm_trace_sites_any_hits(void);

/*
 * The hits of all sites as they are now, to be written by and by without trace.lock: sites that die meanwhile are told all the
 * same. One at a time. trace.lock held for begin and end. Room is had before: false where there is no memory.
 */
bool rb_vm_trace_sites_freeze_room(void);
void rb_vm_trace_sites_freeze(void);
void rb_vm_trace_sites_thaw(void);

/* Write the next few of them into `local`. False: that were all. Takes trace.lock for a moment. Fills in totals as sites_report. */
bool rb_vm_trace_sites_report_frozen(struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals);

/*
 * The ISEQ whose instructions begin at `unit` is dead: write its sites with hits into `local`
 * (when that is not NULL) and free them. Their hits go to the totals of the dead.
 */
void rb_vm_trace_sites_retire(uintptr_t unit, struct rb_vm_trace_ractor *ractor,
                              struct rb_execution_context_struct *ec);

/*
 * The most sites that there are at once, those included that stand for all which find no more room.
 * Only tests change it, to less, before the first site is made.
 */
extern uint32_t rb_vm_trace_most_sites;

/* Live sites: for tests and bounds. */
size_t rb_vm_trace_site_count(void);

/* One more than the highest index in use: counters from there on were never touched. */
uint32_t rb_vm_trace_site_limit(void);

/* Free everything: when the tracer ends, and machine code that holds an address can't run. */
void rb_vm_trace_sites_free(void);

#endif /* RUBY_VM_TRACE_STREAMS_SITES_H */
