/*
 * Sampled objects that are alive. See live_samples.h.
 *
 * A writer takes a place by a compare-and-swap of its address from FREE to TAKEN, fills it, and
 * publishes it by storing the address. Only a collection of its objspace frees it, by storing FREE.
 */
#include "vm_trace/streams/allocations/live_samples.h"
#include "vm_trace/platform/platform.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FREE, TAKEN, WANTED, LOST }; /* no addresses of objects. The owner of a buffer is WANTED, or it has LOST it */

static struct {
    uintptr_t objects[LIVE_SAMPLES_MOST]; /* apart from the rest, because most of a search reads only these */
    struct vm_trace_live_sample samples[LIVE_SAMPLES_MOST];
} *table;

static size_t first_free; /* no earlier place is free, except those that are being freed */
static size_t end;        /* no place from here on was ever taken */
static bool (*slot_p)(void *objspace, uintptr_t word);

/*
 * Guards origins in the table: who copies takes a reference before a new sample in the same place gives
 * it back. A place that a collection frees keeps its origin until then, so collections take no lock.
 */
static pthread_mutex_t origins_lock = PTHREAD_MUTEX_INITIALIZER;

bool
rb_vm_trace_live_samples_init(bool (*function)(void *objspace, uintptr_t word))
{
    slot_p = function;
    if (table) return true;
    table = rb_vm_trace_platform_zeros(sizeof(*table));
    return table != NULL;
}

