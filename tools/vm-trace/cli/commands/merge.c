/* merge.c - `vm-trace merge`: joins several files into one. */
#include <inttypes.h>
#include <stdio.h>

#include "base/map.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "fxt/record_copy.h"

struct merge {
    struct reader *reader;
    struct record_copy *copy;
    char **files;
    uint32_t file;            /* the current one */
    struct map file_of_pid;   /* pid -> the last file that had it */
};

static const char *out_path;

/* Perfetto, too, tells processes apart by their pid alone. */
static void
merge_event(void *context, const struct fxt_event *event)
{
    struct merge *merge = context;
    uint32_t before = map_get(&merge->file_of_pid, event->pid);
    if (before == merge->file) return;
    map_set(&merge->file_of_pid, event->pid, merge->file);
    if (before == MAP_NONE) return;
    char text[160];
    snprintf(text, sizeof text, "process %" PRIu32 " is also in an earlier file: the events of both become one process",
             event->pid);
    file_message(merge->files[merge->file], text);
}

static void
merge_record(void *context, const struct fxt_record *record)
{
    struct merge *merge = context;
    if (record_is_definition(record)) record_copy_define(merge->copy, record);
    else record_copy_write(merge->copy, record);
}

static void
end_file(void *context)
{
    struct merge *merge = context;
    merge->file++;
    record_copy_next_file(merge->copy);
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    struct output output;
    if (!output_open(&output, OUTPUT_BINARY, out_path, file_count, files)) return STATUS_CANNOT_READ;
    struct merge merge = {
        .reader = reader_new(options->memory_bytes), .copy = record_copy_new(output.file, false), .files = files};
    struct fxt_visitor visitor = {.context = &merge, .event = merge_event, .record = merge_record};
    enum status status = read_files(merge.reader, options->max_faults, file_count, files, &visitor, end_file);
    map_free(&merge.file_of_pid);
    record_copy_free(merge.copy);
    reader_free(merge.reader);
    return output_close(&output, status);
}

static const struct cli_option merge_options[] = {
    OPTION_OUTPUT(out_path, "output file; - is standard output (default)"), OPTION_MAX_FAULTS, OPTION_MEMORY, {0}};

const struct command command_merge = {
    .name = "merge",
    .purpose = "join traces into one, such as those of a process and its children",
    .arguments = "[-o OUT] FILE...",
    .help =
        "Writes all records of the traces into one file, which Perfetto and this tool read like\n"
        "the separate files side by side. Each file's providers get new ids; everything else is\n"
        "copied, except padding. Any Fuchsia trace will do, also with clocks of different rates;\n"
        "whether the clocks start at the same moment is for you to know. OUT appears when it is\n"
        "complete; if its name ends in .gz or .zst, it is compressed.\n",
    .folders = true,
    .options = merge_options,
    .run = run,
};
