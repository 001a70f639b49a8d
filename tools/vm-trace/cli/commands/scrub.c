/* scrub.c - `vm-trace scrub`: a copy of a trace without what should not leave the house. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "scrub/scrub_text.h"
#include "base/map.h"
#include "base/output_file.h"
#include "base/portable.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "cli/folders.h"
#include "fxt/known_strings.h"
#include "fxt/record_copy.h"
#include "fxt/record_rewrite.h"

static const char *out_path, *compression = "gzip";
static struct scrub scrub;

static bool
take_compression(const struct cli_option *option, const char *text)
{
    static const char *const kinds[] = {"gzip", "zstd", "none"};
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(text, kinds[i]) == 0) compression = kinds[i];
    }
    if (strcmp(text, compression) == 0) return true;
    return option_wrong(option, "gzip, zstd or none", text);
}

struct scrubbing {
    struct record_copy *copy; /* NULL: the result is being verified */
    struct reader *reader;
    struct record_rewriter *rewriter;
    struct map clean; /* number of a string and its role -> number of what is written instead */
    uint64_t records, left_out, fields_left_out, definitions, unclean;
};

static struct {
    uint64_t changed, records, left_out, fields_left_out; /* of all traces */
} sums;

static bool
take_pattern(const struct cli_option *option, const char *text)
{
    const char *why = scrub_add_pattern(&scrub, text);
    if (why == NULL) return true;
    message("--%s: %s: %s", option->name, text, why);
    return false;
}

/* --- what is secret -------------------------------------------------------------------------------------------- */

/* The command line, and what the host and the service are called, wherever they are. */
static void
find_secrets(void *context, const struct fxt_event *event)
{
    (void)context;
    for (unsigned i = 0; i < event->arg_count; i++) {
        const struct fxt_arg *arg = &event->args[i];
        if (arg->type != FXT_ARG_STRING) continue;
        enum scrub_role role = scrub_role_of_value(event->category, arg->name, arg->string);
        bool version = role == SCRUB_SERVICE && arg->name.id != STRING_SERVICE; /* may be any number */
        if (role >= SCRUB_COMMAND && !scrub.keep[role] && !version)
            scrub_add_secret(&scrub, arg->string, role != SCRUB_COMMAND);
    }
}

/* --- the copy ------------------------------------------------------------------------------------------------------ */

/* A text that the pool has is scrubbed once in each role. */
static struct fxt_string
rewrite_text(void *context, const struct text_use *use, struct fxt_string text)
{
    struct scrubbing *scrubbing = context;
    struct pool *pool = reader_pool(scrubbing->reader);
    enum scrub_role role = scrub_role_of(use, text);
    uint64_t key = (uint64_t)text.id * SCRUB_ROLES + role;
    uint32_t known = text.id == STRING_NONE ? MAP_NONE : map_get(&scrubbing->clean, key);
    if (known != MAP_NONE) return pool_string(pool, known);
    struct fxt_string clean = scrub_text(&scrub, role, text);
    if (text.id == STRING_NONE) return clean;
    known = pool_intern(pool, clean.ptr, clean.len);
    map_set_within(reader_budget(scrubbing->reader), &scrubbing->clean, key, known);
    return pool_string(pool, known);
}

static void
on_definition(void *context, const struct fxt_record *definition)
{
    struct scrubbing *scrubbing = context;
    if (scrubbing->copy != NULL) record_copy_define(scrubbing->copy, definition);
}

static void
on_record(void *context, const struct fxt_record *record)
{
    struct scrubbing *scrubbing = context;
    struct fxt_record rewritten;
    if (fxt_padding_p(record->header)) return;
    if (record->type == FXT_RECORD_STRING) {
        scrubbing->definitions++;
        return;
    }
    scrubbing->records++;
    if (!record_rewrite(scrubbing->rewriter, record, &rewritten)) {
        scrubbing->left_out++;
        return;
    }
    if (scrubbing->copy == NULL) {
        size_t bytes = record->words * FXT_WORD_BYTES;
        bool same = rewritten.words == record->words && memcmp(rewritten.bytes, record->bytes, bytes) == 0;
        scrubbing->unclean += !same;
    }
    else if (record_is_definition(record)) {
        record_copy_define(scrubbing->copy, &rewritten);
    }
    else {
        record_copy_write(scrubbing->copy, &rewritten);
    }
}

