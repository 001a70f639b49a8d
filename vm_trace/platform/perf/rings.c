/*
 * Rings of perf_event_open(2). See rings.h.
 *
 * An event that is inherited needs a ring for each CPU, for its copies write at once. So there is an
 * event for each thread and CPU, and all of a CPU share the ring of the first one.
 *
 * That a thread gets or loses a CPU is in records of its own events. Who wakes it, and what else runs
 * on that CPU, is in tracepoints, which need not be hit by one of our threads: so these are events of
 * a CPU, which the kernel filters by a range of thread ids, and we by the threads that we know. They
 * need a privilege, and some kernels do not hit them on an idle CPU. So nothing else depends on them.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* prlimit, syscall */
#endif
#include "vm_trace/platform/perf/rings.h"
#include "vm_trace/platform/perf/refusal.h"
#include "vm_trace/platform/perf/support.h"
#include "vm_trace/platform/perf/tracefs.h"

#if PERF_SUPPORTED

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
# define SYS_close_range 436
#endif
#define COUNT_LOST (UINT64_C(1) << 4) /* PERF_FORMAT_LOST, since Linux 6.0 */
#define UNSHARE_TABLE 2U /* CLOSE_RANGE_UNSHARE of linux/close_range.h, which older headers lack */

enum {
    MOST_PAGES = 512,          /* of a ring: 2 MiB; less where that may not be locked into memory, */
    ALL_PAGES = 1 << 14,       /* and of all: 64 MiB */
    LEAST_PAGES = 8,
    MOST_RECORD_BYTES = 512,   /* none of ours is longer */
    WAKE_SIGNAL = SIGURG,      /* blocked in our thread; ignored in all others */
    READER_NICENESS = -10,
    SPARE_IDS = 4096,          /* new threads within so many ids are let through by the filter that is there */
    PARANOID_CALLS = 1, PARANOID_SWITCHES = 2 /* highest kernel.perf_event_paranoid that allows it */
};
#define UNSETTLED_NS UINT64_C(1000000)

struct ring {
    unsigned cpu;
    int fd;                    /* of the event that the ring belongs to */
    int filtered[2];           /* events of the CPU; -1: none */
    struct perf_event_mmap_page *page; /* the ring lies behind it */
    uint64_t head, tail;       /* while it is read */
    const struct perf_event_header *record; /* at tail, in one piece; NULL: there is none */
    uint64_t ns;               /* its time */
    unsigned char wrapped[MOST_RECORD_BYTES];
};

struct event {
    int fd;
    bool first;                /* of two that make one event: only what the second one loses is counted */
};

struct rb_vm_trace_perf {
    unsigned what;
    bool of_cpus;              /* there are events of CPUs */
    bool counts_lost;          /* events count what they lost */
    struct vm_trace_tracepoints tracepoints;
    struct ring *rings;
    size_t ring_count;
    size_t pages;
    struct pollfd *polled;     /* of rings, then the signal */
    struct event *events;      /* all others */
    size_t event_count, event_capacity;
    uint64_t unattached;
    uint64_t lost_records;     /* that records of the rings tell of */
    uint64_t namespace_ns;     /* our CLOCK_MONOTONIC - the kernel's, which is that of records */
    uint64_t boottime_ns;      /* CLOCK_BOOTTIME - the kernel's CLOCK_MONOTONIC */
    uint32_t *threads;         /* that we know, in order */
    size_t thread_count, thread_capacity;
    uint32_t filter_from, filter_to;
};

/* --- events ---------------------------------------------------------------------------------------- */

/*
 * CLOCK_MONOTONIC is what perf reads fast and in any context, and what differs from CLOCK_BOOTTIME
 * only by the time of suspends.
 */
