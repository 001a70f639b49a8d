#ifndef EXPORT_SQLITE_H
#define EXPORT_SQLITE_H
/* export_sqlite.h - the tables of `vm-trace query`, written to a database file. */
#include <stddef.h>
#include <stdint.h>

#include "topics/choice.h"
#include "base/output_file.h"

/* Reads what is chosen of the files and writes its tables to `output`, an OUTPUT_DATABASE. Prints what is wrong with
 * the files (up to max_faults messages each) and why it failed; without SQLite it always fails. */
enum status export_sqlite(const struct trace_choice *choice, size_t memory_bytes, uint64_t max_faults,
                          const struct output *output, int file_count, char **files);

#endif
