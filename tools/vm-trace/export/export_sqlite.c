/* export_sqlite.c - see export_sqlite.h */
#include <stdio.h>
#include <stdlib.h>

#include "base/message.h"
#include "export/export_sqlite.h"
#include "fxt/read_files.h"

#ifdef HAVE_SQLITE3
#include "topics/trace_choice.h"
#include "sql/database.h"

/* The tables of `query`, and its views as tables. Types are those of the values. */
static const struct {
    const char *name;
    const char *columns;
} copies[] = {
    {"slice",
     "id INTEGER PRIMARY KEY, ts INTEGER, dur INTEGER, track_id INTEGER, category TEXT, name TEXT, depth INTEGER,"
     " parent_id INTEGER, arg_set_id INTEGER, thread_ts INTEGER, thread_dur INTEGER"},
    {"args",
     "id INTEGER PRIMARY KEY, arg_set_id INTEGER, flat_key TEXT, key TEXT, int_value INTEGER, string_value TEXT,"
     " real_value REAL, value_type TEXT, display_value TEXT"},
    {"thread",
     "id INTEGER PRIMARY KEY, utid INTEGER, tid INTEGER, name TEXT, start_ts INTEGER, end_ts INTEGER, upid INTEGER,"
     " is_main_thread INTEGER"},
    {"process", "id INTEGER PRIMARY KEY, upid INTEGER, pid INTEGER, name TEXT, start_ts INTEGER, end_ts INTEGER,"
                " parent_upid INTEGER"},
    {"track", "id INTEGER PRIMARY KEY, name TEXT, type TEXT, parent_id INTEGER"},
    {"thread_track", "id INTEGER PRIMARY KEY, name TEXT, type TEXT, parent_id INTEGER, utid INTEGER"},
    {"process_track", "id INTEGER PRIMARY KEY, name TEXT, type TEXT, parent_id INTEGER, upid INTEGER"},
    {"counter_track", "id INTEGER PRIMARY KEY, name TEXT, type TEXT, parent_id INTEGER, unit TEXT"},
    {"process_counter_track", "id INTEGER PRIMARY KEY, name TEXT, type TEXT, parent_id INTEGER, upid INTEGER"},
    {"counter", "id INTEGER PRIMARY KEY, ts INTEGER, track_id INTEGER, value REAL"},
    {"flow", "id INTEGER PRIMARY KEY, slice_out INTEGER, slice_in INTEGER, trace_id INTEGER, arg_set_id INTEGER"},
    {"sched",
     "id INTEGER PRIMARY KEY, ts INTEGER, dur INTEGER, cpu INTEGER, utid INTEGER, end_state TEXT, priority INTEGER"},
    {"thread_state", "id INTEGER PRIMARY KEY, ts INTEGER, dur INTEGER, cpu INTEGER, utid INTEGER, state TEXT,"
                     " waker_utid INTEGER, waker_id INTEGER"},
    {"stack_sample", "id INTEGER PRIMARY KEY, ts INTEGER, source TEXT, task_context_id INTEGER,"
                     " execution_context_id INTEGER, callsite_id INTEGER, session_id INTEGER"},
    {"stack_sample_session", "id INTEGER PRIMARY KEY, source TEXT, timebase_unit TEXT, cmdline TEXT"},
    {"stack_sample_task_context",
     "id INTEGER PRIMARY KEY, upid INTEGER, utid INTEGER, async_context_id INTEGER"},
    {"stack_sample_async_context", "id INTEGER PRIMARY KEY, name TEXT, kind TEXT, parent_id INTEGER"},
    {"stack_sample_execution_context", "id INTEGER PRIMARY KEY, ucpu INTEGER, cpu_mode TEXT"},
    {"stack_sample_counter_track",
     "id INTEGER PRIMARY KEY, name TEXT, type TEXT, parent_id INTEGER, source_arg_set_id INTEGER,"
     " machine_id INTEGER, unit TEXT, description TEXT, session_id INTEGER, cpu INTEGER, is_timebase INTEGER"},
    {"stack_sample_counter",
     "id INTEGER PRIMARY KEY, stack_sample_id INTEGER, track_id INTEGER, value REAL"},
    {"stack_profile_callsite", "id INTEGER PRIMARY KEY, depth INTEGER, parent_id INTEGER, frame_id INTEGER"},
    {"stack_profile_frame", "id INTEGER PRIMARY KEY, name TEXT, mapping INTEGER, rel_pc INTEGER,"
                            " symbol_set_id INTEGER, deobfuscated_name TEXT, type TEXT"},
    {"stack_profile_symbol", "id INTEGER PRIMARY KEY, symbol_set_id INTEGER, name TEXT, source_file TEXT,"
                             " line_number INTEGER, inlined INTEGER"},
    {"stack_profile_mapping",
     "id INTEGER PRIMARY KEY, build_id TEXT, exact_offset INTEGER, start_offset INTEGER, start INTEGER,"
     " \"end\" INTEGER, load_bias INTEGER, name TEXT"},
    {"trace_bounds", "start_ts INTEGER, end_ts INTEGER"},
    {"stats", "name TEXT PRIMARY KEY, key INTEGER, severity TEXT, source TEXT, value INTEGER"},
};

