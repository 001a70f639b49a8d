/*
 * Times of threads in states. See thread_times.h.
 */
#include "vm_trace/streams/states/thread_times.h"

#include <stdlib.h>
#include <string.h>

/* Guards both lists. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vm_trace_thread_times *threads;
static struct rb_vm_trace_states *contexts;
static uint32_t generation; /* of the lists: those of a forked child are others */

static const enum known_text names[VM_TRACE_EXECUTIONS] = {
#define X(name, text) [VM_TRACE_##name] = KNOWN_##name,
    VM_TRACE_EXECUTION_STATES(X)
#undef X
};

/* --- which there are --------------------------------------------------------------------------------- */

static void
free_times(struct vm_trace_thread_times *times)
{
    *times->link = times->next;
    if (times->next) times->next->link = times->link;
    rb_vm_trace_string_release(times->name);
    free(times);
}

static size_t
thread_name(const void *ec, char *buffer, size_t capacity)
{
    return rb_vm_trace_host_thread_name((struct rb_execution_context_struct *)ec, buffer, capacity);
}

static struct vm_trace_string *
intern_name(struct rb_execution_context_struct *ec)
{
    char buffer[256];
    size_t bytes;
    char *name = rb_vm_trace_text_whole(thread_name, ec, buffer, sizeof(buffer), &bytes);
    struct vm_trace_string *string = rb_vm_trace_string_intern(name, bytes);
    if (name != buffer) free(name);
    return string;
}

static struct vm_trace_thread_times *
times_of(struct rb_execution_context_struct *ec)
{
    struct vm_trace_thread_word *word = rb_vm_trace_host_thread_times(ec);
    if (word->trace == trace_id()) return word->times;
    struct vm_trace_thread_times *times = calloc(1, sizeof(*times));
    if (!times) return NULL;
    times->trace = trace_id();
    times->epoch = trace_epoch();
    times->id = rb_vm_trace_host_thread(ec);
    times->name = intern_name(ec);
    if (!times->name) {
        free(times);
        return NULL;
    }
    times->next = threads;
    times->link = &threads;
    if (threads) threads->link = &times->next;
    threads = times;
    *word = (struct vm_trace_thread_word){ times, times->trace };
    return times;
}

struct vm_trace_thread_times *
rb_vm_trace_thread_times_join(struct rb_vm_trace_states *states, struct rb_vm_trace_states **slot)
{
    pthread_mutex_lock(&lock);
    struct vm_trace_thread_times *times = times_of(states->ec);
    if (times) {
        times->contexts++;
        times->running = states;
        states->slot = slot;
        states->generation = generation;
        states->next = contexts;
        states->link = &contexts;
        if (contexts) contexts->link = &states->next;
        contexts = states;
        *slot = states;
    }
    pthread_mutex_unlock(&lock);
    return times;
}

void
rb_vm_trace_thread_times_leave(struct rb_vm_trace_states *states)
{
    *states->slot = NULL;
    if (states->generation != generation) return; /* the parent's, with all that it points to */
    pthread_mutex_lock(&lock);
    struct vm_trace_thread_times *times = states->times;
    *states->link = states->next;
    if (states->next) states->next->link = states->link;
    if (times->running == states) times->running = NULL;
    if (--times->contexts == 0 && times->ended) free_times(times);
    pthread_mutex_unlock(&lock);
}

void
rb_vm_trace_thread_times_each_context(void (*function)(struct rb_vm_trace_states *states))
{
    pthread_mutex_lock(&lock);
    for (struct rb_vm_trace_states *states = contexts; states; states = states->next) {
        if (states->trace == trace_id()) function(states);
    }
    pthread_mutex_unlock(&lock);
}

void
rb_vm_trace_thread_times_free_all(void)
{
    pthread_mutex_lock(&lock);
    while (contexts) {
        struct rb_vm_trace_states *states = contexts;
        contexts = states->next;
        *states->slot = NULL;
        free(states->levels);
        free(states);
    }
    while (threads) free_times(threads);
    pthread_mutex_unlock(&lock);
}

void
rb_vm_trace_thread_times_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    threads = NULL;
    contexts = NULL;
    generation++;
}

uint64_t
rb_vm_trace_thread_times_renew(struct vm_trace_thread_times *times, uint64_t from_ns)
{
    uint64_t begin_ns = rb_vm_trace_epoch_begin_ns(&times->epoch);
    memset(times->ns, 0, sizeof(times->ns));
    times->look = (struct vm_trace_cpu_look){ 0 };
    times->changes = times->left_out = 0;
    return from_ns > begin_ns ? from_ns : begin_ns;
}

/* --- without a CPU --------------------------------------------------------------------------------------- */

/* Its address identifies a native thread: a Ruby thread may run on several ones. */
static __thread char native;

