#!/bin/sh
# Prints the base that make uses when none was chosen: the first of `order` whose source is available
# and that rustc is new enough for. Until that base is built, a line on stderr names it and says why.
#   default-base.sh GOAL...
# Goals that need no Ruby look for no source.
scripts=${0%/*}
order=
for base in ruby-4.0 ruby-4.1 ruby-3.4 ruby-3.3; do
    [ ! -e "$scripts/../bases/$base" ] || order="$order $base"
done
BASE=${order# }
BASE=${BASE%% *}
. "$scripts/common.sh"
first=$BASE

needs_ruby=
for goal in "$@"; do
    case $goal in
    tool | instrumented | install-tool | check-unit | check-tool | check-build | check-benchmarks) ;;
    ruby-source | *-patches | patch-file | gem | move-base | uninstall | clean | distclean | help) ;;
    *) needs_ruby=yes ;;
    esac
done
[ -n "$needs_ruby" ] || { echo "$first"; exit; }

built=
for base in $order; do [ ! -e "$top/build/$base/built" ] || built=$base; done

# Prints why a base cannot be used here; nothing when it can.
fault_of() {
    (
        BASE=$1
        export BASE
        . "$scripts/common.sh"
        fault=$(rustc_fault)
        if [ -n "$fault" ]; then
            echo "$fault"
        elif [ -n "${RUBY_SOURCE:-}" ]; then
            "$scripts/source.sh" have >/dev/null 2>&1 || echo "RUBY_SOURCE=$RUBY_SOURCE is not its source"
        else
            # If another base was built, the network had nothing: do not ask it each time.
            status=0
            SOURCE_OPTIONAL=yes "$scripts/source.sh" "$([ -n "$built" ] && echo have || echo find)" >/dev/null || status=$?
            # A wrong source is reported when it is used.
            [ $status != $UNAVAILABLE ] ||
                echo "its source is not available here (make ruby-source BASE=$1 RUBY_SOURCE=DIR," \
                    "where DIR is a clone of ruby/ruby, puts it into the cache)"
        fi
    )
}

faults=
for base in $order; do
    # A source that the user supplies decides, whatever was built before.
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
# None: its own message lists where make looked for the source.
echo "$first"
