#ifndef TABLES_EVENTS_H
#define TABLES_EVENTS_H
/* tables_events.h - the tables events, spans, states and counters, in a second reading of a trace.
 *
 * The first one is the report's: it finds out which processes there are, and their clocks. So a row can be
 * written as soon as its record is read, and memory does not grow with the length of the trace.
 */
#include "topics/report_data.h"
#include "topics/threads/thread_tracks.h"
#include "export/tables_sums.h"

struct tables_events {
    struct pool *pool;
    struct map by_pid; /* recording and pid -> index in `processes` */
    struct written_process *processes; /* the caller's */
    bool with_arguments;
    const struct trace_choice *choice; /* what the report chose */
    struct thread_tracks tracks;
};

/* Reads the report's file again, and writes what belongs to the processes. Faults were reported by the
 * first reading. Returns 0, or errno if the file cannot be opened. */
int tables_write_events(struct tables_events *events, struct reader *reader, const char *file, uint32_t process_count);

#endif
