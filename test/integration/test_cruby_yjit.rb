# CRuby's own test of YJIT, which counts exits of small programs, passes on the patched tree,
# untraced and traced.
#
# Level: all. It runs CRuby's own tests.
require_relative "cruby_build"
Integration.only "yjit"

class TestCrubyYjit < Integration::Test
  include CRubyBuild

  def run_tests(*arguments)
    result = make("test-all", "TESTS=ruby/test_yjit.rb", *arguments)
    assert_match(/^\d\d+ tests, .* 0 failures, 0 errors/, result.out, result.out.lines.last(40).join)
    assert_predicate result.status, :success?, result.out.lines.last(30).join
  end

  # Those in Rust, which link no C.
  def test_unit_tests_of_the_crate_pass
    source = File.join(Integration::BUILD, "src")
    dir = scratch_dir
    jit = "#{source}/jit/src/lib.rs"
    shared = File.exist?(jit) ? ["--extern=jit=#{dir}/libjit.rlib"] : []
    rustc = ->(*arguments) do
      out, status = Open3.capture2e("rustc", "--cap-lints=allow", *arguments)
      assert_predicate status, :success?, out
    end
    rustc.("--crate-name=jit", "--crate-type=rlib", "--edition=2024", "--out-dir=#{dir}", jit) if shared.any?
    rustc.("--test", "--crate-name=yjit", *shared, "--edition=2021", "-o", "#{dir}/unit", "#{source}/yjit/src/lib.rs")
    out, status = Open3.capture2e("#{dir}/unit")
    assert_predicate status, :success?, out.lines.last(30).join
    assert_match(/^test result: ok. \d{3} passed/, out)
  end

  def test_test_yjit_passes
    run_tests
  end

  # A file that the runner requires sets RUBYOPT, because make does not pass it on. Tests that turn
  # YJIT on and off (any of its flags does) or look at stderr are left out: test_yjit_enable...,
  # _disable, _option....
  def test_test_yjit_passes_traced
    traces = scratch_dir
    flags = "--yjit-trace-side-exits --yjit-trace-compiles --yjit-trace-invalidation --yjit-trace-file=#{traces}/%p.fxt"
    File.write("#{traces}/flags.rb", "ENV['RUBYOPT'] = '#{flags}'\n")
    run_tests("RUN_OPTS=--disable-gems -r#{traces}/flags.rb", "TESTOPTS=-n !/test_yjit_[edo]/")
    found = Dir["#{traces}/*.fxt"]
    assert_operator found.size, :>, 100
    found.each_slice(100) do |some|
      _, err, status = Open3.capture3(Trace::TOOL, "check", *some)
      assert_predicate status, :success?, err.lines.first(20).join
    end
  end
end
