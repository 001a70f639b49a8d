/* page_cost.c - see page_cost.h. page/cost.js describes the JSON. */
#include <stdlib.h>

#include "topics/compiles/code_text.h"
#include "topics/states/cost_text.h"
#include "page/page_cost.h"

enum { ISEQS_SHOWN = 200 };

static int
largest_first(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a < *b) - (*a > *b);
}

/* The places at which exits lost time, and how many of them lost most of it. */
static void
count_places(const struct page_data *data, struct cost *cost)
{
    uint64_t sum_ns = 0, *lost_ns = malloc((data->exits.row_count + 1) * sizeof *lost_ns);
    if (lost_ns == NULL) return;
    for (uint32_t i = 0; i < data->exits.row_count; i++) {
        const struct page_row *row = &data->exits.rows[i];
        if (row->lost_ns == 0) continue;
        lost_ns[cost->places++] = row->lost_ns;
        sum_ns += row->lost_ns;
    }
    qsort(lost_ns, cost->places, sizeof *lost_ns, largest_first);
    double rest_ns = (double)sum_ns * COST_MOST_PERCENT / 100;
    while (cost->most_places < cost->places && rest_ns > 0) rest_ns -= (double)lost_ns[cost->most_places++];
    cost->lost_ns = sum_ns;
    free(lost_ns);
}

static struct cost
cost_of(const struct page_data *data)
{
    const struct row_table *threads = &data->execution.sums.threads;
    struct cost cost = {.summed = threads->count > 0, .estimated = !data->exits.lost_exact};
    execution_sum(&data->execution.sums, cost.ns);
    count_places(data, &cost);
    if (cost.summed) cost.lost_ns = cost.ns[EXECUTION_EXITED], cost.estimated = false;
    cost.exits = data->summarized ? data->exact_exits : data->exits.exits;
    cost.span_ns = data->first_ns < data->last_ns ? (uint64_t)(data->last_ns - data->first_ns) : 0;
    return cost;
}

static void
print_sentences(struct page *page, const struct cost *cost)
{
    char sentence[COST_TEXT], advice[COST_TEXT], others[COST_TEXT];
    struct json *json = &page->json;
    json_object(json_key(json_line(json), "cost"));
    json_bool(json_key(json, "exact"), page->data->exits.lost_exact);
    json_texts(json, "sentence", cost_sentence(sentence, cost), "advice", cost_advice(advice, cost),
               "others", cost_others(others, cost));
    json_end(json);
    json_array(json_key(json_line(json), "states"));
    for (unsigned state = 0; state < EXECUTION_UNSEEN; state++) {
        if (cost->ns[state] == 0) continue;
        json_array(json);
        json_c_text(json, execution_state_names[state].meaning);
        json_numbers(json, cost->ns[state], state < EXECUTION_RUNNING_STATES);
        json_end(json);
    }
    json_end(json);
}

/* What became of its code, or else why there was none. */
static void
print_why(struct page *page, const struct execution_iseq *iseq)
{
    char text[CODE_TEXT];
    const struct page_data *data = page->data;
    bool known = *code_text(text, &data->history, data->pool, iseq, data->first_ns) != '\0';
    page_text(page, known ? text_of(text) : pool_string(data->pool, iseq->why));
}

static void
print_interpreted(struct page *page)
{
    const struct row_table *iseqs = &page->data->execution.sums.iseqs;
    struct json *json = &page->json;
    json_array(json_key(json_line(json), "interpreted"));
    for (uint32_t i = 0; i < iseqs->count && i < ISEQS_SHOWN; i++) {
        const struct execution_iseq *iseq = row_table_at(iseqs, i);
        json_array(json);
        json_unsigned(json, page_string(page, iseq->iseq));
        print_why(page, iseq);
        json_numbers(json, iseq->calls, iseq->interpreted_ns);
        json_integer(json, page_time(page, iseq->first_ns));
        json_integer(json, page_time(page, iseq->last_ns));
        json_end(json);
    }
    json_end(json);
    json_unsigned(json_key(json_line(json), "interpreted_left_out"),
                  iseqs->count > ISEQS_SHOWN ? iseqs->count - ISEQS_SHOWN : 0);
}

/* Slices of one track: name, begin, length, why, place, one after the other. */
static void
print_slices(struct page *page)
{
    struct page_data *data = page->data;
    const struct page_execution *execution = &data->execution;
    struct json *json = &page->json;
    json_unsigned(json_key(json_line(json), "slices_left_out"), execution->left_out);
    json_array(json_key(json_line(json), "slices"));
    for (uint32_t i = 0, end; i < execution->slice_count; i = end) {
        const struct page_execution_track *track = row_table_at(&execution->tracks, execution->slices[i].track);
        const struct thread *thread = threads_get(&data->threads, track->process, track->tid);
        json_array(json_line(json));
        json_numbers(json, track->process, page_string(page, thread != NULL ? thread->name : STRING_NONE));
        json_array(json);
        uint32_t number = execution->slices[i].track;
        for (end = i; end < execution->slice_count && execution->slices[end].track == number; end++) {
            const struct page_slice *slice = &execution->slices[end];
            json_unsigned(json, page_string(page, slice->name));
            json_integer(json, page_time(page, slice->from_ns));
            json_integer(json, slice->to_ns - slice->from_ns);
            json_numbers(json, page_string(page, slice->why), page_string(page, slice->place));
        }
        json_end(json);
        json_end(json);
    }
    json_end(json);
}

void
print_page_cost(struct page *page)
{
    if (!page->data->timed) return;
    struct cost cost = cost_of(page->data);
    print_sentences(page, &cost);
    print_interpreted(page);
    print_slices(page);
}
