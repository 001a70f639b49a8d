# What disturbs a measurement, from a made-up /proc/stat and governors.

require_relative "bench_helper"
require "machine"

class TestMachine < BenchTest
  TICKS = Etc.sysconf(Etc::SC_CLK_TCK)

  # Seconds of user, idle and steal.
  def stat(user, idle, steal)
    ticks = [user, 0, 0, idle, 0, 0, 0, steal, 0, 0].map { |seconds| (seconds * TICKS).to_i }
    write("stat", "cpu  #{ticks.join(' ')}\ncpu0 1 2 3\n")
  end

  def warnings(user, idle, steal)
    watch = Bench::Machine::Watch.new(stat: stat(100, 100, 0))
    stat(100 + user, 100 + idle, steal)
    watch.warnings
  end

  def test_what_other_processes_took_is_said
    assert_empty warnings(0.5, 99.5, 0)
    said = format("other processes took %.1f of %d processors meanwhile", 0.5 * Etc.nprocessors, Etc.nprocessors)
    assert_equal [said], warnings(50, 50, 0)
  end

  def test_what_the_host_took_is_said
    assert_equal ["the host took 20 % of the processors' time (steal)"], warnings(0, 80, 20)
  end

  def test_own_work_does_not_count
    watch = Bench::Machine::Watch.new(stat: stat(100, 100, 0))
    before = Process.times.then { |t| t.utime + t.stime + t.cutime + t.cstime }
    system(RbConfig.ruby, "-e", "nil while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < 0.5")
    own = Process.times.then { |t| t.utime + t.stime + t.cutime + t.cstime } - before
    assert_operator own, :>=, 0.5
    stat(100 + own, 100 + own / 10, 0) # all that the machine did is ours
    assert_empty watch.warnings
  end

  def test_a_system_without_proc_has_no_warnings
    assert_empty Bench::Machine::Watch.new(stat: path("none")).warnings
  end

  def test_governors
    %w[performance powersave powersave].each_with_index { |governor, i| write("cpu#{i}", "#{governor}\n") }
    assert_equal %w[powersave], Bench::Machine.slow_governors("#{dir}/cpu*")
    assert_empty Bench::Machine.slow_governors(path("none*"))
  end
end
