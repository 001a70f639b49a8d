/* page.c - writes the page of `vm-trace html`: one file with the sums of the traces as JSON.
 *
 * The Makefile turns body.html, style.css and the scripts of page/parts/ into C strings. The
 * scripts describe the JSON. Text of a trace reaches the page only through its writer.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "page/page.h"
#include "page/page_advice.h"
#include "page/page_calls.h"
#include "page/page_code.h"
#include "page/page_cost.h"
#include "page/page_first.h"
#include "page/page_kernel.h"
#include "page/page_nodes.h"
#include "page/page_samples.h"
#include "page/page_sources.h"
#include "page/page_timeline.h"

static const char body[] =
#include "body.html.inc"
    ;
static const char style[] =
#include "style.css.inc"
    ;
static const char window_script[] =
#include "window.js.inc"
    ;
static const char packed_script[] =
#include "packed.js.inc"
    ;
static const char bins_script[] =
#include "bins.js.inc"
    ;
static const char focus_script[] =
#include "focus.js.inc"
    ;
static const char helpers_script[] =
#include "helpers.js.inc"
    ;
static const char head_script[] =
#include "head.js.inc"
    ;
static const char first_script[] =
#include "first.js.inc"
    ;
static const char search_script[] =
#include "search.js.inc"
    ;
static const char tabs_script[] =
#include "tabs.js.inc"
    ;
static const char flame_trees_script[] =
#include "flame_trees.js.inc"
    ;
static const char flame_script[] =
#include "flame.js.inc"
    ;
static const char link_script[] =
#include "link.js.inc"
    ;
static const char threads_script[] =
#include "threads.js.inc"
    ;
static const char cost_script[] =
#include "cost.js.inc"
    ;
static const char lists_script[] =
#include "lists.js.inc"
    ;
static const char kernel_script[] =
#include "kernel.js.inc"
    ;
static const char samples_script[] =
#include "samples.js.inc"
    ;
static const char sources_script[] =
#include "sources.js.inc"
    ;
static const char code_script[] =
#include "code.js.inc"
    ;
static const char call_slices_script[] =
#include "call_slices.js.inc"
    ;
static const char lanes_script[] =
#include "lanes.js.inc"
    ;
static const char call_sums_script[] =
#include "call_sums.js.inc"
    ;
static const char calls_script[] =
#include "calls.js.inc"
    ;
static const char script[] =
#include "script.js.inc"
    ;

static void
print_strings(struct page *page)
{
    json_array(json_key(json_line(&page->json), "strings"));
    for (uint32_t i = 0; i < page->string_count; i++) page_text(page, pool_string(page->data->pool, page->strings[i]));
    json_end(&page->json);
}

/* --- exits ----------------------------------------------------------------------------------- */

/* Rows that are not shown are summed up in one that is. */
static void
add_numbers_of_rows(struct page *page, uint32_t first)
{
    const struct page_data *data = page->data;
    for (uint32_t i = 0; i < data->exits.gathered.count; i++) {
        uint32_t number = first + 3 * data->exits.shown_in[i];
        if (data->exits.shown_in[i] == ROW_NONE) continue;
        page_bins_add(&page->bins, number, false, (struct series_key){.subject = SERIES_ROW, .a = i});
        page_bins_add(&page->bins, number + 1, false, (struct series_key){.subject = SERIES_ROW_LOST, .a = i});
        page_bins_add(&page->bins, number + 2, false,
                      (struct series_key){.subject = SERIES_ROW_LOST, .measure = SERIES_LONGEST, .a = i});
    }
}

static void
print_rows(struct page *page)
{
    const struct page_data *data = page->data;
    struct json *json = &page->json;
    json_array(json_key(json_line(json), "rows"));
    uint32_t first = page->bins.count + 1;
    page->bins.count += 3 * data->exits.row_count;
    for (uint32_t i = 0; i < data->exits.row_count; i++) {
        const struct page_row *row = &data->exits.rows[i];
        json_array(json_line(json));
        json_numbers(json, page_string(page, row->category), page_string(page, row->reason),
                     page_string(page, row->frame), page_string(page, row->insn), page_string(page, row->outcome),
                     row->places, row->count);
        json_integer(json, page_time(page, row->first_ns));
        json_integer(json, page_time(page, row->last_ns));
        json_unsigned(json, first + 3 * i);
        if (data->timed) json_numbers(json, row->lost_ns, row->lost_max_ns);
        json_end(json);
    }
    json_end(json);
    add_numbers_of_rows(page, first);
}

