#ifndef TABLES_SUMS_H
#define TABLES_SUMS_H
/* tables_sums.h - the tables processes, threads and sites: what a report knows of a trace at its end. */
#include "topics/report_data.h"
#include "export/tables_files.h"
#include "export/tables_stacks.h"

struct process_facts {
    const char *trace; /* name of the file, without its folder */
    bool with_command;
    const char *partial; /* "": the trace was read as a whole */
};

/* A process that is being written. */
struct written_process {
    uint32_t recording, pid;
    struct process_tables tables;
    struct table_stacks stacks;
};

/* Writes the row of a process of the report, whose number it is. */
void tables_write_process(struct process_tables *tables, struct report *report, uint32_t number,
                          const struct process_facts *facts);
/* Write the rows of all processes; `written`: by number of the process, NULL if it is not to be written. */
void tables_write_threads(struct written_process *const *written, struct report *report);
void tables_write_sites(struct written_process *const *written, struct report *report);
/* The text of a setting of the process; empty if it has none. `name` is an enum known_string. */
struct fxt_string process_setting(const struct report *report, uint32_t number, uint32_t name);

#endif
