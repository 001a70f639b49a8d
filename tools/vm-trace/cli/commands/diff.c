/* diff.c - `vm-trace diff`: shows which exits are new, gone, more or fewer, and how other streams
 * changed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topics/choice.h"
#include "diff/deploys.h"
#include "report/report_chosen.h"
#include "base/escape.h"
#include "base/output_file.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "cli/folders.h"
#include "diff/diff_tables.h"

static enum diff_unit unit = PER_RUN;
static bool unit_given;
static bool fallbacks;
static bool since_deploy;
static const char *service;
static enum document_format format = FORMAT_TEXT;
static const char *table;
static struct path_map paths;
static bool no_map;
static struct trace_choice choice = TRACE_CHOICE_ALL;
static const char *comment_path, *junit_path;
static int trace_count; /* of all sides: no output may be one of them */
static char **traces;

/* --fail-over: of exits, and of the sums of other streams. INFINITY: not given. */
static double fail_over_percent = INFINITY;
static struct sum_limit {
    const char *text; /* as it was given; NULL: it was not */
    double percent;
    int64_t ns; /* instead of a percentage; 0: none */
} sum_limits[DIFF_SUMS];

static bool
take_unit(const struct cli_option *option, const char *text)
{
    static const char *const names[] = {[PER_RUN] = "run", [PER_SECOND] = "second", [IN_ALL] = "none"};
    unit_given = true;
    for (unit = PER_RUN; unit <= IN_ALL; unit++) {
        if (strcmp(text, names[unit]) == 0) return true;
    }
    return option_wrong(option, "run, second or none", text);
}

static bool
take_kind(const struct cli_option *option, const char *text)
{
    fallbacks = strcmp(text, "fallbacks") == 0;
    return fallbacks || strcmp(text, "exits") == 0 || option_wrong(option, "exits or fallbacks", text);
}

static bool
take_path(const struct cli_option *option, const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) return option_wrong(option, "OLD=NEW", text);
    make_room(paths.list, paths.count, paths.capacity);
    paths.list[paths.count].witnesses = 0;
    paths.list[paths.count].from = text;
    paths.list[paths.count].from_bytes = (size_t)(equals - text);
    paths.list[paths.count++].to = equals + 1;
    return true;
}

static bool
is_name(const char *name, const char *text, size_t bytes)
{
    return strlen(name) == bytes && memcmp(text, name, bytes) == 0;
}

/* "5", "2.5%", "waiting:10", "lost:20ms" */
static bool
take_percent(const struct cli_option *option, const char *text)
{
    double *percent = &fail_over_percent;
    const char *number = text, *colon = strchr(text, ':');
    if (colon != NULL) {
        size_t bytes = (size_t)(colon - text);
        int sum = 0;
        while (sum < DIFF_SUMS && !is_name(diff_sum_names[sum], text, bytes)) sum++;
        bool exits = is_name("exits", text, bytes);
        if (sum == DIFF_SUMS && !exits) {
            return option_wrong(
                option, "5, or exits, lost, waiting, blocked, running, calls, gc, collections or allocations before it: lost:5",
                text);
        }
        number = colon + 1;
        if (!exits) {
            sum_limits[sum] = (struct sum_limit){.text = text};
            percent = &sum_limits[sum].percent;
            bool unit = number[0] != '\0' && number[strlen(number) - 1] == 's';
            if (unit && strcmp(diff_sum_unit(sum), "ns") == 0) {
                struct cli_option time = *option;
                time.value = &sum_limits[sum].ns;
                return take_time(&time, number);
            }
        }
    }
    char *end;
    *percent = strtod(number, &end);
    /* excludes signs, exponents and "inf" */
    bool plain = end > number && number + strspn(number, "0123456789.") == end;
    if (plain && (*end == '\0' || strcmp(end, "%") == 0)) return true;
    return option_wrong(option, "a number of percent such as 5 or 2.5, or for a sum of times 20ms", text);
}

