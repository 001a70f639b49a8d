/* report_tables.c - the tables of a report. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "label.h"
#include "report_tables.h"
#include "xalloc.h"

/* Parts of a place's key, by which places are put together. */
enum { BY_CATEGORY = 1, BY_REASON = 2, BY_LOCATION = 4, BY_METHOD = 8, BY_INSN = 16, BY_VERSION = 32 };

struct view {
    struct report *report;
    struct document *document;
    uint64_t top;
};

static struct fxt_string
name_of(const struct view *view, uint32_t id)
{
    return id == STRING_NONE ? text_of("(not said)") : pool_string(view->report->pool, id);
}

/* --- places ------------------------------------------------------------------------------------ */

static int
compare_places(const void *left, const void *right, void *context)
{
    const struct place *a = left, *b = right;
    const struct pool *pool = context;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    const uint32_t a_key[] = {a->reason, a->location, a->insn, a->category}, b_key[] = {b->reason, b->location, b->insn, b->category};
    for (unsigned i = 0; i < 4; i++) {
        int order = fxt_string_compare(pool_string(pool, a_key[i]), pool_string(pool, b_key[i]));
        if (order != 0) return order;
    }
    return (a->version > b->version) - (a->version < b->version);
}

/* All places of exits, or of fallbacks, put together by the parts in `by` and in order: largest first. */
static struct group
regroup(const struct view *view, bool fallbacks, unsigned by, struct place *sum_out)
{
    struct group group;
    const struct places *places = &view->report->places;
    group_init(&group, sizeof(struct place), PLACE_KEYS, PLACES_MAX);
    if (sum_out) *sum_out = (struct place){0};
    for (uint32_t i = 0; i < places->group.count; i++) {
        const struct place *place = group_at(&places->group, i);
        if ((place->category == WORD_FALLBACK) != fallbacks || place->count == 0) continue;
        const uint32_t key[PLACE_KEYS] = {
            0,
            by & BY_CATEGORY ? place->category : 0,
            by & BY_REASON ? place->reason : 0,
            by & BY_LOCATION ? place->location : by & BY_METHOD ? label_without_line(view->report->pool, place->location) : 0,
            by & BY_INSN ? place->insn : 0,
            by & BY_VERSION ? place->version : 0,
            0,
        };
        place_merge(group_row(&group, key), place);
        if (sum_out) place_merge(sum_out, place);
    }
    group_sort(&group, compare_places, view->report->pool);
    return group;
}

static const float *
rate_of(const struct view *view, const struct place *place)
{
    const struct report *report = view->report;
    if (place->records == 0) return NULL;
    float *rate = document_rate(view->document);
    places_rate(&report->places, place, report->first_ns, report->last_ns, DOCUMENT_PARTS, rate);
    return rate;
}

/* "Exits by reason: 24,017", and how sure that is. */
static struct fxt_string
counted_title(const struct view *view, const char *title, const struct place *sum)
{
    char count[NUMBER_TEXT], recorded[NUMBER_TEXT];
    with_commas(count, sum->count);
    with_commas(recorded, sum->records);
    if (sum->count == sum->records) return document_text(view->document, "%s: %s", title, count);
    if (sum->count == sum->hits) return document_text(view->document, "%s: exactly %s; %s recorded", title, count, recorded);
    return document_text(view->document, "%s: about %s, from %s recorded", title, count, recorded);
}

/* The columns that a place can fill. */
enum place_cell { CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_FIRST, CELL_LAST, CELL_RATE, CELL_KIND, CELL_REASON, CELL_INSN,
                  CELL_METHOD, PLACE_CELLS };

static const struct column place_columns[PLACE_CELLS] = {
    [CELL_COUNT] = {"count", "count", COLUMN_COUNT},
    [CELL_SHARE] = {"share", "share", COLUMN_SHARE},
    [CELL_RECORDED] = {"recorded", "recorded", COLUMN_COUNT},
    [CELL_FIRST] = {"first_ns", "first", COLUMN_TIME},
    [CELL_LAST] = {"last_ns", "last", COLUMN_TIME},
    [CELL_RATE] = {"rate", "over time", COLUMN_RATE},
    [CELL_KIND] = {"kind", "kind", COLUMN_TEXT},
    [CELL_REASON] = {"reason", "reason", COLUMN_TEXT},
    [CELL_INSN] = {"instruction", "instruction", COLUMN_TEXT},
    [CELL_METHOD] = {"method", "method", COLUMN_TEXT},
};

