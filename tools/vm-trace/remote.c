/* remote.c - start, stop, status, save: tells a running program to trace itself. It listens where its environment says (see
 * vm_trace/remote.c of the patched Ruby), and what it is asked for and answers are words and text. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "command.h"
#include "xalloc.h"

static const char variable[] = "RUBY_VM_TRACE_CONTROL";

/* --- where it listens ---------------------------------------------------------------------------- */

/* The whole file, ended by NUL; NULL, and said. */
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
        fprintf(stderr, "vm-trace: %s: %s\n", path, strerror(error));
        free(text);
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
    if (environment == NULL) return NULL;
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
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    fprintf(stderr, "vm-trace: process %s does not listen at %s: %s\n", pid, path, strerror(errno));
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
    if (value > 0) add_pair(request, name, digits);
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

static enum status
ask(struct request *request, int count, char **arguments)
{
    const char *pid = arguments[0];
    if (count > 1 || strspn(pid, "0123456789") != strlen(pid) || pid[0] == '\0') {
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

    char reply[8192];
    size_t bytes = 0;
    ssize_t n = send_all(fd, request->words, request->bytes) ? 1 : -1;
    while (n > 0 && bytes + 1 < sizeof reply && ((n = recv(fd, reply + bytes, sizeof reply - 1 - bytes, 0)) > 0 || (n < 0 && errno == EINTR))) {
        if (n > 0) bytes += (size_t)n;
        else n = 1;
    }
    close(fd);
    reply[bytes] = '\0';
    bool ok = strncmp(reply, "ok\n", 3) == 0, error = strncmp(reply, "error\n", 6) == 0;
    if (ok) {
        fputs(reply + 3, stdout);
        return finish_output();
    }
    if (error) fprintf(stderr, "vm-trace: process %s: %s", pid, reply + 6);
    else fprintf(stderr, "vm-trace: process %s ended, or did not answer\n", pid);
    return STATUS_CANNOT_READ;
}

/* --- the commands --------------------------------------------------------------------------------------- */

static const char *counter, *file, *keep, *save_at;
static bool no_exits, compiles, invalidations;
static uint64_t sample_rate = 1, max_size, memory, seconds;

static bool
take_keep(const struct cli_option *option, const char *text)
{
    if (strcmp(text, "newest") != 0 && strcmp(text, "oldest") != 0) return option_wrong(option, "newest or oldest", text);
    keep = text;
    return true;
}

static enum status
run_start(const struct options *options, int count, char **arguments)
{
    (void)options;
    struct request request = {.bytes = 0};
    add_word(&request, "start");
    add_pair(&request, "exits", no_exits ? "false" : counter);
    if (compiles) add_pair(&request, "compiles", "true");
    if (invalidations) add_pair(&request, "invalidations", "true");
    if (sample_rate > 1) add_number(&request, "sample_rate", sample_rate);
    add_number(&request, "max_size", max_size);
    add_number(&request, "memory", memory);
    add_number(&request, "seconds", seconds);
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

static const struct cli_option start_options[] = {
    CLI_OPTION("counter", 'c', "NAME", "only exits that this counter of the JIT's stats counts", take_text, &counter),
    CLI_OPTION("no-exits", 0, NULL, "no exits, only what else is asked for", NULL, &no_exits),
    CLI_OPTION("compiles", 0, NULL, "compilations, too", NULL, &compiles),
    CLI_OPTION("invalidations", 0, NULL, "invalidations, too", NULL, &invalidations),
    {"sample-rate", 'k', "K", "every K-th exit only", take_number, &sample_rate, 1, UINT32_MAX},
    CLI_OPTION("file", 'o', "PATH", "the file, as the program sees it; %p is its pid\n(default /tmp/perfetto-PID.fxt)", take_text, &file),
    {"max-size", 's', "MIB", "limit of the file", take_number, &max_size, 4, 1 << 20},
    CLI_OPTION("keep", 0, "WHICH", "of a limited file: newest (default) or oldest events", take_keep, NULL),
    {"memory", 'm', "MIB", "no file: the newest events stay in memory, for save", take_number, &memory, 4, 1 << 16},
    {"seconds", 0, "N", "and what is saved of it tells of the last N seconds", take_number, &seconds, 1, 1 << 20},
    CLI_OPTION("save-at", 0, "MOMENT,...", "save it unasked, to the file: at exit, exception, crash", take_text, &save_at),
    {0},
};
static const struct cli_option no_options[] = {{0}};

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
    .options = no_options,
    .run = run_stop,
};

const struct command command_status = {
    .name = "status",
    .purpose = "tell whether a running program is traced",
    .arguments = "PID",
    .needs = needed,
    .help = "Prints whether the program is traced, and then what it has recorded so far.\n",
    .options = no_options,
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
        "the program sees it; %p is its pid (default /tmp/perfetto-PID.fxt). It goes on recording.\n",
    .options = no_options,
    .run = run_save,
};
