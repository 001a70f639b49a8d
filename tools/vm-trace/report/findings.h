#ifndef FINDINGS_H
#define FINDINGS_H
/* findings.h - where the time went, and what to change first: the causes of a whole report, whatever stream saw them,
 * in the order of what their change would gain.
 *
 *      findings_of -> the rows; texts live as long as the document of the view
 *
 * A gain is a part of `whole_ns`. It has bounds, and between these an estimate where the trace knows how long the same
 * work takes otherwise; benchmarks/README.md has what such predictions were worth.
 */
#include "topics/report_view.h"

enum { FINDINGS_MOST = 5 };

/* An enum execution_state, or what other streams know instead. */
enum where_kind {
    WHERE_INTERPRETED = EXECUTION_UNSEEN,
    WHERE_RUNNING,
    WHERE_WITHOUT_GVL,
    WHERE_UNSEEN,
    WHERE_KINDS
};

struct where_state {
    const char *name; /* for people */
    uint64_t ns;
};

/* The time that threads spent, by state. */
struct where {
    uint64_t ns[WHERE_KINDS];
    struct where_state states[WHERE_KINDS]; /* those with any, the largest first */
    unsigned count;
    bool of_main;     /* of the main thread of each process, which ran most; else of all threads */
    uint32_t threads; /* that it is of */
    uint64_t whole_ns; /* their lives; if of all threads, without the time in which they were blocked */
    double cpu_part;   /* of the time in which they ran, or could have, that in which they had a CPU */
};

enum finding_subject {
    FINDING_EXITS,
    FINDING_INTERPRETED,
    FINDING_COMPILING,
    FINDING_GC,
    FINDING_GVL,
    FINDING_FIBERS,
    FINDING_BLOCKED,
    FINDING_METHOD,
    FINDING_SUBJECTS
};
extern const char *const finding_subject_names[FINDING_SUBJECTS];

struct finding {
    enum finding_subject subject;
    uint64_t least_ns, most_ns;
    uint64_t gain_ns; /* if `estimated` */
    bool estimated;
    uint64_t whole_ns; /* 0: no times are known, but counts: */
    uint64_t count, of_count;
    struct fxt_string what;     /* "exits at" */
    struct fxt_string place;    /* a label, or a thread; may be empty */
    struct fxt_string cause;
    struct fxt_string caller;   /* of a method, the one that mostly calls it; may be empty */
    struct fxt_string helps;    /* may be empty */
    bool line_tells;            /* the source of the line that `place` names says more than `helps` */
    struct fxt_string evidence; /* options of `vm-trace report` */
};

struct findings {
    struct where where;
    struct where requests; /* wall time of requests and jobs, by states of their threads; count 0: the trace has none */
    struct finding list[FINDINGS_MOST];
    unsigned count;
    bool counts; /* the rows are exits by number: no cause has a time */
};

struct findings findings_of(const struct view *view);

#endif
