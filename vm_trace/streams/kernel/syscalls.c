/*
 * The stream of system calls. See syscalls.h.
 */
#include "vm_trace/streams/kernel/syscalls.h"
#include "vm_trace/capture/event.h"
#include "vm_trace/platform/perf/names.h"
#include "vm_trace/platform/perf/rings.h"
#include "vm_trace/platform/perf/tracefs.h"
#include "vm_trace/streams/kernel/kernel_reader.h"

#include <stdio.h>
#include <string.h>

/* Numbers of system calls that names are remembered of, and of errnos: all that there are, on any machine. */
enum { CALLS = 1024, ERRORS = 1024, MOST_ERROR = 4095 /* MAX_ERRNO in the kernel */ };

/* A system call: what every event of it has. Found when it is seen first. */
struct call {
    const struct vm_trace_string *name; /* NULL: not seen yet */
    int argument_count;
    struct {
        const struct vm_trace_string *name;
        struct vm_trace_call_argument is;
    } arguments[VM_TRACE_SYSCALL_ARGUMENTS];
};

static struct call calls[CALLS];
static const struct vm_trace_string *errors[ERRORS];

static const struct vm_trace_string *
permanent(const char *text)
{
    return rb_vm_trace_string_permanent(text, strlen(text));
}

/* Without tracefs's list of arguments there are only the registers, which need not all be arguments. */
static void
name_arguments(struct call *call, const char *name)
{
    struct vm_trace_call_argument arguments[VM_TRACE_SYSCALL_ARGUMENTS];
    int count = rb_vm_trace_tracefs_arguments(name, arguments);
    bool known = count >= 0;
    if (!known) count = VM_TRACE_SYSCALL_ARGUMENTS;
    for (int i = 0; i < count; i++) {
        if (!known) {
            arguments[i] = (struct vm_trace_call_argument){ .kind = VM_TRACE_ARGUMENT_POINTER, .bytes = 8 };
            snprintf(arguments[i].name, sizeof(arguments[i].name), "register%d", i);
        }
        call->arguments[i].is = arguments[i];
        call->arguments[i].name = permanent(arguments[i].name);
        if (!call->arguments[i].name) return;
        call->argument_count = i + 1;
    }
}

static const struct call *
call_of(int64_t number)
{
    static struct call unknown;
    bool known = number >= 0 && number < CALLS;
    struct call *call = known ? &calls[number] : &unknown;
    if (call->name) return call;
    const char *name = known ? rb_vm_trace_system_call_name(number) : "unknown";
    char text[32];
    if (!name) {
        snprintf(text, sizeof(text), "syscall %lld", (long long)number);
        name = text;
    }
    name_arguments(call, name);
    call->name = permanent(name);
    return call;
}

static const struct vm_trace_string *
error_of(int64_t error)
{
    if (error >= ERRORS) return NULL;
    if (!errors[error]) {
        const char *name = rb_vm_trace_error_name(error);
        if (name) errors[error] = permanent(name);
    }
    return errors[error];
}

enum end { RETURNED, AFTER, NEVER };

struct slice {
    const struct vm_trace_native_thread *thread;
    uint64_t end_ns;
    int64_t result;
    enum end end;
};

static bool
put_number(struct vm_trace_event *event, const struct vm_trace_string *name, int64_t value)
{
    return value == (int32_t)value ? event_int32_rarely(event, name, (int32_t)value) :
                                     event_int64_rarely(event, name, value);
}

static bool
put_argument(struct vm_trace_event *event, const struct vm_trace_string *name,
             const struct vm_trace_call_argument *argument, uint64_t value)
{
    bool narrow = argument->bytes == 4;
    if (argument->kind == VM_TRACE_ARGUMENT_POINTER) return event_pointer_rarely(event, name, value);
    if (argument->kind == VM_TRACE_ARGUMENT_SIGNED)
        return put_number(event, name, narrow ? (int32_t)value : (int64_t)value);
    return narrow || value == (uint32_t)value ? event_uint32_rarely(event, name, (uint32_t)value) :
                                                event_uint64_rarely(event, name, value);
}

static bool
put_result(struct vm_trace_event *event, const struct slice *slice)
{
    const struct vm_trace_string *open = slice->end == AFTER ? KNOWN(AFTER_THE_TRACE) : KNOWN(NEVER);
    if (slice->end != RETURNED) return event_interned_rarely(event, KNOWN(ENDED), open);
    bool failed = slice->result < 0 && slice->result >= -MOST_ERROR;
    const struct vm_trace_string *error = failed ? error_of(-slice->result) : NULL;
    return error ? event_interned_rarely(event, KNOWN(ERRNO), error) : put_number(event, KNOWN(RESULT), slice->result);
}

