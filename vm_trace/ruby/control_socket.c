/*
 * Control from another process: `vm-trace start PID` and its like. Opt-in: RUBY_VM_TRACE_CONTROL in the environment is
 * the path of a socket, with %p for the pid, or a folder for sockets vm-trace.PID; a relative one begins where the
 * program began, wherever it goes. The socket has mode 0600, and only the same user and root are listened to.
 *
 * A native thread, which no Ruby code sees, accepts; each client has a native thread of its own, so
 * that a slow client delays nobody. The main thread does what a client requests, as a postponed
 * job: where it would handle a signal, too. A blocked main thread is woken as by a signal. `save`
 * needs no Ruby: the client's thread does it, also while the program hangs.
 *
 * No thread but the main one touches the VM other than under remote.lock with `ended` false: the
 * last at_exit handler sets that before the VM goes. Nobody waits for a client, a file or the main
 * thread with the lock held, so the main thread may take it.
 *
 *   request   words, each ended by NUL: "start", then name and value of each option; "stop"; "status"; "save" and a path
 *   reply     "ok\n" or "error\n", then text
 */
#include "ruby/ruby.h"
#include "ruby/debug.h"

#include "vm_trace/ruby/trace.h"
#include "vm_trace/host/host.h"
#include "vm_trace/base/native_thread.h"
#include "vm_trace/platform/platform.h"
#include "vm_trace/session/options.h"
#include "vm_trace/session/snapshot.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    REQUEST_BYTES = 8192, REPLY_BYTES = 8192,
    MOST_CLIENTS = 16,   /* further ones wait to be accepted */
    BACKLOG = 64,
    REQUEST_S = 2,       /* a whole request comes within that time */
    MAIN_THREAD_S = 10   /* the main thread begins to answer within that time */
};

/* One client, and what it requests. */
struct client {
    struct client *next; /* in the queue */
    int fd;
    ino_t inode;         /* of the socket: the program may close our descriptor, and get its number for a file of its own */
    size_t bytes;
    enum { READ, QUEUED, TAKEN, RETRY, ANSWERED } state; /* guarded by remote.lock, as is `reply` before ANSWERED */
    char request[REQUEST_BYTES]; /* words, then an empty one */
    char reply[REPLY_BYTES];
};

static struct {
    pthread_mutex_t lock;        /* guards all up to `ended` */
    pthread_cond_t changed;      /* a client was answered, or is gone */
    struct client *clients[MOST_CLIENTS];
    struct client *queue;        /* those that the main thread is to answer, in the order of their requests */
    bool ended;                  /* the VM goes: it is not to be touched any more */
    int listener;                /* socket, or -1 */
    ino_t inode;                 /* its number */
    pid_t owner;                 /* of the socket and the threads */
    struct stat file;            /* the socket in the file system; st_ino 0: none of ours */
    char *value, *pattern;       /* of the environment, and the socket's path by it */
    struct sockaddr_un address;
    rb_postponed_job_handle_t begin_job, answer_job;
} remote = { .lock = PTHREAD_MUTEX_INITIALIZER, .listener = -1 };

static void
set_reply(struct client *client, const char *outcome, const char *text)
{
    snprintf(client->reply, sizeof(client->reply), "%s\n%s\n", outcome, text);
}

/* Where `client`, or a new one (NULL), is in the table; NULL: nowhere. remote.lock held. */
static struct client **
find_slot(const struct client *client)
{
    for (int i = 0; i < MOST_CLIENTS; i++) {
        if (remote.clients[i] == client) return &remote.clients[i];
    }
    return NULL;
}

/* Take a client out of the queue. remote.lock held. */
static void
dequeue(struct client *client)
{
    struct client **link = &remote.queue;
    while (*link != client) link = &(*link)->next;
    *link = client->next;
}

/* --- in the main thread ------------------------------------------------------------------------- */

/* A value as an option takes it. */
static VALUE
option_value(const char *text)
{
    if (strcmp(text, "true") == 0) return Qtrue;
    if (strcmp(text, "false") == 0) return Qfalse;
    if (text[0] >= '0' && text[0] <= '9' && strspn(text, "0123456789") == strlen(text)) return rb_cstr2inum(text, 10);
    return rb_external_str_new_cstr(text);
}

/* Names with commas between them. */
static VALUE
moments(const char *text)
{
    VALUE names = rb_str_split(rb_str_new_cstr(text), ","), symbols = rb_ary_new();
    for (long i = 0; i < RARRAY_LEN(names); i++) rb_ary_push(symbols, rb_to_symbol(RARRAY_AREF(names, i)));
    return symbols;
}

