/* xalloc.c - see xalloc.h */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "base/xalloc.h"

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

char *
xformat(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = xcalloc((size_t)bytes + 1, 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)bytes + 1, format, arguments);
    va_end(arguments);
    return text;
}

FILE *
xmemstream(char **text_out, size_t *bytes_out)
{
    FILE *stream = open_memstream(text_out, bytes_out);
    if (stream == NULL) out_of_memory();
    return stream;
}

size_t
grown_capacity(size_t capacity, size_t counter_bytes)
{
    size_t most = counter_bytes < sizeof(size_t) ? ((size_t)1 << (8 * counter_bytes)) - 1 : SIZE_MAX;
    if (capacity <= most / 2) return capacity ? capacity * 2 : 16;
    fprintf(stderr, "vm-trace: a table would have more than %zu rows; vm-trace cut extracts a shorter trace\n", most);
    exit(STATUS_CANNOT_READ);
}

bool
budget_take(struct budget *budget, size_t bytes)
{
    if (budget->used_bytes > budget->limit_bytes || bytes > budget->limit_bytes - budget->used_bytes) return false;
    budget->used_bytes += bytes;
    return true;
}

void
budget_charge(struct budget *budget, size_t bytes)
{
    budget->used_bytes += bytes;
    if (budget->used_bytes > budget->limit_bytes) budget->exceeded = true;
}

void
budget_give_back(struct budget *budget, size_t bytes)
{
    budget->used_bytes -= bytes;
}
