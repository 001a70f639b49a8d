/* fuzz.c - the tool's commands under libFuzzer, in one process, with the sanitizers. `make fuzz` builds and runs it.
 *
 * Each input is a trace file, and each command line below reads it. FUZZ_TARGET picks those of one target; all otherwise.
 * What would count as found: a crash, a sanitizer's report, a run of more than -timeout seconds, more memory than -rss_limit_mb.
 */
#define _GNU_SOURCE /* memfd_create */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int vm_trace_main(int argc, char **argv); /* the tool's main() */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define ALL_TABLES \
    "SELECT * FROM slice LEFT JOIN args USING (arg_set_id); SELECT * FROM args WHERE arg_set_id IN (-1, 0, 1, 4000000000);" \
    "SELECT s.name, a.display_value, COUNT(*) FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = '0' GROUP BY 1, 2;" \
    "SELECT * FROM flow; SELECT * FROM thread_state; SELECT * FROM sched; SELECT * FROM stats; SELECT * FROM track;" \
    "SELECT * FROM counter JOIN track t ON t.id = track_id; SELECT * FROM thread JOIN process USING (upid);" \
    "SELECT * FROM slice WHERE id IN (0, 9999999) OR arg_set_id = 1"

/* FILE stands for the input, OUT for a file that may be written. The limits make what is wrong show early. */
#define LIMITS "--max-faults=3", "--memory=32"
static const struct {
    const char *target;
    const char *arguments[10];
} command_lines[] = {
    {"check", {"check", LIMITS, "FILE"}},
    {"check", {"dump", LIMITS, "FILE"}},
    {"check", {"info", LIMITS, "FILE"}},
    {"report", {"report", LIMITS, "FILE"}},
    {"report", {"report", LIMITS, "--format=json", "FILE"}},
    {"report", {"report", LIMITS, "--format=markdown", "FILE"}},
    {"report", {"report", LIMITS, "--advice", "FILE"}},
    {"report", {"annotate", LIMITS, "FILE"}},
    {"report", {"diff", LIMITS, "FILE", "FILE"}},
    {"copy", {"merge", LIMITS, "-o", "OUT", "FILE", "FILE"}},
    {"copy", {"cut", LIMITS, "--since=1us", "--until=1ms", "-o", "OUT", "FILE"}},
    {"query", {"query", LIMITS, "FILE", ALL_TABLES}},
    {"export", {"export", LIMITS, "--sqlite", "OUT", "FILE"}},
    {"html", {"html", LIMITS, "-o", "OUT", "FILE"}},
    {"export", {"export", LIMITS, "--format=folded", "--kind=exits", "-o", "OUT", "FILE"}},
    {"export", {"export", LIMITS, "--format=folded", "--kind=blocked", "--threads", "-o", "OUT", "FILE"}},
    {"export", {"export", LIMITS, "--format=folded", "--kind=allocations", "-o", "OUT", "FILE"}},
    {"export", {"export", LIMITS, "--format=speedscope", "--kind=exits", "-o", "OUT", "FILE"}},
    {"export", {"export", LIMITS, "--format=chrome", "-o", "OUT", "FILE"}},
    {"export", {"export", LIMITS, "--format=firefox", "-o", "OUT", "FILE"}},
    {"export", {"export", LIMITS, "--format=pprof", "-o", "OUT", "FILE"}},
};
enum { COMMAND_LINES = sizeof command_lines / sizeof *command_lines };

static int input_fd;
static char input_path[64];
static char output_path[4096];
static const char *target;

static void
remove_output(void)
{
    unlink(output_path);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    input_fd = memfd_create("trace", 0);
    int output_fd = -1;
    const char *folder = getenv("TMPDIR");
    snprintf(output_path, sizeof output_path, "%s/vm-trace-fuzz-XXXXXX", folder != NULL ? folder : "/tmp");
    if (input_fd >= 0) output_fd = mkstemp(output_path);
    if (output_fd < 0) {
        perror("fuzz: a temporary file");
        exit(3);
    }
    close(output_fd);
    atexit(remove_output);
    snprintf(input_path, sizeof input_path, "/proc/self/fd/%d", input_fd);
    target = getenv("FUZZ_TARGET");
    return 0;
}

