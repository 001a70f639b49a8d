#ifndef TABLE_H
#define TABLE_H
/* table.h - how a table of SQL is read from the model: tables.c registers them. */
#ifdef HAVE_SQLITE3
#include <sqlite3.h>

#include "sql/model.h"

struct table {
    const char *name;
    const char *columns;
    int key;      /* index of the column that rows are found by, a number */
    int text_key; /* index of the string column that together with it identifies a row; or -1 */
    uint32_t (*rows)(const struct model *model);
    /* The rows with that key; NULL if the key is the row's number. */
    void (*find)(const struct model *model, uint32_t key, uint32_t *first_out, uint32_t *end_out);
    /* With a text key: the row among those that has it, or `end`. */
    uint32_t (*find_text)(const struct model *model, uint32_t first, uint32_t end, uint32_t string);
    void (*column)(sqlite3_context *result, const struct model *model, uint32_t row, int column);
};

static inline void
result_string(sqlite3_context *result, const struct model *model, uint32_t string)
{
    if (string == MODEL_NONE) return; /* NULL */
    struct fxt_string text = pool_string(model->pool, string);
    sqlite3_result_text(result, text.ptr, (int)text.len, SQLITE_STATIC);
}

static inline void
result_text(sqlite3_context *result, const char *text)
{
    if (text != NULL) sqlite3_result_text(result, text, -1, SQLITE_STATIC);
}

static inline void
result_number(sqlite3_context *result, uint32_t number)
{
    if (number != MODEL_NONE) sqlite3_result_int64(result, number);
}

/* Those of stack samples (sample_tables.c); the last one has no name. */
extern const struct table sample_tables[];

#endif
#endif
