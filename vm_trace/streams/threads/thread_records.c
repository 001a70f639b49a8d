/*
 * Records of threads. See thread_records.h.
 */
#include "vm_trace/streams/threads/thread_records.h"
#include "vm_trace/platform/platform.h"

#include <string.h>

#define CPUS 256 /* of a context switch */

static struct {
    bool used;        /* a ractor has it; changed atomically */
    uint64_t last_ns; /* of the last record that names it, of ractors that have ended; read by who has it */
} cpus[CPUS];

/* --- names ------------------------------------------------------------------------------------- */

/* The name of a function that is exported, kept by its address. NULL: it has none. */
static const struct vm_trace_string *
name_of_function(struct vm_trace_threads_state *state, const void *function)
{
    uint64_t hash = (uint64_t)(uintptr_t)function * UINT64_C(0x9E3779B97F4A7C15);
    unsigned at = hash >> 58 & (VM_TRACE_THREAD_FUNCTIONS - 1);
    if (state->functions[at].function == function) return state->functions[at].name;
    rb_vm_trace_string_release(state->functions[at].name);
    state->functions[at].function = function;
    state->functions[at].name = NULL;
    const char *name = rb_vm_trace_platform_function_name(function);
    if (name) state->functions[at].name = rb_vm_trace_string_intern(name, strlen(name));
    return state->functions[at].name;
}

/* Indexes of a label and of its method. False: the chunk is full. */
static inline bool
name_blocked(struct rb_vm_trace_writer *writer, struct vm_trace_label *label, unsigned *label_out, unsigned *method_out)
{
    uint32_t method_bytes = rb_vm_trace_label_method(label);
    return writer_string(writer, &label->slot, label->text, label->bytes, label_out) &&
        writer_string(writer, &label->method_slot, label->text, method_bytes, method_out);
}

/* --- CPUs -------------------------------------------------------------------------------------- */

/*
 * The main ractor has CPU 0, each other live ractor the lowest one that is free at `from_ns`. When none
 * is free, ractors share the last one.
 */
static uint32_t
take_cpu(bool main, uint64_t from_ns)
{
    for (uint32_t cpu = main ? 0 : 1; cpu < CPUS - 1; cpu++) {
        if (__atomic_exchange_n(&cpus[cpu].used, true, __ATOMIC_ACQUIRE) && !main) continue;
        if (cpus[cpu].last_ns < from_ns || main) return cpu;
        __atomic_store_n(&cpus[cpu].used, false, __ATOMIC_RELEASE);
    }
    return CPUS - 1;
}

void
rb_vm_trace_thread_have_cpu_slow(struct vm_trace_threads_state *state, struct rb_execution_context_struct *ec,
                                 uint64_t from_ns)
{
    state->cpu_and_1 = 1 + take_cpu(rb_vm_trace_host_main_ractor_p(ec), from_ns);
}

void
rb_vm_trace_thread_records_free(struct vm_trace_threads_state *state)
{
    uint32_t cpu = state->cpu_and_1 ? state->cpu_and_1 - 1 : 0;
    if (cpu && cpu < CPUS - 1) {
        cpus[cpu].last_ns = state->suspended_ns > state->resumed_ns ? state->suspended_ns : state->resumed_ns;
        __atomic_store_n(&cpus[cpu].used, false, __ATOMIC_RELEASE);
    }
    for (size_t i = 0; i < VM_TRACE_THREAD_FUNCTIONS; i++) rb_vm_trace_string_release(state->functions[i].name);
}

/* --- records ----------------------------------------------------------------------------------- */

/*
 * Records that belong together are composed one after the other and published at once: the first word
 * of the first one is stored last, and until then readers see padding.
 */
struct records {
    size_t words;
    uint64_t words_of[5 + 2 + EVENT_MAX_WORDS];
};

static inline void
add_switch(struct records *records, uint64_t ns, uint32_t cpu, enum fxt_thread_state state, unsigned outgoing,
           unsigned incoming)
{
    records->words_of[records->words++] = fxt_switch_header(cpu, state, outgoing, incoming);
    records->words_of[records->words++] = ns;
}

