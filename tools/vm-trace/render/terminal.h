#ifndef TERMINAL_H
#define TERMINAL_H
/* terminal.h - colour on standard output, if that is a terminal and NO_COLOR is not set
 * (https://no-color.org). */

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_WORSE, STYLE_BETTER };

/* The bytes that start a style; "" without colour. */
const char *style(enum style style);

#endif
