#!/bin/sh
# The root in which check-arm64.sh builds and runs arm64 programs: a Debian 13 for this processor with
# compilers for arm64, arm64's libraries and qemu-user. All of it is the distribution's packages,
# fetched by apt. It is in the cache, for every clone; nothing of this system is changed.
#   arm64-root.sh find    prints its folder; exit status 3 and the reason on stderr when there is none
#   arm64-root.sh make    makes it if there is none; as root, in about 2 minutes, 2 GB
. "${0%/*}/common.sh"
. "$top/scripts/apt.sh"
suite=trixie
packages='make autoconf git xz-utils gcc libc6-dev ruby ruby-minitest ccache rustc gcc-aarch64-linux-gnu
    libstd-rust-dev:arm64 libc6-dev:arm64 libyaml-dev:arm64 zlib1g-dev:arm64 libssl-dev:arm64 libffi-dev:arm64
    libcmocka-dev:arm64 libsqlite3-dev:arm64 libedit-dev:arm64 libzstd-dev:arm64 libpcre2-dev:arm64 qemu-user
    gdb-multiarch procps mount sqlite3'
machine=$(uname -m)
root=$cache/arm64-root/$(echo "$suite $machine $packages" | sha256sum | cut -c 1-12)

make_root() {
    [ "$(id -u)" = 0 ] || die "only root can make $root (its files belong to root and to users of its own)"
    half=$root.half-made
    rm -rf "$half"
    mkdir -p "$half"
    say "arm64-root: fetching packages of Debian $suite into $root: about 2 minutes, 2 GB"
    own_apt_begin "$half/apt" deb "$suite" || die "apt's lists of Debian $suite cannot be had: $apt_fault"
    # Not installed here, and gone with the folder. It has apt install into the root.
    (cd "$half" && own_apt download mmdebstrap) > "$half/log" || die "apt gives no mmdebstrap: $(tail -n 1 "$half/log")"
    dpkg-deb -x "$half"/mmdebstrap_*.deb "$half/tools"
    set --
    eval "$(apt-config dump 2>/dev/null | sed -En "s/^(Acquire::[^ ]*[Pp]roxy[^ ]* \"[^']*\";)\$/set -- \"\\\$@\" --aptopt='\1'/p")"
    perl "$half/tools/usr/bin/mmdebstrap" --mode=root --variant=apt --architectures="$(dpkg --print-architecture),arm64" \
        --aptopt='Apt::Install-Recommends "false"' "$@" --include="$(echo $packages | tr ' ' ',')" "$suite" "$half/root" \
        "deb ${archive_keys:+[signed-by=$archive_keys] }$mirror $suite main" >> "$half/log" 2>&1 </dev/null || {
        tail -n 15 "$half/log" >&2
        die "the root could not be made; the whole log is $half/log"
    }
    mv -T "$half/root" "$root"
    rm -rf "$half"
}

case ${1:-} in
find)
    [ -d "$root" ] || {
        say "the root for arm64 is not in the cache (scripts/arm64-root.sh make, as root, makes it once: 2 GB)"
        exit $UNAVAILABLE
    }
    echo "$root" ;;
make) [ -d "$root" ] || make_root ;;
*) die "usage: arm64-root.sh find|make" ;;
esac
