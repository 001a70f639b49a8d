/* table_functions.c - see functions.h: functions that return rows of slice or flow for a slice. */
#ifdef HAVE_SQLITE3
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "sql/functions.h"
#include "sql/table.h"

/* Rows that a function returns. */
typedef ARRAY_OF(uint32_t) row_list;

static void
add_row(row_list *rows, uint32_t row)
{
    make_room(rows->list, rows->count, rows->capacity);
    rows->list[rows->count++] = row;
}

static int
compare_rows(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void
sort_rows(row_list *rows)
{
    if (rows->count > 0) qsort(rows->list, rows->count, sizeof *rows->list, compare_rows);
}

/* --- slices ------------------------------------------------------------------------------------------------ */

static void
ancestors(const struct model *model, uint32_t slice, row_list *rows)
{
    while ((slice = model->slices.list[slice].parent) != MODEL_NONE) add_row(rows, slice);
}

/* Slices are sorted by time, and a parent comes before its children. */
static void
descendants(const struct model *model, uint32_t slice, row_list *rows)
{
    const struct model_slice *slices = model->slices.list, *start = &slices[slice];
    struct map seen = {0};
    map_set(&seen, slice, 1);
    for (uint32_t i = slice + 1; i < model->slices.count; i++) {
        if (start->dur >= 0 && slices[i].ts > start->ts + start->dur) break;
        if (slices[i].parent == MODEL_NONE || map_get(&seen, slices[i].parent) == MAP_NONE) continue;
        map_set(&seen, i, 1);
        add_row(rows, i);
    }
    map_free(&seen);
}

/* --- flows --------------------------------------------------------------------------------------------------- */

/* How a slice was reached. From one that a flow led to, a walk does not go back. */
enum reached { AT_START, BY_INCOMING, BY_OUTGOING, BY_KINSHIP };

struct walk {
    const struct model *model;
    row_list *flows;
    row_list slices;    /* to visit, and visited: each once */
    row_list reached;   /* enum reached of each */
    struct map known;   /* of slices */
};

static void
reach(struct walk *walk, uint32_t slice, enum reached how)
{
    if (map_get(&walk->known, slice) != MAP_NONE) return;
    map_set(&walk->known, slice, 1);
    add_row(&walk->slices, slice);
    add_row(&walk->reached, how);
}

static void
follow(struct walk *walk, uint32_t slice, bool outgoing)
{
    for (uint32_t i = 0; i < walk->model->flows.count; i++) {
        const struct model_flow *flow = &walk->model->flows.list[i];
        if ((outgoing ? flow->out : flow->in) != slice) continue;
        add_row(walk->flows, i);
        reach(walk, outgoing ? flow->in : flow->out, outgoing ? BY_OUTGOING : BY_INCOMING);
    }
}

/* Which way a walk goes; and to which other slices from those that it reaches by flows. */
struct walk_mode {
    bool incoming, outgoing;
    void (*relatives)(const struct model *model, uint32_t slice, row_list *rows); /* NULL: none */
};

/* Breadth first; the flows are in the order of the walk. */
static void
walk_flows(const struct model *model, uint32_t slice, row_list *rows, const struct walk_mode *mode)
{
    struct walk walk = {.model = model, .flows = rows};
    reach(&walk, slice, AT_START);
    for (uint32_t i = 0; i < walk.slices.count; i++) {
        enum reached how = (enum reached)walk.reached.list[i];
        uint32_t at = walk.slices.list[i];
        row_list relatives = {0};
        if (mode->relatives != NULL && how != BY_KINSHIP) mode->relatives(model, at, &relatives);
        sort_rows(&relatives);
        for (uint32_t row = 0; row < relatives.count; row++) reach(&walk, relatives.list[row], BY_KINSHIP);
        free(relatives.list);
        if (mode->incoming && how != BY_OUTGOING) follow(&walk, at, false);
        if (mode->outgoing && how != BY_INCOMING) follow(&walk, at, true);
    }
    free(walk.slices.list);
    free(walk.reached.list);
    map_free(&walk.known);
}

static void
following(const struct model *model, uint32_t slice, row_list *rows)
{
    walk_flows(model, slice, rows, &(struct walk_mode){.outgoing = true, .relatives = descendants});
}

static void
preceding(const struct model *model, uint32_t slice, row_list *rows)
{
    walk_flows(model, slice, rows, &(struct walk_mode){.incoming = true, .relatives = ancestors});
}

static void
directly_connected(const struct model *model, uint32_t slice, row_list *rows)
{
    walk_flows(model, slice, rows, &(struct walk_mode){.incoming = true, .outgoing = true});
}

/* --- SQLite's side -------------------------------------------------------------------------------------------- */

struct table_function {
    const char *name;
    const char *table; /* whose rows it returns */
    bool sorted;       /* in their order there */
    void (*rows)(const struct model *model, uint32_t slice, row_list *rows);
};

static const struct table_function table_functions[] = {
    {"ancestor_slice", "slice", true, ancestors},
    {"descendant_slice", "slice", true, descendants},
    {"following_flow", "flow", false, following},
    {"preceding_flow", "flow", false, preceding},
    {"directly_connected_flow", "flow", false, directly_connected},
};
enum { TABLE_FUNCTIONS = sizeof table_functions / sizeof table_functions[0] };

struct registration {
    const struct table_function *function;
    const struct table *table;
    const struct model *model;
};

struct function_vtab {
    sqlite3_vtab base;
    const struct registration *registration;
    int columns; /* of the table; the argument is the next one */
};

struct function_cursor {
    sqlite3_vtab_cursor base;
    row_list rows;
    uint32_t at;
    uint32_t slice; /* the argument */
};

static int
connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab_out, char **error_out)
{
    (void)argc;
    (void)argv;
    (void)error_out;
    const struct registration *registration = aux;
    char *sql = sqlite3_mprintf("CREATE TABLE x(%s, start_id HIDDEN)", registration->table->columns);
    int error = sql == NULL ? SQLITE_NOMEM : sqlite3_declare_vtab(db, sql);
    sqlite3_free(sql);
    if (error != SQLITE_OK) return error;
    struct function_vtab *vtab = xcalloc(1, sizeof *vtab);
    vtab->registration = registration;
    vtab->columns = 1;
    for (const char *at = registration->table->columns; *at != '\0'; at++) vtab->columns += *at == ',';
    *vtab_out = &vtab->base;
    return SQLITE_OK;
}

