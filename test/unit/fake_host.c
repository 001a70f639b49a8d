/*
 * A host without Ruby. See fake_host.h, and vm_trace/host/host.h for what each answer means.
 */
#define _GNU_SOURCE 1 /* asprintf */
#include "fake_host.h"
#include "vm_trace/base/fiber_tracks.h"
#include "vm_trace/vm_trace.h"
#include "vm_trace/vm_trace_jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INSTRUCTION_BYTES = 8 };

struct fake_host fake_host;
static struct rb_ractor_struct *ractors;
static __thread struct rb_execution_context_struct *current;

struct rb_iseq_struct
fake_iseq_at(uintptr_t from, unsigned instructions, const char *name, const char *path)
{
    return (struct rb_iseq_struct){ from, from + instructions * INSTRUCTION_BYTES, name, path };
}

struct rb_iseq_struct
fake_iseq(const char *name, const char *path)
{
    static uintptr_t next = 0x7f0000000000;
    uintptr_t from = __atomic_fetch_add(&next, 0x10000, __ATOMIC_RELAXED);
    return fake_iseq_at(from, 1000, name, path);
}

const void *
fake_pc(const struct rb_iseq_struct *iseq, unsigned line)
{
    return (const void *)(iseq->from + (line - 1) * INSTRUCTION_BYTES);
}

void
fake_ractor_add(struct rb_ractor_struct *ractor)
{
    ractor->next = ractors;
    ractors = ractor;
}

void
fake_ractor_remove(struct rb_ractor_struct *ractor)
{
    struct rb_ractor_struct **at = &ractors;
    while (*at != ractor) at = &(*at)->next;
    *at = ractor->next;
}

void
fake_current(struct rb_execution_context_struct *ec)
{
    current = ec;
}

static void
push(struct rb_execution_context_struct *ec, struct fake_frame frame)
{
    if (ec->frame_count == ec->frame_capacity) {
        ec->frame_capacity = ec->frame_capacity ? ec->frame_capacity * 2 : 64;
        ec->frames = realloc(ec->frames, ec->frame_capacity * sizeof(*ec->frames));
        if (!ec->frames) abort();
    }
    ec->frames[ec->frame_count++] = frame;
}

void
fake_push(struct rb_execution_context_struct *ec, const struct rb_iseq_struct *iseq, unsigned line)
{
    push(ec, (struct fake_frame){ .iseq = iseq, .line = line });
}

void
fake_push_method(struct rb_execution_context_struct *ec, const struct rb_iseq_struct *iseq,
                 const struct fake_method *method, unsigned line)
{
    push(ec, (struct fake_frame){ .iseq = iseq, .method = method, .line = line });
}

void
fake_push_cfunc(struct rb_execution_context_struct *ec, const struct fake_method *method)
{
    push(ec, (struct fake_frame){ .method = method });
}

void
fake_pop(struct rb_execution_context_struct *ec, size_t frames)
{
    ec->frame_count -= frames;
}

void
fake_free_stack(struct rb_execution_context_struct *ec)
{
    free(ec->frames);
    ec->frames = NULL;
    ec->frame_count = ec->frame_capacity = 0;
}

/* --- the answers ----------------------------------------------------------------------------- */

void
rb_vm_trace_host_each_thread(void (*function)(struct rb_execution_context_struct *ec, uint32_t tid, void *data),
                             void *data)
{
    if (current) function(current, rb_vm_trace_host_thread(current).tid, data);
}

bool
rb_vm_trace_host_walk(struct vm_trace_walk *walk, struct rb_execution_context_struct *ec, uintptr_t top_pc)
{
    __atomic_fetch_add(&fake_host.walks, 1, __ATOMIC_RELAXED);
    uintptr_t caller_pc = 0;
    const struct rb_iseq_struct *caller = NULL;
    walk->count = ec->frame_count;
    walk->changed = SIZE_MAX;
    if (walk->count > walk->capacity) return false;
    walk->fiber = rb_vm_trace_host_fiber(ec);
    for (size_t i = 0; i < ec->frame_count; i++) {
        const struct fake_frame *from = &ec->frames[i];
        uintptr_t pc = caller_pc + HOST_PC_CFUNC;
        if (from->iseq) {
            caller = from->iseq;
            pc = caller_pc = from->iseq->from + from->line * INSTRUCTION_BYTES;
            if (top_pc && i + 1 == ec->frame_count) pc = top_pc;
        }
        struct vm_trace_frame *to = &walk->frames[i];
        to->iseq = caller;
        if (to->pc == pc && to->method == (uintptr_t)from->method) continue;
        *to = (struct vm_trace_frame){ .pc = pc, .method = (uintptr_t)from->method, .iseq = caller };
        if (walk->changed > i) walk->changed = i;
    }
    return true;
}

