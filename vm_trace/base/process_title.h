#ifndef RUBY_VM_TRACE_BASE_PROCESS_TITLE_H
#define RUBY_VM_TRACE_BASE_PROCESS_TITLE_H 1
/* What the program calls its process: $0 = and Process.setproctitle. */

#include <stddef.h>

/*
 * Write the title of this process, without a NUL, and return its bytes; 0: it has the command line that it was
 * started with, or the system does not say. At most `size` bytes, cut where a character of UTF-8 begins. It reads a
 * file of the system, which takes some 6 us. Any thread.
 */
size_t rb_vm_trace_process_title(char *title, size_t size);

#endif /* RUBY_VM_TRACE_BASE_PROCESS_TITLE_H */
