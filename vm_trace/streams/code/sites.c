/*
 * Sites. See sites.h. All of this is guarded by capture.lock.
 */
#include "vm_trace/streams/code/sites.h"
#include "vm_trace/base/messages.h"
#include "vm_trace/capture/method_filter.h"
#include "vm_trace/streams/code/code_text.h"
#include "vm_trace/streams/code/versions.h"

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
    struct rb_vm_trace_site *collective[RB_VM_TRACE_KINDS]; /* by kind; NULL: not made yet */
    bool full;            /* a message said so */
} sites = { .count = 1 };

uint32_t rb_vm_trace_most_sites = VM_TRACE_MAX_SITES;

#define NO_UNIT ((uintptr_t)1) /* of collective sites: no ISEQ has its instructions there, so they do not die */

/* A site that was hit. */
struct site_report {
    struct rb_vm_trace_site site;
    struct rb_vm_trace_code *next_code; /* the text of the version after its own, or NULL */
    uint64_t hits;
    struct vm_trace_lost lost;
};

/* Those that are being written beside the program. */
static struct {
    uint64_t *hits;       /* by index; NULL: there is no snapshot */
    uint32_t limit;       /* of the index, when the snapshot began */
    uint32_t serial;      /* of the newest site then */
    uint32_t next;        /* index of the next site to write */
    struct site_report *dead; /* freed since, with their texts: to be written */
    size_t dead_count, dead_capacity;
    uint64_t lost;        /* no memory was there for so many */
} snapshot;

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

/* From the ractor state, in bytes. */
static uint64_t
hits_offset(uint32_t index)
{
    return VM_TRACE_FIRST_STATE + offsetof(struct vm_trace_exit_state, hits) + index * sizeof(uint64_t);
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
    rb_vm_trace_hits_limit = sites.count;
    return site;
}

/* The label of the exiting instruction, as far as it is known while compiling. */
static struct vm_trace_string *
locate(const struct rb_vm_trace_site_desc *desc)
{
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(desc->frame, &from, &to);
    char buffer[1024];
    uintptr_t exact = (desc->pc ? (uintptr_t)desc->pc : from) + HOST_PC_EXACT;
    struct vm_trace_frame frame = {
        .pc = !desc->pc && desc->frame_pc ? (uintptr_t)desc->frame_pc : exact,
        .method = desc->method ? (uintptr_t)desc->method : rb_vm_trace_host_method_of(desc->frame), .iseq = desc->frame
    };
    size_t bytes;
    char *text = rb_vm_trace_text_whole(rb_vm_trace_make_label, &frame, buffer, sizeof(buffer), &bytes);
    struct vm_trace_string *string = rb_vm_trace_string_intern(text, bytes);
    if (text != buffer) free(text);
    return string;
}

/* The label of an ISEQ; the caller owns a reference. `method` as in a site's description. */
static struct vm_trace_string *
unit_label(const struct rb_iseq_struct *iseq, const void *method)
{
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(iseq, &from, &to);
    struct vm_trace_string *label = rb_vm_trace_version_history_label(from);
    return label ? label : locate(&(struct rb_vm_trace_site_desc){ .frame = iseq, .method = method });
}

/* Whether the code of an ISEQ is to be traced; likewise. */
static bool
requested_p(const struct rb_iseq_struct *iseq, const void *method)
{
    struct vm_trace_string *label = unit_label(iseq, method);
    bool requested = !label || rb_vm_trace_method_requested_p(label->text, label->bytes);
    rb_vm_trace_string_release(label);
    return requested;
}

