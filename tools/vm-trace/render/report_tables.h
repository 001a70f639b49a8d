#ifndef REPORT_TABLES_H
#define REPORT_TABLES_H
/* report_tables.h - a report as a document. */
#include "analysis/report_data.h"
#include "render/document.h"

/* The head: files, processes and their settings, time span, losses. */
void report_head(struct report *report, struct document *document);
/* The first lines, before the head: what exits cost. Nothing without the stream `states`. */
void report_cost(struct report *report, struct document *document);
/* Then this line, after the head. */
void report_cost_missing(struct report *report, struct document *document);
/* The tables: exits in several orders, compilations, threads. `top`: rows of a table. */
void report_tables(struct report *report, struct document *document, uint64_t top);
/* Instead: all about calls (--calls). */
void report_call_tables(struct report *report, struct document *document, uint64_t top);
/* Likewise, all about samples of time (--samples). */
void report_sample_tables(struct report *report, struct document *document, uint64_t top);
/* Likewise, all about system calls (--syscalls), and about CPUs (--sched). */
void report_syscall_tables(struct report *report, struct document *document, uint64_t top);
void report_cpu_tables(struct report *report, struct document *document, uint64_t top);
/* Likewise, all about requests and jobs (--endpoints): the report has `endpoints`. */
void report_endpoint_tables(struct report *report, struct document *document, uint64_t top);
/* Likewise, all by gem (--group=gem). */
void report_gem_tables(struct report *report, struct document *document, uint64_t top);
/* Instead, the few that people look at first (vm-trace record). */
void report_top(struct report *report, struct document *document, uint64_t top);
/* The contents of the files: providers and their chunks. */
void report_contents(struct report *report, struct document *document, uint64_t top);

#endif