static enum status
read_once(const struct options *options, char *file, struct fxt_visitor *visitor, struct scrubbing *scrubbing)
{
    struct reader *reader = reader_new(options->memory_bytes);
    if (scrubbing != NULL) {
        const struct text_rewriter texts = {scrubbing, rewrite_text, on_definition};
        scrubbing->reader = reader;
        scrubbing->rewriter = record_rewriter_new(reader, &texts);
    }
    enum status status = read_files(reader, options->max_faults, 1, &file, visitor, NULL);
    if (scrubbing != NULL) {
        scrubbing->fields_left_out = record_rewriter_fields_left_out(scrubbing->rewriter);
        scrubbing->unclean += record_rewriter_definitions(scrubbing->rewriter) != scrubbing->definitions;
        record_rewriter_free(scrubbing->rewriter);
        map_free(&scrubbing->clean);
    }
    reader_free(reader);
    return status;
}

/* Reads a copy. Returns whether there is nothing in it to remove: scrubbed again, its texts and its records are the same,
 * and it defines no other strings than those that its records need. */
static bool
clean_p(const struct options *options, const char *copy)
{
    struct scrubbing scrubbing = {.copy = NULL};
    struct fxt_visitor visitor = {.context = &scrubbing, .record = on_record};
    uint64_t changed = scrub.changed;
    enum status status = read_once(options, (char *)copy, &visitor, &scrubbing);
    uint64_t left = scrub.changed - changed + scrubbing.unclean + scrubbing.left_out + scrubbing.fields_left_out;
    scrub.changed = changed;
    return left == 0 && status < STATUS_CANNOT_READ;
}

/* The first reading finds what is secret. The second one reports faults. */
static void
find_all_secrets(const struct options *options, char *file)
{
    struct fxt_visitor secrets = {.event = find_secrets};
    struct options quiet = *options;
    quiet.max_faults = 0;
    scrub_forget_secrets(&scrub);
    int kept = dup(STDERR_FILENO);
    FILE *null = fopen("/dev/null", "w");
    fflush(stderr);
    if (null != NULL) dup2(fileno(null), STDERR_FILENO);
    read_once(&quiet, file, &secrets, NULL);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    if (null != NULL) fclose(null);
}

/* The second reading, which writes, and a third one of what was written, before it gets its name. */
static enum status
scrub_file(const struct options *options, char *file, const char *out)
{
    struct scrubbing scrubbing = {.copy = NULL};
    struct fxt_visitor records = {.context = &scrubbing, .record = on_record};
    struct output output;
    struct stat there;
    if (stat(out, &there) == 0 && !S_ISREG(there.st_mode)) {
        file_message(out, "is no ordinary file: scrub reads what it has written; give the name of a file");
        return STATUS_USAGE;
    }
    if (!output_open(&output, OUTPUT_BINARY, out, 1, &file)) return STATUS_CANNOT_READ;
    scrubbing.copy = record_copy_new(output.file, true);
    enum status status = read_once(options, file, &records, &scrubbing);
    record_copy_free(scrubbing.copy);
    sums.records += scrubbing.records - scrubbing.left_out;
    sums.left_out += scrubbing.left_out;
    sums.fields_left_out += scrubbing.fields_left_out;
    sums.changed = scrub.changed;
    if (output_complete(&output) && status < STATUS_USAGE && !clean_p(options, output.temporary)) {
        file_message(out, "is not written: something that was to be removed was found in what would be in it");
        status = STATUS_CANNOT_READ;
    }
    return output_close(&output, status);
}

static void
print_sums(void)
{
    fprintf(stderr, "vm-trace: %" PRIu64 " texts are changed in %" PRIu64 " records", sums.changed, sums.records);
    if (scrub.given_up > 0) {
        fprintf(stderr, "; %" PRIu64 " of them are removed as a whole: the pattern of --remove takes too many steps",
                scrub.given_up);
    }
    if (sums.left_out > 0) {
        fprintf(stderr, "; %" PRIu64 " records are left out: damaged, or of a kind that may hold texts anywhere",
                sums.left_out);
    }
    if (sums.fields_left_out > 0)
        fprintf(stderr, "; %" PRIu64 " fields of packets are left out: they are not known", sums.fields_left_out);
    fputs("; the result was read again, and nothing was left to remove\n", stderr);
}

/* --- a folder --------------------------------------------------------------------------------------------------------- */

static uint32_t
hash_of(const char *text, uint32_t salt)
{
    return (uint32_t)crc32(salt, (const Bytef *)text, (uInt)strlen(text));
}

