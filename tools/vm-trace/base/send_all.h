#ifndef SEND_ALL_H
#define SEND_ALL_H
/* send_all.h - writing to a socket. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Sends all bytes. Returns false, with errno, if the other end does not take them; there is no SIGPIPE. */
static inline bool
send_all(int fd, const void *from, size_t bytes)
{
    for (const char *at = from; bytes > 0;) {
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        at += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

#endif
