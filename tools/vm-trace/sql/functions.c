/* functions.c - see functions.h: functions that return a value. */
#ifdef HAVE_SQLITE3
#include <stdlib.h>

#include "base/pattern.h"
#include "base/xalloc.h"
#include "sql/functions.h"
#include "sql/table.h"

/* --- EXTRACT_ARG(arg_set_id, key) --------------------------------------------------------------------------- */

static void
extract_arg(sqlite3_context *result, int argc, sqlite3_value **argv)
{
    (void)argc;
    const struct model *model = sqlite3_user_data(result);
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL) return;
    if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER || sqlite3_value_type(argv[1]) != SQLITE_TEXT) {
        sqlite3_result_error(result, "EXTRACT_ARG takes the id of a set and a key: EXTRACT_ARG(arg_set_id, 'key')", -1);
        return;
    }
    sqlite3_int64 set = sqlite3_value_int64(argv[0]);
    const char *key = (const char *)sqlite3_value_text(argv[1]);
    uint32_t string = pool_find(model->pool, key, (size_t)sqlite3_value_bytes(argv[1]));
    if (string == STRING_NONE || set <= 0 || set > model->arg_sets.count) return;
    const struct model_arg *args;
    unsigned count = model_args_of(model, (uint32_t)set - 1, &args);
    for (unsigned i = 0; i < count; i++) {
        if (args[i].key != string) continue;
        if (args[i].type == MODEL_STRING) result_string(result, model, args[i].string);
        else if (args[i].type == MODEL_REAL) sqlite3_result_double(result, args[i].real);
        else sqlite3_result_int64(result, args[i].integer);
        return;
    }
}

/* --- text REGEXP pattern -------------------------------------------------------------------------------------- */

static void
free_pattern(void *pattern)
{
    pattern_free(pattern);
}

static struct fxt_string
text_value(sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    return (struct fxt_string){.ptr = text != NULL ? text : "", .len = (uint32_t)sqlite3_value_bytes(value)};
}

/* SQLite calls regexp(pattern, text) for it. A pattern is compiled once for a statement, where it is constant. */
static void
regexp(sqlite3_context *result, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL || sqlite3_value_type(argv[1]) == SQLITE_NULL) return;
    char why[PATTERN_WHY];
    struct pattern *pattern = sqlite3_get_auxdata(result, 0);
    bool compiled = pattern != NULL;
    if (!compiled) pattern = pattern_new(text_value(argv[0]), why);
    enum pattern_result found = PATTERN_FAILED;
    if (pattern != NULL) found = pattern_search(pattern, text_value(argv[1]), 0, why);
    if (found != PATTERN_FAILED) {
        sqlite3_result_int(result, found == PATTERN_MATCH);
    }
    else {
        char *message = sqlite3_mprintf("REGEXP: %s: %s", why, sqlite3_value_text(argv[0]));
        sqlite3_result_error(result, message, -1);
        sqlite3_free(message);
    }
    if (pattern != NULL && !compiled) sqlite3_set_auxdata(result, 0, pattern, free_pattern);
}

/* --- TRACE_START(), TRACE_END(), TRACE_DUR() ------------------------------------------------------------------ */

struct bounds {
    int64_t start, end; /* start > end: there is nothing */
};

static void
extend(struct bounds *bounds, int64_t ts, int64_t dur)
{
    int64_t end = dur > 0 ? ts + dur : ts;
    if (ts < bounds->start) bounds->start = ts;
    if (end > bounds->end) bounds->end = end;
}

static struct bounds
bounds_of(const struct model *model)
{
    struct bounds bounds = {INT64_MAX, INT64_MIN};
    for (uint32_t i = 0; i < model->slices.count; i++)
        extend(&bounds, model->slices.list[i].ts, model->slices.list[i].dur);
    for (uint32_t i = 0; i < model->counters.count; i++) extend(&bounds, model->counters.list[i].ts, 0);
    for (uint32_t i = 0; i < model->scheds.count; i++)
        extend(&bounds, model->scheds.list[i].ts, model->scheds.list[i].dur);
    for (uint32_t i = 0; i < model->states.count; i++)
        extend(&bounds, model->states.list[i].ts, model->states.list[i].dur);
    if (bounds.start > bounds.end) return (struct bounds){0, 0};
    if (bounds.start == bounds.end) bounds.end++; /* as Perfetto has it */
    return bounds;
}

enum bound { BOUND_START, BOUND_END, BOUND_DUR, BOUNDS };

struct bound_function {
    const struct model *model;
    enum bound bound;
};

static void
trace_bound(sqlite3_context *result, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    const struct bound_function *function = sqlite3_user_data(result);
    struct bounds bounds = bounds_of(function->model);
    const int64_t values[BOUNDS] = {bounds.start, bounds.end, bounds.end - bounds.start};
    sqlite3_result_int64(result, values[function->bound]);
}

int
functions_register(sqlite3 *db, const struct model *model)
{
    static const char *const names[BOUNDS] = {"trace_start", "trace_end", "trace_dur"};
    const int constant = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    int error = sqlite3_create_function(db, "extract_arg", 2, constant, (void *)model, extract_arg, NULL, NULL);
    if (error == SQLITE_OK) error = sqlite3_create_function(db, "regexp", 2, constant, NULL, regexp, NULL, NULL);
    for (int i = 0; error == SQLITE_OK && i < BOUNDS; i++) {
        struct bound_function *function = xcalloc(1, sizeof *function);
        *function = (struct bound_function){.model = model, .bound = (enum bound)i};
        error = sqlite3_create_function_v2(db, names[i], 0, constant, function, trace_bound, NULL, NULL, free);
    }
    return error;
}
#else
typedef int functions_need_sqlite; /* a file must not be empty */
#endif
