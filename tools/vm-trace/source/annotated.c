/* annotated.c - see annotated.h
 *
 * A line's costs stand in columns in the margin, and below it a line for each reason with its part
 * of them:
 *
 *          lost  exits  line
 *                          2  def bar(x)
 *       41.2 ms     25     3    x + helper(x)
 *       41.0 ms     20          ^ GuardType(Fixnum), send, version 3
 *      200.0 us      5          ^ NoProfileSend, send, version 1
 *                          4  end
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "source/annotated_source.h"
#include "base/escape.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "source/annotated.h"
#include "topics/view_table.h"

enum { VERSIONS_SHOWN = 6, GAP = 2, LINE_WIDTH = 4 };

/* --- the margin --------------------------------------------------------------------------------- */

static uint64_t
lost_of(const struct annotated_cost *cost)
{
    return cost->lost_ns;
}

static uint64_t
exits_of(const struct annotated_cost *cost)
{
    return cost->exits;
}

static uint64_t
fallbacks_of(const struct annotated_cost *cost)
{
    return cost->fallbacks;
}

static uint64_t
counted_of(const struct annotated_cost *cost)
{
    return cost->counted;
}

/* The columns of the margin. A new measure is a row of this table. */
static const struct {
    const char *title;
    uint64_t (*value)(const struct annotated_cost *cost);
    bool duration;
    bool always; /* also where it is 0 in all files */
} margins[] = {
    {"lost", lost_of, true, false},
    {"exits", exits_of, false, true},
    {"fallbacks", fallbacks_of, false, false},
    {"counted", counted_of, false, false},
};
enum { MARGINS = sizeof margins / sizeof *margins };

struct widths {
    unsigned of[MARGINS]; /* 0: not shown */
    unsigned line;
    struct duration_scale scales[MARGINS]; /* of durations */
};

static const char *
margin_text(char text[NUMBER_TEXT], const struct widths *widths, unsigned margin, uint64_t value)
{
    return margins[margin].duration ? scaled_duration_text(text, &widths->scales[margin], value)
                                    : with_commas(text, value);
}

static void
widen(unsigned *width, size_t len)
{
    if (len > *width) *width = (unsigned)len;
}

static void
widen_by_cost(struct widths *widths, const struct annotated_cost *cost)
{
    char text[NUMBER_TEXT];
    for (unsigned i = 0; i < MARGINS; i++) {
        if (widths->of[i] > 0) widen(&widths->of[i], strlen(margin_text(text, widths, i, margins[i].value(cost))));
    }
}

static void
scale_by_cost(struct widths *widths, const struct annotated_cost *cost)
{
    for (unsigned i = 0; i < MARGINS; i++) duration_scale_add(&widths->scales[i], margins[i].value(cost));
}

/* Each line of the file with costs, and each of its reasons. */
static void
each_cost(const struct annotated_view *view, const struct annotated_file *file, struct widths *widths,
          void (*take)(struct widths *widths, const struct annotated_cost *cost))
{
    uint32_t line_count, first = annotation_lines(view->annotation, file->path, &line_count);
    for (uint32_t i = 0; i < line_count; i++) {
        const struct annotated_line *line = row_table_at(&view->annotation->lines, first + i);
        uint32_t count, first_reason = annotation_reasons(view->annotation, line->path, line->line, &count);
        take(widths, &line->cost);
        for (uint32_t n = 0; n < count; n++) {
            const struct annotated_reason *reason = row_table_at(&view->annotation->reasons, first_reason + n);
            take(widths, &reason->cost);
        }
    }
}

static struct widths
margin_widths(const struct annotated_view *view, const struct annotated_file *file, uint64_t last_line)
{
    struct widths widths = {.line = LINE_WIDTH};
    char text[NUMBER_TEXT];
    for (unsigned i = 0; i < MARGINS; i++) {
        if (margins[i].value(&view->annotation->cost) > 0 || margins[i].always)
            widths.of[i] = (unsigned)strlen(margins[i].title);
    }
    each_cost(view, file, &widths, scale_by_cost);
    each_cost(view, file, &widths, widen_by_cost);
    widen(&widths.line, (size_t)snprintf(text, sizeof text, "%" PRIu64, last_line));
    return widths;
}

