/* export_firefox.c - see export.h
 *
 * The format is the Firefox Profiler's "processed profile", version 61:
 * https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md
 * Later versions of the profiler read it, too.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "export/export.h"
#include "export/firefox_profile.h"

enum {
    FORMAT_VERSION = 61,
    VISIBLE_THREADS = 24, /* at first; the profiler's menu of tracks has all */
};

static const struct {
    const char *name, *color;
} categories[FIREFOX_CATEGORIES] = {
    [FIREFOX_OTHER] = {"Other", "grey"},
    [FIREFOX_RUNNING] = {"Running", "blue"},
    [FIREFOX_WAITING] = {"Waiting for the GVL", "orange"},
    [FIREFOX_BLOCKED] = {"Blocked", "grey"},
    [FIREFOX_GC] = {"GC", "purple"},
    [FIREFOX_EXIT] = {"Exit", "red"},
    [FIREFOX_COMPILE] = {"Compilation", "green"},
    [FIREFOX_MARKER] = {"Marker", "yellow"},
    [FIREFOX_COMPILED] = {"Compiled", "blue"},
    [FIREFOX_INTERPRETED] = {"Interpreted", "lightblue"},
    [FIREFOX_NO_CPU] = {"No CPU", "magenta"},
    [FIREFOX_WITHOUT_GVL] = {"C without the GVL", "brown"},
};

/* --- output ------------------------------------------------------------------------------------------- */

/* The format has milliseconds. */
static void
put_ms(struct json *json, uint64_t ns)
{
    enum { DECIMALS = 6, MS = 1000000 };
    if (ns % MS == 0) json_unsigned(json, ns / MS);
    else json_decimal(json, (int64_t)ns, DECIMALS);
}

static void
put_time(struct json *json, const struct firefox_profile *firefox, int64_t ns)
{
    put_ms(json, (uint64_t)(ns - firefox->first_ns));
}

static enum firefox_category
category_of_event(uint32_t category)
{
    switch (category) {
      case STRING_SIDE_EXIT:
      case STRING_RECOMPILE_EXIT:
      case STRING_FALLBACK: return FIREFOX_EXIT;
      case STRING_COMPILE:
      case STRING_INVALIDATION: return FIREFOX_COMPILE;
      case STRING_BLOCKED: return FIREFOX_BLOCKED;
      case STRING_PREEMPTED: return FIREFOX_WAITING;
      case STRING_GC: return FIREFOX_GC;
      case STRING_MARKER: return FIREFOX_MARKER;
      default: return FIREFOX_OTHER;
    }
}

/* The name of a category as a type of markers. The profiler gives some types a meaning of its own. */
static void
put_type(struct json *json, const struct firefox_profile *firefox, uint32_t category)
{
    struct fxt_string name = pool_string(firefox->pool, category);
    json_textf(json, "ruby %.*s", (int)(name.len < 200 ? name.len : 200), name.ptr);
}

#define WAITING_TYPE "GVL wait"

static void
put_cause(struct json *json, uint32_t stack)
{
    if (stack == FIREFOX_NO_STACK) return;
    json_object(json_key(json, "cause"));
    json_unsigned(json_key(json, "stack"), stack);
    json_end(json);
}

static void
put_marker_data(struct json *json, struct firefox_profile *firefox, const struct firefox_record *record)
{
    uint32_t category = firefox_schema_category(firefox, record->schema);
    json_object(json);
    put_type(json_key(json, "type"), firefox, category);
    if (category == STRING_BLOCKED || category == STRING_PREEMPTED)
        json_text(json_key(json, "method"), pool_string(firefox->pool, record->name));
    if (record->woken_by != STRING_NONE)
        json_text(json_key(json, "woken_by"), pool_string(firefox->pool, record->woken_by));
    json_members(json, pool_string(firefox->pool, record->args));
    put_cause(json, firefox_record_stack(firefox, record));
    json_end(json);
}

/* Blocked times have one name, whatever the method, because the profiler makes a row of each name. */
static uint32_t
marker_name(const struct firefox_profile *firefox, const struct firefox_record *record)
{
    uint32_t category = firefox_schema_category(firefox, record->schema);
    return category == STRING_BLOCKED || category == STRING_PREEMPTED ? category : record->name;
}

