/*
 * Control from another process: `vm-trace start PID` and its like. Opt-in: RUBY_VM_TRACE_CONTROL in the environment is
 * the path of a socket, with %p for the pid, or a folder for sockets vm-trace.PID. It has mode 0600, and only what the
 * same user runs is listened to.
 *
 * A native thread listens, which no Ruby code sees. What is asked for is done by the main thread, as a postponed job: where
 * a signal would be handled, too. A blocked one is woken as by a signal. Only the flight recorder's memory is saved by the
 * thread itself, also while the program hangs.
 *
 *   request   words, each ended by NUL: "start", then name and value of each option; "stop"; "status"; "save" and a path
 *   reply     "ok\n" or "error\n", then text
 */
#include "ruby/ruby.h"
#include "ruby/debug.h"

#include "control.h"
#include "host.h"
#include "native_thread.h"
#include "options.h"
#include "recorder.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef SO_PEERCRED

enum { REQUEST_BYTES = 8192, REPLY_BYTES = 8192, PATIENCE_S = 10 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    char request[REQUEST_BYTES]; /* words, then an empty one */
    size_t request_bytes;
    char reply[REPLY_BYTES];
    enum { NOTHING, ASKED, TAKEN, ANSWERED } state;
    int listener;                /* socket, or -1 */
    ino_t inode;                 /* its number */
    pid_t owner;                 /* of the socket and the thread */
    struct sockaddr_un address;
    rb_postponed_job_handle_t begin_job, answer_job;
} remote = { .lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER, .listener = -1 };

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

static int
add_line(VALUE key, VALUE value, VALUE text)
{
    rb_str_catf(text, "%s%-10s %"PRIsVALUE, RSTRING_LEN(text) ? "\n" : "", rb_id2name(SYM2ID(key)), value);
    return ST_CONTINUE;
}

/* A line for each of its pairs. */
static VALUE
lines(VALUE hash)
{
    VALUE text = rb_str_new_cstr("");
    rb_hash_foreach(hash, add_line, text);
    return text;
}

