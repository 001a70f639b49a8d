#ifndef PROVIDER_H
#define PROVIDER_H
/* provider.h - what a provider of a trace has defined: its strings, its threads, its clock rate.
 *
 * Introducing a provider again empties its tables.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "vm_trace/schema/fxt.h"

enum { STRING_PAGE = 256 };

struct thread_ids {
    uint64_t pid;
    uint64_t tid;
    bool defined;
};

struct provider {
    uint32_t id;
    uint32_t recording;    /* 0: no record introduced it */
    uint32_t pid, process; /* the last pid, and its number; MAP_NONE: none yet */
    bool initialized;    /* an initialization record was seen */
    bool uninitialized_reported;
    uint64_t ticks_per_second;
    /* Numbers of the pool by index, in pages that are allocated when first used: a file can
     * introduce very many providers. */
    uint32_t *string_pages[FXT_STRING_INDEXES / STRING_PAGE];
    struct thread_ids *threads; /* FXT_THREAD_INDEXES of them, or NULL */
};

struct providers {
    struct budget *budget;
    struct map by_id;
    struct provider **list;
    uint32_t count;
    uint32_t capacity;
};

/* These return NULL or false if the budget is used up. */
struct provider *providers_introduce(struct providers *providers, uint32_t id);
/* Returns NULL if the provider was never introduced. */
struct provider *providers_find(const struct providers *providers, uint32_t id);
void providers_clear(struct providers *providers);

bool provider_set_string(struct providers *providers, struct provider *provider, unsigned index, uint32_t string);
/* Returns STRING_NONE if the index is undefined. */
uint32_t provider_string(const struct provider *provider, unsigned index);
bool provider_set_thread(struct providers *providers, struct provider *provider, unsigned index, uint64_t pid,
                         uint64_t tid);
/* An undefined index means process 0, thread 0, as in Perfetto. */
struct thread_ids provider_thread(const struct provider *provider, unsigned index);

#endif