bool
rb_vm_trace_host_sample(struct vm_trace_walk *walk, struct rb_execution_context_struct *ec)
{
    if (!rb_vm_trace_host_walk(walk, ec, 0)) walk->count = 0;
    return true;
}

enum vm_trace_compiled
rb_vm_trace_host_compiled(struct rb_execution_context_struct *ec, uintptr_t sp, uintptr_t *end_out)
{
    (void)ec, (void)sp;
    *end_out = 0;
    return fake_host.compiled;
}

void
rb_vm_trace_host_compiled_unknown(struct rb_execution_context_struct *ec)
{
    (void)ec;
}

void
rb_vm_trace_host_unwound(struct rb_execution_context_struct *ec)
{
    (void)ec;
}

void
rb_vm_trace_host_interrupt(struct rb_execution_context_struct *ec)
{
    (void)ec;
    fake_host.interrupts++;
}

size_t
rb_vm_trace_host_label(const struct vm_trace_frame *frame, char *buffer, size_t capacity)
{
    if (frame->pc == HOST_PC_LEFT_OUT || frame->pc == HOST_PC_NO_FRAMES)
        return (size_t)snprintf(buffer, capacity, "%s", frame->pc == HOST_PC_LEFT_OUT ? HOST_LEFT_OUT : HOST_NO_FRAMES);
    __atomic_fetch_add(&fake_host.labels, 1, __ATOMIC_RELAXED);
    const struct fake_method *method = (const struct fake_method *)frame->method;
    const struct rb_iseq_struct *iseq = frame->iseq;
    bool call = (frame->pc & ~HOST_PC_MASK) == HOST_PC_CALL, cfunc = call ? !iseq : (frame->pc & HOST_PC_CFUNC) != 0;
    const char *name = cfunc ? method->name : iseq->name;
    char *text;
    size_t line = 0;
    if (iseq) {
        line = ((frame->pc & HOST_PC_MASK) - iseq->from) / INSTRUCTION_BYTES;
        if (frame->pc & HOST_PC_EXACT) line++;
    }
    const char *owner = method ? method->owner : "", *between = method ? "#" : "";
    int n = call && cfunc ? asprintf(&text, "%s%s%s", owner, between, name)
                          : asprintf(&text, "%s%s%s (%s:%zu)", owner, between, name, iseq ? iseq->path : "<cfunc>", line);
    if (n < 0) abort();
    memcpy(buffer, text, (size_t)n < capacity ? (size_t)n : capacity);
    free(text);
    return (size_t)n;
}

uintptr_t
rb_vm_trace_host_method_of(const struct rb_iseq_struct *iseq)
{
    if (!current || current->frame_count == 0) return 0;
    const struct fake_frame *top = &current->frames[current->frame_count - 1];
    return top->iseq == iseq ? (uintptr_t)top->method : 0;
}

void
rb_vm_trace_host_iseq_range(const struct rb_iseq_struct *iseq, uintptr_t *from_out, uintptr_t *to_out)
{
    *from_out = iseq->from;
    *to_out = iseq->to;
}

struct rb_execution_context_struct *
rb_vm_trace_host_current(void)
{
    return current;
}

void
rb_vm_trace_host_forked(void)
{
    if (current) current->tid = (uint32_t)getpid();
}

struct rb_vm_trace_ractor *
rb_vm_trace_host_ractor(struct rb_execution_context_struct *ec)
{
    return ec->ractor->vm_trace;
}

