#!/bin/sh
# Records a command some times and compares it with a baseline: exit status 1 if it grew more than the limits allow,
# 5 if a trace is damaged.
#   compare.sh BASELINE COMMAND [ARGUMENT]...    without a folder BASELINE, these recordings become it
# LIMITS: options of vm-trace diff. RUNS: how often (default 3: chance alone finds a difference once in ten).
# The results are in build/vm-trace: comment.md and junit.xml.
set -eu
baseline=$1
shift
runs=${RUNS:-3}
limits=${LIMITS:---fail-over=exits:5 --fail-over=collections:20}
out=build/vm-trace
rm -rf "$out"
mkdir -p "$out"

# Each exit, so that counts are exact; samples would only cost time here.
for run in $(seq "$runs"); do
    vm-trace record --quiet -o "$out/run-$run" --vm-trace=exits,compiles,gc,threads -- "$@"
done

if [ ! -d "$baseline" ]; then
    mkdir -p "$baseline"
    for run in $(seq "$runs"); do vm-trace merge -o "$baseline/run-$run.fxt.gz" "$out/run-$run"; done
    echo "$baseline is the baseline from now on"
    exit 0
fi
# shellcheck disable=SC2086 # limits are several words
vm-trace diff $limits --comment="$out/comment.md" --junit="$out/junit.xml" \
    "$baseline"/*.fxt.gz vs "$out"/run-*
