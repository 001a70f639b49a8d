#ifndef DATABASE_H
#define DATABASE_H
/* database.h - an SQLite database with the tables of the traces, within --memory. */
#ifdef HAVE_SQLITE3
#include "base/status.h"
#include "sql/tables.h"

/* Finishes the model and opens a database in memory with its tables. SQLite gets what the model
 * leaves of --memory, at least 4 MiB. Prints on stderr what is missing for lack of memory, and
 * why it failed. The caller must close *db_out in any case. */
enum status database_open(struct model *model, size_t memory_bytes, sqlite3 **db_out);

/* Returns the error of the last SQLite call; a lack of memory with the remedy. Valid until the
 * next call. */
const char *database_error(sqlite3 *db);
#endif

#endif
