/* time_samples.c - see time_samples.h */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "topics/samples/time_samples.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"

enum { STACK_KEYS = 3, STACKS_MAX = 1 << 24 };

/* A stack of the file below a thread, or below the root. */
struct known_stack {
    uint32_t root, generation, stack; /* the key */
    uint32_t node;
};

static const char SOURCE[] = "ruby.samples";

const char *const time_sample_names[TIME_SAMPLE_STATES] = {
#define NAME(name, text, title) [TIME_SAMPLE_##name] = (text),
    TIME_SAMPLE_STATES_OF(NAME)
#undef NAME
};

const char *const time_sample_titles[TIME_SAMPLE_STATES] = {
#define TITLE(name, text, title) [TIME_SAMPLE_##name] = (title),
    TIME_SAMPLE_STATES_OF(TITLE)
#undef TITLE
};

static void
begin_file(struct time_samples *samples)
{
    samples->packets = sample_packets_new(samples->reader, samples->source);
    row_table_init(&samples->stacks, sizeof(struct known_stack), STACK_KEYS, STACKS_MAX);
}

void
time_samples_init(struct time_samples *samples, struct reader *reader, struct profile *profile)
{
    struct pool *pool = reader_pool(reader);
    *samples = (struct time_samples){.reader = reader, .profile = profile};
    samples->source = pool_intern(pool, SOURCE, sizeof SOURCE - 1);
    begin_file(samples);
    for (unsigned i = 0; i < TIME_SAMPLE_STATES; i++)
        samples->states[i] = pool_intern(pool, time_sample_names[i], strlen(time_sample_names[i]));
}

static void
end_file(struct time_samples *samples)
{
    sample_packets_free(samples->packets);
    map_free(&samples->label_of_frame);
    row_table_free(&samples->stacks);
}

void
time_samples_file_end(struct time_samples *samples)
{
    end_file(samples);
    begin_file(samples);
}

void
time_samples_free(struct time_samples *samples)
{
    end_file(samples);
}

void
time_samples_settings(struct time_samples *samples, const struct fxt_event *event)
{
    uint64_t period_ns = event_uint(event, STRING_SAMPLES_NS, 0);
    if (period_ns > samples->period_ns) samples->period_ns = period_ns;
    samples->cpu |= event_text(reader_pool(samples->reader), event, STRING_SAMPLES_CLOCK) == STRING_CPU;
}

enum time_sample_state
time_samples_state(const struct time_samples *samples, const struct profile_node *node)
{
    unsigned state = 0;
    if (!node->reason) return TIME_SAMPLE_STATES;
    while (state < TIME_SAMPLE_STATES && samples->states[state] != node->text) state++;
    return (enum time_sample_state)state;
}

/* --- stacks ---------------------------------------------------------------------------------------- */

/* "Owner#method (path:line)", as in events. */
static uint32_t
make_label(struct time_samples *samples, const struct packet_frame *frame)
{
    struct pool *pool = reader_pool(samples->reader);
    if (frame->path == SAMPLE_NONE) return frame->name;
    struct fxt_string name = pool_string(pool, frame->name), path = pool_string(pool, frame->path);
    char line[16] = "";
    if (frame->line != SAMPLE_NONE) snprintf(line, sizeof line, ":%" PRIu32, frame->line);
    size_t bytes = name.len + path.len + strlen(line) + 4;
    char *text = xrealloc(NULL, bytes + 1, 1);
    snprintf(text, bytes + 1, "%s (%s%s)", name.ptr, path.ptr, line);
    uint32_t label = pool_intern(pool, text, strlen(text));
    free(text);
    return label;
}

static uint32_t
label_of(struct time_samples *samples, uint32_t generation, uint32_t frame)
{
    uint64_t key = (uint64_t)generation << 32 | frame;
    uint32_t label = map_get(&samples->label_of_frame, key);
    struct packet_frame found;
    if (label != MAP_NONE) return label;
    if (!sample_packets_frame(samples->packets, generation, frame, &found)) return MAP_NONE;
    label = make_label(samples, &found);
    map_set_within(reader_budget(samples->reader), &samples->label_of_frame, key, label);
    return label;
}

