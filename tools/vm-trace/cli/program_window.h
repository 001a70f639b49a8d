#ifndef PROGRAM_WINDOW_H
#define PROGRAM_WINDOW_H
/* program_window.h - the part of a program's run that `vm-trace record` records, in all of its processes.
 *
 * The processes get it from their environment. With a delay or a duration they also get a folder for control sockets
 * (control.h): each is requested to start or to stop when the time has come, also those that begin later. */
#include <stdbool.h>
#include <stdint.h>

#include "cli/trace_folder.h"

struct program_window {
    const char *streams;
    char *pattern;         /* of the traces */
    char sockets[32];      /* a folder; empty: all is recorded */
    int64_t from_ns, to_ns; /* of CLOCK_MONOTONIC; to_ns INT64_MAX: until the end */
    bool from_begin, again; /* again: a request was not granted, and will be sent once more */
    struct window_request {
        uint64_t key; /* of a process and its socket */
        bool to_stop;
        unsigned tries;
    } *requests;
    uint32_t request_count, request_capacity;
};

/* Sets the environment of programs that this process starts. `streams` is not copied. Prints a message and returns
 * false if the folder for sockets cannot be made. */
bool program_window_open(struct program_window *window, const struct trace_folder *folder, const char *streams,
                         int64_t delay_ns, int64_t duration_ns);
/* Whether it begins later or ends earlier than the program: then the next call says how exactly. */
static inline bool
program_window_timed_p(const struct program_window *window)
{
    return window->sockets[0] != '\0';
}
/* Starts and stops the traces of all processes for which it is time. */
void program_window_tick(struct program_window *window);
/* Whether a trace will begin or end by a request, once the program that was started has ended: the time has not come
 * yet, and there are other processes that have its environment. */
bool program_window_goes_on(const struct program_window *window);
/* The last tick: stops the traces of all processes, if there is a duration. */
void program_window_end(struct program_window *window);
/* Removes the folder of sockets. */
void program_window_close(struct program_window *window);

#endif
