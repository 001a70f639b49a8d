#ifndef EVENT_VIEWS_H
#define EVENT_VIEWS_H
/* event_views.h - a view for each kind of event, with a column for each of its arguments: vm_exit, vm_gc, vm_site.
 *
 * The schema, vm_trace/schema/events.def, decides which there are. Perfetto runs the same statements.
 */
#include <sqlite3.h>

/* Returns the statements that make the views; each begins with `create`, which is CREATE VIEW in a dialect of SQL. The
 * caller frees them with sqlite3_free; NULL: out of memory. */
char *event_views_sql(const char *create);

/* Makes the views in a database that has the tables, if the SQL may name one (NULL: any SQL may follow): this takes 16
 * million instructions, a short query 6. Returns an SQLite result code. */
int event_views_make(sqlite3 *db, const char *sql);

#endif