static void
release_texts(struct rb_vm_trace_site *site)
{
    rb_vm_trace_string_release(site->reason);
    rb_vm_trace_string_release(site->insn);
    rb_vm_trace_string_release(site->location);
    rb_vm_trace_string_release(site->iseq);
    rb_vm_trace_string_release(site->callee);
    rb_vm_trace_code_release(site->code);
    site->code = NULL;
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
    for (int kind = 0; kind < RB_VM_TRACE_KINDS; kind++) {
        struct rb_vm_trace_site *site = take_site();
        if (!site) return;
        uint32_t index = site->index;
        *site = (struct rb_vm_trace_site){ .hits_offset = hits_offset(index),
                                           .index = index,
                                           .serial = ++sites.serial,
                                           .kind = (enum rb_vm_trace_kind)kind,
                                           .unit = NO_UNIT,
                                           .located = true,
                                           .reason = rb_vm_trace_string_intern(reason, sizeof(reason) - 1),
                                           .insn = rb_vm_trace_string_intern(unknown, sizeof(unknown) - 1),
                                           .location = rb_vm_trace_string_intern(unknown, sizeof(unknown) - 1) };
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
    if (!sites.full && !rb_vm_trace_messages.quiet) {
        rb_vm_trace_message("%u places that can exit are traced, and there is no room for more: their exits are "
                            "recorded with the reason "
                            "\"(site table full)\"; trace fewer methods",
                            sites.alive);
    }
    sites.full = true;
    return sites.collective[kind];
}

/* NULL: no memory. */
static struct vm_trace_string *
intern_callee(const char *callee, size_t bytes)
{
    return rb_vm_trace_known_init() ? rb_vm_trace_string_intern(callee, bytes) : NULL;
}

/* What tells the site from others of its line: where the instruction is, and what it calls. */
static void
tell_apart(struct rb_vm_trace_site *site, const struct rb_vm_trace_site_desc *desc)
{
    char buffer[256];
    if (desc->callee) site->callee = intern_callee(desc->callee, desc->callee_len);
    if (!site->pc || site->part == CATCHES || site->kind == RB_VM_TRACE_COUNTER) return;
    if (!rb_vm_trace_host_insn_repeated_p(desc->frame, site->pc, &site->insn_index)) return;
    site->repeated = rb_vm_trace_known_init();
    if (site->callee) return;
    size_t bytes = rb_vm_trace_host_operand_name(site->pc, buffer, sizeof(buffer));
    if (bytes) site->callee = intern_callee(buffer, bytes < sizeof(buffer) ? bytes : sizeof(buffer));
}

static enum vm_trace_throw_part
part_of(const struct rb_vm_trace_site_desc *desc)
{
    static const struct {
        const char *insn;
        enum vm_trace_throw_part part;
    } parts[] = { { "throw", THROWS }, { "(handler)", CATCHES } };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strlen(parts[i].insn) == desc->insn_len && memcmp(parts[i].insn, desc->insn, desc->insn_len) == 0)
            return parts[i].part;
    }
    return NO_THROW;
}