void
rb_vm_trace_host_each_ractor(struct rb_vm_trace_ractor *(*change)(struct rb_vm_trace_ractor *ractor_state))
{
    for (struct rb_ractor_struct *ractor = ractors; ractor; ractor = ractor->next) {
        ractor->vm_trace = change(ractor->vm_trace);
    }
}

void
rb_vm_trace_host_set_ractor(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor *ractor_state)
{
    ec->ractor->vm_trace = ractor_state;
}

void
rb_vm_trace_host_wake_main(void)
{
}

void
rb_vm_trace_host_notify_hooks(struct rb_execution_context_struct *ec, const struct rb_vm_trace_exit_info *exit)
{
    (void)ec;
    (void)exit;
    fake_host.told++;
}

void
rb_vm_trace_host_with_world_stopped(void (*func)(void *data), void *data)
{
    func(data);
}

struct vm_trace_thread_id
rb_vm_trace_host_thread(struct rb_execution_context_struct *ec)
{
    if (!ec) return (struct vm_trace_thread_id){ 2, 999 };
    return (struct vm_trace_thread_id){ ec->name_id, ec->tid };
}

bool
rb_vm_trace_host_gvl_free_p(struct rb_execution_context_struct *ec)
{
    (void)ec;
    return fake_host.gvl_free;
}

bool
rb_vm_trace_host_has_gvl_p(struct rb_execution_context_struct *ec)
{
    return ec != fake_host.without_gvl;
}

static size_t
put_name(const char *name, char *buffer, size_t capacity)
{
    __atomic_fetch_add(&fake_host.thread_names, 1, __ATOMIC_RELAXED);
    size_t bytes = strlen(name);
    memcpy(buffer, name, bytes < capacity ? bytes : capacity);
    return bytes;
}

size_t
rb_vm_trace_host_thread_name(struct rb_execution_context_struct *ec, char *buffer, size_t capacity)
{
    return put_name(!ec ? "vm_trace" : ec->thread_name, buffer, capacity);
}

struct vm_trace_thread_id
rb_vm_trace_host_fiber(struct rb_execution_context_struct *ec)
{
    return rb_vm_trace_host_thread(ec);
}

size_t
rb_vm_trace_host_fiber_name(struct rb_execution_context_struct *ec, char *buffer, size_t capacity)
{
    return rb_vm_trace_host_thread_name(ec, buffer, capacity);
}

struct rb_execution_context_struct *
rb_vm_trace_host_fiber_context(uintptr_t fiber)
{
    return (struct rb_execution_context_struct *)fiber;
}

/* Each context is a thread's own fiber, of the first few that are asked for. */
uint32_t
rb_vm_trace_host_fiber_track(struct rb_execution_context_struct *ec)
{
    enum { CONTEXTS = 8 };
    static struct {
        struct rb_execution_context_struct *ec;
        uint32_t track;
    } known[CONTEXTS];
    for (size_t i = 0; i < CONTEXTS; i++) {
        if (known[i].ec && known[i].ec != ec) continue;
        known[i].ec = ec;
        return rb_vm_trace_fiber_track_of_thread(&known[i].track);
    }
    return 0;
}

bool
rb_vm_trace_host_fiber_alive_p(struct rb_execution_context_struct *ec)
{
    return ec->frames != NULL;
}

bool
rb_vm_trace_host_scheduler_p(struct rb_execution_context_struct *ec)
{
    return ec == fake_host.in_scheduler;
}

size_t
rb_vm_trace_host_scheduler_frames(struct rb_execution_context_struct *ec, const struct vm_trace_walk *walk)
{
    (void)walk;
    return ec == fake_host.in_scheduler ? fake_host.scheduler_frames : 0;
}

size_t
rb_vm_trace_host_thread_offset(void)
{
    return 0; /* for machine code, which is not run here */
}

size_t
rb_vm_trace_host_ractor_offset(void)
{
    return offsetof(struct rb_ractor_struct, vm_trace);
}

const char *
rb_vm_trace_host_description(void)
{
    return "ruby 9.9.9 (a fake one)";
}

const char *
rb_vm_trace_host_base(void)
{
    return "ruby-9.9";
}

