#ifndef PROCESS_H
#define PROCESS_H
/* process.h - a running process, as /proc shows it to us: it may have other pids, another root and another folder than
 * we (a container). Needs the same user, or root. `pid` is the process's number here. */
#include <stdbool.h>

/* "" or "/proc/PID/root": what makes a path of the process one of ours. */
#define PROCESS_ROOT_BYTES 32

/* Whether the text can be a process id. */
bool process_pid_p(const char *text);

/* Returns a variable of the process's initial environment, malloc'ed. NULL: it has none, or errno says why that cannot be
 * read; EAGAIN: it has no environment at all, as in the middle of execve(2). */
char *process_variable(const char *pid, const char *name);

/* Returns the process's number in its own namespace of pids, malloc'ed. */
char *process_own_pid(const char *pid);

/* Puts "" there if the process has our root. */
void process_root(const char *pid, char root_out[PROCESS_ROOT_BYTES]);

/* Returns the path, as the process bound it, of a Unix socket at which the process listens and whose path ends in one of
 * the texts (NULL ends them; an earlier one comes before a later one). malloc'ed, or NULL. */
char *process_listens_at(const char *pid, const char *const *ends);

/* Makes the process's user the owner of a folder of ours, in which the process is to write: root may ask the programs of
 * all users. False: errno says why. */
bool process_give(const char *pid, const char *folder);

/* Changes our working directory to a folder of the process. False: errno says why. */
bool process_enter(const char *pid, const char *folder);

#endif
