/* page_sources.c - see page_sources.h. page/sources.js describes the JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/annotated_source.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "render/page_sources.h"

static void
print_cost(FILE *out, const struct annotated_cost *cost)
{
    fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, cost->lost_ns, cost->exits, cost->fallbacks);
}

/* number_of: of each reason, by its number in the annotation; the next one is of its lost time. */
static void
print_reasons(struct page *page, const struct annotation *annotation, const struct annotated_line *line,
              uint32_t *number_of)
{
    uint32_t count, first = annotation_reasons(annotation, line->path, line->line, &count);
    putc('[', page->out);
    for (uint32_t i = 0; i < count; i++) {
        const struct annotated_reason *reason = row_table_at(&annotation->reasons, first + i);
        fprintf(page->out, "%s[%" PRIu32 ",%" PRIu32 ",", i > 0 ? "," : "", page_string(page, reason->reason),
                page_string(page, reason->insn));
        print_cost(page->out, &reason->cost);
        number_of[reason->number] = page_bins_number(&page->bins);
        page_bins_number(&page->bins);
        fprintf(page->out, ",%" PRIu32 "]", number_of[reason->number]);
    }
    putc(']', page->out);
}

static void
add_numbers(struct page *page, const struct page_sources *sources, const uint32_t *number_of)
{
    for (uint32_t i = 0; i < page->data->gathered.count; i++) {
        uint32_t number = number_of[sources->reason_of[i]];
        if (number == 0) continue;
        page_bins_add(&page->bins, number, false, (struct series_key){.subject = SERIES_ROW, .a = i});
        page_bins_add(&page->bins, number + 1, false, (struct series_key){.subject = SERIES_ROW_LOST, .a = i});
    }
}

static void
print_costly_lines(struct page *page, const struct annotation *annotation, uint32_t path, uint32_t *number_of)
{
    uint32_t count, first = annotation_lines(annotation, path, &count);
    putc('[', page->out);
    for (uint32_t i = 0; i < count; i++) {
        const struct annotated_line *line = row_table_at(&annotation->lines, first + i);
        fprintf(page->out, "%s[%" PRIu32 ",", i > 0 ? "," : "", line->line);
        print_cost(page->out, &line->cost);
        putc(',', page->out);
        print_reasons(page, annotation, line, number_of);
        putc(']', page->out);
    }
    putc(']', page->out);
}

static size_t
bytes_of(const struct source_file *source)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < source->line_count; i++) bytes += source->lines[i].len + 1;
    return bytes;
}

static void
print_text(FILE *out, const struct source_file *source)
{
    putc('[', out);
    for (uint32_t i = 0; i < source->line_count; i++) {
        struct fxt_string wide = source_line_wide(source->lines[i]);
        if (i > 0) putc(',', out);
        page_text(out, wide);
        free((char *)wide.ptr);
    }
    putc(']', out);
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
    size_t bytes = 0;
    uint32_t listed = 0, lines = 0, *number_of = xcalloc((size_t)annotation->reasons.count + 1, sizeof *number_of);
    fputs(",\n\"sources\":[", page->out);
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
        fprintf(page->out, "%s\n[%" PRIu32 ",", listed > 0 ? "," : "", page_string(page, file->path));
        page_text(page->out, text_of(note != NULL ? note : ""));
        putc(',', page->out);
        print_cost(page->out, &file->cost);
        putc(',', page->out);
        print_text(page->out, &source);
        putc(',', page->out);
        print_costly_lines(page, annotation, file->path, number_of);
        putc(']', page->out);
        source_file_free(&source);
    }
    fprintf(page->out, "],\n\"sources_left_out\":%" PRIu32, annotation->files.count - listed);
    add_numbers(page, sources, number_of);
    free(number_of);
}