/* Whether a row grew by more than fail_over_percent of all exits before. */
static bool
over_limit(const struct diff *diff, const struct diff_row *row, double *percent_out)
{
    if (row->verdict != GREW && row->verdict != NEW) return false;
    *percent_out = 100 * diff_delta(row) / diff->total.counts[0].value; /* infinite if there were none */
    return *percent_out > fail_over_percent;
}

static void
print_over_limit(FILE *out, double percent, const char *what, struct fxt_string name)
{
    fprintf(out, "vm-trace: diff: %s", what);
    print_escaped(out, name);
    if (isfinite(percent)) fprintf(out, " grew by %.1f %% of all exits before", percent);
    else fputs(": there were none before", out);
    fprintf(out, ", more than --fail-over=%g\n", fail_over_percent);
}

/* Checks the growth of all exits and of each method: what shrinks elsewhere does not compensate. */
static void
check_exits(FILE *out, const struct diff *diff)
{
    const char *what = diff->fallbacks ? "fallbacks" : "exits";
    double percent;
    if (over_limit(diff, &diff->total, &percent)) print_over_limit(out, percent, what, text_of(""));
    for (uint32_t i = 0; i < diff->methods.changed; i++) {
        const struct diff_row *row = row_table_at(&diff->methods.rows, diff->methods.order[i]);
        if (!over_limit(diff, row, &percent)) continue;
        char in[32];
        snprintf(in, sizeof in, "%s in ", what);
        print_over_limit(out, percent, in, pool_string(diff->report->pool, row->method));
    }
}

/* Prints how much a row grew, if that is more than the limit of a sum. `all`: what it is measured by. */
static void
check_growth(FILE *out, const struct sum_limit *limit, const struct diff_row *row, const struct diff_row *all,
             const char *what, struct fxt_string name)
{
    if (row->verdict != GREW && row->verdict != NEW) return;
    double percent = 100 * diff_delta(row) / all->counts[0].value;
    char time[NUMBER_TEXT];
    if (limit->ns > 0 ? diff_delta(row) <= (double)limit->ns : percent <= limit->percent) return;
    fprintf(out, "vm-trace: diff: %s", what);
    print_escaped(out, name);
    if (limit->ns > 0) fprintf(out, " grew by %s", duration_text(time, (uint64_t)diff_delta(row)));
    else if (isfinite(percent)) fprintf(out, " grew by %.1f %%%s", percent, row == all ? "" : " of all before");
    else fputs(": there was nothing before", out);
    fprintf(out, ", more than --fail-over=%s\n", limit->text);
}

/* The methods of a sum, and their names; NULL: it is not known by method. */
static const struct diff_table *
methods_of(const struct diff_streams *streams, const struct diff *diff, enum diff_sum sum)
{
    if (sum == DIFF_LOST) return &diff->lost_methods;
    return sum == DIFF_OWN_TIME ? &streams->tables[DIFF_CALLS].sums : NULL;
}

/* Likewise for the sum of another stream: by what it was itself; the time that exits lost, and own time, also by
 * method. */
static void
check_sum(FILE *out, const struct diff_streams *streams, const struct diff *diff, enum diff_sum number)
{
    const struct sum_limit *limit = &sum_limits[number];
    const struct diff_row *sum = &streams->sums[number];
    if (!streams->summed[number]) {
        fprintf(out, "vm-trace: diff: not all files have what --fail-over=%s compares\n", limit->text);
        return;
    }
    check_growth(out, limit, sum, sum, diff_sum_names[number], text_of(""));
    const struct diff_table *methods = methods_of(streams, diff, number);
    for (uint32_t row = 0; methods != NULL && row < methods->changed; row++) {
        const struct diff_row *method = row_table_at(&methods->rows, methods->order[row]);
        bool lost = number == DIFF_LOST;
        struct fxt_string name = pool_string(diff->report->pool, lost ? method->method : method->reason);
        check_growth(out, limit, method, sum, lost ? "lost in " : "own time in ", name);
    }
}

