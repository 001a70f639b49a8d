/* sched_changes.c - see sched_changes.h */
#include "analysis/sched_changes.h"

void
sched_processes_free(struct sched_processes *processes)
{
    map_free(&processes->by_provider);
    map_free(&processes->by_tid);
}

static void
set(struct map *map, uint64_t key, uint32_t pid)
{
    if (map->used < SCHED_THREADS_MAX && pid != MAP_NONE && map_get(map, key) != pid) map_set(map, key, pid);
}

static uint64_t
provider_key(uint32_t provider, uint32_t tid)
{
    return (uint64_t)provider << 32 | tid;
}

static void
note_process(struct sched_processes *processes, uint32_t provider, uint32_t tid, uint32_t pid)
{
    set(&processes->by_provider, provider_key(provider, tid), pid);
    set(&processes->by_tid, tid, pid);
}

void
sched_processes_name(struct sched_processes *processes, const struct fxt_object *object)
{
    note_process(processes, object->provider, object->tid, object->pid);
}

static enum sched_change
leaves(unsigned state)
{
    switch (state) {
      case 0:
      case 1: return SCHED_YIELDS;
      case 4:
      case 5: return SCHED_ENDS;
      default: return SCHED_BLOCKS;
    }
}

static bool
switched(struct sched_processes *processes, const struct fxt_sched *sched, uint32_t pid, uint64_t tid,
         enum sched_change change, struct sched_change_of *change_out)
{
    if (tid == 0) return false; /* no thread: the GVL is free */
    note_process(processes, sched->provider, (uint32_t)tid, pid);
    *change_out = (struct sched_change_of){change, pid, (uint32_t)tid};
    return true;
}

unsigned
sched_changes(struct sched_processes *processes, const struct fxt_sched *sched,
              struct sched_change_of changes_out[SCHED_CHANGES_MAX])
{
    if (sched->dropped || sched->type == FXT_SCHED_SWITCH) return 0;
    if (sched->type == FXT_SCHED_WAKEUP) {
        uint32_t tid = (uint32_t)sched->out_tid;
        uint32_t pid = map_get(&processes->by_provider, provider_key(sched->provider, tid));
        if (pid == MAP_NONE) pid = map_get(&processes->by_tid, tid);
        if (pid == MAP_NONE) return 0; /* nothing else is known of the thread, not even its process */
        changes_out[0] = (struct sched_change_of){SCHED_WOKEN, pid, tid};
        return 1;
    }
    unsigned count = 0;
    count += switched(processes, sched, sched->out_pid, sched->out_tid, leaves(sched->out_state), &changes_out[count]);
    count += switched(processes, sched, sched->in_pid, sched->in_tid, SCHED_RUNS, &changes_out[count]);
    return count;
}
