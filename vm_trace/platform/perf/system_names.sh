#!/bin/sh
# Lists the system calls and error numbers that the system's headers name, for names.c.
#   system_names.sh CPP [ARGUMENTS]    CPP: the C preprocessor, such as gcc -E
set -e
cpp=$*
list() { printf '#include <%s>\n' "$1" | $cpp -dM - 2>/dev/null || true; }
# Some of a generic table are names of others (__NR3264_...), or how many there are.
list sys/syscall.h | sed -n 's/^#define __NR_\([a-z0-9_]*\) .*/SYSTEM_CALL(\1)/p' |
  grep -v -e '(syscalls)' -e '(arch_specific_syscall)' | LC_ALL=C sort
# EWOULDBLOCK and the like are names of others.
list errno.h | sed -n 's/^#define \(E[A-Z0-9]*\) [0-9][0-9]*.*/ERROR_NUMBER(\1)/p' | LC_ALL=C sort