static struct perf_event_attr
attributes(const struct rb_vm_trace_perf *perf, enum vm_trace_tracepoint tracepoint)
{
    struct perf_event_attr attr = { .size = sizeof(attr),
                                    .type = PERF_TYPE_SOFTWARE,
                                    .config = PERF_COUNT_SW_DUMMY,
                                    .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
                                    .sample_id_all = 1,
                                    .watermark = 1,
                                    .wakeup_watermark = (uint32_t)(perf->pages * (size_t)getpagesize() / 4),
                                    .use_clockid = 1,
                                    .read_format = perf->counts_lost ? COUNT_LOST : 0,
                                    .clockid = CLOCK_MONOTONIC };
    if (tracepoint == VM_TRACE_TRACEPOINTS) {
        attr.exclude_kernel = 1;
        return attr;
    }
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = (uint64_t)perf->tracepoints.id[tracepoint];
    attr.sample_period = 1;
    attr.sample_type |= PERF_SAMPLE_RAW;
    return attr;
}

static int
open_event(struct perf_event_attr *attr, pid_t tid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/*
 * The event of a thread on a CPU, and what its threads inherit. VM_TRACE_TRACEPOINTS: that of begins, ends,
 * names and switches.
 */
static int
open_inherited(const struct rb_vm_trace_perf *perf, enum vm_trace_tracepoint tracepoint, pid_t tid, unsigned cpu)
{
    struct perf_event_attr attr = attributes(perf, tracepoint);
    attr.inherit = attr.inherit_thread = 1;
    if (tracepoint == VM_TRACE_TRACEPOINTS) {
        attr.task = attr.comm = 1;
        attr.context_switch = (perf->what & VM_TRACE_PERF_CPUS) != 0;
    }
    return open_event(&attr, tid, (int)cpu);
}

/* --- refusals -------------------------------------------------------------------------------------- */

static unsigned
tracepoints_of(unsigned what)
{
    return what & VM_TRACE_PERF_SYSCALLS ? 1U << VM_TRACE_SYS_ENTER | 1U << VM_TRACE_SYS_EXIT : 0;
}

const char *
rb_vm_trace_perf_refused(unsigned what)
{
    struct rb_vm_trace_perf perf = { .what = what, .pages = LEAST_PAGES };
    bool calls = what & VM_TRACE_PERF_SYSCALLS;
    int paranoid = calls ? PARANOID_CALLS : PARANOID_SWITCHES;
    struct perf_event_attr attr = attributes(&perf, VM_TRACE_TRACEPOINTS);
    attr.exclude_kernel = !calls;
    int fd = open_event(&attr, 0, -1);
    if (fd < 0) return rb_vm_trace_perf_refusal(0, errno, paranoid);
    close(fd);
    int error = rb_vm_trace_tracefs_find(tracepoints_of(what), &perf.tracepoints);
    if (error) return rb_vm_trace_perf_refusal(error, 0, paranoid);
    attr = attributes(&perf, calls ? VM_TRACE_SYS_ENTER : VM_TRACE_TRACEPOINTS);
    attr.inherit = attr.inherit_thread = 1;
    fd = open_event(&attr, 0, -1);
    if (fd < 0 && errno == EINVAL) return "it needs Linux 5.13 or newer";
    if (fd < 0) return rb_vm_trace_perf_refusal(0, errno, paranoid);
    close(fd);
    return NULL;
}

/* --- threads that we know ------------------------------------------------------------------------ */

/* Index of the first one that is not less. */
static size_t
place_of(const struct rb_vm_trace_perf *perf, uint32_t tid)
{
    size_t low = 0, high = perf->thread_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (perf->threads[middle] < tid) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool
ours_p(const void *data, uint32_t tid)
{
    const struct rb_vm_trace_perf *perf = data;
    size_t place = place_of(perf, tid);
    return place < perf->thread_count && perf->threads[place] == tid;
}

static void
set_filter(struct rb_vm_trace_perf *perf)
{
    char switches[160], wakings[64];
    unsigned from = perf->filter_from, to = perf->filter_to;
    snprintf(switches, sizeof(switches),
             "(prev_pid >= %u && prev_pid <= %u) || (next_pid >= %u && next_pid <= %u)", from, to, from, to);
    snprintf(wakings, sizeof(wakings), "pid >= %u && pid <= %u", from, to);
    for (size_t i = 0; i < perf->ring_count; i++) {
        const int *filtered = perf->rings[i].filtered;
        /* Without it there are more records. */
        if (filtered[0] >= 0) ioctl(filtered[0], PERF_EVENT_IOC_SET_FILTER, switches);
        if (filtered[1] >= 0) ioctl(filtered[1], PERF_EVENT_IOC_SET_FILTER, wakings);
    }
}

static void
widen_filter(struct rb_vm_trace_perf *perf, uint32_t tid)
{
    bool first = perf->filter_to == 0;
    if (!first && tid >= perf->filter_from && tid <= perf->filter_to) return;
    if (first || tid < perf->filter_from) perf->filter_from = tid;
    if (tid + SPARE_IDS > perf->filter_to) perf->filter_to = tid + SPARE_IDS;
    if (perf->of_cpus) set_filter(perf);
}

static void
know_thread(struct rb_vm_trace_perf *perf, uint32_t tid)
{
    size_t place = place_of(perf, tid);
    if (place < perf->thread_count && perf->threads[place] == tid) return;
    if (perf->thread_count == perf->thread_capacity) {
        size_t capacity = perf->thread_capacity ? 2 * perf->thread_capacity : 64;
        uint32_t *grown = realloc(perf->threads, capacity * sizeof(*grown));
        if (!grown) return;
        perf->threads = grown;
        perf->thread_capacity = capacity;
    }
    memmove(&perf->threads[place + 1], &perf->threads[place], (perf->thread_count - place) * sizeof(*perf->threads));
    perf->threads[place] = tid;
    perf->thread_count++;
    widen_filter(perf, tid);
}

static void
forget_thread(struct rb_vm_trace_perf *perf, uint32_t tid)
{
    size_t place = place_of(perf, tid);
    if (place == perf->thread_count || perf->threads[place] != tid) return;
    perf->thread_count--;
    memmove(&perf->threads[place], &perf->threads[place + 1], (perf->thread_count - place) * sizeof(*perf->threads));
}

/* --- open and close -------------------------------------------------------------------------------- */

static bool
keep_event(struct rb_vm_trace_perf *perf, struct event event)
{
    if (perf->event_count == perf->event_capacity) {
        size_t capacity = perf->event_capacity ? 2 * perf->event_capacity : 64;
        struct event *grown = realloc(perf->events, capacity * sizeof(*grown));
        if (!grown) return false;
        perf->events = grown;
        perf->event_capacity = capacity;
    }
    perf->events[perf->event_count++] = event;
    return true;
}

/* An event of a thread that writes into the ring. 0, or an errno. */
static int
add_event(struct rb_vm_trace_perf *perf, const struct ring *ring, enum vm_trace_tracepoint tracepoint, pid_t tid)
{
    struct event event = { open_inherited(perf, tracepoint, tid, ring->cpu), tracepoint == VM_TRACE_SYS_ENTER };
    if (event.fd < 0) return errno;
    if (ioctl(event.fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) == 0 && keep_event(perf, event)) return 0;
    int error = errno ? errno : ENOMEM;
    close(event.fd);
    return error;
}

static void
attach_thread(struct rb_vm_trace_perf *perf, pid_t tid)
{
    int error = 0;
    for (size_t i = 0; i < perf->ring_count && !error; i++) {
        const struct ring *ring = &perf->rings[i];
        /* Tracepoints first: a thread that it creates meanwhile is not taken for a whole one. */
        if (perf->what & VM_TRACE_PERF_SYSCALLS) {
            error = add_event(perf, ring, VM_TRACE_SYS_ENTER, tid);
            if (!error) error = add_event(perf, ring, VM_TRACE_SYS_EXIT, tid);
        }
        if (!error && tid != getpid()) /* that one has the ring */
            error = add_event(perf, ring, VM_TRACE_TRACEPOINTS, tid);
    }
    if (!error) know_thread(perf, (uint32_t)tid);
    else if (error != ESRCH) perf->unattached++; /* else it has ended */
}

static void
attach_threads(struct rb_vm_trace_perf *perf)
{
    pid_t self = (pid_t)syscall(SYS_gettid);
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) {
        perf->unattached++;
        return;
    }
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && tid != self) attach_thread(perf, tid);
    }
    closedir(tasks);
}

