/* query.c - `vm-trace query`: SQL over traces, with Perfetto's tables. Without SQLite it only
 * prints an error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "cli/folders.h"
#include "cli/prompt.h"
#include "sql/sql_output.h"

/* Values of the options. */
static const char *sql_file;
static struct { bool given; enum sql_format format; } rows = {.format = SQL_CSV};
static bool views_only;

#ifdef HAVE_SQLITE3
#include "sql/database.h"
#include "sql/dialect.h"
#include "sql/event_views.h"

static void
print_message(const char *message)
{
    fputs("vm-trace: query: ", stderr);
    print_escaped(stderr, text_of(message));
    fprintf(stderr, "%s\n", dialect_hint(message));
}

static enum status
print_sql_error(sqlite3 *db)
{
    print_message(database_error(db));
    return sqlite3_errcode(db) == SQLITE_NOMEM ? STATUS_CANNOT_READ : STATUS_USAGE;
}

static enum status
run_sql(sqlite3 *db, const char *sql, enum sql_format format, const char *partial)
{
    while (*sql != '\0') {
        sqlite3_stmt *statement;
        char *why = NULL;
        enum dialect_result result_of_dialect = dialect_run(db, sql, &sql, &why);
        if (result_of_dialect == DIALECT_FAILED) {
            print_message(why != NULL ? why : "out of memory");
            sqlite3_free(why);
            return STATUS_USAGE;
        }
        if (result_of_dialect == DIALECT_DONE) continue;
        if (sqlite3_prepare_v2(db, sql, -1, &statement, &sql) != SQLITE_OK) return print_sql_error(db);
        if (statement == NULL) continue; /* only a comment or blanks */
        int result = sql_output_print(statement, format, partial);
        enum status status = result == SQLITE_DONE ? STATUS_FINE : print_sql_error(db);
        sqlite3_finalize(statement);
        if (status != STATUS_FINE) return status;
    }
    return STATUS_FINE;
}

/* What the prompt completes, sorted, each once. */
struct words {
    char **list;
    size_t count, capacity;
};

static void
add_word(void *context, const char *word)
{
    struct words *words = context;
    make_room(words->list, words->count, words->capacity);
    words->list[words->count++] = xformat("%s", word);
}

static int
compare_words(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static struct words
words_of(sqlite3 *db)
{
    static const char *const keywords[] = {
        "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "LEFT JOIN", "USING", "DISTINCT", "HAVING",
        "DESC", "GLOB", "REGEXP", "BETWEEN", "CREATE", "VIEW", "TABLE", "PERFETTO", "INCLUDE PERFETTO MODULE",
        "SPAN_JOIN", "SPAN_LEFT_JOIN", "SPAN_OUTER_JOIN", "PARTITIONED", "slices.with_context", "slices.self_dur",
        "vm_trace.events"};
    struct words words = {0};
    for (unsigned i = 0; i < sizeof keywords / sizeof keywords[0]; i++) add_word(&words, keywords[i]);
    tables_words(db, add_word, &words);
    qsort(words.list, words.count, sizeof *words.list, compare_words);
    size_t kept = 0;
    for (size_t i = 0; i < words.count; i++) {
        if (kept > 0 && strcmp(words.list[kept - 1], words.list[i]) == 0) free(words.list[i]);
        else words.list[kept++] = words.list[i];
    }
    words.count = kept;
    return words;
}

/* Reads and runs statements, which may span lines, until the end of input. After an error it
 * asks again. */
static void
run_prompt(sqlite3 *db, enum sql_format format, const char *partial)
{
    puts("SQL over slice, args, thread, process, track, thread_track, counter, flow, sched, stats,\n"
         "and vm_exit, vm_site, vm_gc, ... (Tab shows all).\n"
         "A query ends with ; and Ctrl-D ends the prompt.");
    struct words words = words_of(db);
    char *sql = NULL, *line;
    prompt_begin("query_history", words.list, words.count);
    while ((line = prompt_read(sql == NULL ? "sql> " : "...> ")) != NULL) {
        char *all = sql == NULL ? xformat("%s\n", line) : xformat("%s%s\n", sql, line);
        free(sql);
        free(line);
        sql = all;
        bool blank = strspn(sql, " \t\r\n") == strlen(sql);
        if (!blank && !sqlite3_complete(sql)) continue;
        if (!blank) prompt_remember(sql);
        if (!blank) run_sql(db, sql, format, partial);
        fflush(stdout);
        free(sql);
        sql = NULL;
    }
    putchar('\n');
    prompt_end();
    free(sql);
    for (size_t i = 0; i < words.count; i++) free(words.list[i]);
    free(words.list);
}

/* Returns the text of a file ("-": standard input). Prints a message and returns NULL if it
 * cannot be read. */
static char *
read_text(const char *file)
{
    FILE *in = strcmp(file, "-") == 0 ? stdin : fopen(file, "r");
    char *text = NULL;
    size_t size = 0;
    /* SQL contains no NUL: with NUL as the end of a "line", the whole file is one. */
    ssize_t len = in == NULL ? -1 : getdelim(&text, &size, '\0', in);
    if (len < 0 && (in == NULL || ferror(in))) {
        char reason[256];
        snprintf(reason, sizeof reason, "cannot be read: %s", strerror(errno));
        file_message(file, reason);
        free(text);
        text = NULL;
    }
    else if (len < 0) { /* empty */
        text = xrealloc(text, 1, 1);
        text[0] = '\0';
    }
    if (in != NULL && in != stdin) fclose(in);
    return text;
}

/* What to run, and the format of the rows. */
struct request {
    char *sql; /* NULL: prompt for it */
    enum sql_format format;
};

static enum status
query_files(const struct options *options, int file_count, char **files, const struct request *request)
{
    struct reader *reader = reader_new(options->memory_bytes);
    struct model *model = model_new(reader);
    struct fxt_visitor visitor = model_visitor(model);
    enum status status = read_files(reader, options->max_faults, file_count, files, &visitor, &model_file_bounds);
    const struct fxt_parts *parts = reader_parts(reader);
    char *partial = fxt_parts_stopped(parts) ? fxt_parts_line(parts) : NULL; /* damaged records are in the table stats */
    sqlite3 *db = NULL;
    enum status opened = database_open(model, options->memory_bytes, &db);
    if (opened == STATUS_FAULTS && partial == NULL)
        partial = xformat("the tables need more than %zu MiB; the last events are not in them (--memory=MIB grants "
                          "more)", options->memory_bytes >> 20);
    status = worse(status, opened);
    if (status < STATUS_CANNOT_READ && event_views_make(db, request->sql) != SQLITE_OK)
        status = worse(status, print_sql_error(db));
    if (status < STATUS_CANNOT_READ && request->sql == NULL) run_prompt(db, request->format, partial);
    else if (status < STATUS_CANNOT_READ) status = worse(status, run_sql(db, request->sql, request->format, partial));
    free(partial);
    sqlite3_close(db);
    model_free(model);
    reader_free(reader);
    return worse(status, finish_output());
}

static enum status
print_views(void)
{
    char *sql = event_views_sql("CREATE OR REPLACE PERFETTO VIEW");
    fputs(sql != NULL ? sql : "", stdout);
    sqlite3_free(sql);
    return finish_output();
}

/* A single word is no SQL that prints anything, but a name with a typing error. */
static bool
missing_file_p(const char *argument)
{
    return *argument != '\0' && (trace_path_p(argument) || strpbrk(argument, " \t\r\n;(*'\"`[") == NULL);
}

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    struct request request = {.format = rows.format};
    if (views_only) return print_views();
    /* The last argument is SQL unless a file of that name exists. */
    bool has_sql = sql_file == NULL && argument_count > 1 && access(arguments[argument_count - 1], F_OK) != 0;
    if (argument_count == 0 || (sql_file == NULL && !has_sql && !isatty(STDIN_FILENO))) {
        fputs("vm-trace: query needs a file and SQL; see vm-trace query --help\n", stderr);
        return STATUS_USAGE;
    }
    if (has_sql && missing_file_p(arguments[argument_count - 1])) {
        file_message(arguments[argument_count - 1], "cannot be opened: No such file or directory; nor is it SQL");
        return STATUS_CANNOT_READ;
    }
    if (has_sql) {
        request.sql = strdup(arguments[--argument_count]);
    }
    else if (sql_file != NULL) {
        request.sql = read_text(sql_file);
        if (request.sql == NULL) return STATUS_CANNOT_READ;
    }
    else if (!rows.given) {
        request.format = SQL_TABLE;
    }
    enum status status = query_files(options, argument_count, arguments, &request);
    free(request.sql);
    return status;
}
#else

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    (void)options;
    (void)argument_count;
    (void)arguments;
    fputs("vm-trace: query is not available: vm-trace was built without SQLite (libsqlite3-dev)\n", stderr);
    return STATUS_USAGE;
}
#endif

