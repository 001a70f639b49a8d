# The work tree made from the patches, the checks of the series, and writing the series from the
# work tree.

require_relative "project"

class PatchesTest < BuildTest
  def setup
    super
    project.cache_source
  end

  def prepare = project.run("prepare.sh")
  def check(**env) = project.run("check-patches.sh", **env)
  def refresh(**env) = project.run("refresh-patches.sh", **env)
  def src(name = "") = project.path("project/build/small/src/#{name}")
  def subjects = project.git("log", "--format=%s", "refs/vm-trace/base..HEAD", in: src).lines(chomp: true).reverse

  def patch_first = project.patch("0001-first") { |text| text.sub("f10", "first") }
  def patch_second = project.patch("0002-second", file: "common.mk") { |text| text.sub("line 10", "second") }

  def edit_patch(name)
    file = project.patch_path(name)
    File.write(file, yield(File.read(file)))
  end

  def assert_prepared
    out, err, status = prepare
    assert_equal 0, status, err
    out + err
  end
end

class TestPrepare < PatchesTest
  def test_patches_are_commits_in_order_on_the_base
    patch_first
    patch_second
    assert_prepared
    assert_equal ["0001-first", "0002-second"], subjects
    assert_includes File.read(src("zjit.c")), "first"
    assert_empty File.read(src("gems/bundled_gems"))
    assert_empty project.git("status", "--porcelain", in: src)
  end

  def test_lines_that_end_in_a_carriage_return_keep_it
    project.patch("0001-first") { |text| text.sub("int f10(void);", "int f10(void);\r") }
    assert_prepared
    assert_includes File.binread(src("zjit.c")), "int f10(void);\r\n"
  end

  def test_same_patches_give_the_same_commit_ids_whatever_the_user_s_configuration
    patch_first
    assert_prepared
    head = project.git("rev-parse", "HEAD", in: src)
    FileUtils.rm_rf(project.path("project/build"))
    project.write("home/.gitconfig", "[user]\nname = Other\nemail = o@example.invalid\n[core]\nautocrlf = true\n[commit]\ngpgSign = true\n")
    assert_prepared
    assert_equal head, project.git("rev-parse", "HEAD", in: src)
  end

  def test_the_module_is_copied_in_and_only_what_differs_is_written
    project.write("project/vm_trace/a.c", "a\n")
    project.write("project/vm_trace/b.h", "b\n")
    assert_prepared
    long_ago = Time.at(0)
    File.utime(long_ago, long_ago, src("vm_trace/a.c"), src("vm_trace/b.h"))
    project.write("project/vm_trace/b.h", "changed\n")
    assert_prepared
    assert_equal long_ago, File.mtime(src("vm_trace/a.c"))
    assert_equal "changed\n", File.read(src("vm_trace/b.h"))
    assert_empty project.git("status", "--porcelain", in: src)
  end

  def test_a_file_that_left_the_module_leaves_the_copy
    project.write("project/vm_trace/a.c", "a\n")
    assert_prepared
    FileUtils.rm(project.path("project/vm_trace/a.c"))
    assert_prepared
    refute File.exist?(src("vm_trace/a.c"))
  end

  def test_a_changed_header_takes_the_objects_that_include_it_with_it
    project.write("project/vm_trace/a.h", "a\n")
    project.patch("0001-hook") { |text| %(#include "vm_trace/a.h"\n#{text}) }
    assert_prepared
    objects = %w[vm_trace/x.o zjit.o other.o].map { |name| "project/build/small/obj/#{name}" }
    objects.each { |name| project.write(name, "") }
    project.write("project/vm_trace/a.h", "changed\n")
    assert_prepared
    assert_equal [false, false, true], objects.map { |name| File.exist?(project.path(name)) }
  end

  def test_a_changed_series_writes_only_the_files_that_differ
    patch_first
    assert_prepared
    long_ago = Time.at(0)
    File.utime(long_ago, long_ago, src("zjit.c"), src("common.mk"))
    patch_second
    assert_prepared
    assert_equal ["0001-first", "0002-second"], subjects
    assert_equal long_ago, File.mtime(src("zjit.c"))
    refute_equal long_ago, File.mtime(src("common.mk"))
  end

  def test_uncommitted_work_is_kept_and_stops_a_changed_series
    patch_first
    assert_prepared
    File.write(src("version.h"), "mine\n")
    patch_second
    _, err, status = prepare
    assert_equal 1, status
    assert_includes err, " M version.h"
    assert_includes err, "reset --hard refs/vm-trace/made"
    assert_equal "mine\n", File.read(src("version.h"))
    assert_equal ["0001-first"], subjects
  end

  def test_a_commit_of_the_user_s_is_kept_and_stops_a_changed_series
    patch_first
    assert_prepared
    File.write(src("version.h"), "mine\n")
    project.git("commit", "-qam", "my commit", in: src)
    patch_second
    _, err, status = prepare
    assert_equal 1, status
    assert_includes err, "my commit"
    assert_equal ["0001-first", "my commit"], subjects
  end

  def test_work_in_the_tree_is_built_while_the_series_stays
    patch_first
    assert_prepared
    File.write(src("version.h"), "mine\n")
    assert_includes assert_prepared, "make refresh-patches"
  end

  def test_a_patch_that_does_not_apply_leaves_the_tree_as_it_was
    patch_first
    assert_prepared
    edit_patch("0001-first") { |text| text.gsub("f9", "g9") }
    _, err, status = prepare
    assert_equal 1, status
    assert_match(%r{patches/small/0001-first.patch does not apply to base small .*: restore patches/small and bases/small, or, .* make rebase-patches BASE=small}, err)
    assert_includes File.read(src("zjit.c")), "first"
  end

  def test_no_source_passes_its_status_on
    FileUtils.rm_rf(project.cache)
    _, _, status = prepare
    assert_equal 3, status
    refute File.exist?(src)
  end

  def test_a_new_pin_makes_the_tree_anew
    assert_prepared
    old = project.commit
    project.write("ruby/zjit.c", "new base\n")
    project.git("commit", "-qam", "a newer one")
    base = project.read("project/bases/small")
    base = base.sub(old, project.git("rev-parse", "HEAD")).sub(project.tree, project.git("rev-parse", "HEAD^{tree}"))
    project.write("project/bases/small", base)
    project.run("source.sh", "cache", RUBY_SOURCE: project.ruby)
    built = %w[obj/zjit.o built].map { |name| "project/build/small/#{name}" }
    built.each { |name| project.write(name, "") }
    assert_prepared
    assert_equal "new base\n", File.read(src("zjit.c"))
    built.each { |name| refute_path_exists project.path(name), "it is of the old base" }
  end
end

class TestFixes < PatchesTest
  def setup
    super
    patch_first
    project.patch("0002-second") { |text| "int more;\nint and_more;\n#{text}" } # the fixes' lines move
    project.fix("one") { |text| text.sub("f17", "fixed") }
    project.fix("two", file: "common.mk") { |text| text.sub("line 9", "fixed") }
  end

  def prepare(*args, **env)
    out, err, status = project.run("prepare.sh", *args, **env)
    assert_equal 0, status, err
    out + err
  end

  def base_name = File.read(src("vm_trace/base_name.h"))[/"small [0-9a-f]{12}(.*), vm_trace/, 1]

  def test_without_a_request_none_is_applied
    prepare
    assert_equal ["0001-first", "0002-second"], subjects
    assert_equal "", base_name
  end

  def test_those_that_are_named_come_behind_the_series_and_into_the_traces
    { "one" => %w[one], "two,one" => %w[one two], "all" => %w[one two], "two" => %w[two], "" => [] }.each do |names, applied|
      prepare(FIXES: names)
      assert_equal ["0001-first", "0002-second", *applied], subjects
      assert_equal applied.map { |name| " + #{name}" }.join, base_name
      assert_equal applied.include?("one"), File.read(src("zjit.c")).include?("fixed")
    end
  end

  def test_the_unpatched_base_gets_them_alone
    base_src = project.path("project/build/small/base-src")
    log = -> { project.git("log", "--format=%s", "refs/vm-trace/base..HEAD", in: base_src) }
    prepare("--base", FIXES: "one")
    assert_equal "one", log.()
    refute_path_exists "#{base_src}/vm_trace"
    prepare("--base")
    assert_equal "", log.()
    assert_equal Project::FILES["zjit.c"], File.read("#{base_src}/zjit.c")
  end

  # An earlier version of prepare.sh had no fixes and left no such file.
  def test_an_unpatched_base_of_unknown_state_is_made_again
    base_src = project.path("project/build/small/base-src")
    prepare("--base")
    FileUtils.rm("#{base_src}/.git/vm-trace-series")
    File.write("#{base_src}/zjit.c", "of unknown state\n")
    prepare("--base", FIXES: "one")
    assert_includes File.read("#{base_src}/zjit.c"), "fixed"
  end

  def test_a_name_that_no_base_has_is_an_error_and_one_of_another_base_a_remark
    FileUtils.mkdir_p(project.path("project/patches/other/fixes"))
    FileUtils.mv(project.patch_path("fixes/two"), project.path("project/patches/other/fixes"))
    _, err, status = project.run("prepare.sh", FIXES: "one thre")
    assert_equal 1, status
    assert_includes err, 'there is no fix "thre" (FIXES, or --with-fixes of ./configure); patches/*/fixes has: one two'
    assert_includes prepare(FIXES: "one two"), 'base small has no fix "two": it is built without'
    assert_equal %w[0001-first 0002-second one], subjects
  end

  def test_a_fix_that_changed_is_applied_again
    prepare(FIXES: "one")
    edit_patch("fixes/one") { |text| text.sub("+int fixed", "+int mended") }
    prepare(FIXES: "one")
    assert_includes File.read(src("zjit.c")), "mended"
  end

  def test_the_series_is_not_rewritten_with_a_fix_in_it
    prepare(FIXES: "one")
    before = Dir.children(project.path("project/patches/small")).sort
    %w[refresh-patches.sh rebase-patches.sh].product(["", "one"], ["", "1"]) do |script, names, force|
      _, err, status = project.run(script, FIXES: names, FORCE: force)
      assert_equal 1, status, script
      assert_includes err, "has fixes, which are no part of the series: make src FIXES= BASE=small takes them out"
    end
    prepare
    _, err, status = refresh(FIXES: "one") # the source has none
    assert_equal 0, status, err
    assert_equal before.grep_v(/patch/), Dir.children(project.path("project/patches/small")).sort.grep_v(/patch/)
    prepare
    assert_equal ["0001-first", "0002-second"], subjects
  end

  def test_a_patch_file_has_the_fixes_that_are_asked_for
    project.run("prepare.sh")
    { "" => false, "one" => true }.each do |names, fixed|
      out, err, status = project.run("patch-file.sh", "small", FIXES: names)
      assert_equal 0, status, out + err
      text = File.read(Dir[project.path("project/build/*.patch")].first)
      assert_equal [fixed, fixed], [text.include?("+int fixed"), text.include?("\nWith fixes of Ruby's own bugs: one\n")]
    end
  end
end

class TestCheckPatches < PatchesTest
  def assert_fault(pattern, **env)
    out, err, status = check(**env)
    assert_equal 1, status, out + err
    assert_match(/^not ok - /, out)
    assert_match(pattern, out)
  end

  def test_good_series
    patch_first
    patch_second
    out, err, status = check
    assert_equal 0, status, out + err
    refute_match(/^not ok|^skip/, out)
    assert_match(/^ok - 0002-second.patch applies to base small/, out)
  end

  def test_without_the_source_the_rest_is_checked_and_what_needs_it_is_skipped
    patch_first
    FileUtils.rm_rf(project.cache)
    out, _, status = check
    assert_equal 0, status, out
    assert_match(/^ok - 0001-first.patch has From/, out)
    assert_match(/^skip - 0001-first.patch applies/, out)
  end

  def test_fixes_apply_alone_and_behind_the_series
    project.patch("0001-first") { |text| "int more;\n#{text}" }
    project.fix("one") { |text| text.sub("f17", "fixed") }
    project.fix("two") { |text| text.sub("f5", "fixed") }
    out, err, status = check
    assert_equal 0, status, out + err
    refute_match(/^not ok/, out)
    %w[one two].each do |name|
      assert_match(/^ok - fixes\/#{name}.patch has From/, out)
      assert_match(/^ok - fixes\/#{name}.patch applies to base small where it says/, out)
      assert_match(/^ok - fixes\/#{name}.patch applies behind the series/, out)
    end
  end

  def test_fix_that_needs_the_series
    patch_first
    patch_second
    FileUtils.mkdir_p(project.path("project/patches/small/fixes"))
    project.patch("0003-on-first") { |text| text.sub("first", "again") }
    project.write("project/patches/small/series", "0001-first.patch\n0002-second.patch\n")
    FileUtils.mv(project.patch_path("0003-on-first"), project.patch_path("fixes/one"))
    assert_fault(/^not ok - fixes\/one.patch applies to base small/)
  end

  def test_fix_that_conflicts_with_the_series
    project.fix("one") { |text| text.sub("f10", "fixed") }
    patch_first
    assert_fault(/^not ok - fixes\/one.patch applies behind the series/)
  end

  def test_fix_without_a_text
    patch_first
    project.fix("one") { |text| text.sub("f17", "fixed") }
    edit_patch("fixes/one") { |text| text.sub("Why it is so.\n", "") }
    assert_fault(/no text that says why/)
  end

  def test_fix_with_a_name_that_cannot_be_asked_for
    patch_first
    project.fix("one") { |text| text.sub("f17", "fixed") }
    %w[all One two,three note.txt].each do |name|
      name += ".patch" unless name.include?(".")
      FileUtils.cp(project.patch_path("fixes/one"), project.path("project/patches/small/fixes/#{name}"))
      assert_fault(/^not ok - patches\/small\/fixes holds only patches.*\n    fixes\/#{name}/)
      FileUtils.rm(project.path("project/patches/small/fixes/#{name}"))
    end
  end

  def test_empty_series
    project.write("project/patches/small/series", "# none\n")
    assert_fault(/lists no patch/)
  end

  def test_unlisted_patch
    patch_first
    FileUtils.cp(project.patch_path("0001-first"), project.patch_path("0009-stray"))
    assert_fault(/0009-stray.patch is in patches\/small but not listed/)
  end

  def test_patch_listed_twice
    patch_first
    File.write(project.path("project/patches/small/series"), "0001-first.patch\n", mode: "a")
    assert_fault(/0001-first.patch is listed twice/)
  end

  def test_listed_patch_that_is_missing
    patch_first
    File.write(project.path("project/patches/small/series"), "0002-gone.patch\n", mode: "a")
    assert_fault(/0002-gone.patch is listed but missing/)
  end

  def test_wrong_order
    patch_first
    project.patch("0002-on-first") { |text| text.sub("first", "again") }
    project.write("project/patches/small/series", "0002-on-first.patch\n0001-first.patch\n")
    assert_fault(/0002-on-first.patch/)
  end

  { "From" => /^From: .*\n/, "Date" => /^Date: .*\n/, "Subject" => /^Subject: .*\n/ }.each do |header, line|
    define_method("test_missing_#{header}") do
      patch_first
      edit_patch("0001-first") { |text| text.sub(line, "") }
      assert_fault(/no #{header}: line/)
    end
  end

  def test_no_text
    patch_first
    edit_patch("0001-first") { |text| text.sub("Why it is so.\n", "") }
    assert_fault(/no text that says why/)
  end

  def test_truncated_patch
    patch_first
    edit_patch("0001-first") { |text| text[0, text.index("+int first")] }
    assert_fault(/cannot parse it/)
  end

  def test_context_that_differs
    patch_first
    edit_patch("0001-first") { |text| text.gsub("f9", "g9") }
    assert_fault(/patch does not apply/)
  end

  def test_hunk_that_moved
    patch_first
    edit_patch("0001-first") { |text| text.sub(/^@@ -7,7 \+7,7 @@/, "@@ -6,7 +6,7 @@") }
    assert_fault(/offset 1 line/)
  end

  def test_too_little_context
    patch_first
    edit_patch("0001-first") do |text|
      text.sub(/^@@ -7,7 \+7,7 @@/, "@@ -8,6 +8,6 @@").sub(" int f7(void);\n", "")
    end
    assert_fault(/2 lines of context before the change/)
  end

  # Only the first line of a file has none before it.
  def test_too_little_context_near_the_begin_of_a_file
    project.patch("0001-first") { |text| text.sub("f4(", "first(") }
    edit_patch("0001-first") { |text| text.sub(/^@@ -1,7 \+1,7 @@(.*)\n .*\n/, "@@ -2,6 +2,6 @@\\1\n") }
    assert_fault(/line \d+: 2 lines of context before the change/)
  end

  def test_trailing_whitespace
    project.patch("0001-space") { |text| text.sub("int f10(void);", "int f10(void); ") }
    assert_fault(/trailing whitespace/)
  end

  def test_patch_that_touches_the_module
    project.patch("0001-module", file: "vm_trace/sink.c") { "int sink;\n" }
    assert_fault(/vm_trace\/sink.c: vm_trace\/ is no part of the patches/)
  end

  def test_patch_that_is_too_long_to_be_read
    project.patch("0001-long", file: "zjit/long.rs") { "//\n" * 500 }
    assert_fault(/\d+ lines, more than 500: split it by cause/)
  end

  def test_removed_lines_need_no_reader
    project.patch("0001-long", file: "zjit/long.rs") { "//\n" * 400 }
    project.patch("0002-removed", file: "zjit/long.rs") { "//!\n" * 400 }
    out, err, status = check
    assert_equal 0, status, out + err
  end

  def test_subject_that_git_would_cut_for_the_name
    project.patch("0001-first", subject: "zjit: trace exits due to compile errors and to handlers") do |text|
      text.sub("f10", "first")
    end
    assert_fault(/a subject of 55 characters, more than 52: zjit: trace exits due/)
  end

  def test_name_that_is_cut_in_a_word
    project.patch("0001-zjit-trace-exits-due-to-comp", subject: "zjit: trace exits due to compile errors") do |text|
      text.sub("f10", "first")
    end
    assert_fault(/its subject makes another name, zjit-trace-exits-due-to-compile-errors.patch/)
  end

  def test_patch_that_adds_a_large_file
    project.patch("0001-large", file: "zjit/large.rs") { "// #{"x" * 70}\n" * 1000 }
    assert_fault(/large.rs: adds a file of more than 65536 bytes/)
  end

  def test_wrong_source_is_a_fault_and_not_a_skip
    patch_first
    assert_fault(/the source of base small/, RUBY_SOURCE: project.path("nowhere"))
  end
end

class TestRefreshPatches < PatchesTest
  def series = project.read("project/patches/small/series")
  def listing = Dir.children(project.path("project/patches/small")).sort.to_h { |name| [name, project.read("project/patches/small/#{name}")] }

  def commit(file, text, message)
    File.write(src(file), text)
    project.git("add", "-A", in: src)
    project.git("commit", "-q", "-m", message, in: src)
  end

  def test_a_commit_becomes_a_patch_that_passes_the_checks
    patch_first
    assert_prepared
    commit("version.h", "mine\n", "Say so\n\nWhy.")
    _, err, status = refresh
    assert_equal 0, status, err
    assert_equal "0001-0001-first.patch\n0002-Say-so.patch\n", series
    out, err, status = check
    assert_equal 0, status, out + err
    assert_prepared
  end

  def test_a_second_time_changes_nothing
    patch_first
    patch_second
    assert_prepared
    refresh
    first = listing
    assert_equal 0, refresh.last
    assert_equal first, listing
    FileUtils.rm_rf(project.path("project/build"))
    assert_prepared
    project.write("home/.gitconfig", "[format]\nnumbered = true\nsignature = me\n[diff]\nnoprefix = true\n[core]\nabbrev = 30\n")
    assert_equal 0, refresh.last
    assert_equal first, listing
  end

  def test_the_comment_of_the_series_stays_and_files_that_left_it_go
    project.write("project/patches/small/series", "# Hooks only.\n")
    patch_first
    patch_second
    assert_prepared
    project.git("reset", "-q", "--hard", "HEAD~1", in: src)
    assert_equal 0, refresh.last
    assert_equal "# Hooks only.\n0001-0001-first.patch\n", series
    assert_equal ["0001-0001-first.patch", "series"], listing.keys
  end

  def test_uncommitted_work_is_not_left_out_silently
    patch_first
    assert_prepared
    before = listing
    File.write(src("version.h"), "mine\n")
    _, err, status = refresh
    assert_equal 1, status
    assert_includes err, " M version.h"
    assert_equal before, listing
  end

  def test_patches_that_changed_meanwhile_are_not_overwritten
    patch_first
    assert_prepared
    edit_patch("0001-first") { |text| text.sub("Why it", "Because it") }
    before = listing
    _, err, status = refresh
    assert_equal 1, status
    assert_includes err, "FORCE=1"
    assert_equal before, listing
  end
end

class TestRebasePatches < PatchesTest
  def rebase = project.run("rebase-patches.sh")

  # A newer commit in the repository, pinned by the base, in the cache.
  def new_pin(file, &edit)
    project.write("ruby/#{file}", edit.call(project.read("ruby/#{file}")))
    project.git("commit", "-qam", "a newer one")
    base = project.read("project/bases/small")
    project.write("project/bases/small", base.sub(project.commit, project.git("rev-parse", "HEAD"))
                                             .sub(project.tree, project.git("rev-parse", "HEAD^{tree}")))
    project.run("source.sh", "cache", RUBY_SOURCE: project.ruby)
  end

  def test_patches_move_to_a_new_pin_and_are_rewritten
    patch_first
    assert_prepared
    new_pin("zjit.c") { |text| "int more;\nint and_more;\n#{text}" }
    _, err, status = rebase
    assert_equal 0, status, err
    out, err, status = check
    assert_equal 0, status, out + err
    assert_prepared
    assert_includes File.read(src("zjit.c")), "and_more"
    assert_includes File.read(src("zjit.c")), "first"
  end

  def test_fixes_move_too_and_one_that_conflicts_is_named
    patch_first
    project.fix("one") { |text| text.sub("f17", "fixed") }
    project.fix("two", file: "common.mk") { |text| text.sub("line 9", "fixed") }
    assert_prepared
    two = File.read(project.patch_path("fixes/two"))
    project.write("ruby/common.mk", project.read("ruby/common.mk").sub("line 9", "mended by CRuby"))
    new_pin("zjit.c") { |text| "int more;\n#{text}" }
    out, err, status = rebase
    assert_equal 0, status, out + err
    assert_includes err, "patches/small/fixes/two.patch does not apply to the new pin: change it, or remove it"
    assert_equal two, File.read(project.patch_path("fixes/two"))
    FileUtils.rm(project.patch_path("fixes/two"))
    out, err, status = check
    assert_equal 0, status, out + err
    assert_match(/^ok - fixes\/one.patch applies to base small where it says/, out)
  end

  def test_a_copy_of_a_base_moves_and_the_base_stays
    patch_first
    assert_prepared
    project.write("project/bases/small", "# A small one.\n" + project.read("project/bases/small").sub("origins=git", <<~ORIGINS.chomp))
      # Where it comes from: the release.
      origins="apt tarball"
      apt_package=small
      apt_sha256=1
      tarball=http://example.invalid/small.tar
      tarball_sha256=2
    ORIGINS
    before = project.read("project/bases/small")
    project.write("ruby/zjit.c", "int more;\n#{project.read("ruby/zjit.c")}")
    project.git("commit", "-qam", "a newer one")
    move = -> { project.run("move-base.sh", "HEAD", "next", BASE: "small", RUBY_SOURCE: project.ruby) }
    _, err, status = move.()
    assert_equal 0, status, err
    assert_equal before, project.read("project/bases/small")
    moved = project.read("project/bases/next")
    assert_includes moved, "commit=#{project.git("rev-parse", "HEAD")}\n"
    assert_includes moved, "\norigins=git\n"
    assert_includes moved, "\npatches=patches/next\n"
    refute_match(/sha256|release|A small one/, moved)
    assert_equal ["next/0001-0001-first.patch", "small/0001-first.patch"], Dir.children(project.path("project/patches")).sort.flat_map { |base|
      Dir.glob("#{base}/*.patch", base: project.path("project/patches"))
    }
    _, err, status = move.()
    assert_equal [1, true], [status, err.include?("there is a bases/next already")], err
  end

  def test_a_conflict_stops_and_goes_on_when_it_is_resolved
    patch_first
    assert_prepared
    new_pin("zjit.c") { |text| text.sub("f10", "renamed") }
    _, err, status = rebase
    assert_equal 1, status
    assert_includes err, "git rebase --continue"
    _, err, status = rebase
    assert_equal 1, status
    assert_includes err, "a rebase is under way"

    File.write(src("zjit.c"), File.read(src("zjit.c")).gsub(/^<<<<<<<.*?^=======\n|^>>>>>>>.*?\n/m, ""))
    project.git("add", "zjit.c", in: src)
    project.git("-c", "core.editor=true", "rebase", "--continue", in: src)
    _, err, status = rebase
    assert_equal 0, status, err
    out, err, status = check
    assert_equal 0, status, out + err
    assert_equal ["0001-first"], subjects
  end
end

class TestMoveBase < PatchesTest
  def test_a_tag_that_is_missing_is_named_and_nothing_changes
    before = project.read("project/bases/small")
    _, err, status = project.run("move-base.sh", "v9_9_9", RUBY_SOURCE: project.ruby)
    assert_equal 1, status
    assert_includes err, "move-base.sh: RUBY_SOURCE=#{project.ruby} has no commit or tag v9_9_9 (git -C #{project.ruby} fetch --tags file://"
    assert_equal before, project.read("project/bases/small")
  end
end

# The Rust of a JIT is in vm_trace/, and the patches include it.
class TestIncludedRust < Minitest::Test
  INCLUDED = %r{^\+#\[path = "\.\./\.\./(vm_trace/jit(?:/\w+)?)/(\w+\.rs)"\]}

  # { [base, JIT] => what the hunks of its crate's lib.rs and of its makefile add }
  def self.added
    none = Hash.new { |all, key| all[key] = +"" }
    Dir["#{Project::ROOT}/patches/ruby-*/[0-9]*.patch"].sort.each_with_object(none) do |file, all|
      File.read(file).split(/^diff --git a\//).drop(1).each do |diff|
        jit = diff[%r{\A([yz]jit)/(?:src/lib\.rs|\w+\.mk) }, 1]
        all[[File.basename(File.dirname(file)), jit]] << diff if jit
      end
    end
  end
  ADDED = added

  def test_make_builds_a_crate_again_when_a_file_changes_that_it_includes
    assert_equal 6, ADDED.size, "crates of all series"
    ADDED.each do |(base, jit), diff|
      diff.scan(INCLUDED).each do |folder, file|
        assert_path_exists "#{Project::ROOT}/#{folder}/#{file}"
        assert_match(/^\+\t.*\$\(top_srcdir\)\/#{folder}\/\*\.rs /, diff, "#{jit}.mk of #{base}")
      end
    end
  end

  def test_every_file_for_one_ruby_is_included
    included = ADDED.values.flat_map { |diff| diff.scan(INCLUDED) }.map { |parts| parts.join("/") }.grep(/ruby_/)
    assert_equal Dir["vm_trace/jit/*/ruby_*.rs", base: Project::ROOT].sort, included.uniq.sort
  end
end