bool
rb_vm_trace_host_main_ractor_p(struct rb_execution_context_struct *ec)
{
    return ec->ractor->next == NULL; /* the one that was added first */
}

bool
rb_vm_trace_host_top(struct rb_execution_context_struct *ec, struct vm_trace_frame *frame_out)
{
    enum { MOST = 64 };
    struct vm_trace_frame frames[MOST] = { { 0 } };
    struct vm_trace_walk walk = { .frames = frames, .capacity = MOST };
    if (!rb_vm_trace_host_walk(&walk, ec, 0) || walk.count == 0) return false;
    *frame_out = frames[walk.count - 1];
    return true;
}

static const char *
class_name(const struct fake_object *object)
{
    return object->klass ? object->klass->name : object->class_name;
}

size_t
rb_vm_trace_host_class_name(uintptr_t object, char *buffer, size_t capacity)
{
    const char *name = class_name((const struct fake_object *)object);
    size_t bytes = strlen(name);
    if (capacity) memcpy(buffer, name, bytes < capacity ? bytes : capacity);
    return bytes;
}

void
rb_vm_trace_host_clear_object(uintptr_t object)
{
    (void)object;
}

uint64_t
rb_vm_trace_host_malloc_bytes(uintptr_t object, size_t below, bool collecting)
{
    const struct fake_object *of = (const struct fake_object *)object;
    (void)below;
    return collecting && of->extension ? HOST_BYTES_UNKNOWN : of->malloc_bytes;
}

size_t
rb_vm_trace_host_stack_words(struct rb_execution_context_struct *ec, uintptr_t *words, size_t capacity)
{
    (void)ec;
    size_t count = fake_host.word_count < capacity ? fake_host.word_count : capacity;
    memcpy(words, fake_host.words, count * sizeof(*words));
    return count;
}

uintptr_t
rb_vm_trace_host_buffer_owner(uintptr_t slot, const void *buffer, size_t bytes)
{
    (void)bytes;
    const struct fake_object *of = (const struct fake_object *)slot;
    return of->buffer != buffer ? 0 : of->shared ? (uintptr_t)of->shared : slot;
}

size_t
rb_vm_trace_host_table_offset(void)
{
    return offsetof(struct fake_object, table);
}

bool
rb_vm_trace_host_collecting_p(void)
{
    return fake_host.collecting;
}

uintptr_t
rb_vm_trace_host_moved_to(uintptr_t object)
{
    const struct fake_object *of = (const struct fake_object *)object;
    return of->moved_to ? (uintptr_t)of->moved_to : object;
}

/* --- execution states ------------------------------------------------------------------------ */

/*
 * What a context and its thread hold for them: each context is a thread of its own, unless a test
 * says otherwise.
 */
static struct fake_words {
    struct rb_execution_context_struct *ec;
    struct rb_execution_context_struct *thread;
    struct rb_vm_trace_states *states;
    struct rb_vm_trace_calls *calls;
    struct vm_trace_thread_word times;
    uint64_t memory[RB_VM_TRACE_THREAD_BYTES / sizeof(uint64_t)];
} words[64];

static struct fake_words *
words_of(struct rb_execution_context_struct *ec)
{
    struct fake_words *at = words;
    while (at->ec && at->ec != ec) at++;
    if (at + 1 == words + sizeof(words) / sizeof(words[0])) abort();
    if (!at->ec) at->ec = at->thread = ec;
    return at;
}

void
fake_fiber_of(struct rb_execution_context_struct *fiber, struct rb_execution_context_struct *thread)
{
    words_of(fiber)->thread = thread;
}

struct rb_vm_trace_states **
rb_vm_trace_host_states(struct rb_execution_context_struct *ec)
{
    return &words_of(ec)->states;
}

struct rb_vm_trace_thread *
rb_vm_trace_host_thread_memory(struct rb_execution_context_struct *ec)
{
    return (struct rb_vm_trace_thread *)words_of(words_of(ec)->thread)->memory;
}

struct vm_trace_thread_word *
rb_vm_trace_host_thread_times(struct rb_execution_context_struct *ec)
{
    return &words_of(words_of(ec)->thread)->times;
}

