/* firefox_stacks.c - see firefox_stacks.h */
#include <stdlib.h>

#include "analysis/label.h"
#include "analysis/profile.h"
#include "fxt/known_strings.h"
#include "export/firefox_stacks.h"

enum { NO_SOURCE = UINT32_MAX, DEPTH_MAX = 4096 /* of a backtrace; the profiler draws no deeper one */ };

void
firefox_stacks_init(struct firefox_stacks *stacks, struct reader *reader)
{
    *stacks = (struct firefox_stacks){.pool = reader_pool(reader), .budget = reader_budget(reader)};
    row_table_init(&stacks->strings, sizeof(struct firefox_string), 1, UINT32_MAX);
    row_table_init(&stacks->sources, sizeof(struct firefox_source), 1, UINT32_MAX);
    row_table_init(&stacks->funcs, sizeof(struct firefox_func), 2, UINT32_MAX);
    row_table_init(&stacks->frames, sizeof(struct firefox_frame), 2, UINT32_MAX);
    row_table_init(&stacks->stacks, sizeof(struct firefox_stack), 2, UINT32_MAX);
}

void
firefox_stacks_free(struct firefox_stacks *stacks)
{
    row_table_free(&stacks->strings);
    row_table_free(&stacks->sources);
    row_table_free(&stacks->funcs);
    row_table_free(&stacks->frames);
    row_table_free(&stacks->stacks);
    map_free(&stacks->stack_of_rest);
    map_free(&stacks->stack_below);
    free(stacks->rest.list);
}

/* --- numbers ------------------------------------------------------------------------------------ */

uint32_t
firefox_string(struct firefox_stacks *stacks, uint32_t text)
{
    return row_table_intern(&stacks->strings, &text, stacks->budget, NULL);
}

static uint32_t
source_of(struct firefox_stacks *stacks, struct fxt_string path)
{
    if (path.len == 0) return NO_SOURCE;
    uint32_t name = firefox_string(stacks, pool_intern(stacks->pool, path.ptr, path.len));
    return row_table_intern(&stacks->sources, &name, stacks->budget, NULL);
}

static uint32_t
func_of(struct firefox_stacks *stacks, struct fxt_string method, struct fxt_string path)
{
    uint32_t name = firefox_string(stacks, pool_intern(stacks->pool, method.ptr, method.len));
    const uint32_t key[] = {name, source_of(stacks, path)};
    return row_table_intern(&stacks->funcs, key, stacks->budget, NULL);
}

static uint32_t
frame_of(struct firefox_stacks *stacks, uint32_t text, enum firefox_category category)
{
    const uint32_t key[] = {text, category};
    bool added;
    uint32_t number = row_table_intern(&stacks->frames, key, stacks->budget, &added);
    if (!added) return number;
    struct label_parts parts = {.method = pool_string(stacks->pool, text)};
    if (category == FIREFOX_INHERIT) parts = label_parts(parts.method);
    struct firefox_frame *frame = row_table_at(&stacks->frames, number);
    frame->func = func_of(stacks, parts.method, parts.path);
    frame->line = parts.line > 0 ? parts.line : 0;
    return number;
}

static uint32_t
stack_of_frame(struct firefox_stacks *stacks, uint32_t caller, uint32_t frame)
{
    const uint32_t key[] = {caller, frame};
    return row_table_intern(&stacks->stacks, key, stacks->budget, NULL);
}

uint32_t
firefox_stack(struct firefox_stacks *stacks, uint32_t caller, uint32_t text, enum firefox_category category)
{
    bool frame = category == FIREFOX_INHERIT; /* else another text */
    if (frame && stacks->app_only != NULL && !frame_of_app(stacks->app_only, text)) return caller;
    return stack_of_frame(stacks, caller, frame_of(stacks, text, category));
}

/* A new entry of a map takes about this; its arrays grow by doubling. */
enum { MAP_ENTRY_BYTES = 48 };

static void
remember(struct firefox_stacks *stacks, struct map *map, uint64_t key, uint32_t number)
{
    budget_charge(stacks->budget, MAP_ENTRY_BYTES);
    map_set(map, key, number);
}

uint32_t
firefox_stack_below(struct firefox_stacks *stacks, uint32_t root, uint32_t stack)
{
    if (stack == FIREFOX_NO_STACK) return root;
    uint64_t key = (uint64_t)root << 32 | stack;
    uint32_t number = map_get(&stacks->stack_below, key);
    if (number != MAP_NONE) return number;
    struct firefox_stack top = *(struct firefox_stack *)row_table_at(&stacks->stacks, stack);
    number = stack_of_frame(stacks, firefox_stack_below(stacks, root, top.caller), top.frame);
    remember(stacks, &stacks->stack_below, key, number);
    return number;
}

/* --- backtraces ------------------------------------------------------------------------------------ */

static uint32_t
stack_of_rest(struct firefox_stacks *stacks, uint32_t caller, struct fxt_string text)
{
    uint32_t id = pool_id(stacks->pool, text);
    uint64_t key = (uint64_t)caller << 32 | id;
    uint32_t stack = map_get(&stacks->stack_of_rest, key);
    if (stack != MAP_NONE) return stack;
    stack = caller;
    struct frames *rest = &stacks->rest;
    frames_of_rest(rest, stacks->pool, text);
    uint64_t depth = rest->left_out;
    uint32_t first = 0; /* innermost frames come first, and are kept */
    while (first < rest->count && depth + rest->list[first].run <= DEPTH_MAX) depth += rest->list[first++].run;
    if (rest->left_out > 0 || first < rest->count) {
        uint32_t left_out = pool_intern(stacks->pool, PROFILE_LEFT_OUT, sizeof PROFILE_LEFT_OUT - 1);
        stack = firefox_stack(stacks, stack, left_out, FIREFOX_INHERIT);
    }
    while (first-- > 0) {
        for (uint32_t run = rest->list[first].run; run-- > 0;)
            stack = firefox_stack(stacks, stack, rest->list[first].label, FIREFOX_INHERIT);
    }
    if (stack != FIREFOX_NO_STACK) remember(stacks, &stacks->stack_of_rest, key, stack);
    return stack;
}

