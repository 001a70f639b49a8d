/* read_files.c - see read_files.h */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "fxt/read_files.h"

bool
read_file(struct reader *reader, const char *file, struct fxt_visitor *visitor, struct fault_report *report)
{
    visitor->fault = fault_report_fault;
    visitor->progress = fault_report_progress;
    visitor->fault_context = report;
    int error = reader_read(reader, file, visitor);
    if (error == 0) return true;
    char text[256];
    snprintf(text, sizeof text, "cannot be opened: %s", strerror(error));
    file_message(file, text);
    return false;
}

enum status
read_files(struct reader *reader, uint64_t max_faults, int file_count, char **files, struct fxt_visitor *visitor,
           const struct file_bounds *bounds)
{
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++) {
        struct fault_report report = fault_report_new(files[i], max_faults);
        if (bounds != NULL && bounds->begin != NULL) bounds->begin(visitor->context, files[i]);
        bool read = read_file(reader, files[i], visitor, &report);
        status = worse(status, read ? fault_report_finish(&report) : STATUS_CANNOT_READ);
        if (read && bounds != NULL && bounds->end != NULL) bounds->end(visitor->context);
    }
    return status;
}
