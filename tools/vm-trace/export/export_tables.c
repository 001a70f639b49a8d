/* export_tables.c - see export_tables.h */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/report_chosen.h"
#include "base/path_part.h"
#include "base/pool.h"
#include "base/row_table.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "export/export_tables.h"
#include "export/tables_events.h"
#include "export/tables_sums.h"

_Static_assert((int)PROCESSES_OPEN_MAX * (int)TABLES <= (int)OUTPUTS_MAX, "their files are open at once");
enum { SPOOL_PART = 32 }; /* of the memory that is granted, for rows that wait to be written */

enum { NS = 1000000000, BOOT_TOLERANCE_S = 60 };

/* What was wrong with a trace, for the counts at the end. */
enum trouble {
    TROUBLE_UNREADABLE, TROUBLE_EMPTY, TROUBLE_UNCHOSEN, TROUBLE_TWICE, TROUBLE_UNWRITTEN, /* not written */
    TROUBLE_DAMAGED, TROUBLE_INCOMPLETE, TROUBLE_NO_HOST, TROUBLE_CLOCK, TROUBLE_BOOT, TROUBLE_RUBY,
    TROUBLES
};
static const char *const trouble_texts[TROUBLES] = {
    [TROUBLE_UNREADABLE] = "skipped: cannot be read, or no trace",
    [TROUBLE_EMPTY] = "skipped: no events",
    [TROUBLE_UNCHOSEN] = "skipped: nothing is chosen",
    [TROUBLE_TWICE] = "skipped: the same as another one",
    [TROUBLE_UNWRITTEN] = "skipped: cannot be written",
    [TROUBLE_DAMAGED] = "damaged: written up to the damage",
    [TROUBLE_INCOMPLETE] = "incomplete: no summary",
    [TROUBLE_NO_HOST] = "without a host",
    [TROUBLE_CLOCK] = "with a clock that jumped",
    [TROUBLE_BOOT] = "of a host that booted at another time",
    [TROUBLE_RUBY] = "of another Ruby",
};

/* The first trace with a text, to compare later ones with. */
struct first {
    uint32_t text; /* the key: string of `texts` */
    const char *file;
    int64_t boot_ns;
};
enum { FIRSTS_MAX = 16 * 1024 * 1024 };

struct tables_export {
    struct tables_options options;
    size_t memory_bytes;
    uint64_t max_faults;
    uint64_t troubles[TROUBLES];
    uint64_t traces, processes;
    const char *hostless; /* the last file without a host */
    struct budget budget;
    struct pool *texts;
    struct row_table keys, hosts, rubies; /* of struct first */
};

/* --- messages ------------------------------------------------------------------------------------------ */

