/* provider.c - see provider.h */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "fxt/provider.h"

static void
empty_tables(struct provider *provider)
{
    for (unsigned i = 0; i < FXT_STRING_INDEXES / STRING_PAGE; i++) {
        if (provider->string_pages[i] == NULL) continue;
        memset(provider->string_pages[i], 0,
               STRING_PAGE * sizeof(uint32_t)); /* keep the page: the next chunk needs it, too */
    }
    if (provider->threads != NULL) memset(provider->threads, 0, FXT_THREAD_INDEXES * sizeof *provider->threads);
}

struct provider *
providers_find(const struct providers *providers, uint32_t id)
{
    uint32_t at = map_get(&providers->by_id, id);
    return at == MAP_NONE ? NULL : providers->list[at];
}

struct provider *
providers_introduce(struct providers *providers, uint32_t id)
{
    struct provider *provider = providers_find(providers, id);
    if (provider == NULL) {
        /* 48 covers the entries of the map and the list, also after growth */
        if (!budget_take(providers->budget, sizeof *provider + 48)) return NULL;
        provider = xcalloc(1, sizeof *provider);
        provider->process = MAP_NONE;
        make_room(providers->list, providers->count, providers->capacity);
        map_set(&providers->by_id, id, providers->count);
        providers->list[providers->count++] = provider;
    }
    empty_tables(provider);
    provider->id = id;
    provider->initialized = false;
    provider->uninitialized_reported = false;
    provider->ticks_per_second = FXT_DEFAULT_TICKS_PER_SECOND;
    return provider;
}

void
providers_clear(struct providers *providers)
{
    for (uint32_t i = 0; i < providers->count; i++) {
        struct provider *provider = providers->list[i];
        for (unsigned page = 0; page < FXT_STRING_INDEXES / STRING_PAGE; page++) {
            if (provider->string_pages[page] == NULL) continue;
            budget_give_back(providers->budget, STRING_PAGE * sizeof(uint32_t));
            free(provider->string_pages[page]);
        }
        if (provider->threads != NULL) {
            budget_give_back(providers->budget, FXT_THREAD_INDEXES * sizeof *provider->threads);
            free(provider->threads);
        }
        budget_give_back(providers->budget, sizeof *provider + 48);
        free(provider);
    }
    free(providers->list);
    map_free(&providers->by_id);
    *providers = (struct providers){.budget = providers->budget};
}

bool
provider_set_string(struct providers *providers, struct provider *provider, unsigned index, uint32_t string)
{
    uint32_t **page = &provider->string_pages[index / STRING_PAGE];
    if (*page == NULL) {
        if (!budget_take(providers->budget, STRING_PAGE * sizeof **page)) return false;
        *page = xcalloc(STRING_PAGE, sizeof **page);
    }
    (*page)[index % STRING_PAGE] = string;
    return true;
}

uint32_t
provider_string(const struct provider *provider, unsigned index)
{
    const uint32_t *page = provider->string_pages[index / STRING_PAGE];
    return page == NULL ? STRING_NONE : page[index % STRING_PAGE];
}

bool
provider_set_thread(struct providers *providers, struct provider *provider, unsigned index, uint64_t pid, uint64_t tid)
{
    if (provider->threads == NULL) {
        if (!budget_take(providers->budget, FXT_THREAD_INDEXES * sizeof *provider->threads)) return false;
        provider->threads = xcalloc(FXT_THREAD_INDEXES, sizeof *provider->threads);
    }
    provider->threads[index] = (struct thread_ids){.pid = pid, .tid = tid, .defined = true};
    return true;
}

struct thread_ids
provider_thread(const struct provider *provider, unsigned index)
{
    return provider->threads == NULL ? (struct thread_ids){0} : provider->threads[index];
}
