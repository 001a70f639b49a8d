/* view_table.c - see view_table.h */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "topics/view_table.h"

struct fxt_string
view_name(const struct view *view, uint32_t id)
{
    return id == STRING_NONE ? text_of("(unknown)") : pool_string(view->report->pool, id);
}

struct fxt_string
view_title(const struct view *view, struct fxt_string title, uint64_t uncounted, const char *what)
{
    char number[NUMBER_TEXT];
    if (uncounted == 0) return title;
    return document_text(view->document, "%s (%s more: too many %s)", title.ptr, with_commas(number, uncounted), what);
}

struct row_table
rows_of_array(const void *array, uint32_t count, size_t row_bytes)
{
    return (struct row_table){.rows = (void *)array, .count = count, .row_bytes = row_bytes};
}

/* --- cells ------------------------------------------------------------------------------------------------- */

static const struct pool *
pool_of(const struct table_def *def)
{
    return def->pool != NULL ? def->pool : def->view->report->pool;
}

static struct cell
name_cell(const struct table_def *def, const struct table_column *column, uint32_t name)
{
    if (name != STRING_NONE) return cell_text(pool_string(pool_of(def), name));
    return column->any_name ? (struct cell){0} : cell_text(text_of("(unknown)"));
}

static struct cell
thread_cell(const struct table_def *def, enum cell_source source, uint32_t number)
{
    const struct report_thread *thread = report_thread(def->view->report, number);
    if (source == SOURCE_PID) return cell_number(report_process(def->view->report, thread->process)->pid);
    if (source == SOURCE_THREAD) return cell_text(view_name(def->view, thread->name));
    return source == SOURCE_TID || thread->runs == STRING_NONE ? cell_number(thread->tid) : (struct cell){0};
}

static struct cell
text_cell(struct fxt_string text)
{
    return text.len > 0 ? cell_text(text) : (struct cell){0};
}

/* Of a column that is no share. */
static struct cell
cell_of(const struct table_def *def, const struct table_column *column, const void *row)
{
    const void *member = (const char *)row + column->offset;
    if (column->value_if & ~def->given) return (struct cell){0};
    switch (column->source) {
      case SOURCE_OWN: return def->cell(def, column->own, row);
      case SOURCE_U64:
      case SOURCE_SIGNED: return cell_number(*(const uint64_t *)member);
      case SOURCE_U32: return cell_number(*(const uint32_t *)member);
      case SOURCE_BOOL: return cell_number(*(const bool *)member);
      case SOURCE_NAME: return name_cell(def, column, *(const uint32_t *)member);
      case SOURCE_TEXT:
        return text_cell(text_of(*(const char *const *)member != NULL ? *(const char *const *)member : ""));
      case SOURCE_STRING: return text_cell(*(const struct fxt_string *)member);
      case SOURCE_TIME: return cell_time(*(const int64_t *)member - def->view->report->start_ns);
      case SOURCE_QUANTILE: return cell_number(durations_quantile(member, column->own / 100.0));
      case SOURCE_PID:
      case SOURCE_TID:
      case SOURCE_OWN_TID:
      case SOURCE_THREAD: return thread_cell(def, column->source, *(const uint32_t *)member);
      case SOURCE_PROCESS_PID:
        return cell_number(report_process(def->view->report, *(const uint32_t *)member)->pid);
      case SOURCE_SHARE: break;
    }
    return (struct cell){0};
}

/* The number of a column. Whoever names one that is not there has misspelt it. */
static unsigned
column_of(const struct table_def *def, const char *id)
{
    for (unsigned i = 0; i < def->column_count; i++) {
        if (strcmp(def->columns[i].id, id) == 0) return i;
    }
    fprintf(stderr, "vm-trace: the table %s has no column %s\n", def->id, id);
    abort();
}

/* --- sums -------------------------------------------------------------------------------------------------- */

/* Of the rows that count. */
struct sums {
    uint32_t rows;
    struct cell cells[TABLE_COLUMNS_MAX]; /* of those that are summed */
    bool any[TABLE_COLUMNS_MAX];          /* a row has a cell other than 0 */
};

