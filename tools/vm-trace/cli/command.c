/* command.c - what the commands share. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

bool
read_file(struct reader *reader, const char *file, struct fxt_visitor *visitor, struct diag *diag)
{
    visitor->fault = diag_fault;
    visitor->progress = diag_progress;
    visitor->fault_context = diag;
    int error = reader_read(reader, file, visitor);
    if (error == 0) return true;
    char text[256];
    snprintf(text, sizeof text, "cannot be opened: %s", strerror(error));
    diag_file(file, text);
    return false;
}

enum status
read_files(struct reader *reader, const struct options *options, int file_count, char **files, struct fxt_visitor *visitor,
           void (*file_end)(void *context))
{
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++) {
        struct diag diag = diag_new(files[i], options->max_faults);
        bool read = read_file(reader, files[i], visitor, &diag);
        status = worse(status, read ? diag_finish(&diag) : STATUS_CANNOT_READ);
        if (read && file_end != NULL) file_end(visitor->context);
    }
    return status;
}

enum status
finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return STATUS_FINE;
    fprintf(stderr, "vm-trace: cannot write to standard output: %s\n", strerror(errno));
    return STATUS_CANNOT_READ;
}
