/* page_data.c - see page_data.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "analysis/page_data.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "fxt/read_files.h"

/* --- rows ----------------------------------------------------------------------------------- */

enum { OVERFLOW_ROW = 0 }; /* its key is all zeros, which no event has */

/* Starts a row that stands for itself and has no events yet. */
static void
begin_row(struct page_row *row)
{
    row->places = 1;
    row->first_ns = INT64_MAX;
    row->last_ns = INT64_MIN;
}

static void
add_to_row(struct page_row *row, uint64_t count, int64_t first_ns, int64_t last_ns)
{
    row->count += count;
    if (first_ns < row->first_ns) row->first_ns = first_ns;
    if (last_ns > row->last_ns) row->last_ns = last_ns;
}

static void
add_lost(struct page_row *row, uint64_t lost_ns, uint64_t max_ns)
{
    row->lost_ns += lost_ns;
    if (max_ns > row->lost_max_ns) row->lost_max_ns = max_ns;
}

/* --- events ----------------------------------------------------------------------------------- */

static void
add_exit(struct page_data *data, const struct fxt_event *event)
{
    struct page_row exits = {.category = event->category.id, .reason = event_reason(data->pool, event)};
    uint64_t weight = 1, lost_ns = 0;
    for (unsigned i = 0; i < event->arg_count; i++) {
        const struct fxt_arg *arg = &event->args[i];
        if (arg->name.id == STRING_WEIGHT) fxt_arg_uint(arg, &weight);
        if (arg->name.id == STRING_LOST_NS) data->timed |= fxt_arg_uint(arg, &lost_ns);
        if (arg->type != FXT_ARG_STRING) continue;
        switch (arg->name.id) {
          case STRING_FRAME_0: exits.frame = pool_id(data->pool, arg->string); break;
          case STRING_INSN: exits.insn = pool_id(data->pool, arg->string); break;
          case STRING_OUTCOME: exits.outcome = pool_id(data->pool, arg->string); break;
        }
    }
    struct page_row *row = row_table_get(&data->gathered, &exits.category);
    if (row == NULL) row = row_table_at(&data->gathered, OVERFLOW_ROW);
    else if (row->places == 0) begin_row(row);
    add_to_row(row, weight, event->ts_ns, event->ts_ns);
    uint32_t number = (uint32_t)(row - (struct page_row *)data->gathered.rows);
    time_histogram_add(&data->exits_over_time, number, event->ts_ns, weight);
    if (lost_ns > 0) {
        uint64_t weighted_ns;
        if (__builtin_mul_overflow(lost_ns, weight, &weighted_ns)) weighted_ns = lost_ns;
        add_lost(row, weighted_ns, lost_ns);
        time_histogram_add(&data->lost_over_time, number, event->ts_ns, weighted_ns);
    }
    *(exits.category == STRING_FALLBACK ? &data->fallbacks : &data->exits) += weight;
    data->recorded++;
    profile_event(&data->profile, event);
}

static void
add_loss(struct page_data *data, const struct fxt_event *event)
{
    uint32_t id = event_text(data->pool, event, STRING_REASON);
    unsigned i = 0;
    while (i < data->loss_count && data->losses[i].reason != id) i++;
    if (i == PAGE_LOSSES_MAX) i--; /* with too many reasons, the last row collects the rest */
    if (i == data->loss_count) data->losses[data->loss_count++] = (struct page_loss){.reason = id};
    data->losses[i].events += event_uint(event, STRING_LOST, 0);
}

static void
add_trace_event(struct page_data *data, const struct fxt_event *event)
{
    switch (event->name.id) {
      case STRING_SETTINGS:
        data->has_settings = true;
        data->summarized = false;
        for (unsigned i = 0; i < event->arg_count && data->setting_count < PAGE_SETTINGS_MAX; i++) {
            const struct fxt_arg *arg = &event->args[i];
            data->settings[data->setting_count++] =
                (struct page_setting){pool_id(data->pool, arg->name), arg_text(data->pool, arg)};
        }
        break;
      case STRING_LOSS: add_loss(data, event); break;
      case STRING_SUMMARY:
        data->summarized = true;
        data->lost += event_uint(event, STRING_LOST, 0);
        data->exact_exits += event_uint(event, STRING_EXITS, 0);
        break;
    }
}

