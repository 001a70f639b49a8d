#ifndef EXIT_PAGE_H
#define EXIT_PAGE_H
/* exit_page.h - what `vm-trace html` shows of exits and fallbacks: rows by place and reason, and the exact lost time of
 * sites.
 *
 *      zeroed -> page_exits_init -> page_exits_event and _site for each event -> page_exits_finish -> the rows
 *      -> page_exits_free
 */
#include "base/row_table.h"
#include "fxt/known_strings.h"
#include "topics/trace_choice.h"

enum {
    PAGE_ROW_KEYS = 5,
    PAGE_ROWS_MAX = 256 * 1024, /* distinct rows while reading */
    PAGE_PLACES_SHOWN = 10000,  /* rows at most; the others are summed up by reason */
    PAGE_PLACES_LEAST = 1000,   /* rows that are shown even if their frames have more bytes than these: */
    PAGE_PLACES_BYTES = 1024 * 1024,
    PAGE_REASONS_SHOWN = 1000,  /* sums by reason; one more has the rest */
    PAGE_OVERFLOW_ROW = 0,      /* its key is all zeros, which no event has */
    PAGE_SITE_KEYS = 4,
    PAGE_SITES_MAX = 256 * 1024,
};

/* Exits or fallbacks with one key. Strings are numbers of the pool. */
struct page_row {
    uint32_t category; /* the key */
    uint32_t reason;
    uint32_t frame;
    uint32_t insn;
    uint32_t outcome;
    uint32_t places;  /* 1, or the number of rows summed up here (of one reason and category, if these are set) */
    uint64_t count;   /* sum of the weights */
    int64_t first_ns; /* times of the first and last */
    int64_t last_ns;
    uint64_t lost_ns, lost_max_ns; /* until it is finished: of the events, weighted; then exact, if that is known */
};

/* The exact lost time of the exits of one reason at one line. */
struct page_site {
    uint32_t category; /* the key; numbers of the pool */
    uint32_t reason;
    uint32_t insn;
    uint32_t path_and_line;
    uint32_t location;
    uint64_t lost_ns, lost_max_ns;
};

struct page_exits {
    struct row_table gathered; /* of struct page_row; the first one collects what is beyond PAGE_ROWS_MAX */
    struct page_row *rows;     /* once finished: the rows to show, and the sums of the others */
    uint32_t row_count;
    uint32_t *shown_in; /* once finished: the number in `rows` of each gathered row; ROW_NONE: it has no exits */
    struct row_table sites;    /* of struct page_site */
    uint64_t exits, fallbacks; /* sums of the weights */
    uint64_t recorded;         /* events of these */
    bool lost_exact;           /* once finished: the lost time of rows is that of the sites */
};

/* An exit that was added. */
struct page_exit {
    uint32_t row; /* its number in `gathered` */
    uint64_t weight;
    bool timed;   /* the event knows the lost time: */
    uint64_t lost_ns, weighted_ns;
};

void page_exits_init(struct page_exits *exits);
void page_exits_free(struct page_exits *exits);
/* An exit or a fallback. */
struct page_exit page_exits_event(struct page_exits *exits, struct pool *pool, const struct fxt_event *event);
/* The event `trace` `site`. Returns whether it has lost time. */
bool page_exits_site(struct page_exits *exits, struct pool *pool, const struct fxt_event *event);
/* After the last file, whose last event is at `last_ns`: sorts the rows, largest first, and sums up those that are not
 * shown, by reason; with too many reasons, the rest in one row. exact: all sites are there. */
void page_exits_finish(struct page_exits *exits, struct pool *pool, struct trace_filter *filter, bool exact,
                       int64_t last_ns);

#endif
