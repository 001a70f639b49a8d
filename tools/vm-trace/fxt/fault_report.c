/* fault_report.c - see fault_report.h */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "fxt/fault_report.h"
#include "fxt/input.h"

struct fault_report
fault_report_new(const char *file, uint64_t shown_limit)
{
    return (struct fault_report){
        .file = file, .shown_limit = shown_limit, .begun_ns = isatty(STDERR_FILENO) ? clock_ns(CLOCK_MONOTONIC) : 0};
}

void
fault_report_progress(void *context, uint64_t bytes, uint64_t size)
{
    enum { FIRST_AFTER_NS = 1000000000, THEN_EVERY_NS = 100000000 };
    struct fault_report *report = context;
    if (report->begun_ns == 0) return;
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    if (now - report->begun_ns < FIRST_AFTER_NS || now - report->shown_ns < THEN_EVERY_NS) return;
    report->shown_ns = now;
    fputs("\rvm-trace: ", stderr);
    print_file_name(stderr, report->file);
    fprintf(stderr, ": %.0f MB read", (double)bytes / 1e6);
    if (size != INPUT_SIZE_UNKNOWN) fprintf(stderr, " of %.0f", (double)size / 1e6);
    fputs("\033[K", stderr);
}

static void
clear_progress(struct fault_report *report)
{
    if (report->shown_ns != 0) fputs("\r\033[K", stderr);
    report->shown_ns = 0;
}

static enum status
status_of(const struct fxt_fault *fault)
{
    if (fault->severity == FXT_WARNING) return STATUS_FINE;
    switch (fault->code) {
      case FXT_FAULT_NOT_A_TRACE: return STATUS_NOT_A_TRACE;
      case FXT_FAULT_READ_FAILED: return STATUS_CANNOT_READ;
      default: return STATUS_FAULTS;
    }
}

void
fault_report_fault(void *context, const struct fxt_fault *fault)
{
    struct fault_report *report = context;
    if (fault->severity == FXT_WARNING) report->warnings++;
    else report->faults++;
    report->worst = worse(report->worst, status_of(fault));
    if (report->shown >= report->shown_limit) return;
    report->shown++;
    clear_progress(report);
    fputs("vm-trace: ", stderr);
    print_file_name(stderr, report->file);
    fprintf(stderr, ": offset %" PRIu64 ": %s%s\n", fault->offset, fault->severity == FXT_WARNING ? "warning: " : "",
            fault->text);
}

enum status
fault_report_finish(struct fault_report *report)
{
    uint64_t all = report->faults + report->warnings;
    clear_progress(report);
    if (all <= report->shown) return report->worst;
    fputs("vm-trace: ", stderr);
    print_file_name(stderr, report->file);
    fprintf(stderr, ": %" PRIu64 " more faults and warnings are not shown (check --max-faults=N shows more)\n",
            all - report->shown);
    return report->worst;
}
