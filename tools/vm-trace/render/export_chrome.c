/* export_chrome.c - see export.h
 *
 * The format is described in "Trace Event Format",
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
 */
#include <inttypes.h>

#include "base/escape.h"
#include "render/event_json.h"
#include "render/export.h"

/* The format has microseconds. */
static void
print_time(FILE *out, const char *key, int64_t ns)
{
    fprintf(out, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void
begin_record(struct chrome *chrome)
{
    fputs(chrome->any ? ",\n" : "\n", chrome->out);
    chrome->any = true;
}

void
chrome_begin(struct chrome *chrome, FILE *out)
{
    *chrome = (struct chrome){.out = out};
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", out);
}

void
chrome_event(void *context, const struct fxt_event *event)
{
    struct chrome *chrome = context;
    FILE *out = chrome->out;
    begin_record(chrome);
    fprintf(out, "{\"ph\":\"%c\"", event_phase(event->type));
    print_time(out, "ts", event->ts_ns);
    switch (event->type) {
      case FXT_EVENT_INSTANT: fputs(",\"s\":\"t\"", out); break; /* of its thread */
      case FXT_EVENT_DURATION_COMPLETE: print_time(out, "dur", event->end_ns - event->ts_ns); break;
      case FXT_EVENT_DURATION_BEGIN:
      case FXT_EVENT_DURATION_END: break;
      default: fprintf(out, ",\"id\":\"0x%" PRIx64 "\"", event->id);
    }
    if (event->type >= FXT_EVENT_FLOW_STEP) fputs(",\"bp\":\"e\"", out); /* to the enclosing slice */
    fputs(",\"cat\":", out);
    print_json(out, event->category);
    fputs(",\"name\":", out);
    print_json(out, event->name);
    fprintf(out, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"args\":", event->pid, event->tid);
    print_event_args(out, event);
    putc('}', out);
}

void
chrome_object(void *context, const struct fxt_object *object)
{
    struct chrome *chrome = context;
    bool process = object->type == FXT_OBJECT_PROCESS;
    begin_record(chrome);
    fprintf(chrome->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32, process ? "process_name" : "thread_name",
            object->pid);
    if (!process) fprintf(chrome->out, ",\"tid\":%" PRIu32, object->tid);
    fputs(",\"args\":{\"name\":", chrome->out);
    print_json(chrome->out, object->name);
    fputs("}}", chrome->out);
}

void
chrome_sched(void *context, const struct fxt_sched *sched)
{
    (void)sched;
    ((struct chrome *)context)->left_out++;
}

void
chrome_end(struct chrome *chrome, const char *partial)
{
    fputs("\n]", chrome->out);
    if (partial != NULL) {
        fputs(",\n\"otherData\":{\"partial\":", chrome->out);
        print_json(chrome->out, text_of(partial));
        putc('}', chrome->out);
    }
    fputs("}\n", chrome->out);
}
