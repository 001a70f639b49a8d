/*
 * What ractors record with: made, counted over all, and freed. See local.h.
 */
#include "local.h"
#include "sites.h"

#include <string.h>
#include <sys/mman.h>

#ifndef MAP_NORESERVE
# define MAP_NORESERVE 0
#endif

#define trace rb_vm_trace_global

/* Whether the spare local may have hits: a ractor is gone, and left them to it, or has none of its own. */
static bool spare_has_hits;

static size_t
local_bytes(void)
{
    return sizeof(struct rb_vm_trace_local) + VM_TRACE_MAX_SITES * sizeof(uint64_t);
}

/* Address space of zeros: pages of counters that are never touched cost nothing. */
uint64_t *
rb_vm_trace_local_zeros(void)
{
    void *at = mmap(NULL, local_bytes(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void
begin_sampling(struct rb_vm_trace_local *local)
{
    local->unhooked_countdown = trace.config.exit_rate;
    local->countdown = trace.listeners ? 1 : trace.config.exit_rate;
    local->fallback_countdown = trace.config.fallback_rate;
}

static struct rb_vm_trace_local *
allocate_local(void)
{
    struct rb_vm_trace_local *local = (struct rb_vm_trace_local *)rb_vm_trace_local_zeros();
    if (local) begin_sampling(local);
    return local;
}

static struct rb_vm_trace_local *
use_spare(void)
{
    spare_has_hits = true;
    return trace.spare;
}

static struct rb_vm_trace_local *
make_local(void)
{
    struct rb_vm_trace_local *local = allocate_local();
    if (!local) return use_spare();
    if (!rb_vm_trace_stacks_init(&local->stacks)) {
        rb_vm_trace_stacks_free(&local->stacks);
        munmap(local, local_bytes());
        return use_spare();
    }
    rb_vm_trace_writer_init(&local->writer, &trace.sink, trace.pid);

    pthread_mutex_lock(&trace.lock);
    local->number = trace.last_number++;
    local->next = trace.locals;
    local->link = &trace.locals;
    if (local->next) local->next->link = &local->next;
    trace.locals = local;
    pthread_mutex_unlock(&trace.lock);
    return local;
}

struct rb_vm_trace_local *
rb_vm_trace_ractor_new(void)
{
    return trace_wanted() ? make_local() : NULL;
}

static void
add_counts(struct vm_trace_totals *totals, const struct rb_vm_trace_local *local)
{
    totals->sampled += local->sampled;
    totals->lost += local->lost;
    totals->late += local->late;
    totals->events += local->writer.events;
}

/* Take it off the list. trace.lock held, or all ractors stopped. */
static void
unlink_local(struct rb_vm_trace_local *local)
{
    *local->link = local->next;
    if (local->next) local->next->link = local->link;
    local->link = NULL;
}

void
rb_vm_trace_ractor_free(struct rb_vm_trace_local *local)
{
    if (!local || local == trace.spare) return;

    pthread_mutex_lock(&trace.lock);
    if (local->link) { /* else its trace has ended, with all that it counted */
        unlink_local(local);
        /* The spare keeps the hits of those that are gone. */
        spare_has_hits = true;
        for (uint32_t i = 1; i < rb_vm_trace_site_limit(); i++) trace.spare->hits[i] += local->hits[i];
        for (uint32_t i = 1; local->base && trace.spare->base && i < rb_vm_trace_site_limit(); i++) trace.spare->base[i] += local->base[i];
        uint64_t told_ns = clock_latest_ns(&local->clock);
        if (told_ns > trace.dead_ns) trace.dead_ns = told_ns;
        rb_vm_trace_writer_leave(&local->writer, &trace.shared, told_ns);
        add_counts(&trace.dead, local);
    }
    pthread_mutex_unlock(&trace.lock);

    rb_vm_trace_writer_free(&local->writer);
    rb_vm_trace_stacks_free(&local->stacks);
    if (local->base) munmap(local->base, local_bytes());
    munmap(local, local_bytes());
}

struct rb_vm_trace_local *
rb_vm_trace_local_of(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_local *local = rb_vm_trace_host_local(ec);
    if (local && (local == trace.spare || local->link)) return local;
    /* Its ractor was being made when tracing was switched. */
    struct rb_vm_trace_local *made = make_local();
    if (made) rb_vm_trace_host_set_local(ec, made);
    rb_vm_trace_ractor_free(local);
    return made;
}

static uint64_t
hits_since_base(const struct rb_vm_trace_local *local, uint32_t index)
{
    return local->hits[index] - (local->base ? local->base[index] : 0);
}

uint64_t
rb_vm_trace_local_hits(uint32_t index)
{
    uint64_t hits = hits_since_base(trace.spare, index);
    for (const struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        hits += hits_since_base(local, index);
    }
    return hits;
}

static void
copy_hits(const struct rb_vm_trace_local *local, uint64_t *hits_out, uint32_t limit)
{
    const uint64_t *hits = local->hits, *base = local->base;
    if (!base) memcpy(hits_out, hits, limit * sizeof(*hits));
    for (uint32_t i = 0; base && i < limit; i++) hits_out[i] = hits[i] - base[i];
}

void
rb_vm_trace_local_copy_hits(uint64_t *hits_out, uint32_t limit)
{
    /* One ractor's counters after the other's: there are many sites, and few ractors. The program waits for this. */
    const struct rb_vm_trace_local *local = trace.locals;
    if (spare_has_hits || !local) copy_hits(trace.spare, hits_out, limit);
    else copy_hits(local, hits_out, limit);
    for (local = spare_has_hits || !local ? local : local->next; local; local = local->next) {
        for (uint32_t i = 0; i < limit; i++) hits_out[i] += hits_since_base(local, i);
    }
}

static void
clear_hits(struct rb_vm_trace_local *local, uint32_t index)
{
    local->hits[index] = 0;
    if (local->base) local->base[index] = 0;
}

void
rb_vm_trace_local_clear_hits(uint32_t index)
{
    clear_hits(trace.spare, index);
    for (struct rb_vm_trace_local *local = trace.locals; local; local = local->next) clear_hits(local, index);
}

static void
clear_all_hits(struct rb_vm_trace_local *local)
{
    size_t bytes = rb_vm_trace_site_limit() * sizeof(uint64_t);
    memset(local->hits, 0, bytes);
    if (local->base) memset(local->base, 0, bytes);
}

static void
call_at_every_exit(struct rb_vm_trace_local *local, bool on)
{
    if (on) {
        local->unhooked_countdown = local->countdown;
        local->countdown = 1;
    }
    else {
        local->countdown = local->unhooked_countdown;
    }
}

void
rb_vm_trace_local_call_at_every_exit(bool on)
{
    if (trace.spare) call_at_every_exit(trace.spare, on);
    for (struct rb_vm_trace_local *local = trace.locals; local; local = local->next) call_at_every_exit(local, on);
}

bool
rb_vm_trace_local_begin_spare(void)
{
    if (!trace.spare) trace.spare = allocate_local();
    if (!trace.spare) return false;
    clear_all_hits(trace.spare);
    trace.spare->lost = 0;
    begin_sampling(trace.spare);
    return true;
}

void
rb_vm_trace_local_begin(struct rb_vm_trace_local *local)
{
    local->clock = (struct vm_trace_clock){ 0 }; /* no time of its is to be before begin_ns */
    local->sampled = local->lost = local->late = local->rate_ns = local->rate_sampled = local->writer.events = 0;
    local->exiting.dropped = local->exiting.site != NULL;
    local->exiting.site = NULL;
    local->writer.pid = trace.pid;
    begin_sampling(local);
    clear_all_hits(local);
    rb_vm_trace_stacks_all_dead(&local->stacks);
}

/* What a ractor has is of a trace that ended while it was being made, or only of hooks: what was counted there is not this trace's. */
static struct rb_vm_trace_local *
another_local(struct rb_vm_trace_local *old)
{
    if (old && old != trace.spare && old->link) unlink_local(old);
    rb_vm_trace_ractor_free(old);
    return make_local();
}

void
rb_vm_trace_local_renew_all(void)
{
    rb_vm_trace_host_each_ractor(another_local);
}

static struct rb_vm_trace_local *
no_local(struct rb_vm_trace_local *old)
{
    rb_vm_trace_ractor_free(old);
    return NULL;
}

void
rb_vm_trace_local_free_all(void)
{
    /* Those of ractors that never began, or did not come into the child of a fork, are freed when they are collected. */
    while (trace.locals) {
        struct rb_vm_trace_local *local = trace.locals;
        rb_vm_trace_writer_close(&local->writer);
        unlink_local(local);
    }
    rb_vm_trace_host_each_ractor(no_local);
    if (trace.spare) clear_all_hits(trace.spare);
}

struct vm_trace_totals
rb_vm_trace_local_totals(void)
{
    struct vm_trace_totals totals = trace.dead;
    totals.lost += trace.spare->lost;
    for (const struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        add_counts(&totals, local);
    }
    return totals;
}

uint64_t
rb_vm_trace_local_latest_ns(void)
{
    uint64_t latest = trace.dead_ns;
    for (const struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        uint64_t ns = clock_latest_ns(&local->clock);
        if (ns > latest) latest = ns;
    }
    return latest;
}