/* Frames are numbers that go down: the outermost one has 1,000,000. */
uintptr_t
rb_vm_trace_host_innermost(struct rb_execution_context_struct *ec)
{
    return 1000000 - ec->frame_count;
}

struct vm_trace_catcher
rb_vm_trace_host_catcher(struct rb_execution_context_struct *ec)
{
    return (struct vm_trace_catcher){ rb_vm_trace_host_innermost(ec), ec->frames[ec->frame_count - 1].iseq };
}

/* As if the innermost frame were a block of the one that calls it, and that a method of its caller. */
size_t
rb_vm_trace_host_catchers(struct rb_execution_context_struct *ec,
                          struct vm_trace_catcher catchers_out[VM_TRACE_CATCHERS])
{
    size_t count = 0;
    for (size_t out = 2; count < VM_TRACE_CATCHERS && out <= ec->frame_count; out++) {
        size_t frame = ec->frame_count - out;
        catchers_out[count++] = (struct vm_trace_catcher){ 1000000 - frame - 1, ec->frames[frame].iseq };
    }
    return count;
}

/* As if C had called each one that is marked so. */
uintptr_t
rb_vm_trace_host_first_frame(struct rb_execution_context_struct *ec)
{
    size_t count = ec->frame_count;
    while (count > 0 && !ec->frames[count - 1].first) count--;
    return 1000000 - count;
}

uintptr_t
rb_vm_trace_host_innermost_method(struct rb_execution_context_struct *ec)
{
    return (uintptr_t)ec->frames[ec->frame_count - 1].method;
}

const struct rb_iseq_struct *
rb_vm_trace_host_watch_frame(uintptr_t frame)
{
    struct fake_frame *watched = &current->frames[1000000 - frame - 1];
    watched->watched = true;
    return watched->iseq;
}

void
rb_vm_trace_host_watch_entries(int streams)
{
    fake_host.entries_watched = streams != 0;
}

/* --- calls ------------------------------------------------------------------------------------- */

struct rb_vm_trace_calls **
rb_vm_trace_host_calls(struct rb_execution_context_struct *ec)
{
    return &words_of(ec)->calls;
}

static struct vm_trace_call_frame
call_frame(struct fake_frame *frame, size_t index)
{
    frame->watched = true;
    return (struct vm_trace_call_frame){ 1000000 - index - 1, frame->iseq, (uintptr_t)frame->method };
}

bool
rb_vm_trace_host_call_frame(struct rb_execution_context_struct *ec, struct vm_trace_call_frame *frame_out)
{
    if (ec->frame_count == 0) return false;
    *frame_out = call_frame(&ec->frames[ec->frame_count - 1], ec->frame_count - 1);
    return true;
}

void
rb_vm_trace_host_call_begun(struct rb_execution_context_struct *ec)
{
    struct vm_trace_call_frame frame;
    if (!rb_vm_trace_host_call_frame(ec, &frame)) return;
    rb_vm_trace_calls_begin(ec, ec->ractor->vm_trace, words_of(ec)->calls, frame.frame, frame.iseq, frame.method);
}

void
rb_vm_trace_host_calls_left(struct rb_execution_context_struct *ec)
{
    rb_vm_trace_calls_end(ec, ec->ractor->vm_trace, words_of(ec)->calls, rb_vm_trace_host_innermost(ec));
}

void
rb_vm_trace_host_each_frame(struct rb_execution_context_struct *ec, bool but_innermost,
                            struct rb_vm_trace_ractor *ractor,
                            void (*function)(void *data, struct rb_vm_trace_ractor *ractor,
                                             const struct vm_trace_call_frame *frame),
                            void *data)
{
    for (size_t i = 0; i + but_innermost < ec->frame_count; i++) {
        struct vm_trace_call_frame frame = call_frame(&ec->frames[i], i);
        function(data, ractor, &frame);
    }
}

void
rb_vm_trace_host_call_label(const struct vm_trace_call_frame *frame, struct vm_trace_frame *label_out)
{
    uintptr_t pc = frame->iseq ? frame->iseq->from : 0;
    *label_out = (struct vm_trace_frame){ .pc = pc + HOST_PC_CALL, .method = frame->method, .iseq = frame->iseq };
}