struct rb_vm_trace_site *
rb_vm_trace_site_new(const struct rb_vm_trace_site_desc *desc)
{
    if (!trace_wanted()) return NULL;

    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(desc->unit, &from, &to);

    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    struct rb_vm_trace_site *site = NULL;
    if (!sites.collective[0]) make_collective();
    bool requested = !rb_vm_trace_methods_requested_p() || requested_p(desc->unit, NULL) ||
        (desc->frame != desc->unit && requested_p(desc->frame, desc->method));
    if (requested && (sites.alive < sites.unit_size || grow_units())) site = take_site();
    if (site) {
        uint32_t index = site->index;
        *site = (struct rb_vm_trace_site){ .hits_offset = hits_offset(index),
                                           .index = index,
                                           .serial = ++sites.serial,
                                           .version = desc->version,
                                           .kind = desc->kind,
                                           .pc = (uintptr_t)desc->pc,
                                           .reason = rb_vm_trace_string_intern(desc->reason, desc->reason_len),
                                           .insn = rb_vm_trace_string_intern(desc->insn, desc->insn_len),
                                           .location = locate(desc),
                                           .part = part_of(desc),
                                           .inlined = desc->frame != desc->unit,
                                           .code = desc->code,
                                           .code_line = desc->code_line,
                                           .iseq = rb_vm_trace_version_history_label(from) };
        rb_vm_trace_code_text_retain(site->code);
        /* Where the code was compiled before the trace began, only the text knows. */
        if (!site->iseq && site->code) site->iseq = rb_vm_trace_code_text_iseq(site->code);
        tell_apart(site, desc);
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
    if (requested && !site) site = collective_site(desc->kind);
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
    return site;
}

struct rb_vm_trace_code *
rb_vm_trace_code_new(const struct rb_iseq_struct *iseq, uint32_t version, const char *text, size_t text_len)
{
    if (!rb_vm_trace_code_wanted_p()) return NULL;
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    struct vm_trace_string *label = unit_label(iseq, NULL);
    bool requested = label && rb_vm_trace_method_requested_p(label->text, label->bytes);
    struct rb_vm_trace_code *code = NULL;
    if (requested) code = rb_vm_trace_code_text_make(label, version, text, text_len);
    else rb_vm_trace_string_release(label);
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = NULL;
    if (code && rb_vm_trace_code_text_all_p() && trace_on()) ractor = rb_vm_trace_ractor_current(&ec);
    if (ractor) rb_vm_trace_code_text_write(code, ractor, ec);
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
    return code;
}

void
rb_vm_trace_site_locate(const struct rb_vm_trace_site *known, const char *label, size_t bytes)
{
    struct rb_vm_trace_site *site = site_at(known->index);
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    if (!site->located) {
        struct vm_trace_string *location = rb_vm_trace_string_intern(label, bytes);
        if (location) {
            rb_vm_trace_string_release(site->location);
            site->location = location;
        }
        __atomic_store_n(&site->located, true, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
}

/* That has it counted. */
static struct rb_vm_trace_stream *
stream_of(const struct rb_vm_trace_site *site)
{
    if (site->kind == RB_VM_TRACE_COUNTER) return &rb_vm_trace_jit_counters;
    return site->kind == RB_VM_TRACE_FALLBACK ? &rb_vm_trace_fallbacks : &rb_vm_trace_exits;
}

/*
 * Code that a flag has given trace points counts also what a later trace does not ask for, and so
 * does code that hooks listen to.
 */
static bool
kind_requested_p(const struct rb_vm_trace_site *site)
{
    return stream_of(site)->rate > 0;
}

/* What the site of a counter counted. */
static bool
write_counter(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct site_report *report = what;
    const struct rb_vm_trace_site *site = &report->site;
    struct vm_trace_event event;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, clock_now_ns(&ractor->clock))) return false;
    if (!event_interned(&event, STRING_COUNTER, site->reason)) return false;
    event_uint32(&event, STRING_VERSION, site->version);
    if (!event_interned(&event, STRING_LOCATION, site->location)) return false;
    if (site->iseq && !event_interned(&event, STRING_ISEQ, site->iseq)) return false;
    event_uint64(&event, STRING_HITS, report->hits);
    return event_end(&event, FXT_EVENT_INSTANT, STRING_TRACE, STRING_COUNTER);
}

static bool
write_site(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct site_report *report = what;
    const struct rb_vm_trace_site *site = &report->site;
    struct vm_trace_event event;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, clock_now_ns(&ractor->clock))) return false;
    if (!event_interned(&event, STRING_REASON, site->reason)) return false;
    event_string(&event, STRING_KIND, site_category(site));
    if (!event_interned(&event, STRING_INSN, site->insn)) return false;
    event_uint32(&event, STRING_VERSION, site->version);
    if (!event_interned(&event, STRING_LOCATION, site->location)) return false;
    if (site->iseq && !event_interned(&event, STRING_ISEQ, site->iseq)) return false;
    if (site->callee && !event_interned_rarely(&event, KNOWN(CALLEE), site->callee)) return false;
    if (site->repeated && !event_uint32_rarely(&event, KNOWN(INSN_INDEX), site->insn_index)) return false;
    if (site->code && !event_uint32_rarely(&event, KNOWN(CODE_LINE), site->code_line)) return false;
    event_uint64(&event, STRING_HITS, report->hits);
    if (report->lost.ns) {
        if (!event_uint64_rarely(&event, KNOWN(LOST_NS), report->lost.ns)) return false;
        if (!event_uint64_rarely(&event, KNOWN(LOST_MAX_NS), report->lost.longest_ns)) return false;
    }
    return event_end(&event, FXT_EVENT_INSTANT, STRING_TRACE, STRING_SITE);
}

/* The first counter of each of these streams is for hits. */
static void
add_hits(const struct rb_vm_trace_site *site, uint64_t hits, struct vm_trace_totals *totals)
{
    *stream_counter(stream_of(site), totals, 0) += hits;
    if (site->kind == RB_VM_TRACE_COUNTER) ++*stream_counter(&rb_vm_trace_jit_counters, totals, JIT_COUNTERS_PLACES);
    else ++*stream_counter(&rb_vm_trace_exits, totals, EXITS_SITES);
}

