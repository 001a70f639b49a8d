#ifndef REDIRECT_H
#define REDIRECT_H
/* redirect.h - has standard output or standard error go elsewhere for a while: documents and messages are printed
 * there. One thread only. */
#include <stdio.h>

/* `stream`: stdout or stderr. Returns what restore takes. */
int redirect(FILE *stream, int fd);
void restore(FILE *stream, int kept);

/* A temporary file that takes what is printed on `stream` until redirected_text returns that as a malloc'ed string.
 * Without room for such a file nothing is printed, and the text says so. */
struct redirected {
    FILE *stream, *file;
    int kept;
};
struct redirected redirect_to_text(FILE *stream);
char *redirected_text(struct redirected *redirected);

#endif
