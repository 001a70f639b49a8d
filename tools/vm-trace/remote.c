/* remote.c - start, stop, status, save: tells a running program to trace itself. It listens where its environment says (see
 * vm_trace/ruby/control_socket.c of the patched Ruby), and what it is asked for and answers are words and text. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "escape.h"
#include "reason.h"
#include "xalloc.h"

static const char variable[] = "RUBY_VM_TRACE_CONTROL";

/* Of all four commands. The program itself gives up after 10 s where its main thread does not come to answer, but saving what is in
 * memory takes as long as its disk does. */
enum { DEFAULT_TIMEOUT_S = 60 };
static uint64_t timeout_s = DEFAULT_TIMEOUT_S;

/* Text that the program had a hand in. */
static struct fxt_string
theirs(const char *text)
{
    return (struct fxt_string){.ptr = text, .len = (uint32_t)strlen(text)};
}

/* --- where it listens ---------------------------------------------------------------------------- */

/* The whole file, ended by NUL; NULL, and errno. */
static char *
read_whole(const char *path, size_t *bytes_out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes = 0, room = 4096;
    char *text = xcalloc(room, 1);
    ssize_t n = fd < 0 ? -1 : 0;
    while (fd >= 0 && (n = read(fd, text + bytes, room - bytes - 1)) > 0) {
        bytes += (size_t)n;
        if (bytes + 1 == room) text = xrealloc(text, room *= 2, 1);
    }
    int error = errno;
    if (fd >= 0) close(fd);
    if (n < 0) {
        free(text);
        errno = error;
        return NULL;
    }
    text[bytes] = '\0';
    *bytes_out = bytes;
    return text;
}

/* What the program's environment said when it began; malloc'ed. NULL, and said. */
static char *
find_variable(const char *pid)
{
    char path[64];
    size_t bytes, name = sizeof variable - 1;
    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    char *environment = read_whole(path, &bytes);
    if (environment == NULL && (errno == ENOENT || errno == ESRCH)) { /* ESRCH: it ended just now */
        fprintf(stderr, "vm-trace: no process %s\n", pid);
        return NULL;
    }
    if (environment == NULL) {
        bool other = errno == EACCES || errno == EPERM;
        fprintf(stderr, "vm-trace: process %s%s: %s: %s\n", pid, other ? " is another user's" : "", path, strerror(errno));
        return NULL;
    }
    char *found = NULL;
    for (const char *at = environment; at < environment + bytes; at += strlen(at) + 1) {
        if (strncmp(at, variable, name) != 0 || at[name] != '=') continue;
        found = xcalloc(strlen(at + name + 1) + 1, 1);
        strcpy(found, at + name + 1);
        break;
    }
    free(environment);
    const char *own = getenv(variable); /* a program that sets its title writes over its environment */
    if (found == NULL && own != NULL && *own != '\0') {
        found = xcalloc(strlen(own) + 1, 1);
        strcpy(found, own);
    }
    if (found == NULL) {
        fprintf(stderr, "vm-trace: process %s can't be told anything: start it with %s set to a folder, or to the path of a socket\n",
                pid, variable);
    }
    return found;
}

/* Path of the socket, as the program makes it of the variable. False: it is too long for one. */
static bool
socket_path(const char *value, const char *pid, char *path, size_t room)
{
    struct stat st;
    bool folder = stat(value, &st) == 0 && S_ISDIR(st.st_mode);
    size_t used = 0;
    for (int part = 0; part < (folder ? 2 : 1); part++) {
        for (const char *at = part ? "/vm-trace.%p" : value; *at; at++) {
            char one[2] = {*at, '\0'};
            const char *text = one;
            if (*at == '%' && (at[1] == 'p' || at[1] == '%')) text = *++at == 'p' ? pid : "%";
            size_t bytes = strlen(text);
            if (used + bytes >= room) return false;
            memcpy(path + used, text, bytes);
            used += bytes;
        }
    }
    path[used] = '\0';
    return true;
}

