/*
 * Sites. See sites.h. All of this is guarded by trace.lock.
 */
#include "vm_trace/streams/sites.h"
#include "vm_trace/capture/event.h"
#include "vm_trace/session/options.h"
#include "vm_trace/base/messages.h"
#include "vm_trace/streams/versions.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_SITES 256
#define MAX_BLOCKS (VM_TRACE_MAX_SITES / BLOCK_SITES)

static struct {
    struct rb_vm_trace_site *blocks[MAX_BLOCKS];
    uint32_t count;       /* sites ever made, index 0 included: the next new index */
    uint32_t alive;
    uint32_t free;        /* head of the free list */
    uint32_t serial;      /* of the newest */
    uint32_t *units;      /* by hash of the ISEQ: head of a list of sites; a power of two */
    uint32_t unit_size;
    struct rb_vm_trace_site *collective[RB_VM_TRACE_FALLBACK + 1]; /* by kind; NULL: not made yet */
    bool full;            /* a message said so */
} sites = { .count = 1 };

uint32_t rb_vm_trace_most_sites = VM_TRACE_MAX_SITES;

#define NO_UNIT ((uintptr_t)1) /* of collective sites: no ISEQ has its instructions there, so they do not die */

/* A site that was hit. */
struct site_report {
    struct rb_vm_trace_site site;
    uint64_t hits;
};

/* Those that are being written beside the program. */
static struct {
    uint64_t *hits;       /* by index; NULL: nothing is frozen */
    uint32_t limit;       /* of the index, when it was frozen */
    uint32_t serial;      /* of the newest site then */
    uint32_t next;        /* index from which on sites are still to be told */
    struct site_report *dead; /* died since, with their texts: to be told */
    size_t dead_count, dead_capacity;
    uint64_t lost;        /* no memory was there for so many */
} frozen;

static struct rb_vm_trace_site *
site_at(uint32_t index)
{
    return &sites.blocks[index / BLOCK_SITES][index % BLOCK_SITES];
}

static uint32_t *
unit_head(uintptr_t unit)
{
    uint64_t hash = (uint64_t)unit * UINT64_C(0x9E3779B97F4A7C15);
    return &sites.units[(uint32_t)(hash >> 32) & (sites.unit_size - 1)];
}

/* A list holds the sites of all ISEQs with its hash; keep the lists short. */
static bool
grow_units(void)
{
    uint32_t size = sites.unit_size ? sites.unit_size * 2 : 1024;
    uint32_t *units = calloc(size, sizeof(*units));
    if (!units) return sites.unit_size != 0;
    free(sites.units);
    sites.units = units;
    sites.unit_size = size;
    for (uint32_t index = 1; index < sites.count; index++) {
        struct rb_vm_trace_site *site = site_at(index);
        if (!site->unit) continue;
        uint32_t *head = unit_head(site->unit);
        site->next = *head;
        *head = index;
    }
    return true;
}

static struct rb_vm_trace_site *
take_site(void)
{
    if (sites.free) {
        struct rb_vm_trace_site *site = site_at(sites.free);
        sites.free = site->next;
        return site;
    }
    if (sites.count >= rb_vm_trace_most_sites) return NULL;
    if (!sites.blocks[sites.count / BLOCK_SITES]) {
        sites.blocks[sites.count / BLOCK_SITES] = calloc(BLOCK_SITES, sizeof(struct rb_vm_trace_site));
        if (!sites.blocks[sites.count / BLOCK_SITES]) return NULL;
    }
    struct rb_vm_trace_site *site = site_at(sites.count);
    site->index = sites.count++;
    return site;
}

/* The label of the exiting instruction, as far as it is known while compiling. */
static struct vm_trace_string *
locate(const struct rb_vm_trace_site_desc *desc)
{
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(desc->frame, &from, &to);
    char buffer[1024];
    struct vm_trace_frame frame = {
        .pc = (desc->pc ? (uintptr_t)desc->pc : from) + HOST_PC_EXACT,
        .method = desc->method ? (uintptr_t)desc->method : rb_vm_trace_host_method_of(desc->frame), .iseq = desc->frame
    };
    size_t bytes;
    char *text = rb_vm_trace_text_whole(rb_vm_trace_make_label, &frame, buffer, sizeof(buffer), &bytes);
    struct vm_trace_string *string = rb_vm_trace_string_intern(text, bytes);
    if (text != buffer) free(text);
    return string;
}

