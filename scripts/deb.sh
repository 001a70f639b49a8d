#!/usr/bin/env bash
# Makes Debian packages of what is built, in build/deb:
#   deb.sh tool     ruby-vm-trace: vm-trace, its man page and completions, below /usr
#   deb.sh ruby     ruby4.0-vm-trace (for base ruby-4.0): the patched Ruby below
#                   /opt/ruby4.0-vm-trace. It finds its library from its own place and is in nobody's
#                   PATH, so it does not meet the system's Ruby.
# The Makefile sets tool_version. Without maintainer scripts, removing a package only removes its
# files.
. "${0%/*}/common.sh"
for program in dpkg-deb dpkg-shlibdeps strip; do
    command -v $program >/dev/null || die "there is no $program here: make deb needs Debian's packages dpkg-dev and binutils"
done
out=$top/build/deb
maintainer='ruby-vm-trace <ruby-vm-trace@example.org>'
SOURCE_DATE_EPOCH=$(date -u -d "$date" +%s) # the same files give the same package
export SOURCE_DATE_EPOCH

elf_files() { # folder
    find "$1" -type f \( -perm -100 -o -name '*.so' \) -exec sh -c 'head -c 4 "$1" | grep -q ELF' - {} \; -print
}

# Without debug information as in Debian's own packages; gdb and perf keep the names of functions.
strip_debug() { # folder
    { elf_files "$1"; find "$1" -name '*.a'; } | xargs -r strip --strip-debug
}

# Which of the system's packages, in which versions, the programs of a folder need.
depends() { # folder
    mkdir -p "$work/deps/debian"
    printf 'Source: %s\n\nPackage: %s\nArchitecture: any\n' "$name" "$name" > "$work/deps/debian/control"
    # An extension has functions of Ruby from the program that loads it: no warnings of unknown
    # symbols.
    elf_files "$1" | (cd "$work/deps" && xargs dpkg-shlibdeps --warnings=0 -O) | sed -n 's/^shlibs:Depends=//p'
}

# Packs $work/root; further control fields come on stdin.
package() { # version
    local architecture doc=$work/root/usr/share/doc/$name
    architecture=$(dpkg --print-architecture)
    mkdir -p "$doc" "$work/root/DEBIAN" "$out"
    cp "$top/LICENSE" "$doc/copyright"
    gzip -9n < "$top/CHANGELOG.md" > "$doc/changelog.gz"
    chmod -R u=rwX,go=rX "$work/root"
    needed=$(depends "$work/root")
    [ -n "$needed" ] || die "dpkg-shlibdeps does not say which libraries $name needs"
    {
        printf '%s\n' "Package: $name" "Version: $1" "Architecture: $architecture" "Maintainer: $maintainer" \
            "Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$work/root" | cut -f 1)" "Depends: $needed" "Priority: optional"
        cat
    } > "$work/control"
    (cd "$work/root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) > "$work/root/DEBIAN/md5sums"
    mv "$work/control" "$work/root/DEBIAN/control"
    rm -f "$out/${name}_"*.deb
    # Compressed fast: with the default the compression takes longer than all the rest.
    dpkg-deb --root-owner-group -Zxz -z1 --build "$work/root" "$out" >/dev/null
    for file in "$out/${name}_"*.deb; do
        say "deb: ${file#"$top"/}, $(($(stat -c %s "$file") / 1024)) KiB"
    done
}

deb_tool() {
    name=ruby-vm-trace
    DESTDIR=$work/root prefix=/usr bindir=/usr/bin mandir=/usr/share/man datarootdir=/usr/share \
        bash_completions=/usr/share/bash-completion/completions zsh_completions=/usr/share/zsh/vendor-completions \
        "$top/scripts/install.sh" tool
    rm -r "$work/root/usr/share/ruby-vm-trace" # the list of files: dpkg has its own
    gzip -9n "$work/root/usr/share/man/man1/vm-trace.1"
    strip_debug "$work/root/usr/bin"
    package "$tool_version" <<EOF
Section: devel
Description: reports, queries and compares traces of Ruby's JIT exits
 vm-trace reads the traces that a Ruby with vm_trace writes: which lines leave
 compiled code, why and when. It reports, answers SQL, compares two runs,
 exports stacks, and makes pages for the browser.
 .
 A Ruby that writes such traces is in packages like ruby4.0-vm-trace.
EOF
}

deb_ruby() {
    local stage=$build/stage version
    [ -x "$stage/bin/ruby" ] || die "there is no build/$base/stage: run make ruby BASE=$base"
    name=ruby${base#ruby-}-vm-trace
    version=$("$stage/bin/ruby" -e 'print RUBY_VERSION')
    # A development version sorts before the release, by day.
    [ "$("$stage/bin/ruby" -e 'print RUBY_PATCHLEVEL')" != -1 ] || version=$version~dev$(date -u -d "$date" +%Y%m%d)
    mkdir -p "$work/root/opt"
    cp -a "$stage" "$work/root/opt/$name"
    # Ruby 4.0 notes there where its Rust library was built, which means nothing elsewhere.
    find "$work/root/opt/$name" -name rbconfig.rb -exec sed -i "s|\"$build/obj/|\"|" {} +
    strip_debug "$work/root/opt/$name"
    package "$version+vmtrace$tool_version" <<EOF
Section: ruby
Recommends: ca-certificates
Suggests: ruby-vm-trace, gcc, make
Description: Ruby ${version%%~*} that traces exits of JIT-compiled code
 A Ruby with vm_trace: it records every side exit of code that
 $(echo $jits | tr a-z A-Z | sed 's/ / and /') compiled, with reason and backtrace, into a file for Perfetto
 and vm-trace. Without a trace flag it runs as Ruby always does.
 .
 It is in /opt/$name and changes no other Ruby: run
 /opt/$name/bin/ruby. Extensions in C compile with its headers.
EOF
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
umask 022
case ${1:-} in
tool) deb_tool ;;
ruby) deb_ruby ;;
*) die "usage: deb.sh tool|ruby" ;;
esac
