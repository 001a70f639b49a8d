/* decode_kernel.c - decodes kernel objects (names of processes and threads), scheduling records
 * and blobs. */
#include <inttypes.h>

#include "fxt/known_strings.h"
#include "fxt/packet.h"
#include "fxt/reader_internal.h"

static void
warn_if_cut(struct reader *reader, const char *what, uint64_t id)
{
    if (id <= UINT32_MAX) return;
    reader_fault(reader, FXT_FAULT_ID_CUT, reader->offset, "%s %" PRIu64 " is cut to 32 bits, %" PRIu32, what, id,
                 (uint32_t)id);
}

/* Reads the process that a thread's arguments name; 0 if they name none. Returns false if the
 * record is dropped. */
static bool
decode_process(struct reader *reader, struct cursor *cursor, uint64_t *pid_out)
{
    struct fxt_arg args[FXT_ARGS_MAX];
    unsigned count = (unsigned)fxt_bits(reader->header, FXT_KERNEL_OBJECT_ARGS);
    bool flawed = false;
    if (!decode_args(reader, cursor, count, true, args, &flawed)) return false;
    if (!flawed) decode_finish(reader, cursor, "kernel object");
    for (unsigned i = 0; i < count; i++) {
        if (args[i].name.id != STRING_PROCESS) continue;
        if (args[i].type != FXT_ARG_KOID) {
            reader_fault(reader, FXT_FAULT_BAD_PROCESS_ARGUMENT, reader->offset,
                         "a thread's argument process is not a kernel object id");
            return false;
        }
        *pid_out = args[i].u64;
    }
    return true;
}

void
decode_kernel_object(struct reader *reader, struct cursor *cursor)
{
    struct fxt_object object = {
        .offset = reader->offset, .provider = reader->current->id, .recording = current_recording(reader)};
    uint64_t header = reader->header;
    uint64_t id;
    if (!cursor_u64(cursor, &id)) {
        decode_too_short(reader, "object id");
        return;
    }
    unsigned name = (unsigned)fxt_bits(header, FXT_KERNEL_OBJECT_NAME);
    if (!decode_string(reader, cursor, name, "object's name", &object.name)) return;
    object.type = (unsigned)fxt_bits(header, FXT_KERNEL_OBJECT_TYPE);

    switch (object.type) {
      case FXT_OBJECT_PROCESS: /* its arguments have no effect, and Perfetto ignores them */
        warn_if_cut(reader, "process", id);
        object.pid = (uint32_t)id;
        object.raw_pid = id;
        break;
      case FXT_OBJECT_THREAD:
        if (!decode_process(reader, cursor, &object.raw_pid)) return;
        warn_if_cut(reader, "thread", id);
        object.pid = (uint32_t)object.raw_pid;
        object.tid = (uint32_t)id;
        object.raw_tid = id;
        break;
      default:
        return;
    }
    object.process = current_process(reader, object.pid);
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
    sched->out_pid = (uint32_t)out.pid;
    sched->in_pid = (uint32_t)in.pid;
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
    sched->out_pid = sched->in_pid = 0;
    sched->in_tid = 0;
    if (!decode_time(reader, cursor, "time stamp", &sched->ts_ns)) return false;
    if (!cursor_u64(cursor, &sched->out_tid) ||
        (sched->type == FXT_SCHED_SWITCH && !cursor_u64(cursor, &sched->in_tid))) {
        decode_too_short(reader, "thread id");
        return false;
    }
    sched->arg_count = (unsigned)fxt_bits(header, FXT_SCHED_ARGS);
    return decode_args(reader, cursor, sched->arg_count, false, sched->args, flawed_out);
}

/* Reports a fault and returns false if one of these arguments has another type: Perfetto then
 * drops the record. */
static bool
check_sched_args(struct reader *reader, const struct fxt_sched *sched)
{
    static const struct {
        const char *name;
        unsigned record;
        enum fxt_arg_type type;
    } known[] = {
        {"incoming_weight", FXT_SCHED_SWITCH, FXT_ARG_INT32},
        {"outgoing_weight", FXT_SCHED_SWITCH, FXT_ARG_INT32},
        {"weight", FXT_SCHED_WAKEUP, FXT_ARG_INT32},
        {"waker", FXT_SCHED_WAKEUP, FXT_ARG_KOID},
    };
    for (unsigned i = 0; i < sched->arg_count; i++) {
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            if (sched->type != known[k].record || !fxt_string_is(sched->args[i].name, known[k].name)) continue;
            if (sched->args[i].type == known[k].type) continue;
            reader_fault(reader, FXT_FAULT_SCHED_ARGUMENT, reader->offset,
                         "the scheduling record's argument %s is %s; dropped", known[k].name,
                         known[k].type == FXT_ARG_KOID ? "not a kernel object id" : "not an int32");
            return false;
        }
    }
    return true;
}

