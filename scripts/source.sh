#!/bin/sh
# Finds the base's CRuby source and prints the path of a bare git repository that holds it as its
# branch `base`.
#   source.sh find    RUBY_SOURCE if given, else the user's cache, else the base's origins (fetched into
#                     the cache)
#   source.sh have    only the first two, without the network
#   source.sh cache   puts RUBY_SOURCE, or the source of an origin, into the cache
# Exit status 3: no source was found. 1: one was found, but it is not the right one.
#
# RUBY_SOURCE is a plain tree, a tarball, a git repository (bare or not, shallow or not) or the URL
# of one. In each case the branch `base` gets one commit without parents, made here from the
# verified tree: so its id, and those of the patches on it, are the same for everyone, and shallow
# histories do not matter later.
#
# The tarball of a release lacks some files of its tag ($not_released) and has others that were
# generated ($made_for_release). Neither are used, wherever the source comes from: the pinned and
# verified tree is what tag and tarball share.
. "${0%/*}/common.sh"
mode=${1:-find}
from=${RUBY_SOURCE:-}
log() { say "source: $*"; }

# Whole: the branch is there, has the pinned tree, and every object of it can be read.
store_ok() {
    [ "$(own_git --git-dir="$1" rev-parse -q --verify "refs/heads/base^{tree}" 2>/dev/null)" = "$tree" ] &&
        own_git --git-dir="$1" rev-list --objects --quiet refs/heads/base 2>/dev/null
}

# A repository is made beside its place and moved there when it is complete, so an interrupted run
# leaves no half-made one. The lock keeps two makes from doing the same work; the kernel drops it
# when its holder ends, for whatever reason.
enter_place() {
    place=$1
    mkdir -p "$place" 2>/dev/null && [ -w "$place" ] || return 1
    exec 9>"$place/lock"
    flock -n 9 || { log "waiting for another make that is using $place"; flock 9; }
    rm -rf "$place"/half-made.*
    store=$place/$commit.git
    new=$place/half-made.$$ scratch=$place/half-made.$$.files
    trap 'rm -rf "$new" "$scratch"' EXIT
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

# Fetches one commit, without its history. Protocol 2 lets clients ask servers for a commit by its
# id; a local repository may forbid that, hence --upload-pack. The user's configuration is used
# here: it may hold proxies, or name $1 safe.
fetch() { # repository commit [seconds]
    git init -q --bare "$new"
    timeout "${3:-600}" git --git-dir="$new" -c protocol.version=2 -c gc.auto=0 -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=30 \
        fetch --quiet --no-tags --depth 1 --upload-pack='git -c uploadpack.allowAnySHA1InWant=true upload-pack' "$1" "$2" </dev/null
}

ways() {
    cat >&2 <<EOF
Base $base is commit $commit of $url (tree $tree).
Ways to supply it:
  make ruby-source RUBY_SOURCE=DIR      puts it into the cache: every clone finds it from then on
  make RUBY_SOURCE=DIR ...              uses it this time; so does ./configure --with-ruby-source=DIR
  nothing of these, and a network       fetches it: $(origin_names)
DIR is a git repository that has the commit (a clone of ruby/ruby, bare or not), or the commit's unmodified tree without git${tarball:+,
or the tarball of that release as a file}.
EOF
    others=$(cd "$top/bases" && ls | grep -vxF "$base" | paste -s -d ' ')
    [ -z "$others" ] || say "Or another base, with BASE=... on each command: $others"
}

wrong() { say "source.sh: $*"; ways; exit 1; }