/* Returns MAP_NONE if a part of the stack is not known. */
static uint32_t
stack_node(struct time_samples *samples, uint32_t root, uint32_t generation, uint32_t stack)
{
    const uint32_t key[STACK_KEYS] = {root, generation, stack};
    struct known_stack *known = row_table_find(&samples->stacks, key);
    struct packet_stack found;
    if (known != NULL) return known->node;
    if (!sample_packets_stack(samples->packets, generation, stack, &found)) return MAP_NONE;
    uint32_t node = root;
    for (uint32_t i = 0; i < found.count; i++) {
        uint32_t label = label_of(samples, generation, found.frames[i]);
        if (label == MAP_NONE) return MAP_NONE;
        node = profile_child(samples->profile, node, label, false);
    }
    uint32_t row = row_table_intern(&samples->stacks, key, reader_budget(samples->reader), NULL);
    if (row == ROW_NONE) return node;
    known = row_table_at(&samples->stacks, row);
    known->node = node;
    return node;
}

static uint32_t
thread_node(const struct time_samples *samples, const struct packet_task *task)
{
    struct profile *profile = samples->profile;
    if (!profile->with_threads) return 0;
    uint32_t process = reader_process(profile->reader, samples->recording, task->pid);
    const struct thread *thread = threads_get(&profile->threads, process, task->tid);
    return profile_thread(profile, thread != NULL ? thread->name : STRING_NONE, task->tid);
}

/* --- samples ----------------------------------------------------------------------------------------- */

enum time_sample_state
time_samples_state_of(const struct time_samples *samples, const struct packet_sample *sample, uint64_t *ns_out)
{
    for (uint32_t i = 0; i < sample->weight_count; i++) {
        const struct packet_counter counter = sample_packets_counter(samples->packets, sample->weights[i].counter);
        for (unsigned state = 0; state < TIME_SAMPLE_STATES && !counter.primary; state++) {
            if (samples->states[state] != counter.name) continue;
            *ns_out = sample->weights[i].value;
            return (enum time_sample_state)state;
        }
    }
    return TIME_SAMPLE_STATES;
}

static void
on_sample(void *context, const struct packet_sample *packet)
{
    struct time_samples *samples = context;
    struct profile *profile = samples->profile;
    if (samples->packet != NULL) samples->packet(samples->context, packet);
    if (profile == NULL) return;
    struct time_sample sample = {.ts_ns = packet->ts_ns, .recording = samples->recording, .pid = packet->task.pid,
                                 .tid = packet->task.tid};
    sample.state = time_samples_state_of(samples, packet, &sample.ns);
    if (sample.state == TIME_SAMPLE_STATES || sample.tid == 0) {
        samples->unknown++;
        return;
    }
    if (samples->filter != NULL && !samples->passes(samples->filter, &sample)) return;
    if (samples->wanted != NULL && !samples->wanted(samples->context, &sample)) return;
    sample.node = stack_node(samples, thread_node(samples, &packet->task), packet->generation, packet->stack);
    if (sample.node == MAP_NONE) {
        samples->unknown++;
        return;
    }
    sample.node = profile_end_of(profile, sample.node);
    uint32_t end = sample.node;
    if (profile->with_reasons) end = profile_child(profile, end, samples->states[sample.state], true);
    profile_add(profile, end, sample.ns);
    if (sample.ts_ns < profile->first_ns) profile->first_ns = sample.ts_ns;
    if (sample.ts_ns > profile->last_ns) profile->last_ns = sample.ts_ns;
    if (samples->added != NULL) samples->added(samples->context, &sample);
}

void
time_samples_blob(struct time_samples *samples, const struct fxt_blob *blob)
{
    samples->recording = blob->recording;
    sample_packets_read(samples->packets, blob, on_sample, samples);
}
