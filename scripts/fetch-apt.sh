#!/bin/sh
# Fetches the original tarball of a Debian source package into a folder:
#   fetch-apt.sh PACKAGE/SUITE DIR
# The mirror is the one that this system uses, whatever release of Debian it is. apt fetches, so
# signatures are checked and the system's proxies are used, but with lists, cache and sources of its
# own in DIR: the system's files are read, never changed.
set -eu
package=${1%/*} suite=${1#*/}
fail() { echo "$*"; exit 1; }

command -v apt-get >/dev/null || fail "there is no apt-get here"
mkdir -p "$2"
dir=$(cd "$2" && pwd -P)
mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"

# apt lists the system's sources, because there are two formats of them. The one that the release
# itself comes from is a mirror of all releases; others (security, vendors') are not.
mirror=$( (. /etc/os-release && apt-get -o Debug::NoLocking=1 --print-uris update 2>/dev/null |
    sed -En "s#^'(.*)/dists/(${VERSION_CODENAME:-stable}|(old)?stable|testing|unstable|sid)/InRelease' .*#\1#p") | head -n 1)
[ -n "$mirror" ] || fail "apt's settings here name no mirror of Debian"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ ! -e "$keys" ] || signed="[signed-by=$keys] "
echo "deb-src ${signed:-}$mirror $suite main" > "$dir/sources.list"

# Read after the system's configuration. The cleared hooks would act on the system's lists; its
# Check-Valid-Until and the like stay in force.
cat > "$dir/apt.conf" <<EOF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$dir";
Dir::State::lists "$dir/lists";
Dir::State::status "$dir/status";
Dir::Cache "$dir/cache";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
EOF
: > "$dir/status" # of installed packages, which do not matter
apt() { LC_ALL=C apt-get -q -c "$dir/apt.conf" "$@" </dev/null 2>&1; }

apt update > "$dir/log" || fail "$(grep '^E:' "$dir/log" | tail -n 1)"
# For apt, lists that could not be fetched are only a warning.
(cd "$dir" && apt source --download-only --tar-only "$package/$suite") >> "$dir/log" || fail "$(grep '^[EW]:' "$dir/log" | head -n 1)"
ls "$dir"/*.orig.tar.* >/dev/null 2>&1 || fail "apt gave no original tarball of $1"
rm -rf "$dir/lists" "$dir/cache"