/* A relative path is one of the program's folder. */
static int
connect_to(const char *pid)
{
    char *value = find_variable(pid);
    if (value == NULL) return -1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[64], path[4096];
    bool relative = value[0] != '/';
    snprintf(folder, sizeof folder, "/proc/%s/cwd", pid);
    if (relative && chdir(folder) != 0) {
        fprintf(stderr, "vm-trace: %s: %s\n", folder, strerror(errno));
        free(value);
        return -1;
    }
    bool fits = socket_path(value, pid, path, sizeof path) && strlen(path) < sizeof address.sun_path;
    free(value);
    int fd = fits ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fits) strcpy(address.sun_path, path);
    if (!fits) errno = ENAMETOOLONG;
    /* connect waits where others wait in line already: as long as sending may. */
    struct timeval patience = {.tv_sec = (time_t)timeout_s};
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    int error = errno;
    fprintf(stderr, "vm-trace: process %s does not listen at ", pid);
    print_escaped(stderr, theirs(path));
    fprintf(stderr, ": %s\n", error == EAGAIN ? "it takes no requests" : strerror(error));
    if (fd >= 0) close(fd);
    return -1;
}

/* --- asking ------------------------------------------------------------------------------------------ */

struct request {
    char words[8192];
    size_t bytes;
    bool too_long;
};

static void
add_word(struct request *request, const char *word)
{
    size_t bytes = strlen(word) + 1;
    if (request->bytes + bytes + 1 > sizeof request->words) {
        request->too_long = true;
        return;
    }
    memcpy(request->words + request->bytes, word, bytes);
    request->bytes += bytes;
}

static void
add_pair(struct request *request, const char *name, const char *value)
{
    if (value == NULL) return;
    add_word(request, name);
    add_word(request, value);
}

static void
add_number(struct request *request, const char *name, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    add_pair(request, name, digits);
}

static bool
send_all(int fd, const char *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = send(fd, from, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        from += n;
        bytes -= (size_t)n;
    }
    return true;
}

static int64_t
now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum answer { ANSWERED, ENDED, TOO_LATE };

/* What the program sends until it closes the connection, up to what there is room for; ended by NUL. The time is that of the whole
 * answer: one that comes byte by byte does not hold us longer. */
static enum answer
receive(int fd, char *reply, size_t room, size_t *bytes_out)
{
    int64_t end_ms = now_ms() + (int64_t)timeout_s * 1000;
    enum answer answer = ANSWERED;
    size_t bytes = 0;
    while (bytes + 1 < room) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int64_t left_ms = end_ms - now_ms();
        int ready = left_ms > 0 ? poll(&poll_fd, 1, (int)left_ms) : 0;
        if (ready < 0 && errno == EINTR) continue;
        ssize_t n = ready > 0 ? recv(fd, reply + bytes, room - 1 - bytes, MSG_DONTWAIT) : -1;
        if (ready > 0 && n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (ready == 0) answer = TOO_LATE;
        if (n <= 0) break;
        bytes += (size_t)n;
    }
    reply[bytes] = '\0';
    *bytes_out = bytes;
    return bytes == 0 && answer == ANSWERED ? ENDED : answer;
}

/* What the program answered: lines of it stay lines, all else that moves a cursor is shown. */
static void
print_reply(FILE *out, const char *text, size_t bytes)
{
    for (const char *end = text + bytes; text < end;) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        uint32_t len = (uint32_t)((line_end ? line_end : end) - text);
        print_escaped(out, (struct fxt_string){.ptr = text, .len = len});
        putc('\n', out);
        text += len + 1;
    }
}

