/* exit_resolve.c - decides what counts, for each process, once everything is read. See exit_resolve.h. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/label.h"
#include "topics/exits/exit_resolve.h"
#include "base/xalloc.h"

static struct exit_row *
exit_row_at(const struct report *report, uint32_t number)
{
    return row_table_at(&report->exits.rows, number);
}

/* --- names of sites ------------------------------------------------------------------------------ */

/* Special values for the number of an owner. */
enum { OWNER_UNKNOWN = STRING_NONE, OWNER_AMBIGUOUS = UINT32_MAX - 1 };

struct labels {
    struct pool *pool;
    struct map owner_of; /* label without owner (with and without line) -> owner, for the labels of interest */
    char *text; /* scratch buffer */
    size_t text_size;
};

/* A label and its parts. */
struct split {
    struct fxt_string label;
    struct label_parts parts;
    struct label_owner owner;
};

static struct split
split(const struct pool *pool, uint32_t id)
{
    struct split split = {.label = pool_string(pool, id)};
    split.parts = label_parts(split.label);
    split.owner = label_owner(split.parts.method);
    return split;
}

static bool
may_have_owner(const struct split *split)
{
    return split->owner.possible && split->parts.path.len > 0 && !fxt_string_is(split->parts.path, "<cfunc>");
}

/* "baz (path:line)" for "block in Foo#baz (path:line)", or "baz (path)": what the labels of one
 * method have in common, with and without owner. Valid until the next call. */
static struct fxt_string
bare_label(struct labels *labels, const struct split *split, bool line)
{
    const char *name = split->label.ptr + split->owner.at + split->owner.bytes;
    const char *end = line ? split->label.ptr + split->label.len - 1 : split->parts.path.ptr + split->parts.path.len;
    size_t len = (size_t)(end - name);
    if (labels->text == NULL || labels->text_size < len + 1) {
        labels->text_size = 2 * len + 256;
        labels->text = xrealloc(labels->text, labels->text_size, 1);
    }
    memcpy(labels->text, name, len);
    labels->text[len] = ')';
    return (struct fxt_string){.ptr = labels->text, .len = (uint32_t)len + 1};
}

static void
add_wanted_owner(struct labels *labels, const struct split *split)
{
    for (int line = 0; line < 2; line++) {
        struct fxt_string bare = bare_label(labels, split, line);
        uint32_t id = pool_intern(labels->pool, bare.ptr, bare.len);
        if (id != STRING_NONE && map_get(&labels->owner_of, id) == MAP_NONE)
            map_set(&labels->owner_of, id, OWNER_UNKNOWN);
    }
}

static void
learn_owner(struct labels *labels, const struct split *split)
{
    for (int line = 0; line < 2; line++) {
        struct fxt_string bare = bare_label(labels, split, line);
        uint32_t id = pool_find(labels->pool, bare.ptr, bare.len);
        uint32_t known = id == STRING_NONE ? MAP_NONE : map_get(&labels->owner_of, id);
        if (known == MAP_NONE || known == OWNER_AMBIGUOUS) continue;
        uint32_t owner = OWNER_AMBIGUOUS; /* a recorded frame without owner: the method has none */
        if (split->owner.bytes > 0)
            owner = pool_intern(labels->pool, split->label.ptr + split->owner.at, split->owner.bytes);
        if (known == OWNER_UNKNOWN)
            map_set(&labels->owner_of, id, owner);
        else if (known != owner)
            map_set(&labels->owner_of, id, OWNER_AMBIGUOUS);
    }
}

static uint32_t
label_with_owner(struct labels *labels, uint32_t label)
{
    struct split bare = split(labels->pool, label);
    uint32_t owner = OWNER_UNKNOWN;
    for (int line = 1; line >= 0 && (owner == OWNER_UNKNOWN || owner == OWNER_AMBIGUOUS); line--) {
        struct fxt_string text = bare_label(labels, &bare, line);
        owner = map_get(&labels->owner_of, pool_find(labels->pool, text.ptr, text.len));
    }
    if (owner == OWNER_UNKNOWN || owner == OWNER_AMBIGUOUS || owner == MAP_NONE) return label;
    struct fxt_string name = pool_string(labels->pool, owner);
    size_t len = bare.label.len + name.len;
    char *text = xrealloc(NULL, len, 1);
    memcpy(text, bare.label.ptr, bare.owner.at);
    memcpy(text + bare.owner.at, name.ptr, name.len);
    memcpy(text + bare.owner.at + name.len, bare.label.ptr + bare.owner.at, bare.label.len - bare.owner.at);
    uint32_t id = pool_intern(labels->pool, text, len);
    free(text);
    return id == STRING_NONE ? label : id;
}

