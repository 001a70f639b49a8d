/* diff.c - `vm-trace diff`: shows which exits are new, gone, more or fewer, and how other streams
 * changed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "render/diff_tables.h"

static enum diff_unit unit = PER_RUN;
static bool fallbacks;
static enum document_format format = FORMAT_TEXT;
static const char *table;
static struct path_map paths;
static bool no_map;

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
                option, "5, or exits, lost, waiting, blocked, running, calls, gc or allocations before it: lost:5",
                text);
        }
        number = colon + 1;
        if (!exits) {
            sum_limits[sum] = (struct sum_limit){.text = text};
            percent = &sum_limits[sum].percent;
            bool unit = number[0] != '\0' && number[strlen(number) - 1] == 's';
            if (unit && sum != DIFF_ALLOCATED) {
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
print_over_limit(double percent, const char *what, struct fxt_string name)
{
    fprintf(stderr, "vm-trace: diff: %s", what);
    print_escaped(stderr, name);
    if (isfinite(percent)) fprintf(stderr, " grew by %.1f %% of all exits before", percent);
    else fputs(": there were none before", stderr);
    fprintf(stderr, ", more than --fail-over=%g\n", fail_over_percent);
}

/* Checks the growth of all exits and of each method: what shrinks elsewhere does not compensate. */
static enum status
check_limit(const struct diff *diff)
{
    const char *what = diff->fallbacks ? "fallbacks" : "exits";
    double percent;
    enum status status = STATUS_FINE;
    if (over_limit(diff, &diff->total, &percent)) {
        print_over_limit(percent, what, text_of(""));
        status = STATUS_FAULTS;
    }
    for (uint32_t i = 0; i < diff->methods.changed; i++) {
        const struct diff_row *row = row_table_at(&diff->methods.rows, diff->methods.order[i]);
        if (!over_limit(diff, row, &percent)) continue;
        char in[32];
        snprintf(in, sizeof in, "%s in ", what);
        print_over_limit(percent, in, pool_string(diff->report->pool, row->method));
        status = STATUS_FAULTS;
    }
    return status;
}

/* Prints how much a row grew, if that is more than the limit of a sum. `all`: what it is measured by. */
static enum status
check_growth(const struct sum_limit *limit, const struct diff_row *row, const struct diff_row *all, const char *what,
             struct fxt_string name)
{
    if (row->verdict != GREW && row->verdict != NEW) return STATUS_FINE;
    double percent = 100 * diff_delta(row) / all->counts[0].value;
    char time[NUMBER_TEXT];
    if (limit->ns > 0 ? diff_delta(row) <= (double)limit->ns : percent <= limit->percent) return STATUS_FINE;
    fprintf(stderr, "vm-trace: diff: %s", what);
    print_escaped(stderr, name);
    if (limit->ns > 0) fprintf(stderr, " grew by %s", duration_text(time, (uint64_t)diff_delta(row)));
    else if (isfinite(percent)) fprintf(stderr, " grew by %.1f %%%s", percent, row == all ? "" : " of all before");
    else fputs(": there was nothing before", stderr);
    fprintf(stderr, ", more than --fail-over=%s\n", limit->text);
    return STATUS_FAULTS;
}

/* The methods of a sum, and their names; NULL: it is not known by method. */
static const struct diff_table *
methods_of(const struct diff_streams *streams, const struct diff *diff, enum diff_sum sum)
{
    if (sum == DIFF_LOST) return &diff->lost_methods;
    return sum == DIFF_OWN_TIME ? &streams->tables[DIFF_CALLS].sums : NULL;
}

/* Likewise for the sums of other streams: each by what it was itself; the time that exits lost, and own
 * time, also by method. */
