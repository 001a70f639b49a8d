/* annotated_source.c - see annotated_source.h */
#include <string.h>
#include <sys/stat.h>

#include "source/annotated_source.h"
#include "fxt/known_strings.h"

/* Why a source may not be that of the program. */
static const char *
doubt_of(const struct annotation *annotation, const struct annotated_file *file, time_t traced,
         const struct source_file *source)
{
    uint32_t count, first = annotation_lines(annotation, file->path, &count);
    const struct annotated_line *last = row_table_at(&annotation->lines, first + count - 1);
    if (last->line > source->line_count) return "the file has fewer lines than the one that ran";
    bool newer = traced != 0 && source->changed > traced;
    return newer ? "the file has changed since the trace was written" : NULL;
}

const char *
annotated_source_read(const struct annotation *annotation, uint32_t number, const char *path, time_t traced,
                      struct source_file *source)
{
    const struct annotated_file *file = row_table_at(&annotation->files, number);
    *source = (struct source_file){0};
    if (file->path == STRING_NONE) return "its frames name no file";
    if (strncmp(path, "<internal:", 10) == 0) return "a part of Ruby, without a file";
    const char *error = source_file_read(source, path);
    return error != NULL ? error : doubt_of(annotation, file, traced, source);
}

time_t
traces_written(int file_count, char *const *files)
{
    time_t first = 0;
    for (int i = 0; i < file_count; i++) {
        struct stat stat_of_file;
        if (strcmp(files[i], "-") == 0 || stat(files[i], &stat_of_file) != 0) return 0;
        if (first == 0 || stat_of_file.st_mtime < first) first = stat_of_file.st_mtime;
    }
    return first;
}
