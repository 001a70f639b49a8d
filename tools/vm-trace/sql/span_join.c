/* span_join.c - see span_join.h
 *
 * Both tables are read once, sorted by partition and time, and merged: nothing is kept but one row of each.
 */
#ifdef HAVE_SQLITE3
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "sql/span_join.h"

enum { LEFT, RIGHT, SIDES };
enum join_kind { INNER_JOIN, LEFT_JOIN, OUTER_JOIN, JOIN_KINDS };

/* A table as it is given, and which of its columns are which. */
struct source {
    char *name;
    char *partition; /* NULL: none */
    int column_count;
    char **columns;
    int ts, dur, part; /* part: -1 without a partition */
};

struct join_vtab {
    sqlite3_vtab base;
    sqlite3 *db;
    enum join_kind kind;
    struct source sources[SIDES];
};

/* Where the merge is in a table. */
struct side {
    sqlite3_stmt *rows;
    bool has_row;
    bool used;        /* by the row of the result */
    bool done;        /* the row is to be left when the result goes on */
    int64_t partition;
    int64_t from, to; /* what is left of the row */
    int64_t end;      /* ts + dur: one less than `to` if it has not ended */
};

struct join_cursor {
    sqlite3_vtab_cursor base;
    struct side sides[SIDES];
    bool in_partition;  /* one is chosen; always, if no table has any */
    int64_t partition;
    int64_t from, dur;  /* the row of the result */
    bool at_end;
    int64_t number;
};

/* --- its arguments -------------------------------------------------------------------------------------------- */

static char *
take_word(const char **text)
{
    while (isspace((unsigned char)**text)) ++*text;
    size_t bytes = strcspn(*text, " \t\r\n");
    if (bytes == 0) return NULL;
    char *word = xformat("%.*s", (int)bytes, *text);
    *text += bytes;
    return word;
}

/* "table" or "table PARTITIONED column". */
static bool
parse_source(const char *text, struct source *source)
{
    source->name = take_word(&text);
    char *keyword = take_word(&text);
    if (keyword != NULL && sqlite3_stricmp(keyword, "partitioned") == 0) source->partition = take_word(&text);
    bool ok = source->name != NULL && (keyword == NULL || source->partition != NULL);
    free(keyword);
    return ok;
}

static void
free_source(struct source *source)
{
    for (int i = 0; i < source->column_count; i++) free(source->columns[i]);
    free(source->columns);
    free(source->name);
    free(source->partition);
}

/* Returns an SQLite result code. */
static int
read_columns(sqlite3 *db, struct source *source)
{
    sqlite3_stmt *statement;
    char *sql = sqlite3_mprintf("SELECT * FROM %s LIMIT 0", source->name);
    int error = sql == NULL ? SQLITE_NOMEM : sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    sqlite3_free(sql);
    if (error != SQLITE_OK) return error;
    source->column_count = sqlite3_column_count(statement);
    source->columns = xcalloc((size_t)source->column_count, sizeof *source->columns);
    source->ts = source->dur = source->part = -1;
    for (int i = 0; i < source->column_count; i++) {
        const char *name = sqlite3_column_name(statement, i);
        source->columns[i] = xformat("%s", name);
        if (sqlite3_stricmp(name, "ts") == 0) source->ts = i;
        if (sqlite3_stricmp(name, "dur") == 0) source->dur = i;
        if (source->partition != NULL && sqlite3_stricmp(name, source->partition) == 0) source->part = i;
    }
    sqlite3_finalize(statement);
    return SQLITE_OK;
}

static bool
extra_p(const struct source *source, int column)
{
    return column != source->ts && column != source->dur && column != source->part;
}

/* The column by which the result is partitioned; NULL: none. */
static const char *
partition_of(const struct source sources[SIDES])
{
    return sources[LEFT].partition != NULL ? sources[LEFT].partition : sources[RIGHT].partition;
}

static bool
column_p(const struct source *source, const char *name)
{
    for (int i = 0; i < source->column_count; i++) {
        if (extra_p(source, i) && sqlite3_stricmp(source->columns[i], name) == 0) return true;
    }
    return false;
}

