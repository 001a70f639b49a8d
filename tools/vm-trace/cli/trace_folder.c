/* trace_folder.c - see trace_folder.h */
#define _GNU_SOURCE /* realpath */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "base/portable.h"
#include "base/xalloc.h"
#include "cli/folders.h"
#include "cli/trace_folder.h"

/* A folder with a new name. NULL: it cannot be made. */
static const char *
make_named_by_time(void)
{
    static char name[64];
    time_t now = time(NULL);
    size_t bytes = strftime(name, sizeof name - 8, "vm-trace-%Y%m%d-%H%M%S", localtime(&now));
    for (int number = 2; number < 1000; number++) {
        if (mkdir(name, 0777) == 0) return name;
        if (errno != EEXIST) break;
        snprintf(name + bytes, sizeof name - bytes, "-%d", number); /* two in one second */
    }
    return NULL;
}

static bool
make_given(const char *name, bool *there_out)
{
    if (mkdir(name, 0777) == 0) return true;
    if (errno != EEXIST) {
        file_message(name, strerror(errno));
        return false;
    }
    *there_out = true;
    char **traces;
    int count = folder_traces(name, &traces);
    if (count >= 0) folder_traces_free(traces, count);
    if (count != 0)
        file_message(name, count < 0 ? strerror(errno) : "has traces already; give -o a folder that is new or empty");
    return count == 0;
}

bool
trace_folder_make(struct trace_folder *folder, const char *name)
{
    *folder = (struct trace_folder){.name = name};
    if (name != NULL && !make_given(name, &folder->given)) return false;
    if (name == NULL) folder->name = make_named_by_time();
    if (folder->name != NULL) folder->path = realpath(folder->name, NULL);
    if (folder->path != NULL) return true;
    fprintf(stderr, "vm-trace: no folder can be made here: %s; give -o FOLDER\n", strerror(errno));
    return false;
}

void
trace_folder_discard(struct trace_folder *folder)
{
    if (!folder->given) rmdir(folder->path);
    free(folder->path);
    folder->path = NULL;
}

char *
trace_folder_pattern(const struct trace_folder *folder)
{
    static const char name[] = "/%p.fxt";
    char *pattern = xcalloc(2 * strlen(folder->path) + sizeof name, 1), *to = pattern;
    for (const char *from = folder->path; *from != '\0'; *to++ = *from++) {
        if (*from == '%') *to++ = '%';
    }
    strcpy(to, name);
    return pattern;
}

char *
trace_folder_variable(const struct trace_folder *folder, const char *streams)
{
    char *pattern = trace_folder_pattern(folder);
    char *escaped = xcalloc(2 * strlen(pattern) + 1, 1), *to = escaped;
    for (const char *from = pattern; *from != '\0'; *to++ = *from++) {
        if (strchr(" \t\n\\", *from) != NULL) *to++ = '\\';
    }
    char *variable = xformat("--vm-trace=%s --vm-trace-quiet --vm-trace-file=%s", streams, escaped);
    free(pattern);
    free(escaped);
    return variable;
}

void
trace_folder_size(const struct trace_folder *folder, int *count_out, uint64_t *bytes_out)
{
    char **traces;
    *bytes_out = 0;
    *count_out = folder_traces(folder->path, &traces);
    for (int i = 0; i < *count_out; i++) {
        struct stat st;
        if (stat(traces[i], &st) == 0) *bytes_out += (uint64_t)st.st_blocks * 512;
    }
    if (*count_out >= 0) folder_traces_free(traces, *count_out);
    else *count_out = 0;
}

bool
trace_written_p(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return true;
    bool locked = flock(fd, LOCK_EX | LOCK_NB) != 0;
    close(fd);
    return locked;
}

static int
compare_times(const void *left, const void *right)
{
    struct stat a = {0}, b = {0};
    stat(*(char *const *)left, &a);
    stat(*(char *const *)right, &b);
    if (a.st_mtim.tv_sec != b.st_mtim.tv_sec) return a.st_mtim.tv_sec < b.st_mtim.tv_sec ? -1 : 1;
    return (a.st_mtim.tv_nsec > b.st_mtim.tv_nsec) - (a.st_mtim.tv_nsec < b.st_mtim.tv_nsec);
}

void
trace_folder_prune(struct trace_folder *folder, uint64_t most)
{
    char **traces;
    int count = folder_traces(folder->path, &traces);
    if (count < 0) return;
    if ((uint64_t)count > most) qsort(traces, (size_t)count, sizeof *traces, compare_times);
    uint64_t left = (uint64_t)count;
    for (int i = 0; i < count && left > most; i++) {
        if (trace_written_p(traces[i]) || unlink(traces[i]) != 0) continue;
        folder->removed++;
        left--;
    }
    folder_traces_free(traces, count);
}
