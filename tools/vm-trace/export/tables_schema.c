/* tables_schema.c - see tables_schema.h */
#include <stddef.h>

#include "base/json.h"
#include "export/tables_schema.h"

const char *const table_type_names[] = {"text", "integer", "real"};

/* The first columns of all tables. */
#define OF_PROCESS \
    {"schema", TABLE_INTEGER, "version of the schema: 3"}, \
    {"process", TABLE_TEXT, "key of the traced process: HOST-PID-TIME of its first event in Unix ns"}

/* The two clocks of a moment. */
#define MOMENT(clock_name, unix_name, what) \
    {clock_name, TABLE_INTEGER, what ": ns of the trace's clock (CLOCK_BOOTTIME)"}, \
    {unix_name, TABLE_INTEGER, what ": ns since 1970 in UTC"}

static const struct table_column processes[] = {
    OF_PROCESS,
    {"host_name", TABLE_TEXT, "name of the host; unknown if the trace does not say it"},
    {"service", TABLE_TEXT, "name of the service, from OTEL_SERVICE_NAME"},
    {"version", TABLE_TEXT, "version of the service, from service.version in OTEL_RESOURCE_ATTRIBUTES"},
    {"pid", TABLE_INTEGER, "process id"},
    {"trace", TABLE_TEXT, "name of the trace file, without its folder"},
    {"ruby", TABLE_TEXT, "RUBY_DESCRIPTION"},
    {"base", TABLE_TEXT, "the CRuby base that the tracer was built for"},
    {"jit", TABLE_TEXT, "ZJIT, YJIT or empty"},
    {"streams", TABLE_TEXT, "what was recorded, with blanks between"},
    {"exit_rate", TABLE_INTEGER, "one in so many exits is an event"},
    MOMENT("start_ns", "start_unix_ns", "first event"),
    MOMENT("end_ns", "end_unix_ns", "last event"),
    {"complete", TABLE_INTEGER, "1: the trace has its summary; 0: it ended abruptly, or was still being written"},
    {"snapshot", TABLE_TEXT, "of a flight recorder: why it was saved; else empty"},
    {"lost_events", TABLE_INTEGER, "events that the recorder lost"},
    {"boot_unix_ns", TABLE_INTEGER, "Unix time at 0 of the trace's clock: differs between two hosts of one name"},
    {"clock_jump_ns", TABLE_INTEGER, "how far the wall clock moved against the trace's clock during the trace"},
    {"time_from", TABLE_TEXT, "host: the event trace/host; mtime: of the file, because the trace has no such event"},
    {"command", TABLE_TEXT, "command line; empty without --with-command"},
    {"partial", TABLE_TEXT,
     "empty: the trace was read as a whole; else what of it was chosen, or was read, and why not all"},
    {0},
};

static const struct table_column threads[] = {
    OF_PROCESS,
    {"tid", TABLE_INTEGER, "id of the thread's track; 0: a Ruby thread that shares native threads"},
    {"name", TABLE_TEXT, "name of the thread"},
    {"events", TABLE_INTEGER, "number of its events"},
    {"exits", TABLE_INTEGER, "exits, as vm-trace report counts: of a sampled trace in proportion to its events"},
    {"fallbacks", TABLE_INTEGER, "likewise"},
    {"running_ns", TABLE_INTEGER, "stream threads: time with the GVL, without garbage collection"},
    {"gc_ns", TABLE_INTEGER, "stream threads: time in garbage collections"},
    {"waiting_ns", TABLE_INTEGER, "stream threads: time waiting for the GVL"},
    {"blocked_ns", TABLE_INTEGER, "stream threads: time blocked"},
    {"runs", TABLE_INTEGER, "stream threads: how often it got the GVL"},
    {"longest_wait_ns", TABLE_INTEGER, "stream threads: longest wait for the GVL"},
    {"compiled_ns", TABLE_INTEGER, "stream states: time in compiled code"},
    {"exited_ns", TABLE_INTEGER, "stream states: time in the interpreter because of exits"},
    {"interpreted_ns", TABLE_INTEGER, "stream states: other time in the interpreter"},
    {"c_function_ns", TABLE_INTEGER, "stream states: time in methods in C that interpreted code called"},
    {"fallback_ns", TABLE_INTEGER, "stream states: time in calls that compiled code left to the VM"},
    {"compiling_ns", TABLE_INTEGER, "stream states: time of the compiler"},
    {0},
};

