# The patch series of a base, for the scripts beside it: sourced after common.sh.

# File names of the patches in order, without comments (#) and empty lines.
series_patches() {
    [ ! -f "$series" ] || sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$series"
}

# Fixes of CRuby's own bugs: patches for the pinned source. Those that $FIXES names are applied, behind
# the series; "all" names each. One that only another base has is passed over.
all_fixes() { [ ! -d "$top/$patches/fixes" ] || (cd "$top/$patches" && ls fixes/*.patch 2>/dev/null) || :; }
chosen_fixes() {
    [ -n "${FIXES:-}" ] || return 0
    wanted=,$(echo "$FIXES" | tr ' ' ,),
    all_fixes | while read -r p; do
        name=${p#fixes/}
        case $wanted in *",${name%.patch},"* | *,all,*) echo "$p" ;; esac
    done
}
check_fixes() { # dies if no base has one of them
    [ -n "${FIXES:-}" ] || return 0
    for name in $(echo "${FIXES:-}" | tr , ' '); do
        [ "$name" = all ] || [ -f "$top/$patches/fixes/$name.patch" ] || {
            known=$(cd "$top/patches" && ls -- */fixes/*.patch 2>/dev/null | fix_names | sort -u | paste -s -d ' ')
            case " $known " in
            *" $name "*) say "base $base has no fix \"$name\": it is built without" ;;
            *) die "there is no fix \"$name\" (FIXES, or --with-fixes of ./configure); patches/*/fixes has: ${known:-none}" ;;
            esac
        }
    done
}
fix_names() { sed 's,.*/,,; s/\.patch$//'; }
chosen_patches() { series_patches; chosen_fixes; }

# A key that changes with the source pin, the order and each patch; behind it the names of the fixes.
series_id() {
    names=$(chosen_patches)
    id=$({ echo "$tree"; [ -z "$names" ] || { echo "$names"; cd "$top/$patches" && cat $names; }; } | sha256sum)
    printf '%.40s' "$id"
    echo '' $(chosen_fixes)
}

# For what rewrites the series: a source with fixes is no result of it.
no_fixes_in() { # work-tree
    case $(cat "$1/.git/vm-trace-series" 2>/dev/null) in
    *" "*) die "build/$base/src has fixes, which are no part of the series: make src FIXES= BASE=$base takes them out" ;;
    esac
}

# Commits as patches: nothing in them depends on the machine, the day or the user's configuration.
format_patches() { # work-tree option... commits
    work_tree=$1
    shift
    own_git -C "$work_tree" format-patch --quiet --zero-commit --no-signature --no-numbered --no-renames \
        --abbrev=12 --unified=3 --diff-algorithm=histogram --no-ext-diff --no-textconv --no-base --no-thread --no-attach --no-notes \
        --stat=80 "$@"
}

# Makes the work tree $2 from the repository $1 (see source.sh): branch vm_trace at the base.
# refs/vm-trace/base is where the patches begin. A commit of its own empties gems/bundled_gems,
# because make and make install would fetch what it lists from the network.
series_worktree() {
    own_git clone --quiet --single-branch --branch base "$1" "$2"
    own_git -C "$2" remote remove origin
    own_git -C "$2" branch --move vm_trace
    if [ -f "$2/gems/bundled_gems" ]; then
        : > "$2/gems/bundled_gems"
        own_git -C "$2" commit --quiet --all --message "Build without bundled gems

Not a patch: the build would fetch them from the network."
    fi
    own_git -C "$2" update-ref refs/vm-trace/base HEAD
    mkdir -p "$2/.git/info"
    # The copy of the module, which belongs to vm_trace/ of this repository; and what a build makes
    # in the source, if the base has no .gitignore.
    printf '%s\n' /vm_trace/ "${made_for_release:-}" >> "$2/.git/info/exclude"
}

# Applies one patch as a commit in the work tree $1. git am needs every line of context, so there is
# no fuzz. Committer and date come from the patch: the same patches give the same commit ids
# everywhere.
series_apply_one() { # work-tree patch
    own_git -C "$1" am --quiet --committer-date-is-author-date --keep-cr --no-3way "$top/$patches/$2" </dev/null >&2 || {
        own_git -C "$1" am --abort 2>/dev/null || :
        return 1
    }
}

series_apply() { # work-tree
    chosen_patches | while read -r p; do
        series_apply_one "$1" "$p" ||
            die "$patches/$p does not apply to base $base (git's message is above): restore $patches and bases/$base, or, if the base moved, run make rebase-patches BASE=$base"
    done
}
