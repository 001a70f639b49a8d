/* ruby_of.c - see ruby_of.h */
#define _GNU_SOURCE /* memmem */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "cli/ruby_of.h"

static bool
program_p(const char *path)
{
    struct stat stat_of;
    return access(path, X_OK) == 0 && stat(path, &stat_of) == 0 && S_ISREG(stat_of.st_mode);
}

/* The file that execvp would run. malloc'ed, or NULL. */
static char *
find_program(const char *name)
{
    if (strchr(name, '/') != NULL) return program_p(name) ? xformat("%s", name) : NULL;
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/local/bin:/usr/bin:/bin";;) {
        size_t bytes = strcspn(at, ":");
        char *file = xformat("%.*s/%s", bytes > 0 ? (int)bytes : 1, bytes > 0 ? at : ".", name);
        if (program_p(file)) return file;
        free(file);
        if (at[bytes] == '\0') return NULL;
        at += bytes + 1;
    }
}

/* Whether it is an ELF file with the name of the function that runs a program of Ruby, its own or of a library. */
static bool
runs_ruby(const char *path)
{
    static const char magic[] = "\177ELF", function[] = "ruby_run_node";
    struct stat stat_of;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes = fd >= 0 && fstat(fd, &stat_of) == 0 && S_ISREG(stat_of.st_mode) ? (size_t)stat_of.st_size : 0;
    char *text = bytes > sizeof magic ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0) close(fd);
    if (text == MAP_FAILED) return false;
    bool runs = memcmp(text, magic, sizeof magic - 1) == 0 && memmem(text, bytes, function, sizeof function) != NULL;
    munmap(text, bytes);
    return runs;
}

/* "ruby", "ruby3.3", "ruby-dev": no other program, nor a script, which might do anything when it is run. */
static bool
certainly_ruby(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *version = name + 4;
    if (strncmp(name, "ruby", 4) != 0) return false;
    return (*version == '-' || version[strspn(version, ".0123456789")] == '\0') && runs_ruby(path);
}

/* The interpreter of a script: "#!/usr/bin/ruby -w", "#!/usr/bin/env -S ruby". malloc'ed, or NULL. */
static char *
interpreter_of(const char *path)
{
    static const char BLANKS[] = " \t\r\n";
    char line[512];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    if (bytes < 3 || line[0] != '#' || line[1] != '!') return NULL;
    line[bytes] = '\0';
    line[strcspn(line, "\n")] = '\0';
    char *rest, *word = strtok_r(line + 2, BLANKS, &rest);
    if (word == NULL) return NULL;
    const char *name = strrchr(word, '/');
    bool env = strcmp(name ? name + 1 : word, "env") == 0;
    while (env) { /* its options and variables */
        word = strtok_r(NULL, BLANKS, &rest);
        env = word != NULL && (word[0] == '-' || strchr(word, '=') != NULL);
    }
    return word != NULL ? find_program(word) : NULL;
}

char *
ruby_of(const char *command)
{
    char *program = find_program(command);
    if (program == NULL || certainly_ruby(program)) return program;
    char *interpreter = interpreter_of(program);
    free(program);
    if (interpreter != NULL && certainly_ruby(interpreter)) return interpreter;
    free(interpreter);
    return NULL;
}

static int
ms_until(int64_t end_ns)
{
    int64_t left_ns = end_ns - clock_ns(CLOCK_MONOTONIC);
    return left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0;
}

/* The status of a child, which is killed if it does not end by then. */
static int
status_of(pid_t pid, int64_t end_ns)
{
    int status = -1;
    for (;;) {
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR)) return status;
        if (ms_until(end_ns) == 0) kill(pid, SIGKILL);
        poll(NULL, 0, 1);
    }
}

/* Runs it with its standard output or error in `text`, for at most 10 s. Returns its status, or -1. */
static int
output_of(char *const arguments[], int output, char *text, size_t room)
{
    const int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + INT64_C(10000000000);
    int ends[2];
    if (pipe(ends) != 0) return -1;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        dup2(ends[1], output);
        if (ends[1] > STDERR_FILENO) close(ends[1]);
        close(ends[0]);
        unsetenv("RUBY_VM_TRACE");
        execv(arguments[0], arguments);
        _exit(127);
    }
    close(ends[1]);
    size_t bytes = 0;
    for (ssize_t got = 1; pid > 0 && bytes + 1 < room && got != 0;) {
        struct pollfd end = {.fd = ends[0], .events = POLLIN};
        if (poll(&end, 1, ms_until(end_ns)) == 0) break;
        got = read(ends[0], text + bytes, room - bytes - 1);
        if (got < 0 && errno != EINTR) break;
        if (got > 0) bytes += (size_t)got;
    }
    text[bytes] = '\0';
    close(ends[0]);
    return pid > 0 ? status_of(pid, end_ns) : -1;
}

bool
ruby_ask(const char *ruby, struct ruby_version *version_out)
{
    static const char script[] = "print defined?(RubyVM::Trace) ? 1 : 0, RUBY_DESCRIPTION";
    char text[sizeof version_out->description + 1];
    char *const arguments[] = {(char *)ruby, (char *)"--disable=gems,rubyopt", (char *)"-e", (char *)script, NULL};
    if (output_of(arguments, STDOUT_FILENO, text, sizeof text) != 0 || (text[0] != '0' && text[0] != '1')) return false;
    version_out->traced = text[0] == '1';
    strcpy(version_out->description, text + 1);
    return true;
}

bool
ruby_takes_streams(const char *ruby, const char *streams, char *why, size_t room)
{
    char *option = xformat("--vm-trace=%s", streams);
    char *const arguments[] = {(char *)ruby, (char *)"--disable=gems,rubyopt", option, (char *)"--version", NULL};
    int status = output_of(arguments, STDERR_FILENO, why, room);
    free(option);
    size_t bytes = strlen(why);
    while (bytes > 0 && why[bytes - 1] == '\n') why[--bytes] = '\0';
    char *line = strrchr(why, '\n');
    if (line != NULL) memmove(why, line + 1, strlen(line));
    return status == 0 || *why == '\0';
}