static enum status
ask(struct request *request, int count, char **arguments)
{
    const char *pid = arguments[0];
    enum { PID_DIGITS = 10 };
    if (count > 1 || strspn(pid, "0123456789") != strlen(pid) || pid[0] == '\0' || strlen(pid) > PID_DIGITS) {
        fputs("vm-trace: one process id is what it takes\n", stderr);
        return STATUS_USAGE;
    }
    if (request->too_long) {
        fputs("vm-trace: the options are too long\n", stderr);
        return STATUS_USAGE;
    }
    int fd = connect_to(pid);
    if (fd < 0) return STATUS_CANNOT_READ;
    request->words[request->bytes++] = '\0'; /* an empty word ends it */
    if (request->bytes == 1) request->words[request->bytes++] = '\0';

    static const char ok[] = "ok\n", error[] = "error\n";
    char reply[8192];
    size_t bytes = 0;
    enum answer answer = send_all(fd, request->words, request->bytes) ? receive(fd, reply, sizeof reply, &bytes) : ENDED;
    close(fd);
    if (answer == TOO_LATE) {
        fprintf(stderr, "vm-trace: process %s did not answer within %llu s (--timeout=SECONDS waits longer); what was asked for may still be done\n",
                pid, (unsigned long long)timeout_s);
        return STATUS_CANNOT_READ;
    }
    if (answer == ANSWERED && strncmp(reply, ok, sizeof ok - 1) == 0) {
        print_reply(stdout, reply + sizeof ok - 1, bytes - (sizeof ok - 1));
        return finish_output();
    }
    if (answer == ANSWERED && strncmp(reply, error, sizeof error - 1) == 0) {
        fprintf(stderr, "vm-trace: process %s: ", pid);
        print_reply(stderr, reply + sizeof error - 1, bytes - (sizeof error - 1));
    }
    else if (answer == ANSWERED) {
        fprintf(stderr, "vm-trace: process %s answers what no traced Ruby does: is %s set for another program?\n", pid, variable);
    }
    else {
        fprintf(stderr, "vm-trace: process %s ended, or did not answer\n", pid);
    }
    return STATUS_CANNOT_READ;
}

/* --- the commands --------------------------------------------------------------------------------------- */

static const char *counter, *file, *keep, *save_at;
static bool no_exits, compiles, invalidations;
static uint64_t sample_rate = 1, max_size, memory, seconds, stack, min_free = UINT64_MAX;

static bool
take_keep(const struct cli_option *option, const char *text)
{
    if (strcmp(text, "newest") != 0 && strcmp(text, "oldest") != 0) return option_wrong(option, "newest or oldest", text);
    keep = text;
    return true;
}

/*
 * Counters, with commas between them, each by any name of its reason; the program knows whether
 * there are such. malloc'ed.
 */
static char *
counters_of(const char *list)
{
    char *counters = xcalloc(strlen(list) + 1, REASON_COUNTER); /* each letter could be a name */
    for (const char *at = list; *at != '\0';) {
        size_t bytes = strcspn(at, ",");
        char name[REASON_COUNTER], counter[REASON_COUNTER];
        snprintf(name, sizeof name, "%.*s", (int)bytes, at);
        if (bytes < sizeof name && reason_counter(name, counter)) strcat(counters, counter);
        else strncat(counters, at, bytes);
        at += bytes;
        if (*at == ',') strcat(counters, ","), at++;
    }
    return counters;
}

static enum status
run_start(const struct options *options, int count, char **arguments)
{
    (void)options;
    char *counters = counter != NULL ? counters_of(counter) : NULL;
    struct request request = {.bytes = 0};
    add_word(&request, "start");
    add_pair(&request, "exits", no_exits ? "false" : counters);
    free(counters);
    if (compiles) add_pair(&request, "compiles", "true");
    if (invalidations) add_pair(&request, "invalidations", "true");
    if (sample_rate > 1) add_number(&request, "sample_rate", sample_rate);
    if (max_size) add_number(&request, "max_size", max_size);
    if (memory) add_number(&request, "memory", memory);
    if (seconds) add_number(&request, "seconds", seconds);
    if (stack) add_number(&request, "stack", stack);
    if (min_free != UINT64_MAX) add_number(&request, "min_free", min_free);
    add_pair(&request, "keep", keep);
    add_pair(&request, "save_at", save_at);
    add_pair(&request, "file", file);
    return ask(&request, count, arguments);
}

static enum status
run_stop(const struct options *options, int count, char **arguments)
{
    (void)options;
    struct request request = {.bytes = 0};
    add_word(&request, "stop");
    return ask(&request, count, arguments);
}

static enum status
run_status(const struct options *options, int count, char **arguments)
{
    (void)options;
    struct request request = {.bytes = 0};
    add_word(&request, "status");
    return ask(&request, count, arguments);
}

