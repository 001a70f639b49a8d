/*
 * Calls of ISEQs. See call_times.h.
 */
#include "vm_trace/streams/states/call_times.h"

#include <stdlib.h>
#include <string.h>

#define STATES (VM_TRACE_REPROFILED + 1)

struct vm_trace_call_times {
    uintptr_t unit;              /* the ISEQ's first pc; 0: it was freed */
    struct vm_trace_call_times *next; /* of the same hash */
    struct vm_trace_string *label;
    uint64_t trace;
    uint32_t epoch;              /* the reset that its counts begin with */
    bool compiled;               /* it has had compiled code */
    struct {
        uint64_t calls, ran_ns, interpreted_ns, first_ns, last_ns;
    } of[STATES];                /* by the state of the call */
};

/* What took less has no event. */
#define LEAST_NS UINT64_C(10000)

#define BUCKETS 16384 /* a power of two */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vm_trace_call_times **buckets; /* guarded by lock; entries' counters are not */

bool
rb_vm_trace_call_times_init(void)
{
    if (!rb_vm_trace_known_init()) return false;
    if (!buckets) buckets = calloc(BUCKETS, sizeof(struct vm_trace_call_times *));
    return buckets != NULL;
}

static struct vm_trace_call_times **
bucket_of(uintptr_t unit)
{
    uint64_t hash = (uint64_t)unit * UINT64_C(0x9E3779B97F4A7C15);
    return &buckets[hash >> 48 & (BUCKETS - 1)];
}

/* Label of an ISEQ, in `buffer` or in memory that the caller frees. */
static char *
iseq_label(const struct rb_iseq_struct *iseq, char *buffer, size_t capacity, size_t *bytes_out)
{
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    struct vm_trace_frame frame = {
        .pc = from + HOST_PC_EXACT, .method = rb_vm_trace_host_method_of(iseq), .iseq = iseq
    };
    return rb_vm_trace_text_whole(rb_vm_trace_make_label, &frame, buffer, capacity, bytes_out);
}

/* Entries are added at the head of their list, and nothing of a list is ever freed meanwhile. */
static struct vm_trace_call_times *
find(uintptr_t unit)
{
    struct vm_trace_call_times *entry = __atomic_load_n(bucket_of(unit), __ATOMIC_ACQUIRE);
    while (entry && __atomic_load_n(&entry->unit, __ATOMIC_RELAXED) != unit) entry = entry->next;
    return entry;
}

static struct vm_trace_call_times *
make(uintptr_t unit, const struct rb_iseq_struct *iseq)
{
    char buffer[1024];
    size_t bytes;
    char *text = iseq_label(iseq, buffer, sizeof(buffer), &bytes);
    struct vm_trace_string *label = rb_vm_trace_string_intern(text, bytes);
    if (text != buffer) free(text);
    pthread_mutex_lock(&lock);
    struct vm_trace_call_times *entry = label ? find(unit) : NULL;
    bool known = entry != NULL;
    if (label && !known && (entry = calloc(1, sizeof(*entry))) != NULL) {
        struct vm_trace_call_times **bucket = bucket_of(unit);
        entry->unit = unit;
        entry->label = label;
        entry->trace = trace_id();
        entry->epoch = trace_epoch();
        entry->next = *bucket;
        __atomic_store_n(bucket, entry, __ATOMIC_RELEASE);
        rb_vm_trace_note_address(unit);
    }
    pthread_mutex_unlock(&lock);
    if (known || !entry) rb_vm_trace_string_release(label);
    return entry;
}

/* Counters are shared by ractors. */
static void
add(uint64_t *counter, uint64_t number)
{
    __atomic_fetch_add(counter, number, __ATOMIC_RELAXED);
}

