#ifndef RUBY_VM_TRACE_CAPTURE_RACTOR_STATE_H
#define RUBY_VM_TRACE_CAPTURE_RACTOR_STATE_H 1
/*
 * What one ractor records with, and the state that all share.
 *
 * Machine code adds to `hits` and counts `countdown` down (vm_trace.h); the rest is C's. One
 * local is used under the GVL of its ractor, so two threads never are in it at once, and is
 * freed when that ends. The list of all is guarded by trace.lock.
 */

#include "vm_trace/vm_trace.h"
#include "vm_trace/base/clock.h"
#include "vm_trace/capture/stack_table.h"
#include "vm_trace/store/writer.h"

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
    uint32_t chunk, tree, node;  /* what it holds for: node 0 for nothing */
    uint32_t site;               /* serial */
    uint32_t outcome;
    uint32_t thread, words;
    uint64_t runs;               /* which Ruby thread, see host_thread */
    uint64_t record[VM_TRACE_TEMPLATE_WORDS];
} __attribute__((aligned(256))); /* a power of two, so that an index is a shift */

/* Where the names of Ruby threads stand that share native ones: by the low bits of their ids. */
#define VM_TRACE_RUNNING 8
struct vm_trace_running {
    uint64_t id;                 /* 0: none */
    struct vm_trace_slot slot;
};

/*
 * Hits that came before a reset, and the epochs that those began, by index of the site. Address
 * space, as the counters are.
 */
struct vm_trace_marks {
    uint64_t hits[VM_TRACE_MAX_SITES];
    uint32_t epochs[VM_TRACE_MAX_SITES];
};

struct rb_vm_trace_ractor {
    uint64_t countdown;          /* to the next sampled exit */
    uint64_t fallback_countdown;
    uint64_t unhooked_countdown; /* of `countdown`, while that is 1 for hooks that subscribe to every exit */
    struct rb_vm_trace_ractor *next;
    struct rb_vm_trace_ractor **link; /* what points here; NULL: not in the list, for its trace has ended */
    uint64_t sampled;            /* exits recorded */
    uint64_t lost;               /* events that should be in the file and are not */
    uint64_t late;               /* of these: because the disk was too slow */
    uint64_t rate_ns, rate_sampled; /* when exits were counted last, and how many there were recorded */
    uint32_t number;             /* tells its counters from those of other ractors; 0: the first */
    struct {
        const struct rb_vm_trace_site *site; /* the recompile exit that the JIT acts upon; NULL: none */
        uint64_t start_ns;
        uint64_t flow;           /* that it began, or 0 */
        uint64_t weight;         /* how many it stands for; 0: it is not recorded */
        bool dropped;            /* its trace has ended meanwhile, and another one began */
    } exiting;
    struct vm_trace_string *violated; /* name of the invalidation that is open */
    struct vm_trace_string *why;      /* the same of a version's */
    struct vm_trace_marks *marks; /* the flight recorder's; NULL: there was no reset */
    uint32_t epoch;              /* that its counts (sampled, lost, events) belong to; read by others */
    uint64_t from_ns;            /* no event of it is earlier */
    bool moved;                  /* a countdown began anew since the last reset, where one exit in K is recorded */
    uint64_t marked_at[2];       /* both countdowns when a reset copied the hits; trace.lock */
    struct vm_trace_clock clock;
    struct rb_vm_trace_writer writer;
    struct rb_vm_trace_stacks stacks;
    struct vm_trace_template templates[VM_TRACE_TEMPLATES];
    struct vm_trace_running running[VM_TRACE_RUNNING];
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
    uint64_t late; /* of those lost: because the disk was too slow */
};

