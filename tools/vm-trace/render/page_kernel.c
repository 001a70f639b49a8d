/* page_kernel.c - see page_kernel.h. page/kernel.js describes the JSON. */
#include <inttypes.h>

#include "analysis/cpu_tracks.h"
#include "render/page_kernel.h"
#include "render/syscall_text.h"

enum { ROWS_SHOWN = 200 };

static uint32_t
left_out(uint32_t count)
{
    return count > ROWS_SHOWN ? count - ROWS_SHOWN : 0;
}

/* Prints the numbers of slices under a key: their time, how many begin and end, and the longest one. */
static void
print_numbers(struct page *page, struct series_key key, const char *end)
{
    fprintf(page->out, ",[");
    for (enum series_measure measure = SERIES_SUM; measure <= SERIES_ENDED; measure++) {
        key.measure = measure;
        fprintf(page->out, "%s%" PRIu32, measure > 0 ? "," : "", page_bins_of(&page->bins, key));
    }
    fprintf(page->out, "]%s", end);
}

/* --- system calls ----------------------------------------------------------------------------------- */

/* Its errors: [errno, numbers]. */
static void
print_errors(struct page *page, uint32_t syscall)
{
    const struct row_table *errors = &page->data->kernel.syscalls.errors;
    const char *separator = "";
    putc('[', page->out);
    for (uint32_t i = 0; i < errors->count; i++) {
        const struct syscall_error *error = row_table_at(errors, i);
        if (error->name != syscall) continue;
        fprintf(page->out, "%s[%" PRIu32, separator, page_string(page, error->error));
        print_numbers(page, (struct series_key){.subject = SERIES_SYSCALL_ERROR, .a = syscall, .b = error->error}, "]");
        separator = ",";
    }
    putc(']', page->out);
}

static void
print_syscalls(struct page *page)
{
    const struct kernel_sums *kernel = &page->data->kernel;
    struct row_table names = syscalls_by_name(&kernel->syscalls, page->data->pool);
    uint64_t total_ns = 0;
    fputs(",\n\"syscalls\":[", page->out);
    for (uint32_t i = 0; i < names.count; i++) {
        const struct syscall_sum *sum = row_table_at(&names, i);
        const struct syscall_totals *totals = &sum->totals;
        total_ns += totals->total_ns;
        if (i >= ROWS_SHOWN) continue;
        const struct syscall_error *error = syscalls_main_error(&kernel->syscalls, sum->name);
        fprintf(page->out,
                "%s\n[%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu64,
                i > 0 ? "," : "", page_string(page, sum->name), totals->total_ns, totals->calls, totals->max_ns,
                totals->errors, page_string(page, error != NULL ? error->error : STRING_NONE), totals->open);
        print_numbers(page, (struct series_key){.subject = SERIES_SYSCALL, .a = sum->name}, ",");
        print_errors(page, sum->name);
        putc(']', page->out);
    }
    fprintf(page->out,
            "],\n\"syscalls_left_out\":%" PRIu32 ",\"syscall_ns\":%" PRIu64 ",\"syscalls_too_short\":%" PRIu64,
            left_out(names.count), total_ns, kernel->syscalls_left_out);
    row_table_free(&names);
}

/* The system calls of a method: [name, numbers]. */
static void
print_names(struct page *page, uint32_t method)
{
    const struct row_table *callers = &page->data->kernel.callers.rows;
    const char *separator = "";
    fputs(",[", page->out);
    for (uint32_t i = 0; i < callers->count; i++) {
        const struct syscall_caller *caller = row_table_at(callers, i);
        if (caller->caller != method) continue;
        fprintf(page->out, "%s[%" PRIu32, separator, page_string(page, caller->name));
        print_numbers(page, (struct series_key){.subject = SERIES_SYSCALL_OF, .a = method, .b = caller->name}, "]");
        separator = ",";
    }
    putc(']', page->out);
}

