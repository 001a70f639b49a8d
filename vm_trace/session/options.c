/*
 * Values of trace options. See options.h.
 */
#include "vm_trace/session/options.h"
#include "vm_trace/session/origin.h"
#include "vm_trace/session/session_state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char DEFAULT_PATH[] = "/tmp/perfetto-%p.fxt";

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
    if (!end || errno || size < VM_TRACE_LEAST_MIB || size > VM_TRACE_MOST_MIB ||
        (*end && !oldest && strcmp(end, ",newest") != 0)) {
        fprintf(stderr, "%s takes a number of MiB from %d to %d, then ',newest' (the default) or ',oldest' for the "
                "events that are kept, not '%s'\n", option, VM_TRACE_LEAST_MIB, VM_TRACE_MOST_MIB, value);
        return false;
    }
    *size_out = (struct rb_vm_trace_max_size){ .bytes = size << 20, .keep_oldest = oldest };
    return true;
}

bool
rb_vm_trace_parse_memory(const char *option, const char *value)
{
    enum { LEAST = VM_TRACE_LEAST_MIB, MOST = VM_TRACE_MOST_MEMORY_MIB, MOST_SECONDS = VM_TRACE_MOST_SECONDS };
    char *end;
    unsigned long long mib = rb_vm_trace_whole_number(value, &end), seconds = 0;
    bool ok = mib >= LEAST && mib <= MOST;
    if (ok && *end == ',') {
        seconds = rb_vm_trace_whole_number(end + 1, &end);
        ok = seconds >= 1 && seconds <= MOST_SECONDS;
    }
    if (!ok || *end) {
        fprintf(stderr,
                "%s takes the MiB of memory to record into, from %d to %d, then, if only so much is to be saved, "
                "',SECONDS', "
                "not '%s'\n",
                option, LEAST, MOST, value);
        return false;
    }
    rb_vm_trace_session.memory.bytes = mib << 20;
    rb_vm_trace_session.memory.window_ns = seconds * 1000000000;
    return true;
}

static const struct { const char *name; unsigned moment; int signal;
} moments[] = { { "exit", VM_TRACE_SAVE_AT_EXIT, 0 },
                { "exception", VM_TRACE_SAVE_AT_EXCEPTION, 0 },
                { "crash", VM_TRACE_SAVE_AT_CRASH, 0 },
                { "HUP", 0, SIGHUP },
                { "QUIT", 0, SIGQUIT },
                { "USR1", 0, SIGUSR1 },
                { "USR2", 0, SIGUSR2 },
                { "WINCH", 0, SIGWINCH } };

enum { MOMENTS = sizeof(moments) / sizeof(moments[0]) };

/* Its index, or MOMENTS. */
static size_t
find_moment(const char *name, size_t bytes)
{
    size_t i = 0;
    while (i < MOMENTS && (strlen(moments[i].name) != bytes || memcmp(moments[i].name, name, bytes) != 0)) i++;
    return i;
}

unsigned
rb_vm_trace_moment(const char *name, size_t bytes)
{
    size_t i = find_moment(name, bytes);
    return i < MOMENTS ? moments[i].moment : 0;
}

bool
rb_vm_trace_parse_save_at(const char *option, const char *value)
{
    unsigned save_at = 0;
    int number = 0;
    for (const char *word = value; ; word++) {
        size_t bytes = strcspn(word, ","), i = find_moment(word, bytes);
        if (i == MOMENTS || (number && moments[i].signal)) {
            fprintf(
                stderr,
                "%s takes exit, exception, crash, and one signal (HUP, QUIT, USR1, USR2 or WINCH), joined by commas, "
                "not '%s'\n",
                option, value);
            return false;
        }
        save_at |= moments[i].moment;
        if (moments[i].signal) number = moments[i].signal;
        word += bytes;
        if (!*word) break;
    }
    rb_vm_trace_session.memory.save_at = save_at;
    rb_vm_trace_session.memory.signal = number;
    return true;
}

bool
rb_vm_trace_parse_min_free(const char *option, const char *value)
{
    char *end;
    unsigned long long mib = rb_vm_trace_whole_number(value, &end);
    if (end == value || *end || errno || mib > VM_TRACE_MOST_MIB) {
        fprintf(stderr,
                "%s takes the MiB that stay free on the disk, up to %d, or 0 to write until it is full, not '%s'\n",
                option, VM_TRACE_MOST_MIB, value);
        return false;
    }
    rb_vm_trace_session.min_free_bytes = rb_vm_trace_session.flags.min_free_bytes = mib << 20;
    return true;
}