static struct cell
place_cell(const struct view *view, enum place_cell cell, const struct place *place, const struct place *sum)
{
    const struct report *report = view->report;
    switch (cell) {
      case CELL_COUNT: return cell_number(place->count);
      case CELL_SHARE: return cell_share(place->count, sum->count);
      case CELL_RECORDED: return cell_number(place->records);
      case CELL_RATE: return cell_rate(rate_of(view, place));
      case CELL_KIND: return cell_text(name_of(view, place->category));
      case CELL_REASON: return cell_text(name_of(view, place->reason));
      case CELL_INSN: return cell_text(name_of(view, place->insn));
      case CELL_METHOD: return cell_text(name_of(view, place->location));
      case CELL_FIRST: if (place->records > 0) return cell_time(place->first_ns - report->start_ns); break;
      case CELL_LAST: if (place->records > 0) return cell_time(place->last_ns - report->start_ns); break;
      case PLACE_CELLS: break;
    }
    return (struct cell){0};
}

/* A table of places put together, and its columns. */
struct grouping {
    const char *id;
    const char *title;
    bool fallbacks;
    unsigned by;
    unsigned cell_count;
    enum place_cell cells[PLACE_CELLS];
};

static const struct grouping groupings[] = {
    {"exits_by_reason", "Exits by reason", false, BY_CATEGORY | BY_REASON, 6,
     {CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_RATE, CELL_KIND, CELL_REASON}},
    {"exits_by_line", "Exits by method and line", false, BY_LOCATION, 5,
     {CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_RATE, CELL_METHOD}},
    {"exits_by_instruction", "Exits by instruction", false, BY_INSN, 5,
     {CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_RATE, CELL_INSN}},
    {"worst", "Worst methods and reasons", false, BY_METHOD | BY_REASON, 8,
     {CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_FIRST, CELL_LAST, CELL_RATE, CELL_REASON, CELL_METHOD}},
    {"fallbacks", "Fallbacks by reason and method", true, BY_METHOD | BY_REASON, 8,
     {CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_FIRST, CELL_LAST, CELL_RATE, CELL_REASON, CELL_METHOD}},
};
enum { GROUPINGS = sizeof groupings / sizeof groupings[0], FIRST_OF_FALLBACKS = 4 };

static void
add_grouping(const struct view *view, const struct grouping *grouping)
{
    struct place sum;
    struct group group = regroup(view, grouping->fallbacks, grouping->by, &sum);
    unsigned count = grouping->cell_count;
    struct column columns[PLACE_CELLS];
    for (unsigned i = 0; i < count; i++) {
        columns[i] = place_columns[grouping->cells[i]];
        if (grouping->cells[i] == CELL_RECORDED && sum.records == sum.count) columns[i].title = NULL;
    }
    struct table *table =
        document_table(view->document, grouping->id, counted_title(view, grouping->title, &sum), columns, count);
    table->data = group.count == 0;
    for (uint32_t row = 0; row < group.count && row < view->top; row++) {
        struct cell *cells = table_row(table);
        for (unsigned i = 0; i < count; i++) cells[i] = place_cell(view, grouping->cells[i], group_at(&group, row), &sum);
    }
    if (group.count > view->top) {
        struct place rest = {0};
        for (uint32_t row = (uint32_t)view->top; row < group.count; row++) place_merge(&rest, group_at(&group, row));
        table->more_rows = group.count - view->top;
        struct cell *cells = table_row(table);
        for (unsigned i = 0; i < count && grouping->cells[i] <= CELL_RECORDED; i++) {
            cells[i] = place_cell(view, grouping->cells[i], &rest, &sum);
        }
    }
    group_free(&group);
}

/* --- recompilation ---------------------------------------------------------------------------- */

