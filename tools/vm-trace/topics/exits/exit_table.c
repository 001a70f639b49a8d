/* exit_table.c - see exit_table.h
 *
 * The length of a trace is known only at its end. So bins begin narrow, and are merged in pairs as the
 * trace grows, in all rows at once: the bins of all rows cover the same time.
 */
#include <string.h>

#include "topics/exits/exit_table.h"

enum { FIRST_SHIFT = 14 };

void
exit_table_init(struct exit_table *exits)
{
    *exits = (struct exit_table){.shift = FIRST_SHIFT};
    row_table_init(&exits->rows, sizeof(struct exit_row), EXIT_ROW_KEYS, EXIT_ROWS_MAX);
}

void
exit_table_free(struct exit_table *exits)
{
    exit_rows_free(&exits->rows);
}

void
exit_rows_free(struct row_table *rows)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        struct exit_row *row = row_table_at(rows, i);
        durations_free(&row->lost);
    }
    row_table_free(rows);
}

struct exit_row *
exit_table_row(struct exit_table *exits, const uint32_t key[EXIT_ROW_KEYS])
{
    return row_table_get(&exits->rows, key);
}

/* Moves the contents of the bins to bins of another width and with another first bin. */
static void
move_bins(struct exit_table *exits, unsigned shift, int64_t first_bin)
{
    for (uint32_t i = 0; i < exits->rows.count; i++) {
        struct exit_row *row = row_table_at(&exits->rows, i);
        float bins[EXIT_ROW_BINS] = {0};
        for (int bin = 0; bin < EXIT_ROW_BINS; bin++) {
            if (row->bins[bin] == 0) continue;
            bins[((exits->first_bin + bin) >> (shift - exits->shift)) - first_bin] += row->bins[bin];
        }
        memcpy(row->bins, bins, sizeof bins);
    }
    exits->shift = shift;
    exits->first_bin = first_bin;
}

/* The last nanosecond of a bin. Times go up to INT64_MAX. */
static int64_t
bin_end(const struct exit_table *exits, int bin)
{
    int64_t next = exits->first_bin + bin + 1;
    return next > INT64_MAX >> exits->shift ? INT64_MAX : (next << exits->shift) - 1;
}

/* Makes the bins cover a time, in addition to the times that they cover already. */
static void
cover(struct exit_table *exits, int64_t ts_ns)
{
    if (!exits->has_bins) {
        exits->has_bins = true;
        exits->first_bin = ts_ns >> exits->shift;
        return;
    }
    int64_t first_ns = exits->first_bin << exits->shift;
    int64_t last_ns = bin_end(exits, EXIT_ROW_BINS - 1);
    if (ts_ns < first_ns) first_ns = ts_ns;
    else last_ns = ts_ns;
    unsigned shift = exits->shift;
    while ((last_ns >> shift) - (first_ns >> shift) >= EXIT_ROW_BINS) shift++;
    move_bins(exits, shift, first_ns >> shift);
}

void
exit_table_add(struct exit_table *exits, struct exit_row *row, int64_t ts_ns, uint64_t weight)
{
    int64_t bin = (ts_ns >> exits->shift) - exits->first_bin;
    if (bin < 0 || bin >= EXIT_ROW_BINS || !exits->has_bins) {
        cover(exits, ts_ns);
        bin = (ts_ns >> exits->shift) - exits->first_bin;
    }
    row->bins[bin] += (float)weight;
    if (row->records == 0 || ts_ns < row->first_ns) row->first_ns = ts_ns;
    if (row->records == 0 || ts_ns > row->last_ns) row->last_ns = ts_ns;
    row->records++;
    row->weighted += weight;
}

/* An event of weight w was recorded with a probability of 1/w: see diff.c. */
void
exit_row_add_lost(struct exit_row *row, uint64_t lost_ns, uint64_t weight)
{
    uint64_t weighted_ns;
    if (lost_ns == 0) return;
    durations_add(&row->lost, lost_ns);
    if (lost_ns > row->lost_max_ns) row->lost_max_ns = lost_ns;
    if (__builtin_mul_overflow(lost_ns, weight, &weighted_ns)) weighted_ns = lost_ns; /* a damaged number */
    row->recorded_lost_ns += weighted_ns;
    row->lost_variance += (double)lost_ns * (double)lost_ns * (double)weight * ((double)weight - 1);
}

void
exit_row_merge(struct exit_row *into, const struct exit_row *from)
{
    if (from->records > 0) {
        if (into->records == 0 || from->first_ns < into->first_ns) into->first_ns = from->first_ns;
        if (into->records == 0 || from->last_ns > into->last_ns) into->last_ns = from->last_ns;
    }
    into->records += from->records;
    into->weighted += from->weighted;
    into->hits += from->hits;
    into->count += from->count;
    into->recorded_lost_ns += from->recorded_lost_ns;
    into->lost_variance += from->lost_variance;
    into->site_lost_ns += from->site_lost_ns;
    into->lost_ns += from->lost_ns;
    if (from->lost_max_ns > into->lost_max_ns) into->lost_max_ns = from->lost_max_ns;
    for (unsigned i = 0; i < EXIT_OUTCOMES; i++) into->outcomes[i] += from->outcomes[i];
    for (unsigned i = 0; i < EXIT_ROW_BINS; i++) into->bins[i] += from->bins[i];
}

void
exit_row_clear(struct exit_row *row)
{
    uint32_t key[EXIT_ROW_KEYS];
    memcpy(key, row, sizeof key);
    durations_free(&row->lost);
    *row = (struct exit_row){0};
    memcpy(row, key, sizeof key);
}

void
exit_row_rate(const struct exit_table *exits, const struct exit_row *row, int64_t first_ns, int64_t last_ns,
              unsigned count, float *rate_out)
{
    memset(rate_out, 0, count * sizeof *rate_out);
    double part_ns = ((double)(last_ns - first_ns) + 1) / count;
    for (int bin = 0; bin < EXIT_ROW_BINS; bin++) {
        if (row->bins[bin] == 0) continue;
        int64_t begin_ns = (exits->first_bin + bin) << exits->shift;
        int64_t end_ns = bin_end(exits, bin);
        if (begin_ns < first_ns) begin_ns = first_ns;
        if (end_ns > last_ns) end_ns = last_ns;
        double begin = (double)(begin_ns - first_ns) / part_ns, end = ((double)(end_ns - first_ns) + 1) / part_ns;
        for (unsigned i = (unsigned)begin; i < count && i < end; i++) {
            double from = begin > i ? begin : i, to = end < i + 1 ? end : i + 1;
            if (to > from) rate_out[i] += (float)(row->bins[bin] * (to - from) / (end - begin));
        }
    }
}
