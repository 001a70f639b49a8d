/* export_firefox.c - see export.h
 *
 * The format is the Firefox Profiler's "processed profile", version 61:
 * https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md
 * Later versions of the profiler read it, too.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "render/export.h"
#include "render/firefox_profile.h"

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
};

/* --- output ------------------------------------------------------------------------------------------- */

/* The format has milliseconds. Digits are written one by one: a double has too few of them for long
 * traces. */
static void
print_ms(FILE *out, uint64_t ns)
{
    fprintf(out, "%" PRIu64, ns / 1000000);
    if (ns % 1000000 != 0) fprintf(out, ".%06u", (unsigned)(ns % 1000000));
}

static void
print_time(FILE *out, const struct firefox_profile *firefox, int64_t ns)
{
    print_ms(out, (uint64_t)(ns - firefox->first_ns));
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
print_type(FILE *out, const struct firefox_profile *firefox, uint32_t category)
{
    char text[256];
    struct fxt_string name = pool_string(firefox->pool, category);
    int length = snprintf(text, sizeof text, "ruby %.*s", (int)(name.len < 200 ? name.len : 200), name.ptr);
    print_json(out, (struct fxt_string){.ptr = text, .len = (uint32_t)length});
}

#define WAITING_TYPE "GVL wait"

static void
print_cause(FILE *out, uint32_t stack)
{
    if (stack != FIREFOX_NO_STACK) fprintf(out, ",\"cause\":{\"stack\":%" PRIu32 "}", stack);
}

static void
print_marker_data(FILE *out, struct firefox_profile *firefox, const struct firefox_record *record)
{
    uint32_t category = firefox_schema_category(firefox, record->schema);
    fputs("{\"type\":", out);
    print_type(out, firefox, category);
    if (category == STRING_BLOCKED || category == STRING_PREEMPTED) {
        fputs(",\"method\":", out);
        print_json(out, pool_string(firefox->pool, record->name));
    }
    if (record->woken_by != STRING_NONE) {
        fputs(",\"woken_by\":", out);
        print_json(out, pool_string(firefox->pool, record->woken_by));
    }
    struct fxt_string args = pool_string(firefox->pool, record->args);
    fwrite(args.ptr, 1, args.len, out);
    print_cause(out, firefox_record_stack(firefox, record));
    putc('}', out);
}

/* Blocked times have one name, whatever the method, because the profiler makes a row of each name. */
static uint32_t
marker_name(const struct firefox_profile *firefox, const struct firefox_record *record)
{
    uint32_t category = firefox_schema_category(firefox, record->schema);
    return category == STRING_BLOCKED || category == STRING_PREEMPTED ? category : record->name;
}

static const char *
comma(bool *any)
{
    const char *text = *any ? "," : "";
    *any = true;
    return text;
}

static bool
is_wait(const struct track_piece *piece)
{
    return piece->state == THREAD_WAITING;
}

/* Records are markers, and so is each wait for the GVL. */
static void
print_markers(FILE *out, struct firefox_profile *firefox, const struct firefox_thread *thread)
{
    const struct firefox_record *records = thread->records;
    const struct track_piece *pieces = thread->pieces;
    uint32_t waits = 0;
    for (uint32_t i = 0; i < thread->piece_count; i++) waits += is_wait(&pieces[i]);
    uint32_t wait_name = firefox_string(&firefox->stacks, firefox->state_frames[FIREFOX_WAITING]);
    static const char *const columns[] = {"name", "startTime", "endTime", "phase", "category", "data"};
    enum { NAME, START, END, PHASE, CATEGORY, DATA, COLUMNS };
    fputs("\"markers\":{", out);
    for (unsigned column = 0; column < COLUMNS; column++) {
        bool any = false;
        fprintf(out, "\"%s\":[", columns[column]);
        for (uint32_t i = 0; i < thread->record_count; i++) {
            bool instant = records[i].type == FXT_EVENT_INSTANT;
            fputs(comma(&any), out);
            switch (column) {
              case NAME:
                fprintf(out, "%" PRIu32, firefox_string(&firefox->stacks, marker_name(firefox, &records[i])));
                break;
              case START: print_time(out, firefox, records[i].ts_ns); break;
              case END:
                if (instant) fputs("null", out);
                else print_time(out, firefox, records[i].end_ns);
                break;
              case PHASE: putc(instant ? '0' : '1', out); break;
              case CATEGORY:
                fprintf(out, "%d", category_of_event(firefox_schema_category(firefox, records[i].schema)));
                break;
              case DATA: print_marker_data(out, firefox, &records[i]); break;
            }
        }
        for (uint32_t i = 0; i < thread->piece_count; i++) {
            if (!is_wait(&pieces[i])) continue;
            fputs(comma(&any), out);
            switch (column) {
              case NAME: fprintf(out, "%" PRIu32, wait_name); break;
              case START: print_time(out, firefox, pieces[i].from_ns); break;
              case END: print_time(out, firefox, pieces[i].to_ns); break;
              case PHASE: putc('1', out); break;
              case CATEGORY: fprintf(out, "%d", FIREFOX_WAITING); break;
              case DATA: fputs("{\"type\":\"" WAITING_TYPE "\"}", out); break;
            }
        }
        fputs("],\n", out);
    }
    fprintf(out, "\"length\":%" PRIu32 "}", thread->record_count + waits);
}

static void
print_samples(FILE *out, const struct firefox_profile *firefox, const struct firefox_thread *thread)
{
    const struct firefox_sample *samples = thread->samples;
    const bool in_ms = firefox->samples_time;
    fputs("\"samples\":{\"stack\":[", out);
    for (uint32_t i = 0; i < thread->sample_count; i++) {
        if (i > 0) putc(',', out);
        if (samples[i].stack == FIREFOX_NO_STACK) fputs("null", out);
        else fprintf(out, "%" PRIu32, samples[i].stack);
    }
    fputs("],\n\"time\":[", out);
    for (uint32_t i = 0; i < thread->sample_count; i++) {
        if (i > 0) putc(',', out);
        print_time(out, firefox, samples[i].ts_ns);
    }
    fputs("],\n\"weight\":[", out);
    for (uint32_t i = 0; i < thread->sample_count; i++) {
        if (i > 0) putc(',', out);
        if (in_ms) print_ms(out, samples[i].weight);
        else fprintf(out, "%" PRIu64, samples[i].weight);
    }
    fprintf(out, "],\n\"weightType\":\"%s\",\"length\":%" PRIu32 "},\n", in_ms ? "tracing-ms" : "samples",
            thread->sample_count);
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
print_thread(FILE *out, struct firefox_profile *firefox, const struct shown *shown)
{
    const struct track_thread *track = track_thread(&firefox->tracks, shown->thread);
    struct firefox_thread *thread = &firefox->threads[shown->thread];
    uint32_t process_name = threads_process_name(&firefox->names, track->process);
    char unnamed[32], id[32];
    process_id(firefox, shown, id, sizeof id);
    snprintf(unnamed, sizeof unnamed, "thread %" PRIu32, track->tid);
    fputs("{\"name\":", out);
    print_json(out, track->name == STRING_NONE ? text_of(unnamed) : pool_string(firefox->pool, track->name));
    fputs(",\"processName\":", out);
    print_json(out, process_name == STRING_NONE ? text_of("ruby") : pool_string(firefox->pool, process_name));
    fprintf(out,
            ",\"pid\":\"%s\",\"tid\":%" PRIu32 ",\"isMainThread\":%s,\"processType\":\"default\",\"processStartupTime\":0,"
            "\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],"
            "\"showMarkersInTimeline\":true,\n",
            id, track->tid, shown->main ? "true" : "false");
    print_samples(out, firefox, thread);
    print_markers(out, firefox, thread);
    putc('}', out);
}

/* --- counters ---------------------------------------------------------------------------------------- */

/* The profiler draws a counter of memory as the sum of its samples so far, and so does this with all
 * counters: each sample is the difference from the one before. `display` is of later versions of the
 * format, which take it as it is; earlier profilers draw only memory. */
static void
print_counter(FILE *out, struct firefox_profile *firefox, const struct firefox_counter *counter,
              const char *pid, uint32_t main_thread)
{
    struct fxt_string name = pool_string(firefox->pool, counter->name);
    fputs("{\"name\":", out);
    print_json(out, name);
    fprintf(out, ",\"category\":\"%s\",\"description\":\"\",\"pid\":\"%s\",\"mainThreadIndex\":%" PRIu32,
            counter->bytes ? "Memory" : "Ruby", pid, main_thread);
    fputs(",\"display\":{\"graphType\":\"line-accumulated\",\"unit\":", out);
    fprintf(out, "\"%s\",\"color\":\"%s\",\"markerSchemaLocation\":null,\"sortWeight\":20,\"label\":",
            counter->bytes ? "bytes" : "", counter->bytes ? "orange" : "teal");
    print_json(out, name);
    fprintf(out,
            ",\"tooltipRows\":[{\"type\":\"value\",\"source\":\"accumulated\",\"format\":{\"unit\":\"%s\"},"
            "\"label\":\"at this time\"}]},\n\"samples\":{\"time\":[",
            counter->bytes ? "bytes" : "number");
    for (uint32_t i = 0; i < counter->count; i++) {
        if (i > 0) putc(',', out);
        print_time(out, firefox, counter->counts[i].ts_ns);
    }
    fputs("],\n\"count\":[", out);
    for (uint32_t i = 0; i < counter->count; i++) {
        double before = i > 0 ? counter->counts[i - 1].value : 0;
        fprintf(out, "%s%.17g", i > 0 ? "," : "", counter->counts[i].value - before);
    }
    fprintf(out, "],\"length\":%" PRIu32 "}}", counter->count);
}

static void
print_counters(FILE *out, struct firefox_profile *firefox, const struct shown *shown, uint32_t count)
{
    const struct row_table *counters = &firefox->counters.counters;
    fputs("\"counters\":[", out);
    for (uint32_t i = 0; i < counters->count; i++) {
        const struct firefox_counter *counter = row_table_at(counters, i);
        uint32_t main = 0;
        while (main + 1 < count && !(shown[main].main && shown[main].process == counter->process)) main++;
        char pid[32];
        process_id(firefox, &shown[main], pid, sizeof pid);
        fputs(i > 0 ? ",\n" : "\n", out);
        print_counter(out, firefox, counter, pid, main);
    }
    fputs("],\n", out);
}

/* --- metadata ------------------------------------------------------------------------------------------ */

static void
print_field(FILE *out, const char *key, const char *label)
{
    fprintf(out, "{\"key\":\"%s\",\"label\":\"%s\",\"format\":\"string\"}", key, label);
}

static void
print_schema(FILE *out, struct firefox_profile *firefox, uint32_t number)
{
    static const char display[] = "\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"]";
    uint32_t category = firefox_schema_category(firefox, number);
    bool method = category == STRING_BLOCKED || category == STRING_PREEMPTED, any = method;
    fputs(",\n{\"name\":", out);
    print_type(out, firefox, category);
    if (method) {
        fputs(",\"tooltipLabel\":\"{marker.name}: {marker.data.method}\",\"tableLabel\":\"{marker.data.method}\","
              "\"chartLabel\":\"{marker.data.method}\"", out);
    }
    fprintf(out, ",%s,\"fields\":[", display);
    if (method) print_field(out, "method", "method");
    if (category == STRING_BLOCKED) {
        putc(',', out);
        print_field(out, "woken_by", "woken by");
    }
    for (uint32_t i = 0; i < firefox->fields.count; i++) {
        const struct firefox_field *field = row_table_at(&firefox->fields, i);
        if (field->schema != number) continue;
        fprintf(out, "%s{\"key\":", comma(&any));
        firefox_print_arg_name(out, firefox->pool, field->name);
        fputs(",\"label\":", out);
        print_json(out, pool_string(firefox->pool, field->name));
        fputs(",\"format\":\"string\"}", out);
    }
    fputs("]}", out);
}

static void
print_meta(FILE *out, struct firefox_profile *firefox, uint32_t shown_count)
{
    char *partial = fxt_parts_line(reader_parts(firefox->reader));
    fputs("{\"meta\":{", out);
    if (partial != NULL) fputs("\"partial\":", out), print_json(out, text_of(partial)), putc(',', out);
    fprintf(out,
            "\"interval\":1,\"startTime\":0,\"processType\":0,\"stackwalk\":1,\"version\":31,"
            "\"preprocessedProfileVersion\":%d,\"product\":",
            FORMAT_VERSION);
    char *product = xformat("%s%s", partial != NULL ? "(partial) " : "",
                            firefox->ruby == STRING_NONE ? "vm-trace" : pool_string(firefox->pool, firefox->ruby).ptr);
    print_json(out, text_of(product));
    free(product);
    free(partial);
    fputs(",\"importedFrom\":\"vm-trace\",\"arguments\":", out);
    print_json(out, pool_string(firefox->pool, firefox->command));
    fputs(",\"symbolicated\":true,\"symbolicationNotSupported\":true,\"usesOnlyOneStackType\":true,"
          "\"sourceCodeIsNotOnSearchfox\":true,\"keepProfileThreadOrder\":true,\"extensions\":{\"baseURL\":[],"
          "\"id\":[],\"name\":[],\"length\":0},\n\"initialVisibleThreads\":[", out);
    for (uint32_t i = 0; i < shown_count && i < VISIBLE_THREADS; i++) fprintf(out, "%s%" PRIu32, i > 0 ? "," : "", i);
    fprintf(out, "],\"initialSelectedThreads\":[%s],\n\"categories\":[", shown_count > 0 ? "0" : "");
    for (unsigned i = 0; i < FIREFOX_CATEGORIES; i++) {
        fprintf(out, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}", i > 0 ? "," : "",
                categories[i].name, categories[i].color);
    }
    fputs("],\n\"markerSchema\":[{\"name\":\"" WAITING_TYPE "\",\"display\":[\"marker-chart\",\"marker-table\","
          "\"timeline-overview\"],\"fields\":[]}", out);
    for (uint32_t i = 0; i < firefox->schemas.count; i++) print_schema(out, firefox, i);
    fputs("]},\n\"libs\":[],\n\"threads\":[", out);
}

/* --- all ------------------------------------------------------------------------------------------- */

static void
print_profile(FILE *out, struct firefox_profile *firefox)
{
    uint32_t count;
    struct shown *shown = list_threads(firefox, &count);
    print_meta(out, firefox, count);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", out);
        print_thread(out, firefox, &shown[i]);
    }
    fputs("],\n", out);
    print_counters(out, firefox, shown, count);
    firefox_print_shared(out, &firefox->stacks);
    fputs("}\n", out);
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
