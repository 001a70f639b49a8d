/* page_samples.c - see page_samples.h. page/samples.js describes the JSON. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "render/page_nodes.h"
#include "render/page_samples.h"

/* Time by state of all stacks through each frame. A stack ends with a node for its state. */
struct frame_times {
    uint64_t ns[TIME_SAMPLE_STATES];
};

static struct frame_times *
times_of_frames(const struct time_samples *samples, uint64_t *totals)
{
    const struct profile *profile = samples->profile;
    struct frame_times *times = xcalloc(profile->node_count, sizeof *times);
    for (uint32_t i = profile->node_count; i-- > 1;) {
        const struct profile_node *node = &profile->nodes[i];
        struct frame_times *parent = &times[node->parent];
        enum time_sample_state state = time_samples_state(samples, node);
        if (state != TIME_SAMPLE_STATES) {
            parent->ns[state] += node->count;
            continue;
        }
        for (unsigned s = 0; s < TIME_SAMPLE_STATES; s++) {
            parent->ns[s] += times[i].ns[s];
            totals[i] += times[i].ns[s];
        }
    }
    return times;
}

static void
print_times(FILE *out, const struct frame_times *times)
{
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++)
        fprintf(out, "%s%" PRIu64, state > 0 ? "," : "", times->ns[state]);
}

/* Gives each shown node a number for each state: of the samples that ended there, or below it at nodes that are not
 * shown. */
static void
add_numbers(struct page *page, const struct time_samples *samples, const uint32_t *shown_as, uint32_t first, bool before)
{
    for (uint32_t i = 0; i < samples->profile->node_count; i++) {
        for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++) {
            page_bins_add(&page->bins, first + shown_as[i] * TIME_SAMPLE_STATES + state, before,
                          (struct series_key){.subject = SERIES_SAMPLE, .a = i, .b = state});
        }
    }
}

/* Prints the nodes: [parent,text,ns of each state,number of its first state]. */
static void
print_nodes(struct page *page, const struct time_samples *samples, const char *name, bool before)
{
    const struct profile *profile = samples->profile;
    uint32_t count = profile->node_count, left_out, shown = 0;
    uint64_t *totals = xcalloc(count, sizeof *totals);
    struct frame_times *times = times_of_frames(samples, totals);
    bool *chosen = page_nodes_shown(totals, count, &left_out);
    uint32_t *shown_as = xcalloc(count, sizeof *shown_as), first = page->bins.count + 1;
    fprintf(page->out, ",\n\"%s_left_out\":%" PRIu32 ",\n\"%s\":[", name, left_out, name);
    for (uint32_t i = 0; i < count; i++) {
        shown_as[i] = chosen[i] ? shown++ : shown_as[profile->nodes[i].parent];
        if (!chosen[i]) continue;
        fprintf(page->out, "%s[%" PRIu32 ",%" PRIu32 ",", i > 0 ? "," : "", shown_as[profile->nodes[i].parent],
                page_string(page, profile->nodes[i].text));
        print_times(page->out, &times[i]);
        fprintf(page->out, ",%" PRIu32 "]", first + shown_as[i] * TIME_SAMPLE_STATES);
    }
    page->bins.count += shown * TIME_SAMPLE_STATES;
    putc(']', page->out);
    add_numbers(page, samples, shown_as, first, before);
    free(shown_as);
    free(chosen);
    free(times);
    free(totals);
}

void
print_page_samples(struct page *page)
{
    const struct time_samples *samples = &page->data->samples;
    const struct page_data *before = page->data->before;
    if (samples->profile->events == 0) return;
    fputs(",\n\"sample_states\":[", page->out);
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++)
        fprintf(page->out, "%s\"%s\"", state > 0 ? "," : "", time_sample_titles[state]);
    fprintf(page->out, "],\n\"sampled_cpu\":%s,\"sampled_each_ns\":%" PRIu64, samples->cpu ? "true" : "false",
            samples->period_ns);
    print_nodes(page, samples, "sampled", false);
    if (before != NULL) print_nodes(page, &before->samples, "before_sampled", true);
}
