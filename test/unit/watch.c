/*
 * Watching stores. See watch.h.
 */
#define _GNU_SOURCE 1 /* REG_EFL */
#include "harness.h"
#include "watch.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

static struct {
    char *at;
    size_t bytes;
    void (*look)(void);
    size_t stores;
    bool off;
} watch;

void
watch_pause(void)
{
    mprotect(watch.at, watch.bytes, PROT_READ | PROT_WRITE);
}

void
watch_resume(void)
{
    mprotect(watch.at, watch.bytes, PROT_READ);
}

size_t
watch_end(void)
{
    watch.off = true;
    watch_pause();
    signal(SIGSEGV, SIG_DFL);
    signal(SIGTRAP, SIG_DFL);
    return watch.stores;
}

#if defined(__x86_64__) && defined(__linux__)
enum { TRAP_FLAG = 0x100 };

static void
on_store(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    char *at = info->si_addr;
    if (at < watch.at || at >= watch.at + watch.bytes) {
        watch_end();
        fail_msg("a store at %p, outside of what is watched", (void *)at);
    }
    watch.stores++;
    watch_pause();
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG; /* trap behind the next instruction */
}

static void
on_stored(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    watch.look();
    if (!watch.off) watch_resume();
}

void
watch_stores(void *at, size_t bytes, void (*look)(void))
{
    if (under_valgrind()) skip_because("valgrind does not single-step");
    watch.at = at;
    watch.bytes = bytes;
    watch.look = look;
    watch.stores = 0;
    watch.off = false;
    struct sigaction action = { .sa_sigaction = on_store, .sa_flags = SA_SIGINFO | SA_NODEFER };
    sigaction(SIGSEGV, &action, NULL);
    action.sa_sigaction = on_stored;
    sigaction(SIGTRAP, &action, NULL);
    watch_resume();
}
#else
void
watch_stores(void *at, size_t bytes, void (*look)(void))
{
    (void)at, (void)bytes, (void)look;
    skip_because("single stores are watched on x86-64 only");
}
#endif