static bool
is_wait(const struct track_piece *piece)
{
    return piece->state == THREAD_WAITING;
}

/* Records are markers, and so is each wait for the GVL. */
static void
put_markers(struct json *json, struct firefox_profile *firefox, const struct firefox_thread *thread)
{
    const struct firefox_record *records = thread->records;
    const struct track_piece *pieces = thread->pieces;
    uint32_t waits = 0;
    for (uint32_t i = 0; i < thread->piece_count; i++) waits += is_wait(&pieces[i]);
    uint32_t wait_name = firefox_string(&firefox->stacks, firefox->state_frames[FIREFOX_WAITING]);
    static const char *const columns[] = {"name", "startTime", "endTime", "phase", "category", "data"};
    enum { NAME, START, END, PHASE, CATEGORY, DATA, COLUMNS };
    json_object(json_key(json_line(json), "markers"));
    for (unsigned column = 0; column < COLUMNS; column++) {
        json_array(json_key(json, columns[column]));
        for (uint32_t i = 0; i < thread->record_count; i++) {
            bool instant = records[i].type == FXT_EVENT_INSTANT;
            switch (column) {
              case NAME:
                json_unsigned(json, firefox_string(&firefox->stacks, marker_name(firefox, &records[i])));
                break;
              case START: put_time(json, firefox, records[i].ts_ns); break;
              case END:
                if (instant) json_null(json);
                else put_time(json, firefox, records[i].end_ns);
                break;
              case PHASE: json_unsigned(json, instant ? 0 : 1); break;
              case CATEGORY:
                json_unsigned(json, category_of_event(firefox_schema_category(firefox, records[i].schema)));
                break;
              case DATA: put_marker_data(json, firefox, &records[i]); break;
            }
        }
        for (uint32_t i = 0; i < thread->piece_count; i++) {
            if (!is_wait(&pieces[i])) continue;
            switch (column) {
              case NAME: json_unsigned(json, wait_name); break;
              case START: put_time(json, firefox, pieces[i].from_ns); break;
              case END: put_time(json, firefox, pieces[i].to_ns); break;
              case PHASE: json_unsigned(json, 1); break;
              case CATEGORY: json_unsigned(json, FIREFOX_WAITING); break;
              case DATA: json_text_object(json, "type", WAITING_TYPE); break;
            }
        }
        json_end(json);
        json_line(json);
    }
    json_unsigned(json_key(json, "length"), thread->record_count + waits);
    json_end(json);
}

static void
put_stack(struct json *json, uint32_t stack)
{
    if (stack == FIREFOX_NO_STACK) json_null(json);
    else json_unsigned(json, stack);
}

static void
put_samples(struct json *json, const struct firefox_profile *firefox, const struct firefox_thread *thread)
{
    const struct firefox_sample *samples = thread->samples;
    const bool in_ms = firefox->samples_time;
    json_object(json_key(json_line(json), "samples"));
    FIREFOX_COLUMN(json, "stack", thread->sample_count, put_stack(json, samples[i].stack));
    FIREFOX_COLUMN(json_line(json), "time", thread->sample_count, put_time(json, firefox, samples[i].ts_ns));
    FIREFOX_COLUMN(json_line(json), "weight", thread->sample_count,
                   (in_ms ? put_ms : json_unsigned)(json, samples[i].weight));
    json_c_text(json_key(json_line(json), "weightType"), in_ms ? "tracing-ms" : "samples");
    json_unsigned(json_key(json, "length"), thread->sample_count);
    json_end(json);
}

/* --- threads ----------------------------------------------------------------------------------------- */

struct shown {
    uint32_t thread;
    uint32_t process;
    uint32_t same_pid; /* processes of earlier files with its pid: the profile has one of a pid */
    bool main;         /* of its process */
    uint64_t rank;
};

static int
compare_shown(const void *left, const void *right)
{
    const struct shown *a = left, *b = right;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->main != b->main) return a->main ? -1 : 1;
    if (a->rank != b->rank) return a->rank > b->rank ? -1 : 1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

/* Lists the threads that have something to show: of each process its main one first, then those that
 * waited longest. */
