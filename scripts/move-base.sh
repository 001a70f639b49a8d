#!/bin/sh
# Moves a base and its patches to another commit or tag of a clone of ruby/ruby:
#   move-base.sh COMMIT      with RUBY_SOURCE=DIR, the clone
# Pins it in bases/<base>, puts its source into the cache and rebases the patches
# (rebase-patches.sh).
. "$(dirname "$0")/common.sh"
[ -n "${1:-}" ] && [ -n "${RUBY_SOURCE:-}" ] || die "usage: make move-base BASE=$base TO=COMMIT-or-tag RUBY_SOURCE=DIR (a clone of ruby/ruby that has it)"
id=$(git -C "$RUBY_SOURCE" rev-parse -q --verify "$1^{commit}") ||
    die "RUBY_SOURCE=$RUBY_SOURCE has no commit or tag $1 (git -C $RUBY_SOURCE fetch --tags $url gets all tags)"
[ "$id" != "$commit" ] || die "base $base is at $1 already"
"$top/scripts/prepare.sh" # at the old pin; stops where there is work that is in no patch
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
own_git init -q --bare "$scratch"
new_tree=$(tree_of "$(git -C "$RUBY_SOURCE" rev-parse --absolute-git-dir)" "$id" "$scratch")
new_date=$(TZ=UTC git -C "$RUBY_SOURCE" log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd "$id")
sed -i -e "s/^commit=.*/commit=$id/" -e "s/^tree=.*/tree=$new_tree/" -e "s/^date=.*/date=$new_date/" "$top/bases/$base"
say "move-base: bases/$base pins $1 now: commit $id, tree $new_tree"
case $origins in
*apt* | *tarball*) say "move-base: its comments, ${apt_package:+apt_package, apt_sha256, }tarball and tarball_sha256 are still those of the old release: replace them by what the publishers of the new one announce" ;;
esac
"$top/scripts/source.sh" cache
exec "$top/scripts/rebase-patches.sh"
