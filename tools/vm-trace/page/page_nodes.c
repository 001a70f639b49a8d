/* page_nodes.c - see page_nodes.h */
#include <stdlib.h>

#include "page/page_data.h"
#include "base/xalloc.h"
#include "page/page_nodes.h"

struct node_total {
    uint32_t node;
    uint64_t total;
};

static int
by_total(const void *left, const void *right)
{
    const struct node_total *a = left, *b = right;
    if (a->total != b->total) return a->total > b->total ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

bool *
page_nodes_shown(const uint64_t *totals, uint32_t count, uint32_t *left_out_out)
{
    struct node_total *order = xcalloc(count, sizeof *order);
    bool *shown = xcalloc(count, sizeof *shown);
    uint32_t used = 0;
    for (uint32_t i = 1; i < count; i++) {
        if (totals[i] > 0) order[used++] = (struct node_total){i, totals[i]};
    }
    if (used > 1) qsort(order, used, sizeof *order, by_total);
    shown[0] = true;
    for (uint32_t i = 0; i < used && i < PAGE_NODES_SHOWN; i++) shown[order[i].node] = true;
    *left_out_out = used > PAGE_NODES_SHOWN ? used - PAGE_NODES_SHOWN : 0;
    free(order);
    return shown;
}
