#ifndef ADVICE_H
#define ADVICE_H
/* advice.h - for each reason of a JIT: what it means, what usually causes it, and what helps.
 *
 * The texts are only in advice/<JIT>_<kind>.def: `report --advice`, `html`, `explain` and the pages
 * of the guide (scripts/reason-pages.rb) read them there. Code in the texts is between backticks.
 * advice/lasting.def has other causes and help where that advice is wrong.
 * test/docs/test_reasons.rb checks that the Rubies have these reasons, and no others.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nearest.h"
#include "base/pool.h"

enum advice_kind {
    ADVICE_EXIT,
    ADVICE_COMPILE_ERROR, /* of an exit from a call, or in a `compile` event */
    ADVICE_FALLBACK,
    ADVICE_OUTCOME,
    ADVICE_INVALIDATION,
    ADVICE_KINDS
};

enum { ADVICE_NAMES = 10 };

/* The texts for reasons that share them. Without names: the heading of the entries that follow. */
struct advice {
    const char *jit; /* "ZJIT", "YJIT", "any JIT" */
    enum advice_kind kind;
    const char *topic;               /* a heading's title */
    const char *names[ADVICE_NAMES]; /* as in traces; globs where a trace adds details. NULL ends them */
    const char *meaning;             /* a heading's introduction, or NULL */
    const char *cause;
    const char *help;
    const char *pair;    /* the folder of examples/fixes that shows what `help` gains, or NULL: untested */
    const char *example; /* a program that has the first of the names in its trace, or NULL */
};

/* Whether the help says that something helps, and no pair shows what. */
bool advice_untested_p(const struct advice *advice);

size_t advice_count(void);
/* Returns a heading or advice by its number. */
const struct advice *advice_at(size_t index);
/* Returns "exit", "fallback" etc. */
const char *advice_kind_name(enum advice_kind kind);

/* Finds the advice for a reason in a trace, and the number of the name that matches. `kind`
 * ADVICE_EXIT includes compile errors. Returns NULL if there is none. */
const struct advice *advice_find(enum advice_kind kind, const char *reason, unsigned *name_out);

/* For a reason of which one place has most exits, which go on to the end of the trace (lasting_exits.h). */
struct lasting_advice {
    const char *reason; /* a glob */
    const char *insn;   /* the place has this instruction; NULL: any */
    const char *cause, *help;
};
/* Returns NULL if the usual advice holds. */
const struct lasting_advice *advice_lasting(const char *reason, struct fxt_string insn);

/* Chooses the names that a user requests: a reason in upper or lower case, with or without the part
 * in parentheses; its name in the JIT's stats, or its counter; or a glob. NULL means all. Sets bit i
 * of chosen[number] for the name i of an entry; `chosen` has advice_count() items. Returns false if
 * there is no such reason. */
bool advice_choose(const char *requested, uint32_t *chosen);
/* Compares all names. */
void advice_nearest(struct nearest *nearest);

#endif
