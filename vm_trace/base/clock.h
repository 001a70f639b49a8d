#ifndef RUBY_VM_TRACE_BASE_CLOCK_H
#define RUBY_VM_TRACE_BASE_CLOCK_H 1
/*
 * Time of an event: nanoseconds of CLOCK_BOOTTIME, the clock on which a trace lines up with
 * ftrace's and perf's.
 *
 * Reading it takes about 25 ns, a good part of what an event may cost. Where the kernel itself
 * takes its time from the processor's counter (ticks.h), so do we: a few ns. The two are read
 * together every 10 ms, and in between the counter is scaled. Elsewhere the system's clock is
 * read each time.
 *
 * One of these belongs to one ractor. Its times never run back, as long as the counter does not by
 * less than 10 ms between two events: that the kernel, which uses it in the same way, would have
 * given it up for.
 */

#include "vm_trace/base/ticks.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct vm_trace_clock {
    uint64_t anchor_ticks, anchor_ns;  /* from here on ticks are scaled; no time is reported before anchor_ns */
    uint64_t horizon;                  /* so many of them; 0: none */
    uint64_t scale;                    /* ns of a tick, 32 binary places */
    uint64_t pair_ticks, pair_ns;      /* read together last */
    uint64_t rate;                     /* true ns of a tick between the last two pairs; 0: not known */
};

/* Find out, once, whether ticks may be used. Before any clock is read. */
void rb_vm_trace_clock_init(void);

/* Whether ticks are used. */
bool rb_vm_trace_clock_ticks_p(void);

/* The system's own, always. Any thread. */
uint64_t rb_vm_trace_clock_system_ns(void);

/* Read both again, and return the time. */
uint64_t rb_vm_trace_clock_read(struct vm_trace_clock *clock);

/*
 * The arithmetic of that: take a pair that was read together, and return the time that it is, which
 * is `ns`, or a little more where times that were reported already were ahead of it. Then the scale
 * is made so much smaller that both meet at the next horizon.
 *
 * No time past a horizon was ever reported, so times are never ahead by more than that, 10 ms,
 * whatever the counter did. Where they are by much, the scale was wrong (the machine was moved, the
 * counter was set): then the time does not advance until the system's has come up to it.
 */
uint64_t rb_vm_trace_clock_update(struct vm_trace_clock *clock, uint64_t ticks, uint64_t ns);

static inline uint64_t
clock_scale(const struct vm_trace_clock *clock, uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * clock->scale) >> 32);
}

static inline uint64_t
clock_now_ns(struct vm_trace_clock *clock)
{
#if CLOCK_HAS_TICKS
    uint64_t since = clock_ticks() - clock->anchor_ticks;
    if (__builtin_expect(since < clock->horizon, 1)) return clock->anchor_ns + clock_scale(clock, since);
#endif
    return rb_vm_trace_clock_read(clock);
}

/* The time of ticks before or after the anchor. */
static inline uint64_t
clock_at_ns(const struct vm_trace_clock *clock, uint64_t ticks)
{
    return ticks >= clock->anchor_ticks ? clock->anchor_ns + clock_scale(clock, ticks - clock->anchor_ticks)
                                        : clock->anchor_ns - clock_scale(clock, clock->anchor_ticks - ticks);
}

/*
 * A stamp is a moment that any thread can store without a clock of a ractor. clock_stamp_ns turns it
 * into ns of CLOCK_BOOTTIME, by a clock that has been read since. Never 0.
 */
static inline uint64_t
clock_stamp(bool ticks)
{
#if CLOCK_HAS_TICKS
    if (ticks) return clock_ticks() | 1;
#endif
    (void)ticks;
    return rb_vm_trace_clock_system_ns() | 1;
}

/* clock_stamp_ns by a clock that does not scale ticks yet. UINT64_MAX: unknown, it was never read. */
uint64_t rb_vm_trace_clock_early_stamp_ns(const struct vm_trace_clock *clock, uint64_t stamp);

/* The time of a stamp, which may be that of another thread. */
static inline uint64_t
clock_stamp_ns(const struct vm_trace_clock *clock, uint64_t stamp, bool ticks)
{
    if (!ticks) return stamp;
    if (!clock->horizon) return rb_vm_trace_clock_early_stamp_ns(clock, stamp);
    return clock_at_ns(clock, stamp);
}

/*
 * Saves a read of the clock: the time of a stamp that is later than all times that it has reported.
 * False: read the clock.
 */
static inline bool
clock_stamp_now_p(const struct vm_trace_clock *clock, uint64_t stamp, uint64_t *ns_out)
{
    uint64_t since = stamp - clock->anchor_ticks;
    if (__builtin_expect(since >= clock->horizon, 0)) return false; /* 0 where ticks are not used */
    *ns_out = clock->anchor_ns + clock_scale(clock, since);
    return true;
}

/*
 * Have it report no time before `ns`, which is at most a few us ahead of it.
 */
static inline void
clock_not_before(struct vm_trace_clock *clock, uint64_t ns)
{
    uint64_t now = clock_now_ns(clock);
    if (now >= ns) return;
    if (clock->horizon) clock->anchor_ns += ns - now;
    else if (clock->anchor_ns < ns) clock->anchor_ns = ns;
}

/*
 * The latest time that can have been reported at these ticks: no ticks past the horizon are scaled.
 */
static inline uint64_t
clock_latest_at(const struct vm_trace_clock *clock, uint64_t ticks)
{
    uint64_t since = ticks - clock->anchor_ticks;
    return clock->anchor_ns + clock_scale(clock, since < clock->horizon ? since : clock->horizon);
}

/* No reported time is later. Of another ractor's clock, when that is stopped. */
static inline uint64_t
clock_latest_ns(const struct vm_trace_clock *clock)
{
#if CLOCK_HAS_TICKS
    return clock_latest_at(clock, clock_ticks());
#else
    return clock->anchor_ns; /* the system's never runs back */
#endif
}

#endif /* RUBY_VM_TRACE_BASE_CLOCK_H */
