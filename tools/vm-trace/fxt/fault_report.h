#ifndef FAULT_REPORT_H
#define FAULT_REPORT_H
/* fault_report.h - prints the faults of one file on stderr, and the progress of reading.
 *
 * A message reads `vm-trace: FILE: offset N: reason`.
 */
#include <stdint.h>

#include "base/status.h"
#include "fxt/reader.h"

struct fault_report {
    const char *file;
    int64_t begun_ns;    /* when reading began; 0: stderr is no terminal, so no progress is shown */
    int64_t shown_ns;    /* when progress was last shown; 0: no line of progress is on the screen */
    uint64_t shown_limit;
    uint64_t shown;
    uint64_t faults;
    uint64_t warnings;
    enum status worst; /* the exit status that the faults so far lead to */
};

/* `file` must live as long as the report. Prints up to shown_limit faults and counts them all. */
struct fault_report fault_report_new(const char *file, uint64_t shown_limit);
/* For the reader's callbacks; `report` is a struct fault_report. After one second of reading,
 * progress is one line that is overwritten. */
void fault_report_fault(void *report, const struct fxt_fault *fault);
void fault_report_progress(void *report, uint64_t bytes, uint64_t size);
/* Clears the line of progress, and prints how many faults were not shown. Returns the file's status. */
enum status fault_report_finish(struct fault_report *report);

#endif