/* When the tracer makes a site for an inlined frame, it does not know the frame's owner; it
 * learns it with the first recorded exit. If no exit was recorded, and all other labels with
 * this method name and path have the same owner, the site gets that owner. */
static void
name_sites(struct report *report)
{
    struct labels labels = {.pool = report->pool};
    uint32_t strings = pool_size(report->pool), count = report->exits.rows.count;
    for (uint32_t i = 0; i < count; i++) {
        const struct exit_row *exit_row = exit_row_at(report, i);
        struct split bare = split(report->pool, exit_row->location);
        if (exit_row->hits > 0 && exit_row->records == 0 && may_have_owner(&bare) && bare.owner.bytes == 0)
            add_wanted_owner(&labels, &bare);
    }
    if (labels.owner_of.used > 0) {
        for (uint32_t id = 1; id < strings; id++) {
            struct split known = split(report->pool, id);
            if (may_have_owner(&known) && known.owner.bytes > 0) learn_owner(&labels, &known);
        }
        for (uint32_t i = 0; i < count; i++) {
            const struct exit_row *exit_row = exit_row_at(report, i);
            struct split known = split(report->pool, exit_row->location);
            if (exit_row->records > 0 && may_have_owner(&known) && known.owner.bytes == 0) learn_owner(&labels, &known);
        }
        for (uint32_t i = 0; i < count; i++) {
            struct exit_row *exit_row = exit_row_at(report, i);
            struct split bare = split(report->pool, exit_row->location);
            if (exit_row->hits == 0 || exit_row->records > 0) continue;
            if (!may_have_owner(&bare) || bare.owner.bytes > 0) continue;
            exit_row->location = label_with_owner(&labels, exit_row->location);
            if (exit_row->iseq == STRING_NONE) continue;
            uint32_t method = label_without_line(report->pool, exit_row->location);
            if (label_without_line(report->pool, exit_row->iseq) == method) exit_row->iseq = STRING_NONE;
        }
    }
    map_free(&labels.owner_of);
    free(labels.text);
}

/* Whether a site of unknown owner may match --method, judged by the method name alone. */
static bool
may_match_method(const struct report *report, const struct exit_row *exit_row)
{
    const char *pattern = report->filter.method, *name;
    if (pattern == NULL || exit_row->hits == 0 || exit_row->records > 0) return false;
    struct split bare = split(report->pool, exit_row->location);
    if (!may_have_owner(&bare) || bare.owner.bytes > 0) return false;
    if ((name = strrchr(pattern, '#')) != NULL) pattern = name + 1;
    char method[1024];
    size_t len = bare.parts.method.len - bare.owner.at;
    if (len >= sizeof method) return true;
    memcpy(method, bare.parts.method.ptr + bare.owner.at, len);
    method[len] = '\0';
    return fnmatch(pattern, method, 0) == 0;
}

/* --- events and the sites that they are of --------------------------------------------------------- */

/* Degrees of similarity between rows that may belong to one site, from equal keys to the least
 * that must agree. */
enum { EQUAL_KEYS, SIMILAR_BUT_ISEQ, SIMILAR_BUT_OWNER, SIMILAR_BUT_LINE, SIMILARITIES };
enum { SIMILARITY_KEYS = 8 };

struct similar_site {
    uint32_t key[SIMILARITY_KEYS];
    uint32_t row; /* the one with the most hits */
    uint64_t hits;
};

