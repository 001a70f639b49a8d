# Do the intervals that the report prints hold? Short bursts of work between sleeps, on a machine whose CPUs are busy: the
# program's own clocks know the shares.
#
# Level: all. It takes minutes.
# Once: the JIT and the base change nothing here.
require_relative "helper"
require "etc"

class TestSampleShares < Integration::Test
  RUNS = LONG ? 100 : 30
  # Of intervals that hold with a probability of 95 %, fewer do once in a billion times.
  LEAST = RUNS - (0..RUNS).find do |failures|
    (failures + 1..RUNS).sum { |k| (1..k).inject(1) { |c, i| c * (RUNS - k + i) / i } * 0.05**k * 0.95**(RUNS - k) } < 1e-9
  end

  # `long` and `short` run after a wake-up, in turns. Prints the ns of each, by the clock that is sampled.
  BURSTS = <<~'RUBY'
    CLOCK = ARGV[0] == "cpu" ? Process::CLOCK_THREAD_CPUTIME_ID : Process::CLOCK_MONOTONIC
    def now = Process.clock_gettime(CLOCK, :nanosecond)
    def long(n) = (n -= 1 while n > 0)
    def short(n) = (n -= 1 while n > 0)
    took = { long: 0, short: 0 }
    250.times do |i|
      sleep 0.002
      name, n = i % 4 == 0 ? [:long, 60_000] : [:short, 20_000]
      from = now
      send(name, n)
      took[name] += now - from
    end
    puts took.values
  RUBY

  def setup
    super
    @hogs = Array.new(Etc.nprocessors) { spawn("ruby", "-e", "loop { }") }
  end

  def teardown
    @hogs.each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
    super
  end

  # By method: the own time and its error in the report.
  def sampled(trace)
    out, = Open3.capture2(Trace::TOOL, "report", "--format=json", "--samples", "--top=1000", trace.path)
    JSON.parse(out)["samples_by_method"]["rows"].to_h { |row| [row["method"][/\A\S+/], row.values_at("own_ns", "own_error_ns")] }
  end

  def coverage(clock)
    held, ratios = Hash.new(0), Hash.new { |all, name| all[name] = [] }
    RUNS.times do
      result = run_ruby(BURSTS, "--vm-trace=samples:#{clock},1ms", "--vm-trace-file=%p.fxt", args: [clock])
      assert_predicate result.status, :success?, result.err
      rows = sampled(result.trace)
      %w[Object#long Object#short].zip(result.out.split.map(&:to_i)) do |name, truth|
        own, error = rows.fetch(name, [0, 0])
        held[name] += 1 if (own - truth).abs <= error
        ratios[name] << own.fdiv(truth)
      end
    end
    [held, ratios.transform_values { |all| all.sum / all.size }]
  end

  def test_intervals_of_wall_clock_time_hold
    held, mean = coverage("wall")
    held.each { |name, count| assert_operator count, :>=, LEAST, "#{name}: #{held}, mean #{mean}" }
  end

  def test_intervals_of_cpu_time_hold
    held, mean = coverage("cpu")
    held.each { |name, count| assert_operator count, :>=, LEAST, "#{name}: #{held}, mean #{mean}" }
  end
end
