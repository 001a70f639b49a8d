#ifndef ANNOTATED_SOURCE_H
#define ANNOTATED_SOURCE_H
/* annotated_source.h - the source of a file with exits, and what is wrong with it. */
#include "source/annotation.h"
#include "source/source_file.h"

/* Reads the source of annotation->files[number] at `path`. traced: when the trace was written; 0:
 * unknown. Returns NULL, or a static text for the user: why the source cannot be read (then it has
 * no lines), or why it may differ from what ran. The caller frees the source in either case. */
const char *annotated_source_read(const struct annotation *annotation, uint32_t number, const char *path, time_t traced,
                                  struct source_file *source);
/* When the first of these traces was written; 0: unknown. */
time_t traces_written(int file_count, char *const *files);

#endif
