/* page_timeline.c - see page_timeline.h. page/threads.js describes the JSON. */
#include <inttypes.h>

#include "render/page_timeline.h"

/* Bits of the first number of a segment; the lowest two are its state. */
enum { SEGMENT_FOLDED = 4, SEGMENT_NAMED = 8, SEGMENT_BY = 16, SEGMENT_FIRST = 32 };

/* The number of a name, or -1 if there is none. */
static int64_t
name_number(uint32_t name)
{
    return name >= TIMELINE_OTHER_NAMES ? -1 : (int64_t)name;
}

/* Whether the segment is not all of one state. */
static bool
mixed(const struct timeline_segment *segment)
{
    return segment->pieces > 1 || segment->ns[segment->state] != (uint64_t)(segment->to_ns - segment->from_ns);
}

static void
print_segment(struct page *page, const struct timeline_segment *segment, int64_t gap_ns)
{
    FILE *out = page->out;
    bool folded = mixed(segment), by = !folded && segment->waker != TIMELINE_NO_NAME;
    unsigned what = segment->state | (folded ? SEGMENT_FOLDED : 0) | (by ? SEGMENT_BY : 0);
    if (!folded && segment->name_count > 0) {
        what |= SEGMENT_NAMED | (segment->names[0].firsts > 0 ? SEGMENT_FIRST : 0);
    }
    fprintf(out, "%u,%" PRId64 ",%" PRId64, what, gap_ns, segment->to_ns - segment->from_ns);
    if (folded) {
        fprintf(out, ",%" PRIu32, segment->pieces);
        for (unsigned state = 0; state < TIMELINE_STATES; state++) fprintf(out, ",%" PRIu64, segment->ns[state]);
        fprintf(out, ",%" PRIu32, segment->name_count);
        for (uint32_t i = 0; i < segment->name_count; i++) {
            const struct timeline_name *name = &segment->names[i];
            fprintf(out, ",%" PRId64 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32, name_number(name->name),
                    name->count, name->ns, name->longest_ns, name->firsts);
        }
    }
    else if (segment->name_count > 0) {
        fprintf(out, ",%" PRId64 ",%" PRIu64, name_number(segment->names[0].name), segment->names[0].ns);
    }
    if (!by) return;
    const struct track_thread *thread = track_thread(&page->data->over_time.tracks, segment->waker);
    fprintf(out, ",%" PRIu32, page_string(page, thread->name));
}

static void
print_segments(struct page *page, const struct timeline *timeline)
{
    putc('[', page->out);
    int64_t end_ns = page->data->first_ns;
    for (uint32_t i = 0; i < timeline->count; i++) {
        const struct timeline_segment *segment = &timeline->segments[i];
        if (i > 0) putc(',', page->out);
        print_segment(page, segment, segment->from_ns - end_ns);
        end_ns = segment->to_ns;
    }
    putc(']', page->out);
}

static void
print_track(struct page *page, const struct page_track *track)
{
    const struct page_threads *threads = &page->data->over_time;
    const struct track_thread *thread = track_thread(&threads->tracks, track->thread);
    const struct thread_times *times = track->times;
    fprintf(page->out,
            "[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRId64
            ",%" PRIu32 ",",
            thread->process, thread->tid, page_string(page, thread->name),
            thread->cpu, times->others_ns, times->held_ns, times->held_gc_ns, times->longest_hold_ns,
            times->held_ns > 0 ? page_time(page, times->longest_hold_at_ns) : 0,
            page_string(page, times->longest_hold_marker));
    print_segments(page, &threads->timelines[track->thread]);
    putc(']', page->out);
}

void
print_page_timeline(struct page *page)
{
    const struct page_threads *threads = &page->data->over_time;
    FILE *out = page->out;
    fputs(",\n\"timeline\":{\"tracks\":[", out);
    for (uint32_t i = 0; i < threads->shown_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", out);
        print_track(page, &threads->shown[i]);
    }
    fputs("],\n\"pauses\":", out);
    print_segments(page, &threads->pauses);
    fputs(",\n\"names\":[", out);
    for (uint32_t i = 0; i < threads->blocked.count; i++) {
        const struct page_blocked *blocked = row_table_at(&threads->blocked, i);
        fprintf(out, "%s[%" PRIu32 ",%" PRIu32 "]", i > 0 ? "," : "", page_string(page, blocked->name),
                page_string(page, blocked->class_name));
    }
    fputs("],\n\"reasons\":[", out);
    for (uint32_t i = 0; i < threads->gc.reasons.count; i++) {
        const struct gc_reason *reason = row_table_at(&threads->gc.reasons, i);
        fprintf(out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", i > 0 ? "," : "", page_string(page, reason->kind),
                page_string(page, reason->reason), page_string(page, reason->major_by));
    }
    fprintf(out, "],\n\"left_out\":%" PRIu32 ",\"left_out_ns\":[", threads->left_out);
    for (unsigned state = 0; state < TIMELINE_STATES; state++)
        fprintf(out, "%s%" PRIu64, state > 0 ? "," : "", threads->left_out_ns[state]);
    fputs("]}", out);
}