/* iseq: the compiled ISEQ; STRING_NONE: other work of the compiler. */
static void
add_duration(struct page_data *data, uint32_t category, bool outermost, uint32_t iseq, int64_t begin_ns, int64_t end_ns)
{
    if (category == STRING_COMPILE && outermost) {
        if (iseq != STRING_NONE) {
            data->compiles++;
            data->compile_ns += (uint64_t)(end_ns - begin_ns);
        }
        time_histogram_add_duration(&data->compiling, 0, begin_ns, end_ns);
    }
    else if (category == STRING_INVALIDATION && outermost) { /* invalidations of single versions are within it */
        data->invalidations++;
        time_histogram_add(&data->compiling, 1, begin_ns, 1);
    }
}

static void
on_pair(void *context, const struct duration_edge *begin, const struct duration_edge *end)
{
    if (begin == NULL || end == NULL) return;
    add_duration(context, begin->category, begin->outermost, end->iseq, begin->ts_ns, end->ts_ns);
}

static void
note_time(struct page_data *data, int64_t from_ns, int64_t to_ns)
{
    if (from_ns < data->first_ns) data->first_ns = from_ns;
    if (to_ns > data->last_ns) data->last_ns = to_ns;
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct page_data *data = context;
    data->events++;
    note_time(data, event->ts_ns, event->type == FXT_EVENT_DURATION_COMPLETE ? event->end_ns : event->ts_ns);
    thread_tracks_event(&data->over_time.tracks, event);
    data->timed |= page_execution_event(&data->execution, data->pool, event);
    version_history_event(&data->history, data->pool, 0, event);
    if (event->category.id == STRING_EXECUTION) return; /* its track is that of no thread */
    uint32_t runs = event_text(data->pool, event, STRING_THREAD);
    struct thread *thread = runs != STRING_NONE ? threads_running(&data->threads, event->pid, runs)
                                                : threads_get(&data->threads, event->pid, event->tid);
    if (thread != NULL) thread->events++;

    switch (event->type) {
      case FXT_EVENT_DURATION_COMPLETE: {
        struct duration_edge edge = duration_edge_of(data->pool, event);
        add_duration(data, edge.category, true, edge.iseq, event->ts_ns, event->end_ns);
        return;
      }
      case FXT_EVENT_INSTANT: break;
      default: return;
    }
    switch (event->category.id) {
      case STRING_SIDE_EXIT:
      case STRING_RECOMPILE_EXIT:
      case STRING_FALLBACK: add_exit(data, event); break;
      case STRING_TRACE: add_trace_event(data, event); break;
    }
}

static void
on_object(void *context, const struct fxt_object *object)
{
    struct page_data *data = context;
    threads_name(&data->threads, data->pool, object);
    thread_tracks_object(&data->over_time.tracks, object);
}

static void
on_sched(void *context, const struct fxt_sched *sched)
{
    struct page_data *data = context;
    if (thread_tracks_sched(&data->over_time.tracks, sched) != NO_TRACK) note_time(data, sched->ts_ns, sched->ts_ns);
}

static void
on_chunk(void *context, uint32_t id, struct fxt_string name, uint64_t offset)
{
    struct page_data *data = context;
    (void)id;
    (void)name;
    thread_tracks_chunk(&data->over_time.tracks, offset);
}

/* --- all ------------------------------------------------------------------------------------------ */

