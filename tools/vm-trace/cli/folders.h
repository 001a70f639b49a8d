#ifndef FOLDERS_H
#define FOLDERS_H
/* folders.h - a folder of traces, such as those of the processes of one run, as an argument. */
#include <stdbool.h>

/* The traces in a folder (names with .fxt in them, not those of its folders), in the order of their names,
 * numbers by value. Each is the path of the folder, a slash and the name. Returns how many; -1 and errno
 * if it is not a folder or cannot be read. The caller frees with folder_traces_free. */
int folder_traces(const char *folder, char ***traces_out);
void folder_traces_free(char **traces, int count);

/* Replaces arguments that are folders by the traces in them. Prints a message and returns false if a folder has
 * none. The caller frees the list with folder_traces_free. */
bool folders_expand(int count, char **arguments, int *count_out, char ***arguments_out);

#endif
