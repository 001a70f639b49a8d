#!/bin/sh
# Builds the CRuby that is checked out here into $OUT, with its objects in $OBJECTS. benchmarks/history calls it.
set -e
src=$PWD kept=${OUT%/*}
if ccache=$(command -v ccache); then
    # Under the compilers' names, so that configure chooses as without it.
    mkdir -p "$kept/ccache"
    for name in cc gcc clang; do
        ln -sfn "$ccache" "$kept/ccache/$name"
    done
    PATH=$kept/ccache:$PATH
    export CCACHE_BASEDIR="$kept" CCACHE_NOHASHDIR=1
fi
: > gems/bundled_gems # make would fetch them
if [ ! -f configure ] || [ configure.ac -nt configure ]; then
    ./autogen.sh
fi
cd "$OBJECTS"
if [ ! -f Makefile ] || [ "$src/configure" -nt config.status ]; then
    # Its libraries are found from its own place, and its prefix is $OUT.
    # shellcheck disable=SC2086 # options
    "$src/configure" --enable-load-relative --without-git --disable-install-doc $CONFIGURE
fi
make -j"$JOBS" HAVE_GIT=no
make install HAVE_GIT=no DESTDIR="$OUT"
