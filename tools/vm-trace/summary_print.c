/* summary_print.c - the screen that `vm-trace summary` shows.
 *
 * Numbers stand in columns at the left, names last: a name's width on a terminal need not be known.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "escape.h"
#include "summary.h"
#include "words.h"

enum { COUNT_TEXT = 32 };

/* 1234567 as 1,234,567 */
static const char *
with_commas(char text[COUNT_TEXT], uint64_t number)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, number);
    char *to = text;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

static const char *
as_bytes(char text[COUNT_TEXT], uint64_t bytes)
{
    if (bytes < 10000) snprintf(text, COUNT_TEXT, "%" PRIu64 " bytes", bytes);
    else if (bytes < 10000000) snprintf(text, COUNT_TEXT, "%.1f kB", (double)bytes / 1e3);
    else snprintf(text, COUNT_TEXT, "%.1f MB", (double)bytes / 1e6);
    return text;
}

static const char *
as_time(char text[COUNT_TEXT], uint64_t ns)
{
    if (ns < 10000) snprintf(text, COUNT_TEXT, "%" PRIu64 " ns", ns);
    else if (ns < 10000000) snprintf(text, COUNT_TEXT, "%.1f us", (double)ns / 1e3);
    else if (ns < UINT64_C(10000000000)) snprintf(text, COUNT_TEXT, "%.1f ms", (double)ns / 1e6);
    else snprintf(text, COUNT_TEXT, "%.2f s", (double)ns / 1e9);
    return text;
}

static const char *
plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void
print_name(struct summary *summary, uint32_t id)
{
    if (id == STRING_NONE) fputs("(not said)", stdout);
    else print_escaped(stdout, pool_string(reader_pool(summary->reader), id));
}

static double
percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

/* --- head -------------------------------------------------------------------------- */

static void
print_setting(struct summary *summary, const struct setting *setting)
{
    struct fxt_string name = pool_string(reader_pool(summary->reader), setting->name);
    fputs("  ", stdout);
    print_escaped(stdout, name);
    printf("%*s ", name.len < 14 ? 14 - (int)name.len : 0, "");
    if (setting->type == FXT_ARG_STRING) print_name(summary, setting->string);
    else if (setting->type == FXT_ARG_INT32 || setting->type == FXT_ARG_INT64) printf("%" PRId64, (int64_t)setting->number);
    else printf("%" PRIu64, setting->number);
    putchar('\n');
}

static void
print_losses(struct summary *summary)
{
    char number[COUNT_TEXT];
    uint64_t lost = summary->losses.count > summary->lost ? summary->losses.count : summary->lost;
    if (lost > 0) {
        printf("  %-14s %s event%s", "lost", with_commas(number, lost), plural(lost));
        for (uint32_t i = 0; i < summary->losses.row_count; i++) {
            const struct tally_row *row = &summary->losses.rows[i];
            printf("%s%s ", i == 0 ? ": " : ", ", with_commas(number, row->count));
            print_name(summary, row->key[0]);
        }
        putchar('\n');
    }
    else if (summary->summarized) {
        printf("  %-14s nothing\n", "lost");
    }
    else if (summary->setting_count > 0) {
        printf("  %-14s nothing is known to be; the trace has no summary: its program runs still, or ended abruptly\n", "lost");
    }
}

static void
print_head(struct summary *summary, const char *file)
{
    char text[COUNT_TEXT];
    const struct fxt_counts *counts = reader_counts(summary->reader);
    print_file_name(stdout, file);
    putchar('\n');
    for (unsigned i = 0; i < summary->setting_count; i++) print_setting(summary, &summary->settings[i]);
    printf("  %-14s %s, ", "file", as_bytes(text, counts->bytes));
    printf("%s event%s, ", with_commas(text, counts->events), plural(counts->events));
    printf("%s chunk%s\n", with_commas(text, counts->chunks), plural(counts->chunks));
    if (summary->first_ns <= summary->last_ns) {
        printf("  %-14s %s, from %.6f s to %.6f s\n", "time span", as_time(text, (uint64_t)(summary->last_ns - summary->first_ns)),
               (double)summary->first_ns / 1e9, (double)summary->last_ns / 1e9);
    }
    print_losses(summary);
    if (summary->unended > 0) {
        printf("  %-14s %s duration%s, not counted below\n", "never ended", with_commas(text, summary->unended),
               plural(summary->unended));
    }
    if (summary->scaled) {
        printf("  %-14s counts of exits are estimates: events times their weight\n", "sampled");
    }
}

