/* site_hits.c - see site_hits.h */
#include <inttypes.h>

#include "analysis/event_args.h"
#include "topics/exits/site_hits.h"
#include "base/escape.h"
#include "fxt/known_strings.h"

enum { GROUPS_MAX = 1024 * 1024, KEY_WORDS = 5 };

struct group {
    uint32_t process, category, reason, insn, version; /* the key */
    uint64_t events, hits;
    uint64_t offset; /* of its first record */
};

void
site_hits_init(struct site_hits *hits)
{
    *hits = (struct site_hits){0};
    row_table_init(&hits->groups, sizeof(struct group), KEY_WORDS, GROUPS_MAX);
}

void
site_hits_free(struct site_hits *hits)
{
    row_table_free(&hits->groups);
}

/* Returns NULL if there are too many. */
static struct group *
group_of(struct site_hits *hits, struct reader *reader, const struct fxt_event *event, uint32_t category,
         uint32_t reason)
{
    const uint32_t key[KEY_WORDS] = {event->process, category, reason,
                                     event_text(reader_pool(reader), event, STRING_INSN),
                                     (uint32_t)event_uint(event, STRING_VERSION, 0)};
    bool added;
    uint32_t number = row_table_intern(&hits->groups, key, reader_budget(reader), &added);
    if (number == ROW_NONE) {
        hits->full = true;
        return NULL;
    }
    struct group *group = row_table_at(&hits->groups, number);
    if (added) group->offset = event->offset;
    return group;
}

void
site_hits_event(struct site_hits *hits, struct reader *reader, const struct fxt_event *event)
{
    uint32_t reason = pool_id(reader_pool(reader), event->name);
    struct group *group = group_of(hits, reader, event, event->category.id, reason);
    if (group != NULL) group->events++;
}

void
site_hits_site(struct site_hits *hits, struct reader *reader, const struct fxt_event *site, uint32_t kind,
               uint64_t count)
{
    uint32_t reason = event_text(reader_pool(reader), site, STRING_REASON);
    struct group *group = group_of(hits, reader, site, kind, reason);
    if (group != NULL) group->hits += count;
}

static void
report_group(struct reader *reader, const struct group *group)
{
    const struct pool *pool = reader_pool(reader);
    char category[40], reason[140], insn[64];
    reader_fault(reader, FXT_FAULT_SCHEMA, group->offset,
                 "%s %s at %s, version %" PRIu32 ": the file holds %" PRIu64 ", but the hits of its sites are %" PRIu64,
                 escape_into(category, sizeof category, pool_string(pool, group->category)),
                 escape_into(reason, sizeof reason, pool_string(pool, group->reason)),
                 escape_into(insn, sizeof insn, pool_string(pool, group->insn)), group->version, group->events,
                 group->hits);
}

void
site_hits_finish(struct site_hits *hits, struct reader *reader, site_hits_rule_of *rule_of, const void *context)
{
    if (hits->full) {
        reader_fault(reader, FXT_FAULT_TOO_MUCH_TO_CHECK, 0,
                     "sites of more than %d kinds: their hits are not compared with the events", GROUPS_MAX);
        return;
    }
    for (uint32_t i = 0; i < hits->groups.count; i++) {
        const struct group *group = row_table_at(&hits->groups, i);
        enum site_hits_rule rule = rule_of(context, group->process, group->category);
        bool wrong = rule == SITE_HITS_EQUAL ? group->events != group->hits
                                             : rule == SITE_HITS_MAY_BE_MORE && group->events > group->hits;
        if (wrong) report_group(reader, group);
    }
}