static void note(struct tables_export *export, enum trouble trouble, const char *file, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void
note(struct tables_export *export, enum trouble trouble, const char *file, const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    file_message(file, text);
    export->troubles[trouble]++;
}

/* Returns the entry of a text, and adds it if necessary. `file` must live as long as the export. */
static const struct first *
first_with(struct tables_export *export, struct row_table *table, struct fxt_string text, const char *file,
           int64_t boot_ns)
{
    uint32_t id = pool_intern(export->texts, text.ptr, text.len), known = table->count;
    struct first *first = row_table_get(table, &id);
    if (first != NULL && table->count > known) first->file = file, first->boot_ns = boot_ns;
    return first;
}

/* --- what is odd about a process ------------------------------------------------------------------------ */

/* A clock may be adjusted by half a second in a thousand without having been set. */
static bool
jumped(const struct trace_host *host, int64_t *jump_ns_out)
{
    int64_t jump_ns = time_difference(host->last_offset_ns, host->origin.unix_offset_ns);
    int64_t ns = time_difference(host->last_ns, host->first_ns);
    *jump_ns_out = jump_ns;
    return llabs(jump_ns) > NS + ns / 1000;
}

static void
check_clock(struct tables_export *export, const char *file, const struct report *report,
            const struct trace_host *host)
{
    int64_t jump_ns;
    if (!host->known) {
        if (export->hostless == file) export->troubles[TROUBLE_NO_HOST]++; /* one message for all its processes */
        else note(export, TROUBLE_NO_HOST, file,
                  "does not name its host (an older recorder): host unknown, times end at the file's own time");
        export->hostless = file;
        return;
    }
    if (jumped(host, &jump_ns)) {
        note(export, TROUBLE_CLOCK, file, "the wall clock was set by %.1f s during the trace: times are those of "
             "its beginning", (double)jump_ns / NS);
        return;
    }
    struct fxt_string name = pool_string(report->pool, host->origin.host);
    const struct first *first = first_with(export, &export->hosts, name, file, host->origin.unix_offset_ns);
    if (first != NULL && llabs(time_difference(first->boot_ns, host->origin.unix_offset_ns)) / NS > BOOT_TOLERANCE_S) {
        note(export, TROUBLE_BOOT, file, "host %s booted at another time than in %s: it was restarted, or two hosts "
             "have this name (column boot_unix_ns tells them apart)", name.ptr, first->file);
    }
}

static void
check_ruby(struct tables_export *export, const char *file, struct fxt_string ruby)
{
    struct fxt_string version = ruby; /* the first two words: ruby 4.0.5 */
    const char *end = ruby.len > 5 ? memchr(ruby.ptr + 5, ' ', ruby.len - 5) : NULL;
    if (end == NULL) return;
    version.len = (uint32_t)(end - ruby.ptr);
    uint32_t known = export->rubies.count;
    const struct first *first = first_with(export, &export->rubies, version, file, 0);
    const struct first *other = row_table_at(&export->rubies, 0);
    if (first == NULL || first == other) return;
    if (export->rubies.count == known) export->troubles[TROUBLE_RUBY]++; /* one message for each Ruby */
    else note(export, TROUBLE_RUBY, file, "has %.*s, while %s has %s: their reasons may differ", (int)version.len,
              version.ptr, other->file, pool_string(export->texts, other->text).ptr);
}

static void
check_process(struct tables_export *export, const char *file, const struct report *report, uint32_t number)
{
    const struct report_process *process = row_table_at(&report->processes, number);
    check_clock(export, file, report, &process->host);
    check_ruby(export, file, process_setting(report, number, STRING_RUBY));
    if (!process->summarized && !process->cut && fxt_parts_stopped(reader_parts(report->reader)))
        note(export, TROUBLE_INCOMPLETE, file, "has no summary in the part that was read");
    else if (!process->summarized && !process->cut)
        note(export, TROUBLE_INCOMPLETE, file, "has no summary: its program ended abruptly, or is still running");
}

/* --- writing ------------------------------------------------------------------------------------------- */

/* The processes of a trace. */
struct writing {
    const char *file;
    const struct stat *stat_of;
    struct report *report;
    struct row_spool spool;
    bool few; /* so their files are open from the beginning */
    struct written_process *processes;
    uint32_t count;
    struct written_process **by_number; /* in the report */
};

static bool
open_tables(struct tables_export *export, struct written_process *process)
{
    if (process_tables_open(&process->tables, export->options.folder)) return true;
    export->troubles[TROUBLE_UNWRITTEN]++;
    return false;
}

static enum status
begin_process(struct tables_export *export, struct writing *writing, uint32_t number)
{
    struct report *report = writing->report;
    const struct report_process *process = report_process(report, number);
    const struct process_name name = {
        .host = pool_string(report->pool, process->host.origin.host), .pid = process->pid,
        .first_ns = process->first_ns,
        .boot_ns = trace_host_boot_ns(&process->host, writing->stat_of, process->last_ns),
        .unix_known = process->host.known};
    const char *file = writing->file, *slash = strrchr(file, '/');
    const struct fxt_parts *parts = reader_parts(report->reader);
    const char *partial = parts->chosen != NULL ? parts->chosen : parts->count > 0 ? parts->list[0].text : "";
    const struct process_facts facts = {slash == NULL ? file : slash + 1, export->options.with_command, partial};
    struct written_process *written = &writing->processes[writing->count];
    *written = (struct written_process){.recording = process->recording, .pid = process->pid};
    struct process_tables *tables = &written->tables;
    *tables = process_tables_new(&writing->spool, export->options.format, &name);
    uint32_t known = export->keys.count;
    const struct first *first = first_with(export, &export->keys, text_of(tables->key), file, 0);
    if (first != NULL && export->keys.count == known) {
        note(export, TROUBLE_TWICE, file, "process %" PRIu32 " was exported from %s", process->pid, first->file);
        process_tables_close(tables, STATUS_FINE);
        return STATUS_FINE;
    }
    if (writing->few && !open_tables(export, written)) return process_tables_close(tables, STATUS_CANNOT_READ);
    check_process(export, file, report, number);
    table_stacks_init(&written->stacks, report->pool, text_of(tables->key), &tables->rows[TABLE_STACKS],
                      &tables->rows[TABLE_FRAMES]);
    tables_write_process(tables, report, number, &facts);
    writing->by_number[number] = written;
    writing->count++;
    return STATUS_FINE;
}

static enum status
end_process(struct tables_export *export, const struct writing *writing, struct written_process *process,
            enum status status)
{
    table_stacks_free(&process->stacks);
    if (!writing->few && status < STATUS_USAGE && !open_tables(export, process)) status = STATUS_CANNOT_READ;
    status = process_tables_close(&process->tables, status);
    export->processes += status == STATUS_FINE;
    return status;
}

/* Reads the trace again and writes its processes. */
static enum status
write_processes(struct tables_export *export, const char *file, const struct stat *stat_of, struct report *report,
                uint32_t count)
{
    struct writing writing = {.file = file, .stat_of = stat_of, .report = report, .few = count <= PROCESSES_OPEN_MAX};
    enum status status = STATUS_FINE;
    row_spool_init(&writing.spool, export->options.folder, export->memory_bytes / SPOOL_PART);
    writing.processes = xcalloc(count, sizeof *writing.processes);
    writing.by_number = xcalloc(report->processes.count, sizeof *writing.by_number);
    for (uint32_t i = 0; i < report->processes.count; i++) {
        if (report_process(report, i)->shown) status = worse(status, begin_process(export, &writing, i));
    }
    tables_write_threads(writing.by_number, report);
    tables_write_sites(writing.by_number, report);
    struct tables_events events = {
        .processes = writing.processes, .with_arguments = export->options.with_arguments,
        .choice = &export->options.choice};
    int error = writing.count > 0 ? tables_write_events(&events, report->reader, file, writing.count) : 0;
    if (error != 0) note(export, TROUBLE_UNREADABLE, file, "cannot be read again: %s", strerror(error));
    for (uint32_t i = 0; i < writing.count; i++) {
        status = worse(status, end_process(export, &writing, &writing.processes[i],
                                           error != 0 ? STATUS_CANNOT_READ : STATUS_FINE));
    }
    free(writing.processes);
    free(writing.by_number);
    row_spool_free(&writing.spool);
    return status;
}

static uint32_t
shown_processes(const struct report *report)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < report->processes.count; i++) count += report_process(report, i)->shown;
    return count;
}

