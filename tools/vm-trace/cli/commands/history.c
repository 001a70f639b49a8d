/* history.c - `vm-trace history`: shows the history of a method's compiled code, in order of
 * time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "analysis/glob.h"
#include "topics/compiles/compiled_texts.h"
#include "topics/compiles/version_history.h"
#include "base/row_table.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "fxt/known_strings.h"
#include "render/document.h"

enum { EXITS_MAX = 256 * 1024, PIDS_MAX = 64 * 1024, EXIT_KEYS = 8 };

static enum document_format format = FORMAT_TEXT;
static const char *table;
static const char *method;
static bool whole_code;

/* Exits that differ only in time. */
struct exit_group {
    uint32_t process; /* the key */
    uint32_t iseq;    /* named by the event, else STRING_NONE */
    uint32_t category;
    uint32_t reason;
    uint32_t location;
    uint32_t insn;
    uint32_t version;
    uint32_t outcome;

    uint64_t records, weighted;
    int64_t first_ns, last_ns;
};

struct process {
    uint32_t number; /* the key: as of an event */
    uint32_t pid;
    struct code_settings code;
};

struct history {
    struct reader *reader;
    struct pool *pool;
    struct glob glob;
    struct version_history versions;
    struct compiled_texts texts;
    struct row_table exits;     /* of struct exit_group */
    struct row_table processes; /* of struct process */
    uint64_t uncounted;
    /* What was traced, according to the settings; unknown without them. */
    bool has_flags, compiles_traced, invalidations_traced;
    bool has_events;
    int64_t start_ns;
};

/* --- reading -------------------------------------------------------------------------------- */

static struct process *
process_at(const struct history *history, uint32_t number)
{
    return row_table_at(&history->processes, number);
}

static uint32_t
process_of(struct history *history, const struct fxt_event *event)
{
    struct process *process = row_table_get(&history->processes, &event->process);
    if (process == NULL) return PIDS_MAX - 1;
    process->pid = event->pid;
    return row_table_number(&history->processes, process);
}

static void
add_exit(struct history *history, uint32_t process, const struct fxt_event *event)
{
    struct pool *pool = history->pool;
    uint32_t iseq = event_text(pool, event, STRING_ISEQ), location = event_text(pool, event, STRING_FRAME_0);
    /* Which block of a method exits is only known at the end. */
    if (!glob_matches(&history->glob, pool, iseq != STRING_NONE ? iseq : location)) return;
    const uint32_t key[EXIT_KEYS] = {
        process, iseq, event->category.id, event_reason(pool, event), location, event_insn(pool, event),
        (uint32_t)event_uint(event, STRING_VERSION, 0), event_text(pool, event, STRING_OUTCOME),
    };
    struct exit_group *row = row_table_get(&history->exits, key);
    uint64_t weight = event_uint(event, STRING_WEIGHT, 1);
    if (row == NULL) {
        history->uncounted += weight;
        return;
    }
    if (row->records == 0 || event->ts_ns < row->first_ns) row->first_ns = event->ts_ns;
    if (row->records == 0 || event->ts_ns > row->last_ns) row->last_ns = event->ts_ns;
    row->records++;
    row->weighted += weight;
}

/* The texts of versions, and their sites. */
static void
add_code(struct history *history, uint32_t process, const struct fxt_event *event)
{
    if (fxt_event_arg(event, STRING_ISEQ) == NULL) return;
    if (!glob_matches(&history->glob, history->pool, event_text(history->pool, event, STRING_ISEQ))) return;
    compiled_texts_event(&history->texts, history->pool, process, event);
}

