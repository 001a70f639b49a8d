# Loaded with -r before a workload: what do execution states cost it? In one process, runs with and
# without states take turns, so that both have the same code at the same places, and the machine does
# the same for both. Processor time of the thread: what else runs hardly counts. Each run comes after
# one that does not count, for the start of a trace leaves caches cold. Reports the times as
# untraced_NUMBER and traced_NUMBER. The workload's argument is a folder for traces.
require_relative "../inside"

module VMTraceBench
  PAIRS = 40
  WARMUP = 20

  class << self
    remove_method :iterate

    def iterate(**, &run)
      WARMUP.times(&run)
      PAIRS.times do |i|
        order = i.even? ? [false, true] : [true, false]
        times = order.to_h { |traced| [traced, traced ? with_states(&run) : second_run(&run)] }
        times.each { |traced, seconds| report("#{traced ? 'traced' : 'untraced'}_#{i}", seconds) }
      end
    end

    private

    def processor_time = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

    def second_run
      yield
      from = processor_time
      yield
      processor_time - from
    end

    def with_states(&run)
      file = RubyVM::Trace.start(states: true, file: "#{ARGV.fetch(0)}/vm-trace-bench-states-%p.fxt")
      second_run(&run)
    ensure
      lost = RubyVM::Trace.stop.fetch(:lost)
      File.delete(file)
      raise "#{lost} events were lost" if lost > 0
    end
  end
end