/* One instruction of a method's line, and what its compiled versions did there. */
struct loop {
    struct place sum;
    uint32_t first_row; /* of the places by version */
    uint32_t versions;
    uint32_t first_reason; /* row of the places by version and reason, those with the most exits first in each version */
    uint32_t reasons;
};

static int
compare_versions(const void *left, const void *right, void *context)
{
    const struct place *a = left, *b = right;
    (void)context;
    if (a->location != b->location) return a->location < b->location ? -1 : 1;
    if (a->insn != b->insn) return a->insn < b->insn ? -1 : 1;
    if (a->version != b->version) return a->version < b->version ? -1 : 1;
    return (a->count < b->count) - (a->count > b->count);
}

static int
compare_loops(const void *left, const void *right)
{
    const struct loop *a = left, *b = right;
    if (a->sum.count != b->sum.count) return a->sum.count > b->sum.count ? -1 : 1;
    return (a->first_row > b->first_row) - (a->first_row < b->first_row);
}

/* "1: 5, 2: 4,995": exits of each version. Of many the last ones. */
static struct fxt_string
versions_text(const struct view *view, const struct group *by_version, const struct loop *loop)
{
    enum { SHOWN_MOST = 6 };
    char text[SHOWN_MOST * 2 * NUMBER_TEXT + 32] = "", number[NUMBER_TEXT];
    size_t len = 0;
    uint32_t skipped = loop->versions > SHOWN_MOST ? loop->versions - SHOWN_MOST : 0;
    if (skipped > 0) len = (size_t)snprintf(text, sizeof text, "%" PRIu32 " more, ", skipped);
    for (uint32_t i = skipped; i < loop->versions; i++) {
        const struct place *place = group_at(by_version, loop->first_row + i);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%" PRIu32 ": %s", i > skipped ? ", " : "", place->version,
                                with_commas(number, place->count));
    }
    return document_text(view->document, "%s", text);
}

/* "NoProfileSend" where all versions exit for the same; else what changed: "1: NoProfileSend, 2-3: GuardType(String)". */
static struct fxt_string
reasons_text(const struct view *view, const struct group *by_reason, const struct loop *loop)
{
    struct fxt_string text = text_of("");
    unsigned runs = 0;
    for (uint32_t i = 0; i < loop->reasons;) {
        const struct place *first = group_at(by_reason, loop->first_reason + i), *last = first;
        /* The first row of a version is its foremost reason. */
        for (; i < loop->reasons; i++) {
            const struct place *place = group_at(by_reason, loop->first_reason + i);
            if (place->version == last->version && place != first) continue;
            if (place->reason != first->reason) break;
            last = place;
        }
        runs++;
        const char *name = name_of(view, first->reason).ptr;
        if (i == loop->reasons && runs == 1) return name_of(view, first->reason);
        if (first->version == last->version) text = document_text(view->document, "%s%s%" PRIu32 ": %s", text.ptr, runs > 1 ? ", " : "", first->version, name);
        else text = document_text(view->document, "%s%s%" PRIu32 "-%" PRIu32 ": %s", text.ptr, runs > 1 ? ", " : "", first->version, last->version, name);
    }
    return text;
}

static void
add_loop_rows(const struct view *view, const struct group *by_version, const struct group *by_reason, const struct loop *loops, uint32_t count,
              const struct place *all)
{
    static const struct column columns[] = {
        {"count", "count", COLUMN_COUNT},      {"share", "share", COLUMN_SHARE},
        {"at_limit", "at the limit", COLUMN_COUNT}, {"rate", "over time", COLUMN_RATE},
        {"versions", "in version", COLUMN_TEXT}, {"reasons", "reason", COLUMN_TEXT},
        {"instruction", "instruction", COLUMN_TEXT},
        {"method", "method", COLUMN_TEXT},
    };
    uint64_t exits = 0;
    for (uint32_t i = 0; i < count; i++) exits += loops[i].sum.count;
    char number[NUMBER_TEXT];
    struct fxt_string title =
        document_text(view->document, "Exits that go on after recompilation: %s at %" PRIu32 " place%s", with_commas(number, exits),
                      count, count == 1 ? "" : "s");
    struct table *table = document_table(view->document, "recompile_loops", title, COLUMNS(columns));
    table->data = count == 0;
    for (uint32_t i = 0; i < count && i < view->top; i++) {
        const struct place *sum = &loops[i].sum;
        struct cell *cells = table_row(table);
        cells[0] = cell_number(sum->count);
        cells[1] = cell_share(sum->count, all->count);
        cells[2] = cell_number(sum->outcomes[WORD_VERSION_LIMIT - WORD_PROFILING + 1]);
        cells[3] = cell_rate(rate_of(view, sum));
        cells[4] = cell_text(versions_text(view, by_version, &loops[i]));
        cells[5] = cell_text(reasons_text(view, by_reason, &loops[i]));
        cells[6] = place_cell(view, CELL_INSN, sum, sum);
        cells[7] = place_cell(view, CELL_METHOD, sum, sum);
    }
    if (count <= view->top) return;
    table->more_rows = count - view->top;
    uint64_t rest = 0;
    for (uint32_t i = (uint32_t)view->top; i < count; i++) rest += loops[i].sum.count;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest);
    cells[1] = cell_share(rest, all->count);
}