static void
note_flags(struct history *history, const struct fxt_event *event)
{
    if (event->category.id != STRING_TRACE || event->name.id != STRING_SETTINGS) return;
    uint32_t flags = event_text(history->pool, event, STRING_FLAGS);
    if (flags == STRING_NONE) return;
    const char *text = pool_string(history->pool, flags).ptr;
    history->has_flags = true;
    history->compiles_traced = history->compiles_traced || strstr(text, "compiles") != NULL;
    history->invalidations_traced = history->invalidations_traced || strstr(text, "invalidations") != NULL;
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct history *history = context;
    if (!history->has_events) {
        history->has_events = true;
        history->start_ns = event->ts_ns;
    }
    uint32_t process = process_of(history, event);
    version_history_event(&history->versions, history->pool, process, event);
    note_flags(history, event);
    if (event->type != FXT_EVENT_INSTANT) return;
    switch (event->category.id) {
      case STRING_SIDE_EXIT:
      case STRING_RECOMPILE_EXIT: add_exit(history, process, event); break;
      case STRING_TRACE:
        if (event->name.id == STRING_SETTINGS) process_at(history, process)->code = event_code_settings(event);
        add_code(history, process, event);
        if (event->name.id == STRING_JIT) event_code_jit(&process_at(history, process)->code, event);
        break;
    }
}

static void
on_file_end(void *context)
{
    version_history_file_end(&((struct history *)context)->versions);
}

/* --- the document ----------------------------------------------------------------------------- */

/* A line of the table: a step in the history of the ISEQ, or exits. */
struct entry {
    uint32_t process, iseq;
    int64_t ts_ns;
    uint32_t order;
    const struct version_step *step; /* NULL: exits */
    const struct exit_group *exits;
};

static int
compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->iseq != b->iseq) return a->iseq < b->iseq ? -1 : 1;
    if (a->ts_ns != b->ts_ns) return a->ts_ns < b->ts_ns ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static struct fxt_string
string_of(const struct history *history, uint32_t id)
{
    return pool_string(history->pool, id);
}

/* "3,516 bytes with tracing, 1,200 of them for 12 exits; inlined Foo#bar (a.rb:3)". Code without
 * trace points is smaller. */
static struct fxt_string
code_text(const struct history *history, struct document *document, const struct version_step *step)
{
    char bytes[NUMBER_TEXT], exit_bytes[NUMBER_TEXT], exits[NUMBER_TEXT];
    with_commas(bytes, step->code_bytes);
    with_commas(exit_bytes, step->exit_bytes);
    with_commas(exits, step->exits);
    struct fxt_string inlined = string_of(history, step->inlined);
    const char *and = step->inlined != STRING_NONE ? "; inlined " : "";
    const char *with = process_at(history, step->process)->code.traced_code ? " with tracing" : "";
    if (step->exits == 0) return document_text(document, "%s bytes%s%s%s", bytes, with, and, inlined.ptr);
    return document_text(document, "%s bytes%s, %s of them for %s exit%s%s%s", bytes, with, exit_bytes, exits,
                         step->exits == 1 ? "" : "s", and, inlined.ptr);
}

enum {
    COLUMN_OF_TIME,
    COLUMN_OF_LAST,
    COLUMN_OF_LASTS,
    COLUMN_OF_COUNT,
    COLUMN_OF_VERSION,
    COLUMN_OF_EVENT,
    COLUMN_OF_CAUSE,
    COLUMN_OF_WHERE
};

static void
add_step(const struct history *history, struct document *document, struct cell *cells, const struct version_step *step)
{
    static const char *const events[] = {[STEP_COMPILED] = "compiled",
                                         [STEP_FAILED] = "not compiled",
                                         [STEP_INVALIDATED] = "invalidated",
                                         [STEP_PROFILED] = "profiled"};
    cells[COLUMN_OF_TIME] = cell_time(step->ts_ns - history->start_ns);
    cells[COLUMN_OF_EVENT] = cell_text(text_of(events[step->kind]));
    if (step->kind != STEP_INVALIDATED && step->end_ns != INT64_MIN) {
        cells[COLUMN_OF_LAST] = cell_time(step->end_ns - history->start_ns);
        cells[COLUMN_OF_LASTS] = cell_number((uint64_t)(step->end_ns - step->ts_ns));
    }
    if (step->version > 0 && step->kind != STEP_PROFILED) cells[COLUMN_OF_VERSION] = cell_number(step->version);
    switch (step->kind) {
      case STEP_COMPILED: cells[COLUMN_OF_CAUSE] = cell_text(code_text(history, document, step)); break;
      case STEP_PROFILED:
        cells[COLUMN_OF_CAUSE] =
            cell_text(text_of(step->end_ns == INT64_MIN ? "not compiled again" : "until the next compilation"));
        break;
      default:
        cells[COLUMN_OF_CAUSE] = cell_text(string_of(history, step->reason));
        if (step->location != STRING_NONE) cells[COLUMN_OF_WHERE] = cell_text(string_of(history, step->location));
    }
}

