/* event_views.c - see event_views.h. A category has one view. Of the category "trace" each event has its own. */
#ifdef HAVE_SQLITE3
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "sql/event_views.h"
#include "fxt/known_strings.h"

enum row_kind { ROW_EVENT, ROW_ALSO, ROW_ARG };
enum { STRING_ANY = STRING_NONE };

/* A row of events.def. */
struct row {
    enum row_kind kind;
    const char *what; /* the form of an event, the type of an argument */
    uint16_t name;    /* of an event its category */
    uint16_t other;   /* of an event its name */
};

static const struct row rows[] = {
#define EVENT(category, name, form) {ROW_EVENT, #form, STRING_##category, STRING_##name},
#define ALSO(category, name, form) {ROW_ALSO, #form, STRING_##category, STRING_##name},
#define ARG(name, type, need, meaning) {ROW_ARG, #type, STRING_##name, STRING_NONE},
#include "vm_trace/schema/events.def"
    {ROW_EVENT, "", STRING_NONE, STRING_NONE}
};
enum { ROWS = sizeof rows / sizeof *rows, VIEWS_MAX = 48, CATEGORIES_MAX = 2, COLUMNS_MAX = 64 };

struct view {
    const char *name; /* after vm_ */
    uint16_t event;   /* or STRING_ANY */
    unsigned category_count, column_count;
    uint16_t categories[CATEGORIES_MAX];
    const struct row *columns[COLUMNS_MAX];
};

struct views {
    unsigned count;
    struct view list[VIEWS_MAX];
};

static bool
slice_p(const struct row *event)
{
    return strcmp(event->what, "COUNTER") != 0 && strcmp(event->what, "FLOW") != 0;
}

/* Whether the row means all frames of a backtrace. */
static bool
frames_p(const struct row *argument)
{
    return strcmp(argument->what, "FRAMES") == 0 || strcmp(argument->what, "CALLERS") == 0;
}

static const char *
name_of(const struct row *event)
{
    if (event->name == STRING_SIDE_EXIT || event->name == STRING_RECOMPILE_EXIT) return "exit";
    return known_strings[event->name == STRING_TRACE ? event->other : event->name];
}

static struct view *
view_of(struct views *views, const struct row *event)
{
    struct view *view = views->list;
    while (view < views->list + views->count && view->name != name_of(event)) view++;
    if (view == views->list + views->count) {
        assert(views->count < VIEWS_MAX);
        views->count++;
        *view = (struct view){.name = name_of(event),
                              .event = event->name == STRING_TRACE ? event->other : STRING_ANY};
    }
    for (unsigned i = 0; i < view->category_count; i++) {
        if (view->categories[i] == event->name) return view;
    }
    assert(view->category_count < CATEGORIES_MAX);
    view->categories[view->category_count++] = event->name;
    return view;
}

static void
add_column(struct view *view, const struct row *argument)
{
    if (argument->name == STRING_ANY) return;
    for (unsigned i = 0; i < view->column_count; i++) {
        if (view->columns[i]->name == argument->name) return;
    }
    assert(view->column_count < COLUMNS_MAX);
    view->columns[view->column_count++] = argument;
}

/* Arguments follow their events: an EVENT and any number of ALSO. */
static void
gather(struct views *views)
{
    const struct row *events = rows;
    for (const struct row *row = rows; row < rows + ROWS - 1; row++) {
        if (row->kind == ROW_EVENT) events = row;
        if (row->kind != ROW_ARG) {
            if (slice_p(row)) view_of(views, row);
            continue;
        }
        for (const struct row *event = events; event->kind != ROW_ARG; event++) {
            if (slice_p(event)) add_column(view_of(views, event), row);
        }
    }
}

static void
put_columns(sqlite3_str *sql, const struct row *argument)
{
    unsigned last = frames_p(argument) ? STRING_FRAME_REST : argument->name;
    for (unsigned name = argument->name; name <= last; name++) {
        const char *alias = name == STRING_FRAME_REST ? "frames_rest" : known_strings[name];
        const char *prefix = name < STRING_FRAME_REST ? "frame_" : "";
        sqlite3_str_appendf(sql, ", EXTRACT_ARG(s.arg_set_id, %Q) AS \"%s%w\"", known_strings[name], prefix, alias);
    }
}

static void
put_view(sqlite3_str *sql, const char *create, const struct view *view)
{
    sqlite3_str_appendf(sql, "%s vm_%w AS SELECT s.id, s.ts, s.dur, k.utid, s.category, s.name", create, view->name);
    for (unsigned i = 0; i < view->column_count; i++) put_columns(sql, view->columns[i]);
    sqlite3_str_appendall(sql, " FROM slice s LEFT JOIN thread_track k ON k.id = s.track_id WHERE s.category IN (");
    for (unsigned i = 0; i < view->category_count; i++)
        sqlite3_str_appendf(sql, "%s%Q", i > 0 ? ", " : "", known_strings[view->categories[i]]);
    sqlite3_str_appendall(sql, ")");
    if (view->event != STRING_ANY) sqlite3_str_appendf(sql, " AND s.name = %Q", known_strings[view->event]);
    sqlite3_str_appendall(sql, ";\n");
}

char *
event_views_sql(const char *create)
{
    struct views views = {0};
    gather(&views);
    sqlite3_str *sql = sqlite3_str_new(NULL);
    for (unsigned i = 0; i < views.count; i++) put_view(sql, create, &views.list[i]);
    return sqlite3_str_finish(sql);
}

int
event_views_make(sqlite3 *db, const char *sql)
{
    if (sql != NULL && sqlite3_strlike("%vm\\_%", sql, '\\') != 0) return SQLITE_OK;
    char *views = event_views_sql("CREATE VIEW");
    int error = views != NULL ? sqlite3_exec(db, views, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(views);
    return error;
}
#else
typedef int event_views_need_sqlite; /* a file must not be empty */
#endif
