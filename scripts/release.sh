#!/bin/sh
# Writes build/release/ruby-vm-trace-VERSION.tar.gz: what is committed, and configure, so that it needs neither git
# nor autoconf. The same commit gives the same bytes.
. "${0%/*}/common.sh"

name=ruby-vm-trace-$(version)
out=$top/build/release
[ -e "$top/.git" ] || die "this is no clone of the repository: a release is made of a commit"
[ -z "$(git -C "$top" status --porcelain --untracked-files=no)" ] || say "Note: what is not committed is not in the release."
rm -rf "$out"
mkdir -p "$out/$name"
git -C "$top" archive HEAD | tar -x -C "$out/$name"
(cd "$out/$name" && autoconf && rm -rf autom4te.cache)
tar -c --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git -C "$top" log -1 --format=%ct)" \
    -C "$out" "$name" | gzip -n -9 > "$out/$name.tar.gz"
rm -rf "${out:?}/$name"
say "The release is $out/$name.tar.gz"
