/* page_calls.c - see page_calls.h. page/calls.js describes the format. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "page/packed_numbers.h"
#include "page/page_calls.h"

/* --- sums ---------------------------------------------------------------------------------------- */

static int
by_own_time(const void *left, const void *right, void *context)
{
    const struct call_row *a = left, *b = right;
    uint64_t a_own_ns = call_own_ns(a->totals.own_ns), b_own_ns = call_own_ns(b->totals.own_ns);
    (void)context;
    if (a_own_ns != b_own_ns) return a_own_ns > b_own_ns ? -1 : 1;
    if (a->totals.total_ns != b->totals.total_ns) return a->totals.total_ns > b->totals.total_ns ? -1 : 1;
    return (a->name > b->name) - (a->name < b->name);
}

static void
print_method(struct page *page, uint32_t number, uint32_t name, const struct call_totals *totals)
{
    page->method_of[name] = number + 1;
    json_tuple(number > 0 ? json_line(&page->json) : &page->json, page_string(page, name), totals->calls,
               totals->total_ns, call_own_ns(totals->own_ns), totals->max_ns);
}

/* Slices without a row have sums of 0: there were too many rows. */
static void
print_methods(struct page *page, const struct row_table *rows)
{
    const struct call_slices *calls = &page->data->calls;
    uint32_t count = rows->count;
    json_array(json_key(json_line(&page->json), "methods"));
    for (uint32_t i = 0; i < count; i++) {
        const struct call_row *row = row_table_at(rows, i);
        print_method(page, i, row->name, &row->totals);
    }
    for (uint32_t i = 0; i < calls->count; i++) {
        const struct call_totals none = {0};
        if (page->method_of[calls->slices[i].name] == 0) print_method(page, count++, calls->slices[i].name, &none);
    }
    json_end(&page->json);
}

static void
keep_picked(struct page_data *data, struct row_table *rows)
{
    struct call_row *list = rows->rows;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        if (trace_filter_picks(&data->filter, STRING_NONE, list[i].name)) list[kept++] = list[i];
    }
    rows->count = kept;
}

void
print_page_calls(struct page *page)
{
    const struct call_slices *calls = &page->data->calls;
    struct json *json = &page->json;
    if (calls->count == 0) return;
    struct row_table rows = calls_group(&calls->sums, false);
    row_table_sort(&rows, by_own_time, NULL);
    struct call_totals all = {0};
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct call_row *row = row_table_at(&rows, i);
        call_totals_add(&all, &row->totals);
    }
    keep_picked(page->data, &rows);
    uint32_t extras = 0;
    for (uint32_t i = 0; i < calls->count; i++) extras += calls->slices[i].extra != NO_CALL_EXTRA;
    json_object(json_key(json_line(json), "calls"));
    json_counts(json, {"recorded", all.calls}, {"slices", calls->count}, {"extras", extras},
                {"unrecorded", all.left_out}, {"misfits", calls->misfits});
    json_bool(json_key(json, "picked"), page->data->filter.picks);
    json_array(json_key(json_line(json), "tracks"));
    for (uint32_t i = 0; i < calls->tracks.count; i++) {
        const struct slice_track *track = row_table_at(&calls->tracks, i);
        const struct thread *thread = threads_get(&page->data->threads, track->process, track->tid);
        json_tuple(json, track->process, track->tid, page_string(page, thread != NULL ? thread->name : STRING_NONE),
                   track->calls);
    }
    json_end(json);
    print_methods(page, &rows);
    row_table_free(&rows);
    json_end(json);
}

/* --- slices -------------------------------------------------------------------------------------- */

void
print_page_call_slices(struct page *page)
{
    const struct call_slices *calls = &page->data->calls;
    struct packed_numbers *packed = xcalloc(1, sizeof *packed);
    packed_begin(packed, page->json.out, PACKED_ZLIB);
    int64_t begin_ns = 0;
    for (uint32_t i = 0; i < calls->count; i++) {
        const struct call_slice *slice = &calls->slices[i];
        if (i == 0 || slice->track != calls->slices[i - 1].track) begin_ns = page->data->first_ns;
        packed_number(packed, (uint64_t)slice->from_ns - (uint64_t)begin_ns);
        begin_ns = slice->from_ns;
    }
    for (uint32_t i = 0; i < calls->count; i++)
        packed_number(packed, (uint64_t)calls->slices[i].to_ns - (uint64_t)calls->slices[i].from_ns);
    for (uint32_t i = 0; i < calls->count; i++) packed_number(packed, page->method_of[calls->slices[i].name] - 1);
    uint32_t last = 0;
    for (uint32_t i = 0; i < calls->count; i++) {
        if (calls->slices[i].extra == NO_CALL_EXTRA) continue;
        const struct call_extra *extra = &calls->extras[calls->slices[i].extra];
        packed_number(packed, i - last);
        packed_number(packed, (extra->began_before ? 1 : 0) | (extra->ended_after ? 2 : 0));
        packed_number(packed, extra->left_out);
        packed_number(packed, extra->left_out_ns);
        last = i;
    }
    packed_end(packed);
    free(packed);
}