/* The ring of a CPU. 0, or an errno; ENODEV: the CPU is offline. */
static int
open_ring(struct rb_vm_trace_perf *perf, struct ring *ring)
{
    ring->filtered[0] = ring->filtered[1] = -1;
    for (;;) {
        size_t bytes = (perf->pages + 1) * (size_t)getpagesize();
        ring->fd = open_inherited(perf, VM_TRACE_TRACEPOINTS, getpid(), ring->cpu);
        if (ring->fd < 0) return errno;
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
        int error = errno;
        if (at != MAP_FAILED) {
            ring->page = at;
            return 0;
        }
        close(ring->fd);
        /* All have the same size. */
        if ((error != EPERM && error != ENOMEM) || perf->pages <= LEAST_PAGES || perf->ring_count > 0) return error;
        perf->pages /= 2;
    }
}

static int
open_rings(struct rb_vm_trace_perf *perf)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    while (perf->pages > LEAST_PAGES && perf->pages * (size_t)cpus > ALL_PAGES) perf->pages /= 2;
    perf->rings = calloc((size_t)cpus, sizeof(*perf->rings));
    perf->polled = calloc((size_t)cpus + 1, sizeof(*perf->polled));
    if (!perf->rings || !perf->polled) return ENOMEM;
    for (long cpu = 0; cpu < cpus; cpu++) {
        struct ring *ring = &perf->rings[perf->ring_count];
        ring->cpu = (unsigned)cpu;
        int error = open_ring(perf, ring);
        if (error == ENODEV) continue;
        if (error) return error;
        perf->polled[perf->ring_count++] = (struct pollfd){ .fd = ring->fd, .events = POLLIN };
    }
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, WAKE_SIGNAL);
    int fd = signalfd(-1, &wake, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) return errno;
    perf->polled[perf->ring_count] = (struct pollfd){ .fd = fd, .events = POLLIN };
    return perf->ring_count > 0 ? 0 : ENODEV;
}

