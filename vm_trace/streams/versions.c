/*
 * Lives of compiled ISEQs. See versions.h.
 */
#include "vm_trace/streams/versions.h"

#include <stdlib.h>

static struct {
    struct vm_trace_life **buckets;
    size_t bucket_count;  /* a power of two */
    size_t count;
    uint32_t last_number;
} lives;

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
    return (uint64_t)rb_vm_trace_capture.pid << 32 | ++lives.last_number;
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
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    struct vm_trace_life **link = lives.bucket_count ? find(unit) : NULL;
    if (link && *link) {
        struct vm_trace_life *life = *link;
        if (life->reprofile) {
            if (ractor) rb_vm_trace_event_write(ractor, ec, write_last_end, life);
            else rb_vm_trace_capture.dead.lost++;
        }
        *link = life->next;
        lives.count--;
        rb_vm_trace_string_release(life->label);
        free(life);
    }
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
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
}

size_t
rb_vm_trace_life_count(void)
{
    return lives.count;
}

void
rb_vm_trace_version_state_begin(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_version_state *versions = versions_of(ractor);
    versions->exiting.dropped = versions->exiting.site != NULL;
    versions->exiting.site = NULL;
}
