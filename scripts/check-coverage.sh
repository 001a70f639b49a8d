#!/bin/sh
# The module's unit tests and the tool's tests, built with --coverage in build/coverage, and how
# many lines of which file they ran. What needs a Ruby (vm_trace/host/ and
# vm_trace/ruby/) is not in it: the integration tests run that.
. "$(dirname "$0")/common.sh"
cd "$top"
tree=build/coverage
link_tree coverage
# Counts of an earlier run are those of other code.
find "$tree" -name '*.gcda' -exec rm -f '{}' +
status=0
"${MAKE:-make}" -C "$tree" -f "$top/Makefile" -j"${JOBS:-2}" CFLAGS='-O0 -g --coverage -fprofile-update=atomic -DHARNESS_GCOV' LDFLAGS=--coverage \
    WERROR= check-unit check-tool || status=$?
cd "$tree"
"${BASERUBY:-ruby}" "$top/scripts/coverage.rb" missed.txt vm_trace,tools/vm-trace build/unit/vm_trace build/tool
echo "The lines that never ran: $top/$tree/missed.txt"
[ "$status" = 0 ] || die "tests failed, see above"