static const struct table_column sites[] = {
    OF_PROCESS,
    {"kind", TABLE_TEXT, "side_exit, recompile_exit or fallback"},
    {"reason", TABLE_TEXT, "as the JIT spells it, without addresses"},
    {"family", TABLE_TEXT, "the reason without its parentheses"},
    {"frame", TABLE_TEXT, "innermost frame: Owner#method (path:line)"},
    {"frame_id", TABLE_INTEGER, "the frame in the table frames, and in those of all other processes"},
    {"method", TABLE_TEXT, "Owner#method of the frame: unlike the line, a deploy rarely changes it"},
    {"insn", TABLE_TEXT, "bytecode instruction"},
    {"jit_version", TABLE_INTEGER, "number of the compiled version; 0: none"},
    {"iseq", TABLE_TEXT, "the ISEQ that the frame is inlined into; empty: it is not"},
    {"callee", TABLE_TEXT, "of a fallback, or of an exit that has an insn_index: what is called"},
    {"count", TABLE_INTEGER, "how often, as vm-trace report counts: exact where the trace allows it"},
    {"recorded", TABLE_INTEGER, "number of events"},
    {"at_version_limit", TABLE_INTEGER, "of count: in code that may not be compiled again"},
    {"lost_ns", TABLE_INTEGER, "stream states: time in the interpreter because of these exits, without callees"},
    {"lost_max_ns", TABLE_INTEGER, "stream states: the longest of them"},
    {"insn_index", TABLE_INTEGER, "index of the instruction, if its line has several of that name; else -1"},
    {0},
};

static const struct table_column stacks[] = {
    OF_PROCESS,
    {"stack_id", TABLE_INTEGER, "hash of the frames: equal stacks of all processes have equal ids"},
    {"depth", TABLE_INTEGER, "0: the innermost frame"},
    {"frame_id", TABLE_INTEGER, "in the table frames"},
    {0},
};

static const struct table_column frames[] = {
    OF_PROCESS,
    {"frame_id", TABLE_INTEGER, "hash of the label: equal frames of all processes have equal ids"},
    {"frame", TABLE_TEXT, "the label: Owner#method (path:line)"},
    {"method", TABLE_TEXT, "Owner#method"},
    {"path", TABLE_TEXT, "source file; empty if the label has none"},
    {"line", TABLE_INTEGER, "line; 0: none"},
    {0},
};

static const struct table_column events[] = {
    OF_PROCESS,
    MOMENT("ts_ns", "unix_ns", "when"),
    {"tid", TABLE_INTEGER, "the thread's track"},
    {"kind", TABLE_TEXT, "instant, async_begin, async_instant, async_end, flow_begin, flow_step or flow_end"},
    {"category", TABLE_TEXT, "such as side_exit, fallback, allocation, marker"},
    {"name", TABLE_TEXT, "of an exit its reason, of an allocation its class, both without addresses"},
    {"id", TABLE_INTEGER, "of an async event or a flow; else 0"},
    {"thread", TABLE_TEXT, "Ruby thread, if it shares native threads"},
    {"frame_id", TABLE_INTEGER, "innermost frame; 0: none"},
    {"stack_id", TABLE_INTEGER, "all frames, in the table stacks; 0: none"},
    {"insn", TABLE_TEXT, "bytecode instruction of an exit"},
    {"jit_version", TABLE_INTEGER, "number of the compiled version of an exit"},
    {"weight", TABLE_INTEGER, "how many exits, or bytes of an allocation, the event represents; else 1"},
    {"outcome", TABLE_TEXT, "what a recompile exit led to"},
    {"lost_ns", TABLE_INTEGER, "time that this exit lost; 0: unknown"},
    {"arguments", TABLE_TEXT, "all arguments as JSON; empty without --with-arguments"},
    {0},
};

