/* tables.c - see tables.h
 *
 * Each table tells how many rows it has, the value of a column of a row, and the column by which rows
 * are found without a search: the row's number, or for args the number of the set.
 */
#ifdef HAVE_SQLITE3
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/portable.h"
#include "base/xalloc.h"
#include "sql/functions.h"
#include "sql/span_join.h"
#include "sql/table.h"
#include "sql/tables.h"

/* --- tables -------------------------------------------------------------------------------- */

static uint32_t slice_rows(const struct model *model) { return model->slices.count; }

static void
slice_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct model_slice *slice = &model->slices.list[row];
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: sqlite3_result_int64(result, slice->ts); break;
      case 2: sqlite3_result_int64(result, slice->dur); break;
      case 3: sqlite3_result_int64(result, slice->track); break;
      case 4: result_string(result, model, slice->category); break;
      case 5: result_string(result, model, slice->name); break;
      case 6: sqlite3_result_int64(result, slice->depth); break;
      case 7: result_number(result, slice->parent); break;
      case 8: if (slice->arg_set != MODEL_NONE) sqlite3_result_int64(result, (int64_t)slice->arg_set + 1); break;
    }
}

static uint32_t args_rows(const struct model *model) { return model->args.count; }

static void
args_find(const struct model *model, uint32_t key, uint32_t *first_out, uint32_t *end_out)
{
    *first_out = *end_out = 0;
    if (key == 0 || key > model->arg_sets.count) return;
    const struct model_arg *args;
    unsigned count = model_args_of(model, key - 1, &args);
    *first_out = (uint32_t)(args - model->args.list);
    *end_out = *first_out + count;
}

static uint32_t
args_find_key(const struct model *model, uint32_t first, uint32_t end, uint32_t string)
{
    while (first < end && model->args.list[first].key != string) first++;
    return first;
}

static void
args_display(sqlite3_context *result, const struct model *model, const struct model_arg *arg)
{
    char text[64];
    switch (arg->type) {
      case MODEL_STRING: result_string(result, model, arg->string); return;
      case MODEL_BOOL: result_text(result, arg->integer ? "true" : "false"); return;
      case MODEL_INT: sqlite3_snprintf(sizeof text, text, "%lld", (long long)arg->integer); break;
      case MODEL_POINTER: sqlite3_snprintf(sizeof text, text, "0x%llx", (unsigned long long)arg->integer); break;
      case MODEL_REAL: /* as CAST(x AS TEXT) */
        if (isnan(arg->real)) return; /* which is NULL to SQLite */
        sqlite3_snprintf(sizeof text, text, "%!.15g", arg->real);
        break;
    }
    sqlite3_result_text(result, text, -1, SQLITE_TRANSIENT);
}

static void
args_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    static const char *const types[] = {
        [MODEL_INT] = "int", [MODEL_STRING] = "string", [MODEL_REAL] = "real", [MODEL_POINTER] = "pointer",
        [MODEL_BOOL] = "bool"};
    const struct model_arg *arg = &model->args.list[row];
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: sqlite3_result_int64(result, (int64_t)arg->set + 1); break;
      case 2:
      case 3: result_string(result, model, arg->key); break;
      case 4:
          if (arg->type != MODEL_STRING && arg->type != MODEL_REAL) sqlite3_result_int64(result, arg->integer);
          break;
      case 5: if (arg->type == MODEL_STRING) result_string(result, model, arg->string); break;
      case 6: if (arg->type == MODEL_REAL) sqlite3_result_double(result, arg->real); break;
      case 7: result_text(result, types[arg->type]); break;
      case 8: args_display(result, model, arg); break;
    }
}

static uint32_t thread_rows(const struct model *model) { return model->threads.count; }

static void
thread_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct model_thread *thread = &model->threads.list[row];
    switch (column) {
      case 0:
      case 1: sqlite3_result_int64(result, row); break;
      case 2: sqlite3_result_int64(result, thread->tid); break;
      case 3: result_string(result, model, thread->name); break;
      case 6: result_number(result, thread->upid); break;
      case 7: if (thread->upid != MODEL_NONE) sqlite3_result_int(result, thread->main); break;
    }
}

static uint32_t process_rows(const struct model *model) { return model->processes.count; }

