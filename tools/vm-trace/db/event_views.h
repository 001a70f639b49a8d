#ifndef EVENT_VIEWS_H
#define EVENT_VIEWS_H
/* event_views.h - a view for each kind of event, with a column for each of its arguments: vm_exit, vm_gc, vm_site.
 *
 * The schema, vm_trace/schema/events.def, decides which there are. Perfetto runs the same statements.
 */

/* Returns the statements that make the views: `create` is their CREATE VIEW, in words of the dialect. The caller frees them
 * with sqlite3_free; NULL: out of memory. */
char *event_views_sql(const char *create);

#endif
