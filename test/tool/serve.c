/* serve.c - linked into the tools that only tests run, with -Wl,--wrap=main. If the variable SERVE is set, such a tool
 * reads commands from stdin and runs each in a process that it forks: to start a tool takes longer than most commands.
 * See served_tool.rb. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __clang__
# define UNCOUNTED
#else
# define UNCOUNTED __attribute__((no_sanitize_coverage)) /* work.c counts for the command only */
#endif

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

/* Static, so that no allocation of the server is counted for a command. */
static char request[1 << 20];
static char *words[1 << 12];

/* Read `size` bytes from stdin. Return false at its end. */
UNCOUNTED static int
receive(void *into, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(STDIN_FILENO, (char *)into + done, size - done);
        if (got <= 0) return 0;
        done += (size_t)got;
    }
    return 1;
}

enum { PATH_ROOM = 4096 };

/* Put PREFIX.suffix into a buffer of PATH_ROOM bytes. */
UNCOUNTED static void
name_result(char *path, const char *prefix, const char *suffix)
{
    if (snprintf(path, PATH_ROOM, "%s.%s", prefix, suffix) >= PATH_ROOM) abort();
}

/* Open the file PREFIX.suffix and return it as descriptor `fd`. */
UNCOUNTED static void
write_to(const char *prefix, const char *suffix, int fd)
{
    char path[PATH_ROOM];
    name_result(path, prefix, suffix);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || dup2(file, fd) < 0) abort();
    close(file);
}

/* Run the command in `words` in this process and in a folder: its output goes to PREFIX.out and PREFIX.err, its
 * counts to PREFIX.work. */
UNCOUNTED static void
run(int count, const char *prefix, const char *folder)
{
    char work[PATH_ROOM];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    name_result(work, prefix, "work");
    setenv("WORK", work, 1);
    unsetenv("SERVE");
    write_to(prefix, "out", STDOUT_FILENO);
    write_to(prefix, "err", STDERR_FILENO);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || chdir(folder) < 0) abort();
    close(nothing);
    exit(__real_main(count, words));
}

/* A request is its size, 8 bytes, and strings that end with a zero byte: PREFIX, the folder, and the arguments. The
 * answer is a line with the status that waitpid gave. */
UNCOUNTED int
__wrap_main(int argc, char **argv)
{
    uint64_t size;
    if (getenv("SERVE") == NULL) return __real_main(argc, argv);
    while (receive(&size, sizeof(size)) && size <= sizeof(request) && receive(request, size)) {
        int count = 0, status;
        const char *prefix = request, *folder = prefix + strlen(prefix) + 1;
        words[count++] = argv[0];
        char *at = request + (folder - request) + strlen(folder) + 1;
        for (; at < request + size && count < (1 << 12) - 1; at += strlen(at) + 1) words[count++] = at;
        words[count] = NULL;
        pid_t child = fork();
        if (child == 0) run(count, prefix, folder);
        if (child < 0 || waitpid(child, &status, 0) != child) return 1;
        dprintf(STDOUT_FILENO, "%d\n", status);
    }
    return 0;
}
