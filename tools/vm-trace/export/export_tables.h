#ifndef EXPORT_TABLES_H
#define EXPORT_TABLES_H
/* export_tables.h - traces as files that databases load: `vm-trace export --tables`.
 *
 * Each process of a trace gets a file for each table (tables_files.h). A trace that is of no use is
 * reported with its file, and the others are written.
 */
#include "topics/choice.h"
#include "base/status.h"
#include "export/tables_rows.h"

struct tables_options {
    const char *folder;
    enum rows_format format;
    bool with_arguments, with_command;
    struct trace_choice choice; /* of each trace, from its own first event on */
};

/* Reads each file twice, and prints on stdout how many were written and what was wrong with others.
 * Returns the worst status. */
enum status export_tables(const struct tables_options *options, size_t memory_bytes, uint64_t max_faults,
                          int file_count, char **files);

#endif
