/* process.c - see process.h */
#define _GNU_SOURCE /* O_PATH, syscall */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __linux__
# include <sys/syscall.h>
#endif
#include <unistd.h>

#include "base/xalloc.h"
#include "cli/process.h"

#ifndef RESOLVE_IN_ROOT
# define RESOLVE_IN_ROOT 0x10 /* of Linux 5.6 */
#endif

bool
process_pid_p(const char *text)
{
    enum { PID_DIGITS = 10 };
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= PID_DIGITS && text[digits] == '\0';
}

#ifdef __linux__
/* Reads a whole file and adds a NUL. Returns NULL and sets errno on failure. */
static char *
read_whole(const char *path, size_t *bytes_out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes = 0, room = 4096;
    char *text = xcalloc(room, 1);
    ssize_t n = fd < 0 ? -1 : 0;
    while (fd >= 0 && (n = read(fd, text + bytes, room - bytes - 1)) > 0) {
        bytes += (size_t)n;
        if (bytes + 1 == room) text = xrealloc(text, room *= 2, 1);
    }
    int error = errno;
    if (fd >= 0) close(fd);
    if (n < 0) {
        free(text);
        errno = error;
        return NULL;
    }
    text[bytes] = '\0';
    *bytes_out = bytes;
    return text;
}

static char *
read_proc(const char *pid, const char *name, size_t *bytes_out)
{
    char *path = xformat("/proc/%s/%s", pid, name), *text = read_whole(path, bytes_out);
    int error = errno;
    free(path);
    errno = error;
    return text;
}

char *
process_variable(const char *pid, const char *name)
{
    size_t bytes, name_bytes = strlen(name);
    char *environment = read_proc(pid, "environ", &bytes), *found = NULL;
    if (environment == NULL) return NULL;
    for (const char *at = environment; at < environment + bytes; at += strlen(at) + 1) {
        if (strncmp(at, name, name_bytes) != 0 || at[name_bytes] != '=') continue;
        found = xformat("%s", at + name_bytes + 1);
        break;
    }
    free(environment);
    errno = bytes == 0 ? EAGAIN : 0;
    return found;
}

/* Returns the numbers of a line of /proc/PID/status, with a tab before each; malloc'ed. */
static char *
status_line(const char *pid, const char *title)
{
    size_t bytes;
    char *status = read_proc(pid, "status", &bytes), *start = xformat("\n%s:", title);
    const char *line = status != NULL ? strstr(status, start) : NULL;
    if (line != NULL) line += strlen(start);
    char *numbers = xformat("%.*s", (int)(line != NULL ? strcspn(line, "\n") : 0), line != NULL ? line : "");
    free(status);
    free(start);
    return numbers;
}

char *
process_own_pid(const char *pid)
{
    char *pids = status_line(pid, "NSpid"); /* in all namespaces, the innermost last */
    const char *last = strrchr(pids, '\t');
    char *own = xformat("%s", last != NULL && process_pid_p(last + 1) ? last + 1 : pid);
    free(pids);
    return own;
}

static bool
same_file_p(const char *path, const char *other_path)
{
    struct stat st, other;
    return stat(path, &st) == 0 && stat(other_path, &other) == 0 && st.st_dev == other.st_dev && st.st_ino == other.st_ino;
}

void
process_root(const char *pid, char root_out[PROCESS_ROOT_BYTES])
{
    char *mounts = xformat("/proc/%s/ns/mnt", pid);
    snprintf(root_out, PROCESS_ROOT_BYTES, "/proc/%.10s/root", pid);
    struct stat root;
    bool known = stat(root_out, &root) == 0;
    if (!known || (same_file_p("/", root_out) && same_file_p("/proc/self/ns/mnt", mounts))) root_out[0] = '\0';
    free(mounts);
}

/* --- where it listens ------------------------------------------------------------------------------ */

