/* control.c - see control.h */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/message.h"
#include "base/portable.h"
#include "base/send_all.h"
#include "base/xalloc.h"
#include "cli/control.h"
#include "cli/process.h"

static const char variable[] = CONTROL_VARIABLE;

/* Text that the program may have chosen. */
static struct fxt_string
untrusted_text(const char *text)
{
    return text_of(text);
}

/* --- where it listens ---------------------------------------------------------------------------- */

/* Returns the variable. Prints a message and returns NULL if it is missing. */
static char *
find_variable(const char *pid)
{
    char *found = process_variable(pid, variable);
    int error = found == NULL && errno != EAGAIN ? errno : 0;
    if (error == ENOENT || error == ESRCH) { /* ESRCH: it has just ended */
        fprintf(stderr, "vm-trace: no process %s\n", pid);
        return NULL;
    }
    if (error != 0) {
        bool other = error == EACCES || error == EPERM;
        fprintf(stderr, "vm-trace: process %s: /proc/%s/environ: %s%s\n", pid, pid, strerror(error),
                other ? ": it is another user's, or began as one: ask as root" : "");
        return NULL;
    }
    const char *own = getenv(variable); /* a program that sets its title may overwrite its environment */
    if (found == NULL && own != NULL && *own != '\0') found = xformat("%s", own);
    if (found == NULL) {
        fprintf(stderr,
                "vm-trace: process %s takes no requests: start it with %s set to a folder or to the path of a socket\n",
                pid, variable);
    }
    return found;
}

/* Returns what the program makes of a path in the variable; malloc'ed. */
static char *
expand(const char *value, const char *own_pid)
{
    char *path = xcalloc(strlen(value) + 1, strlen(own_pid) + 1), *to = path; /* each letter could be a pid */
    for (const char *at = value; *at; at++) {
        if (*at == '%' && at[1] == 'p') at++, to = stpcpy(to, own_pid);
        else *to++ = *at == '%' && at[1] == '%' ? *at++ : *at;
    }
    return path;
}

static char *
socket_in(const char *folder, const char *own_pid)
{
    return xformat("%s/" CONTROL_SOCKET "%s", folder, own_pid);
}

/* Returns the path at which the kernel knows that the program listens; malloc'ed, or NULL. The variable may be relative to
 * a folder that the program has left, or overwritten by its title. */
static char *
known_path(const char *pid, const char *own_pid)
{
    char *value = process_variable(pid, variable);
    char *path = expand(value != NULL ? value : "", own_pid);
    char *end = xformat("%s%s", value == NULL || value[0] == '/' ? "" : "/", path), *in_folder = socket_in(end, own_pid);
    const char *const ends[] = {in_folder, value != NULL ? end : NULL, NULL};
    char *known = process_listens_at(pid, ends);
    free(value);
    free(path);
    free(end);
    free(in_folder);
    return known;
}

/* Returns the path that the variable names; malloc'ed. Prints a message and returns NULL if it names none. */
static char *
named_path(const char *pid, const char *own_pid)
{
    struct stat st;
    char *value = find_variable(pid);
    if (value == NULL) return NULL;
    if (value[0] != '/') process_enter(pid, ".");
    char *path = expand(value, own_pid);
    free(value);
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return path;
    char *in_folder = socket_in(path, own_pid);
    free(path);
    return in_folder;
}

/* Returns the path of the program's socket, as the program sees it; malloc'ed. Prints a message and returns NULL. */
static char *
socket_path(const char *pid)
{
    char *own_pid = process_own_pid(pid), *path = known_path(pid, own_pid);
    if (path == NULL) path = named_path(pid, own_pid);
    free(own_pid);
    return path;
}

/* Connects to the program. */
static int
connect_to(const char *pid, uint64_t timeout_s)
{
    char *path = socket_path(pid), root[PROCESS_ROOT_BYTES];
    if (path == NULL) return -1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    process_root(pid, root);
    const char *from_here = path;
    bool entered = true;
    if (path[0] != '/') {
        entered = process_enter(pid, ".");
    }
    else if (root[0] != '\0') {
        char *name = strrchr(path, '/');
        char *folder = xformat("%.*s", (int)(name - path) + 1, path);
        entered = process_enter(pid, folder);
        from_here = name + 1;
        free(folder);
    }
    bool fits = strlen(from_here) < sizeof address.sun_path;
    int fd = entered && fits ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fits) strcpy(address.sun_path, from_here);
    if (entered && !fits) errno = ENAMETOOLONG;
    /* connect waits while other requests are queued: limit it like sending. */
    struct timeval patience = {.tv_sec = (time_t)timeout_s};
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        free(path);
        return fd;
    }
    int error = errno;
    fprintf(stderr, "vm-trace: process %s does not listen at ", pid);
    print_escaped(stderr, untrusted_text(path));
    fprintf(stderr, ": %s\n", error == EAGAIN ? "too many requests are waiting" : strerror(error));
    if (fd >= 0) close(fd);
    free(path);
    return -1;
}

