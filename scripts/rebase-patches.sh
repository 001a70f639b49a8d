#!/bin/sh
# After the pin in bases/<base> has changed: moves the patches in build/<base>/src from the old pin
# to the new one with git rebase, then rewrites patches/<base>. At a conflict it stops; run it again
# when git rebase --continue has finished.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/series.sh"
src=$build/src
ref() { own_git -C "$src" rev-parse -q --verify "$1" || :; }

[ -d "$src/.git" ] || die "there is no build/$base/src: make it from the old pin first (make src)"
[ ! -d "$src/.git/rebase-merge" ] || die "a rebase is under way in build/$base/src: resolve it there, git add, git rebase --continue, then run this again"
dirty=$(own_git -C "$src" status --porcelain --untracked-files=normal)
[ -z "$dirty" ] || die "build/$base/src has changes that are in no commit:
$dirty"

if [ "$(ref 'refs/vm-trace/next~1^{tree}')" != "$tree" ] && [ "$(ref 'refs/vm-trace/next^{tree}')" != "$tree" ]; then
    store=$("$top/scripts/source.sh" find)
    rm -rf "$build/next.tmp"
    series_worktree "$store" "$build/next.tmp"
    own_git -C "$src" fetch --quiet "$build/next.tmp" +refs/vm-trace/base:refs/vm-trace/next
    rm -rf "$build/next.tmp"
fi

if ! own_git -C "$src" merge-base --is-ancestor refs/vm-trace/next HEAD; then
    own_git -C "$src" rebase --quiet --onto refs/vm-trace/next refs/vm-trace/base vm_trace >&2 ||
        die "a patch conflicts with the new pin: resolve it in build/$base/src, git add, git rebase --continue, then run this again"
fi

own_git -C "$src" update-ref refs/vm-trace/base refs/vm-trace/next
own_git -C "$src" update-ref refs/vm-trace/made HEAD
own_git -C "$src" update-ref -d refs/vm-trace/next
series_id > "$src/.git/vm-trace-series"
# CRuby's own dependencies are made for edits, not for a change of version.
rm -rf "$build/obj" "$build/built"
"$top/scripts/refresh-patches.sh"