static enum status
check_sums(const struct diff_streams *streams, const struct diff *diff)
{
    enum status status = STATUS_FINE;
    for (unsigned i = 0; i < DIFF_SUMS; i++) {
        const struct sum_limit *limit = &sum_limits[i];
        const struct diff_row *sum = &streams->sums[i];
        if (limit->text == NULL) continue;
        if (!streams->summed[i]) {
            fprintf(stderr, "vm-trace: diff: not all files have what --fail-over=%s compares\n", limit->text);
            status = STATUS_FAULTS;
            continue;
        }
        status = worse(status, check_growth(limit, sum, sum, diff_sum_names[i], text_of("")));
        const struct diff_table *methods = methods_of(streams, diff, i);
        for (uint32_t row = 0; methods != NULL && row < methods->changed; row++) {
            const struct diff_row *method = row_table_at(&methods->rows, methods->order[row]);
            bool lost = i == DIFF_LOST;
            struct fxt_string name = pool_string(diff->report->pool, lost ? method->method : method->reason);
            status = worse(status, check_growth(limit, method, sum, lost ? "lost in " : "own time in ", name));
        }
    }
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

static enum status
run(const struct options *options, int file_count, char **files)
{
    int first_side = find_sides(&file_count, files);
    if (first_side == 0) {
        fputs("vm-trace: diff takes two files, or `A... vs B...`; see vm-trace diff --help\n", stderr);
        return STATUS_USAGE;
    }
    const struct report_filter all = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
    struct report *report = report_new(options->memory_bytes, &all);
    enum status status = report_read_all(report, options->max_faults, file_count, files);
    if (status < STATUS_USAGE) {
        struct diff diff;
        struct diff_streams streams;
        struct document document = {0};
        if (paths.count == 0 && !no_map) diff_find_map(report, (uint32_t)first_side, fallbacks, &paths);
        diff_init(&diff, report, (uint32_t)first_side, unit, fallbacks, &paths);
        diff_streams_init(&streams, &diff);
        diff_document(&diff, &document, options->top);
        diff_streams_document(&streams, &diff, &document, options->top);
        if (!document_print(&document, format, table)) status = worse(status, STATUS_USAGE);
        status = worse(status, worse(check_limit(&diff), check_sums(&streams, &diff)));
        document_free(&document);
        diff_streams_free(&streams);
        diff_free(&diff);
    }
    report_free(report);
    free(paths.list);
    return worse(status, finish_output());
}

static const struct cli_option diff_options[] = {
    OPTION_TOP,
    CLI_OPTION("normalize", 'N', "UNIT", "unit of the counts: run (default: the mean of a side's\n"
               "files), second (of a file's time span), or none (all files)", take_unit, NULL),
    CLI_OPTION("kind", 'k', "KIND", "exits (default) or fallbacks", take_kind, NULL),
    CLI_OPTION("map", 0, "OLD=NEW", "treat paths that begin with OLD as if they began with NEW;\n"
               "can be repeated, the first match applies", take_path, NULL),
    CLI_OPTION("no-map", 0, NULL, "compare paths as they are; by default, folders that hold the\n"
               "same files on both sides are found and treated as one", NULL, &no_map),
    CLI_OPTION("fail-over", 0, "PERCENT", "exit with status 1 if all exits, or those of one method, grew\n"
               "by more than this percentage of all exits of A; lost:5: the same\n"
               "of the time that exits lost; calls:5: of the own time of calls;\n"
               "waiting:5, blocked:5, running:5, gc:5 or allocations:5: if this\n"
               "sum grew by more than 5 %;\n"
               "lost:20ms: by more than this time; can be repeated", take_percent, NULL),
    OPTION_FORMAT(format, table),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_diff = {
    .name = "diff",
    .purpose = "compare runs: exits and the time they lose, calls, threads, GC",
    .arguments = "A B | A... vs B...",
    .help =
        "Compares the exits of two traces by method, by reason and by site (a line, its\n"
        "instruction and the reason), largest difference first. Several files on one side are\n"
        "runs of the same program. A difference then must exceed the spread of the runs: every\n"
        "run of one side is above every run of the other. If exits were sampled, the exact hits of\n"
        "the sites are compared; a trace without them is estimated, with a margin. Addresses in\n"
        "reasons are ignored, and lines that only moved are matched.\n"
        "\n"
        "Streams that all files have are compared, too: the time that exits lost, and where the\n"
        "time went; where the time of threads went, by name and state; what they blocked in; own\n"
        "time of calls by method; garbage collections by reason; allocated bytes by class. If the\n"
        "runs took different times, these tables also have what each side had in a second.\n",
    .options = diff_options,
    .run = run,
};
