#ifndef REDIRECT_H
#define REDIRECT_H
/* redirect.h - keeps what is printed on stderr for a while: messages come from everywhere. One thread only. */
#include <stdio.h>

/* A temporary file that takes what is printed on stderr until redirected_text returns that as a malloc'ed string.
 * Without room for such a file nothing is printed, and the text says so. */
struct redirected {
    FILE *file;
    int kept;
};
struct redirected redirect_errors(void);
char *redirected_text(struct redirected *redirected);

#endif