static void
add_exits(const struct history *history, struct document *document, struct cell *cells, const struct exit_group *exits)
{
    cells[COLUMN_OF_TIME] = cell_time(exits->first_ns - history->start_ns);
    if (exits->records > 1) {
        cells[COLUMN_OF_LAST] = cell_time(exits->last_ns - history->start_ns);
        cells[COLUMN_OF_LASTS] = cell_number((uint64_t)(exits->last_ns - exits->first_ns));
    }
    cells[COLUMN_OF_COUNT] = cell_number(exits->weighted);
    if (exits->version > 0) cells[COLUMN_OF_VERSION] = cell_number(exits->version);
    struct fxt_string outcome = string_of(history, exits->outcome);
    cells[COLUMN_OF_EVENT] =
        cell_text(outcome.len > 0 ? document_text(document, "exit: %s", outcome.ptr) : text_of("exit"));
    cells[COLUMN_OF_CAUSE] = cell_text(
        document_text(document, "%s, %s", string_of(history, exits->reason).ptr, string_of(history, exits->insn).ptr));
    cells[COLUMN_OF_WHERE] = cell_text(string_of(history, exits->location));
}

static struct table *
begin_table(const struct history *history, struct document *document, const struct entry *entry)
{
    const struct process *process = process_at(history, entry->process);
    const struct column columns[] = {
        [COLUMN_OF_TIME] = {"time_ns", "time", COLUMN_TIME},
        [COLUMN_OF_LAST] = {"last_ns", NULL, COLUMN_TIME},
        [COLUMN_OF_LASTS] = {"duration_ns", "for", COLUMN_DURATION},
        [COLUMN_OF_COUNT] = {"count", "count", COLUMN_COUNT},
        [COLUMN_OF_VERSION] = {"version", process->code.block_versions ? "block version" : "version", COLUMN_NUMBER},
        [COLUMN_OF_EVENT] = {"event", "event", COLUMN_TEXT},
        [COLUMN_OF_CAUSE] = {"cause", "details", COLUMN_TEXT},
        [COLUMN_OF_WHERE] = {"place", "where", COLUMN_TEXT},
    };
    struct fxt_string label = string_of(history, entry->iseq);
    struct fxt_string title = history->processes.count > 1
                                  ? document_text(document, "%s, process %" PRIu32, label.ptr, process->pid)
                                  : document_text(document, "%s", label.ptr);
    return document_table(document, "history", title, COLUMNS(columns));
}

/* --- code -------------------------------------------------------------------------------------- */

enum {
    CODE_ISEQ,
    CODE_VERSION,
    CODE_LINE,
    CODE_EXITS,
    CODE_FALLBACKS,
    CODE_LOST,
    CODE_REASON,
    CODE_CHANGE,
    CODE_TEXT,
    CODE_COLUMNS
};

