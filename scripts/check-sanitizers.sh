#!/bin/sh
# The module's unit tests and the tool's tests under AddressSanitizer and UndefinedBehaviorSanitizer,
# the unit tests under ThreadSanitizer and valgrind, the tool's tests under MemorySanitizer (clang).
# Each is built in build/<name>, a tree of links to this one, by the Makefile as it is. What is not
# available here (a compiler without the sanitizer, no valgrind) is named and skipped.
#
# MemorySanitizer needs every library built with it, and SQLite is not: there the tool is built
# without SQL. The tests of what uses SQLite run under valgrind instead (valgrind-sql). The whole
# suite under valgrind (valgrind-tool) took 26 minutes on one core, since each start of the tool takes
# half a second there; it runs only when it is named, or where MemorySanitizer is not available.
#   check-sanitizers.sh [asan] [tsan] [msan] [valgrind] [valgrind-sql] [valgrind-tool]
. "${0%/*}/common.sh"
jobs=${JOBS:-2}

# usable NAME FLAGS...: whether programs built with these flags run here
usable()
{
    name=$1
    shift
    mkdir -p build
    printf 'int main(void) { return 0; }\n' > build/usable.c
    if ${CC:-cc} "$@" -o build/usable build/usable.c 2>/dev/null && build/usable; then
        rm -f build/usable build/usable.c
        return 0
    fi
    rm -f build/usable build/usable.c
    echo "skipped: $name: programs built with $* do not run here"
    return 1
}

# run NAME FLAGS TARGET...: the tests behind these targets, built with these flags
run()
{
    name=$1 flags=$2
    shift 2
    link_tree "$name"
    say "check-sanitizers: $name"
    "${MAKE:-make}" -C "build/$name" -f "$top/Makefile" -j"$jobs" CFLAGS="-O1 -g -fno-omit-frame-pointer $flags -DHARNESS_SECONDS=1500" \
        LDFLAGS="$flags" "$@" || failed="$failed $name"
}

failed= no_msan=
given_cc=${CC:-}
[ $# -gt 0 ] || set -- asan tsan msan valgrind valgrind-sql
for check; do
    case $check in
    asan)
        sanitizers=-fsanitize=address,undefined
        usable asan $sanitizers || continue
        # A fork without exec ends with its parent's memory: no leaks of its own.
        ASAN_OPTIONS=abort_on_error=0:detect_leaks=0:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
            run asan "$sanitizers -fno-sanitize-recover=all" check-unit check-tool ;;
    tsan)
        usable tsan -fsanitize=thread || continue
        # Tests read memory in a signal handler, and play a fork's child, whose locked mutexes have
        # no owner.
        TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:report_signal_unsafe=0:report_destroy_locked=0 run tsan -fsanitize=thread check-unit ;;
    msan)
        CC=clang
        usable msan -fsanitize=memory || { CC=$given_cc no_msan=yes; continue; }
        link_tree msan
        clang -O1 -g -fsanitize=memory -c -o build/msan/msan.o test/tool/msan.c
        MSAN_OPTIONS=exit_code=99 run msan '-fsanitize=memory' check-tool CC=clang TOOL_CPPFLAGS= TOOL_LIBS='-lz -lm' \
            LDFLAGS='-fsanitize=memory msan.o -Wl,--wrap=inflate,--wrap=deflate,--wrap=gzwrite,--wrap=gzclose'
        CC=$given_cc ;;
    valgrind-sql|valgrind-tool)
        if ! command -v valgrind > /dev/null; then echo "skipped: $check: valgrind is not installed"; continue; fi
        tests=
        [ "$check$no_msan" = valgrind-sql ] && tests='query export:/sqlite/ conformance'
        wrapper='valgrind --quiet --error-exitcode=99 --leak-check=no'
        TOOL_TESTS=$tests UNIT_WRAPPER=$wrapper TOOL_WRAPPER=$wrapper run valgrind '' check-tool ;;
    valgrind)
        if ! command -v valgrind > /dev/null; then echo 'skipped: valgrind: it is not installed'; continue; fi
        # Where a page of the file is gone, a handler maps memory there and the store is repeated,
        # which needs all registers as they were.
        UNIT_WRAPPER='valgrind --quiet --error-exitcode=99 --leak-check=no --vex-iropt-register-updates=allregs-at-mem-access' \
            run valgrind '' check-unit ;;
    *) die "no such check: $check" ;;
    esac
done
[ -z "$failed" ] || die "failed:$failed"
