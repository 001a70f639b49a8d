/*
 * Counter tracks. See counters.h.
 */
#include "vm_trace/streams/compiles/counters.h"
#include "vm_trace/streams/exit_state.h"
#include "vm_trace/streams/code/versions.h"

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
    event_uint64(&event, STRING_BYTES, counts.code_bytes);
    event_end_id(&event, FXT_EVENT_COUNTER, STRING_COUNTER, STRING_CODE, 0);
    if (!rb_vm_trace_event_begin(&event, ractor, ec, ns)) return false;
    event_uint64(&event, STRING_COMPILED, counts.compiled);
    event_uint64(&event, STRING_INVALIDATED, counts.invalidated);
    return event_end_id(&event, FXT_EVENT_COUNTER, STRING_COUNTER, STRING_VERSIONS, 0);
}

/* Exits since the last sample, which was at `from_ns`. */
struct rate {
    uint64_t from_ns, ns, per_second;
};

static void
begin_sample(struct vm_trace_exit_state *exits, uint64_t ns)
{
    exits->rate_ns = ns;
    exits->rate_sampled = exits->sampled;
}

/* If the last one is so long ago. */
static bool
take_rate(struct rb_vm_trace_ractor *ractor, uint64_t least_ns, struct rate *rate)
{
    struct vm_trace_exit_state *exits = exits_of(ractor);
    uint64_t exit_rate = rb_vm_trace_exits.rate;
    /* Where exits are all that is recorded they tell it themselves. */
    if (!exit_rate || !(rb_vm_trace_compiles.rate || rb_vm_trace_invalidations.rate)) return false;
    *rate = (struct rate){ .from_ns = exits->rate_ns, .ns = clock_now_ns(&ractor->clock) };
    if (!rate->from_ns) {
        begin_sample(exits, rate->ns);
        return false;
    }
    if (rate->ns < rate->from_ns + least_ns) return false;
    uint64_t taken = (exits->sampled - exits->rate_sampled) * exit_rate;
    rate->per_second = (uint64_t)((double)taken * 1e9 / (double)(rate->ns - rate->from_ns));
    return true;
}

static bool
write_rate(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct rate *rate = what;
    struct vm_trace_exit_state *exits = exits_of(ractor);
    struct vm_trace_event event;
    /* A new chunk was needed, and began with a later sample, which counts these exits, too. */
    if (exits->rate_ns != rate->from_ns) return true;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, rate->ns)) return false;
    event_uint64(&event, STRING_PER_SECOND, rate->per_second);
    if (!event_end_id(&event, FXT_EVENT_COUNTER, STRING_COUNTER, STRING_EXITS, ractor->number)) return false;
    begin_sample(exits, rate->ns);
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
