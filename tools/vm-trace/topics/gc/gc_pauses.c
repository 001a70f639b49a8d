/* gc_pauses.c - see gc_pauses.h */
#include "topics/gc/gc_pauses.h"
#include "fxt/known_strings.h"

void
gc_pauses_init(struct gc_pauses *gc, struct pool *pool)
{
    *gc = (struct gc_pauses){.no_reason = pool_intern(pool, GC_NO_REASON, sizeof GC_NO_REASON - 1)};
    row_table_init(&gc->reasons, sizeof(struct gc_reason), GC_REASON_KEYS, GC_ROWS_MAX);
    row_table_init(&gc->process_reasons, sizeof(struct gc_process_reason), GC_PROCESS_REASON_KEYS,
                   GC_PROCESS_REASONS_MAX);
    row_table_init(&gc->phases, sizeof(struct gc_phase), 1, GC_ROWS_MAX);
    row_table_init(&gc->processes, sizeof(struct gc_process), 1, GC_PROCESSES_MAX);
}

void
gc_pauses_free(struct gc_pauses *gc)
{
    for (uint32_t i = 0; i < gc->reasons.count; i++) {
        struct gc_reason *reason = row_table_at(&gc->reasons, i);
        durations_free(&reason->pauses);
    }
    for (uint32_t i = 0; i < gc->phases.count; i++) {
        struct gc_phase *phase = row_table_at(&gc->phases, i);
        durations_free(&phase->durations);
    }
    row_table_free(&gc->reasons);
    row_table_free(&gc->process_reasons);
    row_table_free(&gc->phases);
    row_table_free(&gc->processes);
}

static uint32_t
reason_row(struct gc_pauses *gc, uint32_t kind, uint32_t reason, uint32_t major_by)
{
    const uint32_t key[GC_REASON_KEYS] = {kind, reason, major_by};
    struct gc_reason *row = row_table_get(&gc->reasons, key);
    return row == NULL ? NO_GC_ROW : (uint32_t)(row - (struct gc_reason *)gc->reasons.rows);
}

/* Returns the collection that a pause goes on with, or NULL: its first pause is not in the trace. Ractors with a heap
 * of their own have numbers of their own: a thread's last collection of the number comes first, then any thread's. */
static const struct gc_recent *
goes_on_with(const struct gc_process *process, uint64_t number, const struct duration_edge *begin)
{
    const struct gc_recent *other = NULL;
    for (uint32_t i = 1; i <= GC_RECENT; i++) {
        const struct gc_recent *recent = &process->recent[(process->next - i) % GC_RECENT];
        if (!recent->known || recent->number != number || recent->kind != begin->name) continue;
        if (recent->thread == begin->row) return recent;
        if (other == NULL) other = recent;
    }
    return other;
}

static void
add_pause(struct gc_pauses *gc, uint32_t process_number, uint32_t piece, const struct duration_edge *begin,
          const struct duration_edge *end, bool wanted)
{
    struct gc_process *process = row_table_get(&gc->processes, &process_number);
    uint64_t number = begin->number != UINT64_MAX ? begin->number : end->number;
    uint32_t why = begin->reason != STRING_NONE ? begin->reason : end->reason;
    uint32_t major_by = begin->major_by != STRING_NONE ? begin->major_by : end->major_by;
    bool numbered = process != NULL && number != UINT64_MAX, first = why != STRING_NONE || major_by != STRING_NONE;
    const struct gc_recent *recent = numbered && !first ? goes_on_with(process, number, begin) : NULL;
    uint32_t row = first            ? reason_row(gc, begin->name, why, major_by)
                   : recent != NULL ? recent->row
                                    : reason_row(gc, begin->name, gc->no_reason, STRING_NONE);
    if (first && numbered) {
        process->recent[process->next++ % GC_RECENT] =
            (struct gc_recent){true, begin->name, begin->row, row, number};
    }
    gc->last_row = row;
    gc->last_first = first;
    if (!wanted) return;
    if (row == NO_GC_ROW) {
        gc->uncounted++;
        return;
    }
    struct gc_reason *reason = row_table_at(&gc->reasons, row);
    const uint32_t key[GC_PROCESS_REASON_KEYS] = {piece, reason->kind, reason->reason, reason->major_by};
    struct gc_process_reason *of_process = row_table_get(&gc->process_reasons, key);
    uint64_t ns = (uint64_t)(end->ts_ns - begin->ts_ns);
    reason->collections += first;
    durations_add(&reason->pauses, ns);
    if (of_process == NULL) return; /* so many processes are not compared */
    of_process->collections += first;
    of_process->total_ns += ns;
}

void
gc_pauses_add(struct gc_pauses *gc, uint32_t process, uint32_t piece, const struct duration_edge *begin,
              const struct duration_edge *end, bool wanted)
{
    gc->last_row = NO_GC_ROW;
    gc->last_first = false;
    if (begin->began) return;
    if (begin->outermost && (begin->name == STRING_GC_MINOR || begin->name == STRING_GC_MAJOR)) {
        add_pause(gc, process, piece, begin, end, wanted);
        return;
    }
    if (!wanted) return;
    struct gc_phase *phase = row_table_get(&gc->phases, &begin->name);
    if (phase == NULL) {
        gc->uncounted++;
        return;
    }
    durations_add(&phase->durations, (uint64_t)(end->ts_ns - begin->ts_ns));
    if (begin->name == STRING_SWEEP && end->number != UINT64_MAX) phase->freed_slots += end->number;
}
