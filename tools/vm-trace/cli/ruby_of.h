#ifndef RUBY_OF_H
#define RUBY_OF_H
/* ruby_of.h - which Ruby a command runs, and whether it can be traced. */
#include <stdbool.h>
#include <stddef.h>

/* Returns the Ruby that a command runs: the command itself if it is an ELF file called ruby, perhaps with a version,
 * or the interpreter that the first line of a script names, if that is one. malloc'ed; NULL: there is no such file, or
 * it is not certain (a shell script, make). */
char *ruby_of(const char *command);

struct ruby_version {
    bool traced;           /* it has RubyVM::Trace */
    char description[200]; /* as `ruby -v` prints it, on one line */
};

/* Asks a Ruby by running it for a moment, without the program's RUBYOPT and gems. Returns false if it cannot be
 * run. */
bool ruby_ask(const char *ruby, struct ruby_version *version_out);
/* Whether a Ruby that has the tracer takes --vm-trace=STREAMS. If not, the last line that it says is in `why`. */
bool ruby_takes_streams(const char *ruby, const char *streams, char *why, size_t room);

#endif
