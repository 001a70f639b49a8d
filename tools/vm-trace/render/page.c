/* page.c - writes the page of `vm-trace html`: one file with the sums of the traces as JSON.
 *
 * The Makefile turns body.html, style.css and the scripts of render/page/ into C strings. The
 * scripts describe the JSON. Text of a trace reaches the page only through page_text.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "render/page.h"
#include "render/page_advice.h"
#include "render/page_calls.h"
#include "render/page_cost.h"
#include "render/page_kernel.h"
#include "render/page_nodes.h"
#include "render/page_samples.h"
#include "render/page_sources.h"
#include "render/page_timeline.h"

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
static const char search_script[] =
#include "search.js.inc"
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
print_c_text(FILE *out, const char *text)
{
    page_text(out, text_of(text));
}

static void
print_strings(struct page *page)
{
    fputs(",\n\"strings\":[", page->out);
    for (uint32_t i = 0; i < page->string_count; i++) {
        if (i > 0) putc(',', page->out);
        page_text(page->out, pool_string(page->data->pool, page->strings[i]));
    }
    putc(']', page->out);
}

/* --- exits ----------------------------------------------------------------------------------- */

/* Rows that are not shown are summed up in one that is. */
static void
add_numbers_of_rows(struct page *page, uint32_t first)
{
    const struct page_data *data = page->data;
    for (uint32_t i = 0; i < data->gathered.count; i++) {
        uint32_t number = first + 3 * data->shown_in[i];
        if (data->shown_in[i] == ROW_NONE) continue;
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
    fputs(",\n\"rows\":[", page->out);
    uint32_t first = page->bins.count + 1;
    page->bins.count += 3 * data->row_count;
    for (uint32_t i = 0; i < data->row_count; i++) {
        const struct page_row *row = &data->rows[i];
        fprintf(page->out,
                "%s\n[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRId64
                ",%" PRId64 ",%" PRIu32,
                i > 0 ? "," : "", page_string(page, row->category), page_string(page, row->reason),
                page_string(page, row->frame), page_string(page, row->insn), page_string(page, row->outcome),
                row->places, row->count, page_time(page, row->first_ns), page_time(page, row->last_ns), first + 3 * i);
        if (data->timed) fprintf(page->out, ",%" PRIu64 ",%" PRIu64, row->lost_ns, row->lost_max_ns);
        putc(']', page->out);
    }
    putc(']', page->out);
    add_numbers_of_rows(page, first);
}

static void
print_compiling(struct page *page)
{
    const struct page_data *data = page->data;
    fprintf(page->out,
            ",\n\"compiling\":{\"compiles\":%" PRIu64 ",\"compile_ns\":%" PRIu64 ",\"invalidations\":%" PRIu64
            ",\"ns\":%" PRIu32 ",\"invalidated\":%" PRIu32 "}",
            data->compiles, data->compile_ns, data->invalidations,
            page_bins_of(&page->bins, (struct series_key){.subject = SERIES_COMPILING}),
            page_bins_of(&page->bins, (struct series_key){.subject = SERIES_INVALIDATION}));
}

/* --- stacks ------------------------------------------------------------------------------------ */

/* Prints the nodes with the largest totals, each after its parent: [parent,text,total,is a reason,number of what ended
 * there]. What ended at a node that is not shown counts for the node above it. */
static void
print_stacks(struct page *page, const struct profile *profile, const char *name, bool before)
{
    uint32_t count = profile->node_count, left_out, shown = 0;
    uint64_t *totals = xcalloc(count, sizeof *totals);
    for (uint32_t i = count; i-- > 0;) {
        totals[i] += profile->nodes[i].count;
        if (i > 0) totals[profile->nodes[i].parent] += totals[i];
    }
    bool *chosen = page_nodes_shown(totals, count, &left_out);
    uint32_t *shown_as = xcalloc(count, sizeof *shown_as), first = page->bins.count + 1;
    fprintf(page->out, ",\n\"%s_left_out\":%" PRIu32 ",\n\"%s\":[", name, left_out, name);
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        shown_as[i] = chosen[i] ? shown++ : shown_as[node->parent];
        page_bins_add(&page->bins, first + shown_as[i], before, (struct series_key){.subject = SERIES_STACK, .a = i});
        if (!chosen[i]) continue;
        fprintf(page->out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%d,%" PRIu32 "]", i > 0 ? "," : "",
                shown_as[node->parent], page_string(page, node->text), totals[i], node->reason, first + shown_as[i]);
    }
    page->bins.count += shown;
    putc(']', page->out);
    free(shown_as);
    free(chosen);
    free(totals);
}

/* --- head ---------------------------------------------------------------------------------------- */

/* Where a process was recorded, if others have its pid: host and file. */
static void
print_place(struct page *page, const struct track_process *process, const char *file, bool shares_file)
{
    struct fxt_string host = pool_string(page->data->pool, process->host);
    char *text = xformat("%s%s%s", host.ptr, host.len > 0 ? ", " : "", strcmp(file, "-") == 0 ? "standard input" : file);
    char *longer = shares_file ? xformat("%s, recording %" PRIu32, text, process->recording) : NULL;
    print_c_text(page->out, longer != NULL ? longer : text);
    free(longer);
    free(text);
}

