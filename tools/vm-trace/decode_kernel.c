/* decode_kernel.c - kernel objects (names of processes and threads), scheduling records, blobs. */
#include <inttypes.h>

#include "reader_internal.h"
#include "words.h"

static void
warn_if_cut(struct reader *reader, const char *what, uint64_t id)
{
    if (id <= UINT32_MAX) return;
    reader_fault(reader, FXT_FAULT_ID_CUT, reader->offset, "%s %" PRIu64 " is cut to 32 bits, %" PRIu32, what, id,
                 (uint32_t)id);
}

void
decode_kernel_object(struct reader *reader, struct cursor *cursor)
{
    struct fxt_object object = {.offset = reader->offset};
    uint64_t header = reader->header;
    uint64_t id;
    if (!cursor_u64(cursor, &id)) {
        decode_too_short(reader, "object id");
        return;
    }
    unsigned name = (unsigned)fxt_bits(header, FXT_KERNEL_OBJECT_NAME);
    if (!decode_string(reader, cursor, name, "object's name", &object.name)) return;
    object.type = (unsigned)fxt_bits(header, FXT_KERNEL_OBJECT_TYPE);

    struct fxt_arg args[FXT_ARGS_MAX];
    unsigned arg_count = (unsigned)fxt_bits(header, FXT_KERNEL_OBJECT_ARGS);
    bool flawed = false;
    bool args_read = decode_args(reader, cursor, arg_count, args, &flawed);
    if (args_read && !flawed) decode_finish(reader, cursor, "kernel object");

    switch (object.type) {
      case FXT_OBJECT_PROCESS: /* its arguments do not matter */
        warn_if_cut(reader, "process", id);
        object.pid = (uint32_t)id;
        object.raw_pid = id;
        break;
      case FXT_OBJECT_THREAD:
        if (!args_read) return;
        for (unsigned i = 0; i < arg_count; i++) {
            if (args[i].name.id != WORD_PROCESS) continue;
            if (args[i].type != FXT_ARG_KOID) {
                reader_fault(reader, FXT_FAULT_BAD_PROCESS_ARGUMENT, reader->offset,
                             "a thread's argument process is not a kernel object id");
                return;
            }
            object.raw_pid = args[i].u64;
        }
        warn_if_cut(reader, "thread", id);
        object.pid = (uint32_t)object.raw_pid;
        object.tid = (uint32_t)id;
        object.raw_tid = id;
        break;
      default:
        return;
    }
    if (reader->visitor.object) reader->visitor.object(reader->visitor.context, &object);
}

static bool
decode_legacy_switch(struct reader *reader, struct cursor *cursor, struct fxt_sched *sched)
{
    uint64_t header = reader->header;
    struct thread_ids out, in;
    sched->cpu = (uint32_t)fxt_bits(header, FXT_SCHED_LEGACY_CPU);
    sched->out_state = (unsigned)fxt_bits(header, FXT_SCHED_LEGACY_OUT_STATE);
    sched->out_priority = (int32_t)fxt_bits(header, FXT_SCHED_LEGACY_OUT_PRIORITY);
    sched->in_priority = (int32_t)fxt_bits(header, FXT_SCHED_LEGACY_IN_PRIORITY);
    if (!decode_time(reader, cursor, "time stamp", &sched->ts_ns)) return false;
    if (!decode_thread(reader, cursor, (unsigned)fxt_bits(header, FXT_SCHED_LEGACY_OUT_THREAD), &out)) return false;
    if (!decode_thread(reader, cursor, (unsigned)fxt_bits(header, FXT_SCHED_LEGACY_IN_THREAD), &in)) return false;
    sched->out_tid = out.tid;
    sched->in_tid = in.tid;
    sched->arg_count = 0;
    return true;
}

static bool
decode_switch_or_wakeup(struct reader *reader, struct cursor *cursor, struct fxt_sched *sched, bool *flawed_out)
{
    uint64_t header = reader->header;
    sched->cpu = (uint32_t)fxt_bits(header, FXT_SCHED_CPU);
    sched->out_state = (unsigned)fxt_bits(header, FXT_SCHED_OUT_STATE);
    sched->out_priority = sched->in_priority = 0;
    sched->in_tid = 0;
    if (!decode_time(reader, cursor, "time stamp", &sched->ts_ns)) return false;
    if (!cursor_u64(cursor, &sched->out_tid) ||
        (sched->type == FXT_SCHED_SWITCH && !cursor_u64(cursor, &sched->in_tid))) {
        decode_too_short(reader, "thread id");
        return false;
    }
    sched->arg_count = (unsigned)fxt_bits(header, FXT_SCHED_ARGS);
    return decode_args(reader, cursor, sched->arg_count, sched->args, flawed_out);
}

void
decode_sched(struct reader *reader, struct cursor *cursor)
{
    struct fxt_sched *sched = &reader->sched;
    unsigned type = (unsigned)fxt_bits(reader->header, FXT_SCHED_TYPE);
    if (type > FXT_SCHED_WAKEUP) {
        reader_fault(reader, FXT_FAULT_UNKNOWN_SCHEDULING, reader->offset, "scheduling record of the unknown type %u", type);
        return;
    }
    sched->type = (enum fxt_sched_type)type;
    sched->offset = reader->offset;
    bool flawed = false;
    bool read = sched->type == FXT_SCHED_LEGACY_SWITCH ? decode_legacy_switch(reader, cursor, sched)
                                                       : decode_switch_or_wakeup(reader, cursor, sched, &flawed);
    if (!read) return;
    if (!flawed) decode_finish(reader, cursor, "scheduling");
    if (reader->visitor.sched) reader->visitor.sched(reader->visitor.context, sched);
}

/* Blobs are not handed out yet: only their form is looked at. */
void
decode_blob(struct reader *reader, struct cursor *cursor)
{
    struct fxt_string name;
    const char *bytes;
    size_t len = (size_t)fxt_bits(reader->header, FXT_BLOB_BYTES);
    if (!decode_string(reader, cursor, (unsigned)fxt_bits(reader->header, FXT_BLOB_NAME), "blob's name", &name)) return;
    if (!cursor_bytes(cursor, len, &bytes)) {
        decode_too_short(reader, "blob");
        return;
    }
    decode_finish(reader, cursor, "blob");
}