/* Whether the code of an ISEQ is to be traced; `method` as in a site's description. */
static bool
asked_p(const struct rb_iseq_struct *iseq, const void *method)
{
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    struct vm_trace_string *label = rb_vm_trace_life_label(from);
    if (!label) label = locate(&(struct rb_vm_trace_site_desc){ .frame = iseq, .method = method });
    bool asked = !label || rb_vm_trace_method_asked_p(label->text, label->bytes);
    rb_vm_trace_string_release(label);
    return asked;
}

static void
release_texts(struct rb_vm_trace_site *site)
{
    rb_vm_trace_string_release(site->reason);
    rb_vm_trace_string_release(site->insn);
    rb_vm_trace_string_release(site->location);
    rb_vm_trace_string_release(site->iseq);
    rb_vm_trace_string_release(site->callee);
    site->reason = site->insn = site->location = site->iseq = site->callee = NULL;
}

/*
 * The sites for exits that can't get one of their own, made before the others so that they are
 * there when memory is short. Such an exit is counted and recorded with its backtrace, like any
 * other: only its reason, instruction and version are unknown.
 */
static void
make_collective(void)
{
    static const char reason[] = "(site table full)", unknown[] = "(unknown)";
    for (int kind = 0; kind <= RB_VM_TRACE_FALLBACK; kind++) {
        struct rb_vm_trace_site *site = take_site();
        if (!site) return;
        uint32_t index = site->index;
        *site = (struct rb_vm_trace_site){
            .hits_offset = offsetof(struct rb_vm_trace_ractor, hits) + index * sizeof(uint64_t),
            .index = index, .serial = ++sites.serial, .kind = (enum rb_vm_trace_kind)kind, .unit = NO_UNIT, .located = true,
            .reason = rb_vm_trace_string_intern(reason, sizeof(reason) - 1),
            .insn = rb_vm_trace_string_intern(unknown, sizeof(unknown) - 1),
            .location = rb_vm_trace_string_intern(unknown, sizeof(unknown) - 1)
        };
        if (site->reason && site->insn && site->location) {
            sites.collective[kind] = site;
            continue;
        }
        release_texts(site);
        site->unit = 0;
        site->next = sites.free;
        sites.free = index;
    }
}

static struct rb_vm_trace_site *
collective_site(enum rb_vm_trace_kind kind)
{
    if (!sites.full && !rb_vm_trace_global.quiet) {
        rb_vm_trace_say("%u places that can exit are traced, and there is no room for more: their exits are recorded with the reason "
                        "\"(site table full)\"; trace fewer methods", sites.alive);
    }
    sites.full = true;
    return sites.collective[kind];
}

struct rb_vm_trace_site *
rb_vm_trace_site_new(const struct rb_vm_trace_site_desc *desc)
{
    if (!trace_wanted()) return NULL;

    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(desc->unit, &from, &to);

    pthread_mutex_lock(&rb_vm_trace_global.lock);
    struct rb_vm_trace_site *site = NULL;
    if (!sites.collective[0]) make_collective();
    bool asked = !rb_vm_trace_methods_asked_p() || asked_p(desc->unit, NULL) || (desc->frame != desc->unit && asked_p(desc->frame, desc->method));
    if (asked && (sites.alive < sites.unit_size || grow_units())) site = take_site();
    if (site) {
        uint32_t index = site->index;
        *site = (struct rb_vm_trace_site){
            .hits_offset = offsetof(struct rb_vm_trace_ractor, hits) + index * sizeof(uint64_t),
            .index = index, .serial = ++sites.serial, .version = desc->version, .kind = desc->kind, .pc = (uintptr_t)desc->pc,
            .reason = rb_vm_trace_string_intern(desc->reason, desc->reason_len),
            .insn = rb_vm_trace_string_intern(desc->insn, desc->insn_len),
            .location = locate(desc),
            .inlined = desc->frame != desc->unit, .iseq = rb_vm_trace_life_label(from),
            .callee = desc->callee ? rb_vm_trace_string_intern(desc->callee, desc->callee_len) : NULL
        };
        if (site->reason && site->insn && site->location) {
            uint32_t *head = unit_head(from);
            rb_vm_trace_note_address(from);
            site->unit = from;
            site->next = *head;
            *head = index;
            sites.alive++;
        }
        else {
            release_texts(site);
            site->next = sites.free;
            sites.free = index;
            site = NULL;
        }
    }
    if (asked && !site) site = collective_site(desc->kind);
    pthread_mutex_unlock(&rb_vm_trace_global.lock);
    return site;
}

