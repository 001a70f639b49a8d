/*
 * The sampler. See sampler.h.
 *
 * A thread that is about to give up the GVL waits for a signal that is on its way, so that it does
 * not arrive in a system call that the thread may then begin.
 */
#include "vm_trace/streams/samples/sampler.h"
#include "vm_trace/base/clock.h"
#include "vm_trace/base/messages.h"
#include "vm_trace/base/native_thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SIGNAL = SIGURG,
    BLOCK = 256, MOST_BLOCKS = 64, /* slots: 16,384 threads */
    MOST_UNANSWERED = 100      /* looks; then it has the signal blocked, and gets no more until it answers */
};
#define WAIT_NS UINT64_C(1000000) /* for a signal that is on its way */
#define WAKE_NS UINT64_C(100000) /* CPU time of a wait that going to sleep and waking up may take */

static struct {
    struct vm_trace_sampling sampling;
    uint32_t session;          /* number of the sampler that runs or ran last; 0: none yet */
    _Atomic bool on;
    bool running;              /* there is a thread to join */
    bool own_files;            /* its descriptors are not the program's */
    _Atomic bool stop;
    pthread_t thread;
    pthread_mutex_t lock;      /* guards used, and what is free */
    struct vm_trace_wakeup stopped; /* wakes the thread when it is to end */
    struct vm_trace_sampled *_Atomic blocks[MOST_BLOCKS];
    _Atomic uint32_t used;     /* no slot from here on was ever used */
    uint32_t free;             /* slots below that are free: they are searched for */
    uint64_t start_ns, seed;   /* the first period begins, by the clock of the trace; where moments lie in periods */
    uint64_t due_ns;           /* the next look */
    _Atomic uint64_t looked_ns; /* the last one */
    uint64_t late, unhandled;
    uint64_t delay_ns;         /* how long its own thread has waited for a CPU, when it was late last */
    struct sigaction before;
} sampler = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread struct vm_trace_sampled *current;
static __thread uint32_t own_tid;

static uint32_t
thread_id(void)
{
    if (!own_tid) own_tid = rb_vm_trace_platform_thread_id();
    return own_tid;
}

/* --- moments that are due -------------------------------------------------------------------------- */

