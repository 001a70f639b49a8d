# Fixes of CRuby's own bugs (patches/BASE/fixes): the bug is there without the fix, in the unpatched base,
# too, and gone with it. doc/guide/found.md explains each.
require "open3"
require_relative "helper"
Integration.except "ruby-3.3", "ruby-3.4", "it has no fixes"

class TestFixes < Integration::Test
  CALLS = 20_000
  # The unpatched base, if it is built (make base-ruby).
  BASE_RUBY = "base-ruby"

  # tests: those of CRuby's suite that come with the fix, and the name that they share
  Fix = Struct.new(:name, :program, :reason, :tests, :test_name, keyword_init: true)
  FIX = {
    "yjit" => Fix.new(name: "yjit-invalidated-block", program: "invalidated_block", reason: "invalidated_block",
                      tests: "test_yjit.rb", test_name: "invalidated_block_behind"),
    "zjit" => Fix.new(name: "zjit-nil-variables", program: "nil_variables", reason: "GuardType(ArrayExact)",
                      tests: "test_zjit*.rb", test_name: "expandarray_of_nil"),
  }.fetch(Integration::JIT)

  def run_program(build, ruby, *flags)
    dir = scratch_dir
    FileUtils.cp(File.join(ROOT, "examples/found/#{FIX.program}.rb"), dir)
    result = run_in(dir, "--#{JIT}", *flags, "#{FIX.program}.rb", CALLS.to_s, command: [File.join(build, ruby), "--disable=gems"])
    assert_predicate result.status, :success?, result.err
    validate_all(result)
  end

  # The program calls the method 80,000 times when it is compiled, or few times less.
  def assert_exits(build, fixed)
    exits = run_program(build, "ruby", "--zjit-trace-exits", "--zjit-trace-file=%p.fxt").trace.exits(FIX.reason).size
    fixed ? assert_equal(0, exits) : assert_includes(4 * CALLS - 100..4 * CALLS, exits)
  end

  def fixed?(build, source)
    state = File.join(build, source, ".git/vm-trace-series")
    File.exist?(state) && File.read(state).split.include?(FIX.name)
  end

  def test_each_call_exits_unless_it_is_fixed
    assert_exits(BUILD, fixed?(BUILD, "src"))
  end

  # By what YJIT counts without --yjit-stats, with which the bug does not show.
  if JIT == "yjit"
    def test_untraced_and_in_the_unpatched_base_the_block_is_not_compiled_again_unless_it_is_fixed
      { "ruby" => "src", BASE_RUBY => "base-src" }.each do |ruby, source|
        next unless File.executable?(File.join(BUILD, ruby))
        blocks = run_program(BUILD, ruby).out[/^blocks compiled since: (\d+)$/, 1].to_i
        assert_equal fixed?(BUILD, source), blocks > 0, ruby
      end
    end
  end

  # Builds both Rubies with all fixes, in a tree of links. CRuby's own tests come with the fixes.
  if LONG
    def test_with_all_fixes_no_call_exits_and_cruby_s_own_tests_fail_only_without
      build = File.join(ROOT, "build/fixed/build", BASE)
      assert system({ "BASE" => BASE }, "sh", "-c", ". scripts/common.sh && link_tree fixed", "scripts/common.sh", chdir: ROOT)
      [[], ["--base"]].each { |options| build_fixed(*options) }
      assert_exits(build, true)
      { "#{build}/ruby" => true, "#{build}/#{BASE_RUBY}" => true, "#{BUILD}/ruby" => fixed?(BUILD, "src"),
        "#{BUILD}/#{BASE_RUBY}" => fixed?(BUILD, "base-src") }.each do |ruby, fixed|
        next unless File.executable?(ruby)
        source = "#{build}/base-src"
        result = run_in(scratch_dir, "-I#{source}/tool/lib", "#{source}/test/runner.rb", "--ruby=#{ruby}",
                        *Dir["#{source}/test/ruby/#{FIX.tests}"],
                        "-n", "/#{FIX.test_name}/", command: [ruby])
        failures = result.out[/^\d+ tests, \d+ assertions, (\d) failures, 0 errors, 0 skips/, 1]
        assert_equal [fixed, fixed ? "0" : "1"], [result.status.success?, failures], result.out
      end
    end
  end

  private

  def build_fixed(*options)
    out, status = Open3.capture2e({ "BASE" => BASE, "FIXES" => "all" }, "scripts/build-ruby.sh", *options, chdir: "#{ROOT}/build/fixed")
    assert_predicate status, :success?, out
  end
end