/* What the namespace of clocks adds. A process that has left its namespace by unshare(2) reads that of its children. */
static uint64_t
read_namespace(void)
{
    static const char NAME[] = "monotonic";
    struct stat own, of_children;
    char text[256], *end;
    int fd = open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    bool known = stat("/proc/self/ns/time", &own) == 0 && stat("/proc/self/ns/time_for_children", &of_children) == 0 &&
                 own.st_ino == of_children.st_ino && strncmp(text, NAME, strlen(NAME)) == 0;
    if (!known) return 0;
    long long seconds = strtoll(text + strlen(NAME), &end, 10);
    return (uint64_t)(seconds * 1000000000LL + strtoll(end, NULL, 10));
}

/* Whether thread ids of tracepoints, which are those of the first namespace, are ours. */
static bool
first_namespace_p(void)
{
    static const char FIRST[] = "pid:[4026531836]"; /* PROC_PID_INIT_INO */
    char text[64] = "";
    ssize_t n = readlink("/proc/self/ns/pid", text, sizeof(text) - 1);
    return n == (ssize_t)strlen(FIRST) && memcmp(text, FIRST, (size_t)n) == 0;
}

static int
open_filtered(const struct rb_vm_trace_perf *perf, const struct ring *ring, enum vm_trace_tracepoint tracepoint)
{
    struct perf_event_attr attr = attributes(perf, tracepoint);
    attr.disabled = 1; /* until it has a filter */
    int fd = open_event(&attr, -1, (int)ring->cpu);
    if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void
close_filtered(struct ring *ring)
{
    for (int i = 0; i < 2; i++) {
        if (ring->filtered[i] >= 0) close(ring->filtered[i]);
        ring->filtered[i] = -1;
    }
}

/* Events of CPUs, where this process may have them. */
static void
open_cpu_events(struct rb_vm_trace_perf *perf)
{
    for (size_t i = 0; i < perf->ring_count; i++) {
        struct ring *ring = &perf->rings[i];
        ring->filtered[0] = open_filtered(perf, ring, VM_TRACE_SCHED_SWITCH);
        ring->filtered[1] = open_filtered(perf, ring, VM_TRACE_SCHED_WAKING);
        if (ring->filtered[0] >= 0 && ring->filtered[1] >= 0) continue;
        for (size_t j = 0; j <= i; j++) close_filtered(&perf->rings[j]);
        perf->of_cpus = false;
        return;
    }
}

static void
enable_cpu_events(struct rb_vm_trace_perf *perf)
{
    for (size_t i = 0; i < perf->ring_count; i++) {
        for (int j = 0; j < 2; j++) ioctl(perf->rings[i].filtered[j], PERF_EVENT_IOC_ENABLE, 0);
    }
}

/* Where this process may not have them, there are none. */
static bool
cpu_events_allowed_p(struct rb_vm_trace_perf *perf)
{
    struct vm_trace_tracepoints all;
    unsigned wanted = tracepoints_of(perf->what) | 1U << VM_TRACE_SCHED_SWITCH | 1U << VM_TRACE_SCHED_WAKING;
    if (!(perf->what & VM_TRACE_PERF_CPUS) || !first_namespace_p() || rb_vm_trace_tracefs_find(wanted, &all) != 0)
        return false;
    perf->tracepoints = all;
    return true;
}

static int
own_table(int keep_fd)
{
    if (keep_fd < 3) return syscall(SYS_close_range, 3U, ~0U, UNSHARE_TABLE) == 0 ? 0 : errno;
    if (syscall(SYS_close_range, (unsigned)keep_fd + 1, ~0U, UNSHARE_TABLE) != 0) return errno;
    if (keep_fd > 3) syscall(SYS_close_range, 3U, (unsigned)keep_fd - 1, 0U);
    return 0;
}

/* Whether this kernel knows COUNT_LOST. */
static bool
counts_lost_p(struct rb_vm_trace_perf *perf)
{
    perf->counts_lost = true;
    struct perf_event_attr attr = attributes(perf, VM_TRACE_TRACEPOINTS);
    int fd = open_event(&attr, 0, -1);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static int
open_all(struct rb_vm_trace_perf *perf)
{
    int error = rb_vm_trace_tracefs_find(tracepoints_of(perf->what), &perf->tracepoints);
    if (error) return error;
    perf->pages = MOST_PAGES;
    perf->counts_lost = counts_lost_p(perf);
    perf->of_cpus = cpu_events_allowed_p(perf);
    perf->namespace_ns = read_namespace();
    error = open_rings(perf);
    if (error) return error;
    if (perf->of_cpus) open_cpu_events(perf);
    attach_threads(perf);
    if (perf->of_cpus) {
        set_filter(perf);
        enable_cpu_events(perf);
    }
    return 0;
}

/* Descriptors that are needed at most, with some for what is read meanwhile. */
static rlim_t
descriptors_needed(unsigned what)
{
    enum { OTHERS = 16, OF_CPU = 3 };
    struct stat tasks;
    rlim_t cpus = (rlim_t)sysconf(_SC_NPROCESSORS_CONF), of_thread = what & VM_TRACE_PERF_SYSCALLS ? 3 : 1;
    rlim_t threads = stat("/proc/self/task", &tasks) == 0 ? (rlim_t)tasks.st_nlink : 0;
    return OTHERS + cpus * (OF_CPU + threads * of_thread);
}

/*
 * Raise the soft limit if many threads on many CPUs need more. It is the process's, and its children inherit it: so
 * it is left alone in most programs. False: it was.
 */
static bool
raise_limit(rlim_t needed, struct rlimit *before_out, struct rlimit *raised_out)
{
    if (getrlimit(RLIMIT_NOFILE, before_out) != 0 || before_out->rlim_cur >= needed) return false;
    *raised_out = *before_out;
    raised_out->rlim_cur = needed < before_out->rlim_max ? needed : before_out->rlim_max;
    return raised_out->rlim_cur > before_out->rlim_cur && setrlimit(RLIMIT_NOFILE, raised_out) == 0;
}

/* It counts only when a descriptor is made. What the program has set meanwhile stays. */
static void
lower_limit(const struct rlimit *raised, const struct rlimit *before)
{
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == raised->rlim_cur && now.rlim_max == raised->rlim_max)
        setrlimit(RLIMIT_NOFILE, before);
}

struct rb_vm_trace_perf *
rb_vm_trace_perf_open(unsigned what, int keep_fd, int *error_out)
{
    *error_out = own_table(keep_fd);
    struct rb_vm_trace_perf *perf = *error_out ? NULL : calloc(1, sizeof(*perf));
    if (!perf) {
        if (!*error_out) *error_out = ENOMEM;
        return NULL;
    }
    perf->what = what;
    struct rlimit before, raised;
    bool limited = raise_limit(descriptors_needed(what), &before, &raised);
    *error_out = open_all(perf);
    /* Rings fill up while all CPUs are busy. Where this is not allowed, more is lost then. */
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), READER_NICENESS);
    if (limited) lower_limit(&raised, &before);
    if (!*error_out) return perf;
    rb_vm_trace_perf_close(perf);
    return NULL;
}