/* One at random in each period: each moment of the program's time is as likely, whatever rhythm the program has. */
static uint64_t
due_in(uint64_t period)
{
    uint64_t hash = (period ^ sampler.seed) * UINT64_C(0x9E3779B97F4A7C15);
    hash = (hash ^ hash >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    hash ^= hash >> 32;
    return sampler.start_ns + period * sampler.sampling.period_ns +
        (uint64_t)((unsigned __int128)hash * sampler.sampling.period_ns >> 64);
}

static uint64_t
period_of(uint64_t ns)
{
    return ns > sampler.start_ns ? (ns - sampler.start_ns) / sampler.sampling.period_ns : 0;
}

static uint64_t
due_after(uint64_t ns)
{
    uint64_t period = period_of(ns), due_ns = due_in(period);
    return due_ns > ns ? due_ns : due_in(period + 1);
}

/* Take the moments of a thread that were due. Returns how many they are, and the phase that it was in. */
static uint64_t
take_due(struct vm_trace_sampled *thread, uint64_t now_ns, uint32_t *phase_out)
{
    uint64_t due_ns = atomic_load_explicit(&thread->due_ns, memory_order_acquire), next_ns;
    *phase_out = atomic_load_explicit(&thread->phase, memory_order_acquire);
    if (now_ns < due_ns) return 0;
    next_ns = due_after(now_ns);
    /* The phase is read when the moments before it are taken: who changes it takes them before. */
    while (!atomic_compare_exchange_strong(&thread->due_ns, &due_ns, next_ns)) {
        if (now_ns < due_ns) return 0;
        *phase_out = atomic_load_explicit(&thread->phase, memory_order_acquire);
    }
    return period_of(next_ns) - period_of(due_ns);
}

/* --- slots --------------------------------------------------------------------------------------- */

static struct vm_trace_sampled *
slot(uint32_t number)
{
    return &atomic_load_explicit(&sampler.blocks[number / BLOCK], memory_order_acquire)[number % BLOCK];
}

/* Lock held. A slot is nobody's until its phase says otherwise. */
static bool
find_free(uint32_t *number_out)
{
    uint32_t used = atomic_load_explicit(&sampler.used, memory_order_relaxed);
    for (uint32_t i = 0; sampler.free && i < used; i++) {
        if (atomic_load_explicit(&slot(i)->phase, memory_order_acquire) != VM_TRACE_NOBODY) continue;
        sampler.free--;
        *number_out = i;
        return true;
    }
    if (used == BLOCK * MOST_BLOCKS) return false;
    if (!sampler.blocks[used / BLOCK]) {
        struct vm_trace_sampled *block = calloc(BLOCK, sizeof(*block));
        if (!block) return false;
        atomic_store_explicit(&sampler.blocks[used / BLOCK], block, memory_order_release);
    }
    *number_out = used;
    return true;
}

struct vm_trace_sampled *
rb_vm_trace_sampled_find(uint32_t session, uint32_t number)
{
    return session == sampler.session ? slot(number) : NULL;
}

/* All but what is the sampler's own, which may look at it from now on. */
static void
clear(struct vm_trace_sampled *thread)
{
    atomic_store_explicit(&thread->tid, 0, memory_order_relaxed);
    for (size_t i = 0; i < VM_TRACE_CHARGES; i++) {
        atomic_store_explicit(&thread->charged[i].ns, 0, memory_order_relaxed);
        atomic_store_explicit(&thread->charged[i].ticks, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&thread->due_ns, sampler.sampling.cpu ? UINT64_MAX : due_after(rb_vm_trace_clock_system_ns()),
                          memory_order_relaxed);
    atomic_store_explicit(&thread->cpu_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&thread->ran_until_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&thread->without_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&thread->answered, true, memory_order_relaxed); /* what the thread before it did not */
    atomic_fetch_add_explicit(&thread->waits, 1, memory_order_release);
    thread->ractor = NULL;
    thread->ring = NULL;
    thread->collections = 0;
    thread->ec = NULL;
    thread->since_ns = 0;
    thread->computes = false;
    sampled_phase(thread, VM_TRACE_SETTLES);
}

struct vm_trace_sampled *
rb_vm_trace_sampled_of(uint32_t *session, uint32_t *number)
{
    struct vm_trace_sampled *known = rb_vm_trace_sampled_find(*session, *number);
    if (known) return known;
    pthread_mutex_lock(&sampler.lock);
    bool found = find_free(number);
    struct vm_trace_sampled *thread = found ? slot(*number) : NULL;
    if (thread) {
        clear(thread);
        if (*number == atomic_load_explicit(&sampler.used, memory_order_relaxed))
            atomic_store_explicit(&sampler.used, *number + 1, memory_order_release);
        *session = sampler.session;
    }
    pthread_mutex_unlock(&sampler.lock);
    return thread;
}

void
rb_vm_trace_sampled_end(struct vm_trace_sampled *thread)
{
    pthread_mutex_lock(&sampler.lock);
    sampled_phase(thread, VM_TRACE_NOBODY);
    sampler.free++;
    pthread_mutex_unlock(&sampler.lock);
}

void
rb_vm_trace_sampled_each(void (*function)(struct vm_trace_sampled *thread, void *data), void *data)
{
    uint32_t used = atomic_load_explicit(&sampler.used, memory_order_acquire);
    for (uint32_t i = 0; i < used; i++) {
        struct vm_trace_sampled *thread = slot(i);
        if (atomic_load_explicit(&thread->phase, memory_order_acquire) != VM_TRACE_NOBODY) function(thread, data);
    }
}

/* --- CPU time -------------------------------------------------------------------------------------- */

/* What the thread has used since it was charged last. */
static uint64_t
more_cpu_ns(struct vm_trace_sampled *thread, uint32_t tid)
{
    uint64_t now = rb_vm_trace_platform_thread_cpu_ns(tid);
    uint64_t before = atomic_load_explicit(&thread->cpu_ns, memory_order_relaxed);
    if (now <= before) return 0;
    atomic_store_explicit(&thread->cpu_ns, now, memory_order_relaxed);
    return now - before;
}

static void
charge(struct vm_trace_sampled *thread, enum vm_trace_charge to, uint64_t ns)
{
    if (ns) sampled_charge(thread, to, ns, 1);
}

static enum vm_trace_charge
charge_of(uint32_t phase)
{
    static const enum vm_trace_charge charges[] = {
        [VM_TRACE_RUNS] = VM_TRACE_CHARGE_RUNNING, [VM_TRACE_SIGNALLED] = VM_TRACE_CHARGE_RUNNING,
        [VM_TRACE_SETTLES] = VM_TRACE_CHARGE_RUNNING, [VM_TRACE_COLLECTS] = VM_TRACE_CHARGE_GC,
        [VM_TRACE_BLOCKS] = VM_TRACE_CHARGE_BLOCKED, [VM_TRACE_WAITS] = VM_TRACE_CHARGE_WAITING
    };
    return charges[phase];
}

void
rb_vm_trace_sampled_charge_due(struct vm_trace_sampled *thread, uint64_t now_ns)
{
    uint32_t phase;
    uint64_t moments = take_due(thread, now_ns, &phase);
    if (moments) sampled_charge(thread, charge_of(phase), moments * sampler.sampling.period_ns, moments);
}

void
rb_vm_trace_sampled_charge_cpu(struct vm_trace_sampled *thread)
{
    if (!sampler.sampling.cpu) return;
    uint32_t tid = thread_id();
    uint64_t until_ns = atomic_exchange_explicit(&thread->ran_until_ns, 0, memory_order_relaxed);
    if (atomic_load_explicit(&thread->tid, memory_order_relaxed) != tid)
        /* another native thread */
        atomic_store_explicit(&thread->cpu_ns, rb_vm_trace_platform_thread_cpu_ns(tid), memory_order_relaxed);
    else if (!until_ns)
        charge(thread, VM_TRACE_CHARGE_BLOCKED, more_cpu_ns(thread, tid)); /* else the next look has the sum */
    if (!until_ns) until_ns = atomic_load_explicit(&sampler.looked_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&thread->without_ns, rb_vm_trace_clock_system_ns() - until_ns, memory_order_relaxed);
}

void
rb_vm_trace_sampled_see_wait(struct vm_trace_sampled *thread)
{
    uint32_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    uint32_t wait = atomic_load_explicit(&thread->waits, memory_order_acquire);
    if (atomic_load_explicit(&thread->seen_wait, memory_order_relaxed) == wait) return;
    if (atomic_load_explicit(&thread->shares_native, memory_order_relaxed)) return;
    uint64_t cpu_ns = rb_vm_trace_platform_thread_cpu_ns(tid);
    if (atomic_load_explicit(&thread->waits, memory_order_acquire) != wait) return; /* it runs on */
    atomic_store_explicit(&thread->seen_cpu_ns, cpu_ns, memory_order_relaxed);
    atomic_store_explicit(&thread->seen_ns, rb_vm_trace_clock_system_ns(), memory_order_relaxed);
    atomic_store_explicit(&thread->seen_wait, wait, memory_order_release);
}

double
rb_vm_trace_sampled_cpu_share(struct vm_trace_sampled *thread, uint64_t to_ns)
{
    uint32_t wait = atomic_load_explicit(&thread->waits, memory_order_relaxed);
    if (atomic_load_explicit(&thread->seen_wait, memory_order_acquire) != wait) return 0;
    uint64_t from_ns = atomic_load_explicit(&thread->seen_ns, memory_order_relaxed);
    uint64_t cpu_ns = rb_vm_trace_platform_thread_cpu_ns(atomic_load_explicit(&thread->tid, memory_order_relaxed));
    uint64_t before_ns = atomic_load_explicit(&thread->seen_cpu_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&thread->waits, 1, memory_order_release);
    if (to_ns <= from_ns || cpu_ns < before_ns + WAKE_NS) return 0;
    double share = (double)(cpu_ns - before_ns) / (double)(to_ns - from_ns);
    return share < 1 ? share : 1;
}

/*
 * The CPU time of a thread since the look before. It ran with the GVL for at most as long as it had it: that is for its
 * next sample. What is left it took without. Returns whether it ran.
 */
static bool
charge_cpu(struct vm_trace_sampled *thread, uint32_t tid, uint64_t elapsed_ns)
{
    uint64_t without_ns = atomic_exchange_explicit(&thread->without_ns, 0, memory_order_relaxed);
    uint64_t until_ns = atomic_exchange_explicit(&thread->ran_until_ns, 0, memory_order_relaxed);
    if (until_ns) without_ns += rb_vm_trace_clock_system_ns() - until_ns;
    uint64_t ns = more_cpu_ns(thread, tid), ran_ns = elapsed_ns > without_ns ? elapsed_ns - without_ns : 0;
    if (ran_ns > ns) ran_ns = ns;
    charge(thread, VM_TRACE_CHARGE_RUNNING, ran_ns);
    charge(thread, VM_TRACE_CHARGE_BLOCKED, ns - ran_ns);
    return ran_ns > 0;
}

/* --- the sampled threads ----------------------------------------------------------------------------- */

static void
handle(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    int error = errno;
    struct vm_trace_sampled *thread = current;
    if (thread) atomic_store_explicit(&thread->answered, true, memory_order_relaxed);
    if (thread && atomic_load_explicit(&sampler.on, memory_order_acquire) &&
        atomic_load_explicit(&thread->phase, memory_order_acquire) == VM_TRACE_SIGNALLED) {
        sampler.sampling.take(thread, context);
        sampled_phase(thread, VM_TRACE_RUNS);
    }
    errno = error;
}

void
rb_vm_trace_sampled_run(struct vm_trace_sampled *thread)
{
    if (thread) atomic_store_explicit(&thread->tid, thread_id(), memory_order_relaxed);
    current = thread;
    atomic_signal_fence(memory_order_seq_cst);
}

struct vm_trace_sampled *
rb_vm_trace_sampled_current(void)
{
    return current;
}

void
rb_vm_trace_sampled_settle(struct vm_trace_sampled *thread)
{
    uint32_t runs = VM_TRACE_RUNS;
    if (atomic_compare_exchange_strong(&thread->phase, &runs, VM_TRACE_SETTLES)) return;
    uint64_t begin_ns = 0;
    while (runs == VM_TRACE_SIGNALLED) {
        uint64_t now_ns = rb_vm_trace_clock_system_ns();
        if (!begin_ns) begin_ns = now_ns;
        if (now_ns - begin_ns > WAIT_NS) break;
        if (now_ns - begin_ns > WAIT_NS / 10) sched_yield();
        runs = VM_TRACE_RUNS;
        if (atomic_compare_exchange_strong(&thread->phase, &runs, VM_TRACE_SETTLES)) return;
    }
    sampled_phase(thread, VM_TRACE_SETTLES);
}

/* --- the sampler's thread ----------------------------------------------------------------------------- */

/* Without descriptors of the sampler's own, on an older kernel, nothing tells without the program's. */
static enum vm_trace_running
look_whether_it_runs(struct vm_trace_sampled *thread, uint32_t tid)
{
    return sampler.own_files ? rb_vm_trace_platform_thread_running(&thread->file, tid) : VM_TRACE_ON_CPU;
}

static uint64_t
delay_ns_of(uint32_t tid)
{
    return sampler.own_files ? rb_vm_trace_platform_thread_delay_ns(tid) : 0;
}

/* A look at all threads. */
struct look {
    uint64_t now_ns, elapsed_ns; /* since the look before, or since the start */
    bool stopped;              /* since then: the process was stopped, and went on */
    bool handled;              /* the signal's handler is ours */
};

/*
 * How much of the time that is charged now counts as time in which a thread that runs Ruby had no CPU, although it
 * could have used one. Without any CPU time it had none. With less than was possible, the kernel knows how long it
 * waited, but only when it has a CPU again: so what is too much for this look is for the next ones. A thread that was
 * blocked, and runs again, has not waited.
 */
static uint64_t
time_without_cpu(struct vm_trace_sampled *thread, uint32_t tid, const struct look *look, uint64_t charged_ns)
{
    if (thread->cpu_tid != tid) { /* another native thread: nothing to compare with */
        thread->cpu_tid = tid;
        thread->delay_ns = delay_ns_of(tid);
        atomic_store_explicit(&thread->cpu_ns, rb_vm_trace_platform_thread_cpu_ns(tid), memory_order_relaxed);
        return 0;
    }
    uint64_t ran_ns = more_cpu_ns(thread, tid), without_ns = charged_ns;
    if (look->stopped) return ran_ns < charged_ns ? charged_ns - ran_ns : 0;
    if (ran_ns) {
        thread->delayed |= ran_ns < look->elapsed_ns - look->elapsed_ns / 8;
        if (!thread->delayed) return 0;
        uint64_t delay_ns = delay_ns_of(tid);
        without_ns = delay_ns > thread->delay_ns ? delay_ns - thread->delay_ns : 0;
        thread->delayed = without_ns > charged_ns;
        if (without_ns > charged_ns) without_ns = charged_ns;
    }
    else {
        thread->delayed = true;
    }
    thread->delay_ns += without_ns;
    return without_ns;
}

/* The program may have a handler of its own by now. */
static bool
handled_by_us_p(void)
{
    struct sigaction now;
    return sigaction(SIGNAL, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == handle;
}

static void
signal_thread(struct vm_trace_sampled *thread, uint32_t tid)
{
    uint32_t runs = VM_TRACE_RUNS;
    if (thread->unanswered > MOST_UNANSWERED) return;
    if (!atomic_compare_exchange_strong(&thread->phase, &runs, VM_TRACE_SIGNALLED)) return;
    if (rb_vm_trace_platform_signal_thread(tid, SIGNAL)) return;
    uint32_t signalled = VM_TRACE_SIGNALLED; /* else it has gone on without it */
    atomic_compare_exchange_strong(&thread->phase, &signalled, VM_TRACE_RUNS);
}

/* Charge wall-clock time to one that runs Ruby. Returns whether there is any that its next sample is to have. */
static bool
charge_running(struct vm_trace_sampled *thread, uint32_t tid, const struct look *look, enum vm_trace_running running,
               uint64_t moments)
{
    uint64_t ns = moments * sampler.sampling.period_ns, without_ns = 0;
    if (look->stopped) { /* it may have gone on before the sampler did */
        struct vm_trace_charged before = sampled_take(thread, VM_TRACE_CHARGE_RUNNING);
        ns += before.ns;
        moments += before.ticks;
    }
    if (!ns) return atomic_load_explicit(&thread->charged[VM_TRACE_CHARGE_RUNNING].ns, memory_order_relaxed) > 0;
    without_ns = running == VM_TRACE_ON_CPU ? time_without_cpu(thread, tid, look, ns) : ns;
    if (without_ns < ns) sampled_charge(thread, VM_TRACE_CHARGE_RUNNING, ns - without_ns, moments);
    if (without_ns) sampled_charge(thread, VM_TRACE_CHARGE_NO_CPU, without_ns, without_ns < ns ? 0 : moments);
    return true;
}

/* At one that runs Ruby, or should: it may have no CPU, or sleep in the kernel with the GVL. */
static void
look_at_running(struct vm_trace_sampled *thread, const struct look *look, bool signalled, uint64_t moments)
{
    uint32_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    if (atomic_exchange_explicit(&thread->answered, false, memory_order_relaxed)) thread->unanswered = 0;
    if (sampler.sampling.cpu && !charge_cpu(thread, tid, look->elapsed_ns)) return; /* it did not run */
    enum vm_trace_running running = look_whether_it_runs(thread, tid);
    if (!sampler.sampling.cpu && !charge_running(thread, tid, look, running, moments)) return;
    if (!look->handled) {
        uint32_t on_its_way = VM_TRACE_SIGNALLED; /* to the program's own handler */
        atomic_compare_exchange_strong(&thread->phase, &on_its_way, VM_TRACE_RUNS);
        sampler.unhandled++;
    }
    else if (signalled) {
        thread->unanswered += running == VM_TRACE_ON_CPU;
    }
    else if (running != VM_TRACE_ASLEEP) {
        signal_thread(thread, tid);
    }
}

static void
look_at(struct vm_trace_sampled *thread, const struct look *look)
{
    uint32_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed), phase;
    uint64_t moments = take_due(thread, look->now_ns, &phase);
    switch (phase) {
      case VM_TRACE_NOBODY:
        rb_vm_trace_platform_thread_file_close(&thread->file);
        return;
      case VM_TRACE_RUNS:
      case VM_TRACE_SIGNALLED:
        look_at_running(thread, look, phase == VM_TRACE_SIGNALLED, moments);
        return;
      case VM_TRACE_SETTLES:
      case VM_TRACE_COLLECTS:
        if (sampler.sampling.cpu) charge(thread, charge_of(phase), more_cpu_ns(thread, tid));
        break;
      default: /* without the GVL */
        if (sampler.sampling.cpu && atomic_load_explicit(&thread->ran_until_ns, memory_order_relaxed))
            charge_cpu(thread, tid, look->elapsed_ns);
        if (moments && phase == VM_TRACE_BLOCKS) rb_vm_trace_sampled_see_wait(thread);
        break;
    }
    if (moments) sampled_charge(thread, charge_of(phase), moments * sampler.sampling.period_ns, moments);
}

/* Or until the sampler is to end. */
static void
sleep_for(uint64_t ns)
{
    rb_vm_trace_wakeup_wait(&sampler.stopped, clock_ns_of(CLOCK_MONOTONIC) + ns);
}

/* How long the sampler's thread has waited for a CPU since it was late before. */
static uint64_t
own_delay_ns(void)
{
    uint64_t before_ns = sampler.delay_ns;
    sampler.delay_ns = delay_ns_of(thread_id());
    return sampler.delay_ns - before_ns;
}

/* Begin a look, and count the periods that were missed: of which the moment is a period ago, or more. */
static struct look
begin_look(void)
{
    uint64_t now_ns = rb_vm_trace_clock_system_ns(), period_ns = sampler.sampling.period_ns;
    uint64_t before_ns = atomic_load_explicit(&sampler.looked_ns, memory_order_relaxed);
    struct look look = { .now_ns = now_ns, .elapsed_ns = now_ns > before_ns ? now_ns - before_ns : 0 };
    if (now_ns >= sampler.due_ns + period_ns)
        sampler.late += period_of(due_after(now_ns - period_ns)) - period_of(sampler.due_ns);
    look.stopped = look.elapsed_ns >= 4 * period_ns && own_delay_ns() < look.elapsed_ns / 2;
    sampler.due_ns = due_after(now_ns);
    atomic_store_explicit(&sampler.looked_ns, now_ns, memory_order_relaxed);
    return look;
}

static void *
run(void *ignored)
{
    (void)ignored;
    native_thread_name();
    /* Its files are in a table of its own: the program's descriptors are as they would be. */
    sampler.own_files = rb_vm_trace_platform_begin_sampling();
    for (;;) {
        uint64_t now_ns = rb_vm_trace_clock_system_ns();
        if (now_ns < sampler.due_ns) sleep_for(sampler.due_ns - now_ns);
        if (atomic_load_explicit(&sampler.stop, memory_order_acquire)) break;
        struct look look = begin_look();
        look.handled = handled_by_us_p();
        uint32_t used = atomic_load_explicit(&sampler.used, memory_order_acquire);
        for (uint32_t i = 0; i < used; i++) look_at(slot(i), &look);
    }
    return NULL;
}

/* --- the session ------------------------------------------------------------------------------------ */

/* NULL, or why the signal can't be used. */
static const char *
install_handler(void)
{
    struct sigaction handler = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
    sigemptyset(&handler.sa_mask);
    if (sigaction(SIGNAL, NULL, &sampler.before) != 0) return strerror(errno);
    bool free = !(sampler.before.sa_flags & SA_SIGINFO) &&
        (sampler.before.sa_handler == SIG_DFL || sampler.before.sa_handler == SIG_IGN);
    if (!free) return "the program handles the signal SIGURG, which samples need";
    return sigaction(SIGNAL, &handler, NULL) == 0 ? NULL : strerror(errno);
}

const char *
rb_vm_trace_sampler_start(const struct vm_trace_sampling *sampling)
{
    if (sampler.running) return NULL;
    rb_vm_trace_sampler_forget();
    sampler.sampling = *sampling;
    sampler.session++;
    sampler.late = sampler.unhandled = 0;
    sampler.delay_ns = 0; /* its thread is new */
    sampler.start_ns = rb_vm_trace_clock_system_ns(); /* not when its thread first gets a CPU */
    sampler.seed = sampler.start_ns;
    sampler.due_ns = due_after(sampler.start_ns);
    atomic_store(&sampler.looked_ns, sampler.start_ns);
    atomic_store(&sampler.stop, false);
    rb_vm_trace_wakeup_init(&sampler.stopped);
    const char *why = install_handler();
    if (why) return why;
    atomic_store(&sampler.on, true);
    int error = native_thread_start(&sampler.thread, run, NULL);
    sampler.running = error == 0;
    if (!error) return NULL;
    rb_vm_trace_sampler_stop();
    return strerror(error);
}

void
rb_vm_trace_sampler_stop(void)
{
    if (sampler.running) {
        atomic_store_explicit(&sampler.stop, true, memory_order_release);
        rb_vm_trace_wakeup_post(&sampler.stopped);
        pthread_join(sampler.thread, NULL);
        begin_look(); /* a thread that has got no CPU has missed all */
        sampler.running = false;
    }
    if (!atomic_load(&sampler.on)) return;
    atomic_store_explicit(&sampler.on, false, memory_order_release);
    /* A signal that is still on its way is ignored then. */
    if (handled_by_us_p()) sigaction(SIGNAL, &sampler.before, NULL);
}

void
rb_vm_trace_sampler_after_fork(void)
{
    own_tid = 0;
    current = NULL;
    pthread_mutex_init(&sampler.lock, NULL);
    sampler.running = false;
    rb_vm_trace_sampler_stop();
}

void
rb_vm_trace_sampler_forget(void)
{
    if (sampler.running) return;
    current = NULL; /* of the thread that has ended the session; others have given up the GVL since */
    uint32_t used = atomic_load(&sampler.used);
    atomic_store(&sampler.used, 0);
    sampler.free = 0;
    for (uint32_t i = 0; i < used; i++) {
        sampled_phase(slot(i), VM_TRACE_NOBODY);
        slot(i)->file.fd_and_1 = 0; /* they have gone with the sampler's thread */
    }
}

uint64_t
rb_vm_trace_sampler_late(void)
{
    return sampler.late;
}

uint64_t
rb_vm_trace_sampler_unhandled(void)
{
    return sampler.unhandled;
}
