#ifndef DATABASE_H
#define DATABASE_H
/* database.h - a database of SQLite with the tables of the traces, within --memory. */
#ifdef HAVE_SQLITE3
#include "base/status.h"
#include "db/tables.h"

/* Finishes the model and opens a database in memory with its tables. SQLite gets what the model leaves of --memory (4 MiB at least).
 * Prints on stderr what is not in the tables for want of memory, and why it failed. *db_out must be closed in any case. */
enum status database_open(struct model *model, size_t memory_bytes, sqlite3 **db_out);

/* What went wrong in the last call of SQLite: with the remedy, where it was memory. Lives until the next call. */
const char *database_error(sqlite3 *db);
#endif

#endif
