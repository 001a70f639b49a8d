#!/bin/sh
# Moves a base and its patches to another commit or tag of a clone of ruby/ruby:
#   move-base.sh COMMIT [NEW]      with RUBY_SOURCE=DIR, the clone
# Pins it in bases/<base>, puts its source into the cache and rebases the patches
# (rebase-patches.sh). With NEW the base stays, and a copy of it named NEW is moved.
. "${0%/*}/common.sh"
[ -n "${1:-}" ] && [ -n "${RUBY_SOURCE:-}" ] || die "usage: make move-base BASE=$base TO=COMMIT-or-tag [NEW=NAME] RUBY_SOURCE=DIR (a clone of ruby/ruby that has it)"
id=$(git -C "$RUBY_SOURCE" rev-parse -q --verify "$1^{commit}") ||
    die "RUBY_SOURCE=$RUBY_SOURCE has no commit or tag $1 (git -C $RUBY_SOURCE fetch --tags $url gets all tags)"
[ "$id" != "$commit" ] || die "base $base is at $1 already"

# The copy comes from the upstream repository only: what publishers say of the old release is not
# true of another.
if [ -n "${2:-}" ]; then
    case $2 in */* | .* | *[[:space:]]*) die "NEW=$2 is no name of a base, such as ruby-3.4" ;; esac
    for made in "bases/$2" "patches/$2"; do
        [ ! -e "$top/$made" ] || die "there is a $made already; to move that base: make move-base BASE=$2 TO=$1 RUBY_SOURCE=$RUBY_SOURCE"
    done
    sed -e "1s|^#.*|# CRuby $1, made from base $base. scripts/ reads it as shell; doc/internals/new-base.md says how to make another.|" \
        -e "s|^# The source: the tag [^ ]*|# The source: $1|" -e "s|^patches=.*|patches=patches/$2|" \
        -e '/^# Where it comes from/,/^origins=/{/^origins=/!d}' -e 's/^origins=.*/origins=git/' \
        -e '/^apt_package=/d' -e '/^apt_sha256=/d' -e '/^tarball=/d' -e '/^tarball_sha256=/d' "$top/bases/$base" > "$top/bases/$2"
    cp -R "$top/$patches" "$top/patches/$2"
    say "move-base: bases/$2 and patches/$2 are copies of those of $base, to be moved"
    BASE=$2 exec "$0" "$1"
fi

export FIXES=
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