void
rb_vm_trace_site_locate(const struct rb_vm_trace_site *known, const char *label, size_t bytes)
{
    struct rb_vm_trace_site *site = site_at(known->index);
    pthread_mutex_lock(&rb_vm_trace_global.lock);
    if (!site->located) {
        struct vm_trace_string *location = rb_vm_trace_string_intern(label, bytes);
        if (location) {
            rb_vm_trace_string_release(site->location);
            site->location = location;
        }
        __atomic_store_n(&site->located, true, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&rb_vm_trace_global.lock);
}

/* Code that a flag has given trace points counts also what a later trace does not ask for, and so does code that hooks listen to. */
static bool
kind_asked_p(const struct rb_vm_trace_site *site)
{
    const struct rb_vm_trace_config *config = &rb_vm_trace_global.config;
    return (site->kind == RB_VM_TRACE_FALLBACK ? config->fallback_rate : config->exit_rate) > 0;
}

static bool
write_site(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct site_report *report = what;
    const struct rb_vm_trace_site *site = &report->site;
    struct vm_trace_event event;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, clock_now_ns(&ractor->clock))) return false;
    if (!event_interned(&event, W_REASON, site->reason)) return false;
    event_string(&event, W_KIND, site_category(site));
    if (!event_interned(&event, W_INSN, site->insn)) return false;
    event_uint32(&event, W_VERSION, site->version);
    if (!event_interned(&event, W_LOCATION, site->location)) return false;
    if (site->iseq && !event_interned(&event, W_ISEQ, site->iseq)) return false;
    if (site->callee && !event_interned(&event, W_CALLEE, site->callee)) return false;
    event_uint64(&event, W_HITS, report->hits);
    return event_end(&event, FXT_INSTANT, W_TRACE, W_SITE);
}

static void
add_hits(const struct site_report *report, struct vm_trace_totals *totals)
{
    *(report->site.kind == RB_VM_TRACE_FALLBACK ? &totals->fallbacks : &totals->exits) += report->hits;
    totals->sites++;
}

static void
report_site(const struct rb_vm_trace_site *site, struct rb_vm_trace_ractor *ractor,
            struct rb_execution_context_struct *ec, struct vm_trace_totals *totals)
{
    struct site_report report = { *site, rb_vm_trace_ractor_hits(site->index) };
    if (report.hits == 0 || !kind_asked_p(site)) return;
    add_hits(&report, totals);
    if (ractor) rb_vm_trace_event_write(ractor, ec, write_site, &report);
    else rb_vm_trace_global.dead.lost++; /* its event: the hits are in the totals */
}

void
rb_vm_trace_sites_report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                         struct vm_trace_totals *totals)
{
    for (uint32_t index = 1; index < sites.count; index++) {
        const struct rb_vm_trace_site *site = site_at(index);
        if (site->unit) report_site(site, ractor, ec, totals);
    }
}

void
rb_vm_trace_sites_count_hits(struct vm_trace_totals *totals)
{
    for (uint32_t index = 1; index < sites.count; index++) {
        const struct rb_vm_trace_site *site = site_at(index);
        if (!site->unit || !kind_asked_p(site)) continue;
        *(site->kind == RB_VM_TRACE_FALLBACK ? &totals->fallbacks : &totals->exits) += rb_vm_trace_ractor_hits(index);
    }
}

bool
rb_vm_trace_sites_any_hits(void)
{
    if (rb_vm_trace_global.dead.exits || rb_vm_trace_global.dead.fallbacks) return true;
    for (uint32_t index = 1; index < sites.count; index++) {
        const struct rb_vm_trace_site *site = site_at(index);
        if (site->unit && kind_asked_p(site) && rb_vm_trace_ractor_hits(index)) return true;
    }
    return false;
}

/* --- frozen: see sites.h ---------------------------------------------------------------------------- */

static bool
frozen_hit(const struct rb_vm_trace_site *site)
{
    return site->index < frozen.limit && site->serial <= frozen.serial && frozen.hits[site->index] > 0 && kind_asked_p(site);
}

static void
copy_frozen(struct site_report *to, const struct rb_vm_trace_site *site)
{
    *to = (struct site_report){ *site, frozen.hits[site->index] };
    rb_vm_trace_string_retain(site->reason);
    rb_vm_trace_string_retain(site->insn);
    rb_vm_trace_string_retain(site->location);
    if (site->iseq) rb_vm_trace_string_retain(site->iseq);
    if (site->callee) rb_vm_trace_string_retain(site->callee);
}

