# More than two sides: each candidate is compared with the first side, in one table.

require_relative "bench_helper"
require "comparison"

class TestSides < BenchTest
  def setup
    super
    @one, @slow = ruby("one"), ruby("slow", speed: 1.05)
    @work = made_up("work.rb")
  end

  def rows(out, name) = out.lines.select { |line| line.start_with?("#{name} ") }

  def test_each_candidate_has_its_row_and_its_mean
    out, = assert_compare(1, @one, @one, @slow, "-n", "8", "--", @work)
    assert_match(/^workload +side +baseline +candidate +ratio/, out)
    assert_match(/^work +candidate 1 .* no difference seen/, rows(out, "work")[0])
    assert_match(/^work +candidate 2 .* 1\.0[45]\d .* slower$/, rows(out, "work")[1])
    assert_includes out, "slower by more than 2 %: work (candidate 2)\n"
    assert_match(%r{^ratio: candidate 1 / baseline, geometric mean (1\.00|0\.99)\d}, out)
    assert_match(%r{^ratio: candidate 2 / baseline, geometric mean 1\.0[45]\d}, out)
    assert_includes out, "the intervals of all 2 comparisons hold together (Holm)"
  end

  # Each candidate is next to the baseline equally often, and each order occurs backwards, too.
  def test_the_order_is_balanced
    names = %w[base a b c]
    names.each { |name| ruby(name, before: "case \"$*\" in *work.rb*) printf '#{name} ' >> #{path('order')} ;; esac") }
    assert_compare(0, *names.map { |name| path(name) }, "-n", "6", "--", @work)
    rounds = File.read(path("order")).split.each_slice(4).drop(1)
    rounds.each { |round| assert_equal names.sort, round.sort }
    rounds.each_slice(2) { |there, back| assert_equal there.reverse, back }
    neighbours = rounds.map { |round| round.each_cons(2).find { |pair| pair.include?("base") } - ["base"] }
    assert_equal({ ["a"] => 2, ["b"] => 2, ["c"] => 2 }, neighbours.tally)
  end

  def test_a_candidate_that_fails_leaves_the_others
    write("bad.rb", File.read(@work) + "\nraise 'not with this one' if ENV['SPEED'].to_f == 2\n")
    out, = assert_compare(3, @one, ruby("bad", speed: 2), @one, "-n", "4", "--", path("bad.rb"))
    assert_match(/^bad +candidate 1 +failed$/, out)
    assert_match(/^    candidate 1: status 1: /, out)
    assert_match(/^bad +candidate 2 .* 4  no difference seen/, out)
    assert_includes out, "failed: bad (candidate 1)"
  end

  def test_json_has_an_entry_for_each_workload_and_candidate
    assert_compare(1, @one, @one, @slow, "-n", "6", "--json", path("out.json"), "--", @work)
    data = JSON.parse(File.read(path("out.json")))
    assert_equal [["candidate 1", @one], ["candidate 2", @slow]],
                 data["candidates"].map { |one| one.values_at("name", "command") }
    assert_nil data["candidate"]
    assert_equal [["work", "candidate 1"], ["work", "candidate 2"]],
                 data["workloads"].map { |one| one.values_at("name", "side") }
    assert_operator data["candidates"][1]["geometric_mean"]["low"], :>, 1
  end

  def test_several_are_compared_with_saved_runs_but_one_is_saved
    assert_compare(0, @one, "--save", "monday", "-n", "8", "--", @work)
    out, = assert_compare(1, @one, @slow, "--against", "monday", "-n", "8")
    assert_match(/^work +candidate 2 .* slower$/, out)
    _, err = assert_compare(2, @one, @one, @slow, "--save", "tuesday")
    assert_includes err, "--save NAME keeps the runs of one candidate; 3 executables are given"
  end

  def test_the_warm_up_shows_each_side_once
    work = write("steps.rb", <<~RUBY)
      require "#{ROOT}/benchmarks/inside"
      VMTraceBench.iterate(warmup: 1, runs: 3) { 1 + 1 }
    RUBY
    out, = compare(@one, @one, @slow, "-n", "1", "--warm-up=10", "--", work)
    shown = out[/^warm-up .*/m].lines.filter_map { |line| line[/^steps +(baseline|candidate \d)/, 1] }
    assert_equal ["baseline", "candidate 1", "candidate 2"], shown
  end

  def test_the_trace_runs_the_baseline_once_for_all
    count = ruby("count", before: <<~SH)
      case "$*" in
      *RUBY_DESCRIPTION*) echo ruby +ZJIT; exit ;;
      *trace-exits*work.rb*) echo >> #{path('traced')} ;;
      esac
    SH
    out, = assert_compare(0, count, @one, @one, "-n", "3", "--trace", "--", @work)
    assert_match(/^work \(candidate 1\):\n    not traced: baseline: /, out)
    assert_match(/^work \(candidate 2\):\n    not traced: baseline: /, out)
    assert_equal 1, File.size(path("traced"))
  end
end
