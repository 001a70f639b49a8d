#!/usr/bin/env bash
# Builds CRuby after each patch of the series, in one build folder: proves that every patch builds
# alone. Long.
. "$(dirname "$0")/common.sh"
. "$top/scripts/series.sh"
. "$top/scripts/step.sh"
work=$build/each log=$build/each.log
fault=$(rustc_fault)
[ -z "$fault" ] || die "$fault"
store=$("$top/scripts/source.sh" find)
rm -rf "$work"
mkdir -p "$work/obj"
: > "$log"
series_worktree "$store" "$work/src"
cp -R "$top/vm_trace" "$work/src/vm_trace"
for p in $(series_patches) $(all_fixes); do
    series_apply_one "$work/src" "$p" || die "$patches/$p does not apply"
    lines=
    if [ ! -f "$work/obj/Makefile" ]; then lines=$build_log_lines; fi
    if [ "$work/src/configure.ac" -nt "$work/src/configure" ]; then
        step "$p: configure" "" bash -c 'cd "$1" && ./autogen.sh && cd "$2" && "$1/configure" --without-git "${@:3}"' - "$work/src" "$work/obj" $configure_args
    fi
    step "$p: building" "$lines" "${MAKE:-make}" -C "$work/obj" -j"${JOBS:-$(nproc)}" HAVE_GIT=no main
    "$work/obj/miniruby" -e 'exit' || die "$p: miniruby does not run"
done
rm -rf "$work"
say "check-patches-build: each of the $(series_patches | wc -l) patches of $patches builds, and so does each fix"