static bool
write_report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
             const struct site_report *report)
{
    bool counter = report->site.kind == RB_VM_TRACE_COUNTER;
    return rb_vm_trace_event_write(ractor, ec, counter ? write_counter : write_site, report);
}

/* The text of the version that was compiled after the site's, if the site's is kept: it shows what the exit led to. */
static struct rb_vm_trace_code *
next_code(const struct rb_vm_trace_site *of)
{
    for (uint32_t index = of->code ? *unit_head(of->unit) : 0; index; index = site_at(index)->next) {
        const struct rb_vm_trace_site *site = site_at(index);
        if (site->unit == of->unit && site->version == of->version + 1 && site->code) return site->code;
    }
    return NULL;
}

static void
report_site(const struct rb_vm_trace_site *site, struct rb_vm_trace_ractor *ractor,
            struct rb_execution_context_struct *ec, struct vm_trace_totals *totals)
{
    struct site_report report = {
        .site = *site, .hits = rb_vm_trace_hits(site->index), .lost = rb_vm_trace_lost_time(site->index)
    };
    if (report.hits == 0 || !kind_requested_p(site)) return;
    add_hits(site, report.hits, totals);
    if (ractor) {
        rb_vm_trace_code_text_write(site->code, ractor, ec);
        rb_vm_trace_code_text_write(next_code(site), ractor, ec);
        write_report(ractor, ec, &report);
    }
    else rb_vm_trace_capture.dead.lost++; /* its event: the hits are in the totals */
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
rb_vm_trace_sites_count(struct vm_trace_totals *totals)
{
    for (uint32_t index = 1; index < sites.count; index++) {
        const struct rb_vm_trace_site *site = site_at(index);
        if (!site->unit || !kind_requested_p(site)) continue;
        uint64_t hits = rb_vm_trace_hits(index);
        if (hits) add_hits(site, hits, totals);
    }
}

bool
rb_vm_trace_sites_unreported_p(void)
{
    struct vm_trace_totals *dead = &rb_vm_trace_capture.dead;
    if (*stream_counter(&rb_vm_trace_exits, dead, EXITS_HITS) ||
        *stream_counter(&rb_vm_trace_fallbacks, dead, FALLBACKS_HITS) ||
        *stream_counter(&rb_vm_trace_jit_counters, dead, JIT_COUNTERS_HITS))
        return true;
    for (uint32_t index = 1; index < sites.count; index++) {
        const struct rb_vm_trace_site *site = site_at(index);
        if (site->unit && kind_requested_p(site) && rb_vm_trace_hits(index)) return true;
    }
    return false;
}

/* --- snapshots: see sites.h ---------------------------------------------------------------------------- */

static bool
snapshot_hit(const struct rb_vm_trace_site *site)
{
    return site->index < snapshot.limit && site->serial <= snapshot.serial && snapshot.hits[site->index] > 0 &&
           kind_requested_p(site);
}

static void
copy_for_snapshot(struct site_report *to, const struct rb_vm_trace_site *site)
{
    *to = (struct site_report){ .site = *site, .next_code = next_code(site), .hits = snapshot.hits[site->index],
                                .lost = rb_vm_trace_lost_time(site->index) };
    rb_vm_trace_string_retain(site->reason);
    rb_vm_trace_string_retain(site->insn);
    rb_vm_trace_string_retain(site->location);
    if (site->iseq) rb_vm_trace_string_retain(site->iseq);
    if (site->callee) rb_vm_trace_string_retain(site->callee);
    rb_vm_trace_code_text_retain(to->site.code);
    rb_vm_trace_code_text_retain(to->next_code);
}

static void
release_report(struct site_report *report)
{
    release_texts(&report->site);
    rb_vm_trace_code_release(report->next_code);
}

/* A site that is freed before the snapshot has it. */
static void
keep_for_snapshot(const struct rb_vm_trace_site *site)
{
    if (!snapshot.hits || site->index < snapshot.next || !snapshot_hit(site)) return;
    if (snapshot.dead_count == snapshot.dead_capacity) {
        size_t capacity = snapshot.dead_capacity ? snapshot.dead_capacity * 2 : 64;
        struct site_report *dead = realloc(snapshot.dead, capacity * sizeof(*dead));
        if (!dead) {
            snapshot.lost++;
            return;
        }
        snapshot.dead = dead;
        snapshot.dead_capacity = capacity;
    }
    copy_for_snapshot(&snapshot.dead[snapshot.dead_count++], site);
}

static struct rb_vm_trace_ractor *snapshot_hits; /* address space that is used again */

bool
rb_vm_trace_sites_snapshot_room(void)
{
    if (!snapshot_hits) snapshot_hits = rb_vm_trace_ractor_zeros();
    return snapshot_hits != NULL;
}

void
rb_vm_trace_sites_snapshot_begin(void)
{
    snapshot.hits = exits_of(snapshot_hits)->hits;
    rb_vm_trace_hits_copy(snapshot.hits, sites.count);
    rb_vm_trace_code_text_next_snapshot();
    snapshot.limit = sites.count;
    snapshot.serial = sites.serial;
    snapshot.next = 1;
    snapshot.lost = 0;
}

void
rb_vm_trace_sites_snapshot_end(void)
{
    for (size_t i = 0; i < snapshot.dead_count; i++) release_report(&snapshot.dead[i]);
    free(snapshot.dead);
    snapshot.dead = NULL;
    snapshot.dead_count = snapshot.dead_capacity = 0;
    snapshot.hits = NULL;
}

bool
rb_vm_trace_sites_snapshot_write(struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    enum { AT_ONCE = 64, LOOKED_AT = 4096 }; /* under the lock, for others wait for it */
    struct site_report batch[AT_ONCE];
    size_t count = 0;

    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    while (snapshot.dead_count > 0 && count < AT_ONCE) batch[count++] = snapshot.dead[--snapshot.dead_count];
    for (uint32_t end = snapshot.next + LOOKED_AT;
         snapshot.next < snapshot.limit && snapshot.next < end && count < AT_ONCE; snapshot.next++) {
        const struct rb_vm_trace_site *site = site_at(snapshot.next);
        if (site->unit && snapshot_hit(site)) copy_for_snapshot(&batch[count++], site);
    }
    bool more = snapshot.next < snapshot.limit || snapshot.dead_count > 0;
    totals->lost += snapshot.lost;
    snapshot.lost = 0;
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);