static void
run(const char *const *arguments)
{
    char *argv[16] = {(char *)"vm-trace"};
    int argc = 1;
    for (; *arguments != NULL; arguments++) {
        const char *argument = *arguments;
        if (strcmp(argument, "FILE") == 0) argument = input_path;
        else if (strcmp(argument, "OUT") == 0) argument = output_path;
        argv[argc++] = (char *)argument;
    }
    optind = 0; /* getopt begins anew */
    vm_trace_main(argc, argv);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (ftruncate(input_fd, 0) != 0 || pwrite(input_fd, data, size, 0) != (ssize_t)size) {
        perror("fuzz: the input's file");
        exit(3);
    }
    for (int i = 0; i < COMMAND_LINES; i++) {
        if (target == NULL || strcmp(target, command_lines[i].target) == 0) run(command_lines[i].arguments);
    }
    return 0;
}

/* --- records as wholes ------------------------------------------------------------------------ */

enum { WORD = 8, RECORDS_MAX = 4096 };

/* Where records begin, by the sizes that they state; the last number is the end. */
static size_t
find_records(const uint8_t *data, size_t size, size_t *starts)
{
    size_t count = 0;
    for (size_t at = 0; count < RECORDS_MAX && at + WORD <= size;) {
        uint64_t header;
        memcpy(&header, data + at, sizeof header);
        starts[count++] = at;
        size_t bytes = (size_t)(header >> 4 & 0xfff) * WORD;
        at = bytes == 0 || bytes > size - at ? size : at + bytes;
        starts[count] = at;
    }
    return count;
}

static uint64_t
wild(unsigned *seed)
{
    switch (rand_r(seed) % 6) {
      case 0: return UINT64_MAX >> (rand_r(seed) % 64);
      case 1: return UINT64_C(1) << (rand_r(seed) % 64);
      case 2: return (uint64_t)(rand_r(seed) % 20);
      default: return (uint64_t)rand_r(seed) << 32 | (uint64_t)rand_r(seed);
    }
}

/* Left to itself libFuzzer rarely gets past a record's size: here records are doubled, moved, removed, cut, and their words
 * replaced, and only now and then bytes as they lie. */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static size_t starts[RECORDS_MAX + 1];
    size_t count = find_records(data, size, starts);
    if (count == 0 || rand_r(&seed) % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);

    size_t pick = (size_t)rand_r(&seed) % count;
    uint8_t *record = data + starts[pick];
    size_t bytes = starts[pick + 1] - starts[pick];
    uint8_t *end = record + bytes;
    size_t behind = size - starts[pick + 1];
    uint64_t word;
    switch (rand_r(&seed) % 6) {
      case 0: /* another record, behind this one */
      case 1: {
        static uint8_t copy[4096 * WORD];
        size_t other = (size_t)rand_r(&seed) % count;
        size_t length = starts[other + 1] - starts[other];
        if (length > sizeof copy || size + length > max_size) return size;
        memcpy(copy, data + starts[other], length);
        memmove(end + length, end, behind);
        memcpy(end, copy, length);
        return size + length;
      }
      case 2: /* without it */
        memmove(record, end, behind);
        return size - bytes;
      case 3: /* without its last word */
        if (bytes < 2 * WORD) return size;
        memcpy(&word, record, sizeof word);
        word -= 1 << 4;
        memcpy(record, &word, sizeof word);
        memmove(end - WORD, end, behind);
        return size - WORD;
      case 4: /* a field of its header: a nibble */
        record[2 + rand_r(&seed) % 6] ^= (uint8_t)(1 + rand_r(&seed) % 15) << (rand_r(&seed) % 2 * 4);
        return size;
      default: /* one of its other words */
        if (bytes < 2 * WORD) return size;
        word = wild(&seed);
        memcpy(record + WORD * (1 + (size_t)rand_r(&seed) % (bytes / WORD - 1)), &word, sizeof word);
        return size;
    }
}
