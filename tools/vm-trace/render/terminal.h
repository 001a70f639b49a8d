#ifndef TERMINAL_H
#define TERMINAL_H
/* terminal.h - colour on a stream, if that is a terminal and NO_COLOR is not set
 * (https://no-color.org). */

#include <stdio.h>

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_WORSE, STYLE_BETTER };

/* The bytes that start a style; "" without colour. */
const char *style(FILE *out, enum style style);

#endif
