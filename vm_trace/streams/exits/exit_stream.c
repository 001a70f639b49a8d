/*
 * The streams of exits and fallbacks: how they begin and end. In a program that was started without
 * a flag, the JIT puts trace points into its code while the program runs, and takes them out.
 */
#include "vm_trace/base/numbers.h"
#include "vm_trace/streams/code/sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define capture rb_vm_trace_capture

static const struct rb_vm_trace_jit *registered; /* NULL: none whose code can be traced while it runs */
static uint64_t machine_rate; /* machine code calls C for one exit in so many; 0: for none */

/* What compiled code has trace points for permanently. */
static struct {
    bool exits, fallbacks, counters;
    char *counter; /* of exits only those of this one; NULL: of all */
} permanent;

void
rb_vm_trace_register_jit(const struct rb_vm_trace_jit *jit)
{
    registered = jit;
}

const struct rb_vm_trace_jit *
rb_vm_trace_registered_jit(void)
{
    return registered;
}

/* Have the machine code call C at one exit in `rate`, or at more. NULL, or why it can't. */
static const char *
attach(uint64_t rate)
{
    const char *why = NULL;
    if (!machine_rate) why = registered->exits_on(rate, trace_on() ? rb_vm_trace_exits.only : NULL);
    else if (rate == 1 && machine_rate > 1) why = registered->every_exit();
    else return NULL; /* C leaves out those that are too many */
    if (!why) machine_rate = rate;
    return why;
}

static bool
restore_exits(uint64_t ns)
{
    return registered && registered->restore_exits && registered->restore_exits(ns);
}

/* Without a trace: nobody needs sites and ractor states any more. */
static void
detach(void)
{
    if (machine_rate) registered->exits_off();
    restore_exits(0);
    machine_rate = 0;
    if (capture.by_flags) return;
    rb_vm_trace_ractor_free_all();
    rb_vm_trace_sites_free();
}

/* --- sessions -------------------------------------------------------------------------------------- */

static const char *
refuse_exits(uint64_t rate, const char *only)
{
    (void)rate;
    /* Trace points that a forked child left which could not make its file. */
    if (machine_rate && !capture.subscribed) detach();
    if (!only) return NULL;
    if (capture.subscribed) return "hooks subscribe to all exits, so those of one counter can't be recorded alone";
    if (!permanent.exits || (permanent.counter && strcmp(permanent.counter, only) == 0)) return NULL;
    return "a flag had exits of other counters traced, and compiled code keeps those trace points: start the program "
           "without that flag, or give exits: true";
}

static bool
prepare_exits(uint64_t rate, const char *only, uint64_t ns)
{
    if (!registered || !registered->prepare_exits || machine_rate) return false;
    return registered->prepare_exits(every_exit_p() ? 1 : rate, only, ns);
}

static const char *
start_exits(bool by_flags)
{
    uint64_t rate = rb_vm_trace_exits.rate;
    if (by_flags) {
        permanent.exits = rate > 0;
        free(permanent.counter);
        permanent.counter = rate && rb_vm_trace_exits.only ? strdup(rb_vm_trace_exits.only) : NULL;
        return NULL;
    }
    return rate && registered ? attach(every_exit_p() ? 1 : rate) : NULL;
}

static void
stop_exits(void)
{
    if (machine_rate && !capture.subscribed) registered->exits_off();
}

/*
 * Code that has trace points permanently goes on counting there, and hooks are notified of what
 * they subscribe to.
 */
static void
exits_ended(void)
{
    if (!capture.subscribed) machine_rate = 0;
}

static const char *
refuse_fallbacks(uint64_t rate, const char *only)
{
    (void)only;
    if (!rate || permanent.fallbacks) return NULL;
    return "fallbacks can be recorded only in a program that was started with ZJIT and --zjit-trace-fallbacks";
}

static const char *
start_fallbacks(bool by_flags)
{
    if (by_flags) permanent.fallbacks = rb_vm_trace_fallbacks.rate > 0;
    return NULL;
}

static const char *
refuse_counters(uint64_t rate, const char *only)
{
    (void)only;
    if (!rate || permanent.counters) return NULL;
    return "counters are a part of compiled code: start the program with ZJIT and --vm-trace=counters";
}

static const char *
start_counters(bool by_flags)
{
    if (by_flags) permanent.counters = rb_vm_trace_jit_counters.rate > 0;
    return NULL;
}

/* --- hooks (vm_trace.c) ---------------------------------------------------------------------------- */

/* No trace fails with it, so nothing is reported when it fails: then hooks are not notified. */
static void
begin_to_notify(void)
{
    if (!trace_on() && !capture.by_flags) {
        for (struct rb_vm_trace_stream *const *stream = capture.streams; *stream; stream++) {
            (*stream)->rate = 0;
            free((char *)(*stream)->only);
            (*stream)->only = NULL;
        }
        capture.jit = registered->name;
        if (!rb_vm_trace_ractor_begin_overflow()) return;
        rb_vm_trace_clock_init();
        rb_vm_trace_ractor_renew_all();
    }
    attach(1);
}

void
rb_vm_trace_subscribe(bool on)
{
    if (on == capture.subscribed) return;
    capture.subscribed = on;
    if (!rb_vm_trace_states.rate) rb_vm_trace_exits_call_at_every_one(on);
    if (on && registered) begin_to_notify();
    else if (!on && machine_rate && !trace_on()) detach();
}

static const char *
exits_with_jit(void)
{
    const char *why = trace_on() && !capture.by_flags ? start_exits(false) : NULL;
    if (capture.subscribed && !machine_rate) begin_to_notify();
    return why;
}

