/* exit_table.c - see places.h
 *
 * How long a trace is shows only at its end. So bins begin narrow and are joined by twos as it grows, at all places at once:
 * they always span the same time.
 */
#include <string.h>

#include "analysis/exit_table.h"

enum { FIRST_SHIFT = 14 };

void
places_init(struct places *places)
{
    *places = (struct places){.shift = FIRST_SHIFT};
    group_init(&places->group, sizeof(struct place), PLACE_KEYS, PLACES_MAX);
}

void
places_free(struct places *places)
{
    group_free(&places->group);
}

struct place *
places_get(struct places *places, const uint32_t key[PLACE_KEYS])
{
    return group_row(&places->group, key);
}

/* Moves what is in the bins to where it belongs with another width and another first bin. */
static void
move_bins(struct places *places, unsigned shift, int64_t first_bin)
{
    for (uint32_t i = 0; i < places->group.count; i++) {
        struct place *place = group_at(&places->group, i);
        float bins[PLACE_BINS] = {0};
        for (int bin = 0; bin < PLACE_BINS; bin++) {
            if (place->bins[bin] == 0) continue;
            bins[((places->first_bin + bin) >> (shift - places->shift)) - first_bin] += place->bins[bin];
        }
        memcpy(place->bins, bins, sizeof bins);
    }
    places->shift = shift;
    places->first_bin = first_bin;
}

/* The last nanosecond of a bin; times go up to INT64_MAX. */
static int64_t
bin_end(const struct places *places, int bin)
{
    int64_t next = places->first_bin + bin + 1;
    return next > INT64_MAX >> places->shift ? INT64_MAX : (next << places->shift) - 1;
}

/* Makes the bins span a time as well. Those that were in use still are; they may have been used up to the last. */
static void
span(struct places *places, int64_t ts_ns)
{
    if (!places->has_bins) {
        places->has_bins = true;
        places->first_bin = ts_ns >> places->shift;
        return;
    }
    int64_t first_ns = places->first_bin << places->shift;
    int64_t last_ns = bin_end(places, PLACE_BINS - 1);
    if (ts_ns < first_ns) first_ns = ts_ns;
    else last_ns = ts_ns;
    unsigned shift = places->shift;
    while ((last_ns >> shift) - (first_ns >> shift) >= PLACE_BINS) shift++;
    move_bins(places, shift, first_ns >> shift);
}

void
places_add(struct places *places, struct place *place, int64_t ts_ns, uint64_t weight)
{
    int64_t bin = (ts_ns >> places->shift) - places->first_bin;
    if (bin < 0 || bin >= PLACE_BINS || !places->has_bins) {
        span(places, ts_ns);
        bin = (ts_ns >> places->shift) - places->first_bin;
    }
    place->bins[bin] += (float)weight;
    if (place->records == 0 || ts_ns < place->first_ns) place->first_ns = ts_ns;
    if (place->records == 0 || ts_ns > place->last_ns) place->last_ns = ts_ns;
    place->records++;
    place->weighted += weight;
}

void
place_merge(struct place *into, const struct place *from)
{
    if (from->records > 0) {
        if (into->records == 0 || from->first_ns < into->first_ns) into->first_ns = from->first_ns;
        if (into->records == 0 || from->last_ns > into->last_ns) into->last_ns = from->last_ns;
    }
    into->records += from->records;
    into->weighted += from->weighted;
    into->hits += from->hits;
    into->count += from->count;
    for (unsigned i = 0; i < PLACE_OUTCOMES; i++) into->outcomes[i] += from->outcomes[i];
    for (unsigned i = 0; i < PLACE_BINS; i++) into->bins[i] += from->bins[i];
}

void
place_clear(struct place *place)
{
    uint32_t key[PLACE_KEYS];
    memcpy(key, place, sizeof key);
    *place = (struct place){0};
    memcpy(place, key, sizeof key);
}

void
places_rate(const struct places *places, const struct place *place, int64_t first_ns, int64_t last_ns, unsigned count,
            float *rate_out)
{
    memset(rate_out, 0, count * sizeof *rate_out);
    double part_ns = ((double)(last_ns - first_ns) + 1) / count;
    for (int bin = 0; bin < PLACE_BINS; bin++) {
        if (place->bins[bin] == 0) continue;
        int64_t begin_ns = (places->first_bin + bin) << places->shift;
        int64_t end_ns = bin_end(places, bin);
        if (begin_ns < first_ns) begin_ns = first_ns;
        if (end_ns > last_ns) end_ns = last_ns;
        double begin = (double)(begin_ns - first_ns) / part_ns, end = ((double)(end_ns - first_ns) + 1) / part_ns;
        for (unsigned i = (unsigned)begin; i < count && i < end; i++) {
            double from = begin > i ? begin : i, to = end < i + 1 ? end : i + 1;
            if (to > from) rate_out[i] += (float)(place->bins[bin] * (to - from) / (end - begin));
        }
    }
}
