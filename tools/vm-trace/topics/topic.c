/* topic.c - see topic.h */
#include "topics/topic.h"

#define TOPIC_ROW(name, ...) &topic_##name,
const struct topic *const topics[] = {TOPICS(TOPIC_ROW) TOPICS_OF_OTHERS(TOPIC_ROW)};
const unsigned topics_count = sizeof topics / sizeof *topics;

_Static_assert(sizeof topics / sizeof *topics <= TOPICS_MAX, "a set of topics is a word");
