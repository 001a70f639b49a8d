#!/usr/bin/env bash
# Builds the patched Ruby of a base: build/<base>/obj from build/<base>/src, installed in
# build/<base>/stage and linked as build/<base>/ruby. Does nothing when nothing changed. Exit status
# 3: it cannot be built here (build/<base>/unavailable says why).
#   build-ruby.sh --base     builds the unpatched base in the same way, for comparisons: base-src,
#                            base-obj, base-stage, base-ruby
#   build-ruby.sh --objects     with $obj, in which CRuby's own tests run. Without it a Ruby that some clone
#                            has built from the same inputs is taken from the cache, without its objects.
. "${0%/*}/common.sh"
. "$top/scripts/step.sh"
kind= branch=vm_trace objects_wanted=
for option; do
    case $option in
    --base) kind=base- branch=base ;;
    --objects) objects_wanted=yes ;;
    *) die "usage: build-ruby.sh [--base] [--objects]" ;;
    esac
done
src=$build/${kind}src obj=$build/${kind}obj stage=$build/${kind}stage log=$build/${kind}build.log
ruby=$build/${kind}ruby built=$build/${kind}built
make=${MAKE:-make}
cores=$(nproc)
jobs=${JOBS:-$cores}

compile_through_ccache
lock_build

rm -f "$build/unavailable"
fault=$(rustc_fault)
if [ -n "$fault" ]; then
    echo "$fault" > "$build/unavailable"
    say "build: $fault"
    exit $UNAVAILABLE
fi

"$top/scripts/prepare.sh" ${kind:+--base} || {
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
# the binary has to be installed again. Which Ruby runs the scripts of the build makes no difference.
inputs() {
    {
        printf '%s\n' "${configure[@]}" | grep -v '^--with-baseruby='
        rustc --version
        ${RUBY_CC:-cc} --version
        uname -m
        own_git -C "$src" rev-parse 'HEAD^{tree}' # not the commit: who edits a patch has others in between
        own_git -C "$src" diff HEAD
        own_git -C "$src" ls-files --others --exclude-standard -z | (cd "$src" && xargs -0r sha256sum)
    } | sha256sum
    (cd "$src" && [ ! -d vm_trace ] || find vm_trace -type f | sort | xargs -r sha256sum) | sha256sum
}
now=$(inputs)
# obj/whole says what obj was built from: it can be older than stage.
if [ "$now" = "$(cat "$built" 2>/dev/null)" ] && [ -x "$ruby" ]; then
    [ -n "$objects_wanted" ] && [ "$now" != "$(cat "$obj/whole" 2>/dev/null)" ] || exit 0
fi

# A Ruby finds its library from its own place and runs in any clone. Beside it is what C files include of
# the build's own files, for lint.sh.
kept=$cache/rubies/$kind$base-$(echo "$now" | sha256sum | cut -c1-32).tar.gz
KEPT_MOST=8 # about 100 MB each; the oldest go
restore() {
    [ -z "$objects_wanted" ] && [ -f "$kept" ] || return 1
    rm -rf "$build/restored" && mkdir "$build/restored" && tar -xzf "$kept" -C "$build/restored" &&
        "$build/restored/stage/bin/ruby" -e 'exit' || { say "build: $kept is damaged and not used"; rm -rf "$kept" "$build/restored"; return 1; }
    rm -rf "$stage" "$built"
    mv "$build/restored/stage" "$stage"
    [ -f "$obj/Makefile" ] || { rm -rf "$obj" && mv "$build/restored/obj" "$obj"; }
    rm -rf "$build/restored"
    touch "$kept"
}
keep() {
    mkdir -p "$cache/rubies" && [ -w "$cache/rubies" ] || return 0
    (cd "$obj" && find . -path ./ext -prune -o -name '*.h' -print -o -name '*.inc' -print) > "$build/headers"
    own_git -C "$src" ls-files --others --ignored --exclude-standard '*.h' ':!vm_trace' | sed 's,^,./,' > "$build/source-headers"
    tar -I 'gzip -1' -cf "$kept.$$" --transform="s,^${kind}stage,stage," --transform='s,^\./,obj/,' \
        -C "$build" "${kind}stage" -C "$obj" -T "$build/headers" -C "$src" -T "$build/source-headers" &&
        mv "$kept.$$" "$kept" || rm -f "$kept.$$"
    ls -t "$cache/rubies"/*.tar.gz | tail -n +$((KEPT_MOST + 1)) | xargs -r rm -f
}
if restore; then
    ln -sfn "${stage##*/}/bin/ruby" "$ruby"
    echo "$now" > "$built"
    say "build: ${ruby#"$top"/} is $("$ruby" -v), built before from the same source"
    exit
fi
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
[ -f "$obj/Makefile" ] || rm -rf "$obj" # headers of a Ruby from the cache
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
    left_out='^configure:[0-9]*: result: no: vm_trace is left out, because it needs '
    lacks=$(sed -n "s/$left_out//p" "$obj/config.log" 2>/dev/null || :)
    [ -z "$lacks" ] || die "this Ruby would have no vm_trace, which needs $lacks (${obj#"$top"/}/config.log)"
    echo "$configured" > "$obj/configured"
fi

if [ -f "$obj/whole" ]; then
    step "rebuilding what changed in CRuby" "" "$make" -C "$obj" -j"$jobs" "${no_git[@]}" ${V:+V=$V}
else
    minutes=$(((build_core_minutes + jobs - 1) / (jobs < cores ? jobs : cores)))
    step "building CRuby: about $minutes minutes with -j$jobs" "$build_log_lines" "$make" -C "$obj" -j"$jobs" "${no_git[@]}" ${V:+V=$V}
fi
echo "$now" > "$obj/whole"

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
keep
say "build: ${ruby#"$top"/} is $("$ruby" -v)"
