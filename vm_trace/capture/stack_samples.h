#ifndef RUBY_VM_TRACE_CAPTURE_STACK_SAMPLES_H
#define RUBY_VM_TRACE_CAPTURE_STACK_SAMPLES_H 1
/*
 * Perfetto's stack samples, which its UI draws as flame graphs. Of exits: one packet for each
 * recorded exit, weighted by the exits that it represents, and by the time that it lost. Of time: one
 * for each sample of the stream `samples`, weighted by the time that it represents.
 *
 * The packets of one chunk are one generation of Perfetto's interned data: each chunk defines texts,
 * frames, stacks and threads once, in packets before those that refer to them. A stack there is a
 * list of all its frames, so stacks that differ in depth share nothing. So a sample leaves out the
 * repetitions of recursion, and the middle of a very deep stack.
 */

#include "vm_trace/base/perfetto.h"
#include "vm_trace/capture/ractor_state.h"

/* A packet in its blob record, without its time. */
#define VM_TRACE_SAMPLE_WORDS 8
struct vm_trace_sample {
    uint32_t words;              /* 0: none */
    uint32_t tid;                /* whose it is */
    uint64_t record[VM_TRACE_SAMPLE_WORDS];
};

/*
 * What a chunk has defined. Powers of two; of two items with one slot, the later replaces the
 * earlier.
 */
enum { VM_TRACE_SAMPLE_TEXTS = 512, VM_TRACE_SAMPLE_STACKS = 512, VM_TRACE_SAMPLE_THREADS = 64 };
struct vm_trace_sample_id {
    uint64_t hash;               /* of the text, or of the stack; or the thread's id */
    struct vm_trace_slot slot;   /* of this generation */
};

struct vm_trace_samples {
    enum vm_trace_sample_kind kind; /* set once; the rest is zeros at first */
    const char *time;            /* of samples of time: which */
    uint32_t chunk;              /* the writer's serial of the chunk that was begun; 0: none */
    uint32_t generation;         /* number of chunks begun; items of an older one are not defined */
    uint32_t sequence;           /* of the packets */
    bool lost_time;              /* set before a sample is composed: samples of this trace may have it */
    uint32_t texts, frames, stacks, threads; /* ids that were given */
    uint32_t middle;             /* id of the frame for a middle that is left out */
    struct vm_trace_sample_id text_ids[VM_TRACE_SAMPLE_TEXTS], stack_ids[VM_TRACE_SAMPLE_STACKS],
        thread_ids[VM_TRACE_SAMPLE_THREADS];
};

/* X(name, text): what a thread did at a sample of time. */
#define VM_TRACE_SAMPLE_STATES_OF(X) \
    X(COMPILED, "compiled") X(INTERPRETED, "interpreted") X(COMPILING, "compiling") X(GC, "gc") \
    X(BLOCKED, "blocked") X(WAITING, "waiting") X(NO_CPU, "no_cpu") X(WITHOUT_GVL, "without_gvl")

enum vm_trace_sample_state {
#define X(name, text) VM_TRACE_SAMPLE_##name,
    VM_TRACE_SAMPLE_STATES_OF(X)
#undef X
    VM_TRACE_SAMPLE_STATES
};

/* Whose stack it is: a thread, and a fiber in it other than its own. */
struct vm_trace_sample_task {
    uint32_t tid;
    uint32_t fiber;              /* its track; 0: the thread's own fiber */
    struct rb_execution_context_struct *ec; /* for the name of the fiber */
};

struct vm_trace_time_sample {
    struct vm_trace_sample_task task;
    enum vm_trace_sample_state state;
    uint64_t ns;
    uint64_t weight_ns;          /* not 0 */
};

/*
 * Write a sample of the stack that was captured last, which is not empty, after the definitions that
 * it needs. False: the chunk is full, or there is no memory.
 */
bool rb_vm_trace_sample_write_time(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples,
                                   const struct vm_trace_time_sample *sample);

/*
 * Compose the sample of the exit whose stack was captured last, on the track of the fiber that the walk
 * found, after writing the definitions that it needs. `lost`: it has a place for the lost time.
 * False: the chunk is full, or there is no memory.
 */
bool rb_vm_trace_sample_compose(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples, uint64_t weight,
                                bool lost, struct vm_trace_sample *sample_out);

/* Write it as a record of its own. Its room in the chunk was checked before. */
static inline void
sample_write(struct rb_vm_trace_writer *writer, const struct vm_trace_sample *sample, uint64_t ns)
{
    enum { LEAST_WORDS = 5 }; /* most have just that, or one more */
    uint64_t *to = writer_reserve(writer, sample->words);
    if (!to) return;
    memcpy(to + 1, sample->record + 1, (LEAST_WORDS - 1) * sizeof(*to));
    for (size_t i = LEAST_WORDS; i < sample->words; i++) to[i] = sample->record[i];
    perfetto_put_time(to + 1, ns);
    writer_publish(writer, sample->words, sample->record[0]);
}

#endif /* RUBY_VM_TRACE_CAPTURE_STACK_SAMPLES_H */
