# Loaded with -r into every measured process, and by workloads that time their own iterations. It
# must run on any Ruby, and adds as little as possible to what is measured.
#
# The protocol: if the environment variable VM_TRACE_BENCH is set, it names a file to which the
# process appends lines:
#   iteration SECONDS [CPU]  one measured iteration, and the processor time of its process in it;
#                         everything before the first one is warm-up
#   first SECONDS         the first iteration of all, which is warm-up
#   peak KIB              peak of resident memory
#   not_run REASON        the process cannot run the workload, which is no failure: something is not
#                         installed
#   NAME NUMBER           anything else to compare, such as bytes of machine code
# A script that writes no line `iteration` is timed as a whole process. Any script may take part: it
# need not use this file.

module VMTraceBench
  REPORT = ENV["VM_TRACE_BENCH"]
  ITERATIONS = ENV["VM_TRACE_BENCH_ITERATIONS"]&.to_i # to show the warm-up: so many, all of them timed

  def self.report(name, value)
    File.open(REPORT, "a") { |file| file.puts("#{name} #{value}") } if REPORT
  end

  def self.now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Seconds of processor time that this thread takes for the block.
  def self.cpu_seconds
    from = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    yield
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - from
  end

  def self.median(list)
    list.sort[list.size / 2]
  end

  # Runs the block `warmup` times, then `runs` times with a clock around each.
  # The numbers are fixed, so both sides do and compile the same.
  def self.iterate(warmup: 5, runs: 10)
    warmup, runs = 0, ITERATIONS if ITERATIONS
    start = now
    warmup.times do |i|
      yield
      report("first", now - start) if i == 0
    end
    seconds = Array.new(runs)
    cpu = Array.new(runs)
    runs.times do |i|
      cpu_start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      start = now
      yield
      seconds[i] = now - start
      cpu[i] = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu_start
    end
    if REPORT
      File.open(REPORT, "a") { |file| seconds.zip(cpu) { |s, c| file.puts("iteration #{s} #{c}") } }
    else
      puts "median %.2f ms of %d iterations" % [seconds.sort[runs / 2] * 1000, runs]
    end
  end

  def self.report_end
    peak = File.read("/proc/self/status")[/^VmHWM:\s*(\d+)/, 1]
    report("peak", peak) if peak
    if defined?(RubyVM::ZJIT) && RubyVM::ZJIT.enabled?
      report_counters(RubyVM::ZJIT.stats, [:code_region_bytes, :side_exit_size, :compiled_iseq_count])
    elsif defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?
      report_counters(RubyVM::YJIT.runtime_stats, [:inline_code_size, :outlined_code_size])
    end
  rescue SystemCallError
    # no /proc: no peak
  end

  def self.report_counters(stats, keys)
    [*keys, :side_exit_count, :compile_time_ns].each { |key| report(key, stats[key]) if stats[key] }
  end

  at_exit { report_end } if REPORT
end
