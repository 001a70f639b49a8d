#ifndef EVENT_JSON_H
#define EVENT_JSON_H
/* event_json.h - events as JSON. */
#include "base/json.h"
#include "fxt/reader.h"

/* The letter for a type of event in Chrome's trace format: i C B E X b n e s t f. */
const char *event_phase(enum fxt_event_type type);
/* Writes an object with a member for each argument. NaN, infinity and pointers become strings, values of unknown
 * types "unknown". */
void json_event_args(struct json *json, const struct fxt_event *event);

#endif
