/*
 * Lives of compiled ISEQs, and counters. See versions.h.
 */
#include "vm_trace/streams/versions.h"
#include "vm_trace/capture/event.h"

#include <stdlib.h>

static struct {
    struct vm_trace_life **buckets;
    size_t bucket_count;  /* a power of two */
    size_t count;
    uint32_t last_number;
} lives;

static struct {
    uint64_t code_bytes, compiled, invalidated;
} counts;

static struct vm_trace_life **
bucket_of(uintptr_t unit)
{
    uint64_t hash = (uint64_t)unit * UINT64_C(0x9E3779B97F4A7C15);
    return &lives.buckets[(size_t)(hash >> 32) & (lives.bucket_count - 1)];
}

/* Where the life of an ISEQ hangs, or would be. There must be buckets. */
static struct vm_trace_life **
find(uintptr_t unit)
{
    struct vm_trace_life **link = bucket_of(unit);
    while (*link && (*link)->unit != unit) link = &(*link)->next;
    return link;
}

static void
grow(void)
{
    size_t old_count = lives.bucket_count, count = old_count ? old_count * 2 : 256;
    struct vm_trace_life **old = lives.buckets, **buckets = calloc(count, sizeof(*buckets));
    if (!buckets) return; /* longer chains */
    lives.buckets = buckets;
    lives.bucket_count = count;
    for (size_t i = 0; i < old_count; i++) {
        for (struct vm_trace_life *life = old[i], *next; life; life = next) {
            next = life->next;
            struct vm_trace_life **link = bucket_of(life->unit);
            life->next = *link;
            *link = life;
        }
    }
    free(old);
}

static struct vm_trace_string *
label_of(const struct rb_iseq_struct *iseq, uintptr_t unit)
{
    char buffer[1024];
    struct vm_trace_frame frame = {
        .pc = unit + HOST_PC_EXACT, .method = rb_vm_trace_host_method_of(iseq), .iseq = iseq
    };
    size_t bytes;
    char *text = rb_vm_trace_text_whole(rb_vm_trace_make_label, &frame, buffer, sizeof(buffer), &bytes);
    struct vm_trace_string *label = rb_vm_trace_string_intern(text, bytes);
    if (text != buffer) free(text);
    return label;
}

struct vm_trace_life *
rb_vm_trace_life_of(const struct rb_iseq_struct *iseq)
{
    uintptr_t unit, to;
    rb_vm_trace_host_iseq_range(iseq, &unit, &to);
    if (lives.count >= lives.bucket_count) grow();
    if (!lives.bucket_count) return NULL;
    struct vm_trace_life **link = find(unit), *life = *link;
    if (life) return life;

    life = malloc(sizeof(*life));
    struct vm_trace_string *label = life ? label_of(iseq, unit) : NULL;
    if (!label) {
        free(life);
        return NULL;
    }
    *life = (struct vm_trace_life){ .unit = unit, .label = label };
    *link = life;
    rb_vm_trace_note_address(unit);
    lives.count++;
    return life;
}

struct vm_trace_string *
rb_vm_trace_life_label(uintptr_t unit)
{
    struct vm_trace_life *life = lives.bucket_count ? *find(unit) : NULL;
    return life ? rb_vm_trace_string_intern(life->label->text, life->label->bytes) : NULL;
}

uint64_t
rb_vm_trace_life_number(void)
{
    return (uint64_t)rb_vm_trace_global.pid << 32 | ++lives.last_number;
}

static bool
write_last_end(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct vm_trace_life *life = what;
    struct vm_trace_event event;
    unsigned name;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, clock_now_ns(&ractor->clock))) return false;
    if (!writer_interned(event.writer, life->label, &name)) return false;
    return event_end_id(&event, FXT_ASYNC_END, W_REPROFILE, name, life->reprofile);
}

void
rb_vm_trace_life_end(uintptr_t unit, struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    pthread_mutex_lock(&rb_vm_trace_global.lock);
    struct vm_trace_life **link = lives.bucket_count ? find(unit) : NULL;
    if (link && *link) {
        struct vm_trace_life *life = *link;
        if (life->reprofile) {
            if (ractor) rb_vm_trace_event_write(ractor, ec, write_last_end, life);
            else rb_vm_trace_global.dead.lost++;
        }
        *link = life->next;
        lives.count--;
        rb_vm_trace_string_release(life->label);
        free(life);
    }
    pthread_mutex_unlock(&rb_vm_trace_global.lock);
}