/* All limits that are given, in order. Returns how many. */
static uint32_t
check_limits(const struct diff *diff, const struct diff_streams *streams, struct limit_result results[DIFF_SUMS + 1])
{
    uint32_t count = 0;
    for (int number = -1; number < DIFF_SUMS; number++) {
        bool exits = number < 0;
        if (exits ? isinf(fail_over_percent) : sum_limits[number].text == NULL) continue;
        struct limit_result *result = &results[count++];
        size_t bytes;
        FILE *out = xmemstream(&result->message, &bytes);
        if (exits) check_exits(out, diff);
        else check_sum(out, streams, diff, (enum diff_sum)number);
        fclose(out);
        result->name = !exits ? diff_sum_names[number] : fallbacks ? "fallbacks" : "exits";
    }
    return count;
}

static enum status
write_file(const char *path, const struct diff *diff, const struct diff_streams *streams,
           const struct limit_result *results, uint32_t count)
{
    struct output output;
    if (!output_open(&output, OUTPUT_TEXT, path, trace_count, traces)) return STATUS_CANNOT_READ;
    FILE *out = output.file;
    if (path == junit_path) {
        const struct fxt_parts *parts = reader_parts(diff->report->reader);
        char *partial = parts->count > 0 ? fxt_parts_line(parts) : NULL; /* what the user chose is no error */
        junit_print(out, results, count, partial);
        free(partial);
    }
    else {
        struct document document = {0};
        document_partial(&document, reader_parts(diff->report->reader));
        diff_comment_document(diff, streams, results, count, &document);
        document_print_markdown(out, &document);
        document_free(&document);
    }
    return output_close(&output, STATUS_FINE);
}

/* What CI needs: messages, files, the status. */
static enum status
report_limits(const struct diff *diff, const struct diff_streams *streams)
{
    struct limit_result results[DIFF_SUMS + 1];
    uint32_t count = check_limits(diff, streams, results);
    enum status status = STATUS_FINE;
    for (uint32_t i = 0; i < count; i++) {
        fputs(results[i].message, stderr);
        if (results[i].message[0] != '\0') status = STATUS_FAULTS;
    }
    if (comment_path != NULL) status = worse(status, write_file(comment_path, diff, streams, results, count));
    if (junit_path != NULL) status = worse(status, write_file(junit_path, diff, streams, results, count));
    for (uint32_t i = 0; i < count; i++) free(results[i].message);
    return status;
}

/* Reads "A... vs B...", or two files. Removes the word and returns the number of files of the
 * first side, or 0 if that is unclear. */
static int
find_sides(int *count, char **files)
{
    int first = 0;
    for (int i = 0; i < *count; i++) {
        if (strcmp(files[i], "vs") != 0) continue;
        if (first > 0 || i == 0 || i + 1 == *count) return 0;
        first = i;
    }
    if (first == 0) return *count == 2 ? 1 : 0;
    memmove(files + first, files + first + 1, (size_t)(*count - first - 1) * sizeof *files);
    --*count;
    return first;
}

/* Whether anything is chosen in the run that was read. Prints a message if not. */
static bool
any_chosen(const struct report *report, const char *run)
{
    return !report->chooses || choice_window_in("diff", run, choice.since_ns, trace_filter_length_ns(&report->choice));
}

/* The thread must be on each side; else all of the other one is new, or gone. */
static enum status
check_sides(struct report *report, uint32_t first_side, char **arguments)
{
    const uint32_t ends[SIDES] = {first_side, report->file_count};
    enum status status = report_check_chosen("diff", NULL, report);
    for (uint32_t side = 0, from = 0; side < SIDES && status < STATUS_USAGE; from = ends[side++])
        status = report_check_thread("diff", arguments[from], report, from, ends[side]);
    return status;
}

