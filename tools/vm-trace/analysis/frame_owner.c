/* frame_owner.c - see frame_owner.h */
#define _GNU_SOURCE /* memmem */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame_owner.h"
#include "analysis/label.h"
#include "fxt/known_strings.h"

void
frame_owners_init(struct frame_owners *owners, struct pool *pool)
{
    *owners = (struct frame_owners){.pool = pool};
    owners->app = pool_intern(pool, FRAME_OWNER_APP, strlen(FRAME_OWNER_APP));
    owners->outside = pool_intern(pool, FRAME_OUTSIDE, strlen(FRAME_OUTSIDE));
}

void
frame_owners_free(struct frame_owners *owners)
{
    map_free(&owners->known);
    map_free(&owners->of_rest);
    free(owners->rest.list);
}

/* --- paths -------------------------------------------------------------------------------------------------- */

/* The length of the name in "rack-3.1.8" or "rails-0a1b2c3d4e5f" (a revision); 0: it is none. */
static uint32_t
gem_name_bytes(struct fxt_string folder)
{
    enum { REVISION_LEAST = 7 };
    for (uint32_t at = folder.len; at-- > 1;) {
        if (folder.ptr[at] != '-' || at + 1 == folder.len) continue;
        uint32_t hexes = 0, from = at + 1;
        while (from + hexes < folder.len && isxdigit((unsigned char)folder.ptr[from + hexes])) hexes++;
        bool revision = hexes >= REVISION_LEAST && from + hexes == folder.len;
        if (revision || isdigit((unsigned char)folder.ptr[from])) {
            /* "nokogiri-1.18.3-x86_64-linux": the version is before the platform. */
            for (uint32_t before = at; before-- > 1;) {
                if (folder.ptr[before] == '-' && isdigit((unsigned char)folder.ptr[before + 1])) at = before;
            }
            return at;
        }
    }
    return 0;
}

/* What follows the last `folder` in a path, up to the next slash; empty if there is none. gem: it must have the name of
 * one, which is the result. */
static struct fxt_string
part_behind(struct fxt_string path, const char *folder, bool gem)
{
    struct fxt_string found = {0};
    size_t bytes = strlen(folder);
    for (const char *at = path.ptr, *end = path.ptr + path.len; (at = memmem(at, (size_t)(end - at), folder, bytes));) {
        at += bytes;
        const char *slash = memchr(at, '/', (size_t)(end - at));
        struct fxt_string part = {.ptr = at, .len = slash != NULL ? (uint32_t)(slash - at) : 0};
        if (gem) part.len = gem_name_bytes(part);
        if (part.len > 0) found = part;
    }
    return found;
}

/* "json" of ".../lib/ruby/4.0.0/json/common.rb", also below a folder of the platform ("x86_64-linux"). */
static struct fxt_string
library_name(struct fxt_string path)
{
    static const char *const folders[] = {"/lib/ruby/site_ruby/", "/lib/ruby/vendor_ruby/", "/lib/ruby/"};
    for (unsigned i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        struct fxt_string version = part_behind(path, folders[i], false);
        if (version.len == 0 || !isdigit((unsigned char)*version.ptr)) continue;
        const char *at = version.ptr + version.len + 1, *end = path.ptr + path.len, *name_end;
        for (;;) {
            name_end = at;
            while (name_end < end && *name_end != '/') name_end++;
            size_t bytes = (size_t)(name_end - at);
            bool platform = name_end < end && memchr(at, '-', bytes) != NULL && memchr(at, '_', bytes) != NULL;
            if (!platform) break;
            at = name_end + 1;
        }
        if (name_end - at > 3 && memcmp(name_end - 3, ".rb", 3) == 0) name_end -= 3;
        if (name_end > at) return (struct fxt_string){.ptr = at, .len = (uint32_t)(name_end - at)};
    }
    return (struct fxt_string){0};
}