/* Returns what is wrong with them, to be freed with sqlite3_free, or NULL. */
static char *
check_sources(const struct source sources[SIDES])
{
    const struct source *left = &sources[LEFT], *right = &sources[RIGHT];
    for (int side = 0; side < SIDES; side++) {
        const struct source *source = &sources[side];
        if (source->ts < 0) return sqlite3_mprintf("%s has no column ts", source->name);
        if (source->partition != NULL && source->part < 0)
            return sqlite3_mprintf("%s has no column %s", source->name, source->partition);
    }
    if (left->dur < 0 && right->dur < 0)
        return sqlite3_mprintf("neither %s nor %s has a column dur", left->name, right->name);
    if (left->partition != NULL && right->partition != NULL && sqlite3_stricmp(left->partition, right->partition) != 0)
        return sqlite3_mprintf("%s and %s are partitioned by different columns", left->name, right->name);
    for (int i = 0; i < left->column_count; i++) {
        if (extra_p(left, i) && column_p(right, left->columns[i]))
            return sqlite3_mprintf("both %s and %s have a column %s", left->name, right->name, left->columns[i]);
    }
    return NULL;
}

/* The table's declaration; NULL: no memory. */
static char *
declaration(const struct source sources[SIDES])
{
    char *sql = sqlite3_mprintf("CREATE TABLE x(ts, dur");
    const char *partition = partition_of(sources);
    if (partition != NULL && sql != NULL) sql = sqlite3_mprintf("%z, \"%w\"", sql, partition);
    for (int side = 0; side < SIDES; side++) {
        for (int i = 0; i < sources[side].column_count && sql != NULL; i++) {
            if (extra_p(&sources[side], i)) sql = sqlite3_mprintf("%z, \"%w\"", sql, sources[side].columns[i]);
        }
    }
    return sql != NULL ? sqlite3_mprintf("%z)", sql) : NULL;
}

static int
disconnect(sqlite3_vtab *base)
{
    struct join_vtab *vtab = (struct join_vtab *)base;
    for (int side = 0; side < SIDES; side++) free_source(&vtab->sources[side]);
    free(vtab);
    return SQLITE_OK;
}

static int
create(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab_out, char **error_out)
{
    enum { MODULE_ARGUMENTS = 3 };
    struct join_vtab *vtab = xcalloc(1, sizeof *vtab);
    vtab->db = db;
    vtab->kind = (enum join_kind)(intptr_t)aux;
    char *why = NULL;
    int error = SQLITE_OK;
    if (argc != MODULE_ARGUMENTS + SIDES)
        why = sqlite3_mprintf("takes two tables: %s(a PARTITIONED x, b PARTITIONED x)", argv[0]);
    for (int side = 0; side < SIDES && why == NULL && error == SQLITE_OK; side++) {
        if (!parse_source(argv[MODULE_ARGUMENTS + side], &vtab->sources[side]))
            why = sqlite3_mprintf("takes a table, or table PARTITIONED column, not %s", argv[MODULE_ARGUMENTS + side]);
        else error = read_columns(db, &vtab->sources[side]);
    }
    if (why == NULL && error == SQLITE_OK) why = check_sources(vtab->sources);
    if (why == NULL && error == SQLITE_OK) {
        char *sql = declaration(vtab->sources);
        error = sql == NULL ? SQLITE_NOMEM : sqlite3_declare_vtab(db, sql);
        sqlite3_free(sql);
    }
    if (why == NULL && error == SQLITE_OK) {
        *vtab_out = &vtab->base;
        return SQLITE_OK;
    }
    *error_out = sqlite3_mprintf("%s: %s", argv[0], why != NULL ? why : sqlite3_errmsg(db));
    sqlite3_free(why);
    disconnect(&vtab->base);
    return error != SQLITE_OK ? error : SQLITE_ERROR;
}

/* Another function than `create`: else it would be a table without CREATE VIRTUAL TABLE, too. */
static int
connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab_out, char **error_out)
{
    return create(db, aux, argc, argv, vtab_out, error_out);
}

/* --- the merge ------------------------------------------------------------------------------------------------- */

static const struct source *
source_of(const struct join_cursor *cursor, int number)
{
    return &((const struct join_vtab *)cursor->base.pVtab)->sources[number];
}