/* Whether the process has the socket open. */
static bool
has_socket_p(const char *pid, uint64_t inode)
{
    char *folder = xformat("/proc/%s/fd", pid);
    struct stat st;
    bool found = false;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; !found && entries != NULL && (entry = readdir(entries)) != NULL;)
        found = fstatat(dirfd(entries), entry->d_name, &st, 0) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == inode;
    if (entries != NULL) closedir(entries);
    free(folder);
    return found;
}

static bool
ends_p(const char *text, const char *end)
{
    size_t bytes = strlen(text), end_bytes = strlen(end);
    return end_bytes <= bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

/* The n-th field of a line, with spaces before each. */
static const char *
field(const char *line, int n)
{
    for (; n > 0; n--) {
        line += strcspn(line, " \n");
        line += strspn(line, " ");
    }
    return line;
}

char *
process_listens_at(const char *pid, const char *const *ends)
{
    enum { LISTENING = 0x10000 };
    size_t bytes;
    char *sockets = read_proc(pid, "net/unix", &bytes), *found = NULL;
    for (; sockets != NULL && found == NULL && *ends != NULL; ends++) {
        for (const char *line = sockets; found == NULL && (line = strchr(line, '\n')) != NULL;) {
            enum { FLAGS = 3, INODE = 6, PATH = 7 }; /* proc(5) */
            if (strtoul(field(++line, FLAGS), NULL, 16) != LISTENING) continue;
            const char *path = field(line, PATH);
            char *text = xformat("%.*s", (int)strcspn(path, "\n"), path);
            if (ends_p(text, *ends) && has_socket_p(pid, strtoull(field(line, INODE), NULL, 10))) found = text;
            else free(text);
        }
    }
    free(sockets);
    return found;
}

/* --- its files ----------------------------------------------------------------------------------- */

bool
process_give(const char *pid, const char *folder)
{
    char *users = status_line(pid, "Uid"); /* the owner of /proc/PID is root after a change of user */
    const char *effective = strchr(users + strspn(users, "\t"), '\t');
    uid_t uid = effective != NULL ? (uid_t)strtoul(effective, NULL, 10) : geteuid();
    free(users);
    return geteuid() == uid || chown(folder, uid, (gid_t)-1) == 0;
}

/* A link in the path may begin with "/": that is the process's root. */
static int
open_below(int root, const char *folder)
{
#ifdef SYS_openat2
    struct { uint64_t flags, mode, resolve; } how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                                     .resolve = RESOLVE_IN_ROOT};
    int fd = (int)syscall(SYS_openat2, root, folder, &how, sizeof how);
    if (fd >= 0 || errno != ENOSYS) return fd;
#endif
    return openat(root, folder + strspn(folder, "/"), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool
process_enter(const char *pid, const char *folder)
{
    char *from = xformat("/proc/%s/%s", pid, folder[0] == '/' ? "root" : "cwd");
    int root = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -1 : folder[0] == '/' ? open_below(root, folder) : dup(root);
    bool entered = fd >= 0 && fchdir(fd) == 0;
    int error = errno;
    if (fd >= 0) close(fd);
    if (root >= 0) close(root);
    free(from);
    errno = error;
    return entered;
}

#else
/* Without /proc: what the tool's own environment says, in our own namespaces. */

char *
process_variable(const char *pid, const char *name)
{
    (void)name;
    errno = kill((pid_t)strtol(pid, NULL, 10), 0) == 0 || errno == EPERM ? 0 : ESRCH;
    return NULL;
}

char *
process_own_pid(const char *pid)
{
    return xformat("%s", pid);
}

void
process_root(const char *pid, char root_out[PROCESS_ROOT_BYTES])
{
    (void)pid;
    root_out[0] = '\0';
}

char *
process_listens_at(const char *pid, const char *const *ends)
{
    (void)pid, (void)ends;
    return NULL;
}

bool
process_give(const char *pid, const char *folder)
{
    (void)pid, (void)folder;
    return true;
}

bool
process_enter(const char *pid, const char *folder)
{
    (void)pid, (void)folder;
    errno = ENOTSUP;
    return false;
}
#endif
