/* origin.c - see origin.h */
#include <string.h>
#include <time.h>

#include "analysis/event_args.h"
#include "analysis/origin.h"
#include "fxt/known_strings.h"

bool
origin_event_p(const struct fxt_event *event)
{
    return event->category.id == STRING_TRACE && event->name.id == STRING_HOST;
}

struct origin
origin_read(struct pool *pool, const struct fxt_event *event)
{
    uint64_t unix_ns = event_uint(event, STRING_UNIX_NS, 0);
    return (struct origin){
        .host = event_text(pool, event, STRING_HOST),
        .service = event_text(pool, event, STRING_SERVICE),
        .version = event_text(pool, event, STRING_VERSION),
        .unix_offset_ns = (int64_t)(unix_ns - (uint64_t)event->ts_ns), /* wraps in a damaged trace */
    };
}

const char *
unix_time_text(char text[UNIX_TIME_BYTES], int64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm utc;
    if (unix_ns < 0 || gmtime_r(&seconds, &utc) == NULL ||
        strftime(text, UNIX_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        text[0] = '\0';
    return text;
}

static uint32_t
intern(struct pool *pool, const char *text)
{
    return pool_intern(pool, text, strlen(text));
}

void
shown_origin_settings(struct shown_origin *shown, const struct fxt_event *settings)
{
    *shown = (struct shown_origin){.settings_ns = settings->ts_ns};
}

void
shown_origin_host(struct shown_origin *shown, struct pool *pool, const struct fxt_event *host, add_origin_setting *add,
                  void *context)
{
    if (shown->shown) return;
    shown->shown = true;
    char began[UNIX_TIME_BYTES];
    const struct origin origin = origin_read(pool, host);
    int64_t began_ns = (int64_t)((uint64_t)origin.unix_offset_ns + (uint64_t)shown->settings_ns);
    const uint32_t named[][2] = {
        {STRING_HOST, origin.host},
        {STRING_SERVICE, origin.service},
        {intern(pool, "service version"), origin.version},
        {STRING_BEGAN, intern(pool, unix_time_text(began, began_ns))},
    };
    for (unsigned i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (named[i][1] != STRING_NONE && pool_string(pool, named[i][1]).len > 0) add(context, named[i][0], named[i][1]);
    }
}
