#ifndef SITE_HITS_H
#define SITE_HITS_H
/* site_hits.h - compares the events of exits and fallbacks with the hits of their sites.
 *
 * Where every exit is recorded, there are as many events as hits. Sites are grouped by category,
 * reason, instruction and version, because an event does not name its site.
 */
#include "base/row_table.h"
#include "fxt/reader.h"

/* How the events of a process compare with the hits. */
enum site_hits_rule {
    SITE_HITS_UNKNOWN,     /* they do not: some may be missing */
    SITE_HITS_MAY_BE_MORE, /* of the last exits, only the hits may be in the trace */
    SITE_HITS_EQUAL,
};
/* category: that of the events, a known string. */
typedef enum site_hits_rule site_hits_rule_of(const void *context, uint32_t process, uint32_t category);

struct site_hits {
    struct row_table groups;
    bool full; /* a group had no room: nothing is compared */
};

void site_hits_init(struct site_hits *hits);
void site_hits_free(struct site_hits *hits);
/* Counts an exit or a fallback. */
void site_hits_event(struct site_hits *hits, struct reader *reader, const struct fxt_event *event);
/* Adds the hits of a site, which is of the category `kind`. */
void site_hits_site(struct site_hits *hits, struct reader *reader, const struct fxt_event *site, uint32_t kind,
                    uint64_t count);
/* Reports each group whose counts differ. */
void site_hits_finish(struct site_hits *hits, struct reader *reader, site_hits_rule_of *rule_of, const void *context);

#endif
