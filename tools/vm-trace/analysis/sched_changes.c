/* sched_changes.c - see sched_changes.h */
#include "analysis/sched_changes.h"

void
sched_changes_name(struct sched_threads *threads, const struct fxt_object *object)
{
    sched_threads_note(threads, object->recording, object->provider, object->tid, object->pid);
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
switched(struct sched_threads *threads, const struct fxt_sched *sched, uint32_t pid, uint64_t tid,
         enum sched_change change, struct sched_change_of *change_out)
{
    if (tid == 0) return false; /* no thread: the GVL is free */
    sched_threads_note(threads, sched->recording, sched->provider, (uint32_t)tid, pid);
    *change_out = (struct sched_change_of){change, pid, (uint32_t)tid};
    return true;
}

unsigned
sched_changes(struct sched_threads *threads, const struct fxt_sched *sched,
              struct sched_change_of changes_out[SCHED_CHANGES_MAX])
{
    if (sched->dropped || sched->type == FXT_SCHED_SWITCH) return 0;
    if (sched->type == FXT_SCHED_WAKEUP) {
        uint32_t tid = (uint32_t)sched->out_tid;
        uint32_t pid = sched_threads_find(threads, sched->recording, sched->provider, tid);
        if (pid == MAP_NONE) return 0; /* nothing else is known of the thread, not even its process */
        changes_out[0] = (struct sched_change_of){SCHED_WOKEN, pid, tid};
        return 1;
    }
    unsigned count = 0;
    count += switched(threads, sched, sched->out_pid, sched->out_tid, leaves(sched->out_state), &changes_out[count]);
    count += switched(threads, sched, sched->in_pid, sched->in_tid, SCHED_RUNS, &changes_out[count]);
    return count;
}
