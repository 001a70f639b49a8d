#ifndef RUBY_VM_TRACE_BASE_NUMBERS_H
#define RUBY_VM_TRACE_BASE_NUMBERS_H 1
/*
 * Numbers in the values of options. strtoull would take a sign, blanks and "0x".
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * A number of nothing but digits. stop_out: the first other character. 0: there is none, or it is
 * too large.
 */
unsigned long long rb_vm_trace_whole_number(const char *text, char **stop_out);

/*
 * Parse K of a sample-rate option: a decimal number from 1 to 4294967295. False, and a line on
 * stderr that names the option and what it takes, when it is anything else.
 */
bool rb_vm_trace_parse_rate(const char *option, const char *value, uint64_t *rate_out);

/* A whole number with its unit, up to a day: "20ms". False: it is none. */
bool rb_vm_trace_duration(const char *text, uint64_t *ns_out);

#endif /* RUBY_VM_TRACE_BASE_NUMBERS_H */
