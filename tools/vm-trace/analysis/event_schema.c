/* event_schema.c - see event_schema.h. The macros here are what events.def is written with. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/event_schema.h"
#include "base/escape.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"

/* X(name, text, first and last type of event) */
#define FORMS(X) \
    X(INSTANT, "an instant", INSTANT, INSTANT) \
    X(COUNTER, "a counter", COUNTER, COUNTER) \
    X(SPAN, "the begin or the end of a duration", DURATION_BEGIN, DURATION_END) \
    X(DURATION, "a duration", DURATION_BEGIN, DURATION_COMPLETE) \
    X(COMPLETE, "a duration in one record", DURATION_COMPLETE, DURATION_COMPLETE) \
    X(ASYNC, "an async event", ASYNC_BEGIN, ASYNC_END) \
    X(FLOW, "a flow", FLOW_BEGIN, FLOW_END) \
    X(MARKER, "an instant, a duration or a counter", INSTANT, DURATION_END)

/* X(name, text, the bits of the types of arguments). Numbers of 32 and 64 bits are alike. */
#define BIT(type) (1u << FXT_ARG_##type)
#define UNSIGNED (BIT(UINT32) | BIT(UINT64) | BIT(INT32) | BIT(INT64))
#define TYPES(X) \
    X(STRING, "string", BIT(STRING)) \
    X(UINT32, "unsigned number", UNSIGNED) \
    X(UINT64, "unsigned number", UNSIGNED) \
    X(UINT, "unsigned number", UNSIGNED) \
    X(INT, "signed number", BIT(INT32) | BIT(INT64)) \
    X(INTEGER, "whole number", UNSIGNED) \
    X(ADDRESS, "whole number", UNSIGNED | BIT(POINTER)) \
    X(ANYTHING, "value", UINT32_MAX) \
    X(FRAMES, "frame", UINT32_MAX) \
    X(CALLERS, "frame", UINT32_MAX)

enum row_kind { ROW_EVENT, ROW_ALSO, ROW_ARG, ROW_VALUE };
enum form {
#define FORM(name, text, first, last) FORM_##name,
    FORMS(FORM)
};
enum type {
#define TYPE(name, text, bits) TYPE_##name,
    TYPES(TYPE)
};
enum need { NEEDED_ALWAYS, NEEDED_NEVER, NEEDED_WITH, NEEDED_UNLESS, NEEDED_AT_BEGIN };
enum { STRING_ANY = STRING_NONE };

/* A row of events.def. */
struct row {
    uint8_t kind;
    uint8_t what;   /* form or type */
    uint8_t need;
    uint16_t name;  /* enum known_string, as the next one; of an event its category */
    uint16_t other; /* of an event its name, of an argument the one that `need` refers to */
};

#define NEED_ALWAYS NEEDED_ALWAYS, STRING_NONE
#define NEED_MAY NEEDED_NEVER, STRING_NONE
#define NEED_WITH(name) NEEDED_WITH, STRING_##name
#define NEED_UNLESS(name) NEEDED_UNLESS, STRING_##name
#define NEED_BEGIN NEEDED_AT_BEGIN, STRING_NONE
#define ARG_ROW(type, need, other, name) {ROW_ARG, type, need, name, other}
#define EXPANDED(macro, ...) macro(__VA_ARGS__)

static const struct row rows[] = {
#define EVENT(category, name, form) {ROW_EVENT, FORM_##form, 0, STRING_##category, STRING_##name},
#define ALSO(category, name, form) {ROW_ALSO, FORM_##form, 0, STRING_##category, STRING_##name},
#define ARG(name, type, need, meaning) EXPANDED(ARG_ROW, TYPE_##type, NEED_##need, STRING_##name),
#define VALUE(name, meaning) {ROW_VALUE, 0, 0, STRING_##name, STRING_NONE},
#include "vm_trace/schema/events.def"
    {ROW_EVENT, 0, 0, STRING_NONE, STRING_NONE}
};
enum { ROWS = sizeof rows / sizeof *rows, NEEDED_MAX = 10, NO_ROW = 0, NO_RULE = 0 };

