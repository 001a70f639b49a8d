/* page_file.c - see page_file.h */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/annotated_source.h"
#include "topics/report_data.h"
#include "base/output_file.h"
#include "cli/folders.h"
#include "cli/page_file.h"
#include "page/page.h"
#include "page/page_sources.h"

static void
print_with_sources(FILE *out, struct page_data *data, struct report *report, const char *below, int file_count, char **files)
{
    struct page_sources sources = {.below = below, .traced = traces_written(file_count, files)};
    sources.reason_of = page_data_annotate(data, &sources.annotation);
    print_page(out, data, report, &sources, file_count, files);
    uint32_t count = sources.annotation.files.count;
    if (sources.shown < count) {
        fprintf(stderr,
                "vm-trace: html: the page has %" PRIu32 " of %" PRIu32 " sources, and says why not the others\n",
                sources.shown, count);
    }
    annotation_free(&sources.annotation);
    free(sources.reason_of);
}

static enum status
read_before(struct page_data *before, const char *against, uint64_t max_faults)
{
    int trace_count;
    char **traces, *argument = (char *)against;
    if (!folders_expand(1, &argument, &trace_count, &traces)) return STATUS_CANNOT_READ;
    enum status status = STATUS_FINE;
    for (int i = 0; i < trace_count; i++) status = worse(status, page_data_read(before, traces[i], max_faults));
    folder_traces_free(traces, trace_count);
    page_data_finish(before);
    return status;
}

/* What the head of the page has, with `endpoints`. The files are read again, but their faults are not printed again.
 * Standard input cannot be: then the page has no such head. */
static struct report *
read_report(const struct page_options *page, const struct options *options, struct endpoints *endpoints, int file_count,
            char **files)
{
    struct report *report = report_new_chosen(options->memory_bytes, &page->choice);
    endpoints_init(endpoints, report->pool);
    bool requests = report_why_no_requests(&page->choice, file_count, files) == NULL;
    if (requests) report->endpoints = endpoints;
    report->filter.thread = NULL; /* its records are chosen already, and name no other thread */
    report->silent = true;
    bool again = true;
    for (int i = 0; i < file_count; i++) again &= strcmp(files[i], "-") != 0;
    if (again) report_read_all(report, options->max_faults, file_count, files);
    if (requests) report_read_requests(report, options->memory_bytes, file_count, files);
    return report;
}

enum status
page_file_write(const struct page_options *page, const struct options *options, int file_count, char **files)
{
    struct output output;
    const char *folder = page->below == NULL ? "." : page->below;
    char *below = page->with_sources ? realpath(folder, NULL) : NULL;
    if (page->with_sources && below == NULL) {
        file_message(folder, strerror(errno));
        return STATUS_USAGE;
    }
    if (!output_open(&output, OUTPUT_BINARY, page->out_path, file_count, files)) {
        free(below);
        return STATUS_CANNOT_READ;
    }
    struct page_data data;
    page_data_init(&data, options->memory_bytes, &page->choice);
    data.calls_shown_max = page->max_calls;
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++) status = worse(status, page_data_read(&data, files[i], options->max_faults));
    status = worse(status, trace_filter_status(&data.filter, "html"));
    struct page_data before;
    bool compared = page->against != NULL && status < STATUS_USAGE;
    if (compared) page_data_init(&before, options->memory_bytes, &page->choice);
    if (compared) status = worse(status, read_before(&before, page->against, options->max_faults));
    if (status < STATUS_USAGE) {
        page_data_finish(&data);
        if (compared) page_data_compare(&data, &before);
        struct endpoints endpoints;
        struct report *report = read_report(page, options, &endpoints, file_count, files);
        if (page->with_sources) print_with_sources(output.file, &data, report, below, file_count, files);
        else print_page(output.file, &data, report, NULL, file_count, files);
        report_free(report);
        endpoints_free(&endpoints);
    }
    if (compared) page_data_free(&before);
    page_data_free(&data);
    free(below);
    return output_close(&output, status);
}
