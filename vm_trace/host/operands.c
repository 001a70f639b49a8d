/*
 * What a guard of compiled code has met: the operands of the instruction at which a frame exits,
 * which the exit has put back onto the frame's stack. See host.h.
 */
#include "ruby/internal/config.h"

#include <string.h>

#include "id.h"
#include "internal.h"
#include "internal/vm.h" /* builtin.h needs it, and GCC 14 takes no function for declared that is not */
#include "builtin.h"
#include "internal/compile.h"
#include "internal/string.h"
#include "internal/symbol.h"
#include "iseq.h"
#include "method.h"
#include "ruby/version.h"
#include "vm_callinfo.h"
#include "vm_core.h"
#if RUBY_API_VERSION_CODE >= 40000
# include "shape.h"
#endif

#if RUBY_API_VERSION_CODE >= 40100
# include "zjit.h" /* CFP_PC */
#else
# define CFP_PC(cfp) ((cfp)->pc) /* an exit has saved it */
#endif

#include "insns.inc"
#include "insns_info.inc"

#include "vm_trace/host/host.h"
#include "vm_trace/host/names.h"
#include "vm_trace/vm_trace_jit.h"

#ifndef VM_CALL_FORWARDING
# define VM_CALL_FORWARDING 0
#endif

/* Where the receiver is, or the only operand. */
enum { ON_STACK, IN_SELF, NOWHERE };

/* A value's two low bits say whether it is a small integer (1, 3) or a float (2): a bit for each. */
enum { FIXNUM_TAGS = 1 << 1 | 1 << 3, FLONUM_TAG = 1 << 2, STRING_TAG = 1 << 4 };
STATIC_ASSERT(tags_of_numbers, RUBY_FIXNUM_FLAG == 1 && RUBY_FLONUM_MASK == 3 && RUBY_FLONUM_FLAG == 2);

static const uint8_t expected_tags[] = {
    [VM_TRACE_ANOTHER_CLASS] = 0,
    [VM_TRACE_FIXNUM] = FIXNUM_TAGS,
    [VM_TRACE_FLONUM] = FLONUM_TAG,
    [VM_TRACE_FIXNUM_OR_FLONUM] = FIXNUM_TAGS | FLONUM_TAG,
    [VM_TRACE_STRING] = STRING_TAG
};

/* Bits of a guard's `how`. */
enum {
    OF_COLLECTION = 1 << 0, /* where the receiver is a string or an array, its arguments are guarded, too */
    FIRST_FAILS = 1 << 1    /* if the first operand is not as expected, it is what the guard has met */
};

/* Types of objects that a program can pass; not the VM's own, and not those whose class alone says too little. */
#define OBJECT_TYPES \
    (1u << T_OBJECT | 1u << T_CLASS | 1u << T_MODULE | 1u << T_STRING | 1u << T_REGEXP | 1u << T_ARRAY | \
     1u << T_HASH | 1u << T_STRUCT | 1u << T_FILE | 1u << T_DATA | 1u << T_MATCH | 1u << T_COMPLEX | \
     1u << T_RATIONAL)

/* Methods of strings and arrays whose arguments are guarded, too: an index, or what is appended. */
static bool
guards_arguments_p(ID method)
{
    if (method == idAREF || method == idASET || method == idLTLT) return true;
    static const char *const names[] = { "getbyte", "setbyte" };
    VALUE name = host_id_text(method);
    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++) {
        size_t bytes = strlen(names[i]);
        if ((size_t)RSTRING_LEN(name) == bytes && memcmp(RSTRING_PTR(name), names[i], bytes) == 0) return true;
    }
    return false;
}

static VALUE
insn_at(uintptr_t pc)
{
    return (VALUE)rb_vm_insn_decode(*(const VALUE *)pc);
}

/* NULL: the instruction is no call. */
static const struct rb_call_data *
call_at(uintptr_t pc)
{
    return insn_op_type(insn_at(pc), 0) == TS_CALLDATA ? (const struct rb_call_data *)((const VALUE *)pc)[1] : NULL;
}