/* Where compiling anew did not help: a later version exits at the same place, or no more versions may be made. */
static void
add_loops(const struct view *view)
{
    struct place all;
    struct group by_version = regroup(view, false, BY_LOCATION | BY_INSN | BY_VERSION, &all);
    group_sort(&by_version, compare_versions, NULL);
    struct group by_reason = regroup(view, false, BY_LOCATION | BY_INSN | BY_VERSION | BY_REASON, NULL);
    group_sort(&by_reason, compare_versions, NULL);
    uint32_t reason_row = 0;
    struct loop *loops = xcalloc(by_version.count, sizeof *loops);
    uint32_t count = 0;
    for (uint32_t row = 0; row < by_version.count;) {
        const struct place *first = group_at(&by_version, row);
        struct loop *loop = &loops[count];
        *loop = (struct loop){.sum = {.location = first->location, .insn = first->insn}, .first_row = row, .first_reason = reason_row};
        for (; reason_row < by_reason.count; reason_row++, loop->reasons++) {
            const struct place *place = group_at(&by_reason, reason_row);
            if (place->location != first->location || place->insn != first->insn) break;
        }
        for (; row < by_version.count; row++) {
            const struct place *place = group_at(&by_version, row);
            if (place->location != first->location || place->insn != first->insn) break;
            place_merge(&loop->sum, place);
            loop->versions++;
        }
        bool limited = loop->sum.outcomes[WORD_VERSION_LIMIT - WORD_PROFILING + 1] > 0;
        count += limited || loop->versions > 1;
    }
    qsort(loops, count, sizeof *loops, compare_loops);
    add_loop_rows(view, &by_version, &by_reason, loops, count, &all);
    free(loops);
    group_free(&by_version);
    group_free(&by_reason);
}

/* Exits in one version of an ISEQ. */
struct version_exits {
    uint32_t process, iseq, version; /* the key */
    uint64_t count;
};

/* What compiling an ISEQ anew cost and saved. */
struct recompiled {
    uint32_t process, iseq;
    uint32_t first_step, steps;
    uint32_t versions, invalidated;
    uint64_t exits;
    uint64_t waits;    /* from an invalidation to the next code */
    uint64_t waited_ns;
    bool compared;     /* there is something to compare with */
    double saved;      /* exits, had each version gone on at the pace of the one before */
};

static uint64_t
exits_of(struct group *by_version, const struct recompiled *of, uint32_t version)
{
    const uint32_t key[3] = {of->process, of->iseq, version};
    const struct version_exits *exits = group_row(by_version, key);
    return exits == NULL ? 0 : exits->count;
}

