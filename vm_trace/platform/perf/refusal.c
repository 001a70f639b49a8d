/*
 * Why the kernel refuses. See refusal.h. The rules are those of kernel.perf_event_paranoid in the
 * kernel's Documentation/admin-guide/sysctl/kernel.rst, and of perf-security.rst beside it.
 */
#include "vm_trace/platform/perf/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAP_SYS_ADMIN_BIT = 21, CAP_PERFMON_BIT = 38 };

static char sentence[512];

static bool
read_text(const char *path, char *text_out, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text_out, bytes - 1);
    close(fd);
    if (n < 0) return false;
    text_out[n] = '\0';
    return true;
}

static bool
privileged_p(void)
{
    static const char NAME[] = "CapEff:";
    char text[4096];
    if (!read_text("/proc/self/status", text, sizeof(text))) return false;
    const char *at = strstr(text, NAME);
    unsigned long long bits = at ? strtoull(at + strlen(NAME), NULL, 16) : 0;
    return bits & (1ULL << CAP_SYS_ADMIN_BIT | 1ULL << CAP_PERFMON_BIT);
}

static const char *
of_tracefs(int error)
{
    if (error == ENOENT)
        return "tracefs is not mounted, or lacks the tracepoints; as root, mount -t tracefs nodev /sys/kernel/tracing";
    if (error != EACCES) {
        snprintf(sentence, sizeof(sentence), "can't read /sys/kernel/tracing: %s; run as root", strerror(error));
        return sentence;
    }
    snprintf(sentence, sizeof(sentence),
             "only root may read /sys/kernel/tracing; run as root, or as root, mount -o remount,mode=750,gid=%lu "
             "/sys/kernel/tracing",
             (unsigned long)getegid());
    return sentence;
}

const char *
rb_vm_trace_perf_refusal(int tracefs_error, int open_error, int paranoid)
{
    char text[32];
    if (tracefs_error) return of_tracefs(tracefs_error);
    if (open_error == ENOSYS)
        return "perf_event_open is missing in this kernel, or forbidden by a seccomp filter (of a container?)";
    if (open_error == EMFILE) return "Too many open files; raise the limit of open files (ulimit -n)";
    if (open_error != EACCES && open_error != EPERM) {
        snprintf(sentence, sizeof(sentence), "perf_event_open: %s", strerror(open_error));
        return sentence;
    }
    bool known = read_text("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text));
    int level = known ? (int)strtol(text, NULL, 10) : 0;
    if (!known || level <= paranoid || privileged_p())
        return "perf_event_open is forbidden, though kernel.perf_event_paranoid allows it: by a seccomp filter or a "
               "security module; in a container, allow that system call and give it CAP_PERFMON";
    snprintf(sentence, sizeof(sentence),
             "kernel.perf_event_paranoid is %d; as root, sysctl kernel.perf_event_paranoid=%d, or give Ruby CAP_PERFMON",
             level, paranoid);
    return sentence;
}
