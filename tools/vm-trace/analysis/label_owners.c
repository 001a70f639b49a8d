/* label_owners.c - see label_owners.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/label.h"
#include "analysis/label_owners.h"

enum { LABELS_MAX = 256 * 1024 };

struct owned_label {
    uint32_t bare;  /* the key: the label without owner */
    uint32_t label; /* with it; the same as `bare`: there are several */
};

void
label_owners_init(struct label_owners *owners)
{
    row_table_init(&owners->rows, sizeof(struct owned_label), 1, LABELS_MAX);
}

void
label_owners_free(struct label_owners *owners)
{
    row_table_free(&owners->rows);
}

/* The label without its owner, or STRING_NONE if it has none. */
static uint32_t
bare_label(struct pool *pool, uint32_t label)
{
    struct fxt_string text = pool_string(pool, label);
    struct label_owner owner = label_owner((struct fxt_string){.ptr = text.ptr, .len = label_method_bytes(text)});
    if (owner.bytes == 0) return STRING_NONE;
    char *bare = xcalloc(text.len, 1);
    size_t rest = owner.at + owner.bytes;
    memcpy(bare, text.ptr, owner.at);
    memcpy(bare + owner.at, text.ptr + rest, text.len - rest);
    uint32_t id = pool_intern(pool, bare, text.len - owner.bytes);
    free(bare);
    return id;
}

void
label_owners_add(struct label_owners *owners, struct pool *pool, uint32_t label)
{
    uint32_t bare = bare_label(pool, label);
    struct owned_label *owned = bare != STRING_NONE ? row_table_get(&owners->rows, &bare) : NULL;
    if (owned == NULL) return;
    owned->label = owned->label == 0 || owned->label == label ? label : bare;
}

uint32_t
label_owners_find(struct label_owners *owners, uint32_t label)
{
    const struct owned_label *owned = row_table_find(&owners->rows, &label);
    return owned != NULL ? owned->label : label;
}
