#ifndef TABLES_H
#define TABLES_H
/* tables.h - the model as SQLite tables, with Perfetto's names of tables and columns.
 *
 * They are virtual tables: rows are read from the model, nothing is inserted.
 */
#include <sqlite3.h>

#include "sql/model.h"

/* Registers the tables with a database. The model must be finished and outlive the database.
 * Returns an SQLite result code. */
int tables_register(sqlite3 *db, struct model *model);

/* Calls `word` with the names of tables, columns and functions; a name may come twice. */
void tables_words(sqlite3 *db, void (*word)(void *context, const char *name), void *context);

#endif
