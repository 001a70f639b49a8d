#ifndef BROWSER_H
#define BROWSER_H
/* browser.h - the user's browser: what $BROWSER names, else xdg-open. */
#include <sys/types.h>

/* Starts it with a file or URL, without waiting. If it cannot be run, the child prints so. Returns its pid, which the
 * caller may wait for, or -1. */
pid_t browser_start(const char *what);

#endif