void
page_data_init(struct page_data *data, size_t memory_bytes)
{
    *data = (struct page_data){.reader = reader_new(memory_bytes), .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    data->pool = reader_pool(data->reader);
    profile_init(&data->profile, data->reader, PROFILE_EXITS, true);
    page_threads_init(&data->over_time, data->pool, data, on_pair);
    page_execution_init(&data->execution);
    row_table_init(&data->gathered, sizeof(struct page_row), PAGE_ROW_KEYS, PAGE_ROWS_MAX);
    struct page_row *overflow = row_table_get(&data->gathered, (const uint32_t[PAGE_ROW_KEYS]){0});
    begin_row(overflow);
    overflow->places = 0;
}

void
page_data_free(struct page_data *data)
{
    profile_free(&data->profile);
    threads_free(&data->threads);
    page_threads_free(&data->over_time);
    time_histogram_free(&data->exits_over_time);
    time_histogram_free(&data->lost_over_time);
    time_histogram_free(&data->compiling);
    page_execution_free(&data->execution);
    version_history_free(&data->history);
    row_table_free(&data->gathered);
    free(data->rows);
    reader_free(data->reader);
}

enum status
page_data_read(struct page_data *data, const char *file, uint64_t max_faults)
{
    struct fault_report faults = fault_report_new(file, max_faults);
    struct fxt_visitor visitor = {
        .context = data, .event = on_event, .object = on_object, .sched = on_sched, .chunk = on_chunk};
    enum status status = STATUS_CANNOT_READ;
    thread_tracks_file_begin(&data->over_time.tracks);
    if (read_file(data->reader, file, &visitor, &faults)) status = fault_report_finish(&faults);
    thread_tracks_file_end(&data->over_time.tracks);
    version_history_file_end(&data->history);
    return status;
}

struct ranked {
    uint32_t row;
    uint64_t lost_ns, count;
};

static int
by_cost(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->lost_ns != b->lost_ns) return a->lost_ns > b->lost_ns ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row); /* the row that was seen first comes first */
}

static int
by_row_and_bin(const void *left, const void *right)
{
    const struct histogram_cell *a = left, *b = right;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return (a->bin > b->bin) - (a->bin < b->bin);
}

static void
move_to_rows(struct time_histogram *histogram, const uint32_t *moved_to)
{
    for (uint32_t i = 0; i < histogram->count; i++) histogram->cells[i].row = moved_to[histogram->cells[i].row];
    if (histogram->count > 0) qsort(histogram->cells, histogram->count, sizeof *histogram->cells, by_row_and_bin);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < histogram->count; i++) {
        struct histogram_cell *last = kept > 0 ? &histogram->cells[kept - 1] : NULL;
        if (last != NULL && last->row == histogram->cells[i].row && last->bin == histogram->cells[i].bin)
            last->count += histogram->cells[i].count;
        else histogram->cells[kept++] = histogram->cells[i];
    }
    histogram->count = kept;
}

/* The row of data->rows that sums up those of one reason. */
struct reason_sum {
    uint32_t category, reason; /* the key */
    uint32_t row;              /* its number + 1; 0: not yet added */
};

static uint32_t
add_row(struct page_data *data, const struct page_row *row)
{
    data->rows[data->row_count] = *row;
    return data->row_count++;
}

/* Returns the row that sums up those of a reason; with too many reasons, the one for all others. */
static uint32_t
sum_row(struct page_data *data, struct row_table *sums, uint32_t *others, const struct page_row *row)
{
    const uint32_t key[2] = {row->category, row->reason};
    struct page_row sum = {.category = row->category, .reason = row->reason};
    struct reason_sum *reason = row_table_get(sums, key);
    uint32_t *number = reason != NULL ? &reason->row : others;
    if (reason == NULL) sum.category = sum.reason = STRING_NONE;
    begin_row(&sum);
    sum.places = 0;
    if (*number == 0) *number = add_row(data, &sum) + 1;
    return *number - 1;
}

/* The row with the most exits that may be those of a site. */
struct row_of_site {
    uint32_t key[PAGE_SITE_KEYS];
    uint32_t row;
    uint64_t count;
};

static struct row_table
rows_by_site(const struct page_data *data)
{
    struct row_table matches;
    row_table_init(&matches, sizeof(struct row_of_site), PAGE_SITE_KEYS, PAGE_ROWS_MAX);
    for (uint32_t i = 0; i < data->gathered.count; i++) {
        const struct page_row *row = row_table_at(&data->gathered, i);
        if (i == OVERFLOW_ROW) continue;
        const uint32_t key[PAGE_SITE_KEYS] = {row->category, row->reason, row->insn,
                                              page_path_and_line(data->pool, row->frame)};
        struct row_of_site *match = row_table_get(&matches, key);
        if (row->count > match->count) match->row = i, match->count = row->count;
    }
    return matches;
}