/* The programs of RubyGems, which start others: ".../bin/bundle", and those that it makes, ".../ruby/4.0.0/bin/puma". */
static bool
starter_p(struct fxt_string path)
{
    static const char *const programs[] = {"/bin/bundle", "/bin/bundler", "/bin/gem"};
    if (path.len == 0 || *path.ptr != '/') return false;
    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        size_t bytes = strlen(programs[i]);
        if (path.len > bytes && memcmp(path.ptr + path.len - bytes, programs[i], bytes) == 0) return true;
    }
    struct fxt_string version = part_behind(path, "/ruby/", false);
    if (version.len == 0 || !isdigit((unsigned char)*version.ptr)) return false;
    const char *behind = version.ptr + version.len, *end = path.ptr + path.len;
    return end - behind > 5 && memcmp(behind, "/bin/", 5) == 0;
}

static uint32_t
owner_of_path(struct frame_owners *owners, struct fxt_string path)
{
    static const char internal[] = "<internal:", suffix[] = " (stdlib)";
    if (path.len == 0 || *path.ptr == '<' || memmem(path.ptr, path.len, internal, sizeof internal - 1) != NULL)
        return pool_intern(owners->pool, FRAME_OWNER_RUBY, strlen(FRAME_OWNER_RUBY));
    struct fxt_string gem = part_behind(path, "/gems/", true);
    if (gem.len > 0) return pool_intern(owners->pool, gem.ptr, gem.len);
    struct fxt_string library = starter_p(path) ? text_of("rubygems") : library_name(path);
    if (library.len == 0) return owners->app;
    char text[256];
    if (library.len > sizeof text - sizeof suffix) library.len = sizeof text - sizeof suffix;
    memcpy(text, library.ptr, library.len);
    memcpy(text + library.len, suffix, sizeof suffix);
    return pool_intern(owners->pool, text, library.len + sizeof suffix - 1);
}

/* --- frames --------------------------------------------------------------------------------------------------- */

uint32_t
frame_owner(struct frame_owners *owners, uint32_t label)
{
    uint32_t owner = map_get(&owners->known, label);
    if (owner != MAP_NONE) return owner;
    struct fxt_string text = pool_string(owners->pool, label);
    struct label_parts parts = label_parts(text);
    bool place = text.len == 0 || *text.ptr != '(' || parts.path.len > 0; /* else a text in place of a frame */
    owner = place ? owner_of_path(owners, parts.path) : owners->app;
    map_set(&owners->known, label, owner);
    return owner;
}

bool
frame_of_app(struct frame_owners *owners, uint32_t label)
{
    return frame_owner(owners, label) == owners->app;
}

/* In the argument "10+". */
static uint32_t
app_frame_of_rest(struct frame_owners *owners, struct fxt_string text)
{
    uint32_t id = pool_id(owners->pool, text), frame = owners->outside;
    uint32_t known = map_get(&owners->of_rest, id);
    if (known != MAP_NONE) return known;
    frames_of_rest(&owners->rest, owners->pool, text);
    if (owners->rest.left_out > 0) frame = pool_intern(owners->pool, FRAMES_LEFT_OUT, strlen(FRAMES_LEFT_OUT));
    for (uint32_t i = owners->rest.count; i-- > 0;) {
        if (frame_of_app(owners, owners->rest.list[i].label)) frame = owners->rest.list[i].label;
    }
    if (id != STRING_NONE) map_set(&owners->of_rest, id, frame);
    return frame;
}

uint32_t
event_app_frame(struct frame_owners *owners, const struct fxt_event *event)
{
    char buffer[REST_TEXT_BYTES];
    struct fxt_string rest;
    for (uint32_t name = STRING_FRAME_0; name <= STRING_FRAME_9; name++) {
        const struct fxt_arg *arg = fxt_event_arg(event, name);
        if (arg == NULL || arg->type != FXT_ARG_STRING) break;
        uint32_t label = pool_id(owners->pool, arg->string);
        if (frame_of_app(owners, label)) return label;
    }
    const struct fxt_arg *arg = fxt_event_arg(event, STRING_FRAME_REST);
    return arg != NULL && frames_rest_text(arg, buffer, &rest) ? app_frame_of_rest(owners, rest) : owners->outside;
}
