#ifndef LIVE_LINE_H
#define LIVE_LINE_H
/* live_line.h - a line at the bottom of the terminal that changes while a program writes above it.
 *
 * The terminal scrolls without its last row meanwhile. Nothing is written if stderr is no terminal, or one that is
 * too small or that TERM calls dumb. While this process is stopped (Ctrl-Z), the row is given back. */
#include <stdbool.h>

/* Whether there is a line: begin before the program starts. */
bool live_line_begin(void);
void live_line_show(const char *text);
/* Gives the row back. */
void live_line_end(void);

#endif