static void
sum_up(const struct view *view, struct group *by_version, struct recompiled *sum)
{
    const struct report *report = view->report;
    const struct life_step *steps = report->lives.steps + sum->first_step, *invalidated = NULL, *compiled = NULL;
    int64_t file_end_ns = report->files[report_process(report, sum->process)->file].last_ns;
    double pace = -1; /* exits a nanosecond of the version before */
    for (uint32_t i = 0; i < sum->steps; i++) {
        const struct life_step *step = &steps[i];
        if (step->kind == STEP_INVALIDATED) {
            sum->invalidated++;
            invalidated = step;
        }
        if (step->kind == STEP_COMPILED) {
            sum->versions++;
            if (invalidated != NULL) {
                sum->waits++;
                sum->waited_ns += (uint64_t)(step->end_ns - invalidated->ts_ns);
            }
            invalidated = NULL;
            compiled = step;
        }
        bool last = i + 1 == sum->steps;
        if (compiled == NULL || (step->kind != STEP_INVALIDATED && !last)) continue;
        int64_t end_ns = step->kind == STEP_INVALIDATED ? step->ts_ns : file_end_ns;
        double lived = (double)(end_ns - compiled->end_ns);
        uint64_t exits = exits_of(by_version, sum, compiled->version);
        sum->exits += exits;
        if (pace >= 0 && lived > 0) {
            sum->compared = true;
            sum->saved += pace * lived - (double)exits;
        }
        pace = lived > 0 ? (double)exits / lived : -1;
        compiled = NULL;
    }
}

static int
compare_recompiled(const void *left, const void *right)
{
    const struct recompiled *a = left, *b = right;
    if (a->versions != b->versions) return a->versions > b->versions ? -1 : 1;
    if (a->exits != b->exits) return a->exits > b->exits ? -1 : 1;
    return (a->first_step > b->first_step) - (a->first_step < b->first_step);
}

/* "1: NoProfileSend, 2: CME is invalidated: 0x..." */
static struct fxt_string
why_text(const struct view *view, const struct recompiled *sum)
{
    enum { SHOWN_MOST = 6 };
    struct fxt_string text = text_of("");
    uint32_t shown = 0;
    for (uint32_t i = 0; i < sum->steps; i++) {
        const struct life_step *step = &view->report->lives.steps[sum->first_step + i];
        if (step->kind != STEP_INVALIDATED || shown++ + SHOWN_MOST < sum->invalidated) continue;
        text = document_text(view->document, "%s%s%" PRIu32 ": %s", text.ptr, text.len > 0 ? ", " : "", step->version, name_of(view, step->reason).ptr);
    }
    return text;
}

static struct fxt_string
exits_text(const struct view *view, struct group *by_version, const struct recompiled *sum)
{
    struct fxt_string text = text_of("");
    char number[NUMBER_TEXT];
    for (uint32_t i = 0; i < sum->steps; i++) {
        const struct life_step *step = &view->report->lives.steps[sum->first_step + i];
        if (step->kind != STEP_COMPILED) continue;
        with_commas(number, exits_of(by_version, sum, step->version));
        text = document_text(view->document, "%s%s%" PRIu32 ": %s", text.ptr, text.len > 0 ? ", " : "", step->version, number);
    }
    return text;
}