static inline void
add_event(struct records *records, struct vm_trace_event *event, enum fxt_event_type type, unsigned in, unsigned name)
{
    uint64_t *to = records->words_of + records->words;
    to[0] = fxt_event_header(type, event->words, event->arguments, event->thread, in, name);
    for (unsigned i = 1; i < event->words; i++) to[i] = event->record[i];
    records->words += event->words;
}

/* False: the chunk is full. `events`: how many of them are events. */
static inline bool
put_records(struct rb_vm_trace_writer *writer, const struct records *records, unsigned events)
{
    uint64_t *to = writer_reserve(writer, records->words);
    if (!to) return false;
    for (size_t i = 1; i < records->words; i++) to[i] = records->words_of[i];
    writer_publish(writer, records->words, records->words_of[0]);
    writer_count_events(writer, events);
    return true;
}

static inline bool
nobody_p(const struct rb_vm_trace_writer *writer, uint32_t index)
{
    return index && index <= writer->thread_count && writer->threads[index - 1].tid == 0;
}

/* Index of the thread that stands for nobody. 0: the chunk is full. */
static inline unsigned
nobody(struct vm_trace_threads_state *state, struct rb_vm_trace_writer *writer)
{
    if (nobody_p(writer, state->nobody)) return state->nobody;
    return state->nobody = rb_vm_trace_writer_no_thread(writer);
}

/* No event is earlier than a reset that its ractor has noticed. */
static inline uint64_t
after_reset(const struct rb_vm_trace_ractor *ractor, uint64_t ns)
{
    return ns < ractor->from_ns ? ractor->from_ns : ns;
}

/* --- templates --------------------------------------------------------------------------------- */

/* Index of the template for a thread that blocks in that method and function. */
static inline uint32_t
template_index(uint32_t tid, uint32_t label, const void *function)
{
    uint64_t hash = (((uint64_t)tid << 32 | label) ^ (uint64_t)(uintptr_t)function) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32) % VM_TRACE_THREAD_TEMPLATES;
}

/* Whether the template is of that thread and label, and its indexes are those of the current chunk. */
static inline bool
template_for(const struct vm_trace_thread_template *known, const struct rb_vm_trace_ractor *ractor,
             struct vm_trace_thread_id id, uint32_t label)
{
    const struct rb_vm_trace_writer *writer = &ractor->writer;
    if (known->chunk != writer->serial || known->label != label || known->label_changes != ractor->stacks.changes)
        return false;
    const struct vm_trace_thread *thread = &writer->threads[known->thread - 1];
    return thread->tid == id.tid && thread->name == id.name_id && nobody_p(writer, known->nobody);
}

/* Make a template of the records of this suspension, for the next one like it. */
static void
keep_template(const struct rb_vm_trace_ractor *ractor, const struct vm_trace_suspension *suspension,
              const struct vm_trace_event *event, const struct records *records, unsigned in, unsigned name,
              unsigned waker)
{
    struct vm_trace_threads_state *state = suspension->state;
    const struct rb_vm_trace_writer *writer = &ractor->writer;
    const struct rb_vm_trace_thread *thread = suspension->thread;
    uint32_t tid = writer->threads[event->thread - 1].tid, cpu = state->cpu_and_1 - 1;
    if (records->words > VM_TRACE_THREAD_TEMPLATE_WORDS) return;
    struct vm_trace_thread_template *keep =
        &state->templates[template_index(tid, suspension->label, thread->function)];
    keep->chunk = writer->serial;
    keep->label = suspension->label;
    keep->label_changes = ractor->stacks.changes;
    keep->function = thread->function;
    keep->fd_and_1 = thread->fd_and_1;
    keep->thread = (uint16_t)event->thread;
    keep->nobody = (uint16_t)state->nobody;
    keep->words = (uint16_t)records->words;
    memcpy(keep->suspended, records->words_of, records->words * sizeof(*keep->suspended));
    keep->end = fxt_event_header(FXT_EVENT_DURATION_END, 2, 0, event->thread, in, name);
    keep->woken = fxt_wakeup_header(3, 0, cpu);
    keep->woken_by = fxt_wakeup_header(5, 1, cpu);
    keep->waker = fxt_koid_argument(waker);
    keep->runs = fxt_switch_header(cpu, FXT_THREAD_RUNNABLE, state->nobody, event->thread);
}

