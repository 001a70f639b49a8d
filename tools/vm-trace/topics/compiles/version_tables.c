/* version_tables.c - the tables of a report about compiled versions: the effect of recompilations,
 * and where they did not help.
 *
 * Both tables are for JITs that compile a whole ISEQ, and again after its version was invalidated.
 * YJIT has versions of basic blocks for several states at once, which follow each other without a
 * recompilation, so its processes are left out.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "topics/report_view.h"

enum {
    SHOWN_MOST = 6, /* versions, reasons or invalidations in a cell: the last ones, for there may be very many */
    LIMITED = STRING_VERSION_LIMIT - STRING_PROFILING + 1,
};

/* "1: 5, 2: 4,995": the exits of each version; of many versions, the last ones. */
struct version_list {
    uint32_t count;
    struct {
        uint32_t version;
        uint64_t exits;
    } last[SHOWN_MOST]; /* at their number modulo SHOWN_MOST */
};

static void
version_list_add(struct version_list *list, uint32_t version, uint64_t exits)
{
    list->last[list->count % SHOWN_MOST].version = version;
    list->last[list->count++ % SHOWN_MOST].exits = exits;
}

static struct fxt_string
version_list_text(const struct view *view, const struct version_list *list)
{
    char text[SHOWN_MOST * 2 * NUMBER_TEXT + 32] = "", number[NUMBER_TEXT];
    size_t len = 0;
    uint32_t skipped = list->count > SHOWN_MOST ? list->count - SHOWN_MOST : 0;
    if (skipped > 0) len = (size_t)snprintf(text, sizeof text, "%" PRIu32 " more, ", skipped);
    for (uint32_t i = skipped; i < list->count; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%" PRIu32 ": %s", i > skipped ? ", " : "",
                                list->last[i % SHOWN_MOST].version,
                                with_commas(number, list->last[i % SHOWN_MOST].exits));
    }
    return document_text(view->document, "%s", text);
}

/* --- exits that go on ---------------------------------------------------------------------------- */

/* An instruction of a method's line, and the exits of its compiled versions. */
struct loop {
    struct exit_row sum;
    uint32_t first_row; /* in the table by version */
    uint32_t versions;
    uint32_t first_reason; /* in the table by version and reason; the main reason of a version is first */
    uint32_t reasons;
};

static int
compare_versions(const void *left, const void *right, void *context)
{
    const struct exit_row *a = left, *b = right;
    (void)context;
    if (a->location != b->location) return a->location < b->location ? -1 : 1;
    if (a->insn != b->insn) return a->insn < b->insn ? -1 : 1;
    if (a->version != b->version) return a->version < b->version ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return (a->reason > b->reason) - (a->reason < b->reason);
}

static struct fxt_string
versions_text(const struct view *view, const struct row_table *by_version, const struct loop *loop)
{
    struct version_list list = {.count = 0};
    for (uint32_t i = 0; i < loop->versions; i++) {
        const struct exit_row *exit_row = row_table_at(by_version, loop->first_row + i);
        version_list_add(&list, exit_row->version, exit_row->count);
    }
    return version_list_text(view, &list);
}

/* Successive versions with the same main reason. */
struct reason_run {
    uint32_t reason, first, last;
};

/* "NoProfileSend" if all versions have the same main reason; else "1: NoProfileSend, 2-3:
 * GuardType(String)". */
static struct fxt_string
reasons_text(const struct view *view, const struct row_table *by_reason, const struct loop *loop)
{
    struct reason_run runs[SHOWN_MOST], *run = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < loop->reasons; i++) {
        const struct exit_row *exit_row = row_table_at(by_reason, loop->first_reason + i);
        if (run != NULL && exit_row->version == run->last)
            continue; /* the first row of a version is its main reason */
        if (run == NULL || exit_row->reason != run->reason) {
            run = &runs[count++ % SHOWN_MOST];
            *run = (struct reason_run){exit_row->reason, exit_row->version, exit_row->version};
        }
        run->last = exit_row->version;
    }
    if (count == 1) return view_name(view, run->reason);
    struct fxt_string text = text_of("");
    uint32_t skipped = count > SHOWN_MOST ? count - SHOWN_MOST : 0;
    if (skipped > 0) text = document_text(view->document, "%" PRIu32 " more", skipped);
    for (uint32_t i = skipped; i < count; i++) {
        const struct reason_run *shown = &runs[i % SHOWN_MOST];
        const char *separator = i > 0 ? ", " : "", *name = view_name(view, shown->reason).ptr;
        text = shown->first == shown->last
                   ? document_text(view->document, "%s%s%" PRIu32 ": %s", text.ptr, separator, shown->first, name)
                   : document_text(view->document, "%s%s%" PRIu32 "-%" PRIu32 ": %s", text.ptr, separator, shown->first,
                                   shown->last, name);
    }
    return text;
}