/* ISEQs that were compiled more than once, or are still waiting for it. */
static void
add_recompiled(const struct view *view)
{
    static const struct column columns[] = {
        {"versions", "versions", COLUMN_COUNT},        {"invalidated", "invalidated", COLUMN_COUNT},
        {"wait_ns", "to new code", COLUMN_DURATION},   {"exits", "exits", COLUMN_COUNT},
        {"exits_by_version", "in version", COLUMN_TEXT}, {"saved", "about saved", COLUMN_AMOUNT},
        {"reasons", "invalidated by", COLUMN_TEXT},    {"iseq", "compiled", COLUMN_TEXT},
    };
    struct report *report = view->report;
    struct group by_version;
    group_init(&by_version, sizeof(struct version_exits), 3, PLACES_MAX);
    for (uint32_t i = 0; report->lives.count > 0 && i < report->places.group.count; i++) {
        const struct place *place = group_at(&report->places.group, i);
        if (place->category == WORD_FALLBACK || place->count == 0) continue;
        const uint32_t key[3] = {
            place->process, lives_owner(&report->lives, report->pool, place->process, place->iseq, place->location), place->version};
        struct version_exits *exits = group_row(&by_version, key);
        if (exits != NULL) exits->count += place->count;
    }
    struct recompiled *sums = xcalloc(report->lives.iseq_count ? report->lives.iseq_count : 1, sizeof *sums);
    uint32_t count = 0;
    for (uint32_t row = 0; row < report->lives.count;) {
        const struct life_step *first = &report->lives.steps[row];
        struct recompiled *sum = &sums[count];
        *sum = (struct recompiled){.process = first->process, .iseq = first->iseq, .first_step = row};
        bool wanted = false;
        for (; row < report->lives.count; row++, sum->steps++) {
            const struct life_step *step = &report->lives.steps[row];
            if (step->process != first->process || step->iseq != first->iseq) break;
            wanted |= report_step_wanted(report, step);
        }
        sum_up(view, &by_version, sum);
        count += wanted && (sum->versions > 1 || sum->invalidated > 0);
    }
    qsort(sums, count, sizeof *sums, compare_recompiled);
    struct fxt_string title = document_text(view->document, "Recompiled: %" PRIu32 " of %" PRIu32 " ISEQ%s", count, report->lives.iseq_count,
                                            report->lives.iseq_count == 1 ? "" : "s");
    struct table *table = document_table(view->document, "recompiled", title, COLUMNS(columns));
    table->data = count == 0;
    for (uint32_t i = 0; i < count && i < view->top; i++) {
        const struct recompiled *sum = &sums[i];
        struct cell *cells = table_row(table);
        cells[0] = cell_number(sum->versions);
        cells[1] = cell_number(sum->invalidated);
        if (sum->waits > 0) cells[2] = cell_number(sum->waited_ns / sum->waits);
        cells[3] = cell_number(sum->exits);
        cells[4] = cell_text(exits_text(view, &by_version, sum));
        if (sum->compared) cells[5] = cell_amount(sum->saved > 0 ? sum->saved : 0);
        cells[6] = cell_text(why_text(view, sum));
        cells[7] = cell_text(name_of(view, sum->iseq));
    }
    if (count > view->top) {
        table->more_rows = count - view->top;
        uint64_t versions = 0, invalidated = 0, exits = 0;
        for (uint32_t i = (uint32_t)view->top; i < count; i++) {
            versions += sums[i].versions;
            invalidated += sums[i].invalidated;
            exits += sums[i].exits;
        }
        struct cell *cells = table_row(table);
        cells[0] = cell_number(versions);
        cells[1] = cell_number(invalidated);
        cells[3] = cell_number(exits);
    }
    free(sums);
    group_free(&by_version);
}

static void
add_outcomes(const struct view *view)
{
    static const struct column columns[] = {
        {"count", "count", COLUMN_COUNT},
        {"share", "share", COLUMN_SHARE},
        {"outcome", "outcome", COLUMN_TEXT},
    };
    struct place sum;
    struct group group = regroup(view, false, 0, &sum);
    group_free(&group);
    uint64_t count = 0;
    for (unsigned i = 0; i < PLACE_OUTCOMES; i++) count += sum.outcomes[i];
    char number[NUMBER_TEXT];
    struct fxt_string title = document_text(view->document, "Recompile exits by what they led to: %s%s",
                                            sum.weighted != sum.records ? "about " : "", with_commas(number, count));
    struct table *table = document_table(view->document, "outcomes", title, COLUMNS(columns));
    table->data = count == 0;
    bool shown[PLACE_OUTCOMES] = {false};
    for (;;) {
        unsigned most = PLACE_OUTCOMES;
        for (unsigned i = 0; i < PLACE_OUTCOMES; i++) {
            if (!shown[i] && sum.outcomes[i] > 0 && (most == PLACE_OUTCOMES || sum.outcomes[i] > sum.outcomes[most])) most = i;
        }
        if (most == PLACE_OUTCOMES) break;
        shown[most] = true;
        struct cell *cells = table_row(table);
        cells[0] = cell_number(sum.outcomes[most]);
        cells[1] = cell_share(sum.outcomes[most], count);
        cells[2] = cell_text(name_of(view, most == 0 ? STRING_NONE : WORD_PROFILING + most - 1));
    }
}

/* --- durations ----------------------------------------------------------------------------------- */