/* cost NULL: blanks; with the titles for a negative line, without a number for line 0. */
static void
print_margin(const struct widths *widths, const struct annotated_cost *cost, int64_t line)
{
    char text[NUMBER_TEXT];
    for (unsigned i = 0; i < MARGINS; i++) {
        uint64_t value = cost != NULL ? margins[i].value(cost) : 0;
        if (widths->of[i] == 0) continue;
        const char *shown = line < 0 ? margins[i].title : value > 0 ? margin_text(text, widths, i, value) : "";
        printf("%*s%*s", GAP, "", (int)widths->of[i], shown);
    }
    if (line > 0) snprintf(text, sizeof text, "%" PRId64, line);
    printf("%*s%*s", GAP, "", (int)widths->line, line < 0 ? "line" : line > 0 ? text : "");
}

/* --- lines -------------------------------------------------------------------------------------- */

/* Prints a line of source. Returns the blanks that it begins with. */
static unsigned
print_source(struct fxt_string line)
{
    struct fxt_string wide = source_line_wide(line);
    unsigned blanks = (unsigned)strspn(wide.ptr, " ");
    if (wide.len > blanks) printf("%*s", GAP, "");
    if (wide.len > blanks) print_escaped(stdout, wide);
    free((char *)wide.ptr);
    return blanks < wide.len ? blanks : 0;
}

/* "version 3", or "versions 1: 5, 2: 4,995" with the last ones of many. */
static struct fxt_string
versions_text(const struct annotated_view *view, uint32_t reason, char *text, size_t size)
{
    uint32_t count, first = annotation_versions(view->annotation, reason, &count);
    const struct annotated_version *version = row_table_at(&view->annotation->versions, first);
    if (count == 1 && version->version == 0) return text_of("");
    if (count == 1) return snprintf(text, size, ", version %" PRIu32, version->version), text_of(text);
    uint32_t skipped = count > VERSIONS_SHOWN ? count - VERSIONS_SHOWN : 0;
    size_t len = (size_t)snprintf(text, size, ", versions ");
    if (skipped > 0) len += (size_t)snprintf(text + len, size - len, "%" PRIu32 " more, ", skipped);
    for (uint32_t i = skipped; i < count; i++) {
        char number[NUMBER_TEXT];
        version = row_table_at(&view->annotation->versions, first + i);
        const struct annotated_cost *cost = &version->cost;
        with_commas(number, cost->exits + cost->fallbacks + cost->counted);
        len += (size_t)snprintf(text + len, size - len, "%s%" PRIu32 ": %s", i > skipped ? ", " : "", version->version,
                                number);
    }
    return text_of(text);
}

static void
print_reason(const struct annotated_view *view, const struct widths *widths, const struct annotated_reason *reason,
             unsigned blanks)
{
    const struct pool *pool = view->report->pool;
    char versions[VERSIONS_SHOWN * 2 * NUMBER_TEXT + 64];
    fputs(style(stdout, STYLE_DIM), stdout);
    print_margin(widths, &reason->cost, 0);
    printf("%*s^ ", (int)(GAP + blanks), "");
    print_escaped(stdout, reason->reason == STRING_NONE ? text_of("(unknown)") : pool_string(pool, reason->reason));
    if (reason->insn != STRING_NONE) {
        fputs(", ", stdout);
        print_escaped(stdout, pool_string(pool, reason->insn));
    }
    if (reason->callee != STRING_NONE) {
        fputs(" of ", stdout);
        print_escaped(stdout, pool_string(pool, reason->callee));
    }
    print_escaped(stdout, versions_text(view, reason->number, versions, sizeof versions));
    printf("%s\n", style(stdout, STYLE_PLAIN));
}

