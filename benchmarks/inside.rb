# Loaded with -r into every measured process, and by workloads that time their own iterations. It
# must run on any Ruby, and adds as little as possible to what is measured.
#
# The protocol: if the environment variable VM_TRACE_BENCH is set, it names a file to which the
# process appends lines:
#   iteration SECONDS     one measured iteration; everything before the first one is warm-up
#   peak KIB              peak of resident memory
#   NAME NUMBER           anything else to compare, such as bytes of machine code
# A script that writes no line `iteration` is timed as a whole process. Any script may take part: it
# need not use this file.

module VMTraceBench
  REPORT = ENV["VM_TRACE_BENCH"]

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
    warmup.times { yield }
    seconds = Array.new(runs)
    runs.times do |i|
      start = now
      yield
      seconds[i] = now - start
    end
    if REPORT
      File.open(REPORT, "a") { |file| seconds.each { |s| file.puts("iteration #{s}") } }
    else
      puts "median %.2f ms of %d iterations" % [seconds.sort[runs / 2] * 1000, runs]
    end
  end

  def self.report_end
    peak = File.read("/proc/self/status")[/^VmHWM:\s*(\d+)/, 1]
    report("peak", peak) if peak
    if defined?(RubyVM::ZJIT) && RubyVM::ZJIT.enabled?
      stats = RubyVM::ZJIT.stats
      [:code_region_bytes, :side_exit_size, :compiled_iseq_count, :side_exit_count].each { |key| report(key, stats[key]) if stats[key] }
    elsif defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?
      stats = RubyVM::YJIT.runtime_stats
      [:inline_code_size, :outlined_code_size].each { |key| report(key, stats[key]) if stats[key] }
    end
  rescue SystemCallError
    # no /proc: no peak
  end

  at_exit { report_end } if REPORT
end
