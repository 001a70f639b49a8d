/* page_kernel.c - see page_kernel.h. page/kernel.js describes the JSON. */
#include "topics/kernel/cpu_tracks.h"
#include "page/page_kernel.h"
#include "topics/kernel/syscall_text.h"

enum { ROWS_SHOWN = 200 };

static uint32_t
left_out(uint32_t count)
{
    return count > ROWS_SHOWN ? count - ROWS_SHOWN : 0;
}

/* Writes the numbers of slices under a key: their time, how many begin and end, and the longest one. */
static void
print_numbers(struct page *page, struct series_key key)
{
    json_array(&page->json);
    for (enum series_measure measure = SERIES_SUM; measure <= SERIES_ENDED; measure++) {
        key.measure = measure;
        json_unsigned(&page->json, page_bins_of(&page->bins, key));
    }
    json_end(&page->json);
}

/* --- system calls ----------------------------------------------------------------------------------- */

/* Its errors: [errno, numbers]. */
static void
print_errors(struct page *page, uint32_t syscall)
{
    const struct row_table *errors = &page->data->kernel.syscalls.errors;
    struct json *json = &page->json;
    json_array(json);
    for (uint32_t i = 0; i < errors->count; i++) {
        const struct syscall_error *error = row_table_at(errors, i);
        if (error->name != syscall) continue;
        json_array(json);
        json_unsigned(json, page_string(page, error->error));
        print_numbers(page, (struct series_key){.subject = SERIES_SYSCALL_ERROR, .a = syscall, .b = error->error});
        json_end(json);
    }
    json_end(json);
}

static void
print_syscalls(struct page *page)
{
    const struct kernel_sums *kernel = &page->data->kernel;
    struct json *json = &page->json;
    struct row_table names = syscalls_by_name(&kernel->syscalls, page->data->pool);
    uint64_t total_ns = 0;
    json_array(json_key(json_line(json), "syscalls"));
    for (uint32_t i = 0; i < names.count; i++) {
        const struct syscall_sum *sum = row_table_at(&names, i);
        const struct syscall_totals *totals = &sum->totals;
        total_ns += totals->total_ns;
        if (i >= ROWS_SHOWN) continue;
        const struct syscall_error *error = syscalls_main_error(&kernel->syscalls, sum->name);
        json_array(json_line(json));
        json_numbers(json, page_string(page, sum->name), totals->total_ns, totals->calls, totals->max_ns,
                     totals->errors, page_string(page, error != NULL ? error->error : STRING_NONE), totals->open);
        print_numbers(page, (struct series_key){.subject = SERIES_SYSCALL, .a = sum->name});
        print_errors(page, sum->name);
        json_end(json);
    }
    json_end(json);
    json_counts(json_line(json), {"syscalls_left_out", left_out(names.count)}, {"syscall_ns", total_ns},
                {"syscalls_too_short", kernel->syscalls_left_out});
    row_table_free(&names);
}

/* The system calls of a method: [name, numbers]. */
static void
print_names(struct page *page, uint32_t method)
{
    const struct row_table *callers = &page->data->kernel.callers.rows;
    struct json *json = &page->json;
    json_array(json);
    for (uint32_t i = 0; i < callers->count; i++) {
        const struct syscall_caller *caller = row_table_at(callers, i);
        if (caller->caller != method) continue;
        json_array(json);
        json_unsigned(json, page_string(page, caller->name));
        print_numbers(page, (struct series_key){.subject = SERIES_SYSCALL_OF, .a = method, .b = caller->name});
        json_end(json);
    }
    json_end(json);
}

static void
print_methods(struct page *page)
{
    struct page_data *data = page->data;
    struct json *json = &page->json;
    struct glob all = {0};
    struct row_table methods = syscall_methods_group(&data->kernel.callers, data->pool, &all);
    json_array(json_key(json_line(json), "syscall_methods"));
    for (uint32_t i = 0; i < methods.count && i < ROWS_SHOWN; i++) {
        const struct syscall_method *method = row_table_at(&methods, i);
        char names[SYSCALL_NAMES_TEXT];
        json_array(json_line(json));
        json_numbers(json, page_string(page, method->caller), method->total_ns, method->calls);
        page_text(page, text_of(syscall_names_text(names, data->pool, method)));
        print_names(page, method->caller);
        json_end(json);
    }
    json_end(json);
    json_unsigned(json_key(json_line(json), "syscall_methods_left_out"), left_out(methods.count));
    row_table_free(&methods);
}

/* --- CPUs ------------------------------------------------------------------------------------------- */

static void
print_thread_name(struct page *page, const struct cpu_thread *thread)
{
    const struct track_thread *track = track_thread(&page->data->over_time.tracks, thread->track);
    page_text(page, cpu_track_thread_name(pool_string(page->data->pool, track->name)));
}

/* Times on a CPU, migrations, preempted, woken; with the GVL and without a CPU. */
static void
print_thread_numbers(struct page *page, const struct cpu_thread *thread)
{
    const enum series_subject subjects[] = {SERIES_CPU, SERIES_MIGRATION, SERIES_PREEMPTED, SERIES_WOKEN};
    struct series_key key = {.a = thread->process, .b = thread->tid};
    for (unsigned i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        key.subject = subjects[i];
        print_numbers(page, key);
    }
    key.subject = SERIES_HELD;
    key.measure = SERIES_SUM;
    json_unsigned(&page->json, page_bins_of(&page->bins, key));
}

static void
print_cpus(struct page *page)
{
    struct cpu_times *cpus = &page->data->kernel.cpus;
    struct json *json = &page->json;
    cpu_times_sort(cpus, page->data->pool);
    json_array(json_key(json_line(json), "cpus"));
    for (uint32_t i = 0; i < cpus->threads.count && i < ROWS_SHOWN; i++) {
        const struct cpu_thread *thread = row_table_at(&cpus->threads, i);
        const uint64_t *held_ns = cpu_times_held_ns(cpus, thread);
        json_array(json_line(json));
        json_numbers(json, thread->process, thread->tid);
        print_thread_name(page, thread);
        json_numbers(json, thread->cpu_ns, thread->preempted_ns, thread->woken_ns, thread->longest_wait_ns,
                     thread->runs, thread->migrations);
        if (held_ns != NULL) json_unsigned(json, *held_ns);
        else json_null(json);
        print_thread_numbers(page, thread);
        json_end(json);
    }
    json_end(json);
    json_counts(json_line(json), {"cpus_left_out", left_out(cpus->threads.count)},
                {"slices_too_short", page->data->kernel.slices_left_out});
}

static void
print_others(struct page *page)
{
    struct cpu_times *cpus = &page->data->kernel.cpus;
    struct json *json = &page->json;
    json_array(json_key(json_line(json), "cpu_others"));
    for (uint32_t i = 0; i < cpus->others.count && i < ROWS_SHOWN; i++) {
        const struct cpu_other *other = row_table_at(&cpus->others, i);
        json_array(json_line(json));
        json_numbers(json, page_string(page, other->other), other->tid);
        print_thread_name(page, cpu_other_thread(cpus, other));
        json_numbers(json, other->waits, other->total_ns);
        print_numbers(page, (struct series_key){
            .subject = SERIES_CPU_OTHER, .a = other->process, .b = other->tid, .c = other->other});
        json_end(json);
    }
    json_end(json);
    json_unsigned(json_key(json_line(json), "cpu_others_left_out"), left_out(cpus->others.count));
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
