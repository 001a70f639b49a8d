# The patch series of a base, for the scripts beside it: sourced after common.sh.

# File names of the patches in order, without comments (#) and empty lines.
series_patches() {
    [ ! -f "$series" ] || sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$series"
}

# A key that changes with the source pin, the order and each patch.
series_id() {
    { echo "$tree"; series_patches; series_patches | while read -r p; do cat "$top/$patches/$p"; done; } | sha256sum | cut -c1-40
}

# Makes the work tree $2 from the repository $1 (see source.sh): branch vm_trace at the base.
# refs/vm-trace/base is where the patches begin. A commit of its own empties gems/bundled_gems,
# because make and make install would fetch what it lists from the network.
series_worktree() {
    own_git clone --quiet --no-checkout --single-branch --branch base "$1" "$2"
    own_git -C "$2" remote remove origin
    own_git -C "$2" checkout --quiet -b vm_trace base
    own_git -C "$2" branch --quiet -D base
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
    series_patches | while read -r p; do
        series_apply_one "$1" "$p" ||
            die "$patches/$p does not apply to base $base (git's message is above): restore $patches and bases/$base, or, if the base moved, run make rebase-patches BASE=$base"
    done
}
