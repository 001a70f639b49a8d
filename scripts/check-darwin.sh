#!/bin/sh
# Compiles the tool and the module for macOS, for both processors, without a warning, and links them, in build/darwin-*.
# clang and lld are enough, and SDK: the folder of a macOS SDK, which has usr/include. Nothing is run. Files that include
# CRuby's headers (vm_trace/host/ and vm_trace/ruby/) are left out: their configuration would be that of a Mac.
. "${0%/*}/common.sh"
[ -f "${SDK:-}/usr/include/stdio.h" ] ||
    die "SDK=${SDK:-} has no usr/include/stdio.h: name a macOS SDK (on a Mac, xcrun --show-sdk-path)"
find_tool() { # the newest NAME or NAME-VERSION
    found=$(ls /usr/bin/"$1" /usr/bin/"$1"-[0-9]* 2>/dev/null | sort -V | tail -n 1)
    [ -n "$found" ] || die "$1 is not installed"
    echo "$found"
}
clang=$(find_tool clang)
lld=$(find_tool ld64.lld)
cd "$top"
for arch in arm64 x86_64; do
    tree=darwin-$arch
    link_tree "$tree"
    ln -sfn "$lld" "$top/build/$tree/ld64.lld"
    flags="--target=$arch-apple-macos12 -isysroot $SDK"
    link="$flags -mlinker-version=609 -fuse-ld=$top/build/$tree/ld64.lld" # of Xcode 12, whose options lld takes
    objects=$(ls vm_trace/platform/*.c vm_trace/*/*.c vm_trace/*/*/*.c | grep -v -e ^vm_trace/host/ -e ^vm_trace/ruby/ | sort -u |
        sed 's,\(.*\)\.c,build/unit/\1.o,')
    "${MAKE:-make}" -C "build/$tree" -f "$top/Makefile" -j"${JOBS:-2}" CC="$clang" WERROR=-Werror CFLAGS="-O2 $flags" \
        LDFLAGS="$link" TOOL_CPPFLAGS='-DHAVE_SQLITE3 -DHAVE_LIBEDIT' \
        TOOL_LIBS='-lsqlite3 -ledit -lz' tool $objects
    (cd "build/$tree" && "$clang" $link -dynamiclib -undefined dynamic_lookup -o build/vm_trace.dylib $objects)
    say "check-darwin: $arch: build/$tree/build has tool/vm-trace and vm_trace.dylib"
done
