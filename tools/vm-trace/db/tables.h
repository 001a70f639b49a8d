#ifndef TABLES_H
#define TABLES_H
/* tables.h - the model as tables for SQLite, with Perfetto's names of tables and columns.
 *
 * They are virtual tables: rows are read where they lie, nothing is inserted.
 */
#include <sqlite3.h>

#include "db/model.h"

/* Makes the tables known to a database. The model must be finished, and outlive it. An SQLite result code. */
int tables_register(sqlite3 *db, struct model *model);

#endif