static enum status
run_save(const struct options *options, int count, char **arguments)
{
    (void)options;
    struct request request = {.bytes = 0};
    add_word(&request, "save");
    if (count > 1) add_word(&request, arguments[1]);
    return ask(&request, count > 2 ? count : 1, arguments);
}

#define OPTION_TIMEOUT \
    {"timeout", 't', "SECONDS", "how long to wait for the program's answer (default 60)", take_number, &timeout_s, 1, 86400}

static const struct cli_option start_options[] = {
    CLI_OPTION("counter", 'c', "NAME", "only exits that this counter of the JIT's stats counts: of ZJIT's\nalso by other names of their reason (vm-trace explain)", take_text, &counter),
    CLI_OPTION("no-exits", 0, NULL, "no exits, only what else is asked for", NULL, &no_exits),
    CLI_OPTION("compiles", 0, NULL, "compilations, too", NULL, &compiles),
    CLI_OPTION("invalidations", 0, NULL, "invalidations, too", NULL, &invalidations),
    {"sample-rate", 'k', "K", "every K-th exit only", take_number, &sample_rate, 1, UINT32_MAX},
    CLI_OPTION("file", 'o', "PATH", "the file, as the program sees it; %p is its pid, %t the\ntime, %n a number (default /tmp/perfetto-PID.fxt)", take_text, &file),
    {"max-size", 's', "MIB", "limit of the file", take_number, &max_size, 4, 1 << 20},
    CLI_OPTION("keep", 0, "WHICH", "of a limited file: newest (default) or oldest events", take_keep, NULL),
    {"memory", 'm', "MIB", "no file: the newest events stay in memory, for save", take_number, &memory, 4, 1 << 16},
    {"seconds", 0, "N", "and what is saved of it tells of the last N seconds", take_number, &seconds, 1, 1 << 20},
    CLI_OPTION("save-at", 0, "MOMENT,...", "save it unasked, to the file: at exit, exception, crash", take_text, &save_at),
    {"stack", 0, "N", "only the N innermost frames of each stack", take_number, &stack, 1, 1 << 20},
    {"min-free", 0, "MIB", "stop recording when the disk has less free; 0: never", take_number, &min_free, 0, 1 << 20},
    OPTION_TIMEOUT,
    {0},
};
static const struct cli_option other_options[] = {OPTION_TIMEOUT, {0}};

static const char needed[] = "the pid of a program";

const struct command command_start = {
    .name = "start",
    .purpose = "have a running program trace itself",
    .arguments = "PID",
    .needs = needed,
    .help =
        "Tells a program of yours that runs under a patched Ruby to record its side exits from\n"
        "now on. It must have been started with RUBY_VM_TRACE_CONTROL set to a folder (or to the\n"
        "path of a socket, with %p for the pid), and with a JIT on. Prints the path of the trace.\n",
    .options = start_options,
    .run = run_start,
};

const struct command command_stop = {
    .name = "stop",
    .purpose = "end the trace of a running program",
    .arguments = "PID",
    .needs = needed,
    .help = "Ends the trace that start, or the program itself, has begun. Prints what is in it.\n",
    .options = other_options,
    .run = run_stop,
};

const struct command command_status = {
    .name = "status",
    .purpose = "tell whether a running program is traced",
    .arguments = "PID",
    .needs = needed,
    .help = "Prints whether the program is traced, and then what it has recorded so far.\n",
    .options = other_options,
    .run = run_status,
};

const struct command command_save = {
    .name = "save",
    .purpose = "make a trace of what a running program has in memory",
    .arguments = "PID [PATH]",
    .needs = needed,
    .help =
        "Makes a trace of what a program has recorded into memory (start --memory, or a flag such\n"
        "as --zjit-trace-memory), also while it hangs, and prints what is in it. PATH is a file as\n"
        "the program sees it; %p is its pid, %t the time, %n the number of the saved trace\n"
        "(default /tmp/perfetto-PID-N.fxt). It goes on recording.\n",
    .options = other_options,
    .run = run_save,
};