from_repository() {
    fault=$(git -C "$from" rev-parse --git-dir 2>&1 >/dev/null) || wrong "git cannot read RUBY_SOURCE=$from; $fault"
    head=$(git -C "$from" rev-parse -q --verify HEAD^0) || head=
    git init -q --bare "$new"
    want=
    if git -C "$from" cat-file -e "$commit^{tree}" 2>/dev/null; then
        want=$commit
    elif [ "${head:+$(tree_of "$(git -C "$from" rev-parse --absolute-git-dir)" "$head" "$new")}" = "$tree" ]; then
        want=$head
    fi
    if [ -z "$want" ]; then
        [ -z "$head" ] || head=$(git -C "$from" log -1 --format='HEAD is %H of %cs, "%s"')
        wrong "RUBY_SOURCE=$from does not have the commit; found: ${head:-no commit at HEAD} (git -C $from fetch $url $commit gets it)"
    fi
    if [ "$(git -C "$from" rev-parse --is-bare-repository)" = true ]; then
        :
    elif [ "$head" != "$want" ]; then
        log "the work tree of $from is at another commit ($head): it is not used, the repository's own copy of $commit is"
    else
        # Its files look right, but are not what would be built.
        dirty=$(git --no-optional-locks -C "$from" status --porcelain --untracked-files=no)
        [ -z "$dirty" ] || wrong "RUBY_SOURCE=$from is at the right commit but dirty; found: $(echo "$dirty" | wc -l) changed files, first \"$(echo "$dirty" | head -n 1)\""
    fi
    fetch "$from" "$want" || wrong "git cannot read commit $want in RUBY_SOURCE=$from (see its message above)"
    publish "$(tree_of "$new" FETCH_HEAD "$new")" "$from"
}

# "Ruby 3.3.9", from a source tree's own files.
release_of() { # folder
    cat "$1/include/ruby/version.h" "$1/version.h" 2>/dev/null | awk '$1 == "#define" || $1 == "#" && $2 == "define" { value[$(NF - 1)] = $NF }
        END {
            if ("RUBY_VERSION_TEENY" in value)
                printf "Ruby %s.%s.%s%s", value["RUBY_API_VERSION_MAJOR"], value["RUBY_API_VERSION_MINOR"], value["RUBY_VERSION_TEENY"],
                    value["RUBY_PATCHLEVEL"] == -1 ? "dev" : ""
            else printf "an unknown Ruby"
        }'
}

# A tree without git is right when git would give it the right id. Files that its .gitignore names
# are ignored.
from_plain_tree() { # folder name
    [ -f "$1/version.h" ] && [ -f "$1/common.mk" ] || wrong "$2 is neither a git repository nor a CRuby source tree; found: $(ls -A "$1" | head -n 5 | tr '\n' ' ')"
    own_git init -q --bare "$new"
    { printf '%s\n' "${made_for_release:-}"; printf '/%s\n' ${not_released:-}; } > "$new/info/left-out"
    dir=$1
    plain_git() {
        own_git --git-dir="$new" --work-tree="$dir" -c core.bare=false -c core.safecrlf=false -c core.excludesFile="$new/info/left-out" "$@"
    }
    plain_git add -A "$dir" || wrong "git cannot read all of $2"
    for f in ${tracked_though_ignored:-}; do
        [ ! -e "$dir/$f" ] || plain_git add -f "$dir/$f"
    done
    found=$(plain_git write-tree)
    [ "$found" = "$tree" ] || wrong "$2 is not the base's tree, or not unmodified; found: $(release_of "$1"), tree $found, $(plain_git ls-files | wc -l) files"
    publish "$found" "$2"
}

from_tarball() { # file name
    mkdir -p "$scratch/tree"
    tar -xf "$1" -C "$scratch/tree" --strip-components=1 >&2 ||
        wrong "tar cannot unpack $2 (its message is above): it is truncated or no tarball, get it again"
    from_plain_tree "$scratch/tree" "$2"
    rm -rf "$scratch"
}

from_given() {
    case $from in
    *://* | *@*:*)
        log "fetching $commit from $from"
        fetch "$from" "$commit" || wrong "$from did not give the commit (git's message is above)"
        publish "$(tree_of "$new" FETCH_HEAD "$new")" "$from" ;;
    *)
        if [ -f "$from" ]; then from_tarball "$from" "RUBY_SOURCE=$from"; return; fi
        [ -d "$from" ] || wrong "RUBY_SOURCE=$from is no directory and no file"
        from=$(cd "$from" && pwd -P)
        if [ -e "$from/.git" ] || { [ -f "$from/HEAD" ] && [ -d "$from/objects" ]; }; then
            from_repository
        else
            from_plain_tree "$from" "RUBY_SOURCE=$from"
        fi ;;
    esac
}

