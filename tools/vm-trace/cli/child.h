#ifndef CHILD_H
#define CHILD_H
/* child.h - runs a program in the foreground, as if the tool were not there.
 *
 * SIGINT and SIGQUIT, which a terminal sends to both, are for the program alone; SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2
 * are passed on to it. One program per process of the tool. */
#include <stdbool.h>
#include <sys/types.h>

/* Starts a program with NULL-terminated arguments, found in PATH. Returns its pid; or -1 and errno if it cannot be
 * run. */
pid_t child_start(char *const *arguments);
/* Waits for its end, at most so long. Returns whether it ended; *status_out is that of waitpid. Children of its own
 * may go on. */
bool child_wait(pid_t pid, int milliseconds, int *status_out);
/* Ends this process with the program's exit status, or by the signal that ended it. */
void child_pass_on(int status) __attribute__((noreturn));

#endif