static int
compare_spans(const void *left, const void *right, void *context)
{
    const struct report_span *a = left, *b = right;
    const struct pool *pool = context;
    if (a->durations.total_ns != b->durations.total_ns) return a->durations.total_ns > b->durations.total_ns ? -1 : 1;
    int order = fxt_string_compare(pool_string(pool, a->category), pool_string(pool, b->category));
    return order != 0 ? order : fxt_string_compare(pool_string(pool, a->name), pool_string(pool, b->name));
}

enum { DURATION_CELLS = 7 };

static void
put_durations(struct cell *cells, const struct durations *durations)
{
    cells[0] = cell_number(durations->count);
    cells[1] = cell_number(durations->total_ns);
    cells[2] = cell_number(durations_quantile(durations, 0.5));
    cells[3] = cell_number(durations_quantile(durations, 0.95));
    cells[4] = cell_number(durations->longest_ns);
}

/* `whole`: of all that the others are parts of, in a row before them; or NULL. */
static void
add_durations(const struct view *view, const char *id, struct fxt_string title, const char *what, struct group *spans,
              const struct durations *whole)
{
    const struct column columns[DURATION_CELLS] = {
        {"count", "count", COLUMN_COUNT},
        {"total_ns", "total", COLUMN_DURATION},
        {"median_ns", "median", COLUMN_DURATION},
        {"p95_ns", "95 %", COLUMN_DURATION},
        {"longest_ns", "longest", COLUMN_DURATION},
        {"kind", spans == &view->report->durations ? "category" : NULL, COLUMN_TEXT},
        {"name", what, COLUMN_TEXT},
    };
    struct table *table = document_table(view->document, id, title, COLUMNS(columns));
    table->data = spans->count == 0 && whole == NULL;
    if (whole != NULL) {
        struct cell *cells = table_row(table);
        put_durations(cells, whole);
        cells[5] = cell_text(name_of(view, WORD_COMPILE));
        cells[6] = cell_text(text_of("(whole)"));
    }
    group_sort(spans, compare_spans, view->report->pool);
    uint64_t rest_count = 0, rest_ns = 0;
    for (uint32_t i = 0; i < spans->count; i++) {
        const struct report_span *span = group_at(spans, i);
        if (i >= view->top) {
            rest_count += span->durations.count;
            rest_ns += span->durations.total_ns;
            continue;
        }
        struct cell *cells = table_row(table);
        put_durations(cells, &span->durations);
        cells[5] = cell_text(name_of(view, span->category));
        cells[6] = cell_text(name_of(view, span->name));
    }
    if (spans->count <= view->top) return;
    table->more_rows = spans->count - view->top;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest_count);
    cells[1] = cell_number(rest_ns);
}

static void
add_compilations(const struct view *view)
{
    struct report *report = view->report;
    const struct report_span *whole = report->compiles.count > 0 ? group_at(&report->compiles, 0) : NULL;
    struct fxt_string title = text_of("Compilations");
    if (whole != NULL) {
        char count[NUMBER_TEXT], time[NUMBER_TEXT], bytes[NUMBER_TEXT], nothing[80] = "";
        if (report->compiled_nothing > 0) {
            snprintf(nothing, sizeof nothing, "; %" PRIu64 " made none", report->compiled_nothing);
        }
        title = document_text(view->document, "Compilations: %s, %s in all, %s of code%s",
                              with_commas(count, whole->durations.count), duration_text(time, whole->durations.total_ns),
                              bytes_text(bytes, report->code_bytes), nothing);
    }
    add_durations(view, "compile_phases", title, "phase", &report->phases, whole ? &whole->durations : NULL);
}

/* --- threads and processes ------------------------------------------------------------------------- */

static int
compare_threads(const void *left, const void *right, void *context)
{
    const struct report_thread *a = left, *b = right;
    (void)context;
    if (a->exits != b->exits) return a->exits > b->exits ? -1 : 1;
    if (a->events != b->events) return a->events > b->events ? -1 : 1;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->tid != b->tid) return a->tid < b->tid ? -1 : 1;
    return (a->runs > b->runs) - (a->runs < b->runs);
}

