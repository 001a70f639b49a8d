#!/bin/sh
# clang-tidy of one file, unless it is known to be fine. Prints what is found.
#   tidy.sh FILE OPTION... -- COMPILER-OPTION...
# What is fine is a file in the cache whose name is the hash of all that clang-tidy looks at: itself,
# its configuration, the options, and the preprocessed text, with the comments that it obeys.
. "$(dirname "$0")/common.sh"
cd "$top"
file=$1
shift
options=
while [ "$1" != -- ]; do
    options="$options $1"
    shift
done
shift
known=$cache/lint/$({
    clang-tidy --version
    cat .clang-tidy
    echo "$file" $options
    ${CC:-cc} -E -CC "$@" "$file" 2>&1
} | sed "s|$top/||g" | sha256sum | cut -d ' ' -f 1)
[ ! -e "$known" ] || exit 0
clang-tidy --quiet $options "$file" -- "$@" 2> /dev/null || exit
mkdir -p "$cache/lint"
: > "$known"
