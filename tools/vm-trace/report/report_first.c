/* report_first.c - the first screen of a report: where the time went, and what to change first. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/label.h"
#include "base/escape.h"
#include "base/xalloc.h"
#include "render/display.h"
#include "report/findings.h"
#include "report/report_tables.h"
#include "source/source_file.h"

enum { SCREEN_LINES = 24, SCREEN_COLUMNS = 80, STATES_SHOWN = 6, INDENT = 3, PARAGRAPH_LINES = 2, SCREEN_TEXT = 2048 };

/* --- tables ------------------------------------------------------------------------------------------- */

static void
add_where_table(const struct view *view, const struct where *where, const char *id, const char *title)
{
    static const struct table_column columns[] = {
        {"ns", "time", COLUMN_DURATION, MEMBER(where_state, ns)},
        {"share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("ns")},
        {"state", "state", COLUMN_TEXT, MEMBER(where_state, name)},
    };
    struct row_table rows = ROWS_OF(where->states, where->count);
    view_table(&(struct table_def){.view = view, .id = id, .title = text_of(title), .rows = &rows, COLUMNS_OF(columns),
                                   .whole = where->whole_ns});
}

enum { SUBJECT, GAIN, GAIN_SHARE, LEAST, MOST, COUNT };

static struct cell
finding_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct finding *finding = row;
    const bool has[] = {[SUBJECT] = true,
                        [GAIN] = finding->estimated,
                        [GAIN_SHARE] = finding->estimated,
                        [LEAST] = finding->whole_ns > 0,
                        [MOST] = finding->whole_ns > 0,
                        [COUNT] = finding->of_count > 0};
    const uint64_t numbers[] = {
        [GAIN] = finding->gain_ns, [LEAST] = finding->least_ns, [MOST] = finding->most_ns, [COUNT] = finding->count};
    if (!has[own]) return (struct cell){0};
    if (own == SUBJECT) return cell_text(text_of(finding_subject_names[finding->subject]));
    return own == GAIN_SHARE ? cell_share(finding->gain_ns, finding->whole_ns) : cell_number(numbers[own]);
}

static void
add_findings_table(const struct view *view, const struct findings *findings)
{
    enum { TIMES = 1, COUNTS = 2 };
    static const struct table_column columns[] = {
        {"subject", NULL, COLUMN_TEXT, OWN_CELL(SUBJECT)},
        {"gain_ns", "gain", COLUMN_DURATION, OWN_CELL(GAIN), .people_if = TIMES},
        {"gain_share", "%", COLUMN_SHARE, OWN_CELL(GAIN_SHARE), .people_if = TIMES},
        {"least_ns", "at least", COLUMN_DURATION, OWN_CELL(LEAST), .people_if = TIMES},
        {"most_ns", "at most", COLUMN_DURATION, OWN_CELL(MOST), .people_if = TIMES},
        {"whole_ns", NULL, COLUMN_DURATION, MEMBER(finding, whole_ns), .blank_zero = true},
        {"count", "count", COLUMN_COUNT, OWN_CELL(COUNT), .people_if = COUNTS},
        {"what", "what", COLUMN_TEXT, MEMBER(finding, what)},
        {"place", "place", COLUMN_TEXT, MEMBER(finding, place)},
        {"cause", "cause", COLUMN_TEXT, MEMBER(finding, cause)},
        {"caller", NULL, COLUMN_TEXT, MEMBER(finding, caller)},
        {"helps", "helps", COLUMN_TEXT, MEMBER(finding, helps)},
        {"evidence", "evidence", COLUMN_TEXT, MEMBER(finding, evidence)},
    };
    struct row_table rows = ROWS_OF(findings->list, findings->count);
    view_table(&(struct table_def){.view = view, .id = "findings", .title = text_of("What to change first"),
                                   .rows = &rows, COLUMNS_OF(columns), .cell = finding_cell,
                                   .given = findings->counts ? COUNTS : TIMES});
}

