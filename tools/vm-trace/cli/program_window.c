/* program_window.c - see program_window.h */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "cli/control.h"
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

static bool
requested_p(const struct program_window *window, uint64_t pid, bool to_stop)
{
    for (uint32_t i = to_stop ? window->first_to_stop : 0; i < window->requested_count; i++) {
        if (window->requested[i] == pid) return true;
    }
    return false;
}

static void
send_request(struct program_window *window, uint64_t pid, bool to_stop)
{
    char text[24];
    struct control_request request = {.bytes = 0};
    make_room(window->requested, window->requested_count, window->requested_capacity);
    window->requested[window->requested_count++] = pid;
    if (kill((pid_t)pid, 0) != 0) return; /* a socket that was left behind */
    snprintf(text, sizeof text, "%llu", (unsigned long long)pid);
    control_word(&request, to_stop ? "stop" : "start");
    if (!to_stop) {
        control_pair(&request, "streams", window->streams);
        control_pair(&request, "file", window->pattern);
    }
    control_send(&request, text, CONTROL_TIMEOUT_S, NULL);
}

void
program_window_tick(struct program_window *window)
{
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    bool to_stop = now >= window->to_ns, to_start = !to_stop && now >= window->from_ns && !window->from_begin;
    DIR *sockets = window->sockets[0] != '\0' && (to_stop || to_start) ? opendir(window->sockets) : NULL;
    if (sockets == NULL) return;
    if (to_stop && !window->stops) window->first_to_stop = window->requested_count;
    window->stops = to_stop;
    for (struct dirent *entry; (entry = readdir(sockets)) != NULL;) {
        size_t bytes = sizeof CONTROL_SOCKET - 1;
        if (strncmp(entry->d_name, CONTROL_SOCKET, bytes) != 0 || !control_pid_p(entry->d_name + bytes)) continue;
        uint64_t pid = strtoull(entry->d_name + bytes, NULL, 10);
        if (!requested_p(window, pid, to_stop)) send_request(window, pid, to_stop);
    }
    closedir(sockets);
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
    free(window->requested);
}