void
decode_sched(struct reader *reader, struct cursor *cursor)
{
    struct fxt_sched *sched = &reader->sched;
    unsigned type = (unsigned)fxt_bits(reader->header, FXT_SCHED_TYPE);
    if (type > FXT_SCHED_WAKEUP) {
        reader_fault(reader, FXT_FAULT_UNKNOWN_SCHEDULING, reader->offset, "scheduling record of the unknown type %u",
                     type);
        return;
    }
    sched->type = (enum fxt_sched_type)type;
    sched->offset = reader->offset;
    sched->provider = reader->current->id;
    sched->recording = current_recording(reader);
    bool flawed = false;
    bool read = sched->type == FXT_SCHED_LEGACY_SWITCH ? decode_legacy_switch(reader, cursor, sched)
                                                       : decode_switch_or_wakeup(reader, cursor, sched, &flawed);
    if (!read) return;
    if (!flawed) decode_finish(reader, cursor, "scheduling");
    sched->dropped = sched->type != FXT_SCHED_LEGACY_SWITCH && !check_sched_args(reader, sched);
    note_record_time(reader, sched->ts_ns, sched->ts_ns);
    if (reader->visitor.sched) reader->visitor.sched(reader->visitor.context, sched);
}

/* Reports packets that are not whole. Returns how many bytes of whole ones begin at `first`. */
static size_t
check_packets(struct reader *reader, const uint8_t *bytes, size_t len, size_t first)
{
    struct proto blob = proto_of(bytes + first, len - first);
    struct proto_field packet;
    const uint8_t *whole = blob.at;
    while (proto_next(&blob, &packet)) {
        for (struct proto_field field; proto_next(&packet.message, &field);) {}
        if (packet.message.damaged || packet.number != TRACE_PACKET || packet.type != PROTO_BYTES) {
            reader_fault(reader, FXT_FAULT_BLOB_PACKET, reader->offset, "byte %zu of the blob is not a packet",
                         (size_t)(whole - bytes));
            return (size_t)(whole - bytes) - first;
        }
        whole = blob.at;
    }
    if (!blob.damaged) return len - first;
    uint64_t packet_len = 0;
    struct proto cut = proto_of(whole, (size_t)(bytes + len - whole));
    bool known = *cut.at++ == (TRACE_PACKET << 3 | PROTO_BYTES) &&
                 (cut.at == cut.end || proto_varint(&cut, &packet_len) || cut.at == cut.end);
    if (!known) {
        reader_fault(reader, FXT_FAULT_BLOB_PACKET, reader->offset, "byte %zu of the blob is not a packet",
                     (size_t)(whole - bytes));
    }
    else {
        reader_fault(reader, FXT_FAULT_BLOB_CUT, reader->offset,
                     "the packet at byte %zu goes on past the blob's end; not read", (size_t)(whole - bytes));
        if (!cut.damaged && cut.at < cut.end && packet_len < SIZE_MAX / 2)
            reader->packet_left = (size_t)packet_len - (size_t)(cut.end - cut.at);
    }
    return (size_t)(whole - bytes) - first;
}

/* Passes whole packets on. Perfetto joins the blobs of a file, so a packet may go on in the next
 * one; such packets are skipped. It does not need the names of blobs. */
void
decode_blob(struct reader *reader, struct cursor *cursor)
{
    if (fxt_bits(reader->header, FXT_BLOB_TYPE) != FXT_BLOB_OF_PERFETTO) return;
    unsigned ref = (unsigned)fxt_bits(reader->header, FXT_BLOB_NAME);
    size_t len = (size_t)fxt_bits(reader->header, FXT_BLOB_BYTES);
    bool indexed = string_indexed(ref);
    struct fxt_string name;
    const char *bytes;
    if (indexed && provider_string(reader->current, ref) == STRING_NONE) {
        reader_fault(reader, FXT_FAULT_BLOB_NAME, reader->offset, "string %u, the blob's name, is not defined", ref);
    }
    if (!indexed && !decode_string(reader, cursor, ref, "blob's name", &name)) return;
    if (!cursor_bytes(cursor, len, &bytes)) {
        decode_too_short(reader, "blob");
        return;
    }
    decode_finish(reader, cursor, "blob");
    size_t first = reader->packet_left < len ? reader->packet_left : len;
    reader->packet_left -= first;
    struct fxt_blob blob = {.offset = reader->offset, .provider = reader->current->id,
                            .recording = current_recording(reader), .bytes = (const uint8_t *)bytes + first};
    if (first < len) blob.len = check_packets(reader, (const uint8_t *)bytes, len, first);
    if (blob.len > 0 && reader->visitor.blob) reader->visitor.blob(reader->visitor.context, &blob);
}
