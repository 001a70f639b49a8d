/* page_timeline.c - see page_timeline.h. page/threads.js describes the JSON. */
#include "page/page_timeline.h"

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
    struct json *json = &page->json;
    bool folded = mixed(segment), by = !folded && segment->waker != TIMELINE_NO_NAME;
    unsigned what = segment->state | (folded ? SEGMENT_FOLDED : 0) | (by ? SEGMENT_BY : 0);
    if (!folded && segment->name_count > 0) {
        what |= SEGMENT_NAMED | (segment->names[0].firsts > 0 ? SEGMENT_FIRST : 0);
    }
    json_unsigned(json, what);
    json_integer(json, gap_ns);
    json_integer(json, segment->to_ns - segment->from_ns);
    if (folded) {
        json_unsigned(json, segment->pieces);
        json_all_numbers(json, segment->ns, TIMELINE_STATES);
        json_unsigned(json, segment->name_count);
        for (uint32_t i = 0; i < segment->name_count; i++) {
            const struct timeline_name *name = &segment->names[i];
            json_integer(json, name_number(name->name));
            json_numbers(json, name->count, name->ns, name->longest_ns, name->firsts);
        }
    }
    else if (segment->name_count > 0) {
        json_integer(json, name_number(segment->names[0].name));
        json_unsigned(json, segment->names[0].ns);
    }
    if (!by) return;
    const struct track_thread *thread = track_thread(&page->data->over_time.tracks, segment->waker);
    json_unsigned(json, page_string(page, thread->name));
}

static void
print_segments(struct page *page, const struct timeline *timeline)
{
    json_array(&page->json);
    int64_t end_ns = page->data->first_ns;
    for (uint32_t i = 0; i < timeline->count; i++) {
        const struct timeline_segment *segment = &timeline->segments[i];
        print_segment(page, segment, segment->from_ns - end_ns);
        end_ns = segment->to_ns;
    }
    json_end(&page->json);
}

static void
print_track(struct page *page, const struct page_track *track)
{
    const struct page_threads *threads = &page->data->over_time;
    const struct track_thread *thread = track_thread(&threads->tracks, track->thread);
    const struct thread_times *times = track->times;
    struct json *json = &page->json;
    json_array(json_line(json));
    json_numbers(json, thread->process, thread->tid, page_string(page, thread->name), thread->cpu, times->others_ns,
                 times->held_ns, times->held_gc_ns, times->longest_hold_ns);
    json_integer(json, times->held_ns > 0 ? page_time(page, times->longest_hold_at_ns) : 0);
    json_unsigned(json, page_string(page, times->longest_hold_marker));
    print_segments(page, &threads->timelines[track->thread]);
    json_end(json);
}

static void
print_tracks(struct page *page, const char *key, const struct page_track_list *list)
{
    json_array(json_key(json_line(&page->json), key));
    for (uint32_t i = 0; i < list->count; i++) print_track(page, &list->shown[i]);
    json_end(&page->json);
}

void
print_page_timeline(struct page *page)
{
    const struct page_threads *threads = &page->data->over_time;
    struct json *json = &page->json;
    json_object(json_key(json_line(json), "timeline"));
    print_tracks(page, "tracks", &threads->of_threads);
    print_tracks(page, "fibers", &threads->of_fibers);
    json_key(json_line(json), "pauses");
    print_segments(page, &threads->pauses);
    json_array(json_key(json_line(json), "names"));
    for (uint32_t i = 0; i < threads->blocked.count; i++) {
        const struct page_blocked *blocked = row_table_at(&threads->blocked, i);
        json_tuple(json, page_string(page, blocked->name), page_string(page, blocked->class_name));
    }
    json_end(json);
    json_array(json_key(json_line(json), "reasons"));
    for (uint32_t i = 0; i < threads->gc.reasons.count; i++) {
        const struct gc_reason *reason = row_table_at(&threads->gc.reasons, i);
        json_tuple(json, page_string(page, reason->kind), page_string(page, reason->reason),
                   page_string(page, reason->major_by));
    }
    json_end(json);
    json_unsigned(json_key(json_line(json), "left_out"), threads->of_threads.left_out);
    json_array_of(json_key(json, "left_out_ns"), threads->of_threads.left_out_ns, TIMELINE_STATES);
    json_unsigned(json_key(json, "fibers_left_out"), threads->of_fibers.left_out);
    json_array_of(json_key(json, "fibers_left_out_ns"), threads->of_fibers.left_out_ns, TIMELINE_STATES);
    json_end(json);
}
