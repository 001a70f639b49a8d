/* allocation_check.c - see allocation_check.h */
#include <inttypes.h>

#include "topics/allocations/allocation_check.h"
#include "fxt/known_strings.h"

struct sample {
    uint32_t process; /* the key */
    uint32_t number_low, number_high;
    bool allocated, untracked, ended, alive;
    bool described; /* its end says all that its allocation does */
    uint64_t allocated_offset, ended_offset;
};
enum { SAMPLE_KEYS = 3 };

void
allocation_check_init(struct allocation_check *check)
{
    *check = (struct allocation_check){0};
    row_table_init(&check->samples, sizeof(struct sample), SAMPLE_KEYS, ALLOCATION_CHECK_MAX);
}

void
allocation_check_free(struct allocation_check *check)
{
    row_table_free(&check->samples);
}

static struct sample *
sample_of(struct allocation_check *check, const struct fxt_event *event, uint64_t number)
{
    const uint32_t key[SAMPLE_KEYS] = {event->process, (uint32_t)number, (uint32_t)(number >> 32)};
    struct sample *sample = row_table_get(&check->samples, key);
    if (sample == NULL) check->unchecked++;
    return sample;
}

static uint64_t
number_of(const struct sample *sample)
{
    return (uint64_t)sample->number_high << 32 | sample->number_low;
}

static const char *
end_of(const struct sample *sample)
{
    return sample->alive ? "alive" : "freed";
}

static void
check_untracked(const struct sample *sample, struct reader *reader)
{
    if (!sample->allocated || !sample->untracked || !sample->ended) return;
    reader_fault(reader, FXT_FAULT_SCHEMA, sample->ended_offset,
                 "allocation %s of sample %" PRIu64 ", which was untracked (offset %" PRIu64 ")", end_of(sample),
                 number_of(sample), sample->allocated_offset);
}

void
allocation_check_sample(struct allocation_check *check, struct reader *reader, const struct fxt_event *event,
                        uint64_t number, bool untracked)
{
    struct sample *sample = sample_of(check, event, number);
    if (sample == NULL) return;
    if (sample->allocated) {
        reader_fault(reader, FXT_FAULT_SCHEMA, event->offset,
                     "a second allocation of sample %" PRIu64 "; the first is at offset %" PRIu64, number,
                     sample->allocated_offset);
        return;
    }
    sample->allocated = true;
    sample->untracked = untracked;
    sample->allocated_offset = event->offset;
    check_untracked(sample, reader);
}

void
allocation_check_fate(struct allocation_check *check, struct reader *reader, const struct fxt_event *event,
                      uint64_t number, bool described)
{
    struct sample *sample = sample_of(check, event, number);
    if (sample == NULL) return;
    sample->described = described;
    bool alive = event->name.id == STRING_ALIVE;
    if (sample->ended) {
        reader_fault(reader, FXT_FAULT_SCHEMA, event->offset,
                     "allocation %s of sample %" PRIu64 ", which is %s at offset %" PRIu64, alive ? "alive" : "freed",
                     number, end_of(sample), sample->ended_offset);
        return;
    }
    sample->ended = true;
    sample->alive = alive;
    sample->ended_offset = event->offset;
    check_untracked(sample, reader);
}

void
allocation_check_finish(const struct allocation_check *check, struct reader *reader,
                        bool (*whole)(const void *context, uint32_t process), const void *context)
{
    for (uint32_t i = 0; i < check->samples.count && check->unchecked == 0; i++) {
        const struct sample *sample = row_table_at(&check->samples, i);
        if (sample->allocated || sample->described || !whole(context, sample->process)) continue;
        reader_fault(reader, FXT_FAULT_SCHEMA, sample->ended_offset,
                     "allocation %s of sample %" PRIu64 ", which this trace does not allocate", end_of(sample),
                     number_of(sample));
    }
    if (check->unchecked == 0) return;
    reader_fault(reader, FXT_FAULT_TOO_MUCH_TO_CHECK, 0,
                 "more than %d sampled allocations: %" PRIu64 " further events are not checked", ALLOCATION_CHECK_MAX,
                 check->unchecked);
}
