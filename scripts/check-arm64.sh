#!/bin/sh
# Builds the module's unit tests, the tool and the patched Ruby of $BASE for arm64, in build/arm64, and
# runs their tests under qemu-user. What that shows and what it does not: doc/internals/arm64.md.
#   check-arm64.sh [unit] [tool] [integration]
. "${0%/*}/common.sh"
"$top/scripts/arm64-root.sh" find >/dev/null || exit $?
host=aarch64-linux-gnu
[ $# -gt 0 ] || set -- unit tool integration
for suite; do
    case $suite in
    unit | tool | integration) ;;
    *) die "no such suite: $suite" ;;
    esac
done

# arm64 programs run here, so configure is not to think of another machine than that it builds on.
made=$top/build/arm64/Makefile
if [ ! -f "$made" ] || [ -n "$(find "$top/Makefile.in" "$top/configure.ac" -newer "$made")" ]; then
    "$top/scripts/arm64.sh" sh -c "autoconf && ./configure --silent --build=$host --host=$host" || die "configure failed"
fi
# One after the other, also when one fails. Tests take 5 to 20 times their time.
failed=0
for suite; do
    "$top/scripts/arm64.sh" env RUBY_HOST=$host EMULATED=yes make -f Makefile -j"${JOBS:-2}" BASE="$base" ${V:+V=$V} \
        CFLAGS='-O2 -g -DHARNESS_SECONDS=1500' "check-$suite" || failed=1
done
exit $failed
