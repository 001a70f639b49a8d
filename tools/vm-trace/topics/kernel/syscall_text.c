/* syscall_text.c - see syscall_text.h */
#include <inttypes.h>
#include <stdio.h>

#include "render/document.h"
#include "topics/kernel/syscall_text.h"

const char *
syscall_names_text(char text[SYSCALL_NAMES_TEXT], const struct pool *pool, const struct syscall_method *method)
{
    size_t len = 0;
    *text = '\0';
    for (unsigned i = 0; i < SYSCALL_NAMES_MOST && method->most[i].calls > 0 && len < SYSCALL_NAMES_TEXT; i++) {
        char count[NUMBER_TEXT];
        len += (size_t)snprintf(text + len, SYSCALL_NAMES_TEXT - len, "%s%.100s %s", i > 0 ? ", " : "",
                                pool_string(pool, method->most[i].name).ptr,
                                with_commas(count, method->most[i].calls));
    }
    if (method->names > SYSCALL_NAMES_MOST && len < SYSCALL_NAMES_TEXT)
        snprintf(text + len, SYSCALL_NAMES_TEXT - len, ", %" PRIu32 " more", method->names - SYSCALL_NAMES_MOST);
    return text;
}