/* A folder is one run of several processes. */
static enum status
read_runs(struct report *report, uint64_t max_faults, uint32_t first_side, int count, char **arguments)
{
    enum status status = STATUS_FINE;
    for (int i = 0; i < count; i++) {
        int run_count;
        char **run;
        if (!folders_expand(1, &arguments[i], &run_count, &run)) return STATUS_CANNOT_READ;
        status = worse(status, report_read(report, max_faults, arguments[i], run_count, run));
        folder_traces_free(run, run_count);
        if (!any_chosen(report, arguments[i])) return STATUS_USAGE;
    }
    report_read_end(report);
    return worse(status, check_sides(report, first_side, arguments));
}

/* Compares what the report has read, and prints it. */
static enum status
compare(struct report *report, uint32_t first_side, const char *const names[SIDES], uint64_t top)
{
    enum status status = STATUS_FINE;
    struct diff diff;
    struct diff_streams streams;
    struct document document = {0};
    if (paths.count == 0 && !no_map) diff_find_map(report, first_side, fallbacks, &paths);
    struct diff_settings settings = {.unit = unit, .fallbacks = fallbacks, .by_mean = since_deploy, .map = &paths};
    if (names != NULL) memcpy(settings.side_names, names, sizeof settings.side_names);
    diff_init(&diff, report, first_side, &settings);
    diff_streams_init(&streams, &diff);
    document_partial(&document, reader_parts(report->reader));
    diff_document(&diff, &document, top);
    diff_streams_document(&streams, &diff, &document, top);
    if (!document_print(stdout, &document, format, table)) status = STATUS_USAGE;
    status = worse(status, report_limits(&diff, &streams));
    document_free(&document);
    diff_streams_free(&streams);
    diff_free(&diff);
    return status;
}

/* A limit that is exceeded has the status that elsewhere a trace with faults has: CI relies on it. Both together are
 * the latter, for the counts are incomplete. */
static enum status
of_comparison(enum status traces, enum status compared)
{
    return traces == STATUS_FINE || compared >= STATUS_USAGE ? compared : STATUS_DIFF_FAULTS;
}

static enum status
compare_sides(const struct options *options, int file_count, char **files)
{
    int first_side = find_sides(&file_count, files);
    if (first_side == 0) {
        fputs("vm-trace: diff takes two files or folders, or `A... vs B...`; see vm-trace diff --help\n", stderr);
        return STATUS_USAGE;
    }
    struct report *report = report_new_chosen(options->memory_bytes, &choice);
    enum status status = read_runs(report, options->max_faults, (uint32_t)first_side, file_count, files);
    if (status < STATUS_USAGE)
        status = of_comparison(status, compare(report, (uint32_t)first_side, NULL, options->top));
    report_free(report);
    return status;
}

/* Each trace is a run, whose side is its version. */
static enum status
compare_versions(const struct options *options)
{
    struct deploy deploy;
    if (!unit_given) unit = PER_SECOND; /* traces of a fleet have any length */
    enum status status = deploy_find(&deploy, options->memory_bytes, service, trace_count, traces);
    if (status < STATUS_USAGE) {
        const char *const names[SIDES] = {deploy.names[0], deploy.names[1]};
        struct report *report = report_new_chosen(options->memory_bytes, &choice);
        status = worse(status, report_read_all(report, options->max_faults, (int)deploy.count, deploy.files));
        status = worse(status, report_check_chosen("diff", NULL, report));
        if (status < STATUS_USAGE) status = of_comparison(status, compare(report, deploy.old_count, names, options->top));
        report_free(report);
    }
    deploy_free(&deploy);
    return status;
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    if (!since_deploy && options_refused("service", "is for --since-deploy")) return STATUS_USAGE;
    if (!choice_window_any("diff", choice.since_ns, choice.until_ns)) return STATUS_USAGE;
    if (no_map && options_refused("map", "has no effect with --no-map")) return STATUS_USAGE;
    if (!folders_expand(file_count, files, &trace_count, &traces)) return STATUS_CANNOT_READ;
    enum status status = since_deploy ? compare_versions(options) : compare_sides(options, file_count, files);
    free(paths.list);
    folder_traces_free(traces, trace_count);
    return worse(status, finish_output());
}