/* Whether anything of the trace is chosen. */
static bool
chosen(struct tables_export *export, const char *file, struct report *report)
{
    bool any = report_check_chosen("export", file, report) < STATUS_USAGE;
    export->troubles[TROUBLE_UNCHOSEN] += !any;
    return any;
}

static enum status
export_trace(struct tables_export *export, char *file)
{
    struct stat stat_of;
    if (stat(file, &stat_of) != 0) {
        note(export, TROUBLE_UNREADABLE, file, "cannot be opened: %s", strerror(errno));
        return STATUS_CANNOT_READ;
    }
    struct report *report = report_new_chosen(export->memory_bytes, &export->options.choice);
    enum status status = report_read_all(report, export->max_faults, 1, &file);
    uint64_t before = export->processes;
    uint32_t count = shown_processes(report);
    if (status >= STATUS_USAGE) export->troubles[TROUBLE_UNREADABLE]++;
    else if (!chosen(export, file, report)) status = STATUS_USAGE;
    else if (count == 0) note(export, TROUBLE_EMPTY, file, "has no events");
    else {
        export->troubles[TROUBLE_DAMAGED] += status != STATUS_FINE;
        status = worse(status, write_processes(export, file, &stat_of, report, count));
    }
    export->traces += export->processes > before;
    report_free(report);
    return status;
}

