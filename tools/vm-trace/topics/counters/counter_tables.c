/* counter_tables.c - the tables of a report about the counters of ZJIT's statistics, by method and line. */
#include "topics/report_view.h"

/* What the tables have in common. */
struct counters_view {
    const struct view *view;
    struct row_table methods, names; /* of struct method_counter */
    bool all;                        /* for people, too */
};

static void
add_names(struct counters_view *counters)
{
    static const struct table_column columns[] = {
        {"hits", "count", COLUMN_COUNT, MEMBER(method_counter, hits)},
        {"counter", "counter", COLUMN_TEXT, NAMED(method_counter, counter)},
        {"lines", "lines", COLUMN_COUNT, MEMBER(method_counter, lines)},
        {"most", "most", COLUMN_COUNT, MEMBER(method_counter, most)},
        {"method", "in method", COLUMN_TEXT, NAMED(method_counter, method)},
    };
    const struct view *view = counters->view;
    const uint64_t uncounted = view->report->counters.uncounted;
    struct fxt_string title = view_title(view, text_of("Counters of ZJIT's statistics"), uncounted, "lines");
    view_table(&(struct table_def){.view = view, .id = "counters", .title = title, .rows = &counters->names,
                                   COLUMNS_OF(columns), .no_rest = true, .data = !counters->all});
}

static bool
slow(const struct table_def *def, const void *row)
{
    return jit_counter_slow_p(pool_string(def->view->report->pool, ((const struct method_counter *)row)->counter));
}

/* Of each counter that a method has: the line with most of it. */
static void
add_methods(struct counters_view *counters, const char *id, struct fxt_string title,
            bool (*counts)(const struct table_def *def, const void *row), bool data)
{
    static const struct table_column columns[] = {
        {"hits", "count", COLUMN_COUNT, MEMBER(method_counter, hits)},
        {"counter", "counter", COLUMN_TEXT, NAMED(method_counter, counter)},
        {"method", NULL, COLUMN_TEXT, NAMED(method_counter, method)},
        {"lines", "lines", COLUMN_COUNT, MEMBER(method_counter, lines)},
        {"most", "most", COLUMN_COUNT, MEMBER(method_counter, most)},
        {"location", "at line", COLUMN_TEXT, NAMED(method_counter, location)},
    };
    view_table(&(struct table_def){.view = counters->view, .id = id, .title = title, .rows = &counters->methods,
                                   COLUMNS_OF(columns), .counts = counts, .no_rest = true, .data = data});
}

/* All lines, for programs. */
static void
add_lines(struct counters_view *counters)
{
    static const struct table_column columns[] = {
        {"hits", NULL, COLUMN_COUNT, MEMBER(counter_row, hits)},
        {"counter", NULL, COLUMN_TEXT, NAMED(counter_row, counter)},
        {"location", NULL, COLUMN_TEXT, NAMED(counter_row, location)},
    };
    view_table(&(struct table_def){.view = counters->view, .id = "counters_by_line",
                                   .title = text_of("Counters by line"), .rows = &counters->view->report->counters.rows,
                                   COLUMNS_OF(columns), .sort = {"hits", "counter", "location"},
                                   .no_rest = true, .data = true});
}

static void
add_all(const struct view *view, bool all)
{
    struct report *report = view->report;
    struct counters_view counters = {.view = view, .all = all};
    counters.methods = jit_counters_by_method(&report->counters, report->pool);
    counters.names = jit_counters_by_name(&counters.methods, report->pool);
    add_names(&counters);
    add_methods(&counters, "counters_left", text_of("What compiled code left to the VM, and exits, by method"), slow,
                false);
    add_methods(&counters, "counters_by_method", text_of("All counters by method"), NULL, !all);
    add_lines(&counters);
    row_table_free(&counters.methods);
    row_table_free(&counters.names);
}

void
view_add_counters(const struct view *view)
{
    if (view->report->recorded[TOPIC_counters]) add_all(view, false);
}

void
counters_tables(const struct view *view)
{
    if (view->report->counters.rows.count == 0)
        document_line(view->document, "counters", view_nothing(view, TOPIC_counters));
    add_all(view, true);
}
