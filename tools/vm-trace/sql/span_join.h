#ifndef SPAN_JOIN_H
#define SPAN_JOIN_H
/* span_join.h - CREATE VIRTUAL TABLE j USING SPAN_JOIN(a PARTITIONED x, b PARTITIONED x), as in Perfetto.
 *
 * The tables have a column ts, and at least one has dur; without it a row has no duration. A table without a partition
 * is joined with each partition of the other. The result has a row for each time in which a row of `a` and one of `b`
 * (of the same partition) overlap, with the columns of both. SPAN_LEFT_JOIN also has the times of `a` alone,
 * SPAN_OUTER_JOIN those of either; what is missing is NULL. A row with dur -1 has not ended, and is joined where it
 * begins. The spans of one table must not overlap within a partition. */
#include <sqlite3.h>

/* Returns an SQLite result code. */
int span_join_register(sqlite3 *db);

#endif