/* Where the operands of a call are. False: too far away. */
static bool
find_call_operands(const struct rb_callinfo *call, struct vm_trace_guard *guard)
{
    enum { ANY_NUMBER = VM_CALL_ARGS_SPLAT | VM_CALL_KWARG | VM_CALL_KW_SPLAT | VM_CALL_FORWARDING };
    unsigned flags = vm_ci_flag(call), count = vm_ci_argc(call);
    unsigned above = !!(flags & VM_CALL_ARGS_BLOCKARG) + !!(flags & VM_CALL_FORWARDING);
    if (count + above > UINT8_MAX) return false;
    guard->depth = (uint8_t)(count + above);
    guard->arguments = flags & ANY_NUMBER ? 0 : (uint8_t)count;
    if (guards_arguments_p(vm_ci_mid(call))) guard->how = OF_COLLECTION;
    return true;
}

static bool
find_operands(uintptr_t pc, struct vm_trace_guard *guard)
{
    VALUE insn = insn_at(pc);
    const struct rb_call_data *call = call_at(pc);
    guard->place = ON_STACK;
    guard->depth = guard->arguments = 0;
    guard->how = 0;
    guard->tags = expected_tags[guard->expected];
    if (guard->looks_at == VM_TRACE_LOOKS_AT_LENGTH && insn != BIN(expandarray)) return false;
    switch (insn) {
      case BIN(getinstancevariable):
      case BIN(setinstancevariable):
      case BIN(definedivar):
        guard->place = IN_SELF;
        return true;
      case BIN(expandarray): /* the number of elements is compared with that of variables */
        if (guard->looks_at == VM_TRACE_LOOKS_AT_INDEX) guard->looks_at = VM_TRACE_LOOKS_AT_LENGTH;
        return true;
      case BIN(opt_case_dispatch):
        return true;
#if RUBY_API_VERSION_CODE >= 30400
      case BIN(splatkw): /* the block is above */
        guard->depth = 1;
        return true;
#endif
      case BIN(newrange):
        guard->depth = guard->arguments = 1;
        return true;
      case BIN(invokeblock):
        guard->place = NOWHERE;
        break;
    }
    if (!call || !find_call_operands(call->ci, guard)) return false;
    bool needs_argument = guard->looks_at == VM_TRACE_LOOKS_AT_ARGUMENT;
    return needs_argument ? guard->arguments > 0 : guard->place != NOWHERE;
}

bool
rb_vm_trace_host_find_operands(uintptr_t pc, struct vm_trace_guard *guard)
{
    if (!find_operands(pc, guard)) return false;
    bool unexpected = guard->looks_at == VM_TRACE_LOOKS_AT_UNEXPECTED &&
        !(guard->how & OF_COLLECTION || guard->tags & STRING_TAG);
    if (guard->place == ON_STACK && (unexpected || guard->looks_at == VM_TRACE_LOOKS_AT_RECEIVER))
        guard->how |= FIRST_FAILS;
    return true;
}

static inline bool
expected_p(VALUE value, unsigned tags)
{
    if (tags >> (value & RUBY_FLONUM_MASK) & 1) return true;
    return UNLIKELY(tags & STRING_TAG) && RB_TYPE_P(value, T_STRING);
}

/*
 * Operands are guarded in their order, so the first one that is not as expected has failed. But
 * where a string or an array has its arguments guarded, it is not what they are expected to be.
 * NULL: all are as expected.
 */
static inline const VALUE *
unexpected(struct vm_trace_guard guard, const VALUE *receiver)
{
    const VALUE *argument = receiver + 1, *end = argument + guard.arguments;
    bool met = expected_p(*receiver, guard.tags);
    if (!met && !(guard.how & OF_COLLECTION && (RB_TYPE_P(*receiver, T_STRING) || RB_TYPE_P(*receiver, T_ARRAY))))
        return receiver;
    while (argument < end && expected_p(*argument, guard.tags)) argument++;
    if (argument < end) return argument;
    return met ? NULL : receiver;
}

