/* decode_args.c - the parts that records are made of: times, threads, strings, arguments. */
#include <inttypes.h>

#include "base/escape.h"
#include "fxt/reader_internal.h"

void
decode_too_short(struct reader *reader, const char *what)
{
    reader_fault(reader, FXT_FAULT_RECORD_TOO_SHORT, reader->offset, "the record ends within its %s", what);
}

void
decode_finish(struct reader *reader, const struct cursor *cursor, const char *what)
{
    if (cursor->at == cursor->words) return;
    reader_fault(reader, FXT_FAULT_RECORD_LENGTH, reader->offset, "%s record of %zu words holds %zu words of content", what,
                 cursor->words, cursor->at);
}

void
decode_check_padding(struct reader *reader, const char *ptr, size_t len, const char *what)
{
    for (size_t at = len; at % FXT_WORD_BYTES != 0; at++) {
        if (ptr[at] == 0) continue;
        reader_fault(reader, FXT_FAULT_NOT_ZERO_PADDED, reader->offset, "bytes after the %s are not zero", what);
        return;
    }
}

int64_t
ticks_to_ns(uint64_t ticks, uint64_t ticks_per_second)
{
    if (ticks_per_second == 0) return -1;
    const uint64_t ns_per_second = 1000000000;
    /* In two halves, since ticks times 10^9 need more than 64 bits. The upper half is scaled by a rounded factor. */
    uint64_t high = ticks >> 32;
    uint64_t low = ticks & UINT32_MAX;
    uint64_t high_ns;
    if (__builtin_mul_overflow(high, (ns_per_second << 32) / ticks_per_second, &high_ns)) return -1;
    uint64_t ns = high_ns + low * ns_per_second / ticks_per_second;
    return ns > INT64_MAX ? -1 : (int64_t)ns;
}

bool
decode_time(struct reader *reader, struct cursor *cursor, const char *what, int64_t *ns_out)
{
    uint64_t ticks;
    if (!cursor_u64(cursor, &ticks)) {
        decode_too_short(reader, what);
        return false;
    }
    *ns_out = ticks_to_ns(ticks, reader->current->ticks_per_second);
    if (*ns_out >= 0) return true;
    reader_fault(reader, FXT_FAULT_TIME_OVERFLOW, reader->offset,
                 "%s of %" PRIu64 " ticks at %" PRIu64 " per second is a time that does not fit", what, ticks,
                 reader->current->ticks_per_second);
    return false;
}

bool
decode_thread(struct reader *reader, struct cursor *cursor, unsigned ref, struct thread_ids *ids_out)
{
    if (ref == 0) {
        *ids_out = (struct thread_ids){.defined = true};
        if (cursor_u64(cursor, &ids_out->pid) && cursor_u64(cursor, &ids_out->tid)) return true;
        decode_too_short(reader, "thread");
        return false;
    }
    *ids_out = provider_thread(reader->current, ref);
    if (!ids_out->defined) {
        reader_fault(reader, FXT_FAULT_UNDEFINED_THREAD, reader->offset,
                     "thread %u is not defined; taken for process 0, thread 0", ref);
    }
    return true;
}

bool
decode_string(struct reader *reader, struct cursor *cursor, unsigned ref, const char *what, struct fxt_string *string_out)
{
    if (string_indexed(ref)) {
        uint32_t id = provider_string(reader->current, ref);
        *string_out = pool_string(reader->pool, id);
        if (id != STRING_NONE) return true;
        reader_fault(reader, FXT_FAULT_UNDEFINED_STRING, reader->offset, "string %u, the %s, is not defined", ref, what);
        return false;
    }
    size_t len = ref & FXT_STRING_REF_BYTES;
    const char *ptr;
    if (!cursor_bytes(cursor, len, &ptr)) {
        decode_too_short(reader, what);
        return false;
    }
    decode_check_padding(reader, ptr, len, what);
    *string_out = (struct fxt_string){.ptr = ptr, .len = (uint32_t)len, .id = pool_find(reader->pool, ptr, len)};
    return true;
}

