#ifndef SYSCALL_TEXT_H
#define SYSCALL_TEXT_H
/* syscall_text.h - texts about system calls, for the report and the page. */
#include "topics/kernel/syscall_methods.h"

#define OUTSIDE_OF_CALLS "(outside recorded calls)"

enum { SYSCALL_NAMES_TEXT = 512 };

/* Writes "futex 120, read 20, 3 more", and returns the buffer. */
const char *syscall_names_text(char text[SYSCALL_NAMES_TEXT], const struct pool *pool,
                               const struct syscall_method *method);

#endif
