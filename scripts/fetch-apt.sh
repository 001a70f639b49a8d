#!/bin/sh
# Fetches the original tarball of a Debian source package into a folder:
#   fetch-apt.sh PACKAGE/SUITE DIR
set -eu
. "${0%/*}/apt.sh"
package=${1%/*} suite=${1#*/}
fail() { echo "$*"; exit 1; }

own_apt_begin "$2" deb-src "$suite" || fail "$apt_fault"
dir=$apt_dir
# For apt, lists that could not be fetched are only a warning.
(cd "$dir" && own_apt source --download-only --tar-only "$package/$suite") >> "$dir/log" || fail "$(grep '^[EW]:' "$dir/log" | head -n 1)"
ls "$dir"/*.orig.tar.* >/dev/null 2>&1 || fail "apt gave no original tarball of $1"
rm -rf "$dir/lists" "$dir/cache"
