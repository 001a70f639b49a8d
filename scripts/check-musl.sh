#!/bin/sh
# The module's unit tests and the tool's tests with musl, the C library of Alpine, in build/musl: musl-gcc (the package
# musl-tools) compiles and links them. MUSL_ROOT is a folder whose include/ and lib/ have cmocka and zlib, compiled by
# musl-gcc; the tool is built without SQL. Headers of the kernel are the system's.
#   check-musl.sh [TARGET...]      check-unit and check-tool, if none is named
. "${0%/*}/common.sh"
[ $# -gt 0 ] || set -- check-unit check-tool
command -v musl-gcc >/dev/null || die "musl-gcc is not installed: it is in the package musl-tools"
[ -f "${MUSL_ROOT:-}/include/cmocka.h" ] ||
    die "MUSL_ROOT=${MUSL_ROOT:-} has no include/cmocka.h: compile cmocka and zlib by musl-gcc, and install them there"
link_tree musl
kernel=$top/build/musl/kernel
mkdir -p "$kernel"
for name in linux asm-generic asm; do
    from=/usr/include/$name
    [ -d "$from" ] || from=/usr/include/$(cc -dumpmachine)/$name
    ln -sfn "$from" "$kernel/$name"
done
exec "${MAKE:-make}" -C "$top/build/musl" -f "$top/Makefile" -j"${JOBS:-2}" CC=musl-gcc TOOL_CPPFLAGS= TOOL_LIBS='-lz -lm' \
    CFLAGS="-O2 -g -isystem $kernel -isystem $MUSL_ROOT/include" LDFLAGS="-L$MUSL_ROOT/lib" "$@"
