# How fast a program is from its first iteration on, from made-up times, and as the command shows it.

require_relative "bench_helper"
require "side"
require "warm_up"

class TestWarmUp < BenchTest
  def warm_up(times) = Bench::WarmUp.new(times)

  def noisy(times, seed: 1)
    random = Random.new(seed)
    times.map { |time| time * (1 + 0.02 * (random.rand - 0.5)) }
  end

  def test_a_step_is_where_it_is_steady_from
    one = warm_up(noisy([0.03] * 12 + [0.01] * 88))
    assert_in_delta 0.03, one.first, 0.0005
    assert_in_delta 0.01, one.steady, 0.0002
    assert_equal 13, one.steady_from
    assert_match(/\A█{3}▁+\z/, warm_up([0.03] * 12 + [0.01] * 84).curve)
  end

  def test_it_may_be_steady_from_the_first
    assert_equal 1, warm_up(noisy([0.01] * 60)).steady_from
    assert_equal 1, warm_up([0.01] * 10).steady_from
    assert_match(/\A▁+\z/, warm_up([0.01] * 60).curve)
  end

  def test_it_may_get_slower
    assert_equal 31, warm_up(noisy([0.01] * 30 + [0.02] * 70)).steady_from
  end

  def test_single_slow_iterations_do_not_count
    times = noisy([0.03] * 5 + [0.01] * 95)
    times[60] = times[20] = 0.2 # as when another process gets the processor
    assert_equal 6, warm_up(times).steady_from
  end

  def test_what_changes_in_the_second_half_is_not_steady
    assert_nil warm_up(noisy(Array.new(100) { |i| 0.02 - 0.0001 * i })).steady_from
    assert_nil warm_up([0.03] * 70 + [0.01] * 30).steady_from
  end

  # The sixth iteration of a process is the first fast one.
  def workload
    write("steps.rb", <<~RUBY)
      require "#{ROOT}/benchmarks/inside"
      module VMTraceBench
        def self.now = $at.to_f
      end
      done = 0
      VMTraceBench.iterate(warmup: 7, runs: 3) { $at = $at.to_f + ENV["SPEED"].to_f * ((done += 1) > 5 ? 0.01 : 0.04) }
    RUBY
  end

  def test_compare_shows_both_sides_from_the_first_iteration_on
    out, = compare(ruby("one"), ruby("slow", speed: 2), "-n", "3", "--warm-up=40", "--json", path("out.json"), "--", workload)
    assert_match(/^warm-up +side +first +iteration 40 +steady +from iteration$/, out)
    assert_match(/^steps +baseline +40\.00 ms +10\.00 ms +10\.00 ms +6  █+▆?▁+$/, out)
    assert_match(/^steps +candidate +80\.00 ms +20\.00 ms +20\.00 ms +6  █+▆?▁+$/, out)
    entry = JSON.parse(File.read(path("out.json")))["workloads"][0]
    assert_equal [40, 6], entry["warm_up"]["baseline"].then { |one| [one["seconds"].size, one["steady_from"]] }
    assert_in_delta 0.01, entry["baseline_seconds"][0], 1e-9 # apart from that, warm-up does not count
    assert_in_delta 0.04, entry["baseline_first_seconds"][0], 1e-9
  end

  def test_a_script_without_iterations_says_so
    write("plain.rb", "1 + 1\n")
    out, = compare(ruby("one"), ruby("two"), "-n", "1", "--warm-up", "--", path("plain.rb"))
    assert_match(/^plain +candidate +it times no iterations/, out)
  end

  def test_too_few_iterations_are_refused
    _, err = assert_compare(2, ruby("one"), ruby("two"), "--warm-up=5")
    assert_includes err, "--warm-up: at least 10"
  end
end