static void
process_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct model_process *process = &model->processes.list[row];
    switch (column) {
      case 0:
      case 1: sqlite3_result_int64(result, row); break;
      case 2: sqlite3_result_int64(result, process->pid); break;
      case 3: result_string(result, model, process->name); break;
    }
}

static uint32_t track_rows(const struct model *model) { return model->tracks.count; }

static void
track_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    static const char *const types[] = {
        [MODEL_THREAD_TRACK] = "thread_execution",
        [MODEL_ASYNC_TRACK] = "legacy_async_global_slice",
        [MODEL_COUNTER_TRACK] = "fuchsia_counter",
        [MODEL_SAMPLE_TRACK] = "stack_sample_session_counter",
    };
    const struct model_track *track = &model->tracks.list[row];
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: result_string(result, model, track->name); break;
      case 2: result_text(result, types[track->kind]); break;
      case 3: break; /* parent_id */
      case 4: if (track->kind == MODEL_THREAD_TRACK) sqlite3_result_int64(result, track->owner); break;
      case 5: if (track->kind == MODEL_COUNTER_TRACK) sqlite3_result_int64(result, track->owner); break;
    }
}

static uint32_t counter_rows(const struct model *model) { return model->counters.count; }

static void
counter_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct model_counter *counter = &model->counters.list[row];
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: sqlite3_result_int64(result, counter->ts); break;
      case 2: sqlite3_result_int64(result, counter->track); break;
      case 3: sqlite3_result_double(result, counter->value); break;
    }
}

static uint32_t flow_rows(const struct model *model) { return model->flows.count; }

static void
flow_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct model_flow *flow = &model->flows.list[row];
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: sqlite3_result_int64(result, flow->out); break;
      case 2: sqlite3_result_int64(result, flow->in); break;
      case 3: sqlite3_result_int64(result, (int64_t)flow->id); break;
    }
}

static uint32_t sched_rows(const struct model *model) { return model->scheds.count; }

static void
sched_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct model_sched *sched = &model->scheds.list[row];
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: sqlite3_result_int64(result, sched->ts); break;
      case 2: sqlite3_result_int64(result, sched->dur); break;
      case 3: sqlite3_result_int64(result, sched->cpu); break;
      case 4: sqlite3_result_int64(result, sched->utid); break;
      case 5: result_text(result, sched->end_state); break;
      case 6: sqlite3_result_int(result, sched->priority); break;
    }
}

static uint32_t state_rows(const struct model *model) { return model->states.count; }

static void
state_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct model_state *state = &model->states.list[row];
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: sqlite3_result_int64(result, state->ts); break;
      case 2: sqlite3_result_int64(result, state->dur); break;
      case 3: sqlite3_result_int64(result, state->cpu); break;
      case 4: sqlite3_result_int64(result, state->utid); break;
      case 5: result_text(result, state->state); break;
      case 6: result_number(result, state->waker); break;
      case 7: result_number(result, state->waker_state); break;
    }
}

static uint32_t stats_rows(const struct model *model) { return (void)model, FXT_FAULT_CODES + MODEL_DROPS; }

/* One row per kind of fault, and per reason to drop slices. Perfetto counts some kinds as one: the view `stats` sums
 * them up. */
static void
stats_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    static const char *const drops[] = {
        [MODEL_TOO_DEEP] = "slice_max_depth_exceeded", [MODEL_OVERLAPS] = "slice_drop_overlapping_complete_event"};
    bool fault = row < FXT_FAULT_CODES;
    uint32_t drop = fault ? 0 : row - FXT_FAULT_CODES;
    switch (column) {
      case 0: result_text(result, fault ? fxt_fault_stat((enum fxt_fault_code)row) : drops[drop]); break;
      case 1: sqlite3_result_int64(result, (int64_t)(fault ? model->faults[row] : model->dropped_slices[drop])); break;
    }
}

