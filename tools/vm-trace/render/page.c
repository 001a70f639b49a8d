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
static const char flame_script[] =
#include "flame.js.inc"
    ;
static const char threads_script[] =
#include "threads.js.inc"
    ;
static const char cost_script[] =
#include "cost.js.inc"
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

static void
print_bin_head(struct page *page, const char *name, const struct time_histogram *histogram)
{
    bool any = histogram->count > 0;
    fprintf(page->out, ",\n\"%s\":{\"width_ns\":%" PRIu64 ",\"start_ns\":%" PRId64 ",\"count\":%d", name,
            any ? UINT64_C(1) << histogram->shift : 1,
            any ? page_time(page, (int64_t)((uint64_t)histogram->first << histogram->shift)) : 0,
            any ? (int)(histogram->last - histogram->first + 1) : 0);
}

/* Prints the cells of one row, from *cell on: [bin,count,bin,count,...] */
static void
print_cells(struct page *page, const struct time_histogram *histogram, uint32_t row, uint32_t *cell)
{
    putc('[', page->out);
    const char *separator = "";
    for (; *cell < histogram->count && histogram->cells[*cell].row == row; ++*cell, separator = ",") {
        fprintf(page->out, "%s%" PRIu32 ",%" PRIu64, separator, histogram->cells[*cell].bin,
                histogram->cells[*cell].count);
    }
    putc(']', page->out);
}

static void
print_rows(struct page *page)
{
    const struct page_data *data = page->data;
    print_bin_head(page, "bins", &data->exits_over_time);
    fputs("},\n\"rows\":[", page->out);
    uint32_t cell = 0, lost_cell = 0;
    for (uint32_t i = 0; i < data->row_count; i++) {
        const struct page_row *row = &data->rows[i];
        fprintf(page->out,
                "%s\n[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRId64
                ",%" PRId64 ",",
                i > 0 ? "," : "", page_string(page, row->category), page_string(page, row->reason),
                page_string(page, row->frame), page_string(page, row->insn), page_string(page, row->outcome),
                row->places, row->count, page_time(page, row->first_ns), page_time(page, row->last_ns));
        print_cells(page, &data->exits_over_time, i, &cell);
        if (data->timed) {
            fprintf(page->out, ",%" PRIu64 ",%" PRIu64 ",", row->lost_ns, row->lost_max_ns);
            print_cells(page, &data->lost_over_time, i, &lost_cell);
        }
        putc(']', page->out);
    }
    putc(']', page->out);
    if (!data->timed) return;
    print_bin_head(page, "lost_bins", &data->lost_over_time);
    putc('}', page->out);
}

static void
print_compiling(struct page *page)
{
    const struct page_data *data = page->data;
    uint32_t cell = 0;
    print_bin_head(page, "compiling", &data->compiling);
    fprintf(page->out, ",\"compiles\":%" PRIu64 ",\"compile_ns\":%" PRIu64 ",\"invalidations\":%" PRIu64 ",\"ns\":",
            data->compiles, data->compile_ns, data->invalidations);
    print_cells(page, &data->compiling, 0, &cell);
    fputs(",\"invalidated\":", page->out);
    print_cells(page, &data->compiling, 1, &cell);
    putc('}', page->out);
}

/* --- stacks ------------------------------------------------------------------------------------ */

struct node_total {
    uint32_t node;
    uint64_t total;
};

static int
by_total(const void *left, const void *right)
{
    const struct node_total *a = left, *b = right;
    if (a->total != b->total) return a->total > b->total ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

/* Prints the nodes with the largest totals, each after its parent: [parent,text,total,is a
 * reason]. A parent has a lower number and at least the same total, so it is included, too. */
static void
print_stacks(struct page *page)
{
    const struct profile *profile = &page->data->profile;
    uint32_t count = profile->node_count;
    struct node_total *totals = xcalloc(count, sizeof *totals);
    for (uint32_t i = count; i-- > 0;) {
        totals[i].node = i;
        totals[i].total += profile->nodes[i].count;
        if (i > 0) totals[profile->nodes[i].parent].total += totals[i].total;
    }
    qsort(totals, count, sizeof *totals, by_total);

    uint64_t *total_of = xcalloc(count, sizeof *total_of);
    for (uint32_t i = 0; i < count && i <= PAGE_NODES_SHOWN; i++) total_of[totals[i].node] = totals[i].total;
    free(totals);
    uint32_t *shown_as = xcalloc(count, sizeof *shown_as);
    uint32_t shown = 0;
    fprintf(page->out, ",\n\"stacks_left_out\":%" PRIu32 ",\n\"stacks\":[",
            count > PAGE_NODES_SHOWN + 1 ? count - PAGE_NODES_SHOWN - 1 : 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        if (i > 0 && total_of[i] == 0) continue;
        fprintf(page->out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%d]", shown > 0 ? "," : "", shown_as[node->parent],
                page_string(page, node->text), total_of[i], node->reason);
        shown_as[i] = shown++;
    }
    putc(']', page->out);
    free(shown_as);
    free(total_of);
}

/* --- head ---------------------------------------------------------------------------------------- */

static void
print_head(struct page *page, int file_count, char **files)
{
    struct page_data *data = page->data;
    FILE *out = page->out;
    fputs("{\"files\":[", out);
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
    fputs("],\n\"threads\":[", out);
    uint32_t threads = 0;
    for (uint32_t i = 0; i < data->threads.count; i++) {
        const struct thread *thread = &data->threads.list[i];
        if (thread->events == 0) continue; /* a native thread whose events all belong to Ruby threads */
        if (threads++ >= PAGE_ROWS_SHOWN) continue;
        fprintf(out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 "]", threads > 1 ? "," : "", thread->pid,
                thread->tid, page_string(page, thread->name), thread->events);
    }
    fprintf(out, "],\"thread_count\":%" PRIu32, threads);
}

void
print_page(FILE *out, struct page_data *data, struct page_sources *sources, int file_count, char **files)
{
    struct page page = {.out = out, .data = data};
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
    print_stacks(&page);
    print_page_advice(&page);
    print_page_timeline(&page);
    print_page_cost(&page);
    print_page_calls(&page);
    if (sources != NULL) print_page_sources(&page, sources);
    print_strings(&page);
    fputs("}\n</script>\n", out);
    if (data->calls.count > 0) {
        fputs("<script type=\"text/plain\" id=\"calls-data\">", out);
        print_page_call_slices(&page);
        fputs("</script>\n", out);
    }
    fputs("<script>\n", out);
    fputs(window_script, out);
    fputs(flame_script, out);
    fputs(threads_script, out);
    fputs(cost_script, out);
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
}
