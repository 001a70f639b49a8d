/*
 * The spool's folder: names, limits, times. See spool.h.
 */
#include "vm_trace/session/spool.h"
#include "vm_trace/base/numbers.h"
#include "vm_trace/session/options.h"
#include "vm_trace/store/file_claim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND UINT64_C(1000000000)

const struct rb_vm_trace_spool rb_vm_trace_spool_defaults = {
    .every_ns = 300 * NS_PER_SECOND, .max_bytes = UINT64_C(1) << 30, .max_files = 1000
};

/* --- options ----------------------------------------------------------------------------------------------- */

bool
rb_vm_trace_spool_take_every(struct rb_vm_trace_spool *spool, const char *value)
{
    uint64_t ns;
    if (!rb_vm_trace_duration(value, &ns) || ns < NS_PER_SECOND) return false;
    spool->every_ns = ns;
    return true;
}

bool
rb_vm_trace_spool_take_limit(struct rb_vm_trace_spool *spool, const char *value)
{
    enum { MOST_FILES = 1000000 }; /* as VM_TRACE_SPOOL_LIMIT_TAKES says */
    _Static_assert(VM_TRACE_MOST_MIB == 1048576, "likewise");
    char *end;
    unsigned long long mib = rb_vm_trace_whole_number(value, &end), files = spool->max_files;
    bool ok = mib >= 1 && mib <= VM_TRACE_MOST_MIB;
    if (ok && *end == ',') {
        files = rb_vm_trace_whole_number(end + 1, &end);
        ok = files >= 1 && files <= MOST_FILES;
    }
    if (!ok || *end) return false;
    spool->max_bytes = mib << 20;
    spool->max_files = (uint32_t)files;
    return true;
}

const char *
rb_vm_trace_spool_take_compression(struct rb_vm_trace_spool *spool, const char *value)
{
    enum vm_trace_compression compression;
    if (!rb_vm_trace_compression_named(value, &compression)) return VM_TRACE_COMPRESSION_TAKES;
    const char *why = rb_vm_trace_compression_load(compression);
    if (!why) spool->compression = compression;
    return why;
}

const char *
rb_vm_trace_spool_make_folder(const char *folder, char path_out[PATH_MAX])
{
    struct stat st;
    if ((mkdir(folder, 0700) != 0 && errno != EEXIST) || stat(folder, &st) != 0) return strerror(errno);
    if (!S_ISDIR(st.st_mode)) return "it is no folder";
    if (access(folder, W_OK | X_OK) != 0 || !realpath(folder, path_out)) return strerror(errno);
    return NULL;
}

/* --- flags ------------------------------------------------------------------------------------------------- */

static struct rb_vm_trace_spool given;
static char given_folder[PATH_MAX];

static struct rb_vm_trace_spool *
given_spool(void)
{
    if (!given.every_ns) given = rb_vm_trace_spool_defaults;
    return &given;
}

bool
rb_vm_trace_parse_spool(const char *option, const char *value)
{
    if (!*value) {
        fprintf(stderr, "%s takes the folder to write to\n", option);
        return false;
    }
    const char *why = rb_vm_trace_spool_make_folder(value, given_folder);
    if (why) fprintf(stderr, "%s=%s: %s; give a folder that this user can write to\n", option, value, why);
    else given_spool()->folder = given_folder;
    return !why;
}

bool
rb_vm_trace_parse_spool_every(const char *option, const char *value)
{
    if (rb_vm_trace_spool_take_every(given_spool(), value)) return true;
    fprintf(stderr, "%s " VM_TRACE_SPOOL_EVERY_TAKES ", not '%s'\n", option, value);
    return false;
}

bool
rb_vm_trace_parse_spool_limit(const char *option, const char *value)
{
    if (rb_vm_trace_spool_take_limit(given_spool(), value)) return true;
    fprintf(stderr, "%s " VM_TRACE_SPOOL_LIMIT_TAKES ", not '%s'\n", option, value);
    return false;
}

bool
rb_vm_trace_parse_spool_compress(const char *option, const char *value)
{
    const char *why = rb_vm_trace_spool_take_compression(given_spool(), value);
    if (why) fprintf(stderr, "%s %s, not '%s'\n", option, why, value);
    return !why;
}

/* --- configuration ----------------------------------------------------------------------------------------- */

