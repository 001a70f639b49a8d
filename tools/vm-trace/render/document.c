/* document.c - see document.h */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "fxt/input.h"
#include "render/document.h"

void
document_free(struct document *document)
{
    for (uint32_t i = 0; i < document->table_count; i++) {
        free(document->tables[i]->cells);
        free(document->tables[i]->columns);
        free(document->tables[i]->scales);
        free(document->tables[i]);
    }
    for (uint32_t i = 0; i < document->kept_count; i++) free(document->kept[i]);
    free(document->tables);
    free(document->lines);
    free(document->kept);
    *document = (struct document){0};
}

static void *
keep(struct document *document, size_t bytes)
{
    make_room(document->kept, document->kept_count, document->kept_capacity);
    return document->kept[document->kept_count++] = xcalloc(bytes, 1);
}

struct fxt_string
document_text(struct document *document, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = keep(document, (size_t)len + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)len + 1, format, args);
    va_end(args);
    return (struct fxt_string){.ptr = text, .len = (uint32_t)len};
}

float *
document_rate(struct document *document)
{
    return keep(document, DOCUMENT_PARTS * sizeof(float));
}

void
document_line(struct document *document, const char *title, struct fxt_string text)
{
    make_room(document->lines, document->line_count, document->line_capacity);
    document->lines[document->line_count++] = (struct line){title, text};
}

struct table *
table_new(const char *id, struct fxt_string title, const struct column *columns, unsigned column_count)
{
    struct table *table = xcalloc(1, sizeof *table);
    *table = (struct table){.id = id, .title = title, .column_count = column_count};
    table->columns = xcalloc(column_count, sizeof *columns);
    table->scales = xcalloc(column_count, sizeof *table->scales);
    memcpy(table->columns, columns, column_count * sizeof *columns);
    return table;
}

struct table *
document_table(struct document *document, const char *id, struct fxt_string title, const struct column *columns,
               unsigned column_count)
{
    make_room(document->tables, document->table_count, document->table_capacity);
    return document->tables[document->table_count++] = table_new(id, title, columns, column_count);
}

void
document_insert(struct document *document, struct table *table)
{
    make_room(document->tables, document->table_count, document->table_capacity);
    document->tables[document->table_count++] = table;
}

void
document_partial(struct document *document, const struct fxt_parts *parts)
{
    static const struct column columns[] = {
        [PARTIAL_FILE] = {"file", "file", COLUMN_TEXT},
        [PARTIAL_WHAT] = {"partial", "what was read", COLUMN_TEXT},
        [PARTIAL_STOPPED] = {"stopped", "stopped", COLUMN_NUMBER},
        [PARTIAL_BYTES] = {"read_bytes", "bytes read", COLUMN_COUNT},
        [PARTIAL_OF] = {"file_bytes", "of", COLUMN_COUNT},
        [PARTIAL_UP_TO] = {"read_ns", "up to", COLUMN_TIME},
        [PARTIAL_FAULTS] = {"faults", "faults", COLUMN_COUNT},
    };
    if (parts->count == 0) return;
    struct table *table = document_table(document, "partial", text_of("Read in part"), COLUMNS(columns));
    table->data = true;
    document->partial = table;
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct fxt_part *part = &parts->list[i];
        struct cell *row = table_row(table);
        row[PARTIAL_FILE] = cell_text(text_of(strcmp(part->path, "-") == 0 ? "standard input" : part->path));
        row[PARTIAL_WHAT] = cell_text(text_of(part->text));
        row[PARTIAL_STOPPED] = cell_number(part->stopped);
        row[PARTIAL_BYTES] = cell_number(part->read_bytes);
        if (part->file_bytes != INPUT_SIZE_UNKNOWN) row[PARTIAL_OF] = cell_number(part->file_bytes);
        row[PARTIAL_UP_TO] = cell_time(part->ns);
        row[PARTIAL_FAULTS] = cell_number(part->damaged);
    }
}

struct cell *
table_row(struct table *table)
{
    if (table->row_count == table->row_capacity) {
        table->row_capacity = (uint32_t)grown_capacity(table->row_capacity, sizeof table->row_capacity);
        table->cells = xrealloc(table->cells, table->row_capacity, table->column_count * sizeof *table->cells);
    }
    struct cell *row = table->cells + (size_t)table->row_count++ * table->column_count;
    memset(row, 0, table->column_count * sizeof *row);
    return row;
}

struct cell
cell_number(uint64_t number)
{
    return (struct cell){.present = true, .number = number};
}

struct cell
cell_share(uint64_t part, uint64_t whole)
{
    return (struct cell){.present = whole > 0, .share = whole > 0 ? (double)part / (double)whole : 0};
}

struct cell
cell_amount(double amount)
{
    return (struct cell){.present = true, .amount = amount};
}

struct cell
cell_change(double share)
{
    return (struct cell){.present = isfinite(share), .share = share};
}

struct cell
cell_time(int64_t ns)
{
    return (struct cell){.present = true, .time_ns = ns};
}

struct cell
cell_text(struct fxt_string text)
{
    return (struct cell){.present = true, .text = text};
}

