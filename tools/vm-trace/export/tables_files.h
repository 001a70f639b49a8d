#ifndef TABLES_FILES_H
#define TABLES_FILES_H
/* tables_files.h - the files of one process: DIR/TABLE/day=2026-11-26/host=web1/KEY.csv.gz, one for each table.
 *
 *      process_tables_new -> process_tables_open -> rows -> process_tables_close
 *
 * or, for one of many, whose files are not open while all their rows come:
 *
 *      process_tables_new -> rows -> process_tables_open -> process_tables_close
 *
 * Each file gets its name when it is complete, and replaces that of an earlier export of the same trace.
 * Partitions are named as Apache Hive names them, which engines read as two more columns.
 */
#include "base/output_file.h"
#include "export/tables_rows.h"

/* What the names of a process's files are made of. */
struct process_name {
    struct fxt_string host; /* empty: unknown */
    uint32_t pid;
    int64_t first_ns;       /* of its first event, by the trace's clock */
    int64_t boot_ns;        /* Unix time at 0 of that clock */
    bool unix_known;        /* false: boot_ns is a guess, which the key must not contain */
};

struct process_tables {
    char *key;      /* unique in the fleet, and the same at each export */
    int64_t boot_ns;
    struct process_name name;
    struct rows rows[TABLES];
    struct table_file {
        struct output output;
        char *stale; /* the file that another --table-format would have written */
    } *files;            /* TABLES of them; NULL: they are not open */
    uint32_t open;       /* how many of them are */
};
enum { PROCESSES_OPEN_MAX = 16 };

/* Returns the key of a process, malloc'ed. */
char *process_key(const struct process_name *name);
/* The spool and the name's host must live as long. */
struct process_tables process_tables_new(struct row_spool *spool, enum rows_format format,
                                         const struct process_name *name);
/* Makes folders and opens all files, of up to PROCESSES_OPEN_MAX processes at a time. Prints a message and returns false
 * if one cannot be written; then process_tables_close is needed all the same. */
bool process_tables_open(struct process_tables *tables, const char *folder);
/* Writes the rows and completes the files, or removes them if `status` says that they are useless. Returns the worse of
 * status and its own. */
enum status process_tables_close(struct process_tables *tables, enum status status);

#endif
