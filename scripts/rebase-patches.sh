#!/bin/sh
# After the pin in bases/<base> has changed: moves the patches in build/<base>/src from the old pin
# to the new one with git rebase, then rewrites patches/<base>. At a conflict it stops; run it again
# when git rebase --continue has finished.
. "${0%/*}/common.sh"
. "${0%/*}/series.sh"
src=$build/src FIXES=
ref() { own_git -C "$src" rev-parse -q --verify "$1" || :; }

[ -d "$src/.git" ] || die "there is no build/$base/src: make it from the old pin first (make src)"
[ ! -d "$src/.git/rebase-merge" ] || die "a rebase is under way in build/$base/src: resolve it there, git add, git rebase --continue, then run this again"
dirty=$(own_git -C "$src" status --porcelain --untracked-files=normal)
[ -z "$dirty" ] || die "build/$base/src has changes that are in no commit:
$dirty"

no_fixes_in "$src"

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
# A fix applies to the pinned source alone. One that conflicts stays as it is: perhaps CRuby has it now.
for p in $(all_fixes); do
    rm -rf "$build/fix.tmp"
    own_git clone --quiet --shared --no-checkout "$src" "$build/fix.tmp"
    own_git -C "$build/fix.tmp" fetch --quiet origin refs/vm-trace/base
    own_git -C "$build/fix.tmp" checkout --quiet --detach FETCH_HEAD
    if own_git -C "$build/fix.tmp" am --quiet --committer-date-is-author-date --keep-cr --3way "$top/$patches/$p" </dev/null >&2; then
        format_patches "$build/fix.tmp" --stdout -1 > "$top/$patches/$p"
    else
        say "rebase-patches: $patches/$p does not apply to the new pin: change it, or remove it if CRuby has that fix now"
    fi
    rm -rf "$build/fix.tmp"
done
# CRuby's own dependencies are made for edits, not for a change of version.
rm -rf "$build/obj" "$build/built"
"$top/scripts/refresh-patches.sh"
