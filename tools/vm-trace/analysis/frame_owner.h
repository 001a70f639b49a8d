#ifndef FRAME_OWNER_H
#define FRAME_OWNER_H
/* frame_owner.h - whose code a frame is, by the path in its label: a gem's, the standard library's, Ruby's own,
 * or the application's.
 *
 *      .../gems/rack-3.1.8/lib/rack.rb             rack
 *      .../bundler/gems/rails-0a1b2c3d4e5f/...     rails
 *      .../lib/ruby/4.0.0/json/common.rb           json (stdlib)
 *      .../bin/bundle, .../ruby/4.0.0/bin/puma     rubygems (stdlib): what starts a program
 *      <internal:numeric>, or no path              ruby
 *      all others                                  (application)
 */
#include "analysis/frames.h"
#include "base/map.h"
#include "fxt/reader.h"

#define FRAME_OWNER_APP "(application)"
#define FRAME_OWNER_RUBY "ruby"
/* In place of a frame, where a stack has none of the application's. */
#define FRAME_OUTSIDE "(outside of the application)"

struct frame_owners {
    struct pool *pool;
    struct map known;   /* label -> owner */
    struct map of_rest; /* argument "10+" -> the innermost frame of the application, or another text */
    struct frames rest;
    uint32_t app, outside; /* strings of the pool */
};

void frame_owners_init(struct frame_owners *owners, struct pool *pool);
void frame_owners_free(struct frame_owners *owners);
/* Returns the name of the owner of a label, a string of the pool. */
uint32_t frame_owner(struct frame_owners *owners, uint32_t label);
/* Whether it is the application. Texts in place of frames, such as "(more frames)", count as such: they stay. */
bool frame_of_app(struct frame_owners *owners, uint32_t label);
/* Returns the innermost frame of the application in a backtrace. Without one: FRAME_OUTSIDE, or FRAMES_LEFT_OUT if
 * the event lacks frames. */
uint32_t event_app_frame(struct frame_owners *owners, const struct fxt_event *event);

#endif