static struct shown *
list_threads(const struct firefox_profile *firefox, uint32_t *count_out)
{
    struct shown *shown = xcalloc((size_t)firefox->thread_count + 1, sizeof *shown);
    uint32_t *main_of = xcalloc((size_t)firefox->tracks.processes.count + 1, sizeof *main_of); /* its place + 1 */
    uint32_t *same_pid = xcalloc((size_t)firefox->tracks.processes.count + 1, sizeof *same_pid);
    struct map pids = {0};
    for (uint32_t i = 0; i < firefox->tracks.processes.count; i++) {
        uint32_t pid = track_process(&firefox->tracks, i)->pid, seen = map_get(&pids, pid);
        same_pid[i] = seen == MAP_NONE ? 0 : seen;
        map_set(&pids, pid, same_pid[i] + 1);
    }
    map_free(&pids);
    uint32_t count = 0;
    for (uint32_t i = 0; i < firefox->thread_count; i++) {
        const struct firefox_thread *thread = &firefox->threads[i];
        const struct track_thread *track = track_thread(&firefox->tracks, i);
        if (thread->record_count + thread->piece_count + thread->sample_count == 0 && !thread->counts) continue;
        shown[count] = (struct shown){
            .thread = i, .process = track->process, .same_pid = same_pid[track->process]};
        for (uint32_t p = 0; p < thread->piece_count; p++) {
            const struct track_piece *piece = &thread->pieces[p];
            if (is_wait(piece)) shown[count].rank += (uint64_t)(piece->to_ns - piece->from_ns);
        }
        count++;
        if (main_of[track->process] == 0 || track->tid == track_process(&firefox->tracks, track->process)->pid)
            main_of[track->process] = count;
    }
    for (uint32_t i = 0; i < count; i++) shown[i].main = main_of[shown[i].process] == i + 1;
    free(main_of);
    free(same_pid);
    if (count > 1) qsort(shown, count, sizeof *shown, compare_shown);
    *count_out = count;
    return shown;
}

/* As text: the profile has one process of a pid. */
static void
process_id(const struct firefox_profile *firefox, const struct shown *shown, char *text, size_t bytes)
{
    uint32_t pid = track_process(&firefox->tracks, shown->process)->pid;
    if (shown->same_pid == 0) snprintf(text, bytes, "%" PRIu32, pid);
    else snprintf(text, bytes, "%" PRIu32 "-%" PRIu32, pid, shown->same_pid + 1);
}

static void
put_thread(struct json *json, struct firefox_profile *firefox, const struct shown *shown)
{
    const struct track_thread *track = track_thread(&firefox->tracks, shown->thread);
    struct firefox_thread *thread = &firefox->threads[shown->thread];
    uint32_t process_name = threads_process_name(&firefox->names, track->process);
    char id[32];
    process_id(firefox, shown, id, sizeof id);
    json_object(json_line(json));
    json_key(json, "name");
    if (track->name == STRING_NONE) json_textf(json, "thread %" PRIu32, track->tid);
    else json_text(json, pool_string(firefox->pool, track->name));
    json_text(json_key(json, "processName"),
              process_name == STRING_NONE ? text_of("ruby") : pool_string(firefox->pool, process_name));
    json_c_text(json_key(json, "pid"), id);
    json_unsigned(json_key(json, "tid"), track->tid);
    json_bool(json_key(json, "isMainThread"), shown->main);
    json_c_text(json_key(json, "processType"), "default");
    json_unsigned(json_key(json, "processStartupTime"), 0);
    json_null(json_key(json, "processShutdownTime"));
    json_unsigned(json_key(json, "registerTime"), 0);
    json_null(json_key(json, "unregisterTime"));
    firefox_put_nulls(json, "pausedRanges", 0);
    json_bool(json_key(json, "showMarkersInTimeline"), true);
    put_samples(json, firefox, thread);
    put_markers(json, firefox, thread);
    json_end(json);
}

/* --- counters ---------------------------------------------------------------------------------------- */

/* The profiler draws a counter of memory as the sum of its samples so far, and so does this with all
 * counters: each sample is the difference from the one before. `display` is of later versions of the
 * format, which take it as it is; earlier profilers draw only memory. */