void
rb_vm_trace_perf_close(struct rb_vm_trace_perf *perf)
{
    for (size_t i = 0; i < perf->event_count; i++) close(perf->events[i].fd);
    for (size_t i = 0; i < perf->ring_count; i++) {
        struct ring *ring = &perf->rings[i];
        close_filtered(ring);
        munmap(ring->page, (perf->pages + 1) * (size_t)getpagesize());
        close(ring->fd);
    }
    if (perf->polled && perf->polled[perf->ring_count].fd > 0) close(perf->polled[perf->ring_count].fd);
    free(perf->rings);
    free(perf->polled);
    free(perf->events);
    free(perf->threads);
    free(perf);
}

uint64_t
rb_vm_trace_perf_unattached(const struct rb_vm_trace_perf *perf)
{
    return perf->unattached;
}

/* --- reading ------------------------------------------------------------------------------------ */

static uint64_t
now_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static uint64_t
read_boottime(void)
{
    uint64_t best = UINT64_MAX, width = UINT64_MAX;
    for (int i = 0; i < 3; i++) { /* we may be interrupted in between */
        uint64_t before = now_ns(CLOCK_MONOTONIC), boottime = now_ns(CLOCK_BOOTTIME), after = now_ns(CLOCK_MONOTONIC);
        if (after - before >= width) continue;
        width = after - before;
        best = boottime - (before + width / 2);
    }
    return best;
}

