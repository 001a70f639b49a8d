#ifndef RUBY_VM_TRACE_STREAMS_EXIT_STATE_H
#define RUBY_VM_TRACE_STREAMS_EXIT_STATE_H 1
/*
 * What a ractor keeps for exits and fallbacks: countdowns, hits of sites, the events that were
 * written last. Machine code adds to `hits` and counts `countdown` down (vm_trace_jit.h).
 *
 * After a reset the hits of a site count from its first event on, because where every exit is
 * recorded there is no hit without one. Where one in K is, the reset copies all counters.
 */

#include "vm_trace/capture/ractor_state.h"
#include "vm_trace/schema/fxt.h"
#include "vm_trace/base/text_cache.h"
#include "vm_trace/capture/stack_samples.h"

/*
 * Sites that can live at once. Their counters are address space of every ractor (8 MiB),
 * memory only where code really exits.
 */
#define VM_TRACE_MAX_SITES ((uint32_t)1 << 20)

/*
 * An event that was written. In a loop the same few sites exit with the same few stacks again and
 * again, and only the time differs. The last ones are kept, by the low bits of the node and the class
 * that a guard has met.
 */
#define VM_TRACE_TEMPLATES 16
#define VM_TRACE_NO_CLASS ((uintptr_t)1) /* no address */
/* An exit's arguments take a word each, except index, length and lost time. */
#define VM_TRACE_TEMPLATE_WORDS (2 + FXT_ARGS_MAX + 3)
struct vm_trace_template {
    uint32_t chunk, tree, node;  /* what it holds for: node 0 for nothing */
    uint32_t site;               /* serial */
    uint32_t outcome;
    uint32_t words;
    bool lost;                   /* its last argument is the lost time */
    bool sampled;                /* a sample is written with it */
    uint64_t seen;               /* what its guard has met (struct vm_trace_seen) */
    uint8_t numbers;             /* the word of the first number of that */
    uint8_t seen_place;          /* of its text in the cache below */
    uint32_t class_bytes;        /* of its text: the class */
    uintptr_t seen_class;        /* that has this name while `tree` holds; VM_TRACE_NO_CLASS: not known */
    uint64_t seen_serial;        /* of its text */
    uint64_t record[VM_TRACE_TEMPLATE_WORDS];
    struct vm_trace_sample sample;
} __attribute__((aligned(256))); /* a power of two, so that an index is a shift */

/*
 * Hits that came before a reset, and the epochs that those began, by index of the site. Address
 * space, as the counters are.
 */
struct vm_trace_marks {
    uint64_t hits[VM_TRACE_MAX_SITES];
    uint32_t epochs[VM_TRACE_MAX_SITES];
};

/* Time that a thread was interpreted because of the exits of a site, in ns (levels.h). */
struct vm_trace_lost {
    uint64_t ns, longest_ns;
};

/* The exit that compiled code took last, while states are recorded. */
struct vm_trace_last_exit {
    const struct rb_vm_trace_site *site; /* NULL: none since compiled code was entered last */
    uint32_t serial;             /* of the site */
    uint32_t chunk;              /* the writer's chunk_serial of the chunk that has its event; 0: none */
    uint64_t *lost_ns;           /* an argument of the event, to be filled in */
    uint64_t *sample_lost_ns;    /* the same in its stack sample; NULL: it has none */
};

/* The exit that was recorded last, when it was at a `throw`. */
struct vm_trace_throw {
    uint64_t flow;               /* that it began; 0: another exit came after it */
    struct vm_trace_catcher catchers[VM_TRACE_CATCHERS];
    size_t catcher_count;
};

struct vm_trace_exit_state {
    struct vm_trace_template templates[VM_TRACE_TEMPLATES]; /* first, because they are aligned */
    uint64_t countdown;          /* to the next sampled exit */
    uint64_t fallback_countdown;
    uint64_t unhooked_countdown; /* of `countdown`, while that is 1 because every exit calls (every_exit_p) */
    uint64_t sampled;            /* exits recorded */
    uint64_t rate_ns, rate_sampled; /* when exits were counted last, and how many there were recorded */
    struct vm_trace_marks *marks; /* the flight recorder's; NULL: there was no reset */
    bool moved;                  /* a countdown was restarted since the last reset, where one exit in K is recorded */
    uint64_t marked_at[2];       /* both countdowns when a reset copied the hits; capture.lock */
    struct vm_trace_last_exit last;
    struct vm_trace_throw thrown;
    struct vm_trace_seen seen;   /* by the guard of the exit at hand. Room on the stack would cost more */
    struct vm_trace_text_cache seen_texts;
    uint64_t hits[VM_TRACE_MAX_SITES]; /* by index of the site */
    struct vm_trace_lost lost[VM_TRACE_MAX_SITES];
    struct vm_trace_samples samples; /* memory only where they are recorded */
};

