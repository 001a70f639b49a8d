#ifndef EVENT_JSON_H
#define EVENT_JSON_H
/* event_json.h - what an event is in JSON. */
#include <stdio.h>

#include "fxt/reader.h"

/* The letter that Chrome's trace format has for a type of event: i C B E X b n e s t f. */
char event_phase(enum fxt_event_type type);
/* `{"name":value,...}`. A number that is none (NaN) and a pointer become strings, what the reader did not understand "unknown". */
void print_event_args(FILE *out, const struct fxt_event *event);

#endif
