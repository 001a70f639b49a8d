/*
 * Interned texts. See strings.h.
 */
#include "vm_trace/base/strings.h"
#include "vm_trace/schema/fxt.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

uint32_t
rb_vm_trace_text_hash(const char *text, size_t bytes)
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
rb_vm_trace_text_cut(char *text, size_t bytes, size_t room)
{
    if (bytes <= room) return bytes;
    char note[48];
    size_t keep = rb_vm_trace_text_fit(text, bytes, room - sizeof(note));
    int n = snprintf(note, sizeof(note), "...[%zu bytes cut]", bytes - keep);
    memcpy(text + keep, note, (size_t)n);
    return keep + (size_t)n;
}

size_t
rb_vm_trace_string_cut(char *text, size_t bytes)
{
    return rb_vm_trace_text_cut(text, bytes, FXT_MAX_STRING_BYTES);
}

/* Bytes of the UTF-8 character that `text` begins with; 0: it begins with none. */
static size_t
character_bytes(const unsigned char *text, size_t bytes)
{
    if (text[0] < 0x80) return 1;
    size_t size = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : 2;
    if (text[0] < 0xC2 || text[0] > 0xF4 || size > bytes) return 0;
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xC0) != 0x80) return 0;
    }
    if (text[0] == 0xE0 && text[1] < 0xA0) return 0; /* longer than need be */
    if (text[0] == 0xED && text[1] > 0x9F) return 0; /* a surrogate */
    if (text[0] == 0xF0 && text[1] < 0x90) return 0;
    if (text[0] == 0xF4 && text[1] > 0x8F) return 0; /* past U+10FFFF */
    return size;
}

/* Bytes at the start of a text that are UTF-8. */
static size_t
utf8_bytes(const char *text, size_t bytes)
{
    size_t at = 0, size;
    while (at < bytes && (size = character_bytes((const unsigned char *)text + at, bytes - at)) > 0) at += size;
    return at;
}

/* A copy with \xHH for what is no UTF-8; NULL: no memory. */
static char *
escape(const char *text, size_t bytes, size_t *bytes_out)
{
    char *copy = malloc(bytes * 4), *to = copy;
    if (!copy) return NULL;
    for (size_t at = 0; at < bytes; ) {
        size_t good = utf8_bytes(text + at, bytes - at);
        memcpy(to, text + at, good);
        to += good;
        at += good;
        if (at < bytes) {
            static const char digits[] = "0123456789ABCDEF";
            unsigned char byte = (unsigned char)text[at++];
            *to++ = '\\';
            *to++ = 'x';
            *to++ = digits[byte >> 4];
            *to++ = digits[byte & 15];
        }
    }
    *bytes_out = (size_t)(to - copy);
    return copy;
}

const char *
rb_vm_trace_text_clean(const char *text, size_t *bytes, char **copy_out)
{
    *copy_out = NULL;
    size_t good = utf8_bytes(text, *bytes);
    if (good == *bytes && good <= FXT_MAX_STRING_BYTES) return text;

    char *copy;
    if (good < *bytes) copy = escape(text, *bytes, bytes);
    else if ((copy = malloc(*bytes)) != NULL) memcpy(copy, text, *bytes);
    if (!copy) {
        *bytes = rb_vm_trace_text_fit(text, good, FXT_MAX_STRING_BYTES);
        return text;
    }
    *bytes = rb_vm_trace_string_cut(copy, *bytes);
    return *copy_out = copy;
}

char *
rb_vm_trace_text_whole(vm_trace_text_maker *make, const void *what, char *buffer, size_t capacity, size_t *bytes_out)
{
    char *text = buffer;
    size_t bytes = make(what, buffer, capacity);
    if (bytes > capacity) {
        size_t all = bytes;
        text = malloc(all);
        if (text) bytes = make(what, text, all);
        else text = buffer;
        bytes = rb_vm_trace_text_cut(text, bytes, text == buffer ? capacity : all);
    }
    *bytes_out = bytes;
    char *copy;
    rb_vm_trace_text_clean(text, bytes_out, &copy);
    if (!copy) return text;
    if (text != buffer) free(text);
    return copy;
}

static struct vm_trace_string *
intern_locked(const char *text, size_t bytes)
{
    uint32_t hash = rb_vm_trace_text_hash(text, bytes);
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
    string->permanent = false;
    string->serial = ++pool.last_serial;
    string->id = pool.free_count ? pool.free_ids[--pool.free_count] : pool.next_id++;
    struct vm_trace_string **bucket = &pool.buckets[hash & (pool.bucket_count - 1)];
    string->next = *bucket;
    *bucket = string;
    pool.count++;
    return string;
}

static struct vm_trace_string *
intern(const char *text, size_t bytes, bool permanent)
{
    char *copy;
    text = rb_vm_trace_text_clean(text, &bytes, &copy);
    pthread_mutex_lock(&pool.lock);
    struct vm_trace_string *string = intern_locked(text, bytes);
    if (string && permanent) {
        /*
         * One reference is that of all who ask for it so. The others are owned by those who
         * interned the same text.
         */
        if (string->permanent) string->refs--;
        string->permanent = true;
    }
    pthread_mutex_unlock(&pool.lock);
    free(copy);
    return string;
}

struct vm_trace_string *
rb_vm_trace_string_intern(const char *text, size_t bytes)
{
    return intern(text, bytes, false);
}

struct vm_trace_string *
rb_vm_trace_string_permanent(const char *text, size_t bytes)
{
    return intern(text, bytes, true);
}

void
rb_vm_trace_string_retain(struct vm_trace_string *string)
{
    pthread_mutex_lock(&pool.lock);
    string->refs++;
    pthread_mutex_unlock(&pool.lock);
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
