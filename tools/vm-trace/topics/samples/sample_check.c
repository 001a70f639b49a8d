/* sample_check.c - see sample_check.h */
#include <inttypes.h>

#include "topics/samples/sample_check.h"
#include "fxt/known_strings.h"

static const struct counted_stream sample_stream = {
    .name = "samples", .slice = "sample", .min_ns = STRING_NONE, .count = STRING_SAMPLE_RECORDS,
    .left_out = STRING_NONE,
};

#define FAULT(sample, ...) reader_fault(check->samples.reader, FXT_FAULT_SCHEMA, (sample)->offset, __VA_ARGS__)

void
sample_check_free(struct sample_check *check)
{
    stream_counts_free(&check->counts);
    time_samples_free(&check->samples);
}

static void
check_weights(struct sample_check *check, const struct packet_sample *sample)
{
    const struct sample_packets *packets = check->samples.packets;
    uint64_t ns = 0;
    if (sample->weight_count != 2) {
        FAULT(sample, "sample has %" PRIu32 " weights, not its time and that of one state", sample->weight_count);
        return;
    }
    if (!sample_packets_counter(packets, sample->weights[0].counter).primary || sample->weights[0].value == 0)
        FAULT(sample, "sample stands for no time");
    if (time_samples_state_of(&check->samples, sample, &ns) == TIME_SAMPLE_STATES)
        FAULT(sample, "sample has no state that is known");
    else if (ns != sample->weights[0].value)
        FAULT(sample, "sample of %" PRIu64 " ns has a state of %" PRIu64 " ns", sample->weights[0].value, ns);
}

static void
check_stack(struct sample_check *check, const struct packet_sample *sample)
{
    struct packet_stack stack;
    struct packet_frame frame;
    if (!sample_packets_stack(check->samples.packets, sample->generation, sample->stack, &stack)) {
        FAULT(sample, "sample has the stack %" PRIu32 ", which is not defined", sample->stack);
        return;
    }
    if (stack.count == 0) FAULT(sample, "sample has a stack without frames");
    for (uint32_t i = 0; i < stack.count; i++) {
        if (sample_packets_frame(check->samples.packets, sample->generation, stack.frames[i], &frame)) continue;
        FAULT(sample, "sample has the frame %" PRIu32 ", which is not defined", stack.frames[i]);
        return;
    }
}

static void
on_sample(void *context, const struct packet_sample *sample)
{
    struct sample_check *check = context;
    struct reader *reader = check->samples.reader;
    stream_counts_record(&check->counts, reader, reader_process(reader, check->samples.recording, sample->task.pid),
                         sample->offset);
    if (sample->task.pid == 0 || sample->task.tid == 0) FAULT(sample, "sample has no thread");
    check_weights(check, sample);
    check_stack(check, sample);
}

void
sample_check_init(struct sample_check *check, struct reader *reader)
{
    stream_counts_init(&check->counts, &sample_stream);
    time_samples_init(&check->samples, reader, NULL);
    check->samples.context = check;
    check->samples.packet = on_sample;
}

void
sample_check_blob(struct sample_check *check, const struct fxt_blob *blob)
{
    time_samples_blob(&check->samples, blob);
}