static const struct table_column spans[] = {
    OF_PROCESS,
    MOMENT("start_ns", "start_unix_ns", "begin"),
    {"dur_ns", TABLE_INTEGER, "length in ns; of an open span until the last event of its process, "
     "or of its thread where reading stopped"},
    {"open", TABLE_INTEGER, "1: its end is not in the trace"},
    {"tid", TABLE_INTEGER, "the thread's track"},
    {"category", TABLE_TEXT, "such as marker, gc, compile, invalidation, blocked, call, syscall"},
    {"name", TABLE_TEXT, "name of the duration"},
    {"outermost", TABLE_INTEGER, "1: not inside of another one of its category on its thread"},
    {"iseq", TABLE_TEXT, "of category compile: the ISEQ; empty: a part of such work"},
    {"jit_version", TABLE_INTEGER, "of category compile: number of the version; 0: no code was made"},
    {"code_bytes", TABLE_INTEGER, "of category compile: bytes of code"},
    {"reason", TABLE_TEXT, "of category gc: why; only the first pause of a collection has it"},
    {"arguments", TABLE_TEXT,
     "of spans in one record (call, syscall, execution) as JSON; empty without --with-arguments"},
    {0},
};

static const struct table_column states[] = {
    OF_PROCESS,
    MOMENT("start_ns", "start_unix_ns", "begin"),
    {"dur_ns", TABLE_INTEGER, "length in ns"},
    {"tid", TABLE_INTEGER, "the Ruby thread's track"},
    {"state", TABLE_TEXT, "running (has the GVL), gc (collects garbage), waiting (for the GVL), blocked"},
    {"gc_ns", TABLE_INTEGER, "of state running: time of it in garbage collections, at unknown moments"},
    {"name", TABLE_TEXT, "what it blocked in"},
    {"waker_tid", TABLE_INTEGER, "the thread that woke it; 0: unknown"},
    {0},
};

static const struct table_column counters[] = {
    OF_PROCESS,
    MOMENT("ts_ns", "unix_ns", "when"),
    {"category", TABLE_TEXT, "such as counter, gc, marker"},
    {"name", TABLE_TEXT, "name of the counter"},
    {"series", TABLE_TEXT, "a counter may have several"},
    {"id", TABLE_INTEGER, "number of the counter: most count for one ractor"},
    {"value", TABLE_REAL, "the value, in the unit of its series"},
    {0},
};

const struct table_schema table_schemas[TABLES] = {
    [TABLE_PROCESSES] = {"processes", "a traced process: host, service, version, time, losses", processes},
    [TABLE_THREADS] = {"threads", "a thread, with its sums", threads},
    [TABLE_SITES] = {"sites", "exits and fallbacks by reason and place, with their sums", sites},
    [TABLE_STACKS] = {"stacks", "a frame of a stack", stacks},
    [TABLE_FRAMES] = {"frames", "a place in the program", frames},
    [TABLE_EVENTS] = {"events", "an event of one moment", events},
    [TABLE_SPANS] = {"spans", "a duration", spans},
    [TABLE_STATES] = {"states", "a time of a thread in one state", states},
    [TABLE_COUNTERS] = {"counters", "a value of a counter", counters},
};

static void
put_name_and_meaning(struct json *json, const char *name, const char *type, const char *meaning)
{
    json_object(json);
    json_c_text(json_key(json, "name"), name);
    if (type != NULL) json_c_text(json_key(json, "type"), type);
    json_c_text(json_key(json, "meaning"), meaning);
}

void
tables_schema_print(FILE *out)
{
    struct json json = json_to(out);
    json_object(&json);
    json_integer(json_key(json_line_indented(&json, 1), "schema"), TABLES_SCHEMA);
    json_array(json_key(json_line_indented(&json, 1), "tables"));
    for (int i = 0; i < TABLES; i++) {
        const struct table_schema *table = &table_schemas[i];
        put_name_and_meaning(json_line_indented(&json, 2), table->name, NULL, table->meaning);
        json_array(json_key(&json, "columns"));
        for (const struct table_column *column = table->columns; column->name != NULL; column++) {
            put_name_and_meaning(json_line_indented(&json, 4), column->name, table_type_names[column->type],
                                 column->meaning);
            json_end(&json);
        }
        json_end(json_line_indented(&json, 2));
        json_end(&json);
    }
    json_end(json_line_indented(&json, 1));
    json_end(json_line(&json));
    putc('\n', out);
}