static inline uint32_t
see_length(struct vm_trace_seen *seen, VALUE collection)
{
    if (RB_TYPE_P(collection, T_ARRAY)) seen->length = (uint64_t)RARRAY_LEN(collection);
    else if (RB_TYPE_P(collection, T_STRING)) seen->length = (uint64_t)RSTRING_LEN(collection);
    else return 0;
    return VM_TRACE_SAW_LENGTH | (seen->length >> 32 ? VM_TRACE_SAW_WIDE : 0);
}

/* Objects of other types have their variables elsewhere, and most of them none. */
static inline uint32_t
see_shape(struct vm_trace_seen *seen, VALUE object)
{
#if RUBY_API_VERSION_CODE >= 40000
    if (RB_SPECIAL_CONST_P(object) || !RB_TYPE_P(object, T_OBJECT)) return 0;
    seen->shape = RBASIC_SHAPE_ID(object);
    return VM_TRACE_SAW_SHAPE;
#else
    return 0;
#endif
}

static inline uint32_t
see_index(struct vm_trace_seen *seen, VALUE index)
{
    seen->index = FIX2LONG(index);
    return VM_TRACE_SAW_INDEX | (seen->index != (int32_t)seen->index ? VM_TRACE_SAW_WIDE : 0);
}

static inline enum vm_trace_value_kind
kind_of(VALUE value)
{
    if (RB_SPECIAL_CONST_P(value)) {
        if (FIXNUM_P(value)) return VM_TRACE_SAW_FIXNUM;
        if (FLONUM_P(value)) return VM_TRACE_SAW_FLONUM;
        return NIL_P(value) ? VM_TRACE_SAW_NIL : value == Qtrue ? VM_TRACE_SAW_TRUE : value == Qfalse ?
               VM_TRACE_SAW_FALSE : STATIC_SYM_P(value) ? VM_TRACE_SAW_SYMBOL : VM_TRACE_SAW_UNDEFINED;
    }
    unsigned type = RB_BUILTIN_TYPE(value);
    if (OBJECT_TYPES >> type & 1) return VM_TRACE_SAW_OBJECT;
    if (type == T_BIGNUM) return VM_TRACE_SAW_BIGNUM;
    if (type == T_FLOAT) return VM_TRACE_SAW_HEAP_FLOAT;
    return type == T_SYMBOL ? VM_TRACE_SAW_DYNAMIC_SYMBOL : VM_TRACE_SAW_NOTHING;
}

/* The same for any guard and any value. */
static inline uint64_t
see_any(const rb_control_frame_t *cfp, struct vm_trace_guard guard, struct vm_trace_seen *seen)
{
    const VALUE *operand = guard.place == IN_SELF ? &cfp->self : cfp->sp - 1 - guard.depth;
    uint32_t numbers = 0;
    if (LIKELY(guard.looks_at == VM_TRACE_LOOKS_AT_UNEXPECTED)) {
        operand = unexpected(guard, operand);
        if (UNLIKELY(!operand)) return VM_TRACE_SAW_NOTHING;
    }
    else if (guard.looks_at == VM_TRACE_LOOKS_AT_ARGUMENT) {
        operand++;
    }
    else if (guard.looks_at == VM_TRACE_LOOKS_AT_INDEX && guard.arguments && FIXNUM_P(operand[1])) {
        numbers = see_index(seen, operand[1]) | see_length(seen, *operand);
    }
    else if (guard.looks_at == VM_TRACE_LOOKS_AT_LENGTH) {
        numbers = see_length(seen, *operand);
    }
    else if (guard.looks_at == VM_TRACE_LOOKS_AT_SHAPE) {
        numbers = see_shape(seen, *operand);
    }
    VALUE value = *operand;
    enum vm_trace_value_kind kind = kind_of(value);
    seen->value = (uintptr_t)value;
    seen->klass = kind == VM_TRACE_SAW_OBJECT ? (uintptr_t)RBASIC_CLASS(value) : kind;
    seen->what = kind == VM_TRACE_SAW_NOTHING ? 0 : kind | numbers;
    return seen->what & VM_TRACE_SAW_SHAPE ? (uint64_t)seen->shape << 32 | seen->what : seen->what;
}

