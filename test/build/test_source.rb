# Where the source of CRuby is found, and what is said when it is not or is the wrong one.

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
    assert_match(/not the base's tree, or not unmodified; found: tree \h{40}, 5 files/, err)
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

  def test_unknown_base_is_named_with_those_there_are
    _, err, status = find(BASE: "ruby-9")
    assert_equal 1, status
    assert_includes err, 'there is no base "ruby-9"; bases/ has: small'
  end
end
