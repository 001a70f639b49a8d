# --calibrate: a Ruby against itself. Made-up noise has a known size.

require_relative "bench_helper"
require "comparison"
require "calibration"

class TestCalibration < BenchTest
  OPTIONS = { confidence: 99.0, threshold: 2.0, seed: 1 }.freeze

  def gauss(random)
    Math.sqrt(-2 * Math.log(1 - random.rand)) * Math.cos(2 * Math::PI * random.rand)
  end

  # A Result of equal sides whose runs scatter by such a fraction.
  def result(name, scatter, seed: 1, runs: 10)
    random = Random.new(seed)
    lists = Array.new(2) do
      Array.new(runs) do
        seconds = Math.exp(scatter * gauss(random))
        Bench::Measure.new(seconds: seconds, cpu_seconds: 1 + scatter / 10 * gauss(random))
      end
    end
    Bench::Result.new(Bench::Workload.new(name, name, []), nil, lists[0]).tap { |one| one.candidate.concat(lists[1]) }
  end

  def test_equal_sides_are_hardly_ever_flagged_and_a_noisy_one_sees_less
    one = Bench::Calibration.new([result("quiet", 0.002), result("noisy", 0.05, seed: 2)], OPTIONS)
    quiet, noisy = one.rows
    assert_operator quiet.flagged + noisy.flagged, :<=, 4
    assert_operator one.flagged_tables, :<=, 4
    assert_in_delta 0.007, quiet.wall, 0.004
    assert_in_delta 25, noisy.wall / quiet.wall, 15
    assert_operator noisy.cpu, :<, noisy.wall / 3
  end

  def test_flagged_tables_are_counted
    one = Bench::Calibration.new([result("work", 0.02)], { **OPTIONS, confidence: 50.0 })
    assert_includes 15..85, one.rows[0].flagged
    assert_equal one.rows[0].flagged, one.flagged_tables
  end

  # Whatever runs of the two sides were exchanged, the others are those of the same round.
  def test_swapping_keeps_the_rounds
    one = result("work", 0.01)
    rounds = ->(result) { result.baseline.zip(result.candidate).map { |pair| pair.map(&:seconds) } }
    swapped = rounds.(one.swapped(Random.new(1)))
    assert_equal rounds.(one).map(&:sort), swapped.map(&:sort)
    assert_includes 2..8, swapped.zip(rounds.(one)).count { |a, b| a == b }
  end

  def test_compare_says_what_the_machine_can_see
    work = made_up("work.rb", noise: 0.02)
    out, = assert_compare([0, 4], ruby("one"), "--calibrate", "-n", "6", "--json", path("out.json"), "--", work)
    assert_match(/^work +\S+ ms +\S+ ms +1\.0|^work +\S+ ms +\S+ ms +0\.99/, out)
    shown = out[/^calibration .*\nwork +([\d.]+) % +\d+ of 100$/, 1] or flunk out
    assert_includes 0.5..10, shown.to_f
    assert_match(/^two equal sides differ in \d+ of 100 of their comparisons, and somewhere in a table in \d+ of 100$/,
                 out)
    assert_includes out, "smallest difference: what 6 runs show in four cases of five"
    calibration = JSON.parse(File.read(path("out.json")))["calibration"]
    assert_equal ["work", 100], [calibration["workloads"][0]["name"], calibration["tables"]]
    assert_in_delta shown.to_f, calibration["workloads"][0]["smallest_difference"] * 100, 0.051
  end

  def test_what_fails_is_not_calibrated
    out, = assert_compare(3, ruby("one"), "--calibrate", "-n", "3", "--", write("bad.rb", "exit 1\n"))
    assert_includes out, "nothing to calibrate with"
  end

  def test_it_takes_one_executable_and_only_times
    one = ruby("one")
    _, err = assert_compare(2, one, one, "--calibrate")
    assert_equal "compare: --calibrate takes one executable, which is compared with itself; 2 are given\n",
                 err.lines.first
    _, err = assert_compare(2, one, "--calibrate", "--save", "x")
    assert_equal "compare: --calibrate compares a Ruby with itself; --save does not go with it\n", err.lines.first
  end
end
