/* live_source.c - see live_source.h */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "base/xalloc.h"
#include "cli/control.h"
#include "cli/folders.h"
#include "cli/live_source.h"
#include "cli/process.h"
#include "cli/trace_folder.h"

enum { MEMORY_MIB = 16 };

/* The first trace that the process has open: its path or, where that is none of ours (a container's), the link to it in
 * /proc. malloc'ed, or NULL. */
static char *
open_trace(const char *pid)
{
    char *folder = xformat("/proc/%s/fd", pid), target[4096], *found = NULL;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && found == NULL && (entry = readdir(entries)) != NULL;) {
        struct stat st, of_path;
        char *link = xformat("%s/%s", folder, entry->d_name);
        ssize_t bytes = readlink(link, target, sizeof target - 1);
        target[bytes > 0 ? bytes : 0] = '\0';
        if (target[0] == '/' && strstr(target, ".fxt") != NULL && access(link, R_OK) == 0 && stat(link, &st) == 0 &&
            st.st_nlink > 0) {
            bool ours = stat(target, &of_path) == 0 && of_path.st_dev == st.st_dev && of_path.st_ino == st.st_ino;
            found = xformat("%s", ours ? target : link);
        }
        free(link);
    }
    if (entries != NULL) closedir(entries);
    free(folder);
    return found;
}

static enum status
request(const struct live_source *source, const char *word, FILE *out)
{
    struct control_request request = {.bytes = 0};
    control_word(&request, word);
    if (strcmp(word, "start") == 0) {
        control_pair(&request, "streams", "profile");
        control_number(&request, "memory", MEMORY_MIB);
    }
    if (strcmp(word, "save") == 0) control_word(&request, source->saved + strlen(source->root));
    return control_send(&request, source->name, CONTROL_TIMEOUT_S, out);
}

static bool
open_memory(struct live_source *source, bool may_start)
{
    char *text = NULL;
    size_t bytes;
    FILE *status = open_memstream(&text, &bytes);
    bool answered = status != NULL && request(source, "status", status) == STATUS_FINE;
    if (status != NULL) fclose(status);
    bool on = answered && strncmp(text, "on", 2) == 0 && strstr(text, "true") != NULL;
    free(text);
    if (!answered) return false;
    if (!on && !may_start) {
        message("process %s records nothing: vm-trace start makes it", source->name);
        return false;
    }
    process_root(source->name, source->root);
    snprintf(source->folder, sizeof source->folder, "%s/tmp/vm-trace-XXXXXX", source->root);
    bool made = mkdtemp(source->folder) != NULL, given = made && process_give(source->name, source->folder);
    if (made && !given) rmdir(source->folder);
    if (!given) {
        snprintf(source->folder, sizeof source->folder, "%s/tmp", source->root);
        file_message(source->folder, strerror(errno));
        source->folder[0] = '\0';
        return false;
    }
    source->saved = xformat("%s/top.fxt", source->folder);
    source->started = !on;
    return on || request(source, "start", NULL) == STATUS_FINE;
}

bool
live_source_open(struct live_source *source, const char *name, bool may_start)
{
    struct stat st;
    *source = (struct live_source){.name = name};
    if (stat(name, &st) == 0) return true;
    if (!process_pid_p(name)) {
        file_message(name, strerror(errno));
        return false;
    }
    source->process = true;
    source->path = open_trace(name);
    if (source->path != NULL || open_memory(source, may_start)) return true;
    source->started = false;
    live_source_close(source);
    return false;
}

bool
live_source_runs(const struct live_source *source)
{
    return !source->process || kill((pid_t)strtol(source->name, NULL, 10), 0) == 0 || errno == EPERM;
}

static bool
recent_p(const char *trace, double seconds)
{
    struct stat st;
    if (stat(trace, &st) != 0) return false;
    return difftime(time(NULL), st.st_mtime) <= seconds + 1 || trace_written_p(trace);
}

static int
one_trace(const char *path, char ***traces_out)
{
    *traces_out = xcalloc(1, sizeof **traces_out);
    **traces_out = xformat("%s", path);
    return 1;
}

int
live_source_traces(struct live_source *source, double seconds, char ***traces_out)
{
    if (source->path != NULL) return one_trace(source->path, traces_out);
    if (source->process) {
        unlink(source->saved);
        return request(source, "save", NULL) == STATUS_FINE ? one_trace(source->saved, traces_out) : -1;
    }
    int count = folder_traces(source->name, traces_out), recent = 0;
    if (count < 0) return one_trace(source->name, traces_out);
    for (int i = 0; i < count; i++) {
        if (recent_p((*traces_out)[i], seconds)) (*traces_out)[recent++] = (*traces_out)[i];
        else free((*traces_out)[i]);
    }
    return recent;
}

void
live_source_close(struct live_source *source)
{
    if (source->started && live_source_runs(source)) request(source, "stop", NULL);
    if (source->saved != NULL) unlink(source->saved);
    if (source->folder[0] != '\0') rmdir(source->folder);
    free(source->saved);
    free(source->path);
}
