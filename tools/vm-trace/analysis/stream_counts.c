/* stream_counts.c - see stream_counts.h */
#include <inttypes.h>

#include "analysis/event_args.h"
#include "analysis/stream_counts.h"
#include "base/escape.h"
#include "fxt/known_strings.h"

enum { PROCESSES_MAX = 16 * 1024 };

#define FAULT(reader, event, ...) reader_fault(reader, FXT_FAULT_SCHEMA, (event)->offset, __VA_ARGS__)

void
stream_counts_init(struct stream_counts *counts, const struct counted_stream *stream)
{
    *counts = (struct stream_counts){.stream = stream};
    row_table_init(&counts->processes, sizeof(struct stream_process), 1, PROCESSES_MAX);
    track_ends_init(&counts->ends);
}

void
stream_counts_free(struct stream_counts *counts)
{
    row_table_free(&counts->processes);
    track_ends_clear(&counts->ends);
}

void
stream_counts_chunk(struct stream_counts *counts)
{
    track_ends_clear(&counts->ends);
}

static struct stream_process *
process_of(struct stream_counts *counts, uint32_t number)
{
    static struct stream_process others; /* with too many processes: not compared */
    struct stream_process *process = row_table_get(&counts->processes, &number);
    return process != NULL ? process : &others;
}

static const char *
text_of_known(struct reader *reader, uint32_t known)
{
    return pool_string(reader_pool(reader), known).ptr;
}

void
stream_counts_settings(struct stream_counts *counts, const struct fxt_event *event)
{
    struct stream_process *process = process_of(counts, event->process);
    const struct fxt_arg *flags = fxt_event_arg(event, STRING_FLAGS);
    if (flags != NULL && flags->type == FXT_ARG_STRING) {
        process->has_flags = true;
        process->has_stream |= text_has_word(flags->string, counts->stream->name);
    }
    if (counts->stream->min_ns != STRING_NONE)
        event_read_uint(event, counts->stream->min_ns, &process->min_ns);
}

void
stream_counts_summary(struct stream_counts *counts, const struct fxt_event *event)
{
    struct stream_process *process = process_of(counts, event->process);
    process->summary_offset = event->offset;
    process->has_count |= event_read_uint(event, counts->stream->count, &process->summary_count);
    if (counts->stream->left_out == STRING_NONE) return;
    process->has_left_out |= event_read_uint(event, counts->stream->left_out, &process->summary_left_out);
}

void
stream_counts_slice(struct stream_counts *counts, struct reader *reader, const struct fxt_event *event, bool part)
{
    const struct counted_stream *stream = counts->stream;
    struct stream_process *process = process_of(counts, event->process);
    char name[140];
    escape_into(name, sizeof name, event->name);
    process->slices++;
    if (process->has_flags && !process->has_stream && !process->strange_reported) {
        process->strange_reported = true;
        FAULT(reader, event, "%s %s: the settings do not have the stream %s", stream->slice, name, stream->name);
    }
    if (event->type != FXT_EVENT_DURATION_COMPLETE) return;
    uint64_t ns = (uint64_t)(event->end_ns - event->ts_ns);
    if (ns < process->min_ns && !part) {
        FAULT(reader, event, "%s %s of %" PRIu64 " ns; the shortest is %" PRIu64, stream->slice, name, ns,
              process->min_ns);
    }
    if (stream->track != NULL && track_ends_overlap(&counts->ends, event)) {
        FAULT(reader, event, "%s %s begins at %" PRId64 ", before the last one of its %s ended", stream->slice, name,
              event->ts_ns, stream->track);
    }
}

void
stream_counts_record(struct stream_counts *counts, struct reader *reader, uint32_t number, uint64_t offset)
{
    struct stream_process *process = process_of(counts, number);
    process->slices++;
    if (!process->has_flags || process->has_stream || process->strange_reported) return;
    process->strange_reported = true;
    reader_fault(reader, FXT_FAULT_SCHEMA, offset, "%s: the settings do not have the stream %s", counts->stream->slice,
                 counts->stream->name);
}

void
stream_counts_finish(struct stream_counts *counts, struct reader *reader, uint32_t number)
{
    const struct counted_stream *stream = counts->stream;
    const struct stream_process *process = row_table_find(&counts->processes, &number);
    if (process == NULL) return;
    if (process->has_count && process->summary_count != process->slices) {
        reader_fault(reader, FXT_FAULT_SCHEMA, process->summary_offset,
                     "trace summary says %s: %" PRIu64 ", but the file holds: %" PRIu64,
                     text_of_known(reader, stream->count), process->summary_count, process->slices);
    }
    if (process->has_left_out && process->summary_left_out > 0 && process->has_flags && process->min_ns == 0) {
        reader_fault(reader, FXT_FAULT_SCHEMA, process->summary_offset,
                     "trace summary says %s: %" PRIu64 ", but the settings have no %s",
                     text_of_known(reader, stream->left_out), process->summary_left_out,
                     text_of_known(reader, stream->min_ns));
    }
}
