/* dialect.c - see dialect.h
 *
 * A statement is recognized by its first words. The tables of modules are always there (tables.c), so including
 * one only checks its name.
 */
#ifdef HAVE_SQLITE3
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "sql/dialect.h"

#define PERFETTO_HAS_MORE "Perfetto has more: open the trace in https://ui.perfetto.dev or with its trace_processor"

static const char *const modules[] = {"slices.flow", "slices.self_dur", "slices.slices", "slices.with_context",
                                      "vm_trace.events"};
enum { MODULES = sizeof modules / sizeof modules[0] };

/* --- reading ------------------------------------------------------------------------------------------------- */

/* What follows blanks and comments. */
static const char *
skip_blanks(const char *sql)
{
    for (;;) {
        while (isspace((unsigned char)*sql)) sql++;
        if (strncmp(sql, "--", 2) == 0) {
            sql += strcspn(sql, "\n");
        }
        else if (strncmp(sql, "/*", 2) == 0) {
            const char *end = strstr(sql + 2, "*/");
            sql = end != NULL ? end + 2 : sql + strlen(sql);
        }
        else {
            return sql;
        }
    }
}

static bool
name_char_p(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '*';
}

/* If this is the next word, goes behind it. */
static bool
take_keyword(const char **sql, const char *word)
{
    const char *at = skip_blanks(*sql);
    size_t bytes = strlen(word);
    if (sqlite3_strnicmp(at, word, (int)bytes) != 0 || name_char_p(at[bytes])) return false;
    *sql = at + bytes;
    return true;
}

/* malloc'ed; "" if there is no name. */
static char *
take_name(const char **sql)
{
    const char *at = skip_blanks(*sql), *end = at;
    while (name_char_p(*end)) end++;
    *sql = end;
    return xformat("%.*s", (int)(end - at), at);
}

static bool
quote_p(char c)
{
    return c == '\'' || c == '"' || c == '`';
}

/* Behind a quoted text. */
static const char *
skip_quoted(const char *at)
{
    char quote = *at++;
    while (*at != '\0' && *at != quote) at++;
    return *at != '\0' ? at + 1 : at;
}

/* Behind what is in parentheses. */
static const char *
skip_parentheses(const char *at)
{
    int depth = 0;
    do {
        at = skip_blanks(at);
        if (quote_p(*at)) {
            at = skip_quoted(at);
            continue;
        }
        depth += (*at == '(') - (*at == ')');
        if (*at != '\0') at++;
    } while (depth > 0 && *at != '\0');
    return at;
}

/* The ; at the end of the statement, or the end of the text. */
static const char *
statement_end(const char *at)
{
    at = skip_blanks(at);
    while (*at != '\0' && *at != ';') at = skip_blanks(quote_p(*at) ? skip_quoted(at) : at + 1);
    return at;
}

/* --- statements ------------------------------------------------------------------------------------------------- */

static enum dialect_result
include_module(const char *sql, char **why_out)
{
    char *name = take_name(&sql);
    bool known = false;
    for (int i = 0; i < MODULES; i++) known |= sqlite3_stricmp(name, modules[i]) == 0;
    if (!known) *why_out = sqlite3_mprintf("the module %s is not here; " PERFETTO_HAS_MORE, name);
    free(name);
    return known ? DIALECT_DONE : DIALECT_FAILED;
}

/* CREATE PERFETTO TABLE name(columns) AS SELECT: a table whose rows are computed once. Likewise a view. */
static enum dialect_result
create_as(sqlite3 *db, const char *kind, bool replace, const char *sql, const char *end, char **why_out)
{
    char *name = take_name(&sql), *why = NULL;
    sql = skip_blanks(sql);
    if (*sql == '(') sql = skip_parentheses(sql);
    char *create = sqlite3_mprintf("CREATE %s \"%w\" %.*s", kind, name, (int)(end - sql), sql);
    char *drop = sqlite3_mprintf("DROP %s IF EXISTS \"%w\"", kind, name);
    int error = create == NULL || drop == NULL ? SQLITE_NOMEM : SQLITE_OK;
    if (error == SQLITE_OK && replace) error = sqlite3_exec(db, drop, NULL, NULL, &why);
    if (error == SQLITE_OK) error = sqlite3_exec(db, create, NULL, NULL, &why);
    if (error != SQLITE_OK) *why_out = why != NULL ? why : sqlite3_mprintf("%s", sqlite3_errstr(error));
    sqlite3_free(create);
    sqlite3_free(drop);
    free(name);
    return error == SQLITE_OK ? DIALECT_DONE : DIALECT_FAILED;
}

enum dialect_result
dialect_run(sqlite3 *db, const char *sql, const char **tail_out, char **why_out)
{
    const char *end = statement_end(sql), *start = sql;
    bool create = take_keyword(&sql, "create");
    bool include = !create && take_keyword(&sql, "include");
    bool replace = create && take_keyword(&sql, "or") && take_keyword(&sql, "replace");
    if (!(create || include) || !take_keyword(&sql, "perfetto")) return DIALECT_SQL;
    *tail_out = *end == ';' ? end + 1 : end;
    if (include && take_keyword(&sql, "module")) return include_module(sql, why_out);
    if (create && take_keyword(&sql, "table")) return create_as(db, "TABLE", replace, sql, end, why_out);
    if (create && take_keyword(&sql, "view")) return create_as(db, "VIEW", replace, sql, end, why_out);
    start = skip_blanks(start);
    *why_out = sqlite3_mprintf("%.*s ... is not here; " PERFETTO_HAS_MORE, (int)strcspn(start, "(\n;"), start);
    return DIALECT_FAILED;
}

const char *
dialect_hint(const char *error)
{
    static const char *const missing[] = {"no such function", "no such table", "no such module", "no such column",
                                          "unrecognized token: \"!\"", "near \"!\""};
    for (unsigned i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        if (strncmp(error, missing[i], strlen(missing[i])) == 0) return "; " PERFETTO_HAS_MORE;
    }
    return "";
}
#else
typedef int dialect_needs_sqlite; /* a file must not be empty */
#endif
