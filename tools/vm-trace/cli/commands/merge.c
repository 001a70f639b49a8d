/* merge.c - `vm-trace merge`: joins several files into one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/output_file.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "fxt/inline_event.h"
#include "fxt/piece_ends.h"
#include "fxt/record_copy.h"

struct merge {
    struct reader *reader;
    struct record_copy *copy;
    const char *path;         /* of the current file */
    uint32_t file;            /* its number */
    struct map file_of_pid;   /* pid -> the last file that had it */
    struct piece_ends piece_ends;
    struct piece_end *ends;   /* to be written before the current record */
    uint32_t end_count, end_capacity;
};

static const char *out_path;

/* Perfetto tells processes apart by their pid alone. */
static void
merge_event(void *context, const struct fxt_event *event)
{
    struct merge *merge = context;
    uint32_t before = map_get(&merge->file_of_pid, event->pid);
    piece_ends_event(&merge->piece_ends, event);
    if (before == merge->file) return;
    map_set(&merge->file_of_pid, event->pid, merge->file);
    if (before == MAP_NONE || merge->piece_ends.goes_on) return;
    char text[160];
    snprintf(text, sizeof text, "process %" PRIu32 " is also in an earlier file: Perfetto shows the two as one process",
             event->pid);
    file_message(merge->path, text);
}

static void
on_piece_end(void *context, const struct piece_end *end)
{
    struct merge *merge = context;
    make_room(merge->ends, merge->end_count, merge->end_capacity);
    merge->ends[merge->end_count++] = *end;
}

/* Its clock is that of CRuby's tracer: ticks of 1 ns. */
static void
write_end(struct merge *merge, uint32_t provider, const struct piece_end *end)
{
    uint64_t words[INLINE_EVENT_WORDS];
    const struct pool *pool = merge->piece_ends.pool;
    const struct inline_event event = {
        .type = FXT_EVENT_DURATION_END, .ticks = (uint64_t)end->ts_ns, .pid = end->pid, .tid = end->tid,
        .category = pool_string(pool, end->category), .name = pool_string(pool, end->name)};
    struct fxt_record record = inline_event_end(words, inline_event_begin(words, &event), 0, provider);
    record_copy_write(merge->copy, &record);
}

static void
merge_record(void *context, const struct fxt_record *record)
{
    struct merge *merge = context;
    for (uint32_t i = 0; i < merge->end_count; i++) write_end(merge, record->provider, &merge->ends[i]);
    merge->end_count = 0;
    if (record_is_definition(record)) record_copy_define(merge->copy, record);
    else record_copy_write(merge->copy, record);
}

static void
begin_file(void *context, const char *path)
{
    struct merge *merge = context;
    merge->path = path;
    piece_ends_file_begin(&merge->piece_ends, path);
    if (!merge->piece_ends.goes_on) record_copy_next_file(merge->copy); /* pieces of a recording keep its provider */
}

static void
end_file(void *context)
{
    struct merge *merge = context;
    merge->file++;
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    struct output output;
    if (!output_open(&output, OUTPUT_BINARY, out_path, file_count, files)) return STATUS_CANNOT_READ;
    struct merge merge = {
        .reader = reader_new(options->memory_bytes), .copy = record_copy_new(output.file, false)};
    piece_ends_init(&merge.piece_ends, reader_pool(merge.reader), on_piece_end, &merge);
    struct fxt_visitor visitor = {.context = &merge, .event = merge_event, .record = merge_record};
    const struct file_bounds bounds = {begin_file, end_file};
    enum status status = read_files(merge.reader, options->max_faults, file_count, files, &visitor, &bounds);
    piece_ends_free(&merge.piece_ends);
    free(merge.ends);
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
        "whether the clocks start at the same moment is for you to know. What a thread waits for at\n"
        "the end of a spool's piece ends there if the next piece follows. OUT appears when it is\n"
        "complete; if its name ends in .gz or .zst, it is compressed.\n",
    .folders = true,
    .options = merge_options,
    .run = run,
};