static void
sums_add(const struct table_def *def, struct sums *sums, const void *row)
{
    sums->rows++;
    for (unsigned i = 0; i < def->column_count; i++) {
        const struct table_column *column = &def->columns[i];
        struct cell *sum = &sums->cells[i];
        if ((!column->summed && !column->unless_empty) || column->source == SOURCE_SHARE) continue;
        const struct cell cell = cell_of(def, column, row);
        sums->any[i] |= cell.present && (column->kind == COLUMN_TEXT || cell.number != 0);
        if (!column->summed) continue;
        if (cell.present) sum->number += cell.number;
        sum->present = (column->value_if & ~def->given) == 0;
    }
}

/* The column without which a row does not count, or NULL. */
static const struct table_column *
least_column(const struct table_def *def)
{
    return def->unless_zero != NULL ? &def->columns[column_of(def, def->unless_zero)] : NULL;
}

static bool
counts(const struct table_def *def, const struct table_column *least, const void *row)
{
    if (least != NULL) return cell_of(def, least, row).number > 0;
    return def->counts == NULL || def->counts(def, row);
}

static const void *
row_at(const struct table_def *def, uint32_t number)
{
    return row_table_at(def->rows, def->order != NULL ? def->order[number] : number);
}

static uint32_t
rows_in(const struct table_def *def)
{
    return def->order != NULL ? def->order_count : def->rows->count;
}

/* Parts of a damaged file may add up to less than nothing. */
static void
clamp(const struct table_def *def, struct cell cells[TABLE_COLUMNS_MAX])
{
    for (unsigned i = 0; i < def->column_count; i++) {
        if (def->columns[i].source == SOURCE_SIGNED && cells[i].time_ns < 0) cells[i].time_ns = 0;
    }
}

static struct sums
sum_rows(const struct table_def *def)
{
    struct sums sums = {0};
    const struct table_column *least = least_column(def);
    for (uint32_t i = 0; i < rows_in(def); i++) {
        const void *row = row_at(def, i);
        if (counts(def, least, row)) sums_add(def, &sums, row);
    }
    clamp(def, sums.cells);
    return sums;
}

uint32_t
view_table_rows(const struct table_def *def)
{
    return sum_rows(def).rows;
}

uint64_t
view_table_sum(const struct table_def *def, const char *column)
{
    return sum_rows(def).cells[column_of(def, column)].number;
}

/* --- order -------------------------------------------------------------------------------------------------- */

struct sorting {
    const struct table_def *def;
    const struct table_column *columns[TABLE_SORT_MAX];
    unsigned count;
};

static int
compare_cells(const struct table_def *def, const struct table_column *column, const void *left, const void *right)
{
    if (column->source == SOURCE_NAME) { /* unknown names first */
        const uint32_t *a = (const void *)((const char *)left + column->offset);
        const uint32_t *b = (const void *)((const char *)right + column->offset);
        return *a == *b ? 0 : pool_compare(pool_of(def), *a, *b);
    }
    struct cell a = cell_of(def, column, left), b = cell_of(def, column, right);
    if (column->source == SOURCE_SIGNED && a.time_ns < 0) a.number = 0;
    if (column->source == SOURCE_SIGNED && b.time_ns < 0) b.number = 0;
    int order = (a.number > b.number) - (a.number < b.number);
    return column->kind == COLUMN_NUMBER ? order : -order;
}

static int
compare_rows(const void *left, const void *right, void *context)
{
    const struct sorting *sorting = context;
    int order = 0;
    for (unsigned i = 0; i < sorting->count && order == 0; i++)
        order = compare_cells(sorting->def, sorting->columns[i], left, right);
    return order;
}

static void
sort_rows(const struct table_def *def)
{
    struct sorting sorting = {.def = def};
    for (unsigned i = 0; i < TABLE_SORT_MAX && def->sort[i] != NULL; i++)
        sorting.columns[sorting.count++] = &def->columns[column_of(def, def->sort[i])];
    if (sorting.count > 0) row_table_sort(def->rows, compare_rows, &sorting);
    if (def->compare != NULL)
        row_table_sort(def->rows, def->compare,
                       (void *)(def->compare_context != NULL ? def->compare_context : pool_of(def)));
}

