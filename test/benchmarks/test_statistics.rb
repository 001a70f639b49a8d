# Statistics of numbers whose true difference is known.

require_relative "bench_helper"
require "statistics"

class TestStatistics < Minitest::Test
  S = Bench::Statistics
  TRIALS = 100

  def gauss(random)
    Math.sqrt(-2 * Math.log(1 - random.rand)) * Math.cos(2 * Math::PI * random.rand)
  end

  # Kinds of noise on real machines. Each gives a list of pairs of times.
  NOISE = {
    "even" => ->(_state, random, gauss) { [0.01 * gauss.(random), 0.01 * gauss.(random)] },
    "spikes" => ->(_state, random, gauss) do
      Array.new(2) { 0.005 * gauss.(random) + (random.rand < 0.2 ? random.rand * 0.5 : 0) }
    end,
    "two speeds" => ->(_state, random, gauss) do
      Array.new(2) { 0.003 * gauss.(random) + (random.rand < 0.5 ? 0.05 : 0) }
    end,
    # Other work of the machine changes during the run; neighbouring runs see the same.
    "drift" => ->(state, random, gauss) do
      state[:at] = state.fetch(:at, 0) + 0.03 * gauss.(random)
      Array.new(2) { state[:at] + 0.005 * gauss.(random) }
    end,
  }.freeze

  def runs(noise, pairs, slower, seed)
    random = Random.new(seed)
    state = {}
    made = Array.new(pairs) { NOISE.fetch(noise).call(state, random, method(:gauss)) }
    made.map { |a, b| [Math.exp(a), Math.exp(b) * slower] }.transpose
  end

  def verdicts(noise, pairs, slower, how = :paired_interval)
    (1..TRIALS).map { |seed| S.public_send(how, *runs(noise, pairs, slower, seed), seed: seed).verdict }.tally
  end

  NOISE.each_key do |noise|
    [5, 10, 20].each do |pairs|
      define_method("test_equal_runs_with_#{noise.tr(' ', '_')}_are_not_flagged_in_#{pairs}_pairs") do
        assert_operator verdicts(noise, pairs, 1.0).fetch(:same, 0), :>=, 95
      end
    end
  end

  def test_five_percent_slower_is_found
    assert_operator verdicts("even", 10, 1.05).fetch(:slower, 0), :>=, 95
    assert_operator verdicts("drift", 10, 1.05).fetch(:slower, 0), :>=, 95
  end

  def test_five_percent_faster_is_found
    assert_operator verdicts("even", 10, 1 / 1.05).fetch(:faster, 0), :>=, 95
  end

  def test_pairs_see_through_a_drift_that_hides_the_difference_from_others
    paired = verdicts("drift", 10, 1.05).fetch(:slower, 0)
    assert_operator paired, :>, verdicts("drift", 10, 1.05, :unpaired_interval).fetch(:slower, 0)
  end

  def test_equal_unpaired_runs_are_not_flagged
    assert_operator verdicts("even", 10, 1.0, :unpaired_interval).fetch(:same, 0), :>=, 95
    assert_operator verdicts("even", 10, 1.05, :unpaired_interval).fetch(:slower, 0), :>=, 95
  end

  def test_the_interval_holds_the_truth
    inside = (1..TRIALS).count do |seed|
      i = S.paired_interval(*runs("even", 10, 1.03, seed), seed: seed)
      (i.low..i.high).cover?(1.03)
    end
    assert_operator inside, :>=, 95
  end

  # A difference of the size that a run claims to detect is detected by about four of five such
  # runs.
  def test_the_smallest_difference_seen_is_seen
    intervals = (1..TRIALS).map { |seed| S.paired_interval(*runs("even", 20, 1.0, seed), seed: seed) }
    typical = S.median(intervals.map(&:detectable))
    found = verdicts("even", 20, 1 + typical).fetch(:slower, 0)
    assert_includes 60..97, found
    assert_operator verdicts("even", 20, 1 + typical / 4).fetch(:slower, 0), :<, 30
  end

  def test_more_runs_see_smaller_differences
    few, many = [5, 40].map { |pairs| S.paired_interval(*runs("even", pairs, 1.0, 1)).detectable }
    assert_operator many, :<, few
  end

  def test_one_spike_moves_nothing
    i = S.paired_interval([1.0] * 9 + [1.0], [1.0] * 9 + [7.0])
    assert_equal 1.0, i.ratio
    assert_equal :same, i.verdict
  end

  def test_a_difference_that_rounds_to_nothing_is_none
    [1.0004, 1 / 1.0004].each do |ratio|
      i = S.paired_interval([1.0] * 10, [ratio] * 10)
      assert_equal [:same, false], [i.verdict, i.slower_by?(0)], i
    end
    assert_equal :slower, S.paired_interval([1.0] * 10, [1.0006] * 10).verdict
    assert_equal :faster, S.paired_interval([1.0] * 10, [1 / 1.0006] * 10).verdict
    barely = S::Interval.new(ratio: 1.002, low: 1.0004, high: 1.004, detectable: 0.002, pairs: 10)
    assert_equal :same, barely.verdict
  end

  def test_two_runs_are_too_few
    assert_equal :unknown, S.paired_interval([1.0, 1.0], [2.0, 2.0]).verdict
    assert_equal :unknown, S.paired_interval([1.0], [2.0]).verdict
    refute S.paired_interval([1.0], [2.0]).slower_by?(1)
  end

  def test_the_threshold_is_held_against_the_near_end_of_the_interval
    i = S::Interval.new(ratio: 1.10, low: 1.04, high: 1.16, detectable: 0.1, pairs: 10)
    assert i.slower_by?(3)
    refute i.slower_by?(5)
  end

  def test_the_same_seed_gives_the_same_interval
    a, b = runs("even", 10, 1.0, 1)
    assert_equal S.paired_interval(a, b, seed: 3), S.paired_interval(a, b, seed: 3)
    refute_equal S.paired_interval(a, b, seed: 3), S.paired_interval(a, b, seed: 4)
  end

  # --- several comparisons

  # Each of twenty comparisons by itself would flag something in about half of these tables.
  def test_of_twenty_equal_comparisons_none_is_flagged
    flagged = (1..30).count do |trial|
      raw = Array.new(20) do |i|
        S.paired_interval(*runs("even", 10, 1.0, trial * 100 + i), seed: trial, confidence: 0.95)
      end
      S.holm(raw, 0.95).any? { |interval| interval.verdict != :same }
    end
    assert_operator flagged, :<=, 4
  end

  def test_holm_judges_the_clearest_first_and_keeps_the_order
    ratios = [1.0, 1.3, 1.0005, 1.1]
    raw = ratios.each_with_index.map { |ratio, i| S.paired_interval(*runs("even", 10, ratio, i + 1), confidence: 0.95) }
    judged = S.holm(raw, 0.95)
    assert_equal raw.map(&:ratio), judged.map(&:ratio)
    assert_equal %i[same slower same slower], judged.map(&:verdict)
    raw.zip(judged) { |one, wide| assert_operator wide.low, :<, one.low }
    # The last two share the level at which the method stopped: a half of the error.
    assert_in_delta raw[0].at(1 - 0.05 / 2).low, judged[0].low, 1e-9
    assert_in_delta raw[1].at(1 - 0.05 / 4).low, judged[1].low, 1e-9
  end

  def test_one_comparison_stays_as_it_is
    one = S.paired_interval(*runs("even", 10, 1.02, 1))
    assert_in_delta one.low, S.holm([one], 0.99)[0].low, 1e-12
    edge = one.at(1 - one.p_value)
    assert_in_delta 0.01, [edge.low, edge.high].map { |x| (x - 1).abs }.min + 0.01, 1e-6
  end

  def test_the_interval_of_the_geometric_mean_holds_the_truth_and_is_narrower_than_each
    inside = (1..TRIALS / 2).count do |trial|
      each = [1.0, 1.1, 1.2].each_with_index.map do |ratio, i|
        S.paired_interval(*runs("even", 10, ratio, trial * 10 + i), seed: trial)
      end
      mean = S.geometric_mean(each, 0.99)
      assert_operator mean.high / mean.low, :<, each.map { |one| one.high / one.low }.max
      (mean.low..mean.high).cover?((1.0 * 1.1 * 1.2)**(1 / 3.0))
    end
    assert_operator inside, :>=, 47
  end

  # The number of runs that it names is about the number that it takes.
  def test_the_runs_needed_see_what_was_asked
    few = S.median((1..30).map { |seed| S.paired_interval(*runs("even", 10, 1.0, seed), seed: seed).pairs_to_see(0.5) })
    seen = (1..5).map { |seed| S.paired_interval(*runs("even", few, 1.0, seed), seed: seed).detectable }
    assert_in_delta 0.005, S.median(seen), 0.0015
  end

  def test_outliers
    assert_equal 1, S.outliers([0.0, 0.01, -0.01, 0.005, 0.7, 0.002])
    assert_equal 0, S.outliers([0.0, 0.01, -0.01, 0.005, 0.02])
    assert_equal 0, S.outliers([0.0] * 9 + [0.005]) # less than one percent is no outlier
  end

  def test_quantiles
    assert_equal 2.0, S.median([3.0, 1.0, 2.0])
    assert_equal 2.5, S.median([4.0, 1.0, 2.0, 3.0])
    assert_in_delta 1.3, S.quantile([1.0, 2.0, 3.0, 4.0], 0.1)
  end

  # From printed tables.
  def test_students_t
    {
      [0.995, 1] => 63.657,
      [0.995, 2] => 9.925,
      [0.975, 9] => 2.262,
      [0.995, 19] => 2.861,
      [0.95, 30] => 1.697,
    }.each do |(p, freedom), t|
      assert_in_delta t, S.student_t(p, freedom), 0.001
    end
  end
end