uint64_t
rb_vm_trace_host_seen(struct rb_execution_context_struct *ec, uintptr_t pc, struct vm_trace_guard guard,
                      struct vm_trace_seen *seen)
{
    const rb_control_frame_t *cfp = ec->cfp;
    if (UNLIKELY((uintptr_t)CFP_PC(cfp) != pc)) return VM_TRACE_SAW_NOTHING;
    /* Most: an object, or a float, that is the first operand. */
    if (guard.how & FIRST_FAILS) {
        VALUE value = cfp->sp[-1 - (int)guard.depth];
        seen->value = (uintptr_t)value;
        if (!RB_SPECIAL_CONST_P(value) && OBJECT_TYPES >> RB_BUILTIN_TYPE(value) & 1) {
            seen->klass = (uintptr_t)RBASIC_CLASS(value);
            return seen->what = VM_TRACE_SAW_OBJECT;
        }
        if (FLONUM_P(value) && !(guard.tags & FLONUM_TAG))
            return seen->what = (uint32_t)(seen->klass = VM_TRACE_SAW_FLONUM);
    }
    return see_any(cfp, guard, seen);
}

/* The instance variable that a call reads or writes, as far as it has found its method before. */
static ID
accessed_by_call(const struct rb_call_data *call, VALUE receiver)
{
    const struct rb_callcache *cache = call->cc;
    if (!cache || cache->klass != CLASS_OF(receiver)) return 0;
    const rb_callable_method_entry_t *method = vm_cc_cme(cache);
    if (!method || !method->def) return 0;
    bool accessor = method->def->type == VM_METHOD_TYPE_IVAR || method->def->type == VM_METHOD_TYPE_ATTRSET;
    return accessor ? method->def->body.attr.id : 0;
}

static size_t
put_id(ID id, char *buffer, size_t capacity)
{
    VALUE text = id ? host_id_text(id) : 0;
    if (!text) return 0;
    size_t bytes = (size_t)RSTRING_LEN(text);
    memcpy(buffer, RSTRING_PTR(text), bytes < capacity ? bytes : capacity);
    return bytes;
}

size_t
rb_vm_trace_host_ivar_name(uintptr_t pc, uintptr_t object, char *buffer, size_t capacity)
{
    ID name = 0;
    const struct rb_call_data *call = call_at(pc);
    switch (insn_at(pc)) {
      case BIN(getinstancevariable):
      case BIN(setinstancevariable):
      case BIN(definedivar):
        name = (ID)((const VALUE *)pc)[1];
        break;
      default:
        if (call) name = accessed_by_call(call, (VALUE)object);
    }
    return put_id(name, buffer, capacity);
}

/* --- shapes ------------------------------------------------------------------------------------- */

#if RUBY_API_VERSION_CODE >= 40100
# define SHAPE_PARENT(shape) ((shape)->parent_offset)
# define SHAPE_COMPLEX_P(id) rb_shape_complex_p(id)
# define SHAPE_ROOM(id) rb_shape_embedded_capacity(id)
#elif RUBY_API_VERSION_CODE >= 40000
# define SHAPE_PARENT(shape) ((shape)->parent_id)
# define SHAPE_COMPLEX_P(id) rb_shape_too_complex_p(id)
# define SHAPE_ROOM(id) RSHAPE_EMBEDDED_CAPACITY(id)
#endif

#ifdef SHAPE_ROOM
/* Objects that differ do so in the variables that were set last, or first. */
enum { FIRST_NAMES = 4, LAST_NAMES = 8, NAMES = FIRST_NAMES + LAST_NAMES };

