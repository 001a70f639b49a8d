# Short bursts of work between sleeps, on a machine whose CPUs are busy: the program's own clocks know how long they took.
#
# Level: all. It takes minutes.
# Once: the JIT and the base change nothing here.
require_relative "helper"
require "etc"

class TestSampleShares < Integration::Test
  RUNS = LONG ? 100 : 30
  # Sampled time by true time. Where the kernel preempts lazily, a late sampler often gets its CPU when the thread enters
  # the kernel, so what is behind a burst has a part of its samples: the mean was 0.89, and 0.49 before moments belonged to
  # the phase in which they were due. Between runs ratios differ by 0.15.
  LEAST = 0.89 - STANDARD_ERRORS * 0.15 / Math.sqrt(RUNS)

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

  # The own time of `work` in the report, in ns.
  def sampled(trace)
    out, = Open3.capture2(Trace::TOOL, "report", "--format=json", "--samples", "--top=1000", trace.path)
    JSON.parse(out)["samples_by_method"]["rows"].find { |row| row["method"].start_with?("Object#work ") }&.fetch("own_ns") || 0
  end

  def assert_mean_holds(clock)
    ratios = Array.new(RUNS) do
      result = run_ruby(BURSTS, "--vm-trace=samples:#{clock},1ms", "--vm-trace-file=%p.fxt", args: [clock])
      assert_predicate result.status, :success?, result.err
      sampled(result.trace).fdiv(result.out.to_i)
    end
    assert_includes LEAST..1.1, ratios.sum / RUNS, ratios.map { |ratio| ratio.round(2) }.sort.inspect
  end

  def test_wall_clock_time = assert_mean_holds("wall")
  def test_cpu_time = assert_mean_holds("cpu")
end
