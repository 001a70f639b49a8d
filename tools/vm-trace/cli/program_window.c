/* program_window.c - see program_window.h */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash_index.h"
#include "base/portable.h"
#include "base/redirect.h"
#include "base/xalloc.h"
#include "cli/control.h"
#include "cli/process.h"
#include "cli/program_window.h"

bool
program_window_open(struct program_window *window, const struct trace_folder *folder, const char *streams,
                    int64_t delay_ns, int64_t duration_ns)
{
    *window = (struct program_window){.streams = streams, .pattern = trace_folder_pattern(folder)};
    window->from_begin = delay_ns == 0;
    window->from_ns = clock_ns(CLOCK_MONOTONIC) + delay_ns;
    window->to_ns = duration_ns > 0 ? window->from_ns + duration_ns : INT64_MAX;
    if (delay_ns > 0 || duration_ns > 0) {
        strcpy(window->sockets, "/tmp/vm-trace-XXXXXX");
        if (mkdtemp(window->sockets) == NULL) {
            fprintf(stderr, "vm-trace: no folder for control sockets can be made in /tmp: %s\n", strerror(errno));
            free(window->pattern);
            return false;
        }
        setenv(CONTROL_VARIABLE, window->sockets, 1);
    }
    char *variable = trace_folder_variable(folder, streams);
    if (window->from_begin) setenv("RUBY_VM_TRACE", variable, 1);
    else unsetenv("RUBY_VM_TRACE");
    free(variable);
    return true;
}

/* The pid in the name of a socket; NULL: it is none. */
static const char *
socket_pid(const char *name)
{
    const size_t bytes = sizeof CONTROL_SOCKET - 1;
    return strncmp(name, CONTROL_SOCKET, bytes) == 0 && process_pid_p(name + bytes) ? name + bytes : NULL;
}

static struct window_request *
request_of(struct program_window *window, uint64_t key, bool to_stop)
{
    for (uint32_t i = 0; i < window->request_count; i++) {
        struct window_request *request = &window->requests[i];
        if (request->key == key && request->to_stop == to_stop) return request;
    }
    make_room(window->requests, window->request_count, window->request_capacity);
    window->requests[window->request_count] = (struct window_request){.key = key, .to_stop = to_stop};
    return &window->requests[window->request_count++];
}

/* False: nobody listens there, such as what a Ruby has become that executed another program. */
static bool
listens_p(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = strlen(path) < sizeof address.sun_path ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0) return false;
    strcpy(address.sun_path, path);
    bool listens = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return listens;
}

/* A process that executes another Ruby keeps its pid, and gets another socket. A Ruby listens before it has begun a
 * trace that its environment asks for: so it is asked again, and only the last answer is shown. */
static void
send_request(struct program_window *window, const char *pid, const char *path, bool to_stop)
{
    enum { TRIES = 50 };
    struct stat st;
    struct control_request words = {.bytes = 0};
    if (stat(path, &st) != 0) return;
    uint64_t time_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec;
    uint64_t key = mix64(strtoull(pid, NULL, 10)) ^ mix64(st.st_ino) ^ time_ns;
    struct window_request *request = request_of(window, key, to_stop);
    if (request->tries == TRIES || !listens_p(path)) return;
    control_word(&words, to_stop ? "stop" : "start");
    if (!to_stop) {
        control_pair(&words, "streams", window->streams);
        control_pair(&words, "file", window->pattern);
    }
    bool last = ++request->tries == TRIES;
    struct redirected errors = {0};
    if (!last) errors = redirect_errors();
    if (control_send(&words, pid, CONTROL_TIMEOUT_S, NULL) == STATUS_FINE) request->tries = TRIES;
    if (!last) free(redirected_text(&errors));
    window->again |= request->tries < TRIES;
}

void
program_window_tick(struct program_window *window)
{
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    bool to_stop = now >= window->to_ns, to_start = !to_stop && now >= window->from_ns && !window->from_begin;
    DIR *sockets = window->sockets[0] != '\0' && (to_stop || to_start) ? opendir(window->sockets) : NULL;
    if (sockets == NULL) return;
    window->again = false;
    for (struct dirent *entry; (entry = readdir(sockets)) != NULL;) {
        const char *pid = socket_pid(entry->d_name);
        if (pid == NULL) continue;
        char *path = xformat("%s/%s", window->sockets, entry->d_name);
        send_request(window, pid, path, to_stop);
        free(path);
    }
    closedir(sockets);
}

/* Whether a process has a program, which kernel threads and dead processes have not. */
static bool
has_program_p(const char *pid)
{
    char target[2];
    char *path = xformat("/proc/%s/exe", pid);
    bool found = readlink(path, target, sizeof target) > 0;
    free(path);
    return found;
}

/* Whether a process has the folder of sockets in its environment: a Ruby that does not listen yet, or a program that
 * may start one. Between two programs a process has no environment: it gets a second. */
static bool
inherited_p(const struct program_window *window, const char *pid)
{
    enum { TRIES = 100 };
    const struct timespec pause = {.tv_nsec = 10 * 1000000L};
    char *folder = process_variable(pid, CONTROL_VARIABLE);
    for (int i = 0; i < TRIES && folder == NULL && errno == EAGAIN && has_program_p(pid); i++) {
        nanosleep(&pause, NULL);
        folder = process_variable(pid, CONTROL_VARIABLE);
    }
    bool found = folder != NULL && strcmp(folder, window->sockets) == 0;
    free(folder);
    return found;
}

static bool
any_in(const struct program_window *window, const char *folder, bool sockets)
{
    bool found = false;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; !found && entries != NULL && (entry = readdir(entries)) != NULL;) {
        const char *pid = sockets ? socket_pid(entry->d_name) : entry->d_name;
        if (pid == NULL || !process_pid_p(pid)) continue;
        pid_t number = (pid_t)strtol(pid, NULL, 10);
        found = number != getpid() && (sockets ? kill(number, 0) == 0 : inherited_p(window, pid));
    }
    if (entries != NULL) closedir(entries);
    return found;
}

bool
program_window_goes_on(const struct program_window *window)
{
    int64_t last_ns = window->to_ns < INT64_MAX ? window->to_ns : window->from_ns;
    if (!program_window_timed_p(window) || clock_ns(CLOCK_MONOTONIC) >= last_ns) return false;
    return any_in(window, window->sockets, true) || any_in(window, "/proc", false);
}

void
program_window_end(struct program_window *window)
{
    if (window->to_ns < INT64_MAX) window->to_ns = clock_ns(CLOCK_MONOTONIC);
    for (program_window_tick(window); window->again; program_window_tick(window)) {
        const struct timespec pause = {.tv_nsec = 20 * 1000000L};
        nanosleep(&pause, NULL);
    }
}

void
program_window_close(struct program_window *window)
{
    DIR *sockets = window->sockets[0] != '\0' ? opendir(window->sockets) : NULL;
    for (struct dirent *entry; sockets != NULL && (entry = readdir(sockets)) != NULL;) {
        char path[sizeof window->sockets + sizeof entry->d_name];
        snprintf(path, sizeof path, "%s/%s", window->sockets, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    if (sockets != NULL) closedir(sockets);
    if (window->sockets[0] != '\0') rmdir(window->sockets);
    free(window->pattern);
    free(window->requests);
}