/* What the cells of loops are made of. */
struct loop_tables {
    struct row_table by_version, by_reason;
};

enum { RATE, VERSIONS, REASONS };

static struct cell
loop_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct loop_tables *tables = def->context;
    if (own == RATE) return cell_rate(view_rate(def->view, &((const struct loop *)row)->sum));
    return cell_text(own == VERSIONS ? versions_text(def->view, &tables->by_version, row)
                                     : reasons_text(def->view, &tables->by_reason, row));
}

static void
add_loop_rows(const struct view *view, const struct loop_tables *tables, struct loop *loops, uint32_t count,
              const struct exit_row *all)
{
    static const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, SUMMED(loop, sum.count)},
        {"share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("count")},
        {"at_limit", "at the limit", COLUMN_COUNT, SUMMED(loop, sum.outcomes[LIMITED])},
        {"rate", "over time", COLUMN_RATE, OWN_CELL(RATE)},
        {"versions", "in version", COLUMN_TEXT, OWN_CELL(VERSIONS)},
        {"reasons", "reason", COLUMN_TEXT, OWN_CELL(REASONS)},
        {"instruction", "instruction", COLUMN_TEXT, NAMED(loop, sum.insn)},
        {"method", "method", COLUMN_TEXT, NAMED(loop, sum.location)},
        {"row", NULL, COLUMN_NUMBER, MEMBER(loop, first_row), .helper = true},
    };
    struct row_table rows = ROWS_OF(loops, count);
    struct table_def def = {.view = view, .id = "recompile_loops", .rows = &rows, COLUMNS_OF(columns),
                            .cell = loop_cell, .sort = {"count", "row"},
                            .context = tables, .whole = all->count};
    char number[NUMBER_TEXT];
    def.title = document_text(view->document, "Exits that go on after recompilation: %s at %" PRIu32 " place%s",
                              with_commas(number, view_table_sum(&def, "count")), count, count == 1 ? "" : "s");
    view_table(&def);
}

/* Where recompilation did not help: a later version exits there, too, or no more versions may be
 * made. */
void
view_add_loops(const struct view *view)
{
    struct exit_row all;
    struct row_table whole = view_exits(view, false, 0, &all);
    exit_rows_free(&whole);
    struct loop_tables tables = {view_exits(view, false, BY_LOCATION | BY_INSN | BY_VERSION, NULL),
                                 view_exits(view, false, BY_LOCATION | BY_INSN | BY_VERSION | BY_REASON, NULL)};
    struct row_table *by_version = &tables.by_version, *by_reason = &tables.by_reason;
    row_table_sort(by_version, compare_versions, NULL);
    row_table_sort(by_reason, compare_versions, NULL);
    uint32_t reason_row = 0;
    struct loop *loops = xcalloc(by_version->count + 1, sizeof *loops);
    uint32_t count = 0;
    for (uint32_t row = 0; row < by_version->count;) {
        const struct exit_row *first = row_table_at(by_version, row);
        struct loop *loop = &loops[count];
        *loop = (struct loop){
            .sum = {.location = first->location, .insn = first->insn}, .first_row = row, .first_reason = reason_row};
        for (; reason_row < by_reason->count; reason_row++, loop->reasons++) {
            const struct exit_row *exit_row = row_table_at(by_reason, reason_row);
            if (exit_row->location != first->location || exit_row->insn != first->insn) break;
        }
        for (; row < by_version->count; row++) {
            const struct exit_row *exit_row = row_table_at(by_version, row);
            if (exit_row->location != first->location || exit_row->insn != first->insn) break;
            exit_row_merge(&loop->sum, exit_row);
            loop->versions++;
        }
        count += loop->sum.outcomes[LIMITED] > 0 || loop->versions > 1;
    }
    add_loop_rows(view, &tables, loops, count, &all);
    free(loops);
    exit_rows_free(by_version);
    exit_rows_free(by_reason);
}

/* --- ISEQs that were compiled anew ------------------------------------------------------------------ */