static void
print_processes(struct page *page, char **files)
{
    const struct thread_tracks *tracks = &page->data->over_time.tracks;
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
    fputs("],\n\"processes\":[", page->out);
    for (uint32_t i = 0; i < tracks->processes.count; i++) {
        const struct track_process *process = track_process(tracks, i);
        bool shares_file = map_get(&of_file, (uint64_t)process->pid << 32 | process->first_file) > 1;
        fprintf(page->out, "%s[%" PRIu32 ",", i > 0 ? "," : "", process->pid);
        if (map_get(&of_pid, process->pid) > 1) print_place(page, process, files[process->first_file], shares_file);
        else fputs("\"\"", page->out);
        putc(']', page->out);
    }
    map_free(&of_pid);
    map_free(&of_file);
}

static void
print_head(struct page *page, int file_count, char **files)
{
    struct page_data *data = page->data;
    FILE *out = page->out;
    fprintf(out, "{\"stopped\":%s,\"cut\":%s,\n\"partial\":[", data->stopped ? "true" : "false",
            data->cut ? "true" : "false");
    const struct fxt_parts *parts[2] = {reader_parts(data->reader),
                                        data->before != NULL ? reader_parts(data->before->reader) : NULL};
    unsigned shown = 0;
    if (parts[0]->chosen != NULL) print_c_text(out, parts[0]->chosen), shown++;
    for (unsigned side = 0; side < 2; side++) {
        for (uint32_t i = 0; parts[side] != NULL && i < parts[side]->count; i++, shown++) {
            const struct fxt_part *part = &parts[side]->list[i];
            char *text = xformat("%s: %s", strcmp(part->path, "-") == 0 ? "standard input" : part->path, part->text);
            if (shown > 0) putc(',', out);
            print_c_text(out, text);
            free(text);
        }
    }
    fputs("],\n\"files\":[", out);
    for (int i = 0; i < file_count; i++) {
        if (i > 0) putc(',', out);
        print_c_text(out, strcmp(files[i], "-") == 0 ? "standard input" : files[i]);
    }
    bool any = data->first_ns <= data->last_ns;
    fprintf(out,
            "],\n\"events\":%" PRIu64 ",\"exits\":%" PRIu64 ",\"fallbacks\":%" PRIu64 ",\"recorded\":%" PRIu64
            ",\"lost\":%" PRIu64 ",\"exact_exits\":%" PRIu64 ",\"ours\":%s,\"summarized\":%s,\"first_ns\":%" PRId64
            ",\"span_ns\":%" PRId64 ",\n\"settings\":[",
            data->events, data->exits, data->fallbacks, data->recorded, data->lost, data->exact_exits,
            data->has_settings ? "true" : "false", data->summarized ? "true" : "false", any ? data->first_ns : 0,
            any ? data->last_ns - data->first_ns : 0);
    for (unsigned i = 0; i < data->setting_count; i++) {
        fprintf(out, "%s[%" PRIu32 ",%" PRIu32 "]", i > 0 ? "," : "", page_string(page, data->settings[i].name),
                page_string(page, data->settings[i].value));
    }
    fputs("],\n\"losses\":[", out);
    for (unsigned i = 0; i < data->loss_count; i++) {
        fprintf(out, "%s[%" PRIu32 ",%" PRIu64 "]", i > 0 ? "," : "", page_string(page, data->losses[i].reason),
                data->losses[i].events);
    }
    print_processes(page, files);
    fputs("],\n\"threads\":[", out);
    uint32_t threads = 0;
    for (uint32_t i = 0; i < data->threads.count; i++) {
        const struct thread *thread = &data->threads.list[i];
        if (thread->events == 0) continue; /* a native thread whose events all belong to Ruby threads */
        if (threads++ >= PAGE_ROWS_SHOWN) continue;
        fprintf(out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 "]", threads > 1 ? "," : "", thread->process,
                thread->tid, page_string(page, thread->name), thread->events);
    }
    fprintf(out, "],\"thread_count\":%" PRIu32, threads);
}

void
print_page(FILE *out, struct page_data *data, struct page_sources *sources, int file_count, char **files)
{
    const struct page_data *before = data->before;
    struct page page = {.out = out, .data = data, .bins = {.series = &data->series}};
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
    print_head(&page, file_count, files);
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
    if (sources != NULL) print_page_sources(&page, sources);
    print_page_bins(out, &page.bins);
    print_strings(&page);
    fputs("}\n</script>\n", out);
    if (data->calls.count > 0) {
        fputs("<script type=\"text/plain\" id=\"calls-data\">", out);
        print_page_call_slices(&page);
        fputs("</script>\n", out);
    }
    fputs("<script>\n", out);
    fputs(helpers_script, out);
    fputs(head_script, out);
    fputs(window_script, out);
    fputs(packed_script, out);
    fputs(bins_script, out);
    fputs(focus_script, out);
    fputs(search_script, out);
    fputs(flame_trees_script, out);
    fputs(flame_script, out);
    fputs(link_script, out);
    fputs(threads_script, out);
    fputs(lists_script, out);
    fputs(cost_script, out);
    fputs(kernel_script, out);
    fputs(samples_script, out);
    fputs(sources_script, out);
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