static void
put_display(struct json *json, const struct firefox_counter *counter, struct fxt_string name)
{
    json_object(json);
    json_texts(json, "graphType", "line-accumulated", "unit", counter->bytes ? "bytes" : "",
               "color", counter->bytes ? "orange" : "teal");
    json_null(json_key(json, "markerSchemaLocation"));
    json_unsigned(json_key(json, "sortWeight"), 20);
    json_text(json_key(json, "label"), name);
    json_array(json_key(json, "tooltipRows"));
    json_object(json);
    json_texts(json, "type", "value", "source", "accumulated");
    json_text_object(json_key(json, "format"), "unit", counter->bytes ? "bytes" : "number");
    json_texts(json, "label", "at this time");
    json_end(json);
    json_end(json);
    json_end(json);
}

static void
put_counter(struct json *json, struct firefox_profile *firefox, const struct firefox_counter *counter,
            const char *pid, uint32_t main_thread)
{
    struct fxt_string name = pool_string(firefox->pool, counter->name);
    const struct firefox_count *counts = counter->counts;
    json_object(json_line(json));
    json_text(json_key(json, "name"), name);
    json_texts(json, "category", counter->bytes ? "Memory" : "Ruby", "description", "", "pid", pid);
    json_unsigned(json_key(json, "mainThreadIndex"), main_thread);
    put_display(json_key(json, "display"), counter, name);
    json_object(json_key(json_line(json), "samples"));
    FIREFOX_COLUMN(json, "time", counter->count, put_time(json, firefox, counts[i].ts_ns));
    FIREFOX_COLUMN(json_line(json), "count", counter->count,
                   json_double(json, counts[i].value - (i > 0 ? counts[i - 1].value : 0), 17));
    json_unsigned(json_key(json, "length"), counter->count);
    json_end(json);
    json_end(json);
}

static void
put_counters(struct json *json, struct firefox_profile *firefox, const struct shown *shown, uint32_t count)
{
    const struct row_table *counters = &firefox->counters.counters;
    json_array(json_key(json_line(json), "counters"));
    for (uint32_t i = 0; i < counters->count; i++) {
        const struct firefox_counter *counter = row_table_at(counters, i);
        uint32_t main = 0;
        while (main + 1 < count && !(shown[main].main && shown[main].process == counter->process)) main++;
        char pid[32];
        process_id(firefox, &shown[main], pid, sizeof pid);
        put_counter(json, firefox, counter, pid, main);
    }
    json_end(json);
}

/* --- metadata ------------------------------------------------------------------------------------------ */

static void
put_field(struct json *json, struct fxt_string key, struct fxt_string label)
{
    json_object(json);
    json_text(json_key(json, "key"), key);
    json_text(json_key(json, "label"), label);
    json_c_text(json_key(json, "format"), "string");
    json_end(json);
}

static void
put_places(struct json *json)
{
    static const char *const places[] = {"marker-chart", "marker-table", "timeline-overview"};
    FIREFOX_COLUMN(json, "display", sizeof places / sizeof *places, json_c_text(json, places[i]));
}

static void
put_schema(struct json *json, struct firefox_profile *firefox, uint32_t number)
{
    static const char method_text[] = "{marker.data.method}";
    uint32_t category = firefox_schema_category(firefox, number);
    bool method = category == STRING_BLOCKED || category == STRING_PREEMPTED;
    json_object(json_line(json));
    put_type(json_key(json, "name"), firefox, category);
    if (method) {
        json_textf(json_key(json, "tooltipLabel"), "{marker.name}: %s", method_text);
        json_texts(json, "tableLabel", method_text, "chartLabel", method_text);
    }
    put_places(json);
    json_array(json_key(json, "fields"));
    if (method) put_field(json, text_of("method"), text_of("method"));
    if (category == STRING_BLOCKED) put_field(json, text_of("woken_by"), text_of("woken by"));
    for (uint32_t i = 0; i < firefox->fields.count; i++) {
        const struct firefox_field *field = row_table_at(&firefox->fields, i);
        if (field->schema != number) continue;
        struct fxt_string key = firefox_arg_name(firefox->pool, field->name);
        put_field(json, key, pool_string(firefox->pool, field->name));
        free((char *)key.ptr);
    }
    json_end(json);
    json_end(json);
}

