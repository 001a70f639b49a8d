/*
 * Numbers in the values of options. See numbers.h.
 */
#include "vm_trace/base/numbers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

bool
rb_vm_trace_duration(const char *text, uint64_t *ns_out)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }, { "min", UINT64_C(60000000000) },
                  { "h", UINT64_C(3600000000000) } };
    enum { UNITS = sizeof(units) / sizeof(units[0]) };
    static const uint64_t most_ns = UINT64_C(86400) * 1000000000;
    char *end;
    unsigned long long number = rb_vm_trace_whole_number(text, &end);
    size_t unit = 0;
    while (unit < UNITS && strcmp(units[unit].name, end) != 0) unit++;
    if (end == text || errno || unit == UNITS || number > most_ns / units[unit].ns) return false;
    *ns_out = number * units[unit].ns;
    return true;
}
