/* nearest.c - see nearest.h */
#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/nearest.h"

enum { NAME_MOST = 64 };

/* Stores the letters of a name without case and underscores. Returns their number, or SIZE_MAX
 * if there are too many for a name. */
static size_t
letters_of(const char *name, char letters[NAME_MOST])
{
    size_t len = 0;
    for (; *name != '\0'; name++) {
        if (*name == '_') continue;
        if (len == NAME_MOST) return SIZE_MAX;
        letters[len++] = (char)tolower((unsigned char)*name);
    }
    return len;
}

/* The edit distance between two names; UINT_MAX if one is too long to be a name. */
static unsigned
distance(const char *a_name, const char *b_name)
{
    unsigned row[NAME_MOST + 1];
    char a[NAME_MOST] = "", b[NAME_MOST] = "";
    size_t a_len = letters_of(a_name, a), b_len = letters_of(b_name, b);
    if (a_len == SIZE_MAX || b_len == SIZE_MAX) return UINT_MAX;
    for (size_t j = 0; j <= b_len; j++) row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned changed = diagonal + (a[i - 1] != b[j - 1]);
            unsigned shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = changed < shorter ? changed : shorter;
        }
    }
    return row[b_len];
}

struct nearest
nearest_to(const char *wanted)
{
    size_t most = strlen(wanted) / 3; /* a larger distance would be guessing */
    return (struct nearest){.wanted = wanted, .off = (unsigned)(most < 2 ? 2 : most) + 1};
}

void
nearest_try_as(struct nearest *nearest, const char *spelling, const char *name)
{
    unsigned off = distance(nearest->wanted, spelling);
    if (off >= nearest->off) return;
    nearest->off = off;
    nearest->name = name;
}

void
nearest_try(struct nearest *nearest, const char *name)
{
    nearest_try_as(nearest, name, name);
}
