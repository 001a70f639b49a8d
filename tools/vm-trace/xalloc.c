/* xalloc.c - see xalloc.h */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "diag.h"
#include "xalloc.h"

static void
out_of_memory(void)
{
    fputs("vm-trace: out of memory\n", stderr);
    exit(STATUS_CANNOT_READ);
}

void *
xcalloc(size_t count, size_t size)
{
    void *ptr = calloc(count ? count : 1, size);
    if (ptr == NULL) out_of_memory();
    return ptr;
}

void *
xrealloc(void *ptr, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) out_of_memory();
    size_t bytes = count * size;
    void *grown = realloc(ptr, bytes ? bytes : 1);
    if (grown == NULL) out_of_memory();
    return grown;
}

bool
budget_take(struct budget *budget, size_t bytes)
{
    if (bytes > budget->limit_bytes - budget->used_bytes) return false;
    budget->used_bytes += bytes;
    return true;
}

void
budget_give_back(struct budget *budget, size_t bytes)
{
    budget->used_bytes -= bytes;
}
