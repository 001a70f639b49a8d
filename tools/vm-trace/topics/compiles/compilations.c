/* compilations.c - see compilations.h */
#include <stdlib.h>
#include <string.h>

#include "topics/compiles/compilations.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"

void
compilations_init(struct compilations *compilations)
{
    *compilations = (struct compilations){0};
    row_table_init(&compilations->iseqs, sizeof(struct compiled_iseq), 1, COMPILATIONS_ISEQS_MAX);
    named_durations_init(&compilations->phases);
    named_durations_init(&compilations->other);
}

void
compilations_free(struct compilations *compilations)
{
    durations_free(&compilations->whole);
    row_table_free(&compilations->iseqs);
    named_durations_free(&compilations->phases);
    named_durations_free(&compilations->other);
    free(compilations->pending);
    free(compilations->pending_of);
}

static void
add_work(struct compilations *compilations, struct row_table *work, uint32_t name, uint64_t ns)
{
    compilations->uncounted += !named_durations_add(work, STRING_COMPILE, name, ns);
}

/* --- phases, until it is known what they are phases of --------------------------------------------- */

static void
add_phase(struct compilations *compilations, uint32_t thread, uint32_t name, uint64_t ns)
{
    if (compilations->pending_used == COMPILATIONS_PENDING_MAX) { /* a damaged trace, or one that never ends */
        add_work(compilations, &compilations->phases, name, ns);
        return;
    }
    if (thread >= compilations->pending_of_count) {
        uint32_t count = thread * 2 + 1;
        compilations->pending_of = xrealloc(compilations->pending_of, count, sizeof *compilations->pending_of);
        memset(compilations->pending_of + compilations->pending_of_count, 0,
               (count - compilations->pending_of_count) * sizeof *compilations->pending_of);
        compilations->pending_of_count = count;
    }
    uint32_t index = compilations->free_pending;
    if (index != 0) {
        compilations->free_pending = compilations->pending[index - 1].next;
    }
    else {
        make_room(compilations->pending, compilations->pending_count, compilations->pending_capacity);
        index = ++compilations->pending_count;
    }
    compilations->pending[index - 1] = (struct pending_phase){name, compilations->pending_of[thread], ns};
    compilations->pending_of[thread] = index;
    compilations->pending_used++;
}

/* Empties the list of a thread. work: where its phases count, or NULL. */
static void
count_phases(struct compilations *compilations, uint32_t thread, struct row_table *work)
{
    if (thread >= compilations->pending_of_count) return;
    uint32_t next;
    for (uint32_t index = compilations->pending_of[thread]; index != 0; index = next) {
        struct pending_phase *phase = &compilations->pending[index - 1];
        if (work != NULL) add_work(compilations, work, phase->name, phase->ns);
        next = phase->next;
        phase->next = compilations->free_pending;
        compilations->free_pending = index;
        compilations->pending_used--;
    }
    compilations->pending_of[thread] = 0;
}

/* --- pairs of edges ------------------------------------------------------------------------------ */

static void
add_iseq(struct compilations *compilations, const struct duration_edge *end, uint64_t ns)
{
    durations_add(&compilations->whole, ns);
    compilations->code_bytes += end->code_bytes;
    compilations->without_code += end->version == 0;
    struct compiled_iseq *iseq = row_table_get(&compilations->iseqs, &end->iseq);
    if (iseq == NULL) {
        compilations->uncounted++;
        return;
    }
    iseq->count++;
    iseq->total_ns += ns;
    if (ns > iseq->longest_ns) iseq->longest_ns = ns;
    iseq->code_bytes += end->code_bytes;
    iseq->without_code += end->version == 0;
}

void
compilations_pair(struct compilations *compilations, const struct duration_edge *begin, const struct duration_edge *end,
                  bool wanted)
{
    if (!begin->outermost) {
        if (wanted && end != NULL)
            add_phase(compilations, begin->thread, begin->name, (uint64_t)(end->ts_ns - begin->ts_ns));
        return;
    }
    bool iseq = end == NULL ||
                end->iseq != STRING_NONE; /* a compilation that a kill cut short is probably one of an ISEQ */
    count_phases(compilations, begin->thread, wanted && iseq ? &compilations->phases : NULL);
    if (end == NULL || !wanted) return;
    uint64_t ns = (uint64_t)(end->ts_ns - begin->ts_ns);
    if (iseq)
        add_iseq(compilations, end, ns);
    else
        add_work(compilations, &compilations->other, begin->name, ns);
}

void
compilations_single(struct compilations *compilations, const struct duration_edge *edge, uint64_t ns)
{
    if (edge->iseq != STRING_NONE)
        add_iseq(compilations, edge, ns);
    else
        add_work(compilations, &compilations->other, edge->name, ns);
}

void
compilations_file_end(struct compilations *compilations)
{
    for (uint32_t thread = 0; thread < compilations->pending_of_count; thread++)
        count_phases(compilations, thread, &compilations->phases);
}
