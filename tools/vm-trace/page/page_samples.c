/* page_samples.c - see page_samples.h. page/samples.js describes the JSON. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "page/page_nodes.h"
#include "page/page_samples.h"

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
    struct json *json = &page->json;
    const struct profile *profile = samples->profile;
    uint32_t count = profile->node_count, left_out, shown = 0;
    uint64_t *totals = xcalloc(count, sizeof *totals);
    struct frame_times *times = times_of_frames(samples, totals);
    bool *chosen = page_nodes_shown(totals, count, &left_out);
    uint32_t *shown_as = xcalloc(count, sizeof *shown_as), first = page->bins.count + 1;
    page_begin_nodes(page, name, left_out);
    for (uint32_t i = 0; i < count; i++) {
        shown_as[i] = chosen[i] ? shown++ : shown_as[profile->nodes[i].parent];
        if (!chosen[i]) continue;
        json_array(json);
        json_numbers(json, shown_as[profile->nodes[i].parent], page_string(page, profile->nodes[i].text));
        json_all_numbers(json, times[i].ns, TIME_SAMPLE_STATES);
        json_unsigned(json, first + shown_as[i] * TIME_SAMPLE_STATES);
        json_end(json);
    }
    page->bins.count += shown * TIME_SAMPLE_STATES;
    json_end(json);
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
    struct json *json = &page->json;
    json_array(json_key(json_line(json), "sample_states"));
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++) json_c_text(json, time_sample_titles[state]);
    json_end(json);
    json_bool(json_key(json_line(json), "sampled_cpu"), samples->cpu);
    json_unsigned(json_key(json, "sampled_each_ns"), samples->period_ns);
    print_nodes(page, samples, "sampled", false);
    if (before != NULL) print_nodes(page, &before->samples, "before_sampled", true);
}