static void
print_compiling(struct page *page)
{
    const struct page_data *data = page->data;
    struct json *json = &page->json;
    json_object(json_key(json_line(json), "compiling"));
    json_counts(json, {"compiles", data->compiles}, {"compile_ns", data->compile_ns},
                {"invalidations", data->invalidations},
                {"ns", page_bins_of(&page->bins, (struct series_key){.subject = SERIES_COMPILING})},
                {"invalidated", page_bins_of(&page->bins, (struct series_key){.subject = SERIES_INVALIDATION})});
    json_end(json);
}

/* --- stacks ------------------------------------------------------------------------------------ */

/* Prints the nodes with the largest totals, each after its parent: [parent,text,total,is a reason,number of what ended
 * there]. What ended at a node that is not shown counts for the node above it. */
static void
print_stacks(struct page *page, const struct profile *profile, const char *name, bool before)
{
    struct json *json = &page->json;
    uint32_t count = profile->node_count, left_out, shown = 0;
    uint64_t *totals = xcalloc(count, sizeof *totals);
    for (uint32_t i = count; i-- > 0;) {
        totals[i] += profile->nodes[i].count;
        if (i > 0) totals[profile->nodes[i].parent] += totals[i];
    }
    bool *chosen = page_nodes_shown(totals, count, &left_out);
    uint32_t *shown_as = xcalloc(count, sizeof *shown_as), first = page->bins.count + 1;
    page_begin_nodes(page, name, left_out);
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        shown_as[i] = chosen[i] ? shown++ : shown_as[node->parent];
        page_bins_add(&page->bins, first + shown_as[i], before, (struct series_key){.subject = SERIES_STACK, .a = i});
        if (!chosen[i]) continue;
        json_tuple(json, shown_as[node->parent], page_string(page, node->text), totals[i], node->reason,
                   first + shown_as[i]);
    }
    page->bins.count += shown;
    json_end(json);
    free(shown_as);
    free(chosen);
    free(totals);
}

/* --- head ---------------------------------------------------------------------------------------- */

static const char *
shown_name(const char *file)
{
    return strcmp(file, "-") == 0 ? "standard input" : file;
}

/* Where a process was recorded, if others have its pid: host and file. */
static void
print_place(struct page *page, const struct track_process *process, const char *file, bool shares_file)
{
    struct fxt_string host = pool_string(page->data->pool, process->host);
    char *text = xformat("%s%s%s", host.ptr, host.len > 0 ? ", " : "", shown_name(file));
    char *longer = shares_file ? xformat("%s, recording %" PRIu32, text, process->recording) : NULL;
    page_text(page, text_of(longer != NULL ? longer : text));
    free(longer);
    free(text);
}

static void
print_processes(struct page *page, char **files)
{
    const struct thread_tracks *tracks = &page->data->over_time.tracks;
    struct json *json = &page->json;
    struct map of_pid = {0}, of_file = {0}; /* -> how many */
    for (uint32_t i = 0; i < tracks->processes.count; i++) {
        const struct track_process *process = track_process(tracks, i);
        uint64_t keys[] = {process->pid, (uint64_t)process->pid << 32 | process->first_file};
        struct map *maps[] = {&of_pid, &of_file};
        for (unsigned k = 0; k < 2; k++) {
            uint32_t known = map_get(maps[k], keys[k]);
            map_set(maps[k], keys[k], known == MAP_NONE ? 1 : known + 1);
        }
    }
    json_array(json_key(json_line(json), "processes"));
    for (uint32_t i = 0; i < tracks->processes.count; i++) {
        const struct track_process *process = track_process(tracks, i);
        bool shares_file = map_get(&of_file, (uint64_t)process->pid << 32 | process->first_file) > 1;
        json_array(json);
        json_unsigned(json, process->pid);
        if (map_get(&of_pid, process->pid) > 1) print_place(page, process, files[process->first_file], shares_file);
        else json_c_text(json, "");
        json_end(json);
    }
    json_end(json);
    map_free(&of_pid);
    map_free(&of_file);
}

static void
print_partial(struct page *page)
{
    struct page_data *data = page->data;
    const struct fxt_parts *parts[2] = {reader_parts(data->reader),
                                        data->before != NULL ? reader_parts(data->before->reader) : NULL};
    json_array(json_key(json_line(&page->json), "partial"));
    if (parts[0]->chosen != NULL) page_text(page, text_of(parts[0]->chosen));
    for (unsigned side = 0; side < 2; side++) {
        for (uint32_t i = 0; parts[side] != NULL && i < parts[side]->count; i++) {
            const struct fxt_part *part = &parts[side]->list[i];
            char *text = xformat("%s: %s", shown_name(part->path), part->text);
            page_text(page, text_of(text));
            free(text);
        }
    }
    json_end(&page->json);
}

