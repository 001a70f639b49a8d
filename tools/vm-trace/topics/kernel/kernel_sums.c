/* kernel_sums.c - see kernel_sums.h */
#include "topics/kernel/cpu_tracks.h"
#include "analysis/event_args.h"
#include "topics/kernel/kernel_sums.h"
#include "fxt/known_strings.h"

void
kernel_sums_init(struct kernel_sums *sums)
{
    *sums = (struct kernel_sums){0};
    row_table_init(&sums->processes, sizeof(struct kernel_process), 1, KERNEL_PROCESSES_MAX);
    syscalls_init(&sums->syscalls);
    syscall_callers_init(&sums->callers);
    cpu_times_init(&sums->cpus);
}

void
kernel_sums_free(struct kernel_sums *sums)
{
    row_table_free(&sums->processes);
    syscalls_free(&sums->syscalls);
    syscall_callers_free(&sums->callers);
    cpu_times_free(&sums->cpus);
}

void
kernel_sums_set_window(struct kernel_sums *sums, struct interval window)
{
    sums->syscalls.window = sums->callers.window = window;
    cpu_times_set_window(&sums->cpus, window);
}

static struct kernel_process *
process_of(struct kernel_sums *sums, uint32_t number)
{
    static struct kernel_process others; /* with too many processes: callers are not known */
    uint32_t known = sums->processes.count;
    struct kernel_process *process = row_table_get(&sums->processes, &number);
    if (process == NULL) return &others;
    if (sums->processes.count > known) process->seen_ns = INT64_MIN;
    return process;
}

static void
read_settings(struct kernel_sums *sums, struct kernel_process *process, const struct fxt_event *event)
{
    const struct fxt_string flags = fxt_event_text(event, STRING_FLAGS);
    process->has_callers |= text_has_word(flags, "calls") && text_has_word(flags, "syscalls");
    process->has_cpus |= text_has_word(flags, "threads") && text_has_word(flags, "sched");
    if (fxt_event_text(event, STRING_KEEP).id == STRING_NEWEST)
        sums->callers.any_order = sums->cpus.held.any_order = true;
}

void
kernel_sums_trace(struct kernel_sums *sums, uint32_t process, const struct fxt_event *event)
{
    if (event->name.id == STRING_SETTINGS) read_settings(sums, process_of(sums, process), event);
    if (event->name.id != STRING_SUMMARY && event->name.id != STRING_COUNTS) return;
    sums->syscalls_left_out += event_uint(event, STRING_SYSCALLS_LEFT_OUT, 0);
    sums->slices_left_out += event_uint(event, STRING_SCHED_LEFT_OUT, 0);
}

void
kernel_sums_call(struct kernel_sums *sums, struct pool *pool, uint32_t number, uint32_t thread,
                 const struct fxt_event *event)
{
    const struct kernel_process *process = process_of(sums, number);
    bool runs = event->name.id != STRING_FIBER_SUSPENDED;
    if (process->has_callers && runs) syscall_callers_call(&sums->callers, pool, thread, event, process->seen_ns);
}

void
kernel_sums_syscall(struct kernel_sums *sums, struct pool *pool, uint32_t number, uint32_t thread,
                    bool callers_only, const struct fxt_event *event)
{
    struct kernel_process *process = process_of(sums, number);
    if (event->type != FXT_EVENT_DURATION_COMPLETE) return;
    if (event->end_ns > process->seen_ns) process->seen_ns = event->end_ns;
    if (!callers_only) syscalls_event(&sums->syscalls, pool, thread, event);
    if (process->has_callers) syscall_callers_syscall(&sums->callers, pool, thread, event);
}

void
kernel_sums_cpu(struct kernel_sums *sums, struct pool *pool, uint32_t process, uint32_t thread,
                const struct fxt_event *event)
{
    cpu_times_event(&sums->cpus, pool, process, thread, process_of(sums, process)->has_cpus, event);
}

/* A thread without a native thread of its own has no CPU of its own, either. */
void
kernel_sums_held(struct kernel_sums *sums, uint32_t process, uint32_t tid, struct interval held)
{
    if (native_tid_p(tid) && process_of(sums, process)->has_cpus)
        cpu_times_held(&sums->cpus, process, tid, held);
}

void
kernel_sums_file_end(struct kernel_sums *sums)
{
    syscall_callers_file_end(&sums->callers);
    cpu_times_file_end(&sums->cpus);
}