/* Conditions for an estimate of saved exits: the recorded exits of the version before, and how
 * many times longer the new version may have lived. Three exits in a millisecond do not predict
 * those of a minute. */
enum { BASIS_EXITS = 100, BASIS_TIMES = 10 };

/* The exits of one version of an ISEQ. */
struct version_exits {
    uint32_t process, iseq, version; /* the key */
    uint32_t compiled; /* number of compilations; a new ISEQ of the same label (as by eval) has the same versions */
    uint64_t records;
    uint64_t count;
    uint64_t lost_ns;
};
enum { VERSION_EXITS_MAX = EXIT_ROWS_MAX + VERSION_STEPS_MAX };

/* The cost and the effect of the recompilations of an ISEQ. */
struct recompiled {
    uint32_t process, iseq;
    uint32_t first_step, steps;
    uint32_t first_exits, versions_seen; /* rows of version_exits */
    uint32_t versions, invalidated;
    uint64_t exits;
    uint64_t lost_before_ns, lost_after_ns; /* by exits of all versions but the last one, and of that one */
    uint64_t waits; /* from an invalidation to the next code */
    uint64_t waited_ns;
    bool compared; /* there is an estimate */
    double saved; /* fewer exits than if each version had exited as often per second as the one before */
};

static const struct version_exits *
exits_of(const struct row_table *by_version, const struct recompiled *of, uint32_t version)
{
    uint32_t first = of->first_exits, end = first + of->versions_seen;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        const struct version_exits *exits = row_table_at(by_version, middle);
        if (exits->version == version) return exits;
        if (exits->version < version)
            first = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

/* A version from its code to its end, and its exits. */
struct version_lifetime {
    uint32_t version;
    double ns;
    const struct version_exits *exits;
};

static void
compare_with_before(struct recompiled *sum, const struct version_lifetime *before, const struct version_lifetime *now)
{
    if (before->exits == NULL || now->exits == NULL || now->version != before->version + 1) return;
    if (before->exits->compiled != 1 || now->exits->compiled != 1) return; /* these exits belong to several ISEQs */
    if (before->exits->records < BASIS_EXITS || before->ns <= 0 || now->ns <= 0 || now->ns > before->ns * BASIS_TIMES)
        return;
    sum->compared = true;
    sum->saved += (double)before->exits->count / before->ns * now->ns - (double)now->exits->count;
}

static void
summarize(const struct view *view, const struct row_table *by_version, struct recompiled *sum)
{
    const struct report *report = view->report;
    const struct version_step *steps = report->history.steps + sum->first_step, *invalidated = NULL, *compiled = NULL;
    int64_t file_end_ns = report->files[report_process(report, report_piece(report, sum->process))->file].last_ns;
    struct version_lifetime before = {.exits = NULL};
    for (uint32_t i = 0; i < sum->versions_seen; i++) {
        const struct version_exits *exits = row_table_at(by_version, sum->first_exits + i);
        sum->exits += exits->count;
        sum->versions += exits->version > 0;
        *(i + 1 == sum->versions_seen ? &sum->lost_after_ns : &sum->lost_before_ns) += exits->lost_ns;
    }
    for (uint32_t i = 0; i < sum->steps; i++) {
        const struct version_step *step = &steps[i];
        if (step->kind == STEP_INVALIDATED) {
            sum->invalidated++;
            invalidated = step;
        }
        if (step->kind == STEP_COMPILED) {
            if (invalidated != NULL && step->version > invalidated->version) {
                sum->waits++;
                sum->waited_ns += (uint64_t)(step->end_ns - invalidated->ts_ns);
            }
            invalidated = NULL;
            compiled = step;
        }
        bool last = i + 1 == sum->steps;
        if (compiled == NULL || (step->kind != STEP_INVALIDATED && !last)) continue;
        int64_t end_ns = step->kind == STEP_INVALIDATED ? step->ts_ns : file_end_ns;
        if (end_ns < compiled->end_ns) end_ns = compiled->end_ns; /* the last piece has no events */
        const struct version_lifetime now = {compiled->version, (double)(end_ns - compiled->end_ns),
                                  exits_of(by_version, sum, compiled->version)};
        compare_with_before(sum, &before, &now);
        before = now;
        compiled = NULL;
    }
}

static int
compare_recompiled(const void *left, const void *right)
{
    const struct recompiled *a = left, *b = right;
    uint64_t a_lost = a->lost_before_ns + a->lost_after_ns, b_lost = b->lost_before_ns + b->lost_after_ns;
    if (a_lost != b_lost) return a_lost > b_lost ? -1 : 1;
    if (a->versions != b->versions) return a->versions > b->versions ? -1 : 1;
    if (a->exits != b->exits) return a->exits > b->exits ? -1 : 1;
    return (a->first_step > b->first_step) - (a->first_step < b->first_step);
}

/* "1: NoProfileSend, 2: CME is invalidated: 0x..." */
static struct fxt_string
invalidations_text(const struct view *view, const struct recompiled *sum)
{
    struct fxt_string text = text_of("");
    uint32_t shown = 0, skipped = sum->invalidated > SHOWN_MOST ? sum->invalidated - SHOWN_MOST : 0;
    if (skipped > 0) text = document_text(view->document, "%" PRIu32 " more", skipped);
    for (uint32_t i = 0; i < sum->steps; i++) {
        const struct version_step *step = &view->report->history.steps[sum->first_step + i];
        if (step->kind != STEP_INVALIDATED || shown++ < skipped) continue;
        text = document_text(view->document, "%s%s%" PRIu32 ": %s", text.ptr, text.len > 0 ? ", " : "", step->version,
                             view_name(view, step->reason).ptr);
    }
    return text;
}

static struct fxt_string
exits_text(const struct view *view, const struct row_table *by_version, const struct recompiled *sum)
{
    struct version_list list = {.count = 0};
    for (uint32_t i = 0; i < sum->versions_seen; i++) {
        const struct version_exits *exits = row_table_at(by_version, sum->first_exits + i);
        version_list_add(&list, exits->version, exits->count);
    }
    return version_list_text(view, &list);
}

static int
compare_version_exits(const void *left, const void *right, void *context)
{
    const struct version_exits *a = left, *b = right;
    (void)context;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->iseq != b->iseq) return a->iseq < b->iseq ? -1 : 1;
    return (a->version > b->version) - (a->version < b->version);
}

