#ifndef SAMPLE_PACKETS_H
#define SAMPLE_PACKETS_H
/* sample_packets.h - decodes Perfetto's stack samples, which are packets in blob records.
 *
 *      sample_packets_new -> sample_packets_read for each blob, in the order of the file
 *      -> what samples refer to -> sample_packets_free
 *
 * Packets of one sequence refer by number to what earlier ones of it defined. A packet that clears the
 * state of its sequence begins a new generation of such definitions; they stay until the end, so a
 * sample's generation and numbers can be looked up at any time. Not read: inline stacks, execution
 * contexts, scopes of counters.
 *
 * Format: Perfetto's protos/perfetto/trace/profiling/stack_sample.proto and profile_common.proto.
 */
#include "fxt/reader.h"

#define SAMPLE_NONE UINT32_MAX

/* A quantity that samples are measured by. Strings are numbers of the reader's pool. */
struct packet_counter {
    uint32_t name;    /* or SAMPLE_NONE */
    uint32_t unit;    /* or SAMPLE_NONE */
    bool primary;
};

struct packet_weight {
    uint64_t value;
    uint32_t counter; /* for sample_packets_counter */
};

struct packet_task {
    uint32_t pid, tid;
    uint32_t context; /* an async context of its generation; 0: none */
};

struct packet_sample {
    int64_t ts_ns;
    uint64_t offset;     /* of the blob record */
    uint32_t sequence;   /* its id */
    uint32_t generation;
    uint32_t source;     /* string, or SAMPLE_NONE */
    uint32_t unit;       /* of the primary counter that is default; or SAMPLE_NONE */
    uint32_t stack;      /* for sample_packets_stack */
    struct packet_task task; /* tid 0: none */
    const struct packet_weight *weights; /* until the visitor returns */
    uint32_t weight_count;
};

struct packet_frame {
    uint32_t name;    /* string; never SAMPLE_NONE */
    uint32_t mapping; /* path of the mapping: a string, or SAMPLE_NONE */
    uint32_t path;    /* of the source: a string, or SAMPLE_NONE */
    uint32_t line;    /* or SAMPLE_NONE */
    uint32_t kind;    /* string, or SAMPLE_NONE */
    uint64_t pc;
};

struct packet_context {
    uint32_t name, kind; /* strings, or SAMPLE_NONE */
    uint32_t parent;     /* number of its generation; 0: none */
};

/* Numbers of frames of the sample's generation, outermost first. */
struct packet_stack {
    const uint32_t *frames;
    uint32_t count;
};

struct sample_packets;

/* Charges its memory to the reader's budget. `source`: a string; samples of others, and what they define,
 * are skipped. SAMPLE_NONE: all sources. */
struct sample_packets *sample_packets_new(struct reader *reader, uint32_t source);
void sample_packets_free(struct sample_packets *packets);
/* Passes on the samples that have a stack and whose definitions were not lost. */
void sample_packets_read(struct sample_packets *packets, const struct fxt_blob *blob,
                         void (*on_sample)(void *context, const struct packet_sample *sample), void *context);

struct packet_counter sample_packets_counter(const struct sample_packets *packets, uint32_t counter);
/* False: it, or a part of it, was not defined. A stack is valid until the next read. */
bool sample_packets_stack(const struct sample_packets *packets, uint32_t generation, uint32_t stack,
                          struct packet_stack *stack_out);
bool sample_packets_frame(const struct sample_packets *packets, uint32_t generation, uint32_t frame,
                          struct packet_frame *frame_out);
bool sample_packets_context(const struct sample_packets *packets, uint32_t generation, uint32_t context,
                            struct packet_context *context_out);

#endif
