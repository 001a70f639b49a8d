/*
 * The one session of the process. See session_state.h.
 */
#include "vm_trace/session/session_state.h"

struct vm_trace_session rb_vm_trace_session = {
    .open_lock = PTHREAD_MUTEX_INITIALIZER,
    .min_free_bytes = CHUNK_FILE_MIN_FREE_DEFAULT,
    .flags = { .min_free_bytes = CHUNK_FILE_MIN_FREE_DEFAULT }
};
