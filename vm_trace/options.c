/*
 * Values of trace options. See options.h.
 */
#include "options.h"
#include "vm_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char DEFAULT_PATH[] = "/tmp/perfetto-%p.fxt";

bool
rb_vm_trace_parse_rate(const char *option, const char *value, uint64_t *rate_out)
{
    /* strtoull would take a sign, blanks and "0x". */
    char *end = NULL;
    unsigned long long rate = 0;
    if (*value >= '0' && *value <= '9') {
        errno = 0;
        rate = strtoull(value, &end, 10);
    }
    if (!end || *end != '\0' || errno || rate < 1 || rate > UINT32_MAX) {
        fprintf(stderr, "%s takes a whole number from 1 (record all) to %u (one in so many), not '%s'\n",
                option, UINT32_MAX, value);
        return false;
    }
    *rate_out = rate;
    return true;
}

bool
rb_vm_trace_parse_max_size(const char *option, const char *value, struct rb_vm_trace_max_size *size_out)
{
    char *end = NULL;
    unsigned long long size = 0;
    if (*value >= '0' && *value <= '9') {
        errno = 0;
        size = strtoull(value, &end, 10);
    }
    bool oldest = end && strcmp(end, ",oldest") == 0;
    if (!end || errno || size < VM_TRACE_LEAST_MIB || size > VM_TRACE_MOST_MIB || (*end && !oldest && strcmp(end, ",newest") != 0)) {
        fprintf(stderr, "%s takes a number of MiB from %d to %d, then ',newest' (the default) or ',oldest' for the "
                "events that are kept, not '%s'\n", option, VM_TRACE_LEAST_MIB, VM_TRACE_MOST_MIB, value);
        return false;
    }
    *size_out = (struct rb_vm_trace_max_size){ .bytes = size << 20, .keep_oldest = oldest };
    return true;
}

char *
rb_vm_trace_expand_path(const char *pattern, uint32_t pid, int child)
{
    if (!pattern) pattern = DEFAULT_PATH;
    char digits[16];
    size_t digit_count = (size_t)snprintf(digits, sizeof(digits), "%u", pid);

    size_t room = strlen(pattern) + 2 + digit_count; /* ".PID" and the end */
    for (const char *p = pattern; *p; p++) {
        if (*p == '%') room += digit_count;
    }
    char *path = malloc(room), *to = path;
    if (!path) return NULL;

    bool has_pid = false;
    for (const char *p = pattern; *p; p++) {
        if (p[0] == '%' && p[1] == 'p') {
            memcpy(to, digits, digit_count);
            to += digit_count;
            p++;
            has_pid = true;
        }
        else if (p[0] == '%' && p[1] == '%') {
            *to++ = '%';
            p++;
        }
        else {
            *to++ = *p;
        }
    }
    if (child && !has_pid) {
        *to++ = '.';
        memcpy(to, digits, digit_count);
        to += digit_count;
    }
    *to = '\0';
    return path;
}

char *
rb_vm_trace_absolute_path(const char *path)
{
    if (!path) return NULL;
    if (path[0] == '/') return strdup(path);

    char folder[4096];
    if (!getcwd(folder, sizeof(folder))) return NULL;
    /* A per cent sign of the folder's name is no pattern. */
    size_t room = 2 * strlen(folder) + 1 + strlen(path) + 1;
    char *absolute = malloc(room), *to = absolute;
    if (!absolute) return NULL;
    for (const char *from = folder; *from; from++) {
        if (*from == '%') *to++ = '%';
        *to++ = *from;
    }
    *to++ = '/';
    strcpy(to, path);
    return absolute;
}
