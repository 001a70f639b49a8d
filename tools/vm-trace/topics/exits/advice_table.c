/* advice_table.c - see advice_table.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "topics/exits/lasting_exits.h"
#include "topics/exits/reason.h"
#include "base/row_table.h"
#include "base/xalloc.h"
#include "topics/exits/advice_table.h"

static struct cell
text_cell(const char *text)
{
    return text != NULL ? cell_text(text_of(text)) : (struct cell){0};
}

/* --- explain ------------------------------------------------------------------------------------ */

enum chosen_cell { REASON, JIT, KIND, STATS, COUNTER, MEANING, CAUSE, HELP, TESTED, EXAMPLE, TOPIC, TOPIC_TEXT, CHOSEN_CELLS };

static const struct column chosen_columns[CHOSEN_CELLS] = {
    [REASON] = {"reason", "reason", COLUMN_TEXT},   [JIT] = {"jit", NULL, COLUMN_TEXT},
    [KIND] = {"kind", "is", COLUMN_TEXT},           [STATS] = {"stats", "in stats", COLUMN_TEXT},
    [COUNTER] = {"counter", "counter", COLUMN_TEXT}, [MEANING] = {"meaning", "means", COLUMN_TEXT},
    [CAUSE] = {"cause", "causes", COLUMN_TEXT},     [HELP] = {"help", "helps", COLUMN_TEXT},
    [TESTED] = {"tested", "tested", COLUMN_TEXT},   [EXAMPLE] = {"example", "example", COLUMN_TEXT},
    [TOPIC] = {"topic", NULL, COLUMN_TEXT},         [TOPIC_TEXT] = {"topic_text", NULL, COLUMN_TEXT},
};

/* For people: which pair of examples/fixes shows what the help gains. */
static struct cell
tested_cell(struct document *document, const struct advice *advice)
{
    if (advice->pair != NULL) return cell_text(document_text(document, "by examples/fixes/%s", advice->pair));
    return advice_untested_p(advice) ? text_cell("no pair of examples/fixes shows what that gains") : (struct cell){0};
}

/* Adds a word to a list: "a, b". */
static void
add_word(struct document *document, struct cell *list, const char *word)
{
    if (!list->present) *list = text_cell(word);
    else if (strstr(list->text.ptr, word) == NULL)
        *list = cell_text(document_text(document, "%s, %s", list->text.ptr, word));
}

/* The names of the bits in `chosen`. */
static struct cell
names_cell(struct document *document, const struct advice *advice, uint32_t chosen)
{
    struct cell names = {0};
    for (unsigned i = 0; i < ADVICE_NAMES; i++) {
        if (chosen & 1U << i) add_word(document, &names, advice->names[i]);
    }
    return names;
}

/* Adds the names of a reason in the JIT's stats. Only ZJIT has others than in traces, and no flag
 * takes the counter of a fallback. */
static void
add_stats_names(struct document *document, const char *reason, struct cell *stats, struct cell *counters)
{
    struct reason_names names;
    if (!reason_find(reason, &names)) return;
    add_word(document, stats, names.stats);
    if (!names.fallback) add_word(document, counters, document_text(document, "%s", names.counter).ptr);
}

/* `chosen`: a bit for each of the names to show. */
static void
fill_row(struct document *document, struct cell *cells, const struct advice *advice, const struct advice *topic,
         uint32_t chosen)
{
    cells[REASON] = names_cell(document, advice, chosen);
    for (unsigned i = 0; i < ADVICE_NAMES; i++) {
        if (chosen & 1U << i) add_stats_names(document, advice->names[i], &cells[STATS], &cells[COUNTER]);
    }
    cells[JIT] = text_cell(advice->jit);
    cells[KIND] = text_cell(advice_kind_name(advice->kind));
    cells[MEANING] = text_cell(advice->meaning);
    cells[CAUSE] = text_cell(advice->cause);
    cells[HELP] = text_cell(advice->help);
    cells[TESTED] = text_cell(advice->pair);
    cells[EXAMPLE] = text_cell(advice->example);
    cells[TOPIC] = text_cell(topic->topic);
    cells[TOPIC_TEXT] = text_cell(topic->meaning);
}

