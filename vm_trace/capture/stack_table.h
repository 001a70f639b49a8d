#ifndef RUBY_VM_TRACE_CAPTURE_STACK_TABLE_H
#define RUBY_VM_TRACE_CAPTURE_STACK_TABLE_H 1
/*
 * Capture first, name once: frames of a stack to small ids, and stacks to nodes of a tree.
 *
 * Each ractor has one of these and uses it under its GVL. Only a frame that was never seen gets a
 * label made. The slots of the last walk are kept and compared, so a frame that did not change
 * costs no lookup.
 *
 * Another thread may free ISEQs and method entries. That is logged once for all ractors, and
 * each forgets the frames concerned before its next capture. Memory is used again only after the
 * free was logged, so no frame can be mistaken for a freed one.
 */

#include "vm_trace/host/host.h"
#include "vm_trace/base/strings.h"

#include <pthread.h>

/* What stack samples are of: each kind gives frames and stacks numbers of its own. */
enum vm_trace_sample_kind { VM_TRACE_SAMPLED_EXITS, VM_TRACE_SAMPLED_TIME, VM_TRACE_SAMPLE_KINDS };

/* 64 bytes: longer ones would make each new place of an exit 4 % more expensive. */
struct vm_trace_label {
    uintptr_t pc, method;      /* pc 0: free */
    char *text;                /* own */
    uint32_t bytes;
    struct vm_trace_slot slot; /* in the writer's chunk */
    struct vm_trace_slot method_slot; /* of the method's name alone */
    union {
        uint32_t method_bytes; /* its length; 0: not looked for yet */
        uint32_t next_free;    /* of a free one */
    };
    struct vm_trace_slot samples[VM_TRACE_SAMPLE_KINDS]; /* its number as a frame (capture/stack_samples.h) */
};

/* A stack: a frame on top of a stack. Its text is what "10+" shows. */
struct vm_trace_node {
    uint32_t parent;           /* 0: none */
    uint32_t label;
    uint32_t depth;            /* frames, this one included */
    uint32_t run;              /* frames from here outwards that have the same label */
    uint32_t beyond;           /* the node behind that run */
    uint32_t next;             /* in its bucket */
    struct vm_trace_slot slot;
    struct vm_trace_slot samples[VM_TRACE_SAMPLE_KINDS]; /* its number as a stack of stack samples */
};

struct vm_trace_range {
    uintptr_t from, to;        /* of pcs when `methods` is false, else of method entries */
    bool methods;
};

/* What is kept of a frame until it is named. */
struct vm_trace_sampled_frame {
    uintptr_t pc, method;
    const struct rb_iseq_struct *iseq;
};

struct rb_vm_trace_stacks {
    struct vm_trace_walk walk;     /* the last one; count 0: it failed half-way */
    size_t named;                  /* so many slots have ids and nodes that are right, each on top of the one before */

    struct vm_trace_label *labels; /* by id; 0 is not used */
    uint32_t label_count, label_capacity; /* count: highest id in use + 1 */
    uint32_t labels_alive, free_label;
    uint32_t *label_index;         /* open addressing by (pc, method); a power of two */
    uint32_t label_index_size;

    struct vm_trace_node *nodes;   /* by id; 0 is the empty stack, all zero */
    uint32_t node_count, node_capacity;
    uint32_t tree;                 /* changes when ids of nodes come to mean others */
    uint32_t *node_index;          /* heads of chains by (parent, label); a power of two */
    uint32_t node_index_size;

    char *scratch;                 /* for texts being made */
    size_t scratch_capacity;

    const struct rb_iseq_struct *noted_iseq; /* of the label that was made last; not followed */
    uintptr_t noted_method;
    uint64_t changes;              /* rb_vm_trace_changes when it was looked at last */
    uint64_t deaths;               /* that many of the log are forgotten here */
    struct vm_trace_range *dead;   /* room for those that are not */
};

/*
 * What each ractor has to notice before its next event, in one word, so that one comparison tells
 * whether there is anything. The high half changes with each freed range. The low half is the
 * epoch: the number of the flight recorder's last reset (ractor_state.h).
 */
extern uint64_t rb_vm_trace_changes;

static inline uint64_t
trace_changes(void)
{
    return __atomic_load_n(&rb_vm_trace_changes, __ATOMIC_ACQUIRE);
}

static inline uint32_t
trace_epoch(void)
{
    return (uint32_t)trace_changes();
}