uint32_t
firefox_event_stack(struct firefox_stacks *stacks, uint32_t caller, const struct fxt_event *event, unsigned first)
{
    uint32_t stack = caller;
    for (uint32_t name = STRING_FRAME_REST; name >= STRING_FRAME_0 + first; name--) {
        const struct fxt_arg *arg = fxt_event_arg(event, name);
        char buffer[REST_TEXT_BYTES];
        struct fxt_string text;
        if (arg == NULL) continue;
        bool text_p = name == STRING_FRAME_REST ? frames_rest_text(arg, buffer, &text) : arg->type == FXT_ARG_STRING;
        if (!text_p) continue;
        stack = name == STRING_FRAME_REST
                    ? stack_of_rest(stacks, stack, text)
                    : firefox_stack(stacks, stack, pool_id(stacks->pool, arg->string), FIREFOX_INHERIT);
    }
    return stack;
}

/* --- output ------------------------------------------------------------------------------------------ */

static void
put_or_null(struct json *json, uint64_t number, bool null)
{
    if (null) json_null(json);
    else json_unsigned(json, number);
}

void
firefox_put_nulls(struct json *json, const char *name, uint32_t count)
{
    FIREFOX_COLUMN(json, name, count, json_null(json));
}

static void
put_constant(struct json *json, const char *name, uint32_t count, int value)
{
    FIREFOX_COLUMN(json, name, count, json_integer(json, value));
}

static void
begin_table(struct json *json, const char *name)
{
    json_object(json_key(json_line(json), name));
}

static void
end_table(struct json *json, uint32_t length)
{
    json_unsigned(json_key(json, "length"), length);
    json_end(json);
}

void
firefox_put_empty_table(struct json *json, const char *name, unsigned column_count, const char *const *columns)
{
    json_object(json_key(json, name));
    for (unsigned i = 0; i < column_count; i++) firefox_put_nulls(json, columns[i], 0);
    end_table(json, 0);
}

void
firefox_put_shared(struct json *json, const struct firefox_stacks *stacks)
{
    json_object(json_key(json, "shared"));
    const struct firefox_stack *rows = stacks->stacks.rows;
    uint32_t count = stacks->stacks.count;
    begin_table(json, "stackTable");
    FIREFOX_COLUMN(json, "frame", count, json_unsigned(json, rows[i].frame));
    FIREFOX_COLUMN(json, "prefix", count, put_or_null(json, rows[i].caller, rows[i].caller == FIREFOX_NO_STACK));
    end_table(json, count);

    const struct firefox_frame *frames = stacks->frames.rows;
    count = stacks->frames.count;
    begin_table(json, "frameTable");
    put_constant(json, "address", count, -1);
    put_constant(json, "inlineDepth", count, 0);
    FIREFOX_COLUMN(json, "category", count,
                   put_or_null(json, frames[i].category, frames[i].category == FIREFOX_INHERIT));
    FIREFOX_COLUMN(json, "subcategory", count, put_or_null(json, 0, frames[i].category == FIREFOX_INHERIT));
    FIREFOX_COLUMN(json, "func", count, json_unsigned(json, frames[i].func));
    FIREFOX_COLUMN(json, "line", count, put_or_null(json, (uint64_t)frames[i].line, frames[i].line == 0));
    firefox_put_nulls(json, "nativeSymbol", count);
    firefox_put_nulls(json, "innerWindowID", count);
    firefox_put_nulls(json, "column", count);
    end_table(json, count);

    const struct firefox_func *funcs = stacks->funcs.rows;
    count = stacks->funcs.count;
    begin_table(json, "funcTable");
    FIREFOX_COLUMN(json, "name", count, json_unsigned(json, funcs[i].name));
    FIREFOX_COLUMN(json, "isJS", count, json_bool(json, false));
    FIREFOX_COLUMN(json, "relevantForJS", count, json_bool(json, false));
    put_constant(json, "resource", count, -1);
    FIREFOX_COLUMN(json, "source", count, put_or_null(json, funcs[i].source, funcs[i].source == NO_SOURCE));
    firefox_put_nulls(json, "lineNumber", count);
    firefox_put_nulls(json, "columnNumber", count);
    end_table(json, count);

    static const char *const resource_columns[] = {"lib", "name", "host", "type"};
    static const char *const symbol_columns[] = {"libIndex", "address", "name", "functionSize"};
    firefox_put_empty_table(json_line(json), "resourceTable", 4, resource_columns);
    firefox_put_empty_table(json_line(json), "nativeSymbols", 4, symbol_columns);

    const struct firefox_source *sources = stacks->sources.rows;
    count = stacks->sources.count;
    begin_table(json, "sources");
    firefox_put_nulls(json, "id", count);
    FIREFOX_COLUMN(json, "filename", count, json_unsigned(json, sources[i].name));
    put_constant(json, "startLine", count, 1);
    put_constant(json, "startColumn", count, 1);
    firefox_put_nulls(json, "sourceMapURL", count);
    end_table(json, count);

    const struct firefox_string *strings = stacks->strings.rows;
    json_array(json_key(json_line(json), "stringArray"));
    for (uint32_t i = 0; i < stacks->strings.count; i++)
        json_text(i > 0 ? json_line(json) : json, pool_string(stacks->pool, strings[i].text));
    json_end(json);
    json_end(json);
}
