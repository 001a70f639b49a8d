/* code_text.c - see code_text.h */
#include <inttypes.h>
#include <stdio.h>

#include "fxt/known_strings.h"
#include "topics/compiles/code_text.h"

/* The steps of an ISEQ in the sorted history; *count_out: their number. */
static const struct version_step *
steps_of(const struct version_history *history, uint32_t process, uint32_t iseq, uint32_t *count_out)
{
    uint32_t low = 0, high = history->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct version_step *step = &history->steps[middle];
        bool before = step->process != process ? step->process < process : step->iseq < iseq;
        if (before) low = middle + 1;
        else high = middle;
    }
    *count_out = 0;
    while (low + *count_out < history->count && history->steps[low + *count_out].process == process &&
           history->steps[low + *count_out].iseq == iseq)
        ++*count_out;
    return history->steps + low;
}

const char *
code_text(char text[CODE_TEXT], const struct version_history *history, const struct pool *pool,
          const struct execution_iseq *iseq, int64_t start_ns)
{
    uint32_t count;
    text[0] = '\0';
    if (history->count == 0) return text;
    const struct version_step *steps = steps_of(history, iseq->process, iseq->iseq, &count);
    const struct version_step *compiled = NULL, *failed = NULL, *invalidated = NULL;
    bool again = iseq->why == STRING_PROFILED_AGAIN; /* then the compilation counts that ended these calls */
    for (uint32_t i = 0; i < count; i++) {
        bool ended = !again || steps[i].end_ns > iseq->first_ns;
        if (steps[i].kind == STEP_COMPILED && ended && compiled == NULL) compiled = &steps[i];
        if (steps[i].kind == STEP_COMPILED) invalidated = NULL;
        if (steps[i].kind == STEP_INVALIDATED) invalidated = &steps[i];
        if (steps[i].kind == STEP_FAILED) failed = &steps[i];
    }
    if (failed != NULL && (compiled == NULL || failed->ts_ns > compiled->ts_ns)) {
        struct fxt_string reason = pool_string(pool, failed->reason);
        if (failed->reason == STRING_NONE) reason = (struct fxt_string){.ptr = "(unknown)", .len = 9};
        snprintf(text, CODE_TEXT, "%s: %.*s", compiled == NULL && !again ? "failed" : "given up", (int)reason.len,
                 reason.ptr);
    }
    else if (invalidated != NULL) {
        snprintf(text, CODE_TEXT, "not compiled again after version %" PRIu32 ", at %.3f s", invalidated->version,
                 (double)(invalidated->ts_ns - start_ns) / 1e9);
    }
    else if (compiled == NULL) snprintf(text, CODE_TEXT, "%s", again ? "not compiled again" : "never compiled");
    else {
        snprintf(text, CODE_TEXT, "compiled %sat %.3f s", again ? "again " : "",
                 (double)(compiled->end_ns - start_ns) / 1e9);
    }
    return text;
}
