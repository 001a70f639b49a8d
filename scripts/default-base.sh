#!/bin/sh
# Prints the base that make uses when none was chosen: the development branch if it can be built,
# else the released Ruby.
#   default-base.sh GOAL...
# Goals that need no Ruby need no source.
BASE=ruby-4.1
. "$(dirname "$0")/common.sh"
released=ruby-3.3
take() { echo "$1"; exit; }

needs_ruby=
for goal in "$@"; do
    case $goal in
    tool | check-unit | check-tool | check-build | check-benchmarks | install-tool | uninstall | ruby-source | *-patches | patch-file | move-base | clean | distclean | help) ;;
    *) needs_ruby=yes ;;
    esac
done
[ -n "$needs_ruby" ] && [ ! -e "$build/built" ] || take $base

fault=$(rustc_fault)
if [ -z "$fault" ]; then
    # If the released one was built, the network had nothing: do not ask it each time.
    if [ -e "$top/build/$released/built" ]; then where=have; else where=find; fi
    status=0
    SOURCE_OPTIONAL=yes "$top/scripts/source.sh" $where >/dev/null || status=$?
    [ $status = $UNAVAILABLE ] || take $base # a wrong one is told when it is used
    fault="its source can't be had here"
fi
say "Using base $released, Ruby's release, not $base: $fault. For $base: make ruby-source BASE=$base RUBY_SOURCE=DIR, where DIR is a clone of ruby/ruby; BASE=$base or ./configure --with-base=$base requires it."
take $released
