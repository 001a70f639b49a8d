# Long commands for the scripts beside it: sourced by bash after common.sh; $log is the log file.

# step TITLE LINES COMMAND...: runs COMMAND with its output in $log, prints progress, and on failure
# shows the end of the log. LINES: how many lines COMMAND usually writes, for a percentage; "" if
# unknown. V=1 shows all output.
step() {
    local title=$1 lines=$2 status=0 monitor start=$SECONDS
    shift 2
    printf '\n+ %s\n' "$*" >> "$log"
    if [ "${V:-}" = 1 ]; then
        say "$title, log in ${log#"$top"/}"
        (set -o pipefail; "$@" 2>&1 </dev/null 8>&- 9>&- | tee -a "$log" >&2) || status=$?
    else
        say "$title, log in ${log#"$top"/}"
        step_monitor "$lines" "$(wc -l < "$log")" 8>&- 9>&- &
        monitor=$!
        "$@" >> "$log" 2>&1 </dev/null 8>&- 9>&- || status=$?
        kill $monitor 2>/dev/null || :
        wait $monitor 2>/dev/null || :
        [ ! -t 2 ] || printf '\r\033[K' >&2
    fi
    if [ $status != 0 ]; then
        say "... the last lines of ${log#"$top"/}:"
        tail -n 30 "$log" >&2
        die "failed (status $status): $title; the whole log is $log"
    fi
    say "  done in $(step_time $((SECONDS - start)))"
}

step_time() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }

# On a terminal one line that is overwritten; elsewhere a line at every tenth, or every minute if
# LINES is unknown.
step_monitor() { # lines of the command, lines in the log before it
    local start=$SECONDS done percent shown=0 next=60 note
    while sleep 2 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        done=$(($(wc -l < "$log") - $2))
        if [ -n "$1" ]; then
            percent=$((done * 100 / $1))
            [ $percent -lt 99 ] || percent=99
            note="$percent% after $(step_time $((SECONDS - start)))"
        else
            percent=
            note="$done lines of log after $(step_time $((SECONDS - start)))"
        fi
        if [ -t 2 ]; then
            printf '\r\033[K  %s' "$note" >&2
        elif [ -n "$percent" ]; then
            [ $((percent / 10)) = $shown ] || say "  $note"
            shown=$((percent / 10))
        elif [ $((SECONDS - start)) -ge $next ]; then
            say "  $note"
            next=$((next + 60))
        fi
    done
}