/* A line for each pair of a hash, values below each other. */
struct lines {
    int width; /* of the longest name */
    VALUE text;
};

static int
widen(VALUE key, VALUE value, VALUE data)
{
    struct lines *lines = (struct lines *)data;
    int width = (int)strlen(rb_id2name(SYM2ID(key)));
    (void)value;
    if (width > lines->width) lines->width = width;
    return ST_CONTINUE;
}

static int
add_line(VALUE key, VALUE value, VALUE data)
{
    const struct lines *lines = (const struct lines *)data;
    rb_str_catf(lines->text, "%s%-*s %"PRIsVALUE, RSTRING_LEN(lines->text) ? "\n" : "", lines->width,
                rb_id2name(SYM2ID(key)), value);
    return ST_CONTINUE;
}

static VALUE
lines_of(VALUE hash)
{
    enum { LEAST_WIDTH = 10 };
    struct lines lines = { .width = LEAST_WIDTH, .text = rb_str_new_cstr("") };
    rb_hash_foreach(hash, widen, (VALUE)&lines);
    rb_hash_foreach(hash, add_line, (VALUE)&lines);
    return lines.text;
}

/* What the request says. Qundef: a save must end first. */
static VALUE
perform(VALUE argument)
{
    const struct client *client = (const struct client *)argument;
    const char *word = client->request, *end = word + client->bytes;
    if (strcmp(word, "stop") == 0) {
        VALUE summary = rb_vm_trace_control_try_stop();
        return summary == Qundef ? Qundef : lines_of(summary);
    }
    if (strcmp(word, "status") == 0) return lines_of(rb_vm_trace_control_status());
    if (strcmp(word, "start") != 0) rb_raise(rb_eArgError, "unknown request; this is vm-trace's of another version?");
    VALUE options = rb_hash_new();
    for (word += strlen(word) + 1; word < end && *word; ) {
        const char *value = word + strlen(word) + 1;
        if (value >= end) break;
        VALUE object = option_value(value);
        if (strcmp(word, "keep") == 0) object = rb_to_symbol(rb_str_new_cstr(value));
        if (strcmp(word, "save_at") == 0) object = moments(value);
        /* A name of digits is a name all the same. */
        if (strcmp(word, "file") == 0 || strcmp(word, "spool") == 0) object = rb_external_str_new_cstr(value);
        rb_hash_aset(options, rb_to_symbol(rb_str_new_cstr(word)), object);
        word = value + strlen(value) + 1;
    }
    VALUE path = rb_vm_trace_control_start(options);
    return NIL_P(path) ? rb_str_new_cstr("memory") : path;
}

static VALUE
message_of(VALUE error)
{
    return rb_funcall(error, rb_intern("message"), 0);
}

/* The oldest request that nobody has answered yet, out of the queue; or NULL. */
static struct client *
take(void)
{
    pthread_mutex_lock(&remote.lock);
    struct client *client = remote.queue;
    if (client) {
        dequeue(client);
        client->state = TAKEN; /* its thread does not touch the request from here on */
    }
    pthread_mutex_unlock(&remote.lock);
    return client;
}

/*
 * What runs here checks no interrupts, so no exception of another thread (Timeout, Thread#raise) is
 * lost in rb_protect.
 */
static void
answer(struct client *client)
{
    int failed = 0, unspeakable = 0;
    VALUE before = rb_errinfo();
    VALUE text = rb_protect(perform, (VALUE)client, &failed);
    if (failed) text = rb_protect(message_of, rb_errinfo(), &unspeakable);
    rb_set_errinfo(before);
    bool retry = !failed && text == Qundef, ok = !unspeakable && !retry && RB_TYPE_P(text, T_STRING);

    pthread_mutex_lock(&remote.lock);
    snprintf(client->reply, sizeof(client->reply), "%s\n%.*s\n", failed ? "error" : "ok",
             ok ? (int)RSTRING_LEN(text) : 0, ok ? RSTRING_PTR(text) : "");
    client->state = retry ? RETRY : ANSWERED;
    pthread_cond_broadcast(&remote.changed);
    pthread_mutex_unlock(&remote.lock);
    RB_GC_GUARD(text);
}

/* A postponed job. The program gets on between two rounds, however many requests there are. */
static void
answer_clients(void *unused)
{
    (void)unused;
    struct client *client = NULL;
    for (int i = 0; i < MOST_CLIENTS && (client = take()); i++) answer(client);
    if (client) rb_postponed_job_trigger(remote.answer_job);
}