void
rb_vm_trace_spool_use(struct rb_vm_trace_memory_config *memory, const struct rb_vm_trace_spool *spool)
{
    memory->spool = *spool;
    memory->spool.begin_ns = rb_vm_trace_spool_now_ns();
    memory->save_at |= VM_TRACE_SAVE_AT_EXIT | VM_TRACE_SAVE_AT_EXCEPTION | VM_TRACE_SAVE_AT_CRASH;
}

void
rb_vm_trace_spool_configure(struct rb_vm_trace_memory_config *memory)
{
    if (given.folder) rb_vm_trace_spool_use(memory, &given);
}

const char *
rb_vm_trace_spool_keep_folder(const char *folder)
{
    static struct kept {
        struct kept *next;
        char path[];
    } *all;
    for (const struct kept *kept = all; kept; kept = kept->next) {
        if (strcmp(kept->path, folder) == 0) return kept->path;
    }
    size_t bytes = strlen(folder) + 1;
    struct kept *kept = malloc(sizeof(*kept) + bytes);
    if (!kept) return NULL;
    memcpy(kept->path, folder, bytes);
    kept->next = all;
    all = kept;
    return kept->path;
}

/* --- names ------------------------------------------------------------------------------------------------- */

char *
rb_vm_trace_spool_pattern(const struct rb_vm_trace_spool *spool)
{
    size_t bytes = strlen(spool->folder);
    char *pattern = malloc(2 * bytes + sizeof("/" VM_TRACE_PIECE_NAME)), *to = pattern;
    if (!pattern) return NULL;
    for (const char *from = spool->folder; *from; from++) {
        if (*from == '%') *to++ = '%'; /* of the folder's name: no template */
        *to++ = *from;
    }
    strcpy(to, "/" VM_TRACE_PIECE_NAME);
    return pattern;
}

bool
rb_vm_trace_spool_reason_p(const char *reason, size_t bytes)
{
    enum { MOST = 32 };
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    return bytes >= 1 && bytes <= MOST && strspn(reason, PLAIN) == bytes; /* ends at a 0 */
}

/* --- compression ------------------------------------------------------------------------------------------- */

/* NULL, or why not. */
static const char *
compress_file(const struct rb_vm_trace_spool *spool, const char *from_path, const char *unfinished, const char *path)
{
    struct stat st;
    const char *why = NULL;
    int from = open(from_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0) return strerror(errno);
    int to = fstat(from, &st) == 0 ? rb_vm_trace_claim_create(unfinished, O_WRONLY, &why) : -1;
    if (to < 0 && !why) why = strerror(errno);
    if (to >= 0) {
        int error = rb_vm_trace_compress(spool->compression, from, (uint64_t)st.st_size, to);
        why = error ? strerror(error) : rb_vm_trace_claim_rename(unfinished, path, true);
        if (why) unlink(unfinished);
        close(to);
    }
    close(from);
    return why;
}

char *
rb_vm_trace_spool_compress(const struct rb_vm_trace_spool *spool, const char *from, const char *path,
                           const char **why_out)
{
    enum { MORE_BYTES = 64 };
    size_t room = strlen(path) + MORE_BYTES;
    char *compressed = malloc(room), *unfinished = malloc(room);
    if (!compressed || !unfinished) {
        free(compressed);
        free(unfinished);
        *why_out = "out of memory";
        return NULL;
    }
    snprintf(compressed, room, "%s%s", path, rb_vm_trace_compression_suffix(spool->compression));
    snprintf(unfinished, room, "%s.saving-%lu", compressed, (unsigned long)getpid());
    *why_out = compress_file(spool, from, unfinished, compressed);
    free(unfinished);
    if (!*why_out) {
        unlink(from);
        return compressed;
    }
    free(compressed);
    return NULL;
}

/* --- limits ------------------------------------------------------------------------------------------------ */

enum { LOCKED_AFTER_S = 60 }; /* by then who makes a file has locked it */

struct piece {
    char *name;
    uint64_t bytes;
    struct timespec time;
};

static size_t
digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* What follows HOST-PID-TIME-NUMBER-REASON.fxt in the name of a file; NULL: it is no piece's. */
static const char *
after_piece_name(const char *name)
{
    enum { DATE = 8, TIME = 6 };
    for (const char *at = name; (at = strchr(at, '-')) != NULL;) {
        const char *pid = ++at, *time = pid + digits(pid) + 1;
        if (at == name + 1 || time == pid + 1 || time[-1] != '-') continue;
        if (digits(time) != DATE || time[DATE] != 'T' || digits(time + DATE + 1) != TIME) continue;
        const char *number = time + DATE + 1 + TIME + 1;
        if (number[-1] != '-') continue;
        const char *reason = number + digits(number) + 1;
        if (reason == number + 1 || reason[-1] != '-') continue;
        const char *end = strchr(reason, '.');
        if (end && rb_vm_trace_spool_reason_p(reason, (size_t)(end - reason)) && strncmp(end, ".fxt", 4) == 0)
            return end + 4;
    }
    return NULL;
}

