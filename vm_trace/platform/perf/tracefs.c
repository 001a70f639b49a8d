/*
 * Reading tracefs. See tracefs.h; the files are described in the kernel's
 * Documentation/trace/events.rst.
 */
#include "vm_trace/platform/perf/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT_BYTES = 4096 };

/* Where it is mounted: of its own, or (before Linux 4.1) inside of debugfs. */
static const char *const roots[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
enum { ROOTS = sizeof(roots) / sizeof(roots[0]) };

static const char *const tracepoint_names[VM_TRACE_TRACEPOINTS] = {
    [VM_TRACE_SYS_ENTER] = "raw_syscalls/sys_enter",
    [VM_TRACE_SYS_EXIT] = "raw_syscalls/sys_exit",
    [VM_TRACE_SCHED_SWITCH] = "sched/sched_switch",
    [VM_TRACE_SCHED_WAKING] = "sched/sched_waking"
};

/* Read events/NAME/FILE, terminated. 0, or an errno. */
static int
read_file(const char *name, const char *file, char *text_out, size_t bytes)
{
    int error = ENOENT;
    for (int i = 0; i < ROOTS; i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/events/%s/%s", roots[i], name, file);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            if (errno == EACCES || errno == EPERM) error = EACCES;
            continue;
        }
        ssize_t n = read(fd, text_out, bytes - 1);
        error = n < 0 ? errno : 0;
        close(fd);
        if (n < 0) return error;
        text_out[n] = '\0';
        return 0;
    }
    return error;
}

/* "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;": where the field is; 0: it is none. */
static unsigned
offset_of(const char *format, const char *field)
{
    char scalar[64], array[64];
    snprintf(scalar, sizeof(scalar), " %s;", field);
    snprintf(array, sizeof(array), " %s[", field); /* "char next_comm[16]" */
    const char *at = strstr(format, scalar);
    if (!at) at = strstr(format, array);
    if (at) at = strstr(at, "offset:");
    return at ? (unsigned)strtoul(at + strlen("offset:"), NULL, 10) : 0;
}

static int
find_fields(struct vm_trace_tracepoints *tracepoints, enum vm_trace_tracepoint which)
{
    char format[FORMAT_BYTES];
    if (which != VM_TRACE_SCHED_SWITCH && which != VM_TRACE_SCHED_WAKING) return 0; /* all kernels have the same */
    int error = read_file(tracepoint_names[which], "format", format, sizeof(format));
    if (error) return error;
    if (which == VM_TRACE_SCHED_WAKING) {
        tracepoints->waking.tid = offset_of(format, "pid");
        return tracepoints->waking.tid ? 0 : EINVAL;
    }
    tracepoints->switched.previous_comm = offset_of(format, "prev_comm");
    tracepoints->switched.previous_tid = offset_of(format, "prev_pid");
    tracepoints->switched.next_comm = offset_of(format, "next_comm");
    tracepoints->switched.next_tid = offset_of(format, "next_pid");
    bool known = tracepoints->switched.previous_comm && tracepoints->switched.previous_tid &&
        tracepoints->switched.next_comm && tracepoints->switched.next_tid;
    return known ? 0 : EINVAL;
}

int
rb_vm_trace_tracefs_find(unsigned wanted, struct vm_trace_tracepoints *tracepoints_out)
{
    *tracepoints_out = (struct vm_trace_tracepoints){ .id = { 0 } };
    for (unsigned i = 0; i < VM_TRACE_TRACEPOINTS; i++) {
        char id[32];
        if (!(wanted & 1U << i)) continue;
        int error = read_file(tracepoint_names[i], "id", id, sizeof(id));
        if (!error) error = find_fields(tracepoints_out, (enum vm_trace_tracepoint)i);
        if (error) return error;
        tracepoints_out->id[i] = (int)strtol(id, NULL, 10);
    }
    return 0;
}

/* Types that are 4 bytes wide; the kernel keeps each argument in a register of 8. */
static bool
narrow_p(const char *type)
{
    static const char *const wide[] = { "long", "size_t", "loff_t", "off_t", "u64", "__u64", "aio_context_t", "time_t" };
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        if (strstr(type, wide[i])) return false;
    }
    return true;
}

static void
set_argument(struct vm_trace_call_argument *argument, const char *type, size_t type_bytes)
{
    char text[96];
    snprintf(text, sizeof(text), "%.*s", (int)(type_bytes < sizeof(text) ? type_bytes : sizeof(text) - 1), type);
    argument->bytes = narrow_p(text) ? 4 : 8;
    argument->kind = VM_TRACE_ARGUMENT_SIGNED;
    if (strstr(text, "unsigned") || strstr(text, "size_t") || strstr(text, "umode_t") || strncmp(text, "u", 1) == 0)
        argument->kind = VM_TRACE_ARGUMENT_UNSIGNED;
    if (strstr(text, "ssize_t")) argument->kind = VM_TRACE_ARGUMENT_SIGNED;
    /* A descriptor may be AT_FDCWD, which is negative, whatever its type is. */
    if (strcmp(argument->name, "fd") == 0 || strcmp(argument->name, "dfd") == 0)
        argument->kind = VM_TRACE_ARGUMENT_SIGNED;
    if (strchr(text, '*')) {
        argument->kind = VM_TRACE_ARGUMENT_POINTER;
        argument->bytes = 8;
    }
}

int
rb_vm_trace_tracefs_arguments(const char *call,
                              struct vm_trace_call_argument arguments_out[VM_TRACE_SYSCALL_ARGUMENTS])
{
    static const char FIELD[] = "\tfield:", NUMBER[] = "__syscall_nr;";
    char name[96], format[FORMAT_BYTES];
    snprintf(name, sizeof(name), "syscalls/sys_enter_%s", call);
    if (read_file(name, "format", format, sizeof(format)) != 0) return -1;
    const char *at = strstr(format, NUMBER);
    if (!at) return -1;
    int count = 0;
    while (count < VM_TRACE_SYSCALL_ARGUMENTS && (at = strstr(at, FIELD)) != NULL) {
        at += strlen(FIELD);
        const char *end = strchr(at, ';'), *word = end;
        if (!end) break;
        while (word > at && word[-1] != ' ') word--;
        struct vm_trace_call_argument *argument = &arguments_out[count++];
        snprintf(argument->name, sizeof(argument->name), "%.*s", (int)(end - word), word);
        set_argument(argument, at, (size_t)(word - at));
        at = end;
    }
    return count;
}
