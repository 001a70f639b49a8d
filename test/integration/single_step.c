/*
 * Runs a Ruby, and gives its main thread the sampler's signal at each instruction of a part of its program, as
 * if the sampler had sent it there.
 *
 *     single_step CURRENT SKIPPED,... PROGRAM ARGUMENT...
 *
 * CURRENT is the address in PROGRAM's file of rb_vm_trace_sampled_current(), SKIPPED those of functions that run
 * through without a signal. The part begins and ends with a SIGSTOP, which the program sends itself and which does
 * not stop it. Prints how many signals were taken, and how many instructions had none since the sampler sends none
 * there. Ends as the program does; 77: it may not be traced; 99: it does what this one does not expect.
 *
 * x86-64: the registers' names, int3, and that a call has its return address on the stack.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm_trace/streams/samples/sampler.h"

enum { MOST_SKIPPED = 32, REFUSED = 77, UNEXPECTED = 99, BREAKPOINT = 0xcc };

static pid_t child;
static uintptr_t base, kernel_begin, kernel_end;
static uintptr_t skipped[MOST_SKIPPED];
static size_t skipped_count;

static void
fail(const char *what)
{
    struct user_regs_struct registers;
    fprintf(stderr, "single_step: %s", what);
    if (ptrace(PTRACE_GETREGS, child, 0, &registers) == 0)
        fprintf(stderr, " at %#" PRIxPTR " of the program's file", (uintptr_t)registers.rip - base);
    fprintf(stderr, "\n");
    kill(child, SIGKILL);
    exit(UNEXPECTED);
}

static uint64_t
word_at(uintptr_t address)
{
    errno = 0;
    long word = ptrace(PTRACE_PEEKDATA, child, address, 0);
    if (errno) fail("no memory to read");
    return (uint64_t)word;
}

static void
set_word(uintptr_t address, uint64_t word)
{
    if (ptrace(PTRACE_POKEDATA, child, address, word) != 0) fail("no memory to write");
}

/* Let it run on with `request` and that signal. Returns the signal that stops it; ends as the program does. */
static int
go_on(enum __ptrace_request request, int number)
{
    int status;
    if (ptrace(request, child, 0, number) != 0 || waitpid(child, &status, __WALL) != child) fail("ptrace fails");
    if (WIFEXITED(status)) exit(WEXITSTATUS(status));
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "single_step: the program was killed by signal %d\n", WTERMSIG(status));
        exit(UNEXPECTED);
    }
    return WSTOPSIG(status);
}

static uintptr_t
rip(void)
{
    return (uintptr_t)ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), 0);
}

/* Let it run until it comes to that address with such a stack, or with a shorter one. */
static void
run_to(uintptr_t address, uintptr_t sp)
{
    uint64_t word = word_at(address);
    struct user_regs_struct registers;
    do {
        set_word(address, (word & ~UINT64_C(0xff)) | BREAKPOINT);
        int number = 0;
        while ((number = go_on(PTRACE_CONT, number)) != SIGTRAP) {
            if (number == SIGSEGV) fail("the program crashed");
        }
        set_word(address, word);
        ptrace(PTRACE_GETREGS, child, 0, &registers);
        if (registers.rip != address + 1) fail("a trap that is not ours");
        registers.rip = address;
        ptrace(PTRACE_SETREGS, child, 0, &registers);
        if (registers.rsp < sp) go_on(PTRACE_SINGLESTEP, 0); /* a call of it within */
    } while (registers.rsp < sp);
}

static uintptr_t
call(uintptr_t function)
{
    struct user_regs_struct before, registers;
    ptrace(PTRACE_GETREGS, child, 0, &before);
    registers = before;
    /* Below the red zone, aligned as at a call. It returns to where it was interrupted. */
    registers.rsp = ((before.rsp - 256) & ~UINT64_C(15)) - 8;
    registers.rip = function;
    registers.orig_rax = UINT64_MAX; /* no system call is begun again */
    set_word(registers.rsp, before.rip);
    ptrace(PTRACE_SETREGS, child, 0, &registers);
    run_to(before.rip, registers.rsp + 8);
    ptrace(PTRACE_GETREGS, child, 0, &registers);
    ptrace(PTRACE_SETREGS, child, 0, &before);
    return registers.rax;
}

