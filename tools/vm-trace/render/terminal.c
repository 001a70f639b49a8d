/* terminal.c - see terminal.h */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "render/terminal.h"

const char *
style(enum style style)
{
    static int colour = -1;
    if (colour < 0) {
        const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
        colour = isatty(STDOUT_FILENO) && (no_color == NULL || *no_color == '\0') &&
                 (term == NULL || strcmp(term, "dumb") != 0);
    }
    static const char *const codes[] = {
        [STYLE_PLAIN] = "\033[0m", [STYLE_BOLD] = "\033[1m", [STYLE_DIM] = "\033[2m",
        [STYLE_WORSE] = "\033[31m", [STYLE_BETTER] = "\033[32m"};
    return colour ? codes[style] : "";
}