# --- origins: where the source comes from if this machine does not have it --------------------------------------------------------

origin_name() {
    case $1 in
    git) echo "$url" ;;
    apt) echo "source package $apt_package, by apt" ;;
    tarball) echo "$tarball" ;;
    *) die "bases/$base: unknown origin $1" ;;
    esac
}

origin_names() { for origin in $origins; do origin_name $origin; done | paste -s -d '|' | sed 's/|/, or /g'; }

# These put it into $new or $scratch/tarball, or print why they cannot, with the reason in the last
# line.

fetch_git() {
    # Ask for one line first: without a network this fails at once or in 20 seconds, not after
    # minutes.
    timeout 20 git ls-remote "$url" HEAD 2>&1 >/dev/null </dev/null || { [ $? != 124 ] || echo "no answer within 20 seconds"; return 1; }
    fetch "$url" "$commit" 1800 2>&1
}

fetch_apt() {
    "$top/scripts/fetch-apt.sh" "$apt_package" "$scratch" 2>&1 && mv "$scratch"/*.orig.tar.* "$scratch/tarball" &&
        has_sum "$scratch/tarball" "$apt_sha256"
}

fetch_tarball() {
    # By Ruby, because neither curl nor wget is everywhere. It uses the usual proxy variables.
    timeout 1800 "${BASERUBY:-ruby}" -ropen-uri -e 'begin
        URI.open(ARGV[0], open_timeout: 20, read_timeout: 30) { |from| IO.copy_stream(from, ARGV[1]) }
    rescue SystemCallError, SocketError, OpenURI::HTTPError, OpenSSL::SSL::SSLError, Timeout::Error => e
        abort e.message
    end' "$tarball" "$scratch/tarball" 2>&1 && has_sum "$scratch/tarball" "$tarball_sha256"
}

has_sum() { # file sha256
    found=$(sha256sum < "$1")
    [ "${found%% *}" = "$2" ] || { echo "has SHA-256 ${found%% *}, not $2: rejected; it is truncated or not that release"; return 1; }
}

from_origins() {
    tried=
    for origin in $origins; do
        name=$(origin_name "$origin")
        log "asking for it: $name"
        mkdir -p "$scratch"
        if fault=$(fetch_$origin); then
            if [ -e "$scratch/tarball" ]; then
                from_tarball "$scratch/tarball" "$name"
            else
                publish "$(tree_of "$new" FETCH_HEAD "$new")" "$name"
            fi
            log "using $name, kept in $store"
            return
        fi
        rm -rf "$new" "$scratch"
        tried="$tried
  $name: $(printf '%s\n' "${fault:-no answer}" | tail -n 1)"
    done
    not_found "$tried"
}

not_found() { # what was tried beside
    [ -z "${SOURCE_OPTIONAL:-}" ] || exit $UNAVAILABLE # the caller has another way, and prints it
    say "source.sh: the source of CRuby for base $base was not found. Looked for it in:"
    say "  RUBY_SOURCE, --with-ruby-source: not given"
    say "  the cache $cache: not there${1:-}"
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
        from_origins
    fi
    log "$commit is in the cache: $store" ;;
find | have)
    if [ -n "$from" ]; then
        # Only for this clone: a source given to one clone must not become every clone's.
        enter_place "$build/given-source" || die "$build cannot be written"
        # Copied once: what was verified stays right, whatever happens to $from.
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
    elif [ "$mode" = have ]; then
        not_found
    else
        # Without a cache (no HOME, a read-only file system) the fetched source stays in this clone.
        enter_place "$cache" || enter_place "$build/fetched-source" || die "neither $cache nor $build can be written"
        if store_ok "$store"; then
            log "using the cache: $store"
        else
            [ ! -e "$store" ] || log "$store is damaged and is made anew"
            from_origins
        fi
    fi
    echo "$store" ;;
*) die "usage: source.sh find|have|cache" ;;
esac