extern struct vm_trace_global {
    pthread_mutex_t lock;        /* guards the list, the totals and the change of state */
    int state;                   /* enum vm_trace_state; read without the lock */
    bool quiet;                  /* not a word on stderr but about failures of forked children */
    bool terse;                  /* not a word there but about failures and losses (--zjit-trace-quiet) */
    bool by_flags;               /* code has trace points that can't be taken out; sites and locals stay */
    bool ended;                  /* the process ends: nothing is traced any more */
    struct {
        bool exits, fallbacks;   /* what the code has trace points for, */
        char *counter;           /* of exits only those of this one; NULL: of all */
        uint64_t min_free_bytes; /* what they say, for traces that begin later */
        bool quiet;              /* likewise, for the trace that they begin */
    } flags;
    uint64_t machine_rate;       /* exits are switched on: one in so many comes from machine code to C; 0: they are not */
    bool listeners;              /* hooks want to be told of exits */
    const struct rb_vm_trace_jit *jit; /* NULL: none that can be switched */
    uint64_t session;            /* number of the trace that began last; a forked child goes on with its parent's */
    uint32_t pid;
    uint64_t begin_ns;           /* of this process' trace: no event is earlier */
    uint32_t stack_frames;       /* innermost frames that are recorded of each stack; 0: all. Changes only while no trace is on */
    struct rb_vm_trace_memory_config memory; /* of the trace that is on, or that flags ask for */
    struct rb_vm_trace_config config; /* its strings are own copies */
    uint64_t min_free_bytes;     /* stays free on the disk of what is written, see chunk_file.h; of the trace that is on or comes next */
    char *path;                  /* of the file at hand; where memory is recorded into, of the first that it is saved to */
    bool child;                  /* of a fork: its path has the pid */
    struct rb_vm_trace_sink sink;
    uint32_t first_epoch;        /* of this trace: before any reset */
    uint64_t since_ns[2];        /* when an epoch began, by its low bit (rb_vm_trace_epoch_begin_ns) */
    struct rb_vm_trace_shared shared; /* for ractors that find no chunk of their own; and what those left that are gone */
    struct rb_vm_trace_ractor *ractors;
    uint32_t last_number;        /* of a local */
    struct rb_vm_trace_ractor *overflow;  /* for ractors that no memory was had for: counts losses */
    struct vm_trace_totals dead;      /* of ractors that are gone, and of sites */
    struct vm_trace_totals dead_base; /* what was there at the last reset */
    uint64_t dead_ns;                 /* and no event of theirs is later */
    struct vm_trace_totals last;      /* of the trace that ended last */
    const char *last_loss;            /* why it lost events, or NULL */
} rb_vm_trace_global;

static inline bool
trace_on(void)
{
    return __builtin_expect(__atomic_load_n(&rb_vm_trace_global.state, __ATOMIC_ACQUIRE) != VM_TRACE_OFF, 1);
}

/* Whether anything wants to know of exits: a file, or hooks; or may again, for code counts them in any case. */
static inline bool
trace_wanted(void)
{
    return trace_on() || rb_vm_trace_global.listeners || (rb_vm_trace_global.by_flags && !rb_vm_trace_global.ended);
}

/*
 * Give the local's writer a chunk to write into: makes the file of a forked child if that is
 * still to be done, and begins a file with the settings. False: no more room, or no file.
 */