void
rb_vm_trace_lives_after_fork(void)
{
    for (size_t i = 0; i < lives.bucket_count; i++) {
        for (struct vm_trace_life *life = lives.buckets[i]; life; life = life->next) life->reprofile = 0;
    }
}

void
rb_vm_trace_lives_free(void)
{
    for (size_t i = 0; i < lives.bucket_count; i++) {
        for (struct vm_trace_life *life = lives.buckets[i], *next; life; life = next) {
            next = life->next;
            rb_vm_trace_string_release(life->label);
            free(life);
        }
    }
    free(lives.buckets);
    lives.buckets = NULL;
    lives.bucket_count = lives.count = 0;
    counts.code_bytes = counts.compiled = counts.invalidated = 0;
}

size_t
rb_vm_trace_life_count(void)
{
    return lives.count;
}

/* --- counters ------------------------------------------------------------------------------- */

void
rb_vm_trace_count_compiled(uint64_t code_bytes, bool version)
{
    counts.code_bytes += code_bytes;
    counts.compiled += version;
}

void
rb_vm_trace_count_invalidated(void)
{
    counts.invalidated++;
}

static bool
write_counts(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    uint64_t ns = clock_now_ns(&ractor->clock); /* later than a sample that a new chunk begins with */
    struct vm_trace_event event;
    /* Both or none, for a full chunk makes this run once more. */
    if (!rb_vm_trace_event_begin(&event, ractor, ec, ns) || !event_room(&event, 5 + 7)) return false;
    event_uint64(&event, W_BYTES, counts.code_bytes);
    event_end_id(&event, FXT_COUNTER, W_COUNTER, W_CODE, 0);
    if (!rb_vm_trace_event_begin(&event, ractor, ec, ns)) return false;
    event_uint64(&event, W_COMPILED, counts.compiled);
    event_uint64(&event, W_INVALIDATED, counts.invalidated);
    return event_end_id(&event, FXT_COUNTER, W_COUNTER, W_VERSIONS, 0);
}

struct rate {
    uint64_t ns, per_second;
};

static bool
write_rate(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct rate *rate = what;
    struct vm_trace_event event;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, rate->ns)) return false;
    event_uint64(&event, W_PER_SECOND, rate->per_second);
    return event_end_id(&event, FXT_COUNTER, W_COUNTER, W_EXITS, ractor->number);
}

/* Exits since the last sample, if that is so long ago; and begin the next one. */
static bool
take_rate(struct rb_vm_trace_ractor *ractor, uint64_t least_ns, struct rate *rate)
{
    uint64_t exit_rate = rb_vm_trace_global.config.exit_rate, from = ractor->rate_ns;
    /* Where exits are all that is recorded they tell it themselves. */
    if (!exit_rate || !(rb_vm_trace_global.config.compiles || rb_vm_trace_global.config.invalidations)) return false;
    rate->ns = clock_now_ns(&ractor->clock);
    if (from && rate->ns < from + least_ns) return false;
    uint64_t exits = (ractor->sampled - ractor->rate_sampled) * exit_rate;
    ractor->rate_ns = rate->ns;
    ractor->rate_sampled = ractor->sampled;
    if (!from) return false; /* the first of its samples begins here */
    rate->per_second = (uint64_t)((double)exits * 1e9 / (double)(rate->ns - from));
    return true;
}

#define NS_PER_MS UINT64_C(1000000)

void
rb_vm_trace_counters_write(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    struct rate rate;
    pthread_mutex_lock(&rb_vm_trace_global.lock);
    rb_vm_trace_event_write(ractor, ec, write_counts, NULL);
    if (take_rate(ractor, 10 * NS_PER_MS, &rate)) rb_vm_trace_event_write(ractor, ec, write_rate, &rate);
    pthread_mutex_unlock(&rb_vm_trace_global.lock);
}

void
rb_vm_trace_counters_chunk(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    struct rate rate;
    if (take_rate(ractor, NS_PER_MS, &rate)) write_rate(ractor, ec, &rate); /* a fresh chunk has room */
}