/* Goes to the next row that has a partition. */
static int
advance(struct join_cursor *cursor, int number)
{
    struct side *side = &cursor->sides[number];
    const struct source *source = source_of(cursor, number);
    side->done = false;
    do {
        int result = sqlite3_step(side->rows);
        side->has_row = result == SQLITE_ROW;
        if (!side->has_row) return result == SQLITE_DONE ? SQLITE_OK : result;
    } while (source->part >= 0 && sqlite3_column_type(side->rows, source->part) == SQLITE_NULL);
    if (source->part >= 0) side->partition = sqlite3_column_int64(side->rows, source->part);
    int64_t dur = source->dur >= 0 ? sqlite3_column_int64(side->rows, source->dur) : 0;
    side->from = sqlite3_column_int64(side->rows, source->ts);
    side->to = dur < 0 ? side->from : side->from + dur;
    side->end = side->from + dur;
    return SQLITE_OK;
}

/* Whether it has a row of the current partition. */
static bool
present(const struct join_cursor *cursor, int number)
{
    const struct side *side = &cursor->sides[number];
    bool partitioned = source_of(cursor, number)->part >= 0;
    return side->has_row && cursor->in_partition && (!partitioned || side->partition == cursor->partition);
}

/* Chooses the next partition; a table without one begins again in each. *there_is_out: there is one. */
static int
next_partition(struct join_cursor *cursor, bool *there_is_out)
{
    bool found = false;
    for (int number = 0; number < SIDES; number++) {
        const struct side *side = &cursor->sides[number];
        if (source_of(cursor, number)->part < 0 || !side->has_row) continue;
        if (!found || side->partition < cursor->partition) cursor->partition = side->partition;
        found = true;
    }
    *there_is_out = cursor->in_partition = found;
    for (int number = 0; number < SIDES && found; number++) {
        if (source_of(cursor, number)->part >= 0) continue;
        int error = sqlite3_reset(cursor->sides[number].rows);
        if (error == SQLITE_OK) error = advance(cursor, number);
        if (error != SQLITE_OK) return error;
    }
    return SQLITE_OK;
}

/* Takes the time up to `to` of one side, or of both, as a row. */
static void
take(struct join_cursor *cursor, bool left, bool right, int64_t to)
{
    const bool used[SIDES] = {left, right};
    int64_t end = to;
    cursor->from = cursor->sides[left ? LEFT : RIGHT].from;
    for (int number = 0; number < SIDES; number++) {
        struct side *side = &cursor->sides[number];
        side->used = used[number];
        if (!used[number]) continue;
        if (side->end < end) end = side->end;
        side->from = to;
        side->done = to == side->to;
    }
    cursor->dur = end - cursor->from;
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The next time in which the same rows are there. *there_is_out: there is one. */
static int
next_time(struct join_cursor *cursor, bool *there_is_out)
{
    struct side *left = &cursor->sides[LEFT], *right = &cursor->sides[RIGHT];
    *there_is_out = true;
    while (*there_is_out && !present(cursor, LEFT) && !present(cursor, RIGHT)) {
        int error = next_partition(cursor, there_is_out);
        if (error != SQLITE_OK) return error;
    }
    if (!*there_is_out) return SQLITE_OK;
    if (!present(cursor, RIGHT)) take(cursor, true, false, left->to);
    else if (!present(cursor, LEFT)) take(cursor, false, true, right->to);
    else if (left->from < right->from) take(cursor, true, false, earlier(left->to, right->from));
    else if (right->from < left->from) take(cursor, false, true, earlier(right->to, left->from));
    else take(cursor, true, true, earlier(left->to, right->to));
    return SQLITE_OK;
}

static bool
wanted(const struct join_cursor *cursor)
{
    enum join_kind kind = ((const struct join_vtab *)cursor->base.pVtab)->kind;
    if (cursor->sides[LEFT].used && cursor->sides[RIGHT].used) return true;
    return kind == OUTER_JOIN || (kind == LEFT_JOIN && cursor->sides[LEFT].used);
}

static int
next(sqlite3_vtab_cursor *base)
{
    struct join_cursor *cursor = (struct join_cursor *)base;
    bool there_is = true;
    cursor->number++;
    do {
        int error = SQLITE_OK;
        for (int number = 0; number < SIDES && error == SQLITE_OK; number++) {
            if (cursor->sides[number].done) error = advance(cursor, number);
        }
        if (error == SQLITE_OK) error = next_time(cursor, &there_is);
        if (error != SQLITE_OK) return error;
    } while (there_is && !wanted(cursor));
    cursor->at_end = !there_is;
    return SQLITE_OK;
}

/* --- SQLite's side ------------------------------------------------------------------------------------------------ */

static int
best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    info->estimatedCost = 1e6;
    return SQLITE_OK;
}