static struct fxt_string
code_title(const struct history *history, struct document *document, const struct compiled_text *before,
           const struct compiled_text *text)
{
    char bytes[NUMBER_TEXT];
    struct fxt_string label = string_of(history, text->iseq);
    const char *kind = code_kind(text);
    uint32_t why = code_why_made(&history->versions, text->process, text);
    struct fxt_string made = why == STRING_NONE ? text_of("")
                                                : document_text(document, ", made after %s",
                                                                string_of(history, why).ptr);
    if (text->length == 0)
        return document_text(document,
                             "%s of version %" PRIu32 " of %s: %s bytes, for which there was no room in the trace", kind,
                             text->version, label.ptr, with_commas(bytes, text->bytes));
    if (before == NULL)
        return document_text(document, "%s of version %" PRIu32 " of %s%s", kind, text->version, label.ptr, made.ptr);
    return document_text(document, "%s of version %" PRIu32 " of %s%s; - and + compare it with version %" PRIu32, kind,
                         text->version, label.ptr, made.ptr, before->version);
}

static void
add_code_rows(const struct history *history, struct table *rows, const struct compiled_text *text,
              const struct code_line *lines, size_t count, bool all)
{
    static const char *const changes[] = {[TEXT_SAME] = "", [TEXT_ADDED] = "+", [TEXT_REMOVED] = "-"};
    static const enum style styles[] = {[TEXT_SAME] = STYLE_PLAIN, [TEXT_ADDED] = STYLE_BOLD,
                                        [TEXT_REMOVED] = STYLE_DIM};
    for (size_t i = 0; i < count; i++) {
        const struct code_line *line = &lines[i];
        if (!all && !line->shown) {
            if (i == 0 || lines[i - 1].shown) table_row(rows)[CODE_TEXT] = cell_text(text_of("..."));
            continue;
        }
        struct cell *cells = table_row(rows);
        cells[CODE_ISEQ] = cell_text(string_of(history, text->iseq));
        cells[CODE_VERSION] = cell_number(text->version);
        if (line->change != TEXT_REMOVED) cells[CODE_LINE] = cell_number(line->number);
        if (line->exits > 0) cells[CODE_EXITS] = cell_number(line->exits);
        if (line->fallbacks > 0) cells[CODE_FALLBACKS] = cell_number(line->fallbacks);
        if (line->lost_ns > 0) cells[CODE_LOST] = cell_number(line->lost_ns);
        if (line->reason != STRING_NONE) cells[CODE_REASON] = cell_text(string_of(history, line->reason));
        if (line->change != TEXT_SAME) cells[CODE_CHANGE] = cell_text(text_of(changes[line->change]));
        cells[CODE_TEXT] = cell_text((struct fxt_string){.ptr = line->ptr, .len = (uint32_t)line->len});
        cells[CODE_TEXT].style = line->exits > 0 ? STYLE_WORSE : styles[line->change];
    }
}

static void
add_text(const struct history *history, struct document *document, const struct compiled_text *before,
         const struct compiled_text *text)
{
    size_t count;
    struct code_line *lines = code_lines(&history->texts, before, text, &count);
    uint64_t fallbacks = 0, lost_ns = 0;
    for (size_t i = 0; i < count; i++) {
        fallbacks += lines[i].fallbacks;
        lost_ns += lines[i].lost_ns;
    }
    const struct column columns[CODE_COLUMNS] = {
        [CODE_ISEQ] = {"iseq", NULL, COLUMN_TEXT},
        [CODE_VERSION] = {"version", NULL, COLUMN_NUMBER},
        [CODE_LINE] = {"line", NULL, COLUMN_NUMBER},
        [CODE_EXITS] = {"exits", "exits", COLUMN_COUNT},
        [CODE_FALLBACKS] = {"fallbacks", fallbacks > 0 ? "fallbacks" : NULL, COLUMN_COUNT},
        [CODE_LOST] = {"lost_ns", lost_ns > 0 ? "lost" : NULL, COLUMN_DURATION},
        [CODE_REASON] = {"reason", NULL, COLUMN_TEXT},
        [CODE_CHANGE] = {"change", before != NULL ? "" : NULL, COLUMN_TEXT},
        [CODE_TEXT] = {"text", "code", COLUMN_TEXT},
    };
    struct table *rows = document_table(document, "code", code_title(history, document, before, text),
                                        COLUMNS(columns));
    rows->whole_lines = true;
    bool people = format == FORMAT_TEXT || format == FORMAT_MARKDOWN;
    add_code_rows(history, rows, text, lines, count, whole_code || !people);
    free(lines);
}

