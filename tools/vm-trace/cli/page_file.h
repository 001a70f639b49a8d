#ifndef PAGE_FILE_H
#define PAGE_FILE_H
/* page_file.h - writes the page of `vm-trace html` to a file. */
#include <stdbool.h>
#include <stdint.h>

#include "topics/trace_choice.h"
#include "base/status.h"
#include "cli/options.h"

struct page_options {
    const char *out_path; /* NULL or "-": standard output */
    bool with_sources;
    const char *below;    /* of these, only those in this folder; NULL: in the current one */
    uint32_t max_calls;   /* shown, the longest ones */
    struct trace_choice choice; /* of both */
    const char *against;  /* a trace or a folder, whose stacks are compared; NULL: none */
};

/* Prints its own messages. Returns the worst status. */
enum status page_file_write(const struct page_options *page, const struct options *options, int file_count,
                            char **files);

#endif
