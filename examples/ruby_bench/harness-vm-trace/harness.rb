# A harness for ruby-bench (https://github.com/ruby/ruby-bench), in place of its own:
#
#   ruby --yjit -I examples/ruby_bench/harness-vm-trace RUBY_BENCH/benchmarks/railsbench/benchmark.rb
#
# It warms up untraced, then traces: each iteration is a span of its own, so the trace holds nothing of the
# start, of compilation and of what sets the benchmark up. ruby-bench's variables hold: WARMUP_ITRS (15) and
# MIN_BENCH_ITRS (10) iterations. And two of its own:
#   VM_TRACE_STREAMS   what to record, as in --vm-trace=STREAMS (default)
#   VM_TRACE_FILE      where (NAME-PID.fxt in the current folder)
#
# benchmarks/compare --ruby-bench uses it, too: then VM_TRACE_BENCH names the file for its measurements
# (benchmarks/inside.rb), and without VM_TRACE_FILE nothing is traced.

# For another version Bundler would execute the script again, without -I and without the flags of the JIT.
ENV["BUNDLE_VERSION"] ||= "system"

require "harness-common" # ruby-bench's, whose loader has put its folder on the load path

module VMTraceHarness
  WARMUP = Integer(ENV["WARMUP_ITRS"] || 15)
  ITERATIONS = Integer(ENV["MIN_BENCH_ITRS"] || 10)
  SECONDS = Integer(ENV["MIN_BENCH_TIME"] || 10) # at least so long, if it is timed and not traced
  SCRIPT = File.expand_path($PROGRAM_NAME)
  NAME = File.basename(SCRIPT) == "benchmark.rb" ? File.basename(File.dirname(SCRIPT)) : File.basename(SCRIPT, ".rb")
  REPORT = ENV["VM_TRACE_BENCH"]
  # Before the benchmark changes the folder.
  FILE = ENV["VM_TRACE_FILE"] || (REPORT ? nil : "#{NAME}-#{$$}.fxt")
  TRACE = FILE && File.expand_path(FILE)
  STREAMS = ENV["VM_TRACE_STREAMS"] || "default"

  class << self
    # Why it cannot be set up goes where `compare` reads it, not only into what bundler prints.
    def set_up(commands)
      commands.each do |command|
        out = IO.popen(command, err: [:child, :out], &:read)
        $stderr.puts out unless REPORT
        not_set_up("#{command[/[^|&]+\z/].strip}: #{why(out)}") unless $?.success?
      end
    end

    def not_set_up(reason)
      abort "#{NAME} cannot be set up: #{reason}" unless REPORT
      report("not_run", "it cannot be set up: #{reason}")
      exit
    end

    def run(&iteration)
      exit if ENV["VM_TRACE_BENCH_SET_UP"] # that was all
      count = ENV["VM_TRACE_BENCH_ITERATIONS"]&.to_i # with --warm-up: so many, all of them timed
      return count.times { timed(&iteration) } if count
      WARMUP.times { |i| i == 0 ? report("first", seconds(&iteration)) : iteration.call }
      TRACE ? traced(&iteration) : timed_all(&iteration)
    end

    private

    def traced(&iteration)
      abort "this Ruby has no tracer: #{RUBY_DESCRIPTION}" unless defined?(RubyVM::Trace)
      path = RubyVM::Trace.start(streams: "#{STREAMS},markers", file: TRACE)
      ITERATIONS.times { |i| RubyVM::Trace.span("iteration #{i + 1}", &iteration) }
      counts = RubyVM::Trace.stop
      puts "#{ITERATIONS} iterations, #{counts[:exits]} exits, #{counts[:lost]} events lost: vm-trace report #{path}"
    end

    def timed_all(&iteration)
      start, done = now, 0
      done += timed(&iteration) until done >= ITERATIONS && now - start >= SECONDS
    end

    def timed
      cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      wall = seconds { yield }
      report("iteration", "#{wall} #{Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu}")
      1
    end

    def seconds
      from = now
      yield
      now - from
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def report(name, value)
      REPORT ? File.open(REPORT, "a") { |file| file.puts("#{name} #{value}") } : puts("#{name} #{value}")
    end

    # What most tells of the output of bundler or another program, and the line behind it.
    def why(out)
      lines = out.scrub.lines.map(&:strip).reject { |line| line.empty? || line.start_with?("Retrying") }
      telling = [/^An error occurred/, /error|could not|cannot|fatal|failed|incompatible/i]
      at = telling.filter_map { |text| lines.index { |line| line.match?(text) } }.first || -1
      lines.empty? ? "it prints nothing" : lines[at, 2].join(" ")[0, 300]
    end
  end
end

def setup_cmds(commands) = VMTraceHarness.set_up(commands)

# As ruby-bench's own, but what the command prints is not thrown away before it can be asked why it failed.
def use_gemfile(extra_setup_cmd: nil)
  setup_cmds(["bundle check >/dev/null 2>&1 || bundle install", extra_setup_cmd].compact)
  require "bundler/setup"
end

def run_benchmark(_iterations, **, &iteration) = VMTraceHarness.run(&iteration)
