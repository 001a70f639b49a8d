#ifndef CPU_TRACKS_H
#define CPU_TRACKS_H
/* cpu_tracks.h - the tracks of the stream `sched`: each native thread has one, whose number follows from
 * its tid, and whose name is its name and " CPU".
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"

/* Native tids are at most 2^22; threads without a native thread of their own and fibers have other numbers. */
enum { NATIVE_TID_MAX = 1 << 22, CPU_TRACKS_BEGIN = 0x78000000, CPU_TRACKS_END = CPU_TRACKS_BEGIN + NATIVE_TID_MAX };

static inline bool
native_tid_p(uint32_t tid)
{
    return tid > 0 && tid <= NATIVE_TID_MAX;
}

static inline bool
cpu_track_p(uint32_t tid)
{
    return tid > CPU_TRACKS_BEGIN && tid <= CPU_TRACKS_END;
}

/* The native thread of a track. */
static inline uint32_t
cpu_track_native_tid(uint32_t tid)
{
    return tid - CPU_TRACKS_BEGIN;
}

/* The name of the thread of a track. */
static inline struct fxt_string
cpu_track_thread_name(struct fxt_string name)
{
    static const char suffix[] = " CPU";
    const uint32_t len = sizeof suffix - 1;
    if (name.len >= len && memcmp(name.ptr + name.len - len, suffix, len) == 0) {
        name.len -= len;
        name.id = STRING_NONE;
    }
    return name;
}

#endif
