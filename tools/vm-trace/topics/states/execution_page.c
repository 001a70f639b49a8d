/* execution_page.c - see execution_page.h */
#include <stdlib.h>

#include "analysis/event_args.h"
#include "topics/states/execution_page.h"
#include "base/xalloc.h"

void
page_execution_init(struct page_execution *execution)
{
    execution_init(&execution->sums);
    row_table_init(&execution->tracks, sizeof(struct page_execution_track), 2, EXECUTION_THREADS_MAX);
    label_owners_init(&execution->owners);
}

void
page_execution_free(struct page_execution *execution)
{
    execution_free(&execution->sums);
    row_table_free(&execution->tracks);
    label_owners_free(&execution->owners);
    free(execution->slices);
}

/* The number of a track; with too many, the last one collects the rest. */
static uint32_t
track_of(struct page_execution *execution, uint32_t process, const struct fxt_event *event)
{
    const uint32_t key[2] = {process, event->tid};
    struct page_execution_track *track = row_table_get(&execution->tracks, key);
    if (track == NULL) return EXECUTION_THREADS_MAX - 1;
    return (uint32_t)(track - (struct page_execution_track *)execution->tracks.rows);
}

static int
longest_first(const void *left, const void *right)
{
    const struct page_slice *a = left, *b = right;
    int64_t a_ns = a->to_ns - a->from_ns, b_ns = b->to_ns - b->from_ns;
    if (a_ns != b_ns) return a_ns > b_ns ? -1 : 1;
    return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

static int
by_track_and_time(const void *left, const void *right)
{
    const struct page_slice *a = left, *b = right;
    if (a->track != b->track) return a->track < b->track ? -1 : 1;
    if (a->from_ns != b->from_ns) return a->from_ns < b->from_ns ? -1 : 1;
    return (a->to_ns < b->to_ns) - (a->to_ns > b->to_ns);
}

/* Keeps the longest ones. */
static void
keep_longest(struct page_execution *execution)
{
    if (execution->slice_count <= PAGE_SLICES_MAX) return;
    qsort(execution->slices, execution->slice_count, sizeof *execution->slices, longest_first);
    execution->left_out += execution->slice_count - PAGE_SLICES_MAX;
    execution->slice_count = PAGE_SLICES_MAX;
}

static void
add_slice(struct page_execution *execution, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    uint32_t reason = event_text(pool, event, STRING_REASON), frame = event_text(pool, event, STRING_FRAME_0);
    make_room(execution->slices, execution->slice_count, execution->slice_capacity);
    execution->slices[execution->slice_count++] = (struct page_slice){
        .from_ns = event->ts_ns,
        .to_ns = event->end_ns,
        .track = track_of(execution, process, event),
        .name = reason != STRING_NONE ? STRING_EXITED : pool_id(pool, event->name),
        .why = reason != STRING_NONE ? reason : event_text(pool, event, STRING_WHY),
        .place = frame != STRING_NONE ? frame : event_text(pool, event, STRING_ISEQ),
    };
    if (execution->slice_count == 2 * PAGE_SLICES_MAX) keep_longest(execution);
}

bool
page_execution_event(struct page_execution *execution, struct pool *pool, uint32_t process,
                     const struct fxt_event *event)
{
    if (event->category.id == STRING_EXECUTION && event->type == FXT_EVENT_DURATION_COMPLETE) {
        add_slice(execution, pool, process, event);
        return true;
    }
    if (event->category.id != STRING_TRACE || event->type != FXT_EVENT_INSTANT) return false;
    switch (event->name.id) {
      case STRING_STATES: execution_add_thread(&execution->sums, track_of(execution, process, event), event); return true;
      case STRING_INTERPRETED: execution_add_iseq(&execution->sums, pool, 0, event); break;
      case STRING_CALLS: break;
      default: return false;
    }
    label_owners_add(&execution->owners, pool, event_text(pool, event, STRING_ISEQ));
    return true;
}

static int
most_interpreted(const void *left, const void *right, void *context)
{
    const struct execution_iseq *a = left, *b = right;
    (void)context;
    if (a->interpreted_ns != b->interpreted_ns) return a->interpreted_ns > b->interpreted_ns ? -1 : 1;
    return (a->iseq > b->iseq) - (a->iseq < b->iseq);
}

/* Slices are written when their frames have ended, so their labels have no owners. */
static void
find_owners(struct page_execution *execution)
{
    for (uint32_t i = 0; i < execution->slice_count; i++)
        execution->slices[i].place = label_owners_find(&execution->owners, execution->slices[i].place);
}

void
page_execution_finish(struct page_execution *execution)
{
    keep_longest(execution);
    find_owners(execution);
    if (execution->slice_count > 0)
        qsort(execution->slices, execution->slice_count, sizeof *execution->slices, by_track_and_time);
    row_table_sort(&execution->sums.iseqs, most_interpreted, NULL);
}