static VALUE
perform(VALUE unused)
{
    (void)unused;
    const char *word = remote.request, *end = word + remote.request_bytes;
    if (strcmp(word, "stop") == 0) return lines(rb_vm_trace_control_stop());
    if (strcmp(word, "status") == 0) return lines(rb_vm_trace_control_status());
    if (strcmp(word, "start") != 0) rb_raise(rb_eArgError, "unknown request; this is vm-trace's of another version?");
    VALUE options = rb_hash_new();
    for (word += strlen(word) + 1; word < end && *word; ) {
        const char *value = word + strlen(word) + 1;
        if (value >= end) break;
        VALUE object = option_value(value);
        if (strcmp(word, "keep") == 0) object = rb_to_symbol(rb_str_new_cstr(value));
        if (strcmp(word, "save_at") == 0) object = moments(value);
        /* A name of digits is a name all the same. */
        if (strcmp(word, "file") == 0) object = rb_external_str_new_cstr(value);
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

static void
answer(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&remote.lock);
    bool mine = remote.state == ASKED;
    if (mine) remote.state = TAKEN; /* the thread leaves the request alone from here on */
    pthread_mutex_unlock(&remote.lock);
    if (!mine) return; /* it waited too long */

    int failed = 0, unspeakable = 0;
    VALUE before = rb_errinfo();
    VALUE text = rb_protect(perform, Qnil, &failed);
    if (failed) text = rb_protect(message_of, rb_errinfo(), &unspeakable);
    rb_set_errinfo(before);
    bool ok = !unspeakable && RB_TYPE_P(text, T_STRING);

    pthread_mutex_lock(&remote.lock);
    snprintf(remote.reply, sizeof(remote.reply), "%s\n%.*s\n", failed ? "error" : "ok", ok ? (int)RSTRING_LEN(text) : 0,
             ok ? RSTRING_PTR(text) : "");
    remote.state = ANSWERED;
    pthread_cond_signal(&remote.answered);
    pthread_mutex_unlock(&remote.lock);
    RB_GC_GUARD(text);
}

/* --- in the thread that listens -------------------------------------------------------------------- */

static bool
same_user_p(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

/* All words, which an empty one ends. Nothing that does not speak our language is waited for. */
static bool
read_request(int fd)
{
    struct timeval patience = { .tv_sec = 2 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    remote.request_bytes = 0;
    while (remote.request_bytes < REQUEST_BYTES) {
        ssize_t n = recv(fd, remote.request + remote.request_bytes, REQUEST_BYTES - remote.request_bytes, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        remote.request_bytes += (size_t)n;
        if (remote.request_bytes >= 2 && memcmp(remote.request + remote.request_bytes - 2, "\0", 2) == 0) return true;
    }
    return false;
}

/* Have the main thread do it, and wait for that. remote.lock held. */
static void
ask(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    remote.state = ASKED;
    pthread_mutex_unlock(&remote.lock);
    rb_postponed_job_trigger(remote.answer_job);
    rb_vm_trace_host_wake_main();
    pthread_mutex_lock(&remote.lock);
    while (remote.state != ANSWERED) {
        int error = pthread_cond_timedwait(&remote.answered, &remote.lock, &until);
        if (error == ETIMEDOUT && remote.state == ASKED) {
            snprintf(remote.reply, sizeof(remote.reply), "error\nthe program's main thread has not come to a place where it looks up for %d s: "
                     "is it stopped, or in a long call of C code? Nothing was done.\n", PATIENCE_S);
            break;
        }
        if (error == ETIMEDOUT) until.tv_sec += PATIENCE_S; /* it is at it */
    }
    remote.state = NOTHING;
}

/* Save what the flight recorder has. */
static void
save(const char *pattern)
{
    char *absolute = rb_vm_trace_absolute_path(*pattern ? pattern : NULL);
    char *path = absolute || !*pattern ? rb_vm_trace_expand_path(absolute, (uint32_t)getpid(), 0) : NULL;
    free(absolute);
    struct rb_vm_trace_save save = { .path = path, .why = "save", .error = ENOMEM, .reason = "out of memory" };
    enum vm_trace_freeze answer = VM_TRACE_NO_ROOM;
    while (path && (answer = rb_vm_trace_recorder_freeze()) == VM_TRACE_BUSY) rb_vm_trace_recorder_wait();
    if (answer == VM_TRACE_FROZEN) rb_vm_trace_recorder_write(&save);
    if (answer == VM_TRACE_NO_RECORDER) {
        snprintf(remote.reply, sizeof(remote.reply), "error\nnothing is recorded into memory: give start --memory=16, or the program "
                 "--zjit-trace-exits --zjit-trace-memory=16 or their like of YJIT\n");
    }
    else if (save.error) {
        snprintf(remote.reply, sizeof(remote.reply), "error\ncan't save to %s: %s\n", path ? path : pattern, save.reason);
    }
    else {
        snprintf(remote.reply, sizeof(remote.reply), "ok\nevents     %llu\nexits      %llu\nlost       %llu\npath       %s\n",
                 (unsigned long long)save.events, (unsigned long long)save.exits, (unsigned long long)save.lost, path);
    }
    free(path);
}

/* The reply to what was read. remote.lock held. */
static void
reply(void)
{
    const char *word = remote.request;
    if (strcmp(word, "save") == 0) save(word + strlen(word) + 1);
    else ask();
}

static void
converse(int fd)
{
    pthread_mutex_lock(&remote.lock);
    if (same_user_p(fd) && read_request(fd)) {
        reply();
        const char *from = remote.reply;
        for (size_t bytes = strlen(from); bytes > 0; ) {
            ssize_t n = send(fd, from, bytes, MSG_NOSIGNAL);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) break;
            from += n;
            bytes -= (size_t)n;
        }
    }
    pthread_mutex_unlock(&remote.lock);
}

/* A program that closes all descriptors it knows nothing of closes ours, and may listen at the same number itself. */
static bool
still_ours_p(void)
{
    struct stat st;
    return fstat(remote.listener, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == remote.inode;
}

static void *
listen_on(void *unused)
{
    (void)unused;
    while (still_ours_p()) {
        int fd = accept4(remote.listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED) continue;
            if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return NULL;
            struct timespec while_full = { .tv_nsec = 100000000 };
            nanosleep(&while_full, NULL);
            continue;
        }
        converse(fd);
        close(fd);
    }
    return NULL;
}

/* --- begin and end --------------------------------------------------------------------------------------- */

/* Where to listen. False: the path is too long, or a child has that of its parent. */
static bool
find_address(const char *value, bool child)
{
    char pattern[sizeof(remote.address.sun_path)];
    struct stat st;
    bool folder = stat(value, &st) == 0 && S_ISDIR(st.st_mode);
    if (child && !folder && !strstr(value, "%p")) return false;
    int n = snprintf(pattern, sizeof(pattern), folder ? "%s/vm-trace.%%p" : "%s", value);
    char *path = n < (int)sizeof(pattern) ? rb_vm_trace_expand_path(pattern, (uint32_t)getpid(), 0) : NULL;
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
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    bool dead = connect(fd, (struct sockaddr *)&remote.address, sizeof(remote.address)) != 0 && errno == ECONNREFUSED;
    close(fd);
    if (dead) unlink(remote.address.sun_path);
}

static void
remove_socket(void)
{
    if (remote.listener >= 0 && remote.owner == getpid()) unlink(remote.address.sun_path);
}

static bool
begin_thread(void)
{
    pthread_t thread;
    int error = native_thread_start(&thread, listen_on, NULL);
    if (!error) pthread_detach(thread);
    errno = error;
    return error == 0;
}

/* As a postponed job: the program runs by now, and a forked child is no program that is replaced at once. */
static void
begin(void *child)
{
    const char *value = getenv("RUBY_VM_TRACE_CONTROL");
    if (!value || !*value || remote.owner == getpid()) return;
    bool is_child = remote.owner != 0;
    remote.owner = getpid();
    if (!find_address(value, is_child)) return;
    remove_stale();
    (void)child;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* The socket's file gets the mode that the socket has. */
    bool bound = fd >= 0 && fchmod(fd, 0600) == 0 && bind(fd, (struct sockaddr *)&remote.address, sizeof(remote.address)) == 0;
    remote.listener = fd;
    struct stat st;
    if (bound && fstat(fd, &st) == 0) remote.inode = st.st_ino;
    if (!bound || listen(fd, 4) != 0 || !begin_thread()) {
        fprintf(stderr, "ruby: RUBY_VM_TRACE_CONTROL: can't listen at %s: %s\n", remote.address.sun_path, strerror(errno));
        if (bound) unlink(remote.address.sun_path);
        if (fd >= 0) close(fd);
        remote.listener = -1;
    }
}

/* In a forked child: the socket is the parent's, and there is no such thread here. */
static void
forget(void)
{
    if (remote.listener >= 0 && still_ours_p()) close(remote.listener);
    remote.listener = -1;
    pthread_mutex_init(&remote.lock, NULL);
    pthread_cond_init(&remote.answered, NULL);
    remote.state = NOTHING;
    rb_postponed_job_trigger(remote.begin_job);
}

void
rb_vm_trace_remote_init(void)
{
    const char *value = getenv("RUBY_VM_TRACE_CONTROL");
    if (!value || !*value || getuid() != geteuid() || getgid() != getegid()) return;
    remote.begin_job = rb_postponed_job_preregister(0, begin, NULL);
    remote.answer_job = rb_postponed_job_preregister(0, answer, NULL);
    pthread_atfork(NULL, NULL, forget);
    atexit(remove_socket);
    rb_postponed_job_trigger(remote.begin_job);
}

#else
void
rb_vm_trace_remote_init(void)
{
}
#endif