/* Find where the program's file and the kernel's code are mapped. */
static void
read_maps(void)
{
    char text[512];
    uintptr_t begin, end;
    snprintf(text, sizeof(text), "/proc/%d/maps", (int)child);
    FILE *maps = fopen(text, "r");
    if (!maps) fail("no map");
    while (fgets(text, sizeof(text), maps)) {
        if (sscanf(text, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) continue;
        if (!base) base = begin;
        if (strstr(text, "[vdso]")) kernel_begin = begin, kernel_end = end;
    }
    fclose(maps);
}

/* The kernel's clocks never end when each of their instructions takes so long: they begin again at each tick. */
static bool
skipped_p(uintptr_t pc)
{
    if (pc >= kernel_begin && pc < kernel_end) return true;
    for (size_t i = 0; i < skipped_count; i++) {
        if (skipped[i] == pc) return true;
    }
    return false;
}

/* The handler runs to its end. The thread is where it was then. False: the part has ended meanwhile. */
static bool
take_sample(void)
{
    bool goes_on = true;
    int number = go_on(PTRACE_SYSCALL, SIGURG);
    for (;;) {
        if (number == (SIGTRAP | 0x80)) {
            long call = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.orig_rax), 0);
            number = go_on(PTRACE_SYSCALL, 0); /* its end */
            if (call == SYS_rt_sigreturn) return goes_on;
        }
        else if (number == SIGSEGV || number == SIGBUS) {
            fail("the handler crashed");
        }
        else if (number == SIGSTOP) {
            goes_on = false;
            number = go_on(PTRACE_SYSCALL, 0);
        }
        else {
            number = go_on(PTRACE_SYSCALL, number);
        }
    }
}

static void
step_through(uintptr_t current_function)
{
    uintptr_t thread = call(current_function);
    if (!thread) fail("the thread is not sampled");
    const uintptr_t phase = thread + offsetof(struct vm_trace_sampled, phase),
                    ns = thread + offsetof(struct vm_trace_sampled, charged[VM_TRACE_CHARGE_RUNNING].ns),
                    ticks = thread + offsetof(struct vm_trace_sampled, charged[VM_TRACE_CHARGE_RUNNING].ticks);
    uint64_t signals = 0, unsampled = 0;
    uintptr_t last = 0;
    int number = 0;
    for (;;) {
        number = go_on(PTRACE_SINGLESTEP, number);
        if (number == SIGSTOP) break;
        if (number == SIGSEGV) fail("the program crashed");
        if (number == SIGURG) { /* the sampler's own: taken as if it were lost */
            uint64_t word = word_at(phase);
            if ((uint32_t)word == VM_TRACE_SIGNALLED) set_word(phase, word - VM_TRACE_SIGNALLED + VM_TRACE_RUNS);
            number = 0;
            continue;
        }
        if (number != SIGTRAP) continue; /* it gets that signal */
        number = 0;
        uintptr_t pc = rip();
        if (pc == last) continue; /* an instruction that repeats itself */
        last = pc;
        if (skipped_p(pc)) {
            uintptr_t sp = (uintptr_t)ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rsp), 0);
            run_to(word_at(sp), sp + 8);
        }
        uint64_t word = word_at(phase); /* and the thread's id */
        if ((uint32_t)word != VM_TRACE_RUNS) {
            unsampled++;
            continue;
        }
        set_word(phase, word - VM_TRACE_RUNS + VM_TRACE_SIGNALLED);
        set_word(ns, word_at(ns) + 1000);
        set_word(ticks, word_at(ticks) + 1);
        signals++;
        if (!take_sample()) break;
    }
    printf("%" PRIu64 " %" PRIu64 "\n", signals, unsampled);
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    if (argc < 4) return UNEXPECTED;
    child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(REFUSED);
        execv(argv[3], argv + 3);
        _exit(UNEXPECTED);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return REFUSED;
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    read_maps();
    for (char *text = argv[2]; *text && skipped_count < MOST_SKIPPED;) {
        skipped[skipped_count++] = base + strtoull(text, &text, 16);
        if (*text == ',') text++;
    }
    for (int number = 0;;) {
        number = go_on(PTRACE_CONT, number);
        if (number != SIGSTOP) continue;
        step_through(base + strtoull(argv[1], NULL, 16));
        number = 0;
    }
}
