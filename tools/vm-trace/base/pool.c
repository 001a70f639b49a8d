/* pool.c - see pool.h. Bytes lie in blocks that never move, so pointers into them stay good. */
#include <stdlib.h>
#include <string.h>

#include "base/hash_index.h"
#include "base/map.h"
#include "base/pool.h"

enum { BLOCK_BYTES = 256 * 1024 };

struct entry {
    const char *ptr;
    uint32_t len;
    uint32_t hash;
};

struct block {
    struct block *next;
    size_t used;
    size_t size;
    char bytes[];
};

struct pool {
    struct budget *budget;
    struct entry *entries; /* by number; entry 0 is the empty string for STRING_NONE */
    uint32_t count;
    uint32_t capacity;
    struct hash_index index; /* of the entries from 1 on: a slot holds the number of an entry */
    struct block *blocks;
    struct map without_addresses; /* results of pool_without_addresses */
};

static uint32_t
hash_bytes(const char *ptr, size_t len)
{
    uint64_t hash = len * hash_seed.odd[0];
    uint64_t word;
    for (; len >= sizeof word; ptr += sizeof word, len -= sizeof word) {
        memcpy(&word, ptr, sizeof word);
        hash = hash_mix(hash ^ word);
    }
    word = 0;
    memcpy(&word, ptr, len);
    return (uint32_t)hash_mix(hash ^ word);
}

/* Entry 0 is not in the index, so "number + 1" in a slot is the number of the string. */
static uint64_t
hash_of(const void *pool, uint32_t number)
{
    return ((const struct pool *)pool)->entries[number + 1].hash;
}

static uint32_t *
slot_of(const struct pool *pool, const char *ptr, size_t len, uint32_t hash)
{
    uint32_t *slot = hash_index_first(&pool->index, hash);
    for (; *slot != 0; slot = hash_index_next(&pool->index, slot)) {
        const struct entry *entry = &pool->entries[*slot];
        if (entry->hash == hash && entry->len == len && memcmp(entry->ptr, ptr, len) == 0) return slot;
    }
    return slot;
}

static void
reserve_slot(struct pool *pool)
{
    uint32_t before = pool->index.slot_count;
    hash_index_reserve(&pool->index, pool->count - 1, hash_of, pool);
    budget_charge(pool->budget, (pool->index.slot_count - before) * sizeof *pool->index.slots);
}

static const char *
keep_bytes(struct pool *pool, const char *ptr, size_t len)
{
    struct block *block = pool->blocks;
    if (block == NULL || len + 1 > block->size - block->used) {
        size_t size = len + 1 > BLOCK_BYTES ? len + 1 : BLOCK_BYTES;
        budget_charge(pool->budget, sizeof *block + size);
        block = xrealloc(NULL, 1, sizeof *block + size);
        *block = (struct block){.next = pool->blocks, .size = size};
        pool->blocks = block;
    }
    char *kept = block->bytes + block->used;
    memcpy(kept, ptr, len);
    kept[len] = '\0';
    block->used += len + 1;
    return kept;
}

uint32_t
pool_find(const struct pool *pool, const char *ptr, size_t len)
{
    return *slot_of(pool, ptr, len, hash_bytes(ptr, len));
}

uint32_t
pool_intern(struct pool *pool, const char *ptr, size_t len)
{
    if (len == 0) ptr = ""; /* it may be NULL, for an empty buffer */
    uint32_t hash = hash_bytes(ptr, len);
    reserve_slot(pool);
    uint32_t *slot = slot_of(pool, ptr, len, hash);
    if (*slot != 0) return *slot;

    make_room_within(pool->budget, pool->entries, pool->count, pool->capacity);
    const char *kept = keep_bytes(pool, ptr, len);
    uint32_t id = pool->count++;
    pool->entries[id] = (struct entry){.ptr = kept, .len = (uint32_t)len, .hash = hash};
    *slot = id;
    return id;
}

