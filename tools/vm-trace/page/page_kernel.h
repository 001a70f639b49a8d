#ifndef PAGE_KERNEL_H
#define PAGE_KERNEL_H
/* page_kernel.h - system calls and times on CPUs in the page. */
#include "page/page_strings.h"

/* Prints members of the page's JSON; nothing without the streams `syscalls` and `sched`. */
void print_page_kernel(struct page *page);

#endif