static void
print_costly_line(const struct annotated_view *view, const struct widths *widths, const struct source_file *source,
                  const struct annotated_line *line)
{
    struct fxt_string text;
    unsigned blanks = 0;
    fputs(style(stdout, STYLE_BOLD), stdout);
    print_margin(widths, &line->cost, line->line);
    if (source_file_line(source, line->line, &text)) blanks = print_source(text);
    printf("%s\n", style(stdout, STYLE_PLAIN));
    uint32_t count, first = annotation_reasons(view->annotation, line->path, line->line, &count);
    for (uint32_t i = 0; i < count; i++)
        print_reason(view, widths, row_table_at(&view->annotation->reasons, first + i), blanks);
}

/* Prints lines without costs, from one up to before another. */
static void
print_context(const struct widths *widths, const struct source_file *source, uint64_t from, uint64_t until)
{
    struct fxt_string text;
    for (uint64_t line = from; line < until && source_file_line(source, line, &text); line++) {
        print_margin(widths, NULL, (int64_t)line);
        print_source(text);
        putchar('\n');
    }
}

static void
print_lines(const struct annotated_view *view, const struct widths *widths, const struct source_file *source,
            const struct annotated_file *file)
{
    uint32_t count, first = annotation_lines(view->annotation, file->path, &count);
    uint64_t next = 1; /* the first line that was not printed yet */
    print_margin(widths, NULL, -1);
    putchar('\n');
    for (uint32_t i = 0; i < count; i++) {
        const struct annotated_line *line = row_table_at(&view->annotation->lines, first + i);
        uint64_t begin = line->line > view->context ? line->line - view->context : 1;
        if (begin > next && next > 1 && source->line_count > 0) {
            print_margin(widths, NULL, 0);
            printf("%*s...\n", GAP, "");
        }
        print_context(widths, source, begin > next ? begin : next, line->line);
        print_costly_line(view, widths, source, line);
        const struct annotated_line *following = i + 1 < count ? line + 1 : NULL;
        next = (uint64_t)line->line + view->context + 1;
        if (following != NULL && following->line < next) next = following->line;
        print_context(widths, source, (uint64_t)line->line + 1, next);
    }
}

/* --- files ---------------------------------------------------------------------------------------- */

static struct fxt_string
path_of(const struct annotated_view *view, const struct annotated_file *file)
{
    return file->path == STRING_NONE ? text_of("(no file)") : pool_string(view->report->pool, file->path);
}

static void
print_costs(const struct annotated_cost *cost)
{
    char number[NUMBER_TEXT];
    if (cost->exits > 0 || cost->fallbacks == 0)
        printf("%s exit%s", with_commas(number, cost->exits), cost->exits == 1 ? "" : "s");
    if (cost->fallbacks > 0)
        printf("%s%s fallback%s", cost->exits > 0 ? ", " : "", with_commas(number, cost->fallbacks),
               cost->fallbacks == 1 ? "" : "s");
    if (cost->lost_ns > 0) printf(", %s lost", duration_text(number, cost->lost_ns));
    if (cost->counted > 0) printf(", %s counted", with_commas(number, cost->counted));
}

static const char *
read_source(const struct annotated_view *view, uint32_t number, struct source_file *source)
{
    return annotated_source_read(view->annotation, number, view->sources[number], view->traced, source);
}

static void
print_file(const struct annotated_view *view, uint32_t number, bool markdown)
{
    const struct annotated_file *file = row_table_at(&view->annotation->files, number);
    struct source_file source;
    const char *note = read_source(view, number, &source);
    char lines[NUMBER_TEXT];
    printf("\n%s%s", markdown ? "## " : "", style(stdout, STYLE_BOLD));
    print_escaped(stdout, path_of(view, file));
    printf("%s: ", style(stdout, STYLE_PLAIN));
    print_costs(&file->cost);
    printf(" at %s line%s\n", with_commas(lines, file->line_count), file->line_count == 1 ? "" : "s");
    if (note != NULL) printf("%s(%s)\n", markdown ? "\n" : "  ", note);
    if (markdown) fputs("\n~~~~~~~~\n", stdout);
    struct widths widths = margin_widths(view, file, source.line_count);
    print_lines(view, &widths, &source, file);
    if (markdown) fputs("~~~~~~~~\n", stdout);
    source_file_free(&source);
}

