#ifndef CALL_CHECK_H
#define CALL_CHECK_H
/* call_check.h - checks the stream `calls`: the arguments of calls, that they nest on each track with each
 * other and with what their thread is blocked in, and that the settings and the summary agree with them.
 */
#include "analysis/ended_slices.h"
#include "analysis/stream_counts.h"
#include "base/row_table.h"
#include "fxt/reader.h"

struct call_check_process {
    uint32_t number; /* the key */
    uint64_t left_out; /* in the events */
    bool has_left_out; /* in the summary: */
    uint64_t summary_left_out;
    uint64_t summary_offset;
};

struct call_check {
    struct stream_counts counts;
    struct row_table processes; /* of struct call_check_process */
    struct ended_slices ended;
};

void call_check_init(struct call_check *check);
void call_check_free(struct call_check *check);

/* A new chunk begins. Chunks are in any order, so calls nest only within one. */
void call_check_chunk(struct call_check *check);

/* All report faults through the reader. */
void call_check_settings(struct call_check *check, struct reader *reader, const struct fxt_event *event);
/* The summary, or the event `counts`, which continues it. */
void call_check_summary(struct call_check *check, const struct fxt_event *event);
/* An event of the category call. */
void call_check_call(struct call_check *check, struct reader *reader, const struct fxt_event *event);
/* An event of the category blocked. */
void call_check_blocked(struct call_check *check, const struct fxt_event *event);
/* Compares the counts of a process. All of its calls must be in the trace. */
void call_check_finish(struct call_check *check, struct reader *reader, uint32_t number);

#endif
