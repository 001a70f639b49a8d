#!/bin/sh
# Rewrites patches/<base> from the commits that build/<base>/src has on its base. Running it twice
# changes nothing.
. "${0%/*}/common.sh"
. "${0%/*}/series.sh"
src=$build/src FIXES=
[ -d "$src/.git" ] || die "there is no build/$base/src yet: run make src"
dirty=$(own_git -C "$src" status --porcelain --untracked-files=normal)
[ -z "$dirty" ] || die "build/$base/src has changes that are in no commit; commit them there first (or drop them):
$dirty"
no_fixes_in "$src"
[ "$(series_id)" = "$(cat "$src/.git/vm-trace-series")" ] || [ -n "${FORCE:-}" ] ||
    die "$patches changed since build/$base/src was made from it, and would be overwritten; revert it, or overwrite it with FORCE=1"
own_git -C "$src" merge-base --is-ancestor refs/vm-trace/base HEAD || die "HEAD of build/$base/src does not descend from refs/vm-trace/base"
[ -z "$(own_git -C "$src" rev-list --merges refs/vm-trace/base..HEAD)" ] || die "build/$base/src has a merge: patches must be a straight line of commits"

new=$build/patches.tmp
rm -rf "$new"
mkdir -p "$new" "$top/$patches"
format_patches "$src" --output-directory "$new" refs/vm-trace/base..HEAD

# The comment at the top of series stays.
{ [ ! -f "$series" ] || sed -n '/^#/!q;p' "$series"; (cd "$new" && ls | grep '\.patch$' || :); } > "$new/series"
for p in $(series_patches); do
    [ -e "$new/$p" ] || rm -f "$top/$patches/$p"
done
for f in "$new"/*; do
    cmp -s "$f" "$top/$patches/${f##*/}" || cp "$f" "$top/$patches/"
done
rm -rf "$new"
own_git -C "$src" update-ref refs/vm-trace/made HEAD
series_id > "$src/.git/vm-trace-series"
say "refresh-patches: $patches has the $(series_patches | wc -l) commits of build/$base/src"
