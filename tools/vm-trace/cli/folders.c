/* folders.c - see folders.h */
#define _GNU_SOURCE /* versionsort */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/message.h"
#include "base/portable.h"
#include "base/xalloc.h"
#include "cli/folders.h"

static bool
trace_name_p(const char *name)
{
    if (name[0] == '.') return false;
    for (const char *at = name; (at = strstr(at, ".fxt")) != NULL;) {
        at += strlen(".fxt");
        const char *end = at;
        while (end[0] == '.' && isdigit((unsigned char)end[1])) end += 1 + strspn(end + 1, "0123456789");
        if (*end == '\0' || strcmp(end, ".gz") == 0 || strcmp(end, ".zst") == 0) return true;
    }
    return false;
}

static int
trace_entry(const struct dirent *entry)
{
    return trace_name_p(entry->d_name);
}

static char *
join(const char *folder, const char *name)
{
    size_t bytes = strlen(folder);
    while (bytes > 1 && folder[bytes - 1] == '/') bytes--;
    return xformat("%.*s/%s", (int)bytes, folder, name);
}

int
folder_traces(const char *folder, char ***traces_out)
{
    struct dirent **entries;
    int found = scandir(folder, &entries, trace_entry, versionsort), count = 0;
    if (found < 0) return -1;
    char **traces = xcalloc((size_t)found + 1, sizeof *traces);
    for (int i = 0; i < found; i++) {
        struct stat stat_of;
        traces[count] = join(folder, entries[i]->d_name);
        free(entries[i]);
        if (stat(traces[count], &stat_of) == 0 && S_ISREG(stat_of.st_mode)) count++;
        else free(traces[count]);
    }
    free(entries);
    *traces_out = traces;
    return count;
}

void
folder_traces_free(char **traces, int count)
{
    for (int i = 0; i < count; i++) free(traces[i]);
    free(traces);
}

static const char *
name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

bool
trace_path_p(const char *path)
{
    return trace_name_p(name_of(path));
}

/* Whether the list has a trace of the folder in which the file is. */
static bool
beside_trace(const char *file, int count, char *const *arguments)
{
    size_t bytes = (size_t)(name_of(file) - file);
    for (int i = 0; i < count; i++) {
        if (strncmp(arguments[i], file, bytes) == 0 && trace_name_p(arguments[i] + bytes) &&
            strchr(arguments[i] + bytes, '/') == NULL)
            return true;
    }
    return false;
}

int
traces_of_arguments(int count, char **arguments)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        const char *name = name_of(arguments[i]);
        bool ours = strcmp(name, FOLDER_INDEX) == 0 || strcmp(name, FOLDER_PAGE) == 0;
        if (!ours || !beside_trace(arguments[i], count, arguments)) arguments[kept++] = arguments[i];
    }
    return kept;
}

static bool
folder_p(const char *path)
{
    struct stat stat_of;
    return stat(path, &stat_of) == 0 && S_ISDIR(stat_of.st_mode);
}

/* Returns how many, as folder_traces does. */
static int
expand(char *argument, char ***traces_out)
{
    if (folder_p(argument)) return folder_traces(argument, traces_out);
    *traces_out = xcalloc(1, sizeof **traces_out);
    **traces_out = xformat("%s", argument);
    return 1;
}

bool
folders_expand(int count, char **arguments, int *count_out, char ***arguments_out)
{
    size_t all_count = 0, capacity = 0;
    char **all = NULL, **traces;
    bool ok = true;
    for (int i = 0; i < count && ok; i++) {
        int trace_count = expand(arguments[i], &traces);
        ok = trace_count > 0;
        if (!ok) file_message(arguments[i], trace_count < 0 ? strerror(errno) : "the folder has no traces (*.fxt)");
        for (int trace = 0; trace < trace_count; trace++) {
            make_room(all, all_count, capacity);
            all[all_count++] = traces[trace];
        }
        if (trace_count >= 0) free(traces);
    }
    *count_out = (int)all_count;
    *arguments_out = all;
    if (!ok) folder_traces_free(all, *count_out);
    return ok;
}
