/* diag.c - see diag.h */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/escape.h"
#include "fxt/diag.h"
#include "fxt/input.h"

enum status
worse(enum status a, enum status b)
{
    return a > b ? a : b;
}

void
print_file_name(FILE *out, const char *file)
{
    if (strcmp(file, "-") == 0) file = "standard input";
    print_escaped(out, (struct fxt_string){.ptr = file, .len = (uint32_t)strlen(file)});
}

void
diag_file(const char *file, const char *text)
{
    fputs("vm-trace: ", stderr);
    print_file_name(stderr, file);
    fprintf(stderr, ": %s\n", text);
}

static int64_t
now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct diag
diag_new(const char *file, uint64_t shown_most)
{
    return (struct diag){.file = file, .shown_most = shown_most, .begun_ns = isatty(STDERR_FILENO) ? now_ns() : 0};
}

void
diag_progress(void *context, uint64_t bytes, uint64_t size)
{
    enum { FIRST_AFTER_NS = 1000000000, THEN_EVERY_NS = 100000000 };
    struct diag *diag = context;
    if (diag->begun_ns == 0) return;
    int64_t now = now_ns();
    if (now - diag->begun_ns < FIRST_AFTER_NS || now - diag->shown_ns < THEN_EVERY_NS) return;
    diag->shown_ns = now;
    fputs("\rvm-trace: ", stderr);
    print_file_name(stderr, diag->file);
    fprintf(stderr, ": %.0f MB read", (double)bytes / 1e6);
    if (size != INPUT_SIZE_UNKNOWN) fprintf(stderr, " of %.0f", (double)size / 1e6);
    fputs("\033[K", stderr);
}

static void
take_progress_away(struct diag *diag)
{
    if (diag->shown_ns != 0) fputs("\r\033[K", stderr);
    diag->shown_ns = 0;
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
diag_fault(void *context, const struct fxt_fault *fault)
{
    struct diag *diag = context;
    if (fault->severity == FXT_WARNING) diag->warnings++;
    else diag->faults++;
    diag->worst = worse(diag->worst, status_of(fault));
    if (diag->shown >= diag->shown_most) return;
    diag->shown++;
    take_progress_away(diag);
    fputs("vm-trace: ", stderr);
    print_file_name(stderr, diag->file);
    fprintf(stderr, ": offset %" PRIu64 ": %s%s\n", fault->offset, fault->severity == FXT_WARNING ? "warning: " : "",
            fault->text);
}

enum status
diag_finish(struct diag *diag)
{
    uint64_t all = diag->faults + diag->warnings;
    take_progress_away(diag);
    if (all <= diag->shown) return diag->worst;
    fputs("vm-trace: ", stderr);
    print_file_name(stderr, diag->file);
    fprintf(stderr, ": %" PRIu64 " more faults and warnings are not shown (check --max-faults=N shows more)\n",
            all - diag->shown);
    return diag->worst;
}
