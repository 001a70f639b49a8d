#!/bin/sh
# For `make distclean`: fails when a build/<base>/src holds work that is in no patch. FORCE=1 drops
# it.
. "${0%/*}/common.sh"
[ -z "${FORCE:-}" ] || exit 0
for src in "$top"/build/*/src; do
    [ -d "$src/.git" ] || continue
    work=$(own_git -C "$src" log --format='  commit %h %s' refs/vm-trace/made..HEAD
           own_git -C "$src" status --porcelain --untracked-files=normal)
    [ -z "$work" ] || die "${src#"$top"/} holds work that is in no patch; make refresh-patches keeps it, FORCE=1 drops it:
$work"
done
