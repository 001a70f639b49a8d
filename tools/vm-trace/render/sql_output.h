#ifndef SQL_OUTPUT_H
#define SQL_OUTPUT_H
/* sql_output.h - the rows of an SQL statement on standard output, as values for programs, as a table for people, as JSON. */
enum sql_format {
    SQL_CSV,   /* as Perfetto's trace processor prints: texts quoted, NULL as "[NULL]", floats with six digits */
    SQL_TABLE, /* columns as wide as the first 1000 rows need; control characters escaped */
    SQL_JSON,  /* an array of objects, one a line */
};

#ifdef HAVE_SQLITE3
# include <sqlite3.h>

/* Runs a statement to its end. A statement without columns prints nothing. SQLITE_DONE, or the error. */
int sql_output_print(sqlite3_stmt *statement, enum sql_format format);
#endif

#endif