static void
put_category(struct json *json, const char *name, const char *color)
{
    json_object(json);
    json_texts(json, "name", name, "color", color);
    FIREFOX_COLUMN(json, "subcategories", 1, json_c_text(json, "Other"));
    json_end(json);
}

static void
put_meta(struct json *json, struct firefox_profile *firefox, uint32_t shown_count)
{
    static const char *const true_members[] = {"symbolicated", "symbolicationNotSupported", "usesOnlyOneStackType",
                                               "sourceCodeIsNotOnSearchfox", "keepProfileThreadOrder"};
    static const char *const extension_columns[] = {"baseURL", "id", "name"};
    char *partial = fxt_parts_line(reader_parts(firefox->reader));
    json_object(json_key(json, "meta"));
    if (partial != NULL) json_c_text(json_key(json, "partial"), partial);
    json_counts(json, {"interval", 1}, {"startTime", 0}, {"processType", 0}, {"stackwalk", 1}, {"version", 31},
                {"preprocessedProfileVersion", FORMAT_VERSION});
    json_textf(json_key(json, "product"), "%s%s", partial != NULL ? "(partial) " : "",
               firefox->ruby == STRING_NONE ? "vm-trace" : pool_string(firefox->pool, firefox->ruby).ptr);
    free(partial);
    json_c_text(json_key(json, "importedFrom"), "vm-trace");
    json_text(json_key(json, "arguments"), pool_string(firefox->pool, firefox->command));
    for (unsigned i = 0; i < sizeof true_members / sizeof *true_members; i++)
        json_bool(json_key(json, true_members[i]), true);
    firefox_put_empty_table(json, "extensions", 3, extension_columns);
    uint32_t visible = shown_count < VISIBLE_THREADS ? shown_count : VISIBLE_THREADS;
    FIREFOX_COLUMN(json_line(json), "initialVisibleThreads", visible, json_unsigned(json, i));
    FIREFOX_COLUMN(json, "initialSelectedThreads", shown_count > 0 ? 1 : 0, json_unsigned(json, i));
    FIREFOX_COLUMN(json_line(json), "categories", FIREFOX_CATEGORIES,
                   put_category(json, categories[i].name, categories[i].color));
    json_array(json_key(json_line(json), "markerSchema"));
    json_object(json);
    json_texts(json, "name", WAITING_TYPE);
    put_places(json);
    firefox_put_nulls(json, "fields", 0);
    json_end(json);
    for (uint32_t i = 0; i < firefox->schemas.count; i++) put_schema(json, firefox, i);
    json_end(json);
    json_end(json);
}

/* --- all ------------------------------------------------------------------------------------------- */

static void
print_profile(FILE *out, struct firefox_profile *firefox)
{
    uint32_t count;
    struct shown *shown = list_threads(firefox, &count);
    struct json json = json_to(out);
    json_object(&json);
    put_meta(&json, firefox, count);
    firefox_put_nulls(json_line(&json), "libs", 0);
    FIREFOX_COLUMN(json_line(&json), "threads", count, put_thread(&json, firefox, &shown[i]));
    put_counters(&json, firefox, shown, count);
    firefox_put_shared(json_line(&json), &firefox->stacks);
    json_end(&json);
    putc('\n', out);
    free(shown);
}

enum status
export_firefox(FILE *out, size_t memory_bytes, const struct trace_choice *choice, uint64_t max_faults,
               enum firefox_samples samples, bool with_reasons, int file_count, char **files)
{
    struct firefox_profile *firefox = firefox_profile_new(memory_bytes, choice, samples, with_reasons);
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++)
        status = worse(status, firefox_profile_read(firefox, files[i], max_faults));
    status = worse(status, trace_filter_status(&firefox->filter, "export"));
    if (status < STATUS_USAGE) {
        firefox_profile_finish(firefox);
        print_profile(out, firefox);
    }
    if (status < STATUS_USAGE && firefox->left_out > 0) {
        char text[200];
        snprintf(text, sizeof text,
                 "%" PRIu64 " event%s left out: async events and flows, or counters that the format cannot hold",
                 firefox->left_out, firefox->left_out == 1 ? " is" : "s are");
        file_message(files[0], text);
    }
    firefox_profile_free(firefox);
    return status;
}
