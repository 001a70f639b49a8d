/*
 * Version histories of compiled ISEQs. See versions.h.
 */
#include "vm_trace/streams/code/versions.h"

#include <stdlib.h>

static struct {
    struct vm_trace_version_history **buckets;
    size_t bucket_count;  /* a power of two */
    size_t count;
    uint32_t last_number;
} histories;

static struct vm_trace_version_history **
bucket_of(uintptr_t unit)
{
    uint64_t hash = (uint64_t)unit * UINT64_C(0x9E3779B97F4A7C15);
    return &histories.buckets[(size_t)(hash >> 32) & (histories.bucket_count - 1)];
}

/* Where the life of an ISEQ hangs, or would be. There must be buckets. */
static struct vm_trace_version_history **
find(uintptr_t unit)
{
    struct vm_trace_version_history **link = bucket_of(unit);
    while (*link && (*link)->unit != unit) link = &(*link)->next;
    return link;
}

static void
grow(void)
{
    size_t old_count = histories.bucket_count, count = old_count ? old_count * 2 : 256;
    struct vm_trace_version_history **old = histories.buckets, **buckets = calloc(count, sizeof(*buckets));
    if (!buckets) return; /* longer chains */
    histories.buckets = buckets;
    histories.bucket_count = count;
    for (size_t i = 0; i < old_count; i++) {
        for (struct vm_trace_version_history *history = old[i], *next; history; history = next) {
            next = history->next;
            struct vm_trace_version_history **link = bucket_of(history->unit);
            history->next = *link;
            *link = history;
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

struct vm_trace_version_history *
rb_vm_trace_version_history_of(const struct rb_iseq_struct *iseq)
{
    uintptr_t unit, to;
    rb_vm_trace_host_iseq_range(iseq, &unit, &to);
    if (histories.count >= histories.bucket_count) grow();
    if (!histories.bucket_count) return NULL;
    struct vm_trace_version_history **link = find(unit), *history = *link;
    if (history) return history;

    history = malloc(sizeof(*history));
    struct vm_trace_string *label = history ? label_of(iseq, unit) : NULL;
    if (!label) {
        free(history);
        return NULL;
    }
    *history = (struct vm_trace_version_history){ .unit = unit, .label = label };
    *link = history;
    rb_vm_trace_note_address(unit);
    histories.count++;
    return history;
}

struct vm_trace_string *
rb_vm_trace_version_history_label(uintptr_t unit)
{
    struct vm_trace_version_history *history = histories.bucket_count ? *find(unit) : NULL;
    return history ? rb_vm_trace_string_intern(history->label->text, history->label->bytes) : NULL;
}

uint64_t
rb_vm_trace_version_history_number(void)
{
    return (uint64_t)rb_vm_trace_capture.pid << 32 | __atomic_add_fetch(&histories.last_number, 1, __ATOMIC_RELAXED);
}

static bool
write_last_end(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct vm_trace_version_history *history = what;
    struct vm_trace_event event;
    unsigned name;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, clock_now_ns(&ractor->clock))) return false;
    if (!writer_interned(event.writer, history->label, &name)) return false;
    return event_end_id(&event, FXT_EVENT_ASYNC_END, STRING_REPROFILE, name, history->reprofile);
}

void
rb_vm_trace_version_history_end(uintptr_t unit, struct rb_vm_trace_ractor *ractor,
                                struct rb_execution_context_struct *ec)
{
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    struct vm_trace_version_history **link = histories.bucket_count ? find(unit) : NULL;
    if (link && *link) {
        struct vm_trace_version_history *history = *link;
        if (history->reprofile) {
            if (ractor) rb_vm_trace_event_write(ractor, ec, write_last_end, history);
            else rb_vm_trace_capture.dead.lost++;
        }
        *link = history->next;
        histories.count--;
        rb_vm_trace_string_release(history->label);
        free(history);
    }
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
}

void
rb_vm_trace_version_histories_after_fork(void)
{
    for (size_t i = 0; i < histories.bucket_count; i++) {
        for (struct vm_trace_version_history *history = histories.buckets[i]; history; history = history->next)
            history->reprofile = 0;
    }
}

void
rb_vm_trace_version_histories_free(void)
{
    for (size_t i = 0; i < histories.bucket_count; i++) {
        for (struct vm_trace_version_history *history = histories.buckets[i], *next; history; history = next) {
            next = history->next;
            rb_vm_trace_string_release(history->label);
            free(history);
        }
    }
    free(histories.buckets);
    histories.buckets = NULL;
    histories.bucket_count = histories.count = 0;
}

size_t
rb_vm_trace_version_history_count(void)
{
    return histories.count;
}

void
rb_vm_trace_version_state_begin(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_version_state *versions = versions_of(ractor);
    versions->exiting.dropped = versions->exiting.site != NULL;
    versions->exiting.site = NULL;
}
