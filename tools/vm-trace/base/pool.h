#ifndef POOL_H
#define POOL_H
/* pool.h - every distinct string of the traces once, with a small number for it.
 *
 * Tables and tallies keep and compare the numbers. Strings are bytes with a length: they may hold NUL or what is not UTF-8.
 * The first numbers are those of words.h, so a well-known word is recognized by its number.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/xalloc.h"

enum { STRING_NONE = 0 };

struct fxt_string {
    const char *ptr; /* lives as long as the pool; for an inline string (id may be 0) only as long as the record */
    uint32_t len;
    uint32_t id; /* STRING_NONE for an inline string that the pool does not hold */
};

/* The string of a C string, which it points to. */
static inline struct fxt_string
text_of(const char *text)
{
    return (struct fxt_string){.ptr = text, .len = (uint32_t)strlen(text)};
}

struct pool;

/* The budget is used as long as the pool lives. A string is interned also where the budget has no room for it, which marks the budget
 * as exceeded: different strings never share a number, whatever the limit. */
struct pool *pool_new(struct budget *budget);
void pool_free(struct pool *pool);
/* The number of a string, which is added if need be. Never STRING_NONE. */
uint32_t pool_intern(struct pool *pool, const char *ptr, size_t len);
/* The number of a string that was added before, or STRING_NONE. */
uint32_t pool_find(const struct pool *pool, const char *ptr, size_t len);
/* The string of a number; the empty string for STRING_NONE. A NUL stands behind it. */
struct fxt_string pool_string(const struct pool *pool, uint32_t id);
uint32_t pool_size(const struct pool *pool);

/* The number of a string that may be inline so far. */
uint32_t pool_id(struct pool *pool, struct fxt_string string);

/* The number of a string with each address (0x and digits) written "0x...": addresses differ from run to run, and from object to
 * object. Reasons are counted by it. The number itself where there is none, or no room in the budget. */
uint32_t pool_without_addresses(struct pool *pool, uint32_t id);

bool fxt_string_is(struct fxt_string string, const char *text);
bool fxt_string_equal(struct fxt_string a, struct fxt_string b);
/* Order by bytes, for stable output: <0, 0, >0. */
int fxt_string_compare(struct fxt_string a, struct fxt_string b);

#endif
