/* event_json.c - see event_json.h */
#include <inttypes.h>
#include <math.h>

#include "base/escape.h"
#include "render/event_json.h"

char
event_phase(enum fxt_event_type type)
{
    static const char phases[] = {
        [FXT_EVENT_INSTANT] = 'i',
        [FXT_EVENT_COUNTER] = 'C',
        [FXT_EVENT_DURATION_BEGIN] = 'B',
        [FXT_EVENT_DURATION_END] = 'E',
        [FXT_EVENT_DURATION_COMPLETE] = 'X',
        [FXT_EVENT_ASYNC_BEGIN] = 'b',
        [FXT_EVENT_ASYNC_INSTANT] = 'n',
        [FXT_EVENT_ASYNC_END] = 'e',
        [FXT_EVENT_FLOW_BEGIN] = 's',
        [FXT_EVENT_FLOW_STEP] = 't',
        [FXT_EVENT_FLOW_END] = 'f',
    };
    return phases[type];
}

static void
print_arg(FILE *out, const struct fxt_arg *arg)
{
    switch (arg->type) {
      case FXT_ARG_NULL: fputs("null", out); break;
      case FXT_ARG_INT32:
      case FXT_ARG_INT64: fprintf(out, "%" PRId64, arg->i64); break;
      case FXT_ARG_UINT32:
      case FXT_ARG_UINT64:
      case FXT_ARG_KOID: fprintf(out, "%" PRIu64, arg->u64); break;
      case FXT_ARG_DOUBLE: /* JSON has no infinity or NaN */
        if (isfinite(arg->f64)) fprintf(out, "%.17g", arg->f64);
        else fprintf(out, "\"%f\"", arg->f64);
        break;
      case FXT_ARG_STRING: print_json(out, arg->string); break;
      case FXT_ARG_POINTER: fprintf(out, "\"0x%" PRIx64 "\"", arg->u64); break;
      case FXT_ARG_BOOL: fputs(arg->boolean ? "true" : "false", out); break;
      case FXT_ARG_UNKNOWN: fputs("\"unknown\"", out); break;
    }
}

void
print_event_args(FILE *out, const struct fxt_event *event)
{
    putc('{', out);
    for (unsigned i = 0; i < event->arg_count; i++) {
        if (i > 0) putc(',', out);
        print_json(out, event->args[i].name);
        putc(':', out);
        print_arg(out, &event->args[i]);
    }
    putc('}', out);
}