/* --- what guards have met: the operand that a test sets ------------------------------------------- */

bool
rb_vm_trace_host_find_operands(uintptr_t pc, struct vm_trace_guard *guard)
{
    (void)pc;
    __atomic_fetch_add(&fake_host.guards, 1, __ATOMIC_RELAXED);
    guard->arguments = 1;
    return true;
}

uint64_t
rb_vm_trace_host_seen(struct rb_execution_context_struct *ec, uintptr_t pc, struct vm_trace_guard guard,
                      struct vm_trace_seen *seen)
{
    (void)ec, (void)pc;
    if (!fake_host.operand) return VM_TRACE_SAW_NOTHING;
    seen->value = (uintptr_t)fake_host.operand;
    seen->what = fake_host.operand->kind ? fake_host.operand->kind : VM_TRACE_SAW_OBJECT;
    seen->klass = fake_host.operand->kind ? fake_host.operand->kind : (uintptr_t)fake_host.operand->klass;
    seen->index = fake_host.index;
    seen->length = fake_host.operand->length;
    if (guard.looks_at == VM_TRACE_LOOKS_AT_INDEX) seen->what |= VM_TRACE_SAW_INDEX | VM_TRACE_SAW_LENGTH;
    if (guard.looks_at == VM_TRACE_LOOKS_AT_LENGTH) seen->what |= VM_TRACE_SAW_LENGTH;
    bool wide = seen->index != (int32_t)seen->index || seen->length > UINT32_MAX;
    if (seen->what > UINT8_MAX && wide) seen->what |= VM_TRACE_SAW_WIDE;
    if (guard.looks_at != VM_TRACE_LOOKS_AT_SHAPE || !fake_host.operand->shape) return seen->what;
    seen->shape = fake_host.operand->shape;
    seen->what |= VM_TRACE_SAW_SHAPE;
    return (uint64_t)seen->shape << 32 | seen->what;
}

size_t
rb_vm_trace_host_value_name(uintptr_t value, char *buffer, size_t capacity)
{
    __atomic_fetch_add(&fake_host.value_names, 1, __ATOMIC_RELAXED);
    return rb_vm_trace_host_class_name(value, buffer, capacity);
}

bool
rb_vm_trace_host_value_named_p(uintptr_t value, const char *name, size_t bytes)
{
    const char *its_name = class_name((const struct fake_object *)value);
    __atomic_fetch_add(&fake_host.names_compared, 1, __ATOMIC_RELAXED);
    return strlen(its_name) == bytes && memcmp(its_name, name, bytes) == 0;
}

bool
rb_vm_trace_host_class_named_p(uintptr_t klass)
{
    return klass && !((const struct fake_class *)klass)->unnamed;
}

size_t
rb_vm_trace_host_ivar_name(uintptr_t pc, uintptr_t object, char *buffer, size_t capacity)
{
    (void)pc;
    const struct fake_object *of = (const struct fake_object *)object;
    size_t bytes = of->ivar ? strlen(of->ivar) : 0;
    if (bytes) memcpy(buffer, of->ivar, bytes < capacity ? bytes : capacity);
    return bytes;
}

/* An ISEQ has an instruction a line, so the index is that of the line. */
bool
rb_vm_trace_host_insn_repeated_p(const struct rb_iseq_struct *iseq, uintptr_t pc, uint32_t *index_out)
{
    *index_out = (uint32_t)((pc - iseq->from) / sizeof(uintptr_t));
    return fake_host.operand_name != NULL;
}

size_t
rb_vm_trace_host_operand_name(uintptr_t pc, char *buffer, size_t capacity)
{
    (void)pc;
    size_t bytes = strlen(fake_host.operand_name);
    memcpy(buffer, fake_host.operand_name, bytes < capacity ? bytes : capacity);
    return bytes;
}

/* The test's number. */
size_t
rb_vm_trace_shape_text(uint32_t shape, char *buffer, size_t capacity)
{
    char text[32];
    size_t bytes = (size_t)snprintf(text, sizeof(text), "@v%u", shape);
    memcpy(buffer, text, bytes < capacity ? bytes : capacity);
    return bytes;
}
