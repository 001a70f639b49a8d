/*
 * What the guard of an exit has met. See seen.h.
 */
#include "vm_trace/streams/exits/seen.h"

#include <string.h>

/*
 * Reasons of guards whose operand can be found. A name that ends in '(' begins a reason that says
 * what was expected. What is not here has met nothing, or nothing that a class would explain
 * (overflows, interrupts, what is not compiled).
 */
static const struct {
    const char *reason;
    enum vm_trace_looks_at looks_at;
    enum vm_trace_expected expected;
} guards[] = {
    /* ZJIT */
    { "GuardType(Fixnum)", VM_TRACE_LOOKS_AT_UNEXPECTED, VM_TRACE_FIXNUM },
    { "GuardType(Flonum)", VM_TRACE_LOOKS_AT_UNEXPECTED, VM_TRACE_FLONUM },
    { "GuardType(String)", VM_TRACE_LOOKS_AT_UNEXPECTED, VM_TRACE_STRING },
    { "GuardType(", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "GuardTypeNot(", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "GuardShape(", VM_TRACE_LOOKS_AT_SHAPE, VM_TRACE_ANOTHER_CLASS },
    { "GuardBitEquals(", VM_TRACE_LOOKS_AT_LENGTH, VM_TRACE_ANOTHER_CLASS },
    { "ExpandArray", VM_TRACE_LOOKS_AT_LENGTH, VM_TRACE_ANOTHER_CLASS },
    { "GuardLess", VM_TRACE_LOOKS_AT_INDEX, VM_TRACE_ANOTHER_CLASS },
    { "GuardGreaterEq", VM_TRACE_LOOKS_AT_INDEX, VM_TRACE_ANOTHER_CLASS },
    { "GuardNotFrozen", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "GuardNotShared", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "ObjToStringFallback", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "SplatKwNotNilOrHash", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "SplatKwPolymorphic", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    /* YJIT */
    { "guard_send_klass_megamorphic", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "guard_send_not_fixnum", VM_TRACE_LOOKS_AT_UNEXPECTED, VM_TRACE_FIXNUM },
    { "guard_send_not_fixnums", VM_TRACE_LOOKS_AT_UNEXPECTED, VM_TRACE_FIXNUM },
    { "guard_send_not_fixnum_or_flonum", VM_TRACE_LOOKS_AT_UNEXPECTED, VM_TRACE_FIXNUM_OR_FLONUM },
    { "guard_send_not_string", VM_TRACE_LOOKS_AT_UNEXPECTED, VM_TRACE_STRING },
    { "guard_send_str_aref_not_fixnum", VM_TRACE_LOOKS_AT_ARGUMENT, VM_TRACE_ANOTHER_CLASS },
    { "guard_send_is_a_class_mismatch", VM_TRACE_LOOKS_AT_ARGUMENT, VM_TRACE_ANOTHER_CLASS },
    { "guard_send_instance_of_class_mismatch", VM_TRACE_LOOKS_AT_ARGUMENT, VM_TRACE_ANOTHER_CLASS },
    { "getivar_not_heap", VM_TRACE_LOOKS_AT_IVAR, VM_TRACE_ANOTHER_CLASS },
    { "getivar_megamorphic", VM_TRACE_LOOKS_AT_IVAR, VM_TRACE_ANOTHER_CLASS },
    { "setivar_not_heap", VM_TRACE_LOOKS_AT_IVAR, VM_TRACE_ANOTHER_CLASS },
    { "setivar_frozen", VM_TRACE_LOOKS_AT_IVAR, VM_TRACE_ANOTHER_CLASS },
    { "setivar_megamorphic", VM_TRACE_LOOKS_AT_IVAR, VM_TRACE_ANOTHER_CLASS },
    { "definedivar_not_heap", VM_TRACE_LOOKS_AT_IVAR, VM_TRACE_ANOTHER_CLASS },
    { "definedivar_megamorphic", VM_TRACE_LOOKS_AT_IVAR, VM_TRACE_ANOTHER_CLASS },
    { "opt_succ_not_fixnum", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "send_pred_not_fixnum", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "opt_aref_not_array", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "opt_aref_not_hash", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "opt_aref_arg_not_fixnum", VM_TRACE_LOOKS_AT_ARGUMENT, VM_TRACE_ANOTHER_CLASS },
    { "opt_aset_not_array", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "opt_aset_not_hash", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "opt_aset_not_fixnum", VM_TRACE_LOOKS_AT_ARGUMENT, VM_TRACE_ANOTHER_CLASS },
    { "opt_case_dispatch_megamorphic", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "expandarray_not_array", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "expandarray_chain_max_depth", VM_TRACE_LOOKS_AT_LENGTH, VM_TRACE_ANOTHER_CLASS },
    { "invokeblock_iseq_arg0_not_array", VM_TRACE_LOOKS_AT_ARGUMENT, VM_TRACE_ANOTHER_CLASS },
    { "objtostring_not_string", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "getbyte_idx_not_fixnum", VM_TRACE_LOOKS_AT_ARGUMENT, VM_TRACE_ANOTHER_CLASS },
    { "getbyte_idx_negative", VM_TRACE_LOOKS_AT_INDEX, VM_TRACE_ANOTHER_CLASS },
    { "getbyte_idx_out_of_bounds", VM_TRACE_LOOKS_AT_INDEX, VM_TRACE_ANOTHER_CLASS },
    { "splatkw_not_hash", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS },
    { "splatkw_not_nil", VM_TRACE_LOOKS_AT_RECEIVER, VM_TRACE_ANOTHER_CLASS }
};

static bool
reason_is(const struct vm_trace_string *reason, const char *name)
{
    size_t bytes = strlen(name);
    bool begins = name[bytes - 1] == '(';
    return (begins ? reason->bytes > bytes : reason->bytes == bytes) && memcmp(reason->text, name, bytes) == 0;
}

struct vm_trace_guard
rb_vm_trace_seen_find_guard(const struct rb_vm_trace_site *site)
{
    enum { COUNT = sizeof(guards) / sizeof(guards[0]) };
    struct vm_trace_guard guard = { .known = true };
    size_t i = 0;
    while (i < COUNT && !reason_is(site->reason, guards[i].reason)) i++;
    if (i < COUNT && site->pc && site->kind != RB_VM_TRACE_FALLBACK && rb_vm_trace_known_init()) {
        guard.looks_at = (uint8_t)guards[i].looks_at;
        guard.expected = (uint8_t)guards[i].expected;
        if (!rb_vm_trace_host_find_operands(site->pc, &guard)) guard.looks_at = VM_TRACE_LOOKS_AT_NOTHING;
    }
    uint64_t word;
    memcpy(&word, &guard, sizeof(word));
    __atomic_store_n((uint64_t *)&site->guard, word, __ATOMIC_RELAXED); /* the same, whoever finds it */
    return guard;
}

/* What a text of `seen` is made of. */
struct seen_at {
    uintptr_t pc, value;
    bool ivar;
    bool has_shape;
    uint32_t shape;
};

static size_t
make_class_name(const void *what, char *buffer, size_t capacity)
{
    return rb_vm_trace_host_value_name(((const struct seen_at *)what)->value, buffer, capacity);
}

static size_t
put(const char *text, char *buffer, size_t capacity, size_t at)
{
    for (; *text; text++, at++) {
        if (at < capacity) buffer[at] = *text;
    }
    return at;
}

/* "Point", "Point @x", "Point @x (@y, @x of 4)". */
static size_t
make_text(const void *what, char *buffer, size_t capacity)
{
    const struct seen_at *at = what;
    size_t bytes = make_class_name(what, buffer, capacity);
    if (at->ivar) {
        size_t behind = put(" ", buffer, capacity, bytes), room = behind < capacity ? capacity - behind : 0;
        size_t name = rb_vm_trace_host_ivar_name(at->pc, at->value, room ? buffer + behind : NULL, room);
        if (name) bytes = behind + name;
    }
    if (at->has_shape) {
        size_t behind = put(" (", buffer, capacity, bytes), room = behind < capacity ? capacity - behind : 0;
        size_t shape = rb_vm_trace_shape_text(at->shape, room ? buffer + behind : NULL, room);
        if (shape) bytes = put(")", buffer, capacity, behind + shape);
    }
    return bytes;
}

struct vm_trace_seen_text
rb_vm_trace_seen_text(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site)
{
    struct vm_trace_exit_state *exits = exits_of(ractor);
    uint8_t looks_at = site_guard(site).looks_at;
    struct seen_at at = {
        .pc = site->pc, .value = exits->seen.value,
        .ivar = looks_at == VM_TRACE_LOOKS_AT_IVAR || looks_at == VM_TRACE_LOOKS_AT_SHAPE,
        .has_shape = exits->seen.what & VM_TRACE_SAW_SHAPE, .shape = exits->seen.shape
    };
    struct vm_trace_seen_text text = { .class_bytes = make_class_name(&at, NULL, 0) };
    text.text = rb_vm_trace_text_cache_find(&exits->seen_texts, make_text, &at, &text.place);
    if (text.text && text.class_bytes > text.text->bytes) text.class_bytes = text.text->bytes;
    return text;
}

uintptr_t
rb_vm_trace_seen_class(const struct vm_trace_seen *seen)
{
    bool object = (seen->what & UINT8_MAX) == VM_TRACE_SAW_OBJECT;
    if (!object || !rb_vm_trace_host_class_named_p(seen->klass)) return VM_TRACE_NO_CLASS;
    rb_vm_trace_note_address(seen->klass);
    return seen->klass;
}

bool
rb_vm_trace_seen_write(struct vm_trace_event *event, const struct vm_trace_seen *seen,
                       const struct vm_trace_seen_text *text)
{
    if (!event_interned_rarely(event, KNOWN(SEEN), text->text)) return false;
    bool wide = seen->what & VM_TRACE_SAW_WIDE;
    if (seen->what & VM_TRACE_SAW_INDEX && !(wide ? event_int64_rarely(event, KNOWN(INDEX), seen->index) :
                                             event_int32_rarely(event, KNOWN(INDEX), (int32_t)seen->index))) {
        return false;
    }
    return !(seen->what & VM_TRACE_SAW_LENGTH) || (wide ? event_uint64_rarely(event, KNOWN(LENGTH), seen->length) :
                                                   event_uint32_rarely(event, KNOWN(LENGTH), (uint32_t)seen->length));
}