/* The code of the versions of an ISEQ whose texts were kept, each as it differs from the one before. */
static void
add_texts(const struct history *history, struct document *document, const struct entry *entry)
{
    const struct compiled_text *before = NULL;
    const struct row_table *texts = &history->texts.texts;
    uint32_t count, first = row_table_range(texts, (const uint32_t[]){entry->process, entry->iseq}, 2, &count);
    for (uint32_t i = first; i < first + count; i++) {
        const struct compiled_text *text = row_table_at(texts, i);
        add_text(history, document, before, text);
        if (text->length > 0) before = text;
    }
}

/* Exits alone show no versions. Without settings, missing steps may not have been traced or not
 * have happened; but code that exits was compiled. */
static void
add_missing_note(const struct history *history, struct document *document)
{
    bool compiles = history->compiles_traced, invalidations = history->invalidations_traced || !history->has_flags;
    for (uint32_t i = 0; i < history->versions.count; i++) {
        enum step_kind kind = history->versions.steps[i].kind;
        if (kind == STEP_COMPILED || kind == STEP_FAILED) compiles = true;
        else if (kind == STEP_INVALIDATED) invalidations = true;
    }
    if (compiles && invalidations) return;
    const char *what = compiles        ? "invalidations were not traced"
                       : invalidations ? "compilations were not traced"
                                       : "compilations and invalidations were not traced";
    document_line(document, "partial",
                  document_text(document, "%s, so they are missing below (%s%s%s records them)", what,
                                compiles ? "" : "--zjit-trace-compiles", compiles || invalidations ? "" : " ",
                                invalidations ? "" : "--zjit-trace-invalidation"));
}

/* Fills in the document. Returns false if nothing matches. */
static bool
fill_document(struct history *history, struct document *document)
{
    struct version_history *versions = &history->versions;
    version_history_sort(versions);
    compiled_texts_sort(&history->texts);
    add_missing_note(history, document);
    uint32_t most = versions->count + history->exits.count, count = 0;
    struct entry *entries = xcalloc(most ? most : 1, sizeof *entries);
    for (uint32_t i = 0; i < versions->count; i++) {
        const struct version_step *step = &versions->steps[i];
        if (!glob_matches(&history->glob, history->pool, step->iseq)) continue;
        entries[count] = (struct entry){step->process, step->iseq, step->ts_ns, count, step, NULL};
        count++;
    }
    for (uint32_t i = 0; i < history->exits.count; i++) {
        struct exit_group *exits = row_table_at(&history->exits, i);
        uint32_t owner = version_history_owner(versions, history->pool, exits->process, exits->iseq, exits->location);
        if (owner == STRING_NONE) owner = label_without_line(history->pool, exits->location);
        entries[count] = (struct entry){exits->process, owner, exits->first_ns, count, NULL, exits};
        count++;
    }
    qsort(entries, count, sizeof *entries, compare_entries);
    struct table *rows = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct entry *entry = &entries[i];
        bool other = i == 0 || entries[i - 1].process != entry->process || entries[i - 1].iseq != entry->iseq;
        if (other) rows = begin_table(history, document, entry);
        struct cell *cells = table_row(rows);
        if (entry->step) add_step(history, document, cells, entry->step);
        else add_exits(history, document, cells, entry->exits);
        bool last = i + 1 == count || entries[i + 1].process != entry->process || entries[i + 1].iseq != entry->iseq;
        if (last) add_texts(history, document, entry);
    }
    free(entries);
    return count > 0;
}

/* --- the command ---------------------------------------------------------------------------------- */

