/* remote.c - start, stop, status, save: control the trace of a running program.
 *
 * The program listens on a socket that its environment names (see the control socket of the patched
 * Ruby). Requests and answers are words and text.
 */
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

#include "analysis/reason.h"
#include "base/escape.h"
#include "base/xalloc.h"
#include "cli/command.h"

static const char variable[] = "RUBY_VM_TRACE_CONTROL";

/* The timeout of all four commands. The program gives up after 10 s if its main thread does not
 * answer, but saving its memory takes as long as its disk. */
enum { DEFAULT_TIMEOUT_S = 60 };
static uint64_t timeout_s = DEFAULT_TIMEOUT_S;

/* Text that the program may have chosen. */
static struct fxt_string
untrusted_text(const char *text)
{
    return text_of(text);
}

/* --- where it listens ---------------------------------------------------------------------------- */

/* Reads a whole file and adds a NUL. Returns NULL and sets errno on failure. */
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

/* Returns the variable in the program's initial environment; malloc'ed. Prints a message and
 * returns NULL if it is missing. */
static char *
find_variable(const char *pid)
{
    char path[64];
    size_t bytes, name = sizeof variable - 1;
    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    char *environment = read_whole(path, &bytes);
    if (environment == NULL && (errno == ENOENT || errno == ESRCH)) { /* ESRCH: it has just ended */
        fprintf(stderr, "vm-trace: no process %s\n", pid);
        return NULL;
    }
    if (environment == NULL) {
        bool other = errno == EACCES || errno == EPERM;
        fprintf(stderr, "vm-trace: process %s%s: %s: %s\n", pid, other ? " belongs to another user" : "", path,
                strerror(errno));
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
    const char *own = getenv(variable); /* a program that sets its title may overwrite its environment */
    if (found == NULL && own != NULL && *own != '\0') {
        found = xcalloc(strlen(own) + 1, 1);
        strcpy(found, own);
    }
    if (found == NULL) {
        fprintf(stderr,
                "vm-trace: process %s takes no requests: start it with %s set to a folder or to the path of a socket\n",
                pid, variable);
    }
    return found;
}

/* Builds the path of the socket from the variable, as the program does. Returns false if it is
 * too long. */
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

/* Connects to the program. A relative path is relative to the program's folder. */
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
    /* connect waits while other requests are queued: limit it like sending. */
    struct timeval patience = {.tv_sec = (time_t)timeout_s};
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    int error = errno;
    fprintf(stderr, "vm-trace: process %s does not listen at ", pid);
    print_escaped(stderr, untrusted_text(path));
    fprintf(stderr, ": %s\n", error == EAGAIN ? "too many requests are waiting" : strerror(error));
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

/* Receives until the program closes the connection or the buffer is full, and adds a NUL. The
 * timeout is for the whole answer, so one that comes byte by byte does not wait longer. */
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

/* Prints the program's answer. Line ends stay; other characters that move the cursor are
 * escaped. */
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
send_request(struct request *request, int count, char **arguments)
{
    const char *pid = arguments[0];
    enum { PID_DIGITS = 10 };
    if (count > 1 || strspn(pid, "0123456789") != strlen(pid) || pid[0] == '\0' || strlen(pid) > PID_DIGITS) {
        fputs("vm-trace: give exactly one process id\n", stderr);
        return STATUS_USAGE;
    }
    if (request->too_long) {
        fputs("vm-trace: the options are too long\n", stderr);
        return STATUS_USAGE;
    }
    int fd = connect_to(pid);
    if (fd < 0) return STATUS_CANNOT_READ;
    request->words[request->bytes++] = '\0'; /* an empty word ends the request */
    if (request->bytes == 1) request->words[request->bytes++] = '\0';

    static const char ok[] = "ok\n", error[] = "error\n";
    char reply[8192];
    size_t bytes = 0;
    enum answer answer =
        send_all(fd, request->words, request->bytes) ? receive(fd, reply, sizeof reply, &bytes) : ENDED;
    close(fd);
    if (answer == TOO_LATE) {
        fprintf(stderr, "vm-trace: process %s did not answer within %llu s (--timeout=SECONDS waits longer); "
                "it may still carry out the request\n", pid, (unsigned long long)timeout_s);
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
        fprintf(stderr, "vm-trace: process %s sent an answer that no traced Ruby sends: does another program use %s?\n",
                pid, variable);
    }
    else {
        fprintf(stderr, "vm-trace: process %s ended, or closed the connection without an answer\n", pid);
    }
    return STATUS_CANNOT_READ;
}

/* --- the commands --------------------------------------------------------------------------------------- */

static const char *allocations, *call_options, *counter, *file, *keep, *save_at, *preset, *thread_options;
static bool no_exits, samples, compiles, invalidations, markers, threads, gc, states, calls;
static uint64_t sample_rate = 1, max_size, memory, seconds, stack, min_free = UINT64_MAX;

static bool
take_keep(const struct cli_option *option, const char *text)
{
    if (strcmp(text, "newest") != 0 && strcmp(text, "oldest") != 0)
        return option_wrong(option, "newest or oldest", text);
    keep = text;
    return true;
}

/* Converts a list of counters, separated by commas, each by any name of its reason. The program
 * checks whether they exist. malloc'ed. */
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
    if (samples) add_pair(&request, "samples", "true");
    if (compiles) add_pair(&request, "compiles", "true");
    if (invalidations) add_pair(&request, "invalidations", "true");
    if (markers) add_pair(&request, "markers", "true");
    if (thread_options != NULL) add_pair(&request, "threads", thread_options);
    else if (threads) add_pair(&request, "threads", "true");
    add_pair(&request, "preset", preset);
    if (gc) add_pair(&request, "gc", "true");
    if (states) add_pair(&request, "states", "true");
    if (call_options != NULL) add_pair(&request, "calls", call_options);
    else if (calls) add_pair(&request, "calls", "true");
    add_pair(&request, "allocations", allocations);
    if (sample_rate > 1) add_number(&request, "sample_rate", sample_rate);
    if (max_size) add_number(&request, "max_size", max_size);
    if (memory) add_number(&request, "memory", memory);
    if (seconds) add_number(&request, "seconds", seconds);
    if (stack) add_number(&request, "stack", stack);
    if (min_free != UINT64_MAX) add_number(&request, "min_free", min_free);
    add_pair(&request, "keep", keep);
    add_pair(&request, "save_at", save_at);
    add_pair(&request, "file", file);
    return send_request(&request, count, arguments);
}

