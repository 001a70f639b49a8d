/* piece_ends.c - see piece_ends.h */
#include <stdlib.h>

#include "fxt/known_strings.h"
#include "fxt/piece_ends.h"
#include "fxt/spool_names.h"

enum { THREADS_MAX = 256 * 1024, DEPTH_MAX = 4096 };

struct open_duration {
    uint32_t category, name;
};

struct thread {
    uint32_t process, tid; /* the key */
    uint32_t depth, capacity;
    struct open_duration *open;
    int64_t last_ns;   /* of its events */
};
enum { THREAD_KEYS = 2 };

static void
free_threads(struct piece_ends *ends)
{
    for (uint32_t i = 0; i < ends->threads.count; i++) free(((struct thread *)row_table_at(&ends->threads, i))->open);
    row_table_free(&ends->threads);
}

void
piece_ends_init(struct piece_ends *ends, struct pool *pool, on_piece_end_function *end, void *context)
{
    *ends = (struct piece_ends){.context = context, .end = end, .pool = pool};
    row_table_init(&ends->threads, sizeof(struct thread), THREAD_KEYS, THREADS_MAX);
}

void
piece_ends_free(struct piece_ends *ends)
{
    free_threads(ends);
}

void
piece_ends_file_begin(struct piece_ends *ends, const char *path)
{
    ends->goes_on = ends->path != NULL && spool_goes_on(ends->path, path);
    ends->path = path;
    if (!ends->goes_on) free_threads(ends);
}

/* The settings are a piece's first event, and have the time at which it begins. */
static void
end_open(struct piece_ends *ends, const struct fxt_event *settings)
{
    for (uint32_t i = 0; i < ends->threads.count; i++) {
        struct thread *thread = row_table_at(&ends->threads, i);
        if (thread->process != settings->process) continue;
        int64_t ts_ns = settings->ts_ns > thread->last_ns ? settings->ts_ns : thread->last_ns;
        for (; thread->depth > 0; thread->depth--) {
            const struct open_duration *open = &thread->open[thread->depth - 1];
            const struct piece_end end = {
                .recording = settings->recording, .pid = settings->pid, .tid = thread->tid, .category = open->category,
                .name = open->name, .ts_ns = ts_ns};
            ends->end(ends->context, &end);
        }
    }
}

void
piece_ends_event(struct piece_ends *ends, const struct fxt_event *event)
{
    bool settings = event->category.id == STRING_TRACE && event->name.id == STRING_SETTINGS;
    if (settings && ends->goes_on) end_open(ends, event);
    bool begins = event->type == FXT_EVENT_DURATION_BEGIN;
    if (!begins && event->type != FXT_EVENT_DURATION_END) return;
    const uint32_t key[THREAD_KEYS] = {event->process, event->tid};
    struct thread *thread = row_table_get(&ends->threads, key);
    if (thread == NULL) return;
    if (thread->depth == 0 || event->ts_ns > thread->last_ns) thread->last_ns = event->ts_ns;
    if (!begins) {
        if (thread->depth > 0) thread->depth--;
        return;
    }
    if (thread->depth == DEPTH_MAX) return;
    make_room(thread->open, thread->depth, thread->capacity);
    thread->open[thread->depth++] =
        (struct open_duration){pool_id(ends->pool, event->category), pool_id(ends->pool, event->name)};
}
