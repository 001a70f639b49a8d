#ifndef RUBY_VM_TRACE_SESSION_SESSION_STATE_H
#define RUBY_VM_TRACE_SESSION_SESSION_STATE_H 1
/*
 * What the files of this folder know of the session that is on, or comes next. What events are
 * recorded with is capture's (ractor_state.h).
 */

#include "vm_trace/capture/ractor_state.h"
#include "vm_trace/store/compression.h"
#include "vm_trace/streams/table.h"

/* When a trace is saved without a call by the program: bits of memory.save_at. */
enum {
    VM_TRACE_SAVE_AT_EXIT = 1,
    VM_TRACE_SAVE_AT_EXCEPTION = 2,
    VM_TRACE_SAVE_AT_CRASH = 4
};

/* A folder for pieces of the recording (spool.h). */
struct rb_vm_trace_spool {
    const char *folder;      /* absolute; NULL: there is none */
    uint64_t begin_ns;       /* CLOCK_MONOTONIC */
    uint64_t every_ns;       /* from one piece to the next */
    uint64_t max_bytes;      /* of all pieces in it */
    uint32_t max_files;
    enum vm_trace_compression compression; /* of its pieces */
};

/* The flight recorder (snapshot.h). */
struct rb_vm_trace_memory_config {
    uint64_t bytes;          /* of memory that is recorded into; 0: into a file */
    uint64_t window_ns;      /* how much time a saved trace covers; 0: all that is in memory */
    unsigned save_at;        /* when it is saved without a call: bits of VM_TRACE_SAVE_AT_EXIT and so on */
    int signal;              /* likewise; 0: none */
    struct rb_vm_trace_spool spool;
};

extern struct vm_trace_session {
    pthread_mutex_t open_lock;   /* held while a forked child's file is made, so that it is made once */
    uint64_t number;             /* of the trace that began last; a forked child goes on with its parent's */
    struct {
        char *path_pattern;      /* what flags of a JIT or of the VM say; NULL: the default */
        struct rb_vm_trace_max_size max_size;
        uint64_t min_free_bytes; /* for traces that begin later, too */
        bool quiet;              /* of the trace that they begin */
        bool never_late;         /* code is not traced while it runs */
    } flags;
    struct {
        bool given;              /* one of --vm-trace... that is about a trace was */
        struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS]; /* of --vm-trace=LIST, by index in the table */
    } vm_options;
    const char *option_prefix;   /* of flags that started the trace, for messages: "--zjit"; NULL: the program did */
    struct rb_vm_trace_memory_config memory; /* of the trace that is on, or that flags ask for */
    struct rb_vm_trace_max_size max_size;
    uint64_t min_free_bytes;     /* stays free on the disk of what is written (chunk_file.h); of the trace that is on or comes next */
    char *path_pattern;          /* own copy; NULL: the default */
    char *path;                  /* of the file at hand; where memory is recorded into, of the first that it is saved to */
    char left_out[512];          /* what a preset names and is not recorded, and why: "syscalls: ..."; of the trace that is on */
    bool jit_came_late;          /* the program turned it on: the settings do not have it */
    bool child;                  /* of a fork: its path has the pid */
    struct vm_trace_totals last; /* of the trace that ended last */
    const char *last_loss;       /* why it lost events, or NULL */
} rb_vm_trace_session;

#endif /* RUBY_VM_TRACE_SESSION_SESSION_STATE_H */