static enum status
run_stop(const struct options *options, int count, char **arguments)
{
    (void)options;
    struct request request = {.bytes = 0};
    add_word(&request, "stop");
    return send_request(&request, count, arguments);
}

static enum status
run_status(const struct options *options, int count, char **arguments)
{
    (void)options;
    struct request request = {.bytes = 0};
    add_word(&request, "status");
    return send_request(&request, count, arguments);
}

static enum status
run_save(const struct options *options, int count, char **arguments)
{
    (void)options;
    struct request request = {.bytes = 0};
    add_word(&request, "save");
    if (count > 1) add_word(&request, arguments[1]);
    return send_request(&request, count > 2 ? count : 1, arguments);
}

#define OPTION_TIMEOUT                                                                                                 \
    {                                                                                                                  \
        "timeout", 't', "SECONDS", "how long to wait for the program's answer (default 60)", take_number, &timeout_s,  \
            1, 86400                                                                                                   \
    }

static const struct cli_option start_options[] = {
    CLI_OPTION("counter", 'c', "NAME", "only exits that this counter of the JIT's stats counts; for ZJIT\n"
               "also by another name of the reason (see vm-trace explain)", take_text, &counter),
    CLI_OPTION("preset", 0, "NAME", "record what a preset names: default (safe in production), or\n"
               "full (all streams); the other options override it", take_text, &preset),
    CLI_OPTION("no-exits", 0, NULL, "do not record exits", NULL, &no_exits),
    CLI_OPTION("samples", 0, NULL, "record exits as stack samples, too: flame graphs in Perfetto", NULL, &samples),
    CLI_OPTION("compiles", 0, NULL, "record compilations, too", NULL, &compiles),
    CLI_OPTION("invalidations", 0, NULL, "record invalidations, too", NULL, &invalidations),
    CLI_OPTION("markers", 0, NULL, "record the program's own events, too (RubyVM::Trace.instant,\n"
               ".span, .counter); without a JIT give --no-exits", NULL, &markers),
    CLI_OPTION("threads", 0, NULL, "record states of threads, too; without a JIT give --no-exits", NULL, &threads),
    CLI_OPTION("thread-options", 0, "OPTIONS",
               "the same with these options: min=DURATION, stack=all|top|none,\n"
               "with colons between them", take_text, &thread_options),
    CLI_OPTION("gc", 0, NULL, "record garbage collections, too; without a JIT give --no-exits", NULL, &gc),
    CLI_OPTION("states", 0, NULL, "record how long exits keep threads in the interpreter, with\n"
               "exits, compilations, threads and gc", NULL, &states),
    CLI_OPTION("calls", 0, NULL, "record every call, too; without a JIT give --no-exits", NULL, &calls),
    CLI_OPTION("call-options", 0, "OPTIONS",
               "the same with these options: min=DURATION, depth=N, with\n"
               "colons between them", take_text, &call_options),
    CLI_OPTION("allocations", 0, "SIZE", "record one allocation for so many bytes, too: 1K to 1G, such as\n"
               "512K, or 1 for each; without a JIT give --no-exits", take_text, &allocations),
    {"sample-rate", 'k', "K", "record only every K-th exit", take_number, &sample_rate, 1, UINT32_MAX},
    CLI_OPTION("file", 'o', "PATH",
               "path of the trace, as the program sees it; %p is its pid,\n"
               "%t the time, %n a number (default /tmp/perfetto-PID.fxt)", take_text, &file),
    {"max-size", 's', "MIB", "size limit of the file", take_number, &max_size, 4, 1 << 20},
    CLI_OPTION("keep", 0, "WHICH", "events to keep in a limited file: newest (default) or oldest", take_keep, NULL),
    {"memory", 'm', "MIB", "write no file: keep the newest events in memory, for save", take_number, &memory, 4,
     1 << 16},
    {"seconds", 0, "N", "save only the last N seconds of it", take_number, &seconds, 1, 1 << 20},
    CLI_OPTION("save-at", 0, "MOMENT,...", "save it to the file automatically: at exit, exception, crash", take_text,
               &save_at),
    {"stack", 0, "N", "record only the N innermost frames of each stack", take_number, &stack, 1, 1 << 20},
    {"min-free", 0, "MIB", "stop recording when the disk has less free; 0: never", take_number, &min_free, 0, 1 << 20},
    OPTION_TIMEOUT,
    {0},
};
static const struct cli_option other_options[] = {OPTION_TIMEOUT, {0}};

