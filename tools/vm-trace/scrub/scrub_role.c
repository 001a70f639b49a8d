/* scrub_role.c - see scrub_role.h */
#include "scrub/scrub_role.h"
#include "fxt/known_strings.h"

static bool
known_p(struct fxt_string text)
{
    return text.id != STRING_NONE && text.id < KNOWN_STRINGS_END;
}

/* Whether a category is one of the schema whose names are not the program's. */
static bool
schema_p(struct fxt_string category)
{
    return known_p(category) && category.id != STRING_MARKER;
}

static enum scrub_role
word_if(bool word)
{
    return word ? SCRUB_WORD : SCRUB_FREE;
}

static enum scrub_role
role_of_event(struct fxt_string category, struct fxt_string name)
{
    switch (category.id) {
      case STRING_TRACE:
      case STRING_EXECUTION:
      case STRING_GC:
      case STRING_COUNTER:
      case STRING_SCHED:
      case STRING_THROW: return word_if(known_p(name));
      case STRING_ALLOCATION: return word_if(name.id == STRING_FREED || name.id == STRING_ALIVE);
      case STRING_BLOCKED: return name.id == STRING_BARRIER ? SCRUB_WORD : SCRUB_LABEL;
      case STRING_REPROFILE: return name.id == STRING_RECOMPILATION ? SCRUB_WORD : SCRUB_LABEL;
      case STRING_CALL: return name.id == STRING_FIBER_SUSPENDED ? SCRUB_WORD : SCRUB_LABEL;
      case STRING_PREEMPTED: return SCRUB_LABEL;
      case STRING_COMPILE: return SCRUB_COMPILATION;
      default: return SCRUB_FREE;
    }
}

enum scrub_role
scrub_role_of_value(struct fxt_string category, struct fxt_string argument, struct fxt_string value)
{
    bool trace = category.id == STRING_TRACE;
    if (!schema_p(category)) return SCRUB_FREE;
    if (argument.id >= STRING_FRAME_0 && argument.id <= STRING_FRAME_REST) return SCRUB_LABEL;
    switch (argument.id) {
      case STRING_ISEQ:
      case STRING_LOCATION:
      case STRING_CALLEE: return SCRUB_LABEL;
      case STRING_TEXT: return trace ? SCRUB_CODE : SCRUB_FREE;
      case STRING_KIND:
      case STRING_OUTCOME:
      case STRING_STATE:
      case STRING_WHY:
      case STRING_KEEP:
      case STRING_BEGAN:
      case STRING_ENDED: return word_if(known_p(value));
      case STRING_COMMAND: return trace ? SCRUB_COMMAND : SCRUB_FREE;
      case STRING_HOST: return trace ? SCRUB_HOST : SCRUB_FREE;
      case STRING_SERVICE:
      case STRING_VERSION: return trace ? SCRUB_SERVICE : SCRUB_FREE;
      default: return SCRUB_FREE;
    }
}

/* What stack samples of the tracer have besides names of the schema. */
static bool
sample_word_p(struct fxt_string text)
{
    static const char *const words[] = {"ruby.exits", "ruby.samples", "lost time", "wall time", "CPU time", "no_cpu",
                                        "without_gvl", "fiber"};
    bool found = known_p(text);
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) found |= fxt_string_is(text, words[i]);
    return found;
}

enum scrub_role
scrub_role_of(const struct text_use *use, struct fxt_string text)
{
    switch (use->kind) {
      case TEXT_CATEGORY: return word_if(known_p(text));
      case TEXT_EVENT: return role_of_event(use->category, text);
      case TEXT_ARGUMENT: return word_if(known_p(text) && (use->category.len == 0 || schema_p(use->category)));
      case TEXT_VALUE: return scrub_role_of_value(use->category, use->argument, text);
      case TEXT_FUNCTION: return SCRUB_LABEL;
      case TEXT_PATH: /* a mapping says how the frame ran */
        return text.id == STRING_INTERPRETED || text.id == STRING_JIT || text.id == STRING_C_FUNCTION ? SCRUB_WORD
                                                                                                      : SCRUB_PATH;
      case TEXT_PROCESS: return fxt_string_is(text, "ruby") ? SCRUB_WORD : SCRUB_COMMAND;
      case TEXT_SAMPLE: return word_if(sample_word_p(text));
      case TEXT_PROVIDER:
      case TEXT_OBJECT:
      case TEXT_BLOB: break;
    }
    return SCRUB_FREE;
}
