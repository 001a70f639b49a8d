/* browser.c - see browser.h */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "cli/browser.h"

pid_t
browser_start(const char *what)
{
    enum { NOT_FOUND = 127 };
    const char *browser = getenv("BROWSER");
    const char *opener = browser != NULL && *browser != '\0' ? browser : "xdg-open";
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0) return pid;
    execlp(opener, opener, what, (char *)NULL);
    message("%s cannot be run: %s; open %s in a browser", opener, strerror(errno), what);
    _exit(NOT_FOUND);
}