/* --- what a trace says of them --------------------------------------------------------------------- */

static bool
write_exit_settings(struct vm_trace_event *event)
{
    const char *only = rb_vm_trace_exits.only;
    if (rb_vm_trace_exits.rate) event_uint32(event, STRING_EXIT_RATE, (uint32_t)rb_vm_trace_exits.rate);
    return !only || event_text(event, STRING_COUNTER, only, strlen(only));
}

static bool
write_fallback_settings(struct vm_trace_event *event)
{
    if (rb_vm_trace_fallbacks.rate) event_uint32(event, STRING_FALLBACK_RATE, (uint32_t)rb_vm_trace_fallbacks.rate);
    return true;
}

static uint64_t
hits_of(const struct rb_vm_trace_stream *stream, const struct vm_trace_totals *totals)
{
    return totals->counters[stream->first_counter];
}

static size_t
describe_exits(char *text, size_t bytes, const struct vm_trace_totals *totals)
{
    uint64_t rate = rb_vm_trace_exits.rate;
    if (!rate) return 0;
    if (!registered && !capture.by_flags) return (size_t)snprintf(text, bytes, "no exits (no JIT was on)");
    int n = snprintf(text, bytes, "%llu of %llu exits", (unsigned long long)totals->sampled,
                     (unsigned long long)hits_of(&rb_vm_trace_exits, totals));
    if (rate > 1) n += snprintf(text + n, bytes - (size_t)n, " (one in %llu)", (unsigned long long)rate);
    return (size_t)n;
}

static bool
request_rate(const char *option, uint64_t *rate_out)
{
    return strncmp(option, "rate=", 5) == 0 && rb_vm_trace_parse_rate("rate", option + 5, rate_out);
}

static bool
request_exits(const char *option, uint64_t *rate_out, const char **only_out)
{
    if (request_rate(option, rate_out)) return true;
    if (strncmp(option, "counter=", 8) != 0 || !option[8]) return false;
    *only_out = option + 8;
    return true;
}

static bool
request_fallbacks(const char *option, uint64_t *rate_out, const char **only_out)
{
    (void)only_out;
    return request_rate(option, rate_out);
}

static const char *const exit_counters[] = { [EXITS_HITS] = "exits", [EXITS_SITES] = "sites", NULL };
static size_t
describe_counters(char *text, size_t bytes, const struct vm_trace_totals *totals)
{
    if (!rb_vm_trace_jit_counters.rate) return 0;
    uint64_t places = totals->counters[rb_vm_trace_jit_counters.first_counter + JIT_COUNTERS_PLACES];
    return (size_t)snprintf(text, bytes, "counters of %llu places", (unsigned long long)places);
}

static const char *const jit_counters[] = {
    [JIT_COUNTERS_HITS] = "counted", [JIT_COUNTERS_PLACES] = "counted_places", NULL
};
static const char *const fallback_counters[] = { [FALLBACKS_HITS] = "fallbacks", NULL };

struct rb_vm_trace_stream rb_vm_trace_exits = {
    .name = "exits",
    .needs_jit = true,
    .options = "rate=N, counter=NAME, samples",
    .takes_samples = true,
    .counters = exit_counters,
    .sampled_categories = UINT64_C(1) << STRING_SIDE_EXIT | UINT64_C(1) << STRING_RECOMPILE_EXIT,
    .ractor_bytes = sizeof(struct vm_trace_exit_state),
    .request = request_exits,
    .refuse = refuse_exits,
    .prepare = prepare_exits,
    .restore = restore_exits,
    .start = start_exits,
    .jit_ready = exits_with_jit,
    .stop = stop_exits,
    .ended = exits_ended,
    .forget = rb_vm_trace_sites_free,
    .ractor_init = rb_vm_trace_exit_state_init,
    .ractor_begin = rb_vm_trace_exit_state_begin,
    .ractor_epoch = rb_vm_trace_exit_state_epoch,
    .ractor_end = rb_vm_trace_exit_state_end,
    .ractor_free = rb_vm_trace_exit_state_free,
    .ractor_count = rb_vm_trace_exit_state_count,
    .reset_prepare = rb_vm_trace_exit_state_reset_prepare,
    .reset = rb_vm_trace_exit_state_reset,
    .snapshot_room = rb_vm_trace_sites_snapshot_room,
    .snapshot_begin = rb_vm_trace_sites_snapshot_begin,
    .snapshot_end = rb_vm_trace_sites_snapshot_end,
    .snapshot_write = rb_vm_trace_sites_snapshot_write,
    .unit_freed = rb_vm_trace_sites_unit_freed,
    .write_settings = write_exit_settings,
    .unreported_p = rb_vm_trace_sites_unreported_p,
    .report = rb_vm_trace_sites_report,
    .count = rb_vm_trace_sites_count,
    .describe = describe_exits
};

/* Their sites, hits and countdowns are kept with those of exits. */
struct rb_vm_trace_stream rb_vm_trace_fallbacks = {
    .name = "fallbacks",
    .options = "rate=N",
    .counters = fallback_counters,
    .request = request_fallbacks,
    .refuse = refuse_fallbacks,
    .start = start_fallbacks,
    .write_settings = write_fallback_settings
};

/* Likewise. */
struct rb_vm_trace_stream rb_vm_trace_jit_counters = {
    .name = "counters",
    .by_name = true,
    .counters = jit_counters,
    .refuse = refuse_counters,
    .start = start_counters,
    .describe = describe_counters
};
