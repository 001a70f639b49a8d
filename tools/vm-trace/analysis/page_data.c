/* page_data.c - see page_data.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "analysis/page_data.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "fxt/read_files.h"

/* --- rows ----------------------------------------------------------------------------------- */

static bool
same_place(const struct page_row *a, const struct page_row *b)
{
    return a->category == b->category && a->reason == b->reason && a->frame == b->frame && a->insn == b->insn &&
           a->outcome == b->outcome;
}

static uint32_t
add_row(struct page_data *data, const struct page_row *place)
{
    make_room(data->rows, data->row_count, data->row_capacity);
    data->rows[data->row_count] = *place;
    return data->row_count++;
}

/* The number of the row of a place, made if need be; `overflow` when there are too many. */
static uint32_t
row_of(struct page_data *data, const struct page_row *place, uint32_t most, uint32_t overflow)
{
    uint64_t hash = mix64((uint64_t)place->frame << 32 | place->reason);
    hash = mix64(hash ^ ((uint64_t)place->insn << 32 | place->outcome)) ^ place->category;
    for (;; hash++) {
        uint32_t row = map_get(&data->row_of, hash);
        if (row != MAP_NONE && same_place(&data->rows[row], place)) return row;
        if (row != MAP_NONE) continue;
        if (data->row_count >= most) return overflow;
        map_set(&data->row_of, hash, data->row_count);
        return add_row(data, place);
    }
}

static void
add_to_row(struct page_row *row, uint64_t count, int64_t first_ns, int64_t last_ns)
{
    row->count += count;
    if (first_ns < row->first_ns) row->first_ns = first_ns;
    if (last_ns > row->last_ns) row->last_ns = last_ns;
}

/* --- events ----------------------------------------------------------------------------------- */

static void
add_exit(struct page_data *data, const struct fxt_event *event)
{
    struct page_row place = {
        .category = event->category.id, .reason = event_reason(data->pool, event), .places = 1,
        .first_ns = INT64_MAX, .last_ns = INT64_MIN,
    };
    uint64_t weight = 1;
    for (unsigned i = 0; i < event->arg_count; i++) {
        const struct fxt_arg *arg = &event->args[i];
        if (arg->name.id == WORD_WEIGHT) fxt_arg_uint(arg, &weight);
        if (arg->type != FXT_ARG_STRING) continue;
        switch (arg->name.id) {
          case WORD_FRAME_0: place.frame = pool_id(data->pool, arg->string); break;
          case WORD_INSN: place.insn = pool_id(data->pool, arg->string); break;
          case WORD_OUTCOME: place.outcome = pool_id(data->pool, arg->string); break;
        }
    }
    uint32_t row = row_of(data, &place, PAGE_ROWS_MAX, 0);
    add_to_row(&data->rows[row], weight, event->ts_ns, event->ts_ns);
    bins_add(&data->bins, row, event->ts_ns, weight);
    *(place.category == WORD_FALLBACK ? &data->fallbacks : &data->exits) += weight;
    data->recorded++;
    profile_event(&data->profile, event);
}

static void
add_loss(struct page_data *data, const struct fxt_event *event)
{
    uint32_t id = event_text(data->pool, event, WORD_REASON);
    unsigned i = 0;
    while (i < data->loss_count && data->losses[i].reason != id) i++;
    if (i == PAGE_LOSSES_MAX) i--; /* of so many reasons the last stands for the rest */
    if (i == data->loss_count) data->losses[data->loss_count++] = (struct page_loss){.reason = id};
    data->losses[i].events += event_uint(event, WORD_LOST, 0);
}

static void
add_trace_event(struct page_data *data, const struct fxt_event *event)
{
    switch (event->name.id) {
      case WORD_SETTINGS:
        data->ours = true;
        data->summarized = false;
        for (unsigned i = 0; i < event->arg_count && data->setting_count < PAGE_SETTINGS_MAX; i++) {
            const struct fxt_arg *arg = &event->args[i];
            data->settings[data->setting_count++] =
                (struct page_setting){pool_id(data->pool, arg->name), arg_text(data->pool, arg)};
        }
        break;
      case WORD_LOSS: add_loss(data, event); break;
      case WORD_SUMMARY:
        data->summarized = true;
        data->lost += event_uint(event, WORD_LOST, 0);
        data->exact_exits += event_uint(event, WORD_EXITS, 0);
        break;
    }
}

/* iseq: of a compilation, STRING_NONE where the compiler did something else. */
static void
add_duration(struct page_data *data, uint32_t category, bool outermost, uint32_t iseq, int64_t begin_ns, int64_t end_ns)
{
    if (category == WORD_COMPILE && outermost) {
        if (iseq != STRING_NONE) {
            data->compiles++;
            data->compile_ns += (uint64_t)(end_ns - begin_ns);
        }
        bins_add_span(&data->compiling, 0, begin_ns, end_ns);
    }
    else if (category == WORD_INVALIDATION && outermost) { /* what is of a version is a part of it */
        data->invalidations++;
        bins_add(&data->compiling, 1, begin_ns, 1);
    }
}

