/* call_gains.c - see call_gains.h */
#include "analysis/call_gains.h"
#include "analysis/event_args.h"
#include "fxt/known_strings.h"

enum { ONE_IN = 16 }; /* calls with compiled code, or that lack it for good, of which one is timed */

static enum call_kind
kind_of(struct pool *pool, const struct fxt_event *event)
{
    if (event->name.id == STRING_CALLS)
        return event_text(pool, event, STRING_STATE) == STRING_COMPILED ? CALLS_COMPILED : CALLS_EXITED;
    return event_text(pool, event, STRING_WHY) == STRING_NOT_COMPILED_YET ? CALL_KINDS : CALLS_INTERPRETED;
}

bool
call_gains_add(struct row_table *gains, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    enum call_kind kind = kind_of(pool, event);
    if (kind == CALL_KINDS || fxt_event_arg(event, STRING_RAN_NS) == NULL) return true; /* an older trace */
    const uint32_t key[CALL_GAIN_KEYS] = {process, event_text(pool, event, STRING_ISEQ)};
    struct call_gain *gain = row_table_get(gains, key);
    if (gain == NULL) return false;
    uint64_t calls = event_uint(event, STRING_CALLS, 0);
    bool all_timed = event->name.id == STRING_INTERPRETED &&
                     event_text(pool, event, STRING_WHY) != STRING_CANNOT_BE_COMPILED;
    gain->of[kind].calls += calls;
    gain->of[kind].timed += all_timed ? calls : calls / ONE_IN;
    gain->of[kind].ran_ns += event_uint(event, STRING_RAN_NS, 0);
    return true;
}

bool
call_times_enough(const struct call_times *times)
{
    return times->timed >= CALL_GAIN_TIMED_LEAST;
}

uint64_t
call_times_mean_ns(const struct call_times *times)
{
    return times->calls > 0 ? times->ran_ns / times->calls : 0;
}

struct call_times
call_gain_slow(const struct call_gain *gain)
{
    struct call_times slow = {0};
    uint64_t compiled_ns = call_times_mean_ns(&gain->of[CALLS_COMPILED]);
    for (enum call_kind kind = CALLS_EXITED; kind < CALL_KINDS; kind++) {
        const struct call_times *times = &gain->of[kind];
        if (!call_times_enough(times) || call_times_mean_ns(times) <= compiled_ns) continue;
        slow.calls += times->calls;
        slow.timed += times->timed;
        slow.ran_ns += times->ran_ns;
    }
    return slow;
}

uint64_t
call_gain_ns(const struct call_gain *gain)
{
    if (!call_times_enough(&gain->of[CALLS_COMPILED])) return 0;
    const struct call_times *compiled = &gain->of[CALLS_COMPILED], slow = call_gain_slow(gain);
    double gain_ns = (double)slow.ran_ns - (double)slow.calls * (double)compiled->ran_ns / (double)compiled->calls;
    if (gain_ns >= 0x1p64) return UINT64_MAX; /* damaged numbers */
    return gain_ns > 0 ? (uint64_t)gain_ns : 0;
}

static int
largest_first(const void *left, const void *right, void *context)
{
    const struct call_gain *a = left, *b = right;
    uint64_t a_ns = call_gain_ns(a), b_ns = call_gain_ns(b);
    if (a_ns != b_ns) return a_ns > b_ns ? -1 : 1;
    int order = fxt_string_compare(pool_string(context, a->iseq), pool_string(context, b->iseq));
    return order != 0 ? order : (a->process > b->process) - (a->process < b->process);
}

void
call_gains_sort(struct row_table *gains, struct pool *pool)
{
    row_table_sort(gains, largest_first, pool);
}