static const struct cli_option diff_options[] = {
    OPTION_TOP,
    CLI_OPTION("since-deploy", NULL, "compare the last two versions of a service", NULL, &since_deploy),
    CLI_OPTION("service", "NAME", "with --since-deploy: which one, if the traces are of several", take_text,
               &service),
    OPTIONS_TRACE_CHOICE(choice),
    CLI_OPTION("normalize", "UNIT", "unit of the counts: run (default: the mean of a side's\n"
               "files), second (of a file's time span), or none (all files)", take_unit, NULL),
    CLI_OPTION("kind", "KIND", "exits (default) or fallbacks", take_kind, NULL),
    CLI_OPTION("map", "OLD=NEW", "treat paths that begin with OLD as if they began with NEW;\n"
               "can be repeated, the first match applies", take_path, NULL),
    CLI_OPTION("no-map", NULL, "compare paths as they are; by default, folders that hold the\n"
               "same files on both sides are found and treated as one", NULL, &no_map),
    CLI_OPTION("fail-over", "PERCENT", "exit with status 1 if all exits, or those of one method, grew\n"
               "by more than this percentage of all exits of A; lost:5: the same\n"
               "of the time that exits lost; calls:5: of the own time of calls;\n"
               "waiting:5, blocked:5, running:5, gc:5, collections:5 or\n"
               "allocations:5: if this sum grew by more than 5 %;\n"
               "lost:20ms: by more than this time; can be repeated", take_percent, NULL),
    CLI_OPTION("comment", "FILE.md", "also write a short comparison as Markdown, at most 60 lines, for\n"
               "a comment on a pull request", take_text, &comment_path),
    CLI_OPTION("junit", "FILE.xml", "also write the limits of --fail-over as JUnit XML, a test each", take_text,
               &junit_path),
    OPTION_FORMAT(format, table),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_diff = {
    .name = "diff",
    .purpose = "compare runs: exits and the time they lose, calls, threads, GC",
    .arguments = "A B | A... vs B...\n       vm-trace diff --since-deploy [OPTION]... FOLDER...",
    .help =
        "Compares the exits of two traces by method, by reason and by site (a line, its\n"
        "instruction and the reason), largest difference first. A folder is one run: its traces\n"
        "count together. Several files or folders on one side are runs of the same program. A\n"
        "difference then must exceed the spread of the runs: every run of one side is above every\n"
        "run of the other. If exits were sampled, the exact hits of the sites are compared; a trace\n"
        "without them is estimated, with a margin. Addresses in reasons are ignored, and lines that\n"
        "only moved are matched.\n"
        "\n"
        "Streams that all files have are compared, too: the time that exits lost, and where the\n"
        "time went; where the time of threads went, by name and state; what they blocked in; the\n"
        "time of fibers by state; times on CPUs and waits for them, by thread; system calls by\n"
        "name; own time of calls by method; sampled time by method and state; garbage collections\n"
        "by reason; allocated bytes by class, and those that are alive at the end by method and\n"
        "class.\n"
        "If the runs took different times, these tables also have what each side had in a second.\n"
        "\n"
        "--since, --until, --thread, --reason and --method choose a part of each run, as for\n"
        "report: times start at the first event of the run. With a time or a thread, which each\n"
        "side must have, exits count by their events.\n"
        "\n"
        "With --since-deploy the arguments are traces of many processes. The version of the service\n"
        "that began last (service.version in OTEL_RESOURCE_ATTRIBUTES) is compared with that\n"
        "before it, by default for each second of a process. The noise is the spread between\n"
        "processes: a difference must exceed two standard errors of both means.\n",
    .options = diff_options,
    .run = run,
};
