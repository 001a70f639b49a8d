/*
 * RubyVM::Trace.save and .reset: the flight recorder as Ruby sees it. Public interfaces of Ruby
 * only: what knows the insides of the VM is cruby.c, what records is snapshot.c.
 */
#include "ruby/ruby.h"
#include "ruby/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vm_trace/ruby/flight_recorder.h"
#include "vm_trace/host/host.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/session/spool.h"

int rb_bug_reporter_add(void (*func)(FILE *, void *), void *data); /* error.c */

/* The recorder of this process, or an exception that says how to have one. */
static struct rb_vm_trace_ractor *
recording(void)
{
    const struct vm_trace_capture *capture = &rb_vm_trace_capture;
    const struct vm_trace_session *session = &rb_vm_trace_session;
    if (!trace_on()) {
        rb_raise(
            rb_eRuntimeError,
            "nothing is recorded: start ruby with, say, --zjit-trace-exits --zjit-trace-memory=16 "
            "(with YJIT, --yjit-trace-side-exits --yjit-trace-memory=16), or call RubyVM::Trace.start(memory: 16)");
    }
    if (!session->memory.bytes) {
        const char *path = session->path ? session->path : "";
        if (!capture->by_flags) {
            rb_raise(rb_eRuntimeError,
                     "the trace goes to a file (%s), not to memory: call RubyVM::Trace.start(memory: 16) in place of "
                     "that one",
                     path);
        }
        rb_raise(rb_eRuntimeError,
                 "the trace goes to a file (%s), not to memory: start ruby with --%s-trace-memory=16 in place of "
                 "its -trace-file",
                 path, capture->jit[0] == 'Y' ? "yjit" : "zjit");
    }
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_of(ec);
    if (!ractor || ractor == capture->overflow) rb_memerror();
    /* A forked child that has recorded nothing yet gets its memory now. */
    bool begun = capture->state != VM_TRACE_PENDING || rb_vm_trace_ractor_next_chunk(ractor, ec);
    if (!begun && !trace_on()) {
        rb_raise(rb_eRuntimeError, "this process has no memory to record into; a line on stderr says why");
    }
    return ractor;
}


static void *
run_write(void *argument)
{
    rb_vm_trace_recorder_write(argument);
    return argument;
}

static void *
run_wait(void *ignored)
{
    (void)ignored;
    rb_vm_trace_recorder_wait();
    return NULL;
}

static VALUE
wait_without_gvl(VALUE ignored)
{
    rb_thread_call_without_gvl(run_wait, NULL, NULL, NULL);
    return ignored;
}

int
rb_vm_trace_wait_for_save(void)
{
    int state;
    rb_protect(wait_without_gvl, Qnil, &state);
    return state;
}

static void
begin_snapshot(bool cut)
{
    for (;;) {
        switch (rb_vm_trace_snapshot_begin(cut)) {
          case VM_TRACE_SNAPSHOT_BEGUN:
            return;
          case VM_TRACE_SNAPSHOT_BUSY:
            wait_without_gvl(Qnil);
            continue;
          case VM_TRACE_SNAPSHOT_NO_ROOM:
            rb_memerror();
          case VM_TRACE_SNAPSHOT_NO_RECORDER:
            rb_raise(rb_eRuntimeError, "nothing is recorded any more: the trace was stopped, or the process ends");
        }
    }
}

static void *
run_end(void *argument)
{
    rb_vm_trace_recorder_write_end(argument);
    return NULL;
}

static VALUE
end_without_gvl(VALUE argument)
{
    rb_thread_call_without_gvl(run_end, (void *)argument, NULL, NULL);
    return Qnil;
}

/*
 * A snapshot must be written before this thread handles any interrupt: it may lead to another
 * thread that ends the trace, and waits for us; or end this one. So then a thread is begun that
 * writes it. Returns the state of rb_protect.
 */
static int
write_snapshot(struct rb_vm_trace_save *save)
{
    int state = 0;
    if (rb_nogvl(run_write, save, NULL, NULL, RB_NOGVL_INTR_FAIL)) return 0;
    rb_vm_trace_recorder_write_begin(save);
    while (save->beside) {
        int again;
        rb_protect(end_without_gvl, (VALUE)save, &again);
        if (again) state = again; /* an exception that another thread sends is raised when it is written */
    }
    return state;
}

int
rb_vm_trace_save_last_piece(uint64_t session_number)
{
    const struct vm_trace_session *session = &rb_vm_trace_session;
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = trace_on() ? rb_vm_trace_ractor_current(&ec) : NULL;
    if (!ractor || !session->memory.spool.folder || (session_number && session_number != session->number)) return 0;
    if (!rb_vm_trace_recorder_last_piece_p(ractor, ec)) return 0;
    struct rb_vm_trace_save save = { .why = "stop", .error = ENOMEM, .reason = "out of memory" };
    enum vm_trace_snapshot_answer answer;
    int interrupted = 0, state;
    while ((answer = rb_vm_trace_snapshot_begin(true)) == VM_TRACE_SNAPSHOT_BUSY) {
        if ((state = rb_vm_trace_wait_for_save()) != 0) interrupted = state;
    }
    if (answer == VM_TRACE_SNAPSHOT_NO_RECORDER) return interrupted; /* another thread has stopped it */
    if (answer == VM_TRACE_SNAPSHOT_BEGUN && (state = write_snapshot(&save)) != 0) interrupted = state;
    rb_vm_trace_recorder_saved(&save);
    return interrupted;
}

