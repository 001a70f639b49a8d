/* terminal.c - see terminal.h */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "render/terminal.h"

/* Looks once at standard output, to which most is printed. */
static bool
terminal_p(FILE *out)
{
    static int standard = -1;
    if (out != stdout) return isatty(fileno(out));
    if (standard < 0) standard = isatty(STDOUT_FILENO);
    return standard;
}

const char *
style(FILE *out, enum style style)
{
    static const char *const codes[] = {
        [STYLE_PLAIN] = "\033[0m", [STYLE_BOLD] = "\033[1m", [STYLE_DIM] = "\033[2m",
        [STYLE_WORSE] = "\033[31m", [STYLE_BETTER] = "\033[32m"};
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if ((no_color != NULL && *no_color != '\0') || (term != NULL && strcmp(term, "dumb") == 0)) return "";
    return terminal_p(out) ? codes[style] : "";
}