/* The lines of a report's head that say what is counted, and what is not. */
static void
print_head(const struct document *head, bool markdown)
{
    static const char *const titles[] = {"lost", "only", "counts", "cost", "not counted"};
    bool shown = false;
    for (uint32_t i = 0; i < head->line_count; i++) {
        const struct line *line = &head->lines[i];
        bool wanted = line->title[0] == '\0' && shown;
        for (unsigned title = 0; title < sizeof titles / sizeof *titles; title++)
            wanted = wanted || strcmp(line->title, titles[title]) == 0;
        shown = wanted;
        if (!wanted) continue;
        printf(markdown ? "\n%s: " : "  %-12s ", line->title);
        print_escaped(stdout, line->text);
        putchar('\n');
    }
}

void
annotated_print(const struct annotated_view *view, const struct document *head, bool markdown)
{
    const struct row_table *files = &view->annotation->files;
    struct annotated_cost left_out = {0};
    uint64_t shown = 0, more = 0;
    document_print_partial(stdout, head, markdown);
    printf("%s%s", markdown ? "# " : "", style(stdout, STYLE_BOLD));
    print_escaped(stdout, head->title);
    printf("%s: ", style(stdout, STYLE_PLAIN));
    print_costs(&view->annotation->cost);
    printf(" in %" PRIu32 " file%s\n", files->count, files->count == 1 ? "" : "s");
    print_head(head, markdown);
    for (uint32_t i = 0; i < files->count; i++) {
        const struct annotated_file *file = row_table_at(files, i);
        if (view->sources[i] == NULL) continue;
        if (shown++ < view->top) {
            print_file(view, i, markdown);
            continue;
        }
        more++;
        left_out.lost_ns += file->cost.lost_ns;
        left_out.exits += file->cost.exits;
        left_out.fallbacks += file->cost.fallbacks;
        left_out.counted += file->cost.counted;
    }
    if (more == 0) return;
    printf("\n%" PRIu64 " more file%s (--top=N shows more): ", more, more == 1 ? "" : "s");
    print_costs(&left_out);
    putchar('\n');
}

/* --- for programs --------------------------------------------------------------------------------- */

/* A file, a line of it, or a reason of a line. */
struct place_row {
    struct fxt_string path;
    uint32_t line;
    struct annotated_cost cost;
    uint32_t line_count;    /* of a file: that have a cost */
    const char *note;       /* of a file: about its source; NULL: none */
    struct fxt_string text; /* of a line; NULL: not known */
    uint32_t reason, insn, callee, version;
};

struct place_rows {
    struct place_row *list;
    uint32_t count, capacity;
};

static struct place_row *
add_place(struct place_rows *rows, struct fxt_string path, uint32_t line, const struct annotated_cost *cost)
{
    make_room(rows->list, rows->count, rows->capacity);
    rows->list[rows->count] = (struct place_row){.path = path, .line = line, .cost = *cost};
    return &rows->list[rows->count++];
}

/* What the tables are made of. */
struct annotated_data {
    struct document *document;
    struct place_rows files, lines, reasons;
};

static void
add_reason(const struct annotated_view *view, struct annotated_data *data, struct fxt_string path,
           const struct annotated_reason *reason)
{
    uint32_t count, first = annotation_versions(view->annotation, reason->number, &count);
    for (uint32_t i = 0; i < count; i++) {
        const struct annotated_version *version = row_table_at(&view->annotation->versions, first + i);
        struct place_row *row = add_place(&data->reasons, path, reason->line, &version->cost);
        row->reason = reason->reason;
        row->insn = reason->insn;
        row->callee = reason->callee;
        row->version = version->version;
    }
}

