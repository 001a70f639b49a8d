/*
 * Names of calls: made once for each frame that is new, and kept. A program that evaluates ever new code
 * has ever new ones: where they are many, only those of open calls stay. See open_calls.h.
 */
#include "vm_trace/streams/calls/open_calls.h"
#include "vm_trace/capture/method_filter.h"

#include <stdlib.h>
#include <string.h>

enum { BITS = 32 }; /* of a word of `held` */

static void
mark_used(const struct vm_trace_string *name, void *held)
{
    ((uint32_t *)held)[name->id / BITS] |= UINT32_C(1) << name->id % BITS;
}

/* Give back what no open call has. */
static void
release_unused(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_ractor_calls *calls = calls_of(ractor);
    size_t used = 0;
    memset(calls->held, 0, calls->held_words * sizeof(*calls->held));
    rb_vm_trace_open_calls_each_name(ractor, mark_used, calls->held);
    for (size_t i = 0; i < calls->text_count; i++) {
        struct vm_trace_string *text = calls->texts[i];
        bool in_use = calls->held[text->id / BITS] >> text->id % BITS & 1;
        if (in_use) calls->texts[used++] = text;
        else rb_vm_trace_string_release(text);
    }
    calls->text_count = calls->texts_kept = used;
    rb_vm_trace_call_names_forget(calls);
}

/* Whether the ractor has a reference to the text, or has one now. False: no memory. */
static bool
hold(struct vm_trace_ractor_calls *calls, struct vm_trace_string *text, bool *held_out)
{
    enum { FIRST_WORDS = 64, FIRST_TEXTS = 256 };
    uint32_t word = text->id / BITS, bit = UINT32_C(1) << text->id % BITS;
    if (word >= calls->held_words) {
        uint32_t words = calls->held_words ? calls->held_words : FIRST_WORDS;
        while (words <= word) words *= 2;
        uint32_t *grown = realloc(calls->held, words * sizeof(*grown));
        if (!grown) return false;
        memset(grown + calls->held_words, 0, (words - calls->held_words) * sizeof(*grown));
        calls->held = grown;
        calls->held_words = words;
    }
    *held_out = (calls->held[word] & bit) != 0;
    if (*held_out) return true;
    if (calls->text_count == calls->text_capacity) {
        size_t capacity = calls->text_capacity ? calls->text_capacity * 2 : FIRST_TEXTS;
        struct vm_trace_string **grown = realloc(calls->texts, capacity * sizeof(struct vm_trace_string *));
        if (!grown) return false;
        calls->texts = grown;
        calls->text_capacity = capacity;
    }
    calls->texts[calls->text_count++] = text;
    calls->held[word] |= bit;
    return true;
}

/* NULL: calls of this frame are not recorded, or there is no memory. */
static const struct vm_trace_string *
make_name(struct vm_trace_ractor_calls *calls, const struct vm_trace_frame *frame)
{
    char buffer[1024];
    size_t bytes;
    char *text = rb_vm_trace_text_whole(rb_vm_trace_make_label, frame, buffer, sizeof(buffer), &bytes);
    struct vm_trace_string *name = NULL;
    bool held;
    if (rb_vm_trace_method_requested_p(text, bytes)) name = rb_vm_trace_string_intern(text, bytes);
    if (text != buffer) free(text);
    if (!name) return NULL;
    if (hold(calls, name, &held)) {
        if (held) rb_vm_trace_string_release(name); /* once is enough */
        return name;
    }
    rb_vm_trace_string_release(name);
    return NULL;
}

const struct vm_trace_call_name *
rb_vm_trace_call_name_slow(struct rb_vm_trace_ractor *ractor, const struct vm_trace_call_frame *frame)
{
    struct vm_trace_ractor_calls *calls = calls_of(ractor);
    struct vm_trace_frame label;
    if (calls->text_count > VM_TRACE_CALL_TEXTS + 2 * calls->texts_kept) release_unused(ractor);
    rb_vm_trace_host_call_label(frame, &label);
    /* Before the name is made: what dies from here on is reported. */
    if (frame->method) rb_vm_trace_note_address(frame->method);
    if (label.method) rb_vm_trace_note_address(label.method);
    if (frame->iseq) {
        uintptr_t from, to;
        rb_vm_trace_host_iseq_range(frame->iseq, &from, &to);
        rb_vm_trace_note_address(from);
    }
    struct vm_trace_call_name *name = &calls->names[call_name_slot(frame->iseq, frame->method)];
    *name = (struct vm_trace_call_name){
        .iseq = frame->iseq, .method = frame->method, .text = make_name(calls, &label)
    };
    return name;
}

void
rb_vm_trace_call_names_forget(struct vm_trace_ractor_calls *calls)
{
    memset(calls->names, 0, sizeof(calls->names));
}

void
rb_vm_trace_call_names_release(struct vm_trace_ractor_calls *calls)
{
    for (size_t i = 0; i < calls->text_count; i++) rb_vm_trace_string_release(calls->texts[i]);
    free(calls->texts);
    free(calls->held);
    calls->texts = NULL;
    calls->held = NULL;
    calls->text_count = calls->text_capacity = calls->texts_kept = 0;
    calls->held_words = 0;
    rb_vm_trace_call_names_forget(calls);
}
