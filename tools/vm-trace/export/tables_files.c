/* tables_files.c - see tables_files.h */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/path_part.h"
#include "base/xalloc.h"
#include "export/tables_files.h"

static const char *const endings[] = {[ROWS_CSV] = "csv.gz", [ROWS_NDJSON] = "ndjson.gz"};

enum { NS = 1000000000 };

char *
process_key(const struct process_name *name)
{
    char *host = path_part(name->host);
    char *key = name->unix_known
                    ? xformat("%s-%" PRIu32 "-%" PRId64, host, name->pid, time_sum(name->boot_ns, name->first_ns))
                    : xformat("%s-%" PRIu32 "-boot%" PRId64, host, name->pid, name->first_ns);
    free(host);
    return key;
}

/* The folder of a table, for the process's day in UTC. malloc'ed. */
static char *
partition(const char *folder, enum table_id table, const struct process_name *name)
{
    char day[16] = "1970-01-01";
    time_t seconds = (time_t)((time_sum(name->boot_ns, name->first_ns)) / NS);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) != NULL) strftime(day, sizeof day, "%Y-%m-%d", &utc);
    char *host = path_part(name->host);
    char *path = xformat("%s/%s/day=%s/host=%s", folder, table_schemas[table].name, day, host);
    free(host);
    return path;
}

static bool
open_table(struct process_tables *tables, enum table_id table, char *path)
{
    struct table_file *file = &tables->files[table];
    struct rows *rows = &tables->rows[table];
    if (!make_folders(path)) return false;
    file->stale = xformat("%s/%s.%s", path, tables->key, endings[!rows->format]);
    char *name = xformat("%s/%s.%s", path, tables->key, endings[rows->format]);
    bool opened = output_open(&file->output, OUTPUT_GZIP, name, 0, NULL);
    file->output.path = "";
    free(name);
    if (!opened) return false;
    rows->rows.out = file->output.file;
    rows_print_head(rows, rows->rows.out);
    return true;
}

struct process_tables
process_tables_new(struct row_spool *spool, enum rows_format format, const struct process_name *name)
{
    struct process_tables tables = {.key = process_key(name), .boot_ns = name->boot_ns, .name = *name};
    for (unsigned table = 0; table < TABLES; table++)
        tables.rows[table] = rows_new(spool, format, (enum table_id)table);
    return tables;
}

bool
process_tables_open(struct process_tables *tables, const char *folder)
{
    tables->files = xcalloc(TABLES, sizeof *tables->files);
    for (; tables->open < TABLES; tables->open++) {
        char *path = partition(folder, (enum table_id)tables->open, &tables->name);
        bool opened = open_table(tables, (enum table_id)tables->open, path);
        free(path);
        if (!opened) return false;
    }
    return true;
}

enum status
process_tables_close(struct process_tables *tables, enum status status)
{
    for (uint32_t table = 0; table < tables->open; table++) {
        struct output *output = &tables->files[table].output;
        struct rows *rows = &tables->rows[table];
        if (!row_spool_write(rows->spool, &rows->rows)) status = worse(status, STATUS_CANNOT_READ);
        output->path = output->target; /* for messages */
        status = worse(status, output_close(output, status));
        if (status < STATUS_USAGE) unlink(tables->files[table].stale);
    }
    for (uint32_t table = 0; tables->files != NULL && table < TABLES; table++) free(tables->files[table].stale);
    free(tables->files);
    free(tables->key);
    *tables = (struct process_tables){0};
    return status;
}
