#ifndef RUBY_VM_TRACE_STREAMS_CODE_SITES_H
#define RUBY_VM_TRACE_STREAMS_CODE_SITES_H 1
/*
 * Sites: the static record of each place that can exit. A site never moves, for machine code
 * holds its address, and is freed with the ISEQ whose code holds it.
 */

#include "vm_trace/capture/event.h"
#include "vm_trace/streams/exit_state.h"

/*
 * Exits in pairs: where a `break` or a `return` of a block leaves compiled code, and where it is
 * caught.
 */
enum vm_trace_throw_part { NO_THROW, THROWS, CATCHES };

struct rb_vm_trace_site {
    uint64_t hits_offset;     /* of its counter in a ractor state, in bytes. First: machine code reads it */
    uint32_t index;           /* of its counter in every ractor state; never 0 for a live site */
    uint32_t serial;          /* no other site has had it, also not at this address */
    uint64_t guard;           /* struct vm_trace_guard; 0: not known yet (seen.h) */
    uint32_t version;
    enum rb_vm_trace_kind kind;
    uint32_t next;            /* of the same ISEQ, or of the free list; 0: end */
    uintptr_t pc;             /* of the exiting instruction; 0: the frame knows */
    uintptr_t unit;           /* identity of the ISEQ (its first pc); 0: free */
    struct vm_trace_string *reason, *insn;
    struct vm_trace_string *location; /* label: of the first recorded exit, till then as the compilation knew it */
    bool located;             /* location has its owner */
    enum vm_trace_throw_part part;
    bool repeated;            /* its line has another instruction of that name; then it has `insn_index`, */
    uint32_t insn_index;      /* and what it calls as `callee` */
    struct rb_vm_trace_code *code; /* the text of the version, which has it in line `code_line`, from 1; or NULL */
    uint32_t code_line;
    bool inlined;             /* the frame that exits is not of the ISEQ that was compiled */
    struct vm_trace_string *callee; /* name of what a fallback, or a repeated instruction, calls; NULL: none */
    struct vm_trace_string *iseq; /* label of the ISEQ that was compiled; NULL where its versions are not followed */
};

/* The category of its events. */
static inline enum known_string
site_category(const struct rb_vm_trace_site *site)
{
    static const enum known_string categories[] = {
        [RB_VM_TRACE_SIDE_EXIT] = STRING_SIDE_EXIT,
        [RB_VM_TRACE_RECOMPILE_EXIT] = STRING_RECOMPILE_EXIT,
        [RB_VM_TRACE_FALLBACK] = STRING_FALLBACK,
        [RB_VM_TRACE_COUNTER] = STRING_COUNTER
    };
    return categories[site->kind];
}

/*
 * Complete the site's location by the label of a frame that exited there. Once for each site. GVL
 * held.
 */
void rb_vm_trace_site_locate(const struct rb_vm_trace_site *site, const char *label, size_t bytes);

/*
 * The most sites that there are at once, those included that stand for all which find no more room.
 * Only tests change it, to less, before the first site is made.
 */
extern uint32_t rb_vm_trace_most_sites;

/* Live sites: for tests and bounds. */
size_t rb_vm_trace_site_count(void);

/* For the streams' tables: see stream.h. */
bool rb_vm_trace_sites_unreported_p(void);
void rb_vm_trace_sites_report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                              struct vm_trace_totals *totals);
void rb_vm_trace_sites_count(struct vm_trace_totals *totals);
bool rb_vm_trace_sites_snapshot_room(void);
void rb_vm_trace_sites_snapshot_begin(void);
void rb_vm_trace_sites_snapshot_end(void);
bool rb_vm_trace_sites_snapshot_write(struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals);
void rb_vm_trace_sites_unit_freed(uintptr_t unit, bool iseq, struct rb_vm_trace_ractor *ractor,
                                  struct rb_execution_context_struct *ec);
void rb_vm_trace_sites_free(void);

#endif /* RUBY_VM_TRACE_STREAMS_CODE_SITES_H */