/* --- tables --------------------------------------------------------------------------- */

static void
print_title(const char *title, const struct tally *tally, const struct tally *exact)
{
    char text[COUNT_TEXT];
    bool scaled = tally->records != tally->count;
    printf("\n%s: %s%s", title, scaled ? "about " : "", with_commas(text, tally->count));
    if (scaled) printf(", from %s recorded", with_commas(text, tally->records));
    if (exact != NULL) {
        uint64_t hits = 0;
        for (uint32_t i = 0; i < exact->row_count; i++) {
            if (exact->rows[i].key[0] != WORD_FALLBACK) hits += exact->rows[i].count;
        }
        printf("; exactly %s", with_commas(text, hits));
    }
    putchar('\n');
}

/* The line for what a table does not show. `times`: the second column holds total times, not shares. */
static void
print_rest(const struct tally *tally, uint64_t shown, bool times)
{
    char text[COUNT_TEXT];
    uint64_t rows = tally->row_count - shown;
    uint64_t count = tally->others.count, total_ns = tally->others.total_ns;
    if (rows == 0 && tally->others.records == 0) return;
    for (uint64_t i = shown; i < tally->row_count; i++) {
        count += tally->rows[i].count;
        total_ns += tally->rows[i].total_ns;
    }
    printf("%12s  ", with_commas(text, count));
    if (times) printf("%12s  %12s  ", as_time(text, total_ns), "");
    else printf("%5.1f%%  ", percent(count, tally->count));
    if (tally->others.records > 0) puts("in more than are told apart");
    else printf("in %s more\n", with_commas(text, rows));
}

/* Count, share, name. key: which part of the key is the name; category: which is the category, or -1. */
static void
print_counts(struct summary *summary, const char *title, const char *of_what, struct tally *tally, uint64_t top, int key,
             int category, const struct tally *exact)
{
    if (tally->count == 0) return;
    char text[COUNT_TEXT];
    tally_sort(tally, reader_pool(summary->reader));
    print_title(title, tally, exact);
    printf("%12s  %6s  ", "count", "share");
    if (exact != NULL) printf("%12s  ", "exact");
    puts(of_what);
    uint64_t shown = 0;
    for (; shown < tally->row_count && shown < top; shown++) {
        const struct tally_row *row = &tally->rows[shown];
        printf("%12s  %5.1f%%  ", with_commas(text, row->count), percent(row->count, tally->count));
        if (exact != NULL) {
            const struct tally_row *hits = tally_find(exact, row->key);
            printf("%12s  ", hits == NULL ? "-" : with_commas(text, hits->count));
        }
        print_name(summary, row->key[key]);
        if (category >= 0 && row->key[category] == WORD_RECOMPILE_EXIT) fputs("  [may recompile]", stdout);
        putchar('\n');
    }
    print_rest(tally, shown, false);
}

/* Count, total time, mean, name. */
static void
print_times(struct summary *summary, const char *title, const char *of_what, struct tally *tally, uint64_t top, int key,
            int category)
{
    if (tally->count == 0) return;
    char text[COUNT_TEXT];
    tally_sort(tally, reader_pool(summary->reader));
    printf("\n%s\n%12s  %12s  %12s  %s\n", title, "count", "total", "mean", of_what);
    uint64_t shown = 0;
    for (; shown < tally->row_count && shown < top; shown++) {
        const struct tally_row *row = &tally->rows[shown];
        printf("%12s  ", with_commas(text, row->count));
        printf("%12s  ", as_time(text, row->total_ns));
        printf("%12s  ", as_time(text, row->total_ns / row->count));
        if (category >= 0) {
            print_name(summary, row->key[category]);
            putchar(' ');
        }
        print_name(summary, row->key[key]);
        putchar('\n');
    }
    print_rest(tally, shown, true);
}

