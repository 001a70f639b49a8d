/*
 * Numbers in the values of options. See numbers.h.
 */
#include "vm_trace/base/numbers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

unsigned long long
rb_vm_trace_whole_number(const char *text, char **stop_out)
{
    *stop_out = (char *)text;
    errno = 0;
    if (*text < '0' || *text > '9') return 0;
    unsigned long long number = strtoull(text, stop_out, 10);
    return errno ? 0 : number;
}

bool
rb_vm_trace_parse_rate(const char *option, const char *value, uint64_t *rate_out)
{
    char *end;
    unsigned long long rate = rb_vm_trace_whole_number(value, &end);
    if (rate < 1 || rate > UINT32_MAX || *end != '\0') {
        fprintf(stderr, "%s takes a whole number from 1 (record all) to %u (one in so many), not '%s'\n",
                option, UINT32_MAX, value);
        return false;
    }
    *rate_out = rate;
    return true;
}
