/* work.c - linked into a tool built with -fsanitize-coverage=trace-pc and -Wl,--wrap: counts what a run costs, the same on any
 * machine. On exit the file that WORK names gets the basic blocks that were run and the bytes that
 * were allocated, in all and at
 * the most at a time. See test_growth.rb. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void __sanitizer_cov_trace_pc(void);
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void __real_free(void *ptr);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void __wrap_free(void *ptr);

static uint64_t blocks, allocated;
static int64_t in_use, peak; /* what libc has allocated for the tool (open_memstream) is only given back here */

__attribute__((no_sanitize_coverage)) void
__sanitizer_cov_trace_pc(void)
{
    blocks++;
}

static void *
taken(void *ptr, size_t size)
{
    allocated += size;
    in_use += ptr ? (int64_t)malloc_usable_size(ptr) : 0;
    if (in_use > peak) peak = in_use;
    return ptr;
}

static void
given_back(void *ptr)
{
    in_use -= ptr ? (int64_t)malloc_usable_size(ptr) : 0;
}

void *
__wrap_malloc(size_t size)
{
    return taken(__real_malloc(size), size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
    return taken(__real_calloc(count, size), count * size);
}

void *
__wrap_realloc(void *ptr, size_t size)
{
    given_back(ptr);
    return taken(__real_realloc(ptr, size), size);
}

void
__wrap_free(void *ptr)
{
    given_back(ptr);
    __real_free(ptr);
}

__attribute__((destructor)) static void
tell(void)
{
    const char *path = getenv("WORK");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file == NULL) return;
    fprintf(file, "%llu %llu %lld\n", (unsigned long long)blocks, (unsigned long long)allocated, (long long)peak);
    fclose(file);
}
