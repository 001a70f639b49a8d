/* compilations.c - see compilations.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/compilations.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"

void
compiles_init(struct compiles *compiles)
{
    *compiles = (struct compiles){0};
    group_init(&compiles->iseqs, sizeof(struct compiled_iseq), 1, COMPILES_ISEQS_MAX);
    group_init(&compiles->phases, sizeof(struct named_durations), NAMED_DURATIONS_KEYS, COMPILES_NAMES_MAX);
    group_init(&compiles->other, sizeof(struct named_durations), NAMED_DURATIONS_KEYS, COMPILES_NAMES_MAX);
}

static void
free_work(struct group *work)
{
    for (uint32_t i = 0; i < work->count; i++)
        durations_free(&((struct named_durations *)group_at(work, i))->durations);
    group_free(work);
}

void
compiles_free(struct compiles *compiles)
{
    durations_free(&compiles->whole);
    group_free(&compiles->iseqs);
    free_work(&compiles->phases);
    free_work(&compiles->other);
    free(compiles->pending);
    free(compiles->pending_of);
}

static void
add_work(struct compiles *compiles, struct group *work, uint32_t name, uint64_t ns)
{
    const uint32_t key[NAMED_DURATIONS_KEYS] = {WORD_COMPILE, name};
    struct named_durations *row = group_row(work, key);
    if (row != NULL)
        durations_add(&row->durations, ns);
    else
        compiles->untold++;
}

/* --- phases, until it is known what they are phases of --------------------------------------------- */

static void
add_phase(struct compiles *compiles, uint32_t thread, uint32_t name, uint64_t ns)
{
    if (compiles->pending_used == COMPILES_PENDING_MAX) { /* damaged, or one compilation that never ends */
        add_work(compiles, &compiles->phases, name, ns);
        return;
    }
    if (thread >= compiles->pending_of_count) {
        uint32_t count = thread * 2 + 1;
        compiles->pending_of = xrealloc(compiles->pending_of, count, sizeof *compiles->pending_of);
        memset(compiles->pending_of + compiles->pending_of_count, 0,
               (count - compiles->pending_of_count) * sizeof *compiles->pending_of);
        compiles->pending_of_count = count;
    }
    uint32_t index = compiles->free_pending;
    if (index != 0) {
        compiles->free_pending = compiles->pending[index - 1].next;
    }
    else {
        make_room(compiles->pending, compiles->pending_count, compiles->pending_capacity);
        index = ++compiles->pending_count;
    }
    compiles->pending[index - 1] = (struct pending_phase){name, compiles->pending_of[thread], ns};
    compiles->pending_of[thread] = index;
    compiles->pending_used++;
}

/* Empties a thread's list. work: where its phases count; NULL: nowhere. */
static void
settle_phases(struct compiles *compiles, uint32_t thread, struct group *work)
{
    if (thread >= compiles->pending_of_count) return;
    uint32_t next;
    for (uint32_t index = compiles->pending_of[thread]; index != 0; index = next) {
        struct pending_phase *phase = &compiles->pending[index - 1];
        if (work != NULL) add_work(compiles, work, phase->name, phase->ns);
        next = phase->next;
        phase->next = compiles->free_pending;
        compiles->free_pending = index;
        compiles->pending_used--;
    }
    compiles->pending_of[thread] = 0;
}

/* --- spans ------------------------------------------------------------------------------------------- */

static void
add_iseq(struct compiles *compiles, const struct span_edge *end, uint64_t ns)
{
    durations_add(&compiles->whole, ns);
    compiles->code_bytes += end->code_bytes;
    compiles->nothing += end->version == 0;
    struct compiled_iseq *iseq = group_row(&compiles->iseqs, &end->iseq);
    if (iseq == NULL) {
        compiles->untold++;
        return;
    }
    iseq->count++;
    iseq->total_ns += ns;
    if (ns > iseq->longest_ns) iseq->longest_ns = ns;
    iseq->code_bytes += end->code_bytes;
    iseq->nothing += end->version == 0;
}

void
compiles_span(struct compiles *compiles, const struct span_edge *begin, const struct span_edge *end, bool wanted)
{
    if (!begin->outermost) {
        if (wanted && end != NULL)
            add_phase(compiles, begin->thread, begin->name, (uint64_t)(end->ts_ns - begin->ts_ns));
        return;
    }
    bool iseq = end == NULL ||
                end->iseq != STRING_NONE; /* a compilation that a kill cut short is most likely one of an ISEQ */
    settle_phases(compiles, begin->thread, wanted && iseq ? &compiles->phases : NULL);
    if (end == NULL || !wanted) return;
    uint64_t ns = (uint64_t)(end->ts_ns - begin->ts_ns);
    if (iseq)
        add_iseq(compiles, end, ns);
    else
        add_work(compiles, &compiles->other, begin->name, ns);
}

void
compiles_single(struct compiles *compiles, const struct span_edge *edge, uint64_t ns)
{
    if (edge->iseq != STRING_NONE)
        add_iseq(compiles, edge, ns);
    else
        add_work(compiles, &compiles->other, edge->name, ns);
}

void
compiles_file_end(struct compiles *compiles)
{
    for (uint32_t thread = 0; thread < compiles->pending_of_count; thread++)
        settle_phases(compiles, thread, &compiles->phases);
}
