#ifndef EXECUTION_CHECK_H
#define EXECUTION_CHECK_H
/* execution_check.h - checks the stream `states`: its arguments, that states add up, that the time
 * lost by exits is the same in threads and in sites, and that execution slices nest.
 *
 * Times are read at different moments, so sums may differ by 1 %.
 */
#include "analysis/ended_slices.h"
#include "topics/states/execution.h"

struct execution_check_process {
    uint32_t number; /* the key */
    uint64_t events_lost_ns; /* of the recorded exits */
    uint64_t sites_lost_ns;
    bool has_sites_lost, has_threads;
    uint64_t states_offset; /* of its last event trace/states */
    uint64_t min_ns;     /* the shortest slice that is recorded; 0: unknown */
};

/* The sums of one thread, to see that they do not shrink. */
struct execution_check_thread {
    uint32_t process, tid; /* the key */
    int64_t ts_ns;
    uint64_t ns[EXECUTION_STATES];
};

struct execution_check {
    struct row_table processes; /* of struct execution_check_process */
    struct row_table threads;   /* of struct execution_check_thread */
    struct ended_slices ended;
};

void execution_check_init(struct execution_check *check);
void execution_check_free(struct execution_check *check);

/* A new chunk begins. Chunks are in any order, so slices nest only within one. */
void execution_check_chunk(struct execution_check *check);

/* All report faults through the reader. */
void execution_check_settings(struct execution_check *check, const struct fxt_event *event);
void execution_check_exit(struct execution_check *check, const struct fxt_event *event);
void execution_check_site(struct execution_check *check, struct reader *reader, const struct fxt_event *event);
/* An event trace/states; trace/interpreted or trace/calls. settings_ns: when the trace began;
 * INT64_MIN: unknown. */
void execution_check_thread(struct execution_check *check, struct reader *reader, const struct fxt_event *event,
                            int64_t settings_ns);
void execution_check_iseq(struct reader *reader, const struct fxt_event *event);
/* An event of the category execution. */
void execution_check_slice(struct execution_check *check, struct reader *reader, const struct fxt_event *event);
/* Compares the sums of a process. All of its sites and threads must be in the trace. */
void execution_check_finish(struct execution_check *check, struct reader *reader, uint32_t number);

#endif
