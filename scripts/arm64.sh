#!/bin/sh
# Runs a command in the root of arm64-root.sh, in build/arm64. For the command that folder is the clone
# once more, with a build folder of its own. arm64 programs run under qemu-user, also those that a
# program execs:
#   arm64.sh COMMAND...       as root
#
# Namespaces keep it apart. The kernel knows qemu as the interpreter of arm64 programs only in a user
# namespace (Linux 6.7), mounts are seen only there, what is written outside of the clone, /tmp and
# the cache goes to memory, and all processes end with the command.
. "${0%/*}/common.sh"

outside() {
    root=$("$top/scripts/arm64-root.sh" find) || exit $?
    [ "$(id -u)" = 0 ] || die "only root can enter $root"
    mapped=$(mktemp -u "${TMPDIR:-/tmp}/vm-trace-arm64-XXXXXX")
    mkfifo "$mapped"
    trap 'rm -f "$mapped"' EXIT
    unshare --user --mount --pid --fork --kill-child "$top/scripts/arm64.sh" --inside "$root" "$mapped" "$@" &
    pid=$!
    trap 'kill -KILL "$pid"; exit 130' INT TERM HUP # it ignores these
    own=$(readlink /proc/self/ns/user)
    while there=$(readlink "/proc/$pid/ns/user") && [ "$there" = "$own" ]; do sleep 0.02; done
    # All users that there are: tests make files of others.
    for map in uid_map gid_map; do
        awk '{ print $1, $1, $3 }' "/proc/self/$map" > "/proc/$pid/$map" || { kill "$pid"; die "this system gives no user namespace to root"; }
    done
    echo > "$mapped"
    status=0
    wait "$pid" || status=$?
    exit $status
}

# In new namespaces, as the first process.
inside() { # root fifo command...
    root=$1
    read -r _ < "$2"
    shift 2
    mount --make-rprivate /
    tree=$top/build/arm64
    mount -t tmpfs none /mnt
    mkdir /mnt/upper /mnt/work /mnt/root
    mount -t overlay -o "lowerdir=$root,upperdir=/mnt/upper,workdir=/mnt/work,userxattr" none /mnt/root
    mount -t proc none /mnt/root/proc
    mount -t binfmt_misc none /mnt/root/proc/sys/fs/binfmt_misc 2>/dev/null ||
        die "the kernel has no binfmt_misc for user namespaces: it needs Linux 6.7 or newer"
    # Executables and shared objects, 64 bits, little-endian, EM_AARCH64. F: opened now, P: argv[0] stays.
    printf '%s' ':arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00' \
        ':\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$root"'/usr/bin/qemu-aarch64:FP' \
        > /mnt/root/proc/sys/fs/binfmt_misc/register
    mkdir -p "$tree" "/mnt/root$top" "/mnt/root$cache"
    for shared in /dev /sys /tmp "$top" "$cache"; do mount --rbind "$shared" "/mnt/root$shared"; done
    # Not links, which tests would follow to find the clone.
    for part in CHANGELOG.md CONTRIBUTING.md LICENSE Makefile.in README.md configure.ac; do
        : >> "$tree/$part"
        mount --bind "$top/$part" "/mnt/root$tree/$part"
    done
    for part in bases benchmarks doc examples patches scripts test tools vm_trace; do
        mkdir -p "$tree/$part"
        mount --bind "$top/$part" "/mnt/root$tree/$part"
    done
    exec chroot /mnt/root /usr/bin/env -i --default-signal=INT,QUIT -C "$tree" \
        HOME="${HOME:-/root}" ${XDG_CACHE_HOME:+XDG_CACHE_HOME="$XDG_CACHE_HOME"} \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 QEMU_RESERVED_VA=1024G TERM="${TERM:-dumb}" ${CI:+CI="$CI"} "$@"
}

if [ "${1:-}" = --inside ]; then
    shift
    inside "$@"
else
    [ $# -gt 0 ] || die "usage: arm64.sh COMMAND..."
    outside "$@"
fi