static const struct table tables[] = {
    {"slice", "id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur", 0, -1,
     slice_rows, NULL, NULL, slice_column},
    {"args", "id, arg_set_id, flat_key, key, int_value, string_value, real_value, value_type, display_value", 1, 3,
     args_rows, args_find, args_find_key, args_column},
    {"thread", "id, utid, tid, name, start_ts, end_ts, upid, is_main_thread", 1, -1, thread_rows, NULL, NULL,
     thread_column},
    {"process", "id, upid, pid, name, start_ts, end_ts, parent_upid", 1, -1, process_rows, NULL, NULL, process_column},
    {"all_tracks", "id, name, type, parent_id, utid, upid", 0, -1, track_rows, NULL, NULL, track_column},
    {"counter", "id, ts, track_id, value", 0, -1, counter_rows, NULL, NULL, counter_column},
    {"flow", "id, slice_out, slice_in, trace_id, arg_set_id", 0, -1, flow_rows, NULL, NULL, flow_column},
    {"sched", "id, ts, dur, cpu, utid, end_state, priority", 0, -1, sched_rows, NULL, NULL, sched_column},
    {"thread_state", "id, ts, dur, cpu, utid, state, waker_utid, waker_id", 0, -1, state_rows, NULL, NULL,
     state_column},
    {"all_faults", "name, value", -1, -1, stats_rows, NULL, NULL, stats_column},
    {0},
};

/* Not temporary ones: those cannot be named in views that a query creates. */
static const char views[] =
    "CREATE VIEW slices AS SELECT * FROM slice;"
    "CREATE VIEW track AS SELECT id, name, type, parent_id FROM all_tracks;"
    "CREATE VIEW thread_track AS"
    " SELECT id, name, type, parent_id, utid FROM all_tracks WHERE type = 'thread_execution';"
    "CREATE VIEW process_track AS SELECT id, name, type, parent_id, upid FROM all_tracks WHERE 0;"
    "CREATE VIEW counter_track AS SELECT t.id, t.name, t.type, t.parent_id, s.unit FROM all_tracks t"
    " LEFT JOIN stack_sample_counter_track s ON s.id = t.id"
    " WHERE t.type IN ('fuchsia_counter', 'stack_sample_session_counter');"
    "CREATE VIEW trace_bounds AS SELECT TRACE_START() AS start_ts, TRACE_END() AS end_ts;"
    /* What modules of Perfetto's standard library define: see dialect.c. */
    "CREATE VIEW thread_slice AS SELECT s.id, s.ts, s.dur, s.category, s.name, s.track_id,"
    " k.name AS track_name, t.name AS thread_name, t.utid, t.tid, t.is_main_thread, p.name AS process_name, p.upid,"
    " p.pid, s.depth, s.parent_id, s.arg_set_id, s.thread_ts, s.thread_dur FROM slice s"
    " JOIN thread_track k ON k.id = s.track_id"
    " JOIN thread t ON t.utid = k.utid LEFT JOIN process p ON p.upid = t.upid;"
    "CREATE VIEW process_slice AS SELECT s.id, s.ts, s.dur, s.category, s.name, s.track_id,"
    " k.name AS track_name, p.name AS process_name, p.upid, p.pid, s.depth, s.parent_id, s.arg_set_id, s.thread_ts,"
    " s.thread_dur FROM slice s JOIN process_track k ON k.id = s.track_id JOIN process p ON p.upid = k.upid;"
    "CREATE VIEW thread_or_process_slice AS SELECT id, ts, dur, category, name, track_id, track_name, thread_name,"
    " utid, tid,"
    " process_name, upid, pid, depth, parent_id, arg_set_id FROM thread_slice UNION ALL"
    " SELECT id, ts, dur, category, name, track_id, track_name, NULL, NULL, NULL, process_name, upid, pid, depth,"
    " parent_id, arg_set_id FROM process_slice;"
    "CREATE VIEW slice_self_dur AS SELECT s.id, s.dur - COALESCE(c.dur, 0) AS self_dur FROM slice s LEFT JOIN"
    " (SELECT parent_id, SUM(dur) AS dur FROM slice WHERE parent_id IS NOT NULL GROUP BY parent_id) c"
    " ON c.parent_id = s.id;"
    "CREATE VIEW process_counter_track AS"
    " SELECT id, name, type, parent_id, upid FROM all_tracks WHERE type = 'fuchsia_counter';"
    "CREATE VIEW stack_sample_session AS SELECT * FROM all_sessions"
    " WHERE id IN (SELECT session_id FROM stack_sample);"
    "CREATE VIEW stats AS SELECT name, NULL AS key, 'error' AS severity, 'analysis' AS source, sum(value) AS value"
    " FROM all_faults WHERE name <> '' GROUP BY name;";

