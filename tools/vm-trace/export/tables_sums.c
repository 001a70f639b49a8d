/* tables_sums.c - see tables_sums.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/label.h"
#include "fxt/known_strings.h"
#include "export/tables_sums.h"

enum { LIMITED = STRING_VERSION_LIMIT - STRING_PROFILING + 1 };

struct fxt_string
process_setting(const struct report *report, uint32_t number, uint32_t name)
{
    const struct report_setting *setting = report_setting_of(report, number, name);
    return setting != NULL ? pool_string(report->pool, setting->value) : text_of("");
}

static void
setting(struct rows *rows, const struct report *report, uint32_t number, uint32_t name)
{
    rows_text(rows, process_setting(report, number, name));
}

void
tables_write_process(struct process_tables *tables, struct report *report, uint32_t number,
                     const struct process_facts *facts)
{
    const struct report_process *process = report_process(report, number);
    const struct trace_host *host = &process->host;
    struct rows *rows = &tables->rows[TABLE_PROCESSES];
    struct fxt_string rate = process_setting(report, number, STRING_EXIT_RATE);
    rows_begin(rows, text_of(tables->key));
    struct fxt_string name = pool_string(report->pool, host->origin.host);
    rows_text(rows, name.len > 0 ? name : text_of("unknown"));
    rows_text(rows, pool_string(report->pool, host->origin.service));
    rows_text(rows, pool_string(report->pool, host->origin.version));
    rows_integer(rows, process->pid);
    rows_text(rows, text_of(facts->trace));
    setting(rows, report, number, STRING_RUBY);
    setting(rows, report, number, STRING_BASE);
    setting(rows, report, number, STRING_JIT);
    setting(rows, report, number, STRING_FLAGS);
    rows_integer(rows, rate.len > 0 ? strtoll(rate.ptr, NULL, 10) : 1);
    rows_moment(rows, process->first_ns, tables->boot_ns);
    rows_moment(rows, process->last_ns, tables->boot_ns);
    rows_integer(rows, process->summarized);
    setting(rows, report, number, STRING_SNAPSHOT);
    rows_count(rows, process->lost);
    rows_integer(rows, tables->boot_ns);
    rows_integer(rows, time_difference(host->last_offset_ns, host->origin.unix_offset_ns));
    rows_text(rows, text_of(host->known ? "host" : "mtime"));
    rows_text(rows, facts->with_command ? process_setting(report, number, STRING_COMMAND) : text_of(""));
    rows_text(rows, text_of(facts->partial));
    rows_end(rows);
}

/* --- threads ------------------------------------------------------------------------------------------ */

/* The sums of the stream `states`, or zeros. */
static void
write_execution(struct rows *rows, const uint64_t ns[EXECUTION_STATES])
{
    rows_count(rows, ns[EXECUTION_COMPILED]);
    rows_count(rows, ns[EXECUTION_EXITED]);
    rows_count(rows, ns[EXECUTION_UNCOMPILED] + ns[EXECUTION_UNCOMPILABLE] + ns[EXECUTION_REPROFILED]);
    rows_count(rows, ns[EXECUTION_C_FUNCTION]);
    rows_count(rows, ns[EXECUTION_FALLBACK]);
    rows_count(rows, ns[EXECUTION_COMPILING]);
}

static void
write_thread(struct rows *rows, struct report *report, uint32_t number, const char *key)
{
    static const struct thread_times no_times;
    static const struct execution_thread no_execution;
    const struct report_thread *thread = report_thread(report, number);
    const struct thread_times *times = row_table_find(&report->states.threads, &number);
    const struct execution_thread *execution = row_table_find(&report->execution.threads, &number);
    if (times == NULL) times = &no_times;
    if (execution == NULL) execution = &no_execution;
    rows_begin(rows, text_of(key));
    rows_integer(rows, thread->tid);
    rows_text(rows, pool_string(report->pool, thread->name));
    rows_count(rows, thread->events);
    rows_count(rows, thread->exits);
    rows_count(rows, thread->fallbacks);
    rows_count(rows, times->ns[THREAD_RUNNING]);
    rows_count(rows, times->ns[THREAD_IN_GC]);
    rows_count(rows, times->ns[THREAD_WAITING]);
    rows_count(rows, times->ns[THREAD_BLOCKED]);
    rows_count(rows, times->runs);
    rows_count(rows, times->longest_wait_ns);
    write_execution(rows, execution->ns);
    rows_end(rows);
}

void
tables_write_threads(struct written_process *const *written, struct report *report)
{
    for (uint32_t i = 0; i < report->threads.count; i++) {
        struct written_process *process = written[report_thread(report, i)->process];
        if (process != NULL) write_thread(&process->tables.rows[TABLE_THREADS], report, i, process->tables.key);
    }
}

/* --- sites -------------------------------------------------------------------------------------------- */

static struct fxt_string
without_parentheses(struct fxt_string reason)
{
    const char *open = reason.len > 0 ? memchr(reason.ptr, '(', reason.len) : NULL;
    if (open != NULL && open > reason.ptr) reason.len = (uint32_t)(open - reason.ptr);
    return reason;
}

void
tables_write_sites(struct written_process *const *written, struct report *report)
{
    const struct pool *pool = report->pool;
    for (uint32_t i = 0; i < report->exits.rows.count; i++) {
        const struct exit_row *row = row_table_at(&report->exits.rows, i);
        struct written_process *process = row->process < report->processes.count ? written[row->process] : NULL;
        if (process == NULL || row->count + row->records == 0) continue;
        struct rows *rows = &process->tables.rows[TABLE_SITES];
        int64_t frame = table_frame_id(&process->stacks, row->location), insn_index;
        struct fxt_string insn = insn_without_index(pool_string(pool, row->insn), &insn_index);
        rows_begin(rows, text_of(process->tables.key));
        rows_text(rows, pool_string(pool, row->category));
        rows_text(rows, pool_string(pool, row->reason));
        rows_text(rows, without_parentheses(pool_string(pool, row->reason)));
        rows_text(rows, pool_string(pool, row->location));
        rows_integer(rows, frame);
        rows_text(rows, label_parts(pool_string(pool, row->location)).method);
        rows_text(rows, insn);
        rows_integer(rows, row->version);
        rows_text(rows, pool_string(pool, row->iseq));
        rows_text(rows, pool_string(pool, row->callee));
        rows_count(rows, row->count);
        rows_count(rows, row->records);
        rows_count(rows, row->outcomes[LIMITED]);
        rows_count(rows, row->lost_ns);
        rows_count(rows, row->lost_max_ns);
        rows_integer(rows, insn_index);
        rows_end(rows);
    }
}
