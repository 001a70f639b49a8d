# Runs the workloads on both sides in turn and keeps the measurements. After Ctrl-C, or when the
# time is used up, those so far are kept.

require_relative "side"
require_relative "statistics"

module Bench
  # The results of one workload. `baseline` and `candidate` are lists of Measures; the same index in
  # both is a pair of runs that were neighbours in time, unless the baseline was saved earlier.
  class Result
    attr_reader :workload, :baseline, :candidate
    attr_accessor :failure, :exits

    def initialize(workload, saved: nil)
      @workload = workload
      @baseline = saved || []
      @candidate = []
      @saved = !saved.nil?
    end

    def saved?
      @saved
    end

    def fail(side, reason)
      @failure ||= "#{side}: #{reason}"
    end

    def interval(confidence, seed)
      return nil if @failure || @baseline.empty? || @candidate.empty?
      a, b = [@baseline, @candidate].map { |list| list.map(&:seconds) }
      @interval ||= Statistics.public_send(@saved ? :unpaired_interval : :paired_interval, a, b, confidence: confidence, seed: seed)
    end

    def runs
      [@baseline, @candidate].reject(&:empty?).map(&:size).min || 0
    end

    def peak(list)
      peaks = list.filter_map(&:peak_kib)
      peaks.empty? ? nil : Statistics.median(peaks)
    end
  end

  class Comparison
    attr_reader :results, :interrupted

    # `baseline` may be nil (only the candidate is measured), `saved` maps names of workloads to
    # lists of Measures.
    def initialize(baseline, candidate, workloads, saved: nil, runs: 10, seconds: nil, timeout: nil, progress: nil)
      @sides = [baseline, candidate]
      @results = workloads.map { |workload| Result.new(workload, saved: saved && saved.fetch(workload.name)) }
      @runs, @seconds, @timeout, @progress = runs, seconds, timeout, progress
    end

    # First one run of each side that does not count: it warms the page cache, and fails early.
    # Then rounds over all workloads, so that other work of the machine falls on all alike.
    def run
      deadline = @seconds && now + @seconds
      rounds = [0, *1..@runs]
      rounds.each do |round|
        alive = @results.reject(&:failure)
        alive.each_with_index do |result, i|
          return if round > 0 && deadline && now > deadline
          @progress&.step(round, @runs, i, alive.size, result.workload.name)
          # A B B A A B B A: drift, and what one run leaves behind for the next, falls on both
          # alike.
          order = round.odd? || round == 0 ? [0, 1] : [1, 0]
          one_round(result, order, counts: round > 0)
        end
      end
    rescue Interrupt
      @interrupted = true
    ensure
      @progress&.clear
    end

    private

    def one_round(result, order, counts:)
      measured = order.filter_map do |i|
        next unless (side = @sides[i])
        begin
          [i, side.run(result.workload, timeout: @timeout)]
        rescue Failed => e
          return result.fail(side.name, e.message)
        end
      end.to_h
      return unless counts
      unless measured.values.map { |measure| measure.iterations.nil? }.uniq.size == 1
        return result.fail("both", "it reports iterations on one side only")
      end
      # Both or none: an interrupted round leaves no half pair.
      measured.each { |i, measure| (i == 0 ? result.baseline : result.candidate) << measure }
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end

  # One line that is overwritten, on a terminal only.
  class Progress
    def self.on(io)
      io.tty? ? new(io) : nil
    end

    def initialize(io)
      @io = io
      @start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def step(round, rounds, done, of, name)
      spent = Process.clock_gettime(Process::CLOCK_MONOTONIC) - @start
      share = (round + done.to_f / of) / (rounds + 1)
      left = share > 0.02 ? ", about #{duration(spent / share - spent)} left" : ""
      text = "#{round == 0 ? 'warm-up' : "run #{round} of #{rounds}"}: #{name} (#{done + 1} of #{of})#{left}"
      @io.print("\r\e[K", text)
      @io.flush
    end

    def clear
      @io.print("\r\e[K")
      @io.flush
    end

    private

    def duration(seconds)
      seconds < 90 ? "#{seconds.round} s" : "#{(seconds / 60).round} min"
    end
  end
end