struct table *
advice_table_chosen(struct document *document, const uint32_t *chosen)
{
    struct fxt_string title = text_of("Reasons");
    struct table *people = document_table(document, "advice", title, chosen_columns, CHOSEN_CELLS);
    struct table *data = document_table(document, "advice", title, chosen_columns, CHOSEN_CELLS);
    people->prose = people->people = data->data = data->prose = true;
    const struct advice *topic = NULL;
    for (size_t i = 0; i < advice_count(); i++) {
        const struct advice *advice = advice_at(i);
        if (advice->names[0] == NULL) topic = advice;
        if (chosen[i] == 0) continue;
        struct cell *cells = table_row(people);
        fill_row(document, cells, advice, topic, chosen[i]);
        cells[KIND] = cell_text(document_text(document, "%s of %s", advice_kind_name(advice->kind), advice->jit));
        cells[TESTED] = tested_cell(document, advice);
        for (unsigned name = 0; name < ADVICE_NAMES; name++) {
            if (chosen[i] & 1U << name) fill_row(document, table_row(data), advice, topic, 1U << name);
        }
    }
    return people;
}

/* --- report -------------------------------------------------------------------------------------- */

/* A reason in a report. */
struct occurring {
    uint32_t kind; /* the key */
    uint32_t reason;
    uint64_t count;
};
enum { OCCURRING_KEYS = 2, OCCURRING_MAX = 256 * 1024 };

/* Advice for reasons in a report. */
struct advised {
    const struct advice *advice; /* NULL: there is none for `reason` */
    uint32_t names;              /* those that occur: a bit for each */
    enum advice_kind kind;
    uint32_t reason; /* of those with `advice`: the most frequent one */
    uint64_t count, most;
};

struct advised_list {
    struct advised *list;
    uint32_t count, capacity;
};

enum { OF_REASON, IS, COUNT, PLACE, MEANS, CAUSES, HELPS, IS_TESTED, LASTING, ADVISED_CELLS };

static void
count_reason(struct row_table *occurring, enum advice_kind kind, uint32_t reason, uint64_t count)
{
    const uint32_t key[OCCURRING_KEYS] = {kind, reason};
    struct occurring *row = count > 0 && reason != STRING_NONE ? row_table_get(occurring, key) : NULL;
    if (row != NULL) row->count += count;
}

static struct row_table
occurring_in(const struct report *report)
{
    struct row_table occurring;
    row_table_init(&occurring, sizeof(struct occurring), OCCURRING_KEYS, OCCURRING_MAX);
    for (uint32_t i = 0; i < report->exits.rows.count; i++) {
        const struct exit_row *row = row_table_at(&report->exits.rows, i);
        bool fallback = row->category == STRING_FALLBACK;
        count_reason(&occurring, fallback ? ADVICE_FALLBACK : ADVICE_EXIT, row->reason, row->count);
        for (unsigned outcome = 1; outcome < OUTCOME_UNRECORDED && row->category == STRING_RECOMPILE_EXIT; outcome++) {
            count_reason(&occurring, ADVICE_OUTCOME, STRING_PROFILING + outcome - 1, row->outcomes[outcome]);
        }
    }
    for (uint32_t i = 0; i < report->invalidations.count; i++) {
        const struct named_durations *row = row_table_at(&report->invalidations, i);
        count_reason(&occurring, ADVICE_INVALIDATION, row->name, row->durations.count);
    }
    return occurring;
}

/* Adds a reason to the advice for it. */
static void
advise(struct advised_list *advised, const struct report *report, const struct occurring *row)
{
    const char *text = pool_string(report->pool, row->reason).ptr;
    unsigned name = 0;
    const struct advice *advice = advice_find(row->kind, text, &name);
    /* A version that an exit invalidated has the exit's reason. */
    if (advice == NULL && row->kind == ADVICE_INVALIDATION && advice_find(ADVICE_EXIT, text, &name) != NULL) return;
    for (uint32_t i = 0; i < advised->count && advice != NULL; i++) {
        if (advised->list[i].advice != advice) continue;
        advised->list[i].names |= 1U << name;
        advised->list[i].count += row->count;
        if (row->count > advised->list[i].most) advised->list[i].reason = row->reason, advised->list[i].most = row->count;
        return;
    }
    make_room(advised->list, advised->count, advised->capacity);
    advised->list[advised->count++] = (struct advised){advice, 1U << name, row->kind, row->reason, row->count, row->count};
}

static int
compare_advised(const void *left, const void *right)
{
    const struct advised *a = left, *b = right;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return (a->reason > b->reason) - (a->reason < b->reason);
}

/* "Object#get (a.rb:4), opt_getconstant_path: 80,000 of 80,000, to the end of the trace" */
static struct cell
place_cell(const struct report *report, struct document *document, const struct lasting_exits *place)
{
    const struct pool *pool = report->pool;
    char count[NUMBER_TEXT], all[NUMBER_TEXT];
    if (place->location == STRING_NONE) return (struct cell){0};
    const char *insn = place->insn != STRING_NONE ? pool_string(pool, place->insn).ptr : "(unknown)";
    bool calls = place->callee != STRING_NONE;
    return cell_text(document_text(document, "%s, %s%s%s: %s of %s%s", pool_string(pool, place->location).ptr, insn,
                                   calls ? " of " : "", calls ? pool_string(pool, place->callee).ptr : "",
                                   with_commas(count, place->at_place), with_commas(all, place->count),
                                   place->lasts ? ", to the end of the trace" : ""));
}