static bool
take_row_format(const struct cli_option *option, const char *text)
{
    static const char *const names[] = {[SQL_CSV] = "csv", [SQL_TABLE] = "table", [SQL_JSON] = "json"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        rows.given = true;
        rows.format = (enum sql_format)i;
        return true;
    }
    return option_wrong(option, "csv, table or json", text);
}

static const struct cli_option query_options[] = {
    CLI_OPTION("file", "FILE.sql", "run the SQL in a file (- for standard input)", take_text, &sql_file),
    CLI_OPTION("format", "FORMAT", "csv (default; table at the prompt), table or json", take_row_format, NULL),
    CLI_OPTION("views", NULL, "print the SQL of the views vm_*, a module for Perfetto, and end", NULL, &views_only),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_query = {
    .name = "query",
    .purpose = "run SQL over traces, with the tables of Perfetto",
    .arguments = "FILE... [SQL]",
    .help =
        "Prints the rows of a query as comma-separated values, as an aligned table, or as JSON:\n"
        "an array of objects. Without SQL, and on a terminal, it opens a prompt. Texts of a table\n"
        "on a terminal are shortened until its rows fit.\n"
        "Tables and columns are Perfetto's: slice, args, thread, process, track, thread_track,\n"
        "counter, counter_track, flow, sched, thread_state, trace_bounds, stats, and those of stack\n"
        "samples, stack_sample* and stack_profile_*; so are EXTRACT_ARG, REGEXP, TRACE_START, _END\n"
        "and _DUR; ancestor_slice, descendant_slice, following_flow, preceding_flow and\n"
        "directly_connected_flow; SPAN_JOIN, _LEFT_ and _OUTER_; CREATE PERFETTO TABLE and VIEW;\n"
        "and the modules slices.with_context and slices.self_dur.\n"
        "vm-trace adds a view for each kind of event, with the event's arguments as columns:\n"
        "vm_exit, vm_fallback, vm_site, vm_compile, vm_gc, vm_states, and so on (--views).\n"
        "Which method exits for which reason:\n"
        "  SELECT name AS reason, frame_0 AS method, COUNT(*) AS count, SUM(lost_ns) AS lost_ns\n"
        "  FROM vm_exit GROUP BY 1, 2 ORDER BY count DESC\n",
    .folders = true,
    .may_lack_arguments = true,
    .options = query_options,
    .run = run,
};