/* --- in a client's thread ---------------------------------------------------------------------------- */

static struct timespec
seconds_from_now(time_t seconds)
{
    struct timespec then;
    clock_gettime(CLOCK_MONOTONIC, &then);
    then.tv_sec += seconds;
    return then;
}

/* Whether a descriptor still is the socket that it was. */
static bool
ours_p(int fd, ino_t inode)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == inode;
}

/* Wait for something to read. False: it is too late for that. */
static bool
wait_to_read(int fd, const struct timespec *until)
{
    struct timespec now = seconds_from_now(0);
    long ms = (until->tv_sec - now.tv_sec) * 1000L + (until->tv_nsec - now.tv_nsec) / 1000000;
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    return ms > 0 && poll(&readable, 1, (int)ms) != 0;
}

/* All words, which an empty one ends. False: they did not come. */
static bool
read_request(struct client *client)
{
    struct timespec until = seconds_from_now(REQUEST_S);
    while (client->bytes < REQUEST_BYTES && wait_to_read(client->fd, &until) && ours_p(client->fd, client->inode)) {
        ssize_t n = recv(client->fd, client->request + client->bytes, REQUEST_BYTES - client->bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) break;
        client->bytes += (size_t)n;
        if (client->bytes >= 2 && memcmp(client->request + client->bytes - 2, "\0", 2) == 0) return true;
    }
    set_reply(client, "error",
              "a request is words, each ended by NUL, and an empty word; it has to come within 2 seconds");
    return false;
}

/* Have the main thread do it, and wait for that. */
static void
ask_main_thread(struct client *client)
{
    struct timespec until = seconds_from_now(MAIN_THREAD_S);
    pthread_mutex_lock(&remote.lock);
    if (remote.ended) {
        client->state = ANSWERED;
        set_reply(client, "error", "the program is ending");
    }
    else {
        struct client **link = &remote.queue;
        while (*link) link = &(*link)->next;
        client->next = NULL;
        client->state = QUEUED;
        *link = client;
        rb_postponed_job_trigger(remote.answer_job);
        rb_vm_trace_host_wake_main();
    }
    while (client->state == QUEUED || client->state == TAKEN) {
        int error = client->state == QUEUED ? rb_vm_trace_platform_cond_wait(&remote.changed, &remote.lock, &until)
                                            : pthread_cond_wait(&remote.changed, &remote.lock);
        if (error != ETIMEDOUT || client->state != QUEUED) continue;
        dequeue(client);
        client->state = ANSWERED;
        set_reply(client, "error",
                  "the program's main thread did not come to a place where it would handle a signal for 10 s: "
                  "is it stopped, or in a long call of C code? Nothing was done.");
    }
    pthread_mutex_unlock(&remote.lock);
}

/* Save what the flight recorder has. */
static void
save(struct client *client)
{
    const char *pattern = client->request + strlen(client->request) + 1;
    char *absolute = rb_vm_trace_absolute_path(*pattern ? pattern : NULL), hint[128];
    struct rb_vm_trace_save save = { .pattern = absolute, .why = "save", .error = ENOMEM, .reason = "out of memory" };
    enum vm_trace_snapshot_answer answer = VM_TRACE_SNAPSHOT_NO_ROOM;
    bool ok = absolute || !*pattern;
    bool cut = !*pattern && rb_vm_trace_session.memory.spool.folder;
    while (ok && (answer = rb_vm_trace_snapshot_begin(cut)) == VM_TRACE_SNAPSHOT_BUSY) rb_vm_trace_recorder_wait();
    if (answer == VM_TRACE_SNAPSHOT_BEGUN) rb_vm_trace_recorder_write(&save);
    if (answer == VM_TRACE_SNAPSHOT_NO_RECORDER) {
        set_reply(client, "error", "nothing is recorded into memory: give start --memory=16, or the program "
                  "--zjit-trace-exits --zjit-trace-memory=16 or their like of YJIT");
    }
    else if (save.error) {
        snprintf(client->reply, sizeof(client->reply), "error\ncan't save to %s: %s\n", save.path ? save.path : pattern,
                 save.reason);
    }
    else {
        bool less = rb_vm_trace_recorder_hint(&save, hint, sizeof(hint));
        snprintf(client->reply, sizeof(client->reply),
                 "ok\nevents     %llu\nexits      %llu\nlost       %llu\n%s%s%spath       %s\n",
                 (unsigned long long)save.events, (unsigned long long)save.exits, (unsigned long long)save.lost,
                 less ? "hint       " : "", less ? hint : "", less ? "\n" : "", save.path);
    }
    free(save.made);
    free(save.kept);
    free(absolute);
}

