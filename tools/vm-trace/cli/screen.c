/* screen.c - see screen.h. Without ncurses, which shows nothing on a terminal that the machine's terminfo lacks: one
 * whose TERM is not set, or is too new (doc/internals/tool.md). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/screen.h"

/* Escape sequences of xterm and all that followed it: another screen, no cursor, no wrapping of lines. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define HOME "\033[H"
#define ERASE_REST_OF_LINE "\033[K"
#define ERASE_BELOW "\033[J"
#define REVERSED "\033[7m"
#define PLAIN "\033[m"

static struct termios before;
static bool begun;
static volatile sig_atomic_t interrupted, resized, stopped, continued;

static void
on_signal(int signal)
{
    switch (signal) {
      case SIGWINCH: resized = 1; break;
      case SIGTSTP: stopped = 1; break;
      case SIGCONT: continued = 1; break;
      default: interrupted = 1; break;
    }
}

/* In the background, setting the terminal stops this process, until it is in the foreground again. */
static void
set_terminal(const struct termios *settings)
{
    while (tcsetattr(STDIN_FILENO, TCSANOW, settings) != 0 && errno == EINTR) continue;
}

static void
take_terminal(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    set_terminal(&raw);
    fputs(ENTER, stdout);
    fflush(stdout);
}

static void
give_terminal_back(void)
{
    fputs(LEAVE, stdout);
    fflush(stdout);
    set_terminal(&before);
}

bool
screen_begin(void)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0) return false;
    const struct sigaction action = {.sa_handler = on_signal};
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT};
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) sigaction(signals[i], &action, NULL);
    begun = true;
    atexit(screen_end);
    take_terminal();
    return true;
}

void
screen_end(void)
{
    if (!begun) return;
    begun = false;
    give_terminal_back();
}

/* As if there were no handler, with the terminal as the shell expects it. */
static void
stop(void)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    struct sigaction own;
    stopped = 0;
    give_terminal_back();
    sigaction(SIGTSTP, &action, &own);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &own, NULL);
    continued = 1; /* also if a process group without a parent is not stopped */
}

void
screen_size(int *rows_out, int *columns_out)
{
    enum { DEFAULT_ROWS = 24, DEFAULT_COLUMNS = 80 };
    struct winsize size = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *rows_out = size.ws_row > 1 ? size.ws_row : DEFAULT_ROWS;
    *columns_out = size.ws_col > 0 ? size.ws_col : DEFAULT_COLUMNS;
}

void
screen_draw(const char *text, const char *bottom)
{
    int rows, columns;
    screen_size(&rows, &columns);
    fputs(HOME, stdout);
    for (int row = 1; row < rows; row++) {
        int bytes = (int)strcspn(text, "\n");
        printf("%.*s" ERASE_REST_OF_LINE "\n", bytes, text);
        text += bytes + (text[bytes] == '\n');
    }
    printf(REVERSED "%.*s" ERASE_REST_OF_LINE PLAIN ERASE_BELOW, columns, bottom);
    fflush(stdout);
}

/* What follows an escape at once is the rest of a key's sequence. */
static bool
skip_sequence(void)
{
    char rest[16];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 20) > 0 && read(STDIN_FILENO, rest, sizeof rest) > 0;
}

int
screen_key(int milliseconds)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    bool signaled = interrupted || resized || stopped || continued;
    if (!signaled && poll(&input, 1, milliseconds) < 0 && errno != EINTR) return SCREEN_CLOSED;
    if (interrupted) return SCREEN_CLOSED;
    if (stopped) stop();
    if (continued) take_terminal();
    if (resized || continued) {
        resized = continued = 0;
        return SCREEN_RESIZED;
    }
    if (input.revents == 0) return 0;
    char key;
    if (read(STDIN_FILENO, &key, 1) != 1) return SCREEN_CLOSED;
    if (key == SCREEN_ESCAPE && skip_sequence()) return 0;
    if (key == '\r') return SCREEN_ENTER;
    return key == '\b' ? SCREEN_BACKSPACE : (unsigned char)key;
}