/* As decode_string, but where `undefined` may be a string it is a fault and the empty one. */
static bool
decode_arg_string(struct reader *reader, struct cursor *cursor, unsigned ref, const char *what, bool undefined, struct fxt_string *string_out)
{
    return decode_string(reader, cursor, ref, what, string_out) || (undefined && string_indexed(ref));
}

/* Reads what comes after an argument's name. False where the record is dropped. */
static bool
decode_value(struct reader *reader, struct cursor *cursor, uint64_t header, bool undefined, struct fxt_arg *arg)
{
    const char *what = "argument's value";
    switch (arg->type) {
      case FXT_ARG_NULL:
        return true;
      case FXT_ARG_INT32:
        arg->i64 = (int32_t)(uint32_t)fxt_bits(header, FXT_ARG_VALUE_32);
        return true;
      case FXT_ARG_UINT32:
        arg->u64 = fxt_bits(header, FXT_ARG_VALUE_32);
        return true;
      case FXT_ARG_BOOL:
        arg->boolean = fxt_bits(header, FXT_ARG_VALUE_32) != 0;
        return true;
      case FXT_ARG_STRING:
        return decode_arg_string(reader, cursor, (unsigned)fxt_bits(header, FXT_ARG_VALUE_STRING), what, undefined, &arg->string);
      case FXT_ARG_INT64:
      case FXT_ARG_UINT64:
      case FXT_ARG_DOUBLE:
      case FXT_ARG_POINTER:
      case FXT_ARG_KOID:
        if (cursor_u64(cursor, &arg->u64)) return true; /* the union's other members lie over the same 8 bytes */
        decode_too_short(reader, what);
        return false;
      case FXT_ARG_UNKNOWN:
        break;
    }
    reader_fault(reader, FXT_FAULT_ARGUMENT_TYPE, reader->offset, "an argument has the unknown type %u",
                 (unsigned)fxt_bits(header, FXT_ARG_TYPE));
    return true;
}

bool
decode_args(struct reader *reader, struct cursor *cursor, unsigned count, bool undefined, struct fxt_arg *args, bool *flawed_out)
{
    for (unsigned i = 0; i < count; i++) {
        struct fxt_arg *arg = &args[i];
        size_t start = cursor->at;
        uint64_t header;
        if (!cursor_u64(cursor, &header)) {
            reader_fault(reader, FXT_FAULT_RECORD_TOO_SHORT, reader->offset, "the record ends before argument %u of %u", i + 1,
                         count);
            return false;
        }
        unsigned type = (unsigned)fxt_bits(header, FXT_ARG_TYPE);
        arg->type = type < FXT_ARG_UNKNOWN ? (enum fxt_arg_type)type : FXT_ARG_UNKNOWN;
        arg->u64 = 0;
        unsigned name = (unsigned)fxt_bits(header, FXT_ARG_NAME);
        if (!decode_arg_string(reader, cursor, name, "name of an argument", undefined, &arg->name)) return false;
        if (!decode_value(reader, cursor, header, undefined, arg)) return false;

        /* The next argument begins where this one's size says, whatever lies there: so does Perfetto. */
        size_t size = (size_t)fxt_bits(header, FXT_ARG_SIZE);
        if (start + size != cursor->at && arg->type != FXT_ARG_UNKNOWN) {
            char name[64];
            reader_fault(reader, FXT_FAULT_ARGUMENT_SIZE, reader->offset, "argument %u, %s, is %zu words long, but its header says %zu", i + 1,
                         escape_into(name, sizeof name, arg->name), cursor->at - start, size);
            *flawed_out = true;
        }
        else if (start + size > cursor->words) {
            reader_fault(reader, FXT_FAULT_ARGUMENT_SIZE, reader->offset, "argument %u ends past the end of its record", i + 1);
            *flawed_out = true;
        }
        cursor->at = start + size;
    }
    return true;
}
