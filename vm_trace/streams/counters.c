/*
 * Counter tracks. See counters.h.
 */
#include "vm_trace/streams/counters.h"
#include "vm_trace/streams/exit_state.h"
#include "vm_trace/streams/versions.h"

static struct {
    uint64_t code_bytes, compiled, invalidated;
} counts;

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
    struct vm_trace_exit_state *exits_state = exits_of(ractor);
    uint64_t exit_rate = rb_vm_trace_exits.rate, from = exits_state->rate_ns;
    /* Where exits are all that is recorded they tell it themselves. */
    if (!exit_rate || !(rb_vm_trace_compiles.rate || rb_vm_trace_invalidations.rate)) return false;
    rate->ns = clock_now_ns(&ractor->clock);
    if (from && rate->ns < from + least_ns) return false;
    uint64_t exits = (exits_state->sampled - exits_state->rate_sampled) * exit_rate;
    exits_state->rate_ns = rate->ns;
    exits_state->rate_sampled = exits_state->sampled;
    if (!from) return false; /* the first of its samples begins here */
    rate->per_second = (uint64_t)((double)exits * 1e9 / (double)(rate->ns - from));
    return true;
}

#define NS_PER_MS UINT64_C(1000000)

void
rb_vm_trace_counters_write(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    struct rate rate;
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    rb_vm_trace_event_write(ractor, ec, write_counts, NULL);
    if (take_rate(ractor, 10 * NS_PER_MS, &rate)) rb_vm_trace_event_write(ractor, ec, write_rate, &rate);
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
}

void
rb_vm_trace_counters_chunk(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    struct rate rate;
    if (take_rate(ractor, NS_PER_MS, &rate)) write_rate(ractor, ec, &rate); /* a fresh chunk has room */
}

void
rb_vm_trace_counters_clear(void)
{
    counts.code_bytes = counts.compiled = counts.invalidated = 0;
}
