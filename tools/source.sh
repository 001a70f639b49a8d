#!/bin/sh
# Finds the base's CRuby source and prints the path of a bare git repository that holds it as its branch `base`.
#   source.sh find    RUBY_SOURCE if that is given, else the user's cache, else upstream (fetched into the cache)
#   source.sh cache   puts RUBY_SOURCE, or what upstream has, into the cache
# Exit status 3: there is no source anywhere. 1: there is one, but it is not the right one.
#
# RUBY_SOURCE is a plain tree, a git repository (bare or not, shallow or not) or a URL. Whatever it is, the branch `base` gets
# one commit without parents, made here from the verified tree: so its id, and those of the patches applied to it, are the
# same for everyone, and nothing later has to care about shallow histories.
. "$(dirname "$0")/common.sh"
mode=${1:-find}
from=${RUBY_SOURCE:-}
log() { say "source: $*"; }

# Whole: the branch is there, has the pinned tree, and every object of it can be read.
store_ok() {
    [ "$(own_git --git-dir="$1" rev-parse -q --verify "refs/heads/base^{tree}" 2>/dev/null)" = "$tree" ] &&
        own_git --git-dir="$1" rev-list --objects --quiet refs/heads/base 2>/dev/null
}

# A repository is made beside its place and moved there when it is whole, so one that was killed half-made is never found.
# The lock keeps two makes from doing the same work; the kernel drops it with its holder, however that ends.
enter_place() {
    place=$1
    mkdir -p "$place" 2>/dev/null && [ -w "$place" ] || return 1
    exec 9>"$place/lock"
    flock -n 9 || { log "waiting for another make that is using $place"; flock 9; }
    rm -rf "$place"/half-made.*
    store=$place/$commit.git
    new=$place/half-made.$$
    trap 'rm -rf "$new"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

publish() { # takes the tree in $new as the base
    if [ "$1" != "$tree" ]; then
        die "$2 gave tree $1, but commit $commit has tree $tree"
    fi
    id=$(own_git --git-dir="$new" commit-tree "$tree" -m "CRuby $commit

The tree of that commit of $url, without its history.")
    rm -f "$new/shallow" "$new/FETCH_HEAD"
    own_git --git-dir="$new" update-ref refs/heads/base "$id"
    own_git --git-dir="$new" symbolic-ref HEAD refs/heads/base
    store_ok "$new" || die "$2 lacks some files of commit $commit (is it a partial clone?)"
    rm -rf "$store"
    mv -T "$new" "$store"
}

# Fetches one commit, without its history. Servers let a commit be asked for by its id in protocol 2; a local repository
# may have that switched off, hence --upload-pack. The user's configuration counts here: it may hold proxies, or name $1 safe.
fetch() { # repository commit [seconds]
    git init -q --bare "$new"
    timeout "${3:-600}" git --git-dir="$new" -c protocol.version=2 -c gc.auto=0 -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=30 \
        fetch --quiet --no-tags --depth 1 --upload-pack='git -c uploadpack.allowAnySHA1InWant=true upload-pack' "$1" "$2" </dev/null
}

fetched_tree() { git --git-dir="$new" rev-parse 'FETCH_HEAD^{tree}'; }

ways() {
    cat >&2 <<EOF
Base $base is commit $commit of $url (tree $tree).
Ways to supply it:
  make ruby-source RUBY_SOURCE=DIR      puts it into the cache: every clone finds it from then on
  make RUBY_SOURCE=DIR ...              uses it this time; so does ./configure --with-ruby-source=DIR
  nothing of these, and a network       fetches that one commit from $url
DIR is a git repository that has the commit (a clone of ruby/ruby, bare or not), or the commit's unmodified tree without git.
EOF
}

wrong() { say "source.sh: $*"; ways; exit 1; }

from_repository() {
    fault=$(git -C "$from" rev-parse --git-dir 2>&1 >/dev/null) || wrong "git cannot read RUBY_SOURCE=$from; $fault"
    head=$(git -C "$from" rev-parse -q --verify HEAD^0) || head=
    want=
    if git -C "$from" cat-file -e "$commit^{tree}" 2>/dev/null; then
        want=$commit
    elif [ "$(git -C "$from" rev-parse -q --verify 'HEAD^{tree}')" = "$tree" ]; then
        want=$head
    fi
    if [ -z "$want" ]; then
        [ -z "$head" ] || head=$(git -C "$from" log -1 --format='HEAD is %H of %cs, "%s"')
        wrong "RUBY_SOURCE=$from does not have the commit; found: ${head:-no commit at HEAD}"
    fi
    if [ "$(git -C "$from" rev-parse --is-bare-repository)" = true ]; then
        :
    elif [ "$head" != "$want" ]; then
        log "the work tree of $from is at another commit ($head): it is not used, the repository's own copy of $commit is"
    else
        # Its files look like what is wanted, but are not what would be built.
        dirty=$(git --no-optional-locks -C "$from" status --porcelain --untracked-files=no)
        [ -z "$dirty" ] || wrong "RUBY_SOURCE=$from is at the right commit but dirty; found: $(echo "$dirty" | wc -l) changed files, first \"$(echo "$dirty" | head -n 1)\""
    fi
    fetch "$from" "$want" || wrong "git cannot read commit $want in RUBY_SOURCE=$from (see its message above)"
    publish "$(fetched_tree)" "$from"
}

# A tree without git is the right one when git would give it the right id. Files that its .gitignore names do not count.
from_plain_tree() {
    [ -f "$from/version.h" ] && [ -f "$from/common.mk" ] || wrong "RUBY_SOURCE=$from is neither a git repository nor a CRuby source tree; found: $(ls -A "$from" | head -n 5 | tr '\n' ' ')"
    own_git init -q --bare "$new"
    plain_git() { own_git --git-dir="$new" --work-tree="$from" -c core.bare=false -c core.safecrlf=false "$@"; }
    plain_git add -A . || wrong "git cannot read all of RUBY_SOURCE=$from"
    found=$(plain_git write-tree)
    [ "$found" = "$tree" ] || wrong "RUBY_SOURCE=$from is not the base's tree, or not unmodified; found: tree $found, $(plain_git ls-files | wc -l) files"
    publish "$found" "$from"
}

from_given() {
    case $from in
    *://* | *@*:*)
        log "fetching $commit from $from"
        fetch "$from" "$commit" || wrong "$from did not give the commit (git's message is above)"
        publish "$(fetched_tree)" "$from" ;;
    *)
        [ -d "$from" ] || wrong "RUBY_SOURCE=$from is no directory"
        from=$(cd "$from" && pwd -P)
        if [ -e "$from/.git" ] || { [ -f "$from/HEAD" ] && [ -d "$from/objects" ]; }; then
            from_repository
        else
            from_plain_tree
        fi ;;
    esac
}

from_upstream() {
    # Asked first for one line: without a network this fails at once or in 20 seconds, instead of after git's own minutes.
    if fault=$(timeout 20 git ls-remote "$url" HEAD 2>&1 >/dev/null </dev/null) && git init -q --bare "$new"; then
        log "fetching $commit from $url (about 20 MB)"
        fault=$(fetch "$url" "$commit" 1800 2>&1) && publish "$(fetched_tree)" "$url" && return
    fi
    rm -rf "$new"
    say "source.sh: the source of CRuby for base $base was not found. Looked for it in:"
    say "  RUBY_SOURCE, --with-ruby-source: not given"
    say "  the cache $cache: not there"
    say "  $url: $(printf '%s\n' "${fault:-no answer within 20 seconds}" | tail -n 1)"
    ways
    exit $UNAVAILABLE
}

in_cache() {
    enter_place "$cache" || die "the cache $cache cannot be written"
}

case $mode in
cache)
    in_cache
    if [ -n "$from" ]; then
        from_given
    elif ! store_ok "$store"; then
        from_upstream
    fi
    log "$commit is in the cache: $store" ;;
find)
    if [ -n "$from" ]; then
        # Only for this clone: what one clone was told must not become every clone's source.
        enter_place "$build/given-source" || die "$build cannot be written"
        # Taken once: what was verified then stays right, whatever happens to $from.
        if [ "$(cat "$place/from" 2>/dev/null)" != "$from" ] || ! store_ok "$store"; then
            given=$from
            rm -f "$place/from"
            from_given
            echo "$given" > "$place/from"
        fi
        log "using RUBY_SOURCE=$from"
    elif [ -d "$cache/$commit.git" ] && store_ok "$cache/$commit.git"; then
        store=$cache/$commit.git
        log "using the cache: $store"
    else
        # Without a cache (no HOME, a file system that is read-only) the fetched source stays in this clone.
        enter_place "$cache" || enter_place "$build/fetched-source" || die "neither $cache nor $build can be written"
        if store_ok "$store"; then
            log "using the cache: $store"
        else
            [ ! -e "$store" ] || log "$store is damaged and is made anew"
            from_upstream
            log "using $url, kept in $store"
        fi
    fi
    echo "$store" ;;
*) die "usage: source.sh find|cache" ;;
esac
