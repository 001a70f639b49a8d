#ifndef ADVICE_TABLE_H
#define ADVICE_TABLE_H
/* advice_table.h - advice as a table of a document: for `explain` and `report --advice`. */
#include "topics/exits/advice.h"
#include "topics/report_data.h"
#include "render/document.h"

/* Adds a table `advice` with the chosen reasons (see advice_choose): with a row for each of them
 * for programs, and one where reasons that share their texts share a row for people, which it
 * returns. */
struct table *advice_table_chosen(struct document *document, const uint32_t *chosen);

/* Adds a table `advice` for the reasons in a report, after its table of exits by reason: those of
 * exits, then of fallbacks, outcomes of recompile exits, and invalidations, the most frequent
 * first. Of exits: the place with the most, and lasting advice (see advice.h) where that holds. `top`:
 * rows of each kind. `chosen`: only these, see advice_choose, or NULL. Returns the table. */
struct table *advice_table_report(const struct report *report, struct document *document, uint64_t top,
                                  const uint32_t *chosen);

#endif
