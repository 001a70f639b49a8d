/* duration_tables.c - the tables of a report about durations. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "topics/report_view.h"

enum { OF_SEVERAL_KINDS = 1 };

/* `whole`: the total that the others are parts of, for a first row; or NULL. */
static void
add_table(const struct view *view, const char *id, struct fxt_string title, const char *what, struct row_table *named,
          const struct durations *whole)
{
    const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, SUMMED(named_durations, durations.count)},
        {"total_ns", "total", COLUMN_DURATION, SUMMED(named_durations, durations.total_ns)},
        {"median_ns", "median", COLUMN_DURATION, QUANTILE(50, named_durations, durations)},
        {"p95_ns", "95 %", COLUMN_DURATION, QUANTILE(95, named_durations, durations)},
        {"longest_ns", "longest", COLUMN_DURATION, MEMBER(named_durations, durations.longest_ns)},
        {"kind", "category", COLUMN_TEXT, NAMED(named_durations, category), .people_if = OF_SEVERAL_KINDS},
        {"name", what, COLUMN_TEXT, NAMED(named_durations, name)},
    };
    static const char all[] = "(whole)";
    struct named_durations first = {.category = STRING_COMPILE};
    if (whole != NULL) first.name = pool_intern(view->report->pool, all, strlen(all)), first.durations = *whole;
    view_table(&(struct table_def){.view = view, .id = id, .title = title, .rows = named, COLUMNS_OF(columns),
                                   .sort = {"total_ns", "kind", "name"}, .first = whole != NULL ? &first : NULL,
                                   .given = named == &view->report->durations ? OF_SEVERAL_KINDS : 0});
}

/* --- compilations ------------------------------------------------------------------------------ */

/* Shows which methods cost compile time and code, such as a template that is compiled anew at
 * each evaluation. */
static void
add_iseqs(const struct view *view)
{
    static const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, SUMMED(compiled_iseq, count)},
        {"total_ns", "total", COLUMN_DURATION, SUMMED(compiled_iseq, total_ns)},
        {"share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("total_ns")},
        {"longest_ns", "longest", COLUMN_DURATION, MEMBER(compiled_iseq, longest_ns)},
        {"code_bytes", "code bytes", COLUMN_COUNT, SUMMED(compiled_iseq, code_bytes)},
        {"nothing", "without code", COLUMN_COUNT, SUMMED(compiled_iseq, without_code)},
        {"iseq", "compiled", COLUMN_TEXT, NAMED(compiled_iseq, iseq)},
    };
    struct compilations *compilations = &view->report->compilations;
    char count[NUMBER_TEXT];
    view_table(&(struct table_def){.view = view, .id = "compiled_iseqs", .rows = &compilations->iseqs,
                                   COLUMNS_OF(columns), .sort = {"total_ns", "iseq"},
                                   .whole = compilations->whole.total_ns,
                                   .title = document_text(view->document, "Compilations by ISEQ: %s",
                                                          with_commas(count, compilations->whole.count))});
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
        if (compilations->without_code > 0)
            snprintf(nothing, sizeof nothing, "; %" PRIu64 " without code", compilations->without_code);
        title =
            document_text(view->document, "Compilations: %s of %s ISEQ%s, %s in all, %s of code%s%s",
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
