#!/bin/sh
# Prints the base that make uses when none was chosen: the first of `order` whose source can be had
# and that rustc is new enough for. A line on stderr says which and why, until that base is built.
#   default-base.sh GOAL...
# Goals that need no Ruby look for no source.
order="ruby-4.0 ruby-4.1 ruby-3.3"
scripts=$(dirname "$0")
first=
for base in $order; do
    [ ! -e "$scripts/../bases/$base" ] || first=${first:-$base}
done
BASE=$first
. "$scripts/common.sh"

needs_ruby=
for goal in "$@"; do
    case $goal in
    tool | check-unit | check-tool | check-build | check-benchmarks | install-tool | uninstall | ruby-source | *-patches | patch-file | move-base | clean | distclean | help) ;;
    *) needs_ruby=yes ;;
    esac
done
[ -n "$needs_ruby" ] || { echo "$first"; exit; }

built=
for base in $order; do [ ! -e "$top/build/$base/built" ] || built=$base; done

# Prints why a base can't be used here; nothing when it can.
fault_of() {
    (
        BASE=$1
        . "$scripts/common.sh"
        fault=$(rustc_fault)
        [ -z "$fault" ] || { echo "$fault"; exit; }
        # If another base was built, the network had nothing: do not ask it each time.
        if [ -n "$built" ] || [ -n "${RUBY_SOURCE:-}" ]; then where=have; else where=find; fi
        status=0
        if [ -n "${RUBY_SOURCE:-}" ]; then
            BASE=$1 "$scripts/source.sh" $where >/dev/null 2>&1 || echo "RUBY_SOURCE=$RUBY_SOURCE is not its source"
            exit
        fi
        BASE=$1 SOURCE_OPTIONAL=yes "$scripts/source.sh" $where >/dev/null || status=$?
        # A wrong source is reported when it is used.
        [ $status != $UNAVAILABLE ] || echo "its source can't be had here (make ruby-source BASE=$1 RUBY_SOURCE=DIR, where DIR is a clone of ruby/ruby, puts it into the cache)"
    )
}

faults=
for base in $order; do
    [ -e "$top/bases/$base" ] || continue
    # A source that was given says more than what was built before.
    if [ -e "$top/build/$base/built" ] && [ -z "$faults${RUBY_SOURCE:-}" ]; then echo "$base"; exit; fi
    fault=$(fault_of "$base")
    if [ -z "$fault" ]; then
        [ -e "$top/build/$base/built" ] ||
            say "Using base $base (BASE=NAME or ./configure --with-base=NAME chooses another)${faults:+; not $faults}."
        echo "$base"
        exit
    fi
    faults="${faults:+$faults; not }$base: $fault"
done
# None: its own message says what was looked for.
echo "$first"