static enum status
print_no_match(const struct history *history)
{
    struct fxt_string nearest = glob_nearest_method(&history->glob, history->pool);
    if (nearest.len > 0)
        message("history: no ISEQ or exit matches %s; did you mean %.*s?", history->glob.pattern, (int)nearest.len,
                nearest.ptr);
    else
        message("history: no ISEQ or exit matches %s; %s", history->glob.pattern, history->versions.count > 0
                ? "vm-trace report lists methods, and a glob such as '*name*' matches part of a name"
                : "history needs a trace with --zjit-trace-compiles and --zjit-trace-invalidation");
    return STATUS_USAGE;
}

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    int file_count = argument_count - (method == NULL);
    if (file_count < 1) {
        fputs("vm-trace: history needs a file and --method; see vm-trace history --help\n", stderr);
        return STATUS_USAGE;
    }
    /* It was the last argument before --method was an option, and still may be. */
    const char *pattern = method != NULL ? method : arguments[argument_count - 1];
    struct history history = {.reader = reader_new(options->memory_bytes),
                              .glob = {.pattern = pattern, .matches = label_matches}};
    history.pool = reader_pool(history.reader);
    row_table_init(&history.exits, sizeof(struct exit_group), EXIT_KEYS, EXITS_MAX);
    compiled_texts_init(&history.texts, reader_budget(history.reader));
    row_table_init(&history.processes, sizeof(struct process), 1, PIDS_MAX);
    struct fxt_visitor visitor = {.context = &history, .event = on_event};
    const struct file_bounds bounds = {.end = on_file_end};
    enum status status =
        read_files(history.reader, options->max_faults, file_count, arguments, &visitor, &bounds);
    if (history.has_events) {
        struct document document = {.title = text_of(arguments[0])};
        document_partial(&document, reader_parts(history.reader));
        if (!fill_document(&history, &document)) status = worse(status, print_no_match(&history));
        else if (!document_print(stdout, &document, format, table)) status = worse(status, STATUS_USAGE);
        document_free(&document);
    }
    if (history.uncounted + history.versions.uncounted + history.texts.uncounted > 0) {
        fprintf(stderr,
                "vm-trace: history: %" PRIu64 " events are not shown: there are too many different exits or steps\n",
                history.uncounted + history.versions.uncounted + history.texts.uncounted);
    }
    version_history_free(&history.versions);
    compiled_texts_free(&history.texts);
    row_table_free(&history.exits);
    row_table_free(&history.processes);
    glob_free(&history.glob);
    reader_free(history.reader);
    return worse(status, finish_output());
}

static const struct cli_option history_options[] = {
    CLI_OPTION("method", "GLOB", "the method: 'Foo#bar', 'Foo#*', '* (app/foo.rb:12)'", take_text, &method),
    CLI_OPTION("whole-code", NULL, "all of each version's code, not only what changed or exits", NULL, &whole_code),
    OPTION_FORMAT(format, table), OPTION_MAX_FAULTS, OPTION_MEMORY, {0}};

const struct command command_history = {
    .name = "history",
    .purpose = "the history of a method's compiled versions, in order of time",
    .arguments = "--method=GLOB FILE...",
    .help =
        "Prints, for each ISEQ of the method, when it was compiled and how large the code is,\n"
        "where the code exited and with what outcome, when and why versions were invalidated, and\n"
        "how long the ISEQ was profiled until the next compilation. --method is a glob of\n"
        "'Owner#method' or of a whole label: 'Foo#*', 'block in Foo#bar', '* (app/foo.rb:12)'.\n"
        "Without it, the last argument is the method. Exits that differ only in time share a line.\n"
        "Times start at the first event of the first file.\n"
        "\n"
        "The trace needs --zjit-trace-exits, --zjit-trace-compiles and --zjit-trace-invalidation.\n"
        "With --zjit-trace-compiles=hir (hir,all), the HIR of versions that exit (of all)\n"
        "follows, with the exits of each instruction: of the first one the blocks that exit, of\n"
        "later ones what differs from the one before. --whole-code prints all of it.\n",
    .folders = true,
    .options = history_options,
    .run = run,
};
