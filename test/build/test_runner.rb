# The test runner: its counts, and that no failure passes as a success.

require "waiting"
require_relative "project"

class TestRunner < BuildTest
  include Waiting

  def setup
    super
    FileUtils.cp_r(%w[run-tests.rb tests].map { |name| "#{Project::ROOT}/scripts/#{name}" }, project.path("project/scripts"))
  end

  def run_suites(*suites, **env)
    out, status = Open3.capture2e(project.env(**env), RbConfig.ruby, "scripts/run-tests.rb", *suites, chdir: project.path("project"))
    [out, status.exitstatus]
  end

  def assert_closing_line(line, status, result)
    assert_equal line, result.first.lines.last.chomp, result.first
    assert_equal status, result.last, result.first
  end

  def add_file(name, body)
    project.write("project/test/#{name}", <<~RUBY)
      require "minitest/autorun"
      class SomeTest < Minitest::Test
        #{body}
      end
    RUBY
  end

  def test_passes_failures_errors_and_skips_are_summed_over_suites
    add_file("tool/test_a.rb", "def test_ok = pass\ndef test_bad = flunk\ndef test_error = raise\ndef test_later = skip('no time')")
    add_file("build/test_b.rb", "def test_ok = pass")
    result = run_suites("tool", "build")
    assert_closing_line "2 passed, 2 failed, 1 skipped", 1, result
    assert_includes result.first, "failed: test/tool/test_a.rb (2)"
    assert_includes result.first, "skipped: SomeTest#test_later: no time"
  end

  def test_a_process_that_a_test_leaves_behind_is_not_waited_for
    add_file("tool/test_a.rb", "def test_leaves = File.write('left', spawn('sleep 600'))")
    result = run_suites("tool")
    Process.kill(:KILL, File.read(project.path("project/left")).to_i) # fails if it had ended
    assert_closing_line "1 passed, 0 failed, 0 skipped", 0, result
    assert_includes result.first, "left behind: a process that still has this output"
  end

  def test_an_entry_that_hangs_is_killed_and_fails
    add_file("tool/test_a.rb", "def test_hangs = File.write('child', Process.detach(spawn('sleep 600')).pid) && sleep")
    out, = result = run_suites("tool", ENTRY_SECONDS: "2")
    assert_closing_line "0 passed, 1 failed, 0 skipped", 1, result
    assert_match(/^killed: it was still running after 2 s$/, out)
    child = File.read(project.path("project/child"))
    wait_until("its child has ended, too") { !`ps -o state= -p #{child}`.match?(/[^Z\s]/) }
  end

  # People look at the tail of a log first.
  def test_texts_of_failures_and_errors_are_repeated_before_the_closing_line
    add_file("tool/test_a.rb", "def test_bad = assert_equal(%w[one two], [1], 'counts')\ndef test_error = raise('oops')\ndef test_later = skip('no time')")
    add_file("tool/test_b.rb", "def test_ok = pass")
    out, = run_suites("tool")
    tail = out.rpartition(/^\d+ runs, .*\n/).last.lines(chomp: true)
    text = tail.join("\n")
    assert_match(/^test\/tool\/test_a.rb: Failure:\nSomeTest#test_bad \[.*\]:\ncounts\.\nExpected: \["one", "two"\]\n  Actual: \[1\]$/, text)
    assert_match(/^test\/tool\/test_a.rb: Error:\nSomeTest#test_error:\nRuntimeError: oops$/, text)
    assert_equal "skipped: SomeTest#test_later: no time", tail.reject(&:empty?).find { |line| line.include?("no time") }
    assert_equal 1, text.scan("no time").size, "a skipped test is no failure"
    assert_equal ["failed: test/tool/test_a.rb (2)", "1 passed, 2 failed, 1 skipped"], tail.last(2)
  end

  def test_texts_of_failed_cmocka_tests_are_repeated
    project.write("project/test/unit/test_x.c", "")
    project.script("project/build/unit/test_x", <<~'SH')
      echo '[ RUN      ] this_fails'
      echo '[  ERROR   ] --- 0x1 != 0x2' >&2
      echo '[   LINE   ] --- test/unit/test_x.c:12: error: Failure!' >&2
      echo '[  FAILED  ] this_fails' >&2
      echo '[  PASSED  ] 2 test(s).'
      echo '[  FAILED  ] tests: 1 test(s), listed below:' >&2
      echo '[  FAILED  ] this_fails' >&2
      exit 1
    SH
    out, = run_suites("unit")
    assert_equal ["build/unit/test_x: this_fails", "[  ERROR   ] --- 0x1 != 0x2", "[   LINE   ] --- test/unit/test_x.c:12: error: Failure!",
                  "failed: build/unit/test_x (1)", "2 passed, 1 failed, 0 skipped"], out.lines(chomp: true).last(5)
  end

  def test_chosen_tool_tests_run_alone_and_a_wrong_name_is_an_error
    add_file("tool/test_a.rb", "def test_ok = pass")
    add_file("tool/test_b.rb", "def test_bad = flunk\ndef test_good = pass")
    assert_closing_line "1 passed, 0 failed, 0 skipped", 0, run_suites("tool", TOOL_TESTS: "a")
    assert_closing_line "2 passed, 0 failed, 0 skipped", 0, run_suites("tool", TOOL_TESTS: "a b:/good/")
    out, status = run_suites("tool", TOOL_TESTS: "a c")
    assert_equal ["there is no test/tool/test_c.rb\n", 1], [out.lines.last, status]
  end

  def test_files_run_side_by_side_and_each_is_shown_whole
    meet = %q[def test_meets = (File.write(NAME, ""); puts("", NAME); ENV.fetch("WAITS").to_i.times { sleep 0.1 unless File.exist?(OTHER) }; puts("", NAME); assert_path_exists(OTHER))]
    %w[a b].permutation { |one, other| add_file("tool/test_#{one}.rb", meet.gsub("NAME", "'#{one}'").gsub("OTHER", "'#{other}'")) }
    out, = result = run_suites("tool", JOBS: "2", V: "1", WAITS: "3000")
    assert_closing_line "2 passed, 0 failed, 0 skipped", 0, result
    assert_includes %w[aabb bbaa], out.scan(/^[ab]$/).join
    %w[a b].each { |name| FileUtils.rm(project.path("project/#{name}")) }
    out, = run_suites("tool", JOBS: "1", WAITS: "10") # the first one misses the other
    assert_equal 1, out.scan(/^unstable: /).size
  end

  def test_what_fails_and_then_passes_alone_is_named_as_unstable
    add_file("tool/test_a.rb", <<~'RUBY')
      def test_ok = pass
      def test_later = skip('no time')
      def test_once = File.exist?("was") ? pass : (File.write("was", ""); flunk("too busy"))
      def test_raises_once = File.exist?("raised") ? pass : (File.write("raised", ""); raise("oops"))
      def test_bad = flunk
    RUBY
    out, = result = run_suites("tool")
    assert_closing_line "3 passed, 1 failed, 1 skipped", 1, result
    assert_equal %w[test_once test_raises_once], out.scan(/^unstable: test\/tool\/test_a.rb: SomeTest#(\w+) failed beside/).flatten.sort
    assert_match(/^too busy$/, out.rpartition(/^\d+ runs, .*\n/).last, "its text is among those of failures")
    assert_includes out, "failed: test/tool/test_a.rb (1)"
    File.unlink(project.path("project/raised"))
    add_file("tool/test_a.rb", "def test_raises_once = File.exist?('raised') ? pass : (File.write('raised', ''); raise('oops'))")
    assert_closing_line "1 passed, 0 failed, 0 skipped", 0, run_suites("tool")
  end

  def add_tests_that_fail_once(count, name)
    once = "File.exist?(\"#{name}\#{i}\") ? pass : (File.write(\"#{name}\#{i}\", ''); flunk)"
    add_file("tool/test_a.rb", "#{count}.times { |i| define_method(:\"test_\#{i}\") { #{once} } }")
  end

  def test_many_failures_have_no_second_run
    add_tests_that_fail_once(6, "six")
    assert_closing_line "0 passed, 6 failed, 0 skipped", 1, run_suites("tool")
    add_tests_that_fail_once(5, "five")
    assert_closing_line "5 passed, 0 failed, 0 skipped", 0, run_suites("tool")
  end

  def test_a_file_that_asks_for_it_runs_alone
    add_file("tool/test_a.rb", "def test_last = assert_path_exists('done')")
    project.write("project/test/tool/test_a.rb", "# Alone: it needs what the other leaves.\n#{project.read("project/test/tool/test_a.rb")}")
    add_file("tool/test_b.rb", "def test_slow = (sleep 0.5; File.write('done', ''))")
    assert_closing_line "2 passed, 0 failed, 0 skipped", 0, run_suites("tool", JOBS: "2")
  end

  def test_success_has_status_0
    add_file("tool/test_a.rb", "def test_ok = pass")
    assert_closing_line "1 passed, 0 failed, 0 skipped", 0, run_suites("tool")
  end

  def test_file_that_dies_is_a_failure
    project.write("project/test/tool/test_a.rb", "exit 7")
    assert_closing_line "0 passed, 1 failed, 0 skipped", 1, run_suites("tool")
  end

  def test_file_without_tests_is_a_failure
    project.write("project/test/tool/test_a.rb", "require 'minitest/autorun'")
    assert_closing_line "0 passed, 1 failed, 0 skipped", 1, run_suites("tool")
  end

  def test_a_file_that_does_not_apply_is_not_a_failure
    project.write("project/test/tool/test_a.rb", "require 'minitest/autorun'\nwarn 'these tests are for zjit'\nexit 4\n")
    add_file("tool/test_b.rb", "def test_ok = pass")
    assert_closing_line "1 passed, 0 failed, 0 skipped", 0, run_suites("tool")
  end

  def test_cmocka_programs_are_counted
    project.write("project/test/unit/test_x.c", "")
    project.script("project/build/unit/test_x", <<~'SH')
      echo '[==========] Running 4 test(s).'
      echo '[  PASSED  ] 2 test(s).'
      echo '[  SKIPPED ] 1 test(s), listed below:'
      echo '[  FAILED  ] 1 test(s), listed below:' >&2
      exit 1
    SH
    assert_closing_line "2 passed, 1 failed, 1 skipped", 1, run_suites("unit")
  end

  def test_cmocka_program_that_crashes_or_was_not_built_is_a_failure
    project.write("project/test/unit/test_x.c", "")
    assert_closing_line "0 passed, 1 failed, 0 skipped", 1, run_suites("unit")
    project.script("project/build/unit/test_x", "echo '[  PASSED  ] 2 test(s).'; kill -SEGV $$")
    assert_closing_line "2 passed, 1 failed, 0 skipped", 1, run_suites("unit")
  end

  def test_what_static_analysis_says_of_a_part_is_repeated_and_a_part_without_its_tool_is_skipped
    project.script("project/scripts/lint.sh", <<~'SH')
      echo "$BASE: $*"
      echo "skip - cppcheck: it is not installed"
      echo "f.c:12: null pointer"
      echo "not ok - clang-tidy of the module"
      echo "ok - clang-tidy of the rest"
      exit 1
    SH
    project.write("project/bases/other", project.read("project/bases/small"))
    out, = result = run_suites("lint", BASES: "small other")
    assert_closing_line "3 passed, 3 failed, 3 skipped", 1, result
    ["small: alone", "small: ruby", "other: ruby", "skipped: lint: cppcheck: it is not installed"].each { |line| assert_match(/^#{line}$/, out) }
    assert_includes out, "scripts/lint.sh alone small: not ok - clang-tidy of the module\nf.c:12: null pointer\n"
  end

  # As check-sanitizers does: builds with other flags have their own build folder.
  def test_a_tree_of_links_has_its_own_programs_run
    project.write("project/test/unit/test_x.c", "")
    project.script("project/build/unit/test_x", "echo '[  FAILED  ] 1 test(s), listed below:'; exit 1")
    project.script("linked/build/unit/test_x", "echo '[  PASSED  ] 2 test(s).'")
    %w[scripts test].each { |folder| File.symlink("../project/#{folder}", project.path("linked/#{folder}")) }
    out, status = Open3.capture2e(project.env, RbConfig.ruby, "scripts/run-tests.rb", "unit", chdir: project.path("linked"))
    assert_closing_line "2 passed, 0 failed, 0 skipped", 0, [out, status.exitstatus]
  end

  def test_without_a_root_the_arm64_tests_are_counted_as_skipped_with_the_reason
    tests = "isolated_test(one),\n    isolated_test(two),\n    cmocka_unit_test(three),\n"
    project.write("project/test/unit/test_x.c", tests)
    result = run_suites("arm64")
    assert_closing_line "0 passed, 0 failed, 3 skipped", 0, result
    assert_match(/skipped: test\/unit\/test_x.c arm64: 3 tests: the root for arm64 is not in the cache/, result.first)
  end

  def test_what_ran_on_arm64_counts
    project.script("project/scripts/arm64-root.sh", "echo /some/root")
    project.script("project/scripts/check-arm64.sh",
                   "echo skipped: a: b; echo failed: c; echo 5 passed, 1 failed, 2 skipped; exit 1")
    result = run_suites("arm64")
    assert_closing_line "15 passed, 3 failed, 6 skipped", 1, result
    %w[unit tool integration].each { |suite| assert_includes result.first, "skipped: arm64 #{suite}: a: b" }
    project.script("project/scripts/check-arm64.sh", "exit 1")
    assert_closing_line "0 passed, 3 failed, 0 skipped", 1, run_suites("arm64")
  end

  def test_without_a_source_integration_tests_are_counted_as_skipped_with_the_reason
    add_file("integration/test_i.rb", "def test_one = flunk\ndef test_two = flunk")
    result = run_suites("integration")
    assert_closing_line "0 passed, 0 failed, 2 skipped", 0, result
    assert_match(/skipped: test\/integration\/test_i.rb small zjit: 2 tests: the source of CRuby was not found/, result.first)
  end

  def test_a_rustc_that_is_too_old_is_named_with_the_version_needed
    add_file("integration/test_i.rb", "def test_one = flunk")
    project.write("project/bases/small", project.read("project/bases/small").sub("rustc_min=1.0", "rustc_min=99.1"))
    result = run_suites("integration")
    assert_closing_line "0 passed, 0 failed, 1 skipped", 0, result
    assert_includes result.first, "needs rustc >= 99.1"
  end

  def test_a_wrong_source_is_a_failure
    add_file("integration/test_i.rb", "def test_one = flunk")
    result = run_suites("integration", RUBY_SOURCE: project.path("nowhere"))
    assert_closing_line "0 passed, 1 failed, 1 skipped", 1, result
  end

  def test_every_base_is_tested_and_those_that_cannot_be_built_are_named
    project.write("project/bases/other", project.read("project/bases/small").sub("jits=zjit", 'jits="zjit yjit"'))
    add_file("integration/test_i.rb", "def test_one = flunk")
    result = run_suites("integration", BASES: "other small")
    assert_closing_line "0 passed, 0 failed, 3 skipped", 0, result
    ["small zjit", "other zjit", "other yjit"].each do |variant|
      assert_match(/^skipped: test\/integration\/test_i.rb #{variant}: 1 tests: the source of CRuby was not found/, result.first)
    end
  end

  # Three pairs: first yjit, first zjit, second zjit are tested as a whole, second yjit by a few files.
  def two_bases
    base = project.read("project/bases/small")
    project.write("project/bases/first", base.sub("jits=zjit", 'jits="yjit zjit"'))
    project.write("project/bases/second", base.sub("jits=zjit", "jits=\"zjit yjit\"\nchecked_jits=zjit"))
    FileUtils.rm(project.path("project/bases/small"))
    project.script("project/scripts/build-ruby.sh", "mkdir -p build/$BASE; echo none > build/$BASE/unavailable; exit 3")
    { "BASE" => "first", "BASES" => "first second" }
  end

  def add_integration_file(name, tag, body = "def test_one = flunk")
    add_file("integration/#{name}.rb", body)
    project.write("project/test/integration/#{name}.rb", "# What it tests.\n##{tag}\n#{project.read("project/test/integration/#{name}.rb")}")
  end

  # There is no source here, so each file that would run is named as skipped.
  def pairs_of(out, name) = out.scan(/^skipped: test\/integration\/#{name}.rb (.*?): 1 tests: /).flatten.sort

  def test_a_file_runs_for_each_pair_that_can_change_its_result
    bases = two_bases
    add_integration_file("test_plain", "")
    add_integration_file("test_all", " Level: all. It is long.")
    add_integration_file("test_once", " Once: it is about a file.")
    add_integration_file("test_base", " Once for each base: the JIT makes no difference.")
    add_integration_file("test_jit", " Once for each JIT: the base makes no difference.")
    add_integration_file("test_zjit", " Once: it is about a file.", "def test_one = flunk\nend\nmodule Integration; def self.only(*) = nil; end\nbegin\nIntegration.only \"zjit\"")
    project.write("project/test/integration/test_zjit.rb", "# Once: x\nIntegration.only \"zjit\"\ndef test_one = flunk\n")
    add_integration_file("test_flags", "")
    out, = run_suites("integration", **bases)
    three = ["first yjit", "first zjit", "second zjit"]
    assert_equal three, pairs_of(out, "test_plain")
    assert_equal [], pairs_of(out, "test_all")
    assert_equal ["first yjit"], pairs_of(out, "test_once")
    assert_equal ["first yjit", "second zjit"], pairs_of(out, "test_base")
    assert_equal ["first yjit", "first zjit"], pairs_of(out, "test_jit")
    assert_equal ["first zjit"], pairs_of(out, "test_zjit")
    all = ["first yjit", "first zjit", "second yjit", "second zjit"]
    assert_equal all, pairs_of(out, "test_flags"), "a few files run everywhere"
    assert_match(/^make check-all runs 15 further files of integration tests$/, out)

    out, = run_suites("--all", "integration", **bases)
    %w[plain all once base jit zjit flags].each { |name| assert_equal all, pairs_of(out, "test_#{name}") }
    refute_match(/further files/, out)

    out, = run_suites("integration", "BASE" => "second", "BASES" => "second")
    assert_equal ["second yjit", "second zjit"], pairs_of(out, "test_plain"), "a base that was chosen is tested as a whole"
    assert_equal ["second zjit"], pairs_of(out, "test_once")
  end

  def git(*arguments) = project.git(*arguments, in: project.path("project"))

  def commit_all(message)
    git("add", "-A")
    git("commit", "-q", "-m", message)
    git("rev-parse", "HEAD")
  end

  def test_a_base_whose_patches_changed_is_tested_as_a_whole
    bases = two_bases
    add_integration_file("test_plain", "")
    add_integration_file("test_once", " Once: it is about a file.")
    project.write("project/.gitignore", "build\n")
    git("init", "-q", "-b", "master")
    passed = commit_all("first")
    project.write("project/patches/second/0001-x.patch", "x")
    commit_all("second")
    project.write("home/.cache/ruby-vm-trace/commits-passed", "#{"0" * 40}\n#{passed}\n")
    out, = run_suites("integration", **bases)
    assert_match(/^second is tested as a whole: patches\/second\/0001-x.patch changed$/, out)
    assert_equal ["first yjit", "first zjit", "second yjit", "second zjit"], pairs_of(out, "test_plain")
    assert_equal ["first yjit", "second zjit"], pairs_of(out, "test_once"), "by itself, as if there were no other base"

    project.write("home/.cache/ruby-vm-trace/commits-passed", "#{git("rev-parse", "HEAD")}\n")
    refute_match(/tested as a whole/, run_suites("integration", **bases).first)
    %w[vm_trace/jit/zjit/x.rs vm_trace/host/x.c].each do |file|
      project.write("project/#{file}", "x")
      git("add", "-A")
      said = run_suites("integration", **bases).first
      assert_equal ["first", "second"], said.scan(/^(\w+) is tested as a whole: #{file} changed$/).flatten
      git("rm", "-q", "-f", file)
    end

    # Without such a commit: the last twenty.
    FileUtils.rm(project.path("home/.cache/ruby-vm-trace/commits-passed"))
    18.times { |i| git("commit", "-q", "--allow-empty", "-m", i.to_s) }
    assert_match(/^second is tested/, run_suites("integration", **bases).first)
    2.times { |i| git("commit", "-q", "--allow-empty", "-m", "more #{i}") }
    refute_match(/^second is tested/, run_suites("integration", **bases).first)
  end

  def test_a_base_that_passed_as_a_whole_is_compared_with_that_commit
    bases = two_bases
    project.script("project/scripts/build-ruby.sh", <<~SH)
      [ "$BASE" != "$WITHOUT" ] || { mkdir -p build/$BASE; echo none > build/$BASE/unavailable; exit 3; }
    SH
    add_file("integration/test_i.rb", "def test_it = refute_equal(ENV['BAD'], ENV['BASE'])")
    project.write("project/.gitignore", "build\n")
    git("init", "-q", "-b", "master")
    commit_all("first")
    %w[first second].each { |base| project.write("project/patches/#{base}/0001-x.patch", "x") }
    commit = commit_all("second")
    whole = ->(**env) { run_suites("integration", **bases, **env).first.scan(/^(\w+) is tested as a whole/).flatten }
    assert_equal %w[first second], whole.call(BAD: "first", WITHOUT: "second")
    assert_equal %w[first second], whole.call(BAD: "second")
    assert_equal ["#{commit} first"], project.read("home/.cache/ruby-vm-trace/commits-passed").lines(chomp: true)
    assert_equal %w[second], whole.call
    assert_empty whole.call
    project.write("project/patches/first/0001-x.patch", "y")
    commit_all("third")
    assert_equal %w[first], whole.call
  end

  # A run of check-all that was cut goes on where it stopped, and forgets what passed when anything changes.
  def test_check_all_remembers_what_passed_at_the_same_state_of_the_tree
    add_file("tool/test_a.rb", "def test_ok = pass\ndef test_later = skip('no time')")
    add_file("tool/test_b.rb", "def test_bad = flunk")
    project.write("project/.gitignore", "build\n/test/tool/test_b.rb\n")
    git("init", "-q", "-b", "master")
    commit = commit_all("first")
    assert_closing_line "1 passed, 1 failed, 1 skipped", 1, run_suites("--all", "tool")
    add_file("tool/test_b.rb", "def test_bad = pass")
    out, = result = run_suites("--all", "tool", BASES: "small")
    assert_match(/^1 entries passed before at this state of the tree$/, out)
    assert_match(/^skipped: SomeTest#test_later: no time$/, out)
    refute_match(/ok .*test_a.rb$/, out)
    assert_closing_line "2 passed, 0 failed, 1 skipped", 0, result
    assert_equal [commit], project.read("home/.cache/ruby-vm-trace/commits-passed").split, "a whole run that passed is remembered"
    refute_match(/passed before/, run_suites("--all", "tool").first, "and what passed is forgotten")

    add_file("tool/test_b.rb", "def test_bad = flunk")
    run_suites("--all", "tool")
    project.write("project/test/tool/test_a.rb", "#{project.read("project/test/tool/test_a.rb")}\n# changed\n")
    refute_match(/passed before/, run_suites("--all", "tool").first)
    refute_match(/passed before/, run_suites("tool").first, "only check-all does that")
  end

  def test_a_commit_is_not_remembered_for_a_run_with_changes
    add_file("tool/test_a.rb", "def test_ok = pass")
    project.write("project/.gitignore", "build\n")
    git("init", "-q", "-b", "master")
    commit_all("first")
    add_file("tool/test_b.rb", "def test_ok = pass")
    assert_closing_line "2 passed, 0 failed, 0 skipped", 0, run_suites("--all", "tool", BASES: "small")
    refute_path_exists project.path("home/.cache/ruby-vm-trace/commits-passed")
  end

  def test_what_took_longest_begins_first
    %w[a b c].each { |name| add_file("tool/test_#{name}.rb", "def test_order = File.write('order', '#{name}', mode: 'a')#{"; def test_sleeps = sleep(1)" if name == "b"}") }
    run_suites("tool", JOBS: "1")
    FileUtils.rm(project.path("project/order"))
    run_suites("tool", JOBS: "1")
    assert_equal "b", project.read("project/order")[0]
  end

  def test_of_suites_that_start_processes_one_entry_runs_at_a_time_while_others_are_left
    order = ->(name) { "def test_order = File.write('order', '#{name}', mode: 'a')" }
    longer = "def test_one = pass\ndef test_two = pass"
    add_file("build/test_a.rb", "#{longer}\ndef test_waits = (sleep 0.01 until File.exist?('last'))")
    add_file("benchmarks/test_b.rb", "#{longer}\n#{order.("b")}")
    %w[c d e].each { |name| add_file("tool/test_#{name}.rb", order.(name)) }
    add_file("tool/test_f.rb", "#{order.("f")} && File.write('last', '')")
    assert_closing_line "10 passed, 0 failed, 0 skipped", 0, run_suites("build", "benchmarks", "tool", JOBS: "2")
    assert_operator project.read("project/order").index("b"), :>=, 3
  end

  def test_each_test_of_a_file_that_says_so_is_an_entry
    add_file("tool/test_a.rb", "def test_ok = pass\ndef test_bad = flunk\n3.times { |i| define_method(:\"test_no_\#{i}\") { pass } }")
    project.write("project/test/tool/test_a.rb", "# Entries: tests\n#{project.read("project/test/tool/test_a.rb")}")
    out, = result = run_suites("tool")
    assert_closing_line "4 passed, 1 failed, 0 skipped", 1, result
    assert_equal %w[no_0 no_1 no_2 ok], out.scan(/ok +1 passed .*test_a.rb (\w+)$/).flatten.sort
    assert_match(/^failed: test\/tool\/test_a.rb bad \(1\)$/, out)
  end

  def test_a_source_that_was_given_is_not_that_of_another_base
    project.write("project/bases/other", project.read("project/bases/small"))
    project.patch("0001-first") { |text| text.sub("f10", "first") }
    out, = run_suites("patches", BASES: "other small", RUBY_SOURCE: project.path("nowhere"), JOBS: "1", V: "1")
    assert_includes out[/^== \S+ small$.*?(?=^\[)/m], "nowhere is no directory"
    refute_includes out[/^== \S+ other$.*?(?=^\[)/m], "nowhere is no directory"
  end

  def test_check_all_also_builds_each_patch
    project.patch("0001-first") { |text| text.sub("f10", "first") }
    refute_includes run_suites("patches").first, "0001-first.patch builds"
    assert_includes run_suites("--all", "patches").first,
                    "skipped: patches: 0001-first.patch builds: the source of base small was not found"
  end
end