/* A piece, which may be compressed. */
static bool
piece_p(const char *name)
{
    const char *ending = after_piece_name(name);
    return ending && (!*ending || strcmp(ending, ".gz") == 0 || strcmp(ending, ".zst") == 0);
}

/* PIECE.saving-PID, which may be compressed. */
static bool
unfinished_p(const char *name)
{
    const char *ending = after_piece_name(name);
    return ending && strstr(ending, ".saving-");
}

/* The oldest first. */
static int
compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->time.tv_sec != y->time.tv_sec) return x->time.tv_sec < y->time.tv_sec ? -1 : 1;
    if (x->time.tv_nsec != y->time.tv_nsec) return x->time.tv_nsec < y->time.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* What is at `name`, if it is a regular file of ours. */
static bool
look(DIR *folder, const char *name, struct stat *st)
{
    return fstatat(dirfd(folder), name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode) &&
        st->st_uid == geteuid();
}

/* A file that a process was writing when it was killed: nobody holds its lock. */
static void
remove_stale(const struct rb_vm_trace_spool *spool, const char *name)
{
    size_t bytes = strlen(spool->folder) + 1 + strlen(name) + 1;
    char *path = malloc(bytes);
    if (!path) return;
    snprintf(path, bytes, "%s/%s", spool->folder, name);
    rb_vm_trace_claim_remove_stale(path, true);
    free(path);
}

/* All pieces of the folder; malloc'ed. What there is no memory for is not in the list. */
static struct piece *
list_pieces(const struct rb_vm_trace_spool *spool, DIR *folder, size_t *count_out)
{
    struct piece *pieces = NULL;
    size_t count = 0, room = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat st;
        bool piece = piece_p(entry->d_name), unfinished = unfinished_p(entry->d_name);
        if ((!piece && !unfinished) || !look(folder, entry->d_name, &st)) continue;
        if (unfinished) {
            if (st.st_mtime + LOCKED_AFTER_S < time(NULL)) remove_stale(spool, entry->d_name);
            continue;
        }
        if (count == room) {
            size_t more = room ? 2 * room : 64;
            struct piece *grown = realloc(pieces, more * sizeof(*pieces));
            if (!grown) break;
            pieces = grown;
            room = more;
        }
        char *name = strdup(entry->d_name);
        if (!name) break;
        pieces[count++] = (struct piece){ name, (uint64_t)st.st_size, rb_vm_trace_platform_modified(&st) };
    }
    *count_out = count;
    return pieces;
}

void
rb_vm_trace_spool_trim(const struct rb_vm_trace_spool *spool)
{
    DIR *folder = spool->folder ? opendir(spool->folder) : NULL;
    if (!folder) return; /* writing the next piece says why */
    size_t count;
    struct piece *pieces = list_pieces(spool, folder, &count);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += pieces[i].bytes;
    if (count) qsort(pieces, count, sizeof(*pieces), compare_pieces);
    size_t left = count;
    for (size_t i = 0; i < count && (bytes > spool->max_bytes || left > spool->max_files); i++) {
        /* Another process may have deleted it meanwhile. */
        unlinkat(dirfd(folder), pieces[i].name, 0);
        bytes -= pieces[i].bytes;
        left--;
    }
    for (size_t i = 0; i < count; i++) free(pieces[i].name);
    free(pieces);
    closedir(folder);
}

/* --- times ------------------------------------------------------------------------------------------------- */

uint64_t
rb_vm_trace_spool_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t
rb_vm_trace_spool_next_ns(const struct rb_vm_trace_spool *spool, uint32_t pid, uint64_t now_ns)
{
    /*
     * Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4) spreads neighbouring pids over the period: its
     * upper 16 bits, which a day of nanoseconds leaves room for.
     */
    uint64_t every_ns = spool->every_ns, place = (uint32_t)(pid * 2654435761u) >> 16;
    uint64_t first_ns = spool->begin_ns + ((every_ns * place) >> 16);
    if (now_ns < first_ns) return first_ns;
    return first_ns + ((now_ns - first_ns) / every_ns + 1) * every_ns;
}
