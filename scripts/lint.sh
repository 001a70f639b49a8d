#!/bin/sh
# clang-tidy (.clang-tidy says what it asks) and cppcheck on the module and the tool: "ok - ", "not
# ok - " or "skip - " for each part. What is not installed is named and passed over, and so are the
# files that need the headers of a built Ruby where none is built. What was fine is not looked at again
# while it is the same; the cache is ~/.cache/ruby-vm-trace/lint.
#   lint.sh [alone] [ruby]      what needs no Ruby, what includes the headers of the Ruby of $BASE; both, if none is named
. "${0%/*}/common.sh"
cd "$top"
jobs=${JOBS:-2}
failed=

with_ruby=$(ls vm_trace/host/*.c vm_trace/ruby/*.c)
# disabled.c, which is in no folder, is stubs whose parameters nobody looks at.
without=$(find vm_trace -mindepth 2 -name '*.c' | sort | grep -v -x -F "$with_ruby")

tool=$(find tools/vm-trace -name '*.c')

# result NAME STATUS
result()
{
    if [ "$2" = 0 ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        failed="$failed $1"
    fi
}

have()
{
    if command -v "$1" > /dev/null; then return 0; fi
    echo "skip - $2: $1 is not installed"
    return 1
}

lint_alone()
{
    status=0
    ${CC:-cc} -std=gnu99 -Wall -Wextra -Wno-unused-parameter -Werror -DUSE_VM_TRACE=0 -iquote . -fsyntax-only \
        vm_trace/disabled.c || status=$?
    result 'the stubs of the module built out' $status
    status=0
    ${BASERUBY:-ruby} "$top/scripts/check-includes.rb" || status=$?
    result 'includes point down, and the table of layers is current' $status
    status=0
    ${BASERUBY:-ruby} "$top/scripts/event-tables.rb" || status=$?
    result 'the tables of the event reference are those of the schema' $status
    status=0
    ${BASERUBY:-ruby} "$top/scripts/check-json.rb" || status=$?
    result 'only the writer of the tool writes JSON' $status
    if have clang-tidy 'clang-tidy of the module'; then
        status=0
        ${BASERUBY:-ruby} scripts/tidy.rb $without -- -std=gnu99 -iquote . -iquote build/generated || status=$?
        result 'clang-tidy of the module' $status
        # The analyzer loses sight of arrays that grow and are moved; the sanitizers and valgrind
        # see them in the tests.
        status=0
        ${BASERUBY:-ruby} scripts/tidy.rb $tool -- \
            --checks=-clang-analyzer-unix.Malloc,-clang-analyzer-core.NullDereference -- \
            -std=gnu99 -iquote tools/vm-trace -iquote build/page -iquote . || status=$?
        result 'clang-tidy of the tool' $status
    fi
    if have cppcheck 'cppcheck'; then
        # Versions before 2.11 do not parse a compound literal behind "?", and take a call's buffer
        # for one that is read.
        mkdir -p "$cache/lint/module" "$cache/lint/tool"
        lint='cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c99
            --suppress=internalAstError --suppress=ctuuninitvar'
        status=0
        $lint --cppcheck-build-dir="$cache/lint/module" -I . -I build/generated $without || status=$?
        result 'cppcheck of the module' $status
        status=0
        $lint --cppcheck-build-dir="$cache/lint/tool" -j "$jobs" -I tools/vm-trace -I . $tool || status=$?
        result 'cppcheck of the tool' $status
    fi
}

# cppcheck has no use for CRuby's headers, which it can't parse.
lint_ruby()
{
    name="clang-tidy of the module's files with CRuby's headers ($base)"
    have clang-tidy "$name" || return 0
    config=$(echo "$build"/obj/.ext/include/*/ruby/config.h)
    if [ ! -f "$config" ]; then
        echo "skip - $name: that Ruby is not built"
        return
    fi
    includes=
    for folder in "$build/src/include" "${config%/ruby/config.h}" "$build/src" "$build/obj"; do includes="$includes -isystem $folder"; done
    status=0
    # A VALUE is an integer that is a pointer, in all of CRuby.
    ${BASERUBY:-ruby} scripts/tidy.rb $with_ruby -- --checks=-performance-no-int-to-ptr -- \
        -std=gnu99 -DRUBY_EXPORT -iquote . $includes || status=$?
    result "$name" $status
}

[ $# -gt 0 ] || set -- alone ruby
for part; do
    case $part in
    alone|ruby) "lint_$part" ;;
    *) die "no such part: $part" ;;
    esac
done
[ -z "$failed" ] || exit 1