static void
add_variables(struct text *text, shape_id_t id)
{
    const rb_shape_t *names[NAMES];
    size_t count = 0, at;
    for (const rb_shape_t *shape = RSHAPE(id); shape->type != SHAPE_ROOT; shape = RSHAPE(SHAPE_PARENT(shape))) count++;
    at = count;
    for (const rb_shape_t *shape = RSHAPE(id); shape->type != SHAPE_ROOT; shape = RSHAPE(SHAPE_PARENT(shape))) {
        at--;
        if (count <= NAMES || at < FIRST_NAMES) names[at] = shape;
        else if (count - at <= LAST_NAMES) names[NAMES - (count - at)] = shape;
    }
    if (count == 0) add_cstr(text, "no variables");
    for (size_t i = 0; i < count && i < NAMES; i++) {
        VALUE name = names[i]->type == SHAPE_IVAR ? host_id_text(names[i]->edge_name) : 0;
        if (i > 0) add_cstr(text, ", ");
        if (count > NAMES && i == FIRST_NAMES) {
            add_number(text, (long)(count - NAMES));
            add_cstr(text, " more, ");
        }
        if (name) add_string(text, name);
        else add_cstr(text, "object_id");
    }
}

size_t
rb_vm_trace_shape_text(uint32_t id, char *buffer, size_t capacity)
{
    struct text text = { buffer, capacity, 0 };
    if (id == INVALID_SHAPE_ID) return 0;
    if (SHAPE_COMPLEX_P(id)) add_cstr(&text, "too many shapes");
    else add_variables(&text, id);
    if (id & SHAPE_ID_FL_FROZEN) add_cstr(&text, ", frozen");
    if (SHAPE_ROOM(id)) {
        add_cstr(&text, " of ");
        add_number(&text, (long)SHAPE_ROOM(id));
    }
    return text.bytes;
}
#else
size_t
rb_vm_trace_shape_text(uint32_t id, char *buffer, size_t capacity)
{
    return 0;
}
#endif

/* --- two instructions of one line ---------------------------------------------------------------- */

bool
rb_vm_trace_host_insn_repeated_p(const struct rb_iseq_struct *iseq, uintptr_t pc, uint32_t *index_out)
{
    enum { LOOKED_AT = 512 }; /* words to each side: a longer line is not worth more time */
    const struct rb_iseq_constant_body *body = ISEQ_BODY(iseq);
    const VALUE *code = body->iseq_encoded;
    size_t size = body->iseq_size, at = (size_t)((const VALUE *)pc - code);
    if (!code || at >= size) return false;
    *index_out = (uint32_t)at;
    unsigned int line = rb_iseq_line_no(iseq, at);
    size_t from = at, until = at + LOOKED_AT < size ? at + LOOKED_AT : size;
    while (from > 0 && at - from < LOOKED_AT && rb_iseq_line_no(iseq, from - 1) == line) from--;
    if (at - from == LOOKED_AT) from = at; /* perhaps not where an instruction begins */
    VALUE insn = insn_at(pc);
    while (from < until && rb_iseq_line_no(iseq, from) == line) {
        VALUE other = insn_at((uintptr_t)(code + from));
        if (from != at && other == insn) return true;
        from += (size_t)insn_len(other);
    }
    return false;
}

size_t
rb_vm_trace_host_operand_name(uintptr_t pc, char *buffer, size_t capacity)
{
    const struct rb_call_data *call;
    switch (insn_at(pc)) {
      case BIN(getinstancevariable):
      case BIN(setinstancevariable):
      case BIN(definedivar):
        return put_id((ID)((const VALUE *)pc)[1], buffer, capacity);
      case BIN(send):
      case BIN(opt_send_without_block):
        call = call_at(pc);
        return call ? put_id(vm_ci_mid(call->ci), buffer, capacity) : 0;
    }
    return 0;
}
