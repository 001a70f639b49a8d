/* child.c - see child.h */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/portable.h"
#include "cli/child.h"

static const int passed_on[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { PASSED_ON = sizeof passed_on / sizeof passed_on[0] };

static sigset_t waited_for, before; /* signals that child_wait takes; the mask that the program gets */
static void (*on_interrupt)(int), (*on_quit)(int); /* as they were */

pid_t
child_start(char *const *arguments)
{
    int ends[2], error = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    sigemptyset(&waited_for);
    sigaddset(&waited_for, SIGCHLD);
    for (int i = 0; i < PASSED_ON; i++) sigaddset(&waited_for, passed_on[i]);
    sigprocmask(SIG_BLOCK, &waited_for, &before);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(arguments[0], arguments);
        error = errno;
        if (write(ends[1], &error, sizeof error) < 0) _exit(126);
        _exit(127);
    }
    close(ends[1]);
    if (pid < 0) error = errno;
    else if (read(ends[0], &error, sizeof error) > 0) waitpid(pid, NULL, 0);
    close(ends[0]);
    if (error != 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        errno = error;
        return -1;
    }
    on_interrupt = signal(SIGINT, SIG_IGN);
    on_quit = signal(SIGQUIT, SIG_IGN);
    return pid;
}

/* The program has ended: signals are the tool's own again, and of what it starts. Returns true. */
static bool
signals_as_before(void)
{
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGINT, on_interrupt);
    signal(SIGQUIT, on_quit);
    return true;
}

bool
child_wait(pid_t pid, int milliseconds, int *status_out)
{
    struct timespec patience = {.tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    if (waitpid(pid, status_out, WNOHANG) == pid) return signals_as_before();
    int signal = sigtimedwait(&waited_for, NULL, &patience);
    for (int i = 0; i < PASSED_ON; i++) {
        if (signal == passed_on[i]) kill(pid, signal);
    }
    return waitpid(pid, status_out, WNOHANG) == pid && signals_as_before();
}

void
child_pass_on(int status)
{
    if (WIFSIGNALED(status)) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core); /* the program has left one if it should */
        signal(WTERMSIG(status), SIG_DFL);
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
        kill(getpid(), WTERMSIG(status));
    }
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
