/* advice.c - see advice.h */
#define _GNU_SOURCE /* FNM_CASEFOLD */
#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#include "topics/exits/advice.h"
#include "topics/exits/reason.h"

#define NAMES(...) .names = {__VA_ARGS__}
#define PAIR(folder) , .pair = (folder) /* after NAMES() */
#define TOPIC(title, text) {.jit = JIT, .kind = KIND, .topic = (title), .meaning = (text)},
#define ADVICE(reasons, means, causes, helps, program) \
    {.jit = JIT, .kind = KIND, reasons, .meaning = (means), .cause = (causes), .help = (helps), .example = (program)},

static const struct advice entries[] = {
#define JIT "any JIT"
#define KIND ADVICE_EXIT
#include "topics/exits/advice/any_exits.def"
#undef JIT
#define JIT "ZJIT"
#include "topics/exits/advice/zjit_exits.def"
#undef KIND
#define KIND ADVICE_COMPILE_ERROR
#include "topics/exits/advice/zjit_compile_errors.def"
#undef KIND
#define KIND ADVICE_FALLBACK
#include "topics/exits/advice/zjit_fallbacks.def"
#undef KIND
#define KIND ADVICE_OUTCOME
#include "topics/exits/advice/zjit_outcomes.def"
#undef KIND
#define KIND ADVICE_INVALIDATION
#include "topics/exits/advice/zjit_invalidations.def"
#undef JIT
#define JIT "YJIT"
#include "topics/exits/advice/yjit_invalidations.def"
#undef KIND
#define KIND ADVICE_EXIT
#include "topics/exits/advice/yjit_exits.def"
};
enum { ENTRIES = sizeof entries / sizeof *entries };

static const struct lasting_advice lasting[] = {
#define LASTING(reasons, of_insn, causes, helps) {.reason = (reasons), .insn = (of_insn), .cause = (causes), .help = (helps)},
#include "topics/exits/advice/lasting.def"
};

const struct lasting_advice *
advice_lasting(const char *reason, struct fxt_string insn)
{
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++) {
        const struct lasting_advice *advice = &lasting[i];
        if (fnmatch(advice->reason, reason, 0) != 0) continue;
        if (advice->insn == NULL || fxt_string_is(insn, advice->insn)) return advice;
    }
    return NULL;
}

bool
advice_untested_p(const struct advice *advice)
{
    return advice->pair == NULL && advice->help != NULL && strncmp(advice->help, "Nothing", strlen("Nothing")) != 0;
}

size_t
advice_count(void)
{
    return ENTRIES;
}

const struct advice *
advice_at(size_t index)
{
    return &entries[index];
}

const char *
advice_kind_name(enum advice_kind kind)
{
    static const char *const names[ADVICE_KINDS] = {
        [ADVICE_EXIT] = "exit",       [ADVICE_COMPILE_ERROR] = "compile error", [ADVICE_FALLBACK] = "fallback",
        [ADVICE_OUTCOME] = "outcome", [ADVICE_INVALIDATION] = "invalidation",
    };
    return names[kind];
}

const struct advice *
advice_find(enum advice_kind kind, const char *reason, unsigned *name_out)
{
    for (size_t i = 0; i < ENTRIES; i++) { /* more special names come first */
        enum advice_kind other = entries[i].kind;
        if (other != kind && !(kind == ADVICE_EXIT && other == ADVICE_COMPILE_ERROR)) continue;
        for (unsigned name = 0; name < ADVICE_NAMES && entries[i].names[name] != NULL; name++) {
            *name_out = name;
            if (fnmatch(entries[i].names[name], reason, 0) == 0) return &entries[i];
        }
    }
    return NULL;
}

static bool
matches(const char *glob, const char *name)
{
    return strcasecmp(glob, name) == 0 || fnmatch(glob, name, FNM_CASEFOLD) == 0;
}

/* Whether a user who writes `requested` means this name of a reason. */
static bool
names_reason(const char *requested, const char *name)
{
    size_t head = strcspn(name, "(");
    if (matches(requested, name)) return true;
    if (head > 0 && strlen(requested) == head && strncasecmp(requested, name, head) == 0) return true;
    struct reason_names names;
    return reason_find(name, &names) && (matches(requested, names.stats) || matches(requested, names.counter));
}

/* Whether `requested` is a reason with details, such as GuardType(Fixnum) for GuardType(*). */
static bool
has_details(const char *requested, const char *name)
{
    return fnmatch(name, requested, FNM_CASEFOLD) == 0;
}

static bool
choose(const char *requested, uint32_t *chosen, bool (*meant)(const char *requested, const char *name), bool only_first)
{
    bool any = false;
    for (size_t i = 0; i < ENTRIES && !(any && only_first); i++) {
        for (unsigned name = 0; name < ADVICE_NAMES && entries[i].names[name] != NULL; name++) {
            if (requested != NULL && !meant(requested, entries[i].names[name])) continue;
            chosen[i] |= 1U << name;
            any = true;
        }
    }
    return any;
}

bool
advice_choose(const char *requested, uint32_t *chosen)
{
    return choose(requested, chosen, names_reason, false) || choose(requested, chosen, has_details, true);
}

void
advice_nearest(struct nearest *nearest)
{
    reason_nearest(nearest);
    for (size_t i = 0; i < ENTRIES; i++) {
        for (unsigned name = 0; name < ADVICE_NAMES && entries[i].names[name] != NULL; name++) {
            if (strpbrk(entries[i].names[name], "(*") == NULL) nearest_try(nearest, entries[i].names[name]);
        }
    }
}
