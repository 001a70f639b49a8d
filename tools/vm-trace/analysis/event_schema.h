#ifndef EVENT_SCHEMA_H
#define EVENT_SCHEMA_H
/* event_schema.h - checks one event against the schema, vm_trace/schema/events.def: its form, the arguments that it must
 * have, their types, and their texts where these are given. */
#include <stdbool.h>

#include "fxt/reader.h"

struct event_schema;

/* `closed`: there are no other events than those of the schema, and no other arguments. */
struct event_schema *event_schema_new(bool closed);
void event_schema_free(struct event_schema *schema);
/* Reports faults through the reader. Returns whether the event has a backtrace, or must have one; the frames are not
 * checked. */
bool event_schema_check(const struct event_schema *schema, struct reader *reader, const struct fxt_event *event);

/* An event's category and name as printable text. */
struct event_name {
    char text[200];
};
const char *event_name(struct event_name *name, const struct fxt_event *event);

#endif