static int
disconnect(sqlite3_vtab *vtab)
{
    free(vtab);
    return SQLITE_OK;
}

/* Without its argument it can have no rows. */
static int
best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    int argument = ((const struct function_vtab *)base)->columns;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
        if (constraint->iColumn != argument || constraint->op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
        if (!constraint->usable) return SQLITE_CONSTRAINT;
        info->aConstraintUsage[i].argvIndex = 1;
        info->aConstraintUsage[i].omit = 1;
        info->idxNum = 1;
        info->estimatedRows = 10;
        info->estimatedCost = 10;
        return SQLITE_OK;
    }
    info->idxNum = 0;
    info->estimatedRows = 1;
    info->estimatedCost = 1e9;
    return SQLITE_OK;
}

static int
open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **cursor_out)
{
    (void)base;
    struct function_cursor *cursor = xcalloc(1, sizeof *cursor);
    *cursor_out = &cursor->base;
    return SQLITE_OK;
}

static int
close_cursor(sqlite3_vtab_cursor *base)
{
    free(((struct function_cursor *)base)->rows.list);
    free(base);
    return SQLITE_OK;
}

static int
filter(sqlite3_vtab_cursor *base, int with_argument, const char *name, int argc, sqlite3_value **argv)
{
    (void)name;
    (void)argc;
    struct function_cursor *cursor = (struct function_cursor *)base;
    const struct registration *registration = ((const struct function_vtab *)base->pVtab)->registration;
    const struct table_function *function = registration->function;
    cursor->rows.count = cursor->at = 0;
    if (with_argument && sqlite3_value_type(argv[0]) == SQLITE_NULL) return SQLITE_OK; /* no rows */
    sqlite3_int64 slice = with_argument ? sqlite3_value_int64(argv[0]) : -1;
    if (!with_argument || sqlite3_value_type(argv[0]) != SQLITE_INTEGER || slice < 0 ||
        slice >= registration->model->slices.count) {
        sqlite3_free(base->pVtab->zErrMsg);
        base->pVtab->zErrMsg =
            sqlite3_mprintf("%s takes the id of a slice: %s(slice.id)", function->name, function->name);
        return SQLITE_ERROR;
    }
    cursor->slice = (uint32_t)slice;
    function->rows(registration->model, cursor->slice, &cursor->rows);
    if (function->sorted) sort_rows(&cursor->rows);
    return SQLITE_OK;
}

static int
next(sqlite3_vtab_cursor *base)
{
    ((struct function_cursor *)base)->at++;
    return SQLITE_OK;
}

static int
at_end(sqlite3_vtab_cursor *base)
{
    const struct function_cursor *cursor = (const struct function_cursor *)base;
    return cursor->at >= cursor->rows.count;
}

static int
column(sqlite3_vtab_cursor *base, sqlite3_context *result, int index)
{
    const struct function_cursor *cursor = (const struct function_cursor *)base;
    const struct function_vtab *vtab = (const struct function_vtab *)base->pVtab;
    if (index == vtab->columns) sqlite3_result_int64(result, cursor->slice);
    else vtab->registration->table->column(result, vtab->registration->model, cursor->rows.list[cursor->at], index);
    return SQLITE_OK;
}

static int
rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid_out)
{
    *rowid_out = ((const struct function_cursor *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = connect,
    .xBestIndex = best_index,
    .xDisconnect = disconnect,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = at_end,
    .xColumn = column,
    .xRowid = rowid,
};

/* The table of tables.c with this name, which it has. */
static const struct table *
table_named(const struct table *tables, const char *name)
{
    while (strcmp(tables->name, name) != 0) tables++;
    return tables;
}

int
table_functions_register(sqlite3 *db, const struct model *model, const struct table *tables)
{
    int error = SQLITE_OK;
    for (int i = 0; error == SQLITE_OK && i < TABLE_FUNCTIONS; i++) {
        struct registration *registration = xcalloc(1, sizeof *registration);
        *registration = (struct registration){
            .function = &table_functions[i], .table = table_named(tables, table_functions[i].table), .model = model};
        error = sqlite3_create_module_v2(db, table_functions[i].name, &module, registration, free);
    }
    return error;
}

void
table_functions_words(void (*word)(void *context, const char *name), void *context)
{
    for (int i = 0; i < TABLE_FUNCTIONS; i++) word(context, table_functions[i].name);
}
#else
typedef int table_functions_need_sqlite; /* a file must not be empty */
#endif