/* The difference changes only by a suspend; what else is seen is how long the reading took. */
static void
update_boottime(struct rb_vm_trace_perf *perf)
{
    enum { READING_NS = 100000 };
    uint64_t ns = read_boottime() + perf->namespace_ns;
    if (!perf->boottime_ns || ns > perf->boottime_ns + READING_NS || ns + READING_NS < perf->boottime_ns)
        perf->boottime_ns = ns;
}

/* Find the record at the tail, in one piece. */
static void
look_at_tail(const struct rb_vm_trace_perf *perf, struct ring *ring)
{
    size_t bytes = perf->pages * (size_t)getpagesize(), at = ring->tail % bytes;
    const unsigned char *data = (const unsigned char *)ring->page + getpagesize();
    const struct perf_event_header *header = (const void *)(data + at);
    ring->record = NULL;
    ring->ns = UINT64_MAX;
    if (ring->tail >= ring->head) return;
    if (header->size < sizeof(*header) || header->size > sizeof(ring->wrapped)) { /* none of ours */
        ring->tail = ring->head;
        return;
    }
    if (at + header->size > bytes) {
        size_t first = bytes - at;
        memcpy(ring->wrapped, data + at, first);
        memcpy(ring->wrapped + first, data, header->size - first);
        header = (const void *)ring->wrapped;
    }
    ring->record = header;
    ring->ns = rb_vm_trace_perf_record_ns(header, header->size);
}

static void
give_record(struct rb_vm_trace_perf *perf, struct vm_trace_perf_record *record,
            void (*function)(void *data, const struct vm_trace_perf_record *record), void *data)
{
    record->ns += perf->boottime_ns;
    if (record->kind == VM_TRACE_PERF_LOST) perf->lost_records += record->lost;
    if (record->kind == VM_TRACE_PERF_BEGUN) know_thread(perf, record->tid);
    function(data, record);
    if (record->kind == VM_TRACE_PERF_ENDED) forget_thread(perf, record->tid);
}

