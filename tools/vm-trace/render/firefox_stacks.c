/* firefox_stacks.c - see firefox_stacks.h */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/label.h"
#include "analysis/profile.h"
#include "base/escape.h"
#include "fxt/known_strings.h"
#include "render/firefox_stacks.h"

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
    remember(stacks, &stacks->stack_of_rest, key, stack);
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

/* Prints `"name":[` and one element for each row by a function of the row. */
#define PRINT_COLUMN(out, name, count, ...) \
    do { \
        fprintf(out, "\"%s\":[", name); \
        for (uint32_t i = 0; i < (count); i++) { \
            if (i > 0) putc(',', out); \
            __VA_ARGS__; \
        } \
        fputs("],", out); \
    } while (0)

static void
print_or_null(FILE *out, uint64_t number, bool null)
{
    if (null) fputs("null", out);
    else fprintf(out, "%" PRIu64, number);
}

static void
print_constant(FILE *out, const char *name, uint32_t count, const char *value)
{
    PRINT_COLUMN(out, name, count, fputs(value, out));
}

void
firefox_print_shared(FILE *out, const struct firefox_stacks *stacks)
{
    fputs("\"shared\":{\n\"stackTable\":{", out);
    const struct firefox_stack *rows = stacks->stacks.rows;
    uint32_t count = stacks->stacks.count;
    PRINT_COLUMN(out, "frame", count, fprintf(out, "%" PRIu32, rows[i].frame));
    PRINT_COLUMN(out, "prefix", count, print_or_null(out, rows[i].caller, rows[i].caller == FIREFOX_NO_STACK));
    fprintf(out, "\"length\":%" PRIu32 "},\n\"frameTable\":{", count);

    const struct firefox_frame *frames = stacks->frames.rows;
    count = stacks->frames.count;
    print_constant(out, "address", count, "-1");
    print_constant(out, "inlineDepth", count, "0");
    PRINT_COLUMN(out, "category", count,
                 print_or_null(out, frames[i].category, frames[i].category == FIREFOX_INHERIT));
    PRINT_COLUMN(out, "subcategory", count, print_or_null(out, 0, frames[i].category == FIREFOX_INHERIT));
    PRINT_COLUMN(out, "func", count, fprintf(out, "%" PRIu32, frames[i].func));
    PRINT_COLUMN(out, "line", count, print_or_null(out, (uint64_t)frames[i].line, frames[i].line == 0));
    static const char *const unused[] = {"nativeSymbol", "innerWindowID", "column"};
    for (unsigned column = 0; column < sizeof unused / sizeof *unused; column++)
        print_constant(out, unused[column], count, "null");
    fprintf(out, "\"length\":%" PRIu32 "},\n\"funcTable\":{", count);

    const struct firefox_func *funcs = stacks->funcs.rows;
    count = stacks->funcs.count;
    PRINT_COLUMN(out, "name", count, fprintf(out, "%" PRIu32, funcs[i].name));
    print_constant(out, "isJS", count, "false");
    print_constant(out, "relevantForJS", count, "false");
    print_constant(out, "resource", count, "-1");
    PRINT_COLUMN(out, "source", count, print_or_null(out, funcs[i].source, funcs[i].source == NO_SOURCE));
    print_constant(out, "lineNumber", count, "null");
    print_constant(out, "columnNumber", count, "null");
    fprintf(out, "\"length\":%" PRIu32 "},\n", count);

    fputs("\"resourceTable\":{\"lib\":[],\"name\":[],\"host\":[],\"type\":[],\"length\":0},\n"
          "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0},\n"
          "\"sources\":{", out);
    const struct firefox_source *sources = stacks->sources.rows;
    count = stacks->sources.count;
    print_constant(out, "id", count, "null");
    PRINT_COLUMN(out, "filename", count, fprintf(out, "%" PRIu32, sources[i].name));
    print_constant(out, "startLine", count, "1");
    print_constant(out, "startColumn", count, "1");
    print_constant(out, "sourceMapURL", count, "null");
    fprintf(out, "\"length\":%" PRIu32 "},\n\"stringArray\":[", count);
    const struct firefox_string *strings = stacks->strings.rows;
    for (uint32_t i = 0; i < stacks->strings.count; i++) {
        if (i > 0) fputs(",\n", out);
        print_json(out, pool_string(stacks->pool, strings[i].text));
    }
    fputs("]}", out);
}