static int
open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **cursor_out)
{
    (void)base;
    struct join_cursor *cursor = xcalloc(1, sizeof *cursor);
    *cursor_out = &cursor->base;
    return SQLITE_OK;
}

static void
close_sides(struct join_cursor *cursor)
{
    for (int number = 0; number < SIDES; number++) {
        sqlite3_finalize(cursor->sides[number].rows);
        cursor->sides[number] = (struct side){.done = true};
    }
}

static int
close_cursor(sqlite3_vtab_cursor *base)
{
    close_sides((struct join_cursor *)base);
    free(base);
    return SQLITE_OK;
}

static int
filter(sqlite3_vtab_cursor *base, int number, const char *name, int argc, sqlite3_value **argv)
{
    (void)number;
    (void)name;
    (void)argc;
    (void)argv;
    struct join_cursor *cursor = (struct join_cursor *)base;
    const struct join_vtab *vtab = (const struct join_vtab *)base->pVtab;
    close_sides(cursor);
    cursor->number = 0;
    cursor->in_partition = partition_of(vtab->sources) == NULL;
    for (int side = 0; side < SIDES; side++) {
        const struct source *source = &vtab->sources[side];
        char *sql = source->partition != NULL
                        ? sqlite3_mprintf("SELECT * FROM %s ORDER BY \"%w\", ts", source->name, source->partition)
                        : sqlite3_mprintf("SELECT * FROM %s ORDER BY ts", source->name);
        int error = sql == NULL ? SQLITE_NOMEM : sqlite3_prepare_v2(vtab->db, sql, -1, &cursor->sides[side].rows, NULL);
        sqlite3_free(sql);
        if (error != SQLITE_OK) return error;
    }
    return next(base);
}

static int
at_end(sqlite3_vtab_cursor *base)
{
    return ((const struct join_cursor *)base)->at_end;
}

static int
column(sqlite3_vtab_cursor *base, sqlite3_context *result, int index)
{
    const struct join_cursor *cursor = (const struct join_cursor *)base;
    const struct join_vtab *vtab = (const struct join_vtab *)base->pVtab;
    if (index == 0) sqlite3_result_int64(result, cursor->from);
    if (index == 1) sqlite3_result_int64(result, cursor->dur);
    index -= 2;
    if (partition_of(vtab->sources) != NULL && index-- == 0) sqlite3_result_int64(result, cursor->partition);
    for (int side = 0; side < SIDES && index >= 0; side++) {
        for (int i = 0; i < vtab->sources[side].column_count; i++) {
            if (!extra_p(&vtab->sources[side], i) || index-- != 0) continue;
            const struct side *from = &cursor->sides[side];
            if (from->used) sqlite3_result_value(result, sqlite3_column_value(from->rows, i));
            return SQLITE_OK;
        }
    }
    return SQLITE_OK;
}

static int
rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid_out)
{
    *rowid_out = ((const struct join_cursor *)base)->number;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xCreate = create,
    .xConnect = connect,
    .xBestIndex = best_index,
    .xDisconnect = disconnect,
    .xDestroy = disconnect,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = at_end,
    .xColumn = column,
    .xRowid = rowid,
};

int
span_join_register(sqlite3 *db)
{
    static const char *const names[JOIN_KINDS] = {"span_join", "span_left_join", "span_outer_join"};
    int error = SQLITE_OK;
    for (int kind = 0; error == SQLITE_OK && kind < JOIN_KINDS; kind++)
        error = sqlite3_create_module_v2(db, names[kind], &module, (void *)(intptr_t)kind, NULL);
    return error;
}
#else
typedef int span_join_needs_sqlite; /* a file must not be empty */
#endif
