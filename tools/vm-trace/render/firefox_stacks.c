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
}

void
firefox_stacks_free(struct firefox_stacks *stacks)
{
    struct map *maps[] = {&stacks->string_of, &stacks->func_of,       &stacks->source_of,  &stacks->frame_of,
                          &stacks->stack_of,  &stacks->stack_of_rest, &stacks->stack_below};
    for (unsigned i = 0; i < sizeof maps / sizeof *maps; i++) map_free(maps[i]);
    free(stacks->strings);
    free(stacks->sources);
    free(stacks->funcs);
    free(stacks->frames);
    free(stacks->stacks);
    free(stacks->rest.list);
}

/* --- numbers ------------------------------------------------------------------------------------ */

/* A new entry of a map takes about this; its arrays grow by doubling. */
enum { MAP_ENTRY_BYTES = 48 };

static void
remember(struct firefox_stacks *stacks, struct map *map, uint64_t key, uint32_t number)
{
    budget_charge(stacks->budget, MAP_ENTRY_BYTES);
    map_set(map, key, number);
}

uint32_t
firefox_string(struct firefox_stacks *stacks, uint32_t text)
{
    uint32_t number = map_get(&stacks->string_of, text);
    if (number != MAP_NONE) return number;
    number = stacks->string_count;
    make_room_within(stacks->budget, stacks->strings, stacks->string_count, stacks->string_capacity);
    stacks->strings[stacks->string_count++] = text;
    remember(stacks, &stacks->string_of, text, number);
    return number;
}

static uint32_t
source_of(struct firefox_stacks *stacks, struct fxt_string path)
{
    if (path.len == 0) return NO_SOURCE;
    uint32_t name = firefox_string(stacks, pool_intern(stacks->pool, path.ptr, path.len));
    uint32_t number = map_get(&stacks->source_of, name);
    if (number != MAP_NONE) return number;
    number = stacks->source_count;
    make_room_within(stacks->budget, stacks->sources, stacks->source_count, stacks->source_capacity);
    stacks->sources[stacks->source_count++] = name;
    remember(stacks, &stacks->source_of, name, number);
    return number;
}

static uint32_t
func_of(struct firefox_stacks *stacks, struct fxt_string method, struct fxt_string path)
{
    struct firefox_func func = {.name = firefox_string(stacks, pool_intern(stacks->pool, method.ptr, method.len)),
                                .source = source_of(stacks, path)};
    uint64_t key = (uint64_t)func.name << 32 | func.source;
    uint32_t number = map_get(&stacks->func_of, key);
    if (number != MAP_NONE) return number;
    number = stacks->func_count;
    make_room_within(stacks->budget, stacks->funcs, stacks->func_count, stacks->func_capacity);
    stacks->funcs[stacks->func_count++] = func;
    remember(stacks, &stacks->func_of, key, number);
    return number;
}

static uint32_t
frame_of(struct firefox_stacks *stacks, uint32_t text, enum firefox_category category)
{
    uint64_t key = (uint64_t)category << 32 | text;
    uint32_t number = map_get(&stacks->frame_of, key);
    if (number != MAP_NONE) return number;
    struct label_parts parts = {.method = pool_string(stacks->pool, text)};
    if (category == FIREFOX_INHERIT) parts = label_parts(parts.method);
    struct firefox_frame frame = {.func = func_of(stacks, parts.method, parts.path),
                                  .line = parts.line > 0 ? parts.line : 0,
                                  .category = category};
    number = stacks->frame_count;
    make_room_within(stacks->budget, stacks->frames, stacks->frame_count, stacks->frame_capacity);
    stacks->frames[stacks->frame_count++] = frame;
    remember(stacks, &stacks->frame_of, key, number);
    return number;
}

static uint32_t
stack_of_frame(struct firefox_stacks *stacks, uint32_t caller, uint32_t frame)
{
    uint64_t key = (uint64_t)caller << 32 | frame;
    uint32_t number = map_get(&stacks->stack_of, key);
    if (number != MAP_NONE) return number;
    number = stacks->stack_count;
    make_room_within(stacks->budget, stacks->stacks, stacks->stack_count, stacks->stack_capacity);
    stacks->stacks[stacks->stack_count++] = (struct firefox_stack){caller, frame};
    remember(stacks, &stacks->stack_of, key, number);
    return number;
}

uint32_t
firefox_stack(struct firefox_stacks *stacks, uint32_t caller, uint32_t text, enum firefox_category category)
{
    return stack_of_frame(stacks, caller, frame_of(stacks, text, category));
}

uint32_t
firefox_stack_below(struct firefox_stacks *stacks, uint32_t root, uint32_t stack)
{
    if (stack == FIREFOX_NO_STACK) return root;
    uint64_t key = (uint64_t)root << 32 | stack;
    uint32_t number = map_get(&stacks->stack_below, key);
    if (number != MAP_NONE) return number;
    struct firefox_stack top = stacks->stacks[stack];
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
        if (arg == NULL || arg->type != FXT_ARG_STRING) continue;
        stack = name == STRING_FRAME_REST
                    ? stack_of_rest(stacks, stack, arg->string)
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
    PRINT_COLUMN(out, "frame", stacks->stack_count, fprintf(out, "%" PRIu32, stacks->stacks[i].frame));
    PRINT_COLUMN(out, "prefix", stacks->stack_count,
                 print_or_null(out, stacks->stacks[i].caller, stacks->stacks[i].caller == FIREFOX_NO_STACK));
    fprintf(out, "\"length\":%" PRIu32 "},\n\"frameTable\":{", stacks->stack_count);

    const struct firefox_frame *frames = stacks->frames;
    uint32_t count = stacks->frame_count;
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

    count = stacks->func_count;
    PRINT_COLUMN(out, "name", count, fprintf(out, "%" PRIu32, stacks->funcs[i].name));
    print_constant(out, "isJS", count, "false");
    print_constant(out, "relevantForJS", count, "false");
    print_constant(out, "resource", count, "-1");
    PRINT_COLUMN(out, "source", count,
                 print_or_null(out, stacks->funcs[i].source, stacks->funcs[i].source == NO_SOURCE));
    print_constant(out, "lineNumber", count, "null");
    print_constant(out, "columnNumber", count, "null");
    fprintf(out, "\"length\":%" PRIu32 "},\n", count);

    fputs("\"resourceTable\":{\"lib\":[],\"name\":[],\"host\":[],\"type\":[],\"length\":0},\n"
          "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0},\n"
          "\"sources\":{", out);
    count = stacks->source_count;
    print_constant(out, "id", count, "null");
    PRINT_COLUMN(out, "filename", count, fprintf(out, "%" PRIu32, stacks->sources[i]));
    print_constant(out, "startLine", count, "1");
    print_constant(out, "startColumn", count, "1");
    print_constant(out, "sourceMapURL", count, "null");
    fprintf(out, "\"length\":%" PRIu32 "},\n\"stringArray\":[", count);
    for (uint32_t i = 0; i < stacks->string_count; i++) {
        if (i > 0) fputs(",\n", out);
        print_json(out, pool_string(stacks->pool, stacks->strings[i]));
    }
    fputs("]}", out);
}