/* False: there is no template, or no room. */
static inline bool
suspend_again(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
              const struct vm_trace_suspension *suspension)
{
    struct rb_vm_trace_thread *thread = suspension->thread;
    struct vm_trace_thread_id id = rb_vm_trace_host_thread(ec);
    uint32_t index = template_index(id.tid, suspension->label, thread->function);
    const struct vm_trace_thread_template *known = &suspension->state->templates[index];
    if (!template_for(known, ractor, id, suspension->label)) return false;
    if (known->function != thread->function || known->fd_and_1 != thread->fd_and_1) return false;

    size_t words = known->words;
    uint64_t *to = writer_reserve(&ractor->writer, words);
    if (!to) return false;
    to[1] = to[3] = after_reset(ractor, suspension->ns);
    to[2] = known->suspended[2];
    /* Faster than a loop over so few words. */
    if (words > 4) to[4] = known->suspended[4];
    if (words > 5) to[5] = known->suspended[5];
    if (words > 6) to[6] = known->suspended[6];
    writer_publish(&ractor->writer, words, known->suspended[0]);
    writer_count_events(&ractor->writer, 1);
    thread->template_and_1 = index + 1;
    return true;
}

/* The same for the resumption. */
static inline bool
resume_again(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
             const struct vm_trace_resumption *resumption)
{
    const struct rb_vm_trace_thread *thread = resumption->thread;
    const struct vm_trace_thread_template *known = &resumption->state->templates[thread->template_and_1 - 1];
    struct vm_trace_thread_id id = rb_vm_trace_host_thread(ec);
    if (!template_for(known, ractor, id, resumption->label)) return false;

    uint64_t ready_ns = after_reset(ractor, resumption->ready_ns);
    size_t words = thread->waker ? 9 : 7;
    uint64_t *to = writer_reserve(&ractor->writer, words);
    if (!to) return false;
    uint64_t *next = to + 5;
    to[1] = ready_ns;
    to[2] = thread->waker ? known->woken_by : known->woken;
    to[3] = ready_ns;
    to[4] = id.tid;
    if (thread->waker) {
        *next++ = known->waker;
        *next++ = thread->waker;
    }
    *next++ = known->runs;
    *next = resumption->ns > ready_ns ? resumption->ns : ready_ns + 1;
    writer_publish(&ractor->writer, words, known->end);
    writer_count_events(&ractor->writer, 1);
    return true;
}

/* --- suspensions and resumptions --------------------------------------------------------------- */

static bool
write_suspended(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    static const enum fxt_thread_state states[] = { FXT_THREAD_BLOCKED, FXT_THREAD_RUNNABLE, FXT_THREAD_DEAD,
                                                    FXT_THREAD_BLOCKED };
    const struct vm_trace_suspension *suspension = what;
    const struct rb_vm_trace_thread *thread = suspension->thread;
    struct vm_trace_threads_state *state = suspension->state;
    bool barrier = suspension->why == RB_VM_TRACE_BARRIER, blocked = barrier || suspension->why == RB_VM_TRACE_BLOCKED;
    struct vm_trace_event event;
    unsigned in = 0, name = 0, waker = 0, text, key;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, suspension->ns)) return false;
    unsigned none = nobody(state, event.writer);
    if (!none) return false;
    if (blocked) {
        if (!writer_interned(event.writer, KNOWN(BLOCKED), &in)) return false;
        if (!writer_interned(event.writer, KNOWN(WAKER), &waker)) return false;
        if (suspension->label) {
            if (!name_blocked(event.writer, &ractor->stacks.labels[suspension->label], &text, &name)) return false;
            event_string(&event, STRING_FRAME_0, text);
        }
        else if (!writer_interned(event.writer, barrier ? KNOWN(BARRIER) : KNOWN(NO_METHOD), &name)) return false;
        if (thread->fd_and_1 && !barrier) {
            if (!writer_interned(event.writer, KNOWN(FD), &key)) return false;
            event_uint32(&event, (enum known_string)key, (uint32_t)(thread->fd_and_1 - 1));
        }
        const void *called = barrier ? NULL : thread->function;
        const struct vm_trace_string *function = called ? name_of_function(state, called) : NULL;
        if (function && !event_interned_rarely(&event, KNOWN(FUNCTION), function)) return false;
    }
    else if (suspension->frames) {
        if (!writer_interned(event.writer, KNOWN(PREEMPTED), &in)) return false;
        if (!name_blocked(event.writer, &ractor->stacks.labels[suspension->label], &text, &name)) return false;
        if (suspension->frames == 1) event_string(&event, STRING_FRAME_0, text);
        else if (!rb_vm_trace_event_backtrace(&event, &ractor->stacks, 0)) return false;
    }

    struct records records;
    records.words = 0;
    uint64_t ns = event.record[1];
    uint32_t cpu = state->cpu_and_1 - 1;
    if (suspension->runs_from_ns) {
        uint64_t from = suspension->runs_from_ns < ns ? suspension->runs_from_ns : ns - 1;
        add_switch(&records, from, cpu, FXT_THREAD_RUNNABLE, none, event.thread);
    }
    add_switch(&records, ns, cpu, states[suspension->why], event.thread, none);
    if (blocked || suspension->frames)
        add_event(&records, &event, blocked ? FXT_EVENT_DURATION_BEGIN : FXT_EVENT_INSTANT, in, name);
    if (!put_records(event.writer, &records, blocked || suspension->frames)) return false;
    if (blocked && !barrier && !suspension->runs_from_ns)
        keep_template(ractor, suspension, &event, &records, in, name, waker);
    return true;
}