static void
print_methods(struct page *page)
{
    struct page_data *data = page->data;
    struct glob all = {0};
    struct row_table methods = syscall_methods_group(&data->kernel.callers, data->pool, &all);
    fputs(",\n\"syscall_methods\":[", page->out);
    for (uint32_t i = 0; i < methods.count && i < ROWS_SHOWN; i++) {
        const struct syscall_method *method = row_table_at(&methods, i);
        char names[SYSCALL_NAMES_TEXT];
        fprintf(page->out, "%s\n[%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",", i > 0 ? "," : "",
                page_string(page, method->caller), method->total_ns, method->calls);
        page_text(page->out, text_of(syscall_names_text(names, data->pool, method)));
        print_names(page, method->caller);
        putc(']', page->out);
    }
    fprintf(page->out, "],\n\"syscall_methods_left_out\":%" PRIu32, left_out(methods.count));
    row_table_free(&methods);
}

/* --- CPUs ------------------------------------------------------------------------------------------- */

static void
print_thread_name(const struct page *page, const struct cpu_thread *thread)
{
    const struct track_thread *track = track_thread(&page->data->over_time.tracks, thread->track);
    page_text(page->out, cpu_track_thread_name(pool_string(page->data->pool, track->name)));
}

/* Times on a CPU, migrations, preempted, woken; with the GVL and without a CPU. */
static void
print_thread_numbers(struct page *page, const struct cpu_thread *thread)
{
    const enum series_subject subjects[] = {SERIES_CPU, SERIES_MIGRATION, SERIES_PREEMPTED, SERIES_WOKEN};
    struct series_key key = {.a = thread->process, .b = thread->tid};
    for (unsigned i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        key.subject = subjects[i];
        print_numbers(page, key, "");
    }
    key.subject = SERIES_HELD;
    key.measure = SERIES_SUM;
    fprintf(page->out, ",%" PRIu32 "]", page_bins_of(&page->bins, key));
}

static void
print_cpus(struct page *page)
{
    struct cpu_times *cpus = &page->data->kernel.cpus;
    cpu_times_sort(cpus, page->data->pool);
    fputs(",\n\"cpus\":[", page->out);
    for (uint32_t i = 0; i < cpus->threads.count && i < ROWS_SHOWN; i++) {
        const struct cpu_thread *thread = row_table_at(&cpus->threads, i);
        const uint64_t *held_ns = cpu_times_held_ns(cpus, thread);
        fprintf(page->out, "%s\n[%" PRIu32 ",%" PRIu32 ",", i > 0 ? "," : "", thread->process, thread->tid);
        print_thread_name(page, thread);
        fprintf(page->out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
                thread->cpu_ns, thread->preempted_ns, thread->woken_ns, thread->longest_wait_ns, thread->runs,
                thread->migrations);
        if (held_ns != NULL) fprintf(page->out, "%" PRIu64, *held_ns);
        else fputs("null", page->out);
        print_thread_numbers(page, thread);
    }
    fprintf(page->out, "],\n\"cpus_left_out\":%" PRIu32 ",\"slices_too_short\":%" PRIu64,
            left_out(cpus->threads.count), page->data->kernel.slices_left_out);
}

static void
print_others(struct page *page)
{
    struct cpu_times *cpus = &page->data->kernel.cpus;
    fputs(",\n\"cpu_others\":[", page->out);
    for (uint32_t i = 0; i < cpus->others.count && i < ROWS_SHOWN; i++) {
        const struct cpu_other *other = row_table_at(&cpus->others, i);
        fprintf(page->out, "%s\n[%" PRIu32 ",%" PRIu32 ",", i > 0 ? "," : "", page_string(page, other->other),
                other->tid);
        print_thread_name(page, cpu_other_thread(cpus, other));
        fprintf(page->out, ",%" PRIu64 ",%" PRIu64, other->waits, other->total_ns);
        const struct series_key key = {
            .subject = SERIES_CPU_OTHER, .a = other->process, .b = other->tid, .c = other->other};
        print_numbers(page, key, "]");
    }
    fprintf(page->out, "],\n\"cpu_others_left_out\":%" PRIu32, left_out(cpus->others.count));
}

void
print_page_kernel(struct page *page)
{
    if (page->data->kernel.syscalls.sums.count > 0) {
        print_syscalls(page);
        print_methods(page);
    }
    if (page->data->kernel.cpus.threads.count > 0) {
        print_cpus(page);
        print_others(page);
    }
}
