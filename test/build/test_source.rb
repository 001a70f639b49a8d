# Where the source of CRuby is found, and the messages when it is missing or wrong.

require "socket"
require_relative "project"

class TestSource < BuildTest
  def find(**env) = project.run("source.sh", "find", **env)
  def cache(**env) = project.run("source.sh", "cache", **env)

  def assert_store(printed)
    store = printed.chomp
    assert_equal project.tree, project.git("rev-parse", "base^{tree}", in: store)
    project.git("rev-list", "--objects", "--quiet", "base", in: store)
    assert_equal "1", project.git("rev-list", "--count", "base", in: store)
    store
  end

  def move_on
    project.write("ruby/zjit.c", "changed\n")
    project.git("commit", "-qam", "a later one")
  end

  def plain_tree
    project.git("worktree", "add", "-q", "--detach", project.path("plain"), project.commit)
    FileUtils.rm(project.path("plain/.git"))
    project.path("plain")
  end

  def test_no_source_anywhere_has_a_status_of_its_own_and_names_the_ways
    out, err, status = find
    assert_equal 3, status
    assert_empty out
    assert_includes err, "RUBY_SOURCE, --with-ruby-source: not given"
    assert_includes err, "the cache #{project.cache}: not there"
    assert_includes err, "no-upstream"
    assert_includes err, "make ruby-source RUBY_SOURCE=DIR"
  end

  def test_a_given_repository_is_used_and_not_put_into_the_cache
    out, err, status = find(RUBY_SOURCE: project.ruby)
    assert_equal 0, status, err
    assert_store(out)
    assert_includes err, "using RUBY_SOURCE=#{project.ruby}"
    refute File.exist?(project.store)
  end

  def test_ruby_source_fills_the_cache_for_every_later_clone
    _, err, status = cache(RUBY_SOURCE: project.ruby)
    assert_equal 0, status, err
    FileUtils.rm_rf(project.ruby)
    out, err, status = find
    assert_equal 0, status, err
    assert_equal project.store, assert_store(out)
    assert_includes err, "using the cache"
  end

  def test_the_cache_follows_xdg_cache_home
    cache(RUBY_SOURCE: project.ruby, XDG_CACHE_HOME: project.path("xdg"))
    out, _, status = find(XDG_CACHE_HOME: project.path("xdg"))
    assert_equal 0, status
    assert out.start_with?(project.path("xdg/ruby-vm-trace/")), out
  end

  def test_upstream_is_asked_when_the_cache_is_empty_and_fills_it
    project.git("clone", "-q", "--bare", project.ruby, project.path("no-upstream"), in: project.dir)
    out, err, status = find
    assert_equal 0, status, err
    assert_equal project.store, assert_store(out)
    assert_includes err, "using file://#{project.path("no-upstream")}"
  end

  def test_bare_repository
    project.git("clone", "-q", "--bare", project.ruby, project.path("bare"), in: project.dir)
    out, err, status = find(RUBY_SOURCE: project.path("bare"))
    assert_equal 0, status, err
    assert_store(out)
  end

  def test_repository_that_has_the_commit_and_no_head
    project.git("init", "-q", "--bare", "-b", "nothing", project.path("bare"), in: project.dir)
    project.git("fetch", "-q", project.ruby, "master:kept", in: project.path("bare"))
    out, err, status = find(RUBY_SOURCE: project.path("bare"))
    assert_equal 0, status, err
    assert_store(out)
  end

  def test_shallow_repository
    project.git("commit", "-q", "--allow-empty", "-m", "another commit with the same tree")
    project.git("clone", "-q", "--depth", "1", "file://#{project.ruby}", project.path("shallow"), in: project.dir)
    out, err, status = find(RUBY_SOURCE: project.path("shallow"))
    assert_equal 0, status, err
    assert_store(out)
  end

  def test_url
    out, err, status = find(RUBY_SOURCE: "file://#{project.ruby}")
    assert_equal 0, status, err
    assert_store(out)
  end

  def test_repository_that_refuses_commits_by_id_is_asked_all_the_same
    move_on
    project.git("config", "uploadpack.allowAnySHA1InWant", "false")
    project.git("config", "protocol.version", "0")
    out, err, status = find(RUBY_SOURCE: project.ruby)
    assert_equal 0, status, err
    assert_store(out)
  end

  def test_plain_tree_gives_the_same_base_commit_as_a_repository
    out, err, status = find(RUBY_SOURCE: plain_tree)
    assert_equal 0, status, err
    from_tree = project.git("rev-parse", "base", in: assert_store(out))
    cache(RUBY_SOURCE: project.ruby)
    assert_equal project.git("rev-parse", "base", in: project.store), from_tree
  end

  def test_plain_tree_with_ignored_build_products_is_right
    tree = plain_tree
    File.write("#{tree}/zjit.o", "object")
    File.write("#{tree}/configure", "made")
    out, err, status = find(RUBY_SOURCE: tree)
    assert_equal 0, status, err
    assert_store(out)
  end

  def test_plain_tree_with_an_edit_is_refused
    tree = plain_tree
    File.write("#{tree}/zjit.c", "edited\n", mode: "a")
    _, err, status = find(RUBY_SOURCE: tree)
    assert_equal 1, status
    assert_match(/not the base's tree, or not unmodified; found: an unknown Ruby, tree \h{40}, 5 files/, err)
    assert_includes err, project.commit
  end

  def test_folder_that_is_no_ruby_is_refused
    FileUtils.mkdir_p(project.path("other/src"))
    _, err, status = find(RUBY_SOURCE: project.path("other"))
    assert_equal 1, status
    assert_includes err, "neither a git repository nor a CRuby source tree; found: src"
  end

  def test_repository_without_the_commit_is_refused_with_what_it_has
    project.git("init", "-q", project.path("other"), in: project.dir)
    project.git("commit", "-q", "--allow-empty", "-m", "something else", in: project.path("other"))
    _, err, status = find(RUBY_SOURCE: project.path("other"))
    assert_equal 1, status
    assert_includes err, "does not have the commit; found: HEAD is #{project.git("rev-parse", "HEAD", in: project.path("other"))}"
    assert_includes err, "something else"
    assert_includes err, "git -C #{project.path("other")} fetch file://#{project.path("no-upstream")} #{project.commit} gets it"
  end

  def test_empty_repository_is_refused
    project.git("init", "-q", project.path("other"), in: project.dir)
    _, err, status = find(RUBY_SOURCE: project.path("other"))
    assert_equal 1, status
    assert_includes err, "does not have the commit; found: no commit at HEAD"
  end

  def test_broken_repository_is_refused_with_git_s_reason
    FileUtils.mkdir_p(project.path("other"))
    project.write("other/.git", "gitdir: nowhere\n")
    _, err, status = find(RUBY_SOURCE: project.path("other"))
    assert_equal 1, status
    assert_match(/git cannot read RUBY_SOURCE=.*; fatal: /, err)
  end

  def test_dirty_work_tree_at_the_pinned_commit_is_refused
    project.write("ruby/zjit.c", "edited\n")
    _, err, status = find(RUBY_SOURCE: project.ruby)
    assert_equal 1, status
    assert_includes err, 'dirty; found: 1 changed files, first " M zjit.c"'
  end

  def test_dirty_work_tree_at_another_commit_does_not_matter
    move_on
    project.write("ruby/zjit.c", "edited\n")
    out, err, status = find(RUBY_SOURCE: project.ruby)
    assert_equal 0, status, err
    assert_store(out)
    assert_includes err, "it is not used"
  end

  def test_missing_folder_is_refused
    _, err, status = find(RUBY_SOURCE: project.path("nowhere"))
    assert_equal 1, status
    assert_includes err, "is no directory"
  end

  def test_wrong_given_source_is_not_made_up_for_by_the_cache
    cache(RUBY_SOURCE: project.ruby)
    _, _, status = find(RUBY_SOURCE: project.path("nowhere"))
    assert_equal 1, status
  end

  def test_another_given_source_is_looked_at_though_the_first_is_still_there
    find(RUBY_SOURCE: project.ruby)
    _, err, status = find(RUBY_SOURCE: project.path("nowhere"))
    assert_equal 1, status, err
  end

  def test_half_made_repository_is_not_taken_for_whole
    FileUtils.mkdir_p("#{project.cache}/half-made.1/objects")
    project.git("init", "-q", "--bare", project.store, in: project.dir)
    _, _, status = find
    assert_equal 3, status
    refute File.exist?("#{project.cache}/half-made.1")
  end

  def test_damaged_cache_is_made_anew
    cache(RUBY_SOURCE: project.ruby)
    object = Dir["#{project.store}/objects/{pack/*.pack,[0-9a-f][0-9a-f]/*}"].max_by { |file| File.size(file) }
    FileUtils.chmod(0o644, object)
    File.write(object, "")
    _, _, status = find
    assert_equal 3, status
    _, err, status = cache(RUBY_SOURCE: project.ruby)
    assert_equal 0, status, err
    assert_store(find.first)
  end

  def test_a_cache_that_lacks_a_file_is_made_anew
    cache(RUBY_SOURCE: project.ruby)
    Dir["#{project.store}/objects/pack/*.pack"].each do |pack|
      FileUtils.mv(pack, project.path("pack"))
      assert system("git", "--git-dir=#{project.store}", "unpack-objects", "-q", in: project.path("pack"))
    end
    blob = project.git("rev-parse", "base:zjit.c", in: project.store)
    FileUtils.rm_f("#{project.store}/objects/#{blob[0, 2]}/#{blob[2..]}")
    assert_equal 3, find.last
    _, err, status = cache(RUBY_SOURCE: project.ruby)
    assert_equal 0, status, err
    assert_store(find.first)
  end

  def test_two_at_once_leave_one_whole_cache
    threads = Array.new(4) { Thread.new { cache(RUBY_SOURCE: project.ruby) } }
    assert_equal [0] * 4, threads.map { |thread| thread.value.last }
    assert_store(find.first)
    assert_equal ["lock", "#{project.commit}.git"].sort, Dir.children(project.cache).sort
  end

  def test_a_git_hook_s_environment_does_not_lead_astray
    cache(RUBY_SOURCE: project.ruby, GIT_DIR: "#{project.ruby}/.git", GIT_INDEX_FILE: project.path("index"))
    assert_store(find.first)
  end

  def test_plain_tree_with_a_file_that_is_tracked_though_ignored_is_right
    project.write("ruby/kept.o", "an object\n")
    project.git("add", "-f", "kept.o")
    project.git("commit", "-qm", "with one")
    base = project.read("project/bases/small").sub(project.commit, project.git("rev-parse", "HEAD"))
      .sub(project.tree, tree = project.git("rev-parse", "HEAD^{tree}"))
    project.write("project/bases/small", "#{base}tracked_though_ignored=kept.o\n")
    project.git("worktree", "add", "-q", "--detach", project.path("plain"), "HEAD")
    FileUtils.rm(project.path("plain/.git"))
    out, err, status = find(RUBY_SOURCE: project.path("plain"))
    assert_equal 0, status, err
    assert_equal tree, project.git("rev-parse", "base^{tree}", in: out.chomp)
  end

  def test_have_asks_no_origin
    project.git("clone", "-q", "--bare", project.ruby, project.path("no-upstream"), in: project.dir)
    assert_equal 3, project.run("source.sh", "have").last
    refute File.exist?(project.store)
    cache
    assert_store(project.run("source.sh", "have").first)
  end

  def test_unknown_base_is_named_with_those_there_are
    _, err, status = find(BASE: "ruby-9")
    assert_equal 1, status
    assert_includes err, 'there is no base "ruby-9"; bases/ has: small'
  end
end

# A base that is a release: its tarball lacks some of the tag's files and has others. The tree is
# the same, whatever it comes from.
class TestReleaseSource < BuildTest
  MADE = { "configure" => "made\n", "gems/minitest-5.gem" => "a gem\n", "parse.c" => "made\n" }.freeze

  def setup
    super
    project.write("release/ruby-1/.keep", "")
    Project::FILES.each { |name, text| project.write("release/ruby-1/#{name}", text) unless name == ".gitignore" }
    MADE.each { |name, text| project.write("release/ruby-1/#{name}", text) }
    FileUtils.rm(project.path("release/ruby-1/.keep"))
    @tarball = pack("ruby.tar.gz")
    project.git("rm", "-q", "--cached", ".gitignore")
    @tree = project.git("write-tree")
    project.git("reset", "-q")
    write_base
  end

  def pack(name)
    project.path(name).tap { |file| assert system("tar", "-czf", file, "-C", project.path("release"), "ruby-1") }
  end

  def sum(file) = `sha256sum #{file}`[/\h+/]

  def write_base(**settings)
    base = { origins: "apt tarball", tree: @tree, not_released: ".gitignore", made_for_release: "/configure\n/gems/*-*\n/parse.c",
             apt_package: "ruby1/stable", apt_sha256: sum(@tarball), tarball: "http://127.0.0.1:1/none", tarball_sha256: sum(@tarball), **settings }
    text = project.read("project/bases/small").lines.grep_v(/\A(origins|tree)=/).join
    project.write("project/bases/release", text + base.map { |name, value| "#{name}='#{value}'\n" }.join)
  end

  def find(**env) = project.run("source.sh", "find", BASE: "release", **env)

  def assert_base(found)
    out, err, status = found
    assert_equal 0, status, err
    assert_equal @tree, project.git("rev-parse", "base^{tree}", in: out.chomp)
    project.git("rev-parse", "base", in: out.chomp)
  end

  # An apt that has the package, and keeps the options that it was given.
  def script_apt(tarball)
    project.script("bin/apt-get", <<~SH)
      . /etc/os-release
      case "$*" in
      *print-uris*) echo "'http://mirror.invalid/debian/dists/$VERSION_CODENAME/InRelease' x 0"; echo "'http://vendor.invalid/x/dists/other/InRelease' x 0" ;;
      *update*) cp "$3" #{project.path("apt.conf")}; cp "${3%apt.conf}sources.list" #{project.path("sources.list")} ;;
      *source*) cp #{tarball} ruby1_1.orig.tar.gz ;;
      esac
    SH
  end

  def test_a_repository_a_work_tree_a_tarball_and_its_contents_give_the_same_commit
    project.git("worktree", "add", "-q", "--detach", project.path("plain"), project.commit)
    FileUtils.rm(project.path("plain/.git"))
    commits = [project.ruby, project.path("plain"), @tarball, project.path("release/ruby-1")].map { |from| assert_base(find(RUBY_SOURCE: from)) }
    assert_equal 1, commits.uniq.size
  end

  def test_a_tarball_with_one_more_change_is_refused
    project.write("release/ruby-1/zjit.c", "changed\n")
    _, err, status = find(RUBY_SOURCE: pack("other.tar.gz"))
    assert_equal 1, status
    assert_match(/other.tar.gz is not the base's tree/, err)
  end

  def test_the_tarball_of_another_release_is_named_by_its_version
    project.write("release/ruby-1/include/ruby/version.h", "#define RUBY_API_VERSION_MAJOR 4\n#define RUBY_API_VERSION_MINOR 0\n")
    project.write("release/ruby-1/version.h", "# define RUBY_VERSION_MAJOR RUBY_API_VERSION_MAJOR\n#define RUBY_VERSION_TEENY 4\n#define RUBY_PATCHLEVEL 0\n")
    _, err, status = find(RUBY_SOURCE: other = pack("other.tar.gz"))
    assert_equal 1, status
    assert_includes err, "source.sh: RUBY_SOURCE=#{other} is not the base's tree, or not unmodified; found: Ruby 4.0.4, tree "
    assert_includes err, "the tarball of that release as a file"
    refute_path_exists project.store
  end

  def test_a_truncated_tarball_is_named_with_the_remedy
    File.truncate(@tarball, File.size(@tarball) / 2)
    _, err, status = find(RUBY_SOURCE: @tarball)
    assert_equal 1, status
    assert_includes err, "source.sh: tar cannot unpack RUBY_SOURCE=#{@tarball} (its message is above): it is truncated or no tarball, get it again"
  end

  def test_apt_gives_the_source_from_the_system_s_mirror_in_its_own_configuration
    script_apt(@tarball)
    assert_base(find)
    assert_match(/\Adeb-src .*http:\/\/mirror.invalid\/debian stable main\n\z/, project.read("sources.list"))
    assert_includes project.read("apt.conf"), "#{project.cache}/half-made."
    assert_equal [project.commit + ".git", "lock"].sort, Dir.children(project.cache).sort
  end

  def test_a_package_with_another_tarball_is_not_taken_and_the_release_is_asked
    project.write("release/ruby-1/zjit.c", "changed\n")
    script_apt(pack("other.tar.gz"))
    _, err, status = find
    assert_equal 3, status
    assert_match(/source package ruby1\/stable, by apt: has SHA-256 \h{64}, not #{sum(@tarball)}/, err)
    assert_match(/127.0.0.1:1.*refused/, err)
  end

  def test_the_release_s_tarball_is_fetched_and_held_against_its_sum
    project.script("bin/apt-get", "exit 100")
    server = TCPServer.new("127.0.0.1", 0)
    serving = Thread.new do
      2.times do
        client = server.accept
        nil until client.gets == "\r\n"
        client.write("HTTP/1.0 200 OK\r\nContent-Length: #{File.size(@tarball)}\r\n\r\n", File.binread(@tarball))
        client.close
      end
    end
    write_base(tarball: "http://127.0.0.1:#{server.addr[1]}/ruby.tar.gz", tarball_sha256: "0" * 64)
    _, err, status = find
    assert_equal 3, status
    assert_match(/ruby.tar.gz: has SHA-256 \h{64}, not 0{64}: rejected; it is truncated or not that release/, err)
    assert_includes err, "make ruby-source RUBY_SOURCE=DIR"
    write_base(tarball: "http://127.0.0.1:#{server.addr[1]}/ruby.tar.gz")
    assert_base(find)
  ensure
    serving&.kill
    server&.close
  end
end
