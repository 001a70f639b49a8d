#ifndef CODE_TEXT_H
#define CODE_TEXT_H
/* code_text.h - what became of the code of an ISEQ that was hot and interpreted. `report` and `html`
 * say it in the same words. */
#include "topics/states/execution.h"
#include "topics/compiles/version_history.h"

enum { CODE_TEXT = 512 };

/* "compiled at 3.200 s", "compiled again at 3.200 s", "failed: OutOfMemory", "given up: ...", "never
 * compiled": what the compilations say, with times from `start_ns` on; empty if they were not recorded.
 * The history must be sorted. Returns the buffer. */
const char *code_text(char text[CODE_TEXT], const struct version_history *history, const struct pool *pool,
                      const struct execution_iseq *iseq, int64_t start_ns);

#endif