static void
add_threads(const struct view *view)
{
    static const struct column columns[] = {
        {"count", "exits", COLUMN_COUNT},   {"share", "share", COLUMN_SHARE}, {"fallbacks", "fallbacks", COLUMN_COUNT},
        {"events", "events", COLUMN_COUNT}, {"pid", "pid", COLUMN_NUMBER},    {"tid", "tid", COLUMN_NUMBER},
        {"thread", "thread", COLUMN_TEXT},
    };
    struct report *report = view->report;
    uint64_t exits = 0;
    uint32_t seen = 0;
    group_sort(&report->threads, compare_threads, NULL);
    for (uint32_t i = 0; i < report->threads.count; i++) {
        exits += report_thread(report, i)->exits;
        seen += report_thread(report, i)->events > 0;
    }
    char number[NUMBER_TEXT];
    struct fxt_string title = document_text(view->document, "Threads, and ractors that have one: %s", with_commas(number, seen));
    struct table *table = document_table(view->document, "threads", title, COLUMNS(columns));
    table->data = seen < 2;
    uint32_t shown = 0;
    uint64_t rest[3] = {0};
    for (uint32_t i = 0; i < report->threads.count; i++) {
        const struct report_thread *thread = report_thread(report, i);
        if (thread->events == 0) continue;
        if (shown == view->top) {
            rest[0] += thread->exits, rest[1] += thread->fallbacks, rest[2] += thread->events;
            continue;
        }
        shown++;
        struct cell *cells = table_row(table);
        cells[0] = cell_number(thread->exits);
        cells[1] = cell_share(thread->exits, exits);
        cells[2] = cell_number(thread->fallbacks);
        cells[3] = cell_number(thread->events);
        cells[4] = cell_number(report_process(report, thread->process)->pid);
        if (thread->runs == STRING_NONE) cells[5] = cell_number(thread->tid);
        cells[6] = cell_text(name_of(view, thread->name));
    }
    if (seen <= shown) return;
    table->more_rows = seen - shown;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest[0]);
    cells[1] = cell_share(rest[0], exits);
    cells[2] = cell_number(rest[1]);
    cells[3] = cell_number(rest[2]);
}

/* For programs: what people read in titles, or miss there. */
static void
add_totals(const struct view *view)
{
    static const struct column columns[] = {
        {"exits", NULL, COLUMN_COUNT},        {"exits_recorded", NULL, COLUMN_COUNT}, {"fallbacks", NULL, COLUMN_COUNT},
        {"compilations", NULL, COLUMN_COUNT}, {"compiled_nothing", NULL, COLUMN_COUNT}, {"code_bytes", NULL, COLUMN_COUNT},
        {"never_ended", NULL, COLUMN_COUNT},
    };
    struct report *report = view->report;
    struct place exits, fallbacks;
    struct group group = regroup(view, false, 0, &exits);
    group_free(&group);
    group = regroup(view, true, 0, &fallbacks);
    group_free(&group);
    const struct report_span *whole = report->compiles.count > 0 ? group_at(&report->compiles, 0) : NULL;
    const uint64_t numbers[] = {exits.count,       exits.records, fallbacks.count, whole ? whole->durations.count : 0,
                                report->compiled_nothing, report->code_bytes, report->unended};
    struct table *table = document_table(view->document, "totals", text_of("Totals"), COLUMNS(columns));
    table->data = true;
    struct cell *cells = table_row(table);
    for (unsigned i = 0; i < table->column_count; i++) cells[i] = cell_number(numbers[i]);
    if (exits.count == 0 && fallbacks.count == 0) document_line(view->document, "exits", text_of("none"));
}

void
report_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    add_totals(&view);
    for (unsigned i = 0; i < FIRST_OF_FALLBACKS; i++) add_grouping(&view, &groupings[i]);
    add_outcomes(&view);
    add_recompiled(&view);
    add_loops(&view);
    for (unsigned i = FIRST_OF_FALLBACKS; i < GROUPINGS; i++) add_grouping(&view, &groupings[i]);
    add_compilations(&view);
    add_durations(&view, "invalidations", text_of("Invalidations"), "reason", &report->invalidations, NULL);
    add_durations(&view, "durations", text_of("Durations"), "name", &report->durations, NULL);
    add_threads(&view);
}