void
rb_vm_trace_live_origin_release(struct vm_trace_live_origin *origin)
{
    if (!origin || __atomic_sub_fetch(&origin->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    rb_vm_trace_string_release(origin->class_name);
    rb_vm_trace_string_release(origin->holder);
    for (size_t i = 0; i < VM_TRACE_KEPT_FRAMES; i++) rb_vm_trace_string_release(origin->frames[i]);
    free(origin);
}

void
rb_vm_trace_live_samples_clear(bool forked)
{
    if (forked) origins_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    for (size_t place = 0; table && place < end; place++) {
        table->objects[place] = FREE;
        if (!forked) rb_vm_trace_live_origin_release(table->samples[place].origin);
        table->samples[place].origin = NULL;
    }
    first_free = end = 0;
}

static uintptr_t
object_at(size_t place)
{
    return __atomic_load_n(&table->objects[place], __ATOMIC_ACQUIRE);
}

/* Raise or lower a bound, which other threads may change at the same time. */
static void
raise_to(size_t *bound, size_t place)
{
    size_t now = __atomic_load_n(bound, __ATOMIC_RELAXED);
    while (now < place && !__atomic_compare_exchange_n(bound, &now, place, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

static void
lower_to(size_t *bound, size_t place)
{
    size_t now = __atomic_load_n(bound, __ATOMIC_RELAXED);
    while (now > place && !__atomic_compare_exchange_n(bound, &now, place, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

size_t
rb_vm_trace_live_samples_take(void)
{
    size_t place = __atomic_load_n(&first_free, __ATOMIC_ACQUIRE);
    for (; place < LIVE_SAMPLES_MOST; place++) {
        uintptr_t none = FREE;
        if (object_at(place) == FREE && __atomic_compare_exchange_n(&table->objects[place], &none, TAKEN, false,
                                                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            break;
    }
    /* A place that is freed meanwhile lowers the bound again, or is found by the next collection. */
    raise_to(&first_free, place == LIVE_SAMPLES_MOST ? place : place + 1);
    if (place < LIVE_SAMPLES_MOST) raise_to(&end, place + 1);
    return place;
}

void
rb_vm_trace_live_samples_put(size_t place, uintptr_t object, struct vm_trace_live_sample sample)
{
    struct vm_trace_live_origin *before = table->samples[place].origin;
    bool locked = before || sample.origin;
    if (locked) pthread_mutex_lock(&origins_lock);
    /* Who copies a sample looks twice whose place it is: it was taken before any word here changes. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    table->samples[place] = sample;
    __atomic_store_n(&table->objects[place], object, __ATOMIC_RELEASE);
    if (locked) pthread_mutex_unlock(&origins_lock);
    rb_vm_trace_live_origin_release(before);
}

void
rb_vm_trace_live_samples_give_back(size_t place)
{
    __atomic_store_n(&table->objects[place], FREE, __ATOMIC_RELEASE);
    lower_to(&first_free, place);
}

void
rb_vm_trace_live_samples_put_buffer(size_t place, struct vm_trace_live_sample sample)
{
    rb_vm_trace_live_samples_put(place, WANTED, sample);
}

/* What can't be read now stays what it was. */
static void
read_malloc_bytes(struct vm_trace_live_sample *sample, uintptr_t object, bool collecting)
{
    uint64_t bytes = rb_vm_trace_host_malloc_bytes(object, LIVE_SAMPLES_BUFFER, collecting);
    if (bytes != HOST_BYTES_UNKNOWN) __atomic_store_n(&sample->malloc_bytes, bytes, __ATOMIC_RELAXED);
}

/* Whether a word is the address of an object, of the class that is named then, that has the buffer. */
static bool
owner_p(const struct vm_trace_live_sample *sample, struct vm_trace_live_origin *origin, uintptr_t word,
        uintptr_t *owner_out)
{
    if (!slot_p(sample->objspace, word)) return false;
    *owner_out = rb_vm_trace_host_buffer_owner(word, origin->buffer, origin->buffer_bytes);
    if (!*owner_out) return false;
    char name[256];
    size_t bytes = rb_vm_trace_host_class_name(word, name, sizeof(name));
    struct vm_trace_string *holder = rb_vm_trace_string_intern(name, bytes < sizeof(name) ? bytes : sizeof(name));
    __atomic_store_n(&origin->holder, holder, __ATOMIC_RELEASE);
    return true;
}

/* 0: there is none. */
static uintptr_t
find_owner(const struct vm_trace_live_sample *sample, struct vm_trace_live_origin *origin)
{
    uintptr_t owner = 0;
    for (size_t i = 0; i < origin->word_count; i++) {
        if (owner_p(sample, origin, origin->words[i], &owner)) return owner;
        if (owner_p(sample, origin, origin->words[i] - rb_vm_trace_host_table_offset(), &owner)) return owner;
    }
    return 0;
}

/* The object whose fate is that of the sample at a place, after a look at it; LOST. */
static uintptr_t
look_at(size_t place, bool collecting)
{
    struct vm_trace_live_sample *sample = &table->samples[place];
    struct vm_trace_live_origin *origin = sample->origin;
    uintptr_t object = object_at(place), owner;
    if (object == LOST) return LOST;
    if (!origin || !origin->buffer) {
        read_malloc_bytes(sample, object, collecting);
        return object;
    }
    if (object == WANTED) owner = find_owner(sample, origin);
    else owner = rb_vm_trace_host_buffer_owner(object, origin->buffer, origin->buffer_bytes);
    if (!owner || !slot_p(sample->objspace, owner)) owner = LOST;
    __atomic_store_n(&table->objects[place], owner, __ATOMIC_RELEASE);
    return owner;
}

void
rb_vm_trace_live_samples_measure(void)
{
    for (size_t place = 0; table && place < end; place++) {
        uintptr_t object = object_at(place);
        if (object != FREE && object != TAKEN) look_at(place, false);
    }
}

void
rb_vm_trace_live_samples_marked(void *objspace, bool (*alive)(void *objspace, uintptr_t object),
                                void (*freed)(void *data, const struct vm_trace_live_sample *sample), void *data)
{
    size_t count = table ? __atomic_load_n(&end, __ATOMIC_ACQUIRE) : 0, lowest = LIVE_SAMPLES_MOST;
    for (size_t place = 0; place < count; place++) {
        uintptr_t object = object_at(place);
        if (object == FREE && lowest > place) lowest = place;
        if (object == FREE || object == TAKEN) continue;
        struct vm_trace_live_sample *sample = &table->samples[place];
        if (__atomic_load_n(&sample->objspace, __ATOMIC_RELAXED) != objspace) continue;
        object = look_at(place, true);
        if (object != LOST && alive(objspace, object)) {
            __atomic_store_n(&sample->survived, sample->survived + 1, __ATOMIC_RELAXED);
            continue;
        }
        freed(data, sample); /* before the place is free: a new sample gives its origin back */
        __atomic_store_n(&table->objects[place], FREE, __ATOMIC_RELEASE);
        if (lowest > place) lowest = place;
    }
    lower_to(&first_free, lowest < count ? lowest : count);
}

void
rb_vm_trace_live_samples_absorbed(void *to, const void *from)
{
    size_t count = table ? __atomic_load_n(&end, __ATOMIC_ACQUIRE) : 0;
    for (size_t place = 0; place < count; place++) {
        uintptr_t object = object_at(place);
        struct vm_trace_live_sample *sample = &table->samples[place];
        if (object == FREE || object == TAKEN || __atomic_load_n(&sample->objspace, __ATOMIC_RELAXED) != from) continue;
        __atomic_store_n(&sample->objspace, to, __ATOMIC_RELAXED);
    }
}

void
rb_vm_trace_live_samples_moved(uintptr_t (*moved_to)(uintptr_t object))
{
    for (size_t place = 0; table && place < end; place++) {
        uintptr_t object = table->objects[place];
        if (object > LOST) table->objects[place] = moved_to(object);
    }
}

size_t
rb_vm_trace_live_samples_copy(struct vm_trace_live_sample *to, uint32_t epoch)
{
    size_t count = table ? __atomic_load_n(&end, __ATOMIC_ACQUIRE) : 0, copied = 0;
    pthread_mutex_lock(&origins_lock);
    for (size_t place = 0; place < count; place++) {
        uintptr_t object = object_at(place);
        if (object == FREE || object == TAKEN) continue;
        struct vm_trace_live_sample *from = &table->samples[place], *copy = &to[copied];
        copy->objspace = __atomic_load_n(&from->objspace, __ATOMIC_RELAXED);
        copy->sample = from->sample;
        copy->survived = __atomic_load_n(&from->survived, __ATOMIC_RELAXED);
        copy->malloc_bytes = __atomic_load_n(&from->malloc_bytes, __ATOMIC_RELAXED);
        copy->epoch = from->epoch;
        copy->origin = from->origin;
        copy->ownerless = object <= LOST;
        /*
         * Numbers are unique: the same number before and after the copy means that it is of one
         * sample.
         */
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (object_at(place) != object || from->sample != copy->sample) continue;
        if (copy->epoch != epoch && (!copy->origin || !copy->origin->class_name || copy->ownerless)) continue;
        if (copy->origin) __atomic_add_fetch(&copy->origin->refs, 1, __ATOMIC_RELAXED);
        copied++;
    }
    pthread_mutex_unlock(&origins_lock);
    return copied;
}
