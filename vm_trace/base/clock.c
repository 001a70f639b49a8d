/*
 * The clock. See clock.h.
 */
#include "vm_trace/base/clock.h"

#define HORIZON_NS UINT64_C(10000000)
/* The error of a pair is some tens of ns: over this time it is less than one in 10,000. */
#define LEAST_BASELINE_NS UINT64_C(1000000)
/* A rate that moves by more than one in 1,000 is none: the machine slept, or was moved. */
#define PLAUSIBLE 1000
/*
 * Counters run at 4 MHz (those of arm64 mostly at 25 MHz to 1 GHz) to 16 GHz: any other rate means
 * that the counter was set between the readings.
 */
#define LEAST_RATE (UINT64_C(1) << 28)
#define MOST_RATE (UINT64_C(1) << 40)
/* More than this is no error of the scale: see rb_vm_trace_clock_update. */
#define MOST_AHEAD_NS (HORIZON_NS / 10)

static bool use_ticks;

uint64_t
rb_vm_trace_clock_system_ns(void)
{
    return clock_ns_of(VM_TRACE_PLATFORM_CLOCK);
}

void
rb_vm_trace_clock_init(void)
{
#if CLOCK_HAS_TICKS
    use_ticks = rb_vm_trace_platform_counter_p();
#endif
}

bool
rb_vm_trace_clock_ticks_p(void)
{
    return use_ticks;
}

/* Ns of a tick since the last pair; 0 if it is unknown or impossible. */
static uint64_t
rate_since(const struct vm_trace_clock *clock, uint64_t ticks, uint64_t ns)
{
    unsigned __int128 exact = ((unsigned __int128)(ns - clock->pair_ns) << 32) / (ticks - clock->pair_ticks);
    if (exact < LEAST_RATE || exact > MOST_RATE) return 0;
    uint64_t rate = (uint64_t)exact;
    uint64_t change = rate > clock->rate ? rate - clock->rate : clock->rate - rate;
    return clock->rate && change > clock->rate / PLAUSIBLE ? 0 : rate;
}

uint64_t
rb_vm_trace_clock_update(struct vm_trace_clock *clock, uint64_t ticks, uint64_t ns)
{
    uint64_t reported = clock_latest_at(clock, ticks);
    uint64_t now = ns > reported ? ns : reported;

    bool begun = clock->pair_ns != 0 && ticks > clock->pair_ticks && ns > clock->pair_ns;
    if (begun && ns - clock->pair_ns < LEAST_BASELINE_NS) return now; /* too early to tell */

    uint64_t rate = begun ? rate_since(clock, ticks, ns) : 0;
    if (!rate || !clock->rate || now - ns > MOST_AHEAD_NS) {
        /*
         * A rate is used when the next one agrees: between two readings the machine may have slept.
         */
        *clock = (struct vm_trace_clock){ .pair_ticks = ticks, .pair_ns = ns, .anchor_ns = now, .rate = rate };
        return now;
    }
    clock->pair_ticks = ticks;
    clock->pair_ns = ns;
    clock->rate = rate;
    clock->anchor_ticks = ticks;
    clock->anchor_ns = now;
    clock->scale = (uint64_t)((unsigned __int128)rate * (HORIZON_NS - (now - ns)) / HORIZON_NS);
    clock->horizon = (HORIZON_NS << 32) / rate;
    return now;
}

#if CLOCK_HAS_TICKS
/* Ticks and the time that they are at. */
static void
read_pair(uint64_t *ticks_out, uint64_t *ns_out)
{
    /* The narrowest of three, for we may be interrupted between the two. */
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t before = clock_ticks();
        uint64_t now = rb_vm_trace_clock_system_ns();
        uint64_t width = clock_ticks() - before;
        if (width < best) {
            best = width;
            *ticks_out = before + width / 2;
            *ns_out = now;
        }
    }
}
#endif

uint64_t
rb_vm_trace_clock_read(struct vm_trace_clock *clock)
{
#if CLOCK_HAS_TICKS
    if (use_ticks) {
        uint64_t ticks = 0, ns = 0;
        read_pair(&ticks, &ns);
        return rb_vm_trace_clock_update(clock, ticks, ns);
    }
#endif
    uint64_t ns = rb_vm_trace_clock_system_ns();
    return ns > clock->anchor_ns ? ns : clock->anchor_ns; /* clock_not_before */
}

/* Computed from the last pair, with the known rate or the rate since that pair. */
uint64_t
rb_vm_trace_clock_early_stamp_ns(const struct vm_trace_clock *clock, uint64_t stamp)
{
#if CLOCK_HAS_TICKS
    struct vm_trace_clock since = {
        .anchor_ticks = clock->pair_ticks, .anchor_ns = clock->pair_ns, .scale = clock->rate
    };
    uint64_t ticks = 0, ns = 0;
    if (clock->pair_ns && !clock->rate) {
        read_pair(&ticks, &ns);
        since.scale = ticks > clock->pair_ticks && ns > clock->pair_ns ? rate_since(clock, ticks, ns) : 0;
    }
    if (!since.scale) return UINT64_MAX;
    return clock_at_ns(&since, stamp);
#else
    (void)clock, (void)stamp;
    return UINT64_MAX;
#endif
}