/* The exits and compilations of each version of each ISEQ, in the order of the steps. The caller
 * frees the table. */
static struct row_table
exits_by_version(const struct report *report)
{
    struct row_table by_version;
    row_table_init(&by_version, sizeof(struct version_exits), 3, VERSION_EXITS_MAX);
    for (uint32_t i = 0; i < report->history.count; i++) {
        const struct version_step *step = &report->history.steps[i];
        if (step->kind != STEP_COMPILED) continue;
        const uint32_t key[3] = {step->process, step->iseq, step->version};
        struct version_exits *exits = row_table_get(&by_version, key);
        if (exits != NULL) exits->compiled++;
    }
    for (uint32_t i = 0; report->history.count > 0 && i < report->exits.rows.count; i++) {
        const struct exit_row *exit_row = row_table_at(&report->exits.rows, i);
        if (exit_row->category == STRING_FALLBACK || exit_row->count == 0) continue;
        uint32_t process = report_whole(report, exit_row->process);
        uint32_t owner = version_history_owner(&report->history, report->pool, process, exit_row->iseq,
                                               exit_row->location);
        const uint32_t key[3] = {process, owner, exit_row->version};
        struct version_exits *exits = row_table_get(&by_version, key);
        if (exits == NULL) continue;
        exits->count += exit_row->count;
        exits->lost_ns += exit_row->lost_ns;
        exits->records += exit_row->records;
    }
    row_table_sort(&by_version, compare_version_exits, NULL);
    return by_version;
}

/* Fills in the recompiled ISEQs and returns their number; *iseqs_out: the number of all ISEQs. */
static uint32_t
find_recompiled(const struct view *view, const struct row_table *by_version, struct recompiled *sums,
                uint32_t *iseqs_out)
{
    struct report *report = view->report;
    uint32_t count = 0, exits_row = 0;
    *iseqs_out = 0;
    for (uint32_t row = 0; row < report->history.count;) {
        const struct version_step *first = &report->history.steps[row];
        struct recompiled *sum = &sums[count];
        *sum = (struct recompiled){.process = first->process, .iseq = first->iseq, .first_step = row};
        bool wanted = false, anew = false;
        for (; row < report->history.count; row++, sum->steps++) {
            const struct version_step *step = &report->history.steps[row];
            if (step->process != first->process || step->iseq != first->iseq) break;
            wanted |= report_step_wanted(report, step);
            anew |= step->kind == STEP_INVALIDATED || (step->kind == STEP_COMPILED && step->version > 1);
        }
        const struct version_exits key = {.process = first->process, .iseq = first->iseq};
        while (exits_row < by_version->count &&
               compare_version_exits(row_table_at(by_version, exits_row), &key, NULL) < 0)
            exits_row++;
        sum->first_exits = exits_row;
        for (; exits_row < by_version->count; exits_row++, sum->versions_seen++) {
            const struct version_exits *exits = row_table_at(by_version, exits_row);
            if (exits->process != first->process || exits->iseq != first->iseq) break;
        }
        if (report_process(report, first->process)->code.block_versions) continue;
        ++*iseqs_out;
        summarize(view, by_version, sum);
        count += wanted && anew;
    }
    return count;
}

