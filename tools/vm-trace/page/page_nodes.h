#ifndef PAGE_NODES_H
#define PAGE_NODES_H
/* page_nodes.h - which nodes of a profile a flame graph of the page shows. */
#include <stdbool.h>
#include <stdint.h>

/* Of nodes with these totals, the first of which is the root, chooses the PAGE_NODES_SHOWN largest. A
 * parent has a lower number and at least the total of its child, so it is chosen, too. The caller frees
 * the result. *left_out_out: how many are not chosen. */
bool *page_nodes_shown(const uint64_t *totals, uint32_t count, uint32_t *left_out_out);

#endif
