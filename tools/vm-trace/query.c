/* query.c - `vm-trace query`: SQL over traces, with Perfetto's tables. Built without SQLite it says so. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "escape.h"

#ifdef HAVE_SQLITE3
#include "tables.h"

static void
print_text(struct fxt_string text)
{
    putchar('"');
    while (text.len > 0) {
        const char *quote = memchr(text.ptr, '"', text.len);
        uint32_t len = quote ? (uint32_t)(quote - text.ptr) : text.len;
        print_escaped(stdout, (struct fxt_string){.ptr = text.ptr, .len = len});
        if (quote == NULL) break;
        fputs("\"\"", stdout);
        text.ptr += len + 1;
        text.len -= len + 1;
    }
    putchar('"');
}

/* As Perfetto's trace processor prints: texts quoted, NULL as "[NULL]", floats with six digits. */
static void
print_value(sqlite3_stmt *statement, int column)
{
    switch (sqlite3_column_type(statement, column)) {
      case SQLITE_INTEGER: printf("%lld", (long long)sqlite3_column_int64(statement, column)); break;
      case SQLITE_FLOAT: printf("%f", sqlite3_column_double(statement, column)); break;
      case SQLITE_NULL: fputs("\"[NULL]\"", stdout); break;
      default: {
        const char *text = (const char *)sqlite3_column_text(statement, column);
        print_text((struct fxt_string){.ptr = text ? text : "", .len = (uint32_t)sqlite3_column_bytes(statement, column)});
      }
    }
}

static void
print_header(sqlite3_stmt *statement)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        const char *name = sqlite3_column_name(statement, i);
        if (i > 0) putchar(',');
        print_text((struct fxt_string){.ptr = name, .len = (uint32_t)strlen(name)});
    }
    putchar('\n');
}

static enum status
say_sql_error(sqlite3 *db)
{
    const char *message = sqlite3_errmsg(db);
    fputs("vm-trace: query: ", stderr);
    print_escaped(stderr, (struct fxt_string){.ptr = message, .len = (uint32_t)strlen(message)});
    putc('\n', stderr);
    return STATUS_USAGE;
}

static enum status
run_sql(sqlite3 *db, const char *sql)
{
    while (*sql != '\0') {
        sqlite3_stmt *statement;
        if (sqlite3_prepare_v2(db, sql, -1, &statement, &sql) != SQLITE_OK) return say_sql_error(db);
        if (statement == NULL) continue; /* a comment or blanks */
        if (sqlite3_column_count(statement) > 0) print_header(statement);
        int step;
        while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
            for (int i = 0; i < sqlite3_column_count(statement); i++) {
                if (i > 0) putchar(',');
                print_value(statement, i);
            }
            putchar('\n');
        }
        sqlite3_finalize(statement);
        if (step != SQLITE_DONE) return say_sql_error(db);
    }
    return STATUS_FINE;
}

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    int file_count = argument_count - 1;
    if (file_count == 0) {
        fputs("vm-trace: query needs a file and SQL; see vm-trace query --help\n", stderr);
        return STATUS_USAGE;
    }
    enum status status = STATUS_FINE;
    struct reader *reader = reader_new(options->memory_bytes);
    struct model *model = model_new(reader);
    for (int i = 0; i < file_count; i++) {
        struct diag diag = diag_new(arguments[i], options->max_faults);
        struct fxt_visitor visitor = model_visitor(model);
        bool read = read_file(reader, arguments[i], &visitor, &diag);
        status = worse(status, read ? diag_finish(&diag) : STATUS_CANNOT_READ);
        if (read) model_file_end(model);
    }
    model_finish(model);

    sqlite3 *db = NULL;
    if (status < STATUS_CANNOT_READ) {
        bool good = sqlite3_open(":memory:", &db) == SQLITE_OK && tables_register(db, model) == SQLITE_OK;
        status = worse(status, good ? run_sql(db, arguments[file_count]) : say_sql_error(db));
    }
    sqlite3_close(db);
    model_free(model);
    reader_free(reader);
    return worse(status, finish_output());
}
#else

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    (void)options;
    (void)argument_count;
    (void)arguments;
    fputs("vm-trace: query is not there: the tool was built without SQLite (libsqlite3-dev)\n", stderr);
    return STATUS_USAGE;
}
#endif

static const struct cli_option query_options[] = {OPTION_MAX_FAULTS, OPTION_MEMORY, {0}};

const struct command command_query = {
    .name = "query",
    .purpose = "run SQL over traces, with the tables of Perfetto",
    .arguments = "FILE... SQL",
    .help =
        "Prints the rows of a query as comma-separated values. Tables and columns are Perfetto's:\n"
        "slice, args, thread, process, track, thread_track, counter, counter_track, flow, sched,\n"
        "thread_state, stats. Which method exits for which reason:\n"
        "  SELECT s.name AS reason, a.display_value AS method, COUNT(*) AS count\n"
        "  FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = '0'\n"
        "  GROUP BY s.name, a.display_value ORDER BY count DESC\n",
    .options = query_options,
    .run = run,
};