static bool
write_resumed(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct vm_trace_resumption *resumption = what;
    struct vm_trace_threads_state *state = resumption->state;
    uint32_t waker = resumption->thread->waker;
    struct vm_trace_event event;
    unsigned in = 0, name = 0, key = 0, text;
    uint64_t ready_ns = resumption->ready_ns ? resumption->ready_ns : resumption->ns;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, ready_ns)) return false;
    unsigned none = nobody(state, event.writer);
    if (!none || !writer_interned(event.writer, KNOWN(WAKER), &key)) return false;
    if (resumption->ends_blocked) {
        if (!writer_interned(event.writer, KNOWN(BLOCKED), &in)) return false;
        const struct vm_trace_string *other = resumption->barrier ? KNOWN(BARRIER) : KNOWN(NO_METHOD);
        if (!(resumption->label ? name_blocked(event.writer, &ractor->stacks.labels[resumption->label], &text, &name)
                                : writer_interned(event.writer, other, &name)))
            return false;
        if (resumption->stack && !rb_vm_trace_event_backtrace(&event, &ractor->stacks, 1)) return false;
    }

    struct records records;
    records.words = 0;
    uint32_t cpu = state->cpu_and_1 - 1;
    ready_ns = event.record[1];
    if (resumption->ends_blocked) add_event(&records, &event, FXT_EVENT_DURATION_END, in, name);
    if (resumption->ready_ns) {
        uint64_t *to = records.words_of + records.words;
        size_t words = waker ? 5 : 3;
        to[0] = fxt_wakeup_header(words, waker ? 1 : 0, cpu);
        to[1] = ready_ns;
        to[2] = event.writer->threads[event.thread - 1].tid;
        if (waker) {
            to[3] = fxt_koid_argument(key);
            to[4] = waker;
        }
        records.words += words;
    }
    add_switch(&records, resumption->ns > ready_ns ? resumption->ns : ready_ns + 1, cpu, FXT_THREAD_RUNNABLE, none,
               event.thread);
    return put_records(event.writer, &records, resumption->ends_blocked);
}

bool
rb_vm_trace_thread_write_suspension(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                    const struct vm_trace_suspension *suspension)
{
    ractor_notice_reset(ractor);
    suspension->thread->template_and_1 = 0;
    bool again = suspension->why == RB_VM_TRACE_BLOCKED && !suspension->runs_from_ns &&
        suspend_again(ractor, ec, suspension);
    return again || rb_vm_trace_event_write_in_epoch(ractor, ec, write_suspended, suspension);
}

bool
rb_vm_trace_thread_write_resumption(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                    const struct vm_trace_resumption *resumption)
{
    ractor_notice_reset(ractor);
    bool again = resumption->thread->template_and_1 && resumption->ends_blocked && !resumption->stack &&
        resumption->ready_ns && resume_again(ractor, ec, resumption);
    return again || rb_vm_trace_event_write_in_epoch(ractor, ec, write_resumed, resumption);
}