/* What for a trace is saved, frozen. */
static VALUE
reason_of(VALUE options)
{
    VALUE reason = Qundef;
    ID names[] = { rb_intern("reason") };
    if (!NIL_P(options)) rb_get_kwargs(options, names, 0, 1, &reason);
    if (reason == Qundef) return rb_str_new_frozen(rb_str_new_cstr("save"));
    if (SYMBOL_P(reason)) reason = rb_sym2str(reason);
    const char *text = StringValueCStr(reason);
    if (!rb_vm_trace_spool_reason_p(text, strlen(text)))
        rb_raise(rb_eArgError, "reason: takes 1 to 32 of a to z, 0 to 9, _ and -, not %+"PRIsVALUE, reason);
    return rb_str_new_frozen(reason);
}

/*
 *  call-seq:
 *    RubyVM::Trace.save(path = nil, reason: "save") -> hash
 *
 *  Writes what the flight recorder has in memory as a trace: a file of mode 0600, which may replace a file of
 *  the same user. Other threads go on meanwhile, and what they record is not lost. In the path, <tt>%p</tt> is
 *  the pid, <tt>%t</tt> the time, <tt>%n</tt> the number of the saved trace, from 1, <tt>%h</tt> the host,
 *  <tt>%r</tt> the reason. Without a path, it is that of the options, and each trace gets a file of its own. With
 *  a spool (<tt>--vm-trace-spool</tt>) a save without a path is a piece: it has what came since the piece before.
 *  The reason, up to 32 of a to z, 0 to 9, _ and -, is +snapshot+ in the trace's settings.
 *
 *  Returns <tt>{path:, events:, exits:, lost:}</tt>; +lost+ is how many events since the last reset are not in it. Where memory goes
 *  back less far than the requested seconds, +seconds+ says how far.
 *
 *  Raises RuntimeError where nothing is recorded into memory, SystemCallError (Errno::EACCES, Errno::ENOSPC, ...; Errno::EBUSY for a
 *  file that another process is writing) where the file can't be written; what was recorded, and a file that was there, stay as they are then.
 */
static VALUE
trace_save(int argc, VALUE *argv, VALUE self)
{
    VALUE pattern, options, reason;
    (void)self;
    rb_scan_args(argc, argv, "01:", &pattern, &options);
    if (!NIL_P(pattern)) pattern = rb_str_new_frozen(rb_get_path(pattern));
    reason = reason_of(options);
    struct rb_vm_trace_save save = { .pattern = NIL_P(pattern) ? NULL : StringValueCStr(pattern),
                                     .why = StringValueCStr(reason),
                                     .error = ENOMEM,
                                     .reason = "out of memory" };
    recording();
    begin_snapshot(NIL_P(pattern) && rb_vm_trace_session.memory.spool.folder);
    int state = write_snapshot(&save);
    VALUE path = save.path ? rb_external_str_new_cstr(save.path) : pattern;
    free(save.made);
    free(save.kept);
    if (state) rb_jump_tag(state);
    if (save.error) {
        VALUE message = rb_sprintf("%"PRIsVALUE": the trace can't be saved there", path);
        if (save.error == EEXIST || save.error == EBUSY) rb_str_catf(message, ": %s", save.reason);
        rb_syserr_fail_str(save.error, message);
    }
    RB_GC_GUARD(pattern);
    RB_GC_GUARD(reason);
    VALUE hash = rb_hash_new();
    rb_hash_aset(hash, ID2SYM(rb_intern("path")), path);
    rb_hash_aset(hash, ID2SYM(rb_intern("events")), ULL2NUM(save.events));
    rb_hash_aset(hash, ID2SYM(rb_intern("exits")), ULL2NUM(save.exits));
    rb_hash_aset(hash, ID2SYM(rb_intern("lost")), ULL2NUM(save.lost));
    if (save.held_ns) rb_hash_aset(hash, ID2SYM(rb_intern("seconds")), DBL2NUM((double)save.held_ns / 1e9));
    return hash;
}

/*
 *  call-seq:
 *    RubyVM::Trace.reset -> nil
 *
 *  Forgets what the flight recorder has: a trace that is saved later has only what came after this call. Cheap enough for
 *  the beginning of each request. Raises RuntimeError where nothing is recorded into memory.
 */
static VALUE
trace_reset(VALUE self)
{
    (void)self;
    if (!rb_vm_trace_recorder_reset(recording())) rb_memerror();
    return Qnil;
}

/*
 * $! is what ends the program: also a jump that went nowhere (`END { return }`), which is no object
 * and has no class. A signal or `exit` is how programs are ended.
 */
static bool
failed_p(void)
{
    VALUE error = rb_gv_get("$!");
    if (NIL_P(error)) return false;
    return RB_TYPE_P(error, T_IMEMO) ||
           !(rb_obj_is_kind_of(error, rb_eSystemExit) || rb_obj_is_kind_of(error, rb_eSignal));
}

static void
at_exit(VALUE ignored)
{
    (void)ignored;
    if (!(rb_vm_trace_session.memory.save_at & VM_TRACE_SAVE_AT_EXCEPTION) || !failed_p()) return;
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    rb_vm_trace_recorder_save_at(VM_TRACE_SAVE_AT_EXCEPTION, ractor, ec);
}

static void
at_crash(FILE *report, void *ignored)
{
    (void)ignored;
    fflush(report);
    rb_vm_trace_recorder_crash();
}

void
rb_vm_trace_define_recorder(void)
{
    VALUE vm = rb_path2class("RubyVM");
    VALUE module = rb_define_module_under(vm, "Trace");
    rb_define_singleton_method(module, "save", trace_save, -1);
    rb_define_singleton_method(module, "reset", trace_reset, 0);
    rb_set_end_proc(at_exit, Qnil);
    rb_bug_reporter_add(at_crash, NULL);
}
