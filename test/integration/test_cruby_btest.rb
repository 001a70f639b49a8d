# CRuby's bootstrap tests pass with every exit of every one of their processes traced, and each
# trace is valid.
#
# Level: all. It runs 2,000 programs.
require_relative "cruby_build"
require "etc"

class TestCrubyBtest < Integration::Test
  include CRubyBuild

  def test_btest_passes_traced
    dir = scratch_dir(mib: 2048)
    result = make("btest", "BTESTS=-j#{Etc.nprocessors}",
                  "RUN_OPTS=--zjit --zjit-call-threshold=1 --zjit-trace-exits --zjit-trace-file=#{dir}/%p.fxt")
    said = result.out + result.err
    passed = said[/^PASS all (\d+) tests/, 1]
    assert passed, said.lines.grep(/^#\d+ |=>|BUG|FAIL/).join
    assert_operator passed.to_i, :>, 1800
    assert_predicate result.status, :success?
    assert_all_valid(Dir[File.join(dir, "*.fxt")])
  end

  # Some tests kill their processes, so not every trace has a summary: only `check` looks at them.
  def assert_all_valid(traces)
    assert_operator traces.size, :>, 1000
    traces.each_slice(200) do |some|
      out, err, status = Open3.capture3(Trace::TOOL, "check", *some)
      assert_predicate status, :success?, err.lines.first(20).join
      assert_equal some.size, out.lines.size
    end
  end
end
