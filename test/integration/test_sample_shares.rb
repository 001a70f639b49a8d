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

  # `work` runs for a short time after each wake-up. Prints its ns, by the clock that is sampled.
  BURSTS = <<~'RUBY'
    CLOCK = ARGV[0] == "cpu" ? Process::CLOCK_THREAD_CPUTIME_ID : Process::CLOCK_MONOTONIC
    def now = Process.clock_gettime(CLOCK, :nanosecond)
    def work(n) = (n -= 1 while n > 0)
    took = 0
    250.times do
      sleep 0.002
      from = now
      work(30_000)
      took += now - from
    end
    puts took
  RUBY

  def setup
    super
    @hogs = Array.new(Etc.nprocessors) { spawn("ruby", "-e", "loop { }") }
  end

  def teardown
    @hogs.each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
    super
  end

  # The own time of `work` and its error in the report, in ns.
  def sampled(trace)
    out, = Open3.capture2(Trace::TOOL, "report", "--format=json", "--samples", "--top=1000", trace.path)
    row = JSON.parse(out)["samples_by_method"]["rows"].find { |found| found["method"].start_with?("Object#work ") }
    row ? row.values_at("own_ns", "own_error_ns") : [0, 0]
  end

  def assert_intervals_hold(clock)
    ratios = []
    held = RUNS.times.count do
      result = run_ruby(BURSTS, "--vm-trace=samples:#{clock},1ms", "--vm-trace-file=%p.fxt", args: [clock])
      assert_predicate result.status, :success?, result.err
      truth = result.out.to_i
      own, error = sampled(result.trace)
      ratios << own.fdiv(truth)
      (own - truth).abs <= error
    end
    puts "#{clock}: #{held} of #{RUNS} hold, mean #{(ratios.sum / RUNS).round(3)}" if ENV["V"]
    assert_operator held, :>=, LEAST, "sampled by true time: #{ratios.map { |ratio| ratio.round(2) }.sort}"
  end

  def test_intervals_of_wall_clock_time_hold = assert_intervals_hold("wall")
  def test_intervals_of_cpu_time_hold = assert_intervals_hold("cpu")
end
