#ifndef RUBY_VM_TRACE_HOST_NAMES_H
#define RUBY_VM_TRACE_HOST_NAMES_H 1
/* Names that the VM keeps, and texts made of them. After CRuby's own headers, in files of host/ alone. */

#include <stdio.h>
#include <string.h>

#include "internal/symbol.h"
#include "vm_sync.h"

/*
 * The text of an ID; 0: it has none. rb_id2str takes the VM's lock where there are several ractors,
 * and on its way in stops for another ractor's barrier. That ractor may end the trace meanwhile, and
 * free what our caller is writing to. A lock without barrier does not stop for one, nor do locks
 * within it.
 */
static inline VALUE
host_id_text(ID id)
{
    VALUE text;
    RB_VM_LOCK_ENTER_NO_BARRIER();
    text = rb_id2str(id);
    RB_VM_LOCK_LEAVE_NO_BARRIER();
    return text;
}

/* A text that may be longer than its buffer. */
struct text {
    char *buffer;
    size_t capacity, bytes; /* bytes: of the whole text, written or not */
};

static inline void
add(struct text *text, const char *from, size_t bytes)
{
    if (text->bytes < text->capacity) {
        size_t room = text->capacity - text->bytes;
        memcpy(text->buffer + text->bytes, from, bytes < room ? bytes : room);
    }
    text->bytes += bytes;
}

static inline void
add_cstr(struct text *text, const char *from)
{
    add(text, from, strlen(from));
}

static inline void
add_string(struct text *text, VALUE string)
{
    if (RB_TYPE_P(string, T_STRING)) add(text, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

static inline void
add_number(struct text *text, long number)
{
    char digits[24];
    add(text, digits, (size_t)snprintf(digits, sizeof(digits), "%ld", number));
}

#endif /* RUBY_VM_TRACE_HOST_NAMES_H */
