#ifndef STREAM_COUNTS_H
#define STREAM_COUNTS_H
/* stream_counts.h - checks what the settings and the summary of a process say of a stream whose events
 * are Duration Complete records, or other records: that it was recorded, the shortest slice, and how many
 * there are; and that slices of a track do not overlap, where they may not.
 */
#include "analysis/track_ends.h"
#include "base/row_table.h"
#include "fxt/reader.h"

/* A stream, as settings and summary name it. */
struct counted_stream {
    const char *name;          /* in the flags */
    const char *slice;         /* one of its events, in messages */
    const char *track;         /* whose slices do not overlap, in messages; NULL: they may */
    uint32_t min_ns;           /* a setting, as those below an enum known_string; STRING_NONE: it has none */
    uint32_t count;            /* counters of the summary: */
    uint32_t left_out;         /* of what is shorter than min_ns; STRING_NONE: not compared here */
};

struct stream_process {
    uint32_t number; /* the key */
    bool has_flags, has_stream; /* in the settings: streams at all, and this one */
    bool strange_reported;      /* that the settings lack the stream */
    uint64_t min_ns;            /* the shortest slice; 0: all are recorded */
    uint64_t slices;            /* in the file */
    bool has_count, has_left_out; /* in the summary: */
    uint64_t summary_count, summary_left_out;
    uint64_t summary_offset;
};

struct stream_counts {
    const struct counted_stream *stream;
    struct row_table processes; /* of struct stream_process */
    struct track_ends ends;
};

void stream_counts_init(struct stream_counts *counts, const struct counted_stream *stream);
void stream_counts_free(struct stream_counts *counts);
/* A new chunk begins. Chunks are in any order, so slices are compared only within one. */
void stream_counts_chunk(struct stream_counts *counts);
/* All report faults through the reader. */
void stream_counts_settings(struct stream_counts *counts, const struct fxt_event *event);
/* The summary, or the event `counts`, which continues it. */
void stream_counts_summary(struct stream_counts *counts, const struct fxt_event *event);
/* A slice of the stream. `part`: only a part of it is known, which may be shorter. */
void stream_counts_slice(struct stream_counts *counts, struct reader *reader, const struct fxt_event *event,
                         bool part);
/* Another record of the stream. */
void stream_counts_record(struct stream_counts *counts, struct reader *reader, uint32_t number, uint64_t offset);
/* Compares the counts of a process. All of its slices must be in the trace. */
void stream_counts_finish(struct stream_counts *counts, struct reader *reader, uint32_t number);

#endif