static void
on_span(void *context, const struct span_edge *begin, const struct span_edge *end)
{
    if (begin == NULL || end == NULL) return;
    add_duration(context, begin->category, begin->outermost, end->iseq, begin->ts_ns, end->ts_ns);
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct page_data *data = context;
    data->events++;
    int64_t end_ns = event->type == FXT_EVENT_DURATION_COMPLETE ? event->end_ns : event->ts_ns;
    if (event->ts_ns < data->first_ns) data->first_ns = event->ts_ns;
    if (end_ns > data->last_ns) data->last_ns = end_ns;
    uint32_t runs = event_text(data->pool, event, WORD_THREAD);
    struct thread *thread = runs != STRING_NONE ? threads_running(&data->threads, event->pid, runs)
                                                : threads_get(&data->threads, event->pid, event->tid);
    if (thread != NULL) thread->events++;

    switch (event->type) {
      case FXT_EVENT_DURATION_BEGIN:
      case FXT_EVENT_DURATION_END: spans_add(data->spans, data->pool, event); return;
      case FXT_EVENT_DURATION_COMPLETE: {
        struct span_edge edge = span_edge_of(data->pool, event);
        add_duration(data, edge.category, true, edge.iseq, event->ts_ns, event->end_ns);
        return;
      }
      case FXT_EVENT_INSTANT: break;
      default: return;
    }
    switch (event->category.id) {
      case WORD_SIDE_EXIT:
      case WORD_RECOMPILE_EXIT:
      case WORD_FALLBACK: add_exit(data, event); break;
      case WORD_TRACE: add_trace_event(data, event); break;
    }
}

static void
on_object(void *context, const struct fxt_object *object)
{
    struct page_data *data = context;
    threads_name(&data->threads, data->pool, object);
}

/* --- all ------------------------------------------------------------------------------------------ */

void
page_data_init(struct page_data *data, size_t memory_bytes)
{
    *data = (struct page_data){.reader = reader_new(memory_bytes), .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    data->pool = reader_pool(data->reader);
    profile_init(&data->profile, data->reader, PROFILE_EXITS, true);
    add_row(data, &(struct page_row){.first_ns = INT64_MAX, .last_ns = INT64_MIN});
}

void
page_data_free(struct page_data *data)
{
    profile_free(&data->profile);
    threads_free(&data->threads);
    bins_free(&data->bins);
    bins_free(&data->compiling);
    map_free(&data->row_of);
    free(data->rows);
    reader_free(data->reader);
}

enum status
page_data_read(struct page_data *data, const char *file, uint64_t max_faults)
{
    struct fault_report faults = fault_report_new(file, max_faults);
    struct span_visitor span_visitor = {.context = data, .span = on_span};
    data->spans = spans_new(&span_visitor);
    struct fxt_visitor visitor = {.context = data, .event = on_event, .object = on_object};
    enum status status = STATUS_CANNOT_READ;
    if (read_file(data->reader, file, &visitor, &faults)) {
        status = fault_report_finish(&faults);
        spans_finish(data->spans);
    }
    spans_free(data->spans);
    return status;
}

struct ranked {
    uint32_t row;
    uint64_t count;
};

static int
by_count(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row); /* that seen first comes first */
}

static int
by_row_and_bin(const void *left, const void *right)
{
    const struct bin_cell *a = left, *b = right;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return (a->bin > b->bin) - (a->bin < b->bin);
}

static void
move_to_rows(struct bins *bins, const uint32_t *moved_to)
{
    for (uint32_t i = 0; i < bins->count; i++) bins->cells[i].row = moved_to[bins->cells[i].row];
    if (bins->count > 0) qsort(bins->cells, bins->count, sizeof *bins->cells, by_row_and_bin);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < bins->count; i++) {
        struct bin_cell *last = kept > 0 ? &bins->cells[kept - 1] : NULL;
        if (last != NULL && last->row == bins->cells[i].row && last->bin == bins->cells[i].bin) last->count += bins->cells[i].count;
        else bins->cells[kept++] = bins->cells[i];
    }
    bins->count = kept;
}

/* Rows beyond those shown are summed, those of one reason in one row; of very many reasons too, all in one. */
void
page_data_finish(struct page_data *data)
{
    struct page_row *rows = data->rows;
    uint32_t count = data->row_count;
    struct ranked *order = xrealloc(NULL, count, sizeof *order);
    for (uint32_t i = 0; i < count; i++) order[i] = (struct ranked){i, rows[i].count};
    qsort(order, count, sizeof *order, by_count);

    uint32_t *moved_to = xcalloc(count, sizeof *moved_to); /* cells of rows that are not kept count nothing */
    data->rows = NULL;
    data->row_count = data->row_capacity = 0;
    map_free(&data->row_of);
    const struct page_row none = {.first_ns = INT64_MAX, .last_ns = INT64_MIN};
    for (uint32_t i = 0; i < count && order[i].count > 0; i++) {
        const struct page_row *row = &rows[order[i].row];
        if (i < PAGE_ROWS_SHOWN && order[i].row != 0) {
            moved_to[order[i].row] = add_row(data, row);
            continue;
        }
        struct page_row sum = none;
        sum.category = row->category;
        sum.reason = row->reason;
        uint32_t overflow = PAGE_ROWS_SHOWN * 2;
        uint32_t to = row_of(data, &sum, overflow, overflow);
        if (to == overflow && data->row_count == overflow) add_row(data, &none);
        add_to_row(&data->rows[to], row->count, row->first_ns, row->last_ns);
        data->rows[to].places += row->places;
        moved_to[order[i].row] = to;
    }
    move_to_rows(&data->bins, moved_to);
    const uint32_t same[] = {0, 1};
    move_to_rows(&data->compiling, same);
    free(moved_to);
    free(order);
    free(rows);
}