/* A site that dies, and is not told yet. */
static void
keep_frozen(const struct rb_vm_trace_site *site)
{
    if (!frozen.hits || site->index < frozen.next || !frozen_hit(site)) return;
    if (frozen.dead_count == frozen.dead_capacity) {
        size_t capacity = frozen.dead_capacity ? frozen.dead_capacity * 2 : 64;
        struct site_report *dead = realloc(frozen.dead, capacity * sizeof(*dead));
        if (!dead) {
            frozen.lost++;
            return;
        }
        frozen.dead = dead;
        frozen.dead_capacity = capacity;
    }
    copy_frozen(&frozen.dead[frozen.dead_count++], site);
}

static uint64_t *frozen_hits; /* address space that is used again */

bool
rb_vm_trace_sites_freeze_room(void)
{
    if (!frozen_hits) frozen_hits = rb_vm_trace_ractor_zeros();
    return frozen_hits != NULL;
}

void
rb_vm_trace_sites_freeze(void)
{
    rb_vm_trace_ractor_copy_hits(frozen_hits, sites.count);
    frozen.hits = frozen_hits;
    frozen.limit = sites.count;
    frozen.serial = sites.serial;
    frozen.next = 1;
    frozen.lost = 0;
}

void
rb_vm_trace_sites_thaw(void)
{
    for (size_t i = 0; i < frozen.dead_count; i++) release_texts(&frozen.dead[i].site);
    free(frozen.dead);
    frozen.dead = NULL;
    frozen.dead_count = frozen.dead_capacity = 0;
    frozen.hits = NULL;
}

bool
rb_vm_trace_sites_report_frozen(struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    enum { AT_ONCE = 64, LOOKED_AT = 4096 }; /* under the lock, for others wait for it */
    struct site_report batch[AT_ONCE];
    size_t count = 0;

    pthread_mutex_lock(&rb_vm_trace_global.lock);
    while (frozen.dead_count > 0 && count < AT_ONCE) batch[count++] = frozen.dead[--frozen.dead_count];
    for (uint32_t end = frozen.next + LOOKED_AT; frozen.next < frozen.limit && frozen.next < end && count < AT_ONCE; frozen.next++) {
        const struct rb_vm_trace_site *site = site_at(frozen.next);
        if (site->unit && frozen_hit(site)) copy_frozen(&batch[count++], site);
    }
    bool more = frozen.next < frozen.limit || frozen.dead_count > 0;
    totals->lost += frozen.lost;
    frozen.lost = 0;
    pthread_mutex_unlock(&rb_vm_trace_global.lock);

    for (size_t i = 0; i < count; i++) {
        add_hits(&batch[i], totals);
        rb_vm_trace_event_write(ractor, NULL, write_site, &batch[i]);
        release_texts(&batch[i].site);
    }
    return more;
}

void
rb_vm_trace_sites_retire(uintptr_t unit, struct rb_vm_trace_ractor *ractor,
                         struct rb_execution_context_struct *ec)
{
    pthread_mutex_lock(&rb_vm_trace_global.lock);
    if (sites.unit_size) {
        uint32_t *link = unit_head(unit);
        while (*link) {
            struct rb_vm_trace_site *site = site_at(*link);
            if (site->unit != unit) {
                link = &site->next;
                continue;
            }
            *link = site->next;
            report_site(site, ractor, ec, &rb_vm_trace_global.dead);
            rb_vm_trace_ractor_clear_hits(site->index);
            keep_frozen(site);
            release_texts(site);
            site->unit = 0;
            site->next = sites.free;
            sites.free = site->index;
            sites.alive--;
        }
    }
    pthread_mutex_unlock(&rb_vm_trace_global.lock);
}

size_t
rb_vm_trace_site_count(void)
{
    return sites.alive;
}

uint32_t
rb_vm_trace_site_limit(void)
{
    return sites.count;
}

void
rb_vm_trace_sites_free(void)
{
    for (uint32_t index = 1; index < sites.count; index++) release_texts(site_at(index));
    for (uint32_t block = 0; block < MAX_BLOCKS; block++) {
        free(sites.blocks[block]);
        sites.blocks[block] = NULL;
    }
    free(sites.units);
    sites.units = NULL;
    sites.unit_size = sites.free = sites.alive = 0;
    sites.count = 1;
    sites.full = false;
    memset(sites.collective, 0, sizeof(sites.collective));
}

size_t
rb_vm_trace_hits_offset(const struct rb_vm_trace_site *site)
{
    return site->hits_offset;
}