void
report_first(struct report *report, struct document *document, bool people)
{
    const struct view view = {report, document, FINDINGS_MOST};
    struct findings findings = findings_of(&view);
    const struct view states = {report, document, WHERE_KINDS};
    uint32_t first = document->table_count;
    add_where_table(&states, &findings.where, "where", "Where the time went");
    add_where_table(&states, &findings.requests, "where_requests", "Where requests and jobs spent their time");
    add_findings_table(&view, &findings);
    for (uint32_t i = first; i < document->table_count; i++)
        document->tables[i]->data = !people || document->tables[i]->row_count == 0;
}

/* --- the screen ------------------------------------------------------------------------------------------ */

/* Prints one line, escaped and shortened to the screen. */
static void
put_line(FILE *out, enum style how, const char *text)
{
    char escaped[SCREEN_TEXT];
    char *line = display_fit(escape_into(escaped, sizeof escaped, text_of(text)), SCREEN_COLUMNS);
    fprintf(out, "%s%s%s\n", style(out, how), line, style(out, STYLE_PLAIN));
    free(line);
}

/* "ruby 4.0.5 +YJIT" of a description that has dates and platform, too. */
static void
short_ruby(char *to, size_t size, const char *description)
{
    const char *end = strchr(description, ' ');
    if (end != NULL && end[1] != '\0') end = strchr(end + 1, ' ');
    size_t len = end != NULL ? (size_t)(end - description) : strlen(description);
    const char *jit = strstr(description, "+YJIT") ? " +YJIT" : strstr(description, "+ZJIT") ? " +ZJIT" : "";
    snprintf(to, size, "%.*s%s", (int)len, description, jit);
}

static const char *
setting(const struct report *report, uint32_t name)
{
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_setting *found = report_setting_of(report, i, name);
        if (found != NULL) return pool_string(report->pool, found->value).ptr;
    }
    return "";
}

/* The title of the first process, or its command. */
static const char *
program_of(const struct report *report)
{
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_setting *found = report_setting_of(report, i, report->title);
        if (found == NULL) found = report_setting_of(report, i, STRING_COMMAND);
        if (found != NULL) return pool_string(report->pool, found->value).ptr;
    }
    return "";
}

static void
put_head(FILE *out, const struct report *report, const struct document *head)
{
    uint32_t processes = report_shown_processes(report), threads = 0;
    for (uint32_t i = 0; i < report->threads.count; i++) threads += report_thread(report, i)->events > 0;
    char ruby[200], shown[200], time[NUMBER_TEXT], number[NUMBER_TEXT], rest[400];
    short_ruby(shown, sizeof shown, setting(report, STRING_RUBY));
    escape_into(ruby, sizeof ruby, text_of(shown));
    bool any = report->first_ns <= report->last_ns;
    snprintf(rest, sizeof rest, ": %s%s%s, %" PRIu32 " process%s, %s thread%s", ruby, *ruby ? ", " : "",
             any ? duration_text(time, (uint64_t)(report->last_ns - report->first_ns)) : "no events", processes,
             processes == 1 ? "" : "es", with_commas(number, threads), threads == 1 ? "" : "s");
    const char *program = program_of(report);
    char escaped[SCREEN_TEXT];
    escape_into(escaped, sizeof escaped, *program ? text_of(program) : head->title);
    unsigned room = SCREEN_COLUMNS - display_width(rest);
    char *fitting = display_fit(escaped, room < INDENT + 1 ? INDENT + 1 : room);
    fprintf(out, "%s%s%s%s\n", style(out, STYLE_BOLD), fitting, style(out, STYLE_PLAIN), rest);
    free(fitting);
}

