/*
 * Texts of compiled versions. See code_text.h.
 */
#include "vm_trace/streams/code/code_text.h"
#include "vm_trace/vm_trace_jit.h"

#include <stdlib.h>
#include <string.h>

struct rb_vm_trace_code {
    uint32_t references;         /* atomic */
    uint32_t version;
    struct vm_trace_string *iseq;
    uint32_t file, snapshot;     /* the last that has it */
    size_t bytes;
    bool kept;                   /* else only its size is known */
    char text[];
};

static bool wanted, all;
static uint32_t file = 1, snapshot = 1;
static size_t kept_bytes;        /* atomic */

size_t rb_vm_trace_code_text_most_bytes = VM_TRACE_CODE_TEXT_BYTES;

bool
rb_vm_trace_code_text_parse(const char *value)
{
    return strcmp(value, "hir") == 0 || strcmp(value, "hir,all") == 0;
}

void
rb_vm_trace_code_text_keep(const char *value)
{
    wanted = value != NULL;
    all = value && strchr(value, ',');
}

bool
rb_vm_trace_code_wanted_p(void)
{
    return wanted;
}

bool
rb_vm_trace_code_text_all_p(void)
{
    return all;
}

struct rb_vm_trace_code *
rb_vm_trace_code_text_make(struct vm_trace_string *iseq, uint32_t version, const char *text, size_t bytes)
{
    if (!rb_vm_trace_known_init()) {
        rb_vm_trace_string_release(iseq);
        return NULL;
    }
    bool kept = __atomic_add_fetch(&kept_bytes, bytes, __ATOMIC_RELAXED) <= rb_vm_trace_code_text_most_bytes;
    if (!kept) __atomic_sub_fetch(&kept_bytes, bytes, __ATOMIC_RELAXED);
    struct rb_vm_trace_code *code = malloc(sizeof(*code) + (kept ? bytes : 0));
    if (code) {
        *code = (struct rb_vm_trace_code){
            .references = 1, .version = version, .iseq = iseq, .bytes = bytes, .kept = kept
        };
        if (kept) memcpy(code->text, text, bytes);
    }
    else {
        rb_vm_trace_string_release(iseq);
        if (kept) __atomic_sub_fetch(&kept_bytes, bytes, __ATOMIC_RELAXED);
    }
    return code;
}

struct vm_trace_string *
rb_vm_trace_code_text_iseq(const struct rb_vm_trace_code *code)
{
    rb_vm_trace_string_retain(code->iseq);
    return code->iseq;
}

void
rb_vm_trace_code_text_retain(struct rb_vm_trace_code *code)
{
    if (code) __atomic_add_fetch(&code->references, 1, __ATOMIC_RELAXED);
}

void
rb_vm_trace_code_release(struct rb_vm_trace_code *code)
{
    if (!code || __atomic_sub_fetch(&code->references, 1, __ATOMIC_ACQ_REL) > 0) return;
    if (code->kept) __atomic_sub_fetch(&kept_bytes, code->bytes, __ATOMIC_RELAXED);
    rb_vm_trace_string_release(code->iseq);
    free(code);
}

size_t
rb_vm_trace_code_text_bytes(void)
{
    return __atomic_load_n(&kept_bytes, __ATOMIC_RELAXED);
}

void
rb_vm_trace_code_text_next_file(void)
{
    file++;
}

void
rb_vm_trace_code_text_next_snapshot(void)
{
    snapshot++;
}

/* --- writing ------------------------------------------------------------------------------------ */

struct part {
    const struct rb_vm_trace_code *code;
    size_t from, bytes;
};

static bool
write_part(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct part *part = what;
    const struct rb_vm_trace_code *code = part->code;
    struct vm_trace_event event;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, clock_now_ns(&ractor->clock))) return false;
    unsigned hir, text;
    if (!writer_interned(event.writer, KNOWN(HIR), &hir)) return false;
    event_string(&event, STRING_KIND, hir);
    if (!event_interned(&event, STRING_ISEQ, code->iseq)) return false;
    event_uint32(&event, STRING_VERSION, code->version);
    event_uint64(&event, STRING_BYTES, code->bytes);
    if (part->from && !event_uint64_rarely(&event, KNOWN(OFFSET), part->from)) return false;
    if (code->kept) {
        if (!writer_interned(event.writer, KNOWN(TEXT), &text)) return false;
        if (!event_text(&event, (enum known_string)text, code->text + part->from, part->bytes)) return false;
    }
    return event_end(&event, FXT_EVENT_INSTANT, STRING_TRACE, STRING_CODE);
}

/* Bytes of the part that begins at `from`: as many lines as a string can hold, or a part of one. */
static size_t
part_bytes(const struct rb_vm_trace_code *code, size_t from)
{
    size_t rest = code->bytes - from, bytes = rb_vm_trace_text_fit(code->text + from, rest, FXT_MAX_STRING_BYTES);
    if (bytes == rest) return rest;
    size_t lines = bytes;
    while (lines > 0 && code->text[from + lines - 1] != '\n') lines--;
    return lines > 0 ? lines : bytes;
}

static void
write_code(const struct rb_vm_trace_code *code, struct rb_vm_trace_ractor *ractor,
           struct rb_execution_context_struct *ec)
{
    struct part part = { .code = code };
    do {
        part.bytes = code->kept ? part_bytes(code, part.from) : code->bytes;
        if (!rb_vm_trace_event_write(ractor, ec, write_part, &part)) return;
        part.from += part.bytes;
    } while (part.from < code->bytes);
}

void
rb_vm_trace_code_text_write(struct rb_vm_trace_code *code, struct rb_vm_trace_ractor *ractor,
                            struct rb_execution_context_struct *ec)
{
    if (!code || code->file == file) return;
    code->file = file;
    write_code(code, ractor, ec);
}

void
rb_vm_trace_code_text_snapshot(struct rb_vm_trace_code *code, struct rb_vm_trace_ractor *ractor)
{
    if (!code || code->snapshot == snapshot) return;
    code->snapshot = snapshot;
    write_code(code, ractor, NULL);
}
