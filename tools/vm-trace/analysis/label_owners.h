#ifndef LABEL_OWNERS_H
#define LABEL_OWNERS_H
/* label_owners.h - finds the class for labels without one. If a frame has ended when its label is made,
 * the label is `foo (path:line)`; other events of the same ISEQ have `Foo#foo (path:line)`.
 *
 *      label_owners_init -> label_owners_add for labels of any kind -> label_owners_find
 *      -> label_owners_free
 */
#include "base/row_table.h"

struct label_owners {
    struct row_table rows;
};

void label_owners_init(struct label_owners *owners);
void label_owners_free(struct label_owners *owners);
void label_owners_add(struct label_owners *owners, struct pool *pool, uint32_t label);
/* Returns the label with its owner; the same label if none is known, or several are. */
uint32_t label_owners_find(struct label_owners *owners, uint32_t label);

#endif