struct cell
cell_rate(const float *rate)
{
    return (struct cell){.present = rate != NULL, .rate = rate};
}

const char *
with_commas(char text[NUMBER_TEXT], uint64_t number)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, number);
    char *to = text;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

const char *
amount_text(char text[NUMBER_TEXT], double amount)
{
    if (amount >= 1000 || (amount == floor(amount) && amount >= 0)) return with_commas(text, (uint64_t)(amount + 0.5));
    snprintf(text, NUMBER_TEXT, amount >= 10 ? "%.1f" : "%.2f", amount);
    return text;
}

const char *
delta_text(char text[NUMBER_TEXT], double delta)
{
    text[0] = delta < 0 ? '-' : '+';
    char amount[NUMBER_TEXT];
    snprintf(text + 1, NUMBER_TEXT - 1, "%.*s", NUMBER_TEXT - 2, amount_text(amount, fabs(delta)));
    return text;
}

const char *
bytes_text(char text[NUMBER_TEXT], uint64_t bytes)
{
    if (bytes < 10000) snprintf(text, NUMBER_TEXT, "%" PRIu64 " bytes", bytes);
    else if (bytes < 10000000) snprintf(text, NUMBER_TEXT, "%.1f kB", (double)bytes / 1e3);
    else if (bytes < UINT64_C(10000000000)) snprintf(text, NUMBER_TEXT, "%.1f MB", (double)bytes / 1e6);
    else snprintf(text, NUMBER_TEXT, "%.1f GB", (double)bytes / 1e9);
    return text;
}

/* --- durations ---------------------------------------------------------------------------------------- */

static const struct {
    double ns;
    const char *name;
} duration_units[DURATION_UNITS] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};

void
duration_scale_add(struct duration_scale *scale, uint64_t ns)
{
    if (ns == 0) return;
    if (ns > scale->most) scale->most = ns;
    if (scale->count++ == 0 || ns < scale->least) scale->least = ns;
    for (unsigned i = 0; i < DURATION_UNITS; i++) scale->small[i] += (double)ns < 0.9995 * duration_units[i].ns;
}

/* The unit in which the longest is at least 1; if most are below 1 in it, the next smaller one. */
static unsigned
unit_of(const struct duration_scale *scale)
{
    unsigned unit = 0;
    while (unit + 1 < DURATION_UNITS && (double)scale->most >= 0.9995 * duration_units[unit + 1].ns) unit++;
    return unit > 0 && 2 * scale->small[unit] > scale->count ? unit - 1 : unit;
}

static int
decimals_of(const struct duration_scale *scale, unsigned unit)
{
    double least = (double)scale->least / duration_units[unit].ns;
    if (unit == 0 || least >= 99.95) return 0;
    return least >= 9.995 ? 1 : 2;
}

const char *
scaled_duration_text(char text[NUMBER_TEXT], const struct duration_scale *scale, uint64_t ns)
{
    unsigned unit = unit_of(scale);
    int decimals = ns > 0 ? decimals_of(scale, unit) : 0;
    char number[NUMBER_TEXT], whole[NUMBER_TEXT];
    double value = (double)ns / duration_units[unit].ns, least = pow(10, -decimals);
    if (ns > 0 && value < least / 2) {
        snprintf(text, NUMBER_TEXT, "<%.*f %s", decimals, least, duration_units[unit].name);
        return text;
    }
    int len = snprintf(number, sizeof number, "%.*f", decimals, value);
    const char *fraction = number + len - (decimals > 0 ? decimals + 1 : 0);
    with_commas(whole, strtoull(number, NULL, 10));
    snprintf(text, NUMBER_TEXT, "%.20s%.3s %s", whole, fraction, duration_units[unit].name);
    return text;
}

const char *
scaled_delta_text(char text[NUMBER_TEXT], const struct duration_scale *scale, int64_t ns)
{
    char size[NUMBER_TEXT];
    scaled_duration_text(size, scale, ns < 0 ? (uint64_t)0 - (uint64_t)ns : (uint64_t)ns);
    snprintf(text, NUMBER_TEXT, "%c%.*s", ns < 0 ? '-' : '+', NUMBER_TEXT - 2, size);
    return text;
}

const char *
duration_text(char text[NUMBER_TEXT], uint64_t ns)
{
    struct duration_scale scale = {0};
    duration_scale_add(&scale, ns);
    return scaled_duration_text(text, &scale, ns);
}

void
table_choose_scales(const struct table *table)
{
    for (unsigned i = 0; i < table->column_count; i++) {
        enum column_kind kind = table->columns[i].kind;
        table->scales[i] = (struct duration_scale){0};
        if (kind != COLUMN_DURATION && kind != COLUMN_TIME_DELTA) continue;
        for (uint32_t row = 0; row < table->row_count; row++) {
            const struct cell *cell = &table->cells[row * table->column_count + i];
            bool negative = kind == COLUMN_TIME_DELTA && cell->time_ns < 0;
            if (cell->present)
                duration_scale_add(&table->scales[i], negative ? (uint64_t)0 - cell->number : cell->number);
        }
    }
}