/* What the head says of what is missing: the numbers below are of a part. Returns the number of lines. */
static unsigned
put_notes(FILE *out, const struct document *head)
{
    static const char *const titles[] = {"lost", "only", "not counted", "no stacks"};
    enum { NOTES_MOST = 2 };
    unsigned count = 0, more = 0;
    for (uint32_t i = 0; i < head->line_count; i++) {
        const struct line *line = &head->lines[i];
        bool wanted = false;
        for (unsigned j = 0; j < sizeof titles / sizeof *titles; j++) wanted |= strcmp(line->title, titles[j]) == 0;
        if (!wanted || fxt_string_is(line->text, "nothing")) continue;
        if (count == NOTES_MOST) {
            more++;
            continue;
        }
        char text[SCREEN_TEXT];
        snprintf(text, sizeof text, "%s: %s", line->title, line->text.ptr);
        put_line(out, STYLE_WORSE, text);
        count++;
    }
    if (more > 0) fprintf(out, "and %u more notes: --all has them\n", more);
    return count + (more > 0);
}

enum { WHOLE_TEXT = 160 };

/* "3.2 s of the main thread" */
static char *
whole_text(char to[WHOLE_TEXT], const struct where *where)
{
    char time[NUMBER_TEXT], count[NUMBER_TEXT];
    bool one = where->threads == 1;
    duration_text(time, where->whole_ns);
    with_commas(count, where->threads);
    if (!where->of_main)
        snprintf(to, WHOLE_TEXT, "%s of %s thread%s, without blocked time", time, count, one ? "" : "s");
    else if (one) snprintf(to, WHOLE_TEXT, "%s of the main thread", time);
    else snprintf(to, WHOLE_TEXT, "%s of the main threads of %s processes", time, count);
    return to;
}

static char *
requests_text(char to[WHOLE_TEXT], const struct endpoints *endpoints)
{
    char time[NUMBER_TEXT], count[NUMBER_TEXT];
    snprintf(to, WHOLE_TEXT, "%s of %s %s [--endpoints]", duration_text(time, endpoints->outer.ns),
             with_commas(count, endpoints->outer.spans), endpoints->outer.spans == 1 ? "request" : "requests and jobs");
    return to;
}

/* whole: what the states are a part of. */
static void
put_where(FILE *out, const struct where *where, const char *whole, unsigned most)
{
    char time[NUMBER_TEXT];
    fprintf(out, "%sWhere the time went: %s%s\n", style(out, STYLE_BOLD), whole, style(out, STYLE_PLAIN));
    unsigned shown = where->count < most ? where->count : most;
    struct duration_scale scale = {0};
    for (unsigned i = 0; i < shown; i++) duration_scale_add(&scale, where->states[i].ns);
    uint64_t rest_ns = where->whole_ns;
    for (unsigned i = 0; i < shown; i++) {
        const struct where_state *state = &where->states[i];
        bool last = i + 1 == shown && shown < where->count;
        uint64_t ns = last ? rest_ns : state->ns;
        fprintf(out, "  %5.1f %%  %10s  %s\n", 100 * (double)ns / (double)where->whole_ns,
                scaled_duration_text(time, &scale, ns), last ? "all else" : state->name);
        rest_ns -= state->ns;
    }
}

/* "1. about 14 % (6 to 20 %, 85 ms): garbage of Object#build (a.rb:6)" */
static void
put_heading(FILE *out, unsigned number, const struct finding *finding)
{
    char text[SCREEN_TEXT], time[NUMBER_TEXT], count[NUMBER_TEXT], start[160], place[SCREEN_TEXT];
    double whole = (double)finding->whole_ns / 100;
    if (finding->of_count > 0) {
        snprintf(start, sizeof start, "%u. %.0f %% (%s): ", number,
                 100 * (double)finding->count / (double)finding->of_count, with_commas(count, finding->count));
    }
    else if (finding->estimated) {
        snprintf(start, sizeof start, "%u. about %.0f %% (%.0f to %.0f %%, %s): ", number,
                 (double)finding->gain_ns / whole, (double)finding->least_ns / whole, (double)finding->most_ns / whole,
                 duration_text(time, finding->gain_ns));
    }
    else if ((double)finding->least_ns >= whole) {
        snprintf(start, sizeof start, "%u. %.0f to %.0f %% (%s or more): ", number, (double)finding->least_ns / whole,
                 (double)finding->most_ns / whole, duration_text(time, finding->least_ns));
    }
    else {
        snprintf(start, sizeof start, "%u. at most %.0f %% (%s): ", number, (double)finding->most_ns / whole,
                 duration_text(time, finding->most_ns));
    }
    unsigned room = SCREEN_COLUMNS - display_width(start) - display_width(finding->what.ptr) - 1;
    escape_into(text, sizeof text, finding->place);
    char *fit = display_fit(text, room);
    snprintf(place, sizeof place, "%s%s%s", finding->what.ptr, *fit ? " " : "", fit);
    fprintf(out, "%s%s%s%s\n", style(out, STYLE_BOLD), start, place, style(out, STYLE_PLAIN));
    free(fit);
}