/* --- asking ------------------------------------------------------------------------------------------ */

void
control_word(struct control_request *request, const char *word)
{
    size_t bytes = strlen(word) + 1;
    if (request->bytes + bytes + 1 > sizeof request->words) {
        request->too_long = true;
        return;
    }
    memcpy(request->words + request->bytes, word, bytes);
    request->bytes += bytes;
}

void
control_pair(struct control_request *request, const char *name, const char *value)
{
    if (value == NULL) return;
    control_word(request, name);
    control_word(request, value);
}

void
control_number(struct control_request *request, const char *name, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    control_pair(request, name, digits);
}

static int64_t
now_ms(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

enum answer { ANSWERED, ENDED, TOO_LATE };

/* Receives until the program closes the connection or the buffer is full, and adds a NUL. The
 * timeout is for the whole answer, so one that comes byte by byte does not wait longer. */
static enum answer
receive(int fd, uint64_t timeout_s, char *reply, size_t room, size_t *bytes_out)
{
    int64_t end_ms = now_ms() + (int64_t)timeout_s * 1000;
    enum answer answer = ANSWERED;
    size_t bytes = 0;
    while (bytes + 1 < room) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int64_t left_ms = end_ms - now_ms();
        int ready = left_ms > 0 ? poll(&poll_fd, 1, (int)left_ms) : 0;
        if (ready < 0 && errno == EINTR) continue;
        ssize_t n = ready > 0 ? recv(fd, reply + bytes, room - 1 - bytes, MSG_DONTWAIT) : -1;
        if (ready > 0 && n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (ready == 0) answer = TOO_LATE;
        if (n <= 0) break;
        bytes += (size_t)n;
    }
    reply[bytes] = '\0';
    *bytes_out = bytes;
    return bytes == 0 && answer == ANSWERED ? ENDED : answer;
}

/* Prints the program's answer. Line ends stay; other characters that move the cursor are
 * escaped. */
static void
print_reply(FILE *out, const char *text, size_t bytes)
{
    for (const char *end = text + bytes; text < end;) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        uint32_t len = (uint32_t)((line_end ? line_end : end) - text);
        print_escaped(out, (struct fxt_string){.ptr = text, .len = len});
        putc('\n', out);
        text += len + 1;
    }
}

enum status
control_send(struct control_request *request, const char *pid, uint64_t timeout_s, FILE *out)
{
    if (request->too_long) {
        fputs("vm-trace: the options are too long\n", stderr);
        return STATUS_USAGE;
    }
    int fd = connect_to(pid, timeout_s);
    if (fd < 0) return STATUS_CANNOT_READ;
    request->words[request->bytes++] = '\0'; /* an empty word ends the request */
    if (request->bytes == 1) request->words[request->bytes++] = '\0';

    static const char ok[] = "ok\n", error[] = "error\n";
    char reply[8192];
    size_t bytes = 0;
    enum answer answer =
        send_all(fd, request->words, request->bytes) ? receive(fd, timeout_s, reply, sizeof reply, &bytes) : ENDED;
    close(fd);
    if (answer == TOO_LATE) {
        fprintf(stderr, "vm-trace: process %s did not answer within %llu s (--timeout=SECONDS waits longer); "
                "it may still carry out the request\n", pid, (unsigned long long)timeout_s);
        return STATUS_CANNOT_READ;
    }
    if (answer == ANSWERED && strncmp(reply, ok, sizeof ok - 1) == 0) {
        if (out == NULL) return STATUS_FINE;
        print_reply(out, reply + sizeof ok - 1, bytes - (sizeof ok - 1));
        return finish_output();
    }
    if (answer == ANSWERED && strncmp(reply, error, sizeof error - 1) == 0) {
        fprintf(stderr, "vm-trace: process %s: ", pid);
        print_reply(stderr, reply + sizeof error - 1, bytes - (sizeof error - 1));
    }
    else if (answer == ANSWERED) {
        fprintf(stderr, "vm-trace: process %s sent an answer that no traced Ruby sends: does another program use %s?\n",
                pid, variable);
    }
    else {
        fprintf(stderr, "vm-trace: process %s ended, or closed the connection without an answer\n", pid);
    }
    return STATUS_CANNOT_READ;
}
