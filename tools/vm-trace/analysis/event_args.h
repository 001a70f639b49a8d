#ifndef EVENT_ARGS_H
#define EVENT_ARGS_H
/* event_args.h - reads arguments of an event as numbers, or as texts of a pool. */
#include <stdbool.h>

#include "base/pool.h"
#include "fxt/reader.h"

/* Returns an unsigned number, or `missing`. `name` is an enum known_string. */
uint64_t event_uint(const struct fxt_event *event, uint32_t name, uint64_t missing);
/* Returns false, and leaves *value_out alone, if there is no such argument, or if it is no unsigned number. */
bool event_read_uint(const struct fxt_event *event, uint32_t name, uint64_t *value_out);
/* Returns the reason of an exit, a fallback, an invalidation or a site as all commands count it:
 * without addresses. */
uint32_t event_reason(struct pool *pool, const struct fxt_event *event);
/* Returns the instruction of an exit or a site, as all tables name it: "opt_plus@12" if its line has several, else
 * "opt_plus". */
uint32_t event_insn(struct pool *pool, const struct fxt_event *event);
/* Such a name without its index, which is set, or set to NO_INSN_INDEX. */
enum { NO_INSN_INDEX = -1 };
struct fxt_string insn_without_index(struct fxt_string insn, int64_t *index_out);
/* Whether an event of the category trace has settings of streams. */
static inline bool
event_settings_p(const struct fxt_event *event)
{
    return event->name.id == STRING_SETTINGS || event->name.id == STRING_MORE_SETTINGS;
}

/* Returns a string, or STRING_NONE. */
uint32_t event_text(struct pool *pool, const struct fxt_event *event, uint32_t name);
/* Whether the settings say that the oldest events of the file may come behind the newest. A recorder saves its memory in
 * order, unless it did not save it itself. */
bool event_older_behind(struct pool *pool, const struct fxt_event *settings);
/* Whether a text, words separated by blanks, contains this word. Options of a stream follow its name after a
 * colon, and are no part of the word. */
bool text_has_word(struct fxt_string text, const char *word);
/* What the settings of a trace tell about compiled versions and their code. */
struct code_settings {
    bool block_versions; /* YJIT's: versions of a basic block for several states, not recompilations of an ISEQ */
    bool traced_code;    /* code sizes include trace points */
};
struct code_settings event_code_settings(const struct fxt_event *event);
/* Takes over from the event trace/jit which JIT the program turned on after the settings were written. */
void event_code_jit(struct code_settings *settings, const struct fxt_event *event);
/* Returns the text of an argument of any type. */
uint32_t arg_text(struct pool *pool, const struct fxt_arg *arg);

#endif
