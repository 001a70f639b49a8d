# Verdicts on counted instructions; callgrind itself does not run.

require_relative "bench_helper"
load "#{ROOT}/benchmarks/instructions"

class TestInstructions < BenchTest
  class Counted < Instructions
    attr_writer :counts, :compiler

    def count = @counts
    def compiler = @compiler || "x86_64, recording compiled by 1.2.3"
  end

  def setup
    super
    @one = Counted.new("recording", kept: path("kept.txt"))
    @one.counts = { "same" => 500, "new" => 1000 }
    capture_io { @one.update }
  end

  def compare(**counts)
    @one.counts = counts.transform_keys(&:to_s)
    status = nil
    out, = capture_io { status = @one.compare }
    [status, out]
  end

  def test_the_same_and_fewer_are_fine
    assert_equal 0, compare(same: 500, new: 1000).first
    assert_equal 0, compare(same: 100, new: 1000).first
  end

  def test_growth_within_two_percent_is_fine_and_shown
    status, out = compare(same: 510, new: 1000)
    assert_equal 0, status
    assert_match(/^same +500 +510 +\+2\.0 %$/, out)
  end

  def test_more_growth_is_named_with_what_to_do
    status, out = compare(same: 511, new: 1000)
    assert_equal 1, status
    assert_match(/^Grown by more than 2\.0 %: same$/, out)
    assert_includes out, "--update"
  end

  def test_a_case_without_a_kept_figure_is_no_failure
    status, out = compare(same: 500, new: 1000, third: 9)
    assert_equal 0, status
    assert_match(/^third +- +9 +new$/, out)
  end

  def test_figures_of_another_compiler_judge_nothing
    @one.compiler = "x86_64, recording compiled by 4.5.6"
    status, out = compare(same: 900, new: 1000)
    assert_equal 0, status
    assert_match(/another compiler.*1\.2\.3.*4\.5\.6/m, out)
  end
end
