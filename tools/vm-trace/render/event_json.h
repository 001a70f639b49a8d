#ifndef EVENT_JSON_H
#define EVENT_JSON_H
/* event_json.h - events as JSON. */
#include <stdio.h>

#include "fxt/reader.h"

/* The letter for a type of event in Chrome's trace format: i C B E X b n e s t f. */
char event_phase(enum fxt_event_type type);
/* Prints `{"name":value,...}`. NaN, infinity and pointers become strings, values of unknown
 * types "unknown". */
void print_event_args(FILE *out, const struct fxt_event *event);

#endif
