#ifndef RUBY_VM_TRACE_BASE_PROCESS_TITLE_H
#define RUBY_VM_TRACE_BASE_PROCESS_TITLE_H 1
/* The title that the program gives its process by $0 = or Process.setproctitle. */

#include <stddef.h>

/*
 * Write the title of this process, without a NUL, and return its bytes, at most `size`. 0: the process has no title,
 * or the system does not show it. A long title is cut as rb_vm_trace_text_fit does it, and may be no UTF-8. The
 * function reads a file, which takes some 6 us on Linux. Any thread.
 */
size_t rb_vm_trace_process_title(char *title, size_t size);

#endif /* RUBY_VM_TRACE_BASE_PROCESS_TITLE_H */
