#!/bin/sh
# Checks for what the build needs by trying it, so it works on any distribution. Installs what is
# missing as root on Debian or a relative, unless DEPS=no.
#   deps.sh PROGRAM:PACKAGE...     checks for these programs instead
. "${0%/*}/common.sh"

programs=$*
has() { command -v "$1" >/dev/null 2>&1; }
has_header() { # header [what must come before it]
    printf '%s\n#include <%s>\n' "${2:-}" "$1" | ${CC:-cc} -E - >/dev/null 2>&1
}
has_certificates() {
    [ -n "${RUBY_SOURCE:-}" ] ||
    for f in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
        [ -e "$f" ] && return 0
    done
}

missing_packages() {
    if [ -n "$programs" ]; then
        for pair in $programs; do has "${pair%%:*}" || echo "${pair#*:}"; done
        return
    fi
    has make || echo make
    has autoconf || echo autoconf
    has git || echo git
    has xz || echo xz-utils # releases are packed with it
    compiler=${CC:-cc}
    has "${compiler%% *}" || echo gcc
    has_header stdio.h || echo libc6-dev
    has ruby && ruby -e 'exit RUBY_VERSION.to_i >= 3' || echo ruby
    has ruby && ruby -e 'require "minitest"' 2>/dev/null || echo ruby-minitest
    # The patched Ruby's own extensions (RubyGems needs the first two, vm-trace the second); the
    # tests of the C code.
    has_header yaml.h || echo libyaml-dev
    has_header zlib.h || echo zlib1g-dev
    has_header openssl/ssl.h || echo libssl-dev
    has_header cmocka.h '#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>' || echo libcmocka-dev
    has_header sqlite3.h || echo libsqlite3-dev # for vm-trace query
    has_header editline/readline.h '#include <stdio.h>' || echo libedit-dev # for its prompt
    has_header zstd.h || echo libzstd-dev # for its .zst
    has_header pcre2.h '#define PCRE2_CODE_UNIT_WIDTH 8' || echo libpcre2-dev # for its regular expressions
    # git fetches the base's source over https if this machine does not have it.
    has_certificates || echo ca-certificates
}

missing=$(missing_packages | tr '\n' ' ' | sed 's/ $//')
install="apt-get install -y --no-install-recommends $missing"
if [ -n "$missing" ]; then
    if [ "${DEPS:-}" != no ] && [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && has apt-get; then
        say "Missing build packages: $missing"
        say "+ $install    (DEPS=no forbids it)"
        export DEBIAN_FRONTEND=noninteractive
        # The lists may be absent or out of date: try first as they are, then after one update.
        $install </dev/null >&2 || {
            say "+ apt-get update"
            apt-get update </dev/null >&2 || :
            $install </dev/null >&2
        } || { say "deps.sh: apt-get failed; install these and run make again: $missing"; exit 1; }
        missing=$(missing_packages | tr '\n' ' ')
        [ -z "$missing" ] || { say "deps.sh: still missing after apt-get: $missing"; exit 1; }
    else
        say "Build packages are missing. On Debian and its relatives, as root:"
        say "  apt-get install --no-install-recommends $missing"
        exit 1
    fi
fi

[ -z "$programs" ] || exit 0
fault=$(rustc_fault)
[ -z "$fault" ] || say "Note: $fault. Until then make skips everything that needs the patched Ruby."
