#!/bin/sh
# Builds the module's unit tests and the tool's tests with --coverage in build/coverage, runs them,
# and prints how many lines of each file ran. Files that need a Ruby (vm_trace/host/ and
# vm_trace/ruby/) are left out: the integration tests run them.
. "${0%/*}/common.sh"
cd "$top"
tree=build/coverage
link_tree coverage
# An earlier run counted other code.
find "$tree" -name '*.gcda' -exec rm -f '{}' +
status=0
"${MAKE:-make}" -C "$tree" -f "$top/Makefile" -j"${JOBS:-2}" CFLAGS='-O0 -g --coverage -fprofile-update=atomic -DHARNESS_GCOV' LDFLAGS=--coverage \
    WERROR= check-unit check-tool || status=$?
cd "$tree"
"${BASERUBY:-ruby}" "$top/scripts/coverage.rb" missed.txt vm_trace,tools/vm-trace build/unit/vm_trace build/tool
echo "The lines that never ran: $top/$tree/missed.txt"
[ "$status" = 0 ] || die "tests failed, see above"
