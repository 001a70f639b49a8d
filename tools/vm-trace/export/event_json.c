/* event_json.c - see event_json.h */
#include <inttypes.h>

#include "export/event_json.h"

const char *
event_phase(enum fxt_event_type type)
{
    static const char *const phases[] = {
        [FXT_EVENT_INSTANT] = "i",
        [FXT_EVENT_COUNTER] = "C",
        [FXT_EVENT_DURATION_BEGIN] = "B",
        [FXT_EVENT_DURATION_END] = "E",
        [FXT_EVENT_DURATION_COMPLETE] = "X",
        [FXT_EVENT_ASYNC_BEGIN] = "b",
        [FXT_EVENT_ASYNC_INSTANT] = "n",
        [FXT_EVENT_ASYNC_END] = "e",
        [FXT_EVENT_FLOW_BEGIN] = "s",
        [FXT_EVENT_FLOW_STEP] = "t",
        [FXT_EVENT_FLOW_END] = "f",
    };
    return phases[type];
}

static void
json_arg(struct json *json, const struct fxt_arg *arg)
{
    switch (arg->type) {
      case FXT_ARG_NULL: json_null(json); break;
      case FXT_ARG_INT32:
      case FXT_ARG_INT64: json_integer(json, arg->i64); break;
      case FXT_ARG_UINT32:
      case FXT_ARG_UINT64:
      case FXT_ARG_KOID: json_unsigned(json, arg->u64); break;
      case FXT_ARG_DOUBLE: json_double(json, arg->f64, 17); break;
      case FXT_ARG_STRING: json_text(json, arg->string); break;
      case FXT_ARG_POINTER: json_textf(json, "0x%" PRIx64, arg->u64); break;
      case FXT_ARG_BOOL: json_bool(json, arg->boolean); break;
      case FXT_ARG_UNKNOWN: json_c_text(json, "unknown"); break;
    }
}

void
json_event_args(struct json *json, const struct fxt_event *event)
{
    json_object(json);
    for (unsigned i = 0; i < event->arg_count; i++) json_arg(json_key_text(json, event->args[i].name), &event->args[i]);
    json_end(json);
}
