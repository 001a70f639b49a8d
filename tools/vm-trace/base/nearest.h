#ifndef NEAREST_H
#define NEAREST_H
/* nearest.h - "did you mean": finds the name with the most similar spelling. */

/* A search among names that are passed one by one. It ignores names that differ in more than a
 * third of their letters. */
struct nearest {
    const char *wanted;
    const char *name; /* the best name so far, or NULL */
    unsigned off;
};

struct nearest nearest_to(const char *wanted);
/* Compares a name, which must live as long as the result is used. Ignores case and underscores. */
void nearest_try(struct nearest *nearest, const char *name);
/* The same for another spelling of `name`; the spelling need not live on. */
void nearest_try_as(struct nearest *nearest, const char *spelling, const char *name);

#endif
