#ifndef CONTROL_H
#define CONTROL_H
/* control.h - requests to a running program. It listens on a socket that its environment names (see
 * the control socket of the patched Ruby). Requests and answers are words and text. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* The variable in the program's environment: a folder, or the path of a socket. */
#define CONTROL_VARIABLE "RUBY_VM_TRACE_CONTROL"

/* What its socket in such a folder is called, before the pid. */
#define CONTROL_SOCKET "vm-trace."

/* A program gives up after 10 s if its main thread does not answer, but saving its memory takes as long
 * as its disk. */
enum { CONTROL_TIMEOUT_S = 60 };

/* Begins empty: {.bytes = 0}. */
struct control_request {
    char words[8192];
    size_t bytes;
    bool too_long;
};

void control_word(struct control_request *request, const char *word);
/* Two words. A value of NULL adds nothing. */
void control_pair(struct control_request *request, const char *name, const char *value);
void control_number(struct control_request *request, const char *name, uint64_t value);

/* Sends the request, once, and prints the answer to `out` (NULL: nowhere). Prints a message on stderr and returns
 * STATUS_CANNOT_READ if the program cannot be reached or refuses, STATUS_USAGE if the request is too
 * long. May change the working directory to that of the program. */
enum status control_send(struct control_request *request, const char *pid, uint64_t timeout_s, FILE *out);

#endif
