/* export_pprof.c - see export.h
 *
 * The numbers of messages and fields are those of
 * https://github.com/google/pprof/blob/main/proto/profile.proto . Fields may come in any order, so
 * tables are written when they are complete. A label of the trace is a location; a method is a function,
 * whatever the line.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/label.h"
#include "base/escape.h"
#include "base/proto.h"
#include "base/xalloc.h"
#include "export/export.h"

enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_COMMENT = 13,
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION_ID = 1, LINE_LINE = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_FILENAME = 4 }; /* without a system name, pprof demangles nothing */

struct pprof {
    FILE *out;
    struct pool *pool;
    struct map string_of; /* string of the pool -> index in the string table */
    uint32_t *strings;    /* the string table, of strings of the pool */
    uint32_t string_count, string_capacity;
    struct map function_of; /* name and path -> id */
    struct map location_of; /* label -> id */
    struct proto_message top, message, inner; /* reused; `top` is what is written: it has no length */
};

/* Writes the message as a field of the outermost one. */
static void
write_message(struct pprof *pprof, unsigned field)
{
    proto_add_message(&pprof->top, field, &pprof->message);
    proto_write(pprof->out, &pprof->top);
}

static void
write_uint(struct pprof *pprof, unsigned field, uint64_t value)
{
    proto_add_uint(&pprof->top, field, value);
    proto_write(pprof->out, &pprof->top);
}

/* Index 0 is the empty string, as the format requires. */
static uint32_t
string_index(struct pprof *pprof, struct fxt_string text)
{
    uint32_t id = text.len == 0 ? STRING_NONE : pool_intern(pprof->pool, text.ptr, text.len);
    uint32_t index = map_get(&pprof->string_of, id);
    if (index != MAP_NONE) return index;
    make_room(pprof->strings, pprof->string_count, pprof->string_capacity);
    index = pprof->string_count++;
    pprof->strings[index] = id;
    map_set(&pprof->string_of, id, index);
    return index;
}

static uint32_t
text_index(struct pprof *pprof, const char *text)
{
    return string_index(pprof, text_of(text));
}

static uint32_t
function_id(struct pprof *pprof, struct fxt_string name, struct fxt_string path)
{
    uint32_t name_index = string_index(pprof, name), path_index = string_index(pprof, path);
    uint64_t key = (uint64_t)name_index << 32 | path_index;
    uint32_t id = map_get(&pprof->function_of, key);
    if (id != MAP_NONE) return id;
    id = (uint32_t)pprof->function_of.used + 1;
    map_set(&pprof->function_of, key, id);
    proto_add_uint(&pprof->message, FUNCTION_ID, id);
    proto_add_uint(&pprof->message, FUNCTION_NAME, name_index);
    proto_add_uint(&pprof->message, FUNCTION_FILENAME, path_index);
    write_message(pprof, PROFILE_FUNCTION);
    return id;
}

static uint32_t
location_id(struct pprof *pprof, const struct profile_node *node)
{
    uint64_t key = (uint64_t)node->reason << 32 | node->text;
    uint32_t id = map_get(&pprof->location_of, key);
    if (id != MAP_NONE) return id;
    struct fxt_string text = pool_string(pprof->pool, node->text);
    struct label_parts parts = node->reason ? (struct label_parts){.method = text} : label_parts(text);
    uint32_t function = function_id(pprof, parts.method, parts.path);
    id = (uint32_t)pprof->location_of.used + 1;
    map_set(&pprof->location_of, key, id);
    proto_add_uint(&pprof->inner, LINE_FUNCTION_ID, function);
    proto_add_uint(&pprof->inner, LINE_LINE, (uint64_t)parts.line); /* an int64: a negative one takes ten bytes */
    proto_add_uint(&pprof->message, LOCATION_ID, id);
    proto_add_message(&pprof->message, LOCATION_LINE, &pprof->inner);
    write_message(pprof, PROFILE_LOCATION);
    return id;
}

/* The values of a node: its number of events and its sum; or of several profiles, only the sum of this one. */
struct values {
    unsigned number, count; /* of this profile, of all */
};

static void
add_values(struct proto_message *message, const struct profile_node *node, struct values values)
{
    if (values.count == 1) proto_add_varint(message, node->events);
    for (unsigned i = 0; i < values.count; i++) proto_add_varint(message, i == values.number ? node->count : 0);
}

