#ifndef RUBY_VM_TRACE_STREAMS_STATES_C_METHODS_H
#define RUBY_VM_TRACE_STREAMS_STATES_C_METHODS_H 1
/*
 * The methods in C that a ractor called most recently, and how long they take. Most are short and
 * called often. Of a method that is known to be short, one call in 32 is timed, and the others count
 * as equally long, without what timing takes: that is more than many methods do.
 */

#include <stdbool.h>
#include <stdint.h>

#define C_METHODS 512           /* by hash; a power of two */
#define C_METHOD_SHORT_NS 1000
#define C_METHOD_TIMED_ONE_IN 32

struct vm_trace_c_methods {
    uint32_t timing_ns;          /* what timing an empty call takes; 0: not known yet */
    struct vm_trace_c_method {
        uintptr_t method;        /* what identifies it; 0: none */
        uint32_t average_ns;
        uint32_t countdown;      /* to the next call that is timed */
    } methods[C_METHODS];
};

static inline struct vm_trace_c_method *
c_method_at(struct vm_trace_c_methods *methods, uintptr_t method)
{
    return &methods->methods[(method * UINT64_C(0x9E3779B97F4A7C15) >> 32) % C_METHODS];
}

/* A call begins. Returns whether to time it; otherwise adds its estimated time to *ns. */
static inline bool
c_method_timed_p(struct vm_trace_c_methods *methods, uintptr_t method, uint64_t *ns)
{
    struct vm_trace_c_method *known = c_method_at(methods, method);
    if (known->method == method && known->average_ns < C_METHOD_SHORT_NS && known->countdown-- > 0) {
        *ns += known->average_ns;
        return false;
    }
    if (known->method != method) *known = (struct vm_trace_c_method){ .method = method };
    known->countdown = C_METHOD_TIMED_ONE_IN - 1;
    return true;
}

/* A timed call has ended. */
static inline void
c_method_took(struct vm_trace_c_methods *methods, uintptr_t method, uint64_t ns)
{
    struct vm_trace_c_method *known = c_method_at(methods, method);
    if (known->method != method) return;
    ns -= ns < methods->timing_ns ? ns : methods->timing_ns;
    uint64_t average_ns = known->average_ns ? (known->average_ns * UINT64_C(3) + ns) / 4 : ns;
    known->average_ns = average_ns < UINT32_MAX ? (uint32_t)average_ns : UINT32_MAX;
}

#endif /* RUBY_VM_TRACE_STREAMS_STATES_C_METHODS_H */
