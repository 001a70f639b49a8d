#!/bin/sh
# Installs the patched Ruby or the tool in a prefix, and removes them again. The Makefile sets
# prefix, DESTDIR, bindir, mandir, datarootdir, bash_completions and zsh_completions.
#   install.sh ruby        from build/<base>/stage. Refuses to overwrite files of another Ruby, unless FORCE=yes
#   install.sh tool        vm-trace, its man page and completions
#   install.sh uninstall   both, if they are installed
# $datarootdir/ruby-vm-trace has lists of what was installed: one path a line; a folder that was
# made ends with a slash. uninstall removes these and nothing else.
. "${0%/*}/common.sh"
cd "$top"
root=${DESTDIR:-}
lists=$root$datarootdir/ruby-vm-trace
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# plan NAME: writes the list NAME of the paths (without DESTDIR) that are going to be installed,
# from $work/files and $work/folders (only folders that may be empty), and of the list itself. The
# list is written before anything is copied, so that an interrupted installation can be removed.
plan() {
    echo "$datarootdir/ruby-vm-trace/$1" >> "$work/files"
    cat "$work/folders" "$work/files" | while read -r file; do
        folder=${file%/*}
        while [ -n "$folder" ] && [ ! -d "$root$folder" ]; do
            echo "$folder/"
            folder=${folder%/*}
        done
    done > "$work/new-folders"
    mkdir -p "$lists"
    touch "$lists/$1"
    { cat "$work/files" "$work/new-folders"; grep '/$' "$lists/$1" || :; } | sort -u > "$work/list"
    # Files of an older version that this one lacks.
    sort "$lists/$1" | comm -23 - "$work/list" | while read -r gone; do rm -f "$root$gone"; done
    cp "$work/list" "$lists/$1"
}

uninstall() {
    cat "$lists"/* > "$work/list" 2>/dev/null ||
        die "nothing is installed in $root$prefix ($lists does not exist); give the prefix and DESTDIR of the installation"
    grep -v '/$' "$work/list" | while read -r file; do rm -f "$root$file"; done
    grep '/$' "$work/list" | sort -ru | while read -r folder; do
        [ ! -d "$root$folder" ] || rmdir "$root$folder" 2>/dev/null || say "uninstall: left $root$folder, which has other files"
    done
}

install_ruby() {
    (cd "$build/stage" && find . ! -type d) | sed "s|^\.|$prefix|" | sort > "$work/files"
    (cd "$build/stage" && find . -type d) | sed "s|^\.|$prefix|; s|$|/|" > "$work/folders"
    sort "$lists/ruby" 2>/dev/null > "$work/ours" || :
    comm -23 "$work/files" "$work/ours" | while read -r file; do
        [ ! -e "$root$file" ] && [ ! -L "$root$file" ] || echo "$root$file"
    done > "$work/others"
    if [ -s "$work/others" ] && [ "${FORCE:-}" != yes ]; then
        say "install: $root$prefix holds another Ruby; $(wc -l < "$work/others") of its files would be overwritten, such as"
        head -n 3 "$work/others" | sed 's/^/  /' >&2
        say "Give another prefix (make install prefix=/opt/ruby-vm-trace), install only the tool (make install-tool), or overwrite them (FORCE=yes)."
        exit 1
    fi
    plan ruby
    mkdir -p "$root$prefix"
    (cd "$build/stage" && tar cf - .) | (cd "$root$prefix" && tar xf - --no-same-owner)
}

install_tool() {
    set -- build/tool/vm-trace "$bindir/vm-trace" 755 tools/vm-trace/cli/vm-trace.1 "$mandir/man1/vm-trace.1" 644 \
        tools/vm-trace/cli/completions/vm-trace.bash "$bash_completions/vm-trace" 644 \
        tools/vm-trace/cli/completions/_vm-trace "$zsh_completions/_vm-trace" 644
    printf '%s\n' "$2" "$5" "$8" "${11}" > "$work/files"
    : > "$work/folders"
    plan tool
    while [ $# -gt 0 ]; do
        mkdir -p "$root${2%/*}"
        install -m "$3" "$1" "$root$2"
        shift 3
    done
}

case ${1:-} in
ruby) install_ruby ;;
tool) install_tool ;;
uninstall) uninstall ;;
*) die "usage: install.sh ruby|tool|uninstall" ;;
esac