static void
print_compiles(struct summary *summary, uint64_t top)
{
    char text[COUNT_TEXT];
    if (summary->compiles.count == 0) return;
    uint64_t total_ns = summary->compiles.rows[0].total_ns;
    printf("\nCompilations: %s, ", with_commas(text, summary->compiles.count));
    printf("%s in all, ", as_time(text, total_ns));
    printf("%s each\n", as_time(text, total_ns / summary->compiles.count));
    print_times(summary, "Phases of compilation", "phase", &summary->phases, top, 0, -1);
}

static void
print_sites(struct summary *summary, uint64_t top)
{
    char text[COUNT_TEXT];
    struct tally *sites = &summary->sites;
    if (sites->row_count == 0) return;
    tally_sort(sites, reader_pool(summary->reader));
    printf("\nSites, with exact hit counts: %s in ", with_commas(text, sites->count));
    printf("%s site%s\n", with_commas(text, sites->records), plural(sites->records));
    if (!summary->summarized) puts("  (only those whose code was freed: the trace has no summary)");
    printf("%12s  %6s  %7s  %s\n", "hits", "share", "version", "site");
    uint64_t shown = 0;
    for (; shown < sites->row_count && shown < top; shown++) {
        const struct tally_row *row = &sites->rows[shown];
        printf("%12s  %5.1f%%  %7" PRIu32 "  ", with_commas(text, row->count), percent(row->count, sites->count), row->key[4]);
        print_name(summary, row->key[1]);
        fputs(" in ", stdout);
        print_name(summary, row->key[3]);
        fputs(", ", stdout);
        print_name(summary, row->key[2]);
        if (row->key[0] == WORD_FALLBACK) fputs("  [fallback]", stdout);
        putchar('\n');
    }
    print_rest(sites, shown, false);
}

static int
by_events(const void *left, const void *right)
{
    const struct thread *a = left, *b = right;
    if (a->events != b->events) return a->events > b->events ? -1 : 1;
    return (a->tid > b->tid) - (a->tid < b->tid);
}

static void
print_threads(struct summary *summary, uint64_t top)
{
    char text[COUNT_TEXT];
    struct threads *threads = &summary->threads;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < threads->count; i++) seen += threads->list[i].events > 0;
    if (seen < 2) return;
    qsort(threads->list, threads->count, sizeof *threads->list, by_events);
    printf("\nThreads: %s\n%12s  %10s  %10s  %s\n", with_commas(text, seen), "events", "pid", "tid", "thread");
    for (uint32_t i = 0; i < seen && i < top; i++) {
        const struct thread *thread = &threads->list[i];
        printf("%12s  %10" PRIu32 "  %10" PRIu32 "  ", with_commas(text, thread->events), thread->pid, thread->tid);
        print_name(summary, thread->name);
        putchar('\n');
    }
    if (seen > top) printf("%12s  %s more\n", "", with_commas(text, seen - top));
}

void
summary_print(struct summary *summary, const char *file, uint64_t top)
{
    tally_sort(&summary->losses, reader_pool(summary->reader));
    print_head(summary, file);
    if (summary->setting_count > 0 && summary->reasons.count == 0 && summary->fallbacks.count == 0) puts("\nNo exits.");
    /* Exact counts are worth a column only where the others are estimates. */
    const struct tally *exact = summary->scaled && summary->summarized ? &summary->exact : NULL;
    print_counts(summary, "Exits by reason", "reason", &summary->reasons, top, 1, 0, exact);
    print_counts(summary, "Exits by innermost frame", "frame", &summary->frames, top, 0, -1, NULL);
    print_counts(summary, "Recompile exits by what they led to", "outcome", &summary->outcomes, top, 0, -1, NULL);
    print_counts(summary, "Fallbacks by reason", "reason", &summary->fallbacks, top, 0, -1, NULL);
    print_sites(summary, top);
    print_compiles(summary, top);
    print_times(summary, "Invalidations", "reason", &summary->invalidations, top, 0, -1);
    print_times(summary, "Durations", "category, name", &summary->durations, top, 1, 0);
    print_threads(summary, top);
}