/* --- SQLite's side ---------------------------------------------------------------------------- */

struct vtab {
    sqlite3_vtab base;
    const struct table *table;
    const struct model *model;
};

struct vtab_cursor {
    sqlite3_vtab_cursor base;
    uint32_t row;
    uint32_t end;
};

struct registration {
    const struct table *table;
    const struct model *model;
};

static int
connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab_out, char **error_out)
{
    (void)argc;
    (void)argv;
    (void)error_out;
    const struct registration *registration = aux;
    char *sql = sqlite3_mprintf("CREATE TABLE x(%s)", registration->table->columns);
    if (sql == NULL) return SQLITE_NOMEM;
    int error = sqlite3_declare_vtab(db, sql);
    sqlite3_free(sql);
    if (error != SQLITE_OK) return error;
    struct vtab *vtab = xcalloc(1, sizeof *vtab);
    vtab->table = registration->table;
    vtab->model = registration->model;
    *vtab_out = &vtab->base;
    return SQLITE_OK;
}

static int
disconnect(sqlite3_vtab *vtab)
{
    free(vtab);
    return SQLITE_OK;
}

/* How rows are found: the number of keys, in this order; 0 reads all rows. */
enum lookup { ALL_ROWS, BY_KEY, BY_KEY_AND_TEXT };

/* Returns the usable constraint `column = value`, or -1. */
static int
find_equality(const sqlite3_index_info *info, int column)
{
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
        if (constraint->usable && constraint->op == SQLITE_INDEX_CONSTRAINT_EQ && constraint->iColumn == column)
            return i;
    }
    return -1;
}

static void
use_constraint(sqlite3_index_info *info, int constraint, enum lookup lookup)
{
    info->aConstraintUsage[constraint].argvIndex = (int)lookup;
    info->aConstraintUsage[constraint].omit = 1; /* filter compares like SQLite: no need to repeat it */
    info->idxNum = (int)lookup;
}

static int
best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct table *table = ((const struct vtab *)base)->table;
    uint32_t rows = table->rows(((const struct vtab *)base)->model);
    info->idxNum = ALL_ROWS;
    info->estimatedRows = rows;
    info->estimatedCost = rows + 1.0;
    int key = find_equality(info, table->key);
    if (table->key < 0 || key < 0) return SQLITE_OK;
    use_constraint(info, key, BY_KEY);
    info->estimatedRows = table->find != NULL ? 8 : 1;
    info->estimatedCost = 3;
    if (table->find == NULL) info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    int text = table->text_key < 0 ? -1 : find_equality(info, table->text_key);
    if (text < 0 || strcmp(sqlite3_vtab_collation(info, text), "BINARY") != 0) return SQLITE_OK;
    use_constraint(info, text, BY_KEY_AND_TEXT);
    info->estimatedRows = 1;
    info->estimatedCost = 2;
    return SQLITE_OK;
}

static int
open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **cursor_out)
{
    (void)base;
    struct vtab_cursor *cursor = xcalloc(1, sizeof *cursor);
    *cursor_out = &cursor->base;
    return SQLITE_OK;
}

