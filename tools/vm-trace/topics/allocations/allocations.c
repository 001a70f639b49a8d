/* allocations.c - see allocations.h */
#include <math.h>

#include "topics/allocations/allocations.h"

enum fate { FATE_UNKNOWN, FATE_FREED, FATE_ALIVE };

struct allocation_sample {
    uint32_t process; /* the key */
    uint32_t number_low, number_high;
    uint32_t site; /* number of its row + 1; 0: it was not added */
    uint64_t weight_bytes;
    uint64_t survived;
    enum fate fate;
};
enum { SAMPLE_KEYS = 3 };

void
allocations_init(struct allocations *allocations)
{
    *allocations = (struct allocations){0};
    row_table_init(&allocations->sites, sizeof(struct allocation_row), ALLOCATION_KEYS, ALLOCATION_SITES_MAX);
    row_table_init(&allocations->samples, sizeof(struct allocation_sample), SAMPLE_KEYS, ALLOCATION_SAMPLES_MAX);
}

void
allocation_rows_free(struct row_table *rows)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        struct allocation_row *row = row_table_at(rows, i);
        durations_free(&row->survived);
    }
    row_table_free(rows);
}

void
allocations_free(struct allocations *allocations)
{
    allocation_rows_free(&allocations->sites);
    row_table_free(&allocations->samples);
}

static struct allocation_sample *
sample_of(struct allocations *allocations, uint32_t process, uint64_t number)
{
    const uint32_t key[SAMPLE_KEYS] = {process, (uint32_t)number, (uint32_t)(number >> 32)};
    struct allocation_sample *sample = row_table_get(&allocations->samples, key);
    if (sample == NULL) allocations->unfollowed++;
    return sample;
}

void
allocations_add(struct allocations *allocations, const struct allocation *allocation)
{
    const uint32_t key[ALLOCATION_KEYS] = {allocation->file, allocation->class_name, allocation->frame};
    struct allocation_row *site = row_table_get(&allocations->sites, key);
    if (site == NULL) {
        allocations->uncounted++;
        return;
    }
    double size = (double)allocation->size_bytes, weight = (double)allocation->weight_bytes;
    site->all.samples++;
    site->all.bytes += allocation->weight_bytes;
    site->slot_bytes += allocation->size_bytes;
    if (size > 0) site->objects += weight / size;
    if (weight > size) site->variance += weight * (weight - size);
    if (allocation->untracked) return;
    struct allocation_sample *sample = sample_of(allocations, allocation->process, allocation->sample);
    if (sample == NULL) return;
    sample->site = 1 + (uint32_t)(site - (struct allocation_row *)allocations->sites.rows);
    sample->weight_bytes = allocation->weight_bytes;
}

void
allocations_fate(struct allocations *allocations, uint32_t process, uint64_t sample_number, uint64_t survived,
                 bool alive)
{
    struct allocation_sample *sample = sample_of(allocations, process, sample_number);
    if (sample == NULL) return;
    sample->fate = alive ? FATE_ALIVE : FATE_FREED;
    sample->survived = survived;
}

static void
count(struct allocation_count *count, const struct allocation_sample *sample)
{
    count->samples++;
    count->bytes += sample->weight_bytes;
}

void
allocations_resolve(struct allocations *allocations)
{
    for (uint32_t i = 0; i < allocations->samples.count; i++) {
        const struct allocation_sample *sample = row_table_at(&allocations->samples, i);
        if (sample->site == 0 || sample->fate == FATE_UNKNOWN) continue;
        struct allocation_row *site = row_table_at(&allocations->sites, sample->site - 1);
        count(sample->fate == FATE_ALIVE ? &site->alive : &site->freed, sample);
        if (sample->survived >= 1) count(&site->once, sample);
        if (sample->survived >= 3) count(&site->three_times, sample);
        if (sample->fate != FATE_ALIVE && sample->survived == 0) continue;
        count(&site->survivors, sample);
        durations_add(&site->survived, sample->survived);
    }
    row_table_free(&allocations->samples);
}

static void
add_count(struct allocation_count *sum, const struct allocation_count *count)
{
    sum->samples += count->samples;
    sum->bytes += count->bytes;
}

void
allocation_row_add(struct allocation_row *sum, const struct allocation_row *row)
{
    add_count(&sum->all, &row->all);
    add_count(&sum->freed, &row->freed);
    add_count(&sum->alive, &row->alive);
    add_count(&sum->survivors, &row->survivors);
    add_count(&sum->once, &row->once);
    add_count(&sum->three_times, &row->three_times);
    sum->slot_bytes += row->slot_bytes;
    sum->objects += row->objects;
    sum->variance += row->variance;
}

struct row_table
allocations_group(const struct allocations *allocations, unsigned by, struct allocation_row *sum_out)
{
    struct row_table rows;
    row_table_init(&rows, sizeof(struct allocation_row), ALLOCATION_KEYS, ALLOCATION_SITES_MAX);
    *sum_out = (struct allocation_row){0};
    for (uint32_t i = 0; i < allocations->sites.count; i++) {
        const struct allocation_row *site = row_table_at(&allocations->sites, i);
        const uint32_t key[ALLOCATION_KEYS] = {
            by & ALLOCATIONS_BY_FILE ? site->file : 0,
            by & ALLOCATIONS_BY_CLASS ? site->class_name : 0,
            by & ALLOCATIONS_BY_FRAME ? site->frame : 0,
        };
        struct allocation_row *row = row_table_get(&rows, key);
        allocation_row_add(row, site);
        durations_merge(&row->survived, &site->survived);
        allocation_row_add(sum_out, site);
    }
    return rows;
}

double
allocation_margin(double share, uint64_t samples)
{
    return samples == 0 ? 0 : 1.96 * sqrt(share * (1 - share) / (double)samples);
}
