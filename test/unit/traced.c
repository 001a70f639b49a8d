/*
 * A traced program. See traced.h.
 */
#include "harness.h"
#include "traced.h"
#include "vm_trace/session/requests.h"

#include <stdlib.h>
#include <string.h>

struct rb_ractor_struct main_ractor;
struct rb_execution_context_struct main_thread = { .ractor = &main_ractor, .tid = 1001, .thread_name = "main", .name_id = 1 };
char *traced_path;

void
(start_traced)(struct rb_vm_trace_config config)
{
    if (!config.jit) config.jit = "ZJIT";
    if (!config.path) config.path = traced_path = temp_path("t.fxt");
    fake_ractor_add(&main_ractor);
    fake_current(&main_thread);
    assert_true(rb_vm_trace_start(&config));
    assert_non_null(main_ractor.vm_trace);
}

void
start_session_traced(const char *streams)
{
    struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS] = { { .rate = 0 } };
    const struct rb_vm_trace_memory_config memory = rb_vm_trace_session.memory; /* as the test set it */
    char why[512] = "";
    assert_true(rb_vm_trace_request_list(streams, requests, why, sizeof(why)));
    traced_path = temp_path("t.fxt");
    fake_ractor_add(&main_ractor);
    fake_current(&main_thread);
    struct rb_vm_trace_config config = { .jit = "ZJIT", .path = traced_path };
    assert_true(rb_vm_trace_start_session(&config, requests, &memory, why, sizeof(why)));
    assert_non_null(main_ractor.vm_trace);
}

void
skip_without_ticks(void)
{
#if !CLOCK_HAS_TICKS
    skip_because("the clock can't be made to stand still");
#endif
}

void
stop_clock(void)
{
    struct vm_trace_clock *clock = &main_ractor.vm_trace->clock;
    uint64_t now_ns = clock_now_ns(clock) + 500000000; /* ahead of what the end of the trace reads */
    *clock = (struct vm_trace_clock){ .anchor_ns = now_ns, .horizon = UINT64_MAX };
}

void
pass(uint64_t ns)
{
    main_ractor.vm_trace->clock.anchor_ns += ns;
}

void
free_traced(void)
{
    rb_vm_trace_ractor_free(main_ractor.vm_trace);
    main_ractor.vm_trace = NULL;
    rb_vm_trace_sites_free();
    rb_vm_trace_version_histories_free();
    fake_free_stack(&main_thread);
}

struct trace *
finish_traced(void)
{
    rb_vm_trace_shutdown();
    free_traced();
    struct trace *trace = trace_read(traced_path);
    free(traced_path);
    traced_path = NULL;
    return trace;
}

struct rb_vm_trace_site *
make_site(enum rb_vm_trace_kind kind, const char *reason, const struct rb_iseq_struct *iseq, unsigned line)
{
    struct rb_vm_trace_site *site = rb_vm_trace_site_new(&(struct rb_vm_trace_site_desc){
        .kind = kind, .reason = reason, .reason_len = strlen(reason), .insn = "opt_plus", .insn_len = 8,
        .unit = iseq, .frame = iseq, .pc = line ? fake_pc(iseq, line) : NULL, .version = 1
    });
    assert_non_null(site);
    return site;
}

/* As machine code does: others may read the word meanwhile. */
static uint64_t
add(char *ractor_state, size_t offset, int64_t n)
{
    uint64_t *word = (uint64_t *)(ractor_state + offset), sum = __atomic_load_n(word, __ATOMIC_RELAXED) + (uint64_t)n;
    __atomic_store_n(word, sum, __ATOMIC_RELAXED);
    return sum;
}

/* The three loads, two words and one call that stand in compiled code. True: this exit is sampled. */
static bool
count(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec, char **local_out)
{
    char *ractor_state = *local_out = *(char **)((char *)ec->ractor + rb_vm_trace_ractor_offset());
    add(ractor_state, rb_vm_trace_hits_offset(site), 1);
    return rb_vm_trace_exits.rate <= 1 || add(ractor_state, rb_vm_trace_countdown_offset(), -1) == 0;
}

void
take_exit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec)
{
    char *ractor_state;
    if (count(site, ec, &ractor_state)) rb_vm_trace_exit((struct rb_vm_trace_ractor *)ractor_state, site, ec);
}

void
take_recompile_exit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec, enum rb_vm_trace_outcome outcome)
{
    char *ractor_state;
    uint64_t start_ns = rb_vm_trace_now(ec->ractor->vm_trace);
    if (count(site, ec, &ractor_state)) rb_vm_trace_recompile_exit((struct rb_vm_trace_ractor *)ractor_state, site, ec, start_ns, outcome);
}

uint64_t
site_hits(const struct trace *trace, const char *reason)
{
    uint64_t hits = 0;
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (event_is(event, "trace", "site") && strcmp(trace_text(event, "reason"), reason) == 0) hits += trace_number(event, "hits");
    }
    return hits;
}

void
assert_summary(const struct trace *trace, uint64_t exits, uint64_t sampled, uint64_t lost)
{
    assert_int_equal(trace_count(trace, "trace", "summary"), 1);
    assert_int_equal(trace_count(trace, "trace", "settings"), 1);
    const struct trace_event *summary = trace_event(trace, "trace", "summary", 0);
    assert_int_equal(trace_number(summary, "exits"), exits);
    assert_int_equal(trace_number(summary, "sampled"), sampled);
    assert_int_equal(trace_count(trace, "side_exit", NULL) + trace_count(trace, "recompile_exit", NULL), sampled);
    assert_int_equal(trace_number(summary, "events"), trace->event_count - 1);
    assert_int_equal(trace_number(summary, "lost"), lost);
    if (lost) {
        assert_int_equal(trace_number(trace_event(trace, "trace", "loss", 0), "lost"), lost);
        return; /* sites' events may be among them */
    }
    assert_int_equal(trace_count(trace, "trace", "loss"), 0);
    assert_int_equal(trace_number(summary, "sites"), trace_count(trace, "trace", "site"));
    uint64_t exit_hits = 0, fallback_hits = 0;
    for (size_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *site = &trace->events[i];
        if (!event_is(site, "trace", "site")) continue;
        *(strcmp(trace_text(site, "kind"), "fallback") == 0 ? &fallback_hits : &exit_hits) += trace_number(site, "hits");
    }
    assert_int_equal(exit_hits, exits);
    assert_int_equal(trace_number(summary, "fallbacks"), fallback_hits);
}

uint64_t
status_count(struct rb_vm_trace_status status, const char *name)
{
    for (unsigned i = 0; i < status.count_count; i++) {
        if (strcmp(status.counts[i].name, name) == 0) return status.counts[i].count;
    }
    fail_msg("no %s in the status", name);
    return 0;
}