static int
close_cursor(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

/* Returns the integer that a value equals, as SQLite compares it with an integer column: 5 and
 * 5.0 do, '5' does not. MODEL_NONE if it cannot be the number of a row. */
static uint32_t
whole_number(sqlite3_value *value)
{
    sqlite3_int64 number;
    switch (sqlite3_value_type(value)) {
      case SQLITE_INTEGER:
        number = sqlite3_value_int64(value);
        return number < 0 || number >= MODEL_NONE ? MODEL_NONE : (uint32_t)number;
      case SQLITE_FLOAT: {
        double real = sqlite3_value_double(value);
        return real >= 0 && real < MODEL_NONE && real == (double)(uint32_t)real ? (uint32_t)real : MODEL_NONE;
      }
      default:
        return MODEL_NONE;
    }
}

static int
filter(sqlite3_vtab_cursor *base, int lookup, const char *name, int argc, sqlite3_value **argv)
{
    (void)name;
    (void)argc;
    struct vtab_cursor *cursor = (struct vtab_cursor *)base;
    const struct table *table = ((const struct vtab *)base->pVtab)->table;
    const struct model *model = ((const struct vtab *)base->pVtab)->model;
    cursor->row = 0;
    cursor->end = table->rows(model);
    if (lookup == ALL_ROWS) return SQLITE_OK;

    uint32_t key = whole_number(argv[0]);
    if (table->find != NULL) {
        table->find(model, key, &cursor->row, &cursor->end);
    }
    else {
        cursor->row = key;
        if (key < cursor->end) cursor->end = key + 1;
    }
    if (lookup == BY_KEY_AND_TEXT && cursor->row < cursor->end) {
        uint32_t text = STRING_NONE;
        if (sqlite3_value_type(argv[1]) == SQLITE_TEXT) {
            const char *ptr = (const char *)sqlite3_value_text(argv[1]);
            text = pool_find(model->pool, ptr, (size_t)sqlite3_value_bytes(argv[1]));
        }
        cursor->row = text == STRING_NONE ? cursor->end : table->find_text(model, cursor->row, cursor->end, text);
        if (cursor->row < cursor->end) cursor->end = cursor->row + 1;
    }
    return SQLITE_OK;
}

static int
next(sqlite3_vtab_cursor *base)
{
    ((struct vtab_cursor *)base)->row++;
    return SQLITE_OK;
}

static int
at_end(sqlite3_vtab_cursor *base)
{
    const struct vtab_cursor *cursor = (const struct vtab_cursor *)base;
    return cursor->row >= cursor->end;
}

static int
column(sqlite3_vtab_cursor *base, sqlite3_context *result, int index)
{
    const struct vtab *vtab = (const struct vtab *)base->pVtab;
    vtab->table->column(result, vtab->model, ((const struct vtab_cursor *)base)->row, index);
    return SQLITE_OK;
}

static int
rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid_out)
{
    *rowid_out = ((const struct vtab_cursor *)base)->row;
    return SQLITE_OK;
}

/* Without xCreate the tables exist without CREATE VIRTUAL TABLE, once each. */
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

static int
register_tables(sqlite3 *db, const struct table *table, const struct model *model)
{
    int error = SQLITE_OK;
    for (; error == SQLITE_OK && table->name != NULL; table++) {
        struct registration *registration = xcalloc(1, sizeof *registration);
        *registration = (struct registration){.table = table, .model = model};
        error = sqlite3_create_module_v2(db, table->name, &module, registration, free);
    }
    return error;
}

int
tables_register(sqlite3 *db, struct model *model)
{
    int error = register_tables(db, tables, model);
    if (error == SQLITE_OK) error = register_tables(db, sample_tables, model);
    if (error == SQLITE_OK) error = functions_register(db, model);
    if (error == SQLITE_OK) error = table_functions_register(db, model, tables);
    if (error == SQLITE_OK) error = span_join_register(db);
    if (error != SQLITE_OK) return error;
    /* Sort a GROUP BY over a million slices in memory, not in a file: -65536 means 64 MiB. */
    error = sqlite3_exec(db, "PRAGMA cache_size = -65536", NULL, NULL, NULL);
    return error == SQLITE_OK ? sqlite3_exec(db, views, NULL, NULL, NULL) : error;
}

/* Calls `word` with the first column of each row. */
static void
words_of(sqlite3 *db, const char *sql, const char *parameter, void (*word)(void *context, const char *name),
         void *context)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) return;
    if (parameter != NULL) sqlite3_bind_text(statement, 1, parameter, -1, SQLITE_STATIC);
    while (sqlite3_step(statement) == SQLITE_ROW) word(context, (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
}

void
tables_words(sqlite3 *db, void (*word)(void *context, const char *name), void *context)
{
    static const char columns[] = "SELECT name FROM pragma_table_info(?)";
    const struct table *const lists[] = {tables, sample_tables};
    for (unsigned i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (const struct table *table = lists[i]; table->name != NULL; table++) {
            word(context, table->name);
            words_of(db, columns, table->name, word, context);
        }
    }
    words_of(db, "SELECT name FROM sqlite_master", NULL, word, context);
    words_of(db, "SELECT c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c", NULL, word, context);
    words_of(db, "SELECT name FROM pragma_function_list WHERE name GLOB '[a-z]*'", NULL, word, context);
    table_functions_words(word, context);
}
#else
typedef int tables_need_sqlite; /* a file must not be empty */
#endif