static void
similarity_key(struct report *report, const struct exit_row *exit_row, unsigned kind, uint32_t key[SIMILARITY_KEYS])
{
    const uint32_t all[SIMILARITY_KEYS] = {
        kind,
        exit_row->process,
        exit_row->category,
        exit_row->reason,
        exit_row->insn,
        exit_row->version,
        kind <= SIMILAR_BUT_ISEQ    ? exit_row->location
        : kind == SIMILAR_BUT_OWNER ? label_path_and_line(report->pool, exit_row->location)
                                  : STRING_NONE,
        kind == EQUAL_KEYS ? exit_row->iseq : STRING_NONE,
    };
    memcpy(key, all, sizeof all);
}

static bool
exact_counts(const struct report *report, const struct exit_row *exit_row)
{
    return report_process(report, exit_row->process)->exact;
}

/* Where sites count, every event must count with some site, even if no site has its name: the
 * label of an event names the class of the receiver, and not every event has room for its ISEQ.
 * Such an event joins the most similar site. */
static void
join_events_to_sites(struct report *report)
{
    struct row_table sites;
    row_table_init(&sites, sizeof(struct similar_site), SIMILARITY_KEYS, SIMILARITIES * EXIT_ROWS_MAX);
    uint32_t count = report->exits.rows.count;
    for (uint32_t i = 0; i < count; i++) {
        const struct exit_row *exit_row = exit_row_at(report, i);
        if (exit_row->hits == 0 || !exact_counts(report, exit_row)) continue;
        for (unsigned kind = EQUAL_KEYS; kind < SIMILARITIES; kind++) {
            uint32_t key[SIMILARITY_KEYS];
            similarity_key(report, exit_row, kind, key);
            struct similar_site *similar = row_table_get(&sites, key);
            if (exit_row->hits > similar->hits) similar->row = i, similar->hits = exit_row->hits;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct exit_row *exit_row = exit_row_at(report, i);
        if (exit_row->hits > 0 || exit_row->records == 0 || !exact_counts(report, exit_row)) continue;
        const struct similar_site *similar = NULL;
        for (unsigned kind = EQUAL_KEYS; kind < SIMILARITIES && similar == NULL; kind++) {
            uint32_t key[SIMILARITY_KEYS];
            similarity_key(report, exit_row, kind, key);
            similar = row_table_find(&sites, key);
        }
        if (similar == NULL) continue;
        struct exit_row *site = exit_row_at(report, similar->row);
        exit_row_merge(site, exit_row);
        durations_merge(&site->lost, &exit_row->lost);
        exit_row_clear(exit_row);
    }
    row_table_free(&sites);
}

/* --- counts ------------------------------------------------------------------------------------------- */

/* Distributes `whole` in proportion to `parts`, which then sum up to it. Returns false if all
 * parts are 0. */
static bool
apportion(uint64_t *parts, unsigned count, uint64_t whole)
{
    uint64_t sum = 0, left = whole;
    unsigned most = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += parts[i];
        if (parts[i] > parts[most]) most = i;
    }
    if (sum == 0) return whole == 0;
    for (unsigned i = 0; i < count; i++) {
        parts[i] = (uint64_t)((double)parts[i] / (double)sum * (double)whole);
        if (parts[i] > left) parts[i] = left;
        left -= parts[i];
    }
    parts[most] += left;
    return true;
}

static void
resolve_outcomes(struct exit_row *exit_row)
{
    if (exit_row->category != STRING_RECOMPILE_EXIT) return;
    if (!apportion(exit_row->outcomes, EXIT_OUTCOMES, exit_row->count))
        exit_row->outcomes[OUTCOME_UNRECORDED] = exit_row->count;
}

/* Of a whole process. */
struct thread_sums {
    bool exact;                /* the hits of sites count, in one of its pieces */
    uint64_t exits, fallbacks; /* of the threads' events */
    uint64_t all_exits, all_fallbacks; /* of the pieces */
    uint64_t exits_left, fallbacks_left; /* of these: no thread has them yet */
    uint32_t most;
};

static uint64_t
part_of(uint64_t count, uint64_t sum, uint64_t whole, uint64_t left)
{
    uint64_t part = sum > 0 ? (uint64_t)((double)count / (double)sum * (double)whole) : count;
    return part < left ? part : left;
}