/* --- the table ---------------------------------------------------------------------------------------------- */

/* What is known before the first row. */
struct making {
    const struct table_def *def;
    struct table *table;
    struct sums all;
};

static bool
left_out(const struct table_def *def, const struct table_column *column)
{
    return column->helper || (column->only_if & ~def->given) != 0;
}

static const char *
title_for_people(const struct making *making, const struct table_column *column)
{
    const struct table_def *def = making->def;
    unsigned of = column->source == SOURCE_SHARE ? column_of(def, column->part) : (unsigned)(column - def->columns);
    if ((column->people_if & ~def->given) != 0 || (column->unless_empty && !making->all.any[of])) return NULL;
    return column->title;
}

/* Fills in shares, and adds the cells as a row. */
static void
add_cells(const struct making *making, struct cell cells[TABLE_COLUMNS_MAX])
{
    const struct table_def *def = making->def;
    clamp(def, cells);
    struct cell *row = table_row(making->table);
    for (unsigned i = 0; i < def->column_count; i++) {
        const struct table_column *column = &def->columns[i];
        if (left_out(def, column)) continue;
        if (column->source == SOURCE_SHARE && (column->value_if & ~def->given) == 0) {
            unsigned part = column_of(def, column->part);
            const struct cell whole = column->of_whole     ? cell_number(def->whole)
                                      : column->of != NULL ? cells[column_of(def, column->of)]
                                                           : making->all.cells[part];
            if (cells[part].present && whole.present) cells[i] = cell_share(cells[part].number, whole.number);
        }
        if (column->blank_rest && cells[i].number == 0) cells[i].present = false;
        *row++ = cells[i];
    }
}

static void
add_row(const struct making *making, const void *from, bool rest)
{
    const struct table_def *def = making->def;
    struct cell cells[TABLE_COLUMNS_MAX] = {{0}};
    for (unsigned i = 0; i < def->column_count; i++) {
        const struct table_column *column = &def->columns[i];
        if (rest && !column->summed) continue;
        cells[i] = cell_of(def, column, from);
        if (column->blank_zero && !rest && cells[i].number == 0) cells[i].present = false;
    }
    add_cells(making, cells);
}

static void
begin(struct making *making)
{
    const struct table_def *def = making->def;
    struct column columns[TABLE_COLUMNS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < def->column_count; i++) {
        const struct table_column *column = &def->columns[i];
        if (left_out(def, column)) continue;
        columns[count++] = (struct column){column->id, title_for_people(making, column), column->kind};
    }
    making->table = document_table(def->view->document, def->id, def->title, columns, count);
    uint32_t fewest = def->shown_empty ? 0 : def->fewest > 0 ? def->fewest : 1;
    making->table->data = def->data || making->all.rows + (def->first != NULL) < fewest;
}

struct table *
view_table(const struct table_def *def)
{
    assert(def->column_count <= TABLE_COLUMNS_MAX);
    sort_rows(def);
    struct making making = {.def = def, .all = sum_rows(def)};
    struct sums rest = {0};
    const struct table_column *least = least_column(def);
    uint32_t shown = 0;
    void *merged = def->merge != NULL ? xcalloc(1, def->rows->row_bytes) : NULL;
    begin(&making);
    if (def->first != NULL) add_row(&making, def->first, false);
    for (uint32_t i = 0; i < rows_in(def); i++) {
        const void *row = row_at(def, i);
        if (!counts(def, least, row)) continue;
        if (shown < def->view->top) add_row(&making, row, false), shown++;
        else if (def->no_rest) break;
        else if (merged != NULL) def->merge(merged, row);
        else sums_add(def, &rest, row);
    }
    if (making.all.rows > shown && !def->no_rest) {
        making.table->more_rows = making.all.rows - shown;
        if (merged != NULL) add_row(&making, merged, true);
        else add_cells(&making, rest.cells);
    }
    free(merged);
    return making.table;
}