static void
reply_to(struct client *client)
{
    if (strcmp(client->request, "save") == 0) {
        save(client);
        return;
    }
    if (strcmp(client->request, "stop") == 0) rb_vm_trace_recorder_save_rest("stop");
    ask_main_thread(client);
    while (client->state == RETRY) {
        rb_vm_trace_recorder_wait();
        ask_main_thread(client);
    }
}

static void *
serve(void *argument)
{
    struct client *client = argument;
    native_thread_name();
    if (read_request(client)) reply_to(client);
    /*
     * A reply fits into the socket's buffer: one that does not get in now is that of a client who
     * tries to be slow.
     */
    bool ours = ours_p(client->fd, client->inode);
    if (ours) send(client->fd, client->reply, strlen(client->reply), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (ours) shutdown(client->fd, SHUT_RDWR); /* a forked child may have a copy of the descriptor */
    pthread_mutex_lock(&remote.lock);
    *find_slot(client) = NULL;
    if (ours) close(client->fd);
    pthread_cond_broadcast(&remote.changed);
    pthread_mutex_unlock(&remote.lock);
    free(client);
    return NULL;
}

/* --- in the thread that accepts ------------------------------------------------------------------------ */

/* Takes the descriptor over. */
static void
begin_client(int fd)
{
    struct stat st;
    bool ours = rb_vm_trace_platform_trusted_peer_p(fd) && fstat(fd, &st) == 0;
    struct client *client = ours ? calloc(1, sizeof(*client)) : NULL;
    pthread_t thread;
    if (!client) {
        close(fd);
        return;
    }
    client->fd = fd;
    client->inode = st.st_ino;
    pthread_mutex_lock(&remote.lock);
    *find_slot(NULL) = client;
    pthread_mutex_unlock(&remote.lock);
    if (native_thread_start(&thread, serve, client) == 0) pthread_detach(thread);
    else serve(client); /* then one after the other */
}

static void
wait_for_room(void)
{
    pthread_mutex_lock(&remote.lock);
    while (!find_slot(NULL)) pthread_cond_wait(&remote.changed, &remote.lock);
    pthread_mutex_unlock(&remote.lock);
}

static void *
accept_clients(void *unused)
{
    (void)unused;
    native_thread_name();
    for (wait_for_room(); ours_p(remote.listener, remote.inode); wait_for_room()) {
        int fd = rb_vm_trace_platform_accept(remote.listener);
        if (fd >= 0) {
            begin_client(fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return NULL;
        struct timespec while_full = { .tv_nsec = 100000000 };
        nanosleep(&while_full, NULL);
    }
    return NULL;
}

/* --- begin and end --------------------------------------------------------------------------------------- */

/* What the variable means here and now. A path that is too long for a socket may fit as it was given. */
static void
read_variable(const char *value)
{
    static const char in_folder[] = "/vm-trace.%p", longest[] = "/vm-trace.4194304";
    struct stat st;
    bool folder = stat(value, &st) == 0 && S_ISDIR(st.st_mode);
    char *absolute = rb_vm_trace_absolute_path(value);
    bool fits = absolute && strlen(absolute) + sizeof(longest) <= sizeof(remote.address.sun_path);
    const char *path = fits ? absolute : value;
    size_t room = strlen(path) + sizeof(in_folder);
    free(remote.value);
    free(remote.pattern);
    remote.value = strdup(value);
    remote.pattern = malloc(room);
    if (remote.pattern) snprintf(remote.pattern, room, "%s%s", path, folder ? in_folder : "");
    free(absolute);
}

/* The path of the socket. False: it is too long, or a child has that of its parent. */
static bool
find_address(const char *value, bool child)
{
    if (!remote.value || strcmp(value, remote.value) != 0) read_variable(value);
    if (!remote.pattern || (child && !strstr(remote.pattern, "%p"))) return false;
    char *path = rb_vm_trace_expand_path(remote.pattern, (uint32_t)getpid(), 0, 0, NULL);
    bool fits = path && strlen(path) < sizeof(remote.address.sun_path);
    remote.address.sun_family = AF_UNIX;
    if (fits) strcpy(remote.address.sun_path, path);
    free(path);
    if (!fits) fprintf(stderr, "ruby: RUBY_VM_TRACE_CONTROL: %s: the path of a socket has at most %d bytes\n", value,
                       (int)sizeof(remote.address.sun_path) - 1);
    return fits;
}

/* A socket of our own that nobody listens at is in the way: one of a process that was killed. */
static void
remove_stale(void)
{
    struct stat st;
    if (lstat(remote.address.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid()) return;
    int fd = rb_vm_trace_platform_socket();
    if (fd < 0) return;
    bool dead = connect(fd, (struct sockaddr *)&remote.address, sizeof(remote.address)) != 0 && errno == ECONNREFUSED;
    close(fd);
    if (dead) unlink(remote.address.sun_path);
}

/* Only what we made: someone may have removed it, and another process listens at that path. */
static void
remove_socket(void)
{
    struct stat st;
    if (!remote.file.st_ino || remote.owner != getpid()) return;
    bool ours =
        lstat(remote.address.sun_path, &st) == 0 && st.st_ino == remote.file.st_ino && st.st_dev == remote.file.st_dev;
    remote.file.st_ino = 0;
    if (ours) unlink(remote.address.sun_path);
}

static bool
begin_thread(void)
{
    pthread_t thread;
    int error = native_thread_start(&thread, accept_clients, NULL);
    if (!error) pthread_detach(thread);
    errno = error;
    return error == 0;
}

/* The lock and its condition are as new: at the start, and in the child of a fork. */
static void
begin_lock(void)
{
    pthread_mutex_init(&remote.lock, NULL);
    rb_vm_trace_platform_cond_init(&remote.changed);
}

/*
 * As a postponed job: the program runs by now, and a forked child is no program that is replaced at
 * once.
 */
static void
begin(void *unused)
{
    (void)unused;
    const char *value = getenv("RUBY_VM_TRACE_CONTROL");
    if (!value || !*value || remote.owner == getpid() || remote.ended) return;
    bool is_child = remote.owner != 0;
    remote.owner = getpid();
    if (!find_address(value, is_child)) return;
    remove_stale();
    const char *path = remote.address.sun_path;
    int fd = rb_vm_trace_platform_socket();
    bool bound = fd >= 0 && rb_vm_trace_platform_bind(fd, &remote.address) == 0;
    remote.listener = fd;
    struct stat st;
    if (bound && fstat(fd, &st) == 0) remote.inode = st.st_ino;
    if (bound && lstat(path, &remote.file) != 0) remote.file.st_ino = 0;
    if (!bound || listen(fd, BACKLOG) != 0 || !begin_thread()) {
        fprintf(stderr, "ruby: RUBY_VM_TRACE_CONTROL: can't listen at %s: %s\n", path, strerror(errno));
        remove_socket();
        if (fd >= 0) close(fd);
        remote.listener = -1;
    }
}

/* In a forked child: the sockets and the clients are the parent's, and its threads are not here. */
static void
forget(void)
{
    if (remote.listener >= 0 && ours_p(remote.listener, remote.inode)) close(remote.listener);
    remote.listener = -1;
    remote.file.st_ino = 0;
    for (int i = 0; i < MOST_CLIENTS; i++) {
        struct client *client = remote.clients[i];
        if (client && ours_p(client->fd, client->inode)) close(client->fd);
        remote.clients[i] = NULL;
        free(client);
    }
    remote.queue = NULL;
    begin_lock();
    if (!remote.ended) rb_postponed_job_trigger(remote.begin_job);
}

/*
 * The last of all at_exit handlers. Clients with a pending request get an answer; the thread that
 * accepts ends.
 */
static void
end(VALUE unused)
{
    (void)unused;
    pthread_mutex_lock(&remote.lock);
    remote.ended = true;
    for (; remote.queue; remote.queue = remote.queue->next) {
        set_reply(remote.queue, "error", "the program is ending");
        remote.queue->state = ANSWERED;
    }
    pthread_cond_broadcast(&remote.changed);
    pthread_mutex_unlock(&remote.lock);
    remove_socket();
    if (remote.listener >= 0 && ours_p(remote.listener, remote.inode)) shutdown(remote.listener, SHUT_RDWR);
}

void
rb_vm_trace_remote_init(void)
{
    const char *value = getenv("RUBY_VM_TRACE_CONTROL");
    if (!value || !*value || getuid() != geteuid() || getgid() != getegid()) return;
    read_variable(value);
    begin_lock();
    remote.begin_job = rb_postponed_job_preregister(0, begin, NULL);
    remote.answer_job = rb_postponed_job_preregister(0, answer_clients, NULL);
    pthread_atfork(NULL, NULL, forget);
    rb_set_end_proc(end, Qnil);
    atexit(remove_socket); /* of a program that calls exit(3) itself */
    rb_postponed_job_trigger(remote.begin_job);
}