struct fxt_string
pool_string(const struct pool *pool, uint32_t id)
{
    const struct entry *entry = &pool->entries[id];
    return (struct fxt_string){.ptr = entry->ptr, .len = entry->len, .id = id};
}

uint32_t
pool_size(const struct pool *pool)
{
    return pool->count;
}

uint32_t
pool_id(struct pool *pool, struct fxt_string string)
{
    return string.id != STRING_NONE ? string.id : pool_intern(pool, string.ptr, string.len);
}

static bool
is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* The length of the address at ptr in bytes; 0 if there is none. */
static size_t
address_bytes(const char *ptr, size_t len)
{
    if (len < 3 || ptr[0] != '0' || ptr[1] != 'x') return 0;
    size_t end = 2;
    while (end < len && is_hex(ptr[end])) end++;
    return end > 2 ? end : 0;
}

uint32_t
pool_without_addresses(struct pool *pool, uint32_t id)
{
    uint32_t known = map_get(&pool->without_addresses, id);
    if (known != MAP_NONE) return known;
    static const char elided[] = "0x...";
    struct fxt_string text = pool_string(pool, id);
    uint32_t without = id;
    char *copy = NULL;
    size_t len = 0;
    for (uint32_t at = 0; at < text.len;) {
        size_t bytes = address_bytes(text.ptr + at, text.len - at);
        if (bytes > 0 && copy == NULL) { /* "0x1" grows, by two thirds at most */
            copy = xrealloc(NULL, 2 * (size_t)text.len, 1);
            memcpy(copy, text.ptr, len = at);
        }
        if (bytes > 0) {
            memcpy(copy + len, elided, sizeof elided - 1);
            len += sizeof elided - 1;
            at += (uint32_t)bytes;
        }
        else {
            if (copy != NULL) copy[len++] = text.ptr[at];
            at++;
        }
    }
    if (copy != NULL) {
        without = pool_intern(pool, copy, len);
        if (without == STRING_NONE) without = id;
    }
    free(copy);
    map_set(&pool->without_addresses, id, without);
    return without;
}

struct pool *
pool_new(struct budget *budget)
{
    struct pool *pool = xcalloc(1, sizeof *pool);
    pool->budget = budget;
    pool->capacity = 1024;
    pool->entries = xcalloc(pool->capacity, sizeof *pool->entries);
    pool->entries[0] = (struct entry){.ptr = ""};
    pool->count = 1;
    /* The initial tables are not charged: the smallest budget must allow them, too. */
    enum { SLOTS = 4096 };
    budget->limit_bytes += pool->capacity * sizeof *pool->entries + SLOTS * sizeof *pool->index.slots +
                           sizeof(struct block) + BLOCK_BYTES;
    budget_take(budget, pool->capacity * sizeof *pool->entries);
    reserve_slot(pool);
    return pool;
}

void
pool_free(struct pool *pool)
{
    if (pool == NULL) return;
    for (struct block *block = pool->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    map_free(&pool->without_addresses);
    free(pool->entries);
    hash_index_free(&pool->index);
    free(pool);
}

bool
fxt_string_is(struct fxt_string string, const char *text)
{
    return string.len == strlen(text) && memcmp(string.ptr, text, string.len) == 0;
}

bool
fxt_string_starts(struct fxt_string string, const char *start)
{
    size_t len = strlen(start);
    return string.len >= len && memcmp(string.ptr, start, len) == 0;
}

bool
fxt_string_equal(struct fxt_string a, struct fxt_string b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

int
fxt_string_compare(struct fxt_string a, struct fxt_string b)
{
    uint32_t shared = a.len < b.len ? a.len : b.len;
    int order = memcmp(a.ptr, b.ptr, shared);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

int
pool_compare(const struct pool *pool, uint32_t a, uint32_t b)
{
    return fxt_string_compare(pool_string(pool, a), pool_string(pool, b));
}
