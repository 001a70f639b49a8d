/* annotation.c - see annotation.h */
#include <string.h>

#include "source/annotation.h"
#include "analysis/label.h"
#include "fxt/known_strings.h"

enum { FILE_KEYS = 1, LINE_KEYS = 2, REASON_KEYS = 6, VERSION_KEYS = 2, ROWS_MAX = 256 * 1024 };

static void
cost_add(struct annotated_cost *cost, const struct annotated_cost *other)
{
    cost->lost_ns += other->lost_ns;
    cost->exits += other->exits;
    cost->fallbacks += other->fallbacks;
    cost->counted += other->counted;
}

/* Negative if `a` costs more. */
static int
cost_compare(const struct annotated_cost *a, const struct annotated_cost *b)
{
    if (a->lost_ns != b->lost_ns) return a->lost_ns > b->lost_ns ? -1 : 1;
    if (a->exits != b->exits) return a->exits > b->exits ? -1 : 1;
    if (a->fallbacks != b->fallbacks) return a->fallbacks > b->fallbacks ? -1 : 1;
    return (a->counted < b->counted) - (a->counted > b->counted);
}

static int
compare_files(const void *left, const void *right, void *context)
{
    const struct annotated_file *a = left, *b = right;
    int order = cost_compare(&a->cost, &b->cost);
    return order != 0 ? order : fxt_string_compare(pool_string(context, a->path), pool_string(context, b->path));
}

static int
compare_lines(const void *left, const void *right, void *context)
{
    (void)context;
    return row_key_compare(left, right, LINE_KEYS);
}

static int
compare_reasons(const void *left, const void *right, void *context)
{
    const struct annotated_reason *a = left, *b = right;
    int order = row_key_compare(a, b, LINE_KEYS);
    if (order == 0) order = cost_compare(&a->cost, &b->cost);
    if (order == 0) order = fxt_string_compare(pool_string(context, a->reason), pool_string(context, b->reason));
    if (order == 0) order = fxt_string_compare(pool_string(context, a->insn), pool_string(context, b->insn));
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

static int
compare_versions(const void *left, const void *right, void *context)
{
    (void)context;
    return row_key_compare(left, right, VERSION_KEYS);
}

uint32_t
annotation_add(struct annotation *annotation, struct pool *pool, const struct annotated_exits *exits)
{
    struct annotated_cost cost = {.lost_ns = exits->lost_ns};
    uint32_t category = exits->category;
    switch (category) {
      case STRING_FALLBACK: cost.fallbacks = exits->count; break;
      case STRING_COUNTER: cost.counted = exits->count; break;
      default: cost.exits = exits->count, category = STRING_SIDE_EXIT; /* whether it recompiles or not */
    }
    if (cost_compare(&cost, &(struct annotated_cost){0}) == 0) return 0;
    struct label_parts place = label_parts(pool_string(pool, exits->location));
    uint32_t path = place.path.len > 0 ? pool_intern(pool, place.path.ptr, place.path.len) : STRING_NONE;
    const uint32_t line = place.line > 0 && place.line <= INT32_MAX ? (uint32_t)place.line : 0;
    const uint32_t key[REASON_KEYS] = {path, line, category, exits->reason, exits->insn, exits->callee};
    struct annotated_reason *reason = row_table_get(&annotation->reasons, key);
    if (reason == NULL) {
        annotation->uncounted += exits->count;
        return 0;
    }
    /* There are at most as many files, lines and versions as rows of exits, which have the same
     * limit. */
    if (cost_compare(&reason->cost, &(struct annotated_cost){0}) == 0) reason->number = annotation->reasons.count;
    cost_add(&reason->cost, &cost);
    struct annotated_line *of_line = row_table_get(&annotation->lines, key);
    struct annotated_file *file = row_table_get(&annotation->files, key);
    if (cost_compare(&of_line->cost, &(struct annotated_cost){0}) == 0) file->line_count++;
    cost_add(&of_line->cost, &cost);
    cost_add(&file->cost, &cost);
    struct annotated_version *version =
        row_table_get(&annotation->versions, (const uint32_t[VERSION_KEYS]){reason->number, exits->version});
    cost_add(&version->cost, &cost);
    cost_add(&annotation->cost, &cost);
    return reason->number;
}

void
annotation_begin(struct annotation *annotation, bool timed)
{
    *annotation = (struct annotation){.timed = timed};
    row_table_init(&annotation->files, sizeof(struct annotated_file), FILE_KEYS, ROWS_MAX);
    row_table_init(&annotation->lines, sizeof(struct annotated_line), LINE_KEYS, ROWS_MAX);
    row_table_init(&annotation->reasons, sizeof(struct annotated_reason), REASON_KEYS, ROWS_MAX);
    row_table_init(&annotation->versions, sizeof(struct annotated_version), VERSION_KEYS, ROWS_MAX);
}

void
annotation_finish(struct annotation *annotation, struct pool *pool)
{
    row_table_sort(&annotation->files, compare_files, pool);
    row_table_sort(&annotation->lines, compare_lines, NULL);
    row_table_sort(&annotation->reasons, compare_reasons, pool);
    row_table_sort(&annotation->versions, compare_versions, NULL);
}

void
annotation_of(struct annotation *annotation, const struct report *report)
{
    annotation_begin(annotation, report_timed(report));
    for (uint32_t i = 0; i < report->exits.rows.count; i++) {
        const struct exit_row *row = row_table_at(&report->exits.rows, i);
        const struct annotated_exits exits = {
            .category = row->category, .reason = row->reason, .location = row->location, .insn = row->insn,
            .callee = row->callee, .version = row->version, .count = row->count, .lost_ns = row->lost_ns,
        };
        if (row->count > 0) annotation_add(annotation, report->pool, &exits);
    }
    for (uint32_t i = 0; i < report->counters.rows.count; i++) {
        const struct counter_row *row = row_table_at(&report->counters.rows, i);
        const struct annotated_exits counted = {
            .category = STRING_COUNTER, .reason = row->counter, .location = row->location, .count = row->hits,
        };
        if (jit_counter_slow_p(pool_string(report->pool, row->counter)))
            annotation_add(annotation, report->pool, &counted);
    }
    annotation_finish(annotation, report->pool);
}

void
annotation_free(struct annotation *annotation)
{
    row_table_free(&annotation->files);
    row_table_free(&annotation->lines);
    row_table_free(&annotation->reasons);
    row_table_free(&annotation->versions);
}

uint32_t
annotation_lines(const struct annotation *annotation, uint32_t path, uint32_t *count_out)
{
    return row_table_range(&annotation->lines, (const uint32_t[]){path}, 1, count_out);
}

uint32_t
annotation_reasons(const struct annotation *annotation, uint32_t path, uint32_t line, uint32_t *count_out)
{
    return row_table_range(&annotation->reasons, (const uint32_t[]){path, line}, 2, count_out);
}

uint32_t
annotation_versions(const struct annotation *annotation, uint32_t reason, uint32_t *count_out)
{
    return row_table_range(&annotation->versions, (const uint32_t[]){reason}, 1, count_out);
}