bool
rb_vm_trace_parse_stack(const char *option, const char *value)
{
    char *end;
    unsigned long long frames = rb_vm_trace_whole_number(value, &end);
    if (frames < 1 || frames > VM_TRACE_MOST_FRAMES || *end) {
        fprintf(stderr, "%s takes the number of innermost frames to record of each stack, from 1 to %d, not '%s'\n",
                option, VM_TRACE_MOST_FRAMES, value);
        return false;
    }
    rb_vm_trace_capture.stack_frames = (uint32_t)frames;
    return true;
}

bool
rb_vm_trace_parse_quiet(const char *option, const char *value)
{
    if (*value) {
        fprintf(stderr, "%s takes no value, not '%s'\n", option, value);
        return false;
    }
    rb_vm_trace_session.flags.quiet = true;
    return true;
}

bool
rb_vm_trace_parse_late(const char *option, const char *value)
{
    if (strcmp(value, "no") != 0) {
        fprintf(stderr, "%s takes no, not '%s'\n", option, value);
        return false;
    }
    rb_vm_trace_session.flags.never_late = true;
    return true;
}

/*
 * "20261122T174501", in UTC. By hand, for gmtime_r takes a lock that a forked child may never get
 * (days to a date: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
 */
static int
time_text(char *text, size_t capacity)
{
    uint64_t seconds = (uint64_t)time(NULL), day = seconds / 86400 + 719468; /* from 0000-03-01 on */
    unsigned of_day = (unsigned)(seconds % 86400), era = (unsigned)(day / 146097), of_era = (unsigned)(day % 146097);
    unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153; /* 0: March */
    unsigned of_month = of_year - (153 * month + 2) / 5 + 1;
    return snprintf(text, capacity, "%04u%02u%02uT%02u%02u%02u", era * 400 + year + (month >= 10),
                    month < 10 ? month + 3 : month - 9, of_month, of_day / 3600, of_day / 60 % 60, of_day % 60);
}

/* A host's name as a part of a path. Returns its length. */
static size_t
host_text(char *text, size_t capacity)
{
    static const char PLAIN[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t bytes = (size_t)snprintf(text, capacity, "%s", rb_vm_trace_origin_host());
    if (bytes == 0) bytes = (size_t)snprintf(text, capacity, "unknown");
    if (bytes >= capacity) bytes = capacity - 1;
    for (size_t i = 0; i < bytes; i++) {
        if (!strchr(PLAIN, text[i])) text[i] = '_';
    }
    return bytes;
}

char *
rb_vm_trace_expand_path(const char *pattern, uint32_t pid, int child, uint64_t number, const char *why)
{
    enum { PID, TIME, NUMBER, HOST, REASON, PERCENT, KINDS };
    enum { TEXT_BYTES = 65 };
    static const char LETTERS[KINDS] = { 'p', 't', 'n', 'h', 'r', '%' };
    char texts[KINDS][TEXT_BYTES] = { [PERCENT] = "%" };
    size_t lengths[KINDS] = { [PERCENT] = 1 };
    lengths[PID] = (size_t)snprintf(texts[PID], TEXT_BYTES, "%u", pid);
    lengths[HOST] = host_text(texts[HOST], TEXT_BYTES);
    if (why && strlen(why) < TEXT_BYTES) lengths[REASON] = (size_t)snprintf(texts[REASON], TEXT_BYTES, "%s", why);
    if (number) {
        lengths[TIME] = (size_t)time_text(texts[TIME], TEXT_BYTES);
        lengths[NUMBER] = (size_t)snprintf(texts[NUMBER], TEXT_BYTES, "%llu", (unsigned long long)number);
    }

    if (!pattern) pattern = DEFAULT_PATH;
    size_t room = strlen(pattern) + 2 + lengths[PID]; /* ".PID" and the end */
    for (const char *p = pattern; *p; p++) {
        if (*p == '%') room += sizeof(texts[0]);
    }
    char *path = malloc(room), *to = path;
    if (!path) return NULL;

    bool has_pid = false;
    for (const char *p = pattern; *p; p++) {
        const char *letter = p[0] == '%' && p[1] ? memchr(LETTERS, p[1], KINDS) : NULL;
        size_t kind = letter ? (size_t)(letter - LETTERS) : KINDS;
        if (kind == KINDS || lengths[kind] == 0) {
            *to++ = *p;
            continue;
        }
        memcpy(to, texts[kind], lengths[kind]);
        to += lengths[kind];
        has_pid = has_pid || kind == PID;
        p++;
    }
    if (child && !has_pid) {
        *to++ = '.';
        memcpy(to, texts[PID], lengths[PID]);
        to += lengths[PID];
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
