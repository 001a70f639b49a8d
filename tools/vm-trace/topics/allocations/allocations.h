#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H
/* allocations.h - sampled allocations by class and by method, and what became of the objects.
 *
 *      allocations_init -> allocations_add and allocations_fate for each event, in any order
 *      -> allocations_resolve -> allocations_group -> allocations_free
 *
 * A sample represents `weight` bytes; their sum is an unbiased estimate of what was allocated, in slots and in
 * large buffers, which are samples of their own. An object survives a collection that marks it, and a buffer
 * survives with the object that owns it. A buffer without one is not followed. The fate of a sample may be in the
 * file before its allocation, because writers fill chunks side by side.
 */
#include "analysis/durations.h"
#include "base/row_table.h"

enum { ALLOCATION_SITES_MAX = 1024 * 1024, ALLOCATION_SAMPLES_MAX = 4 * 1024 * 1024 };

/* A number of samples, and the bytes that they represent. */
struct allocation_count {
    uint64_t samples;
    uint64_t bytes;
    double variance; /* of bytes: w (w - s) for each sample of size s with weight w */
};

/* Live objects: at the end of the trace, or when it was saved. Estimates, but for the samples. */
struct allocation_live {
    uint64_t samples;
    uint64_t unread;                       /* of these: what they hold by malloc is not known */
    double slot_bytes, malloc_bytes, objects; /* malloc_bytes: with those of buffers */
    double variance;                       /* of slot_bytes + malloc_bytes */
};

/* The allocations of one file at one place, or a sum of such rows, with zeros in its key. */
struct allocation_row {
    uint32_t file; /* the key */
    uint32_t class_name;
    uint32_t frame; /* the innermost one outside of Ruby's own files, or STRING_NONE */
    struct allocation_count all;
    uint64_t slot_bytes; /* of the sampled objects and buffers themselves */
    double objects;      /* estimate */
    double malloc_sum;   /* estimate of what the objects held by malloc, of those whose `freed` or `alive` says it */
    struct allocation_count buffers;          /* of `all` */
    struct allocation_count freed, alive;     /* alive: at the end of the trace */
    struct allocation_count not_followed;     /* buffers without an object */
    struct allocation_count survivors;        /* alive, or freed after it survived a collection */
    struct allocation_count once, three_times; /* survived at least so many collections */
    struct durations survived;                /* numbers of collections, of the survivors */
    struct allocation_live live; /* with what was allocated before the trace, where an event of it says so */
    struct durations ages;       /* of the same */
    uint64_t malloc_bytes, live_bytes, live_malloc_bytes, live_objects; /* rounded, of a group */
};
enum { ALLOCATION_KEYS = 3 };

struct allocations {
    struct row_table sites;   /* of struct allocation_row */
    struct row_table samples; /* of struct allocation_sample, see allocations.c */
    uint64_t uncounted;       /* samples without a row, because there are too many places */
    uint64_t unfollowed;      /* samples and fates beyond ALLOCATION_SAMPLES_MAX */
    uint64_t unended;         /* samples that count as alive, because their trace has no end */
};

struct allocation {
    uint32_t process, file;
    uint64_t sample; /* its number, unique in the process */
    uint32_t class_name, frame;
    uint64_t size_bytes, weight_bytes;
    int64_t ts_ns;
    bool untracked; /* no event says what became of it */
    bool buffer;    /* allocated by malloc: the class is not known yet */
};

void allocations_init(struct allocations *allocations);
void allocations_free(struct allocations *allocations);
void allocations_add(struct allocations *allocations, const struct allocation *allocation);
/* What became of the object of a sample. */
struct allocation_fate {
    uint32_t process;
    uint64_t sample;
    bool alive;            /* at the end; else it was freed */
    int64_t ts_ns;
    uint64_t survived;
    uint64_t malloc_bytes; /* UINT64_MAX: not known */
    uint32_t holder;       /* class of the object that owned a buffer, or STRING_NONE */
    const struct allocation *allocation; /* where the event has it, too: or NULL */
};
/* A sample that neither was added nor has its allocation here does not count. */
void allocations_fate(struct allocations *allocations, const struct allocation_fate *fate);
/* The time of the last event of a process whose program still runs, or ended abruptly, in ns: what no event says to be
 * freed was alive then. ALLOCATIONS_ENDED: of any other. */
typedef int64_t allocations_unended_ns(const void *context, uint32_t process);
#define ALLOCATIONS_ENDED INT64_MIN
/* Call it once, after the last file. */
void allocations_resolve(struct allocations *allocations, allocations_unended_ns *unended_ns, const void *context);

/* Returns rows, each the sum of those with the same keys out of `by`. Free them with
 * allocation_rows_free. sum_out: the sum of all. */
enum { ALLOCATIONS_BY_FILE = 1, ALLOCATIONS_BY_CLASS = 2, ALLOCATIONS_BY_FRAME = 4 };
struct row_table allocations_group(const struct allocations *allocations, unsigned by,
                                   struct allocation_row *sum_out);
void allocation_rows_free(struct row_table *rows);
/* Adds the counts of a row to a sum, but not its `survived`. */
void allocation_row_add(struct allocation_row *sum, const struct allocation_row *row);

/* Half of the 95 % interval of the bytes of live objects. 0: exact. */
uint64_t allocation_live_margin(const struct allocation_live *live);
/* Half of the 95 % interval of the share that a part of the samples has in the bytes. */
double allocation_margin(const struct allocation_count *part, const struct allocation_count *whole);
/* Whether the counts are no estimates: each object was recorded. */
static inline bool
allocations_exact(const struct allocation_row *row)
{
    return row->all.bytes == row->slot_bytes;
}

#endif
