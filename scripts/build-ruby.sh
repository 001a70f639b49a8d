#!/usr/bin/env bash
# Builds the patched Ruby of a base: build/<base>/obj from build/<base>/src, installed in
# build/<base>/stage and linked as build/<base>/ruby. Does nothing when nothing changed. Exit status
# 3: it cannot be built here (build/<base>/unavailable says why).
#   build-ruby.sh --base     builds the unpatched base in the same way, for comparisons: base-src,
#                            base-obj, base-stage, base-ruby
. "$(dirname "$0")/common.sh"
. "$top/scripts/step.sh"
case ${1:-} in
'') kind= branch=vm_trace ;;
--base) kind=base- branch=base ;;
*) die "usage: build-ruby.sh [--base]" ;;
esac
src=$build/${kind}src obj=$build/${kind}obj stage=$build/${kind}stage log=$build/${kind}build.log
ruby=$build/${kind}ruby built=$build/${kind}built
make=${MAKE:-make}
cores=$(nproc)
jobs=${JOBS:-$cores}

# What ccache has compiled before, in whichever clone, is not compiled again. Through PATH, because the
# compiler's name becomes part of the built Ruby's configuration. Paths in debug information may be
# those of another clone.
if command -v ccache >/dev/null; then
    for name in cc gcc clang ${RUBY_HOST:+"$RUBY_HOST-gcc"}; do
        mkdir -p "$top/build/ccache"
        ln -sfn "$(command -v ccache)" "$top/build/ccache/$name"
    done
    PATH=$top/build/ccache:$PATH
    export CCACHE_BASEDIR=$top CCACHE_NOHASHDIR=1 CCACHE_DIR=$cache/ccache CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-1G}
fi

lock_build

rm -f "$build/unavailable"
fault=$(rustc_fault)
if [ -n "$fault" ]; then
    echo "$fault" > "$build/unavailable"
    say "build: $fault"
    exit $UNAVAILABLE
fi

"$top/scripts/prepare.sh" "$@" || {
    status=$?
    [ $status != $UNAVAILABLE ] || echo "the source of CRuby was not found (the ways to supply it are listed above)" > "$build/unavailable"
    exit $status
}

# Without git CRuby's makefiles fetch no gems; the revision is written below instead. With
# --enable-load-relative the binary finds its prefix from its own place: the staged Ruby runs where
# it is, and can be copied anywhere.
configure=(--enable-load-relative --without-git ${BASERUBY:+"--with-baseruby=$BASERUBY"} $configure_args)
[ -z "${RUBY_CC:-}" ] || configure+=("CC=$RUBY_CC")
[ -z "${RUBY_CFLAGS:-}" ] || configure+=("CFLAGS=$RUBY_CFLAGS")
if [ -n "${RUBY_HOST:-}" ]; then
    # The programs of that machine run here, so CRuby builds as on it: it has no JIT when it is
    # cross-compiled. Only the compilers are this machine's.
    configure+=("--build=$RUBY_HOST" "--host=$RUBY_HOST"
        "RUSTC=rustc --target=${RUBY_HOST%%-*}-unknown-${RUBY_HOST#*-} -Clinker=$RUBY_HOST-gcc")
fi

# Some makefiles still ask git for the revision, unless revision.h has the one that they take for
# the latest.
no_git=(HAVE_GIT=no "REVISION_LATEST=$commit")

# What the build depends on. The first line is everything but the module: while it is the same, only
# the binary has to be installed again.
inputs() {
    {
        printf '%s\n' "${configure[@]}"
        rustc --version
        own_git -C "$src" rev-parse HEAD
        own_git -C "$src" diff HEAD
        own_git -C "$src" ls-files --others --exclude-standard -z | (cd "$src" && xargs -0r sha256sum)
    } | sha256sum
    (cd "$src" && [ ! -d vm_trace ] || find vm_trace -type f | sort | xargs -r sha256sum) | sha256sum
}
now=$(inputs)
[ "$now" != "$(cat "$built" 2>/dev/null)" ] || [ ! -x "$ruby" ] || exit 0
before=$(head -n 1 "$built" 2>/dev/null || :)
rm -f "$built"
: > "$log"

# `ruby -v` names the base. The commit ids of the patches would change with every edit of one.
revision="#define RUBY_REVISION \"${commit:0:10}\"
#define RUBY_FULL_REVISION \"$commit\"
#define RUBY_BRANCH_NAME \"$branch\"
#define RUBY_RELEASE_DATETIME \"$date\"
#define RUBY_RELEASE_YEAR ${date:0:4}
#define RUBY_RELEASE_MONTH $((10#${date:5:2}))
#define RUBY_RELEASE_DAY $((10#${date:8:2}))"
mkdir -p "$obj"
[ "$revision" = "$(cat "$src/revision.h" 2>/dev/null)" ] || echo "$revision" > "$src/revision.h"
[ -f "$obj/.revision.time" ] || touch "$obj/.revision.time"

if [ ! -f "$src/configure" ] || [ "$src/configure.ac" -nt "$src/configure" ]; then
    step "making CRuby's configure" "" sh -c "cd '$src' && ./autogen.sh"
fi
configured=${configure[*]}
if [ ! -f "$obj/Makefile" ] || [ "$configured" != "$(cat "$obj/configured" 2>/dev/null)" ] || [ "$src/configure" -nt "$obj/config.status" ]; then
    rm -f "$obj/configured"
    step "configuring CRuby" "" bash -c 'cd "$1" && "${@:2}"' - "$obj" "$src/configure" "${configure[@]}"
    echo "$configured" > "$obj/configured"
fi

if [ -f "$obj/whole" ]; then
    step "rebuilding what changed in CRuby" "" "$make" -C "$obj" -j"$jobs" "${no_git[@]}" ${V:+V=$V}
else
    minutes=$(((build_core_minutes + jobs - 1) / (jobs < cores ? jobs : cores)))
    step "building CRuby: about $minutes minutes with -j$jobs" "$build_log_lines" "$make" -C "$obj" -j"$jobs" "${no_git[@]}" ${V:+V=$V}
    touch "$obj/whole"
fi

if [ -x "$stage/bin/ruby" ] && [ "$before" = "$(echo "$now" | head -n 1)" ]; then
    # Renamed into place: a running ruby keeps its file.
    cp "$obj/ruby" "$stage/bin/ruby.new" && mv "$stage/bin/ruby.new" "$stage/bin/ruby"
    cmp -s "$obj/libruby-static.a" "$stage/lib/libruby-static.a" || cp "$obj/libruby-static.a" "$stage/lib/"
else
    rm -rf "$stage"
    step "installing CRuby below ${stage#"$top"/}" "" "$make" -C "$obj" install DESTDIR="$stage" "${no_git[@]}"
fi
ln -sfn "${stage##*/}/bin/ruby" "$ruby"
"$ruby" -e 'exit' || die "the built Ruby does not start"
echo "$now" > "$built"
say "build: ${ruby#"$top"/} is $("$ruby" -v)"
