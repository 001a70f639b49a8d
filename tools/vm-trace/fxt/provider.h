#ifndef PROVIDER_H
#define PROVIDER_H
/* provider.h - what one provider of a trace has defined: its strings, its threads, its clock rate.
 *
 * Introducing a provider again empties its tables.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "fxt/format.h"

enum { STRING_PAGE = 256 };

struct thread_ids {
    uint64_t pid;
    uint64_t tid;
    bool defined;
};

struct provider {
    uint32_t id;
    bool initialized;    /* an initialization record was seen */
    bool uninitialized_reported;
    uint64_t ticks_per_second;
    /* Numbers of the pool by index, in pages made when first used: a file can name very many providers. */
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

/* These return NULL or false when the budget is used up. */
struct provider *providers_introduce(struct providers *providers, uint32_t id);
/* NULL when it was never introduced. */
struct provider *providers_find(const struct providers *providers, uint32_t id);
void providers_clear(struct providers *providers);

bool provider_set_string(struct providers *providers, struct provider *provider, unsigned index, uint32_t string);
/* STRING_NONE when the index is undefined. */
uint32_t provider_string(const struct provider *provider, unsigned index);
bool provider_set_thread(struct providers *providers, struct provider *provider, unsigned index, uint64_t pid, uint64_t tid);
/* An undefined index gives process 0, thread 0, as for Perfetto. */
struct thread_ids provider_thread(const struct provider *provider, unsigned index);

#endif