/* --- schema.json --------------------------------------------------------------------------------------- */

/* The version in an existing file; 0 if it is none of ours, TABLES_SCHEMA if there is no file. */
static long
schema_of(const char *path)
{
    char head[100] = "";
    FILE *file = fopen(path, "r");
    if (file == NULL) return TABLES_SCHEMA;
    size_t len = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    head[len] = '\0';
    return json_number_in(head, "schema");
}

static enum status
write_schema(const char *folder)
{
    char *path = xformat("%s/schema.json", folder);
    long there = schema_of(path);
    enum status status = STATUS_FINE;
    struct output output;
    if (there != TABLES_SCHEMA) {
        char text[200];
        snprintf(text, sizeof text, "has schema %ld, and this tool writes %d: the column schema of each row says which"
                 " it has", there, TABLES_SCHEMA);
        file_message(path, text);
    }
    if (there > TABLES_SCHEMA) { /* the newer one describes older rows, too */ }
    else if (!output_open(&output, OUTPUT_TEXT, path, 0, NULL)) status = STATUS_CANNOT_READ;
    else {
        tables_schema_print(output.file);
        status = output_close(&output, STATUS_FINE);
    }
    free(path);
    return status;
}

/* --- all ----------------------------------------------------------------------------------------------- */

static void
print_counts(const struct tables_export *export, int file_count)
{
    printf("%" PRIu64 " of %d trace%s written to ", export->traces, file_count, file_count == 1 ? "" : "s");
    print_file_name(stdout, export->options.folder);
    printf(": %" PRIu64 " process%s, schema %d\n", export->processes, export->processes == 1 ? "" : "es",
           TABLES_SCHEMA);
    for (unsigned i = 0; i < TROUBLES; i++) {
        if (export->troubles[i] > 0) printf("%" PRIu64 " %s\n", export->troubles[i], trouble_texts[i]);
    }
}

enum status
export_tables(const struct tables_options *options, size_t memory_bytes, uint64_t max_faults, int file_count,
              char **files)
{
    struct tables_export export = {.options = *options, .memory_bytes = memory_bytes, .max_faults = max_faults};
    export.budget.limit_bytes = memory_bytes;
    char *folder = xformat("%s", options->folder);
    bool made = make_folders(folder);
    free(folder);
    if (!made) return STATUS_CANNOT_READ;
    enum status status = write_schema(options->folder);
    if (status != STATUS_FINE) return status;
    struct row_table *tables[] = {&export.keys, &export.hosts, &export.rubies};
    for (unsigned i = 0; i < 3; i++) row_table_init(tables[i], sizeof(struct first), 1, FIRSTS_MAX);
    export.texts = pool_new(&export.budget);
    for (int i = 0; i < file_count; i++) status = worse(status, export_trace(&export, files[i]));
    print_counts(&export, file_count);
    for (unsigned i = 0; i < 3; i++) row_table_free(tables[i]);
    pool_free(export.texts);
    return worse(status, finish_output());
}