/*
 * Begin the next epoch. What it consists of was stored before. capture.lock held, or all ractors
 * stopped.
 */
void rb_vm_trace_next_epoch(void);

/* Zeroed before. False when there is no memory. */
bool rb_vm_trace_stacks_init(struct rb_vm_trace_stacks *stacks);
void rb_vm_trace_stacks_free(struct rb_vm_trace_stacks *stacks);

/*
 * For stacks_capture: catch up with rb_vm_trace_changes, and all that is to be done when a stack is
 * not as the last one.
 */
void rb_vm_trace_stacks_catch_up(struct rb_vm_trace_stacks *stacks);
bool rb_vm_trace_stacks_capture_rest(struct rb_vm_trace_stacks *stacks, struct rb_execution_context_struct *ec,
                                     uintptr_t top_pc, bool walked);

/*
 * Walk the stack of `ec` (see host.h for top_pc) and give every frame its id and node:
 * stacks->walk.frames[0 .. count), outermost first. False when there is no memory.
 */
static inline bool
stacks_capture(struct rb_vm_trace_stacks *stacks, struct rb_execution_context_struct *ec, uintptr_t top_pc)
{
    if (__builtin_expect(trace_changes() != stacks->changes, 0)) rb_vm_trace_stacks_catch_up(stacks);
    bool walked = rb_vm_trace_host_walk(&stacks->walk, ec, top_pc);
    if (walked && stacks->walk.changed == SIZE_MAX && stacks->named >= stacks->walk.count) return true; /* as it was */
    return rb_vm_trace_stacks_capture_rest(stacks, ec, top_pc, walked);
}

/*
 * As a capture, but of the frames of an earlier walk (rb_vm_trace_host_sample). Those before `from` are
 * known to be as they were at the last call; if they were forgotten since, they are put again. False: no
 * memory.
 */
bool rb_vm_trace_stacks_put(struct rb_vm_trace_stacks *stacks, const struct vm_trace_sampled_frame *frames,
                            size_t from, size_t count);

/*
 * The label of the innermost frame of `ec`, without a walk: an index into stacks->labels. 0: it has
 * no frame, or there is no memory. Valid until the next capture.
 */
uint32_t rb_vm_trace_stacks_top(struct rb_vm_trace_stacks *stacks, struct rb_execution_context_struct *ec);

/* Length of the method's name in a label "Owner#method (path:line)". */
uint32_t rb_vm_trace_label_method(struct vm_trace_label *label);

/*
 * Text of the stack `node` for the argument "10+": labels joined by " < ", innermost first, a run
 * of n frames with one label as "label xn", at most STACKS_TAIL_BYTES and at most `kept` frames,
 * ending in "< N more frames" when frames were left out. Valid until the next call.
 */
#define STACKS_TAIL_BYTES 4096
const char *rb_vm_trace_stacks_tail(struct rb_vm_trace_stacks *stacks, uint32_t node, size_t kept, size_t *bytes_out);

/*
 * Log that memory is freed, or that all objects have moved. Any thread, before the memory is
 * used again. Takes a lock of its own for a few instructions, whatever the number of ractors.
 */
void rb_vm_trace_died(struct vm_trace_range range);
void rb_vm_trace_all_died(void);

/* That lock, to be held across fork(2). */
extern pthread_mutex_t rb_vm_trace_deaths_lock;

/*
 * Have these stacks forget everything at the next capture. By their owner, or while it is stopped.
 */
void rb_vm_trace_stacks_forget_all(struct rb_vm_trace_stacks *stacks);

/*
 * Note that something is kept under an address (of a method entry, of an ISEQ's first instruction),
 * and whether it may be: when it dies and nothing is noted, nobody has to be told. Never says no of
 * what was noted; after some hundred thousand addresses mostly yes. Any thread. The garbage
 * collector's own synchronization orders a note before the death.
 */
void rb_vm_trace_note_address(uintptr_t address);
bool rb_vm_trace_address_noted_p(uintptr_t address);

/* rb_vm_trace_host_label for rb_vm_trace_text_whole. */
size_t rb_vm_trace_make_label(const void *frame, char *buffer, size_t capacity);

/* A buffer of at least `bytes`, kept for the next use; NULL when there is no memory. */
char *rb_vm_trace_stacks_scratch(struct rb_vm_trace_stacks *stacks, size_t bytes);

#endif /* RUBY_VM_TRACE_CAPTURE_STACK_TABLE_H */
