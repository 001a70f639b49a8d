#ifndef NEAREST_H
#define NEAREST_H
/* nearest.h - "did you mean": the name that is spelled most like another. */

/*
 * Looks for it among names that are handed in one by one. A name that is further off than a third
 * of its letters is none.
 */
struct nearest {
    const char *wanted;
    const char *name; /* the best so far; NULL: none */
    unsigned off;
};

struct nearest nearest_to(const char *wanted);
/* The name must live as long as the result is used. Upper and lower case count as the same, and _ not at all. */
void nearest_try(struct nearest *nearest, const char *name);
/* The same for another spelling of the name, which need not live on. */
void nearest_try_as(struct nearest *nearest, const char *spelling, const char *name);

#endif
