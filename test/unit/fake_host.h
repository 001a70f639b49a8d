#ifndef FAKE_HOST_H
#define FAKE_HOST_H 1
/*
 * A host without Ruby: stacks, labels, threads and ractors as a test sets them. Its addresses
 * are numbers that nobody follows.
 */

#include "vm_trace/host/host.h"

/* An ISEQ of up to 1,000 lines, one instruction each. */
struct rb_iseq_struct {
    uintptr_t from, to;
    const char *name;
    const char *path;
};

struct fake_method {
    const char *owner;
    const char *name;   /* of a method in C */
};

struct fake_frame {
    const struct rb_iseq_struct *iseq;  /* NULL: a method in C */
    const struct fake_method *method;   /* may be NULL */
    unsigned line;                      /* where it is, or where it called */
    bool first;                         /* C called it */
    bool watched;                       /* rb_vm_trace_frame_popped is to be called */
};

struct rb_ractor_struct {
    uint64_t other_fields[5];
    struct rb_vm_trace_ractor *vm_trace;
    struct rb_ractor_struct *next;
};

struct rb_execution_context_struct {
    struct rb_ractor_struct *ractor;
    uint32_t tid;
    const char *thread_name;
    uint64_t name_id;
    struct fake_frame *frames;  /* outermost first */
    size_t frame_count, frame_capacity;
};

/* A class: its address is that of one of these. */
struct fake_class {
    const char *name;
    bool unnamed;                 /* it may get another name */
};

/* An object: its address is that of one of these. */
struct fake_object {
    const char *class_name;       /* without `klass`: of a class that has no address */
    const struct fake_class *klass;
    struct fake_object *moved_to; /* NULL: it did not move */
    bool alive;                   /* for tests */
    uint64_t malloc_bytes;
    bool extension;               /* a collection can not read malloc_bytes */
    const void *buffer;           /* that it owns, or NULL */
    struct fake_object *shared;   /* that owns the buffer, or NULL */
    char table;                   /* of a hash */
    enum vm_trace_value_kind kind; /* as what guards meet it; 0: an object */
    const char *ivar;             /* that is accessed, or NULL */
    uint64_t length;
    uint32_t shape;               /* 0: none */
};

/* What the module asked, to be set to 0 by tests. */
struct fake_host {
    size_t labels, walks, thread_names, told, guards, value_names, names_compared, interrupts;
    bool gvl_free; /* what it answers, set by tests */
    struct rb_execution_context_struct *in_scheduler; /* of whose inner frames so many are the scheduler's */
    size_t scheduler_frames;
    struct rb_execution_context_struct *without_gvl; /* NULL: all have it */
    bool entries_watched;
    enum vm_trace_compiled compiled; /* what it answers */
    const struct fake_object *operand; /* what guards meet; NULL: it can't be found */
    int64_t index;
    const uintptr_t *words; /* what is on the C stack */
    size_t word_count;
    bool collecting;
    const char *operand_name; /* of instructions that are not alone on their line; NULL: all are */
};
extern struct fake_host fake_host;

/* An ISEQ at addresses of its own, or at those given. */
struct rb_iseq_struct fake_iseq(const char *name, const char *path);
struct rb_iseq_struct fake_iseq_at(uintptr_t from, unsigned instructions, const char *name, const char *path);

/* The instruction of a line, as the JIT knows it. */
const void *fake_pc(const struct rb_iseq_struct *iseq, unsigned line);

void fake_ractor_add(struct rb_ractor_struct *ractor);

/* The native thread that calls runs this context from now on; NULL: it runs no Ruby. */
void fake_ractor_remove(struct rb_ractor_struct *ractor);
void fake_current(struct rb_execution_context_struct *ec);

void fake_push(struct rb_execution_context_struct *ec, const struct rb_iseq_struct *iseq, unsigned line);
void fake_push_method(struct rb_execution_context_struct *ec, const struct rb_iseq_struct *iseq,
                      const struct fake_method *method, unsigned line);
void fake_push_cfunc(struct rb_execution_context_struct *ec, const struct fake_method *method);
void fake_pop(struct rb_execution_context_struct *ec, size_t frames);

/* The context is a fiber of the thread that the other one is. */
void fake_fiber_of(struct rb_execution_context_struct *fiber, struct rb_execution_context_struct *thread);
void fake_free_stack(struct rb_execution_context_struct *ec);

#endif /* FAKE_HOST_H */