size_t
rb_vm_trace_perf_read(struct rb_vm_trace_perf *perf, bool all,
                      void (*function)(void *data, const struct vm_trace_perf_record *record), void *data)
{
    size_t count = 0;
    update_boottime(perf);
    uint64_t until = all ? UINT64_MAX : now_ns(CLOCK_MONOTONIC) - perf->namespace_ns - UNSETTLED_NS;
    for (size_t i = 0; i < perf->ring_count; i++) {
        struct ring *ring = &perf->rings[i];
        ring->tail = ring->page->data_tail;
        ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
        look_at_tail(perf, ring);
    }
    for (;; count++) {
        struct ring *first = &perf->rings[0];
        for (size_t i = 1; i < perf->ring_count; i++) {
            if (perf->rings[i].ns < first->ns) first = &perf->rings[i];
        }
        if (first->ns >= until) break;
        const struct perf_event_header *header = first->record;
        struct vm_trace_perf_record record, second;
        if (rb_vm_trace_perf_decode(&perf->tracepoints, header, header->size, ours_p, perf, &record, &second)) {
            give_record(perf, &record, function, data);
            if (second.kind != VM_TRACE_PERF_UNKNOWN) give_record(perf, &second, function, data);
        }
        first->tail += header->size; /* before the next one is looked at, which may take its place in `wrapped` */
        look_at_tail(perf, first);
        enum { GIVE_BACK_EACH = 256 };
        if (count % GIVE_BACK_EACH == 0) __atomic_store_n(&first->page->data_tail, first->tail, __ATOMIC_RELEASE);
    }
    for (size_t i = 0; i < perf->ring_count; i++)
        __atomic_store_n(&perf->rings[i].page->data_tail, perf->rings[i].tail, __ATOMIC_RELEASE);
    return count;
}

static uint64_t
lost_by(int fd)
{
    struct {
        uint64_t value, lost;
    } counts;
    return read(fd, &counts, sizeof(counts)) == sizeof(counts) ? counts.lost : 0;
}

uint64_t
rb_vm_trace_perf_lost(const struct rb_vm_trace_perf *perf)
{
    uint64_t lost = 0;
    if (!perf->counts_lost) return perf->lost_records;
    for (size_t i = 0; i < perf->event_count; i++) {
        if (!perf->events[i].first) lost += lost_by(perf->events[i].fd);
    }
    for (size_t i = 0; i < perf->ring_count; i++) lost += lost_by(perf->rings[i].fd);
    return lost;
}

void
rb_vm_trace_perf_wait(struct rb_vm_trace_perf *perf, int ms)
{
    struct signalfd_siginfo info;
    int fd = perf->polled[perf->ring_count].fd;
    poll(perf->polled, (nfds_t)perf->ring_count + 1, ms);
    for (size_t i = 0; i < perf->ring_count; i++) {
        /* The main thread has ended: its ring still works, but poll would always return at once. */
        if (perf->polled[i].revents & (POLLHUP | POLLERR)) perf->polled[i].fd = -1;
    }
    while (read(fd, &info, sizeof(info)) > 0) continue;
}

void
rb_vm_trace_perf_wake(uint32_t tid)
{
    syscall(SYS_tgkill, getpid(), (pid_t)tid, WAKE_SIGNAL);
}

#else

const char *
rb_vm_trace_perf_refused(unsigned what)
{
    (void)what;
    return "this Ruby is built without perf_event_open, which Linux has";
}

struct rb_vm_trace_perf *
rb_vm_trace_perf_open(unsigned what, int keep_fd, int *error_out)
{
    (void)what, (void)keep_fd;
    *error_out = 0;
    return NULL;
}

uint64_t
rb_vm_trace_perf_unattached(const struct rb_vm_trace_perf *perf)
{
    (void)perf;
    return 0;
}

uint64_t
rb_vm_trace_perf_lost(const struct rb_vm_trace_perf *perf)
{
    (void)perf;
    return 0;
}

size_t
rb_vm_trace_perf_read(struct rb_vm_trace_perf *perf, bool all,
                      void (*function)(void *data, const struct vm_trace_perf_record *record), void *data)
{
    (void)perf, (void)all, (void)function, (void)data;
    return 0;
}

void
rb_vm_trace_perf_wait(struct rb_vm_trace_perf *perf, int ms)
{
    (void)perf, (void)ms;
}

void
rb_vm_trace_perf_close(struct rb_vm_trace_perf *perf)
{
    (void)perf;
}

void
rb_vm_trace_perf_wake(uint32_t tid)
{
    (void)tid;
}

#endif
