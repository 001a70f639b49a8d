# Fixes of CRuby's own bugs (patches/BASE/fixes): the bug is there without the fix, in the unpatched base,
# too, and gone with it.
require "open3"
require_relative "helper"
Integration.only "yjit"
Integration.except "ruby-3.3", "it has no fixes"

class TestFixes < Integration::Test
  CALLS = 20_000
  INVALIDATED_BLOCK = File.read(File.join(ROOT, "examples/found/invalidated_block.rb"))
  FIX = "yjit-invalidated-block"
  # The unpatched base, if it is built (make base-ruby).
  BASE_RUBY = "base-ruby"

  # After the invalidation: exits of a traced run, and blocks that YJIT compiled in an untraced one.
  def exits_and_blocks(build)
    traced = run_program(build, "ruby", "--yjit-trace-side-exits", "--yjit-trace-file=%p.fxt")
    [traced.trace.exits("invalidated_block").size, compiled_blocks(build, "ruby")]
  end

  def compiled_blocks(build, ruby) = run_program(build, ruby).out[/^blocks compiled since: (\d+)$/, 1].to_i

  def run_program(build, ruby, *flags)
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), INVALIDATED_BLOCK)
    result = run_in(dir, "--yjit", *flags, "script.rb", CALLS.to_s, command: [File.join(build, ruby), "--disable=gems"])
    assert_predicate result.status, :success?, result.err
    validate_all(result)
  end

  def fixed?(build, source)
    state = File.join(build, source, ".git/vm-trace-series")
    File.exist?(state) && File.read(state).split.include?(FIX)
  end

  def test_a_block_behind_a_short_one_exits_at_each_call_unless_it_is_fixed
    exits, blocks = exits_and_blocks(BUILD)
    if fixed?(BUILD, "src")
      assert_equal [0, true], [exits, blocks > 0]
    else
      assert_equal [4 * CALLS, 0], [exits, blocks]
    end
  end

  def test_the_unpatched_base_does_not_compile_the_block_again_unless_it_is_fixed
    skip "the unpatched base is not built: make base-ruby" unless File.executable?(File.join(BUILD, BASE_RUBY))
    assert_equal fixed?(BUILD, "base-src"), compiled_blocks(BUILD, BASE_RUBY) > 0
  end

  # Builds both Rubies with all fixes, in a tree of links. CRuby's own test comes with the fix.
  if LONG
    def test_with_all_fixes_no_call_exits
      build = File.join(ROOT, "build/fixed/build", BASE)
      script("common.sh", "link_tree fixed")
      [[], ["--base"]].each { |options| build_fixed(*options) }
      exits, blocks = exits_and_blocks(build)
      assert_equal [0, true, true], [exits, blocks > 0, compiled_blocks(build, BASE_RUBY) > 0]
      { BASE_RUBY => true, File.join(BUILD, BASE_RUBY) => fixed?(BUILD, "base-src") }.each do |ruby, fixed|
        ruby = File.expand_path(ruby, build)
        next unless File.executable?(ruby)
        result = run_in(scratch_dir, "-I#{build}/base-src/tool/lib", "#{build}/base-src/test/runner.rb", "--ruby=#{ruby}",
                        "#{build}/base-src/test/ruby/test_yjit.rb", "-n", "/invalidated_block_behind/", command: [ruby])
        assert_equal [fixed, fixed ? "0" : "1"], [result.status.success?, result.out[/^1 tests, \d+ assertions, (\d) failures, 0 errors, 0 skips/, 1]], result.out
      end
    end
  end

  private

  def script(name, commands)
    assert system({ "BASE" => BASE }, "sh", "-c", ". scripts/#{name} && #{commands}", "scripts/#{name}", chdir: ROOT)
  end

  def build_fixed(*options)
    out, status = Open3.capture2e({ "BASE" => BASE, "FIXES" => "all" }, "scripts/build-ruby.sh", *options, chdir: "#{ROOT}/build/fixed")
    assert_predicate status, :success?, out
  end
end
