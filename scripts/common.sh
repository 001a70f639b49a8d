# Shared by the scripts beside it: sourced, never run. Sets top (the repository), base and the
# variables of bases/$base. Each make runs several scripts, so this starts no program that it can do without.
set -eu
case $0 in */*) top=${0%/*}/.. ;; *) top=.. ;; esac
top=$(cd "$top" && pwd -P)
base=${BASE:-ruby-4.0}
build=$top/build/$base

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }

case $top in
*[[:space:]]*) die "the path \"$top\" holds a space: CRuby's build cannot work there, move the clone" ;;
esac
[ -f "$top/bases/$base" ] || die "there is no base \"$base\"; bases/ has: $(cd "$top/bases" && echo *)"
. "$top/bases/$base"
series=$top/$patches/series
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/ruby-vm-trace

# The version of all that is here.
version() { sed -n 's/^AC_INIT(\[ruby-vm-trace\], \[\(.*\)\])$/\1/p' "$top/configure.ac"; }

# Makes build/NAME a tree of links to this one, in which the Makefile builds with other flags.
link_tree() { # NAME
    mkdir -p "$top/build/$1"
    for part in vm_trace test tools scripts benchmarks bases patches doc configure.ac; do
        ln -sfn "../../$part" "$top/build/$1/$part"
    done
}

# What ccache has compiled before, in whichever clone, is not compiled again. Through PATH, because the
# compiler's name becomes part of the built Ruby's configuration. Paths in debug information may be
# those of another clone.
compile_through_ccache() {
    command -v ccache >/dev/null || return 0
    ccache=$(command -v ccache)
    [ -d "$top/build/ccache" ] || mkdir -p "$top/build/ccache"
    for name in cc gcc clang ${RUBY_HOST:+"$RUBY_HOST-gcc"}; do
        [ "$top/build/ccache/$name" -ef "$ccache" ] || ln -sfn "$ccache" "$top/build/ccache/$name"
    done
    PATH=$top/build/ccache:$PATH
    export CCACHE_BASEDIR="$top" CCACHE_NOHASHDIR=1 CCACHE_DIR="$cache/ccache" CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-1G}"
}

# Only one make at a time changes build/$base; the kernel drops the lock when the script ends.
lock_build() {
    mkdir -p "$build"
    exec 8>"$build/lock"
    flock -n 8 || { say "build: waiting for another make in $build"; flock 8; }
}

# Exit status for "cannot be built here: no source, or no rustc". `make check` then skips what needs
# CRuby; it stops at any other status.
UNAVAILABLE=3

# In a git hook or `git rebase --exec` the environment names the outer repository. These are what `git rev-parse
# --local-env-vars` prints.
unset GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_OBJECT_DIRECTORY GIT_DIR \
    GIT_WORK_TREE GIT_IMPLICIT_WORK_TREE GIT_GRAFT_FILE GIT_INDEX_FILE GIT_NO_REPLACE_OBJECTS GIT_REPLACE_REF_BASE \
    GIT_PREFIX GIT_SHALLOW_FILE GIT_COMMON_DIR GIT_INTERNAL_SUPER_PREFIX
export GIT_TERMINAL_PROMPT=0

# git for the repositories of these scripts: the user's configuration, hooks and name change
# nothing.
own_git() {
    GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 \
    GIT_AUTHOR_NAME=ruby-vm-trace GIT_AUTHOR_EMAIL=ruby-vm-trace@localhost GIT_AUTHOR_DATE=$date \
    GIT_COMMITTER_NAME=ruby-vm-trace GIT_COMMITTER_EMAIL=ruby-vm-trace@localhost GIT_COMMITTER_DATE=$date \
        git -c core.hooksPath=/dev/null -c core.autocrlf=false -c core.fileMode=true \
            -c gc.auto=0 -c maintenance.auto=false -c init.defaultBranch=base -c advice.detachedHead=false "$@"
}

# The tree of a commit without what releases lack ($not_released, entries of its root). It is
# written into a repository of ours, because the one that has the commit may be the user's. Newlines
# separate the entries: CRuby's root has no name that git would quote.
tree_of() { # git-dir commit git-dir-of-ours
    git --git-dir="$1" ls-tree "$2" | awk -F '\t' -v names="${not_released:-}" '
        BEGIN { n = split(names, name, " "); for (i = 1; i <= n; i++) lacks[name[i]] }
        !($2 in lacks)' | own_git --git-dir="$3" mktree --missing
}

# Also look in rustup's folder: not every shell that runs make reads its line in ~/.profile.
if ! command -v rustc >/dev/null 2>&1 && [ -x "${HOME:-}/.cargo/bin/rustc" ]; then
    PATH=$HOME/.cargo/bin:$PATH
fi

# Prints why rustc is not good enough for this base; prints nothing when it is.
rustc_fault() {
    found=$(rustc --version 2>/dev/null | sed -n 's/^rustc \([0-9.]*\).*/\1/p')
    if [ -z "$found" ]; then
        found="there is none"
    elif [ "$(printf '%s\n%s\n' "$rustc_min" "$found" | sort -V | head -n 1)" = "$rustc_min" ]; then
        return 0
    fi
    echo "base $base needs rustc >= $rustc_min, found: $found (get it from https://rustup.rs, or your distribution's package rustc if that is new enough)"
}