/* The names that copies have got already, by their hashes. */
static struct map taken;

static bool
take_name(const char *path)
{
    uint32_t key = hash_of(strrchr(path, '/'), 0);
    if (map_get(&taken, key) != MAP_NONE) return false;
    map_set(&taken, key, 1);
    return true;
}

/* The name of a trace without its ending. */
static struct fxt_string
stem_of(const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash == NULL ? file : slash + 1;
    return (struct fxt_string){.ptr = name, .len = (uint32_t)(strstr(name, ".fxt") - name)};
}

/* The name of a trace's copy, without what is secret in it, and compressed; a fork's has its pid behind ".fxt". Where
 * another one has that name, a hash of the trace's own is in it: a short one, as long as few have it. The caller frees
 * it. */
static char *
name_of_copy(const char *file)
{
    const struct fxt_string stem = stem_of(file);
    const char *name = stem.ptr, *ending = name + stem.len;
    const char *compressed = strcmp(compression, "none") == 0 ? "" : strcmp(compression, "gzip") == 0 ? ".gz" : ".zst";
    int pid_bytes = ending[4] == '.' ? (int)strspn(ending + 5, "0123456789") : 0;
    int ending_bytes = pid_bytes > 0 ? 5 + pid_bytes : 4;
    enum { SHORT_ONES = 16 };
    for (uint32_t salt = 0;; salt++) {
        struct fxt_string clean = scrub_text(&scrub, SCRUB_FREE, stem);
        char distinct[12] = "";
        uint32_t hash = hash_of(name, salt);
        if (salt > SHORT_ONES) snprintf(distinct, sizeof distinct, "-%08" PRIx32, hash);
        else if (salt > 0) snprintf(distinct, sizeof distinct, "-%04" PRIx32, hash & 0xffff);
        char *path = xformat("%s/%.*s%s%.*s%s", out_path, (int)clean.len, clean.ptr, distinct, ending_bytes, ending,
                             compressed);
        for (char *at = path + strlen(out_path); *at != '\0'; at++) {
            if (*at == '*') *at = '_';
        }
        if (take_name(path)) return path;
        free(path);
    }
}

/* Gives the copy the trace's time: then it is known whose copy it is. */
static void
give_time(const char *file, const char *copy)
{
    struct stat of_file;
    if (stat(file, &of_file) != 0) return;
    const struct timespec times[] = {of_file.st_atim, of_file.st_mtim};
    utimensat(AT_FDCWD, copy, times, 0);
}

/* Whether the copy is there, of this trace as it is, and has nothing to remove: perhaps less was removed when it
 * was made. */
static bool
done_p(const struct options *options, const char *file, const char *copy)
{
    struct stat of_file, of_copy;
    if (stat(file, &of_file) != 0 || stat(copy, &of_copy) != 0) return false;
    bool same = of_copy.st_mtim.tv_sec == of_file.st_mtim.tv_sec && of_copy.st_mtim.tv_nsec == of_file.st_mtim.tv_nsec;
    return same && clean_p(options, copy);
}

/* Whether its name has nothing that is to be removed. */
static bool
clean_name_p(const char *file)
{
    uint64_t changed = scrub.changed;
    bool clean = fxt_string_equal(scrub_text(&scrub, SCRUB_FREE, stem_of(file)), stem_of(file));
    scrub.changed = changed;
    return clean;
}

/* Copies of an earlier run, of traces that are gone, or under a name that they would no longer get. Whose secrets
 * they may have is not known; what --remove matches is. */
static enum status
check_other_copies(const struct options *options)
{
    char **copies;
    int count = folder_traces(out_path, &copies);
    enum status status = STATUS_FINE;
    scrub_forget_secrets(&scrub);
    for (int i = 0; i < count; i++) {
        if (!take_name(copies[i]) || (clean_name_p(copies[i]) && clean_p(options, copies[i]))) continue;
        file_message(copies[i], "is no copy of a trace that is there now, and has something to remove: remove it");
        status = STATUS_FAULTS;
    }
    if (count >= 0) folder_traces_free(copies, count);
    return status;
}

