#!/usr/bin/env bash
# Builds CRuby after each patch of the series, behind it after each fix, and at last without the module:
# by the option, and by BSD's make, for which configure leaves it out. This proves that each patch builds
# alone. Prints one line for each, as check-patches.sh, and stops at the first that does not build.
#
# One build folder goes from patch to patch, so that make compiles what a patch changed. The module's
# objects are compiled each time: CRuby's makefiles do not know all headers that they include. Nothing is
# optimized, which takes rustc a fifth of the time, and references in functions that nothing calls have to
# be found, too. What is built is the program, without extensions. A tree that was built with the same
# module is passed over, so a run that was cut or has failed goes on there.
. "${0%/*}/common.sh"
. "$top/scripts/series.sh"
. "$top/scripts/step.sh"
work=$build/each log=$build/each.log FIXES=all
src=$work/src built=$work/built make=${MAKE:-make}

status=0
store=$("$top/scripts/source.sh" find) || status=$?
fault=$(rustc_fault)
[ $status != $UNAVAILABLE ] || fault="the source of base $base was not found"
if [ -n "$fault" ]; then
    for p in $(chosen_patches); do echo "skip - $p builds: $fault"; done
    exit
fi
[ $status = 0 ] || exit $status
compile_through_ccache

# Lines of $built: what is the same for all patches, and what was built with it.
configure=(--without-git ${BASERUBY:+"--with-baseruby=$BASERUBY"} $configure_args ${RUBY_CC:+"CC=$RUBY_CC"}
    optflags=-O0 debugflags=-g0 "RUSTC=$work/rustc")
inputs=$({
    printf '%s\n' "$tree" "${configure[@]}"
    rustc --version
    ${RUBY_CC:-cc} --version
    cd "$top" && find vm_trace -type f | sort | xargs sha256sum
} | sha256sum)
if [ "$inputs" != "$(head -n 1 "$built" 2>/dev/null)" ]; then
    rm -rf "$work"
    mkdir -p "$work"
    printf '#!/bin/sh\nexec rustc "$@" -C opt-level=0 -C lto=off -C debuginfo=0\n' > "$work/rustc"
    chmod +x "$work/rustc"
    echo "$inputs" > "$built"
fi
: > "$log"

# The series is applied in a tree of its own, for $src moves only to commits that are built.
rm -rf "$work/series"
series_worktree "$store" "$work/series"
series_apply "$work/series"
commits=($(own_git -C "$work/series" rev-list --reverse refs/vm-trace/base..HEAD))

build_commit() { # commit what folder configure-option...
    local obj=$work/$3 lines=
    if [ ! -d "$src" ]; then
        rm -rf "$src.half-made"
        series_worktree "$store" "$src.half-made"
        cp -R "$top/vm_trace" "$src.half-made/vm_trace"
        mv -T "$src.half-made" "$src"
    fi
    own_git -C "$src" fetch --quiet "$work/series" HEAD
    own_git -C "$src" checkout --quiet --detach "$1"
    mkdir -p "$obj"
    if [ ! -f "$src/configure" ] || [ "$src/configure.ac" -nt "$src/configure" ]; then
        step "making CRuby's configure" "" sh -c "cd '$src' && ./autogen.sh"
    fi
    [ -f "$obj/Makefile" ] || lines=$build_log_lines
    if [ ! -f "$obj/Makefile" ] || [ "$src/configure" -nt "$obj/Makefile" ]; then
        step "$2: configuring" "" bash -c 'cd "$1" && "${@:2}"' - "$obj" "$src/configure" "${configure[@]}" "${@:4}"
    fi
    [ ! -d "$obj/vm_trace" ] || find "$obj/vm_trace" -name '*.o' -delete
    step "$2: building" "$lines" "$make" -C "$obj" -j"${JOBS:-$(nproc)}" HAVE_GIT=no program
    "$obj/miniruby" -e 'exit' || die "$2: miniruby does not run"
}

check() { # the same arguments
    local key
    key="$(own_git -C "$work/series" rev-parse "$1^{tree}") ${*:3}"
    if ! grep -qxF "$key" "$built"; then
        building=$2
        build_commit "$@"
        building=
        echo "$key" >> "$built"
    fi
    echo "ok - $2 builds"
}

building=
# A process of step that is killed at its very begin has this trap, too.
trap '[ -z "$building" ] || [ $BASHPID != $$ ] || echo "not ok - $building builds"' EXIT
i=0
for p in $(chosen_patches); do
    check "${commits[$i]}" "$p" obj
    i=$((i + 1))
done
check "${commits[-1]}" "$patches with --disable-vm-trace" obj-without --disable-vm-trace
if make=$(command -v bmake); then
    check "${commits[-1]}" "$patches with bmake" obj-bmake "MAKE=$make" --disable-yjit --disable-zjit
else
    echo "skip - $patches with bmake builds: bmake is not installed"
fi
rm -rf "$src" "$work"/obj{,-without,-bmake} "$work/series"
