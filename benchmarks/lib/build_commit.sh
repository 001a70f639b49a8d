#!/bin/sh
# Builds the CRuby that is checked out here into $OUT, with its objects in $OBJECTS. benchmarks/history calls it.
set -e
src=$PWD
export CCACHE_BASEDIR="${OUT%/*}" CCACHE_NOHASHDIR=1
[ -n "$CC" ] || { command -v ccache > /dev/null && CC="ccache cc"; } || CC=cc
if [ ! -f configure ] || [ configure.ac -nt configure ]; then
    ./autogen.sh
fi
cd "$OBJECTS"
# Its libraries are found from its own place. Without git its makefiles fetch no gems.
if [ ! -f Makefile ] || [ "$src/configure" -nt config.status ]; then
    # shellcheck disable=SC2086 # options
    "$src/configure" --prefix=/usr --enable-load-relative --without-git --disable-install-doc "CC=$CC" $CONFIGURE
fi
make -j"$JOBS" HAVE_GIT=no
make install HAVE_GIT=no DESTDIR="$OUT"
mv "$OUT"/usr/* "$OUT"
