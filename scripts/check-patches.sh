#!/bin/sh
# Checks patches/<base>: first each patch and the series by themselves, then that they apply in
# order to the pinned source, and each fix both to it and behind the series. Prints one line for each
# check: "ok - ...", "not ok - ..." or "skip - ...". Exit status 1 when a check failed.
. "${0%/*}/common.sh"
. "${0%/*}/series.sh"
dir=$top/$patches
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
MAX_NEW_FILE_BYTES=65536 # code of that size belongs into vm_trace/
MAX_LINES=500 # nobody reads a longer patch; two patches have two causes. Lines that are only removed do not count
MAX_SUBJECT=52 # git cuts the name of a patch behind that

ok() { echo "ok - $*"; }
not_ok() { echo "not ok - $*"; : > "$tmp/failed"; } # a file: some checks run behind a pipe, in a shell of their own
finish() { [ ! -e "$tmp/failed" ] || exit 1; exit 0; }
# verdict WHAT: reads the faults of one check, one a line
verdict() {
    faults=$(cat)
    if [ -z "$faults" ]; then ok "$1"; else not_ok "$1"; printf '%s\n' "$faults" | sed 's/^/    /'; fi
}

# Hunks have three lines of context before and after the change, fewer only where the file begins or
# ends. git apply takes missing lines for the begin or the end of the file, so they are checked
# here.
context_faults() {
    awk '
    function end_hunk() {
        if (!in_hunk) return
        if (!new_file && lead != 3 && !(lead < 3 && old_start <= 1)) print FILENAME ": line " at ": " lead " lines of context before the change"
        if (!new_file && tail > 3) print FILENAME ": line " at ": " tail " lines of context after the change"
        in_hunk = 0
    }
    in_hunk && (old > 0 || new > 0) {
        kind = substr($0, 1, 1)
        if (kind == " " || $0 == "") { old--; new--; if (changed) tail++; else lead++ }
        else if (kind == "-") { old--; changed = 1; tail = 0 }
        else if (kind == "+") { new--; changed = 1; tail = 0 }
        next
    }
    /^--- / { end_hunk(); new_file = ($2 == "/dev/null") }
    /^@@ / {
        end_hunk()
        split($2, o, ","); split($3, n, ",")
        old_start = -o[1]; old = (2 in o) ? o[2] : 1; new = (2 in n) ? n[2] : 1
        in_hunk = 1; lead = tail = changed = 0; at = FNR
        delete o; delete n
        next
    }
    END { end_hunk() }' "$1" | sed "s|^$dir/||"
}

patch_faults() { # patch
    own_git mailinfo "$tmp/body" "$tmp/diff" < "$1" > "$tmp/head" 2>&1 || { echo "git mailinfo cannot read it"; return; }
    grep -q '^Author: .' "$tmp/head" && grep -q '^Email: .' "$tmp/head" || echo "no From: line with a name and an address"
    grep -q '^Subject: .' "$tmp/head" || echo "no Subject: line"
    grep -q '^Date: .' "$tmp/head" || echo "no Date: line"
    lines=$(grep -vc '^-' "$1")
    [ "$lines" -le $MAX_LINES ] || echo "$lines lines, more than $MAX_LINES: split it by cause"
    grep -q '[^[:space:]]' "$tmp/body" || echo "no text that says why"
    own_git apply --numstat --summary "$tmp/diff" > "$tmp/stat" 2>&1 || { echo "git apply cannot parse it: $(head -n 1 "$tmp/stat")"; return; }
    grep -q . "$tmp/stat" || echo "changes nothing"
    awk '$3 ~ /^vm_trace\// { print $3 ": vm_trace/ is no part of the patches: the build copies it in" }' "$tmp/stat"
    awk '$1 == "-" && $2 == "-" { print $3 ": a binary file" }' "$tmp/stat"
    context_faults "$1"
    awk -v max=$MAX_NEW_FILE_BYTES '
        /^--- / { created = ($2 == "/dev/null"); bytes = 0 }
        /^\+\+\+ / { name = $2; next }
        created && /^\+/ { bytes += length($0); if (bytes > max && !(name in told)) { told[name] = 1; print name ": adds a file of more than " max " bytes" } }' "$tmp/diff"
}

# A fix has a name of its own, and its subject is for CRuby's maintainers.
name_faults() { # patch of the series
    subject=$(sed -n 's/^Subject: //p' "$tmp/head")
    [ "${#subject}" -le $MAX_SUBJECT ] || echo "a subject of ${#subject} characters, more than $MAX_SUBJECT: $subject"
    name=$(printf %s "$subject" | sed 's/[^A-Za-z0-9._]\{1,\}/-/g; s/^-//; s/[-.]*$//')
    case ${1##*/} in
    *"$name.patch") ;;
    *) echo "its subject makes another name, $name.patch: make refresh-patches" ;;
    esac
}

[ -n "$(series_patches)" ] || { not_ok "$patches/series lists no patch"; exit 1; }

series_patches | sort | uniq -d | sed 's/$/ is listed twice/' | verdict "$patches/series lists each patch once"
series_patches | while read -r p; do [ -f "$dir/$p" ] || echo "$p is listed but missing"; done | verdict "every patch that $patches/series lists is there"
for f in "$dir"/*; do
    p=${f##*/}
    [ "$p" = series ] || [ "$p" = fixes ] || series_patches | grep -qxF "$p" || echo "$p is in $patches but not listed"
done | verdict "$patches holds nothing that is not listed"
for f in "$dir"/fixes/*; do
    case ${f##*/} in
    '*') ;; # there are none
    all.patch | *[!a-z0-9.-]* | *.*.* | [!a-z]*) echo "${f#"$dir/"}: a fix has a name of small letters, digits and hyphens, other than \"all\"" ;;
    *.patch) ;;
    *) echo "${f#"$dir/"} is no patch" ;;
    esac
done | verdict "$patches/fixes holds only patches, with names for ./configure --with-fixes"
for p in $(series_patches) $(all_fixes); do
    [ -f "$dir/$p" ] || continue
    patch_faults "$dir/$p" > "$tmp/faults"
    case $p in fixes/*) ;; *) name_faults "$p" >> "$tmp/faults" ;; esac
    verdict "$p has From, Date, a Subject that its name is from, a text, three lines of context" < "$tmp/faults"
done

status=0
store=$("$top/scripts/source.sh" find) || status=$?
if [ $status = $UNAVAILABLE ]; then
    for p in $(series_patches) $(all_fixes); do echo "skip - $p applies to base $base: its source was not found"; done
    finish
elif [ $status != 0 ]; then
    not_ok "the source of base $base (see above)"
    exit 1
fi

# git am has no fuzz, but it applies hunks that have moved without a word. So git apply says where
# it found each.
applies() { # patch
    own_git -C "$tmp/tree" apply --check --verbose --whitespace=error-all "$dir/$1" > "$tmp/apply" 2>&1 || :
    { grep -E '^error|offset|trailing whitespace|space before tab|new blank line' "$tmp/apply" || :; } | verdict "$1 applies to base $base where it says"
}
series_worktree "$store" "$tmp/tree"
for p in $(all_fixes); do applies "$p"; done
for p in $(series_patches); do
    applies "$p"
    series_apply_one "$tmp/tree" "$p" 2>"$tmp/apply" || { cat "$tmp/apply"; not_ok "$p: git am"; break; }
done
# The series moves lines.
for p in $(all_fixes); do
    if series_apply_one "$tmp/tree" "$p" > "$tmp/apply" 2>&1; then : > "$tmp/apply"; fi
    verdict "$p applies behind the series" < "$tmp/apply"
done
finish