/*
 * The streams of exits, of fallbacks, which have the same state, and of execution states, which must
 * see each exit.
 */
extern struct rb_vm_trace_stream rb_vm_trace_exits, rb_vm_trace_fallbacks, rb_vm_trace_states;

/* And that of what the JIT's statistics count, whose sites count in the same words. */
extern struct rb_vm_trace_stream rb_vm_trace_jit_counters;

/* Counters of these (stream_counter). The first of each is that of hits. */
enum { EXITS_HITS, EXITS_SITES };
enum { FALLBACKS_HITS };
enum { JIT_COUNTERS_HITS, JIT_COUNTERS_PLACES };

/*
 * Exits are the first stream of the table, so that this is a constant: each of their instructions
 * counts.
 */
static inline struct vm_trace_exit_state *
exits_of(const struct rb_vm_trace_ractor *ractor)
{
    return (struct vm_trace_exit_state *)((char *)ractor + VM_TRACE_FIRST_STATE);
}

/* Counters in use: one more than the highest index of a site. Set by sites.c, capture.lock held. */
extern uint32_t rb_vm_trace_hits_limit;

/* For the streams' tables: see stream.h. */
bool rb_vm_trace_exit_state_init(struct rb_vm_trace_ractor *ractor);
void rb_vm_trace_exit_state_begin(struct rb_vm_trace_ractor *ractor);
void rb_vm_trace_exit_state_epoch(struct rb_vm_trace_ractor *ractor);
void rb_vm_trace_exit_state_end(struct rb_vm_trace_ractor *ractor);
void rb_vm_trace_exit_state_free(struct rb_vm_trace_ractor *ractor);
void rb_vm_trace_exit_state_count(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals);
bool rb_vm_trace_exit_state_reset_prepare(void);
void rb_vm_trace_exit_state_reset(struct rb_vm_trace_ractor *caller);

/* Whether code calls C at every exit, even if only one in K is recorded. */
static inline bool
every_exit_p(void)
{
    return rb_vm_trace_capture.subscribed || rb_vm_trace_states.rate;
}

/*
 * Hooks subscribe to every exit, or no longer: then code that counts down by itself calls at each
 * one, and C counts to K. World stopped; rb_vm_trace_capture.subscribed says it for ractors
 * that are made later.
 */
void rb_vm_trace_exits_call_at_every_one(bool on);

/*
 * Sum of hits of one site over all ractors, living and dead, since the last reset. capture.lock
 * held.
 */
uint64_t rb_vm_trace_hits(uint32_t site_index);

/* The same of all sites below `limit`, into hits_out. */
void rb_vm_trace_hits_copy(uint64_t *hits_out, uint32_t limit);

/* Lost time of one site, over all ractors. capture.lock held. */
struct vm_trace_lost rb_vm_trace_lost_time(uint32_t site_index);

/* Set a site's counters to 0 in all ractors. capture.lock held. */
void rb_vm_trace_hits_clear(uint32_t site_index);

/*
 * An exit that the overflow state has counted, because its ractor has no state, is lost. Takes
 * capture.lock.
 */
void rb_vm_trace_hits_lose_overflow(uint32_t site_index);

/* For the function below. */
bool rb_vm_trace_hits_mark_slow(struct rb_vm_trace_ractor *ractor, uint32_t site_index);

/*
 * Before a countdown is restarted: it may come to where a reset has seen it, and hits were counted
 * all the same.
 */
static inline void
exits_moved(struct vm_trace_exit_state *exits)
{
    __atomic_store_n(&exits->moved, true, __ATOMIC_RELEASE);
}

/*
 * An exit that was counted is to be recorded, in the epoch that the ractor is in: let its hit, if
 * it is the first, be the first that counts. False: there is no memory for that. Its owner, GVL
 * held, capture.lock not held.
 */
static inline bool
hits_mark(struct rb_vm_trace_ractor *ractor, uint32_t site_index)
{
    return ractor->epoch == rb_vm_trace_capture.first_epoch || rb_vm_trace_hits_mark_slow(ractor, site_index);
}

#endif /* RUBY_VM_TRACE_STREAMS_EXIT_STATE_H */