static void
print_head(struct page *page, int file_count, char **files)
{
    struct page_data *data = page->data;
    struct json *json = &page->json;
    json_bool(json_key(json, "stopped"), data->stopped);
    json_bool(json_key(json, "cut"), data->cut);
    print_partial(page);
    json_array(json_key(json_line(json), "files"));
    for (int i = 0; i < file_count; i++) page_text(page, text_of(shown_name(files[i])));
    json_end(json);
    bool any = data->first_ns <= data->last_ns;
    json_counts(json_line(json), {"events", data->events}, {"exits", data->exits.exits},
                {"fallbacks", data->exits.fallbacks}, {"recorded", data->exits.recorded}, {"lost", data->lost},
                {"exact_exits", data->exact_exits});
    json_bool(json_key(json, "ours"), data->has_settings);
    json_bool(json_key(json, "summarized"), data->summarized);
    json_integer(json_key(json, "first_ns"), any ? data->first_ns : 0);
    json_integer(json_key(json, "span_ns"), any ? data->last_ns - data->first_ns : 0);
    json_array(json_key(json_line(json), "settings"));
    for (unsigned i = 0; i < data->setting_count; i++)
        json_tuple(json, page_string(page, data->settings[i].name), page_string(page, data->settings[i].value));
    json_end(json);
    json_array(json_key(json_line(json), "losses"));
    for (unsigned i = 0; i < data->loss_count; i++)
        json_tuple(json, page_string(page, data->losses[i].reason), data->losses[i].events);
    json_end(json);
    print_processes(page, files);
    json_array(json_key(json_line(json), "threads"));
    uint32_t threads = 0;
    for (uint32_t i = 0; i < data->threads.count; i++) {
        const struct thread *thread = &data->threads.list[i];
        if (thread->events == 0) continue; /* a native thread whose events all belong to Ruby threads */
        if (threads++ >= PAGE_ROWS_SHOWN) continue;
        json_tuple(json, thread->process, thread->tid, page_string(page, thread->name), thread->events);
    }
    json_end(json);
    json_unsigned(json_key(json, "thread_count"), threads);
}

void
print_page(FILE *out, struct page_data *data, struct report *report, struct page_sources *sources, int file_count,
           char **files)
{
    const struct page_data *before = data->before;
    struct page page = {.json = json_to(out), .data = data, .bins = {.series = &data->series}};
    page.json.in_html = true;
    page.bins.first_ns = data->first_ns, page.bins.last_ns = data->last_ns;
    if (before != NULL) page.bins.before = &data->before->series, page.bins.before_first_ns = before->first_ns;
    page.number_of = xcalloc(pool_size(data->pool), sizeof *page.number_of);
    page.strings = xcalloc(pool_size(data->pool), sizeof *page.strings);
    page.method_of = xcalloc(pool_size(data->pool), sizeof *page.method_of);
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "script-src 'unsafe-inline'\">\n<title>vm-trace</title>\n<style>\n", out);
    fputs(style, out);
    fputs("</style>\n</head>\n<body>\n", out);
    fputs(body, out);
    fputs("<script type=\"application/json\" id=\"data\">", out);
    json_object(&page.json);
    print_head(&page, file_count, files);
    print_page_first(&page, report);
    print_rows(&page);
    print_compiling(&page);
    print_stacks(&page, &data->profile, "stacks", false);
    if (data->before != NULL) print_stacks(&page, &data->before->profile, "before_stacks", true);
    print_page_advice(&page);
    print_page_timeline(&page);
    print_page_cost(&page);
    print_page_calls(&page);
    print_page_kernel(&page);
    print_page_samples(&page);
    print_page_code(&page);
    if (sources != NULL) print_page_sources(&page, sources);
    print_page_bins(&page.json, &page.bins);
    print_strings(&page);
    json_end(&page.json);
    fputs("\n</script>\n", out);
    if (data->calls.count > 0) {
        fputs("<script type=\"text/plain\" id=\"calls-data\">", out);
        print_page_call_slices(&page);
        fputs("</script>\n", out);
    }
    fputs("<script>\n", out);
    fputs(helpers_script, out);
    fputs(head_script, out);
    fputs(first_script, out);
    fputs(window_script, out);
    fputs(packed_script, out);
    fputs(bins_script, out);
    fputs(focus_script, out);
    fputs(search_script, out);
    fputs(tabs_script, out);
    fputs(flame_trees_script, out);
    fputs(flame_script, out);
    fputs(link_script, out);
    fputs(threads_script, out);
    fputs(lists_script, out);
    fputs(cost_script, out);
    fputs(kernel_script, out);
    fputs(samples_script, out);
    fputs(sources_script, out);
    fputs(code_script, out);
    fputs(call_slices_script, out);
    fputs(lanes_script, out);
    fputs(call_sums_script, out);
    fputs(calls_script, out);
    fputs(script, out);
    fputs("</script>\n</body>\n</html>\n", out);
    free(page.number_of);
    free(page.strings);
    free(page.method_of);
    page_bins_free(&page.bins);
}