static bool
write_call(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    (void)ec;
    const struct slice *slice = what;
    const struct vm_trace_native_thread *thread = slice->thread;
    const struct call *call = call_of(thread->call.number);
    struct vm_trace_event event;
    unsigned in, name;
    if (!call->name) return false;
    if (!rb_vm_trace_event_begin_on(&event, ractor, thread->call.track.id, rb_vm_trace_native_track_name,
                                    &thread->call.track, thread->call.ns) ||
        !writer_interned(event.writer, KNOWN(SYSCALL), &in) || !writer_interned(event.writer, call->name, &name))
        return false;
    for (int i = 0; i < call->argument_count; i++) {
        if (!put_argument(&event, call->arguments[i].name, &call->arguments[i].is, thread->call.arguments[i]))
            return false;
    }
    return put_result(&event, slice) &&
        event_end_id(&event, FXT_EVENT_DURATION_COMPLETE, (enum known_string)in, name, slice->end_ns);
}

/*
 * What is open at a reset begins with it. A system call begins 1 ns after what its thread is `blocked` in: of
 * slices that begin at the same time, Perfetto keeps only the innermost.
 */
static void
begin_behind_blocked(struct rb_vm_trace_ractor *ractor, struct vm_trace_native_thread *thread, uint64_t end_ns)
{
    ractor_notice_reset(ractor);
    if (thread->call.ns >= ractor->from_ns) return;
    thread->call.ns = ractor->from_ns + (end_ns > ractor->from_ns);
}

static void
end_call(struct rb_vm_trace_ractor *ractor, struct vm_trace_native_thread *thread, uint64_t ns, int64_t result,
         enum end end)
{
    struct slice slice = { thread, ns, result, end };
    if (thread->call.ns) {
        begin_behind_blocked(ractor, thread, ns);
        rb_vm_trace_kernel_slice(&rb_vm_trace_syscalls, ractor, thread->call.ns, ns, write_call, &slice);
    }
    else if (thread->call.seen && end == RETURNED) { /* its begin is lost */
        ractor_notice_reset(ractor);
        ractor->lost++;
        ractor->unread++;
    }
    thread->call.ns = 0;
    thread->call.seen = true;
}

static void
take_record(struct rb_vm_trace_ractor *ractor, struct vm_trace_native_thread *thread,
            const struct vm_trace_perf_record *record)
{
    switch (record->kind) {
      case VM_TRACE_PERF_ENTER:
        thread->call.ns = record->ns; /* one that has begun already: the record of its end is lost, and counted so */
        thread->call.number = record->call.number;
        thread->call.track = thread->track;
        memcpy(thread->call.arguments, record->call.arguments, sizeof(thread->call.arguments));
        break;
      case VM_TRACE_PERF_EXIT:
        end_call(ractor, thread, record->ns, record->call.result, RETURNED);
        break;
      case VM_TRACE_PERF_ENDED:
        end_call(ractor, thread, record->ns, 0, NEVER);
        break;
      default:
        break;
    }
}

static void
finish_thread(struct rb_vm_trace_ractor *ractor, struct vm_trace_native_thread *thread, uint64_t ns)
{
    end_call(ractor, thread, ns, 0, AFTER);
}

/* --- the stream -------------------------------------------------------------------------------- */

static const char *
refuse_syscalls(uint64_t rate, const char *only)
{
    (void)only;
    return rate ? rb_vm_trace_perf_refused(VM_TRACE_PERF_SYSCALLS) : NULL;
}

static void
count_from_0(struct rb_vm_trace_ractor *ractor)
{
    rb_vm_trace_kernel_count_from_0(&rb_vm_trace_syscalls, ractor);
}

static void
add_counts(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    rb_vm_trace_kernel_add_counts(&rb_vm_trace_syscalls, ractor, totals);
}

static bool
write_settings(struct vm_trace_event *event)
{
    return rb_vm_trace_kernel_write_settings(&rb_vm_trace_syscalls, "syscalls_min_ns", event);
}

static const char *const counters[] = { "syscalls", "syscalls_left_out", NULL };

struct rb_vm_trace_stream rb_vm_trace_syscalls = {
    .name = "syscalls",
    .options = "min=DURATION (such as 10us)",
    .counters = counters,
    .refuse = refuse_syscalls,
    .write_settings = write_settings,
    .ractor_begin = count_from_0,
    .ractor_epoch = count_from_0,
    .ractor_count = add_counts,
    KERNEL_STREAM
};

static const struct rb_vm_trace_kernel_stream kernel_stream = {
    &rb_vm_trace_syscalls, VM_TRACE_PERF_SYSCALLS, rb_vm_trace_known_init, take_record, finish_thread
};

__attribute__((constructor)) static void
register_stream(void)
{
    rb_vm_trace_kernel_register(&kernel_stream);
}