/* One trace that cannot be read keeps no other from being scrubbed. */
static enum status
scrub_folder(const struct options *options, const char *folder)
{
    char **traces;
    int count = folder_traces(folder, &traces), made = 0, done = 0, failed = 0;
    if (count < 0 || (mkdir(out_path, 0700) != 0 && errno != EEXIST)) {
        file_message(count < 0 ? folder : out_path, strerror(errno));
        return STATUS_CANNOT_READ;
    }
    enum status status = STATUS_FINE;
    for (int i = 0; i < count; i++) {
        find_all_secrets(options, traces[i]);
        char *copy = name_of_copy(traces[i]);
        if (done_p(options, traces[i], copy)) {
            done++;
        }
        else {
            enum status of_file = scrub_file(options, traces[i], copy);
            if (of_file < STATUS_USAGE) give_time(traces[i], copy);
            made += of_file < STATUS_USAGE;
            failed += of_file >= STATUS_USAGE;
            status = worse(status, of_file);
        }
        free(copy);
    }
    folder_traces_free(traces, count);
    status = worse(status, check_other_copies(options));
    map_free(&taken);
    if (made > 0) print_sums();
    fprintf(stderr, "vm-trace: %d traces are scrubbed, %d were there already, %d cannot be read\n", made, done, failed);
    return status;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static enum status
run(const struct options *options, int file_count, char **files)
{
    struct stat input, output;
    if (out_path == NULL || strcmp(out_path, "-") == 0 || file_count != 1) {
        fputs("vm-trace: scrub takes one trace or folder, and -o OUT to write (it is read again); several traces become one"
              " by vm-trace merge\n", stderr);
        return STATUS_USAGE;
    }
    if (strcmp(files[0], "-") == 0) {
        fputs("vm-trace: scrub reads the trace twice: give a file, not standard input\n", stderr);
        return STATUS_USAGE;
    }
    enum status status;
    if (stat(files[0], &input) == 0 && S_ISDIR(input.st_mode)) {
        bool same = stat(out_path, &output) == 0 && output.st_dev == input.st_dev && output.st_ino == input.st_ino;
        if (same) file_message(out_path, "is the folder of the traces; give another one for their copies");
        status = same ? STATUS_USAGE : scrub_folder(options, files[0]);
    }
    else if (options_refused("compress", "is for a folder; of one trace the name of OUT decides (.gz, .zst)")) {
        status = STATUS_USAGE;
    }
    else {
        find_all_secrets(options, files[0]);
        status = scrub_file(options, files[0], out_path);
        if (status < STATUS_USAGE) print_sums();
    }
    scrub_free(&scrub);
    return status;
}

static const struct cli_option scrub_options[] = {
    OPTION_OUTPUT(out_path, "file to write, compressed if its name ends in .gz or .zst; or\n"
                  "folder for the copies of those in a folder"),
    CLI_OPTION("compress", "HOW", "copies in a folder: gzip (default), zstd or none", take_compression, NULL),
    CLI_OPTION("remove", "REGEX", "also remove what this regular expression (of Perl) matches, in\n"
               "all names and texts: 'Acme[A-Za-z]*'; can be repeated", take_pattern, NULL),
    CLI_OPTION("keep-paths", NULL, "keep the folders of paths", NULL, &scrub.keep[SCRUB_PATH]),
    CLI_OPTION("keep-command", NULL, "keep the command line and the title", NULL, &scrub.keep[SCRUB_COMMAND]),
    CLI_OPTION("keep-host", NULL, "keep the host's name", NULL, &scrub.keep[SCRUB_HOST]),
    CLI_OPTION("keep-service", NULL, "keep the name and the version of the service", NULL,
               &scrub.keep[SCRUB_SERVICE]),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_scrub = {
    .name = "scrub",
    .purpose = "remove command line, host, paths and names before a trace is shared",
    .arguments = "-o OUT FILE|FOLDER",
    .help =
        "Writes a copy of a trace without the command line and the title of the process, the names\n"
        "of host and service and the folders of paths (/home/me/app/user.rb becomes */user.rb), and\n"
        "without what --remove matches. What is removed becomes up to three stars. What a text is\n"
        "decides, not what it looks like: the place of a frame is a path, and in other texts a path\n"
        "ends at the last slash. Names of files, methods, classes and threads, texts of markers and\n"
        "addresses stay, unless --remove matches them. Times and counts stay.\n"
        "The result is read again before it gets its name: if something to remove is found in it,\n"
        "there is none, and the exit status is 3. Records that cannot be searched are left out, and\n"
        "counted.\n"
        "Of a folder, such as a spool, each trace gets a copy in the folder OUT, under its name\n"
        "without what is removed. Copies that are there already, of the same traces, and have\n"
        "nothing to remove stay; run it as often as you like.\n",
    .options = scrub_options,
    .run = run,
};
