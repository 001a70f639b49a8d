#ifndef SCREEN_H
#define SCREEN_H
/* screen.h - a whole terminal that shows a text and takes keys, and is as before afterwards. */
#include <stdbool.h>

/* Returns false if standard input and output are no terminal. Ends by itself at exit and at signals. */
bool screen_begin(void);
void screen_end(void);
/* Rows and columns, as they are now. */
void screen_size(int *rows_out, int *columns_out);
/* Shows the first lines of the text that fit, and one line at the bottom. */
void screen_draw(const char *text, const char *bottom);
/* Waits for a key, at most so long. Returns it; 0: none; SCREEN_RESIZED: draw again; SCREEN_CLOSED: the terminal is
 * gone, or the user interrupts. A sequence of an arrow or function key is no key. */
enum { SCREEN_RESIZED = -1, SCREEN_CLOSED = -2, SCREEN_ESCAPE = 27, SCREEN_ENTER = '\n', SCREEN_BACKSPACE = 127 };
int screen_key(int milliseconds);

#endif
