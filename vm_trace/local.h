#ifndef RUBY_VM_TRACE_LOCAL_H
#define RUBY_VM_TRACE_LOCAL_H 1
/*
 * What one ractor records with, and the state that all share.
 *
 * Machine code adds to `hits` and counts `countdown` down (vm_trace.h); the rest is C's. One
 * local is used under the GVL of its ractor, so two threads never are in it at once. The
 * list of all is guarded by trace.lock.
 */

#include "vm_trace.h"
#include "clock.h"
#include "stacks.h"
#include "writer.h"

/*
 * Sites that can live at once. Their counters are address space of every ractor (8 MiB),
 * memory only where code really exits.
 */
#define VM_TRACE_MAX_SITES ((uint32_t)1 << 20)

/*
 * An event that was written: in a loop the same few sites exit with the same few stacks again and
 * again, and then only the time is another. The last ones are kept, by the low bits of the node.
 */
#define VM_TRACE_TEMPLATES 8
#define VM_TRACE_TEMPLATE_WORDS (2 + FXT_MAX_ARGUMENTS) /* an exit's arguments are a word each */
struct vm_trace_template {
    uint32_t chunk, tree, node;  /* what it holds for: chunk 0 for nothing */
    uint32_t site;               /* serial */
    uint32_t outcome;
    uint32_t thread, words;
    uint64_t record[VM_TRACE_TEMPLATE_WORDS];
};

struct rb_vm_trace_local {
    uint64_t countdown;          /* to the next sampled exit */
    uint64_t fallback_countdown;
    struct rb_vm_trace_local *next;
    struct rb_vm_trace_local **link; /* what points here; NULL: not in the list, for its trace has ended */
    uint64_t sampled;            /* exits recorded */
    uint64_t lost;               /* events that should be in the file and are not */
    struct vm_trace_clock clock;
    struct rb_vm_trace_writer writer;
    struct rb_vm_trace_stacks stacks;
    struct vm_trace_template templates[VM_TRACE_TEMPLATES];
    uint64_t hits[];             /* by index of the site */
};

enum vm_trace_state {
    VM_TRACE_OFF,     /* never started, or ended */
    VM_TRACE_PENDING, /* child of a fork: the file is made when there is something to say */
    VM_TRACE_ON
};

struct vm_trace_totals {
    uint64_t exits, fallbacks; /* hits */
    uint64_t sampled, events, lost, sites;
};

extern struct vm_trace_global {
    pthread_mutex_t lock;        /* guards the list, the totals and the change of state */
    int state;                   /* enum vm_trace_state; read without the lock */
    bool quiet;                  /* not a word on stderr but about failures of forked children */
    bool by_flags;               /* code has trace points that can't be taken out; sites and locals stay */
    uint64_t machine_rate;       /* exits are switched on: one in so many comes from machine code to C; 0: they are not */
    bool listeners;              /* hooks want to be told of exits */
    const struct rb_vm_trace_jit *jit; /* NULL: none that can be switched */
    uint32_t pid;
    uint64_t begin_ns;           /* of this process' trace: no event is earlier */
    struct rb_vm_trace_config config; /* its strings are own copies */
    char *path;                  /* of the file at hand */
    struct rb_vm_trace_sink sink;
    struct rb_vm_trace_local *locals;
    struct rb_vm_trace_local *spare;  /* for ractors that no memory was had for: counts losses */
    struct vm_trace_totals dead;      /* of ractors that are gone */
    struct vm_trace_totals last;      /* of the trace that ended last */
    const char *last_loss;            /* why it lost events, or NULL */
} rb_vm_trace_global;

static inline bool
trace_on(void)
{
    return __builtin_expect(__atomic_load_n(&rb_vm_trace_global.state, __ATOMIC_ACQUIRE) != VM_TRACE_OFF, 1);
}

/* Whether anything wants to know of exits: a file, or hooks. */
static inline bool
trace_wanted(void)
{
    return trace_on() || rb_vm_trace_global.listeners;
}

/*
 * Give the local's writer a chunk to write into: makes the file of a forked child if that is
 * still to be done, and begins a file with the settings. False: no more room, or no file.
 */
bool rb_vm_trace_local_next_chunk(struct rb_vm_trace_local *local, struct rb_execution_context_struct *ec);

/*
 * What the ractor of `ec` records with. One that began while tracing was switched on may have none yet, and gets it.
 * NULL: there is no memory. GVL held.
 */
struct rb_vm_trace_local *rb_vm_trace_local_of(struct rb_execution_context_struct *ec);

/* Sum of hits of one site over all locals, living and dead. trace.lock held. */
uint64_t rb_vm_trace_local_hits(uint32_t site_index);

/* Set a site's counter to 0 in all locals. trace.lock held. */
void rb_vm_trace_local_clear_hits(uint32_t site_index);

#endif /* RUBY_VM_TRACE_LOCAL_H */
