# One of the sides: a ruby executable with flags, and how one process of it runs and is
# measured.

require "rbconfig"
require "shellwords"
require "tempfile"

module Bench
  class BadArgument < StandardError; end

  # A workload that failed, with the reason for the report.
  class Failed < StandardError; end

  # A workload that needs something which is not installed, with what to install.
  class NotRun < StandardError; end

  Workload = Struct.new(:name, :path, :arguments) do
    def command
      [path, *arguments]
    end

    # Before its first run on a side. Raises NotRun.
    def set_up(_side); end

    # nil: it cannot trace itself, so flags trace the whole process.
    def tracing(_file, _streams); end
  end

  # seconds: median of the iterations, or of the whole process; cpu_seconds: the same of the
  # processor time of all threads; first_seconds: the first iteration of the process, also where it
  # counts as warm-up. All but `seconds` are nil if unknown.
  Measure = Struct.new(:seconds, :cpu_seconds, :first_seconds, :process_seconds, :iterations, :peak_kib, :extra,
                       keyword_init: true)

  class Side
    INSIDE = File.expand_path("../inside.rb", __dir__)

    attr_reader :name, :command, :description

    # `text` is an executable, or one with its flags in one argument: "ruby --zjit".
    def initialize(name, text)
      @name = name
      @command = Shellwords.split(text)
      raise BadArgument, "#{name}: no executable is given" if @command.empty?
      @command[0] = find_executable(@command[0])
      @description = try_out
    rescue ArgumentError => e
      raise BadArgument, "#{name}: #{text}: #{e.message}"
    end

    def to_s
      @command.shelljoin
    end

    # :yjit, :zjit or nil, as Ruby says of itself.
    def jit
      description[/ \+([YZ]JIT)/, 1]&.downcase&.to_sym
    end

    # Runs one process to its end. Raises Failed with its output if it fails. A block gets the pid
    # after the start.
    def run(workload, timeout: nil, flags: [], env: {}, &block)
      before = children_cpu
      text, seconds = reported(workload, timeout, flags, env, &block)
      measure(text, seconds, children_cpu - before)
    end

    # The same as the process of another program, which gets the command as its arguments, such as
    # valgrind.
    def run_under(program, workload, timeout: nil, env: {}, &block)
      measure(*reported(workload, timeout, [], env, program, &block), nil)
    end

    # Seconds of each iteration of one process, from the first on; empty if it times none.
    def iterations(workload, count, timeout: nil)
      text, = reported(workload, timeout, [], { "VM_TRACE_BENCH_ITERATIONS" => count.to_s })
      text.scan(/^iteration (\S+)/).map { |(seconds)| seconds.to_f }
    end

    # The same without measuring, for the files of a process. The block gets its pid.
    def run_unmeasured(workload, timeout: nil, flags: [], env: {}, &block)
      process([*@command, *flags, *workload.command], timeout, { "VM_TRACE_BENCH" => File::NULL, **env }, &block)
    end

    # Runs it with this environment, for a workload that sets itself up. Raises NotRun or Failed.
    def run_to_set_up(workload, env, timeout:)
      reported_by([*@command, *workload.command], timeout, env)
    end

    # Whether it takes these flags.
    def takes?(*flags, program: "")
      system(*@command, *flags, "-e", program, in: File::NULL, out: File::NULL, err: File::NULL) == true
    end

    # Whether it has this method.
    def can?(method) = takes?(program: "exit !!defined?(#{method})")

    private

    # What the process reported, by inside.rb's protocol, and how long it ran. Raises NotRun if it reports
    # that.
    def reported(workload, timeout, flags, env, program = [], &block)
      workload.set_up(self)
      reported_by([*program, *@command, *flags, "-r", INSIDE, *workload.command], timeout, env, &block)
    end

    def reported_by(command, timeout, env, &block)
      report = Tempfile.new("vm-trace-bench")
      seconds = process(command, timeout, { "VM_TRACE_BENCH" => report.path, **env }, &block)
      text = report.read
      text[/^not_run (.+)/, 1]&.then { |why| raise NotRun, why }
      [text, seconds]
    ensure
      report&.close!
    end

    def find_executable(word)
      path = word.include?("/") ? File.expand_path(word) : in_path(word)
      raise BadArgument, "#{name}: #{word}: no such file#{' in PATH' unless word.include?('/')}" unless path && File.exist?(path)
      raise BadArgument, "#{name}: #{word}: a folder, not an executable" if File.directory?(path)
      raise BadArgument, "#{name}: #{word}: not an executable" unless File.executable?(path)
      path
    end

    def in_path(word)
      ENV.fetch("PATH", "").split(":").map { |folder| File.join(folder, word) }
         .find { |path| File.executable?(path) && !File.directory?(path) }
    end

    def try_out
      out = IO.popen([*@command, "-e", "print RUBY_DESCRIPTION"], err: [:child, :out], in: File::NULL, &:read)
      return out.lines.last.to_s.strip if $?.success? && !out.empty?
      raise BadArgument, "#{name}: #{self} does not run Ruby: #{out.lines.last.to_s.strip.then { |line| line.empty? ? "status #{$?.exitstatus}" : line }}"
    rescue SystemCallError => e
      raise BadArgument, "#{name}: #{self} cannot be run: #{e.message}"
    end

    # In its own process group: Ctrl-C reaches us, and we end everything that the process started.
    def process(command, timeout, env)
      errors = Tempfile.new("vm-trace-bench")
      start = now
      pid = Process.spawn(env, *command, in: File::NULL, out: File::NULL, err: errors.path, pgroup: true)
      yield pid if block_given?
      waiter = Process.detach(pid)
      unless waiter.join(timeout)
        kill(pid, waiter)
        raise Failed, "it did not end within #{timeout} s"
      end
      seconds = now - start
      return seconds if waiter.value.success?
      raise Failed, failure(waiter.value, errors)
    rescue SystemCallError => e
      raise Failed, e.message
    rescue Interrupt
      kill(pid, waiter) if pid
      raise
    ensure
      errors&.close!
    end

    def kill(pid, waiter)
      Process.kill(:KILL, -pid)
      waiter&.join
    rescue Errno::ESRCH, Errno::EPERM
      # it has ended
    end

    def failure(status, errors)
      said = File.read(errors.path).scrub.lines.map(&:strip)
      # Ruby's own message is the first line that names a file and an error; otherwise the last line
      # helps most.
      line = said.find { |text| text =~ /\A\S+:\d+:.*\([\w:]+\)\z|\[BUG\]|panicked/ } || said.reject(&:empty?).last
      how = status.signaled? ? "killed by signal #{status.termsig}" : "status #{status.exitstatus}"
      line ? "#{how}: #{line}" : how
    end

    # The lines of inside.rb's protocol.
    def measure(text, process_seconds, process_cpu)
      iterations, values = [], Hash.new { |hash, key| hash[key] = [] }
      text.each_line do |line|
        key, *numbers = line.split
        numbers = numbers.map { |number| Float(number, exception: false) }
        next unless numbers[0]
        key == "iteration" ? iterations << numbers : values[key] << numbers[0]
      end
      peaks = values.delete("peak") || []
      first = values.delete("first")&.first || iterations.dig(0, 0)
      iterations << [process_seconds, process_cpu] if (whole = iterations.empty?)
      seconds, cpu = iterations.map(&:first), iterations.filter_map { |numbers| numbers[1] }
      Measure.new(seconds: Statistics.median(seconds), cpu_seconds: cpu.empty? ? nil : Statistics.median(cpu),
                  first_seconds: first, process_seconds: process_seconds, iterations: whole ? nil : iterations.size,
                  peak_kib: peaks.max&.to_i, extra: values.transform_values(&:last))
    end

    # Processor time of all children that have ended. One runs at a time.
    def children_cpu
      times = Process.times
      times.cutime + times.cstime
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
