#ifndef METRICS_H
#define METRICS_H
/* metrics.h - sums of a report as OpenMetrics text, for Prometheus and its like (vm-trace metrics).
 *
 * All are gauges, of what was read: they fall when a trace is deleted. Rates are sums divided by
 * vm_trace_traced_seconds. The sets of labels are bounded: reasons lose what is in their parentheses, and
 * no label has a name of the program's.
 *
 * Format: the OpenMetrics specification, version 1.0, "Text Format".
 */
#include <stdio.h>

#include "topics/report_data.h"

/* Prints all of it. `labels`: further labels of every sample, as name="value" with commas between
 * them, already escaped; or "". `files` were to be read, `unread` of them could not be. */
void metrics_print(FILE *out, struct report *report, const char *labels, uint32_t files, uint32_t unread);
/* Whether a text is labels as metrics_print takes them. */
bool metrics_labels_p(const char *text);

#endif