/* Prints words on at most so many lines, and `end` on the last one. Words that have no room are left out. */
static void
put_paragraph(FILE *out, char *words, const char *end, unsigned lines)
{
    static const char dots[] = " …";
    unsigned width = SCREEN_COLUMNS - INDENT, last_width = width - display_width(end) - 1 - display_width(dots), at = 0;
    bool cut = false;
    fprintf(out, "%*s", INDENT, "");
    unsigned line = 1;
    for (char *word; !cut && (word = strsep(&words, " ")) != NULL;) {
        unsigned columns = display_width(word) + (at > 0);
        if (at > 0 && line < lines && at + columns > width) {
            fprintf(out, "\n%*s", INDENT, "");
            at = 0, line++;
            columns--;
        }
        cut = line == lines && at + columns > last_width && at > 0;
        if (!cut) fprintf(out, "%s%s", at > 0 ? " " : "", word), at += columns;
    }
    bool breaks = line < lines && at + 1 + display_width(end) > width;
    if (cut) fputs(dots, out);
    if (breaks) fprintf(out, "\n%*s%s\n", INDENT, "", end);
    else fprintf(out, " %s\n", end);
}

/* Writes the source of the line that a label names; nothing if its file is not here, or not older than the traces. */
static char *
source_text(char text[static SCREEN_TEXT], time_t traced, struct fxt_string label)
{
    struct label_parts parts = label_parts(label);
    struct source_file source;
    struct fxt_string line;
    char path[SCREEN_TEXT];
    *text = '\0';
    if (parts.line == 0 || parts.path.len >= sizeof path) return text;
    snprintf(path, sizeof path, "%.*s", (int)parts.path.len, parts.path.ptr);
    if (source_file_read(&source, path) == NULL && source.changed <= traced &&
        source_file_line(&source, (uint64_t)parts.line, &line)) {
        while (line.len > 0 && isspace((unsigned char)*line.ptr)) line.ptr++, line.len--;
        escape_into(text, SCREEN_TEXT, line);
    }
    source_file_free(&source);
    return text;
}

/* On one line, with as much of the caller as has room. */
static void
put_cause(FILE *out, const char *cause, struct fxt_string caller)
{
    static const char by[] = "; called by ";
    enum { LEAST = 12 }; /* columns of a name that still says something */
    char escaped[SCREEN_TEXT];
    unsigned used = INDENT + display_width(cause) + display_width(by);
    bool called = caller.len > 0 && used + LEAST <= SCREEN_COLUMNS;
    char *fit = called ? display_fit(escape_into(escaped, sizeof escaped, caller), SCREEN_COLUMNS - used)
                       : display_fit(cause, SCREEN_COLUMNS - INDENT);
    if (called) fprintf(out, "%*s%s%s%s\n", INDENT, "", cause, by, fit);
    else fprintf(out, "%*s%s\n", INDENT, "", fit);
    free(fit);
}