uint64_t
rb_vm_trace_thread_times_look(struct vm_trace_thread_times *times, uint64_t spent_ns, uint64_t ns)
{
    /* Less than LEAST_NS may be the difference between two clocks that are read one after the other. */
    enum { LOOK_EVERY_NS = 1000000, LEAST_NS = 20000 };
    const struct vm_trace_cpu_look before = times->look;
    struct vm_trace_cpu_look *look = &times->look;
    *look = (struct vm_trace_cpu_look){
        .due_ns = ns + LOOK_EVERY_NS, .ns = ns, .native = &native,
        .cpu_ns = clock_ns_of(CLOCK_THREAD_CPUTIME_ID),
        .not_run_ns = times->ns[VM_TRACE_WAITING] + times->ns[VM_TRACE_NO_CPU] + times->ns[VM_TRACE_BLOCKED]
    };
    if (before.native != &native || !look->cpu_ns) return 0;
    uint64_t passed_ns = look->ns - before.ns, not_run_ns = look->not_run_ns - before.not_run_ns;
    uint64_t used_ns = look->cpu_ns - before.cpu_ns; /* with what it used while it had no GVL */
    if (passed_ns < not_run_ns + used_ns + LEAST_NS) return 0;
    uint64_t without_ns = passed_ns - not_run_ns - used_ns;
    /* Some of it was before this state, in which the thread had a CPU for no longer than it has used since the look. */
    if (without_ns > spent_ns) without_ns = spent_ns > used_ns ? spent_ns - used_ns : 0;
    rb_vm_trace_thread_times_add(times, VM_TRACE_NO_CPU, without_ns);
    look->not_run_ns += without_ns;
    return without_ns;
}

/* --- the event ------------------------------------------------------------------------------------------- */

static size_t
name_of(const void *string, char *buffer, size_t capacity)
{
    const struct vm_trace_string *name = string;
    memcpy(buffer, name->text, name->bytes < capacity ? name->bytes : capacity);
    return name->bytes;
}

static bool
write_times(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    (void)ec;
    const struct vm_trace_thread_times *times = what;
    struct vm_trace_event event;
    unsigned name;
    uint64_t now_ns = clock_now_ns(&ractor->clock);
    if (!rb_vm_trace_event_begin_on(&event, ractor, times->id, name_of, times->name, now_ns)) return false;
    for (size_t i = 0; i < VM_TRACE_EXECUTIONS; i++) {
        uint64_t ns = __atomic_load_n(&times->ns[i], __ATOMIC_RELAXED);
        if (ns && !event_uint64_rarely(&event, rb_vm_trace_known[names[i]], ns)) return false;
    }
    if (!event_uint64_rarely(&event, KNOWN(CHANGES), times->changes)) return false;
    if (times->left_out && !event_uint64_rarely(&event, KNOWN(LEFT_OUT), times->left_out)) return false;
    if (!writer_interned(event.writer, KNOWN(STATES), &name)) return false;
    return event_end(&event, FXT_EVENT_INSTANT, STRING_TRACE, name);
}

static void
write_event(const struct vm_trace_thread_times *times, struct rb_vm_trace_ractor *ractor,
            struct rb_execution_context_struct *ec)
{
    if (times->epoch == trace_epoch()) rb_vm_trace_event_write(ractor, ec, write_times, times);
}

void
rb_vm_trace_thread_times_end(struct vm_trace_thread_times *times, struct rb_vm_trace_ractor *ractor,
                             struct rb_execution_context_struct *ec)
{
    write_event(times, ractor, ec);
    times->ended = true;
    /* It may get the GVL once more: that is not recorded, for its event is written. */
    *rb_vm_trace_host_thread_times(ec) = (struct vm_trace_thread_word){ NULL, trace_id() };
}

void
rb_vm_trace_thread_times_report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    pthread_mutex_lock(&lock);
    for (const struct vm_trace_thread_times *times = threads; times; times = times->next) {
        if (times->trace == trace_id() && !times->ended) write_event(times, ractor, ec);
    }
    pthread_mutex_unlock(&lock);
}

/* --- snapshots ------------------------------------------------------------------------------------------ */

/* Times when the snapshot began, to be written. */
static struct {
    struct vm_trace_thread_times *times;
    size_t count, next, capacity;
} copied;

bool
rb_vm_trace_thread_times_snapshot_room(void)
{
    pthread_mutex_lock(&lock);
    size_t count = 0;
    for (const struct vm_trace_thread_times *times = threads; times; times = times->next) count++;
    pthread_mutex_unlock(&lock);
    enum { BEGINNING = 16 }; /* threads that may begin meanwhile */
    count += BEGINNING;
    if (count <= copied.capacity) return true;
    void *grown = realloc(copied.times, count * sizeof(*copied.times));
    if (!grown) return false;
    copied.times = grown;
    copied.capacity = count;
    return true;
}

void
rb_vm_trace_thread_times_snapshot_begin(void)
{
    copied.count = copied.next = 0;
    pthread_mutex_lock(&lock);
    const struct vm_trace_thread_times *times = threads;
    for (; times && copied.count < copied.capacity; times = times->next) {
        if (times->trace != trace_id() || times->ended || times->epoch != trace_epoch()) continue;
        copied.times[copied.count++] = *times;
        rb_vm_trace_string_retain(times->name);
    }
    pthread_mutex_unlock(&lock);
}

bool
rb_vm_trace_thread_times_snapshot_write(struct rb_vm_trace_ractor *ractor)
{
    enum { AT_ONCE = 64 };
    for (int i = 0; i < AT_ONCE && copied.next < copied.count; i++) {
        struct vm_trace_thread_times *times = &copied.times[copied.next++];
        rb_vm_trace_event_write(ractor, NULL, write_times, times);
        rb_vm_trace_string_release(times->name);
    }
    return copied.next < copied.count;
}

void
rb_vm_trace_thread_times_snapshot_end(void)
{
    while (copied.next < copied.count) rb_vm_trace_string_release(copied.times[copied.next++].name);
}