/* The flight recorder was reset, or another trace has begun: count from 0. */
static void
renew(struct vm_trace_call_times *entry)
{
    pthread_mutex_lock(&lock);
    if (entry->epoch != trace_epoch()) {
        memset(entry->of, 0, sizeof(entry->of));
        if (entry->trace != trace_id()) entry->compiled = false;
        entry->trace = trace_id();
        __atomic_store_n(&entry->epoch, trace_epoch(), __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
}

struct vm_trace_call_times *
rb_vm_trace_call_times_of(const struct rb_iseq_struct *iseq)
{
    uintptr_t unit, to;
    rb_vm_trace_host_iseq_range(iseq, &unit, &to);
    struct vm_trace_call_times *entry = find(unit);
    if (!entry) entry = make(unit, iseq);
    if (!entry) return NULL;
    if (__builtin_expect(__atomic_load_n(&entry->epoch, __ATOMIC_RELAXED) != trace_epoch(), 0)) renew(entry);
    return entry;
}

const struct vm_trace_string *
rb_vm_trace_call_times_label(const struct vm_trace_call_times *entry)
{
    return entry->label;
}

enum vm_trace_execution
rb_vm_trace_call_times_state(const struct vm_trace_call_times *entry, bool given_up)
{
    if (given_up) return VM_TRACE_UNCOMPILABLE;
    bool compiled = entry && __atomic_load_n(&entry->compiled, __ATOMIC_RELAXED);
    return compiled ? VM_TRACE_REPROFILED : VM_TRACE_UNCOMPILED;
}

/* Calls of several ractors may end at once, and an outer one ends after those that it made. */
static void
include(uint64_t *first_ns, uint64_t *last_ns, uint64_t ns)
{
    uint64_t first = __atomic_load_n(first_ns, __ATOMIC_RELAXED), last = __atomic_load_n(last_ns, __ATOMIC_RELAXED);
    while ((!first || ns < first) &&
           !__atomic_compare_exchange_n(first_ns, &first, ns, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    while (ns > last && !__atomic_compare_exchange_n(last_ns, &last, ns, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

void
rb_vm_trace_call_times_add(struct vm_trace_call_times *entry, const struct vm_trace_call *call)
{
    include(&entry->of[call->state].first_ns, &entry->of[call->state].last_ns, call->begin_ns);
    add(&entry->of[call->state].calls, call->weight);
    add(&entry->of[call->state].ran_ns, call->ran_ns * call->weight);
    add(&entry->of[call->state].interpreted_ns, call->interpreted_ns * call->weight);
}

void
rb_vm_trace_call_times_compiled(uintptr_t unit)
{
    struct vm_trace_call_times *entry = buckets ? find(unit) : NULL;
    if (entry) __atomic_store_n(&entry->compiled, true, __ATOMIC_RELAXED);
}

void
rb_vm_trace_call_times_unit_freed(uintptr_t unit)
{
    struct vm_trace_call_times *entry = buckets ? find(unit) : NULL;
    if (entry) __atomic_store_n(&entry->unit, 0, __ATOMIC_RELAXED);
}

const struct vm_trace_string *
rb_vm_trace_call_times_why(enum vm_trace_execution state)
{
    switch (state) {
      case VM_TRACE_UNCOMPILED: return KNOWN(NOT_COMPILED_YET);
      case VM_TRACE_UNCOMPILABLE: return KNOWN(CANNOT_BE_COMPILED);
      case VM_TRACE_REPROFILED: return KNOWN(PROFILED_AGAIN);
      default: return KNOWN(EXITED);
    }
}

/* --- the event ----------------------------------------------------------------------------------------- */

struct call_event {
    const struct vm_trace_call_times *entry;
    enum vm_trace_execution state;
};

static bool
write_calls(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct call_event *written = what;
    const struct vm_trace_call_times *entry = written->entry;
    enum vm_trace_execution state = written->state;
    bool compiled = state == VM_TRACE_COMPILED || state == VM_TRACE_EXITED;
    const struct vm_trace_string *why =
        state == VM_TRACE_COMPILED ? KNOWN(COMPILED) : rb_vm_trace_call_times_why(state);
    struct vm_trace_event event;
    unsigned name;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, clock_now_ns(&ractor->clock))) return false;
    if (!writer_interned(event.writer, compiled ? KNOWN(CALLS) : KNOWN(INTERPRETED), &name)) return false;
    if (!event_interned(&event, STRING_ISEQ, entry->label)) return false;
    if (!event_interned_rarely(&event, compiled ? KNOWN(STATE) : KNOWN(WHY), why)) return false;
    const struct {
        const struct vm_trace_string *name;
        uint64_t value;
    } numbers[] = { { KNOWN(CALLS), entry->of[state].calls },
                    { KNOWN(RAN_NS), entry->of[state].ran_ns },
                    { KNOWN(INTERPRETED_NS), entry->of[state].interpreted_ns },
                    { KNOWN(FIRST_NS), entry->of[state].first_ns },
                    { KNOWN(LAST_NS), entry->of[state].last_ns } };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (!event_uint64_rarely(&event, numbers[i].name, numbers[i].value)) return false;
    }
    return event_end(&event, FXT_EVENT_INSTANT, STRING_TRACE, name);
}

/* Without buckets, no JIT was on so far. */
static void
report_bucket(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, size_t bucket)
{
    if (!buckets) return;

    const struct vm_trace_call_times *entry = __atomic_load_n(&buckets[bucket], __ATOMIC_ACQUIRE);
    for (; entry; entry = entry->next) {
        if (entry->trace != trace_id() || entry->epoch != trace_epoch()) continue;
        for (enum vm_trace_execution state = VM_TRACE_COMPILED; state < STATES; state++) {
            if (entry->of[state].ran_ns < LEAST_NS) continue;
            rb_vm_trace_event_write(ractor, ec, write_calls, &(struct call_event){ entry, state });
        }
    }
}

void
rb_vm_trace_call_times_report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    for (size_t bucket = 0; bucket < BUCKETS; bucket++) report_bucket(ractor, ec, bucket);
}

static size_t next_bucket; /* of the snapshot that is being written */

void
rb_vm_trace_call_times_snapshot_begin(void)
{
    next_bucket = 0;
}

bool
rb_vm_trace_call_times_snapshot_write(struct rb_vm_trace_ractor *ractor)
{
    enum { AT_ONCE = 256 };
    for (int i = 0; i < AT_ONCE && next_bucket < BUCKETS; i++) report_bucket(ractor, NULL, next_bucket++);
    return next_bucket < BUCKETS;
}

void
rb_vm_trace_call_times_free_all(void)
{
    for (size_t i = 0; buckets && i < BUCKETS; i++) {
        while (buckets[i]) {
            struct vm_trace_call_times *entry = buckets[i];
            buckets[i] = entry->next;
            rb_vm_trace_string_release(entry->label);
            free(entry);
        }
    }
}
