/* page_sources.c - see page_sources.h. page/sources.js describes the JSON. */
#include <stdlib.h>
#include <string.h>

#include "source/annotated_source.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "page/page_sources.h"

static void
print_cost(struct json *json, const struct annotated_cost *cost)
{
    json_numbers(json, cost->lost_ns, cost->exits, cost->fallbacks);
}

/* number_of: of each reason, by its number in the annotation; the next one is of its lost time. */
static void
print_reasons(struct page *page, const struct annotation *annotation, const struct annotated_line *line,
              uint32_t *number_of)
{
    struct json *json = &page->json;
    uint32_t count, first = annotation_reasons(annotation, line->path, line->line, &count);
    json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        const struct annotated_reason *reason = row_table_at(&annotation->reasons, first + i);
        json_array(json);
        json_numbers(json, page_string(page, reason->reason), page_string(page, reason->insn));
        print_cost(json, &reason->cost);
        number_of[reason->number] = page_bins_number(&page->bins);
        page_bins_number(&page->bins);
        json_unsigned(json, number_of[reason->number]);
        json_end(json);
    }
    json_end(json);
}

static void
add_numbers(struct page *page, const struct page_sources *sources, const uint32_t *number_of)
{
    for (uint32_t i = 0; i < page->data->exits.gathered.count; i++) {
        uint32_t number = number_of[sources->reason_of[i]];
        if (number == 0) continue;
        page_bins_add(&page->bins, number, false, (struct series_key){.subject = SERIES_ROW, .a = i});
        page_bins_add(&page->bins, number + 1, false, (struct series_key){.subject = SERIES_ROW_LOST, .a = i});
    }
}

static void
print_costly_lines(struct page *page, const struct annotation *annotation, uint32_t path, uint32_t *number_of)
{
    struct json *json = &page->json;
    uint32_t count, first = annotation_lines(annotation, path, &count);
    json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        const struct annotated_line *line = row_table_at(&annotation->lines, first + i);
        json_array(json);
        json_unsigned(json, line->line);
        print_cost(json, &line->cost);
        print_reasons(page, annotation, line, number_of);
        json_end(json);
    }
    json_end(json);
}

static size_t
bytes_of(const struct source_file *source)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < source->line_count; i++) bytes += source->lines[i].len + 1;
    return bytes;
}

static void
print_text(struct page *page, const struct source_file *source)
{
    json_array(&page->json);
    for (uint32_t i = 0; i < source->line_count; i++) {
        struct fxt_string wide = source_line_wide(source->lines[i]);
        page_text(page, wide);
        free((char *)wide.ptr);
    }
    json_end(&page->json);
}

/* Whether a file is there, and not in the folder: a trace may name any file that can be read. */
static bool
outside_p(const char *path, const char *below)
{
    size_t len = strlen(below);
    char *file = realpath(path, NULL);
    bool root = len == 1, inside = file == NULL || root || (strncmp(file, below, len) == 0 && file[len] == '/');
    free(file);
    return !inside;
}

void
print_page_sources(struct page *page, struct page_sources *sources)
{
    const struct annotation *annotation = &sources->annotation;
    struct json *json = &page->json;
    size_t bytes = 0;
    uint32_t listed = 0, lines = 0, *number_of = xcalloc((size_t)annotation->reasons.count + 1, sizeof *number_of);
    json_array(json_key(json_line(json), "sources"));
    for (; listed < annotation->files.count && listed < PAGE_ROWS_SHOWN; listed++) {
        const struct annotated_file *file = row_table_at(&annotation->files, listed);
        const char *path = file->path == STRING_NONE ? "" : pool_string(page->data->pool, file->path).ptr;
        struct source_file source = {0};
        if (file->line_count > PAGE_SOURCE_LINES_MAX - lines) break;
        lines += file->line_count;
        const char *note = outside_p(path, sources->below) ?
                               "not in the folder of the sources: --below=FOLDER says which that is" :
                               annotated_source_read(annotation, listed, path, sources->traced, &source);
        size_t source_bytes = bytes_of(&source);
        if (source_bytes > PAGE_SOURCE_BYTES_MAX - bytes) {
            note = "left out: the page has at most 4 MiB of sources";
            source_file_free(&source);
        }
        else {
            bytes += source_bytes;
        }
        sources->shown += source.line_count > 0;
        json_array(json_line(json));
        json_unsigned(json, page_string(page, file->path));
        page_text(page, text_of(note != NULL ? note : ""));
        print_cost(json, &file->cost);
        print_text(page, &source);
        print_costly_lines(page, annotation, file->path, number_of);
        json_end(json);
        source_file_free(&source);
    }
    json_end(json);
    json_unsigned(json_key(json_line(json), "sources_left_out"), annotation->files.count - listed);
    add_numbers(page, sources, number_of);
    free(number_of);
}
