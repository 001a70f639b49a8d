/* allocations.c - see allocations.h */
#include <math.h>

#include "base/pool.h"
#include "topics/allocations/allocations.h"

enum fate { FATE_UNKNOWN, FATE_FREED, FATE_ALIVE };

struct allocation_sample {
    uint32_t process; /* the key */
    uint32_t number_low, number_high;
    uint32_t site; /* number of its row + 1; 0: it was not added */
    uint32_t live_site; /* the same, or where its `alive` says that it was allocated */
    uint32_t size_bytes;
    uint64_t weight_bytes;
    uint64_t survived;
    uint64_t malloc_bytes; /* UINT64_MAX: not known */
    int64_t allocated_ns, fate_ns;
    uint32_t holder; /* of a buffer: the class that it counts for, or STRING_NONE */
    enum fate fate;
    bool buffer;
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
        durations_free(&row->ages);
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

/* NULL: there are too many. */
static struct allocation_row *
site_of(struct allocations *allocations, const struct allocation *allocation)
{
    const uint32_t key[ALLOCATION_KEYS] = {allocation->file, allocation->class_name, allocation->frame};
    struct allocation_row *site = row_table_get(&allocations->sites, key);
    allocations->uncounted += site == NULL;
    return site;
}

static void
describe(struct allocations *allocations, struct allocation_sample *sample, const struct allocation_row *site,
         const struct allocation *allocation)
{
    sample->live_site = 1 + row_table_number(&allocations->sites, site);
    sample->size_bytes = (uint32_t)allocation->size_bytes;
    sample->weight_bytes = allocation->weight_bytes;
    sample->allocated_ns = allocation->ts_ns;
    sample->buffer = allocation->buffer;
}

static void
count(struct allocation_count *count, uint64_t size_bytes, uint64_t weight_bytes)
{
    double size = (double)size_bytes, weight = (double)weight_bytes;
    count->samples++;
    count->bytes += weight_bytes;
    if (weight > size) count->variance += weight * (weight - size);
}

/* Adds a sample to its site. */
static void
count_allocated(struct allocation_row *site, uint64_t size_bytes, uint64_t weight_bytes, bool buffer)
{
    count(&site->all, size_bytes, weight_bytes);
    site->slot_bytes += size_bytes;
    if (buffer) count(&site->buffers, size_bytes, weight_bytes);
    else if (size_bytes > 0) site->objects += (double)weight_bytes / (double)size_bytes;
}

void
allocations_add(struct allocations *allocations, const struct allocation *allocation)
{
    struct allocation_row *site = site_of(allocations, allocation);
    if (site == NULL) return;
    struct allocation_sample *sample = NULL;
    if (!allocation->untracked) sample = sample_of(allocations, allocation->process, allocation->sample);
    if (sample != NULL) {
        describe(allocations, sample, site, allocation);
        sample->site = sample->live_site;
    }
    /* A buffer that is followed counts when its class is known. */
    if (sample == NULL || !allocation->buffer)
        count_allocated(site, allocation->size_bytes, allocation->weight_bytes, allocation->buffer);
}

void
allocations_fate(struct allocations *allocations, const struct allocation_fate *fate)
{
    struct allocation_sample *sample = sample_of(allocations, fate->process, fate->sample);
    if (sample == NULL) return;
    sample->fate = fate->alive ? FATE_ALIVE : FATE_FREED;
    sample->survived = fate->survived;
    sample->malloc_bytes = fate->malloc_bytes;
    sample->holder = fate->holder;
    sample->fate_ns = fate->ts_ns;
    if (fate->allocation == NULL || sample->live_site != 0) return;
    const struct allocation_row *site = site_of(allocations, fate->allocation);
    if (site != NULL) describe(allocations, sample, site, fate->allocation);
}

static void
count_sample(struct allocation_count *sum, const struct allocation_sample *sample)
{
    count(sum, sample->size_bytes, sample->weight_bytes);
}

/* How many objects the sample represents; 0: it does not say. */
static double
objects_of(const struct allocation_sample *sample)
{
    return sample->size_bytes > 0 ? (double)sample->weight_bytes / sample->size_bytes : 0;
}

static void
count_live(struct allocation_row *site, const struct allocation_sample *sample)
{
    struct allocation_live *live = &site->live;
    bool known = sample->buffer || sample->malloc_bytes != UINT64_MAX;
    double objects = objects_of(sample), malloc_bytes = known && !sample->buffer ? (double)sample->malloc_bytes : 0;
    double bytes = sample->size_bytes + malloc_bytes;
    if (sample->size_bytes == 0) return;
    live->samples++;
    live->unread += !known;
    if (sample->buffer) live->malloc_bytes += (double)sample->weight_bytes;
    else {
        live->slot_bytes += (double)sample->weight_bytes;
        live->malloc_bytes += malloc_bytes * objects;
        live->objects += objects;
    }
    /* An object is a sample with the probability 1 / objects. */
    if (objects > 1) live->variance += objects * (objects - 1) * bytes * bytes;
    int64_t age_ns = sample->fate_ns - sample->allocated_ns;
    durations_add(&site->ages, age_ns > 0 ? (uint64_t)age_ns : 0);
}

/* The site of the same place, for the class of the object that owned a buffer; the same site if there are too many. */
static uint32_t
site_of_holder(struct allocations *allocations, uint32_t number, uint32_t holder)
{
    const struct allocation_row *site = row_table_at(&allocations->sites, number - 1);
    const uint32_t key[ALLOCATION_KEYS] = {site->file, holder, site->frame};
    const struct allocation_row *of_holder = row_table_get(&allocations->sites, key);
    return of_holder != NULL ? 1 + row_table_number(&allocations->sites, of_holder) : number;
}

/* Counts a buffer, now that it is known which object owned it: for the class of that. */
static void
add_buffer(struct allocations *allocations, struct allocation_sample *sample)
{
    if (sample->holder != STRING_NONE && sample->live_site != 0)
        sample->live_site = site_of_holder(allocations, sample->live_site, sample->holder);
    if (sample->site == 0) return;
    if (sample->holder != STRING_NONE) sample->site = site_of_holder(allocations, sample->site, sample->holder);
    struct allocation_row *site = row_table_at(&allocations->sites, sample->site - 1);
    count_allocated(site, sample->size_bytes, sample->weight_bytes, true);
}

/* The program had no time to say what was alive. Whose a buffer was is not known. */
static void
end_sample(struct allocations *allocations, struct allocation_sample *sample, int64_t last_ns)
{
    allocations->unended++;
    sample->fate = FATE_ALIVE;
    sample->fate_ns = last_ns;
    sample->malloc_bytes = UINT64_MAX;
    sample->holder = ((struct allocation_row *)row_table_at(&allocations->sites, sample->live_site - 1))->class_name;
}

void
allocations_resolve(struct allocations *allocations, allocations_unended_ns *unended_ns, const void *context)
{
    for (uint32_t i = 0; i < allocations->samples.count; i++) {
        struct allocation_sample *sample = row_table_at(&allocations->samples, i);
        if (sample->fate == FATE_UNKNOWN && sample->live_site != 0) {
            int64_t last_ns = unended_ns(context, sample->process);
            if (last_ns != ALLOCATIONS_ENDED) end_sample(allocations, sample, last_ns);
        }
        if (sample->buffer) add_buffer(allocations, sample);
        if (sample->live_site != 0 && sample->fate == FATE_ALIVE)
            count_live(row_table_at(&allocations->sites, sample->live_site - 1), sample);
        if (sample->site == 0 || sample->fate == FATE_UNKNOWN) continue;
        struct allocation_row *site = row_table_at(&allocations->sites, sample->site - 1);
        if (sample->buffer && sample->holder == STRING_NONE) {
            count_sample(&site->not_followed, sample);
            continue;
        }
        if (sample->malloc_bytes != UINT64_MAX) site->malloc_sum += (double)sample->malloc_bytes * objects_of(sample);
        count_sample(sample->fate == FATE_ALIVE ? &site->alive : &site->freed, sample);
        if (sample->survived >= 1) count_sample(&site->once, sample);
        if (sample->survived >= 3) count_sample(&site->three_times, sample);
        if (sample->fate != FATE_ALIVE && sample->survived == 0) continue;
        count_sample(&site->survivors, sample);
        durations_add(&site->survived, sample->survived);
    }
    row_table_free(&allocations->samples);
}

static void
add_count(struct allocation_count *sum, const struct allocation_count *count)
{
    sum->samples += count->samples;
    sum->bytes += count->bytes;
    sum->variance += count->variance;
}

void
allocation_row_add(struct allocation_row *sum, const struct allocation_row *row)
{
    add_count(&sum->all, &row->all);
    add_count(&sum->buffers, &row->buffers);
    add_count(&sum->not_followed, &row->not_followed);
    add_count(&sum->freed, &row->freed);
    add_count(&sum->alive, &row->alive);
    add_count(&sum->survivors, &row->survivors);
    add_count(&sum->once, &row->once);
    add_count(&sum->three_times, &row->three_times);
    sum->slot_bytes += row->slot_bytes;
    sum->objects += row->objects;
    sum->malloc_sum += row->malloc_sum;
    sum->live.samples += row->live.samples;
    sum->live.unread += row->live.unread;
    sum->live.slot_bytes += row->live.slot_bytes;
    sum->live.malloc_bytes += row->live.malloc_bytes;
    sum->live.objects += row->live.objects;
    sum->live.variance += row->live.variance;
    /* Rounded before they are added, so that the rows of a table add up to its sum. */
    sum->malloc_bytes += row->malloc_bytes;
    sum->live_bytes += row->live_bytes;
    sum->live_malloc_bytes += row->live_malloc_bytes;
    sum->live_objects += row->live_objects;
}

struct row_table
allocations_group(const struct allocations *allocations, unsigned by, struct allocation_row *sum_out)
{
    struct row_table rows;
    row_table_init(&rows, sizeof(struct allocation_row), ALLOCATION_KEYS, ALLOCATION_SITES_MAX);
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
        durations_merge(&row->ages, &site->ages);
    }
    *sum_out = (struct allocation_row){0};
    for (uint32_t i = 0; i < rows.count; i++) {
        struct allocation_row *row = row_table_at(&rows, i);
        row->malloc_bytes = (uint64_t)(row->malloc_sum + 0.5);
        row->live_bytes = (uint64_t)(row->live.slot_bytes + row->live.malloc_bytes + 0.5);
        row->live_malloc_bytes = (uint64_t)(row->live.malloc_bytes + 0.5);
        row->live_objects = (uint64_t)(row->live.objects + 0.5);
        allocation_row_add(sum_out, row);
    }
    return rows;
}

uint64_t
allocation_live_margin(const struct allocation_live *live)
{
    return (uint64_t)(1.96 * sqrt(live->variance) + 0.5);
}

/* The parts of the whole are independent: of p = a / (a + b), (1 - p)^2 var(a) + p^2 var(b), by (a + b)^2. */
double
allocation_margin(const struct allocation_count *part, const struct allocation_count *whole)
{
    if (whole->bytes == 0) return 0;
    double bytes = (double)whole->bytes, share = (double)part->bytes / bytes;
    double others = whole->variance > part->variance ? whole->variance - part->variance : 0;
    return 1.96 * sqrt((1 - share) * (1 - share) * part->variance + share * share * others) / bytes;
}
