#!/bin/sh
# Writes one patch with the hooks and the module, for `patch -p1` on the tarball of the base's
# release: build/ruby-VERSION-vm_trace.patch. ruby-build and the like take such a file.
#   patch-file.sh BASE...     skips a base whose source is not available; fails if none is
#
# A tarball has a generated configure, and CRuby's Makefile runs autoconf when configure.ac is newer.
# So that nobody needs autoconf, patches that change configure.ac are left out; they may change
# nothing that the others need (template/Makefile.in hands on what configure found). So is the commit
# that builds without bundled gems: the tarball has them.
if [ $# != 1 ]; then
    made=
    for name in "$@"; do
        given=${RUBY_SOURCE:-}
        [ "$name" = "${BASE:-}" ] || given= # it is the source of that base
        status=0
        BASE=$name RUBY_SOURCE=$given "$0" "$name" || status=$?
        case $status in 0) made=yes ;; 3) ;; *) exit $status ;; esac
    done
    [ -n "$made" ] || { echo "patch-file.sh: no patch file was made: there is no source (see above)" >&2; exit 3; }
    exit
fi
BASE=$1
. "${0%/*}/common.sh"
. "${0%/*}/series.sh"
src=$build/src
lock_build
"$top/scripts/prepare.sh" || exit $?

index=$(mktemp)
trap 'rm -f "$index"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
src_git() { GIT_INDEX_FILE=$index own_git --git-dir="$src/.git" --work-tree="$src" "$@"; }

# What the series made of the pinned tree, whatever work there is beside it.
series=$(src_git rev-parse refs/vm-trace/made)
pinned=$(src_git rev-list --max-parents=0 "$series")
src_git read-tree "$series"
for commit_id in $(src_git rev-list "$series" -- configure.ac) $(src_git rev-list refs/vm-trace/base "^$pinned"); do
    [ "$commit_id" != "$pinned" ] || continue
    others=$(src_git diff-tree -r --no-commit-id --name-only "$commit_id" | grep -vxE 'configure.ac|template/Makefile.in|gems/bundled_gems' | paste -s -d ' ' || :)
    [ -z "$others" ] || die "$(src_git log -1 --format='the patch "%s"' "$commit_id") of $patches changes configure.ac, and so it is left out of the patch file, but it also changes $others: split it"
    src_git diff --no-ext-diff "$commit_id" "$commit_id~1" | src_git apply --cached
done
src_git add --force vm_trace
tree_id=$(src_git write-tree)

number() { src_git show "$pinned:$1" | sed -n "s/^# *define $2  *\(-\{0,1\}[0-9]*\).*/\1/p" | head -n 1; }
version=$(number include/ruby/version.h RUBY_API_VERSION_MAJOR).$(number include/ruby/version.h RUBY_API_VERSION_MINOR).$(number version.h RUBY_VERSION_TEENY)
case $(number version.h RUBY_PATCHLEVEL) in
-1) version=${version}dev-$(printf %.10s "$commit") source="commit $commit of $url" installer= ;;
*) source="the source of Ruby $version, as released" installer=yes ;;
esac
fixes=$(chosen_fixes | fix_names | paste -s -d ' ')
file=$top/build/ruby-$version-vm_trace.patch
{
    cat <<EOT
vm_trace, a tracer of JIT exits, for Ruby $version

Apply it to $source:

  patch -p1 < ${file##*/}
${installer:+
or let ruby-build do so:

  rbenv install --patch $version < ${file##*/}
}
Then build as always. The JITs need rustc $rustc_min or newer. \`ruby --help\` lists the options that
start a trace.
${fixes:+
With fixes of Ruby's own bugs: $fixes
}
EOT
    src_git diff --no-ext-diff --no-textconv --no-renames --no-color --src-prefix=a/ --dst-prefix=b/ --unified=3 --diff-algorithm=histogram \
        --abbrev=12 "$pinned" "$tree_id"
} > "$file.new"
mv "$file.new" "$file"
say "patch-file: ${file#"$top"/} ($(($(wc -c < "$file") / 1024)) KiB) is for $source"
