/* report_fold.c - see report_fold.h
 *
 * Each table groups exits by some of the keys of sites. A table with as many rows as there are sites
 * has one row per site, so any two such tables have the same rows.
 */
#include <string.h>

#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "report/report_fold.h"

enum { KIND, REASON, LINE, INSN, CALLEE, SITE_KEYS };

struct site {
    uint32_t names[SITE_KEYS]; /* the key: numbers of the pool */
};

/* Columns that name sites, in the order in which a table shows them; and the tables that they
 * identify. */
static const struct {
    const char *column;
    unsigned key;
} namings[] = {{"kind", KIND}, {"reason", REASON}, {"instruction", INSN}, {"callee", CALLEE}, {"method", LINE}};
static const char *const foldable[] = {"exits_by_place", "exits_by_reason", "exits_by_line", "exits_by_instruction"};
enum {
    NAMINGS = sizeof namings / sizeof *namings,
    FOLDABLE = sizeof foldable / sizeof *foldable,
    COLUMNS_MOST = 16,
    SITES_MOST = 1000
};

static uint32_t
all_rows(const struct table *table)
{
    return table->more_rows > 0 ? table->row_count - 1 + (uint32_t)table->more_rows : table->row_count;
}

static struct row_table
sites_of(const struct report *report)
{
    struct row_table sites;
    row_table_init(&sites, sizeof(struct site), SITE_KEYS, EXIT_ROWS_MAX);
    for (uint32_t i = 0; i < report->exits.rows.count; i++) {
        const struct exit_row *exit_row = row_table_at(&report->exits.rows, i);
        if (exit_row->category == STRING_FALLBACK || exit_row->count + exit_row->records == 0) continue;
        const uint32_t key[SITE_KEYS] = {[KIND] = exit_row->category,
                                         [REASON] = exit_row->reason,
                                         [LINE] = exit_row->location,
                                         [INSN] = exit_row->insn,
                                         [CALLEE] = exit_row->callee};
        row_table_get(&sites, key);
    }
    return sites;
}

static int
column_of(const struct table *table, const char *id)
{
    for (unsigned i = 0; i < table->column_count; i++) {
        if (strcmp(table->columns[i].id, id) == 0) return (int)i;
    }
    return -1;
}

/* The only site with the names in the row; NULL if there is none. */
static const struct site *
site_of_row(const struct row_table *sites, const struct table *table, const struct cell *row)
{
    for (uint32_t i = 0; i < sites->count; i++) {
        const struct site *site = row_table_at(sites, i);
        bool same = true;
        for (unsigned naming = 0; naming < NAMINGS && same; naming++) {
            int column = column_of(table, namings[naming].column);
            same = column < 0 || row[column].text.id == site->names[namings[naming].key];
        }
        if (same) return site;
    }
    return NULL;
}

/* The first table with the names of the others: its numbers, then all names. */
static struct table *
fold(const struct report *report, const struct row_table *sites, const struct table *first, const bool keys[SITE_KEYS])
{
    struct column columns[COLUMNS_MOST];
    unsigned count = 0, numbers;
    for (unsigned i = 0; i < first->column_count; i++) {
        if (first->columns[i].kind != COLUMN_TEXT) columns[count++] = first->columns[i];
    }
    numbers = count;
    for (unsigned i = 0; i < NAMINGS; i++) {
        if (!keys[namings[i].key]) continue;
        int own = column_of(first, namings[i].column);
        const char *title = own >= 0 ? first->columns[own].title : namings[i].column;
        columns[count++] = (struct column){namings[i].column, title, COLUMN_TEXT};
    }
    struct table *folded = table_new(first->id, first->title, columns, count);
    folded->minor = first->minor;
    folded->more_rows = first->more_rows;
    folded->people = true;
    for (uint32_t i = 0; i < first->row_count; i++) {
        const struct cell *row = first->cells + (size_t)i * first->column_count;
        struct cell *cells = table_row(folded);
        for (unsigned from = 0, to = 0; from < first->column_count; from++) {
            if (first->columns[from].kind != COLUMN_TEXT) cells[to++] = row[from];
        }
        if (first->more_rows > 0 && i + 1 == first->row_count) continue;
        const struct site *site = site_of_row(sites, first, row);
        for (unsigned naming = 0, to = numbers; naming < NAMINGS && site != NULL; naming++) {
            if (!keys[namings[naming].key]) continue;
            uint32_t name = site->names[namings[naming].key];
            if (name == STRING_NONE && namings[naming].key == CALLEE) to++; /* most instructions call nothing */
            else cells[to++] = cell_text(name == STRING_NONE ? text_of("(unknown)") : pool_string(report->pool, name));
        }
    }
    return folded;
}

void
report_fold(const struct report *report, struct document *document)
{
    struct row_table sites = sites_of(report);
    if (sites.count > SITES_MOST) { /* the search for each row is linear */
        row_table_free(&sites);
        return;
    }
    struct table *first = NULL;
    uint32_t first_at = 0, count = 0;
    bool keys[SITE_KEYS] = {false};
    for (uint32_t i = 0; i < document->table_count; i++) {
        struct table *table = document->tables[i];
        bool may = false;
        for (unsigned name = 0; name < FOLDABLE; name++) may = may || strcmp(table->id, foldable[name]) == 0;
        if (!may || table->data || all_rows(table) != sites.count) continue;
        if (count++ == 0) first = table, first_at = i;
        for (unsigned naming = 0; naming < NAMINGS; naming++) {
            if (column_of(table, namings[naming].column) >= 0) keys[namings[naming].key] = true;
        }
    }
    if (count > 1) {
        struct table *folded = fold(report, &sites, first, keys);
        for (uint32_t i = 0; i < document->table_count; i++) {
            struct table *table = document->tables[i];
            for (unsigned name = 0; name < FOLDABLE; name++) {
                if (strcmp(table->id, foldable[name]) == 0 && all_rows(table) == sites.count) table->data = true;
            }
        }
        make_room(document->tables, document->table_count, document->table_capacity);
        memmove(document->tables + first_at + 1, document->tables + first_at,
                (document->table_count - first_at) * sizeof *document->tables);
        document->tables[first_at] = folded;
        document->table_count++;
    }
    row_table_free(&sites);
}
