#ifndef ANNOTATION_H
#define ANNOTATION_H
/* annotation.h - the exits and fallbacks of a report, and their lost time, by source file, line,
 * reason and compiled version.
 *
 *      annotation_of a report, or annotation_begin -> annotation_add for each row -> annotation_finish
 *      -> the arrays -> annotation_free
 */
#include "topics/report_data.h"
#include "base/row_table.h"

/* What a place cost. A new measure is a member here, and a column in source/annotated.c. */
struct annotated_cost {
    uint64_t lost_ns; /* by the exits */
    uint64_t exits, fallbacks;
    uint64_t counted; /* by counters of ZJIT's statistics that jit_counter_slow_p */
};

/* Strings are numbers of the pool of the rows. A path is STRING_NONE, and a line 0, if a frame has
 * none. */
struct annotated_file {
    uint32_t path; /* the key */
    struct annotated_cost cost;
    uint32_t line_count;
};

struct annotated_line {
    uint32_t path; /* the key */
    uint32_t line;
    struct annotated_cost cost;
};

struct annotated_reason {
    uint32_t path; /* the key */
    uint32_t line;
    uint32_t category; /* STRING_SIDE_EXIT of all exits, STRING_FALLBACK, or STRING_COUNTER */
    uint32_t reason;
    uint32_t insn;
    uint32_t callee;
    struct annotated_cost cost;
    uint32_t number; /* in versions */
};

struct annotated_version {
    uint32_t reason;  /* the key: number of the reason */
    uint32_t version; /* 0: unknown */
    struct annotated_cost cost;
};

/* Each table is sorted: files by cost; lines by path and line; reasons by path, line and cost;
 * versions by reason and version. */
struct annotation {
    struct row_table files;    /* of struct annotated_file */
    struct row_table lines;    /* of struct annotated_line */
    struct row_table reasons;  /* of struct annotated_reason */
    struct row_table versions; /* of struct annotated_version */
    struct annotated_cost cost;
    bool timed;         /* lost times are known */
    uint64_t uncounted; /* exits and fallbacks without a row, because there are too many */
};

/* Exits of one place; or what a counter counted there: then the category is STRING_COUNTER, and it is the reason. */
struct annotated_exits {
    uint32_t category, reason, location, insn, callee;
    uint32_t version; /* 0: unknown */
    uint64_t count, lost_ns;
};

/* Gathers what a report counts. `report` must be read completely. */
void annotation_of(struct annotation *annotation, const struct report *report);
/* The same with rows of the caller's. timed: they know what exits lost. */
void annotation_begin(struct annotation *annotation, bool timed);
/* Returns the number of the reason (see struct annotated_reason), or 0 if it has none. */
uint32_t annotation_add(struct annotation *annotation, struct pool *pool, const struct annotated_exits *exits);
void annotation_finish(struct annotation *annotation, struct pool *pool);
void annotation_free(struct annotation *annotation);

/* Returns the index of the first line, reason or version of a key, and sets how many there are. */
uint32_t annotation_lines(const struct annotation *annotation, uint32_t path, uint32_t *count_out);
uint32_t annotation_reasons(const struct annotation *annotation, uint32_t path, uint32_t line, uint32_t *count_out);
uint32_t annotation_versions(const struct annotation *annotation, uint32_t reason, uint32_t *count_out);

#endif
