# What recording costs a benchmark of ruby-bench: the harness of benchmarks/ruby-bench. In one process, after the
# warm-up, untraced iterations and iterations of each kind of recording take turns, so that all have the same
# code at the same places, and the machine does the same for all. Processor time of the process, with the tracer's
# threads: what else runs counts little.
#
# Reports, by inside.rb's protocol, for each round and kind NUMBER (0 is untraced):
#   cpu_ROUND_NUMBER SECONDS, wall_ROUND_NUMBER SECONDS, bytes_ROUND_NUMBER, exits_ROUND_NUMBER, lost_ROUND_NUMBER
# The trace of the last round and kind stays at VM_TRACE_FILE.NUMBER.
require_relative "../../examples/ruby_bench/harness-vm-trace/harness"

module VMTraceHarness
  class << self
    private

    def traced(&iteration)
      abort "this Ruby has no tracer: #{RUBY_DESCRIPTION}" unless defined?(RubyVM::Trace)
      kinds = [nil, *ENV.fetch("VM_TRACE_KINDS").split].each_with_index.to_a
      Integer(ENV.fetch("VM_TRACE_ROUNDS")).times do |round|
        order = kinds.rotate(round)
        (round.even? ? order : order.reverse).each { |streams, kind| turn(streams, kind, round, &iteration) }
      end
    end

    def turn(streams, kind, round, &iteration)
      name = "#{round}_#{kind}"
      path = RubyVM::Trace.start(streams: streams, file: "#{TRACE}.#{kind}") if streams
      from = cpu
      report("wall_#{name}", seconds(&iteration))
      report("cpu_#{name}", cpu - from)
      return unless path
      counts = RubyVM::Trace.stop
      counts.slice(:exits, :lost).each { |count, n| report("#{count}_#{name}", n) }
      report("bytes_#{name}", File.size(path))
    end

    def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end
end