bool rb_vm_trace_ractor_next_chunk(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* A counter for each site that may live: address space of zeros. NULL: no memory. */
uint64_t *rb_vm_trace_ractor_zeros(void);

/*
 * Hooks subscribe to every exit, or no longer: then code that counts down by itself calls at each
 * one, and C counts to K. All ractors stopped; rb_vm_trace_global.listeners says it for ractors
 * that are made later.
 */
void rb_vm_trace_ractor_call_at_every_exit(bool on);

/*
 * Make the spare, if there is none, and have it count from 0, in a new epoch. Before
 * rb_vm_trace_ractor_begin. False: no memory.
 */
bool rb_vm_trace_ractor_begin_overflow(void);

/* Nothing is counted in it yet, and nothing is known of what happened before. For those that flags have made, whose trace begins anew. */
void rb_vm_trace_ractor_begin(struct rb_vm_trace_ractor *ractor);

/* Give each ractor a new one, or take away what each has. All ractors stand. */
void rb_vm_trace_ractor_renew_all(void);
void rb_vm_trace_ractor_free_all(void);

/* All that was counted since the last reset, less the hits of live sites. trace.lock held. */
struct vm_trace_totals rb_vm_trace_ractor_totals(void);

/* No event that any of them told is later: clocks of ractors differ by the little that each is off. All ractors stand. */
uint64_t rb_vm_trace_ractor_latest_ns(void);

/*
 * What the ractor of `ec` records with. One that began while tracing was switched on may have none yet, and gets it.
 * NULL: there is no memory. GVL held.
 */
struct rb_vm_trace_ractor *rb_vm_trace_ractor_of(struct rb_execution_context_struct *ec);

/* Sum of hits of one site over all locals, living and dead, since the last reset. trace.lock held. */
uint64_t rb_vm_trace_ractor_hits(uint32_t site_index);

/* The same of all sites below `limit`, into hits_out. */
void rb_vm_trace_ractor_copy_hits(uint64_t *hits_out, uint32_t limit);

/* Set a site's counter to 0 in all locals. trace.lock held. */
void rb_vm_trace_ractor_clear_hits(uint32_t site_index);

/* --- resets of the flight recorder ---------------------------------------------------------------------
 *
 * A reset begins an epoch and touches no ractor. Each notices at its next event, under its own GVL,
 * and begins its counts anew: that event is the first of the epoch. The hits of a site count from
 * its first event of the epoch on, for where every exit is recorded there is no hit without one.
 * Where one in K is, the reset copies all counters.
 */

/*
 * Begin an epoch. `caller` is the current ractor's, whose sampling begins anew. False: no memory,
 * and nothing was done. trace.lock held, GVL held, no ractor stopped.
 */
bool rb_vm_trace_ractor_reset(struct rb_vm_trace_ractor *caller);

/*
 * The epoch, and when it began: no event of it is earlier, and none from before it is later. Ns of
 * CLOCK_BOOTTIME. Any thread.
 */
uint64_t rb_vm_trace_epoch_begin_ns(uint32_t *epoch_out);

/* For the functions below. */
void rb_vm_trace_ractor_begin_epoch(struct rb_vm_trace_ractor *ractor);
bool rb_vm_trace_ractor_mark_slow(struct rb_vm_trace_ractor *ractor, uint32_t site_index);

/* An exit that the spare has counted, for its ractor has no local, is lost. Takes trace.lock. */
void rb_vm_trace_ractor_lose_overflow(uint32_t site_index);

/* Before a countdown begins anew: it may come to where a reset has seen it, and hits were counted all the same. */
static inline void
ractor_moved(struct rb_vm_trace_ractor *ractor)
{
    __atomic_store_n(&ractor->moved, true, __ATOMIC_RELEASE);
}

/* Before something is counted in a local: begin its counts anew when there was a reset. Its owner, GVL held. */
static inline void
ractor_notice_reset(struct rb_vm_trace_ractor *ractor)
{
    /* What writes a trace that is saved is in no list and has no resets. */
    if (__builtin_expect(ractor->epoch != trace_epoch() && ractor->link, 0)) rb_vm_trace_ractor_begin_epoch(ractor);
}

/*
 * An exit that was counted is to be recorded, in the epoch that the local is in: let its hit, if it
 * is the first, be the first that counts. False: there is no memory for that. Its owner, GVL held,
 * trace.lock not held.
 */
static inline bool
ractor_mark(struct rb_vm_trace_ractor *ractor, uint32_t site_index)
{
    return ractor->epoch == rb_vm_trace_global.first_epoch || rb_vm_trace_ractor_mark_slow(ractor, site_index);
}

#endif /* RUBY_VM_TRACE_CAPTURE_RACTOR_STATE_H */
