#!/bin/sh
# clang-tidy (.clang-tidy says what it asks) and cppcheck on the module and the tool. What is not installed is named and passed over.
. "$(dirname "$0")/common.sh"
cd "$top"
failed=
# host_cruby.c, control.c and remote.c need CRuby's headers; disabled.c is stubs whose parameters nobody looks at.
module=$(ls vm_trace/*.c | grep -v -e host_cruby -e control -e remote -e disabled)

if command -v clang-tidy > /dev/null; then
    say 'lint: clang-tidy'
    clang-tidy --quiet $module -- -std=gnu99 -iquote vm_trace 2> /dev/null || failed="$failed clang-tidy"
else
    echo 'skipped: clang-tidy is not installed'
fi
if command -v cppcheck > /dev/null; then
    say 'lint: cppcheck'
    # Versions before 2.11 do not parse a compound literal behind "?", and take a call's buffer for one that is read.
    lint='cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c99
        --suppress=internalAstError --suppress=ctuuninitvar'
    $lint -I vm_trace $module || failed="$failed cppcheck"
    $lint -I tools/vm-trace tools/vm-trace/*.c || failed="$failed cppcheck"
else
    echo 'skipped: cppcheck is not installed'
fi
[ -z "$failed" ] || die "failed:$failed"
