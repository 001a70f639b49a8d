#ifndef POOL_H
#define POOL_H
/* pool.h - keeps every distinct string of the traces once, and gives it a small number.
 *
 * Tables store and compare the numbers. Strings are bytes with a length: they may contain NUL or
 * bytes that are not UTF-8.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/xalloc.h"

enum { STRING_NONE = 0 };

struct fxt_string {
    const char *ptr; /* lives as long as the pool; for an inline string (its id may be 0), as long as the record */
    uint32_t len;
    uint32_t id; /* STRING_NONE: an inline string that is not in the pool */
};

/* A view of a C string. */
static inline struct fxt_string
text_of(const char *text)
{
    return (struct fxt_string){.ptr = text, .len = (uint32_t)strlen(text)};
}

struct pool;

/* The pool charges its memory to the budget, which must outlive it. If the budget is used up,
 * strings are still interned and the budget is marked as exceeded: different strings never share
 * a number. */
struct pool *pool_new(struct budget *budget);
void pool_free(struct pool *pool);
/* Returns the number of a string, and adds the string if necessary. Never STRING_NONE. */
uint32_t pool_intern(struct pool *pool, const char *ptr, size_t len);
/* Returns the number of a string, or STRING_NONE if it was never added. */
uint32_t pool_find(const struct pool *pool, const char *ptr, size_t len);
/* Returns the string of a number, followed by NUL; the empty string for STRING_NONE. */
struct fxt_string pool_string(const struct pool *pool, uint32_t id);
uint32_t pool_size(const struct pool *pool);

/* Returns the number of a string that may be inline. */
uint32_t pool_id(struct pool *pool, struct fxt_string string);

/* Returns the number of the string with every address (0x and digits) replaced by "0x...".
 * Addresses differ from run to run and from object to object, so reasons are counted without
 * them. */
uint32_t pool_without_addresses(struct pool *pool, uint32_t id);

bool fxt_string_is(struct fxt_string string, const char *text);
bool fxt_string_starts(struct fxt_string string, const char *start);
bool fxt_string_equal(struct fxt_string a, struct fxt_string b);
/* Orders by bytes, for stable output: <0, 0, >0. */
int fxt_string_compare(struct fxt_string a, struct fxt_string b);
/* The same for two numbers of a pool. */
int pool_compare(const struct pool *pool, uint32_t a, uint32_t b);

#endif
