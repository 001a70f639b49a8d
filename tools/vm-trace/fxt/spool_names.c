/* spool_names.c - see spool_names.h */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "fxt/spool_names.h"

struct piece {
    size_t process_bytes; /* of the path: folder, host and pid, with the hyphen behind them */
    unsigned long number;
};

/* Returns the end of so many digits, or of one or more with `count` 0; NULL: there is something else. */
static const char *
digits(const char *text, unsigned count)
{
    unsigned found = 0;
    while (isdigit((unsigned char)text[found])) found++;
    return found > 0 && (count == 0 || found == count) ? text + found : NULL;
}

/* PID-20261126T221504-3- */
static bool
read_piece(struct piece *piece, const char *path, const char *pid)
{
    const char *at = digits(pid, 0);
    if (at == NULL || *at++ != '-') return false;
    piece->process_bytes = (size_t)(at - path);
    if ((at = digits(at, 8)) == NULL || *at++ != 'T') return false;
    if ((at = digits(at, 6)) == NULL || *at++ != '-') return false;
    errno = 0;
    piece->number = strtoul(at, NULL, 10);
    at = digits(at, 0);
    return at != NULL && *at == '-' && errno == 0 && strstr(at, ".fxt") != NULL;
}

/* The host may have hyphens and digits, too. */
static bool
piece_of(struct piece *piece, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    for (const char *hyphen = strchr(name, '-'); hyphen != NULL; hyphen = strchr(hyphen + 1, '-')) {
        if (read_piece(piece, path, hyphen + 1)) return true;
    }
    return false;
}

bool
spool_goes_on(const char *earlier, const char *later)
{
    struct piece a, b;
    return piece_of(&a, earlier) && piece_of(&b, later) && a.process_bytes == b.process_bytes &&
           memcmp(earlier, later, a.process_bytes) == 0 && a.number < b.number;
}

void
recording_next(struct recording *recording, const char *path)
{
    if (recording->path == NULL || !spool_goes_on(recording->path, path)) recording->number = ++recording->last;
    free(recording->path);
    recording->path = xformat("%s", path);
    recording->traced = false;
}

uint32_t
recording_of(struct recording *recording, struct fxt_string name)
{
    bool tracer = fxt_string_is(name, "ruby vm_trace"), another = tracer && recording->traced;
    recording->traced |= tracer;
    return another ? ++recording->last : recording->number;
}

uint32_t
recording_process(struct recording *recording, uint32_t number, uint32_t pid)
{
    enum { PROCESSES_MAX = 1024 * 1024 };
    uint64_t key = (uint64_t)number << 32 | pid;
    uint32_t process = map_get(&recording->processes, key), count = recording->processes.used;
    if (process != MAP_NONE || count == PROCESSES_MAX) return process != MAP_NONE ? process : PROCESSES_MAX - 1;
    map_set(&recording->processes, key, count);
    return count;
}

void
recording_free(struct recording *recording)
{
    map_free(&recording->processes);
    free(recording->path);
}