static void
write_samples(struct pprof *pprof, const struct profile *profile, struct values values)
{
    struct proto_message ids = {0};
    for (uint32_t leaf = 1; leaf < profile->node_count; leaf++) {
        if (!profile_ends_at(&profile->nodes[leaf])) continue;
        for (uint32_t node = leaf; node != 0; node = profile->nodes[node].parent) {
            proto_add_varint(&ids, location_id(pprof, &profile->nodes[node]));
        }
        proto_add_message(&pprof->message, SAMPLE_LOCATION_ID, &ids);
            add_values(&pprof->inner, &profile->nodes[leaf], values);
        proto_add_message(&pprof->message, SAMPLE_VALUE, &pprof->inner);
        write_message(pprof, PROFILE_SAMPLE);
    }
    free(ids.bytes);
}

static void
write_value_type(struct pprof *pprof, unsigned field, const char *type, const char *unit)
{
    proto_add_uint(&pprof->message, VALUE_TYPE_TYPE, text_index(pprof, type));
    proto_add_uint(&pprof->message, VALUE_TYPE_UNIT, text_index(pprof, unit));
    write_message(pprof, field);
}

/* Strings of the format are UTF-8; other bytes are shown by their codes. */
static void
write_strings(struct pprof *pprof)
{
    for (uint32_t i = 0; i < pprof->string_count; i++) {
        char *text;
        size_t len;
        FILE *stream = xmemstream(&text, &len);
        print_escaped(stream, pool_string(pprof->pool, pprof->strings[i]));
        fclose(stream);
        proto_add_bytes(&pprof->top, PROFILE_STRING_TABLE, text, len);
        proto_write(pprof->out, &pprof->top);
        free(text);
    }
}

static void
begin(struct pprof *pprof, FILE *out, struct pool *pool)
{
    *pprof = (struct pprof){.out = out, .pool = pool};
    string_index(pprof, (struct fxt_string){.ptr = ""});
}

/* Writes the tables, which are complete now. */
static void
end(struct pprof *pprof)
{
    write_strings(pprof);
    map_free(&pprof->string_of);
    map_free(&pprof->function_of);
    map_free(&pprof->location_of);
    free(pprof->strings);
    free(pprof->top.bytes);
    free(pprof->message.bytes);
    free(pprof->inner.bytes);
}

static void
write_partial(struct pprof *pprof, const char *partial)
{
    char *text = partial == NULL ? NULL : xformat("partial: %s", partial);
    if (text != NULL) write_uint(pprof, PROFILE_COMMENT, text_index(pprof, text));
    free(text);
}

void
export_pprof(FILE *out, const struct profile *profile, const char *partial)
{
    struct pprof pprof;
    const struct profile_names *names = &profile_names[profile->kind];
    begin(&pprof, out, reader_pool(profile->reader));
    /* pprof shows the last type by default. */
    write_value_type(&pprof, PROFILE_SAMPLE_TYPE, "events", "count");
    write_value_type(&pprof, PROFILE_SAMPLE_TYPE, names->type, names->unit);
    write_samples(&pprof, profile, (struct values){0, 1});
    if (profile->first_ns <= profile->last_ns) {
        write_uint(&pprof, PROFILE_DURATION_NANOS, (uint64_t)(profile->last_ns - profile->first_ns));
    }
    write_partial(&pprof, partial);
    end(&pprof);
}

void
export_pprof_together(FILE *out, const struct profile *profiles, unsigned count, const struct pprof_origin *origin)
{
    struct pprof pprof;
    begin(&pprof, out, reader_pool(profiles->reader));
    for (unsigned i = 0; i < count; i++) {
        const struct profile_names *names = &profile_names[profiles[i].kind];
        write_value_type(&pprof, PROFILE_SAMPLE_TYPE, names->type, names->unit);
    }
    for (unsigned i = 0; i < count; i++) write_samples(&pprof, &profiles[i], (struct values){i, count});
    write_uint(&pprof, PROFILE_TIME_NANOS, (uint64_t)origin->unix_ns);
    write_uint(&pprof, PROFILE_DURATION_NANOS, (uint64_t)origin->duration_ns);
    write_uint(&pprof, PROFILE_COMMENT, text_index(&pprof, origin->comment));
    write_partial(&pprof, origin->partial);
    end(&pprof);
}
