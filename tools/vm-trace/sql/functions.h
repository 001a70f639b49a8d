#ifndef FUNCTIONS_H
#define FUNCTIONS_H
/* functions.h - functions of Perfetto's SQL: values (EXTRACT_ARG, REGEXP, TRACE_START and so on), and tables
 * (ancestor_slice, following_flow and so on). */
#include <sqlite3.h>

#include "sql/model.h"

/* Register them with a database. The model must be finished and outlive the database. `tables`: those of tables.c,
 * whose columns some functions have. Return an SQLite result code. */
struct table;
int functions_register(sqlite3 *db, const struct model *model);
int table_functions_register(sqlite3 *db, const struct model *model, const struct table *tables);

/* Calls `word` with the names of those that return rows. */
void table_functions_words(void (*word)(void *context, const char *name), void *context);

#endif
