/*
 * Interned texts. See strings.h.
 */
#include "strings.h"
#include "fxt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    size_t bytes;
} words[W_COUNT] = {
    { "", 0 },
#define X(name, text) { text, sizeof(text) - 1 },
    VM_TRACE_WORDS(X)
#undef X
};

const char *
rb_vm_trace_word_text(enum vm_trace_word word, size_t *bytes_out)
{
    *bytes_out = words[word].bytes;
    return words[word].text;
}

static struct {
    pthread_mutex_t lock;
    struct vm_trace_string **buckets;
    size_t bucket_count; /* a power of two */
    size_t count;
    uint64_t last_serial;
    uint32_t next_id;
    uint32_t *free_ids;  /* ids of texts that are gone, to be used again */
    size_t free_count, free_capacity;
} pool = { PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0, 0, 0, NULL, 0, 0 };

/* FNV-1a: short texts, and only when code is compiled. */
static uint32_t
hash_text(const char *text, size_t bytes)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    }
    return hash;
}

static void
grow_buckets(void)
{
    size_t count = pool.bucket_count ? pool.bucket_count * 2 : 256;
    struct vm_trace_string **buckets = calloc(count, sizeof(*buckets));
    if (!buckets) return; /* longer chains, nothing worse */

    for (size_t i = 0; i < pool.bucket_count; i++) {
        struct vm_trace_string *string = pool.buckets[i];
        while (string) {
            struct vm_trace_string *next = string->next;
            struct vm_trace_string **bucket = &buckets[string->hash & (count - 1)];
            string->next = *bucket;
            *bucket = string;
            string = next;
        }
    }
    free(pool.buckets);
    pool.buckets = buckets;
    pool.bucket_count = count;
}

size_t
rb_vm_trace_text_fit(const char *text, size_t bytes, size_t room)
{
    if (bytes <= room) return bytes;
    while (room > 0 && ((unsigned char)text[room] & 0xC0) == 0x80) room--;
    return room;
}

size_t
rb_vm_trace_string_cut(char *text, size_t bytes)
{
    if (bytes <= FXT_MAX_STRING_BYTES) return bytes;
    char note[48];
    size_t keep = rb_vm_trace_text_fit(text, bytes, FXT_MAX_STRING_BYTES - sizeof(note));
    int n = snprintf(note, sizeof(note), "...[%zu bytes cut]", bytes - keep);
    memcpy(text + keep, note, (size_t)n);
    return keep + (size_t)n;
}

static struct vm_trace_string *
intern_locked(const char *text, size_t bytes)
{
    uint32_t hash = hash_text(text, bytes);
    if (pool.bucket_count) {
        struct vm_trace_string *found = pool.buckets[hash & (pool.bucket_count - 1)];
        for (; found; found = found->next) {
            if (found->hash == hash && found->bytes == bytes && memcmp(found->text, text, bytes) == 0) {
                found->refs++;
                return found;
            }
        }
    }
    if (pool.count >= pool.bucket_count) grow_buckets();
    if (!pool.bucket_count) return NULL;

    struct vm_trace_string *string = malloc(sizeof(*string) + bytes);
    if (!string) return NULL;
    memcpy(string->text, text, bytes);
    string->bytes = (uint32_t)bytes;
    string->hash = hash;
    string->refs = 1;
    string->serial = ++pool.last_serial;
    string->id = pool.free_count ? pool.free_ids[--pool.free_count] : pool.next_id++;
    struct vm_trace_string **bucket = &pool.buckets[hash & (pool.bucket_count - 1)];
    string->next = *bucket;
    *bucket = string;
    pool.count++;
    return string;
}

struct vm_trace_string *
rb_vm_trace_string_intern(const char *text, size_t bytes)
{
    char *cut = NULL;
    if (bytes > FXT_MAX_STRING_BYTES) {
        cut = malloc(bytes);
        if (!cut) return NULL;
        memcpy(cut, text, bytes);
        bytes = rb_vm_trace_string_cut(cut, bytes);
        text = cut;
    }
    pthread_mutex_lock(&pool.lock);
    struct vm_trace_string *string = intern_locked(text, bytes);
    pthread_mutex_unlock(&pool.lock);
    free(cut);
    return string;
}

void
rb_vm_trace_string_release(struct vm_trace_string *string)
{
    if (!string) return;
    pthread_mutex_lock(&pool.lock);
    if (--string->refs == 0) {
        struct vm_trace_string **link = &pool.buckets[string->hash & (pool.bucket_count - 1)];
        while (*link != string) link = &(*link)->next;
        *link = string->next;
        pool.count--;
        if (pool.free_count == pool.free_capacity) {
            size_t capacity = pool.free_capacity ? pool.free_capacity * 2 : 64;
            uint32_t *ids = realloc(pool.free_ids, capacity * sizeof(*ids));
            if (ids) {
                pool.free_ids = ids;
                pool.free_capacity = capacity;
            }
        }
        /* With no memory for the list the id is not used again: a slot is lost, no more. */
        if (pool.free_count < pool.free_capacity) pool.free_ids[pool.free_count++] = string->id;
        free(string);
    }
    pthread_mutex_unlock(&pool.lock);
}

size_t
rb_vm_trace_string_count(void)
{
    pthread_mutex_lock(&pool.lock);
    size_t count = pool.count;
    pthread_mutex_unlock(&pool.lock);
    return count;
}

void
rb_vm_trace_strings_before_fork(void)
{
    pthread_mutex_lock(&pool.lock);
}

void
rb_vm_trace_strings_after_fork(void)
{
    /* The thread that locked it is the one that lives on in the child, too. */
    pthread_mutex_unlock(&pool.lock);
}