    for (size_t i = 0; i < count; i++) {
        add_hits(&batch[i].site, batch[i].hits, totals);
        rb_vm_trace_code_text_snapshot(batch[i].site.code, ractor);
        rb_vm_trace_code_text_snapshot(batch[i].next_code, ractor);
        write_report(ractor, NULL, &batch[i]);
        release_report(&batch[i]);
    }
    return more;
}

void
rb_vm_trace_sites_unit_freed(uintptr_t unit, bool iseq, struct rb_vm_trace_ractor *ractor,
                             struct rb_execution_context_struct *ec)
{
    pthread_mutex_lock(&rb_vm_trace_capture.lock);
    if (sites.unit_size) {
        uint32_t *link = unit_head(unit);
        /* All are there while they are reported: one may refer to the text of another. */
        for (uint32_t index = *link; index; index = site_at(index)->next) {
            const struct rb_vm_trace_site *site = site_at(index);
            if (site->unit != unit) continue;
            report_site(site, ractor, ec, &rb_vm_trace_capture.dead);
            keep_for_snapshot(site);
        }
        while (*link) {
            struct rb_vm_trace_site *site = site_at(*link);
            if (site->unit != unit) {
                link = &site->next;
                continue;
            }
            *link = site->next;
            rb_vm_trace_hits_clear(site->index);
            release_texts(site);
            site->unit = 0;
            site->next = sites.free;
            sites.free = site->index;
            sites.alive--;
        }
    }
    pthread_mutex_unlock(&rb_vm_trace_capture.lock);
}

size_t
rb_vm_trace_site_count(void)
{
    return sites.alive;
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
    sites.count = rb_vm_trace_hits_limit = 1;
    sites.full = false;
    memset(sites.collective, 0, sizeof(sites.collective));
}

size_t
rb_vm_trace_hits_offset(const struct rb_vm_trace_site *site)
{
    return site->hits_offset;
}