static void
fill_advised(const struct report *report, struct document *document, struct row_table *places, struct cell *cells,
             const struct advised *advised)
{
    const struct advice *advice = advised->advice;
    bool exits = advised->kind == ADVICE_EXIT;
    const struct lasting_exits *place = exits ? lasting_exits_find(places, advised->reason) : NULL;
    const struct lasting_advice *lasting = NULL;
    if (place != NULL) cells[PLACE] = place_cell(report, document, place);
    if (place != NULL && place->lasts) {
        int64_t index;
        struct fxt_string insn = insn_without_index(pool_string(report->pool, place->insn), &index);
        lasting = advice_lasting(pool_string(report->pool, advised->reason).ptr, insn);
    }
    cells[OF_REASON] = advice != NULL ? names_cell(document, advice, advised->names)
                                      : cell_text(pool_string(report->pool, advised->reason));
    cells[IS] = text_cell(advice_kind_name(advised->kind));
    cells[COUNT] = cell_number(advised->count);
    cells[MEANS] = text_cell(advice != NULL ? advice->meaning : "This version of vm-trace does not know the reason.");
    cells[CAUSES] = text_cell(lasting != NULL ? lasting->cause : advice != NULL ? advice->cause : NULL);
    cells[HELPS] = text_cell(lasting != NULL ? lasting->help : advice != NULL ? advice->help : NULL);
    if (lasting == NULL && advice != NULL) cells[IS_TESTED] = tested_cell(document, advice);
    cells[LASTING] = cell_number(lasting != NULL);
}

/* Moves the last table to the place after the exits by reason. */
static void
move_behind_exits(struct document *document)
{
    struct table *last = document->tables[document->table_count - 1];
    uint32_t at = 0;
    for (uint32_t i = 0; i < document->table_count; i++) {
        if (strcmp(document->tables[i]->id, "exits_by_reason") == 0) at = i + 1;
    }
    memmove(document->tables + at + 1, document->tables + at, (document->table_count - 1 - at) * sizeof last);
    document->tables[at] = last;
}

/* Whether one of the names was chosen. */
static bool
chosen_p(const struct advised *advised, const uint32_t *chosen)
{
    if (chosen == NULL) return true;
    for (size_t i = 0; i < advice_count() && advised->advice != NULL; i++) {
        if (advice_at(i) == advised->advice) return chosen[i] & advised->names;
    }
    return false;
}

struct table *
advice_table_report(const struct report *report, struct document *document, uint64_t top, const uint32_t *chosen)
{
    static const struct column columns[ADVISED_CELLS] = {
        [OF_REASON] = {"reason", "reason", COLUMN_TEXT}, [IS] = {"kind", "is", COLUMN_TEXT},
        [COUNT] = {"count", "count", COLUMN_COUNT},      [PLACE] = {"place", "mostly at", COLUMN_TEXT},
        [MEANS] = {"meaning", "means", COLUMN_TEXT},     [CAUSES] = {"cause", "causes", COLUMN_TEXT},
        [HELPS] = {"help", "helps", COLUMN_TEXT},        [IS_TESTED] = {"tested", "tested", COLUMN_TEXT},
        [LASTING] = {"lasting", NULL, COLUMN_NUMBER},
    };
    struct row_table places = lasting_exits_of(report);
    struct advised_list advised = {0};
    struct row_table occurring = occurring_in(report);
    for (uint32_t i = 0; i < occurring.count; i++) advise(&advised, report, row_table_at(&occurring, i));
    row_table_free(&occurring);
    if (advised.count > 0) qsort(advised.list, advised.count, sizeof *advised.list, compare_advised);
    uint32_t shown = 0;
    struct table *table = document_table(document, "advice", (struct fxt_string){0}, COLUMNS(columns));
    table->prose = true;
    for (uint32_t i = 0, of_kind = 0; i < advised.count; i++) {
        of_kind = i > 0 && advised.list[i].kind == advised.list[i - 1].kind ? of_kind + 1 : 0;
        if (of_kind >= top || !chosen_p(&advised.list[i], chosen)) continue;
        fill_advised(report, document, &places, table_row(table), &advised.list[i]);
        shown++;
    }
    table->data = shown == 0;
    table->title = shown == advised.count
                       ? text_of("Advice")
                       : document_text(document, "Advice for %u of %u reasons", shown, (unsigned)advised.count);
    move_behind_exits(document);
    free(advised.list);
    row_table_free(&places);
    return table;
}