static const struct {
    const char *text;
    enum fxt_event_type first, last;
} forms[] = {
#define FORM_OF(name, text, first, last) {text, FXT_EVENT_##first, FXT_EVENT_##last},
    FORMS(FORM_OF)
};

static const struct {
    const char *text;
    uint32_t bits;
} types[] = {
#define TYPE_OF(name, text, bits) {text, bits},
    TYPES(TYPE_OF)
};

/* An event, with the rows of all of its arguments. */
struct rule {
    uint16_t name; /* or STRING_ANY */
    uint16_t next; /* rule of the category */
    uint8_t form;
    uint8_t needed_count;
    uint16_t needed[NEEDED_MAX];      /* what it must have, always or sometimes */
    uint16_t any;                     /* of arguments with any other name, or NO_ROW */
    uint16_t of[KNOWN_STRINGS_END];   /* of arguments by name, or NO_ROW */
};

struct event_schema {
    bool closed;
    uint16_t first_of[KNOWN_STRINGS_END]; /* rule of a category */
    uint16_t rule_count;
    struct rule rules[ROWS];
};

static struct rule *
rule_of(struct event_schema *schema, const struct row *event)
{
    for (uint16_t i = schema->first_of[event->name]; i != NO_RULE; i = schema->rules[i].next) {
        if (schema->rules[i].name == event->other) return &schema->rules[i];
    }
    struct rule *rule = &schema->rules[++schema->rule_count];
    *rule = (struct rule){.name = event->other, .next = schema->first_of[event->name], .form = event->what};
    schema->first_of[event->name] = schema->rule_count;
    return rule;
}

static void
add_argument(struct rule *rule, uint16_t number)
{
    const struct row *row = &rows[number];
    bool frames = row->what == TYPE_FRAMES || row->what == TYPE_CALLERS;
    if (row->name == STRING_ANY) rule->any = number;
    unsigned last = frames ? STRING_FRAME_REST : row->name;
    for (unsigned name = row->name; name <= last; name++) rule->of[name] = number;
    if (row->need == NEEDED_NEVER) return;
    assert(rule->needed_count < NEEDED_MAX);
    rule->needed[rule->needed_count++] = number;
}

struct event_schema *
event_schema_new(bool closed)
{
    struct event_schema *schema = xcalloc(1, sizeof *schema);
    schema->closed = closed;
    for (unsigned event = 0; event < ROWS - 1; event++) {
        if (rows[event].kind > ROW_ALSO) continue;
        struct rule *rule = rule_of(schema, &rows[event]);
        unsigned row = event + 1;
        while (rows[row].kind == ROW_ALSO) row++;
        for (; rows[row].kind > ROW_ALSO; row++) {
            if (rows[row].kind == ROW_ARG) add_argument(rule, (uint16_t)row);
        }
    }
    return schema;
}

void
event_schema_free(struct event_schema *schema)
{
    free(schema);
}

const char *
event_name(struct event_name *name, const struct fxt_event *event)
{
    char category[40], own[140];
    snprintf(name->text, sizeof name->text, "%s %s", escape_into(category, sizeof category, event->category),
             escape_into(own, sizeof own, event->name));
    return name->text;
}

/* --- arguments ------------------------------------------------------------------------------------------------------- */

#define FAULT(reader, event, ...) reader_fault(reader, FXT_FAULT_SCHEMA, (event)->offset, __VA_ARGS__)

static bool
needed(const struct row *row, const struct fxt_event *event)
{
    switch ((enum need)row->need) {
      case NEEDED_ALWAYS: return true;
      case NEEDED_NEVER: return false;
      case NEEDED_WITH: return fxt_event_arg(event, row->other) != NULL;
      case NEEDED_UNLESS: return fxt_event_arg(event, row->other) == NULL;
      case NEEDED_AT_BEGIN: break;
    }
    return event->type == FXT_EVENT_DURATION_BEGIN || event->type == FXT_EVENT_ASYNC_BEGIN;
}

