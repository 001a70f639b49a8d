#!/bin/sh
# Builds CRuby in build/posix with a tracer that has nothing but POSIX, and runs the integration tests with it.
# Tests of streams that it refuses by name are skipped.
. "${0%/*}/common.sh"
cd "$top"
link_tree posix
exec "${MAKE:-make}" -C build/posix -f "$top/Makefile" -j"${JOBS:-2}" ${V:+V=$V} \
    PLATFORM=posix BASE="$base" check-integration