static void
add_line(const struct annotated_view *view, struct annotated_data *data, const struct source_file *source,
         struct fxt_string path, const struct annotated_line *line)
{
    struct fxt_string text;
    struct place_row *row = add_place(&data->lines, path, line->line, &line->cost);
    if (source_file_line(source, line->line, &text))
        row->text = document_text(data->document, "%.*s", (int)text.len, text.ptr);
    uint32_t count, first = annotation_reasons(view->annotation, line->path, line->line, &count);
    for (uint32_t i = 0; i < count; i++)
        add_reason(view, data, path, row_table_at(&view->annotation->reasons, first + i));
}

static void
add_file(const struct annotated_view *view, struct annotated_data *data, uint32_t number)
{
    const struct annotated_file *file = row_table_at(&view->annotation->files, number);
    struct source_file source;
    struct fxt_string path = path_of(view, file);
    struct place_row *row = add_place(&data->files, path, 0, &file->cost);
    row->note = read_source(view, number, &source);
    row->line_count = file->line_count;
    uint32_t count, first = annotation_lines(view->annotation, file->path, &count);
    for (uint32_t i = 0; i < count; i++)
        add_line(view, data, &source, path, row_table_at(&view->annotation->lines, first + i));
    source_file_free(&source);
}

/* Without lost times a table has no column of them. */
enum { TIMED = 1, COUNTED = 2 };
#define PATH {"path", "path", COLUMN_TEXT, MEMBER(place_row, path)}
#define LINE {"line", "line", COLUMN_NUMBER, MEMBER(place_row, line), .blank_zero = true}
#define COST                                                                                                           \
    {"lost_ns", "lost", COLUMN_DURATION, MEMBER(place_row, cost.lost_ns), .only_if = TIMED},                           \
    {"exits", "exits", COLUMN_COUNT, MEMBER(place_row, cost.exits)},                                                   \
    {"fallbacks", "fallbacks", COLUMN_COUNT, MEMBER(place_row, cost.fallbacks)},                                       \
    {"counted", "counted", COLUMN_COUNT, MEMBER(place_row, cost.counted), .only_if = COUNTED}

static struct cell
text_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct place_row *line = row;
    return line->text.ptr != NULL ? cell_text(line->text) : (struct cell){0};
}

static void
add_table(const struct annotated_view *view, struct document *document, struct place_rows *rows, struct table_def def)
{
    const struct view all = {(struct report *)view->report, document, UINT64_MAX};
    struct row_table listed = ROWS_OF(rows->list, rows->count);
    def.view = &all;
    def.rows = &listed;
    def.cell = text_cell;
    def.given = (view->annotation->timed ? TIMED : 0) | (view->annotation->cost.counted > 0 ? COUNTED : 0);
    def.shown_empty = true;
    view_table(&def);
    free(rows->list);
}

void
annotated_tables(const struct annotated_view *view, struct document *document)
{
    static const struct table_column files[] = {
        PATH, COST,
        {"lines", "lines", COLUMN_COUNT, MEMBER(place_row, line_count)},
        {"note", "note", COLUMN_TEXT, MEMBER(place_row, note)},
    };
    static const struct table_column lines[] = {PATH, LINE, COST, {"source", "source", COLUMN_TEXT, OWN_CELL(0)}};
    static const struct table_column reasons[] = {
        PATH, LINE, COST,
        {"reason", "reason", COLUMN_TEXT, NAMED_IF_ANY(place_row, reason)},
        {"instruction", "instruction", COLUMN_TEXT, NAMED_IF_ANY(place_row, insn)},
        {"callee", "callee", COLUMN_TEXT, NAMED_IF_ANY(place_row, callee)},
        {"version", "version", COLUMN_NUMBER, MEMBER(place_row, version), .blank_zero = true},
    };
    struct annotated_data data = {.document = document};
    uint64_t shown = 0;
    for (uint32_t i = 0; i < view->annotation->files.count; i++) {
        if (view->sources[i] != NULL && shown++ < view->top) add_file(view, &data, i);
    }
#define TABLE(name, title_)                                                                                            \
    add_table(view, document, &data.name,                                                                              \
              (struct table_def){.id = "annotated_" #name, .title = text_of(title_), COLUMNS_OF(name)})
    TABLE(files, "Files");
    TABLE(lines, "Lines");
    TABLE(reasons, "Reasons");
}
