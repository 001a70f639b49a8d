/* export_chrome.c - see export.h
 *
 * The format is described in "Trace Event Format",
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
 */
#include <inttypes.h>

#include "export/event_json.h"
#include "export/export.h"

enum { US_DECIMALS = 3 }; /* the format has microseconds */

void
chrome_begin(struct chrome *chrome, FILE *out)
{
    *chrome = (struct chrome){.json = json_to(out)};
    struct json *json = &chrome->json;
    json_object(json);
    json_texts(json, "displayTimeUnit", "ns");
    json_array(json_key(json, "traceEvents"));
}

static void
put_pid(struct chrome *chrome, uint32_t process, uint32_t pid)
{
    uint32_t known = map_get(&chrome->process_of_pid, pid);
    if (known == MAP_NONE) map_set(&chrome->process_of_pid, pid, process);
    else if (known != process) chrome->twice = pid;
    json_unsigned(json_key(&chrome->json, "pid"), pid);
}

void
chrome_event(void *context, const struct fxt_event *event)
{
    struct chrome *chrome = context;
    struct json *json = &chrome->json;
    json_object(json_line(json));
    json_c_text(json_key(json, "ph"), event_phase(event->type));
    json_decimal(json_key(json, "ts"), event->ts_ns, US_DECIMALS);
    switch (event->type) {
      case FXT_EVENT_INSTANT: json_c_text(json_key(json, "s"), "t"); break; /* of its thread */
      case FXT_EVENT_DURATION_COMPLETE:
        json_decimal(json_key(json, "dur"), event->end_ns - event->ts_ns, US_DECIMALS);
        break;
      case FXT_EVENT_DURATION_BEGIN:
      case FXT_EVENT_DURATION_END: break;
      default: json_textf(json_key(json, "id"), "0x%" PRIx64, event->id);
    }
    if (event->type >= FXT_EVENT_FLOW_STEP) json_c_text(json_key(json, "bp"), "e"); /* to the enclosing slice */
    json_text(json_key(json, "cat"), event->category);
    json_text(json_key(json, "name"), event->name);
    put_pid(chrome, event->process, event->pid);
    json_unsigned(json_key(json, "tid"), event->tid);
    json_event_args(json_key(json, "args"), event);
    json_end(json);
}

void
chrome_object(void *context, const struct fxt_object *object)
{
    struct chrome *chrome = context;
    struct json *json = &chrome->json;
    bool process = object->type == FXT_OBJECT_PROCESS;
    json_object(json_line(json));
    json_texts(json, "ph", "M", "name", process ? "process_name" : "thread_name");
    put_pid(chrome, object->process, object->pid);
    if (!process) json_unsigned(json_key(json, "tid"), object->tid);
    json_object(json_key(json, "args"));
    json_text(json_key(json, "name"), object->name);
    json_end(json);
    json_end(json);
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
    struct json *json = &chrome->json;
    json_end(json_line(json));
    if (partial != NULL)
        json_text_object(json_key(json_line(json), "otherData"), "partial", partial);
    json_end(json);
    putc('\n', json->out);
    map_free(&chrome->process_of_pid);
}