enum { WAIT, EXITS_BY_VERSION, SAVED, INVALIDATIONS };

static struct cell
recompiled_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct recompiled *sum = row;
    switch (own) {
      case WAIT: return sum->waits > 0 ? cell_number(sum->waited_ns / sum->waits) : (struct cell){0};
      case EXITS_BY_VERSION: return cell_text(exits_text(def->view, def->context, sum));
      case SAVED: return sum->compared ? cell_amount(sum->saved > 0 ? sum->saved : 0) : (struct cell){0};
      default: return cell_text(invalidations_text(def->view, sum));
    }
}

/* ISEQs that were compiled more than once, or still wait for recompilation. */
void
view_add_recompiled(const struct view *view)
{
    enum { TIMED = 1, UNTIMED = 2, COMPARED = 4 }; /* with times, people need the space for names */
    static const struct table_column columns[] = {
        {"versions", "versions", COLUMN_COUNT, SUMMED(recompiled, versions)},
        {"invalidated", "invalidated", COLUMN_COUNT, SUMMED(recompiled, invalidated), .people_if = UNTIMED},
        {"wait_ns", "to new code", COLUMN_DURATION, OWN_CELL(WAIT), .people_if = UNTIMED},
        {"lost_before_ns", "lost before", COLUMN_DURATION, SUMMED(recompiled, lost_before_ns), .only_if = TIMED},
        {"lost_after_ns", "after", COLUMN_DURATION, SUMMED(recompiled, lost_after_ns), .only_if = TIMED},
        {"exits", "exits", COLUMN_COUNT, SUMMED(recompiled, exits), .people_if = UNTIMED},
        {"exits_by_version", "in version", COLUMN_TEXT, OWN_CELL(EXITS_BY_VERSION)},
        {"saved", "saved (estimate)", COLUMN_AMOUNT, OWN_CELL(SAVED), .people_if = COMPARED},
        {"reasons", "invalidated by", COLUMN_TEXT, OWN_CELL(INVALIDATIONS)},
        {"iseq", "compiled", COLUMN_TEXT, NAMED(recompiled, iseq)},
    };
    struct report *report = view->report;
    struct row_table by_version = exits_by_version(report);
    struct recompiled *sums = xcalloc(report->history.iseq_count + 1, sizeof *sums);
    uint32_t iseqs, count = find_recompiled(view, &by_version, sums, &iseqs);
    qsort(sums, count, sizeof *sums, compare_recompiled);
    bool compared = false, timed = report_timed(report);
    for (uint32_t i = 0; i < count && i < view->top; i++) compared |= sums[i].compared;
    struct fxt_string title = document_text(
        view->document, "Recompiled: %" PRIu32 " of %" PRIu32 " ISEQ%s%s%s", count, iseqs, iseqs == 1 ? "" : "s",
        compared ? "; saved: fewer exits than at the rate of the version before" : "",
        timed ? "; lost by exits before the last version, and after" : "");
    struct row_table rows = ROWS_OF(sums, count);
    view_table(&(struct table_def){.view = view, .id = "recompiled", .title = title, .rows = &rows, COLUMNS_OF(columns),
                                   .cell = recompiled_cell, .context = &by_version,
                                   .given = (timed ? TIMED : UNTIMED) | (compared ? COMPARED : 0)});
    free(sums);
    row_table_free(&by_version);
}

void
compiles_tables(const struct view *view)
{
    view_add_execution(view);
    view_add_interpreted(view);
    view_add_recompiled(view);
    view_add_compilations(view);
    view_add_durations(view);
    if (view->report->compilations.whole.count == 0 && view->report->execution.threads.count == 0)
        document_line(view->document, "compilations", text_of("none: --vm-trace=states records them"));
}
