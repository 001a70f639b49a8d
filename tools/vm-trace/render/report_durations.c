/* report_durations.c - the tables of a report that tell how long things took. */
#include <inttypes.h>
#include <stdio.h>

#include "render/report_view.h"

static int
compare_named(const void *left, const void *right, void *context)
{
    const struct named_durations *a = left, *b = right;
    const struct pool *pool = context;
    if (a->durations.total_ns != b->durations.total_ns) return a->durations.total_ns > b->durations.total_ns ? -1 : 1;
    int order = fxt_string_compare(pool_string(pool, a->category), pool_string(pool, b->category));
    return order != 0 ? order : fxt_string_compare(pool_string(pool, a->name), pool_string(pool, b->name));
}

enum { DURATION_CELLS = 7 };

static void
put_durations(struct cell *cells, const struct durations *durations)
{
    cells[0] = cell_number(durations->count);
    cells[1] = cell_number(durations->total_ns);
    cells[2] = cell_number(durations_quantile(durations, 0.5));
    cells[3] = cell_number(durations_quantile(durations, 0.95));
    cells[4] = cell_number(durations->longest_ns);
}

/* `whole`: of all that the others are parts of, in a row before them; or NULL. */
static void
add_table(const struct view *view, const char *id, struct fxt_string title, const char *what, struct row_table *named,
          const struct durations *whole)
{
    const struct column columns[DURATION_CELLS] = {
        {"count", "count", COLUMN_COUNT},
        {"total_ns", "total", COLUMN_DURATION},
        {"median_ns", "median", COLUMN_DURATION},
        {"p95_ns", "95 %", COLUMN_DURATION},
        {"longest_ns", "longest", COLUMN_DURATION},
        {"kind", named == &view->report->durations ? "category" : NULL, COLUMN_TEXT},
        {"name", what, COLUMN_TEXT},
    };
    struct table *table = document_table(view->document, id, title, COLUMNS(columns));
    table->data = named->count == 0 && whole == NULL;
    if (whole != NULL) {
        struct cell *cells = table_row(table);
        put_durations(cells, whole);
        cells[5] = cell_text(view_name(view, STRING_COMPILE));
        cells[6] = cell_text(text_of("(whole)"));
    }
    row_table_sort(named, compare_named, view->report->pool);
    uint64_t rest_count = 0, rest_ns = 0;
    for (uint32_t i = 0; i < named->count; i++) {
        const struct named_durations *row = row_table_at(named, i);
        if (i >= view->top) {
            rest_count += row->durations.count;
            rest_ns += row->durations.total_ns;
            continue;
        }
        struct cell *cells = table_row(table);
        put_durations(cells, &row->durations);
        cells[5] = cell_text(view_name(view, row->category));
        cells[6] = cell_text(view_name(view, row->name));
    }
    if (named->count <= view->top) return;
    table->more_rows = named->count - view->top;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest_count);
    cells[1] = cell_number(rest_ns);
}

/* --- compilations ------------------------------------------------------------------------------ */

static int
compare_iseqs(const void *left, const void *right, void *context)
{
    const struct compiled_iseq *a = left, *b = right;
    const struct pool *pool = context;
    if (a->total_ns != b->total_ns) return a->total_ns > b->total_ns ? -1 : 1;
    return fxt_string_compare(pool_string(pool, a->iseq), pool_string(pool, b->iseq));
}

/* Which methods cost compile time and code: a template that is evaluated anew each time is compiled anew each time. */
static void
add_iseqs(const struct view *view)
{
    static const struct column columns[] = {
        {"count", "count", COLUMN_COUNT},           {"total_ns", "total", COLUMN_DURATION},
        {"share", "share", COLUMN_SHARE},           {"longest_ns", "longest", COLUMN_DURATION},
        {"code_bytes", "code bytes", COLUMN_COUNT}, {"nothing", "without code", COLUMN_COUNT},
        {"iseq", "compiled", COLUMN_TEXT},
    };
    struct compilations *compilations = &view->report->compilations;
    struct row_table *iseqs = &compilations->iseqs;
    char count[NUMBER_TEXT];
    struct fxt_string title = document_text(view->document, "Compilations by ISEQ: %s",
                                            with_commas(count, compilations->whole.count));
    struct table *table = document_table(view->document, "compiled_iseqs", title, COLUMNS(columns));
    table->data = iseqs->count == 0;
    row_table_sort(iseqs, compare_iseqs, view->report->pool);
    struct compiled_iseq rest = {0};
    for (uint32_t i = 0; i < iseqs->count; i++) {
        const struct compiled_iseq *iseq = row_table_at(iseqs, i);
        if (i >= view->top) {
            rest.count += iseq->count;
            rest.total_ns += iseq->total_ns;
            rest.code_bytes += iseq->code_bytes;
            rest.without_code += iseq->without_code;
            continue;
        }
        struct cell *cells = table_row(table);
        cells[0] = cell_number(iseq->count);
        cells[1] = cell_number(iseq->total_ns);
        cells[2] = cell_share(iseq->total_ns, compilations->whole.total_ns);
        cells[3] = cell_number(iseq->longest_ns);
        cells[4] = cell_number(iseq->code_bytes);
        cells[5] = cell_number(iseq->without_code);
        cells[6] = cell_text(view_name(view, iseq->iseq));
    }
    if (iseqs->count <= view->top) return;
    table->more_rows = iseqs->count - view->top;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest.count);
    cells[1] = cell_number(rest.total_ns);
    cells[2] = cell_share(rest.total_ns, compilations->whole.total_ns);
    cells[4] = cell_number(rest.code_bytes);
    cells[5] = cell_number(rest.without_code);
}

void
view_add_compilations(const struct view *view)
{
    struct compilations *compilations = &view->report->compilations;
    struct fxt_string title = text_of("Compilations");
    if (compilations->whole.count > 0) {
        bool traced_code = false;
        for (uint32_t i = 0; i < view->report->processes.count; i++)
            traced_code |= report_process(view->report, i)->code.traced_code;
        char count[NUMBER_TEXT], iseqs[NUMBER_TEXT], time[NUMBER_TEXT], bytes[NUMBER_TEXT], nothing[80] = "";
        if (compilations->without_code > 0) snprintf(nothing, sizeof nothing, "; %" PRIu64 " without code", compilations->without_code);
        title = document_text(view->document, "Compilations: %s of %s ISEQ%s, %s in all, %s of code%s%s",
                              with_commas(count, compilations->whole.count), with_commas(iseqs, compilations->iseqs.count),
                              compilations->iseqs.count == 1 ? "" : "s", duration_text(time, compilations->whole.total_ns),
                              bytes_text(bytes, compilations->code_bytes), traced_code ? " with tracing" : "", nothing);
    }
    add_table(view, "compile_phases", title, "phase", &compilations->phases,
              compilations->whole.count > 0 ? &compilations->whole : NULL);
    add_iseqs(view);
    add_table(view, "compile_other", text_of("Other work of the compiler"), "work", &compilations->other, NULL);
}

void
view_add_durations(const struct view *view)
{
    add_table(view, "invalidations", text_of("Invalidations"), "reason", &view->report->invalidations, NULL);
    add_table(view, "durations", text_of("Durations"), "name", &view->report->durations, NULL);
}