static void
put_finding(FILE *out, time_t traced, unsigned number, const struct finding *finding)
{
    char cause[SCREEN_TEXT], words[2 * SCREEN_TEXT], end[SCREEN_TEXT], evidence[SCREEN_TEXT];
    escape_into(cause, sizeof cause, finding->cause);
    escape_into(evidence, sizeof evidence, finding->evidence);
    int option = (int)strcspn(evidence, " "); /* the first word, which begins with two dashes */
    snprintf(end, sizeof end, "[--%.*s]", option - 2, evidence + 2);
    put_heading(out, number, finding);
    if (finding->line_tells && *source_text(words, traced, finding->place) != '\0') {
        put_cause(out, cause, finding->caller);
        put_paragraph(out, words, end, 1);
        return;
    }
    snprintf(words, sizeof words, "%s%s%s", cause, finding->helps.len > 0 ? ". " : "", finding->helps.ptr);
    put_paragraph(out, words, end, PARAGRAPH_LINES);
}

static void
put_nothing(FILE *out, const struct report *report, const struct findings *findings)
{
    const struct where *where = &findings->where;
    if (where->count == 0 && (report->times_only || report->exits_only)) {
        fputs("Nothing that passes the options has times of its own: sums of states are of the\nwhole trace.\n", out);
        return;
    }
    if (where->count == 0) {
        fputs("The trace has no times: `vm-trace record`, or --vm-trace=profile, records\nthem.\n", out);
        return;
    }
    fprintf(out, "Nothing to gain here: no cause took 1 %% of the time. Most of it was\n%s (%.0f %%).\n",
            where->states[0].name, 100 * (double)where->states[0].ns / (double)where->whole_ns);
}

void
report_first_print(FILE *out, struct report *report, const struct document *head, const char *name, time_t traced,
                   uint64_t top)
{
    struct document texts = {0};
    const struct view view = {report, &texts, FINDINGS_MOST};
    struct findings findings = findings_of(&view);
    if (findings.count > top) findings.count = (unsigned)top;
    document_print_partial(out, head, false);
    put_head(out, report, head);
    enum { FIXED = 5 }; /* the head, two titles, two lines at the end */
    unsigned used = FIXED + put_notes(out, head) + findings.count * (1 + PARAGRAPH_LINES);
    unsigned room = used < SCREEN_LINES ? SCREEN_LINES - used : 0;
    unsigned blank = room > 4, states = room > 4 ? room - 2 : room > 1 ? room : 2;
    if (states > STATES_SHOWN) states = STATES_SHOWN;
    bool requests = findings.requests.count > 0;
    const struct where *where = requests ? &findings.requests : &findings.where;
    char whole[WHOLE_TEXT], gains[WHOLE_TEXT + sizeof "; gains are of "] = ", and what that gains";
    if (where->count > 0) {
        if (blank) putc('\n', out);
        put_where(out, where, requests ? requests_text(whole, report->endpoints) : whole_text(whole, where), states);
    }
    if (blank) putc('\n', out);
    if (requests && findings.where.count > 0)
        snprintf(gains, sizeof gains, "; gains are of %s", whole_text(whole, &findings.where));
    if (findings.count > 0)
        fprintf(out, "%sWhat to change first%s%s\n", style(out, STYLE_BOLD),
                findings.counts ? " (of the number of exits: their cost is not recorded)" : gains,
                style(out, STYLE_PLAIN));
    for (unsigned i = 0; i < findings.count; i++) put_finding(out, traced, i + 1, &findings.list[i]);
    if (findings.count == 0) put_nothing(out, report, &findings);
    if (findings.counts && findings.count > 0)
        fputs("Counts are not cost: --vm-trace=states records the time that exits lose.\n", out);
    static const char more[] = "More: vm-trace report ", options[] = ", with an option in [ ], or --all";
    char escaped[SCREEN_TEXT];
    char *shown = display_fit(escape_into(escaped, sizeof escaped, text_of(name)),
                              SCREEN_COLUMNS - display_width(more) - display_width(options));
    fprintf(out, "%s%s%s%s%s\n", style(out, STYLE_DIM), more, shown, options, style(out, STYLE_PLAIN));
    free(shown);
    document_free(&texts);
}
