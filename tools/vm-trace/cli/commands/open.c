/* open.c - `vm-trace open`: shows a trace in Perfetto's page, which fetches it from here. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/portable.h"
#include "base/send_all.h"
#include "base/xalloc.h"
#include "cli/browser.h"
#include "cli/command.h"
#include "fxt/input.h"

enum { PERFETTO_PORT = 9001, REQUEST_MAX = 8192, REQUEST_SECONDS = 10, BACKLOG = 8 };

static const char *ui = "https://ui.perfetto.dev";
static uint64_t port = PERFETTO_PORT;
static bool no_browser;

/* What is served: a path ("/app.fxt"), for pages of one origin ("https://ui.perfetto.dev"). */
struct served {
    const char *file;
    char *path, *origin;
};

/* --- HTTP (RFC 9110, 9112) ---------------------------------------------------------------------------- */

/* Reads up to the empty line behind the header fields. */
static bool
read_request(int fd, char request[REQUEST_MAX])
{
    size_t length = 0;
    while (length < REQUEST_MAX - 1) {
        ssize_t count = recv(fd, request + length, REQUEST_MAX - 1 - length, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        length += (size_t)count;
        request[length] = '\0';
        if (strstr(request, "\r\n\r\n") != NULL) return true;
    }
    return false;
}

/* The other end may read the answer only if its page is of our origin; a request that a browser sends before, to ask
 * whether it may reach this machine, has no body. */
static bool
send_head(int fd, const struct served *served, const char *status)
{
    char *head = xformat("HTTP/1.1 %s\r\nAccess-Control-Allow-Origin: %s\r\nAccess-Control-Allow-Private-Network: true\r\n"
                         "Content-Type: application/octet-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
                         status, served->origin);
    bool sent = send_all(fd, head, strlen(head));
    free(head);
    return sent;
}

/* The end of the connection is the end of the trace. */
static bool
send_trace(int fd, const struct served *served, struct input *input)
{
    bool sent = send_head(fd, served, "200 OK");
    for (size_t count; sent && (count = input_need(input, INPUT_WINDOW_BYTES)) > 0;) {
        sent = send_all(fd, input_bytes(input), count);
        input_take(input, count);
    }
    return sent;
}

static bool
asks_for(const char *request, const char *method, const char *path)
{
    size_t method_length = strlen(method), length = strlen(path);
    if (strncmp(request, method, method_length) != 0 || request[method_length] != ' ') return false;
    const char *target = request + method_length + 1;
    return strncmp(target, path, length) == 0 && (target[length] == ' ' || target[length] == '?');
}

/* Answers one request. Returns whether that was the whole trace. */
static bool
answer(int fd, const struct served *served, enum status *status)
{
    const struct timeval patience = {.tv_sec = REQUEST_SECONDS};
    char request[REQUEST_MAX];
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!read_request(fd, request)) return false;
    if (asks_for(request, "OPTIONS", served->path)) {
        send_head(fd, served, "204 No Content");
        return false;
    }
    if (!asks_for(request, "GET", served->path)) {
        send_head(fd, served, "404 Not Found");
        return false;
    }
    struct input input;
    int error = input_open(&input, served->file);
    bool sent = error == 0 && send_trace(fd, served, &input);
    if (error == 0) error = input.error;
    if (error != 0) {
        file_message(served->file, strerror(error));
        *status = STATUS_CANNOT_READ;
    }
    else if (!sent) message("the page ended before it had all of the trace: load it again");
    input_close(&input);
    return sent || error != 0;
}

/* Only this machine reaches it. Returns -1 after a message. */
static int
listen_here(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, BACKLOG) == 0) return fd;
    message("open: port %" PRIu64 " of 127.0.0.1: %s%s", port, strerror(errno),
            errno == EADDRINUSE ? "; another `vm-trace open` may wait for its page: end it, or give --port and --ui" : "");
    if (fd >= 0) close(fd);
    return -1;
}

/* --- the command -------------------------------------------------------------------------------------- */

/* The last part of a path, as a URL has it. */
static char *
url_path(const char *file)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *slash = strrchr(file, '/'), *name = slash != NULL ? slash + 1 : file;
    char *path = xcalloc(strlen(name) + 1, 3), *at = path;
    *at++ = '/';
    for (; *name != '\0'; name++) {
        if (strchr(plain, *name) != NULL) *at++ = *name;
        else at += snprintf(at, 4, "%%%02X", (unsigned char)*name);
    }
    *at = '\0';
    return path;
}

/* Scheme, host and port of a URL. */
static char *
origin_of(const char *url)
{
    const char *host = strstr(url, "://");
    size_t length = host != NULL ? (size_t)(host - url) + 3 : 0;
    length += strcspn(url + length, "/?#");
    return xformat("%.*s", (int)length, url);
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    (void)options;
    if (file_count != 1) {
        message("open: the page shows one trace: vm-trace merge -o OUT FILE... makes one of several");
        return STATUS_USAGE;
    }
    if (strncmp(ui, "https://", 8) != 0 && strncmp(ui, "http://", 7) != 0) {
        message("open: --ui takes the address of a page, such as https://ui.perfetto.dev");
        return STATUS_USAGE;
    }
    if (strcmp(files[0], "-") == 0) {
        message("open: give a file, not standard input: the page may be loaded again");
        return STATUS_USAGE;
    }
    struct input input;
    int error = input_open(&input, files[0]);
    if (error == 0 && input_need(&input, 1) == 0 && (error = input.error) == 0) error = ENODATA;
    if (error != 0) {
        file_message(files[0], strerror(error));
        return STATUS_CANNOT_READ;
    }
    input_close(&input);
    int listener = listen_here();
    if (listener < 0) return STATUS_CANNOT_READ;
    struct served served = {files[0], url_path(files[0]), origin_of(ui)};
    char *url = xformat("%s/#!/?url=http://127.0.0.1:%" PRIu64 "%s", ui, port, served.path);
    message("%s", url);
    if (!no_browser) browser_start(url);
    enum status status = STATUS_FINE;
    for (bool done = false; !done;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED) {
            message("open: %s", strerror(errno));
            status = STATUS_CANNOT_READ;
            break;
        }
        if (fd < 0) continue;
        done = answer(fd, &served, &status);
        close(fd);
    }
    close(listener);
    free(url);
    free(served.path);
    free(served.origin);
    return status;
}

static const struct cli_option open_options[] = {
    CLI_OPTION("ui", "URL", "Perfetto's page (default https://ui.perfetto.dev)", take_text, &ui),
    {"port", "N", "port to serve the trace at (default 9001: Perfetto's page may read\nfrom no other)", take_number,
     &port, 1, UINT16_MAX},
    CLI_OPTION("no-browser", NULL, "only print the address, for a browser that runs already", NULL, &no_browser),
    {0},
};

const struct command command_open = {
    .name = "open",
    .purpose = "show a trace in Perfetto's page",
    .arguments = "FILE",
    .help =
        "Opens https://ui.perfetto.dev, or the page that --ui names, in the browser ($BROWSER, else\n"
        "xdg-open), and serves the trace to it on 127.0.0.1, until the page has it. The trace stays\n"
        "on this machine: only a page of that address may read it, and only a browser of this\n"
        "machine can ask. What is compressed is sent decompressed.\n",
    .folders = true,
    .options = open_options,
    .run = run,
};
