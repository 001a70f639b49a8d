#!/bin/sh
# The gems of an application of test/applications: in the cache, for every clone, built for the patched
# Ruby of one base. What is there already needs no network.
#   gems.sh APPLICATION   prints their folder; exit status 3 and the reason on stderr if they cannot be had
. "${0%/*}/common.sh"
MOST_SECONDS=900 # for all gems of an application, with their extensions

application=${1:?usage: gems.sh APPLICATION}
gemfile=$top/test/applications/$application/Gemfile
ruby=$(readlink -f "$build/ruby")
gems=$cache/gems/$base
log=$gems/$application.log
unavailable() { say "gems of $application: $*"; exit "$UNAVAILABLE"; }

[ -x "$ruby" ] || unavailable "there is no $build/ruby (make ruby BASE=$base)"
mkdir -p "$gems" && [ -w "$gems" ] || unavailable "$gems cannot be written"
exec 9>"$gems.lock"
flock 9

# Extensions belong to one Ruby.
[ "$("$ruby" -v)" = "$(cat "$gems/built-for" 2>/dev/null)" ] || {
    rm -rf "$gems"
    mkdir -p "$gems"
    "$ruby" -v > "$gems/built-for"
}

# Nothing of the user's settings; the versions are those of the lock file.
unset RUBYOPT RUBYLIB GEM_HOME GEM_PATH RUBY_VM_TRACE
PATH=${ruby%/*}:$PATH
export BUNDLE_GEMFILE="$gemfile" BUNDLE_PATH="$gems" BUNDLE_USER_HOME="$gems/bundle" BUNDLE_IGNORE_CONFIG=1 \
    BUNDLE_FROZEN=true BUNDLE_VERSION=system BUNDLE_TIMEOUT=10 BUNDLE_RETRY=1
# A gem that RubyGems has not built for this Ruby is compiled, with the libraries of the system if it has them.
! pkg-config --exists libxml-2.0 libxslt libexslt 2>/dev/null || export BUNDLE_BUILD__NOKOGIRI=--use-system-libraries
! pkg-config --exists sqlite3 2>/dev/null || export BUNDLE_BUILD__SQLITE3=--enable-system-libraries
bundle() { timeout "$MOST_SECONDS" "${ruby%/*}/bundle" "$@" </dev/null >> "$log" 2>&1; }

: > "$log"
bundle check || {
    say "gems of $application: installing into $gems"
    : > "$log"
    status=0
    bundle install || status=$?
    [ "$status" != 124 ] || unavailable "not installed within $MOST_SECONDS s ($log)"
    [ "$status" = 0 ] || unavailable "$(grep -m 1 -iE 'error|could not|cannot|failed' "$log" || tail -n 1 "$log") ($log)"
}
echo "$gems"
