#ifndef SQL_OUTPUT_H
#define SQL_OUTPUT_H
/* sql_output.h - prints the rows of an SQL statement: CSV, a table for people, or JSON. */
enum sql_format {
    SQL_CSV,   /* as Perfetto's trace processor prints it: texts in quotes, NULL as "[NULL]", floats with six digits */
    SQL_TABLE, /* columns as wide as the first 1000 rows need; control characters are escaped */
    SQL_JSON,  /* an array of objects, one per line */
};

#ifdef HAVE_SQLITE3
# include <sqlite3.h>

/* Runs a statement to its end. A statement without columns prints nothing. Returns SQLITE_DONE
 * or the error. `partial`: which part of the traces was read, as the first line of a table, and for
 * programs in a last column, of the first row; NULL: all. */
int sql_output_print(sqlite3_stmt *statement, enum sql_format format, const char *partial);
#endif

#endif