static const char rest[] =
    "CREATE VIEW copy.slices AS SELECT * FROM slice;"
    "CREATE INDEX copy.slice_by_track ON slice(track_id, ts);"
    "CREATE INDEX copy.slice_by_name ON slice(name);"
    "CREATE INDEX copy.args_by_set ON args(arg_set_id, key);"
    "CREATE INDEX copy.counter_by_track ON counter(track_id, ts);";

/* A failure half-way loses nothing: the file gets its name when it is complete. */
static const char attach[] = "ATTACH %Q AS copy; PRAGMA copy.journal_mode = OFF; PRAGMA copy.synchronous = OFF; BEGIN";

static int
execute(sqlite3 *db, char *sql)
{
    int error = sql == NULL ? SQLITE_NOMEM : sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return error;
}

/* What was chosen, or could not be read: only where the tables do not have all of the traces. */
static int
add_partial(sqlite3 *db, const struct fxt_parts *parts)
{
    char *partial = fxt_parts_line(parts);
    if (partial == NULL) return SQLITE_OK;
    int error = execute(db, sqlite3_mprintf("CREATE TABLE copy.partial(text TEXT); INSERT INTO copy.partial VALUES(%Q)",
                                            partial));
    free(partial);
    return error;
}

static int
copy_tables(sqlite3 *db, const char *path, const struct fxt_parts *parts)
{
    int error = execute(db, sqlite3_mprintf(attach, path));
    for (size_t i = 0; error == SQLITE_OK && i < sizeof copies / sizeof *copies; i++) {
        const char *name = copies[i].name;
        /* Virtual tables have no schema name, so copy before a table of the same name exists. */
        error = execute(db, sqlite3_mprintf("CREATE TABLE copy.\"new\"(%s); INSERT INTO copy.\"new\" SELECT * FROM %s;"
                                            " ALTER TABLE copy.\"new\" RENAME TO %s", copies[i].columns, name, name));
    }
    if (error == SQLITE_OK) error = sqlite3_exec(db, rest, NULL, NULL, NULL);
    if (error == SQLITE_OK) error = add_partial(db, parts);
    return error == SQLITE_OK ? sqlite3_exec(db, "COMMIT; DETACH copy", NULL, NULL, NULL) : error;
}

enum status
export_sqlite(const struct trace_choice *choice, size_t memory_bytes, uint64_t max_faults, const struct output *output,
              int file_count, char **files)
{
    struct reader *reader = reader_new(memory_bytes);
    struct model *model = model_new(reader);
    struct trace_filter filter;
    trace_filter_init(&filter, choice, reader);
    model->filter = &filter;
    const struct fxt_visitor all = model_visitor(model);
    struct fxt_visitor visitor = trace_filter_visitor(&filter, &all);
    const struct file_bounds bounds = trace_filter_bounds(&filter, &model_file_bounds);
    enum status status = read_files(reader, max_faults, file_count, files, &visitor, &bounds);
    status = worse(status, trace_filter_status(&filter, "export"));
    if (status < STATUS_USAGE) {
        sqlite3 *db = NULL;
        status = worse(status, database_open(model, memory_bytes, &db));
        if (status < STATUS_USAGE && copy_tables(db, output->temporary, reader_parts(reader)) != SQLITE_OK) {
            file_message(output->path, database_error(db));
            status = STATUS_CANNOT_READ;
        }
        sqlite3_close(db);
    }
    model_free(model);
    trace_filter_free(&filter);
    reader_free(reader);
    return status;
}
#else

enum status
export_sqlite(const struct trace_choice *choice, size_t memory_bytes, uint64_t max_faults, const struct output *output,
              int file_count, char **files)
{
    (void)choice, (void)memory_bytes, (void)max_faults, (void)output, (void)file_count, (void)files;
    fputs("vm-trace: export to SQLite is not available: vm-trace was built without SQLite (libsqlite3-dev)\n", stderr);
    return STATUS_USAGE;
}
#endif