static const char needed[] = "the pid of a program";

const struct command command_start = {
    .name = "start",
    .purpose = "make a running program trace itself",
    .arguments = "PID",
    .needs = needed,
    .help =
        "Makes a running program record its side exits from now on. The program must be yours, run\n"
        "under a patched Ruby with a JIT on, and have been started with RUBY_VM_TRACE_CONTROL set\n"
        "to a folder (or to the path of a socket, with %p for the pid). Prints the path of the\n"
        "trace.\n",
    .options = start_options,
    .run = run_start,
};

const struct command command_stop = {
    .name = "stop",
    .purpose = "end the trace of a running program",
    .arguments = "PID",
    .needs = needed,
    .help =
        "Ends the trace that start, or the program itself, began. Prints what the trace holds.\n",
    .options = other_options,
    .run = run_stop,
};

const struct command command_status = {
    .name = "status",
    .purpose = "show whether a running program is traced",
    .arguments = "PID",
    .needs = needed,
    .help =
        "Prints whether the program is traced, and what it has recorded so far.\n",
    .options = other_options,
    .run = run_status,
};

const struct command command_save = {
    .name = "save",
    .purpose = "write a trace of what a running program has in memory",
    .arguments = "PID [PATH]",
    .needs = needed,
    .help =
        "Writes a trace of what a program has recorded into memory (start --memory, or a flag such\n"
        "as --zjit-trace-memory), even while the program hangs, and prints what the trace holds.\n"
        "PATH is a file as the program sees it; %p is its pid, %t the time, %n the number of the\n"
        "saved trace (default /tmp/perfetto-PID-N.fxt). The program goes on recording.\n",
    .options = other_options,
    .run = run_save,
};
