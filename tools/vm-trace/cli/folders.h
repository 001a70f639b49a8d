#ifndef FOLDERS_H
#define FOLDERS_H
/* folders.h - a folder of traces, such as those of the processes of one run, as an argument. */
#include <stdbool.h>

/* What `vm-trace record` writes beside the traces. */
#define FOLDER_INDEX "index.csv"
#define FOLDER_PAGE "trace.html"

/* Whether a file is called as a trace: NAME.fxt, NAME.fxt.gz or .zst; or NAME.fxt.NUMBER (of a fork, or where one
 * process wrote several), compressed or not. Not what a flight recorder is saving, nor NAME.fxt.md. */
bool trace_path_p(const char *path);

/* Removes from arguments, as a shell makes them of FOLDER/ *, an index or a page beside a trace. Returns how many
 * are left. */
int traces_of_arguments(int count, char **arguments);

/* The traces in a folder (not those of its folders), in the order of their names, numbers by value. Each is the path of
 * the folder, a slash and the name. Returns how many; -1 and errno if it is not a folder or cannot be read. The caller
 * frees with folder_traces_free. */
int folder_traces(const char *folder, char ***traces_out);
void folder_traces_free(char **traces, int count);

/* Replaces arguments that are folders by the traces in them. Prints a message and returns false if a folder has
 * none. The caller frees the list with folder_traces_free. */
bool folders_expand(int count, char **arguments, int *count_out, char ***arguments_out);

#endif
