#ifndef TABLES_SCHEMA_H
#define TABLES_SCHEMA_H
/* tables_schema.h - the tables of `vm-trace export --tables`: their columns, in order.
 *
 * The schema is a contract with databases that other people keep for years. A column is never renamed,
 * removed, or given another meaning. A new one goes to the end of its table, and TABLES_SCHEMA is raised:
 * each row begins with the version of its schema. doc/guide/tables.md is made from the same texts.
 */
#include <stdio.h>

enum { TABLES_SCHEMA = 3 };

enum table_id {
    TABLE_PROCESSES, TABLE_THREADS, TABLE_SITES, /* sums of a trace */
    TABLE_STACKS, TABLE_FRAMES, TABLE_EVENTS, TABLE_SPANS, TABLE_STATES, TABLE_COUNTERS,
};
enum { TABLES = TABLE_COUNTERS + 1 };

/* Numbers have 64 bits. A number is never missing: what is unknown is 0. */
enum table_type { TABLE_TEXT, TABLE_INTEGER, TABLE_REAL };

struct table_column {
    const char *name; /* NULL: the end of the table */
    enum table_type type;
    const char *meaning; /* with its unit */
};

struct table_schema {
    const char *name;
    const char *meaning;
    const struct table_column *columns;
};
extern const struct table_schema table_schemas[TABLES];
/* "text", "integer", "real" */
extern const char *const table_type_names[];

/* Prints all of it as JSON, for schema.json. */
void tables_schema_print(FILE *out);

#endif