static struct thread_sums *
sum_threads(const struct report *report)
{
    struct thread_sums *sums = xcalloc(report->processes.count + 1, sizeof *sums);
    for (uint32_t i = 0; i < report->threads.count; i++) {
        const struct report_thread *thread = report_thread(report, i);
        struct thread_sums *sum = &sums[thread->process];
        if (sum->exits + sum->fallbacks == 0 ||
            thread->exits + thread->fallbacks >
                report_thread(report, sum->most)->exits + report_thread(report, sum->most)->fallbacks)
            sum->most = i;
        sum->exits += thread->exits;
        sum->fallbacks += thread->fallbacks;
    }
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        struct thread_sums *sum = &sums[process->whole];
        sum->exact |= process->exact;
        sum->exits_left = sum->all_exits += process->exits;
        sum->fallbacks_left = sum->all_fallbacks += process->fallbacks;
    }
    return sums;
}

/* Sites have no thread, so their hits are distributed over the threads as the events of the
 * process are. */
static void
resolve_threads(struct report *report)
{
    struct thread_sums *sums = sum_threads(report);
    for (uint32_t i = 0; i < report->threads.count; i++) {
        struct report_thread *thread = report_thread(report, i);
        struct thread_sums *sum = &sums[thread->process];
        if (!sum->exact) continue;
        thread->exits = part_of(thread->exits, sum->exits, sum->all_exits, sum->exits_left);
        thread->fallbacks = part_of(thread->fallbacks, sum->fallbacks, sum->all_fallbacks, sum->fallbacks_left);
        sum->exits_left -= thread->exits;
        sum->fallbacks_left -= thread->fallbacks;
    }
    uint32_t nobody = pool_intern(report->pool, REPORT_UNRECORDED, sizeof REPORT_UNRECORDED - 1);
    for (uint32_t i = 0; i < report->processes.count; i++) {
        struct thread_sums *sum = &sums[i];
        if (!sum->exact) continue;
        struct report_thread *thread = report_thread(report, sum->most);
        if (sum->exits > 0) thread->exits += sum->exits_left, sum->exits_left = 0;
        if (sum->fallbacks > 0) thread->fallbacks += sum->fallbacks_left, sum->fallbacks_left = 0;
        if (sum->exits_left + sum->fallbacks_left == 0) continue;
        const uint32_t key[3] = {i, 0, nobody};
        thread = row_table_get(&report->threads, key);
        if (thread == NULL) continue;
        thread->name = nobody;
        thread->exits += sum->exits_left;
        thread->fallbacks += sum->fallbacks_left;
    }
    free(sums);
}

void
exits_resolve(struct report *report)
{
    bool any_exact = false;
    for (uint32_t i = 0; i < report->processes.count; i++) {
        struct report_process *process = report_process(report, i);
        if (process->summary_lost > process->lost) process->lost = process->summary_lost;
        bool whole = process->summarized &&
                     (process->summary_sites == UINT64_MAX || process->summary_sites == process->sites);
        /* The sites of a snapshot that begins late count more than the snapshot holds. */
        bool beyond = process->snapshot ? process->sampled && process->lost == 0
                                        : process->sampled || process->lost > 0 || process->timed;
        process->exact = whole && !report->times_only && beyond;
        any_exact |= process->exact;
    }
    if (any_exact) {
        name_sites(report);
        join_events_to_sites(report);
    }
    for (uint32_t i = 0; i < report->exits.rows.count; i++) {
        struct exit_row *exit_row = exit_row_at(report, i);
        struct report_process *process = report_process(report, exit_row->process);
        if (!report_exit_wanted(report, exit_row->reason, exit_row->location)) {
            if (process->exact && may_match_method(report, exit_row)) report->unnamed += exit_row->hits;
            exit_row_clear(exit_row);
        }
        exit_row->count = process->exact ? exit_row->hits : exit_row->weighted;
        exit_row->lost_ns = process->exact ? exit_row->site_lost_ns : exit_row->recorded_lost_ns;
        resolve_outcomes(exit_row);
        process->recorded += exit_row->records;
        *(exit_row->category == STRING_FALLBACK ? &process->fallbacks : &process->exits) += exit_row->count;
    }
    if (any_exact) resolve_threads(report);
}
