#ifndef SAMPLES_H
#define SAMPLES_H
/* samples.h - Perfetto's stack samples of a trace, from its blob records.
 *
 * Read in the order of the file, since what packets refer to is defined there (fxt/sample_packets.h); the
 * tables are built in the order of time. Not read: samples with inline stacks, and CPUs.
 */
#include "base/row_table.h"
#include "sql/model.h"

/* Rows of the tables. Those with a key begin with it (base/row_table.h). */
struct sample_session {
    uint32_t sequence;
    uint32_t source; /* of the first sample; or MODEL_NONE */
    uint32_t unit;   /* likewise, of its first counter */
};

struct sample_task {
    uint32_t utid;
    uint32_t context; /* row of contexts, or MODEL_NONE */
    uint32_t upid; /* or MODEL_NONE */
};

struct sample_context {
    uint32_t name, kind; /* or MODEL_NONE */
    uint32_t parent;     /* row, or MODEL_NONE */
};

struct sample_mapping {
    uint32_t generation; /* of one without a path; else MODEL_NONE */
    uint32_t name;
};

struct sample_frame {
    uint32_t mapping;
    uint32_t name;
    uint32_t pc_low, pc_high;
    uint32_t path, line; /* in the key only of a mapping without a path: else the first ones */
    uint32_t source_path, source_line; /* or MODEL_NONE */
    uint32_t kind;       /* or MODEL_NONE */
};

struct sample_callsite {
    uint32_t parent; /* or MODEL_NONE */
    uint32_t frame;
    uint32_t depth;
};

struct sample_counter_track {
    uint32_t session;
    uint32_t source;
    uint32_t name;
    uint32_t unit;  /* or MODEL_NONE */
    uint32_t track;
    bool primary;
};

struct sample_row {
    int64_t ts;
    uint32_t source;
    uint32_t task; /* or MODEL_NONE */
    uint32_t callsite;
    uint32_t session;
};

struct sample_counter {
    uint32_t counter; /* row of the table counter */
    uint32_t sample;
};

struct samples_reading; /* what is needed until the tables are built */

struct samples {
    struct samples_reading *reading;
    ARRAY_OF(struct sample_row) rows;
    ARRAY_OF(struct sample_counter) counters;
    ARRAY_OF(struct sample_context) contexts;
    struct row_table sessions, tasks, mappings, frames, callsites, tracks;
};

#endif
