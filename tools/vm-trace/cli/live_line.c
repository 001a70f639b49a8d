/* live_line.c - see live_line.h */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/live_line.h"

/* Escape sequences that every terminal since the VT100 knows. */
#define SAVE_CURSOR "\0337"
#define RESTORE_CURSOR "\0338"
#define ERASE_LINE "\033[2K"
#define FAINT "\033[2m"
#define PLAIN "\033[m"

enum { LEAST_ROWS = 5, LEAST_COLUMNS = 20 };

static struct winsize size; /* as the line was shown last; no rows: there is none */
static char give_back[64];  /* what gives the row back */
static struct sigaction before; /* of SIGTSTP */
static volatile sig_atomic_t given_back;

/* A shell gets the whole terminal when this process is stopped. */
static void
on_stop(int number)
{
    const struct sigaction stop = {.sa_handler = SIG_DFL};
    struct sigaction own;
    sigset_t this, mask;
    int error = errno;
    if (!given_back && write(STDERR_FILENO, give_back, strlen(give_back)) < 0) errno = 0; /* no terminal any more */
    given_back = 1;
    sigaction(number, &stop, &own);
    raise(number);
    sigemptyset(&this);
    sigaddset(&this, number);
    sigprocmask(SIG_UNBLOCK, &this, &mask); /* it stops here */
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(number, &own, NULL);
    errno = error;
}

static bool
read_size(struct winsize *size_out)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0 &&
           ioctl(STDERR_FILENO, TIOCGWINSZ, size_out) == 0 && size_out->ws_row >= LEAST_ROWS &&
           size_out->ws_col >= LEAST_COLUMNS;
}

static bool
background_p(void)
{
    pid_t owner = tcgetpgrp(STDERR_FILENO);
    return owner > 0 && owner != getpgrp();
}

/* Setting the rows that scroll moves the cursor, so it is saved. The line feed makes room if it is in the last row. */
static void
reserve_row(void)
{
    snprintf(give_back, sizeof give_back, SAVE_CURSOR "\033[r\033[%d;1H" ERASE_LINE RESTORE_CURSOR, size.ws_row);
    fprintf(stderr, "\n" SAVE_CURSOR "\033[1;%dr" RESTORE_CURSOR "\033[1A", size.ws_row - 1);
}

bool
live_line_begin(void)
{
    if (!read_size(&size)) {
        size.ws_row = 0;
        return false;
    }
    reserve_row();
    fflush(stderr);
    const struct sigaction action = {.sa_handler = on_stop};
    sigaction(SIGTSTP, NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGTSTP, &action, NULL);
    return true;
}

void
live_line_show(const char *text)
{
    struct winsize now;
    if (size.ws_row == 0 || !read_size(&now) || background_p()) return;
    /* The terminal forgot the rows when its size changed, or they are wrong. */
    if (now.ws_row != size.ws_row || given_back) {
        size = now;
        given_back = 0;
        reserve_row();
    }
    fprintf(stderr, SAVE_CURSOR "\033[%d;1H" ERASE_LINE FAINT "%.*s" PLAIN RESTORE_CURSOR, now.ws_row, now.ws_col - 1,
            text);
    fflush(stderr);
}

void
live_line_end(void)
{
    if (size.ws_row == 0) return;
    sigaction(SIGTSTP, &before, NULL);
    if (!given_back) fputs(give_back, stderr);
    fflush(stderr);
    size.ws_row = 0;
}
