#!/bin/sh
# Brings build/<base>/src up to date: the pinned source, each patch of the series and each chosen fix
# as a commit, and a copy of vm_trace/. Writes only files that really change, so that CRuby's make
# rebuilds as little as possible.
#   prepare.sh --base     the same for build/<base>/base-src, which has neither series nor module, for comparisons
. "${0%/*}/common.sh"
. "${0%/*}/series.sh"
kind=
if [ "${1:-}" = --base ]; then kind=base- series=/dev/null; fi
src=$build/${kind}src
state=$src/.git/vm-trace-series # the patches that refs/vm-trace/made was made from
count() { printf '%s patches' "$(chosen_patches | wc -l)"; }

local_work() {
    own_git -C "$src" log --format='  commit %h %s' refs/vm-trace/made..HEAD
    own_git -C "$src" status --porcelain --untracked-files=normal | sed 's/^/  /'
}

make_src() {
    store=$("$top/scripts/source.sh" find) || exit $?
    say "prepare: making build/$base/${kind}src: the source and $(count)"
    rm -rf "$src.half-made"
    series_worktree "$store" "$src.half-made"
    series_apply "$src.half-made"
    own_git -C "$src.half-made" update-ref refs/vm-trace/made HEAD
    series_id > "$src.half-made/.git/vm-trace-series"
    mv -T "$src.half-made" "$src"
}

# The new series is applied in a tree of its own; then src moves to the result, which writes only
# the files that differ.
move_src() {
    say "prepare: the patches changed: moving build/$base/${kind}src to $(count)"
    rm -rf "$build/series.tmp"
    own_git clone --quiet --shared --no-checkout "$src" "$build/series.tmp"
    own_git -C "$build/series.tmp" fetch --quiet origin refs/vm-trace/base
    own_git -C "$build/series.tmp" checkout --quiet --detach FETCH_HEAD
    series_apply "$build/series.tmp"
    own_git -C "$src" fetch --quiet "$build/series.tmp" HEAD
    own_git -C "$src" reset --quiet --keep FETCH_HEAD
    own_git -C "$src" update-ref refs/vm-trace/made HEAD
    series_id > "$state"
    rm -rf "$build/series.tmp"
}

# refs/vm-trace/base is the pinned tree, or the commit on top of it that empties gems/bundled_gems.
base_is_pinned() {
    for ref in refs/vm-trace/base refs/vm-trace/base~1; do
        [ "$(own_git -C "$src" rev-parse -q --verify "$ref^{tree}")" = "$tree" ] && return
    done
}

check_fixes
mkdir -p "$build"
[ -z "$kind" ] || [ -f "$state" ] || rm -rf "$src" # an earlier version of this script made it
if [ ! -d "$src" ]; then
    make_src
elif [ "$(series_id)" != "$(cat "$state" 2>/dev/null)" ]; then
    work=$(local_work)
    if [ -n "$work" ]; then
        say "prepare: $patches (or FIXES, or the pin in bases/$base) changed, and build/$base/${kind}src has work that is in no patch:"
        say "$work"
        say "To keep it: commit it there, git -C build/$base/${kind}src format-patch refs/vm-trace/made, drop it, make, and git am it again."
        say "   (Or, to drop the change in $patches: revert it, commit the work, make refresh-patches.)"
        say "To drop it: git -C build/$base/${kind}src reset --hard refs/vm-trace/made && git -C build/$base/${kind}src clean -fd"
        exit 1
    fi
    if base_is_pinned; then
        move_src
    else
        say "prepare: the pin in bases/$base changed: making build/$base/${kind}src and ${kind}obj again"
        rm -rf "$src" "$build/${kind}obj" "$build/${kind}built"
        make_src
    fi
else
    work=$(local_work)
    [ -z "$work" ] || say "prepare: build/$base/${kind}src has work that is in no patch yet (commit it there and make refresh-patches):
$work"
fi

[ -z "$kind" ] || exit 0

# The module. CRuby's makefiles may not know which files include these headers, so a changed header
# removes the objects of all files that include one of them.
mkdir -p "$src/vm_trace"
headers_changed=
for f in $(cd "$src/vm_trace" && find . -mindepth 1); do
    case $f in ./base_name.h | ./base.mk) continue ;; esac
    [ ! -e "$top/vm_trace/$f" ] || continue
    rm -rf "${src:?}/vm_trace/$f"
    rm -f "$build/obj/libruby-static.a" "$build/obj/miniruby" # make does not see that an object less is linked
done
# What a trace says about the Ruby that made it.
fixed_by=
for fix in $(chosen_fixes); do
    fix=${fix##*/}
    fixed_by="$fixed_by + ${fix%.patch}"
done
base_name="$base $(printf %.12s "$commit")$fixed_by${PLATFORM:+ ($PLATFORM)}"
base_h="#define RB_VM_TRACE_BASE \"$base_name, vm_trace $(version)\""
[ "$base_h" = "$(cat "$src/vm_trace/base_name.h" 2>/dev/null)" ] || { echo "$base_h" > "$src/vm_trace/base_name.h"; headers_changed=yes; }
# What its build needs.
base_mk="VM_TRACE_RUSTC_MIN := $rustc_min${PLATFORM:+
VM_TRACE_PLATFORM := $PLATFORM}"
[ "$base_mk" = "$(cat "$src/vm_trace/base.mk" 2>/dev/null)" ] || echo "$base_mk" > "$src/vm_trace/base.mk"
changed_files() {
    cd "$top/vm_trace"
    find . '(' -name '*.[ch]' -o -name '*.def' -o -name '*.py' -o -name '*.rs' -o -name '*.mk' -o -name '*.sh' ')' \
        -exec sha256sum {} + |
        (cd "$src/vm_trace" && LC_ALL=C sha256sum --check --quiet 2>/dev/null) | sed 's/: FAILED.*//'
}
for f in $(changed_files); do
    mkdir -p "$src/vm_trace/${f%/*}"
    cp "$top/vm_trace/$f" "$src/vm_trace/$f"
    case $f in *.h | *.def) headers_changed=yes ;; esac
done
if [ -n "$headers_changed" ] && [ -d "$build/obj" ]; then
    find "$build/obj" -path "$build/obj/vm_trace/*.o" -delete
    for f in $(cd "$src" && grep -l '^#include "vm_trace/' ./*.c); do
        f=${f#./}
        rm -f "$build/obj/${f%.c}.o"
    done
fi
