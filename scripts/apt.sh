# An apt beside the system's, for the scripts beside it: sourced. Its lists, cache and sources are its
# own, in a folder; the mirror is the one that this system uses, whatever release of Debian it is. apt
# fetches, so signatures are checked and the system's proxies are used. The system's files are read,
# never changed.
#   own_apt_begin DIR TYPE SUITE   TYPE: deb or deb-src. Sets apt_dir, mirror and archive_keys, or apt_fault
#   own_apt COMMAND...

own_apt_begin() { # DIR TYPE SUITE
    command -v apt-get >/dev/null || { apt_fault="there is no apt-get here"; return 1; }
    mkdir -p "$1/lists/partial" "$1/cache/archives/partial"
    apt_dir=$(cd "$1" && pwd -P)

    # apt lists the system's sources, because there are two formats of them. The one that the release
    # itself comes from is a mirror of all releases; others (security, vendors') are not.
    mirror=$( (. /etc/os-release && apt-get -o Debug::NoLocking=1 --print-uris update 2>/dev/null |
        sed -En "s#^'(.*)/dists/(${VERSION_CODENAME:-stable}|(old)?stable|testing|unstable|sid)/InRelease' .*#\1#p") | head -n 1)
    [ -n "$mirror" ] || { apt_fault="apt's settings here name no mirror of Debian"; return 1; }
    archive_keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -e "$archive_keys" ] || archive_keys=
    echo "$2 ${archive_keys:+[signed-by=$archive_keys] }$mirror $3 main" > "$apt_dir/sources.list"

    # Read after the system's configuration. The cleared hooks would act on the system's lists; its
    # Check-Valid-Until and the like stay in force.
    cat > "$apt_dir/apt.conf" <<END
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "$apt_dir/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$apt_dir";
Dir::State::lists "$apt_dir/lists";
Dir::State::status "$apt_dir/status";
Dir::Cache "$apt_dir/cache";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
END
    : > "$apt_dir/status" # of installed packages, which do not matter
    own_apt update > "$apt_dir/log" || { apt_fault=$(grep '^E:' "$apt_dir/log" | tail -n 1); return 1; }
}

own_apt() { LC_ALL=C apt-get -q -c "$apt_dir/apt.conf" "$@" </dev/null 2>&1; }