/* Where all sites are there, each row has their exact lost time. A place without a recorded exit
 * gets a row that counts none: it may have lost most. */
static void
take_lost_of_sites(struct page_data *data)
{
    data->lost_exact = data->timed && data->summarized;
    if (!data->lost_exact) return;
    struct row_table matches = rows_by_site(data);
    for (uint32_t i = 0; i < data->gathered.count; i++) {
        struct page_row *row = row_table_at(&data->gathered, i);
        row->lost_ns = 0;
    }
    for (uint32_t i = 0; i < data->execution.sites.count; i++) {
        const struct page_site *site = row_table_at(&data->execution.sites, i);
        const struct row_of_site *match = row_table_find(&matches, &site->category);
        const uint32_t key[PAGE_ROW_KEYS] = {site->category, site->reason, site->location, site->insn, 0};
        struct page_row *row = match != NULL ? row_table_at(&data->gathered, match->row)
                                             : row_table_get(&data->gathered, key);
        if (row == NULL) row = row_table_at(&data->gathered, OVERFLOW_ROW);
        if (row->places == 0) row->places = 1, row->first_ns = row->last_ns = data->last_ns;
        add_lost(row, site->lost_ns, site->lost_max_ns);
    }
    row_table_free(&matches);
}

/* Sums up the rows that are not shown, by reason; with too many reasons, the rest in one row. */
void
page_data_finish(struct page_data *data)
{
    take_lost_of_sites(data);
    uint32_t count = data->gathered.count;
    struct ranked *order = xrealloc(NULL, count, sizeof *order);
    for (uint32_t i = 0; i < count; i++) {
        const struct page_row *row = row_table_at(&data->gathered, i);
        order[i] = (struct ranked){i, row->lost_ns, row->count};
    }
    qsort(order, count, sizeof *order, by_cost);

    uint32_t *moved_to = xcalloc(count, sizeof *moved_to); /* cells of rows that are not kept have no counts */
    data->rows = xcalloc(count, sizeof *data->rows);
    struct row_table sums;
    row_table_init(&sums, sizeof(struct reason_sum), 2, PAGE_ROWS_SHOWN);
    uint32_t others = 0;
    for (uint32_t i = 0; i < count && (order[i].count > 0 || order[i].lost_ns > 0); i++) {
        uint32_t from = order[i].row;
        const struct page_row *row = row_table_at(&data->gathered, from);
        if (i < PAGE_ROWS_SHOWN && from != OVERFLOW_ROW) {
            moved_to[from] = add_row(data, row);
            continue;
        }
        uint32_t to = sum_row(data, &sums, &others, row);
        add_to_row(&data->rows[to], row->count, row->first_ns, row->last_ns);
        add_lost(&data->rows[to], row->lost_ns, row->lost_max_ns);
        data->rows[to].places += row->places;
        moved_to[from] = to;
    }
    move_to_rows(&data->exits_over_time, moved_to);
    move_to_rows(&data->lost_over_time, moved_to);
    page_execution_finish(&data->execution, data->pool);
    version_history_sort(&data->history);
    page_threads_finish(&data->over_time);
    const uint32_t same[] = {0, 1};
    move_to_rows(&data->compiling, same);
    row_table_free(&sums);
    free(moved_to);
    free(order);
}

void
page_data_annotate(struct page_data *data, struct annotation *annotation)
{
    annotation_begin(annotation, data->timed);
    for (uint32_t i = 0; i < data->gathered.count; i++) {
        const struct page_row *row = row_table_at(&data->gathered, i);
        const struct annotated_exits exits = {
            .category = row->category, .reason = row->reason, .location = row->frame, .insn = row->insn,
            .callee = STRING_NONE, .count = row->count, .lost_ns = row->lost_ns,
        };
        if (i != OVERFLOW_ROW) annotation_add(annotation, data->pool, &exits);
    }
    annotation_finish(annotation, data->pool);
}