static bool
fits(enum type type, const struct fxt_arg *arg)
{
    uint64_t value;
    bool is_unsigned = type == TYPE_UINT32 || type == TYPE_UINT64 || type == TYPE_UINT;
    return types[type].bits >> arg->type & 1 && (!is_unsigned || fxt_arg_uint(arg, &value));
}

/* One with VALUE rows has one of these texts. */
static bool
is_value(const struct row *row, const struct fxt_arg *arg)
{
    const struct row *value = row + 1;
    if (value->kind != ROW_VALUE) return true;
    while (value->kind == ROW_VALUE && value->name != arg->string.id) value++;
    return value->kind == ROW_VALUE;
}

static void
check_type(struct reader *reader, const struct fxt_event *event, const struct row *row, const struct fxt_arg *arg)
{
    struct event_name name;
    char key[64], text[64];
    if (!fits(row->what, arg)) {
        FAULT(reader, event, "%s has no %s as its argument %s", event_name(&name, event), types[row->what].text,
              escape_into(key, sizeof key, arg->name));
    }
    else if (!is_value(row, arg)) {
        FAULT(reader, event, "%s has the unknown %s %s", event_name(&name, event),
              escape_into(key, sizeof key, arg->name), escape_into(text, sizeof text, arg->string));
    }
}

static void
check_needed(struct reader *reader, const struct fxt_event *event, const struct rule *rule)
{
    struct event_name name;
    for (unsigned i = 0; i < rule->needed_count; i++) {
        const struct row *row = &rows[rule->needed[i]];
        if (row->what == TYPE_FRAMES || fxt_event_arg(event, row->name) != NULL || !needed(row, event)) continue;
        FAULT(reader, event, "%s lacks its argument %s", event_name(&name, event),
              pool_string(reader_pool(reader), row->name).ptr);
    }
}

/* --- events ---------------------------------------------------------------------------------------------------------- */

static bool
known_category(const struct event_schema *schema, const struct fxt_event *event)
{
    return event->category.id < KNOWN_STRINGS_END && schema->first_of[event->category.id] != NO_RULE;
}

static const struct rule *
find_rule(const struct event_schema *schema, const struct fxt_event *event)
{
    const struct rule *any = NULL;
    if (!known_category(schema, event)) return NULL;
    for (uint16_t i = schema->first_of[event->category.id]; i != NO_RULE; i = schema->rules[i].next) {
        if (schema->rules[i].name == STRING_ANY) any = &schema->rules[i];
        else if (schema->rules[i].name == event->name.id) return &schema->rules[i];
    }
    return any;
}

bool
event_schema_check(const struct event_schema *schema, struct reader *reader, const struct fxt_event *event)
{
    struct event_name name;
    char key[64];
    const struct rule *rule = find_rule(schema, event);
    if (rule == NULL) {
        if (!known_category(schema, event))
            FAULT(reader, event, "unknown category %s", escape_into(key, sizeof key, event->category));
        else if (schema->closed) FAULT(reader, event, "unknown event %s", event_name(&name, event));
        return false;
    }
    if (event->type < forms[rule->form].first || event->type > forms[rule->form].last) {
        FAULT(reader, event, "%s is not %s", event_name(&name, event), forms[rule->form].text);
        return false;
    }
    bool frames = rule->of[STRING_FRAME_0] != NO_ROW && rows[rule->of[STRING_FRAME_0]].need == NEEDED_ALWAYS;
    check_needed(reader, event, rule);
    for (unsigned i = 0; i < event->arg_count; i++) {
        const struct fxt_arg *arg = &event->args[i];
        unsigned row = arg->name.id < KNOWN_STRINGS_END ? rule->of[arg->name.id] : NO_ROW;
        if (row == NO_ROW) row = rule->any;
        if (row != NO_ROW) check_type(reader, event, &rows[row], arg);
        else if (schema->closed)
            FAULT(reader, event, "%s has an argument %s", event_name(&name, event),
                  escape_into(key, sizeof key, arg->name));
        frames |= rows[row].kind == ROW_ARG && rows[row].what == TYPE_FRAMES;
    }
    return frames;
}
