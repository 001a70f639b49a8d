/* dump.c - `vm-trace dump`: prints each event as one line of JSON, in the order of the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/thread_table.h"
#include "base/json.h"
#include "base/message.h"
#include "base/nearest.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "export/event_json.h"
#include "fxt/known_strings.h"

struct dump {
    struct json json;
    struct reader *reader;
    struct threads threads;
};

static const char *chosen; /* --category; NULL: all */

/* One name of that list. */
struct category {
    const char *name;
    size_t length;
    bool seen; /* in a file */
};
static struct category *categories;
static unsigned category_count;

static void
split_categories(void)
{
    unsigned capacity = 0;
    for (const char *at = chosen; at != NULL; at = *at == ',' ? at + 1 : NULL) {
        size_t length = strcspn(at, ",");
        make_room(categories, category_count, capacity);
        categories[category_count++] = (struct category){at, length, false};
        at += length;
    }
}

static bool
chosen_p(struct fxt_string name)
{
    for (unsigned i = 0; i < category_count; i++) {
        if (categories[i].length != name.len || memcmp(categories[i].name, name.ptr, name.len) != 0) continue;
        return categories[i].seen = true;
    }
    return chosen == NULL;
}

/* A category of the tracer's may have no events. Any other one that is in no file is a mistake. */
static enum status
check_categories(void)
{
    static const uint32_t known[] = {
#define EVENT(category, name, form) STRING_##category,
#include "vm_trace/schema/events.def"
    };
    enum status status = STATUS_FINE;
    for (unsigned i = 0; i < category_count; i++) {
        char *name = xformat("%.*s", (int)categories[i].length, categories[i].name);
        struct nearest nearest = nearest_to(name);
        bool ours = categories[i].seen;
        for (unsigned at = 0; at < sizeof known / sizeof known[0]; at++) {
            ours |= strcmp(known_strings[known[at]], name) == 0;
            nearest_try(&nearest, known_strings[known[at]]);
        }
        if (!ours) {
            status = STATUS_USAGE;
            message("dump: no events have the category %s%s%s", name, nearest.name ? "; did you mean " : "",
                    nearest.name ? nearest.name : "");
        }
        free(name);
    }
    return status;
}

static void
dump_event(void *context, const struct fxt_event *event)
{
    struct dump *dump = context;
    struct json *json = &dump->json;
    if (!chosen_p(event->category)) return;
    json_object(json);
    json_integer(json_key(json, "ts"), event->ts_ns);
    if (event->type == FXT_EVENT_DURATION_COMPLETE) json_integer(json_key(json, "dur"), event->end_ns - event->ts_ns);
    json_c_text(json_key(json, "ph"), event_phase(event->type));
    if (event->type == FXT_EVENT_COUNTER || event->type >= FXT_EVENT_ASYNC_BEGIN)
        json_unsigned(json_key(json, "id"), event->id);
    json_text(json_key(json, "cat"), event->category);
    json_text(json_key(json, "name"), event->name);
    json_counts(json, {"pid", event->pid}, {"tid", event->tid});
    const struct thread *thread = threads_get(&dump->threads, event->process, event->tid);
    if (thread != NULL && thread->name != STRING_NONE)
        json_text(json_key(json, "thread"), pool_string(reader_pool(dump->reader), thread->name));
    json_counts(json, {"provider", event->provider}, {"offset", event->offset});
    json_event_args(json_key(json, "args"), event);
    json_end(json);
    putchar('\n');
}

static void
dump_object(void *context, const struct fxt_object *object)
{
    struct dump *dump = context;
    threads_name(&dump->threads, reader_pool(dump->reader), object->process, object);
}

static enum status
dump_file(const struct options *options, const char *file)
{
    struct dump dump = {.json = json_to(stdout), .reader = reader_new(options->memory_bytes)};
    struct fault_report faults = fault_report_new(file, options->max_faults);
    struct fxt_visitor visitor = {.context = &dump, .event = dump_event, .object = dump_object};
    enum status status = STATUS_CANNOT_READ;
    if (read_file(dump.reader, file, &visitor, &faults)) status = fault_report_finish(&faults);
    threads_free(&dump.threads);
    reader_free(dump.reader);
    return status;
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    enum status status = STATUS_FINE;
    split_categories();
    for (int i = 0; i < file_count; i++) status = worse(status, dump_file(options, files[i]));
    status = worse(status, check_categories());
    free(categories);
    return worse(status, finish_output());
}

static const struct cli_option dump_options[] = {
    CLI_OPTION("category", "LIST", "only events of these categories: gc or side_exit,recompile_exit", take_text,
               &chosen),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_dump = {
    .name = "dump",
    .purpose = "print each event as one line of JSON",
    .arguments = "FILE...",
    .help =
        "Prints the events in the order of the file, one JSON object per line, with the members\n"
        "ts (ns), dur, ph (i C B E X b n e s t f, as in Chrome's trace format), id, cat, name, pid,\n"
        "tid, thread, provider, offset, args. Bytes that are not UTF-8 become U+FFFD.\n",
    .folders = true,
    .options = dump_options,
    .run = run,
};
